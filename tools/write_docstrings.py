"""Writes the docstrings that come from another one: those of `pulsarx.aio` and of `send_async` take
their parameters and errors from the call behind them, stubs have the docstrings of their compiled
classes. A tidy test compares.

    .venv/bin/python tools/write_docstrings.py
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / "python/pulsarx"
PYCORE = ROOT / "src/pycore"
WIDTH = 100
SECTIONS = ("Args", "Returns", "Yields", "Raises", "Durability", "Example")
ENTRIES = ("Args", "Raises")  # sections that have a line for each name
HEAD = "its own first paragraphs"  # what a call may have of its own, beside names and sections

# The modules of pulsarx.aio that have a class of the same name as one of pulsarx.
MIRRORED = ("client", "consumer", "producer", "reader", "table_view", "transaction")
# What a call keeps of its own. The other calls of pulsarx.aio are as those of pulsarx.
OWN: dict[tuple[str, str], set[str]] = {
    ("aio/client.py", "Client.create_producer"): {HEAD, "block_if_queue_full", "batching_enabled"},
    ("aio/client.py", "Client.subscribe"): {HEAD, "message_listener", "is_pattern_topic"},
    ("aio/client.py", "Client.create_reader"): {HEAD, "reader_listener", "OperationNotSupported"},
    ("aio/client.py", "Client.admin"): {HEAD},
    ("aio/client.py", "Client.close"): {HEAD},
    ("aio/client.py", "Client.shutdown"): {HEAD},
    ("aio/consumer.py", "Consumer.receive"): {HEAD, "InvalidConfiguration"},
    ("aio/consumer.py", "Consumer.batch_receive"): {HEAD, "Returns", "InvalidConfiguration"},
    ("aio/consumer.py", "Consumer.acknowledge"): {HEAD, "message"},
    ("aio/consumer.py", "Consumer.close"): {HEAD},
    ("aio/producer.py", "Producer.send"): {HEAD},
    ("aio/producer.py", "Producer.flush"): {HEAD},
    ("aio/producer.py", "Producer.close"): {HEAD},
    ("aio/producer.py", "Producer.last_sequence_id"): {HEAD},
    ("aio/reader.py", "Reader.read_next"): {HEAD},
    ("aio/reader.py", "Reader.close"): {HEAD},
    ("aio/table_view.py", "TableView.for_each"): {HEAD, "callback"},
    ("aio/table_view.py", "TableView.for_each_and_listen"): {HEAD, "callback"},
    ("aio/table_view.py", "TableView.close"): {HEAD},
}
# The names of the official `pulsar.asyncio`, over pulsarx.aio, and what all of them raise.
OFFICIAL = "compat/pulsar_asyncio.py"
RAISED = {
    "PulsarException": "The one of this module, whatever fails. `error()` is the Result, and the "
    "exception behind it is the one of pulsarx."
}
# Ctrl-C comes out of the loop, and a call that has no timeout does not raise Timeout for it.
NOT_OF_COROUTINES = {"InterruptedByKeyboard"}
# Calls that have parameters of another one, and nothing else of it.
PARAMETERS = {
    ("producer.py", "Producer.send_async"): ("producer.py", "Producer.send"),
    ("interceptors.py", "OutgoingMessage.__init__"): ("producer.py", "Producer.send"),
}
# Calls that a reader has of the core as they are, with no class in front that describes them.
CORES = {
    "consume/consumer_core": ("ConsumerCore", ("receive", "receive_many")),
    "consume/multi_consumer": ("MultiConsumerCore", ("receive", "receive_many")),
}
# The compiled classes that users meet.
STUBS = {
    "message/message": ("Message",),
    "message/message_id": ("MessageId",),
    "message/encryption_context": ("EncryptionKey", "EncryptionContext"),
    "arrow/arrow_export": ("ArrowMessages",),
    "ground/clock_core": ("ClockCore", "SystemClockCore", "ManualClockCore"),
}


@dataclass
class Docstring:
    """head: the paragraphs before the sections. entries: of Args and Raises. texts: of the
    others."""

    head: list[str] = field(default_factory=list)
    entries: dict[str, dict[str, str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, doc: str) -> Docstring:
        found = cls()
        parts = re.split(rf"^({'|'.join(SECTIONS)}):\n", doc, flags=re.MULTILINE)
        found.head = [" ".join(each.split()) for each in parts[0].strip().split("\n\n")]
        for name, text in zip(parts[1::2], parts[2::2]):
            body = textwrap.dedent(text).strip("\n")
            if name in ENTRIES:
                found.entries[name] = _entries(body)
            else:
                found.texts[name] = body if name == "Example" else " ".join(body.split())
        return found

    def lines(self, indent: int) -> list[str]:
        """As it stands in a file."""
        width = WIDTH - indent
        parts: list[list[str]] = []
        for number, each in enumerate(self.head):
            quotes = "" if number else '"""'
            parts.append(_wrapped(quotes + each, width))
        for name in SECTIONS:
            body: list[str] = []
            for key, text in self.entries.get(name, {}).items():
                body += _wrapped(f"{key}: {text}", width, "    ", "        ")
            if name in self.texts:
                text = self.texts[name]
                is_code = name == "Example"
                body = (
                    [f"    {each}".rstrip() for each in text.split("\n")]
                    if is_code
                    else _wrapped(text, width, "    ", "    ")
                )
            if body:
                parts.append([f"{name}:", *body])
        found = [line for part in parts for line in ["", *part]][1:]
        if len(parts) == 1:
            found = _wrapped(" ".join(found) + '"""', width)
        else:
            found.append('"""')
        return [" " * indent + line if line else "" for line in found]


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _entries(body: str) -> dict[str, str]:
    """name: text, of lines that begin with a name and those that are indented below it."""
    found: dict[str, str] = {}
    name = ""
    for line in body.split("\n"):
        if line.startswith(" "):
            found[name] += f" {line.strip()}"
        else:
            name, _, text = line.partition(":")
            found[name] = text.strip()
    return found


