"""Faults of the product, each planted for a while: the simulation has to find every one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import simulated_wire as wire

from pulsarx._pycore.ground import owner_link
from pulsarx.broker.runtime import BrokerRuntime
from pulsarx.processes.guest.producers import GuestProducer
from pulsarx.processes.owner import session_verbs
from pulsarx.processes.owner.arrivals import Arrivals
from pulsarx.processes.owner.consumer import attach_guest

FRAME_SIZE = 52  # of a fixed frame: size, 0, kind, ...


def _kind(data: bytes) -> int:
    """Of a fixed frame; 0: it is another one."""
    fixed = len(data) == FRAME_SIZE and data[4:8] == b"\0\0\0\0"
    return int.from_bytes(data[8:12], "big") if fixed else 0


def _every(count: int, kind: int, replaced: Callable[[bytes], list[bytes]]) -> Any:
    """A replacement of `End.send`, where each count-th frame of a kind becomes others."""
    send, seen = wire.End.send, 0

    def changed(end: wire.End, data: bytes) -> None:
        nonlocal seen
        found = [data]
        if _kind(data) == kind:
            seen += 1
            if seen % count == 0:
                found = replaced(data)
        for each in found:
            send(end, each)

    return wire.End, "send", changed


def _gives_again() -> Any:
    """As if the owner had forgotten that it gave them."""
    send = wire.End.send
    given: dict[int, list[bytes]] = {}  # by end

    def changed(end: wire.End, data: bytes) -> None:
        send(end, data)
        if _kind(data) == owner_link.RUN:
            before = given.setdefault(id(end), [])
            before.append(data)
            if len(before) % 4 == 0:
                send(end, before[0])

    return wire.End, "send", changed


def _forgets_acknowledgements() -> Any:
    def open_tracker(runtime: Any, topic: str, record: Any) -> Any:
        return runtime._tracker(topic, record, [])

    return BrokerRuntime, "open_tracker", open_tracker


def _forgets_what_is_stored() -> Any:
    return GuestProducer, "_stored", lambda _: ([], None)


def _is_for_all() -> Any:
    attach = attach_guest

    def attach_shared(topic: Any, arguments: dict[str, Any], place: int | None) -> Any:
        is_alone = arguments["type"] in ("Exclusive", "Failover")
        return attach(topic, {**arguments, "type": "Shared"} if is_alone else arguments, place)

    return session_verbs, "attach_guest", attach_shared


def _awaits_nobody() -> Any:
    begin = Arrivals.__init__
    return Arrivals, "__init__", lambda self, _: begin(self, ())


PLANTED: dict[str, Callable[[], Any]] = {
    "the next owner forgets what was acknowledged": _forgets_acknowledgements,
    "a guest does not look what the last owner had stored": _forgets_what_is_stored,
    "the next owner awaits no guest of the last one": _awaits_nobody,
    "an exclusive subscription has two consumers": _is_for_all,
    "an acknowledgement is dropped": lambda: _every(20, owner_link.ACKNOWLEDGE, lambda _: []),
    "permits, which wake an owner, are dropped": lambda: _every(10, owner_link.FLOW, lambda _: []),
    "a guest is not told of its messages": lambda: _every(20, owner_link.RUN, lambda _: []),
    "messages are given to a guest once more": _gives_again,
}


@contextmanager
def planted(bug: str) -> Iterator[None]:
    owner, name, value = PLANTED[bug]()
    kept = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, kept)
