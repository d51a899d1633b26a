"""What send_arrow and receive_arrow refuse, and that they give everything back, once."""

from __future__ import annotations

import gc
from typing import Any

import pyarrow as pa
import pytest
from arrow_capsules import HandMadeArray, HandMadeStream
from arrow_topic import ArrowTopic

import pulsarx
from pulsarx import errors

WRONG_COLUMNS = [
    ({"value": [1, 2]}, {}, "column 'value' is int64; value must be"),
    ({"value": ["a"], "k": [1.0]}, {"key": "k"}, "column 'k' is double|column 'k' is float64"),
    ({"value": ["a"], "t": ["x"]}, {"event_time": "t"}, "column 't' is string; event_time must"),
    ({"value": ["a"], "p": ["x"]}, {"properties": "p"}, "column 'p' is string; properties must"),
    ({"value": [["a"]]}, {}, "column 'value' is list<string>"),
    ({"value": ["a"], "p": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))},
     {"properties": "p"}, "the value of a property must be string"),
    ({"value": pa.array([1, 2]).dictionary_encode()}, {}, "dictionary<int64, int32>"),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "names", "text"), WRONG_COLUMNS)
def test_an_unfit_column_is_named_and_nothing_is_sent(
    topic: ArrowTopic, columns: dict[str, Any], names: dict[str, str], text: str
):
    with pytest.raises(TypeError, match=text):
        topic.producer.send_arrow(pa.table(columns), **names)
    assert not topic.consumer.has_message()


def test_a_missing_column_is_told_with_those_there_are(topic: ArrowTopic):
    with pytest.raises(ValueError, match=r"no column 'value'; there are 'a', 'b'"):
        topic.producer.send_arrow(pa.table({"a": ["x"], "b": ["y"]}))
    with pytest.raises(TypeError, match="a column is named by a str"):
        topic.producer.send_arrow(pa.table({"value": ["x"]}), key=1)


@pytest.mark.parametrize("data", [[b"a"], None, {"value": [b"a"]}, b"abc"])
def test_what_is_no_arrow_is_refused(topic: ArrowTopic, data: object):
    with pytest.raises(TypeError, match="neither __arrow_c_stream__ nor __arrow_c_array__"):
        topic.producer.send_arrow(data)


def test_an_array_alone_is_no_table(topic: ArrowTopic):
    with pytest.raises(TypeError, match="a table or record batch is needed, not string"):
        topic.producer.send_arrow(pa.array(["a"]))


def test_a_bad_row_leaves_what_came_before(memory_client: pulsarx.Client):
    topic = ArrowTopic(memory_client)
    values = [b"%d" % n for n in range(1500)] + [b"x" * (6 << 20), b"after"]
    with pytest.raises(errors.MessageTooBig, match="row 1500 has 6291456 bytes") as caught:
        topic.producer.send_arrow(pa.table({"value": values}))
    assert caught.value.__notes__[-1] == "1500 rows were published"
    assert topic.values(1500) == values[:1500]
    assert topic.producer.send(b"goes on") is not None
    assert topic.values(1) == [b"goes on"]


def test_a_time_before_1970_and_a_null_property_are_refused(topic: ArrowTopic):
    table = pa.table({"value": ["a", "b"], "at": [5, -5]})
    with pytest.raises(ValueError, match="row 1: event_time is before 1970"):
        topic.producer.send_arrow(table, event_time="at")
    column = pa.array([[("a", None)]], pa.map_(pa.string(), pa.string()))
    with pytest.raises(ValueError, match="row 0: a property has no name or no value"):
        topic.producer.send_arrow(pa.table({"value": ["a"], "p": column}), properties="p")
    assert topic.values(1) == [b"a"]


def test_after_close(memory_client: pulsarx.Client):
    topic = ArrowTopic(memory_client)
    topic.producer.close()
    topic.consumer.close()
    with pytest.raises(errors.AlreadyClosed):
        topic.producer.send_arrow(pa.table({"value": ["a"]}))
    with pytest.raises(errors.AlreadyClosed):
        topic.consumer.receive_arrow(1)


@pytest.mark.parametrize("most", [0, -1])
def test_at_least_one_message_must_be_asked_for(topic: ArrowTopic, most: int):
    with pytest.raises(ValueError, match="max_messages"):
        topic.consumer.receive_arrow(most)


