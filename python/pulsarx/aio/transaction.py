"""A transaction of asyncio: what `aio.Client.new_transaction` returns."""

from __future__ import annotations

from pulsarx.aio.control_call import perform, wait_until_told
from pulsarx.enumerations import TransactionState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from pulsarx import transaction as ours


class Transaction:
    """Messages that are sent, and acknowledgements that are made, as one step: see
    `pulsarx.transaction.Transaction`. Given to send and acknowledge of this client's producers and
    consumers.

    As an asynchronous context it commits, or aborts where an exception leaves it, that of a
    cancelled task too.
    """

    def __init__(self, transaction: ours.Transaction) -> None:
        """Use `Client.new_transaction`.

        Args:
            transaction: The one behind it.
        """
        self._transaction = transaction

    def txn_id(self) -> tuple[int, int]:
        """Return its id: the coordinator, which is 0, and a number that no other transaction of the
        folder has."""
        return self._transaction.txn_id()

    def state(self) -> TransactionState:
        """Return how far it has come."""
        return self._transaction.state()

    async def commit(self) -> None:
        """Let everybody see what was sent in it, and let what was acknowledged count. Waits for
        sends that are under way.

        Raises:
            TransactionHasOperationFailed: A send or an acknowledgement in it failed: it was aborted
                instead.
            InvalidTxnStatusError: It was ended before, or its time was over.
            StorageFullError: There is no room; it is open still, and may be committed or aborted.
            StorageError: The disk failed; what became of it is not known. Called again, it goes on.

        Durability:
            When it returns, all of it is on the device with durability `sync` and `interval`; with
            `os` a kill does not lose it, or a part of it, and a power cut may.

        Example:
            async with await client.new_transaction() as txn:
                message = await consumer.receive()
                await producer.send(message.data().upper(), transaction=txn)
                await consumer.acknowledge(message, transaction=txn)
        """
        self._transaction.begin_commit()
        # Not in the control plane, which other calls of the loop need meanwhile.
        await wait_until_told(self._transaction.tell_quiet, _nothing)
        await perform(self._transaction.commit)

    async def abort(self) -> None:
        """Let nobody see what was sent in it, and have what was acknowledged delivered again.

        Raises:
            InvalidTxnStatusError: It was ended before, or its time was over.
            StorageError: The disk failed; called again, it goes on.

        Durability:
            When it returns nothing of it comes back, whatever is killed.
        """
        await perform(self._transaction.abort)

    async def __aenter__(self) -> Transaction:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None and self.state() is TransactionState.OPEN:
            await self.commit()
        else:
            await perform(self._transaction.__exit__, kind, error, traceback)

    def __repr__(self) -> str:
        return f"aio.{self._transaction!r}"


def _nothing() -> None:
    """Do nothing: what a cancelled commit leaves is repeated, or ended by its deadline."""


def plain(transaction: Transaction | Any) -> Any:
    """The transaction behind one of asyncio; any other thing as it is."""
    return transaction._transaction if isinstance(transaction, Transaction) else transaction
