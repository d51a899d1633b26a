"""A table view of asyncio: what `aio.Client.create_table_view` returns."""

from __future__ import annotations

import asyncio
from inspect import isawaitable

from pulsarx import errors
from pulsarx.aio.control_call import perform
from pulsarx.listening.listener_pool import log_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from typing import Any

    Listener = Callable[[str, Any], Awaitable[object] | object]


class TableView:
    """The last value of each key of a topic, as a dictionary to read. See pulsarx.TableView."""

    def __init__(self, view: Any) -> None:
        """Use `Client.create_table_view`.

        Args:
            view: The one behind it.
        """
        self._view = view
        self._listeners: list[_Updates] = []

    def topic(self) -> str:
        """Return the full name of the topic."""
        name: str = self._view.topic()
        return name

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, decoded by the schema. Raises what the schema raised for it.

        Args:
            key: The key of the messages.
            default: Returned when the table does not have the key.
        """
        return self._view.get(key, default)

    def __getitem__(self, key: str) -> Any:
        return self._view[key]

    def __contains__(self, key: object) -> bool:
        return key in self._view

    def __len__(self) -> int:
        return len(self._view)

    def __iter__(self) -> Iterator[str]:
        """The keys there are now."""
        return iter(self._view.keys())

    def keys(self) -> list[str]:
        """Return the keys there are now, in a new list."""
        found: list[str] = self._view.keys()
        return found

    def values(self) -> list[Any]:
        """Return the values there are now, in a new list. Raises what the schema raised for one."""
        found: list[Any] = self._view.values()
        return found

    def items(self) -> list[tuple[str, Any]]:
        """Return the keys and values there are now, in a new list. Raises what the schema raised
        for one."""
        found: list[tuple[str, Any]] = self._view.items()
        return found

    def to_arrow(self) -> Any:
        """Return the keys and values there are now as a `pyarrow.Table`, a row for each key:
        `__key__`, and the fields of records, or `value`. Not in the official client.

        ValueError names the key whose value its column cannot hold. OperationNotSupported: values
        of the schema have no columns. ImportError: pyarrow is missing.
        """
        return self._view.to_arrow()

    async def for_each(self, callback: Listener) -> None:
        """Call a function with what the table holds now.

        Args:
            callback: A function or coroutine function, called with a key and its value.

        Raises:
            TypeError: callback cannot be called.
        """
        _check_is_callable(callback)
        for key, value in self.items():
            answer = callback(key, value)
            if isawaitable(answer):
                await answer

    async def for_each_and_listen(self, callback: Listener) -> None:
        """Call a function with what the table holds now, then with each update, in this loop and
        one after another. Returns when it was called with what there was. What it raises of an
        update is logged. Cancelled, it is called no more.

        Args:
            callback: A function or coroutine function, called with a key and its value; that of a
                removed key is b"" with BytesSchema, "" with StringSchema, else None.

        Raises:
            TypeError: callback cannot be called.
            AlreadyClosed: The view is closed.
        """
        _check_is_callable(callback)
        updates = _Updates(callback, self.topic())
        self._listeners.append(updates)
        try:
            await perform(self._view.for_each_and_listen, updates.add)
            await updates.reached()
        except BaseException:
            self._listeners.remove(updates)
            updates.cancel()
            raise

    async def close(self) -> None:
        """Stop following; what was read stays readable.

        Raises:
            AlreadyClosed: A second call, unless the client closed it.
        """
        try:
            await perform(self._view.close)
        finally:
            for each in self._listeners:
                each.end()

    async def __aenter__(self) -> TableView:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._view._closing.begun:
            await self.close()

    def __repr__(self) -> str:
        return f"aio.{self._view!r}"


class _Updates:
    """Hands updates to a listener in its loop, in order."""

    def __init__(self, callback: Listener, topic: str) -> None:
        self._callback = callback
        self._topic = topic
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Queue[Any] = asyncio.Queue()
        self._task = self._loop.create_task(self._run())

    def add(self, key: str, value: Any) -> None:
        """Add an update; called in a thread of the client."""
        if not self._task.done() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._waiting.put_nowait, (key, value))

    async def reached(self) -> None:
        """Return when the listener was called with what was added before, or will not be called
        any more."""
        mark = self._loop.create_future()
        # As the updates come: behind those that are on their way.
        self._loop.call_soon(self._waiting.put_nowait, mark)
        await asyncio.wait((mark, self._task), return_when=asyncio.FIRST_COMPLETED)

    def end(self) -> None:
        """Call the listener no more, after what was added."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._waiting.put_nowait, None)

    def cancel(self) -> None:
        """Call the listener no more, and forget what was added."""
        self._task.cancel()

    async def _run(self) -> None:
        while (update := await self._waiting.get()) is not None:
            if isinstance(update, asyncio.Future):
                if not update.done():
                    update.set_result(None)
                continue
            try:
                answer = self._callback(*update)
                if isawaitable(answer):
                    await answer
            except errors.InterruptedByKeyboard:
                raise  # out of the loop, as any KeyboardInterrupt
            except Exception:
                log_exception(
                    "%s: a listener of a table view raised at key %r", self._topic, update[0]
                )


def _check_is_callable(callback: object) -> None:
    if not callable(callback):
        raise TypeError(f"callback must be callable, not {type(callback).__name__}: {callback!r}")
