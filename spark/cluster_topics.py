"""The topics of a cluster as a plan sees them: ledgers and entries, from the admin REST API. Driver
only.

A place is (ledger, n, m): behind n entries of the ledger, and m messages of the next one. Where a
ledger is at its end and another one is there, the place is the beginning of that; (0, 0, 0) is the
beginning of a topic without ledgers. As text [ledger, n], or [ledger, n, m] inside a batch.
"""

from __future__ import annotations

import re

from pulsarx import errors
from pulsarx.admin.http_messages import milliseconds_of
from pulsarx.message_id import MessageId
from pulsarx.spark.cluster_access import ClusterAccess, partition_count, topic_path
from pulsarx.spark.entry_range import EntryRange
from pulsarx.spark.given_offsets import for_partitions
from pulsarx.topic_name import TopicName, check_keeps_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pulsarx.admin.http_channel import HttpChannel
    from pulsarx.schema.schema import SchemaInfo
    from pulsarx.spark.options import Options

    Place = tuple[int, int, int]
    Places = dict[str, Place]

BEGINNING = (0, 0, 0)
_DATED_MAX = 16  # topics that are asked for the time of an entry; each is a request
_LOSS = (
    "option failOnDataLoss false goes on with what is left. Keep messages until they are read, by "
    "a retention policy of the namespace"
)


