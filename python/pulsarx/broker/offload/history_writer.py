"""Keeps in the object store what `topic_history` says of each topic that has ledgers there.

What a kill behind each step leaves:

1  look at what is there; the same again: done           as before
2  write it by a name of its own, with a higher number   a part of it is none: as before
3  read it back                                          the new one
4  remove the older ones, the oldest first               the new one, and some more

Where nothing of a topic is in the store any more all go, the oldest first. Histories are written
before the objects go that they do not name any more. Where the owner's option was changed, those
beside the objects that are left are kept as well. Jobs of the broker's offload queue alone.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker import life_log
from pulsarx.broker.offload.stored_object import StoredObject, joined, objects_below
from pulsarx.broker.offload.topic_history import (
    TopicHistory,
    decode,
    document_of,
    encode,
    new_name,
    parsed_name,
    place_of,
    whole_of,
)
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from pulsarx.broker.catalogue.records import OffloadRecord
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.runtime import BrokerRuntime

    Numbers = dict[int, list[tuple[int, str]]]  # and names, ascending, by partition

_ASIDE = "superseded"


# Keeping ------------------------------------------------------------------------------------------


def keep_history(runtime: BrokerRuntime, topic: str, urls: Iterable[str]) -> dict[str, Exception]:
    """Have these places tell what the catalogue has now, and return those that cannot be written,
    with why. urls: as of stored_topics."""
    failed: dict[str, Exception] = {}
    for url in urls:
        try:
            _keep_at(runtime, topic, url)
        except (errors.PulsarException, ImportError) as error:
            failed[url] = error
    return failed


def keep_histories(runtime: BrokerRuntime, topic: str, goes_on: Callable[[], bool]) -> None:
    """Do keep_history behind a run, and with those other partitions whose histories say another
    number of partitions: a reader of some of them would miss the others.

    StorageError: the place of the option cannot be written. Those of other options before are kept
    by looks; a store that is gone for ever fails no run."""
    stored = stored_topics(runtime)
    _keep_for_run(runtime, topic, stored.get(topic) or own_places(runtime))
    state, name = runtime.catalogue.state, TopicName.of(topic)
    whole = whole_of(state, topic)
    if name.partition_index < 0 or not whole[1]:
        return
    partitioned = TopicName.of(name.partitioned_name)
    for each in (str(partitioned.partition(at)) for at in range(whole[1])):
        if each == topic or each not in stored:
            continue
        own = own_places(runtime)
        kept = [runtime.histories.get((url, each)) for url in own]
        if all(found is not None and found[0][1] == whole for found in kept):
            continue
        if not goes_on():
            return
        _keep_for_run(runtime, each, own)


def _keep_for_run(runtime: BrokerRuntime, topic: str, urls: list[str]) -> None:
    failed = keep_history(runtime, topic, urls)
    for url in own_places(runtime):
        if url in failed:
            raise failed[url]


def _keep_at(runtime: BrokerRuntime, topic: str, url: str) -> None:
    state, folder_id = runtime.catalogue.state, runtime.directory.folder_id
    state_number = state.number  # first: the document is at least as new
    made_of, key = _made_of(state, topic), (url, topic)
    kept = runtime.histories.get(key)
    if kept is not None and kept[0] == made_of:
        return
    _require_store(state, topic, folder_id, url)
    document = document_of(state, topic, folder_id, url, runtime.clock.now_ms())
    spared: set[str] = set()
    if document is not None and url not in own_places(runtime) and not _is_beside(document):
        document = None  # the last object that lay here goes
        # Two names of a store may be one place: what was written by the other one stays.
        spared = {found[2] for (_, of), found in runtime.histories.items() if of == topic}
    digest = "" if document is None else encode({"body": document["body"]}).split()[2].decode()
    if digest and kept is not None and kept[1] == digest:
        runtime.histories[key] = made_of, digest, kept[2]
        return
    runtime.histories.pop(key, None)
    place, partition = place_of(folder_id, topic)
    there = numbers_at(url, place).get(partition, [])
    obsolete = [found for found in there if found[1] not in spared]
    name = ""
    if document is not None:
        newest = newest_history(url, place, partition, there)
        if newest is not None and newest.body == document["body"]:
            obsolete = []
            name = there[-1][1]
        else:
            number = max(state_number, runtime.history_number + 1, there[-1][0] + 1 if there else 1)
            runtime.history_number = number
            name = new_name(partition, number)
            _put(joined(url, f"{place}/{name}"), encode(document))
    for _, former in obsolete:
        if kept is None and document is not None:  # this owner has not written it
            _set_aside(state, folder_id, url, f"{place}/{former}")
        StoredObject(joined(url, f"{place}/{former}")).remove()
    if digest:
        runtime.histories[key] = made_of, digest, name


def _require_store(state: CatalogueState, topic: str, folder_id: str, url: str) -> None:
    """StorageError: objects of the topic should lie in the place, and nothing at all does. Before
    anything is written there, which would say that they are gone."""
    for each in list(state.offloads.values()):
        place = url_of_object(each, folder_id) if each.topic == topic and each.size else None
        if place is not None and place.partition("?")[0] == url.partition("?")[0]:
            StoredObject(each.location).require_place()
            return


def _made_of(state: CatalogueState, topic: str) -> tuple[Any, ...]:
    """The parts a history is made of, to be compared: records do not change, there are
    others then; and of the ledgers of one record only more are offloaded."""
    record = state.topics.get(topic)
    ledgers = () if record is None else record.ledgers
    count = sum(state.offload_of(each) is not None for each in ledgers)
    schemas = state.schemas.get(TopicName.of(topic).partitioned_name)
    return record, whole_of(state, topic), schemas, count


def _is_beside(document: dict[str, Any]) -> bool:
    """Whether any object of a history lies in the place that it is made for."""
    return any("://" not in name for _, _, name, _, _ in document["body"]["objects"])


def _put(location: str, data: bytes) -> None:
    there = StoredObject(location)
    there.make_place()
    there.put(data)
    if there.read_all() != data:
        raise errors.StorageError(detail=f"write {location}: it is not what was written")


def sweep_histories(runtime: BrokerRuntime, url: str, stored: Mapping[str, list[str]]) -> None:
    """Have those histories in a place go that are of no topic which has objects: one that a
    store made late, and those of a folder whose backup was restored. stored: as of stored_topics.

    Those whose objects are there are set aside."""
    state, folder_id = runtime.catalogue.state, runtime.directory.folder_id
    known = {place_of(folder_id, topic) for topic in stored}
    root = f"{folder_id}/history"
    for name in objects_below(joined(url, root), recursive=True):
        digest, _, last = name.partition("/")
        found = parsed_name(last)
        if found is None or (f"{root}/{digest}", found[0]) in known:
            continue
        _set_aside(state, folder_id, url, f"{root}/{name}")
        StoredObject(joined(url, f"{root}/{name}")).remove()


def _set_aside(state: CatalogueState, folder_id: str, url: str, name: str) -> None:
    """Copy a history that is to be removed, where objects that it names are there and the catalogue
    knows nothing of them, as after a backup was restored: nothing else tells what these are."""
    location = joined(url, name)
    data = StoredObject(location).read_all()
    found = None if data is None else decode(data, url, location)
    if data is None or found is None:
        return
    known = {each.location.partition("?")[0] for each in list(state.offloads.values())}
    others = [each.location for each in found.offloads.values()]
    others = [each for each in others if each.partition("?")[0] not in known]
    if any(StoredObject(each).size() is not None for each in others):
        root = f"{folder_id}/history/"
        aside = joined(url, f"{folder_id}/{_ASIDE}/{name.removeprefix(root)}")
        _put(aside, data)
        life_log.info("set aside %s, of objects that are no folder's now, as %s", location, aside)


# Finding ------------------------------------------------------------------------------------------


def numbers_at(url: str, place: str) -> Numbers:
    """The numbers and names of the histories of a topic that are there, by partition, ascending."""
    found: Numbers = {}
    for name in objects_below(joined(url, place)):
        parsed = parsed_name(name)
        if parsed is not None:
            found.setdefault(parsed[0], []).append((parsed[1], name))
    return {each: sorted(found[each]) for each in sorted(found)}


def newest_history(
    url: str, place: str, partition: int, numbers: list[tuple[int, str]]
) -> TopicHistory | None:
    """The newest of a partition that is whole; None: none is. numbers: as of numbers_at."""
    for _, name in reversed(numbers):
        location = joined(url, f"{place}/{name}")
        data = StoredObject(location).read_all()
        found = None if data is None else decode(data, url, location)
        if found is not None:
            return found
    return None


def stored_topics(runtime: BrokerRuntime) -> dict[str, list[str]]:
    """The topics that have objects, or had some of which nothing is forgotten yet, with the places
    that are to tell of them: that of the option, and those where objects of theirs lie."""
    folder_id, own = runtime.directory.folder_id, own_places(runtime)
    places = {url.partition("?")[0]: url for url in own}
    found: dict[str, list[str]] = {}
    for each in list(runtime.catalogue.state.offloads.values()):
        urls = found.setdefault(each.topic, own.copy())
        url = url_of_object(each, folder_id)
        if url is not None:
            url = places.setdefault(url.partition("?")[0], url)
            if url not in urls:
                urls.append(url)
    return found


def own_places(runtime: BrokerRuntime) -> list[str]:
    """The place of the option, as others are written."""
    plain, mark, query = runtime.options.offload_url.partition("?")
    return [f"{plain.rstrip('/')}{mark}{query}"] if plain else []


def url_of_object(record: OffloadRecord, folder_id: str) -> str | None:
    """The URL that was the option when an object was made; None: by a folder of another id."""
    plain, mark, query = record.location.partition("?")
    place, _, folder = plain.rpartition("/")[0].rpartition("/")
    return f"{place}{mark}{query}" if folder == folder_id else None
