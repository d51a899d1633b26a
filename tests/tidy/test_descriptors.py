"""Whatever the library opens keeps clear of descriptors 0, 1 and 2, which programs may have closed.
Native code does it by low_descriptors, Python by open_descriptor, or hold_low_descriptors."""

from __future__ import annotations

import ast
import re

import pytest
from source_files import LIBRARY, files, module_name, shown

# Calls that give a descriptor; of `open` only the one without an opener.
OPENING = {
    "open", "os.open", "os.dup", "os.pipe", "os.memfd_create", "os.eventfd", "socket.socket",
    "_socket.socket", "socket.socketpair", "socket.create_server", "socket.create_connection",
    "asyncio.new_event_loop", "uvloop.new_event_loop", "tempfile.TemporaryFile",
    "tempfile.NamedTemporaryFile", "tempfile.mkstemp", "select.epoll",
}  # fmt: skip
HOLDS = "hold_low_descriptors"
# Read whole and closed at once, where native modules cannot be named.
PERMITTED = {
    "pulsarx.ground.linked_modules": {"open"},  # what the import system asks for byte code
    "pulsarx.encryption": {"open"},
    "pulsarx.functions.localrun": {"open"},
    "pulsarx.cli.producing": {"open"},
    "pulsarx.cli.output": {"os.open"},  # becomes standard output
    "pulsarx.cli.service_manager": {"socket.socket"},
    "pulsarx.spark.cluster_credentials": {"open"},
    "pulsarx.spark.small_java": {"open"},
    "pulsarx.spark.subscription_sync": {"open"},
}
NATIVE = re.compile(
    r"\b(c_open|c_socket|c_accept|memfd_create|eventfd|epoll_create1)\((?!const |unsigned |int )"
)


def openings_of(text: str) -> list[str]:
    """Calls in Python that open something without care."""
    found = []
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        calls = [each for each in ast.walk(function) if isinstance(each, ast.Call)]
        if any(ast.unparse(each.func) == HOLDS for each in calls):
            continue
        for call in calls:
            name = ast.unparse(call.func)
            keywords = {each.arg for each in call.keywords}
            if name in OPENING and not keywords & {"opener", "fileno"}:
                found.append(name)
    return found


def native_openings_of(text: str) -> list[str]:
    """The same of Cython."""
    return [
        line.strip()
        for number, line in enumerate(text.splitlines())
        if NATIVE.search(line)
        and "low_descriptors_leave(" not in line + text.splitlines()[max(0, number - 1)]
    ]


def test_everything_that_is_opened_keeps_clear_of_the_standard_streams() -> None:
    wrong = []
    for path in files(LIBRARY, {".py", ".pyx", ".pxd"}):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            found = openings_of(text)
        elif path.stem == "low_descriptors":
            continue
        else:
            found = native_openings_of(text)
        permitted = PERMITTED.get(module_name(path), set())
        wrong += [f"{shown(path)}: {each}" for each in found if each not in permitted]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text, found",
    [
        ("def f(path):\n    return open(path)", ["open"]),
        ("def f(path):\n    return open(path, opener=open_descriptor)", []),
        ("def f():\n    return socket.socket()", ["socket.socket"]),
        ("def f(number):\n    return socket.socket(fileno=number)", []),
        ("def f():\n    hold_low_descriptors()\n    return os.dup(4)", []),
        ("async def f(path):\n    return os.open(path, 0)", ["os.open"]),
    ],
)
def test_careless_openings_are_found(text: str, found: list[str]) -> None:
    assert openings_of(text) == found


def test_careless_native_openings_are_found() -> None:
    bad, good = (
        "    self.event = eventfd(0, FLAGS)",
        "    fd = low_descriptors_leave(eventfd(0, 1))",
    )
    assert native_openings_of(bad) == [bad.strip()]
    assert not native_openings_of(good)
    assert not native_openings_of("    int eventfd(unsigned int initial, int flags)")
