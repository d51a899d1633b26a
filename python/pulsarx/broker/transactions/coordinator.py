"""Opens and ends the transactions of an owned folder. An end is one commit of the catalogue: before
it the transaction is open, after it decided, for every process and whatever is killed.

    a commit:  nothing joins any more, its entries are flushed,
               the catalogue is told (from here on it is committed),
               readers see its messages in all topics at one moment, acknowledgements count

What a kill leaves between the last two steps is done when the topics are opened. Transactions of a
process end with it: what they wrote is aborted when its ledgers are recovered. Those of clients of
a network go on (transaction_log, taking_up).
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock, RLock
from pulsarx._pycore.ledger.open_transactions import release
from pulsarx.broker import life_log
from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.topic_operations import ENDED_KEPT
from pulsarx.broker.transactions.broker_transaction import COORDINATOR, outcome_text
from pulsarx.ground.attempt import attempt, insist

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.transactions.broker_transaction import BrokerTransaction
    from pulsarx.broker.transactions.participants import (
        TransactedLedger,
        TransactedSubscription,
        TransactingRuntime,
    )

    MakeTransaction = Callable[[TransactingRuntime, int, int], BrokerTransaction]
    Messages = dict[TransactedLedger, list[list[int]]]  # of a transaction, by topic

RESERVED = 1000  # numbers that one commit puts into use
AGAIN_MS = 1000  # until an end is tried again that nobody waits for
SETTLED_AT = 64  # transactions whose acknowledgements the catalogue keeps, at least


class TransactionCoordinator:
    """Calls of the control plane. Its lock orders ends; it is taken behind those of topics, and
    before those of their transactions, producers, ledgers and subscriptions."""

    number = COORDINATOR

    def __init__(self, runtime: TransactingRuntime) -> None:
        self._runtime = runtime
        self._catalogue = runtime.catalogue
        self._lock = RLock()
        self._numbers = Lock()
        self._next = self._reserved = runtime.catalogue.state.next_transaction
        self._open: dict[int, BrokerTransaction] = {}
        # Those committed, and aborted, of this owner, and whose they were.
        self._ended: dict[int, tuple[bool, str | None]] = {}
        # By the ids of their cursors: those with acknowledgements that are applied, and may not be
        # flushed. Those with some that the catalogue may keep, and that are not applied yet.
        self._unsettled: dict[int, TransactedSubscription] = {}
        self._unapplied: set[tuple[int, int]] = set()  # and the number of the transaction
        self._since_settled = 0  # transactions
        self.created_count: int = 0
        self.committed_count: int = 0
        self.aborted_count: int = 0
        self.timeout_count: int = 0

    # Opening --------------------------------------------------------------------------------------

    def open(self, make: MakeTransaction, timeout_ms: int) -> BrokerTransaction:
        """Open a transaction, which is aborted after timeout_ms (1 and more) unless it has ended.
        make: as BrokerTransaction. ValueError: timeout_ms is above the highest one.
        NotAllowedError: too many are open."""
        self._runtime.state.require_open()
        options = self._runtime.options
        seconds = options.max_transaction_timeout_in_seconds
        if timeout_ms > seconds * 1000:
            raise ValueError(
                f"open a transaction with a timeout of {timeout_ms} ms: the broker option "
                f"max_transaction_timeout_in_seconds allows {seconds} s"
            )
        count = options.max_active_transactions_per_coordinator
        number = self._take_number()
        with self._lock:
            if count and len(self._open) >= count:
                raise errors.NotAllowedError(
                    detail=f"open a transaction: {len(self._open)} are open, as many as the broker "
                    "option max_active_transactions_per_coordinator allows"
                )
            made = make(self._runtime, number, timeout_ms)
            if made.goes_on:
                self._runtime.transaction_log.opened(number, timeout_ms, made.opened_ms, made.role)
            self._arm(made, timeout_ms)
            self.created_count += 1
        return made

    def take_up(self, transaction: BrokerTransaction) -> None:
        """Go on with one that the owner before has left open."""
        over_ms = transaction.opened_ms + transaction.timeout_ms
        with self._lock:
            self._arm(transaction, max(over_ms - self._runtime.clock.now_ms(), 1))

    def _arm(self, transaction: BrokerTransaction, delay_ms: int) -> None:
        end_late = partial(self.end_late, transaction, timed_out=True)
        transaction.timer = self._later(delay_ms, end_late)
        self._open[transaction.number] = transaction

    def _later(self, delay_ms: int, job: Callable[[], object]) -> Any:
        return self._runtime.clock.call_after(delay_ms, partial(self._runtime.background.post, job))

    def _take_number(self) -> int:
        with self._numbers:
            if self._next == self._reserved:
                reserved = self._reserved + RESERVED
                self._catalogue.commit([changes.reserve_transactions(reserved)])
                self._reserved = reserved
            self._next += 1
            return self._next - 1

    def open_transactions(self) -> list[BrokerTransaction]:
        """The transactions that have not ended, by their numbers."""
        return list(self._open.values())

    @property
    def next_number(self) -> int:
        """The number of the next transaction."""
        return self._next

    def find(self, number: int) -> BrokerTransaction | None:
        """The transaction of this number; None: it has ended, or never was."""
        return self._open.get(number)

    def was_committed(self, number: int) -> bool | None:
        """Whether a transaction was committed, or aborted; None: it is open, or ended too long ago,
        or never was, or ended with its process."""
        ended = self._catalogue.state.ended.get(number)
        if ended is not None:
            return ended.committed
        known = self._ended.get(number)
        return None if known is None else known[0]

    def how_it_ended(self, number: int) -> str:
        """The text that errors have behind "has ended", of one that is not open."""
        known = self._catalogue.state.ended.get(number)
        return "" if known is None else outcome_text(known.committed, known.ended_ms)

    def was_opened_by(self, number: int, role: str) -> bool:
        """Whether a transaction that has ended is known to be of a role."""
        known = self._ended.get(number)
        return known is not None and known[1] == role

    # Ending ---------------------------------------------------------------------------------------

    def commit(self, transaction: BrokerTransaction) -> None:
        """Let all see what was sent in it, and let what was acknowledged count. Durable on return.

        InvalidTxnStatusError: it was aborted. StorageError: what became of it is not known; called
        again, this goes on. It is ended at its deadline in any case.
        """
        self._end(transaction, committed=True)

    def abort(self, transaction: BrokerTransaction) -> None:
        """Let nobody see what was sent in it, and have what was acknowledged delivered again.
        InvalidTxnStatusError, StorageError: as of commit."""
        self._end(transaction, committed=False)

    def end_late(self, transaction: BrokerTransaction, *, timed_out: bool = False) -> None:
        """Nobody else ends it: it is aborted, or ended as was asked for where the catalogue may
        know of that. It is tried until it is done, as readers wait for it."""
        if not self._is_open(transaction) or not self._runtime.state.is_open:
            return
        try:
            self._end(transaction, committed=False, timed_out=timed_out)
        except (errors.PulsarException, MemoryError) as error:
            if self._is_open(transaction):
                if timed_out and transaction.asked is None:
                    transaction.time_out()
                life_log.info("transaction %s is ended later: %s", transaction,
                              errors.detail_of(error) or error)  # fmt: skip
                again = partial(self.end_late, transaction, timed_out=timed_out)
                transaction.timer = self._later(AGAIN_MS, again)

    def _is_open(self, transaction: BrokerTransaction) -> bool:
        return self._open.get(transaction.number) is transaction

    def _end(
        self, transaction: BrokerTransaction, *, committed: bool, timed_out: bool = False
    ) -> None:
        with transaction.ending:
            if not self._is_open(transaction):
                self._answer_again(transaction, committed)
                return
            with transaction.joining:
                transaction.is_open = False
            transaction.is_ended = True
            transaction.wake_waiting()
            was_asked = transaction.asked is not None
            wanted = committed if transaction.asked is None else transaction.asked
            wanted = wanted and not transaction.lost
            topics = list(transaction.topics)
            messages = {each.ledgers: each.messages(transaction) for each in topics}
            try:
                # Not under the lock: ends of others need not wait for it.
                self._flush(messages, wanted)
                with self._lock:
                    self._tell_catalogue(transaction, wanted, messages)
                    decided = self._decide(transaction, wanted, messages)
            except errors.StorageFullError:
                if self._is_open(transaction) and not timed_out:
                    self._reopen(transaction)
                raise
            for ledger in messages:
                attempt(partial(show_on, ledger))
            if timed_out and not was_asked and not decided:
                self.timeout_count += 1
                transaction.time_out()
                life_log.info("transaction %s was aborted: %d ms were over", transaction,
                              transaction.timeout_ms)  # fmt: skip
        if decided != committed:
            self._answer_again(transaction, committed)

    def _flush(self, messages: Messages, wanted: bool) -> None:
        durability = self._runtime.durability
        for ledger in messages:
            if wanted and durability != "os":
                ledger.flush(sealed=False)
            elif durability == "sync":  # else readers could not pass over what is aborted
                attempt(partial(ledger.flush, sealed=False))

    def _decide(self, transaction: BrokerTransaction, wanted: bool, messages: Messages) -> bool:
        """The catalogue is told: whether it was committed."""
        # Where an earlier try was not known to have been told, that one counts.
        told = self._catalogue.state.ended.get(transaction.number)
        decided = wanted if told is None else told.committed
        self._ended[transaction.number] = decided, transaction.role
        transaction.outcome = decided, self._runtime.clock.now_ms()
        if len(self._ended) > ENDED_KEPT:
            del self._ended[next(iter(self._ended))]
        if decided:
            self.committed_count += 1
        else:
            self.aborted_count += 1
        self._open.pop(transaction.number)
        if transaction.goes_on:
            attempt(partial(self._runtime.transaction_log.ended, transaction.number))
        insist(partial(self._apply, transaction, messages, decided))
        return decided

    def _reopen(self, transaction: BrokerTransaction) -> None:
        """Nothing was told, so more may be done in it."""
        for each in list(transaction.subscriptions):
            each.reopen_transaction(transaction)
        transaction.is_ended = False
        transaction.reopen()

    def _answer_again(self, transaction: BrokerTransaction, committed: bool) -> None:
        """It has ended: the same end gets the same answer."""
        known = self.was_committed(transaction.number)
        if known is None or known != committed:
            how = ", long ago" if known is None else ""
            raise errors.InvalidTxnStatusError(
                detail=f"{'commit' if committed else 'abort'} transaction {transaction}: it has "
                f"ended{how}{transaction.how_it_ended()}"
            )

    def _tell_catalogue(
        self,
        transaction: BrokerTransaction,
        committed: bool,
        messages: Messages,
    ) -> None:
        subscriptions = [
            (each, each.record.cursor_id)
            for each in transaction.subscriptions
            if each.record is not None
        ]
        if not any(messages.values()) and not (committed and subscriptions):
            return  # a kill could undo nothing
        settled = self._take_settled()
        # In front of the end, of which nothing is applied yet.
        others = [changes.settle_cursors(settled)] if settled else []

        def operations(state: CatalogueState) -> list[dict[str, Any]]:
            if transaction.number in state.ended:
                return others  # by an earlier try of which nothing was known
            rows = {}
            for ledger, runs in messages.items():
                record = ledger.record()
                there = [] if record is None else [each.ledger_id for each in record.ledgers]
                kept = [each for each in runs if each[0] in there]
                if kept:  # else the topic was deleted meanwhile
                    rows[ledger.name] = kept
            acknowledged = []
            for each, cursor_id in subscriptions if committed else ():
                acks = each.transaction_acks(transaction)
                if not each.removed and (acks["individual"] or acks["cumulative"]):
                    acknowledged.append([cursor_id, acks["individual"], acks["cumulative"]])
            if not rows and not acknowledged:
                return others  # nothing that a kill could undo
            end = changes.end_transaction(
                transaction.number,
                committed=committed,
                order=state.last_end + 1,
                ended_ms=self._runtime.clock.now_ms(),
                messages=rows,
                acknowledged=acknowledged,
            )
            transaction.asked = committed
            self._unapplied.update((row[0], transaction.number) for row in acknowledged)
            return [*others, end]

        try:
            self._catalogue.commit(operations, flush=self._runtime.durability != "os")
        except errors.StorageFullError:
            transaction.asked = None
            for _, cursor_id in subscriptions:
                self._unapplied.discard((cursor_id, transaction.number))
            raise
        self._forget_settled(settled)
        if self._runtime.durability == "os":
            self._runtime.flush_catalogue_soon()

    def _apply(self, transaction: BrokerTransaction, messages: Messages, committed: bool) -> None:
        """Do what the catalogue says by now. No step is left out because another one failed, and
        those that failed are taken again later. Taken again where memory ran out."""
        timer, transaction.timer = transaction.timer, None
        if timer is not None:
            timer.cancel()
        if not committed:
            for ledger, runs in messages.items():
                ledger.aborted.add(runs)  # first: what follows shows all that is not
        # Sequence ids first: a snapshot of what readers see has those of what was committed.
        steps: list[Callable[[], object]] = [
            partial(each.leave, transaction, committed) for each in list(transaction.senders)
        ]
        steps.append(partial(release, transaction, committed))
        for each in list(transaction.subscriptions):
            steps.append(partial(self._end_at, each, transaction, committed))
        self._since_settled += bool(committed and transaction.subscriptions)
        failed = [(step, error) for step in steps if (error := attempt(step)) is not None]
        if failed:
            if any(isinstance(error, MemoryError) for _, error in failed):
                raise MemoryError(f"end transaction {transaction}: out of memory")
            for _, error in failed:
                life_log.info("transaction %s has ended, and what follows is done later: %s",
                              transaction, errors.detail_of(error) or error)  # fmt: skip
            self._later(AGAIN_MS, partial(self._apply_late, transaction, messages, committed))

    def _apply_late(
        self, transaction: BrokerTransaction, messages: Messages, committed: bool
    ) -> None:
        if self._runtime.state.is_open:
            with self._lock:
                insist(partial(self._apply, transaction, messages, committed))
            for ledger in messages:
                attempt(partial(show_on, ledger))

    def _end_at(
        self, subscription: TransactedSubscription, transaction: BrokerTransaction, committed: bool
    ) -> None:
        if not committed:
            subscription.abort_transaction(transaction)
            return
        subscription.commit_transaction(transaction)
        if subscription.record is not None:
            self._unapplied.discard((subscription.record.cursor_id, transaction.number))
        self.applied_at(subscription)

    # Acknowledgements that a kill must not undo ---------------------------------------------------

    def applied_at(self, subscription: TransactedSubscription) -> None:
        """A subscription has all that transactions acknowledged there; its cursor may not be
        flushed."""
        if subscription.record is not None:
            self._unsettled[subscription.record.cursor_id] = subscription

    def _take_settled(self) -> list[int]:
        """Flush the cursors of transactions of before, when there are enough of them; those of
        which the catalogue need not keep acknowledgements any more."""
        if self._since_settled < SETTLED_AT:
            return []
        self._since_settled = 0
        return self._flushed()

    def _flushed(self) -> list[int]:
        """The cursors that keep what was acknowledged. One that cannot be flushed stops nobody."""
        unapplied = {cursor_id for cursor_id, _ in self._unapplied}
        return [
            cursor_id
            for cursor_id, each in list(self._unsettled.items())
            if cursor_id not in unapplied and self._is_flushed(each)
        ]

    def _is_flushed(self, subscription: TransactedSubscription) -> bool:
        if subscription.removed or subscription.tracker.closed:
            return True  # closing flushes it
        return attempt(subscription.tracker.flush) is None

    def _forget_settled(self, cursor_ids: list[int]) -> None:
        for each in cursor_ids:
            self._unsettled.pop(each, None)

    def settle(self) -> None:
        """Let the catalogue forget acknowledgements: the cursors keep them from now on."""
        with self._lock:
            settled = self._flushed()
            if self._are_kept(settled):
                self._catalogue.commit([changes.settle_cursors(settled)])
            self._forget_settled(settled)

    def _are_kept(self, cursor_ids: list[int]) -> bool:
        """Whether the catalogue keeps acknowledgements of one of these cursors."""
        ended = list(self._catalogue.state.ended.values())
        return any(row[0] in cursor_ids for each in ended for row in each.acknowledged)

    @contextmanager
    def moving(self, subscription: TransactedSubscription) -> Iterator[None]:
        """A subscription is moved: what was acknowledged before does not count again, at the next
        opening of its topic for one. With the lock of the topic."""
        with self._lock:
            record = subscription.record
            if record is not None and self._are_kept([record.cursor_id]):
                subscription.tracker.flush()  # should this be killed before it is moved
                self._catalogue.commit([changes.settle_cursors([record.cursor_id])])
            yield
            if record is not None:
                self._unapplied -= {each for each in self._unapplied if each[0] == record.cursor_id}

    # Leaving --------------------------------------------------------------------------------------

    def abort_all(self, owned: Callable[[BrokerTransaction], bool]) -> None:
        """Abort those of somebody who leaves."""
        failure: Exception | None = None
        for each in self.open_transactions():
            if owned(each):
                try:
                    self.abort(each)
                except errors.InvalidTxnStatusError:
                    pass  # it has ended, as was asked for before
                except errors.PulsarException as error:
                    failure = failure or error
        if failure is not None:
            raise failure


def show_on(ledger: TransactedLedger) -> None:
    """Readers of a topic see more: what was held back is sealed, and what was aborted passed
    over."""
    waiting = ledger.aborted.waiting_ledgers()
    counts = {
        each.ledger_id: ledger.published_counts(each)[1]
        for each in (ledger.ledgers() if waiting else ())
        if each.ledger_id in waiting
    }
    ledger.seal_again()
    ledger.aborted.pass_up_to(counts)
