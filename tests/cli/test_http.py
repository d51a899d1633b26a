"""The command line on an http:// URL: the same commands, by Pulsar's admin REST API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from command_line import invoke, on_terminal, process, rows
from signing import SECRET_TEXT, token
from test_folders import LINES as ALL_LINES

import pulsarx
from pulsarx.access import AccessSettings, TlsSettings
from pulsarx.admin import Admin
from pulsarx.rest import serve_http
from pulsarx.server import serve

ORDERS = "persistent://public/default/orders"
DEAD = "persistent://public/default/orders-billing-DLQ"
# Messages go through the official client, below.
THROUGH_CLIENT = ("produce", "consume", "read", "tail", "perf")
LINES = [line for line in ALL_LINES if line.split()[0] not in THROUGH_CLIENT]


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    with pulsarx.Client(folder) as client, serve_http(client, port=0) as service:
        yield service.url


@pytest.mark.parametrize("line", LINES)
def test_commands_work_on_a_url_as_on_a_folder(url: str, line: str):
    rows(invoke(url, *line.split()))


def test_a_folder_is_checked_at_its_url(url: str, folder: Path):
    for found in (invoke(url, "check"), invoke("elsewhere", "check", url), invoke(folder, "check")):
        [counts] = rows(found)
        assert (counts["messages"], counts["damage"]) == (6, 0)
    path = min(folder.rglob("*.ledger"), key=lambda path: int(path.stem))
    data = bytearray(path.read_bytes())
    data[4096 + 80] ^= 0xFF
    path.write_bytes(data)
    here, there = (process(place, "check") for place in (folder, url))
    assert (here.returncode, there.returncode) == (3, 3)
    place, counts = (json.loads(line) for line in there.stdout.splitlines())
    assert place == json.loads(here.stdout.splitlines()[0])
    assert (place["what"], counts["damage"], counts["missing_messages"]) == ("entries", 1, 1)
    shown = on_terminal(url, "check")
    assert shown[0] == 3 and "MESSAGES" in shown[1] and "Checking" in shown[1]


def test_a_folder_is_copied_from_its_url_and_restored(url: str, folder: Path, tmp_path: Path):
    [copied] = rows(process(url, "backup", str(tmp_path / "copy")))
    [restored] = rows(invoke(tmp_path / "copy", "restore", str(tmp_path / "restored")))
    for found in (copied, restored):
        assert (found["topics"], found["subscriptions"], found["messages"]) == (2, 1, 6)
        assert found["damage"] == []
    (peeked, *_) = rows(invoke(tmp_path / "restored", "peek", "orders", "-s", "billing"))
    assert peeked["data"] == "order 0"
    refused = invoke(url, "backup", str(tmp_path / "copy"))
    assert (refused.exit_code, "Nothing was changed" in refused.stderr) == (1, True)


def test_a_server_is_no_backup_and_no_target(url: str, folder: Path, tmp_path: Path):
    for place, target, told in (
        (url, str(tmp_path / "restored"), "copy its folder with `backup`"),
        (folder, url, "have `pulsarx serve` serve the new one"),
        ("pulsar://127.0.0.1:1", str(tmp_path / "restored"), "copy its folder with `backup`"),
    ):
        refused = invoke(place, "restore", target)
        assert (refused.exit_code, told in refused.stderr) == (2, True), refused.stderr
    assert invoke(folder, "backup", url).exit_code == 2
    assert [each.name for each in tmp_path.iterdir()] == [folder.name]


def test_who_is_no_superuser_neither_checks_nor_copies(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    access = AccessSettings(token_secret_key=SECRET_TEXT, superuser_roles=["admin"])
    target = str(tmp_path / "copy")
    with (
        pulsarx.Client(folder) as client,
        serve_http(client, port=0, access=access) as service,
    ):
        for line in (("check",), ("backup", target)):
            monkeypatch.delenv("PULSARX_TOKEN", raising=False)
            assert "AuthenticationError" in invoke(service.url, *line).stderr
            monkeypatch.setenv("PULSARX_TOKEN", token("nobody"))
            refused = invoke(service.url, *line)
            assert (refused.exit_code, "AuthorizationError" in refused.stderr) == (1, True)
            assert not Path(target).exists()
            monkeypatch.setenv("PULSARX_TOKEN", token("admin"))
            rows(invoke(service.url, *line))


def test_topics_are_listed_with_their_figures(url: str):
    assert rows(invoke(url, "ls")) == [
        {"topic": ORDERS, "partitions": 0},
        {"topic": DEAD, "partitions": 0},
    ]
    found = {each["topic"]: each for each in rows(invoke(url, "stats"))}
    assert found[ORDERS]["subscriptions"] == 1
    assert found[ORDERS]["messages"] is None  # which the API does not tell
    [figures] = rows(invoke(url, "stats", "orders"))
    assert figures["subscriptions"]["billing"]["msg_backlog"] == 5
    assert figures["backlog_size"] > 0


def test_messages_are_peeked_as_they_are(url: str, folder: Path):
    assert rows(invoke(url, "peek", "orders", "-s", "billing", "-n", "9")) == rows(
        invoke(folder, "peek", "orders", "-s", "billing", "-n", "9")
    )


def test_messages_of_batches_are_peeked_one_by_one(url: str, folder: Path):
    with pulsarx.Client(folder) as client:
        client.subscribe("batches", "s")
        producer = client.create_producer("batches", batching_enabled=True)
        for number in range(3):
            producer.send_async(b"%d" % number, None, {"n": str(number)}, f"key-{number}")
        producer.flush()
    found = rows(invoke(url, "peek", "batches", "-s", "s", "-n", "3"))
    assert [each["data"] for each in found] == ["0", "1", "2"]
    assert found == rows(invoke(folder, "peek", "batches", "-s", "s", "-n", "3"))


@pytest.mark.parametrize("name", ["a b", "a+b", "a/b", "100%", "%2F", "é", "a?b#c"])
def test_names_that_a_url_has_to_escape_arrive(url: str, name: str):
    rows(invoke(url, "subscriptions", "create", "orders", "-s", name))
    found = [each["subscription"] for each in rows(invoke(url, "subscriptions", "list", "orders"))]
    assert sorted(found) == sorted(["billing", name])
    rows(invoke(url, "clear", "orders", "-s", name))
    if "/" not in name:
        rows(invoke(url, "topics", "create", name))
        topics = [each["topic"] for each in rows(invoke(url, "topics", "list"))]
        assert f"persistent://public/default/{name}" in topics


def test_a_subscription_is_moved_skipped_and_cleared(url: str):
    def backlog() -> int:
        [figures] = rows(invoke(url, "stats", "orders"))
        found: int = figures["subscriptions"]["billing"]["msg_backlog"]
        return found

    first = rows(invoke(url, "peek", "orders", "-s", "billing", "-n", "2"))
    rows(invoke(url, "skip", "orders", "-s", "billing", "-n", "2"))
    assert backlog() == 3
    rows(invoke(url, "seek", "orders", "-s", "billing", "-m", first[1]["message_id"]))
    assert backlog() == 4
    rows(invoke(url, "seek", "orders", "-s", "billing", "-t", "1h"))
    assert backlog() == 5
    rows(invoke(url, "clear", "orders", "-s", "billing"))
    assert backlog() == 0


@pytest.mark.parametrize("level", ["namespaces", "topics"])
@pytest.mark.parametrize(
    "policy,options,name,value",
    [
        ("retention", "-t 2d -s 10M", "retention", {"time_minutes": 2880, "size_mb": 10}),
        ("message-ttl", "-ttl 3h", "message_ttl", 10800),
        ("deduplication", "-e", "deduplication", True),
        ("compaction-threshold", "-t 100M", "compaction_threshold", 100 << 20),
        ("max-subscriptions-per-topic", "-m 7", "max_subscriptions_per_topic", 7),
    ],
)
def test_policies_are_set_shown_and_removed(
    url: str, folder: Path, level: str, policy: str, options: str, name: str, value: object
):
    target = "orders" if level == "topics" else "public/default"
    rows(invoke(url, level, f"set-{policy}", target, *options.split()))
    for place in (url, folder):
        assert rows(invoke(place, level, f"get-{policy}", target)) == [{name: value}]
    rows(invoke(url, level, f"remove-{policy}", target))
    assert rows(invoke(url, level, f"get-{policy}", target)) == [{name: None}]


def test_quotas_are_set_shown_and_removed(url: str):
    line = "topics set-backlog-quota orders -l 1G -p producer_exception"
    rows(invoke(url, *line.split()))
    [found] = rows(invoke(url, "topics", "get-backlog-quotas", "orders"))
    assert found["backlog_quota"]["destination_storage"]["limit_size"] == 1 << 30
    rows(invoke(url, "topics", "remove-backlog-quota", "orders"))
    assert rows(invoke(url, "topics", "get-backlog-quotas", "orders")) == [{"backlog_quota": {}}]


def test_schemas_are_registered_and_shown(url: str, tmp_path: Path):
    file = tmp_path / "schema.json"
    file.write_text(json.dumps({"type": "STRING", "schema": "", "properties": {}}))
    rows(invoke(url, "schemas", "upload", "orders", "-f", str(file)))
    [found] = rows(invoke(url, "schemas", "get", "orders"))
    assert (found["version"], found["type"]) == (0, "STRING")
    rows(invoke(url, "schemas", "delete", "orders"))
    assert invoke(url, "schemas", "get", "orders").exit_code == 1


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("topics delete nowhere", "TopicNotFound"),
        ("peek orders -s nobody", "SubscriptionNotFound"),
        ("topics create orders", "NotAllowedError"),
        ("namespaces create public/default", "NotAllowedError"),
        ("namespaces list nobody", "TopicNotFound"),
    ],
)
def test_what_is_refused_is_told_as_by_a_folder(url: str, folder: Path, line: str, kind: str):
    for place in (url, folder):
        result = invoke(place, *line.split())
        assert result.exit_code == 1
        assert f"pulsarx: {kind}: " in result.stderr


def test_dead_letters_are_replayed_by_the_server(letters: Path):
    with pulsarx.Client(letters) as client, serve_http(client, port=0) as service:
        arguments = ("replay-dlq", "orders", "-s", "shipping")
        assert rows(invoke(service.url, *arguments, "-n", "2")) == [
            {"topic": ORDERS, "messages": 2}
        ]
        assert rows(invoke(service.url, *arguments)) == [{"topic": ORDERS, "messages": 3}]
        assert not rows(invoke(letters, *arguments))
        found = rows(invoke(letters, "tail", "orders", "-n", "5"))
        assert [each["data"] for each in found] == [f"order {number}" for number in range(5)]
        assert [each["key"] for each in found] == [f"key-{number}" for number in range(5)]
        assert [each["properties"] for each in found] == [{"number": f"{n}"} for n in range(5)]
        own = invoke(service.url, *arguments, "--dlq", "orders")
        assert (own.exit_code, "to itself" in own.stderr) == (1, True)
        for wrong in ("nowhere", "a/b"):
            result = invoke(service.url, "replay-dlq", wrong, "-s", "shipping")
            assert (result.exit_code, bool(result.stderr)) == (1, True)


def test_many_dead_letters_are_replayed_in_several_requests(folder: Path):
    with pulsarx.Client(folder) as client, serve_http(client, port=0) as service:
        producer = client.create_producer("orders-audit-DLQ", batching_enabled=True)
        for number in range(450):
            producer.send_async(b"%d" % number, None)
        producer.flush()
        [told] = rows(invoke(service.url, "replay-dlq", "orders", "-s", "audit", "-n", "449"))
        assert told["messages"] == 449
        [told] = rows(invoke(service.url, "replay-dlq", "orders", "-s", "audit"))
        assert told["messages"] == 1
        found = rows(invoke(folder, "tail", "orders", "-n", "450"))
        assert [each["data"] for each in found] == [str(number) for number in range(450)]


def test_damaged_dead_letters_are_told_and_the_others_replayed(folder: Path):
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("orders-audit-DLQ")
        for number in range(3):
            producer.send(b"letter %d" % number)
    for path in folder.rglob("*"):
        if path.is_file() and b"letter 1" in (data := path.read_bytes()):
            path.write_bytes(data.replace(b"letter 1", b"lettuce!"))
    with pulsarx.Client(folder) as client, serve_http(client, port=0) as service:
        result = invoke(service.url, "replay-dlq", "orders", "-s", "audit")
        assert result.exit_code == 1
        assert json.loads(result.stdout) == {"topic": ORDERS, "messages": 2}
        assert "orders-audit-DLQ" in result.stderr


@pytest.mark.parametrize("line", ["replay-dlq orders -s billing", "check", "backup copy"])
@pytest.mark.parametrize("status", [200, 404, 405, 500])
def test_another_server_than_ours_is_named_as_that(
    status: int, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It has another page there, or none."""
    monkeypatch.chdir(tmp_path)
    asked = []

    class Foreign(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"<!--")

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Foreign) as server:
        # It looks each half of a second whether it shall end, unless it is told otherwise.
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        url = f"http://127.0.0.1:{server.server_port}"
        result = invoke(url, *line.split())
        server.shutdown()
        serving.join()
    assert result.exit_code == 1
    assert "`pulsarx serve` does it, and another server is there" in result.stderr
    assert asked == ["/console/overview"]
    assert list(tmp_path.iterdir()) == []


