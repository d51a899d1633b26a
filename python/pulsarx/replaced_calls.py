"""Methods of Producer, Consumer and Reader that a program replaces in their class, as tracing
libraries do: `Producer.send = traced`, where `traced` calls what `Producer.send` was before.

Producers and consumers are of subclasses that inherit these calls from the core, in front of the
class that a program knows. So one that is made after a replacement gets a class of its own, in
front of the core; where nothing is replaced no call pays for it.
"""

from __future__ import annotations

import functools
from operator import is_
from types import FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar

    Parameters = ParamSpec("Parameters")
    Returned = TypeVar("Returned")
    Kind = TypeVar("Kind", bound=type)

_kinds: dict[type, tuple[dict[str, Any], type]] = {}  # what was replaced last, and the class


def replaceable(kind: Kind) -> Kind:
    """A class whose public methods a program may replace."""
    kind.declared_calls = {  # type: ignore[attr-defined]
        name: call
        for name, call in vars(kind).items()
        if isinstance(call, FunctionType) and not name.startswith("_")
    }
    kind.declaring_class = kind  # type: ignore[attr-defined]
    return kind


def in_subclass(call: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """A method that subclasses have. Called by its class, it is theirs."""

    @functools.wraps(call)
    def perform(*arguments: Parameters.args, **named: Parameters.kwargs) -> Returned:
        found = _implementation(arguments[0], call.__name__)
        if found is None:
            return call(*arguments, **named)
        performed: Returned = found(*arguments, **named)
        return performed

    return perform


def _implementation(member: Any, name: str) -> Any:
    for kind in type(member).__mro__:
        if kind is member.declaring_class:
            return None
        if name not in vars(kind) or "replaces" in vars(kind):
            continue
        # A subclass of the program may have come here itself.
        return vars(kind)[name] if kind.__module__.startswith("pulsarx.") else None
    return None


def use_replaced(member: Any) -> None:
    """Have a new producer, consumer or reader use what was replaced."""
    declared = getattr(member, "declared_calls", None)
    if declared is None:
        return
    now = vars(member.declaring_class)
    if all(map(is_, map(now.get, declared), declared.values())):
        return  # mostly
    replaced = {
        name: now[name] for name, call in declared.items() if now.get(name, call) is not call
    }
    if not replaced:
        return
    kind = type(member)
    known = _kinds.get(kind)
    if known is None or known[0] != replaced:
        body = {**replaced, "replaces": True, "__module__": kind.__module__}
        known = _kinds[kind] = replaced, type(kind.__name__, (kind,), body)
    member.__class__ = known[1]
    for name in getattr(member, "calls_of_core", ()):
        if name in replaced:
            delattr(member, name)
