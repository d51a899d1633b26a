"""The stand-in for the ledgers of a non-persistent topic, of which nothing is kept."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.locks import RLock
from pulsarx._pycore.ledger.ledger_tail import LedgerTail
from pulsarx._pycore.message.message_id import MessageId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from pulsarx.broker.catalogue.records import LedgerRecord
    from pulsarx.broker.ledgers.ledger_list import Position


class NoLedgers:
    """Answers as the ledgers of a topic without any. Any thread may call.

    Messages of the topic have the id (0, 0), which is that of no ledger, so an id says nothing
    about a message: acknowledging one does nothing, and what would look for it is refused.
    """

    is_terminated = False

    def __init__(self, name: str, topic_id: int, partition: int) -> None:
        """topic_id: 0, where the catalogue does not know the topic."""
        self.name = name
        self.topic_id = topic_id
        self.partition = partition
        self.tail: Any = LedgerTail(None, partition)
        self.lock: RLock = RLock()

    def ledgers(self) -> list[LedgerRecord]:
        return []

    def ledger_ids(self) -> list[int]:
        return []

    def compaction(self) -> None:
        """It is never compacted."""

    def record(self) -> None:
        """It has no record of its own that says something about ledgers."""

    def entry_count(self) -> int:
        return 0

    def first_position(self) -> Position:
        return 0, 0

    def end_position(self) -> Position:
        return 0, 0

    def has_ledger(self, ledger_id: int) -> bool:
        return ledger_id == 0

    def may_have_had(self, ledger_id: int) -> bool:
        return ledger_id == 0

    def locate_for_acknowledgement(self, message_id: object) -> tuple[int, int, int]:
        """There is nothing to acknowledge."""
        if not isinstance(message_id, MessageId):
            raise TypeError(
                f"acknowledge takes a Message or a MessageId, not {type(message_id).__name__}"
            )
        return 0, 0, 0

    def position_of(self, message_id: MessageId, inclusive: bool) -> Position:
        self.refuse("seek a place")

    def position_at_time(self, publish_time_ms: int) -> Position:
        self.refuse("seek a time")

    def position_at_index(self, index: int) -> Position:
        self.refuse("seek an index")

    def last_message_id(self) -> MessageId:
        self.refuse("get the last message id")

    def terminate(self) -> None:
        self.refuse("terminate")

    def refuse(self, action: str) -> NoReturn:
        """OperationNotSupported: it needs messages that are kept."""
        raise errors.OperationNotSupported(
            detail=f"{action} of {self.name}: a non-persistent topic keeps no messages; use a "
            "persistent one"
        )

    # Deleting -------------------------------------------------------------------------------------

    def begin_deletion(self) -> None:
        """Nothing is appended."""

    def end_deletion(self, deleted: bool) -> None:
        """Nothing is on disk."""
