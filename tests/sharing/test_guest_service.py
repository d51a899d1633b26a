"""Facts about the connections of other processes, and the threads that serve them."""

from __future__ import annotations

import _thread
import gc
import json
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sharing_process import SharingProcess

import pulsarx
from pulsarx._pycore.ground import owner_link
from pulsarx.processes.owner import service as guest_service
from pulsarx.processes.owner.service import UNSENT_MAX, GuestService, ServedGuest
from pulsarx.sessions.session import Session
from pulsarx.testing import inspect
from pulsarx.wire.frames import FrameReader, frame_encode

SIZE = 2_000_000
PING = frame_encode("PING", {})
PONG = frame_encode("PONG", {})


class Guest:
    """Another process's end of a connection, which says what a test has it say."""

    def __init__(self, folder: Path) -> None:
        self.client = pulsarx.Client(folder, durability="os")
        self._reader = FrameReader(5 << 20)
        self.service = GuestService(inspect(self.client).broker)
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(30)
        self.service.take(theirs, 1)
        (self.served,) = self.service.connections
        self.say(frame_encode("CONNECT", {"client_version": "test", "protocol_version": 21}))
        assert self._heard() == ["CONNECTED"]

    def say(self, data: bytes) -> None:
        self.socket.sendall(data)

    def _heard(self) -> list[str]:
        """The names of what came together."""
        self.came = list(self._reader.feed(self.socket.recv(1 << 16)))
        return [name for name, _, _ in self.came]

    def link(self) -> tuple[int, tuple[int, ...]]:
        """Kind and numbers of a link frame that comes next, and alone."""
        assert self._heard() == ["LINK"]
        values = self.came[0][1]
        return values["kind"], values["numbers"]

    def subscribe(self, number: int) -> None:
        """As the consumer of a number, on a topic that is there, with room for two messages."""
        settings = {
            "receiver_queue_size": 1000, "priority_level": 0, "properties": {},
            "chunked_pending_max": 0, "acks_oldest_chunked": False, "chunked_expiry_ms": 0,
        }  # fmt: skip
        arguments = {
            "consumer_id": number, "topic": "persistent://public/default/t", "type": "Exclusive",
            "subscription": "s", "durable": True, "consumer_name": "c", "start": [0, 0],
            "key_shared": None, "reads_any": False, "read_compacted": False,
            "wants_events": False, "goes_on": False, "settings": settings,
            "subscription_properties": {},
        }  # fmt: skip
        ask = {"request_id": 1, "verb": "guest.subscribe", "arguments": json.dumps(arguments)}
        self.say(frame_encode("VERB", ask))
        assert self._heard() == ["VERB_RESPONSE"]
        assert self.came[0][1]["error"] is None
        self.say(owner_link.frame(owner_link.FLOW, number, 2) + PING)
        found = []
        while self._heard()[-1] != "PONG":
            found += self.came
        self.came = found + self.came

    def rest(self) -> bytes:
        """All that comes until the owner hangs up."""
        found = b""
        try:
            while data := self.socket.recv(1 << 16):
                found += data
        except ConnectionResetError:
            pass  # it had not read all
        return found

    def close(self) -> None:
        self.socket.close()
        self.client.close()


@pytest.fixture
def guest(folder: Path) -> Iterator[Guest]:
    made = Guest(folder)
    yield made
    made.close()


def test_nothing_overtakes_what_the_socket_had_no_room_for(guest: Guest) -> None:
    large = bytes(SIZE)
    guest.served.link.write(large)
    assert guest.served.link.unsent
    found = guest.socket.recv(SIZE)
    guest.served.link.write(b"behind it")  # the socket may have room by now
    while len(found) < SIZE + len(b"behind it"):
        found += guest.socket.recv(SIZE)
    assert found == large + b"behind it"


def test_a_process_that_takes_no_answers_is_not_read(guest: Guest) -> None:
    """What waits for it is bounded, and nothing of it is lost when it takes it."""
    asked, some = 0, PING * 10_000
    guest.socket.settimeout(0.5)
    with pytest.raises(TimeoutError):
        while asked < 64 * UNSENT_MAX:
            asked += guest.socket.send(some[asked % len(PING) :])
    # What was read in one go is answered.
    assert guest.served.link.unsent <= UNSENT_MAX + guest_service._READ_SIZE
    guest.socket.settimeout(60)
    whole, found = asked // len(PING), 0
    while found < whole * len(PONG):
        found += len(guest.socket.recv(SIZE))
    assert found == whole * len(PONG)


def test_what_came_before_the_owner_closes_is_answered(guest: Guest) -> None:
    guest.say(PING * 3)
    guest.service.close()
    assert guest.rest() == PONG * 3


