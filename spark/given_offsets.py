"""Reads places in topics as people write them into options: JSON by topic, and by partition if they
like.

    {"orders": {"0": [12, 5120], "1": "latest"}, "clicks": "12:40:0:7"}

The text of a stream's checkpoint or progress, by the full names of partitions, is one such form.
What a place may be: `pulsarx.broker.scan.offsets`; or as in Spark's Kafka source -2 for earliest
and -1 for latest.
"""

from __future__ import annotations

from collections.abc import Mapping

from pulsarx.broker.scan.offsets import EARLIEST, LATEST, parse_offsets
from pulsarx.options.argument_check import is_whole_number
from pulsarx.spark.stream_offsets import only_offsets
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_EXAMPLE = '{"topic": ..., "partitioned topic": {"0": ..., "1": ...}}'
_KAFKAS = {-2: EARLIEST, -1: LATEST}


def offsets_by_topic(text: str) -> dict[str, Any]:
    """Offsets by the full names of topics or partitions. ValueError: says what is wrong."""
    import json

    def read(place: Any) -> Any:
        return _KAFKAS.get(place, place) if is_whole_number(place) else place

    found = by_topic(only_offsets(text), read)
    return dict(parse_offsets(json.dumps(found)))


def by_topic(text: str, read: Callable[[Any], Any]) -> dict[str, Any]:
    """Read each place with the function, by the full names of topics or partitions."""
    import json

    try:
        document = json.loads(text, object_pairs_hook=_distinct)
    except json.JSONDecodeError as error:
        raise ValueError(f"offsets are JSON by topic, as {_EXAMPLE}: {error}") from None
    if not isinstance(document, dict) or not document:
        raise ValueError(f"offsets are JSON by topic, as {_EXAMPLE}")
    found: dict[str, Any] = {}
    for topic, given in document.items():
        name = TopicName.of(topic)
        for index, place in given.items() if isinstance(given, dict) else [(None, given)]:
            if index is not None and not (index.isascii() and index.isdigit()):
                raise ValueError(f"{index!r} of {topic} is no number of a partition: {_EXAMPLE}")
            full = str(name if index is None else name.partition(int(index)))
            if full in found:
                raise ValueError(f"{full} is there twice")
            found[full] = read(place)
    return found


def boundary_of(given: Any, names: Iterable[str]) -> Any:
    """Turn what people give to functions into what `Planner` takes: as options say it, a mapping
    with topics by any of their names, or a datetime with its zone."""
    if isinstance(given, Mapping):
        import json

        given = json.dumps(dict(given))
    if isinstance(given, str) and given not in (EARLIEST, LATEST):
        return for_partitions(offsets_by_topic(given), names)
    if hasattr(given, "timestamp"):
        if given.tzinfo is None:
            raise ValueError(f"{given!r} has no zone; give it one, or milliseconds since 1970")
        return round(given.timestamp() * 1000)
    if given not in (EARLIEST, LATEST) and not is_whole_number(given):
        raise TypeError(
            f"{given!r:.200} is no place in a topic: {EARLIEST!r}, {LATEST!r}, milliseconds since "
            "1970, a datetime, or offsets by topic"
        )
    return given


def for_partitions(given: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Give what is given to a whole topic to each of its partitions among names.

    ValueError: a place inside of one of several partitions.
    """
    parts: dict[str, list[str]] = {}
    for name in names:
        parts.setdefault(str(TopicName.of(name).partitioned_name), []).append(name)
    found: dict[str, Any] = {}
    for name, place in given.items():
        mine = [name] if name not in parts or parts[name] == [name] else parts[name]
        if len(mine) > 1 and not (isinstance(place, int) or place in (EARLIEST, LATEST)):
            raise ValueError(
                f"offset {place!r} of {name}: that has {len(mine)} partitions; give each its own, "
                f'as {{"{name}": {{"0": ..., "1": ...}}}}'
            )
        for each in mine:
            # A partition that is named by itself keeps what it was given.
            if each == name or each not in given:
                found[each] = place
    return found


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is there twice")
    return found
