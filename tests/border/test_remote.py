"""Facts about the client's end of a connection: what it does when the broker closes, refuses or
says what was not expected."""

from __future__ import annotations

import errno
import re
import struct
import threading
from pathlib import Path
from typing import Any

import pytest
from border_client import BorderClient
from client_connection import ClientConnection
from remote_client import RemoteClient
from remote_receiver import RemoteReceiver

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId, errors
from pulsarx._pycore.ranges.entry_codec import crc32c, encode_batch
from pulsarx.schema import BytesSchema
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan
from pulsarx.topic_name import TopicName
from pulsarx.wire import commands
from pulsarx.wire.frames import FrameReader, frame_encode
from pulsarx.wire.protobuf import WireError

PATIENCE = 60.0  # of what has to happen, on a machine that is busy with something else
PATIENCE_MS = 60_000
KINDS = [ConsumerType.Exclusive, ConsumerType.Shared]
ANSWERS: dict[str, tuple[str, dict[str, Any]]] = {
    "CONNECT": ("CONNECTED", {"server_version": "script"}),
    "PING": ("PONG", {}),
    "PARTITIONED_METADATA": ("PARTITIONED_METADATA_RESPONSE", {"partitions": 0}),
    "PRODUCER": ("PRODUCER_SUCCESS", {"producer_name": "p"}),
    "CLOSE_PRODUCER": ("SUCCESS", {}),
    "SUBSCRIBE": ("SUCCESS", {}),
    "CLOSE_CONSUMER": ("SUCCESS", {}),
}


class Script:
    """A broker that answers every request at once, and says what a test has it say."""

    def __init__(self) -> None:
        self.connection = ClientConnection(self._hear, lambda: None, PATIENCE)
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.sends = threading.Semaphore(0)
        self.before: dict[str, Any] = {}  # what happens before a command is answered
        self._reader = FrameReader(5 << 20)

    def _hear(self, data: bytes) -> None:
        for name, values, _ in self._reader.feed(data):
            self.heard.append((name, values))
            self.before.get(name, lambda: None)()
            if name == "SEND":
                self.sends.release()
            if name in ANSWERS:
                answer, fields = ANSWERS[name]
                ids = {"request_id": values["request_id"]} if "request_id" in values else {}
                self.say(answer, **ids, **fields)

    def say(self, name: str, entry: bytes | None = None, **values: Any) -> None:
        self.connection.received(frame_encode(name, values, entry))

    def of(self, name: str) -> list[dict[str, Any]]:
        return [values for each, values in self.heard if each == name]

    def receiver(self, queue_size: int) -> RemoteReceiver:
        request = {"subscription": "s", "type": commands.EXCLUSIVE}
        made = RemoteReceiver(
            self.connection, TopicName.of("t"), BytesSchema(), queue_size, request
        )
        made.attach()
        return made

    def message(self, entry: bytes, entry_id: int = 0, **values: Any) -> None:
        (number,) = {each["consumer_id"] for each in self.of("SUBSCRIBE")}
        place = {"ledger_id": 0, "entry_id": entry_id}
        self.say("MESSAGE", entry, consumer_id=number, message_id=place, **values)


def batch(count: int) -> bytes:
    found: list[Any] = [(b"%d" % number, {}) for number in range(count)]
    return encode_batch(found, producer_name="p", publish_time_ms=1000)


def permits(script: Script) -> int:
    return sum(each["permits"] for each in script.of("FLOW"))


# Closed by the broker -----------------------------------------------------------------------------


def test_a_consumer_that_is_being_closed_does_not_subscribe_again() -> None:
    """When a seek elsewhere closed it at the same time it came back, and nobody closed it then."""
    script = Script()
    receiver = script.receiver(10)
    number = script.of("SUBSCRIBE")[0]["consumer_id"]
    closed = {"consumer_id": number, "request_id": commands.FROM_BROKER}
    script.before["CLOSE_CONSUMER"] = lambda: script.say("CLOSE_CONSUMER", **closed)
    assert receiver.shut()
    assert len(script.of("SUBSCRIBE")) == 1
    assert permits(script) == 10


def test_a_consumer_that_the_broker_shuts_is_told_and_subscribes_again(tmp_path: Path) -> None:
    """It was not told, and waited for ever."""
    with BorderClient(tmp_path / "data") as client:
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        inspect(client).topic("t").unsubscribe("s")
        client.create_producer("t").send(b"x")
        assert consumer.receive(PATIENCE_MS).data() == b"x"


