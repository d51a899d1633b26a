"""Facts about selectors of subscriptions whose clients are at the other end of a connection."""

from __future__ import annotations

from typing import Any

import pytest
from peer import Peer, entry, names

import pulsarx
from pulsarx._pycore.ranges.entry_codec import encode_batch
from pulsarx.wire.commands import EXCLUSIVE, FAILOVER, INDIVIDUAL, KEY_SHARED, SHARED

SELECTOR = "jms.selector"


def selecting(selector: str) -> dict[str, Any]:
    return {"subscription_properties": [{"key": SELECTOR, "value": selector}]}


def numbered(*given: int, compression: int = 0) -> bytes:
    messages = [(b"%d" % n, {"properties": {"n": str(n)}}) for n in given]
    return encode_batch(messages, producer_name="p", publish_time_ms=1000, compression=compression)


@pytest.mark.parametrize("kind", [EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED])
@pytest.mark.parametrize("compression", [0, 1], ids=["plain", "lz4"])
def test_a_client_is_sent_what_matches(
    client: pulsarx.Client, peer: Peer, kind: int, compression: int
) -> None:
    """A batch goes out whole, and its ack set says which of its messages are meant."""
    sent = [numbered(0, 1, 2, compression=compression), numbered(5, 6), numbered(2, 7)]
    peer.produce(*sent)
    assert names(peer.subscribe(type=kind, **selecting("n BETWEEN 1 AND 2")))[0] == "SUCCESS"
    told = [each for each in peer.say("FLOW", consumer_id=0, permits=100) if each[0] == "MESSAGE"]
    assert [(each[2], each[1]["ack_set"]) for each in told] == [(sent[0], [0b110]), (sent[2], [1])]
    places = [
        {key: each[1]["message_id"][key] for key in ("ledger_id", "entry_id")} for each in told
    ]
    peer.say("ACK", consumer_id=0, ack_type=INDIVIDUAL, message_ids=places)
    figures = client.admin.topics.stats("t")["subscriptions"]["s"]
    assert figures["msg_backlog"] == 0
    assert figures["filter_accepted_msg_count"] == 3
    assert figures["filter_rejected_msg_count"] == 4
    assert figures["subscription_properties"] == {SELECTOR: "n BETWEEN 1 AND 2"}


def test_a_wrong_selector_is_refused_with_its_place(client: pulsarx.Client, peer: Peer) -> None:
    peer.produce(entry(b"x"))
    (told,) = peer.subscribe(**selecting("n = = 1"))
    assert told[0] == "ERROR"
    assert "column 5: expected a name, a literal or (" in told[1]["message"]
    assert client.admin.topics.get_subscriptions("t") == []


def test_a_client_that_comes_again_with_a_former_selector_is_taken(
    client: pulsarx.Client, peer: Peer
) -> None:
    """Clients subscribe again with what they were given at first."""
    peer.produce(numbered(1, 2))
    peer.subscribe(**selecting("n = 1"))
    client.admin.topics.update_subscription_properties("t", "s", {SELECTOR: "n = 2"})
    again = peer.another()
    assert names(again.subscribe(**selecting("n = 1"))) == ["SUCCESS"]
    (told,) = again.say("FLOW", consumer_id=0, permits=10)
    assert told[1]["ack_set"] == [0b10]
