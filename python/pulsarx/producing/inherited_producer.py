"""A producer in a forked child until it is used there: the first call makes it one of the child's
own, with nothing of what the parent had not sent yet."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.locks import RLock
from pulsarx.ground.owner import perform_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.ground.owner import MemberOwner

CALLS = (
    "send", "send_async", "send_async_described", "send_many", "send_arrow", "send_columns",
    "use_schema", "flush",
)  # fmt: skip

_lock = RLock()  # one is made the child's own at a time
_kinds: dict[type, type] = {}


class InheritedProducer:
    """Replaces a kind of producer in a forked child. Any thread may call."""

    owner: MemberOwner | None
    kind: Any  # of producer
    _was_closed = False

    def come_back(self) -> None:
        """Make it a producer of this process, as the begin_again of its kind does. ForkedError: its
        client cannot be used here."""
        control_plane.perform(self._come_back)

    def _come_back(self) -> None:
        with _lock:
            if type(self) not in _kinds.values():
                return  # another thread did it
            if self._was_closed:
                raise errors.AlreadyClosed(detail="producer")
            if self.owner is None:
                raise errors.forked_error(errors.parent_pid())
            broker = self.owner.come_back()
            try:
                perform_for(self.owner, self.kind.begin_again, (self, broker))
            except BaseException:
                become_inherited(self)
                raise

    def become_itself(self) -> None:
        """The next step is its constructor."""
        self.__class__ = self.kind

    def close(self) -> None:
        """It was not used here: there is nothing to do."""
        self._was_closed = True

    def close_with_client(self) -> None:
        self._was_closed = True

    def close_forgotten(self) -> None:
        """The parent's."""


def _first_use(name: str) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        self.come_back()
        return getattr(self, name)(*arguments, **named)

    call.__name__ = name
    return call


for _name in CALLS:
    setattr(InheritedProducer, _name, _first_use(_name))


def become_inherited(producer: Any) -> None:
    """A producer is in a forked child now. Takes no lock."""
    kind = type(producer)
    if issubclass(kind, InheritedProducer):
        return
    found = _kinds.get(kind)
    if found is None:
        found = _kinds[kind] = type(kind.__name__, (InheritedProducer, kind), {"kind": kind})
    producer.__class__ = found


def reset_in_child() -> None:
    """Another thread of the parent may have had the lock."""
    global _lock
    _lock = RLock()


def refuse_waiting(name: str, topic: str) -> errors.PulsarException:
    """The error of a producer that waited for its topic in the parent."""
    return errors.ProducerBusy(
        detail=f"producer {name} on {topic} was made by the parent of this process with "
        "access_mode WaitForExclusive, and would wait for its turn here; make one of its own"
    )
