"""Methods of Producer, Consumer and Reader that a program replaces in their class, as tracing
libraries do: `Producer.send = traced`, where `traced` calls what `Producer.send` was before.
And objects of a class of its own that take over the attributes of one of ours, as in
`mine.__dict__.update(consumer.__dict__)`: their calls are those of the original.

Producers and consumers are of subclasses that inherit these calls from the core, in front of the
class that a program knows. So one that is made after a replacement gets a class of its own, in
front of the core; where nothing is replaced no call pays for it.
"""

from __future__ import annotations

import functools
import weakref
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
    """A class whose public methods a program may replace, and call on an object that has the
    attributes of another one."""
    for name, call in list(vars(kind).items()):
        if isinstance(call, FunctionType) and not name.startswith("_"):
            setattr(kind, name, _of_original(call))
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


def _of_original(call: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """A method that is called on the original where it has one."""

    @functools.wraps(call)
    def perform(*arguments: Parameters.args, **named: Parameters.kwargs) -> Returned:
        member = arguments[0]
        found = vars(member).get("original")
        if found is None or found[0] == id(member):
            return call(*arguments, **named)
        performed: Returned = getattr(original_of(member), call.__name__)(*arguments[1:], **named)
        return performed

    return perform


def original_of(member: Any) -> Any:
    """Return the object that a client made and that this one has the attributes of. TypeError:
    there is none."""
    kept = vars(member).get("kept_original")
    if kept is not None:
        return kept
    found = vars(member).get("original")
    original = None if found is None else found[1]()
    if original is None or original is member:
        why = "no client made it"
        if found is not None:
            why = "the one whose attributes it has is gone: keep what the client returned"
        raise TypeError(f"an object of {type(member).__name__} cannot be used: {why}")
    member.kept_original = original  # which its client lets go when it is closed
    return original


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
    # By number too: the reference is gone where a finalizer calls.
    member.original = id(member), weakref.ref(member)
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
