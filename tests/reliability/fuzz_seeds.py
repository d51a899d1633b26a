"""Where fuzzing begins: bytes as the product, the official client and Pulsar's documents have
them."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import fuzz_targets

import pulsarx
from pulsarx._pycore.ranges.entry_codec import encode_batch, encode_entry
from pulsarx.compression import compress
from pulsarx.wire.frames import frame_encode

# MessageMetadata of Pulsar's clients: the least, and with nearly all fields.
SMALLEST = bytes.fromhex("0a017010001880d095ffbc31")
FULL = bytes.fromhex(
    "0a01701007180822060a016112013132026b31400348ac02580360d2098201010188010192010101"
    "9801ffffffffffffffffff01c00109c80101f00101"
)
CHUNK = bytes.fromhex("0a01701007180892030475756964a00303a80306b00301")
FIRST_BYTE_SIZES = (40).to_bytes(2, "little")


@cache
def files() -> dict[str, list[bytes]]:
    """What a small folder consists of, by the ends of names."""
    found: dict[str, list[bytes]] = {}
    with tempfile.TemporaryDirectory() as folder:
        with pulsarx.Client(folder, durability="os") as client:
            consumer = client.subscribe("t", "s", pulsarx.ConsumerType.Shared)
            producer = client.create_producer("t", batching_enabled=True)
            producer.send_many([b"message %d" % number for number in range(40)])
            for number in range(30):
                message = consumer.receive(60_000)
                if number % 3:
                    consumer.acknowledge(message)
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                kind = path.parent.name if path.parent.name == "cursors" else path.suffix
                found.setdefault(kind or path.name, []).append(path.read_bytes())
    return found


def entries() -> list[bytes]:
    fields: dict[str, Any] = {"producer_name": "p", "publish_time_ms": 1_700_000_000_000}
    more: dict[str, Any] = {"key": "k", "properties": {"a": "1"}, "ordering_key": b"o"}
    messages: list[Any] = [(b"one", {"sequence_id": 1}), (b"two", {"sequence_id": 2, "key": "k"}),
                           (b"", {"sequence_id": 3, "properties": {"a": "1"}})]  # fmt: skip
    return [
        bytes.fromhex("0e01cf85822f0000000c") + SMALLEST + b"hello",
        encode_entry(b"payload", sequence_id=1, **fields),
        encode_entry(b"payload", sequence_id=1, event_time_ms=5, deliver_at_ms=7, **fields, **more),
        encode_batch(messages, **fields),
        encode_batch([(b"x" * 20, {"sequence_id": each}) for each in range(9)], **fields),
        *(encode_batch(messages, compression=each, **fields) for each in (1, 2, 3, 4)),
    ]


def packed(size_bytes: int, kinds: tuple[int, ...]) -> list[bytes]:
    plain = b"abcabcabcabcabc" * 3 + bytes(range(40)) + b"x" * 100
    found = []
    for kind in kinds:
        body = compress(kind, plain)
        head = len(plain).to_bytes(2, "little")
        found.append((bytes([kind]) if size_bytes == 3 else b"") + head + body)
    return found


def wire() -> list[bytes]:
    entry = entries()[1]
    place = {"ledger_id": 5, "entry_id": 6}
    ids = {"consumer_id": 0, "request_id": 1}
    return [
        frame_encode("CONNECT", {"client_version": "test", "protocol_version": 20}),
        frame_encode("SEND", {"producer_id": 0, "sequence_id": 42}, entry),
        frame_encode("SEND_RECEIPT", {"producer_id": 1, "sequence_id": 2, "message_id": place}),
        frame_encode("MESSAGE", {"consumer_id": 0, "message_id": place}, entry),
        frame_encode("ACK", {"consumer_id": 0, "ack_type": 0, "message_ids": [place, place]}),
        frame_encode("FLOW", {"consumer_id": 3, "permits": 1000}),
        frame_encode("PRODUCER", {"topic": "t", "producer_id": 0, "request_id": 0}),
        frame_encode("SUBSCRIBE", {**ids, "topic": "t", "subscription": "s", "type": 1}),
        frame_encode("PING", {}) + frame_encode("PONG", {}),
        frame_encode("WATCH_TOPIC_LIST", {"request_id": 1, "watcher_id": 2, "namespace": "a/b",
                                          "topics_pattern": "x.*"}),
        (48).to_bytes(4, "big") + bytes(4) + (32).to_bytes(4, "big") + bytes(40),
    ]  # fmt: skip


def requests() -> list[bytes]:
    found = []
    for line, body in (
        ("GET /admin/v2/tenants", ""),
        ("GET /admin/v2/persistent/public/default/t/stats?getPreciseBacklog=true", ""),
        ("PUT /admin/v2/persistent/public/default/t%2Fx", ""),
        ("PUT /admin/v2/persistent/public/default/t/partitions", "3"),
        ("POST /admin/v2/namespaces/public/default/retention",
         '{"retentionTimeInMinutes": 5, "retentionSizeInMB": 7}'),
        ("PUT /admin/v2/tenants/a", '{"adminRoles": ["x"], "allowedClusters": ["standalone"]}'),
        ("POST /admin/v2/schemas/public/default/t/schema",
         '{"type": "AVRO", "schema": "{}", "properties": {}}'),
        ("POST /admin/v2/persistent/public/default/t/subscription/s/skip/3", ""),
        ("POST /admin/v2/persistent/public/default/t/subscription/s/resetcursor",
         '{"ledgerId": 1, "entryId": 2, "partitionIndex": -1}'),
        ("DELETE /admin/v2/namespaces/public/default/backlogQuota", ""),
        ("GET /lookup/v2/topic/persistent/public/default/t", ""),
        ("POST /console/publish", '{"topic": "t", "text": "x", "properties": {"a": "1"}}'),
        ("GET /openapi.json", ""),
    ):  # fmt: skip
        size = f"Content-Length: {len(body)}\r\n" if body else ""
        found.append(f"{line} HTTP/1.1\r\nHost: localhost\r\n{size}\r\n{body}".encode())
    return found


def operations() -> list[bytes]:
    found = []
    for file in files()[".commit"]:
        found.append(file.partition(b"\n")[2].partition(b"\n\0")[0])
    return found


def ledger_bodies() -> list[bytes]:
    """What is behind the header, with the two bytes that the target wants."""
    found = []
    for file in files()[".ledger"]:
        body = file[4096:].rstrip(b"\0")
        body += bytes(-len(body) % 8)
        found += [b"\0\0" + body[:4000], b"\2" + bytes([min(len(body) // 8, 255)]) + body[:4000]]
    return found


def avro() -> list[bytes]:
    import datetime as dt
    import decimal

    from pulsarx.schema import AvroSchema

    value: dict[str, Any] = {
        "a": True, "b": -5, "c": 7, "d": 0.5, "e": "ü", "f": [b"", b"xy"], "g": {"k": 1.5},
        "h": "B", "i": b"abc", "j": decimal.Decimal("1.25"), "m": {"x": "s"},
        "k": dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "l": dt.date(2024, 1, 1),
    }  # fmt: skip
    schema = AvroSchema(None, fuzz_targets.AVRO_DEFINITION)
    return [schema.encode(value), schema.encode(value | {"c": None, "m": None, "f": [], "g": {}})]


JSON = [
    b'{"a":true,"b":-5,"c":9007199254740993,"d":1.5e3,"e":"x\\u00fc","f":[1,2],"i":"raw"}',
    b'{"g":{"x":"s","y":false},"h":[{"x":null},{}],"other":[{"z":{}}], "a" : null}',
    b'{"number":1,"list":[1,-2,null,true,false,"text"],"text":""}',
    b'{}',
]  # fmt: skip
OFFICIAL = Path(__file__).resolve().parent.parent / "schema" / "official_client.json"


def definitions() -> list[bytes]:
    """As the official client writes them; and a pair."""
    found = json.loads(OFFICIAL.read_text())["definitions"]
    texts = [each.encode() for each in list(found.values())[:2]]
    small = b'{"type":"record","name":"R","fields":[]}'
    pair = b"".join(len(each).to_bytes(4, "big") + each for each in (small, small))
    return [*(b"\4" + each for each in texts), *(b"\2" + each for each in texts), b"\1",
            b"\x0f" + pair]  # fmt: skip


def seeds_of(name: str) -> list[bytes]:
    """For a target; at least one."""
    if name in ("entry", "entry-codec"):
        return entries()
    if name == "message-metadata":
        return [SMALLEST, FULL, CHUNK]
    if name == "single-metadata":
        return [bytes.fromhex("18034005"), bytes.fromhex("0a060a016112013112016b180320014005")]
    if name == "entry-frame":
        return [each[4096:4160] for each in files()[".ledger"]]
    if name in ("cursor-header", "cursor-label"):
        at = 80 if name == "cursor-label" else 0
        return [each[at : at + 300] for each in files()["cursors"]]
    if name == "cursor-tail":
        return [each[-4096:][:128] for each in files()["cursors"]]
    if name == "ledger-header":
        return [each[:4096] for each in files()[".ledger"]]
    if name in ("ledger-name", "name-record"):
        return [each[2560:2760] for each in files()[".ledger"]]
    if name == "ledger-file":
        return ledger_bodies()
    if name in ("lz4-block", "snappy-block"):
        return packed(2, (1,) if name == "lz4-block" else (4,))
    if name == "compression":
        return packed(3, (0, 1, 2, 3, 4))
    if name in ("plain-json", "json-line", "json-columns"):
        return JSON
    if name == "avro-columns":
        return avro()
    if name == "schema-of-command":
        return definitions()
    if name == "topic-name":
        return [b"t", b"persistent://a/b/c-partition-3", b"non-persistent://a/b/c", b"a/b/c"]
    if name == "topic-pattern":
        return [b"a.*b+\0aab", b"(a|b){2,3}c?\0abc", b"[a-c]+\\d\0a1", b"^x\\Q.\\E$\0x."]
    if name == "catalogue-commit":
        return operations()
    if name == "folder-marker":
        return files()["PULSARX"]
    if name == "frames":
        return [b"".join(wire()), *wire()]
    if name == "hot-commands":
        return [each[4:] for each in wire()]
    if name == "commands":
        return [each[8 : 8 + int.from_bytes(each[4:8], "big")] for each in wire()]
    if name == "rest":
        return requests()
    return OTHERS[name]


_PLACE = b"\x0e\x01" + bytes(6) + b"\5" + bytes(23) + b"\1" + bytes(7)
OTHERS = {
    # A selector, a zero, and the metadata of a message.
    "selector": [
        b"n > 1 AND NOT (s LIKE 'a!%_%' ESCAPE '!' OR s IN ('x', 'y'))"
        b"\0\x0a\x06\x0a\x01n\x12\x012\x18\0",
        b'-n * 2.5e1 / 0x3 BETWEEN -1 AND + 7 OR "q" IS NOT NULL\0\x0a\x06\x0a\x01q\x12\x01v\x18\0',
        b"JMSXGroupID = 'k''' OR __eventTime <> JMSTimestamp\0\x12\x01k\x18\0\x28\5",
        b"TRUE = urgent AND __publishTime >= 1\0\x0a\x01p\x10\0\x18\1\x22\x06\x0a\x01a\x12\x01b",
    ],
    "catalogue-operations": [bytes(range(each, 256, 7)) for each in range(7)],
    "compacted-entry": [_PLACE + b"entry", _PLACE[:30]],
    "chunks": [bytes((0, 8 + 0, 5, 10, 0, 8 + 1, 5, 10)), bytes((1, 0, 3, 6, 2, 0, 3, 6) * 9)],
    "cursor-snapshot": [
        bytes.fromhex("0501000500"),
        bytes((1, 2, 0, 3, 5, 1, 9, 0, 1, 7, 0)),
        bytes((5, 2, 0, 7)),
    ],
    "cursor-sections": [b"\0" + bytes((1, 5, 1, 3, 2)), b"\xff" + bytes((1, 5, 1, 3, 2, 0))],
}
