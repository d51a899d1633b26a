"""Facts about what an owner sends to a consumer of another process, frame by frame."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from counted_lines import lines_of

import pulsarx
from pulsarx import errors
from pulsarx._pycore.ground import owner_link
from pulsarx._pycore.ranges.entry_codec import encode_entry
from pulsarx._pycore.wire.hot_commands import send_encode
from pulsarx.processes.owner.consumer import GuestConsumer
from pulsarx.processes.owner.session_verbs import SessionGuests
from pulsarx.sessions.server import Server
from pulsarx.testing import inspect
from pulsarx.wire.frames import FrameReader, frame_encode

CONSUMER = 7
MANY = 200


class Guest:
    """Another process's end of a connection, which says what a test has it say."""

    def __init__(self, client: Any) -> None:
        self._server = Server(inspect(client).broker)
        self._heard: list[tuple[str, dict[str, Any]]] = []
        self._reader = FrameReader(5 << 20)
        self._session = self._server.open_session(self._hear, lambda: None, guests=SessionGuests)
        self._say(frame_encode("CONNECT", {"client_version": "test", "protocol_version": 21}))

    def _hear(self, data: bytes) -> None:
        self._heard += [(name, values) for name, values, _ in self._reader.feed(data)]

    def _say(self, data: bytes) -> None:
        self._session.received(data)
        self._session.deliver()

    def deliver(self) -> None:
        self._session.deliver()

    def subscribe(
        self, kind: str, consumer_id: int = CONSUMER, topic: str = "t", subscription: str = "s"
    ) -> None:
        settings = {
            "receiver_queue_size": 1000, "priority_level": 0, "properties": {},
            "chunked_pending_max": 0, "acks_oldest_chunked": False, "chunked_expiry_ms": 0,
        }  # fmt: skip
        arguments = {
            "consumer_id": consumer_id, "topic": f"persistent://public/default/{topic}",
            "type": kind, "subscription": subscription, "durable": True, "consumer_name": "c",
            "start": [0, 0], "key_shared": None, "reads_any": False, "read_compacted": False,
            "wants_events": False, "goes_on": False, "settings": settings,
            "subscription_properties": {},
        }  # fmt: skip
        self.ask("guest.subscribe", arguments)

    def ask(self, verb: str, arguments: dict[str, Any]) -> None:
        ask = {"request_id": 1, "verb": verb, "arguments": json.dumps(arguments)}
        self._say(frame_encode("VERB", ask))
        assert {values["error"] for values in self.heard("VERB_RESPONSE")} == {None}

    def publish(self, entries: list[bytes]) -> None:
        """Entries of a producer that come together, numbered from 0."""
        topic = "persistent://public/default/t"
        self._say(frame_encode("PRODUCER", {"topic": topic, "producer_id": 2, "request_id": 2}))
        sends = enumerate(entries)
        self._say(b"".join(send_encode(2, number, 1, entry) for number, entry in sends))

    def wait(self) -> None:
        """Until the thread of callbacks has nothing to do."""
        self._server.completions.wait()

    def hold_callbacks(self, until: threading.Event) -> None:
        self._server.completions.jobs.post(lambda: until.wait(60))

    def tell(self, frames: list[tuple[int, ...]], consumer_id: int = CONSUMER) -> None:
        """Frames that come together: kind and numbers of each."""
        self._say(b"".join(owner_link.frame(kind, consumer_id, *rest) for kind, *rest in frames))

    def heard(self, name: str) -> list[dict[str, Any]]:
        return [values for each, values in self._heard if each == name]

    def answers(self) -> list[tuple[str, dict[str, Any]]]:
        return [each for each in self._heard if each[0] in ("SEND_RECEIPT", "SEND_ERROR")]

    def link(self) -> list[tuple[int, tuple[int, ...]]]:
        """The link frames that came since the last time."""
        found = [(each["kind"], tuple(each["numbers"])) for each in self.heard("LINK")]
        self._heard.clear()
        return found

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def client() -> Iterator[pulsarx.Client]:
    with pulsarx.Client("memory:") as made:
        yield made


