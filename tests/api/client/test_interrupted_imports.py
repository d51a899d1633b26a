"""Facts about modules that a call loads when it is made for the first time, in the main thread."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Raises at the first line of Python that the main thread runs when the module has been begun.
PROGRAM = """
import sys, pulsarx
client = pulsarx.Client("memory:")
consumer = client.subscribe("t", "s")
producer = client.create_producer("t")
class Raised(Exception):
    pass
class Table:
    def __arrow_c_stream__(self, requested_schema=None):
        raise Raised
def call():
    producer.send(b"x")
    return {call}
def trace(frame, event, argument):
    if {module!r} in sys.modules:
        sys.settrace(None)
        raise Raised
    return trace
sys.settrace(trace)
try:
    call()
except (Raised, ImportError):
    pass
sys.settrace(None)
try:
    call()
except Raised:
    pass
print("repeated")
"""


@pytest.mark.parametrize(
    ("call", "module"),
    [
        ("consumer.receive_arrow(1)", "pulsarx._pycore.consume.consumer_arrow"),
        ("producer.send_arrow(Table())", "pulsarx._pycore.publish.producer_arrow"),
        ("consumer.receive_arrow(1).to_numpy()", "numpy._core._multiarray_umath"),
        ("producer.send_columns([b'x'])", "numpy._core._multiarray_umath"),
        ("pulsarx.hashing.partition_of('a', 2)", "pulsarx._pycore.publish.partition_hash"),
    ],
    ids=["receive_arrow", "send_arrow", "to_numpy", "send_columns", "partition_of"],
)
def test_a_call_that_is_interrupted_while_it_loads_a_module_can_be_repeated(
    call: str, module: str
) -> None:
    """The import was cut, and a native module cannot be imported a second time: every later call
    raised ImportError."""
    program = PROGRAM.format(call=call, module=module)
    if "hashing" in call:
        program = "import pulsarx.hashing\n" + program
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stdout == "repeated\n", ran.stderr
