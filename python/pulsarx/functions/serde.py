"""Serialization of what functions take and return."""

from __future__ import annotations

import pickle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class SerDe:
    """Base: turns values into payloads and back."""

    def serialize(self, input: Any) -> Any:
        """The payload of a value."""

    def deserialize(self, input_bytes: bytes) -> Any:
        """The value of a payload."""


class PickleSerDe(SerDe):
    """Pickles any Python object. As with every pickle, a producer on the topic can run code in the
    process that deserializes."""

    def serialize(self, input: Any) -> bytes:
        return pickle.dumps(input)

    def deserialize(self, input_bytes: bytes) -> Any:
        return pickle.loads(input_bytes)


class IdentitySerDe(SerDe):
    """Leaves bytes as they are, writes numbers and text as text. Text that parses as a number is
    read as a number."""

    def __init__(self) -> None:
        self._types = [int, float, complex, str]

    def serialize(self, input: Any) -> bytes:
        if type(input) in self._types:
            return str(input).encode("utf-8")
        if type(input) is bytes:
            return input
        # The words of the official client, its spelling too: programs compare them.
        raise TypeError(f"IdentitySerde cannot serialize object of type {type(input)}")

    def deserialize(self, input_bytes: bytes) -> Any:
        try:
            text = input_bytes.decode("utf-8")
        except UnicodeDecodeError:
            return input_bytes
        for kind in self._types:
            try:
                return kind(text)
            except ValueError:
                pass
        return input_bytes
