"""The records of what the catalogue knows: topics, their ledgers and subscriptions, and others.

A record never changes once it is in a CatalogueState: a change puts a new record in its place.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Runs = dict[int, list[list[int]]]

LEDGER_PREPARED = "prepared"  # ready, and not known to hold an entry; the last of its topic
LEDGER_OPEN = "open"
LEDGER_SEALED = "sealed"


class LedgerRecord:
    """A ledger of a topic. Immutable by habit."""

    __slots__ = (
        "ledger_id", "uuid", "slot", "state", "entry_count", "message_count", "size",
        "first_publish_ms", "last_publish_ms", "sealed_ms", "damaged",
        "merged_id", "merged_at", "merged_size", "first_index",
    )  # fmt: skip

    def __init__(
        self,
        ledger_id: int,
        uuid: str,
        slot: int = -1,
        state: str = LEDGER_OPEN,
        entry_count: int = 0,
        message_count: int = 0,
        size: int = 0,
        first_publish_ms: int = 0,
        last_publish_ms: int = 0,
        sealed_ms: int = 0,
        damaged: bool = False,
        merged_id: int = 0,
        merged_at: int = 0,
        merged_size: int = 0,
        first_index: int = -1,
    ) -> None:
        self.ledger_id: int = ledger_id
        self.uuid: str = uuid  # 32 hex digits, as in the header of the file
        self.slot: int = slot  # where its end is published while it is open; -1: nowhere
        self.state: str = state
        self.entry_count: int = entry_count  # this and what follows: known once it is sealed
        self.message_count: int = message_count
        self.size: int = size
        self.first_publish_ms: int = first_publish_ms
        self.last_publish_ms: int = last_publish_ms
        self.sealed_ms: int = sealed_ms
        self.damaged: bool = damaged  # sealed although some entry below its end cannot be read
        # The file that it and others were merged into, and which bytes of it are its own file, from
        # header to footer; 0: it has a file to itself.
        self.merged_id: int = merged_id
        self.merged_at: int = merged_at
        self.merged_size: int = merged_size
        # The number of its first message among all that the topic ever had; -1: it follows from the
        # ledgers before.
        self.first_index: int = first_index

    @property
    def file_id(self) -> int:
        """By which `ledger_path` finds the file that holds it."""
        return self.merged_id or self.ledger_id

    def merged(self, merged_id: int, at: int, size: int) -> LedgerRecord:
        """Itself, in a merged file."""
        made = LedgerRecord(*self.row())
        made.merged_id, made.merged_at, made.merged_size = merged_id, at, size
        return made

    def used(self) -> LedgerRecord:
        """A prepared ledger as the open one that it becomes."""
        return LedgerRecord(self.ledger_id, self.uuid, self.slot)

    def row(self) -> list[Any]:
        return [getattr(self, name) for name in self.__slots__]

    def __repr__(self) -> str:
        return f"LedgerRecord(ledger_id={self.ledger_id}, state={self.state!r})"


class SubscriptionRecord:
    """A durable subscription of a topic. Immutable by habit."""

    __slots__ = (
        "name", "cursor_id", "type", "created_ms", "properties",
        "initial_ledger_id", "initial_message",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        cursor_id: int,
        type: str,
        created_ms: int,
        properties: dict[str, str],
        initial_ledger_id: int,
        initial_message: int,
    ) -> None:
        self.name: str = name
        self.cursor_id: int = cursor_id
        self.type: str = type  # of the consumer that made it; later ones may use another
        self.created_ms: int = created_ms
        self.properties: dict[str, str] = properties
        self.initial_ledger_id: int = initial_ledger_id  # where it began; -1: with the first ledger
        self.initial_message: int = initial_message  # ordinal within that ledger

    def with_properties(self, properties: dict[str, str]) -> SubscriptionRecord:
        """Itself, with these properties in the place of its own."""
        made = SubscriptionRecord(*self.row())
        made.properties = properties
        return made

    def row(self) -> list[Any]:
        return [getattr(self, name) for name in self.__slots__]

    def __repr__(self) -> str:
        return f"SubscriptionRecord(name={self.name!r}, cursor_id={self.cursor_id})"


class CompactionRecord:
    """The result of the last compaction of a topic. Immutable by habit."""

    __slots__ = (
        "ledger_id", "uuid", "entry_count", "message_count", "size", "horizon_ledger_id",
        "horizon_entry", "horizon_message", "last", "ledgers", "compacted_ms", "duration_ms",
        "removed_count", "first_indexes",
    )  # fmt: skip

    def __init__(
        self,
        ledger_id: int,
        uuid: str,
        entry_count: int,
        message_count: int,
        size: int,
        horizon_ledger_id: int,
        horizon_entry: int,
        horizon_message: int,
        last: list[int],
        ledgers: list[list[int]],
        compacted_ms: int,
        duration_ms: int,
        removed_count: int,
        first_indexes: list[int] | None = None,
    ) -> None:
        self.ledger_id: int = (
            ledger_id  # of the compacted ledger; 0: nothing survived, there is none
        )
        self.uuid: str = uuid
        self.entry_count: int = entry_count
        self.message_count: int = message_count
        self.size: int = size
        self.horizon_ledger_id: int = horizon_ledger_id  # up to here the topic was compacted: the
        self.horizon_entry: int = horizon_entry  # last entry, and the message behind it
        self.horizon_message: int = horizon_message
        self.last: list[int] = (
            last  # of the last survivor: ledger id, entry id, batch index; or empty
        )
        self.ledgers: list[list[int]] = (
            ledgers  # that hold survivors: id, and the message behind the last of them
        )
        self.compacted_ms: int = compacted_ms
        self.duration_ms: int = duration_ms
        self.removed_count: int = removed_count  # messages that did not survive
        # Of the first message of each of the ledgers; -1: not known.
        self.first_indexes: list[int] = first_indexes or []

    @property
    def file_id(self) -> int:
        """By which `ledger_path` finds the file that holds it."""
        return self.ledger_id

    @property
    def horizon(self) -> tuple[int, int]:
        """The position of the topic up to which it was compacted."""
        return self.horizon_ledger_id, self.horizon_message

    def fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def row(self) -> list[Any]:
        return [getattr(self, name) for name in self.__slots__]

    def __repr__(self) -> str:
        return f"CompactionRecord(ledger_id={self.ledger_id}, horizon={self.horizon})"


class TopicRecord:
    """A topic, or the number of partitions of a partitioned one. Immutable once published."""

    __slots__ = (
        "topic_id", "name", "partition_count", "properties", "policies",
        "ledgers", "subscriptions", "removed_ledger_id", "removed_messages", "epoch", "terminated",
        "chunked", "compaction", "merged", "removed_index", "committed", "aborted",
    )  # fmt: skip

    def __init__(
        self, topic_id: int, name: str, partition_count: int, properties: dict[str, str]
    ) -> None:
        self.topic_id: int = topic_id
        self.name: str = name  # full: persistent://tenant/namespace/local
        self.partition_count: int = partition_count  # 0: holds messages itself
        self.properties: dict[str, str] = properties
        self.policies: dict[str, Any] = {}
        self.ledgers: list[LedgerRecord] = []  # in the order of their messages
        self.subscriptions: dict[str, SubscriptionRecord] = {}
        self.removed_ledger_id: int = 0  # the last one with messages that is gone; 0: none is
        self.removed_messages: int = 0  # how many it had
        self.epoch: int = -1  # of the last producer that had the topic to itself; -1: none had
        self.terminated: bool = False  # it takes no more messages
        self.chunked: bool = False  # it may hold messages in chunks
        self.compaction: CompactionRecord | None = None  # None: it was never compacted
        # Files that hold several of the ledgers: by id, the uuid of the first one in the file.
        self.merged: dict[int, str] = {}
        self.removed_index: int = 0  # of the message behind the last one that is gone
        # Messages of transactions that have ended, by ledger: first, and behind the last, of each
        # run. In a ledger that is not sealed, all that are in neither are of open transactions.
        self.committed: Runs = {}  # of ledgers that are not sealed
        self.aborted: Runs = {}

    def copy(self) -> TopicRecord:
        made = TopicRecord(self.topic_id, self.name, self.partition_count, self.properties)
        made.policies = self.policies.copy()
        made.ledgers = self.ledgers.copy()
        made.subscriptions = self.subscriptions.copy()
        made.removed_ledger_id = self.removed_ledger_id
        made.removed_messages = self.removed_messages
        made.epoch = self.epoch
        made.terminated = self.terminated
        made.chunked = self.chunked
        made.compaction = self.compaction
        made.merged = self.merged.copy()
        made.removed_index = self.removed_index
        made.committed = self.committed.copy()
        made.aborted = self.aborted.copy()
        return made

    def row(self) -> list[Any]:
        """Itself as JSON keeps it."""
        compaction = self.compaction
        row = [
            self.topic_id, self.name, self.partition_count, self.properties, self.policies,
            [each.row() for each in self.ledgers],
            [each.row() for each in self.subscriptions.values()],
            self.removed_ledger_id, self.removed_messages, self.epoch, self.terminated,
            self.chunked, None if compaction is None else compaction.row(),
            [list(each) for each in self.merged.items()], self.removed_index,
        ]  # fmt: skip
        if self.committed or self.aborted:  # of few
            row.append([list(each) for each in self.committed.items()])
            row.append([list(each) for each in self.aborted.items()])
        return row

    @staticmethod
    def of_row(row: list[Any]) -> TopicRecord:
        made = TopicRecord(*row[:4])
        (
            made.policies, ledgers, subscriptions, made.removed_ledger_id, made.removed_messages,
            made.epoch, made.terminated, made.chunked, compaction, merged,
        ) = row[4:14]  # fmt: skip
        # Checkpoints of version 1 have no index, and nearly all topics nothing decided.
        made.removed_index, *decided = row[14:] or (0,)
        made.ledgers = [LedgerRecord(*fields) for fields in ledgers]
        made.subscriptions = {fields[0]: SubscriptionRecord(*fields) for fields in subscriptions}
        made.compaction = None if compaction is None else CompactionRecord(*compaction)
        made.merged = dict(merged)
        if decided:
            made.committed, made.aborted = (dict(each) for each in decided)
        return made

    def __repr__(self) -> str:
        return f"TopicRecord(topic_id={self.topic_id}, name={self.name!r})"


class TransactionRecord:
    """The last batch an application attached. Immutable by habit."""

    __slots__ = (
        "application", "batch_id", "attached_ms", "first_ledger_id", "ledger_count",
        "message_count", "content",
    )  # fmt: skip

    def __init__(
        self,
        application: str,
        batch_id: int,
        attached_ms: int,
        first_ledger_id: int,
        ledger_count: int,
        message_count: int,
        content: str = "",
    ) -> None:
        self.application: str = application
        self.batch_id: int = batch_id
        self.attached_ms: int = attached_ms
        self.first_ledger_id: int = first_ledger_id  # the ids of one attach follow each other
        self.ledger_count: int = ledger_count
        self.message_count: int = message_count
        self.content: str = content  # a digest of the messages; "": none was given

    def row(self) -> list[Any]:
        return [getattr(self, name) for name in self.__slots__]

    def __repr__(self) -> str:
        return f"TransactionRecord(application={self.application!r}, batch_id={self.batch_id})"


class EndedTransaction:
    """The outcome of a transaction. Immutable by habit."""

    __slots__ = ("number", "committed", "ended_ms", "acknowledged")

    def __init__(
        self, number: int, committed: bool, ended_ms: int, acknowledged: list[list[Any]]
    ) -> None:
        self.number: int = number
        self.committed: bool = committed  # else aborted
        self.ended_ms: int = ended_ms
        # What it acknowledged, until the cursors are known to keep that: id of the cursor, runs of
        # messages (ledger id, first, count), and up to where all (ledger id, message), or None.
        self.acknowledged: list[list[Any]] = acknowledged

    def row(self) -> list[Any]:
        return [getattr(self, name) for name in self.__slots__]

    def __repr__(self) -> str:
        return f"EndedTransaction(number={self.number}, committed={self.committed})"


class LeaseRecord:
    """Ledgers that a job reads and that are not trimmed meanwhile. Immutable by habit."""

    __slots__ = ("job", "expires_ms", "ledgers")

    def __init__(self, job: str, expires_ms: int, ledgers: dict[str, list[list[int]]]) -> None:
        self.job: str = job
        self.expires_ms: int = expires_ms
        self.ledgers: dict[str, list[list[int]]] = (
            ledgers  # by topic: first and last id of each run of ids
        )

    def row(self) -> list[Any]:
        return [getattr(self, name) for name in self.__slots__]

    def __repr__(self) -> str:
        return f"LeaseRecord(job={self.job!r}, expires_ms={self.expires_ms})"


class SchemaRecord:
    """A version of a topic's schema, or its deletion. Immutable by habit."""

    __slots__ = ("version", "type_name", "name", "definition", "properties", "created_ms")

    def __init__(
        self,
        version: int,
        type_name: str | None,
        name: str,
        definition: str,
        properties: dict[str, str],
        created_ms: int,
    ) -> None:
        self.version: int = version  # its place among the records of the topic
        self.type_name: str | None = type_name  # of SchemaType; None: what came before is deleted
        self.name: str = name
        self.definition: str = definition
        self.properties: dict[str, str] = properties
        self.created_ms: int = created_ms

    def row(self) -> list[Any]:
        return [getattr(self, name) for name in self.__slots__]

    def __repr__(self) -> str:
        return f"SchemaRecord(version={self.version}, type_name={self.type_name!r})"


