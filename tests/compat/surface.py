"""Prints, as JSON, the names that the modules of the official client have and the shape of what
they name: `python surface.py` of what is installed, `python surface.py alias` of the alias."""

from __future__ import annotations

import inspect
import json
import re
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

MODULES = (
    "pulsar",
    "_pulsar",
    "pulsar.exceptions",
    "pulsar.tableview",
    "pulsar.schema",
    "pulsar.schema.schema",
    "pulsar.schema.definition",
    "pulsar.schema.schema_avro",
    "pulsar.schema.schema_protobuf",
    "pulsar.functions",
    "pulsar.functions.context",
    "pulsar.functions.function",
    "pulsar.functions.serde",
)
STAR_IMPORTS = ("pulsar", "pulsar.schema", "pulsar.exceptions", "pulsar.functions", "_pulsar")


def surface() -> dict[str, Any]:
    found: dict[str, Any] = {name: module_of(import_module(name)) for name in MODULES}
    for name in STAR_IMPORTS:
        names: dict[str, Any] = {}
        exec(f"from {name} import *", names)
        found[f"from {name} import *"] = sorted(names.keys() - {"__builtins__"})
    return found


def module_of(module: ModuleType) -> dict[str, Any]:
    return {
        name: shape_of(value) for name, value in vars(module).items() if not name.startswith("__")
    }


def shape_of(value: Any) -> Any:
    if isinstance(value, ModuleType):
        return "module"
    if not inspect.isclass(value):
        return "function" if inspect.isroutine(value) else "value"
    if not value.__module__.startswith(("pulsar", "_pulsar")):  # of the standard library
        return "foreign class"
    if hasattr(value, "__members__"):
        return {name: int(member) for name, member in value.__members__.items()}
    names = [name for name in dir(value) if not name.startswith("_")]
    return {name: member_of(value, name) for name in [*names, "__init__"]} | {
        "(bases)": [base.__name__ for base in value.__mro__]
    }


def member_of(owner: type, name: str) -> Any:
    """A list of the parameters of a method, for each of its overloads; or what else it is."""
    value = inspect.getattr_static(owner, name)
    found = getattr(owner, name)
    if isinstance(value, property) or inspect.isdatadescriptor(value):
        return "attribute"
    if not callable(found):
        return "attribute"
    is_bound = isinstance(value, (staticmethod, classmethod))
    overloads = native_overloads(found.__doc__ or "", name)
    if overloads:
        return [[["", "POSITIONAL_ONLY", None]] * count for count in overloads]
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except (TypeError, ValueError):
        return "method"
    has_self = parameters and parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL
    if not is_bound and has_self and not hasattr(found, "__self__"):
        parameters = parameters[1:]
    return [[[each.name, each.kind.name, default_of(each)] for each in parameters]]


def native_overloads(text: str, name: str) -> list[int]:
    """The number of arguments, without self, of each signature in a docstring of pybind11."""
    lines = re.findall(rf"^(?:\d+\. )?{name}\((.*)\) -> ", text, re.MULTILINE)
    counts = []
    for arguments in lines:
        if arguments.startswith("*args"):
            continue
        while "[" in arguments:
            arguments = re.sub(r"\[[^][]*\]", "", arguments)
        names = [each for each in arguments.split(", ") if each]
        counts.append(len([each for each in names if not each.startswith("self:")]))
    return counts


def default_of(parameter: inspect.Parameter) -> Any:
    if parameter.default is inspect.Parameter.empty:
        return "(none)"
    return re.sub(
        r" at 0x\w+|<pulsarx?\.schema\S* object|\S*BytesSchema\S*", "", f"{parameter.default}"
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["alias"]:
        from pulsarx import install_as_pulsar

        install_as_pulsar()
    print(json.dumps(surface()))