def test_who_may_not_use_the_letters_replays_none(folder: Path, monkeypatch: pytest.MonkeyPatch):
    access = AccessSettings(token_secret_key=SECRET_TEXT, superuser_roles=["admin"])
    with (
        pulsarx.Client(folder) as client,
        serve_http(client, port=0, access=access) as service,
    ):
        arguments = (service.url, "replay-dlq", "orders", "-s", "billing")
        assert "AuthenticationError" in invoke(*arguments).stderr
        monkeypatch.setenv("PULSARX_TOKEN", token("nobody"))
        assert "AuthorizationError" in invoke(*arguments).stderr
        monkeypatch.setenv("PULSARX_TOKEN", token("admin"))
        assert rows(invoke(*arguments)) == [{"topic": ORDERS, "messages": 1}]


@pytest.mark.standard
@pytest.mark.parametrize("scheme", ["http", "pulsar"])
def test_messages_are_published_and_received_through_the_official_client(folder: Path, scheme: str):
    pytest.importorskip("pulsar")
    with (
        pulsarx.Client(folder) as client,
        serve(client, port=0) as broker,
        serve_http(client, port=0, broker_port=broker.port) as http,
    ):
        place = http.url if scheme == "http" else broker.service_url
        [told] = rows(process(place, "produce", "new", "-m", "a,b", "-k", "ada", "-p", "n=1"))
        assert (told["topic"], told["messages"]) == ("persistent://public/default/new", 2)
        [last] = rows(process(place, "produce", "new", "-m", "c", "-db"))
        assert last["message_id"] == client.admin.topics.get_last_message_id("new").to_text()
        found = rows(process(place, "consume", "new", "-s", "s", "-p", "Earliest", "-n", "3"))
        assert [each["data"] for each in found] == ["a", "b", "c"]
        assert found[0]["key"] == "ada"
        assert found[0]["properties"] == {"n": "1"}
        assert client.admin.topics.stats("new")["subscriptions"]["s"]["msg_backlog"] == 0


