"""Facts about types: what a type checker knows of values."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pulsarx

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
from __future__ import annotations
import pulsarx
from pulsarx.schema import AvroSchema, BytesSchema, Int32Schema, JsonSchema, Record, Schema, String
from pulsarx.schema import StringSchema
earliest = pulsarx.MessageId.earliest

class One(Record):
    a = String()

class Number(Schema[int]):
    def __init__(self) -> None:
        pass

    def decode(self, data: bytes) -> int:
        return int(data)

client = pulsarx.Client("memory:")
reveal_type(client.create_producer("t"))
reveal_type(client.create_producer("t", schema=JsonSchema(One)))
reveal_type(client.subscribe("t", "s").receive().value())
reveal_type(client.subscribe("t", "s", schema=StringSchema()).receive().value())
reveal_type(client.subscribe("t", "s", schema=JsonSchema(One)).batch_receive()[0].value())
reveal_type(client.subscribe("t", "s", schema=AvroSchema(One)).receive().value())
reveal_type(client.subscribe("t", "s", schema=Number()).receive_async().result().value())
reveal_type(client.create_reader("t", earliest, Int32Schema()).read_next().value())
client.create_producer("t").send(b"x")
client.create_producer("t").send(None)
client.create_producer("t").send("x")
client.create_producer("t", schema=JsonSchema(One)).send("x")

def untyped(consumer: pulsarx.Consumer, message: pulsarx.Message, schema: Schema) -> None:
    reveal_type(consumer.receive().value())
    reveal_type(message.value())
"""
EXPECTED = [
    "Producer[bytes]",
    "Producer[One]",
    "bytes",
    "str",
    "One",
    "Any",
    "int",
    "int",
]


@pytest.mark.standard
def test_a_type_checker_knows_what_values_are(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    arguments = ["--strict", "--no-incremental", "--config-file", str(ROOT / "pyproject.toml")]
    # Not in this process, where it leaves a million objects, and no collector.
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *arguments, str(program)],
        cwd=ROOT,  # from where it finds the library
        capture_output=True,
        text=True,
        check=False,
    )
    output, errors = done.stdout, done.stderr
    plain = re.sub(r"\b(\w+\.)+(?=\w+)", "", output)
    revealed = re.findall(r'Revealed type is "(.*)"', plain)
    assert revealed == [*EXPECTED, "Any", "Any"], output + errors
    refused = re.findall(r'error: Argument 1 to "send" .* incompatible type "str"', output)
    assert len(refused) >= 2 and output.count(" error: ") == len(refused), output


def test_types_of_values_say_nothing_at_run_time() -> None:
    assert pulsarx.Message[str] is pulsarx.Message
    assert pulsarx.Consumer[str] is pulsarx.Consumer  # type: ignore[type-abstract]
    assert pulsarx.Producer[str] is pulsarx.Producer
