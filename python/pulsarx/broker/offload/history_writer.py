"""Keeps in the object store what `topic_history` says of each topic that has ledgers there.

What a kill behind each step leaves:

1  look at what is there; the same again: done           as before
2  write the next number                                 a part of it is none: as before
3  read it back                                          the new one
4  remove the older ones, the oldest first               the new one, and some more

Where nothing of a topic is in the store any more all go, the oldest first. Histories are written
before the objects go that they do not name any more. Jobs of the broker's offload queue alone.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.offload.stored_object import StoredObject, joined, objects_below
from pulsarx.broker.offload.topic_history import (
    SUFFIX,
    TopicHistory,
    decode,
    document_of,
    encode,
    place_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.runtime import BrokerRuntime


def keep_history(runtime: BrokerRuntime, topic: str) -> None:
    """Have the store tell what the catalogue has now. StorageError: it cannot be written."""
    url = runtime.options.offload_url
    directory = runtime.directory
    if not url:
        return
    document = document_of(
        runtime.catalogue.state, topic, directory.folder_id, url, runtime.clock.now_ms()
    )
    digest = "" if document is None else encode({"body": document["body"]}).split()[2].decode()
    if digest and runtime.histories.get(topic) == digest:
        return
    runtime.histories.pop(topic, None)
    place, partition = place_of(directory.folder_id, topic)
    numbers = numbers_at(url, place).get(partition, [])
    if document is None:
        obsolete = numbers
    else:
        newest = newest_history(url, place, partition, numbers)
        if newest is not None and newest.body == document["body"]:
            obsolete = []
        else:
            number = max(numbers, default=0) + 1
            _put(joined(url, name_of(place, partition, number)), encode(document))
            obsolete = numbers
    for number in obsolete:
        StoredObject(joined(url, name_of(place, partition, number))).remove()
    if digest:
        runtime.histories[topic] = digest


def name_of(place: str, partition: int, number: int) -> str:
    return f"{place}/{partition}.{number:012d}{SUFFIX}"


def numbers_at(url: str, place: str) -> dict[int, list[int]]:
    """The numbers of the histories of a topic that are there, by partition, ascending."""
    found: dict[int, list[int]] = {}
    for name in objects_below(joined(url, place)):
        partition, _, number = name.removesuffix(SUFFIX).partition(".")
        if name.endswith(SUFFIX) and number.isdigit():
            found.setdefault(int(partition), []).append(int(number))
    return {each: sorted(found[each]) for each in sorted(found)}


def newest_history(url: str, place: str, partition: int, numbers: list[int]) -> TopicHistory | None:
    """The newest that is whole; None: none is."""
    for number in reversed(numbers):
        location = joined(url, name_of(place, partition, number))
        data = StoredObject(location).read_all()
        found = None if data is None else decode(data, url, location)
        if found is not None:
            return found
    return None


def _put(location: str, data: bytes) -> None:
    there = StoredObject(location)
    there.make_place()
    there.put(data)
    if there.read_all() != data:
        raise errors.StorageError(detail=f"write {location}: it is not what was written")


def topics_with_objects(runtime: BrokerRuntime) -> list[str]:
    """The topics that have objects, or had some of which nothing is forgotten yet."""
    offloads = runtime.catalogue.state.offloads.values()
    return list(dict.fromkeys(each.topic for each in offloads))
