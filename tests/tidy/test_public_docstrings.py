"""Every public call has a docstring that says what it takes, with units, what it returns and what
it raises; those that come from another one are as that says."""

from __future__ import annotations

import ast

import pytest
import write_docstrings
from docstring_faults import faults
from public_api import Callable, Parameter, public_api
from write_docstrings import HEAD, Docstring, compiled_docstrings, derived, outputs, stub_text

SPEED = [Parameter("speed_ms", "int"), Parameter("name", "str")]
WHOLE = """Drive somewhere.

Args:
    speed_ms: Milliseconds of a metre.
    name: The place.

Returns:
    When it arrived.

Raises:
    ValueError: There is no such place.
"""


def told(doc: str, **more: object) -> list[str]:
    """The faults of a function with parameters that has this docstring."""
    values: dict[str, object] = {
        "name": "drive", "doc": doc, "kind": "function", "parameters": SPEED, "answer": "int",
    }  # fmt: skip
    return faults(Callable(**(values | more)))  # type: ignore[arg-type]


def test_every_public_call_says_what_it_takes_returns_and_raises():
    wrong = [f"{each.name} {fault}" for each in public_api() for fault in faults(each)]
    assert not wrong


def test_what_users_can_call_is_looked_at():
    names = {each.name for each in public_api()}
    assert names >= {
        "pulsarx.Client.create_producer",
        "pulsarx.Consumer.receive",
        "pulsarx.Message.data",
        "pulsarx.MessageId.from_text",
        "pulsarx.Client.admin",
        "pulsarx.admin.Namespaces.set_retention",
        "pulsarx.admin.Namespaces.set_backlog_quota",
        "pulsarx.aio.Consumer.receive",
        "pulsarx.testing.drain",
        "pulsarx.schema.JsonSchema.encode",
        "pulsarx.functions.FunctionRunner.start",
        "pulsarx.spark.write_topic",
        "pulsarx.install_as_pulsar",
        "pulsarx.compat.pulsar_asyncio.Consumer.receive",
        "pulsarx.producing.message_builder.TypedMessageBuilder.key",
        "pytest_pulsarx.pulsar_client",
    }
    assert len(names) > 700


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (WHOLE, "", "has no docstring"),
        ("Drive somewhere.", "drive", "does not begin with a sentence"),
        ("    name: The place.\n", "", "does not describe name"),
        ("Milliseconds of a metre", "How fast", "gives no unit of speed_ms"),
        ("The place", "Of a place", "says of param name nothing that has a subject"),
        ("    name:", "    place:", "describes place, which is no parameter"),
        ("Returns:\n    When it arrived.\n", "", "does not say what it returns, int"),
        ("ValueError", "PlaceError", "raises PlaceError, which is no exception"),
        ("Raises:", "Notes:\n    None.\n\nRaises:", "has a section Notes; there are"),
        ("\n\nArgs", "\n\nOSError: never.\n\nArgs", "tells of OSError outside of a section"),
    ],
)
def test_what_a_docstring_lacks_is_found(old: str, new: str, fault: str):
    assert not told(WHOLE)
    assert old in WHOLE
    assert any(each.startswith(fault) for each in told(WHOLE.replace(old, new)))


def test_a_property_and_a_call_that_returns_nothing_need_no_sections():
    assert not told("The speed of light.", kind="property")
    assert not told("Stop.", parameters=[], answer="None")
    assert not told("Return the speed.", parameters=[])


@pytest.mark.parametrize("path", outputs(), ids=lambda path: path.name)
def test_what_comes_from_another_docstring_is_up_to_date(path):
    assert path.read_text(encoding="utf-8") == outputs()[path], "run tools/write_docstrings.py"


def test_a_coroutine_has_the_parameters_and_errors_of_the_call_behind_it():
    module = ast.parse(
        '''
def receive(self, size, timeout_millis=None):
    """Return a message.

    Args:
        size: Bytes.
        timeout_millis: Milliseconds.

    Raises:
        Timeout: None came.
        ValueError: Too small.
    """

async def mine(self, size):
    """Return one in a loop."""
'''
    )
    source, function = module.body
    assert isinstance(source, ast.FunctionDef) and isinstance(function, ast.AsyncFunctionDef)
    made = derived(function, source, {HEAD})
    assert made.head == ["Return one in a loop."]
    assert made.entries == {"Args": {"size": "Bytes."}, "Raises": {"ValueError": "Too small."}}
    assert derived(function, source, set()).head == ["Return a message."]


def test_a_docstring_is_written_as_it_was_read():
    lines = Docstring.of(WHOLE).lines(0)
    assert "\n".join(lines) == f'"""{WHOLE}"""'


def test_a_stub_gets_the_docstrings_of_its_compiled_class():
    doc = ['        """Return', '        one."""']
    source = "\n".join(["cdef class A:", "    def b(self) -> int:", *doc, "        return 1", ""])
    stub = "class A:\n    def b(self) -> int: ...\n    def c(self) -> int: ...\n"
    assert compiled_docstrings(source, "A") == {"b": doc}
    made = stub_text(stub, source, ("A",))
    assert made == stub.replace(": ...", "\n".join([":", *doc]), 1)


def test_what_calls_keep_of_their_own_is_theirs():
    """A name in the table that no call has would say nothing."""
    calls = write_docstrings.sources()
    assert set(write_docstrings.OWN) <= set(calls)
