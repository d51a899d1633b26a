"""The admin operation that a console asks for again and again: what topics hold and count, in
pieces."""

from __future__ import annotations

from bisect import bisect_right

from pulsarx import errors
from pulsarx._pycore.ground.locks import Event
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.broker.verbs.verb import SUPERUSER, verb
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.faces import OpenFolder

    Figures = dict[str, Any]

COUNT_MAX = 1000
_SUBSCRIPTIONS_MAX = 20_000  # after which an answer ends: it goes through a socket
# Publishers of the same process want the interpreter: some 40 microseconds for each topic.
_TOPICS_AT_ONCE = 2
_PAUSE_SECONDS = 0.0001


@verb("topics.get_figures", needs=SUPERUSER, reads=True)
def get_figures(folder: OpenFolder, after: str, count: int, load: bool) -> dict[str, Any]:
    """The figures of the next topics by name, count at most, without those of the system; of a
    partitioned topic those of its partitions. after: a name, which need not be there; " " is before
    all. load: open those that are not open, of which else only `stored` is told. next: what comes
    as `after` next; None: that were all. Counters count from when the topic was opened; None: only
    its owner knows them."""
    if not 1 <= count <= COUNT_MAX:
        raise ValueError(f"get_figures: {count} topics; it must be from 1 to {COUNT_MAX}")
    folder.refresh()
    state = folder.catalogue.state
    names = sorted(
        name
        for name, record in [*state.topics.items(), *((each, None) for each in folder.volatile)]
        if record is None or not record.partition_count
    )
    begin = bisect_right(names, after)
    found: list[Figures] = []
    last = begin + count - 1
    subscriptions = 0
    for number, name in enumerate(names[begin : last + 1]):
        if TopicName.of(name).is_system:
            continue
        try:
            figures = _figures_of(folder, name, load)
        except (TopicGone, errors.TopicNotFound, errors.AlreadyClosed):
            continue  # it was deleted just now
        except errors.StorageError as error:
            figures = {"topic": name, "flaw": errors.detail_of(error)}
        base = TopicName.of(name).partitioned_name
        if base != name and base in state.topics:
            figures["part_of"] = base
        found.append(figures)
        subscriptions += len(figures.get("subscriptions", ()))
        if subscriptions >= _SUBSCRIPTIONS_MAX:
            last = begin + number
            break
        if number % _TOPICS_AT_ONCE == 0:
            Event().wait(_PAUSE_SECONDS)
    return {"topics": found, "next": names[last] if last + 1 < len(names) else None}


def _figures_of(folder: OpenFolder, name: str, load: bool) -> Figures:
    from pulsarx.broker.topics.statistics import topic_statistics

    if not load and not folder.read_only:
        topics: Any = folder
        if topics.topics.open_topic(name) is None:
            record = folder.catalogue.state.topics.get(name)
            ledgers = () if record is None else record.ledgers
            return {"topic": name, "stored": sum(each.size for each in ledgers)}
    found = topic_statistics(folder.topic(TopicName.of(name), create=False))
    producers = found["publishers"]
    return {
        "topic": name,
        "stored": found["storage_size"],
        "in": found["msg_in_counter"],
        "producers": None if producers is None else len(producers),
        "age": found["oldest_backlog_message_age_seconds"],
        "terminated": found["terminated"],
        "subscriptions": {
            each: _of_subscription(figures) for each, figures in found["subscriptions"].items()
        },
    }


def _of_subscription(found: Figures) -> Figures:
    consumers = found.get("consumers")
    return {
        "backlog": found["msg_backlog"],
        "out": found["msg_out_counter"],
        "consumers": None if consumers is None else len(consumers),
    }
