"""Non-persistent topics over a connection: what a broker of Pulsar 4.2 answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from peer import Peer, batch, entry, names

from pulsarx._pycore.ranges.entry_codec import encode_batch
from pulsarx.wire.commands import (
    CUMULATIVE,
    EXCLUSIVE,
    FAILOVER,
    FROM_BROKER,
    INDIVIDUAL,
    KEY_SHARED,
    SHARED,
)
from pulsarx.wire.server_errors import NOT_ALLOWED

TOPIC = "non-persistent://public/default/t"
NOWHERE = {"ledger_id": 0, "entry_id": 0}


def produce(peer: Peer) -> None:
    assert names(peer.say("PRODUCER", topic=TOPIC, producer_id=0, request_id=0)) == [
        "PRODUCER_SUCCESS"
    ]


def subscribe(peer: Peer, permits: int = 10, **values: Any) -> None:
    assert names(peer.subscribe(topic=TOPIC, **values))[0] == "SUCCESS"
    if permits:
        peer.say("FLOW", consumer_id=0, permits=permits)


def delivered(told: list[Any]) -> list[bytes]:
    return [each[2] for each in told if each[0] == "MESSAGE"]


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED])
def test_what_is_published_goes_to_who_is_there(peer: Peer, kind: int) -> None:
    produce(peer)
    assert delivered(peer.send(entry(b"nobody"))) == []
    subscribe(peer, type=kind)
    told = peer.send(entry(b"a")) + peer.send(batch(b"b", b"c"))
    assert delivered(told) == [entry(b"a"), batch(b"b", b"c")]
    for name, values, _ in told:
        if name in ("SEND_RECEIPT", "MESSAGE"):
            place = values["message_id"]
            assert (place["ledger_id"], place["entry_id"], place["partition"]) == (0, 0, -1)


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED])
def test_what_there_is_no_permit_for_is_dropped(peer: Peer, kind: int) -> None:
    produce(peer)
    subscribe(peer, permits=0, type=kind)
    assert delivered(peer.send(entry(b"a"))) == []
    peer.say("FLOW", consumer_id=0, permits=2)
    found = [delivered(peer.send(entry(each))) for each in (b"b", b"c", b"d")]
    assert found == [[entry(b"b")], [entry(b"c")], []]
    stats = {"topic": TOPIC}
    told = peer.say("VERB", verb="topics.stats", arguments=json.dumps(stats), request_id=3)
    figures = json.loads(told[0][1]["result"])
    assert figures["subscriptions"]["s"]["msg_drop_count"] == 2
    assert figures["publishers"][0]["msg_drop_count"] == 2


def test_a_permit_is_a_message_and_any_lets_a_batch_pass(peer: Peer) -> None:
    produce(peer)
    subscribe(peer, permits=1)
    assert delivered(peer.send(batch(b"a", b"b", b"c"))) == [batch(b"a", b"b", b"c")]
    peer.say("FLOW", consumer_id=0, permits=2)  # which makes up for the batch
    assert delivered(peer.send(entry(b"d"))) == []
    peer.say("FLOW", consumer_id=0, permits=1)
    assert delivered(peer.send(entry(b"e"))) == [entry(b"e")]


def test_a_batch_of_several_keys_is_split_among_those_of_key_shared(peer: Peer) -> None:
    produce(peer)
    subscribe(peer, 1, type=KEY_SHARED, consumer_name="a")
    other = peer.another()
    subscribe(other, 1, type=KEY_SHARED, consumer_name="b")
    keyed: list[Any] = [(b"%d" % each, {"key": f"k{each}"}) for each in range(16)]
    sent = peer.send(encode_batch(keyed, producer_name="p", publish_time_ms=1000))
    sets = []
    for each in (peer, other):
        told = sent if each is peer else each.say("PING")
        (found,) = [values for name, values, _ in told if name == "MESSAGE"]
        sets.append(found["ack_set"][0])
    assert sets[0] & sets[1] == 0 and sets[0] | sets[1] == (1 << 16) - 1


def test_acknowledgements_and_redeliveries_are_taken_and_do_nothing(peer: Peer) -> None:
    produce(peer)
    subscribe(peer, type=SHARED)
    peer.send(entry(b"a"))
    for kind in (INDIVIDUAL, CUMULATIVE):
        for place in (NOWHERE, {"ledger_id": 7, "entry_id": 9}):
            ack = {"consumer_id": 0, "ack_type": kind, "message_ids": [place], "request_id": 5}
            ((name, told, _),) = peer.say("ACK", **ack)
            assert (name, told["error"]) == ("ACK_RESPONSE", None)
    for ids in ([], [NOWHERE]):
        assert peer.say("REDELIVER_UNACKNOWLEDGED", consumer_id=0, message_ids=ids) == []


def test_a_seek_is_taken_and_begins_the_consumer_anew(peer: Peer) -> None:
    """Pulsar takes it and does nothing; its client has given up what it had permits for."""
    subscribe(peer)
    told = peer.say("SEEK", consumer_id=0, request_id=6, publish_time=1000)
    assert names(told) == ["CLOSE_CONSUMER", "SUCCESS"]
    subscribe(peer)
    produce(peer)
    assert delivered(peer.send(entry(b"a"))) == [entry(b"a")]


def test_what_needs_messages_that_are_kept_is_refused(peer: Peer) -> None:
    subscribe(peer)
    ((name, told, _),) = peer.say("GET_LAST_MESSAGE_ID", consumer_id=0, request_id=6)
    assert (name, told["error"]) == ("ERROR", NOT_ALLOWED)
    values = {"topic": TOPIC, "subscription": "r", "consumer_id": 1, "request_id": 7}
    ((name, told, _),) = peer.say("SUBSCRIBE", type=EXCLUSIVE, read_compacted=True, **values)
    assert (name, told["error"]) == ("ERROR", NOT_ALLOWED)


def test_a_reader_gets_what_comes_from_now_on(peer: Peer) -> None:
    produce(peer)
    peer.send(entry(b"before"))
    earliest = {"ledger_id": (1 << 64) - 1, "entry_id": (1 << 64) - 1}
    subscribe(peer, type=EXCLUSIVE, durable=False, start_message_id=earliest)
    assert delivered(peer.send(entry(b"a"))) == [entry(b"a")]


def test_a_producer_may_name_a_first_subscription_as_its_dead_letters_do(peer: Peer) -> None:
    values = {"topic": TOPIC, "producer_id": 0, "request_id": 0, "initial_subscription": "i"}
    assert names(peer.say("PRODUCER", **values)) == ["PRODUCER_SUCCESS"]


def test_partitions_have_their_number(peer: Peer) -> None:
    arguments = json.dumps({"topic": TOPIC, "partitions": 3})
    peer.say("VERB", verb="topics.create_partitioned_topic", arguments=arguments, request_id=7)
    (told,) = peer.say("PARTITIONED_METADATA", topic=TOPIC, request_id=2)
    assert told[1]["partitions"] == 3
    part = f"{TOPIC}-partition-1"
    peer.say("PRODUCER", topic=part, producer_id=0, request_id=0)
    peer.subscribe(topic=part)
    peer.say("FLOW", consumer_id=0, permits=1)
    told = peer.send(entry(b"a"))
    assert {each[1]["message_id"]["partition"] for each in told} == {1}


def test_asking_for_partitions_makes_no_topic_without_them(peer: Peer) -> None:
    """It did, also where the client was refused then. As in Pulsar it is made when it is used."""

    def ask(create: bool) -> Any:
        values = {"topic": TOPIC, "request_id": 2, "auto_creation_enabled": create}
        return peer.say("PARTITIONED_METADATA", **values)[0][1]

    assert ask(False)["error"] == 11
    assert (ask(True)["error"], ask(True)["partitions"]) == (None, 0)
    assert ask(False)["error"] == 11
    produce(peer)
    assert ask(False)["error"] is None
    (told,) = peer.say("GET_TOPICS_OF_NAMESPACE", namespace="public/default", request_id=4, mode=1)
    assert told[1]["topics"] == [TOPIC]


def test_who_is_attached_is_told_of_the_deletion(peer: Peer) -> None:
    produce(peer)
    subscribe(peer)
    arguments = json.dumps({"topic": TOPIC, "force": True})
    told = peer.say("VERB", verb="topics.delete", arguments=arguments, request_id=7)
    assert sorted(names(told)) == ["CLOSE_CONSUMER", "CLOSE_PRODUCER", "VERB_RESPONSE"]
    assert {each[1]["request_id"] for each in told} == {FROM_BROKER, 7}
