"""The operator's page: how it is served, and what it does in a real Chromium."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from administered import Administered
from chromium import Chromium
from encryption_steps import write_keys
from page_steps import (
    ORDERS,
    backlog_of,
    button,
    confirm,
    fill,
    has,
    needs_chromium,
    place_of,
    press,
    publish,
    said,
    table_rows,
)
from signing import SECRET_TEXT, token

import pulsarx
from pulsarx.access import AccessSettings
from pulsarx.clock import ManualClock

EVIL = '<img src=x onerror="document.title=1">'
FILES = (
    "/", "/page/page.css", "/page/page.js", "/page/api.js", "/page/avro.js", "/page/chart.js",
    "/page/dialog.js", "/page/download.js", "/page/elements.js", "/page/messages.js",
    "/page/overview.js", "/page/plot.js", "/page/policies.js", "/page/publish.js", "/page/topic.js",
    "/page/topics.js", "/page/transactions.js", "/page/value.js",
)  # fmt: skip


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
    named = set(re.findall(r'(?:src|href)="(/[^"]*)"', administered.ask("GET", "//").body))
    for each in [one for one in FILES if one.endswith(".js")]:
        script = administered.ask("GET", f"/{each}")
        assert script.headers["content-type"] == "text/javascript; charset=utf-8"
        named |= {f"/page/{one}" for one in re.findall(r'from "\./([^"]*)"', script.body)}
    assert sorted(named) == sorted(FILES[1:])


@pytest.mark.parametrize("path", [each for each in FILES if each.endswith(".js")])
def test_the_page_writes_no_html_of_its_own(administered: Administered, path: str):
    script = administered.ask("GET", f"/{path}").body
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|setHTML|document\.write|eval\(|Function\(|"
        r"createContextualFragment|javascript:",
        script,
    )


def test_the_files_of_the_page_are_in_the_wheel(monkeypatch: pytest.MonkeyPatch):
    setuptools = pytest.importorskip("setuptools")
    root = next(each for each in Path(__file__).parents if (each / "pyproject.toml").exists())
    monkeypatch.chdir(root)
    distribution = setuptools.Distribution({"long_description": "setup.py says it"})
    distribution.parse_config_files()
    build = distribution.get_command_obj("build_py")
    build.ensure_finalized()
    build.manifest_files = {}  # of include-package-data, which is off
    found = build.find_data_files("pulsarx.rest", str(root / "python/pulsarx/rest"))
    assert {Path(each).name for each in found} >= {Path(each).name for each in FILES[1:]}
    assert "index.html" in {Path(each).name for each in found}


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example"}])
def test_pages_of_others_cannot_clear_a_backlog(
    administered: Administered, headers: dict[str, str]
):
    publish(administered, b"1")
    path = "/persistent/public/default/orders/subscription/billing/skip_all"
    assert administered.ask("POST", path, headers=headers).status == 403
    assert backlog_of(administered) == 1


# In a browser -------------------------------------------------------------------------------------


# Topics


@needs_chromium
def test_what_nobody_consumes_is_said_first(administered: Administered, chromium: Chromium):
    administered.client.create_producer("a-quiet-topic").send(b"x")
    publish(administered, b"1", b"2", b"3")
    chromium.open(administered.url)
    chromium.until(has("orders"))
    rows = table_rows(chromium)
    assert rows[0][:2] == ["orders", "3"]
    assert rows[0][3] == "none"
    assert rows[1][0] == "a-quiet-topic"


@needs_chromium
def test_topics_are_filtered_sorted_and_paged_by_the_server(
    administered: Administered, chromium: Chromium
):
    for number in range(60):
        administered.client.admin.topics.create_non_partitioned_topic(f"t{number:02}")
    publish(administered, b"1")
    chromium.open(administered.url)
    chromium.until(has("1 to 50 of 61"))
    press(chromium, "Next")
    chromium.until(has("51 to 61 of 61"))
    chromium.run("document.querySelector('[data-id=\"sort name\"]').click()")
    chromium.until(has("1 to 50 of 61"))
    chromium.until("document.querySelector('th[aria-sort=ascending]')")
    assert table_rows(chromium)[0][0] == "orders"
    chromium.run(
        "const field = document.querySelector('[data-id=filter]'); field.focus();"
        "field.value = 'T5'; field.dispatchEvent(new Event('input'));"
    )
    chromium.until(has("1 to 10 of 10"))
    assert [row[0] for row in table_rows(chromium)] == [f"t{number}" for number in range(50, 60)]
    assert chromium.run("return document.activeElement.dataset.id") == "filter"


@needs_chromium
def test_a_topic_is_created_and_deleted_when_its_name_was_typed(
    administered: Administered, chromium: Chromium
):
    chromium.open(administered.url)
    press(chromium, "Create topic")
    fill(chromium, 0, "new one")
    fill(chromium, 1, "2")
    confirm(chromium)
    chromium.until(has("new one"))
    assert administered.get("/persistent/public/default/new%20one/partitions")["partitions"] == 2
    press(chromium, "new one")
    press(chromium, "Delete topic")
    assert chromium.run("return document.getElementById('dialog-yes').disabled")
    fill(chromium, 1, "new one")
    confirm(chromium)
    chromium.until(has("No topics."))
    assert administered.get("/persistent/public/default") == []


# A topic


@needs_chromium
def test_a_page_that_stands_still_does_not_claim_to_be_of_now(
    administered: Administered, chromium: Chromium
):
    """While text was marked the time went on, and the figures did not."""
    publish(administered, b"1")
    chromium.open(place_of(administered))
    chromium.until("document.querySelector('main h2')")
    chromium.run("getSelection().selectAllChildren(document.querySelector('main h2'))")
    chromium.until(said("Stands still while text is marked"))
    chromium.run("getSelection().removeAllRanges()")
    chromium.until("/^[0-9]/.test(document.getElementById('state').innerText)")


@needs_chromium
def test_a_topic_shows_plots_and_who_consumes(administered: Administered, chromium: Chromium):
    publish(administered, b"1")
    administered.client.subscribe(
        "orders", "billing", pulsarx.ConsumerType.Shared, consumer_name="till-7"
    )
    chromium.open(place_of(administered))
    chromium.until(has("till-7"))
    assert chromium.run("return document.querySelectorAll('figure svg polyline').length") == 4
    assert table_rows(chromium)[0][:3] == ["till-7", "999", "1"]


@needs_chromium
def test_clearing_names_its_count_and_waits_for_a_confirmation(
    administered: Administered, chromium: Chromium
):
    publish(administered, b"1", b"2", b"3")
    chromium.open(place_of(administered))
    press(chromium, "Clear backlog")
    shown = chromium.run("return document.getElementById('dialog').innerText")
    assert "All 3 messages" in shown and "billing" in shown and ORDERS in shown
    chromium.run("document.getElementById('dialog-no').click()")
    assert not chromium.run("return document.getElementById('dialog').open")
    assert backlog_of(administered) == 3
    press(chromium, "Clear backlog")
    assert chromium.run("return document.getElementById('dialog-yes').innerText") == (
        "Skip 3 messages"
    )
    confirm(chromium)
    chromium.until(said("The backlog is cleared."))
    assert backlog_of(administered) == 0


@needs_chromium
@pytest.mark.parametrize(
    ("action", "fields", "backlog"),
    [
        ("Skip", {0: "2"}, 3),
        ("Reset", {0: "latest"}, 0),
        ("Reset", {0: "earliest"}, 5),
        ("Reset", {0: "id", 1: "LEDGER:3"}, 2),
        ("Reset", {0: "time", 2: "2001-02-03T04:05:06"}, 5),
    ],
)
def test_a_subscription_is_moved(
    administered: Administered,
    chromium: Chromium,
    action: str,
    fields: dict[int, str],
    backlog: int,
):
    publish(administered, *(b"%d" % number for number in range(5)))
    ledger = administered.get("/persistent/public/default/orders/lastMessageId")["ledgerId"]
    chromium.open(place_of(administered))
    press(chromium, action)
    for at, value in fields.items():
        fill(chromium, at, value.replace("LEDGER", str(ledger)))
    confirm(chromium)
    chromium.until("!document.getElementById('dialog').open")
    assert backlog_of(administered) == backlog


@needs_chromium
def test_messages_expire_by_their_age(
    open_administered: Callable[..., Administered], chromium: Chromium
):
    clock = ManualClock()
    administered = open_administered(clock)
    publish(administered, b"1", b"2")
    clock.advance(10)
    chromium.open(place_of(administered))
    press(chromium, "Expire")
    fill(chromium, 0, "0")  # which is no age: nothing expired, and nobody was told
    confirm(chromium)
    flaw = "document.getElementById('dialog-flaw').textContent"
    chromium.until(f"{flaw}.includes('0 is no whole number from 1 on')")
    fill(chromium, 0, "5")
    confirm(chromium)
    chromium.until(said("Expired."))
    assert backlog_of(administered) == 0


@needs_chromium
def test_a_field_without_a_number_moves_nothing(administered: Administered, chromium: Chromium):
    """It was taken as 0, by which all messages expired."""
    publish(administered, b"1", b"2")
    chromium.open(place_of(administered))
    for action in ("Expire", "Skip"):
        press(chromium, action)
        fill(chromium, 0, "")
        confirm(chromium)
        flaw = "document.getElementById('dialog-flaw').textContent"
        chromium.until(f"{flaw}.includes('nothing is no whole number')")
        chromium.run("document.getElementById('dialog-no').click()")
    assert backlog_of(administered) == 2


@needs_chromium
def test_who_holds_a_key_down_has_confirmed_nothing(administered: Administered, chromium: Chromium):
    """Enter on a button opened its dialog, and, held down, did what was asked."""
    publish(administered, b"1", b"2")
    chromium.open(place_of(administered))
    for action in ("Skip", "Delete\u2026"):
        press(chromium, action)
        chromium.run(
            "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', "
            "{ key: 'Enter', repeat: true, bubbles: true }))"
        )
        assert chromium.run("return document.getElementById('dialog').open")
        chromium.run("document.getElementById('dialog-no').click()")
    # Nor is a box to be ticked a field that Enter ends.
    press(chromium, "Delete\u2026")
    chromium.key("\ue007")
    assert chromium.run("return document.getElementById('dialog').open")
    chromium.run("document.getElementById('dialog-no').click()")
    assert backlog_of(administered) == 2
    press(chromium, "Skip")
    chromium.key("\ue007")
    chromium.until(said("Skipped up to 1 messages."))
    assert backlog_of(administered) == 1


@needs_chromium
@pytest.mark.parametrize("status", [200, 412])
def test_an_action_that_ends_late_leaves_the_next_question_alone(
    administered: Administered, chromium: Chromium, status: int
):
    """It closed the dialog of another one, and let a topic be deleted whose name was not typed."""
    publish(administered, b"1")
    chromium.open(place_of(administered))
    press(chromium, "Clear backlog")
    chromium.run(
        "const ask = window.fetch; window.fetch = (...given) => given[0].includes('skip_all') "
        "? new Promise(done => { window.answer = () => done(new Response("
        f'\'{{"reason": "late"}}\', {{ status: {status} }})); }}) : ask(...given);'
    )
    confirm(chromium)
    chromium.until("window.answer")
    chromium.run("document.getElementById('dialog-no').click()")
    press(chromium, "Delete topic")
    chromium.run("window.answer()")
    chromium.until(said("The backlog is cleared." if status == 200 else "Refused: late"))
    assert chromium.run("return document.getElementById('dialog').open")
    assert chromium.run("return document.getElementById('dialog-yes').disabled")
    assert chromium.run("return document.getElementById('dialog-flaw').textContent") == ""


@needs_chromium
def test_a_topic_whose_name_no_keyboard_has_is_deleted(
    administered: Administered, chromium: Chromium
):
    """Its name stood in the question as it is, and could not be typed."""
    administered.client.create_producer("persistent://public/default/a\u202eb").close()
    chromium.open(place_of(administered, "persistent://public/default/a\u202eb"))
    press(chromium, "Delete topic")
    shown = chromium.run("return document.getElementById('dialog').innerText")
    assert "To confirm, type a\\u202eb" in shown and "\u202e" not in shown
    fill(chromium, 1, "a\\u202eb")
    confirm(chromium)
    chromium.until(said("The topic is deleted."))


@needs_chromium
def test_a_subscription_is_created_and_deleted(administered: Administered, chromium: Chromium):
    publish(administered)
    chromium.open(place_of(administered))
    press(chromium, "Create subscription")
    fill(chromium, 0, "a/b +%2F")
    confirm(chromium)
    chromium.until(has("a/b +%2F"))
    names = "/persistent/public/default/orders/subscriptions"
    assert administered.get(names) == ["a/b +%2F", "billing"]
    press(chromium, "Delete\u2026")
    confirm(chromium)
    chromium.until(f"!{has('a/b +%2F')}")
    assert administered.get(names) == ["billing"]


@needs_chromium
def test_a_topic_is_terminated_and_unloaded(administered: Administered, chromium: Chromium):
    publish(administered, b"1")
    chromium.open(place_of(administered))
    for action in ("Unload", "Terminate"):
        press(chromium, action)
        confirm(chromium)
        chromium.until(said("Done."))
        chromium.until("!document.getElementById('dialog').open")
    chromium.until(has("terminated"))
    assert administered.client.admin.topics.stats("orders")["terminated"]


@needs_chromium
def test_what_is_refused_is_said_where_it_was_asked_for(
    administered: Administered, chromium: Chromium
):
    publish(administered)
    administered.client.subscribe("orders", "billing")
    chromium.open(place_of(administered))
    press(chromium, "Delete\u2026")
    confirm(chromium)
    chromium.until("document.getElementById('dialog-flaw').innerText.startsWith('Refused: ')")
    assert chromium.run("return document.getElementById('dialog').open")
    assert administered.get("/persistent/public/default/orders/subscriptions") == ["billing"]


@needs_chromium
def test_dead_letters_are_replayed(administered: Administered, chromium: Chromium):
    publish(administered)
    producer = administered.client.create_producer("orders-billing-DLQ")
    producer.send(b"dead", properties={"REAL_TOPIC": ORDERS})
    chromium.open(place_of(administered))
    press(chromium, "Replay")
    confirm(chromium)
    chromium.until(said("Replayed 1 dead letters."))
    assert backlog_of(administered) == 1


# Messages


@needs_chromium
def test_messages_are_paged_searched_and_opened(administered: Administered, chromium: Chromium):
    publish(administered, *(b'{"number": %d}' % number for number in range(60)))
    chromium.open(place_of(administered))
    press(chromium, "Messages")
    chromium.until(has("50 messages"))
    assert table_rows(chromium)[0][-1] == '{"number": 59}'  # the newest first
    press(chromium, "Older")
    chromium.until(has("10 messages"))
    assert table_rows(chromium)[-1][-1] == '{"number": 0}'
    press(chromium, "Newer")
    chromium.until(has("50 messages"))
    chromium.run("document.querySelector('[data-id=text]').value = ': 5'")
    press(chromium, "Show")
    chromium.until(has("11 found among 60 messages, which were all"))
    chromium.run("document.querySelector('summary').click()")
    chromium.until(has("Producer"))
    assert '"number": 5' in chromium.run("return document.querySelector('pre').innerText")
    chromium.open(place_of(administered, query="?view=messages&from=earliest"))
    chromium.until(has("50 messages"))
    assert table_rows(chromium)[0][-1] == '{"number": 0}'
    press(chromium, "Next")
    chromium.until(has("10 messages"))


# Answers with messages come when the page would have looked again by itself.
_LATE = """
let looks = 0;
const asked = window.fetch;
Object.defineProperty(document, "hidden", { get: () => (looks++, false) });
window.fetch = async (path, ...rest) => {
  const answer = await asked(path, ...rest);
  const before = looks;
  while (path.includes("/console/messages") && looks === before)
    await new Promise((done) => setTimeout(done, 50));
  return answer;
};
"""


@needs_chromium
def test_messages_that_come_late_are_shown(administered: Administered, chromium: Chromium):
    """They were not, where the page was about to look by itself meanwhile, which it does not do
    with messages: what was asked for never came."""
    publish(administered, b"first", b"second")
    chromium.open(place_of(administered))
    chromium.until(button("Messages"))
    chromium.run(_LATE)
    press(chromium, "Messages")
    chromium.until(has("2 messages"))


@needs_chromium
def test_damaged_encrypted_and_binary_messages_are_shown_as_such(
    open_administered: Callable[..., Administered], chromium: Chromium, tmp_path: Path
):
    folder = tmp_path / "events"
    with pulsarx.Client(folder) as client:
        plain = client.create_producer("orders")
        for payload in (b"first", b"second", b"\x00\x01\xff"):
            plain.send(payload)
        keys = write_keys(tmp_path / "k")
        client.create_producer("orders", encryption_key="alice", crypto_key_reader=keys).send(b"x")
    [path] = [
        each for each in folder.rglob("*") if each.is_file() and b"second" in each.read_bytes()
    ]
    path.write_bytes(path.read_bytes().replace(b"second", b"secont"))
    administered = open_administered(folder=folder)
    chromium.open(place_of(administered, query="?view=messages&from=earliest"))
    chromium.until(has("encrypted"))
    values = [row[-1] for row in table_rows(chromium)]
    assert values[0] == "first"
    assert values[1].startswith("damaged")
    assert values[2].startswith("binary") and "00 01 ff" in values[2]
    assert values[3].startswith("encrypted") and "alice" in values[3]


@needs_chromium
def test_how_much_of_a_large_value_is_shown_is_said(administered: Administered, chromium: Chromium):
    """What was cut, of bytes or of a very large text, was shown as if it were all."""
    producer = administered.client.create_producer(
        "orders", chunking_enabled=True, batching_enabled=False
    )
    producer.send(bytes(1000))
    producer.send(b"x" * (4 << 20) + b"end")
    producer.close()
    chromium.open(place_of(administered, query="?view=messages"))
    chromium.until("document.querySelectorAll('summary').length === 2")
    chromium.run("document.querySelectorAll('summary').forEach(each => each.click())")
    chromium.until(has("These are the first 512 of 1,000 bytes."))
    chromium.until(has("These are the first 4,096 of 4,194,307 bytes."))
    press(chromium, "Show more")
    chromium.until(has("These are the first 4,194,304 of 4,194,307 bytes."))


@needs_chromium
def test_a_value_that_is_gone_when_it_is_opened_is_told(
    administered: Administered, chromium: Chromium
):
    """Nothing happened."""
    publish(administered, b"x" * 5000)
    chromium.open(place_of(administered, query="?view=messages"))
    chromium.until("document.querySelector('summary')")
    chromium.run("document.querySelector('summary').click()")
    chromium.until(button("Show more"))
    administered.client.admin.topics.truncate("orders")
    press(chromium, "Show more")
    chromium.until(has("Not shown: the message is gone"))


# What comes from others


@needs_chromium
def test_names_keys_values_and_properties_are_text(administered: Administered, chromium: Chromium):
    topic = f"persistent://public/default/{EVIL}"
    administered.client.subscribe(topic, EVIL).close()
    administered.client.subscribe(topic, EVIL, consumer_name=EVIL, properties={EVIL: EVIL})
    administered.client.create_producer(topic, producer_name=EVIL).send(
        EVIL.encode(), partition_key=EVIL, ordering_key=EVIL, properties={EVIL: EVIL}
    )
    chromium.open(administered.url)
    chromium.until(has(EVIL))
    chromium.run("document.querySelector('tbody a').click()")
    chromium.until(has("Consumer"))
    for action in ("Reset", "Skip", "Clear backlog", "Delete\u2026", "Replay", "Delete topic"):
        press(chromium, action)
        assert EVIL in chromium.run("return document.getElementById('dialog').innerText")
        chromium.run("document.getElementById('dialog-no').click()")
    press(chromium, "Messages")
    chromium.until("document.querySelector('summary')")
    chromium.run("document.querySelector('summary').click()")
    chromium.until(has(f"Property {EVIL}"))
    assert chromium.run("return document.querySelectorAll('img, script:not([src])').length") == 0
    assert chromium.run("return document.title") == "PulsarX"


@needs_chromium
def test_what_turns_the_direction_of_text_is_written_out(
    administered: Administered, chromium: Chromium
):
    administered.client.create_producer("persistent://public/default/gpj\u202e").send(b"x")
    chromium.open(administered.url)
    chromium.until(has("gpj\\u202e"))


@needs_chromium
def test_what_nobody_sees_is_written_out(administered: Administered, chromium: Chromium):
    """Fillers, tags and a mark of Arabic letters were not: two names looked alike."""
    for sign in ("\u061c", "\u3164", "\u00ad", "\U000e0041"):
        administered.client.create_producer(f"persistent://public/default/pay{sign}").close()
    administered.client.create_producer("persistent://public/default/\u2764\ufe0f").close()
    chromium.open(administered.url)
    for shown in ("pay\\u061c", "pay\\u3164", "pay\\u00ad", "pay\\u{e0041}", "\u2764\ufe0f"):
        chromium.until(has(shown))


@needs_chromium
def test_a_role_enters_its_token_and_is_told_what_it_may_not(
    open_administered: Callable[..., Administered], chromium: Chromium
):
    access = AccessSettings(token_secret_key=SECRET_TEXT, superuser_roles=["admin"])
    administered = open_administered(access=access)
    publish(administered, b"1")
    administered.client.admin.namespaces.grant_permission_on_namespace(
        "public/default", "alice", ["produce"]
    )
    chromium.open(place_of(administered))
    chromium.until(has("Who are you?"))
    chromium.run(f"document.querySelector('[data-id=token]').value = {json.dumps(token('alice'))}")
    press(chromium, "Enter")
    press(chromium, "Clear backlog")
    assert "role alice" in chromium.run("return document.getElementById('who').innerText")
    confirm(chromium)
    chromium.until(
        "document.getElementById('dialog-flaw').innerText.includes('role alice may not consume')"
    )
    assert (
        administered.client.admin.topics.stats("orders")["subscriptions"]["billing"]["msg_backlog"]
        == 1
    )


# How it is used


@needs_chromium
def test_everything_that_can_be_pressed_is_reached_by_the_keyboard(
    administered: Administered, chromium: Chromium
):
    publish(administered, b"1")
    chromium.open(place_of(administered))
    chromium.until(button("Clear backlog"))
    named = chromium.run(
        "return [...document.querySelectorAll('main button, main a, main select, main input')]"
        ".filter(each => each.tabIndex < 0 || !(each.textContent || each.ariaLabel"
        " || each.labels?.length)).length"
    )
    assert named == 0
    chromium.run(f"{button('Clear backlog')}.focus()")
    press(chromium, "Clear backlog")
    assert chromium.run("return document.activeElement.id") == "dialog-no"
    chromium.key("\ue00c")  # Escape
    chromium.until("!document.getElementById('dialog').open")
    assert chromium.run("return document.activeElement.textContent").startswith("Clear backlog")


@needs_chromium
@pytest.mark.parametrize(
    "place",
    [
        "",
        "#?view=overview",
        "#?view=policies",
        "#?view=transactions",
        f"#{quote(ORDERS, safe='')}",
        f"#{quote(ORDERS, safe='')}?view=messages",
        f"#{quote(ORDERS, safe='')}?view=policies",
    ],
    ids=[
        "topics", "overview", "policies", "transactions", "a topic", "messages",
        "policies of a topic",
    ],
)  # fmt: skip
def test_the_page_fits_a_narrow_window(administered: Administered, chromium: Chromium, place: str):
    publish(administered, b"1", b"x" * 5000, subscription="s" * 100)
    administered.client.create_producer("n" * 200).send(b"1")
    transaction = administered.client.new_transaction()
    administered.client.create_producer("n" * 200).send(b"2", transaction=transaction)
    chromium.resize(400, 800)
    chromium.open(f"{administered.url}/{place}")
    chromium.until("document.querySelector('main td, main h4')")
    assert chromium.run("return document.documentElement.scrollWidth") <= 400


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(
    administered: Administered, chromium: Chromium, scheme: str
):
    """Contrast of WCAG AA: 4.5."""
    chromium.prefer(scheme)
    chromium.open(administered.url)
    chromium.until(has("No topics."))
    ratios = chromium.run(
        """
        const style = getComputedStyle(document.documentElement);
        const light = (name) => {
          const hex = style.getPropertyValue(name).trim().slice(1);
          const part = (at) => {
            const value = parseInt(hex.slice(at, at + 2), 16) / 255;
            return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
          };
          return 0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4);
        };
        const paper = light("--paper") + 0.05;
        return ["--ink", "--soft", "--accent", "--warn"].map((name) => {
          const found = light(name) + 0.05;
          return Math.max(found, paper) / Math.min(found, paper);
        });
        """
    )
    chromium.prefer("light")
    assert min(ratios) >= 4.5
