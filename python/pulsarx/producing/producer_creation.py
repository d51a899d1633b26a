"""Makes a producer in steps, between which it may have to wait until it has its topic to itself.

The steps are calls of the control plane; the caller waits between them, outside, so that no thread
of the broker waits with it and an interrupt ends it.
"""

from __future__ import annotations

import weakref
from contextlib import suppress

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock
from pulsarx._pycore.ground.when_forgotten import WhenForgotten
from pulsarx.broker.topics.waiting_producer import WaitingProducer
from pulsarx.enumerations import ProducerAccessMode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any, Protocol

    from pulsarx._pycore.ground.latch import Latch
    from pulsarx.broker.topics.producer_registry import ProducerRegistry
    from pulsarx.ground.owner import MemberOwner

    class Turn(Protocol):
        """The turn that a producer waits for."""

        @property
        def came(self) -> Latch: ...

    Steps = Generator[Turn, None, Any]


def come(
    registry: ProducerRegistry,
    name: str | None,
    make: Callable[[str], Any],
    access_mode: ProducerAccessMode,
) -> Steps:
    """The steps of adding one producer to a topic. Closed before their end, they leave nothing."""
    found = registry.add(name, make, int(access_mode))
    return (yield from wait_for_turn(registry, found, make))


def wait_for_turn(registry: ProducerRegistry, found: Any, make: Callable[[str], Any]) -> Steps:
    """The steps behind `ProducerRegistry.add`, which gave what was found."""
    if not isinstance(found, WaitingProducer):
        return found
    try:
        yield found
        return registry.promoted(found, make)
    finally:
        registry.withdraw(found)


class _Creation:
    """Takes the steps. Calls of the control plane."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._lock = Lock()
        self._failure: Exception | None = None
        self._ended = False
        self.waits_for: Turn | None = None

    def advance(self) -> Any:
        """The producer; None: it waits."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                self.waits_for = next(self._steps)
            except StopIteration as end:
                self._ended = True
                return end.value
            return None

    def withdraw(self, failure: Exception | None = None) -> None:
        """Give back what there is. failure: what the caller is told."""
        with self._lock:
            if not self._ended:
                self._ended = True
                self._failure = failure or errors.AlreadyClosed(
                    detail="producer, which was not made"
                )
                self._steps.close()


class ProducerCreation:
    """A producer that is being made, as its caller and its client have it. When its caller has
    dropped it, it is withdrawn."""

    owner: MemberOwner | None = None

    def __init__(self, steps: Steps, post: Callable[[Callable[[], object]], object]) -> None:
        """post: of the queue where it is withdrawn when it was dropped."""
        self._creation = _Creation(steps)
        self._forgotten = WhenForgotten(post, self._creation.withdraw)

    def advance(self) -> Any:
        """The producer; None: it waits, and this is to be called again after `wait`. A call of the
        control plane."""
        producer = self._creation.advance()
        if producer is not None:
            self._forgotten.cancel()
        turn = self._creation.waits_for
        if isinstance(turn, WaitingProducer):
            turn.caller = weakref.ref(self)
        return producer

    def wait(self) -> None:
        """Return when there is a next step to take; interrupted, it is withdrawn."""
        turn = self._creation.waits_for
        if turn is not None:
            turn.came.wait_or(self._creation.withdraw)

    def tell(self, notify: Callable[[], object]) -> None:
        """Call notify() once when there is a next step to take, in whatever thread."""
        turn = self._creation.waits_for
        if turn is None:
            notify()
        else:
            turn.came.tell(notify)

    def close_with_client(self) -> None:
        """Its caller is told that the client was closed. A call of the control plane."""
        with suppress(errors.AlreadyClosed):
            self._creation.withdraw(errors.AlreadyClosed(detail="client"))
