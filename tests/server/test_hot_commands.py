"""Facts about what comes once per entry over a connection, which is taken without Python: SEND, ACK
and FLOW, in whatever pieces and company they come."""

from __future__ import annotations

import errno
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from peer import Peer, batch, entry, names, serving
from served import Served
from speaker import Speaker

import pulsarx
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan
from pulsarx.topic_name import TopicName
from pulsarx.wire.commands import EXCLUSIVE, INDIVIDUAL, SHARED
from pulsarx.wire.frames import frame_encode
from pulsarx.wire.server_errors import CHECKSUM

COUNT = 100  # more than are stored with one write


def send(sequence_id: int, payload: bytes = b"x", producer_id: int = 0) -> bytes:
    values = {"producer_id": producer_id, "sequence_id": sequence_id}
    return frame_encode("SEND", values, entry(payload, sequence_id))


def ack(*places: Any) -> bytes:
    ids = [{key: each[key] for key in ("ledger_id", "entry_id")} for each in places]
    values = {"consumer_id": 0, "ack_type": INDIVIDUAL, "message_ids": ids}
    return frame_encode("ACK", values)


def flow(permits: int) -> bytes:
    return frame_encode("FLOW", {"consumer_id": 0, "permits": permits})


def damaged(sequence_id: int) -> bytes:
    frame = bytearray(send(sequence_id, b"damaged"))
    frame[-1] ^= 1
    return bytes(frame)


def told_of(peer: Peer, *data: bytes) -> list[Any]:
    """What the broker says because of bytes that come in these pieces."""
    for each in data:
        peer.session.received(each)
    peer.server.completions.wait()
    peer.session.deliver()
    found, peer.told = peer.told, []
    return found


def stored(client: pulsarx.Client, topic: str = "t") -> list[bytes]:
    with client.create_reader(topic, pulsarx.MessageId.earliest) as reader:
        found = []
        while reader.has_message_available():
            found.append(reader.read_next().data())
        return found


@pytest.fixture(params=["os", "sync"])
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Peer]:
    """A connection to a folder."""
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=1000)
    with pulsarx.Client(
        tmp_path / "data", durability=request.param, broker_options=options
    ) as client:
        made = Peer(serving(client))
        made.client = client  # type: ignore[attr-defined]
        made.connect()
        made.produce()
        yield made
        made.server.close()


def client_of(peer: Peer) -> pulsarx.Client:
    found: pulsarx.Client = peer.client  # type: ignore[attr-defined]
    return found


def backlog(peer: Peer) -> int:
    topic = inspect(client_of(peer)).broker.topic(TopicName.of("t"))
    found: int = topic.subscription_statistics()["s"]["msg_backlog"]
    return found


def test_frames_that_are_cut_anywhere_are_taken_whole(peer: Peer) -> None:
    peer.produce()
    peer.subscribe(type=EXCLUSIVE)
    first = told_of(peer, flow(10_000) + send(1))[1][1]["message_id"]
    data = send(2, b"abc") + ack(first) + flow(1) + send(3, b"") + frame_encode("PING", {})
    for cut in range(1, len(data)):
        told = told_of(peer, data[:cut], data[cut:])
        assert sorted(names(told)) == ["MESSAGE"] * 2 + ["PONG"] + ["SEND_RECEIPT"] * 2
        assert [each[2] for each in told if each[2]] == [entry(b"abc", 2), entry(b"", 3)]


def test_many_commands_of_one_buffer_are_answered_in_order(durable: Peer) -> None:
    durable.say("PRODUCER", topic="u", producer_id=1, request_id=0)
    durable.subscribe(type=EXCLUSIVE)
    data = b"".join(
        send(number, b"%d" % number, number % 2) + (flow(1) if number % 10 == 0 else b"")
        for number in range(2 * COUNT)
    )
    told = told_of(durable, data + frame_encode("PING", {}))
    for producer_id in (0, 1):
        receipts = [
            values["sequence_id"]
            for name, values, _ in told
            if name == "SEND_RECEIPT" and values["producer_id"] == producer_id
        ]
        assert receipts == [*range(producer_id, 2 * COUNT, 2)]
    client = client_of(durable)
    assert stored(client) == [b"%d" % number for number in range(0, 2 * COUNT, 2)]
    assert stored(client, "u") == [b"%d" % number for number in range(1, 2 * COUNT, 2)]
    delivered = [each[2] for each in told if each[0] == "MESSAGE"]
    delivered += [each[2] for each in told_of(durable, flow(COUNT)) if each[0] == "MESSAGE"]
    assert delivered == [entry(b"%d" % number, number) for number in range(0, 2 * COUNT, 2)]


def test_receipts_name_the_places_of_their_entries(durable: Peer) -> None:
    told = told_of(durable, b"".join(send(number) for number in range(COUNT)))
    ids = [values["message_id"]["entry_id"] for _, values, _ in told]
    assert ids == [*range(COUNT)]
    assert len({values["message_id"]["ledger_id"] for _, values, _ in told}) == 1


