"""Facts about connections over TCP: their limits, what is silent, cut or lies, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from seeds import scaled, seed_of
from served import Served
from speaker import PATIENCE_SECONDS, Speaker, looks
from support.ports import port_to_come_back_to
from support.waiting import wait_until

import pulsarx
from pulsarx import errors
from pulsarx._pycore.ranges.entry_codec import encode_entry
from pulsarx.clock import ManualClock
from pulsarx.server import serve
from pulsarx.server.served_connection import CAME_MAX, READ_SIZE, UNSENT_MAX
from pulsarx.sessions.producers import IN_FLIGHT_MAX
from pulsarx.sessions.session import GREETING_SIZE_MAX
from pulsarx.testing import inspect
from pulsarx.wire.commands import COMMANDS, EXCLUSIVE, SHARED
from pulsarx.wire.frames import frame_encode
from pulsarx.wire.protobuf import Kind, Schema


class Peer(Speaker):
    """One that has said who it is, unless told otherwise."""

    def __init__(self, served: Served, *, greet: bool = True) -> None:
        super().__init__(served)
        if greet:
            self.greet()


def entry(payload: bytes) -> bytes:
    return encode_entry(payload, producer_name="p", sequence_id=1, publish_time_ms=1000)


def the_connection(served: Served) -> Any:
    while not served.network.connections:
        pass
    (found,) = served.network.connections
    return found


@pytest.fixture
def clocked(open_served: Callable[..., Served]) -> Served:
    return open_served(ManualClock())


def test_a_client_that_is_silent_is_asked_whether_it_is_there(clocked: Served) -> None:
    peer = Peer(clocked)
    for _ in range(3):
        looks(clocked, 3)
        assert peer.hear()[0] == "PING"
        peer.say("PONG")
        peer.say("PING")
        assert peer.hear()[0] == "PONG"


def test_a_client_that_does_not_answer_is_dropped(clocked: Served) -> None:
    peer = Peer(clocked)
    peer.subscribe(EXCLUSIVE)
    peer.say("PING")
    assert peer.hear()[0] == "PONG"
    looks(clocked, 4)
    assert peer.hear()[0] == "PING"
    assert clocked.network.connections
    looks(clocked, 1)
    assert peer.is_hung_up_on()
    wait_until(lambda: not clocked.network.connections)  # its consumer is closed
    Peer(clocked).subscribe(EXCLUSIVE)


def test_a_client_that_does_not_greet_is_dropped(clocked: Served) -> None:
    peer = Peer(clocked, greet=False)
    the_connection(clocked)
    looks(clocked, 3)
    assert peer.is_hung_up_on()


def test_before_its_greeting_a_client_costs_little(served: Served) -> None:
    """A frame may have five megabytes, of a client that has said who it is."""
    peer = Peer(served, greet=False)
    peer.socket.sendall((GREETING_SIZE_MAX + 1).to_bytes(4, "big"))
    assert peer.is_hung_up_on()
    peer = Peer(served)
    peer.socket.sendall((5 << 20).to_bytes(4, "big") + b"\0" * GREETING_SIZE_MAX)
    assert Peer(served).hear
    peer.socket.close()


def test_a_frame_has_a_limit(served: Served) -> None:
    peer = Peer(served)
    peer.socket.sendall((6 << 20).to_bytes(4, "big"))
    assert peer.is_hung_up_on()


def test_what_was_sent_before_the_end_is_done(served: Served) -> None:
    peer = Peer(served)
    peer.produce()
    for _ in range(100):
        peer.say("SEND", entry(b"x"), producer_id=0, sequence_id=1)
    peer.socket.close()  # with receipts on their way: the broker hears of a reset
    reader = served.client.create_reader("t", pulsarx.MessageId.earliest)
    assert reader.read_next(60_000).data() == b"x"


def test_a_connection_that_is_cut_in_a_frame_leaves_its_topics(served: Served) -> None:
    peer = Peer(served)
    peer.subscribe(EXCLUSIVE)
    peer.produce()
    frame = frame_encode("SEND", {"producer_id": 0, "sequence_id": 1}, entry(b"x" * 1000))
    peer.socket.sendall(frame[:-1])
    peer.socket.close()
    while served.client.admin.topics.stats("t")["subscriptions"]["s"]["consumers"]:
        pass
    assert inspect(served.client).broker.topics.open_topics()
    assert served.client.create_reader("t", pulsarx.MessageId.earliest).has_message_available() is (
        False
    )
    other = Peer(served)
    other.subscribe(EXCLUSIVE)


def test_a_reader_that_does_not_read_holds_no_more_than_a_buffer(served: Served) -> None:
    size, count = 1 << 20, 64
    producer = served.client.create_producer("t")
    for number in range(count):
        producer.send(b"%d" % number + b"x" * size)
    peer = Peer(served)
    peer.subscribe(EXCLUSIVE, permits=count)
    peer.say("PING")
    connection = the_connection(served)
    while not connection._is_blocked:
        pass
    other = Peer(served)  # by when the other one has had its turns
    other.say("PING")
    assert other.hear()[0] == "PONG"
    held = connection._output.size + connection._transport.get_write_buffer_size()
    assert held <= 2 * (UNSENT_MAX + size)
    found = [peer.hear() for _ in range(count + 1)]
    messages = [each for each in found if each[0] == "MESSAGE"]
    assert len(messages) == count
    assert b"63x" in messages[-1][2]


def test_what_is_not_answered_yet_is_limited(open_served: Callable[..., Served]) -> None:
    """Entries wait in memory for the publish rate: as many as a client likes to send."""
    clock = ManualClock()
    served = open_served(clock)
    served.client.admin.topics.create_non_partitioned_topic("t")
    served.client.admin.topics.set_publish_rate("t", 1)
    peer = Peer(served)
    peer.produce()
    frame = frame_encode("SEND", {"producer_id": 0, "sequence_id": 1}, entry(b"x" * 1_000_000))
    sender = threading.Thread(target=send_much, args=(peer.socket, frame * 100))
    sender.start()
    connection = the_connection(served)
    while connection._reads or not connection.session.is_full:
        pass
    assert connection.session.producers.in_flight.size < IN_FLIGHT_MAX + 2 * CAME_MAX
    assert connection._came_size - connection._done_size < CAME_MAX + READ_SIZE
    peer.socket.shutdown(socket.SHUT_RDWR)
    sender.join()


def send_much(to: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        to.sendall(data)


def test_two_hundred_idle_connections_cost_no_thread(served: Served) -> None:
    peers = [Peer(served) for _ in range(200)]
    assert served.network.pool.started <= 16
    for each in peers:
        each.say("PING")
    for each in peers:
        assert each.hear()[0] == "PONG"
        each.socket.close()


def mutated(chance: random.Random, frame: bytes) -> bytes:
    data = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        step = chance.randrange(4)
        if step == 0:
            data[at] = chance.randrange(256)
        elif step == 1:
            data[at:at] = chance.randbytes(chance.randint(1, 8))
        elif step == 2:
            del data[at : at + chance.randint(1, 8)]
        else:
            data[at : at + 8] = chance.choice([b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7])
        data = data or bytearray(b"\0")
    return bytes(data)


def true_frames() -> list[bytes]:
    ids = {"ledger_id": 1, "entry_id": 0, "ack_set": [3, -1]}
    said: list[tuple[str, dict[str, Any], bytes | None]] = [
        ("PRODUCER", {"topic": "t", "producer_id": 1, "request_id": 1}, None),
        ("SEND", {"producer_id": 0, "sequence_id": 1}, entry(b"x" * 50)),
        ("FLOW", {"consumer_id": 0, "permits": 5}, None),
        ("ACK", {"consumer_id": 0, "ack_type": 1, "message_ids": [ids], "request_id": 5}, None),
        ("REDELIVER_UNACKNOWLEDGED", {"consumer_id": 0, "message_ids": [ids]}, None),
        ("SEEK", {"consumer_id": 0, "request_id": 7, "message_id": ids}, None),
        ("LOOKUP", {"topic": "t", "request_id": 1}, None),
        ("PARTITIONED_METADATA", {"topic": "t", "request_id": 1}, None),
        ("GET_TOPICS_OF_NAMESPACE", {"namespace": "public/default", "request_id": 1}, None),
        ("CONSUMER_STATS", {"consumer_id": 0, "request_id": 1}, None),
        ("GET_LAST_MESSAGE_ID", {"consumer_id": 0, "request_id": 1}, None),
        ("GET_SCHEMA", {"topic": "t", "request_id": 1, "schema_version": b"\0" * 8}, None),
        ("END_TXN", {"request_id": 1, "least": 1, "most": 2}, None),
        ("CLOSE_PRODUCER", {"producer_id": 1, "request_id": 9}, None),
        ("PING", {}, None),
    ]
    schema = {"name": "x", "data": b'{"type":"record"}', "type": 4, "properties": []}
    subscription = {"topic": "t", "subscription": "s", "type": SHARED, "consumer_id": 2}
    said.append(("GET_OR_CREATE_SCHEMA", {"topic": "t", "request_id": 1, "schema": schema}, None))
    said.append(("SUBSCRIBE", {**subscription, "request_id": 3, "start_message_id": ids}, None))
    return [frame_encode(name, values, data) for name, values, data in said]


@pytest.mark.standard
def test_lies_end_their_connection_and_nothing_else(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(seed_of(6650))
    frames = true_frames()
    honest = Peer(served)
    for round_ in range(scaled(150)):
        peer = Peer(served, greet=chance.random() > 0.1)
        try:
            if chance.random() > 0.5:
                peer.produce()
                peer.subscribe()
            for _ in range(chance.randint(1, 30)):
                frame = chance.choice(frames)
                lies = chance.random()
                if lies < 0.1:
                    frame = chance.randbytes(chance.randint(1, 300))
                elif lies < 0.6:
                    frame = mutated(chance, frame)
                    if chance.random() > 0.3:  # the lie is in the command, not in its size
                        frame = max(len(frame) - 4, 0).to_bytes(4, "big") + frame[4:]
                peer.socket.sendall(frame)
            peer.socket.shutdown(socket.SHUT_WR)
            assert peer.is_hung_up_on()  # when all of it is done
        except TimeoutError:
            raise
        except OSError:
            pass  # it was hung up on before
        peer.socket.close()
        if round_ % 10 == 0:
            honest.say("PING")
            assert honest.hear()[0] == "PONG"
    honest.produce()
    honest.say("SEND", entry(b"true"), producer_id=0, sequence_id=1)
    assert honest.hear()[0] == "SEND_RECEIPT"
    assert "because of a bug" not in caplog.text, caplog.text


NUMBERS = {
    Kind.UINT64: [0, 1, 2, 5, 1 << 31, (1 << 63) - 1, 1 << 63, (1 << 64) - 1],
    Kind.UINT32: [0, 1, 2, 1000, (1 << 31), (1 << 32) - 1],
    Kind.INT64: [0, 1, -1, 5, (1 << 63) - 1, -(1 << 63)],
    Kind.INT32: [0, 1, 2, 3, -1, 99, (1 << 31) - 1, -(1 << 31)],
    Kind.BOOL: [False, True],
}
TEXTS = ["t", "s", "u", "", "a b", "t-partition-0", "public/default", "x" * 300, "\0", "../..", "ä"]
TEXTS += [
    "persistent://public/default/t",
    "non-persistent://a/b/c",
    "persistent://a/b/c/d/e",
    "://",
]
BLOCKS = [b"", b"\0" * 8, b"\xff" * 8, b"{", b'{"type":"record"}', b"x" * 1000]
ANSWERS = (
    "_RESPONSE",
    "_SUCCESS",
    "_RECEIPT",
    "_ERROR",
    "CONNECTED",
    "MESSAGE",
    "SUCCESS",
    "ERROR",
)


def absurd(chance: random.Random, schema: Schema, depth: int = 0) -> dict[str, Any]:
    """Values that a command may have, most of them senseless."""
    found: dict[str, Any] = {}
    for key, field in schema.fields.items():
        if not field.required and chance.random() < 0.5:
            continue
        count = chance.choice([0, 1, 1, 2, 70]) if field.repeated else 1
        values = [absurd_value(chance, field.kind, depth) for _ in range(count)]
        found[key] = values if field.repeated else values[0]
    return found


def absurd_value(chance: random.Random, kind: Kind | Schema, depth: int) -> Any:
    if isinstance(kind, Schema):
        return absurd(chance, kind, depth + 1)
    return chance.choice(
        TEXTS if kind is Kind.STRING else BLOCKS if kind is Kind.BYTES else NUMBERS[kind]
    )


@pytest.mark.standard
def test_absurd_commands_end_nothing(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    """Commands that are well made and make no sense. What no broker foresaw is told as code 0."""
    chance = random.Random(seed_of(6651))
    names = [name for name in COMMANDS if not name.endswith(ANSWERS) and name != "CONNECT"]
    names += ["SEND", "ACK", "SUBSCRIBE", "PRODUCER", "SEEK"] * 3
    entries = [entry(b"x" * 50), b"\x0e\x01", b"\0" * 30, b"x"]
    unforeseen = []
    for _ in range(scaled(60)):
        peer = Peer(served)
        peer.produce()
        peer.subscribe()
        for number in range(40):
            name = chance.choice(names)
            values = absurd(chance, COMMANDS[name][1])
            data = chance.choice(entries) if name == "SEND" else None
            try:
                peer.say(name, data, **values)
                if number % 10 == 9:
                    peer.say("PING")
                    while (told := peer.hear())[0] != "PONG":
                        if told[1].get("error") == 0:
                            unforeseen.append((name, told[1]["message"]))
            except TimeoutError:
                raise
            except OSError:
                break  # it was hung up on
        peer.socket.close()
    assert "because of a bug" not in caplog.text, caplog.text
    assert not unforeseen


def test_verbs_are_not_for_everybody(served: Served) -> None:
    """A verb may do what the owner of the folder may."""
    peer = Peer(served)
    peer.say("VERB", request_id=1, verb="tenants.get_tenants", arguments="{}")
    name, values, _ = peer.hear()
    assert (name, values["error"]) == ("VERB_RESPONSE", "OperationNotSupported")


def test_the_address_of_the_connection_is_told(served: Served) -> None:
    peer = Peer(served)
    peer.say("LOOKUP", topic="t", request_id=1)
    assert peer.hear()[1]["service_url"] == served.service.service_url


def test_an_address_of_the_network_is_refused_unless_all_are_welcome() -> None:
    with pulsarx.Client("memory:") as client:
        with pytest.raises(errors.InvalidConfiguration, match=r"0\.0\.0\.0"):
            serve(client, host="0.0.0.0", port=0)
        port = port_to_come_back_to()
        with serve(client, host="0.0.0.0", port=port, allow_anonymous=True):
            address = ("127.0.0.1", port)
            socket.create_connection(address, PATIENCE_SECONDS).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, PATIENCE_SECONDS)


def test_a_port_that_is_taken_is_told(served: Served) -> None:
    with pytest.raises(errors.ConnectError, match=str(served.service.port)):
        serve(served.client, port=served.service.port)


def test_a_client_that_is_closed_or_only_reads_is_not_served(tmp_path: Any) -> None:
    client = pulsarx.Client("memory:")
    client.close()
    with pytest.raises(errors.AlreadyClosed):
        serve(client, port=0)
    pulsarx.Client(str(tmp_path)).close()
    with (
        pulsarx.Client(str(tmp_path), read_only=True) as reading,
        pytest.raises(errors.OperationNotSupported),
    ):
        serve(reading, port=0)


def test_before_it_hangs_up_the_service_answers(open_served: Callable[..., Served]) -> None:
    """What was stored and not confirmed would be sent again, to the next owner of the folder."""
    served = open_served(durability="sync")
    peer = Peer(served)
    peer.produce()
    connection = the_connection(served)
    free = threading.Event()
    served.network.server.completions.jobs.post(lambda: free.wait(PATIENCE_SECONDS))
    frames = [
        frame_encode("SEND", {"producer_id": 0, "sequence_id": number}, entry(b"x"))
        for number in range(50)
    ]
    peer.socket.sendall(b"".join(frames))  # at once: the thread that reads flushes for a single one
    peer.say("PING")
    assert peer.hear()[0] == "PONG"  # all of it came, and nothing is confirmed
    closing = threading.Thread(target=served.service.close)
    closing.start()
    while not connection._is_ending:
        pass
    free.set()
    found = []
    with pytest.raises(ConnectionError):
        while True:
            found.append(peer.hear())
    closing.join()
    receipts = [values["sequence_id"] for name, values, _ in found if name == "SEND_RECEIPT"]
    assert receipts == [*range(50)]


def test_it_works_without_uvloop(
    open_served: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    served = open_served()
    assert isinstance(served.network.loop, asyncio.SelectorEventLoop)
    peer = Peer(served)
    peer.produce()
    peer.say("SEND", entry(b"x" * 4_000_000), producer_id=0, sequence_id=1)
    assert peer.hear()[0] == "SEND_RECEIPT"
    peer.subscribe()
    assert peer.hear()[2].endswith(b"x" * 4_000_000)
    served.service.close()
    assert peer.is_hung_up_on()


@pytest.mark.parametrize("without", [[], ["uvloop"]])
def test_who_comes_just_before_it_closes_is_hung_up_on(
    open_served: Callable[..., Served], monkeypatch: pytest.MonkeyPatch, without: list[str]
) -> None:
    """What was accepted, and told to nobody when the servers were closed, stayed open."""
    for name in without:
        monkeypatch.setitem(sys.modules, name, None)
    for turns in range(6):
        served = open_served()
        network = served.network
        connected = threading.Event()

        def end_in(turns: int, network: Any = network, connected: Any = connected) -> None:
            connected.wait(PATIENCE_SECONDS)
            if turns:
                network.loop.call_soon(end_in, turns - 1)
            else:
                network._ending.set()

        network.loop.call_soon_threadsafe(end_in, turns)
        address = (served.service.host, served.service.port)
        with socket.create_connection(address, PATIENCE_SECONDS) as peer:
            connected.set()
            with gc_off():
                served.service.close()
                with contextlib.suppress(ConnectionResetError):
                    assert peer.recv(1) == b"", f"{turns} turns"


@contextlib.contextmanager
def gc_off() -> Iterator[None]:
    """Nothing is closed because it is forgotten."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def test_a_forked_child_keeps_no_connection_open(open_served: Callable[..., Served]) -> None:
    served = open_served()
    peer = Peer(served)
    there, here = os.pipe()
    child = os.fork()
    if not child:
        os.close(here)
        served.service.close()  # which is its parent's to close
        os.read(there, 1)
        os._exit(0)
    peer.say("PING")
    assert peer.hear()[0] == "PONG"
    served.service.close()
    assert peer.is_hung_up_on()
    with pytest.raises(ConnectionRefusedError):
        Peer(served)
    os.close(here)
    assert os.waitpid(child, 0)[1] == 0
    os.close(there)


def test_a_service_that_is_forgotten_is_closed() -> None:
    with pulsarx.Client("memory:") as client:
        port = serve(client, port=port_to_come_back_to()).port
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS).close()
            except ConnectionResetError:
                pass  # it was closing
            except ConnectionRefusedError:
                break
        with serve(client, port=port) as service:
            assert service.port == port
