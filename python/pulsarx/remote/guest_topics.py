"""The topics of a folder that another process owns: tells those who follow them what came and
went."""

from __future__ import annotations

import threading
import weakref
from contextlib import nullcontext
from functools import partial

from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx.closing import attempt
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

    from pulsarx.remote.guest_host import GuestHost

_LOOK_MS = 1000  # nobody tells a guest that a topic has come, or has grown


class GuestTopics:
    """Stands where a TopicDirectory stands, for consumers. Calls of the control plane."""

    def __init__(self, host: GuestHost) -> None:
        self._host = host
        self._lock = threading.Lock()  # of what follows
        self._followers = WeakList()  # PatternFollower
        self._growing: list[tuple[Any, Any]] = []  # weak: who is told, partitioned topic
        self._known: set[tuple[str, int]] = set()
        self._is_looking = False

    def watch(self, follower: Any) -> None:
        """Call follower.created(name) and deleted(name) about each topic that comes and goes, as
        long as it lives."""
        self._host.refresh()
        if follower.non_persistent_namespace is not None:
            self._host.refresh_non_persistent({follower.non_persistent_namespace})
        with self._lock:
            if not self._followers.members():
                self._known = self._there()
            self._followers.add(follower)
        self._look_later()

    def watch_growth(self, topic: Any, watcher: Any) -> None:
        """Call watcher.grown(partition count) when a partitioned topic has grown, as long as both
        live."""
        with self._lock:
            self._growing.append((weakref.ref(watcher), weakref.ref(topic)))
        self._look_later()

    def taking_back(self) -> AbstractContextManager[None]:
        """As of a TopicDirectory; but what its owner made for a call that fails stays."""
        return nullcontext()

    def lookup(self, name: TopicName, *, create: bool = False) -> Any:
        """As of a Broker."""
        return self._host.lookup(name, create=create)

    def is_there(self, name: str) -> bool:
        self._host.refresh()
        return name in self._host.catalogue.state.topics or name in self._host.volatile

    def create_non_partitioned_topic(self, name: TopicName) -> None:
        """NotAllowedError: it exists."""
        self._host.perform("topics.create_non_partitioned_topic", {"topic": str(name)})

    def _there(self) -> set[tuple[str, int]]:
        found = self._host.catalogue.state.topics.values()
        known = {(each.name, each.topic_id) for each in found}
        return known.union((name, 0) for name in list(self._host.volatile))

    def _look_later(self) -> None:
        with self._lock:
            if self._is_looking:
                return
            self._is_looking = True
        self._host.clock.call_after(_LOOK_MS, self._post)

    def _post(self) -> None:
        if self._host.state.is_open:
            self._host.post(self._look)

    def _look(self) -> None:
        if not self._host.state.is_open:
            return
        self._host.refresh_if_changed()
        wanted = {each.non_persistent_namespace for each in self._followers.members()}
        if wanted - {None}:
            # What its owner, who may be another one just now, does not tell stays as it was.
            attempt(partial(self._host.refresh_non_persistent, wanted - {None}))
        with self._lock:
            self._is_looking = False
            followers = self._followers.members()
            there = self._there() if followers else set()
            came, gone = there - self._known, self._known - there
            self._known = there
            growing = [(watcher(), topic()) for watcher, topic in self._growing]
            self._growing = [
                references
                for references, each in zip(self._growing, growing, strict=True)
                if None not in each
            ]
            goes_on = bool(followers or self._growing)
        for follower in followers:
            for name, _ in sorted(gone):
                follower.deleted(TopicName.of(name))
            for name, _ in sorted(came):
                follower.created(TopicName.of(name))
        for watcher, topic in growing:
            if watcher is not None and topic is not None:
                watcher.grown(topic.partition_count)
        if goes_on:
            self._look_later()
