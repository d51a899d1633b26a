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
from pulsarx.broker.offload.store_url import FOLDER_ID
from pulsarx.broker.offload.stored_object import joined, objects_below
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

_ATTEMPTS_MAX = 10  # while an owner writes histories under the reader's eyes


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
        found, folder_id, place = control_plane.perform(_look, (url, topics))
        state = _state_of(found)
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

    def ends_told(self, topics: Iterable[str]) -> list[str]:
        """Say where the histories of topics (partitions one by one) end, for a log."""
        return [_end_told(self.histories.get(each), each, self.directory.path) for each in topics]


def _end_told(found: TopicHistory | None, topic: str, url: str) -> str:
    from datetime import UTC, datetime

    if found is None:
        return f"{topic} in {url}: nothing of it was offloaded"
    last = found.record.ledgers[-1]
    until, written = (
        datetime.fromtimestamp(each / 1000, UTC).isoformat(timespec="milliseconds")
        for each in (last.last_publish_ms, found.written_ms)
    )
    missing = found.missing()
    gaps = f"; damaged ledgers are not there: {', '.join(map(str, missing))}" if missing else ""
    return (
        f"{topic} in {url}: its history ends with ledger {last.ledger_id}, published until {until}"
        f"{gaps}. In the folder alone are {found.rest_messages} messages of {found.rest_ledgers} "
        f"sealed ledgers behind it, as of {written}, what was not sealed then, and what came later"
    )


# Finding ------------------------------------------------------------------------------------------


def _look(url: str, topics: Iterable[str] | None) -> tuple[list[TopicHistory], str, str]:
    place, folder_id = _folder_of(url)
    if topics is None:
        return _all_of(place, folder_id), folder_id, place
    wanted = list(dict.fromkeys(TopicName.of(each).partitioned_name for each in topics))
    found = []
    for topic in wanted:
        there = _histories_at(place, place_of(folder_id, topic)[0])
        if not there:
            return _all_of(place, folder_id), folder_id, place  # to say which there are
        found += there
    return found, folder_id, place


def _folder_of(url: str) -> tuple[str, str]:
    """The place, and the id of the folder whose objects are read."""
    plain, mark, query = url.partition("?")
    head, _, last = plain.rstrip("/").rpartition("/")
    if FOLDER_ID.fullmatch(last):
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


def _all_of(url: str, folder_id: str) -> list[TopicHistory]:
    place = f"{folder_id}/history"
    names = objects_below(joined(url, place), recursive=True)
    digests = dict.fromkeys(each.partition("/")[0] for each in names if each.endswith(SUFFIX))
    return [each for digest in digests for each in _histories_at(url, f"{place}/{digest}")]


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


def _state_of(found: list[TopicHistory]) -> CatalogueState:
    state = CatalogueState()
    number = 0
    for each in found:
        record, name = each.record, TopicName.of(each.record.name)
        state.topics[record.name] = record
        state.offloads |= each.offloads
        state.schemas[name.partitioned_name] = max(
            each.schemas, state.schemas.get(name.partitioned_name, ()), key=len
        )
        tenant, _, _ = name.namespace_name.partition("/")
        state.tenants.setdefault(tenant, {})
        state.namespaces.setdefault(name.namespace_name, {})
        number = max(number, record.topic_id)
    for each in found:
        name = TopicName.of(each.record.name)
        if name.partition_index < 0 or not each.partition_count:
            continue
        # Partitions without a history have none of their messages there.
        for full in [name.partitioned_name, *_partitions_of(name, each.partition_count)]:
            if full not in state.topics:
                number += 1
                count = each.partition_count if full == name.partitioned_name else 0
                state.topics[full] = TopicRecord(number, full, count, {})
    return state


def _partitions_of(name: TopicName, count: int) -> list[str]:
    whole = TopicName.of(name.partitioned_name)
    return [str(whole.partition(at)) for at in range(count)]
