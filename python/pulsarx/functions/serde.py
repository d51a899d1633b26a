"""Serialization of what functions take and return."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class SerDe:
    """Base: turns values into payloads and back."""

    def serialize(self, input: Any) -> Any:
        """Return the payload of a value.

        Args:
            input: The value.
        """

    def deserialize(self, input_bytes: bytes) -> Any:
        """Return the value of a payload.

        Args:
            input_bytes: The bytes of the payload.
        """


class PickleSerDe(SerDe):
    """Pickles any Python object. As with every pickle, a producer on the topic can run code in the
    process that deserializes."""

    def serialize(self, input: Any) -> bytes:
        """Return the payload of a value.

        Args:
            input: Any object that can be pickled.

        Raises:
            pickle.PicklingError: It cannot be pickled.
        """
        import pickle

        return pickle.dumps(input)

    def deserialize(self, input_bytes: bytes) -> Any:
        """Return the value of a payload.

        Args:
            input_bytes: The bytes of the payload.

        Raises:
            pickle.UnpicklingError: They are no pickle; unpickling may raise anything else.
        """
        import pickle

        return pickle.loads(input_bytes)


class IdentitySerDe(SerDe):
    """Leaves bytes as they are, writes numbers and text as text. Text that parses as a number is
    read as a number."""

    def __init__(self) -> None:
        """Make the SerDe of bytes, numbers and text."""
        self._types = [int, float, complex, str]

    def serialize(self, input: Any) -> bytes:
        """Return the payload of a value.

        Args:
            input: bytes, str, int, float or complex.

        Raises:
            TypeError: It is none of them.
        """
        if type(input) in self._types:
            return str(input).encode("utf-8")
        if type(input) is bytes:
            return input
        # The words of the official client, its spelling too: programs compare them.
        raise TypeError(f"IdentitySerde cannot serialize object of type {type(input)}")

    def deserialize(self, input_bytes: bytes) -> Any:
        """Return the value of a payload: a number where its text is one, else the text, else the
        bytes.

        Args:
            input_bytes: The bytes of the payload.
        """
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
