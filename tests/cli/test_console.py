"""`pulsarx console`, as a process of its own: with an owner beside it, and without one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, DRIVER, Chromium
from command_line import PROGRAM, TIMEOUT, Owner, invoke, start

import pulsarx

pytestmark = pytest.mark.standard
ORDERS = "persistent://public/default/orders"
BILLING = "/admin/v2/persistent/public/default/orders/subscription/billing"


class Console:
    """The command, as it runs."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.process: subprocess.Popen[str] = start(folder, "console", *arguments)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=TIMEOUT)[1]
        self.told = json.loads(line)
        self.url, _, self.secret = self.told["url"].partition("/#key=")

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON."""
        given = {"Authorization": f"Bearer {self.secret}", **headers}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, given, method=method)
        try:
            answer = urllib.request.urlopen(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            text = answer.read()
        return answer.status, json.loads(text) if text.startswith((b"{", b"[")) else text.decode()

    def get(self, path: str) -> Any:
        status, found = self.ask("GET", path)
        assert status == 200, found
        return found

    def backlog(self) -> int:
        found: int = self.get("/console/topic?topic=orders")["subscriptions"]["billing"]["backlog"]
        return found

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Its exit status and what it complained about."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=TIMEOUT)
        return self.process.returncode, said


@pytest.fixture
def console(folder: Path) -> Iterator[Callable[..., Console]]:
    made: list[Console] = []

    def run(*arguments: str) -> Console:
        made.append(Console(folder, *arguments))
        return made[-1]

    yield run
    for each in made:
        each.process.kill()
        each.process.communicate()


def test_it_works_on_a_folder_that_nobody_owns(console: Callable[..., Console], folder: Path):
    found = console()
    assert found.get("/console/overview")["owner"] is None
    [first, *_] = found.get("/console/topics")["rows"]
    assert (first["topic"], first["backlog"], first["consumers"]) == (ORDERS, 5, None)
    messages = found.get("/console/messages?topic=orders&subscription=billing")["messages"]
    assert [each["partition_key"] for each in messages] == [f"key-{number}" for number in range(5)]
    assert found.ask("POST", f"{BILLING}/skip/2") == (204, "")
    assert found.backlog() == 3
    with pulsarx.Client(folder, exclusive=True):
        pass  # it is nobody's
    assert found.end() == (0, "")


def test_it_works_beside_the_owner(console: Callable[..., Console], owner: Owner):
    found = console()
    assert found.get("/console/overview")["owner"] == owner.pid
    owner.send("new")
    billing = found.get("/console/topic?topic=orders")["subscriptions"]["billing"]
    assert (billing["backlog"], len(billing["consumers"])) == (6, 1)
    [first, *_] = found.get("/console/topics?now=true")["rows"]
    assert (first["backlog"], first["consumers"], first["producers"]) == (6, 1, 1)
    assert found.ask("POST", f"{BILLING}/skip_all") == (204, "")
    assert found.backlog() == 0
    status, said = found.ask("DELETE", BILLING)
    assert (status, "consumer" in said["reason"]) == (412, True)
    owner.end()
    assert found.backlog() == 0  # read from the files now
    assert found.end(signal.SIGTERM) == (0, "")


@pytest.mark.parametrize("owned", [False, True])
def test_open_transactions_are_asked_of_the_owner(
    console: Callable[..., Console], request: pytest.FixtureRequest, folder: Path, owned: bool
):
    if owned:
        request.getfixturevalue("owner")
    found = console()
    path = "/admin/v3/transactions"
    assert found.get(path) == []
    with pulsarx.Client(folder) as client:
        made = client.new_transaction()
        client.create_producer("orders").send(b"a", transaction=made)
        [row] = found.get(path)
        assert (row["txnId"], row["heldMessages"]) == (str(made), {ORDERS: 1})
        most, least = made.txn_id()
        assert found.ask("POST", f"{path}/abortTransaction/{most}/{least}") == (204, "")
    assert found.get(path) == []
    assert found.end() == (0, "")


@pytest.mark.parametrize("owned", [False, True])
def test_dead_letters_are_replayed(
    console: Callable[..., Console], request: pytest.FixtureRequest, owned: bool
):
    if owned:
        request.getfixturevalue("owner")
    found = console()
    body = {"topic": "orders", "subscription": "billing"}
    status, reply = found.ask("POST", "/console/replay", body)
    assert (status, reply["replayed"]) == (200, {ORDERS: 1})
    assert found.backlog() == 6
    assert found.ask("POST", "/console/replay", body)[1]["replayed"] == {}


@pytest.mark.parametrize("owned", [False, True])
def test_messages_are_published_and_policies_set(
    console: Callable[..., Console], request: pytest.FixtureRequest, owned: bool
):
    if owned:
        request.getfixturevalue("owner")
    found = console()
    status, reply = found.ask("POST", "/console/publish", {"topic": "orders", "text": "new"})
    assert status == 200
    page = found.get("/console/messages?topic=orders&from=newest&count=1")
    assert page["messages"][0]["message_id"] == reply["message_id"]
    policy = {"level": "topic", "target": ORDERS, "name": "message_ttl", "value": 60}
    assert found.ask("POST", "/console/policy", policy)[0] == 204
    told = found.get("/console/policies?topic=orders")["policies"]
    [row] = [each for each in told if each["name"] == "message_ttl"]
    # What holds where none is set, the owner of the folder alone knows.
    assert row["values"] == {"topic": 60, "namespace": None} and "unset" not in row
    health = found.get("/console/health?now=true")
    assert health["topics"] == 2 and health["disk"]["free"] > 0


def test_only_who_has_the_whole_address_may_use_it(console: Callable[..., Console]):
    """Every user of the machine reaches a loopback address."""
    found = console()
    assert "PulsarX" in found.ask("GET", "/", Authorization="")[1]
    for given in ("", "Bearer ", "Bearer x", found.secret, f"Bearer {found.secret}x"):
        for method, path in (("GET", "/console/topics"), ("POST", f"{BILLING}/skip_all")):
            assert found.ask(method, path, Authorization=given)[0] == 401
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
        assert found.ask("POST", f"{BILLING}/skip_all", **headers)[0] == 403
    assert found.backlog() == 5


def test_it_serves_the_page_and_no_more(console: Callable[..., Console]):
    found = console()
    for path, status in (("/metrics", 404), ("/openapi.json", 404), ("/admin/v2/tenants", 405)):
        assert found.ask("GET", path)[0] == status


def test_it_takes_the_port_that_it_is_told(console: Callable[..., Console], folder: Path):
    port = console().url.rpartition(":")[2]
    refused = invoke(folder, "console", "--port", port)
    assert refused.exit_code == 1
    assert f"127.0.0.1:{port}" in str(refused.exception) + refused.stderr


def test_what_has_no_folder_is_refused(tmp_path: Path):
    for place, said in (
        (str(tmp_path / "none"), "does not exist"),
        ("http://127.0.0.1:1", "open it in a browser"),
        ("pulsar://127.0.0.1:1", "works on a folder"),
    ):
        result = invoke(place, "console")
        assert result.exit_code != 0
        assert said in str(result.exception) + result.stderr


def test_the_browser_is_given_a_file_that_others_cannot_read(
    folder: Path, owner: Owner, tmp_path: Path
):
    """Its command line, which all users of the machine see, has no secret."""
    fifo, script = tmp_path / "opened", tmp_path / "browser"
    os.mkfifo(fifo)
    script.write_text(f'#!/bin/sh\necho "$1" > {fifo}\n')
    script.chmod(0o700)
    master, slave = os.openpty()
    running = subprocess.Popen(
        [*PROGRAM, "--url", str(folder), "console"],
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "BROWSER": f"{script} %s"},
    )
    os.close(slave)
    try:
        given = fifo.read_text().strip()
        assert given.startswith("file:///") and "key" not in given
        path = Path(given.removeprefix("file://"))
        assert "/#key=" in path.read_text()
        assert path.parent.stat().st_mode & 0o777 == 0o700
        if CHROMIUM is not None and DRIVER is not None:
            chromium = Chromium(tmp_path / "profile")
            try:
                chromium.open(given)
                chromium.until("document.querySelector('tbody a')")
                # What others could read over somebody's shoulder is gone.
                assert "key" not in chromium.run("return location.href")
                shown = chromium.run("return document.getElementById('who').innerText")
                assert str(owner.pid) in shown
                chromium.run("document.querySelector('tbody a').click()")
                chromium.until("document.getElementById('main').innerText.includes('billing')")
            finally:
                chromium.close()
        running.send_signal(signal.SIGINT)
        assert running.wait(TIMEOUT) in (0, 130)  # 130: while the browser was started
        assert not path.parent.exists()
    finally:
        running.kill()
        running.wait()
        os.close(master)
