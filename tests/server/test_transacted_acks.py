"""Facts about acknowledgements in transactions over a network."""

from __future__ import annotations

from typing import Any

import pytest
from peer import Peer, batch, entry, serving
from support.waiting import wait_until

import pulsarx
from pulsarx.clock import ManualClock
from pulsarx.wire.commands import (
    ABORT,
    COMMIT,
    CUMULATIVE,
    EXCLUSIVE,
    FAILOVER,
    INDIVIDUAL,
    KEY_SHARED,
    SHARED,
)

NOT_ALLOWED, INVALID_STATUS, CONFLICT, NOT_FOUND = 22, 21, 23, 24
TYPES = {
    "exclusive": EXCLUSIVE,
    "shared": SHARED,
    "failover": FAILOVER,
    "key shared": KEY_SHARED,
}


def begin(peer: Peer, timeout_ms: int = 60_000) -> int:
    (told,) = peer.say("NEW_TXN", request_id=1, timeout_ms=timeout_ms, coordinator=0)
    number: int = told[1]["least"]
    ids = {"least": number, "most": 0}
    named = [{"topic": "t", "subscription": "s"}]
    (told,) = peer.say("ADD_SUBSCRIPTION_TO_TXN", request_id=2, **ids, subscriptions=named)
    assert told[1]["error"] is None
    return number


def end(peer: Peer, number: int, action: int) -> list[int]:
    """End it; the entries that are sent because of that."""
    told = peer.say("END_TXN", request_id=3, least=number, most=0, action=action)
    answers = [each[1] for each in told if each[0] == "END_TXN_RESPONSE"]
    assert [each["error"] for each in answers] == [None]
    return entries(told + peer.say("PING"))


def entries(told: list[Any]) -> list[int]:
    return [each[1]["message_id"]["entry_id"] for each in told if each[0] == "MESSAGE"]


def filled(peer: Peer, kind: int, count: int = 3) -> list[dict[str, Any]]:
    """A topic of so many messages, all of which a consumer has: their ids."""
    told = peer.produce(*[entry(b"%d" % at, at) for at in range(count)])
    peer.subscribe(type=kind)
    assert entries(peer.say("FLOW", consumer_id=0, permits=100)) == list(range(count))
    return [each[1]["message_id"] for each in told]


def acknowledge(
    peer: Peer, ids: list[dict[str, Any]], number: int | None, kind: int = INDIVIDUAL
) -> int | None:
    """The code of the answer."""
    said = {} if number is None else {"transaction_least": number, "transaction_most": 0}
    (told,) = peer.say("ACK", consumer_id=0, ack_type=kind, message_ids=ids, request_id=7, **said)
    assert (told[0], told[1]["request_id"]) == ("ACK_RESPONSE", 7)
    assert bool(told[1]["message"]) == (told[1]["error"] is not None)  # for Go
    error: int | None = told[1]["error"]
    return error


def backlog(client: pulsarx.Client) -> int:
    found: int = client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"]
    return found


@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES)
def test_they_count_when_it_is_committed(peer: Peer, client: pulsarx.Client, kind: int) -> None:
    ids = filled(peer, kind)
    number = begin(peer)
    assert acknowledge(peer, ids[:2], number) is None
    assert backlog(client) == 3
    assert end(peer, number, COMMIT) == []
    assert backlog(client) == 1


@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES)
def test_the_messages_come_again_when_it_is_aborted(
    peer: Peer, client: pulsarx.Client, kind: int
) -> None:
    ids = filled(peer, kind)
    number = begin(peer)
    assert acknowledge(peer, ids[:2], number) is None
    assert entries(peer.say("REDELIVER_UNACKNOWLEDGED", consumer_id=0)) == [2]
    again = end(peer, number, ABORT)
    assert again[:2] == [0, 1]
    assert backlog(client) == 3


def test_they_do_not_come_to_another_connection_while_it_is_open(
    peer: Peer, client: pulsarx.Client
) -> None:
    ids = filled(peer, EXCLUSIVE)
    number = begin(peer)
    assert acknowledge(peer, ids[:2], number) is None
    peer.session.close()
    other = peer.another()
    other.subscribe(type=EXCLUSIVE)
    assert entries(other.say("FLOW", consumer_id=0, permits=100)) == [2]
    assert end(other, number, COMMIT) == []
    assert backlog(client) == 1


def test_what_is_pending_or_acknowledged_collides(peer: Peer) -> None:
    ids = filled(peer, SHARED)
    one, other = begin(peer), begin(peer)
    assert acknowledge(peer, ids[:1], one) is None
    assert acknowledge(peer, ids[:1], other) == CONFLICT
    assert acknowledge(peer, ids[:1], one) == CONFLICT
    assert acknowledge(peer, ids[1:2], None) is None
    assert acknowledge(peer, ids[1:], other) == CONFLICT  # the whole request
    assert acknowledge(peer, ids[2:], other) is None


def test_single_messages_of_a_batch(peer: Peer, client: pulsarx.Client) -> None:
    """The ack set of Java says what this request acknowledges, by the bits that are not set."""
    (told,) = peer.produce(batch(b"a", b"b"))
    peer.subscribe()
    peer.say("FLOW", consumer_id=0, permits=100)
    whole = {**told[1]["message_id"], "batch_size": 2}
    one, other = begin(peer), begin(peer)
    assert acknowledge(peer, [{**whole, "batch_index": 0, "ack_set": [0b10]}], one) is None
    assert acknowledge(peer, [{**whole, "batch_index": 1, "ack_set": [0b01]}], other) is None
    assert acknowledge(peer, [{**whole, "batch_index": 1, "ack_set": [0b01]}], one) == CONFLICT
    end(peer, one, COMMIT)
    assert backlog(client) == 1
    told = peer.say("END_TXN", request_id=3, least=other, most=0, action=ABORT)
    told += peer.say("PING")
    (again,) = [each[1] for each in told if each[0] == "MESSAGE"]
    assert again["ack_set"] == [0b10]


