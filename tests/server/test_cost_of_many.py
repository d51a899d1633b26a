"""What a message costs a connection that has many producers and consumers: as much as it costs one
that has two."""

from __future__ import annotations

import pytest
from counted_lines import lines_of
from peer import Peer, entry, names

from pulsarx.wire.commands import EXCLUSIVE, SHARED
from pulsarx.wire.frames import frame_encode

MANY = 200


def publish_one(peer: Peer) -> int:
    """The lines that a message costs, from its SEND until it was sent to its consumer."""
    frame = frame_encode("SEND", {"producer_id": 0, "sequence_id": 1}, entry(b"a"))
    cost = lines_of(lambda: peer.session.received(frame))
    peer.server.completions.wait()
    cost += lines_of(peer.session.deliver)
    assert sorted(names(peer.told)) == ["MESSAGE", "SEND_RECEIPT"]
    peer.told = []
    return cost


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED])
def test_a_message_costs_the_same_beside_many_producers_and_consumers(
    peer: Peer, kind: int
) -> None:
    peer.produce()
    peer.subscribe(type=kind)
    peer.say("FLOW", consumer_id=0, permits=1000)
    publish_one(peer)  # the first one of a topic prepares things, as other threads may
    alone = publish_one(peer)
    for number in range(1, MANY):
        others = {"topic": f"other-{number % 7}", "request_id": number}
        (told,) = peer.say("PRODUCER", producer_id=number, **others)
        assert told[0] == "PRODUCER_SUCCESS"
        subscription = {"subscription": f"s{number}", "type": kind}
        (told,) = peer.say("SUBSCRIBE", consumer_id=number, **subscription, **others)
        assert told[0] == "SUCCESS"
        peer.say("FLOW", consumer_id=number, permits=1000)
    assert publish_one(peer) < alone + MANY / 4


def test_whom_the_broker_shut_is_told_whichever_of_many_it_is(peer: Peer) -> None:
    for number in range(10):
        peer.say("PRODUCER", topic=f"t{number}", producer_id=number, request_id=number)
        given = {"topic": f"t{number}", "consumer_id": number, "request_id": number}
        peer.say("SUBSCRIBE", subscription="s", type=SHARED, **given)
    arguments = '{"topic": "t7", "force": true}'
    told = peer.say("VERB", verb="topics.delete", arguments=arguments, request_id=99)
    told += peer.say("PING")
    closed = [each for each in told if each[0].startswith("CLOSE_")]
    assert sorted(names(closed)) == ["CLOSE_CONSUMER", "CLOSE_PRODUCER"]
    assert {each[1].get("producer_id", each[1].get("consumer_id")) for each in closed} == {7}
