"""A broker that does nothing, for what the client of a broker costs: it stores no message, confirms
each at once, and gives consumers the largest entry that was sent to their topic, again and again.

    python idle_broker.py       prints its port, and runs until its standard input is closed
"""

from __future__ import annotations

import asyncio
import sys
from itertools import count
from typing import Any

from pulsarx.wire.commands import COMMANDS, PROTOCOL_VERSION
from pulsarx.wire.protobuf import Field, Kind, Schema

MESSAGE_SIZE_MAX = 5 * 1024 * 1024
CONNECT_HERE = 1  # the answer to LOOKUP: this broker has the topic
LEDGER = 1

_REQUEST = Field(1, Kind.UINT64, required=True)
# PulsarX's own connections need no lookup; the official client asks for the broker of each topic.
_TABLE = COMMANDS | {
    "LOOKUP": (23, Schema("LOOKUP", request_id=Field(2, Kind.UINT64, required=True))),
    "LOOKUP_RESPONSE": (
        24,
        Schema(
            "LOOKUP_RESPONSE",
            url=Field(1, Kind.STRING),
            response=Field(3, Kind.INT32),
            request_id=Field(4, Kind.UINT64, required=True),
            authoritative=Field(5, Kind.BOOL),
        ),
    ),
}
_NAMES = {number: name for name, (number, _) in _TABLE.items()}
_BASE = Schema(
    "BaseCommand",
    type=Field(1, Kind.INT32, required=True),
    **{name: Field(number, Kind.BYTES) for name, (number, _) in _TABLE.items()},
)


def frame(name: str, values: dict[str, Any], entry: bytes = b"") -> bytes:
    number, schema = _TABLE[name]
    command = _BASE.encode({"type": number, name: schema.encode(values)})
    sizes = (4 + len(command) + len(entry)).to_bytes(4, "big") + len(command).to_bytes(4, "big")
    return sizes + command + entry


class Topic:
    """What its consumers are given."""

    def __init__(self) -> None:
        self.entry = b""
        self.messages = 0  # in the entry
        self.consumers: list[Consumer] = []

    def published(self, entry: bytes, messages: int) -> None:
        if len(entry) > len(self.entry):
            self.entry, self.messages = entry, messages
            for consumer in self.consumers:
                consumer.dispatch()


class Consumer:
    """A consumer that has room for some messages."""

    def __init__(self, transport: asyncio.Transport, topic: Topic, consumer_id: int) -> None:
        self.transport = transport
        self.topic = topic
        self.consumer_id = consumer_id
        self.permits = 0
        self.entry_ids = count()
        topic.consumers.append(self)

    def dispatch(self) -> None:
        entry, messages = self.topic.entry, self.topic.messages
        while entry and self.permits > 0:
            # Each has an id of its own: a client drops what it has acknowledged already.
            message_id = {"ledger_id": LEDGER, "entry_id": next(self.entry_ids)}
            values = {"consumer_id": self.consumer_id, "message_id": message_id}
            self.transport.write(frame("MESSAGE", values, entry))
            self.permits -= messages


class Connection(asyncio.Protocol):
    """The connection of one client."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.data = bytearray()
        self.producers: dict[int, Topic] = {}
        self.consumers: dict[int, Consumer] = {}
        self.entry_ids = count()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        for consumer in self.consumers.values():
            consumer.topic.consumers.remove(consumer)

    def data_received(self, data: bytes) -> None:
        self.data += data
        at = 0
        while len(self.data) >= at + 4:
            end = at + 4 + int.from_bytes(self.data[at : at + 4], "big")
            if len(self.data) < end:
                break
            behind = at + 8 + int.from_bytes(self.data[at + 4 : at + 8], "big")
            command = _BASE.decode(bytes(self.data[at + 8 : behind]))
            name = _NAMES.get(command["type"], "")
            # What needs no answer, as ACK, has no method.
            answer = getattr(self, f"on_{name.lower()}", None)
            if answer is not None:
                values = _TABLE[name][1].decode(command[name])
                answer(values, bytes(self.data[behind:end]))
            at = end
        del self.data[:at]

    def tell(self, name: str, **values: Any) -> None:
        self.transport.write(frame(name, values))

    def on_connect(self, values: dict[str, Any], _: bytes) -> None:
        self.tell(
            "CONNECTED",
            server_version="a broker that does nothing",
            protocol_version=min(values["protocol_version"], PROTOCOL_VERSION),
            max_message_size=MESSAGE_SIZE_MAX,
        )

    def on_partitioned_metadata(self, values: dict[str, Any], _: bytes) -> None:
        request = values["request_id"]
        self.tell("PARTITIONED_METADATA_RESPONSE", partitions=0, request_id=request, response=0)

    def on_lookup(self, values: dict[str, Any], _: bytes) -> None:
        self.tell(
            "LOOKUP_RESPONSE",
            url=self.broker.url,
            response=CONNECT_HERE,
            request_id=values["request_id"],
            authoritative=True,
        )

    def on_producer(self, values: dict[str, Any], _: bytes) -> None:
        self.producers[values["producer_id"]] = self.broker.topic(values["topic"])
        self.tell("PRODUCER_SUCCESS", request_id=values["request_id"], producer_name="measured")

    def on_send(self, values: dict[str, Any], entry: bytes) -> None:
        self.producers[values["producer_id"]].published(entry, values["num_messages"])
        self.tell(
            "SEND_RECEIPT",
            producer_id=values["producer_id"],
            sequence_id=values["sequence_id"],
            message_id={"ledger_id": LEDGER, "entry_id": next(self.entry_ids)},
        )

    def on_subscribe(self, values: dict[str, Any], _: bytes) -> None:
        consumer_id = values["consumer_id"]
        topic = self.broker.topic(values["topic"])
        self.consumers[consumer_id] = Consumer(self.transport, topic, consumer_id)
        self.tell("SUCCESS", request_id=values["request_id"])

    def on_flow(self, values: dict[str, Any], _: bytes) -> None:
        consumer = self.consumers[values["consumer_id"]]
        consumer.permits += values["permits"]
        consumer.dispatch()

    def on_close_producer(self, values: dict[str, Any], _: bytes) -> None:
        del self.producers[values["producer_id"]]
        self.tell("SUCCESS", request_id=values["request_id"])

    def on_close_consumer(self, values: dict[str, Any], _: bytes) -> None:
        consumer = self.consumers.pop(values["consumer_id"])
        consumer.topic.consumers.remove(consumer)
        self.tell("SUCCESS", request_id=values["request_id"])

    def on_ping(self, _: dict[str, Any], __: bytes) -> None:
        self.tell("PONG")


class Broker:
    """The topics of all connections."""

    def __init__(self) -> None:
        self.url = ""
        self.topics: dict[str, Topic] = {}

    def topic(self, name: str) -> Topic:
        return self.topics.setdefault(name, Topic())

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(self), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.url = f"pulsar://127.0.0.1:{port}"
        print(self.url, flush=True)
        # Whoever started it may be killed: then nobody else would end it.
        await loop.run_in_executor(None, sys.stdin.buffer.read)
        server.close()


if __name__ == "__main__":
    asyncio.run(Broker().run())
