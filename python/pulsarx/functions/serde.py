"""How values of functions become payloads and come back."""

from __future__ import annotations

import pickle
from abc import abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class SerDe:
    """Base of serializers."""

    @abstractmethod
    def serialize(self, input: Any) -> bytes:
        """The payload of a value."""

    @abstractmethod
    def deserialize(self, input_bytes: bytes) -> Any:
        """The value of a payload."""


class PickleSerDe(SerDe):
    """Pickles values. A producer of such payloads can run code in the process that reads them."""

    def serialize(self, input: Any) -> bytes:
        return pickle.dumps(input)

    def deserialize(self, input_bytes: bytes) -> Any:
        return pickle.loads(input_bytes)


class IdentitySerDe(SerDe):
    """Text of numbers and strings, and bytes as they are. A payload is read as the first of int,
    float, complex and str that it is, else as bytes."""

    def __init__(self) -> None:
        self._types: list[type] = [int, float, complex, str]

    def serialize(self, input: Any) -> bytes:
        if type(input) in self._types:
            return str(input).encode("utf-8")
        if type(input) is bytes:
            return input
        raise TypeError(f"IdentitySerde cannot serialize object of type {type(input)}")

    def deserialize(self, input_bytes: bytes) -> Any:
        try:
            text = input_bytes.decode("utf-8")
        except ValueError:
            return input_bytes
        for each in self._types:
            try:
                return each(text)
            except ValueError:
                pass
        return input_bytes
