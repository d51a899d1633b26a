"""The topics of a folder that another process owns: tells their followers which came and went."""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from functools import partial

from pulsarx._pycore.ground.locks import Lock
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx.errors import detail_of
from pulsarx.ground.attempt import attempt
from pulsarx.processes.guest.topic_news import DirectoryNews
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pulsarx.clock import Timer
    from pulsarx.processes.guest.host import GuestHost

_GONE = -1  # in the place of the id of a topic
_AGAIN_MS = 1000  # until the owner is asked again that did not answer


class GuestTopics:
    """Stands where a TopicDirectory stands, for consumers. Calls of the control plane."""

    def __init__(self, host: GuestHost) -> None:
        self._host = host
        self._lock = Lock()  # of what follows
        self._followers = WeakList()  # PatternFollower
        # Weak: who is told, partitioned topic; and whether it is a producer.
        self._growing: list[tuple[Any, Any, bool]] = []
        self._known: set[tuple[str, int]] = set()
        self._noting = threading.local()  # created: for this thread, in taking_back
        self._listening = Lock()  # of being told of news
        self._news: DirectoryNews | None = None
        self._is_to_look = False
        self._again: Timer | None = None  # a look that is due since the last one failed
        self.news_count: int = 0  # so often followers were told of topics that came, went or grew

    def listen(self) -> None:
        """Have the owner tell from now on which topics come, go and grow."""
        with self._listening:
            if self._news is None:
                self._news = DirectoryNews(self._host, self._heard)

    def _heard(self) -> None:
        """In the thread that reads the connection."""
        if not self._is_to_look:
            self._is_to_look = True
            self._post()

    def was_closed(self, name: str) -> None:
        """The owner has closed a consumer of a non-persistent topic, as when it is deleted: the
        next look says so, also where another one has its name by then. In the thread that reads the
        connection."""
        with self._lock:
            # Also where a look has missed the topic before this was told.
            self._known.discard((name, 0))
            self._known.add((name, _GONE))
        self._heard()

    def watch(self, follower: Any) -> None:
        """Call follower.created(name) and deleted(name) about each topic that comes and goes, as
        long as it lives."""
        self.listen()
        self._host.refresh()
        if follower.non_persistent_namespace is not None:
            self._host.refresh_non_persistent({follower.non_persistent_namespace})
        with self._lock:
            if not self._followers.members():
                self._known = self._there()
            self._followers.add(follower)

    def watch_growth(self, topic: Any, watcher: Any, *, sends: bool = False) -> None:
        """Call watcher.grown(partition count) when a partitioned topic has grown, as long as both
        live. sends: it is a producer, which is told when the others have been."""
        with self._lock:
            self._growing.append((weakref.ref(watcher), weakref.ref(topic), sends))

    @contextmanager
    def taking_back(self) -> Iterator[None]:
        """Like TopicDirectory.taking_back."""
        outer = getattr(self._noting, "created", None)
        created: list[str] = []
        self._noting.created = created
        try:
            yield
        except BaseException:
            if created:
                self._take_back(created)
            raise
        finally:
            self._noting.created = outer

    def made(self, name: TopicName) -> None:
        """The owner made a topic for this process, as this thread asked it to."""
        noted = getattr(self._noting, "created", None)
        if noted is not None:
            noted.append(name.full)

    def _take_back(self, created: list[str]) -> None:
        ask = partial(self._host.ask_verb, "guest.take_back_topics", topics=created)
        error = attempt(ask)
        if error is not None:
            import logging

            logging.getLogger("pulsarx").warning(
                "%s were made for a call that failed, and stay: %s",
                ", ".join(created), detail_of(error),
            )  # fmt: skip
        attempt(self._host.refresh)

    def lookup(self, name: TopicName, *, create: bool = False) -> Any:
        """Like Broker.lookup."""
        return self._host.lookup(name, create=create)

    def is_there(self, name: str) -> bool:
        self._host.refresh()
        return name in self._host.catalogue.state.topics or name in self._host.volatile

    def create_non_partitioned_topic(self, name: TopicName) -> None:
        """NotAllowedError: it exists."""
        self._host.perform("topics.create_non_partitioned_topic", {"topic": name.full})
        self.made(name)

    def _there(self) -> set[tuple[str, int]]:
        found = self._host.catalogue.state.topics.values()
        known = {(each.name, each.topic_id) for each in found}
        return known.union((name, 0) for name in list(self._host.volatile))

    def _post(self) -> None:
        if self._host.state.is_open:
            self._host.post(self._look)

    def _look(self) -> None:
        if self._host.state.is_open:
            self.look()

    def look(self) -> None:
        """Tell those who follow what came, went and grew."""
        self._is_to_look = False
        self._host.refresh_if_changed()
        wanted = {each.non_persistent_namespace for each in self._followers.members()}
        if wanted - {None}:
            # What its owner, who may be another one just now, does not tell stays as it was.
            if attempt(partial(self._host.refresh_non_persistent, wanted - {None})) is not None:
                if self._again is not None:
                    self._again.cancel()  # armed by this very look, which is taken again
                self._again = self._host.clock.call_after(_AGAIN_MS, self._post)
        with self._lock:
            followers = self._followers.members()
            there = self._there() if followers else set()
            came, gone = there - self._known, self._known - there
            self._known = there
            growing = [(watcher(), topic(), sends) for watcher, topic, sends in self._growing]
            self._growing = [
                references
                for references, each in zip(self._growing, growing, strict=True)
                if None not in each
            ]
        for follower in followers:
            for name, _ in sorted(gone):
                follower.deleted(TopicName.of(name))
            for name, _ in sorted(came):
                follower.created(TopicName.of(name))
        for is_turn_of_producers in (False, True):
            if is_turn_of_producers:
                with self._lock:
                    self.news_count += 1
            for watcher, topic, sends in growing:
                if sends == is_turn_of_producers and watcher is not None and topic is not None:
                    watcher.grown(topic.count_now())
