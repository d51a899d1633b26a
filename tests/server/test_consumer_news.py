"""What a consumer is told besides messages: whether it is the active one, and that no more come."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from peer import Peer, entry, names, serving

import pulsarx
from pulsarx.wire.commands import EARLIEST, EXCLUSIVE, FAILOVER, KEY_SHARED, SHARED


def attach(peer: Peer, number: int, kind: int = FAILOVER, name: str = "") -> list[Any]:
    ids = {"subscription": "s", "consumer_id": number, "request_id": 1, "topic": "t"}
    name = name or chr(ord("a") + number)
    return peer.say("SUBSCRIBE", type=kind, consumer_name=name, initial_position=EARLIEST, **ids)


def activity(told: list[Any]) -> list[tuple[int, bool]]:
    return [
        (values["consumer_id"], values["is_active"])
        for name, values, _ in told
        if name == "ACTIVE_CONSUMER_CHANGE"
    ]


@pytest.mark.parametrize("topic", ["t", "non-persistent://public/default/t"])
def test_consumers_of_a_failover_subscription_are_told_which_is_active(
    peer: Peer, topic: str
) -> None:
    def attached(number: int) -> list[tuple[int, bool]]:
        ids = {"subscription": "s", "consumer_id": number, "request_id": 1, "topic": topic}
        return activity(peer.say("SUBSCRIBE", type=FAILOVER, consumer_name=f"c{number}", **ids))

    assert attached(0) == [(0, True)]
    assert attached(1) == [(1, False)]
    told = peer.say("CLOSE_CONSUMER", consumer_id=0, request_id=2)
    assert activity(told) == [(1, True)]


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, KEY_SHARED])
def test_of_other_types_nobody_is_told(peer: Peer, kind: int) -> None:
    assert names(attach(peer, 0, kind)) == ["SUCCESS"]


def test_a_consumer_on_another_connection_is_told_too(peer: Peer) -> None:
    attach(peer, 0)
    other = peer.another()
    assert activity(attach(other, 1)) == [(1, False)]
    other.woken.clear()
    peer.say("CLOSE_CONSUMER", consumer_id=0, request_id=2)
    assert other.woken.is_set()
    assert activity(other.say("PING")) == [(1, True)]


@pytest.fixture
def java() -> Iterator[Peer]:
    client = pulsarx.Client("memory:", durability="os")
    made = Peer(serving(client))
    made.say("CONNECT", client_version="Pulsar-Java-v4.2.0", protocol_version=20)
    yield made
    made.server.close()
    client.shutdown()


def test_clients_of_old_versions_are_not_told_which_is_active() -> None:
    client = pulsarx.Client("memory:", durability="os")
    old = Peer(serving(client))
    old.say("CONNECT", client_version="Pulsar Client", protocol_version=11)
    assert names(attach(old, 0)) == ["SUCCESS"]
    old.server.close()
    client.shutdown()


def test_clients_in_go_are_told_when_they_listen() -> None:
    """They know a consumer some time after its SUCCESS only, and missed what came right behind."""
    client = pulsarx.Client("memory:", durability="os")
    peer = Peer(serving(client))
    peer.say("CONNECT", client_version="Pulsar-Go-0.19.0", protocol_version=20)
    assert names(attach(peer, 0) + peer.say("PING")) == ["SUCCESS", "PONG"]
    assert activity(peer.say("FLOW", consumer_id=0, permits=1)) == [(0, True)]
    peer.server.close()
    client.shutdown()


def terminate(peer: Peer) -> list[Any]:
    arguments = json.dumps({"topic": "t"})
    return peer.say("VERB", verb="topics.terminate", arguments=arguments, request_id=9)


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED])
def test_who_was_sent_all_of_a_terminated_topic_is_told_once(java: Peer, kind: int) -> None:
    java.produce(entry(b"a"), entry(b"b"))
    attach(java, 0, kind)
    terminate(java)
    assert "REACHED_END_OF_TOPIC" not in names(java.say("PING"))
    told = names(java.say("FLOW", consumer_id=0, permits=10) + java.say("PING"))
    told.remove("PONG")
    assert told == ["MESSAGE", "MESSAGE", "REACHED_END_OF_TOPIC"]
    assert names(java.say("PING")) == ["PONG"]


def test_who_has_all_when_a_topic_is_terminated_is_told_then(java: Peer) -> None:
    attach(java, 0, SHARED)
    assert "REACHED_END_OF_TOPIC" in names(terminate(java))


@pytest.mark.parametrize("version", ["Pulsar-CPP-v4.2.0", "Pulsar-Go-0.19.0"])
def test_clients_that_would_connect_anew_are_not_told_of_the_end(version: str) -> None:
    client = pulsarx.Client("memory:", durability="os")
    peer = Peer(serving(client))
    peer.say("CONNECT", client_version=version, protocol_version=20)
    attach(peer, 0, SHARED)
    assert names(terminate(peer)) == ["VERB_RESPONSE"]
    assert names(peer.say("FLOW", consumer_id=0, permits=1)) == []
    peer.server.close()
    client.shutdown()
