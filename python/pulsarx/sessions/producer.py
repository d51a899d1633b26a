"""A producer at the other end of a connection, as the broker sees it."""

from __future__ import annotations

import logging
from collections import deque

from pulsarx import errors
from pulsarx._pycore.publish.entry_intake import EntryIntake
from pulsarx.compression import compress, decompress
from pulsarx.ground.attempt import attempt
from pulsarx.wire.frames import entry_size_max

_log = logging.getLogger("pulsarx")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx._pycore.ground.rate_limit import PublishMeter, RateLimit
    from pulsarx._pycore.ledger.open_transactions import TransactionCore
    from pulsarx._pycore.publish.completion_queue import CompletionQueue
    from pulsarx._pycore.publish.entry_answers import EntryAnswer
    from pulsarx._pycore.publish.producer_sequences import ProducerSequences
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.topics.producer_registry import ProducerRegistry
    from pulsarx.clock import Timer
    from pulsarx.message_id import MessageId
    from pulsarx.sessions.context import SessionContext

    Late = tuple[bytes, EntryAnswer, int, TransactionCore | None]

    class ProducerSession(Protocol):
        """The session of a producer, as that sees it. In any thread."""

        def was_shut(self, producer: SessionProducer) -> None:
            """The broker has shut it, or the session itself."""

        def is_late(self, producer: SessionProducer) -> None:
            """The session is to call go_on soon. With mutexes held."""

        def tell_otherwise(
            self,
            producer: SessionProducer,
            sequence_id: int,
            error: Exception | None,
            message_id: MessageId | None,
            kept: list[int] | None,
        ) -> None:
            """Tell the end of a send that is no plain receipt. With the publisher's mutex held."""


_NONE_LATE: Any = ()