def test_a_bad_checksum_refuses_its_entry_alone_and_in_its_turn(durable: Peer) -> None:
    data = send(0, b"a") + send(1, b"b") + damaged(2) + send(3, b"c") + damaged(4)
    told = told_of(durable, data)
    assert [(each[0], each[1]["sequence_id"]) for each in told] == [
        ("SEND_RECEIPT", 0),
        ("SEND_RECEIPT", 1),
        ("SEND_ERROR", 2),
        ("SEND_RECEIPT", 3),
        ("SEND_ERROR", 4),
    ]
    assert told[2][1]["error"] == CHECKSUM
    assert stored(client_of(durable)) == [b"a", b"b", b"c"]


def test_batches_among_single_messages_hold_what_they_say(durable: Peer) -> None:
    wrong = bytearray(batch(b"1", b"2"))
    frames = [send(0, b"0")]
    for number, each in enumerate([batch(b"1", b"2"), bytes(wrong[:-1])], 1):
        frames.append(frame_encode("SEND", {"producer_id": 0, "sequence_id": number}, each))
    told = told_of(durable, b"".join(frames) + send(3, b"3"))
    assert names(told) == ["SEND_RECEIPT", "SEND_RECEIPT", "SEND_ERROR", "SEND_RECEIPT"]
    assert stored(client_of(durable)) == [b"0", b"1", b"2", b"3"]


def test_what_comes_together_goes_on_in_the_next_ledger(tmp_path: Path) -> None:
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=7)
    with pulsarx.Client(tmp_path, durability="os", broker_options=options) as client:
        peer = Peer(serving(client))
        peer.connect()
        peer.produce()
        told = told_of(peer, b"".join(send(number, b"%d" % number) for number in range(COUNT)))
        assert [each[1]["sequence_id"] for each in told] == [*range(COUNT)]
        places = [each[1]["message_id"] for each in told]
        assert len({each["ledger_id"] for each in places}) == COUNT // 7 + 1
        assert stored(client) == [b"%d" % number for number in range(COUNT)]
        peer.server.close()


@pytest.mark.parametrize("how", ["refused", "half", "late"])
def test_a_write_that_fails_loses_and_doubles_nothing(durable: Peer, how: str) -> None:
    """Each entry is stored once, or refused: what lies in the ledger of the failed write is not
    found."""
    told_of(durable, send(0, b"0"))
    inspect(client_of(durable)).settle()  # the next ledger is made meanwhile
    with fault_plan() as plan:
        if how == "half":
            plan.short_write()
        else:
            plan.fail("write", late=how == "late")
        told = told_of(durable, b"".join(send(at, b"%d" % at) for at in range(1, 50)))
    assert [each[1]["sequence_id"] for each in told] == [*range(1, 50)]
    kept = [each[1]["sequence_id"] for each in told if each[0] == "SEND_RECEIPT"]
    assert len(kept) >= 48
    assert stored(client_of(durable)) == [b"%d" % at for at in (0, *kept)]


def test_what_may_be_found_all_the_same_is_not_stored_once_more(durable: Peer) -> None:
    told_of(durable, send(0, b"0"))
    inspect(client_of(durable)).settle()  # the next ledger is made meanwhile
    with fault_plan() as plan:
        plan.fail("write", late=True)
        plan.fail("write", call=2)  # which clears it
        told = told_of(durable, b"".join(send(at, b"%d" % at) for at in range(1, 50)))
    assert [each[1]["sequence_id"] for each in told] == [*range(1, 50)]
    assert set(names(told)) == {"SEND_ERROR"}
    assert names(told_of(durable, send(50, b"50"))) == ["SEND_RECEIPT"]
    assert stored(client_of(durable)) == [b"0", b"50"]


def test_where_there_is_no_room_each_is_told(durable: Peer) -> None:
    told_of(durable, send(0))
    inspect(client_of(durable)).settle()
    with fault_plan() as plan:
        for op in ("write", "allocate"):
            plan.fail(op, error=errno.ENOSPC, sticky=True)
        told = told_of(durable, b"".join(send(at) for at in range(1, 20)))
    assert [each[1]["sequence_id"] for each in told] == [*range(1, 20)]
    assert set(names(told)) == {"SEND_ERROR"}
    assert stored(client_of(durable)) == [b"x"]


def test_duplicates_among_what_comes_together_are_left_out(tmp_path: Path) -> None:
    options = pulsarx.BrokerOptions(broker_deduplication_enabled=True)
    with pulsarx.Client(tmp_path, durability="os", broker_options=options) as client:
        peer = Peer(serving(client))
        peer.connect()
        peer.say("PRODUCER", topic="t", producer_id=0, request_id=0, producer_name="p")
        data = b"".join(send(number, b"%d" % number) for number in (1, 2, 2, 1, 3))
        assert names(told_of(peer, data)) == ["SEND_RECEIPT"] * 5
        assert stored(client) == [b"1", b"2", b"3"]
        peer.server.close()


