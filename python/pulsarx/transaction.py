"""Transactions of a client: messages and acknowledgements that count together, or not at all."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.broker.transactions.broker_transaction import COORDINATOR, BrokerTransaction
from pulsarx.enumerations import TransactionState
from pulsarx.ground.attempt import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from pulsarx.broker.transactions.participants import TransactingRuntime

__all__ = ["Transaction", "TransactionState"]


class Transaction(BrokerTransaction):
    """Messages that are sent, and acknowledgements that are made, as one step: all readers see all
    of them at one moment, when it is committed, or never. Made by `Client.new_transaction`; any
    thread may call.

    Until it ends consumers and readers see nothing of its messages, nor of what was published
    behind the first of them on the same topic. What is acknowledged in it is not delivered again
    meanwhile. A transaction that is not ended within its timeout is aborted, as is one whose client
    closes or whose process ends.

    As a context it commits, or aborts where an exception leaves it.
    """

    is_open: bool
    is_finishing: bool
    is_ended: bool

    def __init__(self, runtime: TransactingRuntime, number: int, timeout_ms: int) -> None:
        """Use `Client.new_transaction`.

        Args:
            runtime: The broker's, of the folder.
            number: The second half of its id.
            timeout_ms: Milliseconds until it is aborted.
        """
        super().__init__(runtime, number, timeout_ms)
        self._state = TransactionState.OPEN
        self.owner: Any = None  # of the client
        self.member: Any = None  # of the connection to the owner of the folder, where there is one
        self._reason = ""  # why nobody here ended it

    def txn_id(self) -> tuple[int, int]:
        """Return its id: the coordinator, which is 0, and a number that no other transaction of the
        folder has."""
        return COORDINATOR, self.number

    def state(self) -> TransactionState:
        """Return how far it has come."""
        return self._state

    def commit(self) -> None:
        """Let everybody see what was sent in it, and let what was acknowledged count. Waits for
        sends that are under way.

        Raises:
            TransactionHasOperationFailed: A send or an acknowledgement in it failed: it was aborted
                instead.
            InvalidTxnStatusError: It was ended before, or its time was over.
            StorageFullError: There is no room; it is open still, and may be committed or aborted.
            StorageError: The disk failed; what became of it is not known. Called again, it goes on.
            InterruptedByKeyboard: Ctrl-C was pressed; it may be committed. Called again, it goes
                on.

        Durability:
            When it returns, all of it is on the device with durability `sync` and `interval`; with
            `os` a kill does not lose it, or a part of it, and a power cut may.

        Example:
            with client.new_transaction() as txn:
                message = consumer.receive()
                producer.send(message.data().upper(), transaction=txn)
                consumer.acknowledge(message, transaction=txn)
        """
        self._begin(TransactionState.COMMITTING, "commit")
        if self.asked is None:
            self._wait_for_sends()
            self._send_what_waits(confirmed=True)
        if self.failure is not None and self.asked is None and (
            self._state is TransactionState.COMMITTING
        ):  # fmt: skip
            self._state = TransactionState.ABORTING
            self._end(self.runtime.transactions.abort, TransactionState.ABORTED)
            raise errors.TransactionHasOperationFailed(
                detail=f"commit transaction {self}: a send or an acknowledgement in it failed, so "
                f"it was aborted: {errors.detail_of(self.failure)}"
            ) from self.failure
        self._end(self.runtime.transactions.commit, TransactionState.COMMITTED)

    def abort(self) -> None:
        """Let nobody see what was sent in it, and have what was acknowledged delivered again.

        Raises:
            InvalidTxnStatusError: It was ended before, or its time was over.
            StorageError: The disk failed; called again, it goes on.

        Durability:
            When it returns nothing of it comes back, whatever is killed.
        """
        self._begin(TransactionState.ABORTING, "abort")
        self._drop_queued()
        self._send_what_waits(confirmed=False)
        self._end(self.runtime.transactions.abort, TransactionState.ABORTED)

    def _begin(self, state: TransactionState, call: str) -> None:
        self.runtime.state.require_open()
        # What a commit failed with before it was asked for changes nothing for an abort.
        is_undecided = self._state is TransactionState.COMMITTING and self.asked is None
        if self._state not in (TransactionState.OPEN, state) and not (
            is_undecided and state is TransactionState.ABORTING
        ):  # fmt: skip
            raise errors.InvalidTxnStatusError(
                detail=f"{call} transaction {self}: it is {self._state.name}{self._reason}"
            )
        # What is sent from now on is refused; what was taken before goes out before a commit.
        self.is_finishing = state is TransactionState.COMMITTING
        self.is_open = False
        self._state = state

    def begin_commit(self) -> None:
        """Take no more, as the first step of commit; for callers that wait otherwise than it does.

        Raises:
            InvalidTxnStatusError: As commit.
        """
        self._begin(TransactionState.COMMITTING, "commit")

    def _wait_for_sends(self) -> None:
        """Have sends that are under way come to their end; at most until the deadline."""
        if all(each.may_wait() for each in list(self.under_way)):
            self.wait_for_sends()
        else:
            self.fail(
                errors.NotAllowedError(
                    detail=f"commit transaction {self} in a callback of send_async: sends in it "
                    "wait for room, which this thread gives them; commit it in another thread"
                )
            )

    def _send_what_waits(self, *, confirmed: bool) -> None:
        """Have what was sent in it stored, before it ends."""
        for sender in list(self.senders):
            if not sender.is_open:
                continue
            try:
                failed = sender.finish(self, confirmed)
            except errors.PulsarException as error:
                failed = error
            if failed is not None:
                self.fail(failed)

    def _end(self, end: Callable[[Any], None], state: TransactionState) -> None:
        try:
            control_plane.perform(end, (self,))
        except errors.InvalidTxnStatusError as error:
            if self._state is TransactionState.TIME_OUT:
                raise errors.InvalidTxnStatusError(
                    detail=f"end transaction {self}: it is TIME_OUT, as {self.timeout_ms} ms were "
                    "over"
                ) from error
            self._state = TransactionState.ERROR
            raise
        self._state = state

    def reopen(self) -> None:
        if self._state is not TransactionState.TIME_OUT:
            self._state = TransactionState.OPEN
            self.is_open = True

    def has_timed_out(self) -> None:
        self._state = TransactionState.TIME_OUT
        self._drop_queued()
        self._look_again()

    def _drop_queued(self) -> None:
        """Send nothing that waits for room."""
        for each in list(self.under_way):
            attempt(partial(each.drop_queued, self))

    def _look_again(self) -> None:
        """It has ended, and who waits for sends in it need not."""
        self.wake_waiting()
        for each in list(self.senders):
            attempt(each.look_again)

    def was_lost(self, reason: str) -> None:
        """Note that the process that owned the folder has gone: it is aborted, unless its end was
        asked for, which the next owner answers.

        Args:
            reason: What a later call says of it.
        """
        self.is_open, self.is_ended = False, True
        if self._state is TransactionState.OPEN:
            self._state, self._reason = TransactionState.ABORTED, f": {reason}"
            self.fail(errors.InvalidTxnStatusError(detail=reason))
        self._look_again()

    def close_with_client(self) -> None:
        """Abort it, unless it has ended, or its commit was asked for, which is asked for again. A
        call of the control plane."""
        ending = (TransactionState.ABORTING, TransactionState.COMMITTING)
        if self._state is not TransactionState.OPEN and self._state not in ending:
            return
        coordinator = self.runtime.transactions
        self.is_open = self.is_finishing = False
        try:
            if self.asked:
                coordinator.commit(self)
                self._state = TransactionState.COMMITTED
            else:
                self._state = TransactionState.ABORTING
                coordinator.abort(self)
                self._state = TransactionState.ABORTED
        except errors.InvalidTxnStatusError:
            if self._state in ending:  # another call has just ended it
                self._state = TransactionState.ERROR

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._state is not TransactionState.OPEN:
            if error is None and (self._reason or self._state is TransactionState.TIME_OUT):
                self._begin(TransactionState.COMMITTING, "commit")  # says so
            return  # it was ended within
        if error is None:
            self.commit()
        else:
            self.abort()

    def __repr__(self) -> str:
        return f"Transaction(id={self}, state={self._state.name})"
