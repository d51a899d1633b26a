"""Checks arguments that functions hand on to another, and refuses them by the name that the user
called."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def check_keywords(
    call: str, given: Mapping[str, Any], target: Callable[..., Any], *others: str
) -> None:
    """TypeError: target takes no argument of that name; says the nearest. others: what call itself
    takes."""
    from inspect import signature

    from pulsarx.spark.topic_columns import nearest

    known = [*others]
    known += [
        each.name
        for each in signature(target).parameters.values()
        if each.kind == each.KEYWORD_ONLY
    ]
    for name in given:
        if name not in known:
            raise TypeError(
                f"{call} has no argument {name!r}{nearest(name, known)} "
                f"Arguments: {', '.join(known)}"
            )


def check_raw(call: str, given: Mapping[str, Any]) -> None:
    """OperationNotSupported: the call takes payloads alone."""
    from pulsarx import errors

    found = given.get("value_format", "raw")
    if found != "raw":
        raise errors.OperationNotSupported(
            detail=f"{call}: value_format is {found!r:.80}; values are given as payloads here. "
            "write_topic makes them of the columns of a DataFrame"
        )
