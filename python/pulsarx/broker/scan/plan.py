"""Turns topics, a start and an end into ledger ranges: what a job that reads a folder begins with.

Works in the owner's process and beside it (a client opened read_only). Whole ledgers are planned by
the catalogue alone; a file is opened only to cut it.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.collector_paused import call_paused
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ranges.range_batch import COLUMNS, check_columns
from pulsarx.broker.ledgers.ledger_gone import LedgerTrimmed
from pulsarx.broker.scan.ledger_range import LedgerRange
from pulsarx.broker.scan.offsets import BEGINNING, EARLIEST, LATEST, parse_offsets
from pulsarx.broker.scan.plan_limit import BYTES, ENTRIES, MESSAGES, amount, limit_offsets
from pulsarx.broker.scan.plan_piece import DATA_OFFSET, Piece, cut_pieces
from pulsarx.broker.scan.planned_topic import Moved, PlannedTopic, lost, unknown
from pulsarx.broker.topics.partitioned_topic import partition_count_of, partition_names
from pulsarx.topic_name import TopicName, check_keeps_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.catalogue.records import LedgerRecord, OffloadRecord
    from pulsarx.broker.ledgers.ledger_list import LedgerList
    from pulsarx.broker.read_only_broker import ReadOnlyBroker
    from pulsarx.broker.scan.offsets import GivenOffsets, Offsets, Position

    Boundary = str | int | GivenOffsets
    Found = TypeVar("Found")

TARGET_BYTES = 128 << 20
_ATTEMPTS_MAX = 10  # while an owner seals and removes ledgers under the planner's eyes


class Backlog:
    """The amount that is still to be read. A value."""

    __slots__ = ("messages", "bytes", "ledgers", "first_publish_ms")

    def __init__(
        self, messages: int, bytes: int, ledgers: int, first_publish_ms: int | None
    ) -> None:
        self.messages: int = messages
        self.bytes: int = bytes  # of files
        self.ledgers: int = ledgers  # that have some of it
        self.first_publish_ms: int | None = (
            first_publish_ms  # of the topics' first ones; None: nothing is left
        )


class Planner:
    """Plans over some topics again and again, as a stream does. One thread at a time."""

    def __init__(
        self,
        broker: Broker | ReadOnlyBroker,
        topics: str | Iterable[str],
        *,
        sealed_only: bool = False,
    ) -> None:
        """topics: those with partitions stand for all of them, also for those that come later.

        sealed_only: topics end in front of their first open ledger. For hosts other than the
            owner's: a network file system does not show them how far an open ledger is written.
        TopicNotFound: there is no such topic. OperationNotSupported: a broker in memory.
        """
        self._broker = broker
        given = [topics] if isinstance(topics, str) else list(topics)
        if not given:
            raise ValueError("no topic is named")
        self._topics = [check_keeps_messages(TopicName.of(name)) for name in given]
        self._sealed_only = sealed_only
        self._number = -1  # of the catalogue's last commit that the tails are from
        self._tails: list[PlannedTopic] = []
        self._growing: list[PlannedTopic] = []  # those of them that may get a ledger any time
        self._lost_slots: set[int] = set()  # ledgers whose end is not published
        self._broker.state.require_open()
        if not self._broker.directory.ledger_path(1):
            raise errors.OperationNotSupported(
                detail=f"plan over {self._broker.directory.path}: a broker in memory has no files "
                "that another process could read. Use a folder"
            )
        self._load()

    @property
    def topics(self) -> list[str]:
        """Full names; of a topic with partitions those of all partitions."""
        self._load()
        return [tail.name for tail in self._tails]

    # Offsets --------------------------------------------------------------------------------------

    def earliest(self) -> Offsets:
        """Offsets behind the last message that retention removed."""
        self._load()
        return {tail.name: self._removed(tail.name) for tail in self._tails}

    def latest(self) -> Offsets:
        """Offsets behind the last published message. Costs microseconds while nothing changes."""
        return self._steadily(lambda: {tail.name: self._end_of(tail) for tail in self._tails})

    def at_time(self, publish_time_ms: int) -> Offsets:
        """Offsets in front of the first message published at this time or later (milliseconds since
        1970); the end where there is none."""

        def look() -> Offsets:
            return {tail.name: self._at_time(tail, publish_time_ms) for tail in self._tails}

        return self._steadily(look)

    def _at_time(self, tail: PlannedTopic, publish_time_ms: int) -> Position:
        found = self._one_form(tail.ledgers, tail.ledgers.position_at_time(publish_time_ms))
        return min(found, tail.sealed_end) if self._sealed_only else found

    def resolve(
        self, boundary: Boundary, *, fail_on_data_loss: bool = True, complete: bool = False
    ) -> Offsets:
        """Offsets in their one form, checked against what there is.

        boundary: "earliest", "latest", milliseconds since 1970, or offsets (also as text).
        complete: every topic must be named, else those missing are unread.
        DataLossError: retention removed messages behind an offset; unless fail_on_data_loss is off,
        then reading begins with what is left. ValueError: no offset of these topics.
        """
        if boundary == LATEST:
            return self.latest()
        if boundary == EARLIEST:
            return self.earliest()
        if isinstance(boundary, int):
            return self.at_time(boundary)
        given = parse_offsets(boundary) if isinstance(boundary, str) else boundary

        def look() -> Offsets:
            self._check_names(given, complete)
            return {
                tail.name: self._resolve_one(tail, given[tail.name], fail_on_data_loss)
                if tail.name in given
                else self._removed(tail.name)
                for tail in self._tails
            }

        return self._steadily(look)

    def _check_names(self, given: GivenOffsets, complete: bool) -> None:
        known = {tail.name for tail in self._tails}
        unknown = sorted(given.keys() - known)
        if unknown:
            raise ValueError(
                f"the offsets are of other topics: {', '.join(unknown[:5])}; "
                f"read are {', '.join(sorted(known)[:5])}. Start without these offsets"
            )
        missing = sorted(known - given.keys())
        if complete and missing:
            raise ValueError(f"the offsets do not name {', '.join(missing[:5])}")

    def _resolve_one(
        self, tail: PlannedTopic, given: Position | str, fail_on_data_loss: bool
    ) -> Position:
        name, ledgers = tail.name, tail.ledgers
        if given == LATEST:
            return self._end_of(tail)
        if given == EARLIEST:
            return self._removed(name)
        if isinstance(given, str):
            given = self._position_of_id(ledgers, given, fail_on_data_loss)
        ledger_id, count = given
        removed = self._removed(name)
        found = next((each for each in ledgers.ledgers() if each.ledger_id == ledger_id), None)
        if found is not None:
            there = self._published(ledgers, found)
            if count <= there or (self._sealed_only and found.state != "sealed"):
                return self._one_form(ledgers, given)
            if fail_on_data_loss:
                raise lost(
                    f"offset [{ledger_id}, {count}] of {name}: ledger {ledger_id} has only {there} "
                    "messages. A power cut took the others, or the folder was put back from a copy"
                )
            return ledger_id, there
        if (ledger_id, count) == removed:
            return removed
        if ledger_id > removed[0] and any(e.ledger_id < ledger_id for e in ledgers.ledgers()):
            raise ValueError(
                f"offset [{ledger_id}, {count}] of {name}: the topic never had ledger {ledger_id}. "
                "It is of another topic or folder; start without these offsets"
            )
        if ledger_id == removed[0] and count > removed[1]:
            raise ValueError(
                f"offset [{ledger_id}, {count}] of {name}: ledger {ledger_id} had {removed[1]} "
                "messages only. It is of another topic or folder; start without these offsets"
            )
        if fail_on_data_loss:
            raise lost(
                f"offset [{ledger_id}, {count}] of {name}: retention has removed what followed; "
                f"what is left begins behind [{removed[0]}, {removed[1]}]"
            )
        return removed

    def _position_of_id(self, ledgers: LedgerList, text: str, fail_on_data_loss: bool) -> Position:
        """The position in front of the message with this id."""
        from pulsarx._pycore.message.message_id import MessageId

        identity = MessageId.from_text(text)
        ledger_id, ordinal, count = ledgers.locate(identity)
        there = any(each.ledger_id == ledger_id for each in ledgers.ledgers())
        if there and not count and identity.entry_id() >= 0 and fail_on_data_loss:
            raise lost(
                f"offset {text!r} of {ledgers.name}: ledger {ledger_id} has no such message (any "
                "more)"
            )
        return ledger_id, ordinal

    def _one_form(self, ledgers: LedgerList, position: Position) -> Position:
        """The position in its one form: behind the message before it, in the ledger of that one."""
        ledger_id, count = position
        if count:
            return position
        for ledger in reversed(ledgers.ledgers()):
            if ledger.ledger_id < ledger_id:
                there = self._published(ledgers, ledger)
                if there:
                    return ledger.ledger_id, there
        return self._removed(ledgers.name)

    # Amounts --------------------------------------------------------------------------------------

    def amounts(self, start: Boundary, end: Boundary = LATEST) -> dict[str, int]:
        """Messages, entries and bytes of files between two places."""
        pieces = self._steadily(lambda: self._pieces(start, end, False))
        return {measure: amount(pieces, measure) for measure in (MESSAGES, ENTRIES, BYTES)}

    def backlog(self, start: Boundary) -> Backlog:
        """The backlog behind a place; what retention removed is no part of it."""
        pieces = self._steadily(lambda: self._pieces(start, LATEST, False))
        first: dict[str, Piece] = {}
        for piece in pieces:
            first.setdefault(piece.ledgers.name, piece)
        times = [each.first_publish_ms() for each in first.values()]
        return Backlog(
            amount(pieces, MESSAGES), amount(pieces, BYTES), len(pieces), min(times, default=None)
        )

    def limit(
        self,
        start: Boundary,
        end: Boundary = LATEST,
        *,
        max_messages: int | None = None,
        max_entries: int | None = None,
        max_bytes: int | None = None,
        fail_on_data_loss: bool = True,
    ) -> Offsets:
        """The end, or nearer to start where one of the limits is reached.

        Limits are shared among topics by what each has waiting; each advances by an entry or
        message at least. Bytes are of files, and about.
        """
        limits = ((MESSAGES, max_messages), (ENTRIES, max_entries), (BYTES, max_bytes))

        def look() -> Offsets:
            last = self.resolve(end, fail_on_data_loss=fail_on_data_loss, complete=True)
            pieces = self._pieces(start, last, fail_on_data_loss)
            found = last
            for measure, most in limits:
                if most is not None:
                    nearer = limit_offsets(pieces, last, measure, most)
                    found = {name: min(place, nearer[name]) for name, place in found.items()}
            return found

        return self._steadily(look)

    # What there is --------------------------------------------------------------------------------

    def _load(self) -> None:
        """Look whether the catalogue has changed, or a ledger came, and at the topics if so."""
        number = self._broker.refresh_if_changed()
        if number == self._number and all(tail.is_current() for tail in self._growing):
            return
        # Once for all topics: a hop to another thread for each of a thousand takes 0.2 s.
        self._tails = control_plane.perform(self._find_tails)
        self._growing = [tail for tail in self._tails if tail.may_grow]
        self._lost_slots.clear()
        # Opening a topic may have sealed what a dead owner left.
        self._number = number if number == self._broker.catalogue.state.number else -1

    def _find_tails(self) -> list[PlannedTopic]:
        from pulsarx.broker.read_only_broker import ReadOnlyBroker

        broker = self._broker
        state = broker.catalogue.state
        names = []
        for name in self._topics:
            count = partition_count_of(state, name)
            names += partition_names(name, count) if count else [name.full]
        if len(set(names)) < len(names):
            raise ValueError(f"a topic is named twice among {', '.join(map(str, self._topics))}")
        for each in names:
            if each not in state.topics:
                raise unknown(each, list(state.topics))
        parsed = [TopicName.of(each) for each in names]
        if isinstance(broker, ReadOnlyBroker) and broker.read_only:
            found: list[Any] = [each.ledger for each in broker.topics_at_once(parsed)]
        else:
            found = [broker.topic(each, create=False).ledger for each in parsed]
        tails = []
        for each, ledgers in zip(names, found, strict=True):
            removed = state.topics[each].removed_ledger_id, state.topics[each].removed_messages
            tails.append(PlannedTopic(each, ledgers, removed, self._sealed_only))
        return tails

    def _steadily(self, look: Callable[[], Found]) -> Found:
        """Look at the topics, and again when the owner changed them meanwhile."""
        failure: Exception | None = None
        for _ in range(_ATTEMPTS_MAX):
            self._load()
            number = self._number
            try:
                return look()
            except (Moved, LedgerTrimmed, errors.StorageError) as error:
                failure = error
                self._broker.refresh()
                if self._broker.catalogue.state.number == number:
                    break  # it is as it looked
        if isinstance(failure, errors.StorageError):
            raise failure
        raise errors.StorageError(
            detail=f"plan over {self._broker.directory.path}: its owner changed ledgers "
            f"{_ATTEMPTS_MAX} times in a row while they were looked at. Try again"
        )

    def _removed(self, name: str) -> Position:
        record = self._broker.catalogue.state.topics.get(name)
        if record is None:
            raise Moved
        return record.removed_ledger_id, record.removed_messages

    def _end_of(self, tail: PlannedTopic) -> Position:
        for ledger in tail.open_ledgers:
            count = self._published(tail.ledgers, ledger)
            if count:
                return ledger.ledger_id, count
        return tail.sealed_end

    def _published(self, ledgers: LedgerList, ledger: LedgerRecord) -> int:
        """How many messages of a ledger may be read."""
        if ledger.state == "sealed":
            return ledger.message_count
        if self._sealed_only:
            return 0
        ends = self._broker.ends
        if not self._broker.read_only or ends is None or ledger.ledger_id in self._lost_slots:
            return ledgers.published_counts(ledger)[1]
        ledger_id, epoch, _, _, messages, _ = ends.read(ledger.slot)
        if ledger_id == ledger.ledger_id and epoch == ends.epoch_now:
            return int(messages)
        self._broker.refresh()
        if self._broker.catalogue.state.number != self._number:
            raise Moved
        # An owner died with it, and the next one has not opened the topic yet.
        self._lost_slots.add(ledger.ledger_id)
        return ledgers.published_counts(ledger)[1]

    # Ranges ---------------------------------------------------------------------------------------

    def plan(
        self,
        start: Boundary = EARLIEST,
        end: Boundary = LATEST,
        columns: Sequence[str] | None = None,
        *,
        target_bytes: int = TARGET_BYTES,
        min_partitions: int = 0,
        max_bytes_per_partition: int | None = None,
        max_records_per_partition: int | None = None,
        fail_on_data_loss: bool = True,
        from_ms: int | None = None,
        until_ms: int | None = None,
    ) -> list[LedgerRange]:
        """Plan like the function `plan`.

        from_ms, until_ms: besides start and end: only what was published from then on, and before.
        """
        wanted = check_columns(COLUMNS if columns is None else columns)
        for name, value, least in (
            ("target_bytes", target_bytes, 1),
            ("max_bytes_per_partition", max_bytes_per_partition, 1),
            ("max_records_per_partition", max_records_per_partition, 1),
            ("min_partitions", min_partitions, 0),
        ):
            if value is not None and value < least:
                raise ValueError(f"{name} is {value}; it must be at least {least}")
        bytes_max = min(target_bytes, max_bytes_per_partition or target_bytes)

        def look() -> list[Piece]:
            pieces = self._pieces(start, end, fail_on_data_loss, from_ms, until_ms)
            return cut_pieces(pieces, bytes_max, max_records_per_partition, min_partitions)

        from_ms, until_ms = _later(start, from_ms), _earlier(end, until_ms)
        return self._ranges(self._steadily(look), wanted, from_ms, until_ms)

    def _pieces(
        self,
        start: Boundary,
        end: Boundary,
        fail_on_data_loss: bool,
        from_ms: int | None = None,
        until_ms: int | None = None,
    ) -> list[Piece]:
        # By time each ledger is cut by itself: those that were attached may be out of order.
        from_ms, until_ms = _later(start, from_ms), _earlier(end, until_ms)
        start = EARLIEST if isinstance(start, int) else start
        end = LATEST if isinstance(end, int) else end
        # The start first: the end moves on while topics are written to.
        first = self.resolve(start, fail_on_data_loss=fail_on_data_loss)
        last = self.resolve(end, fail_on_data_loss=fail_on_data_loss, complete=True)
        # What was aborted in front of that may be in the catalogue for less time than this look.
        self._broker.refresh_if_changed()
        pieces = []
        for tail in self._tails:
            begin, stop = first.get(tail.name, BEGINNING), last.get(tail.name, BEGINNING)
            if self._sealed_only:
                # A start in an open ledger waits until that is sealed.
                stop = min(stop, max(begin, tail.sealed_end))
            if begin > stop:
                raise ValueError(
                    f"{tail.name}: the start {list(begin)} is behind the end {list(stop)}"
                )
            there = tail.ledgers.ledgers()
            if begin < self._removed(tail.name):
                raise Moved  # retention came between, and the beginning is gone
            for ledger in there:
                if begin[0] <= ledger.ledger_id <= stop[0]:
                    pieces += self._piece(tail.ledgers, ledger, begin, stop, from_ms, until_ms)
        return pieces

    def _piece(
        self,
        ledgers: LedgerList,
        ledger: LedgerRecord,
        begin: Position,
        stop: Position,
        from_ms: int | None,
        until_ms: int | None,
    ) -> list[Piece]:
        """The contribution of a ledger: one piece, or none; several where messages of aborted
        transactions lie between them."""
        count = self._published(ledgers, ledger)
        first = begin[1] if ledger.ledger_id == begin[0] else 0
        until = stop[1] if ledger.ledger_id == stop[0] else count
        if first >= until:
            return []
        if ledger.state == "sealed":
            piece = Piece(ledgers, ledger, 0, count, DATA_OFFSET, ledger.size)
        else:
            span = ledgers.span(ledger)
            bytes_end = span.end
            if not bytes_end:
                raise Moved
            piece = Piece(ledgers, ledger, 0, count, DATA_OFFSET, bytes_end, span.file)
        piece.start_at(first)
        piece.stop_at(until)
        if from_ms is not None and piece.first < piece.until:
            piece.start_at_time(from_ms)
        if until_ms is not None and piece.first < piece.until:
            piece.stop_at_time(until_ms)
        if piece.first >= piece.until:
            return []
        aborted = ledgers.aborted.in_ledger(ledger.ledger_id)
        return piece.without(aborted) if aborted else [piece]

    def _ranges(
        self,
        pieces: list[Piece],
        columns: tuple[str, ...],
        from_ms: int | None,
        until_ms: int | None,
    ) -> list[LedgerRange]:
        directory = self._broker.directory
        ledger_path, folder_id = directory.ledger_path, directory.folder_id
        offloads = self._broker.catalogue.state.offloads
        return [
            LedgerRange(
                piece.ledgers.name,
                piece.ledgers.partition,
                piece.ledger.ledger_id,
                str(ledger_path(piece.ledger.file_id)),
                piece.ledger.uuid,
                folder_id,
                piece.first,
                piece.until,
                piece.offset,
                piece.end,
                columns,
                from_ms,
                until_ms,
                piece.ledger.merged_at,
                piece.ledger.merged_size,
                _location(offloads.get(piece.ledger.file_id)),
            )
            for piece in pieces
        ]


def _location(record: OffloadRecord | None) -> str:
    return record.location if record is not None and record.size else ""


def plan(
    broker: Broker | ReadOnlyBroker,
    topics: str | Iterable[str],
    start: Boundary = EARLIEST,
    end: Boundary = LATEST,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> list[LedgerRange]:
    """The ledger ranges that hold the messages of topics from start up to end, in order.

    topics: one or several; all partitions of those that have some.
    start, end: "earliest", "latest", offsets (see `offsets`), or milliseconds since 1970: messages
        published at start or later, and before end, whatever lies between them.
    columns: names of RangeBatch columns; None: all.
    target_bytes, max_bytes_per_partition: of a file in one range, about. max_records_per_partition:
        messages in one range. min_partitions: so many ranges at least, if there are as many
        messages.
    fail_on_data_loss: DataLossError when retention has removed messages behind start; False: begins
        with what is left.
    sealed_only: without open ledgers, as Planner.
    ValueError, TopicNotFound, OperationNotSupported: what to change is in the text.
    """
    planner = Planner(broker, topics, sealed_only=options.pop("sealed_only", False))
    return planner.plan(start, end, columns, **options)


def plan_at_once(
    function: Callable[..., Found],
    arguments: tuple[Any, ...],
    give_back: Callable[[Found], object],
) -> Found:
    """Call a function that plans. give_back: of what it made for a caller that was interrupted.

    In one call of the control plane: step by step, each handed over to another thread, it takes
    three times as long. Garbage is not collected meanwhile: what is made of thousands of ledgers is
    kept, and a look at all that PySpark has loaded takes longer than the plan.
    """
    found: Found = control_plane.perform(call_paused, (function, *arguments), give_back)
    return found


def _later(start: Boundary, from_ms: int | None) -> int | None:
    return max(start, start if from_ms is None else from_ms) if isinstance(start, int) else from_ms


def _earlier(end: Boundary, until_ms: int | None) -> int | None:
    return min(end, end if until_ms is None else until_ms) if isinstance(end, int) else until_ms
