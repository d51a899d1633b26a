"""Facts about the partitions that a topic gets: who has the others to itself gets them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from peer import Peer, entry, names

import pulsarx

EXCLUSIVE = 1
SHARED = 0


@pytest.fixture
def client() -> Iterator[pulsarx.Client]:
    with pulsarx.Client("memory:") as made:
        made.admin.topics.create_partitioned_topic("t", 2)
        yield made


def produce(peer: Peer, partition: int, mode: int = EXCLUSIVE, name: str = "h") -> list[str]:
    topic = f"t-partition-{partition}"
    values: dict[str, Any] = {"producer_id": partition, "request_id": 1, "access_mode": mode}
    return names(peer.say("PRODUCER", topic=topic, producer_name=name, **values))


def test_they_are_kept_for_the_client_that_has_the_others(
    client: pulsarx.Client, peer: Peer
) -> None:
    """Whoever came first had them."""
    for partition in (0, 1):
        assert produce(peer, partition) == ["PRODUCER_SUCCESS"]
    client.admin.topics.update_partitioned_topic("t", 3)
    another = peer.another()
    assert produce(another, 2, SHARED, "other") == ["ERROR"]
    assert produce(another, 2, EXCLUSIVE) == ["ERROR"]
    assert produce(peer, 2, EXCLUSIVE, "other") == ["ERROR"]
    assert produce(peer, 2) == ["PRODUCER_SUCCESS"]
    sent = peer.say("SEND", entry(b"a"), producer_id=2, sequence_id=1)
    assert names(sent) == ["SEND_RECEIPT"]
    another.session.close()


@pytest.mark.parametrize("how", ["closes", "goes"])
def test_they_are_anybodys_when_that_client_has_gone(
    client: pulsarx.Client, peer: Peer, how: str
) -> None:
    for partition in (0, 1):
        assert produce(peer, partition) == ["PRODUCER_SUCCESS"]
    client.admin.topics.update_partitioned_topic("t", 3)
    another = peer.another()
    if how == "goes":
        peer.session.close()
    else:
        peer.say("CLOSE_PRODUCER", producer_id=0, request_id=3)
    assert produce(another, 2, SHARED, "other") == ["PRODUCER_SUCCESS"]
    another.session.close()
