"""A broker that does nothing, for what the client of a broker costs: it stores no message, confirms
each at once, and gives consumers the largest entry that was sent to their topic, again and again.
What comes by the thousand is answered natively, by idle_loop.pyx.

    python idle_broker.py       prints its port, and runs until its standard input is closed
"""

from __future__ import annotations

import socket
from typing import Any

from floor_build import idle_loop

from pulsarx.wire.commands import COMMANDS, PROTOCOL_VERSION
from pulsarx.wire.protobuf import Field, Kind, Schema

MESSAGE_SIZE_MAX = 5 * 1024 * 1024
CONNECT_HERE = 1  # the answer to LOOKUP: this broker has the topic

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


def frame(name: str, values: dict[str, Any]) -> bytes:
    number, schema = _TABLE[name]
    command = _BASE.encode({"type": number, name: schema.encode(values)})
    sizes = (4 + len(command)).to_bytes(4, "big") + len(command).to_bytes(4, "big")
    return sizes + command


class Broker:
    """Answers the commands that the loop does not know."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.loop = idle_loop().Loop(self.answer)
        self.topics: dict[str, int] = {}  # their numbers

    def topic(self, name: str) -> int:
        return self.topics.setdefault(name, len(self.topics))

    def answer(self, connection: int, data: bytes) -> bytes:
        command = _BASE.decode(data)
        name = _NAMES.get(command["type"], "")
        # What needs no answer has no method.
        answer = getattr(self, f"on_{name.lower()}", None)
        if answer is None:
            return b""
        found: bytes = answer(connection, _TABLE[name][1].decode(command[name]))
        return found

    def on_connect(self, _: int, values: dict[str, Any]) -> bytes:
        return frame(
            "CONNECTED",
            {
                "server_version": "a broker that does nothing",
                "protocol_version": min(values["protocol_version"], PROTOCOL_VERSION),
                "max_message_size": MESSAGE_SIZE_MAX,
            },
        )

    def on_partitioned_metadata(self, _: int, values: dict[str, Any]) -> bytes:
        found = {"partitions": 0, "request_id": values["request_id"], "response": 0}
        return frame("PARTITIONED_METADATA_RESPONSE", found)

    def on_lookup(self, _: int, values: dict[str, Any]) -> bytes:
        found = {"url": self.url, "response": CONNECT_HERE, "authoritative": True}
        return frame("LOOKUP_RESPONSE", found | {"request_id": values["request_id"]})

    def on_producer(self, connection: int, values: dict[str, Any]) -> bytes:
        self.loop.add_producer(connection, values["producer_id"], self.topic(values["topic"]))
        found = {"request_id": values["request_id"], "producer_name": "measured"}
        return frame("PRODUCER_SUCCESS", found)

    def on_subscribe(self, connection: int, values: dict[str, Any]) -> bytes:
        self.loop.add_consumer(connection, values["consumer_id"], self.topic(values["topic"]))
        return frame("SUCCESS", {"request_id": values["request_id"]})

    def on_close_producer(self, _: int, values: dict[str, Any]) -> bytes:
        return frame("SUCCESS", {"request_id": values["request_id"]})

    def on_close_consumer(self, connection: int, values: dict[str, Any]) -> bytes:
        self.loop.add_consumer(connection, values["consumer_id"], -1)
        return frame("SUCCESS", {"request_id": values["request_id"]})

    def on_ping(self, _: int, __: dict[str, Any]) -> bytes:
        return frame("PONG", {})


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        broker = Broker(f"pulsar://127.0.0.1:{listening.getsockname()[1]}")
        print(broker.url, flush=True)
        # Whoever started it may be killed: then nobody else would end it.
        broker.loop.run(listening.fileno())


if __name__ == "__main__":
    main()
