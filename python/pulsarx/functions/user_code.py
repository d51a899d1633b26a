"""Finds what users wrote, by the names that `--classname` and its like have."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pulsarx import errors
from pulsarx.functions.serde import IdentitySerDe, PickleSerDe, SerDe

_SERIALIZERS: dict[str, type[SerDe]] = {
    "IdentitySerDe": IdentitySerDe,
    "PickleSerDe": PickleSerDe,
}
# Where they are, as functions write it.
_OURS = ("serde.", "pulsar.functions.serde.", "pulsarx.functions.serde.", "pulsar.", "")


def add_folder(py: str) -> None:
    """Let modules beside a file be imported. OperationNotSupported: it is an archive."""
    if not py.endswith(".py"):
        raise errors.OperationNotSupported(
            detail=f"py={py!r}: a function is run from a .py file; unpack or install archives first"
        )
    if not os.path.isfile(py):
        raise FileNotFoundError(f"py={py!r}: there is no such file")
    folder = os.path.dirname(os.path.abspath(py))
    if folder not in sys.path:
        sys.path.insert(0, folder)


def find(name: str) -> Any:
    """A module, or what one holds: `module`, `module.Class`, `package.module.Class`."""
    module, _, attribute = name.rpartition(".")
    if not module:
        return importlib.import_module(attribute)
    return getattr(importlib.import_module(module), attribute)


def check_found(function: Any) -> None:
    """Raise what its module raises, or that there is none, if it is the name of a function."""
    if isinstance(function, str):
        find(function)


def serializer(named: Any) -> SerDe:
    """Return the SerDe that a class, an instance or a class name stands for; None:
    IdentitySerDe."""
    if named is None:
        return IdentitySerDe()
    if isinstance(named, str):
        module, _, name = named.rpartition(".")
        if f"{module}." in _OURS or not module:
            named = _SERIALIZERS.get(name, named)
    if isinstance(named, str):
        named = find(named)
    made = named() if isinstance(named, type) else named
    for each in ("serialize", "deserialize"):
        if not callable(getattr(made, each, None)):
            raise ValueError(f"{named!r} is no SerDe: it has no {each}")
    found: SerDe = made
    return found


def name_of(function: Any) -> str:
    """Return the name that a function has when it is given none, as pulsar-admin names it."""
    if isinstance(function, str):
        return function.rpartition(".")[2]
    if isinstance(function, ModuleType):
        return function.__name__.rpartition(".")[2]
    own = getattr(function, "__name__", None) or type(function).__name__
    return "lambda" if own == "<lambda>" else str(own)


def callable_of(function: Any) -> Callable[[Any, Any], Any]:
    """Return the callable that takes input and context. Each call makes an instance of a class of
    its own.

    function: a Function class or an instance of one, a module with `process(input)`, something to
        call with input, or with input and context; or the name of one of these.
    """
    if isinstance(function, str):
        function = find(function)
    if isinstance(function, type):
        function = function()
    if isinstance(function, ModuleType):
        native = getattr(function, "process", None)
        if not callable(native):
            raise ValueError(f"module {function.__name__} has no function process(input)")
        return _without_context(native)
    method = getattr(function, "process", None)
    if callable(method):
        taken: Callable[[Any, Any], Any] = method
        return taken
    if not callable(function):
        raise ValueError(f"{function!r} is no function: it has no process(input, context)")
    return function if _parameter_count(function) > 1 else _without_context(function)


def _without_context(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda input, context: function(input)


def _parameter_count(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # of a builtin
        return 1
    return sum(
        each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        and each.default is each.empty
        for each in parameters
    )
