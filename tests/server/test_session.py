"""Facts about one connection at the broker's end, command by command."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from peer import Peer, batch, entry, names, serving

import pulsarx
from pulsarx import errors
from pulsarx._pycore.ranges.entry_codec import crc32c, encode_batch, encode_entry
from pulsarx.broker.topics.producer_registry import ProducerRegistry
from pulsarx.schema import (
    AutoConsumeSchema,
    AvroSchema,
    BytesSchema,
    Int32Schema,
    KeyValueSchema,
    Record,
    Schema,
    SchemaInfo,
    SchemaType,
    String,
    StringSchema,
)
from pulsarx.testing.faults import fault_plan
from pulsarx.topic_name import TopicName
from pulsarx.wire.commands import (
    CUMULATIVE,
    EARLIEST,
    EXCLUSIVE,
    FAILOVER,
    FROM_BROKER,
    INDIVIDUAL,
    KEY_SHARED,
    SHARED,
)
from pulsarx.wire.frames import frame_encode
from pulsarx.wire.protobuf import WireError
from pulsarx.wire.schemas import schema_of, schema_values
from pulsarx.wire.server_errors import code_of


def test_the_first_command_is_connect() -> None:
    with pulsarx.Client("memory:") as client:
        made = Peer(serving(client))
        with pytest.raises(WireError, match="a PING before CONNECT"):
            made.say("PING")
        assert not made.session.is_open
        with pytest.raises(WireError, match="closed"):
            made.say("CONNECT", client_version="test")
        made.server.close()


def test_connected_says_the_lower_version_and_the_largest_message() -> None:
    with pulsarx.Client("memory:") as client:
        made = Peer(serving(client))
        (told,) = made.say("CONNECT", client_version="test", protocol_version=12)
        assert told[0] == "CONNECTED"
        assert (told[1]["protocol_version"], told[1]["max_message_size"]) == (12, 5 << 20)
        made.server.close()


def test_a_receipt_copies_the_sequence_id_and_names_the_entry(peer: Peer) -> None:
    (told,) = peer.produce(entry(b"a"))
    assert told[0] == "SEND_RECEIPT"
    assert told[1]["sequence_id"] == 1
    assert told[1]["message_id"]["entry_id"] == 0
    assert peer.send(entry(b"b"), 7)[0][1]["sequence_id"] == 7


def test_a_batch_without_its_duplicates_keeps_where_it_is_to_be_replicated_to(
    tmp_path: Path,
) -> None:
    """It was lost where the broker wrote the batch anew."""
    field = bytes.fromhex("3a01613a026262")
    sent = batch(b"payload-a", b"payload-b", b"payload-c")
    size = int.from_bytes(sent[6:10], "big")
    checked = (size + len(field)).to_bytes(4, "big") + sent[10 : 10 + size] + field
    checked += sent[10 + size :]
    named = sent[:2] + crc32c(checked).to_bytes(4, "big") + checked
    options = pulsarx.BrokerOptions(broker_deduplication_enabled=True)
    with pulsarx.Client(tmp_path / "data", durability="os", broker_options=options) as client:
        made = Peer(serving(client))
        made.connect()
        assert names(made.produce(batch(b"first"))) == ["SEND_RECEIPT"]  # its sequence id is 0
        assert names(made.send(named, 1)) == ["SEND_RECEIPT"]
        reader = client.create_reader("t", pulsarx.MessageId.earliest)
        found = [each.data() for each in reader.read_many(10, 1000)]
        assert found == [b"first", b"payload-b", b"payload-c"]
        ledgers = (tmp_path / "data" / "ledgers").rglob("*")
        (stored,) = (
            content
            for each in ledgers
            if each.is_file() and b"payload-b" in (content := each.read_bytes())
        )
        assert stored.count(field) == 1
        made.server.close()


def test_an_entry_comes_out_as_it_went_in(peer: Peer) -> None:
    sent = [entry(b"a"), batch(b"b", b"c")]
    peer.produce(*sent)
    assert names(peer.subscribe()) == ["SUCCESS"]
    told = peer.say("FLOW", consumer_id=0, permits=10)
    assert [each[2] for each in told] == sent
    assert [each[1]["ack_set"] for each in told] == [[], []]


def test_no_message_comes_before_flow_and_a_permit_is_a_message(peer: Peer) -> None:
    peer.produce(*(entry(b"%d" % number) for number in range(5)))
    assert names(peer.subscribe()) == ["SUCCESS"]
    assert names(peer.say("PING")) == ["PONG"]
    assert len(peer.say("FLOW", consumer_id=0, permits=2)) == 2
    assert names(peer.say("PING")) == ["PONG"]
    assert len(peer.say("FLOW", consumer_id=0, permits=1)) == 1


def test_what_there_is_to_send_comes_before_the_answer_to_a_ping(peer: Peer) -> None:
    peer.subscribe()
    peer.say("FLOW", consumer_id=0, permits=10)
    peer.produce()
    peer.session.received(frame_encode("SEND", {"producer_id": 0, "sequence_id": 1}, entry(b"a")))
    peer.server.completions.wait()
    assert names(peer.say("PING")) == ["SEND_RECEIPT", "MESSAGE", "PONG"]


@pytest.mark.parametrize("kind", [SHARED, 0])
def test_of_a_batch_only_what_is_not_acknowledged_comes_again(peer: Peer, kind: int) -> None:
    peer.produce(batch(*(b"%d" % number for number in range(5))))
    peer.subscribe(type=kind)
    (told,) = peer.say("FLOW", consumer_id=0, permits=10)
    place = {key: told[1]["message_id"][key] for key in ("ledger_id", "entry_id")}
    # Set bits are still open: messages 0, 2 and 4 stay.
    ids = [{**place, "ack_set": [0b10101]}]
    (answer,) = peer.say("ACK", consumer_id=0, ack_type=INDIVIDUAL, message_ids=ids, request_id=9)
    assert (answer[0], answer[1]["error"]) == ("ACK_RESPONSE", None)
    peer.say("FLOW", consumer_id=0, permits=10)
    (again,) = peer.say("REDELIVER_UNACKNOWLEDGED", consumer_id=0)
    assert again[1]["ack_set"] == [0b10101]
    assert again[1]["redelivery_count"] == 1


def test_a_cumulative_acknowledgement_in_a_batch_leaves_what_is_behind(peer: Peer) -> None:
    peer.produce(entry(b"before"), batch(*(b"%d" % number for number in range(5))))
    peer.subscribe(type=0)
    told = peer.say("FLOW", consumer_id=0, permits=10)
    place = {key: told[1][1]["message_id"][key] for key in ("ledger_id", "entry_id")}
    ids = [{**place, "ack_set": [0b11000]}]
    peer.say("ACK", consumer_id=0, ack_type=CUMULATIVE, message_ids=ids)
    peer.say("FLOW", consumer_id=0, permits=10)
    (again,) = peer.say("REDELIVER_UNACKNOWLEDGED", consumer_id=0)
    assert again[1]["ack_set"] == [0b11000]


def test_a_cumulative_acknowledgement_before_the_first_entry_changes_nothing(peer: Peer) -> None:
    """Clients send entry 2^64-1 for the first batch when they acknowledge in the middle of it."""
    peer.produce(entry(b"a"))
    peer.subscribe(type=0)
    (told,) = peer.say("FLOW", consumer_id=0, permits=10)
    ids = [{"ledger_id": told[1]["message_id"]["ledger_id"], "entry_id": (1 << 64) - 1}]
    (answer,) = peer.say("ACK", consumer_id=0, ack_type=CUMULATIVE, message_ids=ids, request_id=3)
    assert answer[1]["error"] is None
    assert len(peer.say("REDELIVER_UNACKNOWLEDGED", consumer_id=0)) == 1


def test_a_message_that_the_topic_never_had_is_refused(peer: Peer) -> None:
    peer.produce(entry(b"a"))
    peer.subscribe()
    ids = [{"ledger_id": 999, "entry_id": 0}]
    (answer,) = peer.say("ACK", consumer_id=0, ack_type=INDIVIDUAL, message_ids=ids, request_id=5)
    assert answer[1]["error"] == 22
    assert "has no such message" in answer[1]["message"]


def test_messages_bear_the_epoch_of_the_last_redelivery(peer: Peer) -> None:
    peer.produce(entry(b"a"))
    peer.subscribe(type=0)
    (told,) = peer.say("FLOW", consumer_id=0, permits=10)
    assert told[1]["consumer_epoch"] == 0
    (again,) = peer.say("REDELIVER_UNACKNOWLEDGED", consumer_id=0, consumer_epoch=4)
    assert again[1]["consumer_epoch"] == 4


def test_a_seek_closes_the_consumers_before_it_is_answered(peer: Peer) -> None:
    peer.produce(entry(b"a"), entry(b"b"))
    peer.subscribe()
    told = peer.say("FLOW", consumer_id=0, permits=10)
    start = {key: told[1][1]["message_id"][key] for key in ("ledger_id", "entry_id")}
    closed, answer = peer.say("SEEK", consumer_id=0, request_id=6, message_id=start)
    assert (closed[0], closed[1]["request_id"]) == ("CLOSE_CONSUMER", FROM_BROKER)
    assert answer[0] == "SUCCESS"
    peer.subscribe()
    assert [each[2] for each in peer.say("FLOW", consumer_id=0, permits=10)] == [entry(b"b")]


def test_who_sought_pauses_before_it_comes_again_and_others_come_at_once(peer: Peer) -> None:
    """A client in C++ whose thread saw the answer late threw the messages away that it had got by
    then: one in a thousand seeks. Pulsar names no address there."""
    peer.produce(entry(b"a"))
    both = [Peer(peer.server, service_url="pulsar://there:1") for _ in range(2)]
    for each in both:
        each.connect()
        each.subscribe()
    (closed, _) = both[0].say("SEEK", consumer_id=0, request_id=6, publish_time=1)
    assert (closed[0], closed[1]["service_url"]) == ("CLOSE_CONSUMER", None)
    both[1].session.deliver()
    (closed,) = both[1].told
    assert (closed[0], closed[1]["service_url"]) == ("CLOSE_CONSUMER", "pulsar://there:1")


@pytest.mark.parametrize(("kind", "subscribed"), [(INDIVIDUAL, SHARED), (CUMULATIVE, FAILOVER)])
def test_what_was_sent_before_a_seek_of_another_connection_is_not_acknowledged(
    peer: Peer, kind: int, subscribed: int
) -> None:
    """As in Pulsar: its consumer is closed by the seek, be it that its client has not heard of it.
    Who moved the subscription lost messages."""
    peer.produce(entry(b"a"), entry(b"b"))
    other = peer.another()
    peer.subscribe(type=subscribed)
    other.subscribe(type=subscribed)
    _, second = [each[1]["message_id"] for each in peer.say("FLOW", consumer_id=0, permits=10)]
    other.say("SEEK", consumer_id=0, request_id=6, message_id={"ledger_id": 0, "entry_id": 0})
    ids = [{key: second[key] for key in ("ledger_id", "entry_id")}]
    ack = {"consumer_id": 0, "ack_type": kind, "message_ids": ids, "request_id": 7}
    told = peer.say("ACK", **ack)
    assert told[0][0] == "ACK_RESPONSE"
    assert told[0][1]["error"] == code_of(errors.AlreadyClosed(detail=""))
    assert names(told[1:]) == ["CLOSE_CONSUMER"]
    peer.subscribe(type=subscribed)
    found = peer.say("FLOW", consumer_id=0, permits=10)
    assert [each[2] for each in found] == [entry(b"a"), entry(b"b")]


def test_a_session_ends_though_one_of_its_producers_cannot_leave_the_queue(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came behind it stayed attached."""
    ids = {"topic": "t", "producer_id": 0, "request_id": 1}
    peer.say("PRODUCER", **ids, access_mode=2)
    other = peer.another()
    other.subscribe()
    assert not other.say("PRODUCER", **ids, access_mode=2)[0][1]["producer_ready"]

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "no queue")

    monkeypatch.setattr(ProducerRegistry, "withdraw", fail)
    other.session.close()
    monkeypatch.undo()
    statistics = (
        peer.server.broker.topic(TopicName.of("t"), create=False).subscriptions["s"].statistics()
    )
    assert statistics["consumers"] == []


