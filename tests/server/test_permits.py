"""Facts about what permits let pass over a connection: batches, whole, once, and counted."""

from __future__ import annotations

from typing import Any

import pytest
from peer import Peer, batch, entry, names, serving

import pulsarx
from pulsarx._pycore.ranges.entry_codec import encode_batch
from pulsarx.wire.commands import EXCLUSIVE, INDIVIDUAL, KEY_SHARED, SHARED


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
def test_any_permit_lets_a_batch_pass_whole_and_once(peer: Peer, kind: int) -> None:
    """As in Pulsar. It came in parts, as many as permits said, each with the whole entry: a batch
    of 1,000 to a client with a queue of 1 took 1,000 times its bytes."""
    sent = [batch(*(b"%d" % number for number in range(10))) for _ in range(2)]
    peer.produce(*sent)
    peer.subscribe(type=kind)
    (told,) = peer.say("FLOW", consumer_id=0, permits=1)
    assert (told[2], told[1]["ack_set"]) == (sent[0], [])
    assert names(peer.say("FLOW", consumer_id=0, permits=9)) == []  # of 1 - 10 + 9 none is left
    (told,) = peer.say("FLOW", consumer_id=0, permits=1)
    assert (told[2], told[1]["ack_set"]) == (sent[1], [])


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
def test_what_is_open_of_a_batch_comes_again_at_once(peer: Peer, kind: int) -> None:
    peer.produce(batch(*(b"%d" % number for number in range(10))))
    peer.subscribe(type=kind)
    (told,) = peer.say("FLOW", consumer_id=0, permits=1)
    place = {key: told[1]["message_id"][key] for key in ("ledger_id", "entry_id")}
    ids = [{**place, "ack_set": [0b1111100001]}]
    peer.say("ACK", consumer_id=0, ack_type=INDIVIDUAL, message_ids=ids)
    assert names(peer.say("REDELIVER_UNACKNOWLEDGED", consumer_id=0, message_ids=[place])) == []
    (again,) = peer.say("FLOW", consumer_id=0, permits=10)
    assert again[1]["ack_set"] == [0b1111100001]
    assert again[1]["redelivery_count"] == 1


@pytest.mark.parametrize(
    ("version", "counted"), [("Pulsar-Java-v4.2.4", 5), ("Pulsar-CPP-v4.2.0", 10)]
)
@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, KEY_SHARED])
def test_messages_that_an_ack_set_leaves_out_take_the_permits_that_clients_give_for_them(
    peer: Peer, kind: int, version: str, counted: int
) -> None:
    """Clients in C++ and Go give them, and were sent more than they had room for. That of Java
    does not, and got nothing any more after some thousand."""
    made = Peer(peer.server)
    made.say("CONNECT", client_version=version, protocol_version=20)
    made.produce(batch(*(b"%d" % number for number in range(10))), entry(b"a"))
    made.subscribe(type=kind)
    told = made.say("FLOW", consumer_id=0, permits=11)
    place = {key: told[0][1]["message_id"][key] for key in ("ledger_id", "entry_id")}
    later = {key: told[1][1]["message_id"][key] for key in ("ledger_id", "entry_id")}
    ids = [{**place, "ack_set": [0b1111100000]}, later]
    made.say("ACK", consumer_id=0, ack_type=INDIVIDUAL, message_ids=ids)
    assert names(made.say("REDELIVER_UNACKNOWLEDGED", consumer_id=0)) == []
    assert names(made.say("FLOW", consumer_id=0, permits=1)) == ["MESSAGE"]
    made.send(entry(b"b"))
    assert names(made.say("FLOW", consumer_id=0, permits=counted - 1)) == []
    assert names(made.say("FLOW", consumer_id=0, permits=1)) == ["MESSAGE"]


