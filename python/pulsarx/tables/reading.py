"""Topics as Arrow tables with a column for each field of their values, at once or block by block.
For `Client.read_table` and `Client.scan`."""

from __future__ import annotations

import re
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from pulsarx import errors
from pulsarx.consuming.topics_pattern import TopicsPattern
from pulsarx.enumerations import RegexSubscriptionMode
from pulsarx.message_id import MessageId
from pulsarx.tables.block_values import (
    METADATA_TYPES,
    AvroValues,
    JsonValues,
    Refused,
    of_names,
    values_of,
)
from pulsarx.tables.held_ledgers import LedgersRead, is_stored
from pulsarx.tables.progress import progress_of
from pulsarx.tables.selection import Block, before, place_of
from pulsarx.tables.value_types import merged
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from pulsarx.schema.schema import Schema, SchemaInfo
    from pulsarx.tables.block_values import DecodedValues
    from pulsarx.tables.selection import Place, Selection

    Values = JsonValues | AvroValues | DecodedValues
    Take = Callable[[Any, str, int, int], Block]
    Early = Callable[[Block], Block]  # a filter that needs no values

ROWS = 1 << 16  # of a block
BLOCK_BYTES = 64 << 20  # of the values of a block, which no more than an entry goes beyond
METADATA = tuple(METADATA_TYPES)


# Sources ------------------------------------------------------------------------------------------


class Source:
    """The partitions of some topics, and what they hold when this is made: topics whose values are
    of the same schemas, or of none."""

    def __init__(
        self, client: Any, topics: list[str], schemas: list[SchemaInfo], crypto_key_reader: Any
    ) -> None:
        """TopicNotFound: there is no such topic. It is not created."""
        self._client = client
        self._crypto_key_reader = crypto_key_reader
        self.topic: str = ", ".join(topics)
        self.schemas: list[SchemaInfo] = schemas
        self._topics = {
            part: topic for topic in topics for part in client.get_topic_partitions(topic)
        }
        self.partitions: list[Any] = list(self._topics)
        stats = [client.admin.topics.stats(each) for each in self.partitions]
        self.total: int = sum([each["messages"] for each in stats])
        self._ledgers = {name: _entries_of(each) for name, each in zip(self.partitions, stats)}
        self._ends: dict[str, Place | None] = {}
        for name in self.partitions:
            with self._reader(name, MessageId.earliest, {}) as reader:
                last = reader.get_last_message_id()
                self._ends[name] = None if last == MessageId.earliest else place_of(last)

    def topic_of(self, partition: str) -> str:
        """The full name of the topic that a partition is of."""
        return self._topics[partition]

    def blocks(
        self,
        take: Take,
        schema: Schema[Any] | None,
        selection: Selection,
        rows: int,
        progress: Callable[[int], object],
    ) -> Iterator[Block]:
        """All messages, from the start of a selection on. take: the next block of a reader, one of
        the three below. schema: how messages decode their values. progress: told how many more
        were read. TopicNotFound, DataLossError: not all is there any more."""
        options: dict[str, Any] = {} if schema is None else {"schema": schema}
        if selection.selector:
            options["selector"] = selection.selector
        start = selection.start_id
        for name, end in self._ends.items():
            if end is None or start == MessageId.latest:
                continue
            held = LedgersRead(self._client, name, self._ledgers[name], selection)
            with self._reader(name, start or MessageId.earliest, options) as reader:
                while reader.has_message_available():
                    block = take(reader, name, rows, BLOCK_BYTES)
                    if not len(block):
                        continue  # the dispatch rate holds them back
                    held.add(block)
                    block.source = self
                    last = block.table["message_id"][len(block) - 1].as_py()
                    at = (last["ledger_id"], last["entry_id"], last["batch_index"])
                    if at > end:
                        block = block.take(_up_to(block.table["message_id"], end))
                    progress(len(block))
                    yield block
                    if at >= end:
                        break
            held.end()

    def _reader(self, name: str, start: MessageId, options: dict[str, Any]) -> Any:
        return self._client._existing_topic_reader(
            topic=name,
            start_message_id=start,
            crypto_key_reader=self._crypto_key_reader,
            start_message_id_inclusive=True,
            **options,
        )


