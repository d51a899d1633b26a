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
    removes whole ledgers, and a reader goes on behind them as if they had not been."""

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
        self._count = 0  # of the messages behind those

    def add(self, block: Block) -> None:
        """Add the next messages. DataLossError: there were others before them."""
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
        """DataLossError: there were more messages; see add."""
        if self._left:
            self._note(list(self._left))
        if self._gone and not self._is_enough():
            self._raise()

    def _note(self, ledgers: list[int]) -> None:
        """Look which of them are gone: a reader gives nothing of some that are there."""
        found = self._client.admin.topics.stats(self._partition)["ledgers"]
        there = {each["ledger_id"] for each in found}
        gone = [each for each in ledgers if each not in there]
        if gone:
            self._gone += gone
            self._count = 0
            if self._selection.last is None:
                self._raise()

    def _is_enough(self) -> bool:
        """Whether the newest messages that are wanted are those behind what is gone."""
        wanted = self._selection.last
        return wanted is not None and self._selection.has_all and self._count >= wanted

    def _raise(self) -> None:
        ledgers = ", ".join(map(str, self._gone))
        raise errors.DataLossError(
            detail=f"read {self._partition}: ledgers {ledgers:.200}, which it had when the read or "
            "scan began, were removed since (by retention, or truncate): scan it again for what is "
            "there now"
        )
