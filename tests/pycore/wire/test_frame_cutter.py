"""Facts about cutting what comes over a connection into frames, and telling some at once."""

from __future__ import annotations

import weakref
from typing import Any

import pytest

from pulsarx._pycore.ground import owner_link
from pulsarx._pycore.wire.frame_cutter import FrameCutter
from pulsarx._pycore.wire.hot_commands import receipt_encode, send_encode
from pulsarx.wire.frames import frame_encode

LIMIT = 1000
RUN = owner_link.frame(owner_link.RUN, 7, 1, 2, 3, 4)
RECORDED = owner_link.frame(owner_link.RECORDED, 7, 5)
RESET = owner_link.frame(owner_link.RESET, 7, 1, 2, 3, 4)
SEND = send_encode(5, 6, 1, b"entry")
RECEIPT = receipt_encode(5, 6, 8, 9, -1)
PING = frame_encode("PING", {})


class Consumer:
    def __init__(self) -> None:
        self.arrived: list[tuple[int, ...]] = []
        self.settled_count = 0

    def arrive(self, *numbers: int) -> None:
        self.arrived.append(numbers)

    def settled(self) -> None:
        self.settled_count += 1

    def recorded(self, count: int) -> None:
        self.arrived.append((count,))


class Interrupted(Consumer):
    """A signal handler raises in who is woken for the first time."""

    def settled(self) -> None:
        super().settled()
        if self.settled_count == 1:
            raise KeyboardInterrupt


def rest(cutter: FrameCutter) -> list[Any]:
    found = []
    while (frame := cutter.next()) is not None:
        found.append(frame)
    return found


@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_who_is_known_is_told_and_the_rest_is_handed_out(piece: int) -> None:
    cutter, consumer, told = FrameCutter(LIMIT), Consumer(), []
    cutter.sends[5] = lambda *values: told.append(values)
    cutter.receipts[5] = lambda *values: told.append(values)
    cutter.runs[7] = weakref.ref(consumer)
    data, found = PING + SEND + RUN + RESET + RECEIPT + RECORDED + PING, []
    for at in range(0, len(data), piece):
        cutter.feed(memoryview(data)[at : at + piece])
        found += rest(cutter)
    assert found == [PING[4:], RESET[4:], PING[4:]]
    assert told == [(6, b"entry"), (6, 8, 9)]
    assert consumer.arrived == [(1, 2, 3, 4), (5,)]
    assert cutter.size == 0


@pytest.mark.parametrize("behind", [b"", RUN[:20], PING, SEND])
def test_what_arrives_together_wakes_its_consumer_once(behind: bytes) -> None:
    """It woke with the first of it, and a call for many messages returned fewer."""
    cutter, consumer, other = FrameCutter(LIMIT), Consumer(), Consumer()
    cutter.runs[7], cutter.runs[8] = weakref.ref(consumer), weakref.ref(other)
    cutter.feed(RUN * 3 + owner_link.frame(owner_link.RUN, 8, 1, 2, 3, 4) + behind)
    cutter.next()
    assert len(consumer.arrived) == 3
    assert (consumer.settled_count, other.settled_count) == (1, 1)


def test_at_the_owner_each_link_frame_is_told() -> None:
    cutter, told = FrameCutter(LIMIT), []
    cutter.links[7] = lambda *values: told.append(values)
    other = owner_link.frame(owner_link.SEQUENCE_NOTED, 8)
    cutter.feed(RUN + other + RESET)
    assert rest(cutter) == [other[4:]]
    assert told == [(owner_link.RUN, 1, 2, 3, 4), (owner_link.RESET, 1, 2, 3, 4)]


def test_what_is_for_nobody_known_is_handed_out() -> None:
    cutter = FrameCutter(LIMIT)
    cutter.sends[1] = cutter.receipts[1] = lambda *_: None
    cutter.runs[1] = weakref.ref(Consumer())
    cutter.runs[7] = weakref.ref(Consumer())  # it has gone
    cutter.feed(SEND + RUN + RECEIPT)
    assert rest(cutter) == [SEND[4:], RUN[4:], RECEIPT[4:]]


def test_who_is_told_may_feed_it() -> None:
    """A session does, whose thread answers and delivers in the middle of what came."""
    cutter, told = FrameCutter(LIMIT), []

    def tell(_: int, entry: bytes) -> None:
        told.append(entry)
        if len(told) == 1:
            cutter.feed(send_encode(5, 2, 1, b"x" * 900) + PING)

    cutter.sends[5] = tell
    cutter.feed(SEND)
    assert rest(cutter) == [PING[4:]]
    assert told == [b"entry", b"x" * 900]


def test_what_one_raises_who_is_told_is_raised_and_the_next_frame_follows() -> None:
    cutter = FrameCutter(LIMIT)

    def refuse(*_: object) -> None:
        raise KeyError("no")

    cutter.sends[5] = refuse
    cutter.feed(SEND + PING)
    with pytest.raises(KeyError):
        cutter.next()
    assert rest(cutter) == [PING[4:]]


@pytest.mark.parametrize("total", [0, 3, LIMIT + 1, (1 << 32) - 1])
def test_a_frame_of_a_size_that_is_not_allowed_is_told_before_it_has_come(total: int) -> None:
    cutter = FrameCutter(LIMIT)
    cutter.feed(total.to_bytes(4, "big"))
    assert cutter.next() == total


def test_what_comes_behind_an_interrupted_wake_up_is_told_by_the_next_look() -> None:
    """It was passed over: what it named never came to its consumer."""
    cutter, first, second = FrameCutter(LIMIT), Interrupted(), Consumer()
    cutter.runs[7], cutter.runs[8] = weakref.ref(first), weakref.ref(second)
    cutter.feed(RUN + owner_link.frame(owner_link.RUN, 8, 5, 6, 7, 8) + PING)
    with pytest.raises(KeyboardInterrupt):
        cutter.next()
    assert rest(cutter) == [PING[4:]]
    assert second.arrived == [(5, 6, 7, 8)]
    assert (first.settled_count, second.settled_count) == (2, 1)
