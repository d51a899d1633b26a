"""Facts about JSON without the json module: it is always what the json module says."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarx._pycore.ground.plain_json import json_bytes, json_value

SCALARS = st.none() | st.booleans() | st.integers() | st.text() | st.text("ab{}[],: ", max_size=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=20,
)


def written(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def outcome(call: Any, argument: Any) -> Any:
    """What it answers, or how it refuses."""
    try:
        found = call(argument)
    except (ValueError, TypeError, RecursionError) as error:
        return type(error), str(error)
    return type(found), found


@given(VALUES)
def test_values_are_written_and_read_as_the_json_module_does(value: Any) -> None:
    text = json_bytes(value)
    assert text == written(value)
    assert json_value(text) == value


class Name(str):
    pass


DEEP: list[Any] = []
for _ in range(100):
    DEEP = [DEEP]
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    "value",
    [
        1.5, math.nan, (1, 2), {1: 2}, {None: True}, {Name("a"): Name('"')}, b"bytes", {"a": {1}},
        "\\", '"', "\n", "\x7f", "\x00", "é", "\ud800", "😀", 1 << 70, -(1 << 63), 10**18, DEEP,
        CIRCLE, {"operations": [object]}, "", {}, [], [[], {}], {"": ""}, True, -0.0,
    ],
    ids=lambda each: str(type(each)),
)  # fmt: skip
def test_what_is_not_plain_is_written_and_refused_as_well(value: Any) -> None:
    assert outcome(json_bytes, value) == outcome(written, value)


TEXTS = [
    "", " ", "1 ", " 1", "01", "-", "-0", "-01", "1.5", "1e3", "1" * 18, "1" * 19, "1" * 30, "--1",
    "+1", "nul", "nulll", "truefalse", "NaN", "Infinity", '"', '"a', '"a"b', r'"\u0041"', '"\x01"',
    '"é"', '"\x7f"', "[", "[1", "[1,", "[1,]", "[,]", "[1 ,2]", "{", '{"a"', '{"a":', '{"a":1',
    '{"a":1,', '{"a":1,}', "{1:2}", '{"a":1,"a":2}', '{"a":1}x', "]", "}", "[" * 70 + "]" * 70,
    "[" * 70, '{"a":[{"b":null},true,false,-12]}',
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_read_and_refused_as_the_json_module_does(text: str) -> None:
    assert outcome(json_value, text.encode()) == outcome(json.loads, text.encode())


@given(st.binary(max_size=20) | st.text('{}[]",:ab\\01-.e nul tru', max_size=20))
def test_any_bytes_are_read_or_refused_as_the_json_module_does(text: Any) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    assert outcome(json_value, data) == outcome(json.loads, data)


@given(VALUES, st.data())
def test_a_text_cut_off_anywhere_is_refused(value: Any, data: Any) -> None:
    text = written([value])
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    assert outcome(json_value, cut) == outcome(json.loads, cut)


def test_a_value_is_a_copy() -> None:
    inner = {"a": [1]}
    read = json_value(json_bytes(inner))
    inner["a"].append(2)
    assert read == {"a": [1]}


def test_what_is_plain_needs_no_json_module() -> None:
    program = """
import sys
from pulsarx._pycore.ground.plain_json import json_bytes, json_value
document = {"number": 1, "operations": [{"op": "open_epoch", "epoch": 1}, None, True, "a b"]}
assert json_value(json_bytes(document)) == document
assert "json" not in sys.modules, "imported"
json_bytes(1.5)
assert "json" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