class SessionProducer(EntryIntake):
    """Publishes the entries of one producer. In ProducerRegistry it stands where a producer of this
    process does."""

    is_forgotten = False  # its session keeps it

    def __init__(
        self,
        topic: AnyTopic,
        name: str,
        completions: CompletionQueue,
        session: ProducerSession,
        tell_sequence: Callable[[int], object] | None = None,
    ) -> None:
        """session: of its connection, as answer_over says. tell_sequence: of a guest, which numbers
        its messages itself: tells it that duplicates will be told, and the highest id that is
        stored under its name."""
        runtime = topic.runtime
        super().__init__(
            topic.publisher_for(completions),
            decompress,
            compress,
            entry_size_max(runtime.options.max_message_size),
            runtime.decompressed_size_max,
            topic.hold_chunks,
            runtime.clock,
        )
        self.name = name
        self.context: SessionContext | None = None  # of its session
        self._tell_sequence = tell_sequence
        self.tell_fenced: Callable[[Exception], object] | None = None  # of a guest
        self._kept: list[ProducerRegistry] = []  # of partitions that are kept for its client
        # Of a guest: what its entries are compared with once it says so, and whether entries were
        # stored that those do not know.
        self._to_come: tuple[ProducerSequences, Callable[[], object]] | None = None
        self._is_behind = False
        self.described: dict[str, Any] = {}  # for statistics: what its client says of itself
        self.epoch = 0  # how often its client has made it anew
        self._topic = topic
        self._session = session
        # What waits for the publish rate, and until when, 0: without end, and of which transaction;
        # None: what is behind it is to be compared.
        self._late: deque[Late | None] = _NONE_LATE
        self._came_count = 0  # entries
        # Of a guest: when the time of what comes now is over; by how much its clock differs.
        self._expires_ms = 0
        self._skew_ms: int | None = None
        self._is_dropping = False  # what came last; what was not read meanwhile waited as well
        self._timer: Timer | None = None
        self._sequences: ProducerSequences | None = None
        found = topic.deduplication
        if found is not None:
            self._sequences = found.of(name)
            if tell_sequence is None:
                super().deduplicate(self._sequences)
            else:
                self._to_come = (self._sequences, found.catch_up)  # told with its name
        topic.instruct(self)

    def take(
        self, sequence_id: int, entry: bytes, transaction: TransactionCore | None = None
    ) -> None:
        """An entry has come: publish it, and answer it."""
        self.publish_next(entry, self.begin_answer(sequence_id, len(entry)), transaction)

    def publish_next(
        self, entry: bytes, answer: EntryAnswer, transaction: TransactionCore | None = None
    ) -> None:
        """Publish one entry, which is answered in the order of the calls; or never, when it was
        shut before: its client is told that. transaction: that it is of."""
        if not self.is_open:
            return
        self._came_count += 1
        if self._late or self._is_dropping or self._waits():
            self._late = self._late or deque()
            self._late.append((entry, answer, self._expires_ms, transaction))
            self.is_gated: bool = True
            self.go_on()
            return
        self._publish(entry, answer, transaction)

    def sent_at(self, sent_ms: int, timeout_ms: int) -> None:
        """The messages from now on were sent by its guest then or later, by the guest's clock, and
        are not to be published once so much time has passed. By its session."""
        skew_ms = self._topic.runtime.clock.steady_ms() - sent_ms
        if self._skew_ms is not None:
            skew_ms = min(skew_ms, self._skew_ms)  # more of it is the way
        self._skew_ms = skew_ms
        self._expires_ms = sent_ms + skew_ms + timeout_ms

    def _waits(self) -> bool:
        """Whether the publish rate is used up; then its session is woken when it is not."""
        until_ms = self.waits_until()
        if not until_ms:
            return False
        self._wake_at(until_ms)
        return True

    def _wake_at(self, due_ms: int) -> None:
        timer = self._timer
        if timer is not None and timer.due_ms > due_ms:
            timer.cancel()
            timer = None
        if timer is None:
            self._timer = self._topic.runtime.clock.call_monotonic(due_ms, self._period_begins)

    def _period_begins(self) -> None:
        self._timer = None
        self._session.is_late(self)

    def go_on(self) -> None:
        """Publish what waited for the publish rate, as far as that allows by now. By its
        session."""
        self._drop_expired()
        while self._late and self.is_open and not self._waits():
            self._take_late()
        self.is_gated = bool(self._late)

    def _drop_expired(self) -> None:
        """Forget what has waited longer than its send may take."""
        while self._late and self.is_open:
            first = self._late[0]
            if first is not None:
                if not first[2]:
                    return
                if first[2] > self._topic.runtime.clock.steady_ms():
                    self._wake_at(first[2])
                    return
                self._is_dropping = True
            self._drop_late()

    def _take_late(self) -> None:
        late = self._late.popleft()
        if late is None:
            self._compare()
        else:
            self._publish(late[0], late[1], late[3])

    def _drop_late(self) -> None:
        late = self._late.popleft()
        if late is None:
            self._compare()
            return
        self.refuse(
            late[1],
            errors.Timeout(
                detail=f"send to {self._topic.name}: no room for it in the publish rate"
            ),
        )

    def give_up(self, count: int) -> None:
        """Forget what still waits of so many entries, of all that came: their sends have timed
        out. By its session."""
        waiting = sum(each is not None for each in self._late)
        while self._late and self._came_count - waiting < count:
            waiting -= self._late[0] is not None
            self._drop_late()

    def _publish(
        self, entry: bytes, answer: EntryAnswer, transaction: TransactionCore | None
    ) -> None:
        self._is_dropping = False
        self._is_behind = self._is_behind or self._to_come is not None
        try:
            self.publish(entry, answer, transaction)
        except Exception as raised:
            self.refuse(answer, raised)

    def refuse(self, answer: EntryAnswer, error: Exception) -> None:
        """Answer an entry with an error, and publish nothing of it."""
        # The client expects the answers in the order of its sends. What was sent before has none
        # yet, unless it is confirmed.
        attempt(self.settle)
        answer.tell(error, None)

    def otherwise(
        self,
        sequence_id: int,
        error: Exception | None,
        message_id: MessageId | None,
        kept: list[int] | None,
    ) -> None:
        """See EntryAnswers."""
        self._session.tell_otherwise(self, sequence_id, error, message_id, kept)

    def shut(self) -> None:
        """Return when everything that was sent is answered; refuse what comes now. Called by the
        broker too, when it closes or the topic is deleted."""
        self.is_open: bool = False
        try:
            super().shut()
        finally:
            self._session.was_shut(self)

    @property
    def topic(self) -> AnyTopic:
        return self._topic

    def close(self) -> None:
        try:
            if self.is_open:
                self._drop_expired()
                while self._late:
                    self._take_late()
                self.shut()
            else:
                super().shut()  # what failed had it closed as it was
        finally:
            self._give_back()
            self._topic.producer_left(self.name, self)

    def fence(
        self, reason: str, kind: type[errors.PulsarException] = errors.ProducerFenced
    ) -> None:
        """Another producer has the topic to itself: a guest is told so, another client learns it
        when it sends."""
        super().fence(reason, kind)
        self._give_back()
        if self.tell_fenced is not None:
            self.tell_fenced(kind(detail=reason))

    def hold(self, reason: str) -> None:
        """The backlog is too large: the client learns it when it sends, and makes another producer
        when there is room."""
        super().fence(reason, errors.ProducerBlockedQuotaExceededError)

    def keep(self, producers: ProducerRegistry) -> None:
        """Keep a new partition for its client, which has the others to itself, until it comes."""
        self._kept.append(producers)
        producers.reserve(self.name, self)

    def _give_back(self) -> None:
        kept, self._kept = self._kept, []
        for producers in kept:
            producers.release(self)

    def release(self) -> None:
        """There is room again, for other producers."""

    def limit_rate(self, limit: RateLimit | None, meter: PublishMeter | None) -> None:
        """Publish no faster than this; what comes meanwhile waits. meter: told what is
        published."""
        super().limit_rate(limit, meter)
        if self._late:
            self._session.is_late(self)

    def deduplicate(
        self,
        sequences: ProducerSequences | None,
        catch_up: Callable[[], object] | None = None,
    ) -> None:
        """See EntryIntake. Of a guest duplicates are told from when it has heard of that: its own
        ids may lie below what is stored under its name, and are none."""
        self._sequences = sequences
        self._to_come = None
        if sequences is None or self._tell_sequence is None:
            super().deduplicate(sequences, catch_up)
        else:
            assert catch_up is not None
            self._to_come, self._is_behind = (sequences, catch_up), True
            self._tell_sequence(sequences.stored)

    def sequence_noted(self) -> None:
        """The guest has heard of it: what comes now is to be compared. By its session."""
        if self._late:
            self._late.append(None)
        else:
            self._compare()

    def _compare(self) -> None:
        with self._topic.producers.unchanged():  # else it may just be turned off
            to_come, self._to_come = self._to_come, None
            if to_come is not None and self.is_open:
                sequences, catch_up = to_come
                try:
                    super().deduplicate(sequences, catch_up if self._is_behind else None)
                except Exception as error:
                    # What is stored could not be flushed, or read. It comes again, and begins
                    # with that.
                    _log.error(
                        "producer %s on %s comes again, as what it has stored cannot be read: %s",
                        self.name,
                        self._topic.name,
                        errors.detail_of(error),
                    )
                    self.is_open = False
                    self._session.was_shut(self)
                self._is_behind = False

    @property
    def tells_duplicates(self) -> bool:
        """Whether its entries are compared, or will be when it is told of it."""
        return self._sequences is not None

    def last_sequence_id(self) -> int:
        """The sequence id of the last message it published, here or with the owner before; -1: of
        none."""
        return max(super().last_sequence_id(), self.known_sequence_id())

    def known_sequence_id(self) -> int:
        """Up to which duplicates of it are told; -1: none are."""
        return -1 if self._sequences is None else self._sequences.stored

    def abandon(self) -> None:
        """In a forked child: touch nothing."""
        self.is_open = False
        super().abandon()
