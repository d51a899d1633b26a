"""An object store as a folder that is read: the histories of topics that were offloaded there, and
their objects. Looks as a folder opened read-only does; nothing of a folder is needed.

It is as of the moment it was opened. What was not offloaded then is not there.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx._pycore.ground.locks import RLock
from pulsarx._pycore.ground.open_state import OpenState
from pulsarx.broker.catalogue.records import TopicRecord
from pulsarx.broker.catalogue.state import CatalogueState
from pulsarx.broker.offload.history_writer import newest_history, numbers_at
from pulsarx.broker.offload.offloaded_ledger import open_index
from pulsarx.broker.offload.store_url import FOLDER_ID
from pulsarx.broker.offload.stored_object import StoredObject, joined, objects_below
from pulsarx.broker.offload.topic_history import SUFFIX, TopicHistory, place_of
from pulsarx.broker.policies.policy_store import PolicyStore
from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.broker_options import BrokerOptions
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pulsarx._pycore.ledger.published_ends import PublishedEnds
    from pulsarx.broker.catalogue.records import LedgerRecord
    from pulsarx.broker.topics.read_only_topic import ReadOnlyTopic

    Histories = list[TopicHistory]
    Failures = dict[str, errors.PulsarException]  # by the place of a topic's histories

_ATTEMPTS_MAX = 10  # while an owner writes histories under the reader's eyes


class StoredTopics(dict[str, TopicRecord]):
    """The topics of a store by name. One whose history cannot be used is refused when it is asked
    for; lists are without it, as nobody knows its name."""

    def __init__(self, folder_id: str, failures: Failures) -> None:
        """failures: by the place of a topic's histories."""
        super().__init__()
        self._folder_id = folder_id
        self._failures = failures

    def __missing__(self, name: str) -> TopicRecord:
        self._check(name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self._check(name)

    def get(self, name: str, default: Any = None) -> Any:
        found = super().get(name, default)
        if found is default:
            self._check(name)
        return found

    def _check(self, name: object) -> bool:
        """False; raises why there is nothing of the topic."""
        if self._failures:
            failure = self._failures.get(place_of(self._folder_id, str(name))[0])
            if failure is not None:
                raise type(failure)(detail=f"{name}: {errors.detail_of(failure)}") from failure
        return False


class StoredDirectory:
    """Stands for a data directory: paths are URLs of objects."""

    read_only: bool = True
    ends_path: str | None = None

    def __init__(self, url: str, folder_id: str, state: CatalogueState) -> None:
        self.path: str = url
        self.folder_id: str = folder_id
        self.files: Any = FileSystem()
        self.catalogue_path: str = joined(url, f"{folder_id}/history")
        self._state = state

    def ledger_path(self, file_id: int) -> str:
        """The URL of its object; of a ledger that has none, where it would be."""
        found = self._state.offloads.get(file_id)
        return joined(self.path, f"{self.folder_id}/{file_id}") if found is None else found.location

    def owner(self) -> None:
        """None: nobody owns it."""

    def is_there(self) -> bool:
        return True

    def check_usable(self) -> None:
        """It holds nothing that could be closed."""

    def close(self) -> None:
        """It holds nothing."""


class StoredCatalogue:
    """Stands for a catalogue: a state that stays."""

    def __init__(self, state: CatalogueState) -> None:
        self.state: CatalogueState = state

    def refresh(self) -> bool:
        """False: nothing came."""
        return False

    def has_new_ends(self) -> bool:
        return False

    def namespace_policies(self, namespace: str) -> dict[str, Any]:
        """Empty: they are of the folder."""
        return {}

    def part_with_log(self) -> None:
        """None: it has none."""

    def close(self) -> None:
        """It holds nothing."""


class StoredBroker(ReadOnlyBroker):
    """Any thread may call."""

    is_stored = True
    _opened_how = ", as far as it was offloaded"

    def __init__(self, url: str, topics: Iterable[str] | None = None) -> None:
        """url: as of option offload_url, or with the id of a folder behind. topics: names of those
        that are wanted, with or without partitions; None: all.

        FolderError: there is no history. StorageError: the store cannot be read. ImportError: what
        reads such URLs is not installed.
        """
        found, failures, folder_id, place = control_plane.perform(_look, (url, topics))
        found = _of_newest(found)
        state = _state_of(found, StoredTopics(folder_id, failures))
        self._failures: list[errors.PulsarException] = list(failures.values())
        self.histories: dict[str, TopicHistory] = {each.record.name: each for each in found}
        self.files: Any = FileSystem()
        self.decompressed_size_max = 1 << 27
        directory: Any = StoredDirectory(place, folder_id, state)
        self.directory = directory
        catalogue: Any = StoredCatalogue(state)
        self.catalogue = catalogue
        self.policies: PolicyStore = PolicyStore(self.catalogue, BrokerOptions())
        self.volatile: dict[str, Any] = {}
        self.state: OpenState = OpenState("client")
        self.post: Callable[[Callable[[], object]], object] = control_plane.post
        self.ends: PublishedEnds | None = None
        self._topics: dict[str, ReadOnlyTopic] = {}
        self._lock = RLock()
        self._note_opened()
        for each in self._failures:
            _warn(errors.detail_of(each))

    def require_all(self) -> None:
        """Raise why there is a topic in the store that is in no list."""
        for each in self._failures:
            raise type(each)(
                detail=f"{errors.detail_of(each)}. Name the topics that are wanted, in place of a "
                "pattern, to read the others"
            ) from each

    def _find_ends(self) -> None:
        """Nothing is published there."""

    def _catch_up(self) -> bool:
        """False: it is as of its opening."""
        return False

    def published(self, ledger: LedgerRecord) -> tuple[int, int, int]:
        """Zeros: all its ledgers are sealed."""
        return 0, 0, 0

    def left_transactions(self) -> dict[int, Any]:
        """None: what is sealed is decided."""
        return {}

    def cursor_names(self, cursor_id: int) -> tuple[list[str], bool]:
        """None: subscriptions are of the folder."""
        return [], True

    def check_ledger(self, topic: str, ledger_id: int) -> None:
        """CorruptDataError: the store does not have this ledger of a topic, or not all of it.
        StorageError: it cannot be read."""
        control_plane.perform(self._check_ledger, (TopicName.of(topic), ledger_id))

    def _check_ledger(self, topic: TopicName, ledger_id: int) -> None:
        ledgers = self.topic(topic).ledger
        ledger = next(each for each in ledgers.ledgers() if each.ledger_id == ledger_id)
        record = self.catalogue.state.offload_of(ledger)
        if record is None:
            ledgers.span_of(ledger_id)  # says that it was not offloaded
            return
        there = StoredObject(record.location)
        size = there.size()
        if size is None:
            there.require_place()
            raise errors.CorruptDataError(
                detail=f"read ledger {ledger_id} of {topic}: {record.location} is missing. If "
                "retention has removed it since the store was opened, open another client; else "
                "put it back"
            )
        if size < record.size:
            raise errors.CorruptDataError(
                detail=f"read ledger {ledger_id} of {topic}: {record.location} has {size} bytes of "
                f"{record.size}. Put it back"
            )
        open_index(record, ledger, self.directory)

    def ends_told(self, topics: Iterable[str]) -> list[str]:
        """Say where the histories of topics (partitions one by one) end, for a log."""
        return [_end_told(self.histories.get(each), each, self.directory.path) for each in topics]


def _end_told(found: TopicHistory | None, topic: str, url: str) -> str:
    if found is None:
        return f"{topic} in {url}: nothing of it was offloaded"
    last = found.record.ledgers[-1]
    missing = found.missing()
    gaps = f"; damaged ledgers are not there: {', '.join(map(str, missing))}" if missing else ""
    return (
        f"{topic} in {url}: its history ends with ledger {last.ledger_id}, published until "
        f"{_time_told(last.last_publish_ms)}{gaps}. In the folder alone are {found.rest_messages} "
        f"messages of {found.rest_ledgers} sealed ledgers behind it, as of "
        f"{_time_told(found.written_ms)}, what was not sealed then, and what came later"
    )


def _time_told(time_ms: int) -> str:
    """Publish times are what clients say, of any size."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms after 1970"


def _warn(text: str) -> None:
    import logging

    logging.getLogger("pulsarx").warning("%s", text)


# Finding ------------------------------------------------------------------------------------------


def _look(url: str, topics: Iterable[str] | None) -> tuple[Histories, Failures, str, str]:
    """The histories, what those of other topics failed with, the id of the folder, and its place.
    Raises what those of a topic fail with that is wanted."""
    place, folder_id = _folder_of(url)
    if topics is None:
        return *_all_of(place, folder_id), folder_id, place
    wanted = list(dict.fromkeys(TopicName.of(each).partitioned_name for each in topics))
    found = []
    for topic in wanted:
        there = _histories_at(place, place_of(folder_id, topic)[0])
        if not there:
            return *_all_of(place, folder_id), folder_id, place  # to say which there are
        found += there
    return found, {}, folder_id, place


def _folder_of(url: str) -> tuple[str, str]:
    """The place, and the id of the folder whose objects are read."""
    plain, mark, query = url.partition("?")
    head, _, last = plain.rstrip("/").rpartition("/")
    # The place itself may have such a name.
    if FOLDER_ID.fullmatch(last) and "history" in objects_below(url, folders=True):
        return f"{head}{mark}{query}", last
    ids = [each for each in objects_below(url, folders=True) if FOLDER_ID.fullmatch(each)]
    ids = [each for each in ids if objects_below(joined(url, f"{each}/history"), folders=True)]
    if not ids:
        raise errors.FolderError(
            detail=f"read {url}: there is no history of topics. Give the URL that is the owner's "
            "option offload_url; histories are written with the ledgers that are offloaded, and of "
            "those that were before, within a minute by an owner of this version"
        )
    if len(ids) > 1:
        raise errors.FolderError(
            detail=f"read {url}: there are histories of {len(ids)} folders; give that of one: "
            + ", ".join(joined(url, each) for each in ids[:5])
        )
    return f"{plain.rstrip('/')}{mark}{query}", ids[0]


def _all_of(url: str, folder_id: str) -> tuple[Histories, Failures]:
    place = f"{folder_id}/history"
    names = objects_below(joined(url, place), recursive=True)
    found: Histories = []
    failures: Failures = {}
    for digest in dict.fromkeys(each.partition("/")[0] for each in names if each.endswith(SUFFIX)):
        try:
            found += _histories_at(url, f"{place}/{digest}")
        except (errors.CorruptDataError, errors.NewerFormatError) as error:
            failures[f"{place}/{digest}"] = error  # of one topic
    return found, failures


def _histories_at(url: str, place: str) -> list[TopicHistory]:
    """The newest of each partition of a topic. CorruptDataError: there are some, and none is
    whole."""
    for _ in range(_ATTEMPTS_MAX):
        numbers = numbers_at(url, place)
        found = {each: newest_history(url, place, each, numbers[each]) for each in numbers}
        if None not in found.values() or numbers_at(url, place) == numbers:
            break  # else a newer one came, and those that were seen went
    broken = [each for each, history in found.items() if history is None]
    if broken:
        raise errors.CorruptDataError(
            detail=f"read {joined(url, place)}: no history of partition {broken[0]} is whole. The "
            "next owner of the folder with offload_url writes it anew"
        )
    return [each for each in found.values() if each is not None]


def _of_newest(found: Histories) -> Histories:
    """Without what is left of topics that were deleted, and made again by the same name."""
    newest: dict[str, int] = {}
    for each in found:
        name = TopicName.of(each.record.name).partitioned_name
        newest[name] = max(_whole_id(each), newest.get(name, -1))
    kept = []
    for each in found:
        whole_id, last = _whole_id(each), newest[TopicName.of(each.record.name).partitioned_name]
        # Where an earlier version did not write it: ids ascend, and that of the whole comes first.
        if whole_id == last or (whole_id < 0 and each.record.topic_id > last):
            kept.append(each)
    return kept


def _whole_id(history: TopicHistory) -> int:
    """-1: it is not known."""
    found = history.body.get("whole_id")
    return -1 if found is None else int(found)


def _state_of(found: Histories, topics: StoredTopics) -> CatalogueState:
    state = CatalogueState()
    state.topics = topics
    number = 0
    counts: dict[str, int] = {}  # of partitions: each history has that of its time
    for each in found:
        record, name = each.record, TopicName.of(each.record.name)
        topics[record.name] = record
        state.offloads |= each.offloads
        state.schemas[name.partitioned_name] = max(
            each.schemas, state.schemas.get(name.partitioned_name, ()), key=len
        )
        tenant, _, _ = name.namespace_name.partition("/")
        state.tenants.setdefault(tenant, {})
        state.namespaces.setdefault(name.namespace_name, {})
        number = max(number, record.topic_id)
        if name.partition_index >= 0 and each.partition_count:
            whole = name.partitioned_name
            counts[whole] = max(each.partition_count, counts.get(whole, 0))
    for whole, count in counts.items():
        # Partitions without a history have none of their messages there.
        for full in [whole, *_partitions_of(whole, count)]:
            if full not in topics:
                number += 1
                topics[full] = TopicRecord(number, full, count if full == whole else 0, {})
    return state


def _partitions_of(whole: str, count: int) -> list[str]:
    name = TopicName.of(whole)
    return [str(name.partition(at)) for at in range(count)]
