"""Facts about message ids; vectors from the official clients."""

from __future__ import annotations

import copy
import gc
import pickle
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarx.message_id import MessageId

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
FEW = st.integers(-1, 2)
IDS = st.builds(MessageId, INT32, INT64, INT64, INT32)
CLOSE_IDS = st.builds(MessageId, FEW, FEW, FEW, FEW)


def numbers_of(message_id: MessageId) -> tuple[int, int, int, int]:
    return (
        message_id.ledger_id(),
        message_id.entry_id(),
        message_id.partition(),
        message_id.batch_index(),
    )


def test_arguments_come_in_the_official_order() -> None:
    assert numbers_of(MessageId(1, 2, 3, 4)) == (2, 3, 1, 4)
    message_id = MessageId(partition=1, ledger_id=2, entry_id=3, batch_index=4)
    assert numbers_of(message_id) == (2, 3, 1, 4)


def test_text_is_ledger_entry_partition_batch_index() -> None:
    message_id = MessageId(partition=1, ledger_id=2, entry_id=3, batch_index=4)
    assert str(message_id) == repr(message_id) == "(2,3,1,4)"


def test_earliest_and_latest_are_the_official_ones() -> None:
    largest = 2**63 - 1
    assert numbers_of(MessageId.earliest) == (-1, -1, -1, -1)
    assert numbers_of(MessageId.latest) == (largest, largest, -1, -1)
    assert MessageId.earliest < MessageId(0, 0, 0, 0) < MessageId.latest


@pytest.mark.parametrize(
    ("numbers", "written"),
    [
        ((-1, 123, 45, -1), "087b102d"),
        ((2, 123, 45, 3), "087b102d18022003"),
        ((0, 0, 0, 0), "0800100018002000"),
        ((-1, -1, -1, -1), "08ffffffffffffffffff0110ffffffffffffffffff01"),
        ((-1, 2**63 - 1, 2**63 - 1, -1), "08ffffffffffffffff7f10ffffffffffffffff7f"),
    ],
)
def test_serialized_as_the_official_python_client_does(
    numbers: tuple[int, int, int, int], written: str
) -> None:
    assert MessageId(*numbers).serialize().hex() == written


@pytest.mark.parametrize(
    ("written", "text", "written_again"),
    [
        ("087b102d3000", "(123,45,-1,-1)", "087b102d"),
        ("087b102d18022003300a", "(123,45,2,3)", "087b102d18022003300a"),
        ("0805100330003a06080510013000", "(5,3,-1,-1)", "080510033a0408051001"),
        (
            "08ffffffffffffffffff0110ffffffffffffffffff013000",
            "(-1,-1,-1,-1)",
            "08ffffffffffffffffff0110ffffffffffffffffff01",
        ),
        ("087b102d2a0101", "(123,45,-1,-1)", "087b102d"),
        ("087b102d28012802", "(123,45,-1,-1)", "087b102d"),
        ("087b102d18ffffffff0f", "(123,45,-1,-1)", "087b102d"),
        ("087b102d18ffffffffffffffffff01", "(123,45,-1,-1)", "087b102d"),
        ("102d087b", "(123,45,-1,-1)", "087b102d"),
        ("087b102d4d01020304", "(123,45,-1,-1)", "087b102d"),
        ("087b102d490102030405060708", "(123,45,-1,-1)", "087b102d"),
    ],
)
def test_what_other_clients_write_is_read(written: str, text: str, written_again: str) -> None:
    message_id = MessageId.deserialize(bytes.fromhex(written), topic="persistent://a/b/c")
    assert str(message_id) == text
    assert message_id.serialize().hex() == written_again


@pytest.mark.parametrize(
    "garbage",
    ["", "08", "087b", "102d", "ffff", "087b102d18", "087b102d3a05", "087b102d0001", "087b102d0b",
     "08ffffffffffffffffffffff01102d", "087b102d4d0102"],
)  # fmt: skip
def test_garbage_raises_value_error(garbage: str) -> None:
    with pytest.raises(ValueError, match="not a serialized message id"):
        MessageId.deserialize(bytes.fromhex(garbage))


@given(st.binary(max_size=60))
def test_any_bytes_are_an_id_or_a_value_error(anything: bytes) -> None:
    try:
        message_id = MessageId.deserialize(anything)
    except ValueError:
        return
    assert MessageId.deserialize(message_id.serialize()) == message_id


