"""Keeps, for a client, the producers, consumers and readers it made, and closes them when it
ends."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.locks import Lock
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx.ground import upward
from pulsarx.ground.attempt import attempt

try:
    from _weakref import ref  # `weakref` costs more than all that is needed of it
except ImportError:
    from weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx._pycore.ground.waits import BusyWait
    from pulsarx._pycore.ground.when_forgotten import WhenForgotten
    from pulsarx._pycore.ground.work_pool import WorkPool
    from pulsarx.ground.closing import Closing

    class OwningClient(Protocol):
        """A client, as its owner sees it."""

        _kept: dict[int, Any]

        def _require_open(self) -> None: ...

    class Member(Protocol):
        """An object that a client made: a producer, a consumer, a reader, a table view; or a
        producer that waits for its turn."""

        owner: Any

        def close_with_client(self) -> object: ...

    class MemberCreation(Member, Protocol):
        """A producer that is being made."""

        def advance(self) -> Any:
            """The producer; None: it waits for its turn."""


class Leave:
    """Give back what a client has. A job; it does not refer to the client."""

    __slots__ = ("_broker", "_busy_wait", "_is_exclusive", "_pool", "_release")

    def __init__(
        self,
        broker: Any,
        release: Callable[[], object],
        pool: WorkPool,
        is_exclusive: bool,
        busy_wait: BusyWait | None,
    ) -> None:
        """broker: of whichever kind. release: gives it back. busy_wait: ends with the client."""
        self._is_exclusive = is_exclusive
        self._busy_wait = busy_wait
        self._broker = broker
        self._pool = pool
        self._release = release

    def __call__(self) -> None:
        if self._broker.state.is_forked:
            return  # the parent's
        try:
            if self._broker.state.is_open:  # the end of the process may have closed it
                if self._is_exclusive:
                    self._broker.share_again()
                self._release()
        finally:
            if self._busy_wait is not None:
                self._busy_wait.end()
            attempt(self._pool.close)


class ClientOwner:
    """A MemberOwner: the part of a client that what it made refers to. It keeps the broker open,
    and refers to the client weakly, which keeps some of them: so there is no circle."""

    __slots__ = (
        "_broker", "_client", "_closing", "_members", "_within", "forgotten", "lock",
    )  # fmt: skip

    forgotten: WhenForgotten

    def __init__(self, client: OwningClient, closing: Closing) -> None:
        self._client = ref(client)
        self._closing = closing
        self._broker: Any = None
        self._within: Callable[..., Any] | None = None
        self._members = WeakList()  # what the client made
        self.lock: Lock = Lock()  # of the members

    def begin_again(self, closing: Closing, comes_back: type) -> None:
        """In a forked child: consumers and readers are left to the parent, producers come back when
        they are used, of which comes_back is the class. The caller opens the folder."""
        self.forgotten.cancel()
        self.lock = Lock()  # another thread of the parent may have had it
        self._closing = closing
        members, self._members = self._members, WeakList()
        for member in members.members():
            if isinstance(member, comes_back):
                self._members.add(member)

    def client(self) -> Any:
        """The client; None: it is gone."""
        return self._client()

    def come_back(self) -> Any:
        """See MemberOwner."""
        client = self._client()
        if client is None:
            raise errors.forked_error(errors.parent_pid())
        client._require_open()
        return self._broker

    def opened(
        self,
        broker: Any,
        forgotten: WhenForgotten,
        timeout_seconds: int | None = None,
    ) -> None:
        """forgotten: gives back what the client has when nobody uses it any more. timeout_seconds:
        how long its calls wait for the process that owns the folder; None: it is this one."""
        self._broker = broker
        self.forgotten = forgotten
        if timeout_seconds is None:
            self._within = None
        else:  # now: a finalizer may call, when nothing can be imported any more
            from pulsarx.ground.call_timeout import within

            self._within = partial(within, timeout_seconds)

    def within(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the function within the operation timeout of the client, and return what it
        returns."""
        if self._within is None:
            return function(*arguments)
        return self._within(function, *arguments)

    def perform(self, function: Callable[..., Any], arguments: tuple[Any, ...] = ()) -> Any:
        """See MemberOwner."""
        return control_plane.perform(self.within, (function, *arguments))

    @property
    def is_closing(self) -> bool:
        return self._closing.begun

    def runs_callbacks_here(self) -> bool:
        return self._broker is not None and self._broker.runs_callbacks_here()

    def advance(self, creation: MemberCreation) -> Any:
        """The producer that is made, or (its creation,) where it waits for its turn; called again
        when there is a next step to take."""
        within = self._within
        producer = creation.advance() if within is None else within(creation.advance)
        if producer is None:
            if creation.owner is None:
                self.adopt(creation)
            return (creation,)
        self.adopt(producer)
        return producer

    def adopt(self, member: Member) -> None:
        """Close it with the client."""
        from pulsarx.ground.replaced_calls import use_replaced

        use_replaced(member)
        member.owner = self
        with self.lock:
            closing = self._closing.begun
            if not closing:
                self._members.add(member)
        if closing:  # by another thread, which may not have seen this member
            give_back(member)
            raise errors.AlreadyClosed(detail="client")

    def members(self) -> list[Member]:
        """Return the members to be closed with the client."""
        with self.lock:
            found: list[Member] = self._members.members()
        return found

    def let_go(self, member: Any) -> None:
        member.is_let_go = True
        client = self._client()
        if client is not None:
            client._kept.pop(id(member), None)

    def ask(self, verb: str, arguments: dict[str, Any]) -> Any:
        """See MemberOwner."""
        return self.perform(self._ask, (verb, arguments))

    def _ask(self, verb: str, arguments: dict[str, Any]) -> Any:
        broker: Any = self._broker
        broker.state.require_open()
        if broker.is_guest:
            return broker.perform(verb, arguments)
        return upward.load("pulsarx.broker.verbs.table").perform(broker, verb, arguments)

    def create_letter_producer(
        self, topic: str, producer_name: str | None, initial_subscription_name: str
    ) -> Any:
        """See MemberOwner."""
        broker: Any = self._broker
        broker.state.require_open()
        if self._closing.begun:
            raise errors.AlreadyClosed(detail="client")
        make = upward.load("pulsarx.letters.letter_topic").letter_producer
        creation = self.within(make, broker, topic, producer_name, initial_subscription_name)
        return self.advance(creation)


def give_back(member: Member | tuple[Member]) -> None:
    """Close what was made for a caller that was interrupted."""
    attempt((member[0] if isinstance(member, tuple) else member).close_with_client)


def take_back(consumer: Any) -> None:
    """Like give_back; a subscription that was made with it goes too."""
    attempt(consumer.take_back)
    consumer.let_go()
