"""Puts the state of a catalogue together, of as much of the old one as can be read, and of what the
headers of ledgers and cursors say. Used by salvaging.

What the old catalogue does not name and would name, because it was made before the last commit that
can be read, was removed: it is left out. All of that commit counts, so where all of the catalogue
is whole, nothing else does.
"""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx.backups.contents import Damage, SalvagedTopic
from pulsarx.backups.salvaged_compaction import compaction_of, holds_survivors
from pulsarx.broker.catalogue.records import (
    LEDGER_SEALED,
    CompactionRecord,
    LedgerRecord,
    SubscriptionRecord,
    TopicRecord,
)
from pulsarx.broker.catalogue.topic_operations import with_runs
from pulsarx.broker.ledgers.aborted_messages import runs_without
from pulsarx.broker_options import PARTITION_COUNT_MAX
from pulsarx.clock import wall_ms
from pulsarx.topic_name import PARTITION_SUFFIX, TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pulsarx.backups.contents import Salvaged
    from pulsarx.backups.found_ledgers import FoundLedger
    from pulsarx.broker.catalogue.records import OffloadRecord, Runs
    from pulsarx.broker.catalogue.state import CatalogueState

_NAMESPACE = "persistent://public/salvaged"  # of topics whose name nothing says
_ID_MAX = 1 << 53  # no folder comes so far
_KEPT = {"time_minutes": -1, "size_mb": -1}  # a retention that removes nothing
_LOST = (
    "policies, schemas, permissions and properties, which topics are terminated, what applications "
    "have attached, copies in object stores, which transactions were aborted, and topics and "
    "subscriptions that have no file yet"
)


class _Place:
    """Topic and id of a ledger that was found. A value."""

    __slots__ = ("compacted", "found", "ledger_id", "topic")

    def __init__(self, found: FoundLedger, topic: str, ledger_id: int, compacted: bool) -> None:
        self.found = found
        self.topic = topic
        self.ledger_id = ledger_id  # 0: another one is to be given
        self.compacted = compacted


