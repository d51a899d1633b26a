"""Facts about connections that are many, cut anywhere, half open, or of somebody unknown: what they
cost, and what they leave."""

from __future__ import annotations

import resource
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from peer import entry
from served import Served
from speaker import PATIENCE_SECONDS, Speaker, looks
from support.waiting import wait_until

import pulsarx
from pulsarx import errors
from pulsarx.access import AccessSettings, password_queue
from pulsarx.access.basic_users import BasicUsers
from pulsarx.clock import ManualClock
from pulsarx.server.unfinished_frames import UnfinishedFrames
from pulsarx.wire.commands import EARLIEST, EXCLUSIVE, SHARED
from pulsarx.wire.frames import frame_encode

Open = Callable[..., Served]
MANY = 2000
KNOWN_MAX = 64 << 10  # bytes of a connection, until it is known whose it is


def consumers_of(served: Served, subscription: str = "s", topic: str = "t") -> Any:
    found = served.client.admin.topics.stats(topic)["subscriptions"]
    return found[subscription]["consumers"] if subscription in found else []


@pytest.fixture
def many_files() -> None:
    """Both ends of each connection are in this process, and as many may be taken again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * MANY + 1000
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"the process may open {hard} files")
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@pytest.mark.standard
@pytest.mark.usefixtures("many_files")
def test_two_thousand_connections_publish_and_consume(open_served: Open) -> None:
    # Whose clock stands still: on a busy machine each is silent for so long that it is asked.
    served = open_served(ManualClock())
    peers = [Speaker(served) for _ in range(MANY)]
    for each in peers:
        each.say("CONNECT", client_version="test", protocol_version=20)
    for each in peers:
        assert each.hear()[0] == "CONNECTED"
    consumers, producers = peers[: MANY // 2], peers[MANY // 2 :]
    for number, each in enumerate(consumers):
        ids = {"consumer_id": 0, "request_id": 1, "type": SHARED, "subscription": "s"}
        each.say("SUBSCRIBE", topic=f"t{number % 20}", **ids)
        each.say("FLOW", consumer_id=0, permits=1000)
    for number, each in enumerate(producers):
        each.say("PRODUCER", topic=f"t{number % 20}", producer_id=0, request_id=0)
    assert {each.hear()[0] for each in consumers} == {"SUCCESS"}
    assert {each.hear()[0] for each in producers} == {"PRODUCER_SUCCESS"}
    for number, each in enumerate(producers):
        each.say("SEND", entry(b"%d" % number), producer_id=0, sequence_id=1)
    assert {each.hear()[0] for each in producers} == {"SEND_RECEIPT"}
    assert served.network.pool.started <= 16
    # What each was given is there when the answer to its PING is.
    given = []
    for each in consumers:
        each.say("PING")
        while (told := each.hear())[0] != "PONG":
            given.append(told[1]["message_id"]["entry_id"])
    assert sorted(given) == sorted(20 * list(range(len(producers) // 20)))
    for each in peers[::2]:
        cut(each, resets=True)
    wait_until(lambda: len(served.network.connections) == MANY // 2)
    left = [len(consumers_of(served, "s", f"t{number}")) for number in range(20)]
    assert sum(left) == len(consumers) // 2
    for each in peers[1::2]:
        each.say("PING")
    for each in peers[1::2]:
        while each.hear()[0] != "PONG":
            pass
        each.socket.close()


def cut(speaker: Speaker, resets: bool) -> None:
    """End a connection, by a reset instead of a farewell."""
    if resets:
        linger = struct.pack("ii", 1, 0)
        speaker.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    speaker.socket.close()


@pytest.mark.parametrize("resets", [False, True])
def test_a_frame_that_is_cut_anywhere_is_not_there(open_served: Open, resets: bool) -> None:
    """In its sizes, its command, its checksum, its metadata, its payload."""
    served = open_served(ManualClock())  # by which nobody is asked whether it lives
    frame = frame_encode("SEND", {"producer_id": 0, "sequence_id": 1}, entry(b"x" * 40))
    first = Speaker(served)
    first.greet()
    first.produce()
    first.say("SEND", entry(b"whole"), producer_id=0, sequence_id=1)
    assert first.hear()[0] == "SEND_RECEIPT"
    for size in range(1, len(frame), 3):
        speaker = Speaker(served)
        speaker.greet()
        speaker.say(
            "SUBSCRIBE",
            topic="t",
            subscription="s",
            type=EXCLUSIVE,
            consumer_id=0,
            request_id=1,
            initial_position=EARLIEST,
        )
        assert speaker.hear()[0] == "SUCCESS"  # the one before has left
        speaker.produce()
        speaker.socket.sendall(frame[:size])
        cut(speaker, resets)
        wait_until(lambda: not consumers_of(served))
    with served.client.create_reader("t", pulsarx.MessageId.earliest) as reader:
        assert [each.data() for each in reader] == [b"whole"]
    first.say("PING")
    assert first.hear()[0] == "PONG"


@pytest.mark.parametrize("size", [1, 3, 4, 7, 20])
def test_a_greeting_that_is_cut_leaves_nothing(open_served: Open, size: int) -> None:
    served = open_served()
    speaker = Speaker(served)
    greeting = frame_encode("CONNECT", {"client_version": "test", "protocol_version": 20})
    speaker.socket.sendall(greeting[:size])
    wait_until(lambda: bool(served.network.connections))
    speaker.socket.close()
    wait_until(lambda: not served.network.connections)


def test_a_connection_that_is_half_closed_ends(open_served: Open) -> None:
    """Its client says nothing more, be it that it would listen."""
    served = open_served(ManualClock())  # by which no keep-alive ends it
    speaker = Speaker(served)
    speaker.greet()
    speaker.subscribe()
    speaker.socket.shutdown(socket.SHUT_WR)
    assert speaker.is_hung_up_on()
    wait_until(lambda: not consumers_of(served))


def test_a_client_that_is_gone_without_a_farewell_is_dropped_with_what_was_on_its_way(
    open_served: Open,
) -> None:
    """Half open: nothing comes from there, and nothing is taken there."""
    served = open_served(ManualClock())
    producer = served.client.create_producer("t")
    for _ in range(32):
        producer.send(b"x" * (1 << 20))
    gone = Speaker(served)
    gone.greet()
    gone.subscribe()
    (connection,) = served.network.connections
    wait_until(lambda: connection._is_blocked)
    looks(served, 5)
    wait_until(lambda: not served.network.connections)
    assert not consumers_of(served)
    # It comes again, all of it, to the next one.
    other = served.client.subscribe("t", "s", pulsarx.ConsumerType.Shared)
    for _ in range(32):
        assert len(other.receive(60_000).data()) == 1 << 20


# Connections that hold as much as they can while it is not known whose they are: a greeting that
# does not end, or one that is being checked, with all behind it that is taken.
CLIENTS = """
import socket, sys
from pulsarx.wire.frames import frame_encode

