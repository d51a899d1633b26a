"""Opens and ends the transactions of an owned folder. An end is one commit of the catalogue: before
it the transaction is open, after it decided, for every process and whatever is killed.

    a commit:  nothing joins any more, its entries are flushed,
               the catalogue is told (from here on it is committed),
               readers see its messages in all topics at one moment, acknowledgements count

What a kill leaves between the last two steps is done when the topics are opened. Transactions of a
process end with it: what they wrote is aborted when its ledgers are recovered.
"""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock, RLock
from pulsarx._pycore.ledger.open_transactions import release
from pulsarx.broker import life_log
from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.topic_operations import ENDED_KEPT
from pulsarx.broker.transactions.broker_transaction import COORDINATOR
from pulsarx.ground.attempt import attempt, insist

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
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
AGAIN_MS = 1000  # until an abort is tried again that nobody waits for
SETTLED_AT = 64  # transactions whose acknowledgements the catalogue keeps, at least


class TransactionCoordinator:
    """Calls of the control plane. Its lock orders ends; it is taken before those of topics'
    transactions, ledgers and subscriptions."""

    number = COORDINATOR

    def __init__(self, runtime: TransactingRuntime) -> None:
        self._runtime = runtime
        self._catalogue = runtime.catalogue
        self._lock = RLock()
        self._numbers = Lock()
        self._next = self._reserved = runtime.catalogue.state.next_transaction
        self._open: dict[int, BrokerTransaction] = {}
        self._ended: dict[int, bool] = {}  # those committed, and aborted, of this owner
        # Whose acknowledgements are applied, and may not be flushed.
        self._unsettled: dict[int, list[TransactedSubscription]] = {}
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
            made.timer = self._later(timeout_ms, partial(self._time_out, made))
            self._open[made.number] = made
            self.created_count += 1
        return made

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
        return self._ended.get(number) if ended is None else ended.committed

    # Ending ---------------------------------------------------------------------------------------

    def commit(self, transaction: BrokerTransaction) -> None:
        """Let all see what was sent in it, and let what was acknowledged count. Durable on return.

        InvalidTxnStatusError: it was aborted. StorageError: what became of it is not known; called
        again, this goes on.
        """
        self._end(transaction, committed=True)

    def abort(self, transaction: BrokerTransaction) -> None:
        """Let nobody see what was sent in it, and have what was acknowledged delivered again.
        InvalidTxnStatusError, StorageError: as of commit."""
        self._end(transaction, committed=False)

    def _time_out(self, transaction: BrokerTransaction) -> None:
        if self._open.get(transaction.number) is not transaction or not transaction.is_open:
            return  # it has ended, or its owner is about to end it
        transaction.has_timed_out()
        self.timeout_count += 1
        life_log.info("transaction %s is aborted: %d ms are over", transaction,
                      transaction.timeout_ms)  # fmt: skip
        self._abort_late(transaction)

    def _abort_late(self, transaction: BrokerTransaction) -> None:
        """Nobody else will: it is tried until it is done, as readers wait for it."""
        if self._open.get(transaction.number) is not transaction or not self._runtime.state.is_open:
            return
        try:
            self.abort(transaction)
        except (errors.PulsarException, MemoryError) as error:
            life_log.info("transaction %s is aborted later: %s", transaction,
                          errors.detail_of(error) or error)  # fmt: skip
            transaction.timer = self._later(AGAIN_MS, partial(self._abort_late, transaction))

    def _end(self, transaction: BrokerTransaction, *, committed: bool) -> None:
        with transaction.joining:
            transaction.is_open = False
        with self._lock:
            if self._open.get(transaction.number) is not transaction:
                self._answer_again(transaction, committed)
                return
            transaction.is_ended = True
            topics = list(transaction.topics)
            messages = {each.ledgers: each.messages(transaction) for each in topics}
            # Made by now, as nothing may be left out for want of memory once the catalogue is told.
            apply = partial(self._apply, transaction, messages)
            try:
                if committed and self._runtime.durability != "os":
                    for ledger in messages:
                        ledger.flush(sealed=False)
                self._tell_catalogue(transaction, committed, messages)
            except errors.StorageFullError:
                transaction.is_ended = False  # nothing was told, so more may be sent in it
                raise
            # Where an earlier try was not known to have been told, that one counts.
            told = self._catalogue.state.ended.get(transaction.number)
            decided = committed if told is None else told.committed
            self._ended[transaction.number] = decided
            for number in list(self._ended)[:-ENDED_KEPT]:
                del self._ended[number]
            if decided:
                self.committed_count += 1
            else:
                self.aborted_count += 1
            self._open.pop(transaction.number)
            insist(apply)
            if decided != committed:
                self._answer_again(transaction, committed)

    def _answer_again(self, transaction: BrokerTransaction, committed: bool) -> None:
        """It has ended: the same end gets the same answer."""
        known = self.was_committed(transaction.number)
        if known is None or known != committed:
            how = "long ago" if known is None else "committed" if known else "aborted"
            raise errors.InvalidTxnStatusError(
                detail=f"{'commit' if committed else 'abort'} transaction {transaction}: it was "
                f"ended, {how}"
            )

    def _tell_catalogue(
        self,
        transaction: BrokerTransaction,
        committed: bool,
        messages: Messages,
    ) -> None:
        subscriptions = [each for each in transaction.subscriptions if each.record is not None]
        if not any(messages.values()) and not (committed and subscriptions):
            return  # a kill could undo nothing
        settled = self._take_settled()

        def operations(state: CatalogueState) -> list[dict[str, Any]]:
            if transaction.number in state.ended:
                return []  # by an earlier try of which nothing was known
            rows = {}
            for ledger, runs in messages.items():
                record = ledger.record()
                there = [] if record is None else [each.ledger_id for each in record.ledgers]
                kept = [each for each in runs if each[0] in there]
                if kept:  # else the topic was deleted meanwhile
                    rows[ledger.name] = kept
            acknowledged = []
            for each in subscriptions if committed else ():
                acks = each.transaction_acks(transaction)
                if not each.removed and (acks["individual"] or acks["cumulative"]):
                    acknowledged.append(
                        [each.record.cursor_id, acks["individual"], acks["cumulative"]]
                    )
            if not rows and not acknowledged:
                return []  # nothing that a kill could undo
            end = changes.end_transaction(
                transaction.number,
                committed=committed,
                ended_ms=self._runtime.clock.now_ms(),
                messages=rows,
                acknowledged=acknowledged,
                settled=settled,
            )
            return [end]

        self._catalogue.commit(operations, flush=self._runtime.durability != "os")
        for number in settled:
            self._unsettled.pop(number, None)
        if self._runtime.durability == "os":
            self._runtime.flush_catalogue_soon()

    def _apply(
        self,
        transaction: BrokerTransaction,
        messages: Messages,
    ) -> None:
        """Do what the catalogue says by now. No step is left out because another one failed.
        Taken again where memory ran out."""
        committed = self._ended[transaction.number]
        timer, transaction.timer = transaction.timer, None
        if timer is not None:
            timer.cancel()
        if not committed:
            for ledger, runs in messages.items():
                ledger.aborted.add(runs)  # first: what follows shows all that is not
        release(transaction, committed)
        subscriptions = list(transaction.subscriptions)
        steps: list[Callable[[], object]] = []
        for each in subscriptions:
            end = each.commit_transaction if committed else each.abort_transaction
            steps.append(partial(end, transaction))
        if committed and subscriptions:
            self._unsettled[transaction.number] = subscriptions
        steps += [partial(each.leave, transaction, committed) for each in transaction.senders]
        steps += [partial(show_on, ledger) for ledger in messages]
        failure: Exception | None = None
        for step in steps:
            failed = attempt(step)
            failure = failure or failed
        if failure is not None:
            raise failure

    # Acknowledgements that a kill must not undo ---------------------------------------------------

    def _take_settled(self) -> list[int]:
        """Flush the cursors of transactions of before, when there are enough of them; those whose
        acknowledgements the catalogue need not keep any more."""
        if len(self._unsettled) < SETTLED_AT:
            return []
        numbers = list(self._unsettled)
        for each in {one for number in numbers for one in self._unsettled[number]}:
            if not each.removed:
                each.tracker.flush()
        return numbers

    def settle(self) -> None:
        """Let the catalogue forget acknowledgements: the cursors keep them from now on."""
        with self._lock:
            numbers = [each.number for each in self._catalogue.state.ended.values()
                       if each.acknowledged]  # fmt: skip
            if not numbers:
                return
            for each in {one for some in self._unsettled.values() for one in some}:
                if not each.removed:
                    each.tracker.flush()
            self._catalogue.commit([changes.settle_transactions(numbers)])
            self._unsettled.clear()

    # Leaving --------------------------------------------------------------------------------------

    def abort_all(self, owned: Callable[[BrokerTransaction], bool]) -> None:
        """Abort those of somebody who leaves."""
        failure: Exception | None = None
        for each in self.open_transactions():
            if owned(each):
                try:
                    self.abort(each)
                except errors.PulsarException as error:
                    failure = failure or error
        if failure is not None:
            raise failure


def show_on(ledger: TransactedLedger) -> None:
    """Readers of a topic see more: what was held back is sealed, and what was aborted passed
    over."""
    counts = {each.ledger_id: ledger.published_counts(each)[1] for each in ledger.ledgers()}
    ledger.seal_again()
    ledger.aborted.pass_up_to(counts)
