"""Facts about what goes to the other end of a connection: it leaves in order, whoever sends it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pulsarx._pycore.wire.command_output import CommandOutput, SocketOutput

ROOM = 1 << 16


class Loop:
    """A loop and a transport that has what it was given for as long as the test likes."""

    def __init__(self) -> None:
        self.here, self.there = socket.socketpair()
        self.here.setblocking(False)
        self.there.setblocking(False)
        self.asked = 0
        self.room_came = 0
        self.failures = 0
        self.buffer = b""
        self.output = SocketOutput(self._ask, self._told, ROOM)
        self.output.begin(self.here.fileno())

    def _ask(self) -> None:
        if self.failures:
            self.failures -= 1
            raise MemoryError
        self.asked += 1

    def _told(self) -> None:
        self.room_came += 1

    def turn(self) -> None:
        """As the loop, once it was asked."""
        self.asked = 0
        self.buffer += self.output.take(not self.buffer)

    def transport_sends(self) -> None:
        try:
            self.buffer = self.buffer[self.here.send(self.buffer) :]
        except BlockingIOError:
            pass

    def heard(self) -> bytes:
        found = b""
        try:
            while data := self.there.recv(1 << 20):
                found += data
        except BlockingIOError:
            pass
        return found


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.output.end()
    made.here.close()
    made.there.close()


def test_who_holds_it_sends_at_the_end_and_asks_nobody(loop: Loop) -> None:
    loop.output.hold()
    loop.output.put(b"one ")
    loop.output.put(b"two")
    assert loop.heard() == b""
    loop.output.release()
    assert (loop.heard(), loop.asked, loop.output.size) == (b"one two", 0, 0)


def test_what_takes_long_keeps_nothing_back(loop: Loop) -> None:
    loop.output.hold()
    loop.output.put(b"one")
    loop.output.let_go()
    assert loop.heard() == b"one"
    loop.output.put(b"two")
    assert (loop.heard(), loop.asked) == (b"", 0)
    loop.output.release()
    assert loop.heard() == b"two"
    loop.output.let_go()  # nobody holds it


def test_others_ask_the_loop_once(loop: Loop) -> None:
    loop.output.put(b"one ")
    loop.output.put(b"two")
    assert loop.asked == 1
    loop.turn()
    assert loop.heard() == b"one two"
    loop.output.hold()
    other = threading.Thread(target=loop.output.put, args=(b"three",))
    other.start()
    other.join()
    assert loop.asked == 1
    loop.output.release()
    assert loop.heard() == b"three"


def test_without_a_socket_of_its_own_all_goes_by_the_loop() -> None:
    asked: list[int] = []
    output = SocketOutput(lambda: asked.append(1), lambda: None, ROOM)
    output.hold()
    output.put(b"x")
    output.release()
    assert asked == [1]
    assert output.take(True) == b"x"


def test_what_the_socket_does_not_take_stays_in_order(loop: Loop) -> None:
    sent = b"".join(b"%07d " % number for number in range(200_000))
    heard = b""
    loop.output.hold()
    loop.output.put(sent[:800_000])
    loop.output.release()
    assert loop.asked == 1
    assert 0 < loop.output.size < 800_000
    loop.output.hold()
    loop.output.put(sent[800_000:1_200_000])  # behind it, though there is room by now
    heard += loop.heard()
    loop.output.release()
    loop.turn()
    loop.output.hold()
    loop.output.put(sent[1_200_000:])
    loop.output.release()
    while len(heard) < len(sent):
        if loop.asked:
            loop.turn()
        loop.transport_sends()
        heard += loop.heard()
    assert heard == sent
    assert loop.output.size == 0
    for by_loop in (1, 0):  # which sees by that that its transport has nothing any more
        loop.output.hold()
        loop.output.put(b"again")
        loop.output.release()
        assert loop.asked == by_loop
        if by_loop:
            loop.turn()
        assert loop.heard() == b"again"


def test_there_is_room_until_too_much_waits_and_who_wanted_it_is_told(loop: Loop) -> None:
    assert loop.output.has_room()
    loop.output.put(bytes(ROOM))
    assert not loop.output.has_room()
    assert loop.room_came == 0
    loop.turn()
    assert loop.output.has_room()
    assert loop.room_came == 1
    loop.output.block(True)
    assert not loop.output.has_room()
    loop.output.block(False)
    assert loop.room_came == 2
    loop.output.block(True)
    loop.output.end()
    assert loop.output.has_room()  # nobody waits for who has gone


def test_nothing_is_sent_once_the_socket_may_be_closed(loop: Loop) -> None:
    loop.output.hold()
    loop.output.put(b"late")
    loop.output.end()
    loop.output.put(b"later")
    loop.output.release()
    loop.turn()
    assert (loop.heard(), loop.buffer, loop.output.size) == (b"", b"", 0)


def test_a_socket_that_has_ended_is_left_to_the_loop(loop: Loop) -> None:
    loop.there.close()
    loop.output.hold()
    loop.output.put(b"x")
    loop.output.release()
    assert loop.asked == 1
    loop.turn()
    assert loop.buffer == b"x"  # whose transport meets the error


def test_where_the_loop_cannot_be_asked_the_next_one_asks(loop: Loop) -> None:
    loop.failures = 1
    with pytest.raises(MemoryError):
        loop.output.put(b"one ")
    loop.output.put(b"two")
    assert loop.asked == 1
    loop.turn()
    assert loop.heard() == b"one two"


def test_threads_that_write_at_the_same_time_lose_nothing(loop: Loop) -> None:
    count, heard = 2000, b""

    def write(mark: bytes, holds: bool) -> None:
        for number in range(count):
            if holds:
                loop.output.hold()
            loop.output.put(b"%s%06d;" % (mark, number))
            if holds:
                loop.output.release()

    threads = [
        threading.Thread(target=write, args=(mark, holds))
        for mark, holds in ((b"a", True), (b"b", False), (b"c", False))
    ]
    for each in threads:
        each.start()
    while any(each.is_alive() for each in threads) or loop.output.size or loop.buffer:
        loop.turn()
        loop.transport_sends()
        heard += loop.heard()
    heard += loop.heard()
    found: dict[bytes, list[int]] = {b"a": [], b"b": [], b"c": []}
    for each in heard.split(b";")[:-1]:
        found[each[:1]].append(int(each[1:]))
    assert all(numbers == [*range(count)] for numbers in found.values())


def test_an_output_without_a_socket_passes_each_on() -> None:
    told: list[Any] = []
    output = CommandOutput(told.append, lambda: len(told) < 2)
    output.put(b"one")
    assert output.has_room()
    output.put(b"two")
    assert told == [b"one", b"two"]
    assert not output.has_room()