port, count, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
proof = {"auth_method_name": "basic", "auth_data": b"admin:x" + b"y" * 60}
greeting = frame_encode("CONNECT", {"client_version": "t" * 10, "protocol_version": 20, **proof})
if kind == "endless":
    greeting = (16_000).to_bytes(4, "big") + b"x" * 15_000
held = []
for _ in range(count):
    held.append(socket.create_connection(("127.0.0.1", port)))
    held[-1].sendall(greeting)
    held[-1].setblocking(False)
    if kind == "checked":
        try:
            while True:
                held[-1].send(b"\\0" * 65536)
        except BlockingIOError:
            pass
print("held", flush=True)
sys.stdin.read()
"""


def resident() -> int:
    """Bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.standard
@pytest.mark.parametrize("kind", ["endless", "checked"])
def test_before_it_is_known_whose_it_is_a_connection_costs_little(
    open_served: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    may_go, came = threading.Event(), threading.Semaphore(0)
    identify = password_queue.PasswordQueue.identify

    def count(queue: Any, data: bytes, host: str) -> Any:
        found = identify(queue, data, host)
        came.release()
        return found

    def refuse(*_: Any) -> None:
        assert may_go.wait(120)
        raise errors.AuthenticationError(detail="unknown name, or wrong password")

    monkeypatch.setattr(password_queue.PasswordQueue, "identify", count)
    monkeypatch.setattr(BasicUsers, "verify", refuse)
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    (tmp_path / "users").write_text(f"admin:{hashed}\n")
    access = AccessSettings(basic_auth_conf=str(tmp_path / "users"))
    # By a clock that stands still: nobody is dropped for having said nothing for so long.
    served = open_served(ManualClock(), service={"access": access})

    def hold(count: int) -> Any:
        before = len(served.network.connections)
        arguments = [sys.executable, "-c", CLIENTS, str(served.service.port), str(count), kind]
        made = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert made.stdout is not None
        assert made.stdout.readline() == b"held\n"
        wait_until(lambda: len(served.network.connections) == before + count)
        if kind == "checked":
            for _ in range(count):
                assert came.acquire(timeout=PATIENCE_SECONDS)
        return made

    before = hold(10)  # what is made once
    start, count_held = resident(), 200
    made = hold(count_held)
    used = (resident() - start) / count_held
    may_go.set()
    for each in (before, made):
        each.communicate(timeout=60)
    assert used < KNOWN_MAX


def test_frames_that_are_not_whole_are_bounded_over_all_connections(open_served: Open) -> None:
    served = open_served()
    served.network.unfinished = UnfinishedFrames(served.network._drop, 10_000)
    other, hostile = Speaker(served), Speaker(served)
    for each in (other, hostile):
        each.greet()
    hostile.socket.sendall((1 << 20).to_bytes(4, "big") + bytes(10_000))
    assert hostile.is_hung_up_on()
    other.produce()
    # Who says the rest of it is not hung up on.
    whole = frame_encode("PARTITIONED_METADATA", {"topic": "t" * 5000, "request_id": 1})
    for _ in range(4):
        for part in (whole[:4000], whole[4000:]):
            other.socket.sendall(part)
        assert other.hear()[0] == "PARTITIONED_METADATA_RESPONSE"


def test_who_has_said_nothing_of_its_frame_for_longest_goes_first() -> None:
    gone: list[str] = []
    frames = UnfinishedFrames(gone.append, 100)
    for name, size in (("a", 40), ("b", 40), ("a", 50), ("c", 5), ("d", 6)):
        frames.settle(name, size)
    assert gone == ["b"]
    frames.settle("d", 0)
    frames.settle("a", 0)
    frames.settle("e", 95)
    assert gone == ["b"]
    frames.settle("e", 101)
    assert gone == ["b", "c", "e"]
