"""The owner's control socket: what it answers, what it refuses, and when it goes away."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess, run_program

import pulsarx
from pulsarx import errors
from pulsarx._pycore.file_system import FileSystem
from pulsarx.broker import control_frame, control_socket, owner_request
from pulsarx.broker.control_request import VERBS
from pulsarx.broker.data_directory import DataDirectory
from pulsarx.broker.owner_lock import OwnerInfo
from pulsarx.broker.owner_request import ask_owner

TOPIC = "persistent://public/default/t"

ASK = """
import sys, json
from pulsarx.broker.owner_request import ask_owner
try:
    print(json.dumps(ask_owner(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
except Exception as error:
    print(type(error).__name__, error)
"""


def ask(folder: Path, verb: str, **arguments: Any) -> Any:
    """Ask from another process; the answer, or the text of an error."""
    answer = run_program(ASK, folder, verb, json.dumps(arguments))[-1]
    return json.loads(answer) if answer.startswith("{") else answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


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
    made.settimeout(5)
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
    first = ask(folder, "create_topic", topic="t", partitions=0)
    assert first == {"topic": TOPIC, "partitions": 0, "created": True}
    assert not ask(folder, "create_topic", topic="t", partitions=5)["created"]
    assert ask(folder, "create_topic", topic="p", partitions=2)["partitions"] == 2
    wanted = {"topic": "p", "name": "s", "position": "earliest"}
    assert ask(folder, "create_subscription", **wanted) == {"created": 2}
    assert ask(folder, "create_subscription", **wanted) == {"created": 0}
    client.create_producer("p").send(b"x")
    found = ask(folder, "stats", topic="p")["topics"]
    assert sum(each["messages"] for each in found) == 1
    assert [list(each["subscriptions"]) for each in found] == [["s"], ["s"]]


def test_a_subscription_is_moved_forward_only_and_trimming_follows(
    client: pulsarx.Client, folder: Path
) -> None:
    producer = client.create_producer("t")
    ids = [producer.send(b"%d" % number) for number in range(3)]
    ask(folder, "create_subscription", topic="t", name="s", position="earliest")
    place = {"topic": "t", "name": "s", "ledger_id": ids[0].ledger_id()}
    assert ask(folder, "move_subscription", **place, message=2) == {"moved": True}
    assert ask(folder, "move_subscription", **place, message=1) == {"moved": False}
    for wrong in ({**place, "ledger_id": 999}, {**place, "name": "x"}):
        answer = ask(folder, "move_subscription", **wrong, message=2)
        assert answer.startswith(("NotAllowedError", "SubscriptionNotFound"))
    assert ask(folder, "move_subscription", **place, message=9).startswith("NotAllowedError")
    consumer = client.subscribe("t", "s")
    assert consumer.receive(1000).data() == b"2"
    assert ask(folder, "move_subscription", **place, message=3).startswith("NotAllowedError")


def test_errors_arrive_as_what_they_were(client: pulsarx.Client, folder: Path) -> None:
    assert ask(folder, "stats", topic="nowhere").startswith("TopicNotFound Pulsar error: TopicNo")
    assert ask(folder, "stats", topic="a/b").startswith("InvalidTopicName")
    assert ask(folder, "renew", job="j", ttl_ms=5).startswith("NotAllowedError")
    assert ask(folder, "lease", job="j", ttl_ms=0, ledgers={}).startswith("ValueError lease: ttl")


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("drop_everything", {}), (None, {}), (5, {}), ("stats", None), ("stats", {}),
        ("stats", {"topic": 5}), ("stats", {"topic": ""}), ("stats", {"topic": "t", "more": 1}),
        ("stats", {"topic": "x" * 2000}), ("attach", {"files": []}),
        ("attach", {"application": "a", "batch_id": -1, "files": [], "thorough": False}),
        ("attach", {"application": "a", "batch_id": True, "files": [], "thorough": False}),
        ("attach", {"application": "a", "batch_id": 0, "files": [7], "thorough": False}),
        ("attach", {"application": "a", "batch_id": 0, "files": [{}], "thorough": False}),
        ("lease", {"job": "j", "ledgers": {"t": 5}, "ttl_ms": 1}),
        ("lease", {"job": "j", "ledgers": {"t": [True]}, "ttl_ms": 1}),
        ("lease", {"job": "j", "ledgers": {"t": [-1]}, "ttl_ms": 1}),
        ("lease", {"job": "j", "ledgers": {}, "ttl_ms": 1 << 60}),
        ("create_subscription", {"topic": "t", "name": "s", "position": "middle"}),
        ("create_topic", {"topic": "t", "partitions": -1}),
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
    assert ask(folder, "create_topic", topic="t", partitions=0)["created"]


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
            ask_owner(folder, "stats", {"topic": "x" * 1000})


def test_a_request_meant_for_another_owner_is_not_performed(
    client: pulsarx.Client, folder: Path
) -> None:
    for whole in ({"folder": "x", "epoch": 1}, {"epoch": owner_of(folder).epoch}, {}):
        answer = json.loads(raw(folder, frame({**whole, "verb": "stats", "arguments": {}}))[4:])
        assert answer == {"again": True}


def test_who_connects_and_says_nothing_does_not_hold_up_closing(folder: Path) -> None:
    client = pulsarx.Client(folder, durability="os")
    with connected(folder), connected(folder):
        assert ask_owner(folder, "create_topic", {"topic": "t", "partitions": 0})["created"]
        client.close()
    assert not [each for each in threading.enumerate() if each.name == "pulsarx-control"]


def test_who_says_nothing_holds_up_others_only_for_a_while(
    client: pulsarx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_socket, "_REQUEST_MS", 50)
    with connected(folder) as silent:
        assert ask(folder, "create_topic", topic="t", partitions=0)["created"]
        assert silent.recv(1) == b""


def test_a_folder_whose_path_is_too_long_for_an_address(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120) / ("y" * 120)
    with pulsarx.Client(folder, durability="os"):
        assert owner_of(folder).control_socket == "control.sock"
        assert ask(folder, "create_topic", topic="t", partitions=0)["created"]
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
        assert ask(folder, "create_topic", topic="t", partitions=0)["created"]
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
        answer = run_program(program, folder, "stats", json.dumps({"topic": "t"}))[-1]
        assert answer.startswith("FolderOwnedError") and str(os.getpid()) in answer


def test_the_socket_of_a_killed_owner_is_in_nobodys_way(folder: Path) -> None:
    with ChildProcess(LISTENER, folder) as owner:
        owner.line()
        owner.kill()
    assert (folder / "control.sock").is_socket()
    made = ask_owner(folder, "create_topic", {"topic": "t", "partitions": 0})
    assert made["created"]
    with pulsarx.Client(folder, durability="os"):
        assert ask(folder, "stats", topic="t")["topics"][0]["messages"] == 0


def test_a_forked_child_neither_listens_nor_ends_the_parents_listening(
    client: pulsarx.Client, folder: Path
) -> None:
    ask(folder, "create_topic", topic="t", partitions=0)
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
    assert ask(folder, "stats", topic="t")["topics"]


def is_socket(descriptor: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:")
    except OSError:
        return False


def test_memory_has_no_socket() -> None:
    with pulsarx.Client("memory:quiet"):
        assert not [each for each in threading.enumerate() if each.name == "pulsarx-control"]


def test_every_verb_is_named() -> None:
    assert sorted(VERBS) == [
        "attach", "create_subscription", "create_topic", "lease", "move_subscription", "release",
        "renew", "stats",
    ]  # fmt: skip


def test_closing_finishes_the_request_that_is_being_performed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = pulsarx.Client(folder, durability="os")
    begun, go_on = threading.Event(), threading.Event()

    def slow(broker: Any, topic: str) -> dict[str, Any]:
        begun.set()
        go_on.wait(5)
        return {"state": broker.directory.epoch}

    monkeypatch.setitem(VERBS, "stats", (slow, {"topic": str}))
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(ask(folder, "stats", topic="t")))
    asking.start()
    assert begun.wait(10)
    closing = threading.Thread(target=client.close)
    closing.start()
    closing.join(0.05)
    assert closing.is_alive()
    go_on.set()
    closing.join(10)
    asking.join(10)
    assert answers == [{"state": 1}]


def test_an_answer_is_waited_for_only_so_long(
    client: pulsarx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def slow(broker: Any, topic: str) -> dict[str, Any]:
        go_on.wait(5)
        return {}

    monkeypatch.setitem(VERBS, "stats", (slow, {"topic": str}))
    program = ASK.replace("sys.argv[3]))", "sys.argv[3]), 100)")
    assert run_program(program, folder, "stats", '{"topic": "t"}')[-1].startswith("Timeout")
    go_on.set()
    with pytest.raises(errors.AlreadyClosed):
        client.close()
        client.create_producer("t")


def test_ctrl_c_waits_until_the_owner_for_a_moment_is_done(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of it, it would leave the folder locked for as long as this process lives."""
    right = owner_request.perform
    answers = []

    def interrupted(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(200_000))  # bytecode, where the main thread would notice
        answers.append(right(*arguments))
        return answers[0]

    pulsarx.Client(folder).close()
    monkeypatch.setattr(owner_request, "perform", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ask_owner(folder, "create_topic", {"topic": "t", "partitions": 0})
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(answers) == 1
    monkeypatch.undo()
    with pulsarx.Client(folder) as client:
        assert client.admin.topics.get_list("public/default") == ["persistent://public/default/t"]
