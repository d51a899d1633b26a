"""Facts about entries that go from one owner of a folder to the next: each is confirmed once, sent
again if it was not stored, and never both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pulsarx import Result, errors
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx._pycore.ground.owner_link import OwnerLink
from pulsarx._pycore.publish.completion_queue import CompletionQueue
from pulsarx._pycore.publish.connection_publisher import ConnectionPublisher
from pulsarx._pycore.publish.producer_core import ProducerCore
from pulsarx._pycore.wire.hot_commands import send_decode, send_encode
from pulsarx.clock import ManualClock
from pulsarx.compression import compress
from pulsarx.options.members import ProducerOptions
from pulsarx.results import result_of


def unserved(within: str) -> str:
    return f"nobody answers within {within}"


class Sender(ProducerCore):
    """A producer whose connections the test plays."""

    def __new__(cls, *_args: Any, **_options: Any) -> Sender:
        return super().__new__(cls, cls)  # with nothing it would be taken for a copy that is bare

    def __init__(
        self, timeout_ms: int = 0, encode: Callable[..., bytes] = send_encode, **options: Any
    ) -> None:
        import pulsarx._pycore.publish.send_entry  # noqa: F401  # gives it send_async

        self.clock = ManualClock()
        self.completions = CompletionQueue(Result.Ok, result_of)
        self.clock.settles(self.completions.jobs)
        self.clock.settles(self.completions.timeouts)
        self.link = ConnectionPublisher(
            self.completions, -1, encode, self.clock, timeout_ms, "the topic", 0, unserved
        )
        super().__init__(
            self.link,
            ProducerOptions(topic="t", send_timeout_millis=timeout_ms, **options),
            "n",
            "t",
            self.clock,
            compress,
            1 << 20,
            JobQueue("background"),
        )
        self.told: list[tuple[bytes, Any, Any]] = []
        self.sent: list[bytes] = []  # over the connection there is now
        self.entry_seconds = 0.0  # that pass with each entry

    def close_forgotten(self) -> None:
        pass

    def connect(
        self, stored: Any = (), unknown: Exception | None = None, compares: bool = False
    ) -> None:
        sent: list[bytes] = []
        self.sent = sent

        def out(frame: bytes) -> None:
            found = send_decode(frame[4:])
            if found is None:
                return  # it says from where on entries are compared, or are given up
            sent.append(found[2])
            self.clock.advance(self.entry_seconds)

        self.link.resume(OwnerLink(-1, out), 1, list(stored), unknown, compares)

    def put(self, *contents: bytes, sequence_id: int | None = None) -> None:
        for content in contents:
            described = {} if sequence_id is None else {"sequence_id": sequence_id}
            self.send_async(
                content,
                lambda result, place, content=content: self.told.append((content, result, place)),
                **described,
            )

    def results(self) -> list[tuple[bytes, Any]]:
        self.completions.jobs.wait()
        self.completions.timeouts.wait()
        return [(content, result) for content, result, _ in self.told]


def entry_ids(sender: Sender) -> list[int]:
    sender.completions.jobs.wait()
    return [place.entry_id() for _, _, place in sender.told]


def test_what_is_stored_is_confirmed_and_the_rest_is_sent_again() -> None:
    sender = Sender()
    sender.connect()
    sender.put(b"a", b"b", b"c", b"d")
    first = list(sender.sent)
    sender.link.confirmed(0, 7, 0)
    sender.link.pause()
    assert sender.link.last_confirmed == (7, 0)
    sender.connect([(first[1], 7, 1), (first[2], 7, 2)])
    assert sender.sent == first[3:]
    assert sender.link.last_confirmed == (7, 2)
    sender.link.confirmed(3, 9, 0)
    assert sender.results() == [(each, Result.Ok) for each in (b"a", b"b", b"c", b"d")]
    assert entry_ids(sender) == [0, 1, 2, 0]
    assert not sender.link.is_pending


def test_equal_messages_are_matched_by_their_number() -> None:
    """Users may repeat sequence ids: what is sent twice with one is stored twice."""
    sender = Sender()
    sender.connect()
    sender.put(b"a", b"a", b"a", sequence_id=5)
    first = list(sender.sent)
    assert len(set(first)) == 1
    sender.link.pause()
    sender.connect([(first[0], 7, 0), (first[0], 7, 1)])
    assert sender.sent == first[:1]
    sender.link.confirmed(5, 7, 2)
    assert entry_ids(sender) == [0, 1, 2]


def test_what_is_sent_without_a_connection_goes_out_with_the_next_one() -> None:
    sender = Sender()
    sender.connect()
    sender.put(b"a")
    sender.link.pause()
    sender.put(b"b", b"c")
    lost = sender.sent
    assert len(lost) == 1
    sender.connect()
    assert len(sender.sent) == 3
    assert sender.sent[0] == lost[0]
    for number in range(3):
        sender.link.confirmed(number, 7, number)
    assert sender.results() == [(each, Result.Ok) for each in (b"a", b"b", b"c")]


def test_entries_of_another_producer_of_the_name_are_not_its_own() -> None:
    sender = Sender()
    sender.connect()
    sender.put(b"a")
    first = list(sender.sent)
    sender.link.pause()
    sender.connect([(b"of another", 7, 0)])
    assert sender.sent == first


def test_what_was_refused_in_front_of_what_is_stored_is_told_so() -> None:
    sender = Sender()
    sender.connect()
    sender.put(b"a", b"b", b"c")
    first = list(sender.sent)
    sender.link.pause()
    sender.connect([(first[1], 7, 0)])
    assert sender.sent == first[2:]
    assert sender.results() == [(b"a", Result.ConnectError), (b"b", Result.Ok)]


def test_where_it_cannot_be_told_what_is_stored_nothing_is_sent_again() -> None:
    sender = Sender()
    sender.connect()
    sender.put(b"a", b"b")
    first = list(sender.sent)
    sender.link.pause()
    sender.connect([(first[0], 7, 0)], errors.Timeout(detail="unknown"))
    assert sender.sent == []
    assert sender.results() == [(b"a", Result.Ok), (b"b", Result.Timeout)]
    sender.put(b"c")
    assert len(sender.sent) == 1


def test_what_was_never_sent_is_sent_where_it_cannot_be_told_what_is_stored() -> None:
    """It used to fail, although it cannot be stored."""
    sender = Sender()
    sender.connect()
    sender.put(b"a")
    sender.link.pause()
    sender.put(b"b")
    sender.connect([], errors.Timeout(detail="unknown"))
    assert len(sender.sent) == 1
    sender.link.confirmed(1, 7, 0)
    assert sender.results() == [(b"a", Result.Timeout), (b"b", Result.Ok)]


def test_a_send_that_timed_out_is_not_sent_again_and_its_late_answer_is_passed_over() -> None:
    sender = Sender(timeout_ms=1000)
    sender.connect()
    sender.put(b"a")
    sender.clock.advance(0.999)
    sender.put(b"b")
    assert sender.results() == []
    sender.clock.advance(0.001)
    assert sender.results() == [(b"a", Result.Timeout)]
    sender.link.confirmed(0, 7, 0)  # of an owner that was stopped
    sender.link.confirmed(1, 7, 1)
    assert sender.results()[1:] == [(b"b", Result.Ok)]
    sender.put(b"c")
    sender.clock.advance(1)
    sender.link.pause()
    sender.connect()
    assert sender.sent == []
    assert [content for content, _ in sender.results()] == [b"a", b"b", b"c"]


def test_a_call_that_waits_is_told_the_timeout() -> None:
    import threading

    sender = Sender(timeout_ms=1000)
    raised: list[Exception] = []

    def send() -> None:
        try:
            sender.send(b"a")
        except errors.Timeout as error:
            raised.append(error)

    waiting = threading.Thread(target=send)
    waiting.start()
    while not sender.link.is_pending:
        pass
    sender.clock.advance(1)
    waiting.join()
    assert raised[0].detail == (
        "send to the topic: nobody answers within send_timeout_millis 1000; nothing was stored"
    )


def test_a_producer_that_has_no_connection_any_more_takes_nothing() -> None:
    sender = Sender()
    sender.connect()
    sender.put(b"a")
    sender.link.lost(errors.AlreadyClosed(detail="gone"))
    assert sender.results() == [(b"a", Result.AlreadyClosed)]
    with pytest.raises(errors.AlreadyClosed):
        sender.send(b"b")


# Messages in chunks -------------------------------------------------------------------------------

LARGE = bytes(1_500_000)  # two chunks


def test_the_chunks_of_a_message_time_out_together() -> None:
    """The first one timed out before the others, which were sent to the next owner without it: the
    message was confirmed, and nobody could read it."""
    sender = Sender(timeout_ms=1000, chunking_enabled=True)
    sender.connect()
    sender.entry_seconds = 0.4
    sender.put(LARGE)
    assert len(sender.sent) == 2
    sender.clock.advance(0.2)
    assert sender.results() == [(LARGE, Result.Timeout)]
    sender.link.pause()
    sender.put(b"b")
    sender.connect()
    assert len(sender.sent) == 1
    sender.link.confirmed(1, 7, 0)
    assert sender.results() == [(LARGE, Result.Timeout), (b"b", Result.Ok)]


def test_a_message_of_which_a_chunk_is_refused_fails() -> None:
    """It was told as stored, when its last chunk was."""
    sender = Sender(chunking_enabled=True)
    sender.connect()
    sender.put(LARGE, b"b")
    sender.link.failed(0, errors.NotAllowedError(detail="the first one"))
    sender.link.confirmed(0, 7, 0)
    sender.link.confirmed(1, 7, 1)
    expected = [(LARGE, Result.NotAllowedError), (b"b", Result.Ok)]
    assert sender.results() == expected
    assert sender.last_sequence_id() == 1
    sender.flush()


def test_the_rest_of_a_message_of_which_a_chunk_was_refused_is_not_sent_again() -> None:
    sender = Sender(chunking_enabled=True)
    sender.connect()
    sender.put(LARGE, b"b")
    first = list(sender.sent)
    sender.link.failed(0, errors.NotAllowedError(detail="the first one"))
    sender.link.pause()
    sender.connect()
    assert sender.sent == first[2:]
    sender.link.confirmed(1, 7, 1)
    assert sender.results() == [(LARGE, Result.NotAllowedError), (b"b", Result.Ok)]


def test_a_message_of_which_the_first_chunk_was_refused_unheard_fails() -> None:
    """It was told as stored, because its last chunk was."""
    sender = Sender(chunking_enabled=True)
    sender.connect()
    sender.put(LARGE, b"b")
    first = list(sender.sent)
    sender.link.pause()
    sender.connect([(first[1], 7, 0), (first[2], 7, 1)])
    assert sender.sent == []
    assert sender.results() == [(LARGE, Result.ConnectError), (b"b", Result.Ok)]


def test_a_duplicate_in_chunks_in_front_of_what_is_stored_succeeds() -> None:
    """It failed with ConnectError, as if it had been refused."""
    sender = Sender(chunking_enabled=True)
    sender.connect(compares=True)
    sender.put(b"a", sequence_id=5)
    sender.link.confirmed(5, 7, 0)
    sender.put(LARGE, sequence_id=5)
    sender.put(b"b", sequence_id=6)
    first = list(sender.sent)
    assert len(first) == 4
    sender.link.pause()
    sender.connect([(first[3], 7, 1)], compares=True)
    assert sender.sent == []
    assert sender.results() == [(b"a", Result.Ok), (LARGE, Result.Ok), (b"b", Result.Ok)]
    assert [place.ledger_id() for _, _, place in sender.told] == [7, -1, 7]


# What comes between two connections ---------------------------------------------------------------


def test_a_send_whose_time_is_over_is_not_sent_again_before_it_is_told_so() -> None:
    """It went to the next owner in the same moment, and was stored beside what its user sent in its
    place."""
    sender = Sender(timeout_ms=1000)
    sender.clock.call_after(1000, sender.connect)  # before the send's own
    sender.put(b"a")
    sender.clock.advance(1)
    assert sender.sent == []
    assert sender.results() == [(b"a", Result.Timeout)]


def test_what_a_broker_drops_because_its_time_is_over_is_told_as_timed_out() -> None:
    sender = Sender(timeout_ms=1000)
    sender.connect()
    sender.clock.call_after(
        1000, lambda: sender.link.failed(0, errors.UnknownError(detail="dropped"))
    )
    sender.put(b"a")
    sender.clock.advance(1)
    assert sender.results() == [(b"a", Result.Timeout)]


def test_a_producer_that_nobody_takes_back_sends_nothing_more() -> None:
    """What was sent before it was told so ended the connection, with all that others had there."""
    sender = Sender()
    sender.connect()
    sender.put(b"a")
    first = list(sender.sent)
    sender.link.pause()
    sender.link.resume(None, 1, [(first[0], 7, 0)], errors.AlreadyClosed(detail="deleted"))
    sender.put(b"b")
    sender.link.lost(errors.AlreadyClosed(detail="deleted"))
    assert sender.sent == first
    assert sender.results() == [(b"a", Result.Ok), (b"b", Result.AlreadyClosed)]


def test_what_there_was_no_memory_to_send_is_not_pending() -> None:
    """The answer to what was sent next was taken for one to it: the connection ended, and the next
    one was sent both."""
    fails = [True]

    def encode(*arguments: Any) -> bytes:
        if fails:
            raise MemoryError
        return send_encode(*arguments)

    sender = Sender(encode=encode)
    sender.connect()
    with pytest.raises(MemoryError):
        sender.put(b"a")
    assert not sender.link.is_pending
    fails.clear()
    sender.put(b"b")
    assert len(sender.sent) == 1
    sender.link.confirmed(1, 7, 0)
    assert sender.results() == [(b"b", Result.Ok)]