def test_who_is_attached_is_told_that_the_topic_is_deleted(peer: Peer) -> None:
    """Producers were told nothing; consumers came again, and made the topic anew by that."""
    import json

    peer.produce(entry(b"a"))
    peer.subscribe()
    arguments = json.dumps({"topic": "t", "force": True})
    told = peer.say("VERB", verb="topics.delete", arguments=arguments, request_id=7)
    assert sorted(names(told)) == ["CLOSE_CONSUMER", "CLOSE_PRODUCER", "VERB_RESPONSE"]
    assert {each[1]["request_id"] for each in told} == {FROM_BROKER, 7}
    # Its client has not heard of it yet.
    assert peer.send(entry(b"b")) == []
    again = [*peer.say("PRODUCER", topic="t", producer_id=0, request_id=8), *peer.subscribe()]
    gone = ("ERROR", code_of(errors.TopicNotFound(detail="")))
    assert [(name, values["error"]) for name, values, _ in again] == [gone, gone]
    assert peer.server.broker.catalogue.state.topics == {}
    # Who wants another topic of the name gets one.
    assert names(peer.produce(entry(b"c"))) == ["SEND_RECEIPT"]
    peer.subscribe()
    assert [each[2] for each in peer.say("FLOW", consumer_id=0, permits=10)] == [entry(b"c")]


