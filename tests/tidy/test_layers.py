"""Who may import whom. The table is the law; a module that fits no row fails."""

from __future__ import annotations

import ast
import functools
import re
import sys
from fnmatch import fnmatch
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import pytest
from source_files import LIBRARY, ROOT, files, module_name, without_strings

import pulsarx


class Layer(NamedTuple):
    name: str
    modules: str  # names or patterns below pulsarx
    may_import: str  # names of layers; its own is allowed where it is named, and never in circles
    and_also: str = ""  # what is not ours


# The last is the control plane's, and that of `ground/upward`.
LOADERS = ("__import__", "import_module", "load")
# The steps up: who loads what stands on it, by `upward.load`, in a function. No other may.
UPWARD = [
    ("client", "cluster.cluster_client"),  # a subclass, for the URL of a cluster
    ("client", "stored_client"),  # the same, for that of an object store
    ("client", "processes.guest.folders"),  # where another process owns the folder
    ("ground.client_owner", "letters.letter_topic"),  # what letters ask the client for
    ("ground.client_owner", "broker.verbs.table"),  # what a producer asks the folder for
    ("broker.control.control_socket", "processes.owner.service"),  # when the first guest comes
]
LIBRARIES = "numpy pyarrow"
LEAVES = (
    "status invariant limits atomic byte_reader byte_writer crc32c murmur3 java_hash timer_wheel "
    "file_ops wait_event published_end ack_bits proto_field waiting_list ledger_state "
    "low_descriptors ledger_name selector_text selector"
)
FORMATS = "entry_frame message_metadata single_metadata cursor_record ledger_footer"
GROUND = (
    "ground ground.* errors errors.* clock randomness topic_name options options.argument_check "
    "options.authentication options.routes options.service_url"
)
VALUES = (
    "message message_id options.* *_options schema schema.* compression encryption enumerations "
    "results interceptors consuming.seek_position letters.letter_rules letters.reconsuming "
    "producing.message_builder producing.routed_message tables.notebook"
)

_LEDGERS = "pycore.ground pycore.ledger"
PYCORE = {  # folder: what it stands on, besides the core
    "ground": "",
    "ledger": "pycore.ground",
    "cursor": _LEDGERS,
    "message": _LEDGERS,
    "arrow": "pycore.ground",
    "wire": "pycore.ground",
    "publish": f"{_LEDGERS} pycore.message pycore.arrow pycore.wire",
    "dispatch": f"{_LEDGERS} pycore.message pycore.cursor pycore.wire",
    "consume": f"{_LEDGERS} pycore.message pycore.cursor pycore.dispatch pycore.arrow pycore.wire",
    "ranges": f"{_LEDGERS} pycore.message pycore.arrow pycore.publish",
}
PYCORE_ALSO = {"arrow": "numpy", "ground": "gevent"}
API = "api nouns listening"  # what stands on the broker, and what programs hold of it
ALL_PYCORE = " ".join(f"pycore.{folder}" for folder in PYCORE)

