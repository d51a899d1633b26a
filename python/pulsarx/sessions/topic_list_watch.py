"""Tells a client which topics of a namespace match its pattern: those there are, then each that
comes or goes."""

from __future__ import annotations

from collections import deque

from pulsarx import errors
from pulsarx.access.access import Access
from pulsarx.sessions.linear_pattern import LinearPattern
from pulsarx.sessions.topic_answers import topics_hash
from pulsarx.wire.server_errors import message_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.sessions.topic_answers import Require
    from pulsarx.topic_name import TopicName

    Values = dict[str, Any]

WATCHES_MAX = 100  # of one connection
NEWS_MAX = 1000  # names of one watch; when more come, each topic is looked at again
INVALID_TOPIC_NAME = 17  # as Pulsar; clients that watch do not try it again and again


class TopicListWatch:
    """One watch. Calls of its session, but for those of the broker's directory."""

    def __init__(
        self, broker: Broker, watcher_id: int, values: Values, wake: Callable[[], object]
    ) -> None:
        """InvalidTopicName: see LinearPattern."""
        self.watcher_id = watcher_id
        self.is_due: bool = False
        self._broker = broker
        self.namespace: str = values["namespace"]
        text = values["topics_pattern"].removeprefix("^")
        self._pattern = LinearPattern(text.partition("://")[2] or text)
        # Of topics that came or grew since it looked: the others match, or do not, as before.
        self._news: deque[str] = deque(maxlen=NEWS_MAX)
        self._wake = wake
        broker.topics.watch(self)  # before it looks, so that it misses nothing
        self.known: list[str] = []
        self.known = self._matching(None)

    def created(self, name: TopicName) -> None:
        """In any thread."""
        self._news_of(name)

    def deleted(self, name: TopicName) -> None:
        """In any thread."""
        self._look_again(name)

    def grown(self, name: TopicName) -> None:
        """In any thread: a partitioned topic has more partitions."""
        self._news_of(name)

    def _news_of(self, name: TopicName) -> None:
        if name.namespace_name == self.namespace and name.persistent:
            self._news.append(str(name))
            self._look_again(name)

    def _look_again(self, name: TopicName) -> None:
        if name.namespace_name == self.namespace and name.persistent:
            self.is_due = True
            self._wake()

    def changes(self) -> tuple[list[str], list[str]]:
        """The topics that came and those that went since it was asked last."""
        self.is_due = False
        news = []
        while self._news:
            news.append(self._news.popleft())
        # As many as are kept: older ones may have been dropped.
        looked_at = set(news) if len(news) < NEWS_MAX else None
        before, self.known = self.known, self._matching(looked_at)
        return sorted(set(self.known) - set(before)), sorted(set(before) - set(self.known))

    def _matching(self, news: set[str] | None) -> list[str]:
        """The topics that match. news: names without what names a partition, of those that are not
        known to match or not to; None: nothing is known of any."""
        from pulsarx.broker.verbs.topics import get_list

        try:
            names = get_list(self._broker, self.namespace, False, "persistent")
        except errors.TopicNotFound:  # as Pulsar: a namespace that is not there has no topics
            return []
        known, matches = set(self.known), self._pattern.matches
        found = [
            each
            for each in names
            if each in known
            or (
                (news is None or each in news or each.rpartition("-partition-")[0] in news)
                and matches(each.partition("://")[2])
            )
        ]
        self._pattern.forget()  # few come later
        return found


class TopicListWatches:
    """The watches of one connection. Calls of its session."""

    def __init__(
        self,
        broker: Broker,
        tell: Callable[..., None],
        refuse: Callable[[Values, Exception], None],
        require: Require,
        wake: Callable[[], object],
    ) -> None:
        """tell, refuse, require, wake: as Session has them."""
        self._broker = broker
        self._tell = tell
        self._refuse = refuse
        self._require = require
        self._wake = wake
        self._watches: dict[int, TopicListWatch] = {}

    def begin(self, values: Values) -> None:
        watcher_id = values["watcher_id"]
        try:
            self._require(Access.require_in_namespace, values["namespace"])
            made = self._watches.get(watcher_id)
            if made is None:
                if len(self._watches) == WATCHES_MAX:
                    raise errors.NotAllowedError(
                        detail=f"watch the topics of {values['namespace']}: the connection has "
                        f"{WATCHES_MAX} watches, which is the most"
                    )
                made = TopicListWatch(self._broker, watcher_id, values, self._wake)
                self._watches[watcher_id] = made
        except errors.InvalidTopicName as error:
            self._tell(
                "ERROR",
                request_id=values["request_id"],
                error=INVALID_TOPIC_NAME,
                message=f"Invalid topics pattern: {message_of(error)}",
            )
            return
        except Exception as error:
            self._refuse(values, error)
            return
        known = topics_hash(made.known)
        self._tell(
            "WATCH_TOPIC_LIST_SUCCESS",
            request_id=values["request_id"],
            watcher_id=watcher_id,
            topics=[] if values["topics_hash"] == known else made.known,
            topics_hash=known,
        )

    def end(self, values: Values) -> None:
        """SUCCESS, whether there is such a watch or not, as Pulsar."""
        self._watches.pop(values["watcher_id"], None)
        self._tell("SUCCESS", request_id=values["request_id"])

    def deliver(self, has_room: Callable[[], bool]) -> None:
        """Say what came and what went."""
        for each in self._watches.values():
            if not each.is_due or not has_room():
                continue
            came, went = each.changes()
            if came or went:
                self._tell(
                    "WATCH_TOPIC_UPDATE",
                    watcher_id=each.watcher_id,
                    new_topics=came,
                    deleted_topics=went,
                    topics_hash=topics_hash(each.known),
                )

    def close_forbidden(self) -> None:
        """End those of namespaces that the client may not look into any more. It has no command
        for that: it is told nothing from now on."""
        for watcher_id, each in list(self._watches.items()):
            try:
                self._require(Access.require_in_namespace, each.namespace)
            except errors.AuthorizationError:
                del self._watches[watcher_id]

    def close(self) -> None:
        self._watches.clear()  # the directory holds them weakly
