from typing import Any, ClassVar, NoReturn, final

@final
class MessageId:
    earliest: ClassVar[MessageId]
    latest: ClassVar[MessageId]
    def __init__(
        self, partition: int = -1, ledger_id: int = -1, entry_id: int = -1, batch_index: int = -1
    ) -> None:
        """Make an id of its numbers. `earliest` and `latest` are there already.

        Args:
            partition: The index of the partition; -1: the topic has none.
            ledger_id: The id of the ledger.
            entry_id: The number of the entry in its ledger.
            batch_index: The index in the batch; -1: the message did not travel in one.

        Raises:
            TypeError: An argument is no int.
            OverflowError: One does not fit into 64 bits, or 32 for the partition and the index.
        """
    def ledger_id(self) -> int:
        """Return the id of the ledger."""
    def entry_id(self) -> int:
        """Return the number of the entry in its ledger, from 0."""
    def partition(self) -> int:
        """Return the index of the partition; -1 when the topic is not partitioned."""
    def batch_index(self) -> int:
        """Return the index in the batch; -1 when the message did not travel in one."""
    def batch_size(self) -> int:
        """Return the number of messages that the batch had; 0 when that is not known."""
    def first_chunk_message_id(self) -> MessageId | None:
        """Return the id of the first chunk of a message that was published in chunks, else None.
        Its own id is that of the last one."""
    def serialize(self) -> bytes:
        """Return bytes to store and to `deserialize` later, as Pulsar's Python client writes
        them."""
    @staticmethod
    def deserialize(message_id_bytes: bytes, topic: str | None = None) -> MessageId:
        """Return the id that was serialized here, by the official client or by Java.

        Args:
            message_id_bytes: The bytes that serialize returned.
            topic: The topic of the message. A consumer of several topics acknowledges no id without
                it.

        Raises:
            ValueError: They are no serialized id.
            TypeError: An argument is of the wrong type.
        """
    @classmethod
    def wrap(cls, msg_id: MessageId) -> MessageId:
        """Return the id itself: native and wrapped ids are one type here.

        Args:
            msg_id: A MessageId.

        Raises:
            TypeError: It is none.
        """
    @property
    def _msg_id(self) -> MessageId:
        """The native id, as programs take it out of the official client's."""
    def topic_name(self, name: str) -> NoReturn:
        """Refuse: an id does not change. `_pulsar` has this to give an id its topic.

        Args:
            name: The name of a topic.

        Raises:
            OperationNotSupported: Always; `deserialize` takes a topic.
        """
    @classmethod
    def from_text(cls, text: str, topic: str | None = None) -> MessageId:
        """Return the id in `ledger:entry:partition[:batch index]` or
        `(ledger,entry,partition,batch)`; of a message in chunks `first;last`, both in the former.

        Args:
            text: As to_text or str write it.
            topic: The topic of the message. A consumer of several topics acknowledges no id without
                it.

        Raises:
            ValueError: The text is no id.
            TypeError: An argument is of the wrong type.
        """
    @classmethod
    def from_row(cls, row: Any) -> MessageId:
        """Return the id in a row of received columns, whatever library holds it.

        Args:
            row: A value of the column message_id (a dict, or an Arrow scalar), or a row that has
                this column, also as `__message_id__`, or those of its four numbers, as `to_numpy`
                and `to_pandas` give them.

        Raises:
            ValueError: It has none.
        """
    def to_text(self) -> str:
        """Return `ledger:entry:partition`, and `:batch index` where there is one, as Java writes
        it; of a message in chunks those of the first and the last one: `first;last`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __lt__(self, other: MessageId, /) -> bool: ...
    def __le__(self, other: MessageId, /) -> bool: ...
    def __gt__(self, other: MessageId, /) -> bool: ...
    def __ge__(self, other: MessageId, /) -> bool: ...
    def __copy__(self) -> MessageId: ...
    def __deepcopy__(self, memo: Any) -> MessageId: ...

def message_id_in_batch(
    ledger_id: int, entry_id: int, batch_index: int, batch_size: int, partition: int = -1
) -> MessageId: ...
def message_id_with_first_chunk(last: MessageId, first: MessageId) -> MessageId: ...
def _message_id_restore_chunked(
    ledger_id: int,
    entry_id: int,
    partition: int,
    first_ledger_id: int,
    first_entry_id: int,
    has_topic: bool = False,
) -> MessageId: ...
def _message_id_restore(
    ledger_id: int,
    entry_id: int,
    partition: int,
    batch_index: int,
    batch_size: int,
    has_topic: bool = False,
) -> MessageId: ...
