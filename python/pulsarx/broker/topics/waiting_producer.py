"""A producer that waits to have its topic to itself: its place in the queue of the topic.

state     holds                                              left by
WAITING   a place in the queue                               promotion, fencing, withdrawing
PROMOTED  the topic, which nobody else may publish on        being made; fencing, withdrawing
ENDED     nothing                                            -
"""

from __future__ import annotations

import weakref

from pulsarx._pycore.ground.latch import Latch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

WAITING, PROMOTED, ENDED = range(3)


class WaitingProducer:
    """The lock of its ProducerRegistry guards changes. Any thread may wait; none of the broker's
    does."""

    __slots__ = (
        "access_mode", "caller", "came", "epoch", "failure", "name", "state", "watcher",
    )  # fmt: skip

    def __init__(self, name: str, access_mode: int, epoch: int | None) -> None:
        self.name: str = name
        self.access_mode: int = access_mode
        self.epoch: int | None = epoch  # that the producer brings with it
        self.state: int = WAITING
        self.failure: Exception | None = None  # why it waits no longer
        # Of a caller who may drop it: it is withdrawn in the background then.
        self.caller: weakref.ref[Any] | None = None
        # Called when it waits no longer, with locks held: it may only enqueue.
        self.watcher: Callable[[], object] | None = None
        self.came: Latch = Latch()  # set when it waits no longer

    @property
    def is_forgotten(self) -> bool:
        return self.state != ENDED and self.caller is not None and self.caller() is None

    @property
    def is_waiting(self) -> bool:
        return self.state == WAITING

    def change(self, state: int, failure: Exception | None = None) -> None:
        self.failure = failure
        self.state = state
        self.came.set()
        if self.watcher is not None:
            self.watcher()