def test_a_producer_that_is_closed_while_it_is_made_refuses_what_is_sent() -> None:
    """Its CLOSE_PRODUCER was not taken, and its first send waited for an answer for ever."""
    script = Script()
    client = RemoteClient("memory:", connect=lambda _: script.connection)
    made = script.connection.add_producer

    def closed_at_once(member: Any) -> int:
        number = made(member)
        script.before["PRODUCER"] = lambda: script.say(
            "CLOSE_PRODUCER", producer_id=number, request_id=commands.FROM_BROKER
        )
        return number

    script.connection.add_producer = closed_at_once  # type: ignore[method-assign]
    producer = client.create_producer("t")
    assert not producer.is_connected()
    with pytest.raises(errors.AlreadyClosed, match="closed by the broker"):
        producer.send(b"x")
    assert script.of("SEND") == []
    producer.close()


def test_what_waits_for_an_answer_when_the_broker_closes_the_producer_is_told() -> None:
    script = Script()
    client = RemoteClient("memory:", connect=lambda _: script.connection)
    producer = client.create_producer("t")
    told: list[Any] = []
    producer.send_async(b"x", lambda result, _: told.append(result))
    number = script.of("PRODUCER")[0]["producer_id"]
    script.say("CLOSE_PRODUCER", producer_id=number, request_id=commands.FROM_BROKER)
    script.connection.completions.wait()
    assert told == [pulsarx.Result.AlreadyClosed]
    assert not producer.is_connected()
    place = {"ledger_id": 0, "entry_id": 0}
    script.say("SEND_RECEIPT", producer_id=number, sequence_id=0, message_id=place)  # too late
    client.create_reader("t", MessageId.earliest)


def test_a_pattern_of_topics_is_refused_over_a_connection(tmp_path: Path) -> None:
    """A topic was made with the pattern as its name."""
    with BorderClient(tmp_path / "data") as client:
        with pytest.raises(errors.OperationNotSupported, match="several topics"):
            client.subscribe(re.compile("p-.*"), "s")
        assert client.admin.topics.get_list() == []


def test_encryption_is_refused_over_a_connection(tmp_path: Path) -> None:
    with BorderClient(tmp_path / "data") as client:
        keys = pulsarx.CryptoKeyReader("public", "private")
        stored = {"crypto_failure_action": pulsarx.ConsumerCryptoFailureAction.CONSUME}
        for ask in (
            lambda: client.create_producer("t", encryption_key="k", crypto_key_reader=keys),
            lambda: client.subscribe("t", "s", crypto_key_reader=keys),
            lambda: client.subscribe("t", "s", **stored),
            lambda: client.create_reader("t", MessageId.earliest, crypto_key_reader=keys),
            lambda: client.create_reader("t", MessageId.earliest, **stored),
        ):
            with pytest.raises(errors.OperationNotSupported, match="encryption is not supported"):
                ask()
        client.create_producer("t", crypto_key_reader=keys).send(b"plain")
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        assert consumer.receive(PATIENCE_MS).data() == b"plain"


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_encrypted_is_an_error_to_who_receives_it_over_a_connection(count: int) -> None:
    broker = Script()
    receiver = broker.receiver(10)
    name, keys = b"\x0a\x01p\x10\x00\x18\x01", b"\x6a\x06\x0a\x01k\x12\x01v"
    metadata = name + (b"\x58" + bytes((count,)) if count > 1 else b"") + keys
    checked = struct.pack(">I", len(metadata)) + metadata + bytes(100)
    broker.message(struct.pack(">HI", 0x0E01, crc32c(checked)) + checked)
    with pytest.raises(errors.UnreadableEntryError, match="not supported yet over a connection"):
        receiver.receive(PATIENCE_MS)
    assert receiver.take_now() is None


def test_a_compacted_topic_is_not_read_over_a_connection(tmp_path: Path) -> None:
    with BorderClient(tmp_path / "data") as client:
        for call in (
            lambda: client.subscribe("t", "s", is_read_compacted=True),
            lambda: client.create_reader("t", MessageId.earliest, is_read_compacted=True),
        ):
            with pytest.raises(errors.OperationNotSupported, match="compacted topic"):
                call()


def test_a_read_that_fails_is_told_to_its_consumer_and_to_no_other(tmp_path: Path) -> None:
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    with pulsarx.Client(tmp_path / "data", broker_options=options) as inner:
        for number in range(6):
            inner.create_producer("t").send(b"%d" % number)
    with BorderClient(tmp_path / "data", broker_options=options) as client:
        other = client.subscribe("u", "s")
        consumer = client.subscribe(
            "t", "s", receiver_queue_size=0, initial_position=InitialPosition.Earliest
        )
        with fault_plan() as plan:
            plan.fail("open", error=errno.EMFILE, sticky=True)
            with pytest.raises(errors.BrokerPersistenceError, match="Too many open files"):
                for _ in range(6):
                    assert consumer.receive_many(1, PATIENCE_MS)
        client.create_producer("u").send(b"x")
        assert other.receive(PATIENCE_MS).data() == b"x"
        consumer.close()
        again = client.subscribe("t", "s")
        assert [again.receive(PATIENCE_MS).data() for _ in range(6)] == [
            b"%d" % n for n in range(6)
        ]


