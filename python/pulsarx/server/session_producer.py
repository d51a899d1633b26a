"""A producer at the other end of a connection, as the broker sees it."""

from __future__ import annotations

from collections import deque

from pulsarx import errors
from pulsarx._pycore.publish.entry_intake import EntryIntake
from pulsarx.closing import attempt
from pulsarx.compression import compress, decompress
from pulsarx.wire.frames import entry_size_max

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.ground.rate_limit import PublishMeter, RateLimit
    from pulsarx._pycore.publish.completion_queue import CompletionQueue
    from pulsarx._pycore.publish.producer_sequences import ProducerSequences
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.clock import Timer
    from pulsarx.server.session_context import SessionContext

    Told = Callable[[Any, Any], object]  # error or None, message id or None


class SessionProducer:
    """Publishes the entries of one producer. In ProducerRegistry it stands where a producer of this
    process does."""

    is_forgotten = False  # its session keeps it

    def __init__(
        self,
        topic: AnyTopic,
        name: str,
        completions: CompletionQueue,
        was_shut: Callable[[], object],
        wake: Callable[[], object],
    ) -> None:
        """was_shut: called when the broker has shut it, or its session, in any thread. wake: has
        the session call go_on soon; in any thread, and with mutexes held."""
        runtime = topic.runtime
        self.name = name
        self.is_open = True
        self.context: SessionContext | None = None  # of its session
        # Of a guest, which numbers its messages itself: tells it to go on above this id.
        self.tell_sequence: Callable[[int], object] | None = None
        self._to_come: tuple[ProducerSequences, Callable[[], object] | None] | None = None
        self.described: dict[str, Any] = {}  # for statistics: what its client says of itself
        self.epoch = 0  # how often its client has made it anew
        self.in_flight = 0  # bytes of entries that are not answered; of its session
        self._topic = topic
        self._completions = completions
        self._was_shut = was_shut
        self._wake = wake
        self._late: deque[tuple[bytes, Told]] = deque()  # what waits for the publish rate
        self._timer: Timer | None = None
        self.publisher = topic.publisher_for(completions)
        self._intake = EntryIntake(
            self.publisher,
            decompress,
            compress,
            entry_size_max(runtime.options.max_message_size),
            runtime.decompressed_size_max,
            topic.hold_chunks,
            topic.hold_encrypted,
        )
        self._sequences: ProducerSequences | None = None
        if topic.deduplication is not None:
            self.deduplicate(topic.deduplication.of(name))
        topic.instruct(self)

    def publish(self, entry: bytes, told: Told) -> None:
        """Publish one entry; told(error or None, message id) is called in the order of the calls,
        in the thread of callbacks; or never, when it was shut before: its client is told that."""
        if not self.is_open:
            return
        if self._late or self._waits():
            self._late.append((entry, told))
            return
        self._publish(entry, told)

    def _waits(self) -> bool:
        """Whether the publish rate is used up; then its session is woken when it is not."""
        until_ms = self._intake.waits_until()
        if not until_ms:
            return False
        timer = self._timer
        if timer is not None and timer.due_ms > until_ms:  # the rate is another one by now
            timer.cancel()
            timer = None
        if timer is None:
            self._timer = self._topic.runtime.clock.call_monotonic(until_ms, self._period_begins)
        return True

    def _period_begins(self) -> None:
        self._timer = None
        self._wake()

    def go_on(self) -> None:
        """Publish what waited for the publish rate, as far as that allows by now. By its session,
        as publish."""
        while self._late and self.is_open and not self._waits():
            self._publish(*self._late.popleft())

    def _publish(self, entry: bytes, told: Told) -> None:
        try:
            self._intake.publish(entry, told)
        except Exception as raised:
            error = raised
            # The client expects the answers in the order of its sends. What was sent before has no
            # receipt in the queue yet, unless it is confirmed.
            attempt(self._intake.settle)
            self._completions.jobs.post(lambda: told(error, None))

    def shut(self) -> None:
        """Return when everything that was sent is answered; refuse what comes now. Called by the
        broker too, when it closes or the topic is deleted."""
        self.is_open = False
        try:
            self._intake.flush()
        finally:
            self._was_shut()

    @property
    def topic(self) -> AnyTopic:
        return self._topic

    def close(self) -> None:
        try:
            if self.is_open:
                while self._late:
                    self._publish(*self._late.popleft())
                self.shut()
        finally:
            self._topic.producer_left(self.name, self)

    def fence(self, reason: str, kind: type[Exception] = errors.ProducerFenced) -> None:
        """Another producer has the topic to itself; the client learns it when it sends."""
        self._intake.fence(reason, kind)

    def hold(self, reason: str) -> None:
        """The backlog is too large: the client learns it when it sends, and makes another producer
        when there is room."""
        self.fence(reason, errors.ProducerBlockedQuotaExceededError)

    def release(self) -> None:
        """There is room again, for other producers."""

    def limit_delay(self, delay_max_ms: int) -> None:
        """See EntryIntake."""
        self._intake.limit_delay(delay_max_ms)

    def limit_rate(self, limit: RateLimit | None, meter: PublishMeter | None) -> None:
        """Publish no faster than this; what comes meanwhile waits. meter: told what is
        published."""
        self._intake.limit_rate(limit, meter)
        if self._late:
            self._wake()

    def deduplicate(
        self,
        sequences: ProducerSequences | None,
        catch_up: Callable[[], object] | None = None,
    ) -> None:
        """See EntryIntake. Of a guest duplicates are told from when it has heard of that: its own
        ids may lie below what is stored under its name, and are none."""
        self._sequences = sequences
        if sequences is None or self.tell_sequence is None:
            self._to_come = None
            self._intake.deduplicate(sequences, catch_up)
        else:
            self._to_come = (sequences, catch_up)
            self.tell_sequence(sequences.stored)

    def sequence_noted(self) -> None:
        """The guest has heard of it: what comes now is to be compared. By its session."""
        with self._topic.producers.unchanged():  # else it may just be turned off
            to_come, self._to_come = self._to_come, None
            if to_come is not None:
                self._intake.deduplicate(*to_come)

    def chunked_message_rate(self) -> float:
        """0: what comes over a connection is not counted."""
        return 0.0

    def last_sequence_id(self) -> int:
        """-1: it is not known."""
        return -1 if self._sequences is None else self._sequences.stored

    def abandon(self) -> None:
        """In a forked child: touch nothing."""
        self.is_open = False
        self._intake.abandon()