@pytest.mark.standard
@pytest.mark.parametrize("scheme", ["http", "pulsar"])
def test_a_topic_is_read_at_a_url_as_in_a_folder(folder: Path, scheme: str):
    pytest.importorskip("pulsar")
    with (
        pulsarx.Client(folder) as client,
        serve(client, port=0) as broker,
        serve_http(client, port=0, broker_port=broker.port) as http,
    ):
        place = http.url if scheme == "http" else broker.service_url
        for line in ("read orders -m earliest --to-end", "read orders -m earliest -n 2"):
            here, there = (rows(invoke(each, *line.split())) for each in (folder, place))
            assert there == here
            assert len(here) in (5, 2)
        second = here[1]["message_id"].rpartition(":")[0]
        assert rows(process(place, "read", "orders", "-m", second, "-i"))[0] == here[1]
        if scheme == "pulsar":
            result = invoke(place, "tail", "orders")
            assert result.exit_code == 2
            assert "give its http:// URL" in result.stderr


@pytest.mark.standard
def test_the_last_messages_of_a_topic_are_told_at_a_url(folder: Path):
    pytest.importorskip("pulsar")
    with (
        pulsarx.Client(folder) as client,
        serve(client, port=0) as broker,
        serve_http(client, port=0, broker_port=broker.port) as http,
    ):
        client.admin.topics.create_partitioned_topic("parts", 2)
        client.admin.topics.create_non_partitioned_topic("empty")
        with client.create_producer("parts", batching_enabled=True) as producer:
            for number in range(20):
                producer.send(b"%d" % number, partition_key=f"{number % 5}")
        for line in ("orders -n 2", "orders -n 100", "orders -n 0", "parts -n 7", "empty"):
            here, there = (rows(invoke(each, "tail", *line.split())) for each in (folder, http.url))
            assert there == here, line
        assert len(rows(process(http.url, "tail", "parts", "-n", "7"))) == 7
        result = invoke(http.url, "tail", "nowhere")
        assert (result.exit_code, "TopicNotFound" in result.stderr) == (1, True)


