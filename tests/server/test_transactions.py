"""Facts about transactions over a network, by the commands that clients send."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from peer import Peer, batch, entry, names, serving
from served import Served
from signing import SECRET_TEXT, token
from speaker import Speaker
from support.waiting import wait_until
from transacting import MINUTE_MS, begin, end, opened_producer, seen, send

import pulsarx
from pulsarx.access import AccessSettings
from pulsarx.broker_options import BrokerOptions
from pulsarx.clock import ManualClock
from pulsarx.testing import fault_plan, inspect
from pulsarx.wire.commands import ABORT, COMMIT, EXCLUSIVE, INDIVIDUAL
from pulsarx.wire.frames import frame_encode

COORDINATORS = "persistent://pulsar/system/transaction_coordinator_assign"
NOT_STORED = 2
NOT_ALLOWED, NO_COORDINATOR, INVALID_STATUS, NOT_FOUND = 22, 20, 21, 24


# Finding the coordinator --------------------------------------------------------------------------


def test_a_client_finds_one_coordinator(peer: Peer) -> None:
    (told,) = peer.say("PARTITIONED_METADATA", topic=COORDINATORS, request_id=6)
    assert (told[1]["response"], told[1]["partitions"]) == (0, 1)
    (told,) = peer.say("TC_CLIENT_CONNECT_REQUEST", request_id=7, coordinator=0)
    assert told[0] == "TC_CLIENT_CONNECT_RESPONSE"
    assert (told[1]["request_id"], told[1]["error"]) == (7, None)
    # Nothing is made of the name that is looked up.
    assert "pulsar/system" not in str(peer.server.broker.catalogue.state.topics)


def test_the_coordinator_is_looked_up_where_the_broker_is(served: Served) -> None:
    speaker = Speaker(served)
    speaker.greet()
    speaker.say("LOOKUP", topic=f"{COORDINATORS}-partition-0", request_id=3)
    name, values, _ = speaker.hear()
    assert (name, values["error"]) == ("LOOKUP_RESPONSE", None)
    assert values["service_url"] == served.service.service_url


def test_another_coordinator_is_refused_by_its_own_number(peer: Peer) -> None:
    """Java finds by the number in the answer what it asked, and hangs up where it finds nothing."""
    (told,) = peer.say("TC_CLIENT_CONNECT_REQUEST", request_id=7, coordinator=3)
    assert told[1]["error"] == NO_COORDINATOR
    (told,) = peer.say("NEW_TXN", request_id=8, timeout_ms=1000, coordinator=3)
    assert (told[0], told[1]["most"]) == ("NEW_TXN_RESPONSE", 3)
    assert told[1]["error"] == NO_COORDINATOR
    assert told[1]["message"]


# Messages -----------------------------------------------------------------------------------------


def test_messages_are_seen_when_it_is_committed(peer: Peer, client: pulsarx.Client) -> None:
    number = begin(peer)
    opened_producer(peer, transactional=True)
    (told,) = peer.say("ADD_PARTITION_TO_TXN", request_id=4, least=number, most=0, partitions=["t"])
    assert (told[0], told[1]["error"]) == ("ADD_PARTITION_TO_TXN_RESPONSE", None)
    first = send(peer, entry(b"a"), number)
    second = send(peer, batch(b"b", b"c"), number, 2)
    assert (first[0], second[0]) == ("SEND_RECEIPT", "SEND_RECEIPT")
    assert [each[1]["message_id"]["entry_id"] for each in (first, second)] == [0, 1]
    assert seen(client) == []
    assert end(peer, number, COMMIT) is None
    assert seen(client) == [b"a", b"b", b"c"]


def test_messages_of_one_that_is_aborted_are_never_seen(peer: Peer, client: pulsarx.Client) -> None:
    number = begin(peer)
    opened_producer(peer)
    send(peer, entry(b"plain"), None)
    send(peer, entry(b"a"), number, 2)
    assert seen(client) == [b"plain"]
    assert end(peer, number, ABORT) is None
    assert seen(client) == [b"plain"]
    send(peer, entry(b"next"), None, 3)
    assert seen(client) == [b"plain", b"next"]


def test_one_producer_sends_in_several_transactions_and_in_none(
    peer: Peer, client: pulsarx.Client
) -> None:
    one, other = begin(peer), begin(peer)
    opened_producer(peer)
    for at, number in enumerate([one, other, one, None]):
        send(peer, entry(b"%d" % at, at), number, at)
    assert end(peer, other, ABORT) is None
    assert end(peer, one, COMMIT) is None
    assert seen(client) == [b"0", b"2", b"3"]


def test_a_consumer_over_the_network_waits_for_the_end_as_well(peer: Peer) -> None:
    number = begin(peer)
    opened_producer(peer)
    peer.subscribe(type=EXCLUSIVE)
    peer.say("FLOW", consumer_id=0, permits=10)
    aborted = begin(peer)
    send(peer, entry(b"x"), aborted)
    send(peer, entry(b"a"), number, 2)
    send(peer, entry(b"plain"), None, 3)
    assert peer.say("PING") == [("PONG", {}, b"")]
    assert end(peer, aborted, ABORT) is None
    told = peer.say("END_TXN", request_id=2, least=number, most=0, action=COMMIT)
    told += peer.say("PING")
    sent = [each[1]["message_id"]["entry_id"] for each in told if each[0] == "MESSAGE"]
    assert sent == [1, 2]
    assert "END_TXN_RESPONSE" in names(told)


def test_the_ids_of_send_count_and_not_those_of_metadata(
    peer: Peer, client: pulsarx.Client
) -> None:
    """The client of Go writes none there, and leaves those of the transaction before in a batch."""
    number = begin(peer)
    opened_producer(peer)
    marked = _with_metadata(b"marked", number)
    send(peer, marked, None)
    assert seen(client) == [b"marked"]
    send(peer, entry(b"hidden"), number, 2)
    assert seen(client) == [b"marked"]


def test_one_half_of_an_id_is_none(peer: Peer, client: pulsarx.Client) -> None:
    opened_producer(peer)
    (told,) = peer.say("SEND", entry(b"a"), producer_id=0, sequence_id=1, transaction_most=0)
    assert told[0] == "SEND_RECEIPT"
    assert seen(client) == [b"a"]


@pytest.mark.parametrize("action", [COMMIT, ABORT])
def test_nothing_is_stored_in_one_that_has_ended(
    peer: Peer, client: pulsarx.Client, action: int
) -> None:
    """Pulsar stores it, and the topic stands still."""
    number = begin(peer)
    opened_producer(peer)
    assert end(peer, number, action) is None
    told = send(peer, entry(b"late"), number)
    assert (told[0], told[1]["error"]) == ("SEND_ERROR", NOT_ALLOWED)
    assert f"(0,{number})" in told[1]["message"]
    send(peer, entry(b"next"), None, 2)
    assert seen(client) == [b"next"]


@pytest.mark.parametrize(("most", "least"), [(0, 77), (5, 0), (2**64 - 1, 2**64 - 1)])
def test_an_id_that_was_never_given_is_refused(peer: Peer, most: int, least: int) -> None:
    begin(peer)
    opened_producer(peer)
    ids = {"transaction_least": least, "transaction_most": most}
    (told,) = peer.say("SEND", entry(b"a"), producer_id=0, sequence_id=1, **ids)
    assert (told[0], told[1]["error"]) == ("SEND_ERROR", NOT_ALLOWED)
    for name in ("END_TXN", "ADD_PARTITION_TO_TXN", "ADD_SUBSCRIPTION_TO_TXN"):
        action = {"action": COMMIT} if name == "END_TXN" else {}
        (told,) = peer.say(name, request_id=3, least=least, most=most, **action)
        assert (told[0], told[1]["error"]) == (f"{name}_RESPONSE", NOT_FOUND)
        assert (told[1]["most"], bool(told[1]["message"])) == (most, True)


def test_one_of_this_process_cannot_be_used_over_the_network(
    peer: Peer, client: pulsarx.Client
) -> None:
    ours = client.new_transaction()
    opened_producer(peer)
    assert send(peer, entry(b"a"), ours.number)[1]["error"] == NOT_ALLOWED
    assert end(peer, ours.number, ABORT) == NOT_FOUND
    ours.commit()


def test_a_topic_that_keeps_nothing_takes_part_in_none(peer: Peer) -> None:
    """In Pulsar the connection is closed."""
    number = begin(peer)
    topic = "non-persistent://public/default/n"
    peer.say("PRODUCER", topic=topic, producer_id=0, request_id=0)
    told = send(peer, entry(b"a"), number)
    assert (told[0], told[1]["error"]) == ("SEND_ERROR", NOT_ALLOWED)
    assert end(peer, number, COMMIT) is None


def last_entry(peer: Peer) -> int:
    """Of the topic, as its consumer is told; -1: none."""
    (told,) = peer.say("GET_LAST_MESSAGE_ID", consumer_id=0, request_id=9)
    last: dict[str, int] = told[1]["message_id"]
    return last["entry_id"] if last["entry_id"] < 2**63 else -1


def test_the_last_message_is_in_front_of_what_is_open(peer: Peer) -> None:
    opened_producer(peer)
    peer.subscribe(type=EXCLUSIVE)
    aborted = begin(peer)
    send(peer, entry(b"a"), aborted)
    assert last_entry(peer) == -1
    end(peer, aborted, ABORT)
    assert last_entry(peer) == -1
    send(peer, entry(b"m"), None, 2)
    number = begin(peer)
    send(peer, entry(b"b"), number, 3)
    assert last_entry(peer) == 1
    end(peer, number, COMMIT)
    assert last_entry(peer) == 2


@pytest.mark.parametrize("action", [COMMIT, ABORT])
def test_an_end_takes_no_entry_id_and_is_in_no_backlog(
    peer: Peer, client: pulsarx.Client, action: int
) -> None:
    """In Pulsar the marker is an entry."""
    peer.subscribe(type=EXCLUSIVE)
    opened_producer(peer)
    number = begin(peer)
    for at in range(3):
        send(peer, entry(b"%d" % at, at), number, at)
    found = client.admin.topics.stats("t")
    assert (found["ongoing_txn_count"], found["msg_in_counter"]) == (1, 3)
    assert found["subscriptions"]["s"]["msg_backlog"] == 3
    end(peer, number, action)
    told = send(peer, entry(b"plain", 3), None, 3)
    assert told[1]["message_id"]["entry_id"] == 3
    left = client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"]
    assert left == (4 if action == COMMIT else 1)


RESERVED = [
    "x-s__transaction_pending_ack",
    "__transaction_buffer_snapshot",
    "persistent://pulsar/system/__transaction_log_0",
    "persistent://pulsar/system/transaction_coordinator_assign",
]


@pytest.mark.parametrize("topic", RESERVED)
def test_topics_that_pulsar_keeps_for_transactions_are_nobodys(peer: Peer, topic: str) -> None:
    (told,) = peer.say("PRODUCER", topic=topic, producer_id=0, request_id=0)
    assert (told[0], told[1]["error"]) == ("ERROR", NOT_ALLOWED)
    (told,) = peer.subscribe(topic=topic)
    assert (told[0], told[1]["error"]) == ("ERROR", NOT_ALLOWED)


def test_what_waits_for_a_publish_rate_stays_in_its_transaction(
    clocked_client: pulsarx.Client, manual_clock: ManualClock
) -> None:
    clocked_client.admin.namespaces.set_publish_rate("public/default", 1, -1)
    server = serving(clocked_client)
    peer = Peer(server)
    peer.connect()
    number = begin(peer)
    opened_producer(peer)
    assert send(peer, entry(b"plain"), None)[0] == "SEND_RECEIPT"
    ids = {"transaction_least": number, "transaction_most": 0}
    told = peer.say("SEND", entry(b"a", 2), producer_id=0, sequence_id=2, **ids)
    assert told == []
    manual_clock.advance(1.0)
    told = peer.say("PING")
    assert sorted(names(told)) == ["PONG", "SEND_RECEIPT"]
    assert seen(clocked_client) == [b"plain"]
    assert end(peer, number, COMMIT) is None
    assert seen(clocked_client) == [b"plain", b"a"]
    server.close()


# Ending -------------------------------------------------------------------------------------------


def test_an_empty_one_is_committed(peer: Peer) -> None:
    assert end(peer, begin(peer), COMMIT) is None


def test_numbers_go_on(peer: Peer) -> None:
    assert [begin(peer) for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(("action", "other"), [(COMMIT, ABORT), (ABORT, COMMIT)])
def test_an_end_that_is_asked_for_again_is_answered_as_before(
    peer: Peer, action: int, other: int
) -> None:
    """Pulsar does not know it any more, and the client takes what was committed for lost."""
    number = begin(peer)
    assert [end(peer, number, action) for _ in range(2)] == [None, None]
    assert end(peer.another(), number, action) is None
    assert end(peer, number, other) == INVALID_STATUS


def test_nothing_is_added_to_one_that_has_ended(peer: Peer) -> None:
    number = begin(peer)
    end(peer, number, COMMIT)
    (told,) = peer.say("ADD_PARTITION_TO_TXN", request_id=4, least=number, most=0, partitions=["t"])
    assert told[1]["error"] == NOT_FOUND


def test_an_end_without_an_action_ends_nothing(peer: Peer) -> None:
    number = begin(peer)
    (told,) = peer.say("END_TXN", request_id=2, least=number, most=0)
    assert (told[0], told[1]["error"]) == ("END_TXN_RESPONSE", NOT_ALLOWED)
    assert end(peer, number, COMMIT) is None


@pytest.mark.parametrize("name", ["END_TXN_ON_PARTITION", "END_TXN_ON_SUBSCRIPTION"])
def test_what_brokers_tell_each_other_is_refused(peer: Peer, name: str) -> None:
    number = begin(peer)
    (told,) = peer.say(name, request_id=4, least=number, most=0)
    assert (told[0], told[1]["error"]) == (f"{name}_RESPONSE", NOT_ALLOWED)
    assert end(peer, number, COMMIT) is None


def test_the_client_may_go_on_over_another_connection(peer: Peer, client: pulsarx.Client) -> None:
    number = begin(peer)
    opened_producer(peer)
    send(peer, entry(b"a"), number)
    peer.session.close()
    other = peer.another()
    opened_producer(other)
    send(other, entry(b"b"), number)
    assert seen(client) == []
    assert end(other, number, COMMIT) is None
    assert seen(client) == [b"a", b"b"]


def test_one_that_an_operator_aborted_is_not_committed(peer: Peer, client: pulsarx.Client) -> None:
    """Pulsar has forgotten it; either answer makes an error of it for Java."""
    number = begin(peer)
    opened_producer(peer)
    send(peer, entry(b"a"), number)
    client.admin.transactions.abort_transaction(0, number)
    assert end(peer, number, COMMIT) == INVALID_STATUS
    assert end(peer, number, ABORT) is None
    assert seen(client) == []


def test_what_no_client_ends_is_aborted_when_its_time_is_over(
    clocked_client: pulsarx.Client, manual_clock: ManualClock
) -> None:
    server = serving(clocked_client)
    peer = Peer(server)
    peer.connect()
    number = begin(peer, 1000)
    opened_producer(peer)
    send(peer, entry(b"a"), number)
    send(peer, entry(b"plain"), None, 2)
    peer.session.close()  # which aborts nothing
    manual_clock.advance(0.999)
    assert seen(clocked_client) == []
    manual_clock.advance(0.002)
    broker = inspect(clocked_client).broker
    wait_until(lambda: broker.runtime.transactions.find(number) is None)
    wait_until(lambda: seen(clocked_client) == [b"plain"])
    other = peer.another()
    assert end(other, number, COMMIT) == INVALID_STATUS
    assert end(other, number, ABORT) is None
    server.close()


def test_one_without_a_timeout_is_over_at_once(
    clocked_client: pulsarx.Client, manual_clock: ManualClock
) -> None:
    server = serving(clocked_client)
    peer = Peer(server)
    peer.connect()
    number = begin(peer, 0)
    manual_clock.advance(0.002)
    broker = inspect(clocked_client).broker
    wait_until(lambda: broker.runtime.transactions.find(number) is None)
    assert end(peer, number, COMMIT) == INVALID_STATUS
    server.close()


def test_what_was_committed_is_known_to_the_next_owner(
    open_client: Callable[..., pulsarx.Client],
) -> None:
    """A client that lost the answer asks the next one."""
    client = open_client()
    server = serving(client)
    peer = Peer(server)
    peer.connect()
    number = begin(peer)
    opened_producer(peer)
    send(peer, entry(b"a"), number)
    assert end(peer, number, COMMIT) is None
    server.close()
    client.close()
    server = serving(open_client())
    other = Peer(server)
    other.connect()
    assert end(other, number, COMMIT) is None
    assert end(other, number, ABORT) == INVALID_STATUS
    server.close()


def test_a_broker_that_closes_has_no_coordinator_any_more(
    peer: Peer, client: pulsarx.Client
) -> None:
    """For that the client of Java looks for it again; for anything else it gives up."""
    client.close()
    (told,) = peer.say("NEW_TXN", request_id=1, timeout_ms=1000, coordinator=0)
    assert (told[0], told[1]["error"]) == ("NEW_TXN_RESPONSE", NO_COORDINATOR)


# Limits -------------------------------------------------------------------------------------------


@pytest.fixture
def limited() -> Iterator[Callable[..., Peer]]:
    made: list[tuple[Any, pulsarx.Client]] = []

    def make(**options: Any) -> Peer:
        client = pulsarx.Client("memory:", durability="os", broker_options=BrokerOptions(**options))
        server = serving(client)
        made.append((server, client))
        peer = Peer(server)
        peer.connect()
        return peer

    yield make
    for server, client in made:
        server.close()
        client.shutdown()


def test_switched_off_there_is_no_coordinator(limited: Callable[..., Peer]) -> None:
    peer = limited(transaction_coordinator_enabled=False)
    (told,) = peer.say("PARTITIONED_METADATA", topic=COORDINATORS, request_id=6)
    assert (told[1]["response"], told[1]["partitions"]) == (0, 0)
    said: dict[str, dict[str, Any]] = {
        "TC_CLIENT_CONNECT_REQUEST": {"coordinator": 0},
        "NEW_TXN": {"timeout_ms": 1000, "coordinator": 0},
        "ADD_PARTITION_TO_TXN": {"least": 0, "most": 0, "partitions": ["t"]},
        "ADD_SUBSCRIPTION_TO_TXN": {"least": 0, "most": 0},
        "END_TXN": {"least": 0, "most": 0, "action": COMMIT},
    }
    for name, values in said.items():
        (told,) = peer.say(name, request_id=4, **values)
        assert told[0] == f"{name.removesuffix('_REQUEST')}_RESPONSE"
        assert (told[1]["error"], told[1].get("most", 0)) == (NOT_ALLOWED, 0)
        assert "transaction_coordinator_enabled" in told[1]["message"]
    # Of a Java client with transactions every producer says that it may use them.
    opened_producer(peer, transactional=True)
    told = [send(peer, entry(b"a"), 0)]
    assert (told[0][0], told[0][1]["error"]) == ("SEND_ERROR", NOT_ALLOWED)


def test_one_more_than_may_be_open_is_refused_at_once(limited: Callable[..., Peer]) -> None:
    """Pulsar does not answer, and the client waits for its timeout."""
    peer = limited(max_active_transactions_per_coordinator=1)
    number = begin(peer)
    (told,) = peer.say("NEW_TXN", request_id=1, timeout_ms=1000, coordinator=0)
    assert (told[0], told[1]["error"]) == ("NEW_TXN_RESPONSE", NOT_ALLOWED)
    assert "max_active_transactions_per_coordinator" in told[1]["message"]
    end(peer, number, ABORT)
    begin(peer)


def test_a_timeout_above_the_highest_is_refused(limited: Callable[..., Peer]) -> None:
    peer = limited(max_transaction_timeout_in_seconds=10)
    begin(peer, 10_000)
    (told,) = peer.say("NEW_TXN", request_id=1, timeout_ms=10_001, coordinator=0)
    assert (told[0], told[1]["error"]) == ("NEW_TXN_RESPONSE", NOT_ALLOWED)
    assert "max_transaction_timeout_in_seconds" in told[1]["message"]


# Whose they are -----------------------------------------------------------------------------------


class Known(Speaker):
    """A client that says who it is."""

    def __init__(self, served: Served, role: str) -> None:
        super().__init__(served)
        proof = {"auth_method_name": "token", "auth_data": token(role).encode()}
        self.say("CONNECT", client_version="test", protocol_version=20, **proof)
        assert self.hear()[0] == "CONNECTED"

    def ask(self, name: str, **values: Any) -> dict[str, Any]:
        self.say(name, request_id=1, **values)
        return self.hear()[1]


def test_its_own_role_or_a_superuser_uses_and_ends_it(open_served: Callable[..., Served]) -> None:
    access = AccessSettings(token_secret_key=SECRET_TEXT, superuser_roles=["admin"])
    served = open_served(service={"access": access})
    namespaces = served.client.admin.namespaces
    for role in ("alice", "mallory"):
        namespaces.grant_permission_on_namespace("public/default", role, ["produce"])
    alice, mallory, admin = (Known(served, role) for role in ("alice", "mallory", "admin"))
    # Everybody finds the coordinator, without permissions in the namespace of its name.
    assert alice.ask("PARTITIONED_METADATA", topic=COORDINATORS)["partitions"] == 1
    assert alice.ask("LOOKUP", topic=f"{COORDINATORS}-partition-0")["error"] is None
    numbers = [alice.ask("NEW_TXN", timeout_ms=MINUTE_MS)["least"] for _ in range(2)]
    ids = {"least": numbers[0], "most": 0}
    assert mallory.ask("END_TXN", **ids, action=COMMIT)["error"] == NOT_FOUND
    mallory.produce()
    said = {"transaction_least": numbers[0], "transaction_most": 0}
    mallory.say("SEND", entry(b"hidden"), producer_id=0, sequence_id=1, **said)
    assert mallory.hear()[1]["error"] == NOT_ALLOWED
    assert alice.ask("END_TXN", **ids, action=COMMIT)["error"] is None
    assert admin.ask("END_TXN", least=numbers[1], most=0, action=ABORT)["error"] is None
    # What became of one is nobody else's business either.
    assert mallory.ask("END_TXN", **ids, action=COMMIT)["error"] == NOT_FOUND
    assert alice.ask("END_TXN", **ids, action=COMMIT)["error"] is None
    assert admin.ask("END_TXN", **ids, action=COMMIT)["error"] is None
    for each in (alice, mallory, admin):
        each.socket.close()


# Lies ---------------------------------------------------------------------------------------------


def test_commands_with_missing_fields_are_answered(peer: Peer) -> None:
    for name in ("NEW_TXN", "ADD_PARTITION_TO_TXN", "ADD_SUBSCRIPTION_TO_TXN", "END_TXN"):
        (told,) = peer.say(name, request_id=4)
        assert (told[0], told[1]["request_id"]) == (f"{name}_RESPONSE", 4)
    told = peer.say("NEW_TXN", request_id=5, timeout_ms=2**64 - 1)
    assert told[0][1]["error"] == NOT_ALLOWED


def test_an_acknowledgement_in_one_that_is_not_known_is_refused(peer: Peer) -> None:
    (stored,) = peer.produce(entry(b"a"))
    peer.subscribe()
    peer.say("FLOW", consumer_id=0, permits=5)
    ack = {"consumer_id": 0, "ack_type": INDIVIDUAL, "message_ids": [stored[1]["message_id"]]}
    ids = {"transaction_least": 7, "transaction_most": 0}
    (told,) = peer.say("ACK", **ack, request_id=5, **ids)
    assert (told[0], told[1]["error"]) == ("ACK_RESPONSE", NOT_FOUND)
    assert told[1]["message"]
    topic = peer.server.broker.topics.open_topics()[0]
    assert topic.subscriptions["s"].backlog()[1] == 1


def _with_metadata(payload: bytes, number: int) -> bytes:
    """An entry whose metadata say that it is of a transaction, as Java writes it."""
    from pulsarx._pycore.ranges.entry_codec import crc32c

    plain = entry(payload)
    size = int.from_bytes(plain[6:10], "big")
    metadata = plain[10 : 10 + size] + b"\xb0\x01" + bytes([number]) + b"\xb8\x01\x00"
    body = len(metadata).to_bytes(4, "big") + metadata + plain[10 + size :]
    return b"\x0e\x01" + crc32c(body).to_bytes(4, "big") + body


def test_a_timeout_stands_in_milliseconds_in_the_field_of_seconds(peer: Peer) -> None:
    """Of PulsarApi.proto: request 5, txn_ttl_seconds 60000, tc_id 0."""
    frame = frame_encode("NEW_TXN", {"request_id": 5, "timeout_ms": 60_000, "coordinator": 0})
    assert frame.hex(" ", 1) == ("00 00 00 11 00 00 00 0d 08 32 92 03 08 08 05 10 e0 d4 03 18 00")


# A full disk --------------------------------------------------------------------------------------


@pytest.fixture
def on_disk(
    open_client: Callable[..., pulsarx.Client], manual_clock: ManualClock
) -> Iterator[Peer]:
    server = serving(open_client(clock=manual_clock))
    peer = Peer(server)
    peer.connect()
    yield peer
    server.close()


def test_an_end_that_finds_no_room_decides_nothing(on_disk: Peer) -> None:
    number = begin(on_disk)
    opened_producer(on_disk)
    send(on_disk, entry(b"a"), number)
    with fault_plan() as plan:
        plan.fail("write", 1, error=errno.ENOSPC)
        assert end(on_disk, number, COMMIT) == NOT_STORED
    assert send(on_disk, entry(b"b"), number, 2)[0] == "SEND_RECEIPT"
    assert end(on_disk, number, ABORT) is None


def test_a_timeout_that_finds_no_room_comes_again(on_disk: Peer, manual_clock: ManualClock) -> None:
    number = begin(on_disk, 1000)
    opened_producer(on_disk)
    send(on_disk, entry(b"a"), number)
    coordinator = on_disk.server.broker.runtime.transactions
    with fault_plan() as plan:
        plan.fail("write", 1, error=errno.ENOSPC)
        manual_clock.advance(1.001)
        wait_until(lambda: plan.calls("write"))
        on_disk.server.broker.runtime.background.wait()
    assert coordinator.find(number) is not None
    manual_clock.advance(1.0)
    wait_until(lambda: coordinator.find(number) is None)
    assert coordinator.was_committed(number) is False
