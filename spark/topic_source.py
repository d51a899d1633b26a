"""The topics of a query, looked at where it is planned: which there are, how far they go.

Opened beside whatever owner the folder has; changes nothing. One thread at a time.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.scan.plan import Planner
from pulsarx.spark.given_offsets import for_partitions
from pulsarx.spark.root_view import open_root
from pulsarx.topic_name import TopicName, check_keeps_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.broker.read_only_broker import ReadOnlyBroker
    from pulsarx.broker.scan.offsets import Offsets
    from pulsarx.spark.options import Options

_USUAL = "persistent://public/default/"


class TopicSource:
    """A planner over the topics that options name."""

    def __init__(self, options: Options) -> None:
        """FolderError: root is no data directory. TopicNotFound: it has no such topic."""
        self.options = options
        named = options.topics or ([options.topic] if options.topic else None)
        self.broker: ReadOnlyBroker = open_root(options.root, named)
        self._number = -1
        self._topics: list[str] = []
        self._planner: Planner | None = None
        self._may_wait = options.topicsPattern is not None or options.waitForTopic
        if not self._may_wait:
            self._topics = options.topics or [options.topic]
            check_topics(self.broker, self._topics)
            self._planner = self._plan_for(self._topics)

    @property
    def folder_id(self) -> str:
        return str(self.broker.directory.folder_id)

    def planner(self) -> Planner | None:
        """None: there is no topic (yet) that matches the pattern, or that is waited for."""
        if self._may_wait:
            number = self.broker.refresh_if_changed()
            if number != self._number:
                topics = self._find()
                if topics != self._topics:
                    self._planner = self._plan_for(topics) if topics else None
                self._topics, self._number = topics, number
        return self._planner

    def _plan_for(self, topics: list[str]) -> Planner:
        return Planner(self.broker, topics, sealed_only=self.options.sealedOnly)

    def _find(self) -> list[str]:
        """Find which of the topics are there."""
        if self.options.topicsPattern is not None:
            return self._match()
        there = self.broker.catalogue.state.topics
        named = self.options.topics or [self.options.topic]
        return [name for name in named if str(check_keeps_messages(TopicName.of(name))) in there]

    def _match(self) -> list[str]:
        """Whole topics that match by their full or local names."""
        import re

        pattern = re.compile(self.options.topicsPattern)
        topics = self.broker.catalogue.state.topics
        found = []
        for text in topics:
            name = TopicName.of(text)
            is_partition = name.partition_index >= 0 and name.partitioned_name in topics
            if is_partition or not name.persistent:
                continue
            forms = (text, text.removeprefix("persistent://"), name.local_name)
            if any(pattern.fullmatch(form) for form in forms):
                found.append(text)
        return sorted(found)

    def require(self) -> Planner:
        """TopicNotFound: no topic matches."""
        found = self.planner()
        if found is None:
            wanted = self.options.topicsPattern or self.options.topics or self.options.topic
            raise errors.TopicNotFound(
                detail=f"no topic in {self.options.root} matches {wanted!r}{_some(self.broker)}"
            )
        return found

    def close(self) -> None:
        self.broker.close()


def starting_offsets(planner: Planner, options: Options, default: str) -> Offsets:
    """Find where reading starts, as the options say."""
    if options.startingTimestamp is not None:
        return planner.at_time(options.startingTimestamp)
    return _resolve(
        planner, options.startingOffsets or default, options.startingOffsetsByTimestamp, options
    )


def ending_offsets(planner: Planner, options: Options) -> Offsets:
    """Find where reading ends, as the options but endingTimestamp say."""
    return _resolve(
        planner, options.endingOffsets or "latest", options.endingOffsetsByTimestamp, options, True
    )


def _resolve(
    planner: Planner, given: object, times: object, options: Options, complete: bool = False
) -> Offsets:
    """complete: every topic must be named; else those that are not start at their beginning."""
    fail = options.failOnDataLoss
    names = planner.topics
    if options.waitForTopic:
        given, times = (_without_awaited(each, names, options) for each in (given, times))
    if isinstance(times, dict):
        given_ms = for_partitions(times, names)
        unknown = given_ms.keys() - set(names)
        places = {time_ms: planner.at_time(time_ms) for time_ms in set(given_ms.values())}
        given = {
            name: time_ms if name in unknown else places[time_ms][name]
            for name, time_ms in given_ms.items()
        }
    elif isinstance(given, dict):
        given = for_partitions(given, names)
    else:
        complete = False
    boundary: Any = given
    return planner.resolve(boundary, fail_on_data_loss=fail, complete=complete)


def _without_awaited(given: Any, names: Iterable[str], options: Options) -> Any:
    """Leave out what is given to topics that are waited for: they will be read from their first
    message. But not places in them: those are of another topic."""
    if not isinstance(given, dict):
        return given
    there = {TopicName.of(name).partitioned_name for name in names}
    awaited = {str(TopicName.of(name)) for name in options.topics or [options.topic]} - there
    return {
        name: place
        for name, place in given.items()
        if TopicName.of(name).partitioned_name not in awaited
        or not (isinstance(place, int) or place in ("earliest", "latest"))
    }


def check_topics(broker: ReadOnlyBroker, names: Iterable[str]) -> None:
    """TopicNotFound: one of them is not there; says what was probably meant."""
    import difflib

    topics = broker.catalogue.state.topics
    for name in names:
        full = str(check_keeps_messages(TopicName.of(name)))
        if full not in topics:
            short = {each.removeprefix(_USUAL): each for each in topics}
            near = difflib.get_close_matches(full.removeprefix(_USUAL), short, 1, 0.6)
            meant = f"; did you mean {short[near[0]]}?" if near else _some(broker) + "."
            raise errors.TopicNotFound(detail=f"{full} is not in {broker.directory.path}{meant}")


def _some(broker: ReadOnlyBroker) -> str:
    topics = broker.catalogue.state.topics
    names = sorted(name for name in topics if TopicName.of(name).partition_index < 0)
    return f", where for instance {', '.join(names[:3])} is" if names else ", nor any other"