class TopicLedgers:
    """One topic (partition) at one moment."""

    def __init__(self, name: str, stats: Mapping[str, Any]) -> None:
        """stats: internalStats; of the ledger that is open they say entries and size apart."""
        self.name = name
        self.partition: int = TopicName.of(name).partition_index
        last_ledger, last_entry = map(int, str(stats.get("lastConfirmedEntry", "-1:-1")).split(":"))
        self.ledgers: list[tuple[int, int, int]] = []  # id, entries, bytes
        for each in stats.get("ledgers", ()):
            number, count, size = int(each["ledgerId"]), int(each["entries"]), int(each["size"])
            if number == last_ledger and last_entry + 1 > count:
                count, size = last_entry + 1, max(int(stats.get("currentLedgerSize", 0)), size)
            self.ledgers.append((number, max(count, 0), max(size, 0)))

    def earliest(self) -> Place:
        return (self.ledgers[0][0], 0, 0) if self.ledgers else BEGINNING

    def latest(self) -> Place:
        return (self.ledgers[-1][0], self.ledgers[-1][1], 0) if self.ledgers else BEGINNING

    def resolved(self, place: Place, fail_on_data_loss: bool) -> Place:
        """The one form of a place. ValueError: the topic has no such place, and never had.
        DataLossError: what comes behind it was removed, as far as can be told."""
        number, entry, index = place
        if place == BEGINNING:
            return self.earliest()
        for at, (ledger, count, _) in enumerate(self.ledgers):
            if ledger == number:
                if entry > count or (entry == count and index):
                    raise self._no_such(place)
                is_over = entry == count and at + 1 < len(self.ledgers)
                return (self.ledgers[at + 1][0], 0, 0) if is_over else place
            if ledger > number:
                # A ledger without entries goes when its topic is loaded anew.
                if fail_on_data_loss and (at == 0 or entry or index):
                    raise errors.DataLossError(
                        detail=f"{self.name}: ledger {number} of offset {list(place)} is not there "
                        f"any more, the first one behind it is {ledger}. Whether messages of it "
                        f"were unread nobody can tell; {_LOSS}"
                    )
                return ledger, 0, 0
        if self.ledgers:
            raise self._no_such(place)
        if fail_on_data_loss:
            raise errors.DataLossError(
                detail=f"{self.name}: ledger {number} of offset {list(place)} is not there any "
                f"more, nor any other; {_LOSS}"
            )
        return BEGINNING

    def _no_such(self, place: Place) -> ValueError:
        return ValueError(
            f"{self.name}: offset {list(place)} is behind the last message, which is in front of "
            f"{list(self.latest())}: it is of another topic, or of one of this name that was "
            "deleted"
        )

    def amounts(self, begin: Place, end: Place) -> list[tuple[int, int, int, int]]:
        """List what lies between two places, for each ledger: id, first entry, entry behind the
        last, bytes."""
        found = []
        for number, count, size in self.ledgers:
            if not begin[0] <= number <= end[0]:
                continue
            first = begin[1] if number == begin[0] else 0
            last = end[1] + (1 if end[2] else 0) if number == end[0] else count
            if first < last:
                found.append((number, first, last, size * (last - first) // max(count, 1)))
        return found

    def advanced(self, begin: Place, end: Place, entries: int | None, size: int | None) -> Place:
        """Find the place behind so many entries, or about so many bytes, but one entry at least."""
        for number, first, last, its_size in self.amounts(begin, end):
            count = last - first
            most = count
            if entries is not None:
                most = min(most, entries)
                entries -= most
            if size is not None:
                most = min(most, max(size * count // max(its_size, 1), 1))
                size = max(size - its_size, 0)
            if most < count:
                return number, first + most, 0
            if entries == 0 or size == 0:
                return min(self.resolved((number, last, 0), False), end)
        return end

    def ranges(
        self, begin: Place, end: Place, target_bytes: int, **details: Any
    ) -> list[EntryRange]:
        found = []
        for number, first, last, size in self.amounts(begin, end):
            step = max(target_bytes * (last - first) // max(size, 1), 1)
            for start in range(first, last, step):
                stop = min(start + step, last)
                inside = begin[2] if (number, start) == begin[:2] else 0
                at_end = number == end[0] and stop == last and end[2]
                found.append(
                    EntryRange(
                        self.name,
                        self.partition,
                        number,
                        (start, inside),
                        (stop - 1, end[2]) if at_end else (stop, 0),
                        size * (stop - start) // (last - first),
                        **details,
                    )
                )
        return found


class ClusterBacklog:
    """The amount that is still to be read. A value."""

    __slots__ = ("bytes", "entries", "first_publish_ms", "ledgers")

    def __init__(self, entries: int, bytes: int, ledgers: int, first_publish_ms: int | None):
        self.entries: int = entries
        self.bytes: int = bytes
        self.ledgers: int = ledgers  # that have some of it
        # Of the topics' first ones; None: nothing is left, or too many topics have some.
        self.first_publish_ms: int | None = first_publish_ms


class ClusterTopics:
    """The topics that options name, looked at when `look` is called."""

    def __init__(self, options: Options) -> None:
        """TopicNotFound, ConnectError, AuthenticationError, ImportError: the driver cannot."""
        from pulsarx.cluster import official

        official.native()
        self.options = options
        self.access: ClusterAccess = ClusterAccess.of(options)
        self.admin: HttpChannel = self.access.admin()
        self.schemas: ClusterSchemas = ClusterSchemas(self.admin)
        self.cluster: str = _name_of(self.admin)
        self.topics: dict[str, TopicLedgers] = {}
        self.look()

    def look(self) -> None:
        """Ask again what there is."""
        whole = self._matching() if self.options.topicsPattern is not None else self._named()
        self.topics = {}
        for topic, count in whole.items():
            name = TopicName.of(topic)
            for each in [str(name.partition(at)) for at in range(count)] or [topic]:
                self.topics[each] = TopicLedgers(each, self._stats(each))

    def _stats(self, topic: str) -> Mapping[str, Any]:
        try:
            found: Mapping[str, Any] = self.admin.json(f"{topic_path(topic)}/internalStats")
            return found
        except errors.TopicNotFound:
            return {}  # of a partitioned topic that nobody has used yet

    def _named(self) -> dict[str, int]:
        found = {}
        for given in self.options.topics or [self.options.topic]:
            topic = str(check_keeps_messages(TopicName.of(given)))
            count = partition_count(self.admin, topic)
            if count is not None:
                found[topic] = count
            elif not self.options.waitForTopic:
                raise errors.TopicNotFound(detail=f"{topic} is not in {self.options.root}")
        return found

    def _matching(self) -> dict[str, int]:
        pattern = re.compile(self.options.topicsPattern)
        found = {}
        for tenant in self.admin.json("/tenants"):
            for namespace in self.admin.json(f"/namespaces/{tenant}"):
                whole = self.admin.json(f"/persistent/{namespace}/partitioned")
                every = [*whole, *self.admin.json(f"/persistent/{namespace}")]
                for topic in every:
                    name = TopicName.of(topic)
                    if name.local_name.startswith("__") or name.partitioned_name != topic:
                        continue  # of the cluster itself; or a partition, of which the whole is
                    forms = (topic, topic.removeprefix("persistent://"), name.local_name)
                    if any(pattern.fullmatch(form) for form in forms):
                        count = partition_count(self.admin, topic)
                        if count is not None:
                            found[topic] = count
        if not found and not self.options.waitForTopic and not self._may_be_empty:
            raise errors.TopicNotFound(
                detail=f"no topic in {self.options.root} matches {self.options.topicsPattern!r}"
            )
        return dict(sorted(found.items()))

    _may_be_empty = False  # a stream waits for topics

    # Places ---------------------------------------------------------------------------------------

    def earliest(self) -> Places:
        return {name: each.earliest() for name, each in self.topics.items()}

    def latest(self) -> Places:
        return {name: each.latest() for name, each in self.topics.items()}

    def at_time(self, time_ms: int, name: str) -> Place:
        """Find the place in front of the first message of that time or later, as the cluster finds
        it."""
        topic = self.topics[name]
        if not topic.ledgers:
            return BEGINNING
        found = self.admin.json(f"{topic_path(name)}/messageid/{time_ms}")
        number, entry = int(found["ledgerId"]), int(found["entryId"])
        if number < topic.ledgers[0][0]:
            return topic.earliest()
        index = max(int(found.get("batchIndex", -1)), 0)
        try:
            return min(topic.resolved((number, max(entry, 0), index), False), topic.latest())
        except ValueError:
            return topic.latest()

    def starting(self, default: str) -> Places:
        options = self.options
        if options.startingTimestamp is not None:
            return {name: self.at_time(options.startingTimestamp, name) for name in self.topics}
        return self._resolve(options.startingOffsets or default, options.startingOffsetsByTimestamp)

    def ending(self) -> Places:
        options = self.options
        return self._resolve(
            options.endingOffsets or "latest", options.endingOffsetsByTimestamp, complete=True
        )

    def _resolve(self, given: Any, times: Any, complete: bool = False) -> Places:
        if isinstance(times, dict):
            asked = for_partitions(times, self.topics)
            self._check_named(asked, complete)
            found = {name: self.at_time(time_ms, name) for name, time_ms in asked.items()}
        elif isinstance(given, dict):
            asked = for_partitions(given, self.topics)
            self._check_named(asked, complete)
            found = {name: self._place(name, each) for name, each in asked.items()}
        else:
            return self.latest() if given == "latest" else self.earliest()
        return self.earliest() | found

    def _check_named(self, given: Mapping[str, Any], complete: bool) -> None:
        unknown = sorted(set(given).difference(self.topics))
        missing = sorted(set(self.topics).difference(given)) if complete else []
        if unknown:
            raise ValueError(f"offsets name {', '.join(unknown)}, which is not read")
        if missing:
            raise ValueError(f"offsets of the end must name every partition; {missing[0]} is not")

    def _place(self, name: str, given: Any) -> Place:
        topic = self.topics[name]
        if given == "earliest":
            return topic.earliest()
        if given == "latest":
            return self.latest()[name]
        if isinstance(given, str):
            found = MessageId.from_text(given)
            given = (found.ledger_id(), found.entry_id(), max(found.batch_index(), 0))
        place = (*given, 0)[:3]
        return topic.resolved((place[0], place[1], place[2]), self.options.failOnDataLoss)

    def resolved(self, places: Places, fail_on_data_loss: bool) -> Places:
        """In the one form, of topics that there are."""
        gone = sorted(set(places).difference(self.topics))
        if gone and fail_on_data_loss:
            raise errors.DataLossError(
                detail=f"{gone[0]} is not in {self.options.root} any more; {_LOSS}"
            )
        return {
            name: self.topics[name].resolved(place, fail_on_data_loss)
            for name, place in places.items()
            if name in self.topics
        }

    def backlog(self, reached: Places) -> ClusterBacklog:
        """Measure what lies behind these places, as of the last look, and the age of its first
        message."""
        places = self.earliest() | self.resolved(reached, False)
        latest = self.latest()
        first: list[tuple[str, int, int]] = []
        entries = size = ledgers = 0
        for name, place in places.items():
            found = self.topics[name].amounts(place, latest[name])
            first += [(name, number, entry) for number, entry, *_ in found[:1]]
            entries += sum(last - start for _, start, last, _ in found)
            size += sum(its_size for *_, its_size in found)
            ledgers += len(found)
        published: list[int] = []
        if len(first) <= _DATED_MAX:
            published = [self._published_ms(*each) for each in first]
        is_dated = len(published) == len(first) and all(published)
        return ClusterBacklog(
            entries, size, ledgers, min(published) if first and is_dated else None
        )

    def _published_ms(self, topic: str, ledger: int, entry: int) -> int:
        """0: it is not told."""
        found = self.admin.ask("GET", f"{topic_path(topic)}/ledger/{ledger}/entry/{entry}")
        return milliseconds_of(found.headers.get("X-Pulsar-publish-time"))

    def limited(self, begin: Places, end: Places) -> Places:
        """Find where a micro-batch ends: what it may have is shared by how much each topic has."""
        options = self.options
        entries, size = options.maxEntriesPerTrigger, options.maxBytesPerTrigger
        if entries is None and size is None:
            return end
        left = {
            name: self.topics[name].amounts(begin[name], end[name])
            for name in end
            if begin[name] < end[name]
        }
        found = dict(end)
        count = sum(last - first for each in left.values() for _, first, last, _ in each)
        total = sum(its_size for each in left.values() for *_, its_size in each)
        for name, mine in left.items():
            its_count = sum(last - first for _, first, last, _ in mine)
            its_size = sum(part[3] for part in mine)
            found[name] = self.topics[name].advanced(
                begin[name],
                end[name],
                None if entries is None else max(entries * its_count // max(count, 1), 1),
                None if size is None else max(size * its_size // max(total, 1), 1),
            )
        return found

    def ranges(
        self, begin: Places, end: Places, columns: tuple[str, ...], **times: Any
    ) -> list[EntryRange]:
        options = self.options
        between = {
            name: (begin[name], end[name])
            for name in self.topics
            if begin.get(name, BEGINNING) < end.get(name, BEGINNING)
        }
        total = sum(
            size
            for name, (first, last) in between.items()
            for *_, size in self.topics[name].amounts(first, last)
        )
        target = options.maxBytesPerPartition
        if options.minPartitions > 1:
            target = min(target, max(total // options.minPartitions, 1))
        return [
            each
            for name, (first, last) in between.items()
            for each in self.topics[name].ranges(first, last, target, columns=columns, **times)
        ]


class ClusterSchemas:
    """The schemas of a cluster's topics, as a plan of values asks for them."""

    def __init__(self, admin: Any) -> None:
        self._admin = admin

    def versions(self, topic: TopicName) -> list[SchemaInfo]:
        from pulsarx.admin.schemas import Schemas

        try:
            return Schemas(self._admin).get_all_schemas(topic.full)
        except errors.TopicNotFound:
            return []

    def check(self, topic: TopicName, info: SchemaInfo) -> None:
        """IncompatibleSchema: the topic has schemas, and this may not be the next one; or it has
        not this one, and no producer may bring it."""
        from pulsarx.admin.schemas import Schemas

        versions = self.versions(topic)
        if any(_is_same(each, info) for each in versions):
            return
        namespace = topic.namespace_name
        if self._admin.json(f"/namespaces/{namespace}/isAllowAutoUpdateSchema") is False:
            raise errors.IncompatibleSchema(
                detail=f"{topic} does not have the definition, and is_allow_auto_update_schema of "
                f"{namespace} is off, so no producer registers it; register it with "
                "admin.schemas.create_schema"
            )
        if not versions:
            return
        found = Schemas(self._admin).test_compatibility(topic.full, info)
        if not found["compatibility"]:
            raise errors.IncompatibleSchema(
                detail=f"{topic}: the definition is not compatible with the topic's last schema, "
                f"by the strategy {found['schema_compatibility_strategy']}"
            )


def _is_same(one: SchemaInfo, other: SchemaInfo) -> bool:
    import json

    return one.schema_type() == other.schema_type() and (
        json.loads(one.schema() or "null") == json.loads(other.schema() or "null")
    )


def _name_of(admin: Any) -> str:
    """The name of the cluster: what a checkpoint says that its offsets are of."""
    found = admin.json("/clusters")
    return "cluster " + ", ".join(sorted(found))


class AwaitingTopics(ClusterTopics):
    """The topics of a stream, for which topics that match may come later."""

    _may_be_empty = True
