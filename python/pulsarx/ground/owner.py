"""The protocol by which producers, consumers and readers know the client that made them.

They keep the broker open by it, and letters publish through it; nothing else of it is used.
"""

from __future__ import annotations

from pulsarx._pycore.ground.control_plane import control_plane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class MemberOwner(Protocol):
        """The client of a producer, consumer or reader. Any thread may call."""

        @property
        def is_closing(self) -> bool:
            """Whether it was closed, or is being: what it made may be closed once more."""

        def perform(self, function: Callable[..., Any], arguments: tuple[Any, ...] = ()) -> Any:
            """A call of the control plane, within the operation timeout of the client."""

        def ask(self, verb: str, arguments: dict[str, Any]) -> Any:
            """Have the owner of the folder perform a verb, for a call of a member."""

        def runs_callbacks_here(self) -> bool:
            """Whether the calling thread is the one that callbacks of its producers run in."""

        def come_back(self) -> Any:
            """In a forked child: the broker by which the client uses its folder there. ForkedError:
            it cannot be used there."""

        def let_go(self, member: Any) -> None:
            """A member was closed: it lives as long as its user wants."""

        def create_letter_producer(
            self, topic: str, producer_name: str | None, initial_subscription_name: str
        ) -> Any:
            """A producer on a topic for letters, which gets no partitions when it is made for it.

            initial_subscription_name: made with it at its first message; empty: none.
            """


def perform_for(
    owner: MemberOwner | None, function: Callable[..., Any], arguments: tuple[Any, ...] = ()
) -> Any:
    """Perform a call of the control plane for what a client made. None: it has no client."""
    if owner is None:
        return control_plane.perform(function, arguments)
    return owner.perform(function, arguments)


def client_is_closing(owner: MemberOwner | None) -> bool:
    """Whether the client that made something is closed, or closes: it closes that too."""
    return owner is not None and owner.is_closing