def test_what_comes_for_a_producer_that_was_shut_is_not_answered(durable: Peer) -> None:
    client = client_of(durable)
    client.admin.topics.terminate("t")
    told = told_of(durable, b"".join(send(number) for number in range(3)))
    assert "SEND_RECEIPT" not in names(told)
    assert stored(client) == []


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED])
def test_acknowledgements_of_one_buffer_are_recorded(durable: Peer, kind: int) -> None:
    durable.subscribe(type=kind)
    data = b"".join(send(number) for number in range(COUNT))
    told = told_of(durable, data) + told_of(durable, flow(COUNT))
    places = [values["message_id"] for name, values, _ in told if name == "MESSAGE"]
    assert len(places) == COUNT
    odd = [ack(each) for each in places[1::2]]
    told_of(durable, b"".join(odd) + ack(*places[0:10]))
    assert backlog(durable) == COUNT // 2 - 5
    told_of(durable, ack(*places) + ack(*places))
    assert backlog(durable) == 0


def test_what_was_sent_before_a_move_is_not_acknowledged(peer: Peer) -> None:
    peer.produce(entry(b"a"), entry(b"b"))
    other = peer.another()
    peer.subscribe()
    other.subscribe()
    places = [each[1]["message_id"] for each in peer.say("FLOW", consumer_id=0, permits=10)]
    other.say("SEEK", consumer_id=0, request_id=6, message_id={"ledger_id": 0, "entry_id": 0})
    told_of(peer, ack(*places))
    peer.subscribe()
    found = peer.say("FLOW", consumer_id=0, permits=10)
    assert [each[2] for each in found] == [entry(b"a"), entry(b"b")]


def test_an_acknowledgement_of_what_never_was_harms_nobody(peer: Peer) -> None:
    peer.produce(entry(b"a"))
    peer.subscribe()
    (told,) = told_of(peer, flow(10))
    nowhere = {"ledger_id": 999, "entry_id": 0}
    assert told_of(peer, ack(nowhere) + ack(told[1]["message_id"], nowhere)) == []
    assert peer.say("REDELIVER_UNACKNOWLEDGED", consumer_id=0) == []


def test_more_entries_than_places_are_remembered_are_acknowledged(peer: Peer) -> None:
    """An entry takes the place of one that was sent long before, which is looked up then."""
    count = (1 << 14) + 100
    peer.produce()
    peer.subscribe(type=EXCLUSIVE)
    for begin in range(0, count, 1000):
        data = b"".join(send(number) for number in range(begin, min(begin + 1000, count)))
        told_of(peer, data)
    told = told_of(peer, flow(count))
    places = [values["message_id"] for name, values, _ in told if name == "MESSAGE"]
    assert len(places) == count
    told_of(peer, b"".join(ack(each) for each in reversed(places)))
    assert told_of(peer, frame_encode("REDELIVER_UNACKNOWLEDGED", {"consumer_id": 0})) == []


# Over a socket ------------------------------------------------------------------------------------


def test_a_client_that_reads_no_receipts_is_read_no_more(
    open_served: Callable[..., Served],
) -> None:
    served = open_served()
    slow, other = Speaker(served), Speaker(served)
    slow.greet()
    slow.produce()
    other.greet()
    slow.socket.settimeout(None)
    data = b"".join(send(number) for number in range(1000)) * 300
    sender = threading.Thread(target=slow.socket.sendall, args=(data,))
    sender.start()
    connections = served.network.connections
    while not (found := [each for each in connections if each._came_size > 10_000]):
        pass
    while found[0]._reads:
        pass
    other.say("PING")
    assert other.hear()[0] == "PONG"
    receipts = [slow.hear()[1]["sequence_id"] for _ in range(300_000)]
    sender.join()
    assert receipts == [*range(1000)] * 300


@pytest.mark.parametrize("cut", [0, 1, 9, 40])
def test_a_connection_that_dies_in_the_middle_leaves_whole_entries_in_order(
    open_served: Callable[..., Served], cut: int
) -> None:
    served = open_served()
    dying = Speaker(served)
    dying.greet()
    dying.produce()
    data = b"".join(send(number, b"%d" % number) for number in range(5000))
    dying.socket.sendall(data + send(5000, b"never")[:cut])
    # What was not sent is thrown away, and the other end told so at once.
    dying.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    dying.socket.close()
    while served.network.connections:
        pass
    found = stored(served.client)
    assert found == [b"%d" % number for number in range(len(found))]
    other = Speaker(served)
    other.greet()
    other.produce()
    other.say("SEND", entry(b"alive"), producer_id=0, sequence_id=1)
    assert other.hear()[0] == "SEND_RECEIPT"
    assert stored(served.client)[-1] == b"alive"
