"""The base of producers, consumers, readers and table views of a cluster."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.cluster import official

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.ground.open_state import OpenState
    from pulsarx.ground.closing import Closing


class Handle:
    """Calls the official client for one object of ours."""

    _state: OpenState  # of the client
    _native: Any
    _closing: Closing
    _where = ""  # what it is, for errors

    @property
    def is_forked(self) -> bool:
        """Tell whether this is a child's copy of what its parent opened."""
        return self._state.is_forked

    @property
    def is_open(self) -> bool:
        return not self._closing.begun and not self._state.is_forked

    def require_open(self) -> None:
        """AlreadyClosed (ForkedError in a forked child) unless it is open."""
        if self._state.is_forked:
            self._state.require_open()
        if not self.is_open:
            raise errors.AlreadyClosed(detail=self._where)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return official.call(self._where, function, *arguments)

    def _open_call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Like _call, for an object that must be open."""
        self.require_open()
        return official.call(self._where, function, *arguments)


def native_of(handle: Any) -> Any:
    """Return the official client's object behind one of ours."""
    return handle._native


def no_columns(call: str) -> errors.OperationNotSupported:
    """The error of a call that moves columns."""
    return errors.OperationNotSupported(
        detail=f"{call} on a cluster: the official client takes and gives messages one by one"
    )


def no_transactions(transaction: object) -> None:
    """OperationNotSupported, unless it is None."""
    if transaction is not None:
        raise errors.OperationNotSupported(
            detail="a transaction on a cluster: the official client has none in Python"
        )