# From the ground up; the first row that names a module is its row.
LAYERS = [
    #     name          modules                        may import                        and also
    Layer("leaves", f"_core: {LEAVES}", "leaves", "libc posix"),
    Layer("formats", f"_core: {FORMATS}", "leaves", "libc posix"),
    Layer("structures", "_core: *", "leaves formats", "libc posix"),
    Layer("ground", GROUND, "ground", "stdlib"),
    # Who waits for the guests of the last owner; the broker asks it.
    Layer("arrivals", "processes.owner.arrivals", "ground pycore.ground", "stdlib"),
    # pycore in the order of the data; src/pycore/README.md.
    *(
        Layer(
            f"pycore.{folder}",
            f"_pycore: {folder} {folder}.*",
            f"leaves formats structures pycore.{folder} " + below,
            f"libc posix cpython stdlib {PYCORE_ALSO.get(folder, '')}",
        )
        for folder, below in PYCORE.items()
    ),
    Layer(
        "broker",
        "broker broker.*",
        f"{ALL_PYCORE} ground values broker arrivals",
        f"stdlib {LIBRARIES}",
    ),
    Layer(
        "spark",
        "spark spark.*",
        f"ground values broker {API} spark",
        "stdlib pyspark pyarrow numpy",
    ),
    # Who clients are and what they may do; of both servers.
    Layer(
        "access",
        "access access.*",
        "ground values broker access",
        "stdlib jwt bcrypt cryptography",
    ),
    # Pulsar's protocol, and its two ends, which do not know each other: sessions, of clients over a
    # network and of guests; and a guest, which reads the folder itself.
    Layer("wire", "wire wire.*", "ground values pycore.wire wire", "stdlib"),
    Layer(
        "sessions",
        "sessions sessions.*",
        f"{ALL_PYCORE} ground values broker {API} wire access sessions",
        "stdlib",
    ),
    Layer(
        "owner",
        "processes processes.owner processes.owner.*",
        f"{ALL_PYCORE} ground values broker {API} wire sessions owner",
        "stdlib",
    ),
    Layer(
        "guest",
        "processes.guest processes.guest.*",
        f"{ALL_PYCORE} ground values broker wire guest",
        "stdlib",
    ),
    Layer(
        "server",
        "server server.*",
        f"{ALL_PYCORE} ground values broker {API} wire access sessions server",
        "stdlib uvloop",
    ),
    Layer(
        "rest",
        "rest rest.*",
        f"{ALL_PYCORE} ground values broker {API} wire access rest",
        "stdlib starlette uvicorn",
    ),
    # Stands on what programs call: it is a program itself.
    Layer(
        "forwarding",
        "forwarding forwarding.*",
        f"{ALL_PYCORE} ground values broker {API} forwarding",
        "stdlib",
    ),
    Layer(
        "outside",
        "__main__ cli cli.*",
        f"ground values broker {API} access server rest forwarding outside",
        "stdlib click",
    ),
    Layer(
        "values",
        VALUES,
        f"{ALL_PYCORE} ground values",
        f"stdlib {LIBRARIES} fastavro google cryptography",
    ),
    Layer("listening", "listening listening.*", f"{ALL_PYCORE} ground listening", "stdlib"),
    # What programs hold, on one floor. It knows nothing of the broker, nor of who makes it.
    Layer(
        "nouns",
        "producer consumer reader",
        f"{ALL_PYCORE} ground values listening nouns",
        "stdlib",
    ),
    Layer(
        "api",
        "*",
        f"{ALL_PYCORE} ground values broker {API}",
        f"stdlib {LIBRARIES} pandas polars duckdb pulsar _pulsar certifi pytest yaml",
    ),
]

# Single permissions beside the table: importer, imported.
PERMITTED = [
    ("_core.ledger_*", "_core.ledger_*"),  # one family: append, flush, prepare, seal, read
    ("_core.message_metadata", "_core.single_metadata"),
    ("_core.selector_match", "_core.batch_decode"),  # asks message by message
    ("_pycore.*", "errors"),
    ("_core", "ground.linked_modules"),  # where the packages find their modules
    ("_pycore*", "ground.linked_modules"),
    ("_pycore.*", "ground.fork"),  # where what a fork does to it is in the list of all steps
    ("_pycore.arrow.arrow_export", "ground.extras"),
    ("spark.lease_keeper", "_pycore.ground.threads"),  # its thread ends as all of ours do
    ("access.*", "_pycore.ground.file_system"),  # what it opens
    ("ground.*", "_pycore.ground.*"),  # native, of the same name: the API's plumbing stands on it
    ("*", "_pycore.ground.locks"),  # nothing takes those of threading
    ("clock", "_pycore.ground.*"),  # its timers and its waiting are native; they import no Python
    ("_pycore.message.encryption_context", "enumerations"),  # once a message, when asked
    ("_pycore.ranges.entry_codec", "compression"),  # a tool for tests and Spark; not a hot path
]


def layer_of(module: str) -> Layer:
    short = module.removeprefix("pulsarx").lstrip(".")
    for layer in LAYERS:
        prefix = layer.modules.rpartition(": ")[0]
        if short in {"_core", "_pycore"} and prefix == short:
            return layer  # the package itself, an empty __init__
        if any(fnmatch(short, pattern) for pattern in patterns_of(layer)) and not (
            short.startswith(("_core", "_pycore")) and not prefix
        ):
            return layer
    raise AssertionError(f"{module} is in no layer")