def test_a_deletion_is_told_behind_what_was_sent_before(peer: Peer) -> None:
    import json

    peer.say("PRODUCER", topic="t", producer_id=0, request_id=0)
    arguments = json.dumps({"topic": "t", "force": True})
    for number in (1, 2):
        sent = frame_encode("SEND", {"producer_id": 0, "sequence_id": number}, entry(b"a", number))
        peer.session.received(sent)
    told = peer.say("VERB", verb="topics.delete", arguments=arguments, request_id=7)
    assert [each for each in names(told) if each != "VERB_RESPONSE"] == [
        "SEND_RECEIPT", "SEND_RECEIPT", "CLOSE_PRODUCER",
    ]  # fmt: skip
    assert names(peer.say("CLOSE_PRODUCER", producer_id=0, request_id=8)) == ["SUCCESS"]


@pytest.mark.parametrize(
    "again", [{}, {"start_message_id": {"ledger_id": -1 % 2**64, "entry_id": -1 % 2**64}}]
)
def test_a_non_durable_subscription_keeps_where_it_was_moved(
    peer: Peer, again: dict[str, Any]
) -> None:
    """The Go client says where it began when it subscribes again, and got all from there."""
    peer.produce(entry(b"a"), entry(b"b"))
    peer.subscribe(durable=False, type=0, **again)
    told = peer.say("FLOW", consumer_id=0, permits=10)
    start = {key: told[1][1]["message_id"][key] for key in ("ledger_id", "entry_id")}
    peer.say("SEEK", consumer_id=0, request_id=6, message_id=start)
    peer.subscribe(durable=False, type=0, **again)
    assert [each[2] for each in peer.say("FLOW", consumer_id=0, permits=10)] == [entry(b"b")]


def test_a_damaged_entry_is_refused_and_the_connection_goes_on(peer: Peer) -> None:
    peer.produce()
    damaged = bytearray(entry(b"payload"))
    damaged[-1] ^= 1
    (told,) = peer.send(bytes(damaged), 3)
    assert (told[0], told[1]["error"], told[1]["sequence_id"]) == ("SEND_ERROR", 9, 3)
    assert names(peer.send(entry(b"a"), 4)) == ["SEND_RECEIPT"]


@pytest.mark.parametrize("cut", [1, 5, 10, 20])
def test_a_truncated_entry_is_refused(peer: Peer, cut: int) -> None:
    peer.produce()
    (told,) = peer.send(entry(b"payload")[:cut])
    assert (told[0], told[1]["error"]) == ("SEND_ERROR", 9)


def test_a_batch_that_lies_about_its_messages_is_refused(peer: Peer) -> None:
    from pulsarx._pycore.ranges.entry_codec import crc32c

    peer.produce()
    honest = batch(b"a", b"b")
    at = honest.index(b"\x58\x02", 10)  # num_messages_in_batch: 2
    lying = honest[:at] + b"\x58\x03" + honest[at + 2 :]
    lying = lying[:2] + crc32c(lying[6:]).to_bytes(4, "big") + lying[6:]
    (told,) = peer.send(lying)
    assert (told[0], told[1]["error"]) == ("SEND_ERROR", 9)
    assert "holds 2 messages; its metadata says 3" in told[1]["message"]


def test_an_entry_without_a_checksum_is_refused(peer: Peer) -> None:
    peer.produce()
    (told,) = peer.send(entry(b"a")[6:])
    assert (told[0], told[1]["error"]) == ("SEND_ERROR", 9)
    assert "without a checksum" in told[1]["message"]


def test_a_send_of_a_producer_that_there_is_not_ends_the_connection(peer: Peer) -> None:
    with pytest.raises(WireError, match="producer 5"):
        peer.say("SEND", entry(b"a"), producer_id=5, sequence_id=1)
    assert not peer.session.is_open


def test_what_the_connection_had_is_free_when_it_ends(peer: Peer) -> None:
    peer.say("PRODUCER", topic="t", producer_id=0, request_id=0, producer_name="p")
    peer.subscribe(type=0)
    peer.session.close()
    peer.session = peer.server.open_session(peer._hear, lambda: None)
    peer.connect()
    again = peer.say("PRODUCER", topic="t", producer_id=0, request_id=0, producer_name="p")
    assert names(again) == ["PRODUCER_SUCCESS"]
    assert names(peer.subscribe(type=0)) == ["SUCCESS"]


def test_a_refusal_names_its_code(peer: Peer) -> None:
    peer.say("PRODUCER", topic="t", producer_id=0, request_id=0, producer_name="p")
    taken = peer.say("PRODUCER", topic="t", producer_id=1, request_id=2, producer_name="p")
    assert [(each[0], each[1]["error"]) for each in taken] == [("ERROR", 16)]
    peer.subscribe(type=0)
    values = {"topic": "t", "subscription": "s", "consumer_id": 1, "request_id": 2}
    busy = peer.say("SUBSCRIBE", type=0, **values)
    assert [(each[0], each[1]["error"]) for each in busy] == [("ERROR", 5)]


def test_what_compaction_left_is_read_over_a_connection(peer: Peer) -> None:
    peer.say("PRODUCER", topic="t", producer_id=0, request_id=0)
    for number in range(4):
        keyed = (b"%d" % number, {"key": f"k{number % 2}"})
        peer.send(encode_batch([keyed], producer_name="p", publish_time_ms=1000))
    topic = peer.server.broker.topic(TopicName.of("t"))
    topic.compaction.trigger()
    topic.runtime.compactions.wait()
    peer.subscribe(type=EXCLUSIVE, read_compacted=True)
    told = peer.say("FLOW", consumer_id=0, permits=10)
    assert names(told) == ["MESSAGE"] * 2
    assert [each[1]["message_id"]["entry_id"] for each in told] == [2, 3]
    (last,) = peer.say("GET_LAST_MESSAGE_ID", consumer_id=0, request_id=3)
    assert last[1]["message_id"]["entry_id"] == 3


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
def test_what_compaction_left_is_not_shared(peer: Peer, kind: int) -> None:
    """Beside another consumer it was told as an error that nobody knows."""
    (told,) = peer.subscribe(type=kind, read_compacted=True)
    assert (told[0], told[1]["error"]) == ("ERROR", 22)