def recorded(frames: list[tuple[int, tuple[int, ...]]]) -> int:
    """How many acknowledgements the owner has said to have recorded."""
    return max((numbers[0] for kind, numbers in frames if kind == owner_link.RECORDED), default=0)


def runs(frames: list[tuple[int, tuple[int, ...]]]) -> list[int]:
    return [numbers[1] for kind, numbers in frames if kind == owner_link.RUN]


def test_nothing_overtakes_what_comes_back_after_a_negative_acknowledgement(
    client: pulsarx.Client,
) -> None:
    """Later messages of a key were sent behind the confirmation of a rewind, while earlier ones
    that had been on their way came back: they were received out of order."""
    client.admin.topics.create_non_partitioned_topic("t")
    guest = Guest(client)
    guest.subscribe("KeyShared")
    producer = client.create_producer("t")
    for number in range(6):
        producer.send(b"%d" % number, partition_key="k")
    guest.tell([(owner_link.FLOW, 3)])
    frames = guest.link()
    ledger = frames[0][1][0]
    assert runs(frames) == [0, 1, 2]
    # It refuses the first, while the others are on their way: they come back below.
    guest.tell(
        [(owner_link.FLOW, 9), (owner_link.NACK, ledger, 0, 1, 0), (owner_link.REWIND, 0, 0, 0, 0)]
    )
    assert [kind for kind, _ in guest.link()] == [owner_link.RESET]
    guest.tell([(owner_link.GIVE_BACK, ledger, 1, 1), (owner_link.GIVE_BACK, ledger, 2, 1)])
    assert guest.link() == []
    guest.tell([(owner_link.RESET_DONE, 1)])
    assert runs(guest.link()) == [0, 1, 2, 3, 4, 5]
    guest.close()


