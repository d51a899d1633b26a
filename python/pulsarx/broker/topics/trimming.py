"""Removes the ledgers of a topic that are not needed any more."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.locks import RLock
from pulsarx.broker import life_log
from pulsarx.broker.policies.retention import removable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.catalogue.records import LedgerRecord
    from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.broker.topics.compaction import TopicCompaction
    from pulsarx.clock import Timer
    from pulsarx.topic_name import TopicName


_END = (1 << 63, 0)  # behind all ledgers


class Trimming:
    """Any thread may call `soon`; it runs in the broker's background or a call of the control
    plane."""

    __slots__ = (
        "_before",
        "_closed",
        "_compaction",
        "_durable",
        "_everyone",
        "_ledger",
        "_lock",
        "_name",
        "_runtime",
        "_timer",
        "_topic",
        "_was_held",
        "held_by_leases",
    )

    def __init__(
        self,
        topic: TopicName,
        runtime: BrokerRuntime,
        ledger: ManagedLedger,
        lock: RLock,
        durable: Callable[[], list[Subscription]],
        everyone: Callable[[], list[Subscription]],
        before: Callable[[list[int]], None],
        compaction: TopicCompaction,
    ) -> None:
        """lock: of the topic, so that no subscription comes while it is decided what goes.
        durable: the subscriptions that hold ledgers; everyone: those that are told. before: called
        with the ids of ledgers that go."""
        self._before = before
        self._compaction = compaction
        self._name = topic
        self._topic = topic.full
        self._runtime = runtime
        self._ledger = ledger
        self._lock = lock
        self._durable = durable
        self._everyone = everyone
        self._timer: Timer | None = None
        self._closed = False
        self._was_held = False  # by an open transaction, at the last look
        # How many ledgers, and bytes, only leases kept from going at the last look.
        self.held_by_leases: tuple[int, int] = (0, 0)

    def soon(self) -> None:
        """Trim in the background."""
        self._runtime.background.post(self.run)

    def no_longer_held(self) -> None:
        """A transaction has ended: trim what it may have kept."""
        if self._was_held:
            self.soon()

    def make_room(self) -> None:
        """The device is full: trim in the background, the last ledger, too; also the open one,
        where everything in it is acknowledged."""
        if self._is_drained():
            self._ledger.end_open()
        self._runtime.background.post(partial(self.run, to_the_last=True))

    def _is_drained(self) -> bool:
        """Whether the durable subscriptions, of which there are some, hold nothing."""
        ledgers = self._ledger.ledgers()
        subscriptions = self._durable()
        if not ledgers or not subscriptions:
            return False
        last = ledgers[-1]
        end = (last.ledger_id, self._ledger.published_counts(last)[1])
        try:
            return all(each.mark_delete() >= end for each in subscriptions)
        except errors.AlreadyClosed:
            return False  # it is being closed or deleted

    def run(self, to_the_last: bool = False) -> list[int]:
        """Remove ledgers that are not needed any more; returns their ids.

        to_the_last: also the last one, which else stays until another one is behind it, as where
        the device is full there is no room for that."""
        self._ledger.seal_again()
        with self._lock:
            if self._closed or self._ledger.tail.entries_held():
                self._was_held = True
                return []  # it is looked again when no transaction is open
            self._was_held = False
            spared_ms = self._runtime.trims_from_ms - self._runtime.clock.now_ms()
            if spared_ms > 0:
                if self._timer is None:
                    self._timer = self._runtime.clock.call_after(spared_ms, self._due)
                return []
            try:
                policies = self._runtime.policies.of_topic(self._name)
            except errors.TopicNotFound:
                return []  # it was deleted just now, with its namespace
            subscriptions = self._durable()
            # A topic without a subscription keeps its messages unless a policy says otherwise:
            # a log written today and read tomorrow is an ordinary use in process.
            if not subscriptions and not policies.retention_is_set:
                return []
            try:
                held_from, at = min((each.mark_delete() for each in subscriptions), default=_END)
            except errors.AlreadyClosed:
                return []  # closing the topic was refused half way: its next owner looks again
            ledgers = self._ledger.ledgers()
            if to_the_last and ledgers and held_from == ledgers[-1].ledger_id:
                last = ledgers[-1]
                held_from += last.state == "sealed" and at >= last.message_count
            now_ms = self._runtime.clock.now_ms()
            leased_from, leased_ms = self._runtime.catalogue.state.leased_from(self._topic, now_ms)
            held_from = min(held_from, self._compaction.held_from())
            wanted = removable(ledgers, held_from, policies.retention, now_ms)
            removed = [each for each in wanted if each < leased_from]
            kept = set(wanted[len(removed) :])
            self._note_held([each for each in ledgers if each.ledger_id in kept], leased_ms)
            if removed:
                removed = self.remove(removed)
            if removed:
                life_log.debug("%s: trimmed ledgers %s", self._topic, removed)
                for subscription in self._everyone():
                    subscription.ledger_changed()
            self._look_again(policies.retention.time_minutes > 0 or leased_ms > 0)
            return removed

    def _note_held(self, ledgers: list[LedgerRecord], leased_ms: int) -> None:
        """Note what only leases keep, the last of them until leased_ms; told when it begins."""
        before, size = self.held_by_leases[0], sum(each.size for each in ledgers)
        self.held_by_leases = len(ledgers), size
        if ledgers and not before:
            life_log.info(
                "%s: jobs that read it keep %d ledgers (%d bytes), from %d on, that retention "
                "would remove; their leases end in %d ms at the latest, unless they are renewed",
                self._topic, len(ledgers), size, ledgers[0].ledger_id,
                leased_ms - self._runtime.clock.now_ms(),
            )  # fmt: skip
        elif before and not ledgers:
            life_log.info("%s: leases keep nothing from retention any more", self._topic)

    def remove(self, ledger_ids: list[int]) -> list[int]:
        """Remove sealed ledgers, as ManagedLedger.remove. The topic's lock is held."""
        try:
            self._before(ledger_ids)
        except errors.StorageFullError:
            # Trimming makes room. A kill before the next try would lose what they held for it.
            removed = self._ledger.remove(ledger_ids)
            self._before(ledger_ids)
            return removed
        return self._ledger.remove(ledger_ids)

    def _look_again(self, something_expires: bool) -> None:
        """Arm a look after the retention interval, while a time limit or a lease may expire."""
        sealed = any(each.state == "sealed" for each in self._ledger.ledgers())
        if self._timer is None and sealed and something_expires:
            interval_ms = self._runtime.options.retention_check_interval_in_seconds * 1000
            self._timer = self._runtime.clock.call_after(interval_ms, self._due)

    def _due(self) -> None:
        self._timer = None
        self.soon()

    def stop(self) -> None:
        """Look no more. The topic's lock is held, or nobody else knows this yet."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