def patterns_of(layer: Layer) -> list[str]:
    prefix, _, names = layer.modules.rpartition(": ")
    return [f"{prefix}.{name}" if prefix else name for name in names.split()]


def imports(text: str, module: str, suffix: str, known: set[str]) -> list[tuple[int, str, bool]]:
    """(line, imported module, whether at import time) of each import that is not type-only."""
    if suffix in {".py", ".pyi"}:
        found = python_imports(text, module)
    else:
        found = cython_imports(text)
    # `from pulsarx import errors` imports pulsarx.errors.
    return [
        (line, f"{source}.{name}" if f"{source}.{name}" in known else source, at_once)
        for line, source, name, at_once in found
    ]


def cython_imports(text: str) -> list[tuple[int, str, str, bool]]:
    found = []
    pattern = r"^( *)(?:from +([\w.]+) +c?import +\(?([^()\n]*(?:\n[^()]*\))?)|c?import +([\w.]+))"
    for match in re.finditer(pattern, without_strings(text), re.MULTILINE):
        line = text[: match.start()].count("\n") + 1
        indent, source, names, plain = match.groups()
        for name in re.findall(r"[\w*]+", names or "*"):
            found.append((line, source or plain, name, not indent))
    return found


def python_imports(
    text: str, module: str, *, type_only: bool = False
) -> list[tuple[int, str, str, bool]]:
    """type_only: those for types alone are wanted, too."""
    tree = ast.parse(text)
    left_out = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not type_only
        for inner in ast.walk(node)
    }
    at_once = set(tree.body)
    found = []
    for node in ast.walk(tree):
        if node in left_out:
            continue
        if isinstance(node, ast.Call) and (loaded := loaded_by_name(node)):
            found.append((node.lineno, loaded, "", False))
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name, "", node in at_once) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                source = ".".join([*module.split(".")[: -node.level], *source.split(".")]).strip(
                    "."
                )
            found += [(node.lineno, source, alias.name, node in at_once) for alias in node.names]
    return found


def loaded_by_name(call: ast.Call) -> str:
    """The module of ours that a call loads by its name."""
    name = call.args[0] if called_name(call) in LOADERS and call.args else None
    if isinstance(name, ast.Constant) and str(name.value).startswith("pulsarx."):
        return str(name.value)
    return ""


def complaints(module: str, imported: list[tuple[int, str, bool]]) -> list[str]:
    found = [
        f"{module}:{line} ({layer_of(module).name}) may not import {target}"
        for line, target, _ in imported
        if not is_allowed(module, target)
        and not permissions_for(module, target)
        and not is_upward(module, target)
    ]
    return list(dict.fromkeys(found))


def is_upward(module: str, target: str) -> bool:
    return (module.removeprefix("pulsarx."), target.removeprefix("pulsarx.")) in UPWARD


def is_allowed(module: str, target: str) -> bool:
    """Whether a row of the table allows the import."""
    layer = layer_of(module)
    top = target.split(".")[0]
    if top == "pulsarx":
        return layer_of(target).name in layer.may_import.split()
    kinds = {top} | ({"stdlib"} if top in sys.stdlib_module_names else set())
    return top in {"__future__", "cython"} or bool(kinds & set(layer.and_also.split()))


def permissions_for(module: str, target: str) -> set[tuple[str, str]]:
    """Those of PERMITTED that allow the import."""
    pair = (module.removeprefix("pulsarx."), target.removeprefix("pulsarx."))
    return {each for each in PERMITTED if fnmatch(pair[0], each[0]) and fnmatch(pair[1], each[1])}


@functools.cache
def library() -> list[tuple[str, str, list[tuple[int, str, bool]]]]:
    """(module, suffix, what it imports) of each file of the library."""
    paths = [path for path in files(LIBRARY) if path.suffix not in {".h", ".pyi"}]
    known = {module_name(path) for path in paths}
    found = []
    for path in paths:
        module = module_name(path)
        inside = f"{module}.__init__" if path.stem == "__init__" else module
        imported = imports(path.read_text(), inside, path.suffix, known)
        found.append((module, path.suffix, [i for i in imported if i[1] != module]))
    return found


