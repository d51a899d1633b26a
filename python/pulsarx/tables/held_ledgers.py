"""The ledgers that a topic had when it was asked for as a table, of which a reading may not find
all any more. For `tables.reading`."""

from __future__ import annotations

import pyarrow.compute as pc

from pulsarx import errors
from pulsarx.message_id import MessageId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import pyarrow as pa

    from pulsarx.tables.selection import Block, Selection


class LedgersRead:
    """One reading of a partition: how far it came through the ledgers that there were. Retention
    removes whole ledgers, and a reader goes on behind them as if they had not been. So it does,
    but for a line in the log, behind what is damaged: of an object store whole ledgers may be."""

    def __init__(
        self, client: Any, partition: str, held: dict[int, int], selection: Selection
    ) -> None:
        """held: the ledgers, and how many entries each had."""
        start = selection.start_id
        first = -1 if start in (None, MessageId.earliest) else start.ledger_id()
        self._client = client
        self._partition = partition
        self._selection = selection
        self._left = {ledger: count for ledger, count in held.items() if ledger >= first}
        self._gone: list[int] = []
        self._damage: errors.CorruptDataError | None = None  # why the first of those is
        self._count = 0  # of the messages behind those

    def add(self, block: Block) -> None:
        """Add the next messages. DataLossError, CorruptDataError: there were others before them."""
        ids: pa.StructArray = block.table["message_id"].combine_chunks()
        runs = pc.run_end_encode(ids.field("ledger_id"))
        ledgers = runs.values.to_pylist()
        entries = ids.field("entry_id").take(pc.subtract(runs.run_ends, 1)).to_pylist()
        for ledger, entry in zip(ledgers, entries):
            if entry + 1 >= self._left.get(ledger, 0):
                self._left.pop(ledger, None)
        passed = [ledger for ledger in self._left if ledger < ledgers[-1]]
        if passed:
            start_ms = self._selection.start_ms
            # Those before a message that is older than the start were older still.
            if start_ms is None or block.table["publish_time"].cast("int64")[0].as_py() >= start_ms:
                self._note(passed)
            for ledger in passed:
                del self._left[ledger]
        self._count += len(block)

    def end(self) -> None:
        """Look at what is left. DataLossError, CorruptDataError: as add."""
        if self._left:
            self._note(list(self._left))
        if self._gone and not self._is_enough():
            self._raise()

    def _note(self, ledgers: list[int]) -> None:
        """Look which of them are gone: a reader gives nothing of some that are there."""
        found = self._client.admin.topics.stats(self._partition)["ledgers"]
        there = {each["ledger_id"] for each in found}
        gone = [each for each in ledgers if each not in there or self._is_damaged(each)]
        if gone:
            self._gone += gone
            self._count = 0
            if self._selection.last is None:
                self._raise()

    def _is_damaged(self, ledger_id: int) -> bool:
        """Whether it is of a store that does not have it. StorageError: that cannot be told."""
        if not is_stored(self._client):
            return False
        try:
            self._client._broker.check_ledger(self._partition, ledger_id)
        except errors.CorruptDataError as error:
            self._damage = self._damage or error
            return True
        return False

    def _is_enough(self) -> bool:
        """Whether the newest messages that are wanted are those behind what is gone."""
        wanted = self._selection.last
        return wanted is not None and self._selection.has_all and self._count >= wanted

    def _raise(self) -> None:
        if self._damage is not None:
            raise self._damage
        ledgers = ", ".join(map(str, self._gone))
        raise errors.DataLossError(
            detail=f"read {self._partition}: ledgers {ledgers:.200}, which it had when the read or "
            "scan began, were removed since (by retention, or truncate): scan it again for what is "
            "there now"
        )


def is_stored(client: Any) -> bool:
    """Whether a client reads an object store, without a folder."""
    return getattr(client._broker, "is_stored", False)