class DeletionRecord:
    """Files of a deleted topic that may still be there, or a compacted ledger that is not (or not
    yet) in use, under its own id. Immutable by habit."""

    __slots__ = ("topic_id", "topic", "ledgers", "cursor_ids")

    def __init__(
        self, topic_id: int, topic: str, ledgers: list[list[Any]], cursor_ids: list[int]
    ) -> None:
        self.topic_id: int = topic_id
        self.topic: str = topic
        self.ledgers: list[list[Any]] = ledgers  # id and uuid of each
        self.cursor_ids: list[int] = cursor_ids

    def row(self) -> list[Any]:
        return [getattr(self, name) for name in self.__slots__]

    def __repr__(self) -> str:
        return f"DeletionRecord(topic_id={self.topic_id}, topic={self.topic!r})"


class OffloadRecord:
    """A copy of a file of ledgers in an object store. Immutable by habit."""

    __slots__ = ("file_id", "topic", "uuid", "location", "size", "offloaded_ms")

    def __init__(
        self, file_id: int, topic: str, uuid: str, location: str, size: int, offloaded_ms: int
    ) -> None:
        self.file_id: int = file_id  # `file_id` of the ledgers in it
        self.topic: str = topic
        self.uuid: str = uuid  # of the first ledger in it
        self.location: str = location  # URL of the object
        self.size: int = size  # in bytes; 0: it is being written, and nobody reads it
        self.offloaded_ms: int = offloaded_ms  # when it was read back and found whole

    def row(self) -> list[Any]:
        return [getattr(self, name) for name in self.__slots__]

    def __repr__(self) -> str:
        return f"OffloadRecord(file_id={self.file_id}, location={self.location!r})"
