"""The topics of a query, looked at where it is planned: which there are, how far they go.

Opened beside whatever owner the folder has; changes nothing. One thread at a time.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.foreign_broker import ForeignBroker
from pulsarx.broker.plan import Planner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.offsets import Offsets
    from pulsarx.spark.options import Options


class TopicSource:
    """A planner over the topics that options name."""

    def __init__(self, options: Options) -> None:
        """FolderError: root is no data directory. TopicNotFound: it has no such topic."""
        self.options = options
        self.broker = ForeignBroker(options.root)
        self._number = -1
        self._matching: list[str] = []
        self._planner: Planner | None = None
        if options.topicsPattern is None:
            named = options.topics or [options.topic]
            self._planner = Planner(self.broker, named)

    @property
    def folder_id(self) -> str:
        return str(self.broker.directory.folder_id)

    @property
    def named(self) -> list[str]:
        """As options name them, or as they match."""
        options = self.options
        return list(options.topics or ([options.topic] if options.topic else self._matching))

    def planner(self) -> Planner | None:
        """None: no topic matches the pattern (yet)."""
        if self.options.topicsPattern is None:
            return self._planner
        number = self.broker.refresh_if_changed()
        if number != self._number:
            matching = self._match()
            if matching != self._matching:
                self._planner = Planner(self.broker, matching) if matching else None
            self._matching, self._number = matching, number
        return self._planner

    def _match(self) -> list[str]:
        """Whole topics that match by their full or local names."""
        import re

        from pulsarx.topic_name import TopicName

        pattern = re.compile(self.options.topicsPattern)
        topics = self.broker.catalogue.state.topics
        found = []
        for text in topics:
            name = TopicName.of(text)
            if name.partition_index >= 0 and name.partitioned_name in topics:
                continue
            if pattern.fullmatch(text) or pattern.fullmatch(name.local_name):
                found.append(text)
        return sorted(found)

    def require(self) -> Planner:
        """TopicNotFound: no topic matches."""
        found = self.planner()
        if found is None:
            raise errors.TopicNotFound(
                f"no topic in {self.options.root} matches topicsPattern "
                f"{self.options.topicsPattern!r}"
            )
        return found

    def latest(self) -> Offsets:
        planner = self.planner()
        return {} if planner is None else planner.latest()

    def close(self) -> None:
        self.broker.close()