def test_top_shows_what_the_broker_tells(url: str):
    found = {each["topic"]: each for each in rows(invoke(url, "top", "--once", "--sort", "name"))}
    assert list(found) == sorted([ORDERS, DEAD])
    assert found[ORDERS]["msg_backlog"] == 5
    assert found[ORDERS]["msg_rate_in"] >= 0
    assert found[ORDERS]["subscriptions"] == 1


def test_a_message_is_examined_by_its_place(url: str, folder: Path):
    with pulsarx.Client(folder) as client:
        for topics in (client.admin.topics, Admin.at(url).topics):
            assert topics.examine_message("orders", "earliest", 1).data() == b"order 0"
            assert topics.examine_message("orders").data() == b"order 4"
            assert topics.examine_message("orders", "latest", 5).data() == b"order 0"
            with pytest.raises(pulsarx.NotAllowedError):
                topics.examine_message("orders", "latest", 6)
            with pytest.raises(pulsarx.TopicNotFound):
                topics.examine_message("nowhere")
            for wrong in (("last", 1), ("latest", 0), ("latest", True)):
                with pytest.raises(ValueError):
                    topics.examine_message("orders", *wrong)


@pytest.mark.standard
@pytest.mark.parametrize("scheme", ["pulsar", "http"])
def test_a_topic_is_loaded_and_measured_at_a_url(folder: Path, scheme: str):
    pytest.importorskip("pulsar")
    with (
        pulsarx.Client(folder) as client,
        serve(client, port=0) as broker,
        serve_http(client, port=0, broker_port=broker.port) as http,
    ):
        place = http.url if scheme == "http" else broker.service_url
        options = ("-m", "301", "-r", "0", "-s", "33", "-n", "2", "-z", "LZ4", "-mk", "random")
        [produced] = rows(process(place, "perf", "produce", "loaded", *options))
        assert (produced["messages"], produced["failures"]) == (301, 0)
        reader = client.create_reader("loaded", pulsarx.MessageId.earliest)
        found = [reader.read_next(60_000) for _ in range(301)]
        assert not reader.has_message_available()
        assert {len(each.data()) for each in found} == {33}
        assert len({each.producer_name() for each in found}) == 2
        options = ("-sp", "Earliest", "-st", "Shared", "-n", "2", "-m", "301")
        [consumed] = rows(process(place, "perf", "consume", "loaded", *options))
        assert consumed["messages"] == 301
        assert client.admin.topics.stats("loaded")["subscriptions"]["sub"]["msg_backlog"] == 0