def test_everything_a_producer_gave_is_released_once(topic: ArrowTopic):
    array = HandMadeArray([0, 1, 3], b"abc")
    topic.producer.send_arrow(array)
    assert array.released == array.given == {"schema": 1, "array": 1}
    stream = HandMadeStream([0, 1, 3], b"abc", batches=4)
    topic.producer.send_arrow(stream)
    assert stream.released == stream.given == {"stream": 1, "schema": 1, "array": 4}
    assert topic.values(10) == [b"a", b"bc"] * 5


BAD_ARRAYS = [
    ({"offsets": [0, 2, 1], "data": b"ab"}, "row 1: its offsets are damaged"),
    ({"offsets": [-1, 2], "data": b"ab"}, "row 0: its offsets are damaged"),
    ({"offsets": [0, 1], "data": b"a", "child_rows": 0}, "has 0 rows at offset 0; 1 are needed"),
    ({"offsets": [0, 1], "data": b"a", "rows": -1}, "an Arrow batch of -1 rows"),
    ({"offsets": [0, 1], "data": b"a", "column_offset": -1}, "1 rows at offset -1"),
    ({"offsets": [0, 1], "data": b"a", "column_offset": 2**62}, "1 rows at offset"),
    ({"offsets": [0, 1], "data": b"a", "n_buffers": 2}, "has 2 buffers; a binary has 3"),
    ({"offsets": [0, 1], "data": b"a", "column_format": b"i"}, "column 'value' is int32"),
    ({"offsets": [0, 1], "data": b"a", "column_format": b"?!"}, "Arrow format '[?]!'"),
]


@pytest.mark.parametrize("kind", [HandMadeArray, HandMadeStream])
@pytest.mark.parametrize(("given", "text"), BAD_ARRAYS)
def test_a_lying_producer_is_refused_and_released_once(
    topic: ArrowTopic, kind: type[HandMadeArray], given: dict[str, Any], text: str
):
    made = kind(**given)
    with pytest.raises((ValueError, TypeError), match=text):
        topic.producer.send_arrow(made)
    gc.collect()
    assert made.released == made.given


@pytest.mark.parametrize(("number", "kind"), [(22, ValueError), (12, MemoryError), (5, OSError)])
def test_a_failing_stream_says_so_and_leaves_what_came(
    topic: ArrowTopic, number: int, kind: type[Exception]
):
    stream = HandMadeStream([0, 1], b"a", batches=2, error=number)
    with pytest.raises(kind, match="made to fail") as caught:
        topic.producer.send_arrow(stream)
    assert caught.value.__notes__ == ["2 rows were published"]
    assert stream.released == stream.given
    assert topic.values(2) == [b"a", b"a"]


def test_a_used_up_capsule_is_refused(topic: ArrowTopic):
    capsule = pa.table({"value": ["a"]}).__arrow_c_stream__()

    class Again:
        def __arrow_c_stream__(self) -> object:
            return capsule

    topic.producer.send_arrow(Again())
    with pytest.raises(ValueError, match="released already"):
        topic.producer.send_arrow(Again())
    assert topic.values(1) == [b"a"]


def test_unused_capsules_are_released(topic: ArrowTopic):
    topic.producer.send_arrow(pa.table({"value": ["a"]}))
    messages = topic.consumer.receive_arrow(1)
    for _ in range(3):
        messages.__arrow_c_schema__()
        messages.__arrow_c_array__()
        messages.__arrow_c_stream__()
    assert pa.table(messages).num_rows == 1


def test_memory_does_not_grow(topic: ArrowTopic):
    values = [b"%0100d" % n for n in range(20_000)]
    table = pa.table({"value": values, "key": [str(n) for n in range(20_000)]})

    def turn() -> None:
        topic.producer.send_arrow(table, key="key")
        messages = topic.consumer.receive_arrow(20_000)
        left = 20_000 - len(messages)
        pa.table(messages)
        topic.consumer.acknowledge_many(messages)
        while left:
            messages = topic.consumer.receive_arrow(left)
            topic.consumer.acknowledge_many(messages)
            left -= len(messages)
        with pytest.raises(ValueError):
            topic.producer.send_arrow(table, "nothing")

    for _ in range(5):
        turn()
    mapped = anonymous_kib()
    for _ in range(40):
        turn()
    # Forty turns that each lost their columns would be 120 MB more.
    assert anonymous_kib() - mapped < 40_000


def anonymous_kib() -> int:
    """Memory of this process that is no file, as ledgers in memory are."""
    with open("/proc/self/status") as lines:
        found = [line.split()[1] for line in lines if line.startswith("RssAnon:")]
    return int(found[0])
