"""The owner's control socket: what it answers, what it refuses, and when it goes away."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess, run_program
from sleeping_thread import until_asleep

import pulsarx
from pulsarx import errors
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx.broker import registry
from pulsarx.broker.control import control_frame, control_socket
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.folder.owner_lock import OwnerInfo
from pulsarx.broker.requests import owner_request
from pulsarx.broker.requests.owner_request import ask_owner
from pulsarx.broker.verbs.table import VERBS
from pulsarx.broker.verbs.verb import LOOKUP, Verb
from pulsarx.processes.owner import service as guest_service

TOPIC = "persistent://public/default/t"

IMPATIENT = """
from pulsarx.broker.requests import owner_request
owner_request._PATIENCE_MS = {}
"""
ASK = """
import sys, json
from pulsarx.broker.requests.owner_request import ask_owner
from pulsarx.clock import monotonic_ms
try:
    print(json.dumps(ask_owner(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
except Exception as error:
    print(type(error).__name__, getattr(error, "detail", error))
"""


def ask(folder: Path, verb: str, patience_ms: int = 0, **arguments: Any) -> Any:
    """Ask from another process; the answer, or the text of an error."""
    impatient = IMPATIENT.format(patience_ms) if patience_ms else ""
    answer = run_program(impatient + ASK, folder, verb, json.dumps(arguments))[-1]
    return json.loads(answer) if answer[0] in "{[" else answer


@pytest.fixture
def client(folder: Path) -> Iterator[pulsarx.Client]:
    with pulsarx.Client(folder, durability="os") as opened:
        yield opened


def owner_of(folder: Path) -> OwnerInfo:
    found = DataDirectory.open(str(folder), files=FileSystem(), read_only=True).owner()
    assert found is not None
    return found


def connected(folder: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(60)
    made.connect(str(folder / "control.sock"))
    return made


def raw(folder: Path, data: bytes) -> bytes:
    """What the owner answers to these bytes, b"" when it just ends the connection."""
    with connected(folder) as connection:
        found = b""
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while more := connection.recv(65536):
                found += more
        except (ConnectionResetError, BrokenPipeError):
            pass  # it did not read all of it
        return found


def frame(document: Any) -> bytes:
    data = json.dumps(document).encode()
    return struct.pack(">I", len(data)) + data


def request(folder: Path, verb: Any, arguments: Any) -> dict[str, Any]:
    owner = owner_of(folder)
    identity = DataDirectory.open(str(folder), files=FileSystem(), read_only=True).folder_id
    whole = {"folder": identity, "epoch": owner.epoch, "verb": verb, "arguments": arguments}
    answer: dict[str, Any] = json.loads(raw(folder, frame(whole))[4:])
    return answer


def test_lock_says_where_the_owner_listens(client: pulsarx.Client, folder: Path) -> None:
    assert owner_of(folder).control_socket == "control.sock"
    assert (folder / "control.sock").is_socket()
    client.close()
    assert not (folder / "control.sock").exists()


def test_topics_and_subscriptions_are_made_and_looked_at(
    client: pulsarx.Client, folder: Path
) -> None:
    first = ask(folder, "topics.ensure", topic="t", partitions=0)
    assert first == {"topic": TOPIC, "partitions": 0, "created": True}
    assert not ask(folder, "topics.ensure", topic="t", partitions=5)["created"]
    assert ask(folder, "topics.ensure", topic="p", partitions=2)["partitions"] == 2
    wanted = {"topics": ["p"], "name": "s", "position": "earliest"}
    assert ask(folder, "subscriptions.create", **wanted) == {"created": 2, "found": {}}
    found = ask(folder, "subscriptions.create", **wanted)["found"]
    assert found == {f"{TOPIC[:-1]}p-partition-{index}": [0, 0] for index in range(2)}
    client.create_producer("p").send(b"x")
    found = ask(folder, "topics.partitioned_stats", topic="p")
    assert found["messages"] == 1
    assert [list(each["subscriptions"]) for each in found["partitions"].values()] == [["s"], ["s"]]


def test_a_subscription_is_moved_forward_only_and_trimming_follows(
    client: pulsarx.Client, folder: Path
) -> None:
    producer = client.create_producer("t")
    ids = [producer.send(b"%d" % number) for number in range(3)]
    ask(folder, "subscriptions.create", topics=["t"], name="s", position="earliest")
    ledger_id = ids[0].ledger_id()

    def move(message: Any, topic: str = TOPIC, ledger_id: int = ledger_id, name: str = "s") -> Any:
        return ask(folder, "subscriptions.move", name=name, positions={topic: [ledger_id, message]})

    assert move(2) == {"moved": [TOPIC], "gone": []}
    assert move(1) == {"moved": [], "gone": []}
    assert move(2, name="x") == {"moved": [], "gone": [TOPIC]}
    assert move(2, topic="nowhere") == {"moved": [], "gone": ["nowhere"]}
    assert move(2, ledger_id=999).startswith("NotAllowedError")
    assert move(9).startswith("NotAllowedError")
    assert move("2").startswith("ValueError")
    consumer = client.subscribe("t", "s")
    assert consumer.receive(60_000).data() == b"2"
    assert move(3).startswith("NotAllowedError")


def test_a_subscription_is_moved_on_all_partitions_by_one_request(
    client: pulsarx.Client, folder: Path
) -> None:
    client.admin.topics.create_partitioned_topic("p", 3)
    producer = client.create_producer("p")
    ids = [producer.send(b"%d" % number) for number in range(6)]
    ask(folder, "subscriptions.create", topics=["p"], name="s", position="earliest")
    positions = {
        f"{TOPIC[:-1]}p-partition-{each.partition()}": [each.ledger_id(), 1] for each in ids
    }
    before = sorted(os.listdir(folder / "catalogue"))
    wanted = {**positions, TOPIC: [1, 1]}
    found = ask(folder, "subscriptions.move", name="s", positions=wanted)
    assert sorted(found["moved"]) == sorted(positions)
    assert found["gone"] == [TOPIC]
    assert sorted(os.listdir(folder / "catalogue")) == before
    consumer = client.subscribe("p", "s")
    assert {consumer.receive(60_000).data() for _ in range(3)} == {b"3", b"4", b"5"}


def test_errors_arrive_as_what_they_were(client: pulsarx.Client, folder: Path) -> None:
    unknown = ask(folder, "topics.stats", topic="nowhere")
    assert unknown.startswith("TopicNotFound ") and "nowhere" in unknown
    assert ask(folder, "topics.stats", topic="a/b").startswith("InvalidTopicName")
    assert ask(folder, "leases.renew", job="j", ttl_ms=5).startswith("NotAllowedError")
    refused = ask(folder, "leases.set", job="j", ttl_ms=0, ledgers={})
    assert refused.startswith("ValueError lease: ttl")


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("drop_everything", {}), (None, {}), (5, {}), ("topics.stats", None), ("topics.stats", {}),
        ("topics.stats", {"topic": 5}), ("topics.stats", {"topic": ""}),
        ("topics.stats", {"topic": "t", "more": 1}),
        ("topics.stats", {"topic": "x" * 40_000}), ("ledgers.attach", {"files": []}),
        ("ledgers.attach", {"application": "a", "batch_id": -1, "files": [], "thorough": False}),
        ("ledgers.attach", {"application": "a", "batch_id": True, "files": [], "thorough": False}),
        ("ledgers.attach", {"application": "a", "batch_id": 0, "files": [7], "thorough": False}),
        ("ledgers.attach", {"application": "a", "batch_id": 0, "files": [{}], "thorough": False}),
        ("leases.set", {"job": "j", "ledgers": {"t": 5}, "ttl_ms": 1}),
        ("leases.set", {"job": "j", "ledgers": {"t": [True]}, "ttl_ms": 1}),
        ("leases.set", {"job": "j", "ledgers": {"t": [-1]}, "ttl_ms": 1}),
        ("leases.set", {"job": "j", "ledgers": {}, "ttl_ms": 1 << 60}),
        ("leases.set", {"job": "j#2", "ledgers": {}, "ttl_ms": 1}),
        ("subscriptions.create", {"topics": ["t"], "name": "s", "position": "middle"}),
        ("subscriptions.create", {"topics": [5], "name": "s", "position": "latest"}),
        ("subscriptions.move", {"name": "s", "positions": {"t": 5}}),
        ("subscriptions.move", {"name": "s", "positions": {"t": [1]}}),
        ("subscriptions.move", {"name": "s", "positions": {"t": [1, True]}}),
        ("topics.ensure", {"topic": "t", "partitions": -1}),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused(
    client: pulsarx.Client, folder: Path, verb: Any, arguments: Any
) -> None:
    before = sorted(os.listdir(folder / "catalogue"))
    assert request(folder, verb, arguments)["error"] in ("ValueError", "OperationNotSupported")
    assert sorted(os.listdir(folder / "catalogue")) == before


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\0", b"\0\0\0\0", b"\0\0\0\1{", b"\0\0\0\5{", b"\xff\xff\xff\xff" + b"x" * 99,
        b"\0\0\0\4nope", b"\0\0\0\2[]", struct.pack(">I", 200_000) + b"[" * 200_000,
        struct.pack(">I", control_frame.FRAME_SIZE_MAX + 1), b"\0\0\0\2\xff\xff",
    ],
)  # fmt: skip
def test_bytes_that_are_no_request_end_the_connection_and_nothing_else(
    client: pulsarx.Client, folder: Path, data: bytes
) -> None:
    assert raw(folder, data) == b""
    assert ask(folder, "topics.ensure", topic="t", partitions=0)["created"]


def _without_memory(*_: object, **__: object) -> Any:
    raise MemoryError


# Where memory can run out, and what is asked for then.
_PLACES: dict[str, tuple[object, str, str]] = {
    "accept": (control_socket, "_connection", "verb"),
    "thread": (control_socket, "OwnThread", "verb"),
    "request": (control_frame, "frame_receive", "verb"),
    "answer": (control_frame, "frame_send", "verb"),
    "guest": (guest_service, "take_guest", "connect"),
    "guest's thread": (guest_service, "ServedGuest", "connect"),
}


@pytest.mark.parametrize("place", _PLACES)
def test_who_asks_where_memory_runs_out_sees_the_end_and_the_next_one_is_answered(
    client: pulsarx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The thread that accepts ended, or the connection stayed open, and was waited on for ever."""
    monkeypatch.setattr(control_socket, "_REST_SECONDS", 0.01)
    module, name, kind = _PLACES[place]
    directory = DataDirectory.open(str(folder), files=FileSystem(), read_only=True)
    asked = {"folder": directory.folder_id, "epoch": owner_of(folder).epoch}
    asked |= {"verb": "topics.ensure", "arguments": {"topic": "t", "partitions": 0}}
    if kind == "connect":
        own = {"protocol": control_socket.GUEST_PROTOCOL, "pid": os.getpid()}
        asked |= {"verb": "connect", "arguments": {}, "connect": own}
    with monkeypatch.context() as patched:
        patched.setattr(module, name, _without_memory)
        with connected(folder) as connection:
            try:
                connection.sendall(frame(asked))
                while connection.recv(1 << 16):
                    pass
            except ConnectionError:
                pass  # it ended before all was sent, or read
    assert ask(folder, "topics.ensure", topic="t", partitions=0)


LISTENER = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
"""


def test_a_request_that_is_too_large_is_not_sent(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChildProcess(LISTENER, folder) as owner:
        owner.line()
        monkeypatch.setattr(control_frame, "FRAME_SIZE_MAX", 1000)
        with pytest.raises(ValueError, match="more than the 1000"):
            ask_owner(folder, "topics.stats", {"topic": "x" * 1000})


def test_a_request_meant_for_another_owner_is_not_performed(
    client: pulsarx.Client, folder: Path
) -> None:
    for whole in ({"folder": "x", "epoch": 1}, {"epoch": owner_of(folder).epoch}, {}):
        asked = frame({**whole, "verb": "topics.stats", "arguments": {}})
        answer = json.loads(raw(folder, asked)[4:])
        assert answer == {"again": True}


def test_who_connects_and_says_nothing_does_not_hold_up_closing(folder: Path) -> None:
    before = set(threading.enumerate())
    client = pulsarx.Client(folder, durability="os")
    with connected(folder), connected(folder):
        assert ask_owner(folder, "topics.ensure", {"topic": "t", "partitions": 0})["created"]
        client.close()
    assert "pulsarx-socket" not in {each.name for each in set(threading.enumerate()) - before}


def test_a_request_that_has_no_memory_to_end_does_not_hold_up_closing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stayed among those that are performed, and close waited for it for ever."""
    failures = [MemoryError()]

    class Connection(control_frame.sockets.socket):
        def close(self) -> None:
            if failures:
                raise failures.pop()
            super().close()

    monkeypatch.setattr(
        control_socket, "_connection", lambda descriptor: Connection(fileno=descriptor)
    )
    with pulsarx.Client(folder, durability="os"):
        raw(folder, frame({}))  # it is answered
    assert not failures


def test_who_says_nothing_holds_nobody_up_and_is_sent_away(
    client: pulsarx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who waited for one of them would wait for longer than a process of a test may take.
    monkeypatch.setattr(control_socket, "_REQUEST_MS", 3_600_000)
    with connected(folder) as silent, connected(folder) as slow:
        slow.sendall(b"\0\0\0\x09{")
        for name in "tuv":
            assert ask(folder, "topics.ensure", topic=name, partitions=0)["created"]
        with pytest.raises(TimeoutError):
            silent.settimeout(0.01)
            silent.recv(1)
    monkeypatch.setattr(control_socket, "_REQUEST_MS", 50)
    with connected(folder) as silent:
        assert silent.recv(1) == b""


def test_many_who_say_nothing_hold_up_others_only_for_a_while(
    client: pulsarx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_socket, "_REQUEST_MS", 300)
    silent = [connected(folder) for _ in range(3 * control_socket._AT_ONCE_MAX)]
    assert ask(folder, "topics.ensure", topic="t", partitions=0)["created"]
    for each in silent:
        each.close()


def test_a_request_that_takes_long_holds_no_other_up(
    client: pulsarx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def slow(broker: Any, topic: str) -> dict[str, Any]:
        go_on.wait(60)
        return {"slow": True}

    monkeypatch.setitem(VERBS, "topics.stats", Verb(slow, needs=LOOKUP))
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(ask(folder, "topics.stats", topic="t")))
    asking.start()
    assert ask(folder, "topics.ensure", topic="t", partitions=0)["created"]
    assert not answers
    go_on.set()
    asking.join(60)
    assert answers == [{"slow": True}]


def test_only_the_owners_user_is_answered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0)
    try:
        client = pulsarx.Client(folder, durability="os")
    finally:
        os.umask(before)
    with client:
        assert os.stat(folder / "control.sock").st_mode & 0o777 == 0o600
        monkeypatch.setattr(control_socket, "user_of", lambda _: 12345)
        assert raw(folder, frame({})) == b""


def test_a_folder_whose_path_is_too_long_for_an_address(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120) / ("y" * 120)
    with pulsarx.Client(folder, durability="os"):
        assert owner_of(folder).control_socket == "control.sock"
        assert ask(folder, "topics.ensure", topic="t", partitions=0)["created"]
    assert not (folder / "control.sock").exists()


def test_a_file_system_without_sockets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = control_socket.with_address

    def without(folder: str, address: str, use: Any) -> None:
        if address == "control.sock":
            raise OSError(95, "not supported")
        whole(folder, address, use)

    monkeypatch.setattr(control_socket, "with_address", without)
    with pulsarx.Client(folder, durability="os"):
        assert owner_of(folder).control_socket.startswith("@pulsarx-")
        assert ask(folder, "topics.ensure", topic="t", partitions=0)["created"]
        assert not (folder / "control.sock").exists()


def test_no_socket_at_all_is_a_warning(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(control_socket, "with_address", refuse)
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("t").send(b"x")
        assert "no control socket" in caplog.text
        assert owner_of(folder).control_socket == ""
        program = ASK.replace("sys.argv[3]))", "sys.argv[3]), 100)")
        answer = run_program(program, folder, "topics.stats", json.dumps({"topic": "t"}))[-1]
        assert answer.startswith("FolderOwnedError") and str(os.getpid()) in answer


def test_the_socket_of_a_killed_owner_is_in_nobodys_way(folder: Path) -> None:
    with ChildProcess(LISTENER, folder) as owner:
        owner.line()
        owner.kill()
    assert (folder / "control.sock").is_socket()
    made = ask_owner(folder, "topics.ensure", {"topic": "t", "partitions": 0})
    assert made["created"]
    with pulsarx.Client(folder, durability="os"):
        assert ask(folder, "topics.stats", topic="t")["messages"] == 0


def test_a_forked_child_neither_listens_nor_ends_the_parents_listening(
    client: pulsarx.Client, folder: Path
) -> None:
    ask(folder, "topics.ensure", topic="t", partitions=0)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        sockets = [each for each in os.listdir("/proc/self/fd") if is_socket(each)]
        os.write(write_end, b"%d" % len(sockets))
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(read_end, 10)) < len(
        [each for each in os.listdir("/proc/self/fd") if is_socket(each)]
    )
    os.close(read_end)
    os.close(write_end)
    assert ask(folder, "topics.stats", topic="t")["topic"] == TOPIC


def is_socket(descriptor: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:")
    except OSError:
        return False


def test_memory_has_no_socket() -> None:
    before = set(threading.enumerate())
    with pulsarx.Client("memory:quiet"):
        assert "pulsarx-socket" not in {each.name for each in set(threading.enumerate()) - before}


def test_every_verb_is_named() -> None:
    assert sorted(VERBS) == [
        "brokers.get_storage_size", "brokers.healthcheck",
        "leases.finish_part", "leases.get_leases", "leases.release", "leases.renew", "leases.set",
        "leases.set_present",
        "ledgers.attach", "ledgers.attach_list",
        "namespaces.create_namespace", "namespaces.delete_namespace",
        "namespaces.get_namespaces",
        "namespaces.get_permission_on_subscription", "namespaces.get_permissions",
        "namespaces.get_policies",
        "namespaces.get_policy",
        "namespaces.get_subscription_auth_mode", "namespaces.get_topics",
        "namespaces.grant_permission", "namespaces.grant_permission_on_subscription",
        "namespaces.revoke_permission_on_subscription",
        "namespaces.revoke_permissions",
        "namespaces.set_policy",
        "namespaces.set_subscription_auth_mode",
        "schemas.create_schema", "schemas.delete_schema", "schemas.get_all_schemas",
        "schemas.get_schema_info", "schemas.get_version_by_schema", "schemas.test_compatibility",
        "subscriptions.create", "subscriptions.move",
        "tenants.create_tenant", "tenants.delete_tenant", "tenants.get_tenant_info",
        "tenants.get_tenants", "tenants.update_tenant",
        "topics.browse_messages", "topics.cancel_message", "topics.compaction_status",
        "topics.create_non_partitioned_topic", "topics.create_partitioned_topic",
        "topics.create_subscription", "topics.delete", "topics.delete_partitioned_topic",
        "topics.delete_subscription", "topics.ensure", "topics.examine_message",
        "topics.expire_messages", "topics.find_message_id",
        "topics.get_backlog_size", "topics.get_delayed_messages",
        "topics.get_figures", "topics.get_last_message_id", "topics.get_list",
        "topics.get_message_by_id", "topics.get_message_id_by_index",
        "topics.get_partitioned_topic_list",
        "topics.get_partitioned_topic_metadata", "topics.get_permissions", "topics.get_policy",
        "topics.get_producer_sequences",
        "topics.get_subscription_properties",
        "topics.get_subscriptions", "topics.grant_permission", "topics.merge_ledgers",
        "topics.offload", "topics.offload_before", "topics.offload_status",
        "topics.partitioned_stats", "topics.peek_messages",
        "topics.reset_cursor", "topics.revoke_permissions",
        "topics.set_policy", "topics.skip_all_messages", "topics.skip_messages", "topics.stats",
        "topics.terminate", "topics.trigger_compaction", "topics.trim", "topics.truncate",
        "topics.unload", "topics.update_partitioned_topic",
        "topics.update_subscription_properties",
        "transactions.abort_transaction", "transactions.get_coordinator_stats",
        "transactions.get_pending_ack_stats", "transactions.get_slow_transactions",
        "transactions.get_transaction_buffer_stats",
        "transactions.get_transaction_in_buffer_stats",
        "transactions.get_transaction_metadata", "transactions.get_transactions",
        "transactions.list_transaction_coordinators",
    ]  # fmt: skip


def test_closing_finishes_the_request_that_is_being_performed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = pulsarx.Client(folder, durability="os")
    begun, go_on = threading.Event(), threading.Event()

    def slow(broker: Any, topic: str) -> dict[str, Any]:
        begun.set()
        go_on.wait(60)
        return {"state": broker.directory.epoch}

    monkeypatch.setitem(VERBS, "topics.stats", Verb(slow, needs=LOOKUP))
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(ask(folder, "topics.stats", topic="t")))
    asking.start()
    assert begun.wait(60)
    closing = threading.Thread(target=client.close)
    closing.start()
    until_asleep(closing)
    assert closing.is_alive()
    go_on.set()
    closing.join(60)
    asking.join(60)
    assert answers == [{"state": 1}]


def test_an_answer_is_waited_for_only_so_long(
    client: pulsarx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def slow(broker: Any, topic: str) -> dict[str, Any]:
        go_on.wait(60)
        return {}

    monkeypatch.setitem(VERBS, "topics.stats", Verb(slow, needs=LOOKUP))
    program = ASK.replace("sys.argv[3]))", "sys.argv[3]), 100)")
    assert run_program(program, folder, "topics.stats", '{"topic": "t"}')[-1].startswith("Timeout")
    go_on.set()
    with pytest.raises(errors.AlreadyClosed):
        client.close()
        client.create_producer("t")


def test_who_was_asked_and_is_gone_may_have_done_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_request, "_PATIENCE_MS", 300)
    begun = threading.Event()

    def dying(broker: Any, topic: str) -> dict[str, Any]:
        begun.set()
        control = registry._sockets[broker]
        control._listener.shutdown()
        control.abandon()  # all its descriptors are closed, as by a kill
        return {}

    monkeypatch.setitem(VERBS, "topics.stats", Verb(dying, needs=LOOKUP))
    with pulsarx.Client(folder, durability="os"):
        answer = ask(folder, "topics.stats", topic="t", patience_ms=300)
        assert begun.is_set()
        assert answer.startswith("Timeout") and "may have been done" in answer


def test_what_removes_is_not_done_twice(folder: Path) -> None:
    """An owner that was killed before it could answer had its request repeated by the next one:
    twice as many messages were skipped as were asked for."""
    owner = """
import os, sys, pulsarx
from pulsarx.broker.control import control_frame
client = pulsarx.Client(sys.argv[1])
producer = client.create_producer("t")
client.subscribe("t", "s").close()
for number in range(4):
    producer.send(b"%d" % number)
control_frame.frame_send = lambda *_: os._exit(9)  # in the place of an answer
print("open", flush=True)
sys.stdin.read()
"""
    with ChildProcess(owner, folder) as child:
        assert child.line() == "open"
        answer = ask(folder, "topics.skip_messages", topic="t", name="s", count=1)
    assert answer.startswith("Timeout") and "may have been done, and is not repeated" in answer
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s")
        assert [consumer.receive(60_000).data() for _ in range(3)] == [b"1", b"2", b"3"]


DESCRIPTORS = """
import logging, os, resource, sys
import pulsarx
logging.basicConfig(stream=sys.stdout, format="%(message)s")
folder = sys.argv[1]
pulsarx.Client(folder).close()  # what it loads is there
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
for _ in range(16):
    try:
        client = pulsarx.Client(folder)
    except pulsarx.PulsarException as error:
        print("refused", type(error).__name__)
        os.close(taken.pop())
    else:
        print("opened")
        client.close()
        os.close(taken.pop())
"""


def test_a_process_without_descriptors_opens_a_folder_or_is_told_so_by_one_of_our_errors(
    folder: Path,
) -> None:
    """The socket came out of the constructor as a bare OSError."""
    said = run_program(DESCRIPTORS, folder)
    assert "refused StorageError" in said and "refused FolderError" not in said
    assert said[-1] == "opened"
    # A descriptor too few: the folder is open, and other processes cannot come.
    assert any("no control socket" in each and "Too many open files" in each for each in said)