# Calls of Python ----------------------------------------------------------------------------------


def functions_of(text: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The methods of the classes in a module, as Class.method."""
    return {
        f"{kind.name}.{each.name}": each
        for kind in ast.parse(text).body
        if isinstance(kind, ast.ClassDef)
        for each in kind.body
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    every = function.args
    return [each.arg for each in [*every.posonlyargs, *every.args, *every.kwonlyargs]][1:]


def derived(
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    source: ast.FunctionDef | ast.AsyncFunctionDef,
    own: set[str],
    *,
    parameters_alone: bool = False,
    raised: dict[str, str] | None = None,
) -> Docstring:
    """The docstring of a function that does what the source does. raised: in place of what that
    raises."""
    mine = Docstring.of(ast.get_docstring(function) or "")
    its = Docstring.of(ast.get_docstring(source) or "")
    names = parameters_of(function)
    arguments = {
        each: (mine if each in own or each not in its.entries.get("Args", {}) else its)
        .entries.get("Args", {})
        .get(each, "")
        for each in names
    }
    rest = function.args.kwarg
    if rest is not None and not parameters_alone:
        arguments[f"**{rest.arg}"] = "The other arguments, by their names."
    if arguments:
        mine.entries["Args"] = {each: text for each, text in arguments.items() if text}
    if parameters_alone:
        return mine
    if HEAD not in own:
        mine.head = its.head
    left_out = set(NOT_OF_COROUTINES)
    if "timeout_millis" in parameters_of(source) and "timeout_millis" not in names:
        left_out.add("Timeout")
    kept = {name: text for name, text in mine.entries.pop("Raises", {}).items() if name in own}
    theirs = its.entries.get("Raises", {})
    if raised is None:
        left_out |= set(kept)
        raised = {name: text for name, text in theirs.items() if name not in left_out}
    elif not isinstance(function, ast.AsyncFunctionDef):
        raised = {}
    if raised or kept:
        mine.entries["Raises"] = raised | kept
    for name in {"Returns", "Durability"} - own:
        mine.texts.pop(name, None)
        if name in its.texts:
            mine.texts[name] = its.texts[name]
    return mine


def sources() -> dict[tuple[str, str], tuple[str, str]]:
    """The calls whose docstrings come from another one, and that one."""
    found = {}
    for module in MIRRORED:
        theirs = functions_of((PYTHON / f"{module}.py").read_text("utf-8"))
        for name in functions_of((PYTHON / f"aio/{module}.py").read_text("utf-8")):
            if name in theirs and not name.partition(".")[2].startswith("_"):
                found[f"aio/{module}.py", name] = f"{module}.py", name
    official = functions_of((PYTHON / OFFICIAL).read_text("utf-8"))
    for module in MIRRORED:
        theirs = functions_of((PYTHON / f"aio/{module}.py").read_text("utf-8"))
        for name in official:
            if name in theirs and not name.partition(".")[2].startswith("_"):
                found[OFFICIAL, name] = f"aio/{module}.py", name
    return {**found, **PARAMETERS}


def python_texts() -> dict[Path, str]:
    """Each module as it should be."""
    texts: dict[Path, str] = {}
    for (file, name), (source_file, source_name) in sources().items():
        path = PYTHON / file
        text = texts.get(path) or path.read_text("utf-8")
        source_text = texts.get(PYTHON / source_file) or (PYTHON / source_file).read_text("utf-8")
        function = functions_of(text)[name]
        source = functions_of(source_text)[source_name]
        own = OWN.get((file, name), set())
        alone = (file, name) in PARAMETERS
        raised = RAISED if file == OFFICIAL else None
        made = derived(function, source, own, parameters_alone=alone, raised=raised)
        texts[path] = with_docstring(text, function, made)
    return texts


def with_docstring(
    text: str, function: ast.FunctionDef | ast.AsyncFunctionDef, docstring: Docstring
) -> str:
    """The text of a module in which the function has that docstring."""
    lines = text.split("\n")
    first = function.body[0]
    made = docstring.lines(first.col_offset)
    if ast.get_docstring(function) is None:
        lines[first.lineno - 1 : first.lineno - 1] = made
    else:
        lines[first.lineno - 1 : first.end_lineno] = made
    return "\n".join(lines)


# Stubs --------------------------------------------------------------------------------------------


def stub_text(stub: str, source: str, kinds: tuple[str, ...]) -> str:
    """A stub whose classes have the docstrings of the compiled ones."""
    for kind in kinds:
        for name, doc in compiled_docstrings(source, kind).items():
            function = functions_of(stub).get(f"{kind}.{name}")
            if function is not None:
                stub = _with_lines(stub, function, doc)
    return stub


def compiled_docstrings(source: str, kind: str) -> dict[str, list[str]]:
    """The lines of the docstrings of a class in Cython, by the names of its methods."""
    found: dict[str, list[str]] = {}
    lines = source.split("\n")
    is_inside = False
    name = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        if re.match(rf"(cdef )?class {kind}\b", line):
            is_inside = True
        elif is_inside and re.match(r"[^\s#)]", line):
            break
        method = re.match(r"    (?:def|cpdef [\w\[\], ]+?) ?(\w+)\(", line)
        if is_inside and method is not None:
            name = method[1]
            while not lines[at].rstrip().endswith(":"):
                at += 1
            if lines[at + 1].startswith('        """'):
                end = at + 1
                while not lines[end].endswith('"""') or lines[end] == '        """':
                    if end > at + 1 and lines[end] == '        """':
                        break
                    end += 1
                found[name] = lines[at + 1 : end + 1]
        at += 1
    return found


def _with_lines(text: str, function: ast.FunctionDef | ast.AsyncFunctionDef, doc: list[str]) -> str:
    lines = text.split("\n")
    first = function.body[0]
    if ast.get_docstring(function) is None:  # `...`
        head = lines[first.lineno - 1]
        lines[first.lineno - 1 : first.end_lineno] = [head[: head.rindex("...")].rstrip(), *doc]
    else:
        lines[first.lineno - 1 : first.end_lineno] = doc
    return "\n".join(lines)


def stub_texts() -> dict[Path, str]:
    """Each stub as it should be."""
    return {
        PYCORE / f"{name}.pyi": stub_text(
            (PYCORE / f"{name}.pyi").read_text("utf-8"),
            (PYCORE / f"{name}.pyx").read_text("utf-8"),
            kinds,
        )
        for name, kinds in STUBS.items()
    }


def core_texts() -> dict[Path, str]:
    """The compiled modules whose calls are those of a consumer, with its docstrings."""
    declared = functions_of((PYTHON / "consumer.py").read_text("utf-8"))
    texts = {}
    for module, (kind, names) in CORES.items():
        path = PYCORE / f"{module}.pyx"
        text = path.read_text("utf-8")
        for name in names:
            doc = ast.get_docstring(declared[f"Consumer.{name}"]) or ""
            old = "\n".join(compiled_docstrings(text, kind)[name])
            text = text.replace(old, "\n".join(Docstring.of(doc).lines(8)), 1)
        texts[path] = text
    return texts


def outputs() -> dict[Path, str]:
    """Each file as it should be."""
    return {**python_texts(), **stub_texts(), **core_texts()}


def main() -> int:
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