def test_an_owner_closes_beside_a_process_that_takes_nothing(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_service, "_PARTING_MS", 50)
    guest.served.link.write(bytes(SIZE))
    guest.service.close()
    assert not guest.service.connections
    assert 0 < len(guest.rest()) < SIZE


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_the_others_are_hung_up_on_though_ending_one_fails(
    guest: Guest, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """Those behind it were not, and those in front of it waited for ever for the others."""
    sockets = {guest.served: guest.socket}
    for _ in range(3):
        mine, theirs = socket.socketpair()
        mine.settimeout(30)
        guest.service.take(theirs, 1)
        (served,) = guest.service.connections - set(sockets)
        sockets[served] = mine
    # What is no Exception ends it there, in front of nobody.
    broken = list(guest.service.connections)[0 if error is RuntimeError else -1]
    end = ServedGuest.end

    def fail(served: ServedGuest) -> None:
        if served is broken:
            raise error("on purpose")
        end(served)

    monkeypatch.setattr(ServedGuest, "end", fail)
    with pytest.raises(error):
        guest.service.close()
    for served, mine in sockets.items():
        if served is not broken:
            assert mine.recv(1 << 16) == b""
        mine.close()


def test_a_process_that_breaks_the_protocol_is_hung_up_on(
    guest: Guest, caplog: pytest.LogCaptureFixture
) -> None:
    guest.say(PING + bytes(4))
    assert guest.rest() == PONG
    guest.served.thread.join()
    assert "a frame of 0 bytes" in caplog.text


def test_a_process_that_no_thread_could_be_started_for_comes_again(
    folder: Path, processes: list[SharingProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    start, refused = _thread.start_new_thread, []

    def refuse_one(function: Any, arguments: tuple[Any, ...], *rest: Any) -> Any:
        if "pulsarx-guests" in arguments and not refused:
            refused.append(arguments)
            raise RuntimeError("can't start new thread")
        return start(function, arguments, *rest)

    monkeypatch.setattr(_thread, "start_new_thread", refuse_one)
    with pulsarx.Client(folder, durability="os") as client:
        consumer = client.subscribe("t", "s")
        other = SharingProcess(folder, durability="os")
        processes.append(other)
        other.run("client.create_producer('t').send(b'x')")
        assert consumer.receive(60_000).data() == b"x"
        assert refused


@pytest.mark.parametrize(
    "what",
    [
        "client.subscribe('t', 's', message_listener=note)",
        "client.create_reader('t', MessageId.earliest, reader_listener=note)",
    ],
)
def test_a_send_runs_no_python_for_consumers_of_other_processes(
    folder: Path, processes: list[SharingProcess], what: str
) -> None:
    """A signal handler that raised in there lost the wake-up of the thread that serves them."""
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer("t")
        other = SharingProcess(folder, durability="os")
        processes.append(other)
        other.run("import queue; came = queue.Queue()")
        other.run("note = lambda _, message: came.put(message.data())")
        other.run(f"them = {what}")
        called: list[str] = []

        def note(frame: Any, event: str, _: object) -> None:
            if event == "call":
                called.append(frame.f_code.co_name)

        gc.disable()  # it calls what others forgot
        sys.setprofile(note)
        try:
            producer.send(b"x")
        finally:
            sys.setprofile(None)
            gc.enable()
        assert called == []
        assert other.run("came.get(timeout=60)") == b"x"


def test_a_message_goes_to_another_process_without_its_session(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session looked at all its producers and consumers for each."""
    producer = guest.client.create_producer("t")
    guest.subscribe(7)
    monkeypatch.setattr(Session, "deliver", lambda _: None)
    for number in range(2):
        producer.send(b"x")
        kind, (_, message, count, _) = guest.link()
        assert (kind, message, count) == (owner_link.RUN, number, 1)


def test_what_could_not_be_sent_to_another_process_comes_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had been taken from the subscription by then."""
    failing: list[int] = []

    class FailingLink(owner_link.OwnerLink):
        def write(self, data: bytes) -> None:
            if failing and data[:8] == owner_link.frame(owner_link.RUN, 0)[:8]:
                failing.pop()
                raise MemoryError("out of memory")
            super().write(data)

    monkeypatch.setattr(guest_service, "OwnerLink", FailingLink)
    guest = Guest(folder)
    producer = guest.client.create_producer("t")
    guest.subscribe(7)
    producer.send(b"x")
    assert guest.link()[0] == owner_link.RUN
    failing.append(1)
    producer.send(b"y")
    assert guest.link()[0] == owner_link.CLOSED
    guest.subscribe(8)
    counts = [values["numbers"][2] for name, values, _ in guest.came if name == "LINK"]
    assert sum(counts) == 2
    guest.close()


def test_an_acknowledgement_of_another_process_is_recorded_without_its_session(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took the interpreter from who waited for the next message."""
    producer = guest.client.create_producer("t")
    guest.subscribe(7)
    monkeypatch.setattr(Session, "deliver", lambda _: None)
    monkeypatch.setattr(Session, "_do", lambda *_: None)
    for number in range(2):
        producer.send(b"x")
        _, (ledger, message, *_) = guest.link()
        guest.say(owner_link.frame(owner_link.ACKNOWLEDGE, 7, ledger, message, 1))
        kind, (recorded, *_) = guest.link()
        assert (kind, recorded) == (owner_link.RECORDED, number + 1)


def test_a_session_that_is_woken_while_acknowledgements_come_delivers(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those are nothing for it, it was not called: a closed producer was not told of that."""
    producer = guest.client.create_producer("t")
    guest.subscribe(7)
    producer.send(b"x")
    _, (ledger, message, *_) = guest.link()
    held, goes_on, delivered = threading.Event(), threading.Event(), threading.Event()
    deliver = Session.deliver

    def hold(session: Session) -> None:
        if held.is_set():
            delivered.set()
        held.set()
        goes_on.wait(60)
        deliver(session)

    monkeypatch.setattr(Session, "deliver", hold)
    guest.served.link.wake()
    assert held.wait(60)
    guest.say(owner_link.frame(owner_link.ACKNOWLEDGE, 7, ledger, message, 1))
    guest.served.link.wake()
    goes_on.set()
    assert delivered.wait(60)


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_connection_without_memory_at_its_end_is_closed(
    guest: Guest, monkeypatch: pytest.MonkeyPatch, is_broken: bool
) -> None:
    """Its process waited for ever, and so did others for what it had."""

    def no_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(guest_service, "partial", no_memory)
    if is_broken:
        guest.say(b"\xff" * 64)
    else:
        guest.service.close()
    assert guest.rest() == b""