# Without a queue ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_consumer_without_a_queue_gets_all_of_all_batches(
    tmp_path: Path, kind: ConsumerType
) -> None:
    """A batch took more permits than the one that was given, and nothing came behind it."""
    with BorderClient(tmp_path / "data") as client:
        consumer = client.subscribe("t", "s", kind, receiver_queue_size=0)
        producer = client.create_producer("t", batching_enabled=True, batching_max_messages=5)
        producer.send_many([b"%d" % number for number in range(15)])
        found = [consumer.receive_many(1, PATIENCE_MS) for _ in range(15)]
        assert [each[0].data() for each in found if each] == [b"%d" % n for n in range(15)]


def test_a_consumer_without_a_queue_asks_again_behind_a_redelivery(tmp_path: Path) -> None:
    with BorderClient(tmp_path / "data") as client:
        consumer = client.subscribe("t", "s", receiver_queue_size=0)
        producer = client.create_producer("t", batching_enabled=True, batching_max_messages=5)
        producer.send_many([b"%d" % number for number in range(10)])
        for _ in range(2):
            assert consumer.receive_many(1, PATIENCE_MS)
        consumer.redeliver_unacknowledged_messages()
        found = [consumer.receive_many(1, PATIENCE_MS) for _ in range(10)]
        assert [each[0].data() for each in found if each] == [b"%d" % n for n in range(10)]


def test_a_consumer_without_a_queue_asks_again_for_what_was_passed_over() -> None:
    """What was on its way before a redelivery took the permit along."""
    script = Script()
    receiver = script.receiver(0)
    assert receiver.take_now() is None
    assert permits(script) == 1
    receiver.redeliver([])
    script.message(batch(3))  # of before: it comes again
    assert receiver.take_now() is None
    assert permits(script) == 4
    script.message(batch(3), consumer_epoch=1)
    assert [receiver.take_now() is not None for _ in range(3)] == [True] * 3
    assert permits(script) == 4


def test_a_consumer_without_a_queue_that_waits_asks_again_after_a_seek_elsewhere() -> None:
    script = Script()
    receiver = script.receiver(0)
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.extend(receiver.receive_many(1, PATIENCE_MS)))
    asked = threading.Event()
    script.before["FLOW"] = asked.set
    waiting.start()
    assert asked.wait(PATIENCE)
    script.connection.settle()
    asked.clear()
    number = script.of("SUBSCRIBE")[0]["consumer_id"]
    script.say("CLOSE_CONSUMER", consumer_id=number, request_id=commands.FROM_BROKER)
    assert asked.wait(PATIENCE)
    script.message(batch(1))
    waiting.join(PATIENCE)
    assert len(found) == 1


def test_all_permits_of_a_damaged_batch_come_back() -> None:
    """One came back, however many messages it held: in the end nothing was sent any more."""
    script = Script()
    receiver = script.receiver(10)
    damaged = bytearray(batch(5))
    damaged[-1] ^= 1
    script.message(bytes(damaged))
    with pytest.raises(errors.CorruptDataError):
        receiver.take_now()
    assert permits(script) == 15


# What was not expected ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"max_pending_chunked_message": 9},
        {"auto_ack_oldest_chunked_message_on_queue_full": True},
        {"expire_time_of_incomplete_chunked_message_ms": 0},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_the_protocol_does_not_say_of_chunks_is_refused(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    client = BorderClient(tmp_path / "data", durability="os")
    with pytest.raises(errors.OperationNotSupported, match=next(iter(options))):
        client.subscribe("t", "s", **options)
    client.close()


def test_a_receipt_that_was_not_expected_ends_the_connection_and_all_who_wait_are_told() -> None:
    """It ended the thread that reads the connection, and every call waited for its whole time."""
    script = Script()
    client = RemoteClient("memory:", connect=lambda _: script.connection)
    producer = client.create_producer("t")
    failures: list[Exception] = []

    def send() -> None:
        try:
            producer.send(b"x")
        except Exception as error:
            failures.append(error)

    sending = threading.Thread(target=send)
    sending.start()
    assert script.sends.acquire(timeout=PATIENCE)
    number = script.of("PRODUCER")[0]["producer_id"]
    place = {"ledger_id": 0, "entry_id": 0}
    with pytest.raises(WireError, match=r"SEND_RECEIPT that cannot be taken.*not the oldest"):
        script.say("SEND_RECEIPT", producer_id=number, sequence_id=99, message_id=place)
    sending.join(PATIENCE)
    assert [type(each) for each in failures] == [errors.ConnectError]
    with pytest.raises(errors.ConnectError, match="broke the protocol"):
        client.create_reader("t", MessageId.earliest)
    client.close()