def test_ranges_of_keys_that_are_none_are_refused(peer: Peer) -> None:
    """It was told as an error that nobody knows."""
    for ranges in ([], [{"start": -(1 << 31), "end": 5}]):
        meta = {"mode": 1, "ranges": ranges}
        (told,) = peer.subscribe(type=KEY_SHARED, key_shared_meta=meta)
        assert (told[0], told[1]["error"]) == ("ERROR", 22)


# What clients of Pulsar ask for besides -----------------------------------------------------------


def test_a_producer_of_a_terminated_topic_is_closed_and_refused_when_it_comes_again(
    peer: Peer,
) -> None:
    """The Go client heeds no other answer, and waited until its send had timed out."""
    peer.produce(entry(b"a"))
    peer.say("VERB", verb="topics.terminate", arguments='{"topic": "t"}', request_id=9)
    told = peer.send(entry(b"b"), sequence_id=2) + peer.say("PING")
    assert names(told) == ["CLOSE_PRODUCER", "PONG"]
    (told_again,) = peer.say("PRODUCER", topic="t", producer_id=0, request_id=10)
    assert (told_again[0], told_again[1]["error"]) == ("ERROR", 15)


def test_a_lookup_leads_to_the_address_of_the_connection(peer: Peer) -> None:
    (told,) = peer.say("LOOKUP", topic="t", request_id=4)
    assert (told[1]["response"], told[1]["error"]) == (2, 22)  # this one has none
    other = Peer(peer.server, service_url="pulsar://there:1")
    other.connect()
    (told,) = other.say("LOOKUP", topic="t", request_id=4)
    assert told[1]["service_url"] == "pulsar://there:1"
    assert (told[1]["response"], told[1]["authoritative"]) == (1, True)
    (told,) = other.say("LOOKUP", topic="t", request_id=4, listener="x")
    assert (told[1]["response"], told[1]["error"]) == (2, 6)
    assert told[1]["message"] == "the broker do not have x listener"
    (told,) = other.say("LOOKUP", topic="a://b", request_id=4)
    assert (told[1]["response"], told[1]["error"]) == (2, 22)


def test_the_topics_of_a_namespace_are_told(peer: Peer) -> None:
    for name in ("b", "a"):
        peer.say("PRODUCER", topic=name, producer_id=ord(name), request_id=0)
    (told,) = peer.say("GET_TOPICS_OF_NAMESPACE", namespace="public/default", request_id=4)
    assert told[1]["topics"] == [f"persistent://public/default/{name}" for name in "ab"]
    (told,) = peer.say("GET_TOPICS_OF_NAMESPACE", namespace="public/default", request_id=4, mode=1)
    assert told[1]["topics"] == []
    (told,) = peer.say("GET_TOPICS_OF_NAMESPACE", namespace="no/such", request_id=4)
    assert told[1]["topics"] == []
    (told,) = peer.say("GET_TOPICS_OF_NAMESPACE", namespace="public/default", request_id=4, mode=9)
    assert told[:1] == ("ERROR",) and told[1]["error"] == 22


def test_a_consumer_s_statistics_are_told(peer: Peer) -> None:
    peer.produce(entry(b"a"), entry(b"b"))
    peer.subscribe(consumer_name="me")
    peer.say("FLOW", consumer_id=0, permits=5)
    (told,) = peer.say("CONSUMER_STATS", consumer_id=0, request_id=4)
    values = {key: told[1][key] for key in ("consumer_name", "type", "backlog", "blocked")}
    assert values == {"consumer_name": "me", "type": "Shared", "backlog": 2, "blocked": False}
    assert (told[1]["available_permits"], told[1]["unacked_messages"]) == (3, 2)
    (told,) = peer.say("CONSUMER_STATS", consumer_id=9, request_id=4)
    assert told[1]["error"] == code_of(errors.AlreadyClosed(detail="x"))


def test_with_the_last_id_comes_the_mark_delete_position(peer: Peer) -> None:
    told = peer.produce(entry(b"a"), batch(b"b", b"c"))
    first = told[0][1]["message_id"]
    peer.subscribe()
    peer.say("FLOW", consumer_id=0, permits=5)
    peer.say("ACK", consumer_id=0, ack_type=INDIVIDUAL, message_ids=[first])
    (told,) = peer.say("GET_LAST_MESSAGE_ID", consumer_id=0, request_id=4)
    assert (told[1]["message_id"]["entry_id"], told[1]["message_id"]["batch_index"]) == (1, 1)
    assert told[1]["mark_delete"]["entry_id"] == 0


def test_a_producer_may_bring_the_first_subscription_of_its_topic(peer: Peer) -> None:
    peer.say("PRODUCER", topic="t", producer_id=0, request_id=0, initial_subscription="first")
    topic = peer.server.broker.topic(TopicName.of("t"))
    assert [each.name for each in topic.durable_subscriptions()] == ["first"]


def test_a_cumulative_acknowledgement_on_a_shared_subscription_is_not_allowed(peer: Peer) -> None:
    """It was told as an error that nobody knows."""
    (stored,) = peer.produce(entry(b"a"))
    peer.subscribe()
    ids = [stored[1]["message_id"]]
    ack = {"consumer_id": 0, "ack_type": CUMULATIVE, "message_ids": ids, "request_id": 5}
    (told,) = peer.say("ACK", **ack)
    assert (told[0], told[1]["error"]) == ("ACK_RESPONSE", 22)


def test_a_producer_that_comes_again_takes_the_place_of_the_one_before(peer: Peer) -> None:
    """A connection that was cut may be missed by the broker later than its client is back."""
    (told,) = peer.say("PRODUCER", topic="t", producer_id=0, request_id=0, user_provided_name=False)
    generated = told[1]["producer_name"]
    again = {"topic": "t", "producer_id": 0, "request_id": 1, "producer_name": generated}
    other = peer.another()
    (told,) = other.say("PRODUCER", **again, user_provided_name=False, epoch=0)
    assert (told[0], told[1]["error"]) == ("ERROR", 16)  # it is not that one, come again
    (told,) = other.say("PRODUCER", **again, user_provided_name=False, epoch=1)
    assert told[0] == "PRODUCER_SUCCESS"
    assert names(other.send(entry(b"x"))) == ["SEND_RECEIPT"]
    assert names(peer.say("PING")) == ["CLOSE_PRODUCER", "PONG"]

    named = {"topic": "u", "producer_id": 1, "request_id": 1, "producer_name": "mine"}
    assert names(peer.say("PRODUCER", **named)) == ["PRODUCER_SUCCESS"]
    (told,) = other.say("PRODUCER", **named, epoch=1)
    assert (told[0], told[1]["error"]) == ("ERROR", 16)  # anybody may choose that name
    assert names(peer.say("PRODUCER", **named, epoch=1)) == ["PRODUCER_SUCCESS"]
    peer.session.lose()
    assert names(other.say("PRODUCER", **named, epoch=2)) == ["PRODUCER_SUCCESS"]


