"""Routes that look at single messages; what Pulsar 4.2.4 answers is asserted as it was."""

from __future__ import annotations

import pytest
from administered import Administered

import pulsarx
from pulsarx.clock import ManualClock

T = "/persistent/public/default/t"


@pytest.fixture
def five(open_administered: object) -> Administered:
    """Messages m0 to m4, a second apart from 1000 s on."""
    clock = ManualClock(1_000_000)
    found: Administered = open_administered(clock)  # type: ignore[operator]
    producer = found.client.create_producer("t")
    for number in range(5):
        producer.send(b"m%d" % number, partition_key="k", properties={"a": "b"})
        clock.advance(1)
    found.client.create_producer("empty")
    return found


def test_the_id_of_a_time_is_that_of_the_first_message_then(five: Administered) -> None:
    first = pulsarx.MessageId.earliest
    ledger = five.get(f"{T}/lastMessageId")["ledgerId"]
    for time_ms, entry in ((2000, 2), (1500, 2), (2001, 3), (4000, 4), (4001, 5), (10**15, 5)):
        found = five.get(f"{T}/messageid/{1_000_000 + time_ms}")
        assert (found["ledgerId"], found["entryId"]) == (ledger, entry), time_ms
        assert (found["partitionIndex"], found["batchIndex"]) == (-1, -1)
    for path in (
        f"{T}/messageid/0",
        f"{T}/messageid/1000000",
        "/persistent/public/default/empty/messageid/0",
    ):
        found = five.get(path)
        assert (found["ledgerId"], found["entryId"]) == (first.ledger_id(), first.entry_id())
    assert five.ask("GET", f"{T}/messageid/x").status == 412
    assert five.ask("GET", "/persistent/public/default/none/messageid/0").status == 404


@pytest.mark.parametrize(
    ("query", "payload"),
    [
        ("", "m4"),
        ("?initialPosition=earliest&messagePosition=2", "m1"),
        ("?initialPosition=latest&messagePosition=2", "m3"),
        ("?messagePosition=0", "m4"),
        ("?messagePosition=5", "m0"),
    ],
)
def test_the_nth_message_is_shown_from_either_end(
    five: Administered, query: str, payload: str
) -> None:
    reply = five.ask("GET", f"{T}/examinemessage{query}")
    assert (reply.status, reply.body) == (200, payload)
    assert reply.headers["x-pulsar-property"] == '{"a": "b"}'
    assert reply.headers["x-pulsar-partition-key"] == "k"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{T}/examinemessage?messagePosition=6", 412),
        (f"{T}/examinemessage?initialPosition=earliest&messagePosition=6", 412),
        (f"{T}/examinemessage?initialPosition=x", 412),
        (f"{T}/examinemessage?messagePosition=x", 412),
        ("/persistent/public/default/empty/examinemessage", 412),
        ("/persistent/public/default/none/examinemessage", 404),
        ("/persistent/public/default/p/examinemessage", 405),
        ("/non-persistent/public/default/t/examinemessage", 405),
        (f"{T}/ledger/99999/entry/1", 404),
        ("/persistent/public/default/none/ledger/1/entry/1", 404),
    ],
)
def test_what_is_not_there_is_told(five: Administered, path: str, status: int) -> None:
    five.client.admin.topics.create_partitioned_topic("p", 2)
    assert five.ask("GET", path).status == status


def test_a_message_is_shown_by_its_id(five: Administered) -> None:
    ledger = five.get(f"{T}/lastMessageId")["ledgerId"]
    reply = five.ask("GET", f"{T}/ledger/{ledger}/entry/1")
    assert (reply.body, reply.headers["x-pulsar-message-id"]) == ("m1", f"{ledger}:1")
    assert five.ask("GET", f"{T}/ledger/{ledger}/entry/99").status == 404


def test_messages_in_chunks_are_counted_as_one(administered: Administered) -> None:
    producer = administered.client.create_producer("t", chunking_enabled=True)
    producer.send(b"x" * (6 << 20))
    producer.send(b"y")
    second = f"{T}/examinemessage?initialPosition=earliest&messagePosition=2"
    assert administered.ask("GET", second).body == "y"
    assert administered.ask("GET", f"{T}/examinemessage").status == 405


def test_trimming_removes_what_nobody_needs(administered: Administered) -> None:
    administered.client.create_producer("t").send(b"x")
    assert administered.ask("POST", f"{T}/trim").status == 200
    assert administered.ask("POST", "/persistent/public/default/none/trim").status == 404
