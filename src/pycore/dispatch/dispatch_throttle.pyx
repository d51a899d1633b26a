# cython: language_level=3
"""Body of dispatch_throttle.pxd."""

import weakref

from libc.stdint cimport INT64_MAX, UINT64_MAX, int64_t, uint32_t, uint64_t

from pulsarx._core.atomic cimport atomic_load_u64
from pulsarx._pycore.ground.clock_core cimport ClockCore, Timer
from pulsarx._pycore.ground.rate_limit cimport RateLimit
from pulsarx._pycore.ground.weak_reference cimport referent
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.ledger.ledger_tail cimport LedgerSpan, LedgerTail
from pulsarx._pycore.message.entry_view cimport EntryView

cdef enum:
    # entries behind the one read last from which on there is a backlog.
    # Source: managedLedgerCursorBackloggedThreshold.
    BACKLOG_ENTRIES = 1000


# As Pulsar calls the counts of `events`.
THROTTLE_EVENTS = (
    "dispatch_throttled_msg_events_by_topic_limit",
    "dispatch_throttled_bytes_events_by_topic_limit",
    "dispatch_throttled_msg_events_by_subscription_limit",
    "dispatch_throttled_bytes_events_by_subscription_limit",
)


cdef class PeriodBegins:
    """See the pxd."""

    def __call__(self) -> None:
        cdef object found = referent(self.throttle)
        if found is not None:
            (<DispatchThrottle>found).period_begins()


cdef class DispatchThrottle:
    """See the pxd."""

    def __init__(self, ClockCore clock not None, LedgerTail tail not None,
                 bint counts_entries=False, bint spares_caught_up=False) -> None:
        """counts_entries: a batch counts once. spares_caught_up: consumers without a backlog are
        not limited."""
        self.clock = clock
        self.tail = tail
        self.counts_entries = counts_entries
        self.spares_caught_up = spares_caught_up
        self.on_period = PeriodBegins.__new__(PeriodBegins)
        self.on_period.throttle = weakref.ref(self)

    def limit(self, RateLimit of_topic, RateLimit of_subscription) -> None:
        """Heed these limits from now on; None: there is none."""
        self.of_topic = of_topic
        self.of_subscription = of_subscription
        if self.is_lifted():
            self.rest()

    cdef int rest(self) except -1:
        timer, self.timer = self.timer, None
        if timer is not None:
            (<Timer>timer).cancel()
        return 0

    cdef bint is_lifted(self) noexcept:
        return self.of_topic is None and self.of_subscription is None

    cdef bint lets_pass(self, LedgerReader reader) except -1:
        cdef int64_t topic_ms = 0
        cdef int64_t own_ms = 0
        if self.spares_caught_up:
            self.is_spared = reader is not None and self.is_caught_up(reader)
            if self.is_spared:
                return True
        if self.of_topic is not None:
            topic_ms = self.of_topic.waits_until()
        if self.of_subscription is not None:
            own_ms = self.of_subscription.waits_until()
        if topic_ms == 0 and own_ms == 0:
            return True
        if self.timer is None:
            if topic_ms:
                self.of_topic.limited_times += 1
                if self.of_topic.lacks_messages():
                    self.by_topic_messages += 1
                else:
                    self.by_topic_bytes += 1
            if own_ms:
                self.of_subscription.limited_times += 1
                if self.of_subscription.lacks_messages():
                    self.by_subscription_messages += 1
                else:
                    self.by_subscription_bytes += 1
        self.wake_at(max(topic_ms, own_ms))
        return False

    cdef int wake_at(self, int64_t due_ms) except -1:
        if self.timer is not None and self.timer.due_ms <= due_ms:
            return 0                         # it looks again then
        self.rest()
        self.timer = self.clock.arm_monotonic(due_ms, self.on_period)
        return 0

    def period_begins(self) -> None:
        """Have those look again that wait for the topic. Without the mutex, by the clock."""
        self.timer = None
        self.tail.wake()

    cdef bint is_caught_up(self, LedgerReader reader) except -1:
        cdef LedgerSpan span = reader.span
        cdef uint64_t left
        if span is None:
            return self.tail.writer is None or (
                atomic_load_u64(&self.tail.writer.c_ledger.entry_count) <= BACKLOG_ENTRIES)
        if reader.next_entry_id == UINT64_MAX:
            return False                     # it has not read there yet
        if span.writer is None:
            left = span.entry_count
        else:
            left = atomic_load_u64(&span.writer.c_ledger.entry_count)
        left -= min(left, reader.next_entry_id)
        if left > BACKLOG_ENTRIES:
            return False
        if span.writer is not None and self.tail.writer is span.writer:
            return True
        if self.between_of != span.ledger_id or not self.tail.is_same(self.between_changes):
            self.between_changes = self.tail.changes
            self.between_of = span.ledger_id
            self.between = self.tail.entries_between(
                span.ledger_id, <uint64_t>INT64_MAX if self.tail.writer is None
                else self.tail.writer.ledger_id)
        left += self.between
        if self.tail.writer is not None:
            left += atomic_load_u64(&self.tail.writer.c_ledger.entry_count)
        return left <= BACKLOG_ENTRIES

    cdef int take(self, EntryView view, uint32_t messages, uint32_t entries) except -1:
        cdef int64_t size = view.entry_size
        cdef uint32_t at
        if self.is_spared:
            return 0
        if view.chunked is not None:
            size = 0
            for at in range(view.chunked.count):
                size += view.chunked.chunks[at].entry_size
            entries *= view.chunked.count
        elif messages < view.message_count:
            size = size * messages // view.message_count
        if self.counts_entries:
            messages = entries
        if self.of_topic is not None:
            self.of_topic.take(messages, size)
        if self.of_subscription is not None:
            self.of_subscription.take(messages, size)
        return 0

    def events(self) -> tuple[int, int, int, int]:
        """Count how often something waited: for messages and bytes of the topic's limit, and of its
        own."""
        return (self.by_topic_messages, self.by_topic_bytes, self.by_subscription_messages,
                self.by_subscription_bytes)


def throttle_statistics(DispatchThrottle throttle) -> dict[str, int]:
    """Count how often a subscription had to wait, and which limit was used up, by Pulsar's
    names."""
    events = (0, 0, 0, 0) if throttle is None else throttle.events()
    return dict(zip(THROTTLE_EVENTS, events, strict=True))