def test_every_import_follows_the_table():
    wrong = [text for module, _, imported in library() for text in complaints(module, imported)]
    assert not wrong, "\n".join(wrong)


def test_types_follow_the_table_too():
    """What a module names for types alone, or in a function, stands below it as well; the package
    itself names the modules that are public."""
    paths = {module_name(path): path for path in files(LIBRARY, {".py"})}
    wrong = [
        complaint
        for module, path in paths.items()
        for target in imported_anyhow(path.read_text(), set(paths) - {module, "pulsarx"})
        for complaint in complaints(module, [(0, target, False)])
        if module != "pulsarx" or target.removeprefix("pulsarx.") not in pulsarx._MODULES
    ]
    assert not wrong, "\n".join(wrong)


def test_every_name_in_the_table_is_that_of_a_module():
    modules = {module for module, _, _ in library()}
    unmatched = [
        f"{layer.name}: {pattern}"
        for layer in LAYERS
        for pattern in patterns_of(layer)
        if not any(
            fnmatch(module.removeprefix("pulsarx."), pattern) and layer_of(module) is layer
            for module in modules
        )
    ]
    assert not unmatched, "no module is in the table by these: " + ", ".join(unmatched)


def test_every_single_permission_is_needed():
    used = {
        permission
        for module, _, imported in library()
        for _, target, _ in imported
        if not is_allowed(module, target)
        for permission in permissions_for(module, target)
    }
    unused = [each for each in PERMITTED if each not in used]
    assert not unused, f"nothing is imported by these: {unused}"


def upward_loads() -> set[tuple[str, str]]:
    """(module, loaded module) of each `upward.load` in the library."""
    return {
        (module_name(path).removeprefix("pulsarx."), str(ast.literal_eval(node.args[0])))
        for path in files(LIBRARY, {".py"})
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "upward.load"
    }


def test_the_steps_up_are_those_of_the_table():
    assert upward_loads() == {(module, f"pulsarx.{target}") for module, target in UPWARD}


def circle_of_types() -> list[str]:
    """The Python modules of one circle, imports for types alone and those in functions counted."""
    paths = [path for path in files(LIBRARY) if path.suffix == ".py"]
    known = {module_name(path) for path in paths} - {"pulsarx"}
    graph = {module_name(path): imported_anyhow(path.read_text(), known) for path in paths}
    steps = {*((f"pulsarx.{start}", f"pulsarx.{end}") for start, end in UPWARD)}
    return circle_in(
        {each: {end for end in graph[each] - {each} if (each, end) not in steps} for each in known}
    )


