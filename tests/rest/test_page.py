"""The operator's page: how it is served, and what it does in a real Chromium."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from administered import Administered
from chromium import CHROMIUM, DRIVER, Chromium

ORDERS = "persistent://public/default/orders"
EVIL = '<img src=x onerror="document.title=1">'
FILES = ("/", "/page/page.css", "/page/page.js")

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="chromium and chromedriver are not installed"
)


@pytest.mark.parametrize("path", FILES)
def test_the_page_runs_nothing_of_another_host(administered: Administered, path: str):
    reply = administered.ask("GET", f"/{path}")
    assert reply.status == 200
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"
    named = set(re.findall(r"https?://[^\"'` ]+", reply.body))
    assert named <= {"http://www.w3.org/2000/svg"}  # a name, which is not fetched


def test_the_page_names_only_files_that_are_served(administered: Administered):
    page = administered.ask("GET", "//").body
    named = re.findall(r'(?:src|href)="(/[^"]*)"', page)
    assert sorted(named) == sorted(FILES[1:])
    kinds = [administered.ask("GET", f"/{each}").headers["content-type"] for each in named]
    assert sorted(kinds) == ["text/css; charset=utf-8", "text/javascript; charset=utf-8"]


def test_the_page_writes_no_html_of_its_own(administered: Administered):
    script = administered.ask("GET", "//page/page.js").body
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script)


def test_the_files_of_the_page_are_in_the_wheel(monkeypatch: pytest.MonkeyPatch):
    setuptools = pytest.importorskip("setuptools")
    root = next(each for each in Path(__file__).parents if (each / "pyproject.toml").exists())
    monkeypatch.chdir(root)
    distribution = setuptools.Distribution()
    distribution.parse_config_files()
    build = distribution.get_command_obj("build_py")
    build.ensure_finalized()
    build.manifest_files = {}  # of include-package-data, which is off
    found = build.find_data_files("pulsarx.rest", str(root / "python/pulsarx/rest"))
    assert {Path(each).name for each in found} >= {"index.html", "page.css", "page.js"}


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example"}])
def test_pages_of_others_cannot_clear_a_backlog(
    administered: Administered, headers: dict[str, str]
):
    _publish(administered, b"1")
    path = "/persistent/public/default/orders/subscription/billing/skip_all"
    assert administered.ask("POST", path, headers=headers).status == 403
    assert _backlog(administered) == 1


# In a browser -------------------------------------------------------------------------------------


@pytest.fixture
def chromium(tmp_path: Path) -> Iterator[Chromium]:
    found = Chromium(tmp_path)
    yield found
    found.close()


def _publish(administered: Administered, *payloads: bytes, subscription: str = "billing") -> None:
    administered.client.subscribe("orders", subscription).close()
    producer = administered.client.create_producer("orders")
    for payload in payloads:
        producer.send(payload)


def _backlog(administered: Administered) -> int:
    found = administered.get("/persistent/public/default/orders/stats")
    backlog: int = found["subscriptions"]["billing"]["msgBacklog"]
    return backlog


def _has(text: str) -> str:
    return f"document.getElementById('main').innerText.includes({json.dumps(text)})"


def _press(label: str) -> str:
    return (
        f"[...document.querySelectorAll('button')].find(e => e.textContent === {json.dumps(label)})"
    )


@needs_chromium
def test_what_nobody_consumes_is_said_first(administered: Administered, chromium: Chromium):
    administered.client.create_producer("a-quiet-topic").send(b"x")
    _publish(administered, b"1", b"2", b"3")
    chromium.open(administered.url)
    chromium.until(_has("orders"))
    rows = chromium.run(
        "return [...document.querySelectorAll('tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.innerText))"
    )
    assert rows[0][:2] == ["orders", "3"]
    assert rows[0][3] == "none"
    assert rows[1][0] == "a-quiet-topic"


@needs_chromium
def test_a_topic_shows_who_consumes(administered: Administered, chromium: Chromium):
    _publish(administered)
    administered.client.subscribe("orders", "billing", consumer_name="till-7")
    chromium.open(f"{administered.url}/#{quote(ORDERS, safe='')}")
    chromium.until(_has("till-7"))
    assert chromium.run("return document.querySelectorAll('figure svg polyline').length") == 3


@needs_chromium
def test_clearing_names_its_count_and_waits_for_a_confirmation(
    administered: Administered, chromium: Chromium
):
    _publish(administered, b"1", b"2", b"3")
    chromium.open(f"{administered.url}/#{quote(ORDERS, safe='')}")
    chromium.until(_press("Clear backlog"))
    chromium.run(f"{_press('Clear backlog')}.click()")
    said = chromium.run("return document.getElementById('confirm').innerText")
    assert "All 3 messages" in said and "billing" in said and ORDERS in said
    chromium.run(f"{_press('Cancel')}.click()")
    assert not chromium.run("return document.getElementById('confirm').open")
    assert _backlog(administered) == 3
    chromium.run(f"{_press('Clear backlog')}.click()")
    chromium.run(f"{_press('Skip 3 messages')}.click()")
    chromium.until(_has("backlog 0"))
    assert _backlog(administered) == 0


@needs_chromium
def test_a_subscription_is_deleted_when_that_was_confirmed(
    administered: Administered, chromium: Chromium
):
    _publish(administered, subscription="a/b +%2F")
    chromium.open(f"{administered.url}/#{quote(ORDERS, safe='')}")
    chromium.until(_press("Delete subscription"))
    chromium.run(f"{_press('Delete subscription')}.click()")
    chromium.run("document.getElementById('confirm-yes').click()")
    chromium.until(f"!{_has('a/b +%2F')}")
    assert administered.get("/persistent/public/default/orders/subscriptions") == []


@needs_chromium
def test_names_and_payloads_are_text(administered: Administered, chromium: Chromium):
    topic = f"persistent://public/default/{EVIL}"
    administered.client.subscribe(topic, EVIL).close()
    administered.client.create_producer(topic).send(EVIL.encode() + b" payload")
    chromium.open(administered.url)
    chromium.until(_has(EVIL))
    chromium.run("document.querySelector('tbody a').click()")
    chromium.until(_press("Peek"))
    chromium.run(f"{_press('Peek')}.click()")
    chromium.until(_has(f"{EVIL} payload"))
    assert chromium.run("return document.querySelectorAll('img').length") == 0
    assert chromium.run("return document.title") == "PulsarX"


@needs_chromium
@pytest.mark.parametrize("place", ["", f"#{quote(ORDERS, safe='')}"], ids=["topics", "a topic"])
def test_the_page_fits_a_narrow_window(administered: Administered, chromium: Chromium, place: str):
    _publish(administered, b"1", subscription="s" * 100)
    chromium.resize(400, 800)
    chromium.open(f"{administered.url}/{place}")
    chromium.until(_has("orders"))
    assert chromium.run("return document.documentElement.scrollWidth") <= 400
