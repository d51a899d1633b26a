"""Publishing, reading and acknowledging from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import invoke, rows

import pulsarx
from pulsarx import MessageId

pytestmark = pytest.mark.standard


def texts(folder: Path, *arguments: str) -> list[str]:
    return [each["data"] for each in rows(invoke(folder, *arguments))]


def everything(folder: Path, topic: str) -> list[str]:
    return texts(folder, "read", topic, "-m", "earliest", "--to-end")


# Publishing ---------------------------------------------------------------------------------------


def test_messages_are_separated_by_commas_or_as_is_said(folder: Path):
    [told] = rows(invoke(folder, "produce", "new", "-m", "a,b", "-m", "c"))
    assert told["topic"] == "persistent://public/default/new"
    assert told["messages"] == 3
    assert rows(invoke(folder, "produce", "new", "-m", "d;e,f", "-s", ";"))[0]["messages"] == 2
    assert rows(invoke(folder, "produce", "new", "-m", "g,h", "-s", ""))[0]["messages"] == 1
    assert everything(folder, "new") == ["a", "b", "c", "d", "e,f", "g,h"]


def test_files_lines_and_repetition(folder: Path, tmp_path: Path):
    (tmp_path / "one").write_bytes(b"first\nfile")
    (tmp_path / "two").write_bytes(b"\xff\x00")
    invoke(folder, "produce", "new", "-f", f"{tmp_path / 'one'},{tmp_path / 'two'}", "-n", "2")
    invoke(folder, "produce", "new", "-l", "-", stdin=b"x\ny\r\n\nz")
    assert everything(folder, "new") == [
        *["first\nfile", "/wA="] * 2,
        *["x", "y", "", "z"],
    ]


def test_key_and_properties_go_with_each_message(folder: Path):
    for more in ([], ["-db"], ["--chunking"]):
        invoke(
            folder, "produce", "new", "-m", "a,b", "-k", "K", "-p", "x=1,y=2", "-p", "z==", *more
        )
    found = rows(invoke(folder, "read", "new", "-m", "earliest", "--to-end"))
    assert len(found) == 6
    assert {each["key"] for each in found} == {"K"}
    assert all(each["properties"] == {"x": "1", "y": "2", "z": "="} for each in found)


def test_without_batching_each_message_is_an_entry(folder: Path):
    invoke(folder, "produce", "together", "-m", "a,b,c")
    invoke(folder, "produce", "alone", "-m", "a,b,c", "-db")
    [together] = rows(invoke(folder, "topics", "stats", "together"))
    [alone] = rows(invoke(folder, "topics", "stats", "alone"))
    assert (together["entries"], alone["entries"]) == (1, 3)


@pytest.mark.parametrize(
    "arguments",
    [[], ["-f", "missing"], ["-m", "a", "-p", "x"], ["-m", "a", "-n", "0"], ["-m", "a", "--rate"]],
)
def test_what_is_wrong_with_the_arguments_is_said_before_anything_is_published(
    folder: Path, arguments: list[str]
):
    assert invoke(folder, "produce", "new", *arguments).exit_code == 2
    assert invoke(folder, "topics", "stats", "new").exit_code == 1


def test_what_was_published_before_a_failure_is_told(folder: Path):
    lines = "\n".join(["small"] * 1000 + ["x" * (6 << 20)])
    result = invoke(folder, "produce", "new", "-l", "-", stdin=lines)
    assert result.exit_code == 1
    assert "1000 messages had been published" in result.stderr
    assert "MessageTooBig" in result.stderr
    assert everything(folder, "new") == ["small"] * 1000


# Reading ------------------------------------------------------------------------------------------


def test_the_fields_of_a_message(folder: Path):
    [found] = rows(invoke(folder, "tail", "orders", "-n", "1"))
    with pulsarx.Client(folder, read_only=True) as client:
        reader = client.create_reader("orders", MessageId.latest, start_message_id_inclusive=True)
        message = reader.read_next()
    assert found == {
        "message_id": message.message_id().to_text(),
        "publish_time_ms": message.publish_timestamp(),
        "event_time_ms": 0,
        "producer_name": message.producer_name(),
        "key": "key-4",
        "ordering_key": "",
        "properties": {"number": "4"},
        "encoding": "utf-8",
        "data": "order 4",
    }


def test_a_message_without_a_value_has_null(folder: Path):
    with pulsarx.Client(folder) as client:
        client.create_producer("orders").send(None, partition_key="gone")
    [found] = rows(invoke(folder, "tail", "orders", "-n", "1"))
    assert (found["key"], found["encoding"], found["data"]) == ("gone", None, None)


@pytest.mark.parametrize("count", [0, 1, 3, 5, 6, 1000])
def test_tail_prints_the_last_messages(folder: Path, count: int):
    wanted = [f"order {number}" for number in range(5)]
    assert texts(folder, "tail", "orders", "-n", str(count)) == wanted[max(0, 5 - count) :]


def test_tail_counts_messages_over_ledgers_batches_and_chunks(folder: Path):
    """An entry may be a part of a message, and hold many."""
    for each in ("a,b,c", "d"):
        invoke(folder, "produce", "orders", "-m", each)
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("orders", chunking_enabled=True)
        producer.send(b"x" * (11 << 20))
    found = texts(folder, "tail", "orders", "-n", "4")
    assert found[:3] == ["b", "c", "d"]
    assert len(found[3]) == 11 << 20
    assert texts(folder, "tail", "orders", "-n", "7")[:2] == ["order 3", "order 4"]


def test_tail_of_partitions_is_in_the_order_of_publish_times(folder: Path):
    invoke(folder, "topics", "create-partitioned-topic", "parts", "-p", "3")
    clock = pulsarx.ManualClock()
    with pulsarx.Client(folder, clock=clock) as client:
        producer = client.create_producer("parts")
        for number in range(7):
            producer.send(b"%d" % number)
            clock.advance(10)
    assert texts(folder, "tail", "parts", "-n", "4") == ["3", "4", "5", "6"]


def test_read_begins_behind_a_message_or_with_it(folder: Path):
    ids = [
        each["message_id"]
        for each in rows(invoke(folder, "read", "orders", "-m", "earliest", "--to-end"))
    ]
    assert texts(folder, "read", "orders", "-m", ids[1], "-n", "2") == ["order 2", "order 3"]
    assert texts(folder, "read", "orders", "-m", ids[1], "-i") == ["order 1"]
    ledger_and_entry = ids[1].rpartition(":")[0]
    assert texts(folder, "read", "orders", "-m", ledger_and_entry, "-i") == ["order 1"]
    assert texts(folder, "read", "orders", "--to-end") == []
    assert invoke(folder, "read", "orders", "-m", "first").exit_code == 2


def test_reading_acknowledges_nothing(folder: Path):
    everything(folder, "orders")
    texts(folder, "tail", "orders")
    texts(folder, "peek", "orders", "-s", "billing", "-n", "5")
    [found] = rows(invoke(folder, "stats", "orders"))
    assert found["subscriptions"]["billing"]["msg_backlog"] == 5


def test_damaged_messages_are_told_and_the_others_printed(folder: Path):
    [ledger] = (
        path for path in (folder / "ledgers").rglob("*.ledger") if b"order 2" in path.read_bytes()
    )
    ledger.write_bytes(ledger.read_bytes().replace(b"order 2", b"0rder 2"))
    for arguments in (["read", "orders", "-m", "earliest", "--to-end"], ["tail", "orders"]):
        result = invoke(folder, *arguments)
        assert result.exit_code == 1
        assert "CorruptDataError" in result.stderr
        assert result.stdout.count("\n") == 4


# Positions ----------------------------------------------------------------------------------------


def next_of(folder: Path) -> list[str]:
    return texts(folder, "peek", "orders", "-s", "billing")


def test_skip_clear_and_seek_move_a_subscription(folder: Path):
    invoke(folder, "namespaces", "set-retention", "public/default", "-t", "-1", "-s", "-1")
    ids = [each["message_id"] for each in rows(invoke(folder, "tail", "orders"))]
    for arguments, after in (
        (["skip", "-n", "2"], ["order 2"]),
        (["clear"], []),
        (["seek", "-m", ids[3]], ["order 3"]),
        (["seek", "-m", "latest"], []),
        (["seek", "-t", "3h"], ["order 0"]),
        (["seek", "--time", "0"], []),
        (["seek", "-m", "earliest"], ["order 0"]),
    ):
        name, *rest = arguments
        assert not rows(invoke(folder, name, "orders", "-s", "billing", *rest))
        assert next_of(folder) == after


@pytest.mark.parametrize(
    "rest", [[], ["-t", "3h", "-m", "latest"], ["-t", "3x"], ["-t", "-1"], ["-m", "last"]]
)
def test_seek_takes_one_position(folder: Path, rest: list[str]):
    assert invoke(folder, "seek", "orders", "-s", "billing", *rest).exit_code == 2
    assert next_of(folder) == ["order 0"]


# Receiving ----------------------------------------------------------------------------------------


def test_what_is_consumed_is_acknowledged(folder: Path):
    assert texts(folder, "consume", "orders", "-s", "billing", "-n", "2") == ["order 0", "order 1"]
    assert texts(folder, "consume", "orders", "-s", "billing") == ["order 2"]
    assert next_of(folder) == ["order 3"]


@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "Failover", "Key_Shared"])
def test_a_new_subscription_begins_where_it_is_told(folder: Path, kind: str):
    arguments = ["-s", "new", "-t", kind, "-p", "Earliest", "-n", "5"]
    assert texts(folder, "consume", "orders", *arguments) == [f"order {n}" for n in range(5)]
    [found] = rows(invoke(folder, "stats", "orders"))
    assert found["subscriptions"]["new"]["msg_backlog"] == 0


# Dead letters -------------------------------------------------------------------------------------


def test_dead_letters_are_published_to_their_topic_once(letters: Path):
    told = rows(invoke(letters, "replay-dlq", "orders", "-s", "shipping", "-n", "2"))
    assert told == [{"topic": "persistent://public/default/orders", "messages": 2}]
    told = rows(invoke(letters, "replay-dlq", "orders", "-s", "shipping"))
    assert [each["messages"] for each in told] == [3]
    assert not rows(invoke(letters, "replay-dlq", "orders", "-s", "shipping"))
    found = rows(invoke(letters, "tail", "orders", "-n", "5"))
    assert sorted(each["data"] for each in found) == [f"order {number}" for number in range(5)]
    for each in found:
        number = each["data"][-1]
        assert each["key"] == f"key-{number}"
        assert each["properties"] == {"number": number}


def test_a_letter_keeps_its_schema(folder: Path):
    with pulsarx.Client(folder) as client:
        schema = pulsarx.schema.StringSchema()
        client.create_producer("names", schema=schema).send("anna")
        rules = pulsarx.ConsumerDeadLetterPolicy(max_redeliver_count=1)
        consumer = client.subscribe(
            "names",
            "shipping",
            pulsarx.ConsumerType.Shared,
            schema=schema,
            initial_position=pulsarx.InitialPosition.Earliest,
            dead_letter_policy=rules,
            negative_ack_redelivery_delay_ms=1,
        )
        for _ in range(2):
            consumer.negative_acknowledge(consumer.receive())
        client.create_reader("names-shipping-DLQ", MessageId.earliest).read_next()
    assert rows(invoke(folder, "replay-dlq", "names", "-s", "shipping"))
    with pulsarx.Client(folder, read_only=True) as client:
        reader = client.create_reader("names", MessageId.earliest)
        found = [(message.data(), message.int_schema_version()) for message in reader]
    assert found == [(b"anna", 0)]  # what was acknowledged is gone


def test_what_was_replayed_before_a_letter_that_cannot_be_is_told(letters: Path):
    """It was only said what failed."""
    with pulsarx.Client(letters) as client:
        gone = "persistent://public/default/gone"
        client.create_producer("orders-shipping-DLQ").send(b"x", properties={"REAL_TOPIC": gone})
    result = invoke(letters, "replay-dlq", "orders", "-s", "shipping")
    assert result.exit_code == 1
    assert gone in result.stderr
    [told] = [json.loads(line) for line in result.stdout.splitlines()]
    assert told == {"topic": "persistent://public/default/orders", "messages": 5}


def test_letters_are_not_replayed_to_their_own_topic(folder: Path):
    """They would come again without end."""
    result = invoke(folder, "replay-dlq", "orders", "-s", "billing", "--dlq", "orders")
    assert result.exit_code == 1
    assert "to itself" in result.stderr


def test_letters_of_a_topic_that_is_gone_stay(letters: Path):
    invoke(letters, "topics", "delete", "orders", "-f")
    result = invoke(letters, "replay-dlq", "orders", "-s", "shipping")
    assert result.exit_code == 1
    assert "TopicNotFound" in result.stderr
    invoke(letters, "topics", "create", "orders")
    [told] = rows(invoke(letters, "replay-dlq", "orders", "-s", "shipping"))
    assert told["messages"] == 5