def imported_anyhow(text: str, known: set[str]) -> set[str]:
    """The modules among the known that a text imports, be it for types alone or in a function."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        elif isinstance(node, ast.Call) and called_name(node) in LOADERS:
            found |= {
                each.value
                for each in node.args[:1]
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            }
    return found & known


def called_name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def circle(modules: list[tuple[str, str, list[tuple[int, str, bool]]]]) -> list[str]:
    """The modules of one circle, of contracts (pxd) or of Python modules.

    A body (pyx) may import a contract that imports its own, as with headers in C."""
    graph = {
        module: {target for _, target, at_once in imported if at_once}
        for module, suffix, imported in modules
        if suffix != ".pyx"
    }
    return circle_in(graph)


def test_nothing_is_imported_in_a_circle():
    assert not circle(library())


def test_no_types_are_imported_in_a_circle():
    assert not circle_of_types()


def test_a_circle_of_types_is_found():
    for text in (
        "if TYPE_CHECKING:\n    from a import B",
        "def f():\n    from x import a",
        "def f():\n    __import__('x.a')",
    ):
        assert imported_anyhow(text, {"a", "x.a"}) & {"a", "x.a"}
    assert circle_in({"a": {"b"}, "b": {"a"}})


def test_a_circle_is_found():
    first, second = [(1, "pulsarx.b", True)], [(1, "pulsarx.a", True)]
    assert circle([("pulsarx.a", ".py", first), ("pulsarx.b", ".py", second)])
    assert not circle([("pulsarx.a", ".py", first), ("pulsarx.b", ".pyx", second)])


def test_cimports_are_absolute():
    wrong = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in files(LIBRARY, {".pyx", ".pxd"})
        for match in re.finditer(r"^\s*from +\..*", path.read_text(), re.MULTILINE)
    ]
    assert not wrong, "\n".join(wrong)


KNOWN = {"pulsarx.errors", "pulsarx._core.status", "pulsarx.client", "pulsarx._core.ledger_index"}
KNOWN |= {
    "pulsarx._pycore.ground.watchers",
    "pulsarx._pycore.message.message",
    "pulsarx.broker.topics.topic",
    "pulsarx.letters.letters",
}


@pytest.mark.parametrize(
    ("module", "suffix", "text"),
    [
        ("pulsarx._core.crc32c", ".pxd", "from cpython.bytes cimport PyBytes_AS_STRING"),
        ("pulsarx._core.crc32c", ".pyx", "import os"),
        (
            "pulsarx._core.crc32c",
            ".pxd",
            "from pulsarx._core.entry_frame cimport (\n    a,\n    b)",
        ),
        ("pulsarx._core.entry_frame", ".pyx", "from pulsarx._core.batch_encode cimport x"),
        ("pulsarx._core.batch_encode", ".pyx", "from pulsarx._core cimport ledger_index"),
        ("pulsarx._core.status", ".pxd", "from pulsarx._pycore.ground.watchers cimport Watchers"),
        ("pulsarx._pycore.ground.watchers", ".pyx", "def f():\n    from pulsarx import client"),
        ("pulsarx._pycore.ground.watchers", ".pyx", "import numpy"),
        ("pulsarx.errors", ".py", "from pulsarx.message import Message"),
        ("pulsarx.clock", ".py", "import numpy"),
        ("pulsarx.clock", ".py", "from pulsarx._pycore.message import message"),
        ("pulsarx.message", ".py", "def f():\n    import pulsarx.broker.topics.topic"),
        ("pulsarx.broker.topics.topic", ".py", "from ...client import Client"),
        ("pulsarx.spark.options", ".py", "from pulsarx._pycore.ground import watchers"),
        ("pulsarx.client", ".py", "import pyspark.sql"),
        ("pulsarx.consumer", ".py", "def f():\n    from pulsarx.letters import letters"),
        ("pulsarx.client", ".py", "from pulsarx._core import status"),
        ("pulsarx.client", ".py", "upward.load('pulsarx.processes.owner.service')"),
        ("pulsarx.clock", ".py", "def f():\n    control_plane.load('pulsarx.client')"),
        ("pulsarx.client", ".py", "def f():\n    from pulsarx.wire import commands"),
        (
            "pulsarx.broker.broker",
            ".py",
            "from pulsarx.processes.guest import broker",
        ),
        ("pulsarx.sessions.session", ".py", "from pulsarx.processes.guest import connection"),
    ],
)
def test_a_forbidden_import_is_found(module: str, suffix: str, text: str):
    assert complaints(module, imports(text, module, suffix, KNOWN))


@pytest.mark.parametrize(
    ("module", "suffix", "text"),
    [
        ("pulsarx._core.crc32c", ".pyx", "from libc.stdint cimport uint8_t"),
        (
            "pulsarx._core.ledger_read",
            ".pxd",
            "from pulsarx._core.ledger_index cimport x",
        ),
        ("pulsarx._pycore.ground.watchers", ".pyx", "import os\nfrom pulsarx import errors"),
        ("pulsarx.clock", ".py", "from pulsarx._pycore.ground.watchers import Watchers"),
        ("pulsarx.message", ".py", "if TYPE_CHECKING:\n    from pulsarx.client import Client"),
        ("pulsarx.client", ".py", "from pulsarx.broker.topics.topic import Topic"),
        ("pulsarx._core.status", ".pyx", '"""\nimport os\n"""'),
    ],
)
def test_a_permitted_import_is_let_through(module: str, suffix: str, text: str):
    assert not complaints(module, imports(text, module, suffix, KNOWN))


def test_only_the_catalogue_spells_an_operation():
    """Everybody else makes one with a function of `catalogue/changes`."""
    wrong = [
        str(path.relative_to(ROOT))
        for path in files(("python", "spark"), {".py"})
        if '"op"' in path.read_text() and path.parent.name != "catalogue"
    ]
    assert not wrong, "\n".join(wrong)
