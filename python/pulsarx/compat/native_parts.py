"""Native parts of our classes, which programs reach into for what the official client does not
offer: `producer._producer`, the native producer, `consumer._client` and the like. With the alias
our classes have them too."""

from __future__ import annotations

from functools import partial

from pulsarx.client import Client
from pulsarx.compat import handles
from pulsarx.consumer import Consumer
from pulsarx.producer import Producer
from pulsarx.reader import Reader
from pulsarx.table_view import TableView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Part:
    """An attribute that is made when it is read. What an object has by that name itself wins."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else self._make(owner)


class Unreplaced:
    """A producer, consumer or reader as it is where the program has replaced nothing, which may
    call this in what it replaces."""

    def __init__(self, member: Any) -> None:
        self._member = member

    def __getattr__(self, name: str) -> Any:
        call = self._member.declared_calls.get(name)
        return getattr(self._member, name) if call is None else partial(call, self._member)


def _client_of(member: Any) -> Any:
    return member.owner.client()


def _schema_of(member: Any) -> Any:
    return member._options.schema


def _consumers_of(client: Any) -> list[Any]:
    return [each for each in client._kept.values() if not isinstance(each, Producer)]


def _native_producer_of(producer: Any) -> Any:
    return handles.Producer(Unreplaced(producer))


def _native_consumer_of(consumer: Any) -> Any:
    return handles.Consumer(Unreplaced(consumer))


def _native_reader_of(reader: Any) -> Any:
    return handles.Reader(Unreplaced(reader))


def _native_client_of(producer: Any) -> Any:
    return handles.Client.of(_client_of(producer))


PARTS: dict[type, dict[str, Callable[[Any], Any]]] = {
    Client: {"_client": handles.Client.of, "_consumers": _consumers_of},
    Producer: {
        "_client": _native_client_of,
        "_producer": _native_producer_of,
        "_schema": _schema_of,
    },
    Consumer: {"_client": _client_of, "_consumer": _native_consumer_of, "_schema": _schema_of},
    Reader: {"_client": _client_of, "_reader": _native_reader_of, "_schema": _schema_of},
    TableView: {"_table_view": handles.TableView},
}


def give_parts() -> None:
    """Give them to our classes."""
    for kind, parts in PARTS.items():
        for name, make in parts.items():
            setattr(kind, name, Part(make))
