"""A table view of a topic of a cluster."""

from __future__ import annotations

import threading

from pulsarx import errors
from pulsarx.cluster import official
from pulsarx.cluster.handle import Handle
from pulsarx.enumerations import SchemaType
from pulsarx.ground.closing import Closing
from pulsarx.listening.listener_pool import log_exception
from pulsarx.table_view import TableView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.ground.open_state import OpenState
    from pulsarx.options.members import TableViewOptions

_REMOVED = {SchemaType.BYTES: b"", SchemaType.STRING: ""}


class ClusterTableView(Handle, TableView):
    """The last value of each key of a topic of a cluster. Any thread may call."""

    def __init__(self, client: Any, state: OpenState, options: TableViewOptions) -> None:
        """client: the native one. A call of the control plane."""
        if options.schema.decoding in ("version", "message") and getattr(
            options.schema, "reads_any", False
        ):
            raise errors.OperationNotSupported(
                detail=f"{type(options.schema).__name__} of a table view on a cluster: the "
                "official client does not tell by which schema a value was written"
            )
        self._state = state
        self._options = options
        self._name = options.topic
        self._where = f"table view of {options.topic}"
        self._closing = Closing()
        self._decode = options.schema.decode
        self._removed = _REMOVED.get(options.schema.schema_info().schema_type())
        conf = official.native().TableViewConfiguration()
        if options.subscription_name is not None:
            conf.subscription_name(options.subscription_name)
        conf.schema(official.native_schema_of(options.schema))
        self._native = self._call(client.create_table_view, options.topic, conf)

    def fill(self) -> None:
        """The official client has."""

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key; default when the table has none."""
        is_there, payload = self._open_call(self._native.get, key)
        return self._decode(payload) if is_there else default

    def __getitem__(self, key: str) -> Any:
        is_there, payload = self._open_call(self._native.get, key)
        if not is_there:
            raise KeyError(key)
        return self._decode(payload)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and bool(self._open_call(self._native.get, key)[0])

    def __len__(self) -> int:
        return int(self._open_call(self._native.size))

    def keys(self) -> list[str]:
        """The keys there are now, in a new list."""
        return [key for key, _ in self._pairs()]

    def values(self) -> list[Any]:
        """The values there are now, in a new list."""
        return [self._decode(payload) for _, payload in self._pairs()]

    def items(self) -> list[tuple[str, Any]]:
        """Keys and values as they are now, in a new list."""
        return [(key, self._decode(payload)) for key, payload in self._pairs()]

    def _pairs(self) -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []
        self._open_call(self._native.for_each, lambda key, payload: found.append((key, payload)))
        return found

    def for_each_and_listen(self, callback: Callable[[str, Any], object]) -> None:
        """Like TableView.for_each_and_listen; updates are told in a thread of the official
        client."""
        if not callable(callback):
            raise TypeError(f"callback must be callable, not {type(callback).__name__}")
        listener = _Listener(self, callback)
        self._open_call(self._native.for_each_and_listen, listener)
        listener.go_live()

    def decoded(self, payload: bytes) -> Any:
        """The value of an update."""
        return self._decode(payload) if payload else self._removed

    def _shut(self) -> None:
        self._call(self._native.close)

    @property
    def _is_forked(self) -> bool:
        return self._state.is_forked

    def _require_open(self) -> None:
        self.require_open()

    def __repr__(self) -> str:
        name = self._options.subscription_name
        return f"TableView(topic={self._name!r}, subscription_name={name!r})"


class _Listener:
    """Tells a callback what the table holds, in the thread that asks, and then each update."""

    def __init__(self, view: ClusterTableView, callback: Callable[[str, Any], object]) -> None:
        self._view = view
        self._callback = callback
        self._caller: int | None = threading.get_ident()
        self._failure: BaseException | None = None

    def __call__(self, key: str, payload: bytes) -> None:
        if self._failure is not None:
            return
        try:
            self._callback(key, self._view.decoded(payload))
        except BaseException as error:
            if self._caller == threading.get_ident():
                self._failure = error
            else:
                log_exception(
                    "%s: a listener of a table view raised at key %r", self._view.topic(), key
                )

    def go_live(self) -> None:
        """Raise what the callback raised in the calling thread."""
        self._caller = None
        if self._failure is not None:
            raise self._failure