def test_cumulatively(peer: Peer, client: pulsarx.Client) -> None:
    ids = filled(peer, EXCLUSIVE, 5)
    one, other = begin(peer), begin(peer)
    assert acknowledge(peer, [ids[2]], one, CUMULATIVE) is None
    assert acknowledge(peer, [ids[1]], one, CUMULATIVE) == CONFLICT
    assert acknowledge(peer, [ids[4]], other, CUMULATIVE) == CONFLICT
    assert backlog(client) == 5
    end(peer, one, COMMIT)
    assert backlog(client) == 2


@pytest.mark.parametrize("action", [COMMIT, ABORT])
def test_a_cumulative_one_does_not_come_to_another_connection_while_it_is_open(
    peer: Peer, client: pulsarx.Client, action: int
) -> None:
    """In Pulsar it does."""
    ids = filled(peer, EXCLUSIVE, 5)
    number = begin(peer)
    assert acknowledge(peer, [ids[2]], number, CUMULATIVE) is None
    peer.session.close()
    other = peer.another()
    other.subscribe(type=EXCLUSIVE)
    assert entries(other.say("FLOW", consumer_id=0, permits=100)) == [3, 4]
    assert end(other, number, action) == ([] if action == COMMIT else [0, 1, 2])
    assert backlog(client) == (2 if action == COMMIT else 5)


def test_a_single_one_beside_a_cumulative_one_of_another_is_committed(
    peer: Peer, client: pulsarx.Client
) -> None:
    """Pulsar says so, and does nothing."""
    ids = filled(peer, EXCLUSIVE, 8)
    one, other, third = begin(peer), begin(peer), begin(peer)
    assert acknowledge(peer, [ids[3]], one, CUMULATIVE) is None
    assert acknowledge(peer, ids[5:6], other) is None
    assert end(peer, other, COMMIT) == []
    assert backlog(client) == 7
    assert acknowledge(peer, ids[5:6], third) == CONFLICT
    assert end(peer, one, COMMIT) == []
    assert backlog(client) == 3


def test_they_are_undone_when_nobody_ends_it_in_time(
    clocked_client: pulsarx.Client, manual_clock: ManualClock
) -> None:
    server = serving(clocked_client)
    peer = Peer(server)
    peer.connect()
    ids = filled(peer, SHARED)
    number = begin(peer, timeout_ms=10_000)
    assert acknowledge(peer, ids[:2], number) is None
    peer.session.close()  # which ends nothing
    other = peer.another()
    other.subscribe(type=SHARED)
    assert entries(other.say("FLOW", consumer_id=0, permits=100)) == [2]
    manual_clock.advance(9.999)
    assert entries(other.say("PING")) == []
    manual_clock.advance(0.002)
    transactions = server.broker.runtime.transactions
    wait_until(lambda: transactions.find(number) is None)
    assert entries(other.say("PING")) == [0, 1]
    (told,) = other.say("END_TXN", request_id=3, least=number, most=0, action=COMMIT)
    assert told[1]["error"] == INVALID_STATUS
    server.close()


def test_not_cumulatively_on_a_shared_subscription(peer: Peer, client: pulsarx.Client) -> None:
    """Pulsar ignores it, and says that it was done."""
    ids = filled(peer, SHARED)
    number = begin(peer)
    assert acknowledge(peer, [ids[2]], number, CUMULATIVE) == NOT_ALLOWED
    end(peer, number, COMMIT)
    assert backlog(client) == 3


@pytest.mark.parametrize("action", [COMMIT, ABORT])
def test_not_in_one_that_has_ended(peer: Peer, client: pulsarx.Client, action: int) -> None:
    """Pulsar notes it, and the message does not come again."""
    ids = filled(peer, SHARED)
    number = begin(peer)
    end(peer, number, action)
    assert acknowledge(peer, ids[:1], number) == NOT_FOUND
    assert entries(peer.say("REDELIVER_UNACKNOWLEDGED", consumer_id=0)) == [0, 1, 2]


def test_not_on_a_topic_that_keeps_nothing(peer: Peer) -> None:
    peer.subscribe(topic="non-persistent://public/default/n")
    number = begin(peer)
    ids = [{"ledger_id": 0, "entry_id": 0}]
    assert acknowledge(peer, ids, number) == NOT_ALLOWED


def test_one_message_in_and_one_out_count_together(peer: Peer, client: pulsarx.Client) -> None:
    ids = filled(peer, SHARED)
    peer.say("PRODUCER", topic="out", producer_id=1, request_id=0)
    number = begin(peer)
    said = {"transaction_least": number, "transaction_most": 0}
    (told,) = peer.say("SEND", entry(b"A"), producer_id=1, sequence_id=1, **said)
    assert told[0] == "SEND_RECEIPT"
    assert acknowledge(peer, ids[:1], number) is None
    reader = client.create_reader("out", pulsarx.MessageId.earliest)
    assert (reader.read_many(10, 0), backlog(client)) == ([], 3)
    end(peer, number, COMMIT)
    assert [each.data() for each in reader.read_many(10, 0)] == [b"A"]
    assert backlog(client) == 2
