"""All that users can name or are given: the modules' public names, and what their public classes
have, each with its docstring and its signature."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from source_files import ROOT

MODULES = (
    "pulsarx",
    "pulsarx.aio",
    "pulsarx.testing",
    "pulsarx.schema",
    "pulsarx.functions",
    "pulsarx.admin",
)
# What is in no `__all__`: what is loaded by its first use alone, and what calls return.
OTHERS = (
    "pulsarx.forwarding.Forwarder",
    "pulsarx.producing.message_builder.TypedMessageBuilder",
    "pulsarx.admin.peeked_message.PeekedMessage",
)
# `pulsar.asyncio`: the other names of the official client are of classes above.
OFFICIAL = ("pulsarx.compat.pulsar_asyncio",)
FIXTURES = ROOT / "python/pytest_pulsarx.py"
SPARK = ROOT / "spark"


@dataclass
class Parameter:
    """name: with its stars. annotation: as it is written; "": there is none."""

    name: str
    annotation: str


@dataclass
class Callable:
    """A function, method, property or class."""

    name: str
    doc: str
    kind: str  # class, function, property
    parameters: list[Parameter]
    answer: str  # the annotation of what it returns; "": unknown, or nothing


def public_api() -> list[Callable]:
    """Everything, each function once."""
    found: dict[int, Callable] = {}
    for module in MODULES:
        for name in import_module(module).__all__:
            _visit(f"{module}.{name}", getattr(import_module(module), name), found)
    for name in OTHERS:
        module, _, own = name.rpartition(".")
        _visit(name, getattr(import_module(module), own), found)
    for module in OFFICIAL:
        for name, value in vars(import_module(module)).items():
            if not name.startswith("_") and getattr(value, "__module__", "") == module:
                _visit(f"{module}.{name}", value, found)
    return [*found.values(), *_spark(), *_fixtures()]


def _visit(name: str, value: Any, found: dict[int, Callable]) -> None:
    if not inspect.isclass(value):
        if inspect.isroutine(value):
            found.setdefault(id(value), _of_function(name, value, value, None))
        return
    if id(value) in found:
        return
    found[id(value)] = Callable(name, inspect.cleandoc(value.__doc__ or ""), "class", [], "")
    stub = _stub_of(value)
    for own, member, owner in _members(value):
        full = f"{name}.{own}"
        function = getattr(member, "__func__", member)
        if isinstance(function, property):
            function = function.fget
            doc = inspect.cleandoc(function.__doc__ or "")
            found.setdefault(id(function), Callable(full, doc, "property", [], ""))
        elif inspect.isgetsetdescriptor(function):
            written = (_stub_of(owner) or {}).get(own)
            if written is not None:  # else it is an attribute, which has no docstring
                doc = inspect.cleandoc(function.__doc__ or "") or ast.get_docstring(written) or ""
                found.setdefault(id(function), Callable(full, doc, "property", [], ""))
        elif inspect.isroutine(function):
            if own == "__init__" and not hasattr(function, "__code__") and stub is None:
                continue  # of object
            written = (stub or _stub_of(owner) or {}).get(own)
            if own == "__init__" and not inspect.isfunction(function) and written is None:
                continue
            found.setdefault(id(function), _of_function(full, function, member, written))


def _members(kind: type) -> Iterator[tuple[str, Any, type]]:
    """The members of a class and of its bases that are ours, without those it overrides."""
    seen: set[str] = set()
    for owner in kind.__mro__:
        if not (owner.__module__ or "").startswith("pulsarx"):
            continue
        for name, value in vars(owner).items():
            if name in seen or (name.startswith("_") and name != "__init__"):
                continue
            seen.add(name)
            if not inspect.isclass(value):
                yield name, value, owner


def _of_function(name: str, function: Any, member: Any, written: Any) -> Callable:
    if written is not None:  # of a compiled module, whose signature has no types
        parameters, answer = _of_syntax(written)
    else:
        signature = inspect.signature(function)
        parameters = [
            Parameter(f"{_STARS.get(each.kind, '')}{each.name}", _text(each.annotation))
            for each in signature.parameters.values()
        ]
        answer = _text(signature.return_annotation)
    is_static = isinstance(member, staticmethod) or "." not in name
    if not is_static and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    return Callable(name, inspect.cleandoc(_unsigned(function)), "function", parameters, answer)


_STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def _text(annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        return ""
    return annotation if isinstance(annotation, str) else str(annotation)


def _unsigned(function: Any) -> str:
    """The docstring, without the signature that Cython writes in front of it."""
    doc: str = inspect.getdoc(function) or ""
    first, _, rest = doc.partition("\n")
    return rest.removeprefix("--\n") if first.startswith(f"{function.__name__}(") else doc


def _stub_of(kind: type) -> dict[str, Any] | None:
    """The methods of a compiled class as its stub has them."""
    module = kind.__module__
    path = ROOT / f"src/pycore/{module.removeprefix('pulsarx._pycore.').replace('.', '/')}.pyi"
    if not module.startswith("pulsarx._pycore.") or not path.exists():
        return None
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
            return {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    return None


def _of_syntax(node: Any) -> tuple[list[Parameter], str]:
    arguments = node.args
    found = [*arguments.posonlyargs, *arguments.args]
    parameters = [_parameter(each, "") for each in found]
    if arguments.vararg:
        parameters.append(_parameter(arguments.vararg, "*"))
    parameters += [_parameter(each, "") for each in arguments.kwonlyargs]
    if arguments.kwarg:
        parameters.append(_parameter(arguments.kwarg, "**"))
    parameters = [each for each in parameters if each.name not in ("self", "cls")]
    return parameters, ast.unparse(node.returns) if node.returns else ""


def _parameter(node: ast.arg, stars: str) -> Parameter:
    return Parameter(stars + node.arg, ast.unparse(node.annotation) if node.annotation else "")


def _spark() -> Iterator[Callable]:
    """Of the source: PySpark need not be installed."""
    tree = ast.parse((SPARK / "__init__.py").read_text("utf-8"))
    [places] = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_PLACES"
    ]
    for name, module in places.items():
        for node in ast.parse((SPARK / f"{module}.py").read_text("utf-8")).body:
            if getattr(node, "name", "") == name:
                yield from _of_node(f"pulsarx.spark.{name}", node)


def _of_node(name: str, node: Any) -> Iterator[Callable]:
    doc = ast.get_docstring(node) or ""
    if isinstance(node, ast.FunctionDef):
        yield Callable(name, doc, "function", *_of_syntax(node))
        return
    yield Callable(name, doc, "class", [], "")
    for each in node.body:
        own = getattr(each, "name", "_")
        if isinstance(each, ast.FunctionDef) and (own == "__init__" or not own.startswith("_")):
            yield from _of_node(f"{name}.{own}", each)


def _fixtures() -> Iterator[Callable]:
    """What a test is given by name. Their parameters are pytest's."""
    for node in ast.parse(FIXTURES.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and "fixture" in ast.unparse(node.decorator_list):
            doc = ast.get_docstring(node) or ""
            yield Callable(f"pytest_pulsarx.{node.name}", doc, "property", [], "")