def test_what_is_refused_for_good_is_a_checksum_error_to_clients_in_cpp() -> None:
    """For any other code they connect anew and send the message again, for ever."""
    with pulsarx.Client("memory:", durability="os") as client:
        client.admin.namespaces.set_delayed_delivery_policies("public/default", True, 1000, 1000)
        server = serving(client)
        late = encode_entry(
            b"x", producer_name="p", sequence_id=1, publish_time_ms=1000, deliver_at_ms=9000
        )
        for version, code in (("Pulsar-CPP-v4.2.0", 9), ("Pulsar-Java-v4.0", 22)):
            peer = Peer(server)
            peer.say("CONNECT", client_version=version, protocol_version=20)
            (told,) = peer.produce(late)
            assert (told[0], told[1]["error"]) == ("SEND_ERROR", code)
        server.close()


def test_delivering_waits_for_room(peer: Peer) -> None:
    peer.produce(entry(b"a"), entry(b"b"), entry(b"c"))
    room: list[bool] = []
    other = Peer(peer.server, has_room=lambda: room.pop(0) if room else False)
    other.connect()
    other.subscribe()
    room[:] = [True, False]
    assert names(other.say("FLOW", consumer_id=0, permits=5)) == ["MESSAGE"]
    assert names(other.say("PING")) == ["PONG"]
    room[:] = [True] * 9
    other.session.deliver()
    assert [told[0] for told in other.told] == ["MESSAGE"] * 2


def test_so_much_may_be_on_its_way_to_the_disk() -> None:
    with pulsarx.Client("memory:", durability="sync") as client:
        peer = Peer(serving(client))
        peer.connect()
        peer.session.producers.in_flight.size_max = 500
        peer.say("PRODUCER", topic="t", producer_id=0, request_id=0)
        with peer.holding_callbacks():
            for number in range(3):
                frame = {"producer_id": 0, "sequence_id": number}
                assert not peer.session.is_full
                # Two, as the thread that reads flushes for a single one.
                peer.session.received(2 * frame_encode("SEND", frame, entry(b"x" * 100)))
            assert peer.session.is_full
            peer.woken.clear()
        assert not peer.session.is_full
        assert peer.woken.is_set()
        peer.server.close()


def test_a_verb_answers_what_it_answers_in_process(peer: Peer) -> None:
    arguments = '{"topic": "u", "partitions": 3}'
    (told,) = peer.say("VERB", request_id=1, verb="topics.ensure", arguments=arguments)
    expected = '{"topic":"persistent://public/default/u","partitions":3,"created":true}'
    assert told[1]["result"] == expected
    (count,) = peer.say("PARTITIONED_METADATA", topic="u", request_id=2)
    assert count[1]["partitions"] == 3
    (told,) = peer.say("VERB", request_id=1, verb="topics.stats", arguments='{"topic": "no"}')
    assert told[1]["error"] == errors.TopicNotFound.__name__
    (told,) = peer.say("VERB", request_id=1, verb="topics.stats", arguments="{")
    assert told[1]["error"] == "ValueError"


def test_an_error_does_not_overtake_receipts(tmp_path: Path) -> None:
    """It went ahead of what had been sent before it and was not flushed yet; a client that is
    answered out of order gives up the connection."""
    with pulsarx.Client(tmp_path / "data") as client:
        peer = Peer(serving(client))
        peer.connect()
        peer.produce()
        damaged = bytearray(entry(b"payload"))
        damaged[-1] ^= 1
        with peer.holding_callbacks():
            for number, each in enumerate([entry(b"a"), bytes(damaged), entry(b"b")]):
                sent = {"producer_id": 0, "sequence_id": number}
                peer.session.received(frame_encode("SEND", sent, each))
        told = [(each[0], each[1]["sequence_id"]) for each in peer.told]
        assert told == [("SEND_RECEIPT", 0), ("SEND_ERROR", 1), ("SEND_RECEIPT", 2)]
        peer.server.close()


def test_a_consumer_that_the_broker_shuts_is_told(peer: Peer) -> None:
    """It was not: its client waited for ever."""
    peer.produce(entry(b"a"))
    peer.subscribe()
    peer.woken.clear()
    peer.server.broker.topic(TopicName.of("t"), create=False).unsubscribe("s")
    assert peer.woken.is_set()
    told, answer = peer.say("PING")
    assert (told[0], told[1]["consumer_id"], answer[0]) == ("CLOSE_CONSUMER", 0, "PONG")
    assert names(peer.say("FLOW", consumer_id=0, permits=1)) == []


def test_a_read_that_fails_closes_the_one_consumer_and_says_why(tmp_path: Path) -> None:
    """It ended the connection, with everything else on it."""
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    with pulsarx.Client(tmp_path / "data", broker_options=options) as client:
        for topic in ("t", "u"):
            producer = client.create_producer(topic)
            for number in range(6):
                producer.send(b"%d" % number)
    with pulsarx.Client(tmp_path / "data", broker_options=options) as client:
        peer = Peer(serving(client))
        peer.connect()
        peer.subscribe()
        other = {"subscription": "s", "consumer_id": 1, "type": SHARED}
        peer.say("SUBSCRIBE", topic="u", initial_position=EARLIEST, request_id=2, **other)
        first = peer.say("FLOW", consumer_id=1, permits=1)
        with fault_plan() as plan:
            plan.fail("open", error=errno.EMFILE, sticky=True)
            told = peer.say("FLOW", consumer_id=0, permits=10)
            assert names(told)[-1] == "CLOSE_CONSUMER"
            assert told[-1][1]["consumer_id"] == 0
            (refused,) = peer.subscribe()
            assert (refused[0], refused[1]["error"]) == ("ERROR", 2)
            assert "Too many open files" in refused[1]["message"]
        assert names(first + peer.say("FLOW", consumer_id=1, permits=10)) == ["MESSAGE"] * 6
        # Whoever tries again goes on where it was.
        assert names(peer.subscribe()) == ["SUCCESS"]
        assert names(peer.say("FLOW", consumer_id=0, permits=10)) == ["MESSAGE"] * 6
        peer.server.close()


