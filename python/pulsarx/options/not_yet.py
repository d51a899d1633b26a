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
            raise OperationNotSupported(
                f"{call}({name}={getattr(options, name)!r}): {what} is not supported yet"
            )
