"""Checks of arguments, and the bounds of numbers. The first checks raise what the official client
raises; everybody may use them."""

from __future__ import annotations

from pulsarx.errors import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeGuard

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


def check_type(kind: type, value: object, name: str) -> None:
    """ValueError, in the official client's words, unless the value is of the type; True and False
    count as int."""
    if not isinstance(value, kind):
        raise ValueError(
            f"Argument {name} is expected to be of type '{kind.__name__}' and not "
            f"'{type(value).__name__}'"
        )


def check_type_or_none(kind: type, value: object, name: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise ValueError(
            f"Argument {name} is expected to be either None or of type '{kind.__name__}'"
        )


def is_whole_number(value: object) -> TypeGuard[int]:
    """Whether it is an int; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_integer(value: object, name: str, wanted: str = "an int") -> int:
    """ValueError unless it is an int; True and False are none."""
    if not is_whole_number(value):
        raise ValueError(f"{name} must be {wanted}, not {type(value).__name__}")
    return value


def native_type(kind: type, value: object, name: str) -> None:
    """TypeError unless the value is of the type: where the official client leaves it to C++."""
    if not isinstance(value, kind):
        raise TypeError(
            f"{name} must be {kind.__name__}, not {type(value).__name__}: {shown(value)}"
        )


def native_integer(value: object, name: str, lowest: int, highest: int) -> int:
    """TypeError unless an integer within the bounds of the C++ type."""
    if not isinstance(value, int):
        raise TypeError(f"{name} must be int, not {type(value).__name__}: {shown(value)}")
    if not lowest <= value <= highest:
        raise TypeError(f"{name} must be from {lowest} to {highest}, not {shown(value)}")
    return int(value)


def check_properties(properties: object, name: str = "properties") -> None:
    """None, or a dict of str to str."""
    check_type_or_none(dict, properties, name)
    if isinstance(properties, dict):
        for key, value in properties.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError(f"{name} must map str to str, not {shown(key)} to {shown(value)}")


def check_callable(value: object, name: str) -> None:
    """None, or something that can be called."""
    if value is not None and not callable(value):
        raise ValueError(f"{name} must be callable, not {type(value).__name__}: {shown(value)}")


def check_method(value: object, method: str, name: str) -> None:
    """None, or an object with this method."""
    if value is not None and not callable(getattr(value, method, None)):
        raise ValueError(f"{name} must have a method {method}: {shown(value)}")


def check_interceptors(given: list[Any] | None, kind: type) -> list[Any] | None:
    """A list of its own; None for an empty one. ValueError: one is of another kind."""
    for each in given or ():
        if not isinstance(each, kind):
            raise ValueError(
                f"interceptors: {shown(each)} is no {kind.__name__}; derive its class from that"
            )
    return list(given) if given else None