def test_a_seek_of_a_non_durable_subscription_holds_for_consumers_on_two_connections(
    peer: Peer,
) -> None:
    """The one that came again first took it along, while the other still held the subscription
    where it had been."""
    peer.produce(entry(b"a"), entry(b"b"))
    other = peer.another()
    values = {"durable": False, "type": SHARED}
    peer.subscribe(**values)
    other.subscribe(**values)
    told = peer.say("FLOW", consumer_id=0, permits=10)
    for each in told:
        place = {key: each[1]["message_id"][key] for key in ("ledger_id", "entry_id")}
        peer.say("ACK", consumer_id=0, ack_type=INDIVIDUAL, message_ids=[place])
    closed, answer = peer.say("SEEK", consumer_id=0, request_id=6, publish_time=0)
    assert (closed[0], answer[0]) == ("CLOSE_CONSUMER", "SUCCESS")
    # The other end has not read its CLOSE_CONSUMER yet.
    peer.subscribe(**values)
    assert names(other.say("PING")) == ["CLOSE_CONSUMER", "PONG"]
    other.subscribe(**values)
    again = peer.say("FLOW", consumer_id=0, permits=10)
    assert [each[2] for each in again] == [entry(b"a"), entry(b"b")]


def test_a_seek_of_a_non_durable_subscription_is_forgotten_when_all_have_heard_of_it(
    peer: Peer,
) -> None:
    peer.produce(entry(b"a"), entry(b"b"))
    other = peer.another()
    values = {"durable": False, "type": SHARED}
    for each in (peer, other):
        each.subscribe(**values)
    peer.say("SEEK", consumer_id=0, request_id=6, publish_time=0)
    other.say("PING")
    peer.subscribe(**values)
    other.session.close()
    peer.say("CLOSE_CONSUMER", consumer_id=0, request_id=7)
    latest = {"topic": "t", "subscription": "s", "consumer_id": 0, "request_id": 8}
    peer.say("SUBSCRIBE", **latest, **values)
    assert peer.say("FLOW", consumer_id=0, permits=10) == []