@pytest.mark.standard
def test_a_token_says_who_asks(folder: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("pulsar")
    access = AccessSettings(token_secret_key=SECRET_TEXT, superuser_roles=["admin"])
    with (
        pulsarx.Client(folder) as client,
        serve(client, port=0, access=access) as broker,
        serve_http(client, port=0, broker_port=broker.port, access=access) as http,
    ):
        refused = invoke(http.url, "ls")
        assert refused.exit_code == 1
        assert "AuthenticationError" in refused.stderr
        monkeypatch.setenv("PULSARX_TOKEN", token("nobody"))
        assert "AuthorizationError" in invoke(http.url, "topics", "delete", "orders").stderr
        monkeypatch.setenv("PULSARX_TOKEN", token("admin"))
        assert len(rows(invoke(http.url, "ls"))) == 2
        [told] = rows(process(broker.service_url, "produce", "orders", "-m", "a"))
        assert told["messages"] == 1
        monkeypatch.setenv("PULSARX_TOKEN", "a\r\nb")
        assert "ASCII" in invoke(http.url, "ls").stderr


def test_a_token_is_not_for_a_folder(folder: Path):
    with pytest.raises(pulsarx.InvalidConfiguration):
        Admin.at(folder, authentication=pulsarx.AuthenticationToken("x"))


def test_nobody_there_is_told(url: str):
    result = invoke("http://127.0.0.1:1", "ls")
    assert result.exit_code == 1
    assert "ConnectError" in result.stderr


@pytest.mark.standard
def test_the_token_comes_from_the_environment(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """And the authorities, for the official client too."""
    pytest.importorskip("pulsar")
    (tmp_path / "tls").mkdir()
    authority = Authority(tmp_path / "tls")
    shared: dict[str, Any] = {
        "access": AccessSettings(token_secret_key=SECRET_TEXT, superuser_roles=["admin"]),
        "tls": TlsSettings(*authority.sign("server", "localhost", "127.0.0.1")),
        "advertised_address": "localhost",
    }
    monkeypatch.setenv("SSL_CERT_FILE", authority.file)
    with (
        pulsarx.Client(folder) as client,
        serve(client, port=None, tls_port=0, **shared) as broker,
        serve_http(client, port=0, broker_tls_port=broker.tls_port, **shared) as http,
    ):
        assert "AuthenticationError" in invoke(http.url, "tenants", "list").stderr
        monkeypatch.setenv("PULSARX_TOKEN", token("admin"))
        assert rows(invoke(http.url, "tenants", "list"))
        for url in (broker.service_url, http.url):
            result = process(url, "produce", "orders", "-m", "x")
            assert [each["messages"] for each in rows(result)] == [1]
