"""The alias has the surface of the official client: every name, and every call with its
parameters. Both are looked at in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent

pytestmark = [
    pytest.mark.standard,
    pytest.mark.skipif(
        find_spec("_pulsar") is None,
        reason="pulsar-client is not installed: it has no wheel for this Python or machine",
    ),
]

# What is otherwise, and why.
OTHERWISE = {
    "_pulsar.Authentication.__init__": "has none there; create makes one",
    "_pulsar.AuthenticationTLS.__init__": "takes a C++ object there; create makes one",
    "_pulsar.EncryptionKey.value": "is the class of pulsar, where it is an attribute",
    "pulsar.schema.schema.remove_reserved_key": "works on records, which are made otherwise",
    "pulsar.schema.definition._string_representation": "likewise",
    "pulsar.schema.definition._check_record_or_field": "likewise",
    "pulsar.schema.definition.is_unicode": "says True",
    "pulsar.schema.schema_avro.fastavro": "loaded when it is used",
    "pulsar.schema.schema_protobuf.descriptor_pb2": "loaded when it is used",
    "pulsar.schema.schema_protobuf.ProtobufMessage": "loaded when it is used",
    "pulsar.schema.schema_protobuf._collect_file_descriptors": "is done otherwise",
    "pulsar.schema.schema_protobuf._build_schema_definition": "is done otherwise",
}
# Made by clients, producers and consumers, and by nobody else.
NOT_MADE_BY_USERS = {
    "Consumer", "EncryptionContext", "EncryptionKey", "Message", "Producer", "Reader", "TableView",
}  # fmt: skip


def surface_of(*arguments: str) -> dict[str, Any]:
    import pulsarx

    ran = subprocess.run(
        [sys.executable, str(HERE / "surface.py"), *arguments],
        env={"PYTHONPATH": str(Path(pulsarx.__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.fixture(scope="module")
def official() -> dict[str, Any]:
    return surface_of()


@pytest.fixture(scope="module")
def alias() -> dict[str, Any]:
    return surface_of("alias")


def differences(official: dict[str, Any], alias: dict[str, Any]) -> list[str]:
    found = []
    for module, names in official.items():
        if module.startswith("from "):
            if names != alias[module]:
                found.append(f"{module}: {sorted(set(names) ^ set(alias[module]))}")
            continue
        for name, shape in names.items():
            where = f"{module}.{name}"
            if name not in alias[module]:
                found.append(f"{where} is missing")
            elif isinstance(shape, dict):
                found += class_differences(where, shape, alias[module][name])
            elif shape != "value" and shape != alias[module][name]:
                found.append(f"{where} is a {shape}, and here {alias[module][name]}")
    excused = {each: each.split()[0].rstrip(":") for each in found}
    assert OTHERWISE.keys() <= set(excused.values()), "an excuse for what is the same"
    return [each for each, where in excused.items() if where not in OTHERWISE]


def class_differences(where: str, theirs: dict[str, Any], ours: Any) -> list[str]:
    if not isinstance(ours, dict):
        return [f"{where} is a class, and here a {ours}"]
    found = []
    for name, shape in theirs.items():
        if name == "(bases)":
            bases = [each for each in shape if each not in ours[name] and "pybind" not in each]
            found += [f"{where}: {each} is no base of it" for each in bases]
        elif name == "__init__" and (
            where.rpartition(".")[2] in NOT_MADE_BY_USERS or "PulsarException" in theirs["(bases)"]
        ):
            continue
        elif name not in ours:
            found.append(f"{where}.{name} is missing")
        elif isinstance(shape, list) and isinstance(ours[name], list):
            found += [
                f"{where}.{name}: {complaint}"
                for overload in shape
                for complaint in call_differences(overload, ours[name])
            ]
        elif not (is_call(shape) and is_call(ours[name])) and shape != ours[name]:
            found.append(f"{where}.{name} is {shape}, and here {ours[name]}")
    return found


def is_call(shape: Any) -> bool:
    return isinstance(shape, list) or shape == "method"


def call_differences(theirs: list[Any], ours: list[list[Any]]) -> list[str]:
    """Whether one of our overloads takes all calls that theirs takes."""
    complaints = [call_difference(theirs, each) for each in ours]
    return [] if None in complaints else [str(complaints[0])]


def call_difference(theirs: list[Any], ours: list[Any]) -> str | None:
    rest = list(ours)
    for name, kind, default in theirs:
        if rest and rest[0][1] == "VAR_POSITIONAL" and kind != "KEYWORD_ONLY":
            continue
        if not rest:
            return f"no parameter {name or 'more'}"
        our_name, our_kind, our_default = rest.pop(0)
        if kind == "POSITIONAL_ONLY":  # of a native call, whose defaults are not told
            continue
        if (our_name, our_kind) != (name, kind):
            return f"{name} ({kind}) is {our_name} ({our_kind})"
        if our_default != default:
            return f"{name} is {default} by default, and here {our_default}"
    needed = [
        name
        for name, kind, default in rest
        if default == "(none)" and kind not in ("VAR_POSITIONAL", "VAR_KEYWORD")
    ]
    return f"needs {', '.join(needed)} besides" if needed else None


def test_every_name_and_call_of_the_official_client_is_there(
    official: dict[str, Any], alias: dict[str, Any]
):
    found = differences(official, alias)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ([["a", "POSITIONAL_OR_KEYWORD", "(none)"]], []),
        ([["a", "POSITIONAL_OR_KEYWORD", "(none)"]], [["b", "POSITIONAL_OR_KEYWORD", "(none)"]]),
        ([["a", "POSITIONAL_OR_KEYWORD", "1"]], [["a", "POSITIONAL_OR_KEYWORD", "2"]]),
        ([["a", "POSITIONAL_OR_KEYWORD", "1"]], [["a", "KEYWORD_ONLY", "1"]]),
        ([], [["a", "POSITIONAL_OR_KEYWORD", "(none)"]]),
    ],
)
def test_another_call_is_found(theirs: list[Any], ours: list[Any]):
    assert call_difference(theirs, ours)


def test_what_is_missing_is_found(official: dict[str, Any], alias: dict[str, Any]):
    poorer = {**alias, "pulsar": {**alias["pulsar"]}, "from pulsar import *": ["Client"]}
    del poorer["pulsar"]["Client"]
    poorer["pulsar"]["ConsumerType"] = {**poorer["pulsar"]["ConsumerType"], "Shared": 7}
    found = differences(official, poorer)
    assert "pulsar.ConsumerType.Shared is 1, and here 7" in found
    assert any(each == "pulsar.Client is missing" for each in found)
    assert any(each.startswith("from pulsar import *") for each in found)