def test_acknowledging_many_ids_of_a_large_batch_costs_what_their_ack_sets_do(peer: Peer) -> None:
    """Each message of the batch was looked up in the whole ack set, which an id may bring in any
    length: a single command of 5 MiB kept the broker busy for hours."""
    count = 20_000
    peer.produce(batch(*[b""] * count))
    peer.subscribe()
    (told,) = peer.say("FLOW", consumer_id=0, permits=count)
    place = {key: told[1]["message_id"][key] for key in ("ledger_id", "entry_id")}
    ids = [{**place, "ack_set": [1] * 100_000}] + [{**place, "ack_set": [1]}] * 500
    began = time.thread_time()
    peer.say("ACK", consumer_id=0, ack_type=INDIVIDUAL, message_ids=ids)
    assert time.thread_time() - began < 2
    peer.say("FLOW", consumer_id=0, permits=count)
    (again,) = peer.say("REDELIVER_UNACKNOWLEDGED", consumer_id=0)
    assert again[1]["ack_set"] == [1] + [0] * (count // 64)


# Schemas ------------------------------------------------------------------------------------------

INCOMPATIBLE, NOT_FOUND, NOT_ALLOWED = 18, 11, 22
BYTES = {"name": "Bytes", "data": b"", "type": 0, "properties": []}  # as the Go client says it


class One(Record):
    a = String()


def values_of(schema: Schema[Any]) -> dict[str, Any]:
    return schema_values(schema.schema_info())


def version(number: int) -> bytes:
    return number.to_bytes(8, "big")


def produce(peer: Peer, number: int, **values: Any) -> tuple[str, dict[str, Any]]:
    ((name, told, _),) = peer.say(
        "PRODUCER", topic="t", producer_id=number, request_id=number, **values
    )
    return name, told


def test_a_producer_is_told_the_version_of_its_schema(peer: Peer) -> None:
    assert produce(peer, 1)[1]["schema_version"] == b""
    for number, schema in ((2, AvroSchema(One)), (3, AvroSchema(One))):
        name, told = produce(peer, number, schema=values_of(schema))
        assert (name, told["schema_version"]) == ("PRODUCER_SUCCESS", version(0))
    name, told = produce(peer, 4, schema=values_of(StringSchema()))
    assert (name, told["error"]) == ("ERROR", INCOMPATIBLE)
    assert "a topic keeps its type" in told["message"]


def test_a_malformed_schema_is_incompatible_and_makes_no_topic(peer: Peer) -> None:
    malformed = schema_values(SchemaInfo(SchemaType.AVRO, "", "{"))
    unknown = {**malformed, "type": 99}
    for number, schema in enumerate((malformed, unknown)):
        name, told = produce(peer, number, schema=schema)
        assert (name, told["error"]) == ("ERROR", INCOMPATIBLE)
        ((name, told, _),) = peer.subscribe(type=EXCLUSIVE, schema=schema)
        assert (name, told["error"]) == ("ERROR", INCOMPATIBLE)
    assert not peer.server.broker.catalogue.state.topics


@pytest.mark.parametrize("name", ["x" * 40_000, "a\nb", "\x00", "\x7f"])
def test_names_that_cannot_be_kept_or_shown_are_refused(peer: Peer, name: str) -> None:
    ids = {"topic": "t", "producer_id": 0, "request_id": 0}
    ((answer, told, _),) = peer.say("PRODUCER", **ids, producer_name=name)
    assert (answer, told["error"]) == ("ERROR", NOT_ALLOWED)
    assert "producer name" in told["message"] and len(told["message"]) < 1000
    ((answer, told, _),) = peer.subscribe(consumer_name=name)
    assert (answer, told["error"]) == ("ERROR", NOT_ALLOWED)
    assert "consumer name" in told["message"] and len(told["message"]) < 1000
    assert not peer.server.broker.catalogue.state.topics


@pytest.mark.parametrize("number", [5, 12, 13, 14, 16, 17, 18, 19])
def test_a_schema_of_another_client_is_stored_and_told(peer: Peer, number: int) -> None:
    schema = {"name": "n", "data": b"", "type": number, "properties": []}
    assert produce(peer, 1, schema=schema)[1]["schema_version"] == version(0)
    ((_, told, _),) = peer.say("GET_SCHEMA", request_id=7, topic="t")
    assert told["schema"] == schema
    other = {**schema, "type": 5 if number != 5 else 12}
    assert produce(peer, 2, schema=other)[1]["error"] == INCOMPATIBLE


def test_a_pair_with_its_key_outside_is_stored_told_and_not_misread(peer: Peer) -> None:
    schema = values_of(KeyValueSchema(StringSchema(), AvroSchema(One)))
    for each in schema["properties"]:
        if each["key"] == "kv.encoding.type":
            each["value"] = "SEPARATED"
    assert produce(peer, 1, schema=schema)[1]["schema_version"] == version(0)
    ((_, told, _),) = peer.say("GET_SCHEMA", request_id=7, topic="t")
    assert schema_of(told["schema"]) == schema_of(schema)
    assert {"key": "kv.encoding.type", "value": "SEPARATED"} in told["schema"]["properties"]
    writer = schema_of(schema)
    for reading in (AutoConsumeSchema(), KeyValueSchema(StringSchema(), AvroSchema(One))):
        with pytest.raises(errors.OperationNotSupported, match="SEPARATED"):
            reading.decoder(writer)


def test_a_schema_is_told_by_its_version_or_as_the_last_one(peer: Peer) -> None:
    pair = KeyValueSchema(StringSchema(), AvroSchema(One))
    produce(peer, 1, schema=values_of(pair))
    for asked in ({"schema_version": version(0)}, {}):
        ((name, told, _),) = peer.say("GET_SCHEMA", request_id=7, topic="t", **asked)
        assert (name, told["schema_version"]) == ("GET_SCHEMA_RESPONSE", version(0))
        assert schema_of(told["schema"]) == pair.schema_info()
    for topic, number in (("t", 5), ("gone", 0)):
        ((_, told, _),) = peer.say(
            "GET_SCHEMA", request_id=7, topic=topic, schema_version=version(number)
        )
        assert told["error"] == NOT_FOUND and told["schema"] is None


def test_a_schema_is_made_without_a_producer(peer: Peer) -> None:
    def make(schema: dict[str, Any]) -> dict[str, Any]:
        ((name, told, _),) = peer.say(
            "GET_OR_CREATE_SCHEMA", request_id=7, topic="t", schema=schema
        )
        assert name == "GET_OR_CREATE_SCHEMA_RESPONSE"
        return told

    assert make(values_of(Int32Schema()))["error"] == NOT_FOUND
    assert not peer.server.broker.catalogue.state.topics
    produce(peer, 1)
    assert make(values_of(Int32Schema()))["schema_version"] == version(0)
    assert make(values_of(Int32Schema()))["schema_version"] == version(0)
    assert make(values_of(StringSchema()))["error"] == INCOMPATIBLE
    # As Pulsar: bytes have no version here, whatever the topic has.
    assert make(BYTES)["schema_version"] == b""


def test_a_schema_of_bytes_is_one_as_any_other(peer: Peer) -> None:
    """Clients in Go declare it. As in Pulsar: it is registered, and keeps others away."""
    for number in (1, 2):
        name, told = produce(peer, number, schema=BYTES)
        assert (name, told["schema_version"]) == ("PRODUCER_SUCCESS", version(0))
    ((_, told, _),) = peer.say("GET_SCHEMA", request_id=7, topic="t", schema_version=version(0))
    assert (told["schema"]["type"], told["schema"]["data"]) == (0, b"")
    assert produce(peer, 3, schema=values_of(StringSchema()))[1]["error"] == INCOMPATIBLE
    assert names(peer.subscribe(schema=BYTES)) == ["SUCCESS"]
    # Who declares nothing is let in.
    assert produce(peer, 4)[1]["schema_version"] == b""


def test_a_consumer_of_bytes_reads_what_was_produced_without_a_schema(peer: Peer) -> None:
    """Pulsar refuses it, although it asks for nothing else: table views of the Go client do."""
    produce(peer, 1)
    assert names(peer.subscribe(schema=BYTES)) == ["SUCCESS"]
    ((_, told, _),) = peer.say("GET_SCHEMA", request_id=7, topic="t")
    assert told["error"] == NOT_FOUND


@pytest.mark.parametrize("schema", [StringSchema(), AvroSchema(One)])
def test_a_schema_of_bytes_is_refused_where_there_is_another(
    peer: Peer, schema: Schema[Any]
) -> None:
    produce(peer, 1, schema=values_of(schema))
    assert produce(peer, 2, schema=BYTES)[1]["error"] == INCOMPATIBLE
    ((_, told, _),) = peer.subscribe(schema=BYTES)
    assert told["error"] == INCOMPATIBLE


def test_messages_of_a_schema_of_bytes_are_read_in_process(peer: Peer) -> None:
    """By those that want bytes, and those that read any schema."""
    with pulsarx.Client("memory:") as client:
        made = Peer(serving(client))
        made.connect()
        produce(made, 0, schema=BYTES)
        made.send(
            encode_entry(
                b"a", producer_name="p", sequence_id=1, publish_time_ms=1, schema_version=version(0)
            )
        )
        for schema in (BytesSchema(), AutoConsumeSchema()):
            with client.create_reader("t", pulsarx.MessageId.earliest, schema=schema) as reader:
                assert reader.read_next(60_000).value() == b"a"
        made.server.close()


@pytest.mark.parametrize("is_any", [False, True])
def test_a_consumer_that_reads_any_schema_does_not_keep_another_from_bringing_one(
    peer: Peer, is_any: bool
) -> None:
    first = {"schema": values_of(AutoConsumeSchema())} if is_any else {}
    peer.subscribe(type=EXCLUSIVE, **first)
    ((name, told, _),) = peer.say(
        "SUBSCRIBE",
        topic="t",
        subscription="other",
        consumer_id=9,
        request_id=9,
        type=EXCLUSIVE,
        schema=values_of(StringSchema()),
    )
    assert name == ("SUCCESS" if is_any else "ERROR")
    if not is_any:
        assert told["error"] == INCOMPATIBLE


# Policies ---------------------------------------------------------------------------------------


@contextmanager
def clocked(**options: Any) -> Iterator[tuple[Peer, pulsarx.Client, pulsarx.ManualClock]]:
    clock = pulsarx.ManualClock()
    with pulsarx.Client("memory:", durability="os", clock=clock, **options) as client:
        made = Peer(serving(client))
        made.connect()
        yield made, client, clock
        made.server.close()


def entry_of(publish_time_ms: int, payload: bytes = b"m", deliver_at_ms: int = 0) -> bytes:
    return encode_entry(
        payload, producer_name="p", sequence_id=1, publish_time_ms=publish_time_ms,
        deliver_at_ms=deliver_at_ms,
    )  # fmt: skip


@pytest.mark.parametrize("entries", [2, 50_000])
def test_expiry_stops_at_the_first_young_entry_whatever_comes_behind(entries: int) -> None:
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=entries)
    with clocked(broker_options=options) as (peer, client, clock):
        client.create_producer("t").close()
        client.admin.topics.create_subscription("t", "s", pulsarx.MessageId.earliest)
        now_ms = clock.now_ms()
        old, young = now_ms - 100_000, now_ms - 10_000
        times = (old, old, old, young, old, old, old, old, young, old)
        peer.produce(*(entry_of(each, b"%d" % at) for at, each in enumerate(times)))
        client.admin.topics.set_message_ttl("t", 50)
        stats = client.admin.topics.stats("t")["subscriptions"]["s"]
        assert (stats["msg_backlog"], stats["total_expired"]) == (7, 3)
        consumer = client.subscribe("t", "s")
        assert [consumer.receive(1000).data() for _ in range(2)] == [b"3", b"8"]
        with pytest.raises(errors.Timeout):
            consumer.receive(0)
        stats = client.admin.topics.stats("t")["subscriptions"]["s"]
        assert (stats["msg_backlog"], stats["total_expired"]) == (2, 8)