def _entries_of(stats: dict[str, Any]) -> dict[int, int]:
    """How many entries each ledger has that has some."""
    return {each["ledger_id"]: each["entries"] for each in stats["ledgers"] if each["entries"]}


def _up_to(ids: pa.ChunkedArray, end: Place) -> Any:
    """The rows of ids up to an entry, of which end is the last message."""
    return pc.indices_nonzero(before(ids.combine_chunks(), (end[0], end[1] + 1, -1)))


# The calls ----------------------------------------------------------------------------------------


class TableRead:
    """Topics as one table: what they held when this was made, as often as it is read. Any thread
    may read; each reading has readers of its own, and raises DataLossError where some of that was
    removed since."""

    def __init__(
        self,
        client: Any,
        topic: Any,
        columns: Iterable[str] | None,
        schema: Any,
        selection: Selection,
        metadata: Iterable[str],
        crypto_key_reader: Any,
        progress: Any,
        batch_size: int | None = None,
    ) -> None:
        """topic: a name, a list of names or a pattern. The rest as of Client.scan."""
        self._wanted = None if columns is None else _names(columns, "columns")
        self._described = _names(metadata, "metadata")
        for name in self._described:
            if name not in METADATA:
                raise ValueError(f"metadata has {name!r}; there are {', '.join(METADATA)}")
        if batch_size is not None and (type(batch_size) is not int or batch_size < 1):
            raise ValueError(f"batch_size is {batch_size!r}; it must be an int of at least 1")
        self._client = client
        self._selection = selection
        self._batch_size = batch_size
        self._show = progress_of(progress, "messages")
        names = topics_of(client, topic)
        self.topic: str = ", ".join(names)
        self._values: dict[Source, Values] = {
            source: values_of(source.schemas, schema)
            for source in _sources(client, names, schema, crypto_key_reader)
        }
        self._check_start()
        self._columns: pa.Schema | None = None  # of all values; None: not found yet

    def _check_start(self) -> None:
        parts = [each for source in self._values for each in source.partitions]
        chosen = self._selection
        for name, given in (
            ("start", chosen.start_index or chosen.start_id),
            ("end", chosen.end_index or chosen.end_id),
        ):
            if given in (None, MessageId.earliest, MessageId.latest) or len(parts) == 1:
                continue
            raise ValueError(
                f"{name} is {given}, a place in one partition, and {self.topic} has "
                f"{len(parts)}: name a partition ({parts[0]}), or give a time"
            )
        topics = self._client.admin.topics
        chosen.locate(lambda index: topics.get_message_id_by_index(parts[0], index))

    def find_columns(self) -> None:
        """Find the columns of values without a schema, by reading them once."""
        for source, values in self._values.items():
            if values.columns is None:
                assert isinstance(values, JsonValues)
                values.find(self._blocks_of(source, values, lambda count: None))

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table. find_columns, or a reading, was before."""
        names = self._names_of_values()
        return pa.schema([self._field(name) for name in (*names, *self.names_described())])

    def _names_of_values(self) -> list[str]:
        if self._columns is None:
            none = pa.schema([])
            self._columns = merged(
                (f"topic {source.topic}", none if values.columns is None else values.columns)
                for source, values in self._values.items()
            )
        if self._wanted is None:
            return list(self._columns.names)
        for name in self._wanted:
            if name not in self._columns.names:
                there = ", ".join(self._columns.names) or "none"
                raise ValueError(f"{self.topic} has no field {name!r}; it has {there}")
        return self._wanted

    def names_described(self) -> list[str]:
        """The columns that are none of values. ValueError: one has the name of a field."""
        found = [f"__{name}__" for name in self._described]
        for name in found:
            if self._columns is not None and name in self._columns.names:
                short = name.strip("_")
                raise ValueError(f"{self.topic} has a field {name}: leave {short} out of metadata")
        return found

    def _field(self, name: str) -> pa.Field:
        assert self._columns is not None
        if name in self._columns.names:
            return self._columns.field(name).with_nullable(True)
        return pa.field(name, METADATA_TYPES[name.strip("_")])

    # Reading --------------------------------------------------------------------------------------

    def table(self) -> pa.Table:
        """All of it. Columns of values without a schema are found while they are read once."""
        found = list(self._tables(self._wanted, self._described, None))
        schema = self.schema
        return pa.concat_tables([schema.empty_table(), *[_aligned(each, schema) for each in found]])

    def tables(self, names: list[str] | None, early: Early | None = None) -> Iterator[pa.Table]:
        """Tables of some columns, as they are read. find_columns was before. names: None, all.
        early: leaves out messages before their values are decoded."""
        schema = self.schema if names is None else of_names(self.schema, names)
        assert self._columns is not None
        described = [each.strip("_") for each in schema.names if each not in self._columns.names]
        wanted = [each for each in schema.names if each in self._columns.names]
        is_all = len(wanted) == len(self._columns)
        for table in self._tables(None if is_all else wanted, described, early):
            yield _aligned(table, schema)

    def _tables(
        self, wanted: list[str] | None, described: list[str], early: Early | None
    ) -> Iterator[pa.Table]:
        told = _Told(self._show, sum([each.total for each in self._values]))
        ways = dict(self._values)  # of this reading, whatever others find out meanwhile
        kept: dict[Source, list[Block]] | None = None
        for source in ways:
            done, told_before = 0, told.done
            while True:
                values = ways[source]
                if self._selection.last is not None and kept is None:
                    kept = self._last_blocks(ways, told)
                blocks = _behind(
                    self._blocks_of(source, values, told) if kept is None else kept.get(source, []),
                    done,
                )
                if early is not None:
                    blocks = filter(len, map(early, blocks))
                if self._selection.tombstones == "raise":
                    blocks = map(_without_tombstones, blocks)
                try:
                    for block, table in _tables_of(values, blocks, wanted):
                        done = block.reached
                        yield _with_metadata(table, block, described)
                except Refused:
                    assert isinstance(values, AvroValues)
                    # It has another way to take blocks; later readings begin with it.
                    ways[source] = self._values[source] = values.slow
                    told.done = told_before if kept is None else 0
                    kept = None
                else:
                    break
        told.end()

    def _blocks_of(
        self, source: Source, values: Values, told: Callable[[int], object]
    ) -> Iterator[Block]:
        return self._selection.of_all(self._read(source, values, told))

    def _last_blocks(
        self, ways: dict[Source, Values], told: Callable[[int], object]
    ) -> dict[Source, list[Block]]:
        """The newest messages of all sources, by source."""
        read = [self._read(source, values, told) for source, values in ways.items()]
        found: dict[Source, list[Block]] = {}
        for block in self._selection.of_all(chain.from_iterable(read)):
            assert block.source is not None
            found.setdefault(block.source, []).append(block)
        return found

    def _read(
        self, source: Source, values: Values, told: Callable[[int], object]
    ) -> Iterator[Block]:
        return source.blocks(
            values.take,
            values.reader_schema,
            self._selection,
            self._batch_size or ROWS,
            told,
        )


class _Told:
    """Shows how far a reading is."""

    def __init__(self, show: Callable[[int, int | None], object], total: int) -> None:
        self._show = show
        self._total = total
        self.done = 0

    def __call__(self, count: int) -> None:
        self.done += count
        if self.done < self._total:
            self._show(self.done, self._total)

    def end(self) -> None:
        self._show(self.done, self.done)


def _tables_of(
    values: Values, blocks: Iterator[Block], wanted: list[str] | None
) -> Iterator[tuple[Block, pa.Table | None]]:
    if wanted is not None and values.columns is not None:
        wanted = [each for each in wanted if each in values.columns.names]
    if wanted is not None and not wanted:
        return ((block, None) for block in blocks)
    return values.tables(blocks, wanted)


def topics_of(client: Any, topic: Any) -> list[str]:
    """Return the full names of the topics that are meant by a name, a list of names or a pattern.
    TopicNotFound: none matches the pattern. CorruptDataError: of a store, which topics it has."""
    if isinstance(topic, re.Pattern):
        return _matching(client, topic)
    given = [topic] if isinstance(topic, str) else list(topic)
    if not given:
        raise ValueError("topic is an empty list; name at least one topic")
    found = []
    for each in given:
        name = TopicName.of(each)
        if not name.persistent:
            raise errors.NotAllowedError(detail=f"{name} is non-persistent: it keeps no messages")
        found.append(str(name))
    return _names(found, "topic")


def _matching(client: Any, pattern: re.Pattern[str]) -> list[str]:
    wanted = TopicsPattern(pattern, RegexSubscriptionMode.PersistentOnly)
    if is_stored(client):
        client._broker.require_all()
    topics = client.admin.topics
    names = {
        *topics.get_list(wanted.namespace),
        *topics.get_partitioned_topic_list(wanted.namespace),
    }
    found = sorted(each for each in names if wanted.matches(TopicName.of(each)))
    if not found:
        raise errors.TopicNotFound(
            detail=f"topic={pattern!r}: no topic of {wanted.namespace} matches"
        )
    return found


def _sources(client: Any, topics: list[str], schema: Any, crypto_key_reader: Any) -> list[Source]:
    """One of each topic with a schema, and one of all without, whose types are found together."""
    plain: list[str] = []
    groups: list[tuple[list[str], list[SchemaInfo]]] = []
    for topic in topics:
        infos = client.admin.schemas.get_all_schemas(topic)
        if infos and not isinstance(schema, pa.Schema):
            groups.append(([topic], infos))
        else:
            if not plain:
                groups.append((plain, []))
            plain.append(topic)
    return [Source(client, names, infos, crypto_key_reader) for names, infos in groups]


def _names(given: Iterable[str], what: str) -> list[str]:
    if isinstance(given, str):
        raise ValueError(f"{what} is a str; give a list of names")
    found = list(given)
    if len(set(found)) < len(found):
        raise ValueError(f"{what} has a name twice: {found!r:.200}")
    return found


def _behind(blocks: Iterable[Block], done: int) -> Iterator[Block]:
    """Count the messages of blocks, and leave out the first ones."""
    reached = 0
    for block in blocks:
        reached += len(block)
        if reached > done:
            rest = block.tail(reached - done)
            rest.reached = reached
            yield rest


def _without_tombstones(block: Block) -> Block:
    values = block.table["value"]
    if values.null_count:
        row = pc.index(pc.is_null(values), True).as_py()
        raise ValueError(
            f"{block.name(row)} has no value (a tombstone); give tombstones='null' for a row of "
            "nulls, or tombstones='skip'"
        )
    return block


def metadata_of(block: Block, name: str) -> Any:
    """A column of what else messages have."""
    if name == "topic":
        assert block.source is not None
        return pa.repeat(pa.scalar(block.source.topic_of(block.topic)), len(block))
    return block.table[name]


def _with_metadata(table: pa.Table | None, block: Block, names: list[str]) -> pa.Table:
    if table is None or not table.num_columns:
        table = _rows(len(block))
    for name in names:
        table = table.append_column(f"__{name}__", metadata_of(block, name))
    return table


def _rows(count: int) -> pa.Table:
    """So many rows, without a column."""
    empty = pa.array([{}] * count, pa.struct([]))
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(empty)])


def _aligned(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with these columns: those that it has not are null."""
    if not len(schema):
        return _rows(table.num_rows)
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        column = table[field.name]
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, schema=schema)