def test_wrong_types_are_type_errors() -> None:
    for wrong in ("087b", None, 5, bytearray(b"\x08\x7b\x10\x2d")):
        with pytest.raises(TypeError):
            MessageId.deserialize(wrong)  # type: ignore[arg-type]
    for wrong_number in ("1", None, 1.0):
        with pytest.raises(TypeError):
            MessageId(ledger_id=wrong_number)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        MessageId.wrap("x")  # type: ignore[arg-type]


@given(IDS)
def test_bytes_texts_pickles_and_copies_lead_back_to_the_same_id(message_id: MessageId) -> None:
    assert MessageId.deserialize(message_id.serialize()) == message_id
    assert MessageId.from_text(str(message_id)) == message_id
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(message_id, protocol)) == message_id
    assert copy.copy(message_id) is copy.deepcopy(message_id) is message_id
    assert MessageId.wrap(message_id) is message_id


def test_pickling_keeps_the_batch_size() -> None:
    message_id = MessageId.deserialize(bytes.fromhex("087b102d18022003300a"))
    assert message_id.batch_size() == 10
    assert pickle.loads(pickle.dumps(message_id)).batch_size() == 10


@given(CLOSE_IDS, CLOSE_IDS)
def test_order_is_that_of_ledger_entry_partition_batch_index(
    left: MessageId, right: MessageId
) -> None:
    a, b = numbers_of(left), numbers_of(right)
    assert (left < right) == (a < b)
    assert (left <= right) == (a <= b)
    assert (left > right) == (a > b)
    assert (left >= right) == (a >= b)
    assert (left == right) == (a == b)
    assert (left != right) == (a != b)
    if a == b:
        assert hash(left) == hash(right)


def test_the_batch_size_is_no_part_of_equality() -> None:
    known = MessageId.deserialize(bytes.fromhex("087b102d18022003300a"))
    unknown = MessageId(2, 123, 45, 3)
    assert known == unknown
    assert hash(known) == hash(unknown)
    assert {known: 1}[unknown] == 1


def test_ids_that_differ_only_in_partition_have_one_order() -> None:
    """The official client called each greater than the other."""
    one, two = MessageId(1, 5, 5, 0), MessageId(2, 5, 5, 0)
    assert one < two
    assert not one > two
    assert one != two


def test_other_types_are_never_equal_and_have_no_order() -> None:
    message_id = MessageId(1, 2, 3, 4)
    assert message_id != "(2,3,1,4)"
    assert message_id != (2, 3, 1, 4)
    assert message_id != None
    with pytest.raises(TypeError):
        message_id < 5  # type: ignore[operator]
    with pytest.raises(TypeError):
        message_id >= "x"  # type: ignore[operator]


def test_hashes_of_neighbours_differ() -> None:
    ids = [MessageId(p, ledger, e, b) for p in (-1, 0) for ledger in range(10) for e in range(50)
           for b in range(-1, 10)]  # fmt: skip
    assert len({hash(i) for i in ids}) == len(set(ids)) == len(ids)


def test_java_text_is_read_and_written() -> None:
    assert MessageId.from_text("123:45:-1") == MessageId(-1, 123, 45)
    assert MessageId.from_text("123:45:2:3") == MessageId(2, 123, 45, 3)
    assert MessageId(-1, 123, 45).to_text() == "123:45:-1"
    assert MessageId(2, 123, 45, 3).to_text() == "123:45:2:3"


@pytest.mark.parametrize(
    "text",
    ["", "1", "1:2", "1:2:3:4:5", "(1,2,3)", "(1,2,3,4", "1,2,3,4", "a:b:c", "1:2:", "1: 2:3",
     "1:+2:3", "1_0:2:3", "--1:2:3", "9223372036854775808:1:1", "1:1:2147483648", "٣:1:1"],
)  # fmt: skip
def test_other_texts_are_value_errors(text: str) -> None:
    with pytest.raises(ValueError, match="not a message id"):
        MessageId.from_text(text)


def test_an_id_is_small() -> None:
    """No table of methods, no garbage collector header: received messages hold millions of ids."""
    assert sys.getsizeof(MessageId(1, 2, 3, 4)) == 64
    assert not gc.is_tracked(MessageId(1, 2, 3, 4))