def test_what_was_acknowledged_before_them_does_not_keep_old_entries() -> None:
    """expire_messages searched from the beginning of the topic, and stopped at any young message,
    also at one that was acknowledged."""
    with clocked() as (peer, client, clock):
        consumer = client.subscribe("t", "s")
        now_ms = clock.now_ms()
        peer.produce(entry_of(now_ms), *[entry_of(now_ms - 100_000)] * 3)
        consumer.acknowledge(consumer.receive(60_000))
        client.admin.topics.expire_messages("t", "s", 50)
        stats = client.admin.topics.stats("t")["subscriptions"]["s"]
        assert (stats["msg_backlog"], stats["total_expired"]) == (0, 3)


@pytest.mark.parametrize(
    ("policy", "code"), [("producer_request_hold", 7), ("producer_exception", 8)]
)
def test_a_producer_above_the_backlog_quota_is_told_so(policy: str, code: int) -> None:
    with clocked() as (peer, client, clock):
        client.subscribe("t", "s").close()
        peer.produce(entry_of(clock.now_ms(), bytes(5000)))
        client.admin.topics.set_backlog_quota("t", limit_size=1000, policy=policy)
        told = peer.send(entry_of(clock.now_ms()))
        assert [(each[0], each[1]["error"]) for each in told] == [("SEND_ERROR", code)]
        told = peer.say("PRODUCER", topic="t", producer_id=1, request_id=2)
        assert [(each[0], each[1]["error"]) for each in told] == [("ERROR", code)]
        client.admin.topics.skip_all_messages("t", "s")
        told = peer.say("PRODUCER", topic="t", producer_id=2, request_id=3)
        assert names(told) == ["PRODUCER_SUCCESS"]
        told = peer.say("SEND", entry_of(clock.now_ms()), producer_id=2, sequence_id=1)
        assert names(told) == ["SEND_RECEIPT"]


def test_a_producer_above_the_publish_rate_gets_its_receipts_later_and_in_order() -> None:
    with clocked() as (peer, client, clock):
        peer.produce()
        client.admin.topics.set_publish_rate("t", msgs=2)
        told = [each for number in range(5) for each in peer.send(entry_of(0), number)]
        assert [each[1]["sequence_id"] for each in told] == [0, 1]
        clock.advance(0.5)
        assert names(peer.say("PING")) == ["PONG"]
        clock.advance(0.5)
        assert peer.woken.is_set()
        peer.session.deliver()
        peer.server.completions.wait()
        told, peer.told = peer.told, []
        assert [each[1]["sequence_id"] for each in told] == [2, 3]
        client.admin.topics.remove_publish_rate("t")
        peer.session.deliver()
        peer.server.completions.wait()
        assert [each[1]["sequence_id"] for each in peer.told] == [4]


def test_a_higher_publish_rate_holds_for_what_waits() -> None:
    with clocked() as (peer, client, clock):
        peer.produce()
        client.admin.topics.set_publish_rate("t", bytes=1)  # an entry is paid for minutes
        for number in range(2):
            peer.send(entry_of(0), number)
        client.admin.topics.set_publish_rate("t", bytes=10)
        peer.session.deliver()
        assert not peer.told
        peer.woken.clear()
        clock.advance(20)
        assert peer.woken.is_set()
        peer.session.deliver()
        peer.server.completions.wait()
        assert names(peer.told) == ["SEND_RECEIPT"]


def test_closing_a_producer_publishes_what_waited_for_the_rate() -> None:
    with clocked() as (peer, client, _):
        peer.produce()
        client.admin.topics.set_publish_rate("t", msgs=1)
        for number in range(3):
            peer.send(entry_of(0), number)
        told = peer.say("CLOSE_PRODUCER", producer_id=0, request_id=5)
        assert names(told) == ["SEND_RECEIPT", "SEND_RECEIPT", "SUCCESS"]
        assert client.admin.topics.stats("t")["messages"] == 3


def test_a_consumer_gets_what_waited_for_the_dispatch_rate() -> None:
    with clocked() as (peer, client, clock):
        peer.produce(*(entry_of(clock.now_ms()) for _ in range(3)))
        client.admin.topics.set_dispatch_rate("t", msgs=2)
        peer.subscribe()
        assert names(peer.say("FLOW", consumer_id=0, permits=10)) == ["MESSAGE"] * 2
        peer.woken.clear()
        clock.advance(1)
        assert peer.woken.is_set()
        peer.session.deliver()
        assert names(peer.told) == ["MESSAGE"]


def test_an_entry_is_not_delayed_for_longer_than_allowed() -> None:
    with clocked() as (peer, client, clock):
        now_ms = clock.now_ms()
        peer.produce()
        client.admin.topics.set_delayed_delivery_policies("t", True, 1000, 60_000)
        told = peer.send(entry_of(now_ms, deliver_at_ms=now_ms + 60_001))
        assert names(told) == ["SEND_ERROR"]
        assert "60000 ms" in told[0][1]["message"]
        told = peer.send(entry_of(now_ms, deliver_at_ms=now_ms + 60_000))
        assert names(told) == ["SEND_RECEIPT"]
