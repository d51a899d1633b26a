"""Sequence ids of forwarded messages: the place in the source topic, as one number.

A target drops what is not above the highest id that it has of a producer, so the order of ids is
that of the messages. 63 bits hold ledger, entry and index in the batch.
"""

from __future__ import annotations

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Positions:
    """How many bits the parts of a position have. A value."""

    def __init__(self, ledger_bits: int, entry_bits: int, batch_bits: int) -> None:
        self._ledger_max = (1 << ledger_bits) - 1
        self._entry_bits = entry_bits
        self._batch_bits = batch_bits

    def sequence_of(self, message_id: Any) -> int:
        """OperationNotSupported: the position is too large. message_id: of either client."""
        ledger_id, entry_id = message_id.ledger_id(), message_id.entry_id()
        index = max(message_id.batch_index(), 0)
        if (
            not 0 <= ledger_id <= self._ledger_max
            or entry_id >> self._entry_bits
            or index >> self._batch_bits
        ):
            raise errors.OperationNotSupported(
                detail=f"{message_id} makes no sequence id: ledgers up to {self._ledger_max}, "
                f"entries up to {(1 << self._entry_bits) - 1} and batches of up to "
                f"{1 << self._batch_bits} messages do"
            )
        sequence: int = (ledger_id << self._entry_bits | entry_id) << self._batch_bits | index
        return sequence


IN_FOLDER: Positions = Positions(25, 20, 18)
IN_CLUSTER: Positions = Positions(29, 20, 14)  # ledger ids are of the cluster; batches are small