def test_an_acknowledgement_that_the_disk_had_no_room_for_is_recorded_when_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its process was told that it was recorded, and forgot it: the message came again."""
    clock = pulsarx.ManualClock()
    with pulsarx.Client("memory:", clock=clock) as client:
        producer = client.create_producer("t")
        for number in range(3):
            producer.send(b"%d" % number)
        guest = Guest(client)
        guest.subscribe("Shared")
        guest.tell([(owner_link.FLOW, 3)])
        ledger = guest.link()[0][1][0]
        record = GuestConsumer.acknowledge_run

        def full(*_: object) -> None:
            raise errors.StorageFullError(detail="no space left")

        monkeypatch.setattr(GuestConsumer, "acknowledge_run", full, raising=False)
        guest.tell([(owner_link.ACKNOWLEDGE, ledger, 0, 1), (owner_link.ACKNOWLEDGE, ledger, 1, 1)])
        assert recorded(guest.link()) == 0
        monkeypatch.setattr(GuestConsumer, "acknowledge_run", record)
        guest.tell([(owner_link.ACKNOWLEDGE, ledger, 2, 1)])
        assert recorded(guest.link()) == 0
        clock.advance(1000)
        guest.deliver()
        assert recorded(guest.link()) == 3
        assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 0
        guest.close()


def entry_of(payload: bytes) -> bytes:
    return encode_entry(payload, producer_name="p", sequence_id=1, publish_time_ms=1000)


def test_a_receipt_waits_for_no_other_thread(tmp_path: Path) -> None:
    """The thread of callbacks was woken for each, and took the interpreter from the consumer that
    waited for the message."""
    with pulsarx.Client(tmp_path, durability="os") as client:
        guest, goes_on = Guest(client), threading.Event()
        guest.hold_callbacks(goes_on)
        guest.publish([entry_of(b"x")])
        assert [each["sequence_id"] for each in guest.heard("SEND_RECEIPT")] == [0]
        goes_on.set()
        guest.close()


@pytest.mark.parametrize("durability", ["os", "sync"])
def test_answers_come_in_the_order_of_the_sends(tmp_path: Path, durability: str) -> None:
    with pulsarx.Client(tmp_path, durability=durability) as client:
        guest = Guest(client)
        good, bad = entry_of(b"good"), entry_of(b"bad")[:-1] + b"?"
        guest.publish([good, good, bad, good, bad, good])
        guest.wait()
        told = [(name, each["sequence_id"]) for name, each in guest.answers()]
        receipt, error = "SEND_RECEIPT", "SEND_ERROR"
        assert told == [
            (receipt, 0), (receipt, 1), (error, 2), (receipt, 3), (error, 4), (receipt, 5)
        ]  # fmt: skip
        guest.close()


@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "KeyShared"])
def test_a_message_costs_the_same_beside_many_consumers_and_watches(
    client: pulsarx.Client, kind: str
) -> None:
    """Each look at the connection looked at all that its process has."""
    for topic in ("t", *(f"other-{number}" for number in range(7))):
        client.admin.topics.create_non_partitioned_topic(topic)
    guest = Guest(client)
    producer = client.create_producer("t")

    def publish_one() -> int:
        """The lines that it costs to send a message to its consumer, and to hear that it has it."""
        producer.send(b"x")
        cost = lines_of(guest.deliver)
        [(run, numbers)] = guest.link()
        assert run == owner_link.RUN
        ledger, first = numbers[:2]
        cost += lines_of(lambda: guest.tell([(owner_link.ACKNOWLEDGE, ledger, first, 1)]))
        assert [each for each, _ in guest.link()] == [owner_link.RECORDED]
        return cost

    guest.subscribe(kind)
    guest.tell([(owner_link.FLOW, 1000)])
    publish_one()  # the first one of a topic prepares things
    alone = publish_one()
    for number in range(1, MANY):
        topic = f"other-{number % 7}"
        guest.subscribe(kind, 100 + number, topic, f"s{number}")
        guest.tell([(owner_link.FLOW, 1000)], 100 + number)
        full_name = f"persistent://public/default/{topic}"
        guest.ask("guest.watch", {"topic": full_name, "number": number})
    guest.link()
    assert publish_one() < alone + MANY / 4
    guest.close()


def test_of_many_consumers_that_one_is_told_which_is_concerned(client: pulsarx.Client) -> None:
    topics = [f"t{number}" for number in range(10)]
    guest = Guest(client)
    for number, topic in enumerate(topics):
        client.admin.topics.create_non_partitioned_topic(topic)
        guest.subscribe("Shared", number, topic)
    guest.link()
    client.admin.topics.delete("t7", force=True)
    guest.deliver()
    told = [each for each in guest.heard("LINK") if each["kind"] == owner_link.CLOSED]
    assert [each["consumer_id"] for each in told] == [7]
    guest.link()
    for topic in topics[:3]:
        client.create_producer(topic).send(b"x")
    guest.deliver()
    assert guest.link() == []  # they have no permits
    guest.tell([(owner_link.FLOW, 1)], 1)
    assert [each["consumer_id"] for each in guest.heard("LINK")] == [1]
    guest.close()


def test_of_many_watches_that_one_has_news_which_is_concerned(client: pulsarx.Client) -> None:
    guest = Guest(client)
    for number in range(10):
        client.admin.topics.create_non_partitioned_topic(f"t{number}")
        topic = f"persistent://public/default/t{number}"
        guest.ask("guest.watch", {"topic": topic, "number": number})
    guest.link()
    client.create_producer("t7").send(b"x")
    guest.deliver()
    assert [each["consumer_id"] for each in guest.heard("LINK")] == [7]
    guest.close()


def test_a_subscription_that_was_made_for_a_consumer_goes_where_that_is_refused(
    client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stayed, and kept all messages from then on."""
    client.create_producer("t").close()
    guest = Guest(client)

    def refuse(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(GuestConsumer, "open_to", refuse)
        with pytest.raises(AssertionError, match="MemoryError"):
            guest.subscribe("Shared")
    assert client.admin.topics.get_subscriptions("t") == []
    guest.link()  # nothing is heard any more
    guest.subscribe("Shared")
    assert client.admin.topics.get_subscriptions("t") == ["s"]
    guest.close()