class SalvagedState:
    """The state that one salvage finds. In this order: files of ledgers, `settled`, cursors,
    `finished`."""

    def __init__(self, state: CatalogueState, why: str, made: Salvaged) -> None:
        """state: what can be read of the catalogue. why: not more of it can; "": all can. made:
        gets what is left out and assumed."""
        self._state = state
        self._made = made
        self._is_known = state.number > 0
        self._is_whole = not why
        self._next_id = state.next_id
        self._by_uuid: dict[str, tuple[str, LedgerRecord | CompactionRecord]] = {}
        self._places: dict[int, dict[int, str]] = {}  # uuids by file and offset
        self._cursor_ids: set[int] = set()
        self._removed: set[int] = set()  # files that the catalogue has forgotten
        self._removed_cursors: set[int] = set()
        self._index()
        self._found: dict[str, tuple[FoundLedger, bool]] = {}  # by uuid; whether alone in its file
        self._settled: dict[int, _Place] = {}
        self._ledgers: dict[str, list[LedgerRecord]] = {}
        # Messages of transactions that were open, by topic and ledger.
        self._left: dict[str, Runs] = {}
        self._compactions: dict[str, tuple[CompactionRecord, str]] = {}  # and its file
        self._subscriptions: dict[str, dict[str, SubscriptionRecord]] = {}
        self._seen_cursors: set[int] = set()
        self._partitions: dict[str, int] = {}  # as ledgers say, by partitioned topic
        if why:
            self._tell_catalogue(why)

    def _index(self) -> None:
        for topic in self._state.topics.values():
            records: list[LedgerRecord | CompactionRecord] = [*topic.ledgers]
            if topic.compaction is not None and topic.compaction.ledger_id:
                records.append(topic.compaction)
            for each in records:
                self._by_uuid[each.uuid] = topic.name, each
                at = each.merged_at if isinstance(each, LedgerRecord) else 0
                self._places.setdefault(each.file_id, {})[at] = each.uuid
            self._cursor_ids |= {each.cursor_id for each in topic.subscriptions.values()}
        for deletion in self._state.deletions.values():
            self._removed |= {each[0] for each in deletion.ledgers}
            self._removed_cursors |= set(deletion.cursor_ids)

    def _tell_catalogue(self, why: str) -> None:
        if self._is_known:
            text = (
                f"the catalogue is read up to commit {self._state.number}: {why}. Of what came "
                "later only that counts which files of ledgers and cursors say; lost of it are "
                f"{_LOST}"
            )
        else:
            text = f"no part of the catalogue can be read: {why}. Lost are {_LOST}"
        self._tell("catalogue", "catalogue", text)

    # Files ----------------------------------------------------------------------------------------

    def takes_file(self, file_id: int, name: str) -> bool:
        """Whether a file of ledgers may belong to the folder, by its name."""
        if not self._is_known or file_id in self._places:
            return True
        if file_id in self._removed:
            return False  # the next owner would have unlinked it
        if not self._was_made_later(file_id):
            self._tell("ledger", name, f"{name} is left out: the catalogue does not name it")
            return False
        return True

    def _was_made_later(self, identifier: int) -> bool:
        return not self._is_whole and identifier >= self._state.next_id

    def places(self, file_id: int) -> dict[int, str]:
        """The offsets in a file at which ledgers begin, by the catalogue, and their uuids."""
        return self._places.get(file_id, {})

    def offloads(self, there: set[int]) -> list[tuple[int, OffloadRecord]]:
        """The files that are not there and have a copy in an object store."""
        return [
            (file_id, self._state.offloads[file_id])
            for file_id in sorted(self._places.keys() - there)
            if file_id in self._state.offloads and self._state.offloads[file_id].size
        ]

    def known_topic_ids(self) -> list[int]:
        """The ids of topics that the catalogue knows and that hold messages."""
        return [each.topic_id for each in self._state.topics.values() if not each.partition_count]

    # Ledgers --------------------------------------------------------------------------------------

    def add_ledger(self, found: FoundLedger, is_alone: bool) -> None:
        """is_alone: in its file, whose name is its id then. One that was merged and is still in a
        file of its own counts once."""
        before = self._found.get(found.uuid)
        if before is None or (found.sealed and not before[0].sealed):
            self._found[found.uuid] = found, is_alone

    def settled(self) -> Iterator[tuple[int, str, FoundLedger]]:
        """Decide what the ledgers are: id and topic of each, in the order of their ids. Behind all
        `add_ledger`."""
        places: list[_Place] = []
        for found, is_alone in self._found.values():
            place = self._place_of(found, is_alone)
            if place is not None:
                places.append(place)
        taken: set[int] = set()
        for place in places:
            if place.ledger_id in taken:
                place.ledger_id = 0
            taken.add(place.ledger_id)
        self._next_id = max(self._next_id, *(each + 1 for each in taken), 1)
        for place in places:
            self._next_id = max(self._next_id, place.found.file_id + 1)
        for place in places:
            if not place.ledger_id:
                place.ledger_id = self._new_id()
                self._assume(
                    f"a ledger at offset {place.found.at} of {place.found.source} gets the id "
                    f"{place.ledger_id}, as nothing says which it had, or another one has that"
                )
            self._settled[place.ledger_id] = place
        for ledger_id in sorted(self._settled):
            place = self._settled[ledger_id]
            yield ledger_id, place.topic, place.found

    def _place_of(self, found: FoundLedger, is_alone: bool) -> _Place | None:
        known = self._by_uuid.get(found.uuid)
        if known is not None:
            topic, record = known
            return _Place(found, topic, record.ledger_id, isinstance(record, CompactionRecord))
        ledger_id = found.file_id if is_alone else 0
        name = found.name
        where = f"offset {found.at} of {found.source}"
        if name is not None and _is_topic(name.topic):
            if name.cut:
                self._assume(
                    f"{name.topic} is the beginning of the name of its topic, which was too long "
                    "for the header of a ledger"
                )
            self._add_partitions(name, where)
            named_id = name.ledger_id or ledger_id
            if named_id > _ID_MAX:
                self._assume(
                    f"the ledger at {where} says that its id is {named_id}, which none can have"
                )
                named_id = 0
            return _Place(found, name.topic, named_id, name.compacted)
        if holds_survivors(found.path, found.at, found.size):
            self._tell(
                "compacted ledger",
                found.source,
                f"what a compaction left at {where} is left out: nothing says of which topic",
                offset=found.at,
                size=found.size,
            )
            return None
        topic = f"{_NAMESPACE}/ledger-{found.file_id}"
        self._assume(f"nothing says of which topic the ledger at {where} is: it is now of {topic}")
        return _Place(found, topic, ledger_id, False)

    def _add_partitions(self, name: Any, where: str) -> None:
        whole = TopicName.of(name.topic).partitioned_name
        count = name.partition_count
        if count > PARTITION_COUNT_MAX:
            self._assume(
                f"the ledger at {where} says that {whole} has {count} partitions, which none can"
            )
            count = 0
        self._partitions[whole] = max(self._partitions.get(whole, 0), count)

    def was_open(self, ledger_id: int) -> bool:
        """Whether the catalogue says so, all of which is there: what it does not say of
        transactions in the ledger was never decided."""
        _, known = self._by_uuid.get(self._settled[ledger_id].found.uuid, ("", None))
        is_open = isinstance(known, LedgerRecord) and known.state != LEDGER_SEALED
        return is_open and self._is_whole

    def put(
        self,
        ledger_id: int,
        summary: Any,
        damaged: bool,
        path: str,
        told: int,
        transacted: list[list[int]],
    ) -> None:
        """The ledger is sealed, at this path. summary: a LedgerSummary. told: how many messages
        that it lacks were told. transacted: those of transactions, where it was open."""
        place = self._settled[ledger_id]
        found = place.found
        _, known = self._by_uuid.get(found.uuid, ("", None))
        if place.compacted:
            self._put_compaction(place, summary, path, known)
            return
        sealed_ms, first_index = 0, found.first_index
        if isinstance(known, LedgerRecord):
            sealed_ms = known.sealed_ms
            first_index = max(first_index, known.first_index)
            self._tell_lost(place, known, known.message_count - summary.message_count - told)
        topic = self._state.topics.get(place.topic)
        if transacted and topic is not None:
            left = runs_without(transacted, topic.committed.get(ledger_id, []))
            self._left.setdefault(place.topic, {})[ledger_id] = left
        self._ledgers.setdefault(place.topic, []).append(
            LedgerRecord(
                ledger_id,
                found.uuid,
                -1,
                LEDGER_SEALED,
                summary.entry_count,
                summary.message_count,
                summary.size,
                summary.first_publish_ms,
                summary.last_publish_ms,
                sealed_ms or wall_ms(),
                damaged,
                first_index=first_index,
            )
        )

    def _put_compaction(
        self, place: _Place, summary: Any, path: str, known: LedgerRecord | CompactionRecord | None
    ) -> None:
        record = known if isinstance(known, CompactionRecord) else None
        if record is None:
            name = place.found.name
            horizon = (0, 0, 0) if name is None else name.horizon
            record = compaction_of(path, place.ledger_id, summary, horizon, wall_ms())
        if record is None:
            source = place.found.source
            self._tell(
                "compacted ledger",
                source,
                f"compacted ledger {place.ledger_id} of {place.topic} is left out: no entry of it "
                "can be read",
                topic=place.topic,
                ledger_id=place.ledger_id,
            )
            os.unlink(path)
            return
        before = self._compactions.get(place.topic)
        if before is not None:
            os.unlink(before[1])  # what came before the last compaction
        self._compactions[place.topic] = record, path

    def drop(self, ledger_id: int, *, was_sealed: bool) -> None:
        """The ledger holds nothing."""
        place = self._settled[ledger_id]
        self._ledgers.setdefault(place.topic, [])
        _, known = self._by_uuid.get(place.found.uuid, ("", None))
        if isinstance(known, LedgerRecord) and known.message_count:
            self._tell_lost(place, known, known.message_count)
        elif was_sealed:
            self._tell(
                "ledger",
                place.found.source,
                f"ledger {ledger_id} of {place.topic}: nothing that was stored in it is left, and "
                "how many messages that were is not known",
                topic=place.topic,
                ledger_id=ledger_id,
            )

    def _tell_lost(self, place: _Place, known: LedgerRecord, messages: int) -> None:
        """Tell of messages that the catalogue has in a ledger, and its file has not."""
        if messages <= 0:
            return
        self._tell(
            "ledger",
            place.found.source,
            f"ledger {place.ledger_id} of {place.topic}: the catalogue has {known.message_count} "
            f"messages in it, of which {messages} are not there",
            topic=place.topic,
            ledger_id=place.ledger_id,
            messages=messages,
        )

    # Cursors --------------------------------------------------------------------------------------

    def has_cursor(self, cursor_id: int) -> bool:
        """Whether a later generation of it is whole."""
        return cursor_id in self._seen_cursors

    def add_cursor(self, cursor_id: int, name: str, label: Any) -> bool:
        """Whether the file of that name is part of the folder. label: a SubscriptionLabel, or
        None. Those of higher ids come first."""
        self._seen_cursors.add(cursor_id)
        self._next_id = max(self._next_id, cursor_id + 1)
        if cursor_id in self._cursor_ids:
            return True
        if cursor_id in self._removed_cursors:
            return False
        why = ""
        if self._is_known and not self._was_made_later(cursor_id):
            why = "the catalogue does not name it"
        elif label is None or not _is_topic(label.topic):
            why = "nothing says whose it is"
        elif label.name in self._subscriptions.get(label.topic, {}):
            why = f"there is a later one of subscription {label.name} of {label.topic}"
        if why:
            self._tell("cursor", name, f"{name} is left out: {why}")
            return False
        if label.cut:
            self._assume(
                f"of the names of subscription {label.name} of {label.topic} one is the beginning "
                "of a longer one, as both were too long for the header of its cursor"
            )
        self._subscriptions.setdefault(label.topic, {})[label.name] = SubscriptionRecord(
            label.name, cursor_id, label.type, label.created_ms, {}, label.initial_ledger_id,
            label.initial_message,
        )  # fmt: skip
        return True

    # The state ------------------------------------------------------------------------------------

    def finished(self) -> CatalogueState | None:
        """All of it; None: there is nothing. Behind everything else."""
        state = self._state
        found = {*self._ledgers, *self._compactions, *self._subscriptions}
        if not self._is_known and not found:
            return None
        for name, record in list(state.topics.items()):
            state.topics[name] = self._known_topic(record)
        for name in sorted(found.difference(state.topics)):
            self._fill(self._new_topic(name))
        self._make_partitions()
        self._make_namespaces()
        # As of a copy: there are no files to be removed, and its objects are another folder's.
        state.leases.clear()
        state.deletions.clear()
        state.offloads.clear()
        state.number = max(state.number, 1)
        state.next_id = self._next_id
        self._made.found = [
            SalvagedTopic(
                each.name,
                len(each.ledgers),
                sum(ledger.message_count for ledger in each.ledgers),
                list(each.subscriptions),
            )
            for each in state.topics.values()
            if not each.partition_count
        ]
        return state

    def _make_namespaces(self) -> None:
        state = self._state
        if not self._is_known:
            state.namespaces.clear()
        lost: set[str] = set()
        for topic, record in list(state.topics.items()):
            namespace = TopicName.of(topic).namespace_name
            if not self._is_whole:
                # Else the first who opens it would trim what the lost policies have kept.
                known = state.namespaces.get(namespace, {})
                state.namespaces[namespace] = {**known, "retention": {**_KEPT}}
                lost.add(namespace)
                if "retention" in record.policies:
                    state.topics[topic] = made = record.copy()
                    made.policies["retention"] = {**_KEPT}
            state.tenants.setdefault(namespace.partition("/")[0], {})
        state.namespaces.setdefault("public/default", {})
        if lost:
            self._assume(
                f"the policies of {', '.join(sorted(lost))} are lost, or the last changes of them: "
                "what is acknowledged is kept there without a limit, until set_retention says "
                "otherwise"
            )

    def _known_topic(self, record: TopicRecord) -> TopicRecord:
        made = record.copy()
        self._fill(made)
        there = {each.ledger_id for each in made.ledgers}
        for ledger in record.ledgers:
            if ledger.ledger_id not in there and ledger.ledger_id not in self._settled:
                self._tell_missing(record.name, ledger)
        if record.compaction is not None and record.compaction.ledger_id:
            if made.compaction is None:
                self._tell(
                    "compacted ledger",
                    _file_of(record.compaction.ledger_id),
                    f"compacted ledger {record.compaction.ledger_id} of {record.name} is missing: "
                    f"{record.compaction.message_count} messages survived in it",
                    topic=record.name,
                    ledger_id=record.compaction.ledger_id,
                )
        else:
            made.compaction = made.compaction or record.compaction
        return made

    def _fill(self, topic: TopicRecord) -> None:
        topic.ledgers = self._ledgers.get(topic.name, [])
        topic.merged = {}
        there = {each.ledger_id for each in topic.ledgers}
        topic.committed = {}  # all are sealed
        topic.aborted = {each: runs for each, runs in topic.aborted.items() if each in there}
        for ledger_id, runs in self._left.get(topic.name, {}).items():
            if runs:
                topic.aborted[ledger_id] = with_runs(topic.aborted.get(ledger_id, ()), runs)
        topic.compaction = self._compactions.get(topic.name, (None, ""))[0]
        topic.subscriptions |= self._subscriptions.get(topic.name, {})

    def _tell_missing(self, topic: str, ledger: LedgerRecord) -> None:
        if ledger.state != LEDGER_SEALED and not ledger.message_count:
            text = "its file is missing, and how many messages it held is not known"
        else:
            text = f"its file is missing; the catalogue has {ledger.message_count} messages in it"
        if not self._is_whole:
            text += ", unless it was removed later"
        self._tell(
            "ledger",
            _file_of(ledger.file_id),
            f"ledger {ledger.ledger_id} of {topic}: {text}",
            topic=topic,
            ledger_id=ledger.ledger_id,
            messages=ledger.message_count,
        )

    def _new_topic(self, name: str, partition_count: int = 0) -> TopicRecord:
        made = TopicRecord(self._new_id(), name, partition_count, {})
        # Nothing says that it holds none, and then ids of chunks could not be found.
        made.chunked = not partition_count
        self._state.topics[name] = made
        return made

    def _make_partitions(self) -> None:
        """Make the partitioned topics of partitions, and the partitions that they lack."""
        counts: dict[str, int] = {}
        for name in map(TopicName.of, self._state.topics):
            if name.partition_index >= PARTITION_COUNT_MAX:
                self._assume(f"{name.full} is no partition: no topic can have so many")
            elif name.partition_index >= 0:
                counts[name.partitioned_name] = max(
                    counts.get(name.partitioned_name, 0), name.partition_index + 1
                )
        for whole, found in counts.items():
            record = self._state.topics.get(whole)
            if record is not None and not record.partition_count:
                self._assume(
                    f"{whole} holds messages itself, so topics named as partitions of it are none"
                )
                continue
            count = max(found, self._partitions.get(whole, 0))
            if record is not None and record.partition_count >= count:
                continue
            if count > self._partitions.get(whole, 0):
                self._assume(f"{whole} has {count} partitions, by the highest that has a file")
            if record is None:
                self._new_topic(whole, count)
            else:
                made = record.copy()
                made.partition_count = count
                self._state.topics[whole] = made
            for index in range(count):
                partition = f"{whole}{PARTITION_SUFFIX}{index}"
                if partition not in self._state.topics:
                    self._new_topic(partition)

    # ----------------------------------------------------------------------------------------------

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _assume(self, text: str) -> None:
        if text not in self._made.assumed:
            self._made.assumed.append(text)

    def _tell(self, what: str, file: str, text: str, **more: Any) -> None:
        self._made.damage.append(Damage(what, file, text, **more))


def _is_topic(name: str) -> bool:
    """Whether it is the full name of a topic that keeps messages."""
    try:
        found = TopicName.of(name)
    except (errors.PulsarException, ValueError):
        return False
    return found.persistent and found.full == name


def _file_of(ledger_id: int) -> str:
    return f"ledgers/{ledger_id & 255:02x}/{ledger_id}.ledger"
