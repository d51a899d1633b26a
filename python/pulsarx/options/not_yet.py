"""The table of what the official client supports and this version does not yet.

Each option is accepted at the values that mean "off"; any other raises OperationNotSupported.
"""

from __future__ import annotations

from pulsarx.errors import OperationNotSupported

# (call, option): (values that ask for nothing, what is missing)
NOT_YET: dict[tuple[str, str], tuple[tuple[object, ...], str]] = {}


def refuse_what_is_not_there_yet(call: str, options: object) -> None:
    """options: the checked arguments of the call, as attributes."""
    for (row_call, name), (off_values, what) in NOT_YET.items():
        if row_call == call and getattr(options, name) not in off_values:
            raise _error(f"{call}({name}={getattr(options, name)!r})", what)


def refuse_call(call: str, what: str) -> OperationNotSupported:
    """The error of a method that the official client has and this version has not."""
    return _error(f"{call}()", what)


def _error(where: str, what: str) -> OperationNotSupported:
    return OperationNotSupported(f"{where}: {what} is not supported yet")