def test_a_batch_of_several_keys_comes_once_to_each_owner(peer: Peer) -> None:
    """Although each has one permit, and one gave it later."""
    peer.subscribe(type=KEY_SHARED, consumer_name="a")
    other = peer.another()
    other.subscribe(type=KEY_SHARED, consumer_name="b")
    keyed: list[Any] = [(b"%d" % each, {"key": f"k{each}"}) for each in range(48)]
    sent = [encode_batch(keyed, producer_name="p", publish_time_ms=1000) for _ in range(2)]
    peer.produce(sent[0])
    told = [peer.say("FLOW", consumer_id=0, permits=1), other.say("FLOW", consumer_id=0, permits=1)]
    sets = [values["ack_set"][0] for ((_, values, _),) in told]
    assert sets[0] & sets[1] == 0 and sets[0] | sets[1] == (1 << 48) - 1
    for (((_, values, _),), mine), each in zip(
        zip(told, sets, strict=True), (peer, other), strict=True
    ):
        place = {key: values["message_id"][key] for key in ("ledger_id", "entry_id")}
        ids = [{**place, "ack_set": [(1 << 48) - 1 & ~mine]}]
        each.say("ACK", consumer_id=0, ack_type=INDIVIDUAL, message_ids=ids)
    peer.say("FLOW", consumer_id=0, permits=48)
    other.say("FLOW", consumer_id=0, permits=48)
    told = [peer.produce(sent[1]), other.say("PING")]
    found = [values["ack_set"][0] for each in told for name, values, _ in each if name == "MESSAGE"]
    assert found == sets


def test_what_a_consumer_in_process_left_of_a_batch_comes_with_an_ack_set() -> None:
    with pulsarx.Client("memory:") as client:
        kind = pulsarx.ConsumerType.Shared
        consumer = client.subscribe("t", "s", consumer_type=kind, receiver_queue_size=3)
        made = Peer(serving(client))
        made.connect()
        made.subscribe()
        made.produce(batch(*(b"%d" % number for number in range(10))))
        assert consumer.receive(60_000).data() == b"0"
        (told,) = made.say("FLOW", consumer_id=0, permits=1)
        assert told[1]["ack_set"] == [0b1111111000]
        made.server.close()


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, KEY_SHARED])
def test_each_chunk_takes_a_permit(kind: int) -> None:
    """Clients give one for each. A whole message took one, and let in ever more than there was
    room for."""
    with pulsarx.Client(
        "memory:", broker_options=pulsarx.BrokerOptions(max_message_size=1000)
    ) as client:
        made = Peer(serving(client))
        made.connect()
        made.subscribe(type=kind)
        client.create_producer("t", chunking_enabled=True).send(b"x" * 3500)
        chunks = made.say("FLOW", consumer_id=0, permits=1)
        assert len(chunks) > 3
        made.produce(entry(b"a"))
        assert names(made.say("FLOW", consumer_id=0, permits=len(chunks) - 1)) == []
        assert names(made.say("FLOW", consumer_id=0, permits=1)) == ["MESSAGE"]
        made.server.close()


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
@pytest.mark.parametrize("limit", ["consumer", "subscription"])
def test_a_batch_may_go_beyond_what_may_be_unacknowledged(kind: int, limit: str) -> None:
    """As in Pulsar; nothing more comes until half of the limit is acknowledged."""
    options = pulsarx.BrokerOptions(**{f"max_unacked_messages_per_{limit}": 4})
    with pulsarx.Client("memory:", broker_options=options) as client:
        made = Peer(serving(client))
        made.connect()
        made.produce(*(batch(*(b"%d" % number for number in range(10))) for _ in range(2)))
        made.subscribe(type=kind)
        (told,) = made.say("FLOW", consumer_id=0, permits=100)
        assert told[1]["ack_set"] == []
        place = {key: told[1]["message_id"][key] for key in ("ledger_id", "entry_id")}

        def acknowledge(open_bits: int) -> list[str]:
            ids = [{**place, "ack_set": [open_bits]}]
            acks = {"consumer_id": 0, "ack_type": INDIVIDUAL, "message_ids": ids}
            return names(made.say("ACK", **acks))

        assert acknowledge(0b111) == []
        assert acknowledge(0b11) == ["MESSAGE"]
        made.server.close()
