"""The producers of one topic by name. Any thread may call."""

from __future__ import annotations

import threading
import weakref

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.runtime import BrokerRuntime

    Producer = Any  # what `make` makes: with is_open, shut, abandon, is_forgotten


class ProducerRegistry:
    """A name belongs to one producer at a time, as long as that is open."""

    def __init__(self, topic: str, runtime: BrokerRuntime) -> None:
        self._topic = topic
        self._runtime = runtime
        self._lock = threading.Lock()
        self._producers: dict[str, weakref.ref[Producer]] = {}
        self._is_closed = False

    def add(self, name: str | None, make: Callable[[str], Producer]) -> Producer:
        """Make a producer under its name, or a generated one. ProducerBusy: the name is taken.
        TopicNotFound: the topic is being deleted."""
        if name is not None and self._is_forgotten(name):
            self._runtime.background.wait()  # it is being closed there
        with self._lock:
            if self._is_closed:
                raise errors.TopicNotFound(f"{self._topic}: it was deleted")
            if name is None:
                name = self._runtime.next_producer_name()
            existing = self._producers.get(name)
            found = existing() if existing is not None else None
            if found is not None and found.is_open:
                raise errors.ProducerBusy(
                    f"a producer named {name} is already on {self._topic}; close it or choose "
                    f"another name"
                )
            self._check_limit()
            producer = make(name)
            self._producers[name] = weakref.ref(producer)
            return producer

    def _check_limit(self) -> None:
        """ProducerBusy: the topic has as many producers as it may. The lock is held."""
        limit = self._runtime.options.max_producers_per_topic
        if limit and self._open_count() >= limit:
            raise errors.ProducerBusy(
                f"create a producer on {self._topic}: it has {limit}, which is "
                "max_producers_per_topic"
            )

    def _open_count(self) -> int:
        """Open producers, but for those whose users dropped them. The lock is held."""
        found = [reference() for reference in self._producers.values()]
        return sum(bool(each and each.is_open and not each.is_forgotten) for each in found)

    def _is_forgotten(self, name: str) -> bool:
        reference = self._producers.get(name)
        found = reference() if reference is not None else None
        return found is not None and found.is_forgotten

    def remove(self, name: str, producer: Producer) -> None:
        """Give the name back, unless another producer has it by now."""
        with self._lock:
            existing = self._producers.get(name)
            if existing is not None and existing() in (producer, None):
                del self._producers[name]

    def close_to_newcomers(self, force: bool) -> int:
        """Make no producer any more, if there is none, or force; how many there are. The topic is
        being deleted."""
        with self._lock:
            there = self._open_count()
            self._is_closed = force or not there
        return there

    def open_to_newcomers(self) -> None:
        """The topic was not deleted after all."""
        with self._lock:
            self._is_closed = False

    def wait_for_forgotten(self) -> None:
        """Wait until producers that their users dropped are closed."""
        if any(self._is_forgotten(name) for name in list(self._producers)):
            self._runtime.background.wait()

    def open_producers(self) -> list[Producer]:
        with self._lock:
            found = [reference() for reference in self._producers.values()]
        return [each for each in found if each is not None and each.is_open]

    def abandon(self) -> None:
        """In a forked child: refuse further calls; the lock may be left taken."""
        for reference in list(self._producers.values()):
            producer = reference()
            if producer is not None:
                producer.abandon()
