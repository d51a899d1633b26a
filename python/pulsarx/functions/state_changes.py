"""Changes of a function's state that do not count yet: what they make of a value, and of others.

A change of a key is a pair: (True, value) sets it, and removes it if that is None; (False, amount)
adds to a counter.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    Value = int | bytes | None
    Change = tuple[bool, Value]
    Changes = dict[str, Change]


def checked_amount(amount: int) -> int:
    if type(amount) is not int:
        raise TypeError(f"the amount of a counter is an int, not {type(amount).__name__}")
    return amount


def checked_value(value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    if not isinstance(data, bytes):
        raise TypeError(f"a state is bytes or str, not {type(value).__name__}")
    return data


def counter_of(key: str, value: Value) -> int:
    """The number that is added to. ValueError: the key has a value."""
    if isinstance(value, bytes):
        raise ValueError(f"the state {key!r} is a value and no counter")
    return value or 0


def applied(key: str, value: Value, change: Change) -> Value:
    """The value of a key behind a change. ValueError: as of counter_of."""
    is_set, given = change
    return given if is_set else counter_of(key, value) + counter_of(key, given)


def join(changes: Changes, later: Changes) -> None:
    """Put changes behind others, which then are both. ValueError: as of counter_of."""
    for key, change in later.items():
        before = changes.get(key)
        if before is None or change[0]:
            changes[key] = change
        else:
            changes[key] = before[0], applied(key, before[1], change)
