"""What is fuzzed, as one table: the parsers of bytes that nobody vouches for.

A target is given any bytes. What it raises, but for the errors that its parser is documented to
raise, is a finding: also AssertionError, by which it says that a property does not hold. Where a
parser has a writer, what it takes is written and read once more; where there are two readers, both
agree.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [each for each in (str(HERE), str(HERE.parent / "core")) if each not in sys.path]

from compiled_modules import compile_stale, imported  # noqa: E402

from pulsarx import errors  # noqa: E402

CORPORA = HERE / "corpora"
DECODERS = HERE / "fuzz_decoders.pyx"
SIZE_MAX = 4096  # bytes of an input, unless a target says otherwise
FOLDER_ID = "0123456789abcdef" * 2
PLAIN_MAX = 1 << 16


@dataclass(frozen=True)
class Target:
    """A value. refusals: what its parser may raise. modules: those in Python, by whose branches the
    fuzzer is led, too; of compiled ones it knows."""

    name: str
    run: Callable[[bytes], object]
    refusals: tuple[type[BaseException], ...] = ()
    modules: tuple[str, ...] = ()
    size_max: int = SIZE_MAX

    def __call__(self, data: bytes) -> None:
        try:
            self.run(data)
        except self.refusals:
            pass


@cache
def decoders() -> Any:
    """The compiled module; it is made where it is stale."""
    compile_stale([DECODERS])
    return imported(DECODERS)


def corpus_path(name: str) -> Path:
    """One input a line, in hexadecimal digits, the shortest first."""
    return CORPORA / f"{name}.hex"


def corpus_of(name: str) -> list[bytes]:
    path = corpus_path(name)  # a new target has none
    return [bytes.fromhex(line) for line in path.read_text().splitlines()] if path.exists() else []


def native(name: str) -> Callable[[bytes], object]:
    """A function of fuzz_decoders.pyx, which is compiled when it is called first."""
    found: list[Callable[[bytes], object]] = []

    def run(data: bytes) -> object:
        if not found:
            found.append(getattr(decoders(), name))
        return found[0](data)

    return run


def outcome(call: Callable[[], Any], *refusals: type[BaseException]) -> tuple[str, Any]:
    """What it answers, or that it refuses."""
    try:
        return "taken", call()
    except refusals:
        return "refused", None


# Entries and payloads -----------------------------------------------------------------------------


def entry_codec(data: bytes) -> None:
    """A whole entry as Python sees it, compressed bodies included."""
    from pulsarx._pycore.ranges.entry_codec import decode_entry

    found = decode_entry(data, verify=False, limit=PLAIN_MAX)
    assert sum(len(each["payload"]) for each in found["messages"]) <= PLAIN_MAX + len(data)


def compression(data: bytes) -> None:
    """The first byte says how, the two behind it how many bytes are claimed."""
    from pulsarx.compression import NAMES, compress, decompress

    kind = (data[0] if data else 0) % len(NAMES)
    claimed = int.from_bytes(data[1:3], "little")
    body = data[3:]
    packed = compress(kind, body)
    assert decompress(kind, packed, len(body), PLAIN_MAX) == body, "another payload"
    found = decompress(kind, body, claimed, PLAIN_MAX // 2)
    assert len(found) == claimed <= PLAIN_MAX // 2


# JSON and Avro ------------------------------------------------------------------------------------


def plain_json(data: bytes) -> None:
    """The reader of the catalogue says what Python's json does, and reads what it writes."""
    from pulsarx._pycore.ground.plain_json import json_bytes, json_value

    refusals = (ValueError, RecursionError)
    found = outcome(lambda: json_value(data), *refusals)
    assert repr(found) == repr(outcome(lambda: json.loads(data), *refusals))
    if found[0] == "taken":
        how, written = outcome(lambda: json_bytes(found[1]), *refusals)
        assert how == "refused" or repr(json_value(written)) == repr(found[1]), "written anew"


def json_line(data: bytes) -> None:
    """An object of JSON is one, and what passes is on one line."""
    line = decoders().json_object_line(data)
    how, value = outcome(lambda: json.loads(data.decode()), ValueError, RecursionError)
    if how == "taken" and isinstance(value, dict) and data.count(b"[") + data.count(b"{") < 100:
        assert line is not None, "an object is refused"
        assert repr(json.loads(line)) == repr(value), "another value"
    assert line is None or (len(line) == len(data) and b"\n" not in line and b"\r" not in line)


@cache
def json_decoder() -> Any:
    import pyarrow as pa

    from pulsarx.tables.json_columns import JsonDecoder

    point = pa.struct([("x", pa.string()), ("y", pa.bool_())])
    fields = pa.schema(
        [
            ("a", pa.bool_()), ("b", pa.int32()), ("c", pa.int64()), ("d", pa.float64()),
            ("e", pa.string()), ("f", pa.list_(pa.int64())), ("g", point),
            ("h", pa.list_(point)), ("i", pa.binary()),
        ]
    )  # fmt: skip
    return JsonDecoder(fields)


def json_columns(data: bytes) -> None:
    """What the native reader takes of payloads, between zeros, is what Python's json makes."""
    import pyarrow as pa

    decoder = json_decoder()
    payloads = data.split(b"\0", 3)[:4]
    table, refused = decoder._natively(pa.array(payloads, pa.binary()))
    table.validate(full=True)
    kind = pa.struct(list(table.schema))
    for row, found in enumerate(table.to_pylist()):
        if row not in refused:
            expected = of_json(json.loads(payloads[row].decode()), kind)
            assert repr(found) == repr(expected), "another value"


def of_json(value: Any, kind: Any) -> Any:
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {each.name: of_json(value.get(each.name), each.type) for each in kind}
    if pa.types.is_list(kind):
        return [of_json(each, kind.value_type) for each in value]
    if pa.types.is_floating(kind):
        return float(value)
    return value.encode() if pa.types.is_binary(kind) else value


AVRO_DEFINITION = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "a", "type": "boolean"},
        {"name": "b", "type": "int"},
        {"name": "c", "type": ["null", "long"]},
        {"name": "d", "type": "double"},
        {"name": "e", "type": "string"},
        {"name": "f", "type": {"type": "array", "items": "bytes"}},
        {"name": "g", "type": {"type": "map", "values": "float"}},
        {"name": "h", "type": {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}},
        {"name": "i", "type": {"type": "fixed", "name": "F", "size": 3}},
        {"name": "j", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20,
                               "scale": 2}},
        {"name": "k", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "l", "type": {"type": "int", "logicalType": "date"}},
        {"name": "m", "type": ["null", {"type": "record", "name": "I", "fields": [
            {"name": "x", "type": ["string", "null"]}]}]},
    ],
}  # fmt: skip


@cache
def avro_decoders() -> Any:
    import pyarrow as pa

    from pulsarx.schema import AvroSchema
    from pulsarx.tables.avro_columns import AvroDecoder

    info = AvroSchema(None, AVRO_DEFINITION).schema_info()
    fields = pa.schema(
        [
            ("a", pa.bool_()), ("b", pa.int32()), ("c", pa.int64()), ("d", pa.float64()),
            ("e", pa.string()), ("f", pa.list_(pa.field("element", pa.binary()))),
            ("g", pa.map_(pa.string(), pa.float32())), ("h", pa.string()), ("i", pa.binary()),
            ("j", pa.decimal128(20, 2)), ("k", pa.timestamp("us", "UTC")), ("l", pa.date32()),
            ("m", pa.struct([("x", pa.string())])),
        ]
    )  # fmt: skip
    found = [AvroDecoder(fields, info, lambda _: info, natively=each) for each in (True, False)]
    assert found[0].is_native(None)
    return found


def avro_columns(data: bytes) -> None:
    """What the native reader takes is what fastavro makes."""
    import pyarrow as pa

    native, other = avro_decoders()
    column, versions = pa.array([data], pa.binary()), pa.array([None], pa.int64())
    table, refused = native._natively(column, versions)
    table.validate(full=True)
    if not refused:
        expected, flaws = other.decode(column, versions)
        assert not flaws, flaws
        assert repr(table.to_pylist()) == repr(expected.to_pylist()), "another value"


def schema_of_command(data: bytes) -> None:
    """Definitions that come over a connection: the first byte is the type."""
    from pulsarx.wire.schemas import schema_of, schema_values

    values = {
        "type": data[0] if data else 0, "name": "s", "data": data[1:],
        "properties": [{"key": "key.schema.type", "value": "AVRO"},
                       {"key": "value.schema.type", "value": "JSON"}],
    }  # fmt: skip
    found = schema_of(values)
    assert found is not None
    again = schema_of(schema_values(found))
    assert again is not None and again.schema() == found.schema(), "written anew"


# Names --------------------------------------------------------------------------------------------


def topic_name(data: bytes) -> None:
    from pulsarx.topic_name import TopicName, check_subscription_name

    text = data.decode("utf-8", "surrogateescape")
    outcome(lambda: check_subscription_name(text), errors.InvalidConfiguration)
    name = TopicName.of(text)
    again = TopicName.of(name.full)
    parts = f"{name.domain}://{name.tenant}/{name.namespace}/{name.local_name}"
    assert again == name and again.full == name.full == parts, "another name"
    assert "/" not in name.local_name and name.local_name == name.local_name.strip()
    whole = name.whole
    if name.partition_index >= 0 > whole.partition_index:
        assert whole.partition(name.partition_index) == name, "another partition"


def topic_pattern(data: bytes) -> None:
    """Pattern, zero, name. What Python's re reads the same way matches the same."""
    from pulsarx.sessions.linear_pattern import LinearPattern

    pattern, _, name = (part.decode("utf-8", "replace") for part in data.partition(b"\0"))
    found = LinearPattern(pattern).matches(name[:200])
    # Of escapes and `$` each of them has a word of its own; long ones take re for ever.
    if len(pattern) <= 12 and len(name) <= 12 and not set(pattern) & set("\\$&^[~|-"):
        how, other = outcome(lambda: re.fullmatch(pattern, name, re.DOTALL), re.error)
        assert how == "refused" or found == (other is not None), "re says otherwise"


# The catalogue ------------------------------------------------------------------------------------


def catalogue_commit(data: bytes) -> None:
    """The file as it is; and its operations, behind a checksum that holds, on a state."""
    from pulsarx.broker.catalogue.file import COMMIT, catalogue_file_decode, commit_fault
    from pulsarx.broker.catalogue.state import CatalogueState

    commit_fault(FOLDER_ID, "file", data)
    outcome(lambda: catalogue_file_decode(COMMIT, FOLDER_ID, "file", data),
            errors.CatalogueError, errors.NewerFormatError)  # fmt: skip
    document, _ = catalogue_file_decode(COMMIT, FOLDER_ID, "file", commit_of(data))
    operations = document.get("operations")
    if isinstance(operations, list):
        apply(CatalogueState(), operations)


def apply(state: Any, operations: list[Any]) -> None:
    """As of a commit; the state is read again as a checkpoint has it."""
    from pulsarx.broker.catalogue.draft import CatalogueDraft
    from pulsarx.broker.catalogue.operations import apply_operations
    from pulsarx.broker.catalogue.state import CatalogueState

    draft = CatalogueDraft(state)
    apply_operations(draft, operations)
    draft.publish(state.number + 1, 2)
    written = json.loads(json.dumps(state.document()))
    again = CatalogueState.of_document(written).document()
    assert json.loads(json.dumps(again)) == written, "written anew"


T, U = "persistent://public/default/t", "persistent://public/default/u"
BASE = [
    {"op": "open_epoch", "epoch": 1},
    {"op": "create_topic", "topic": T, "topic_id": 1},
    {"op": "create_subscription", "topic": T, "name": "s", "cursor_id": 2, "type": "Shared",
     "created_ms": 1, "initial_ledger_id": -1, "initial_message": 0},
    {"op": "add_ledger", "topic": T, "ledger_id": 3, "uuid": FOLDER_ID, "slot": 1},
]  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "id": [1, 2, 3, 4, 5, 6, 7, 1 << 62, 0, 1 << 70],
    "count": [0, 1, 2, 3, 5, 1 << 40, -1],
    "integer": [-1, 0, 1, 5, 1 << 62, 1 << 80],
    "text": [T, U, "public", "public/default", "a", "a/b", FOLDER_ID, "s", "Shared", "AVRO", "",
             "non-persistent://public/default/v", f"{T}-partition-0", "x" * 300, "\ud800"],
    "string": ["", "a", "{}", "\0"],
    "flag": [True, False],
    "object": [{}, {"a": 1}, {"retention_minutes": 5}, {"": None}],
    "ids": [[], [1], [2, 3], [3, 3], [1 << 70]],
    "texts": [{}, {"a": "b"}, [], [T], [U, T]],
    "list": [[], [1], [[3, 40]], [3, 0, -1], [[[]]], [T], [[3, FOLDER_ID, 1, 1, 1, 1, 1]]],
    "rows": [{}, {T: [3]}, {T: [[3, 3]]}, {U: []}, {T: [[4, FOLDER_ID, 1, 1, 100, 1, 1]]}],
    "value": [None, 1, -1, "a", True, [], {}, 0.5, [T]],
}  # fmt: skip
ANYTHING = [each for values in VALUES.values() for each in values]


def catalogue_operations(data: bytes) -> None:
    """Commits, each of an operation; bytes choose it, and a value for each field."""
    from pulsarx.broker.catalogue.operations import OPERATIONS
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.catalogue.topic_operations import TOPIC_OPERATIONS

    known = {**OPERATIONS, **TOPIC_OPERATIONS}
    names = sorted(known)
    state = CatalogueState()
    apply(state, BASE)
    chosen = iter(data[:200])
    for first in chosen:
        name = names[first % len(names)]
        _, required, optional = known[name]
        operation: dict[str, Any] = {"op": name}
        for field, kind in [*required.items(), *((key, row[0]) for key, row in optional.items())]:
            choice = next(chosen, 0)
            if field in optional and choice % 3 == 0:
                continue
            values = ANYTHING if choice >= 224 else VALUES[kind]
            operation[field] = values[choice % len(values)]
        try:
            apply(state, [operation])
        except (errors.CatalogueError, errors.NewerFormatError):
            pass


def commit_of(body: bytes) -> bytes:
    from pulsarx._pycore.ground.file_system import crc32
    from pulsarx.broker.folder.copies import both_copies

    checksum = crc32(body, crc32(f"commit 1 {FOLDER_ID}".encode()))
    head = f"PULSARX COMMIT 1 crc32={checksum:08x} size={len(body)}\n".encode()
    return both_copies(head + body + b"\n")


def folder_marker(data: bytes) -> None:
    """The file as it is, and with a checksum that holds."""
    from pulsarx._pycore.ground.file_system import crc32
    from pulsarx.broker.folder.folder_marker import marker_read

    above = data.rpartition(b"crc32 ")[0]
    for file in (data, above + b"crc32 %08x\n" % crc32(above)):
        files: Any = SimpleNamespace(read=lambda _, file=file: file)
        try:
            folder_id = marker_read(files, "folder")
            assert folder_id is not None and len(folder_id) == 32
        except (errors.CorruptDataError, errors.NewerFormatError, errors.FolderError):
            pass


def name_record(data: bytes) -> None:
    """The topic in the name record of a ledger, behind a checksum that holds."""
    from pulsarx._pycore.ledger.name_record import name_record_of
    from pulsarx._pycore.ranges.entry_codec import crc32c

    record = bytearray(data[:1536].ljust(1536, b"\0"))
    record[8:12] = crc32c(bytes(record[12:]), crc32c(bytes(record[:8]))).to_bytes(4, "little")
    found = name_record_of(bytes(2560) + record)
    assert found is None or (len(found.uuid) == len(found.folder_id) == 16 and found.topic)


def cursor_label(data: bytes) -> None:
    from pulsarx._pycore.cursor.subscription_label import subscription_label_of

    subscription_label_of(bytes(80) + data[:4016].ljust(4016, b"\0"))


# The protocol -------------------------------------------------------------------------------------


def frames(data: bytes) -> None:
    """What a connection is cut into does not hang on how it comes; the first byte is a size."""
    from pulsarx.wire.frames import FrameReader
    from pulsarx.wire.protobuf import WireError

    def read(piece: int) -> tuple[list[Any], str]:
        reader = FrameReader(0)  # its limit is what commands may have
        found: list[Any] = []
        try:
            for at in range(0, len(data), piece):
                for each in reader.feed(data[at : at + piece]):
                    found.append(repr(each))
            reader.end()
        except WireError as error:
            return found, str(error)
        return found, ""

    whole = read(len(data) or 1)
    assert read(1 + (data[0] if data else 0) % 64) == whole, "pieces are read otherwise"


def hot_commands(data: bytes) -> None:
    """What the native readers take, the tables read as the same."""
    from pulsarx._pycore.wire.hot_commands import (
        ack_decode,
        flow_decode,
        receipt_decode,
        send_decode,
    )
    from pulsarx.wire.commands import INDIVIDUAL, command_decode

    size = int.from_bytes(data[:4], "big")
    command, entry = data[4 : 4 + size], data[4 + size :]
    if (sent := send_decode(data)) is not None:
        name, values = command_decode(command)
        assert name == "SEND" and sent == (values["producer_id"], values["sequence_id"], entry)
    if (told := receipt_decode(data)) is not None:
        name, values = command_decode(command)
        place = values["message_id"]
        assert name == "SEND_RECEIPT" and not entry and place["ledger_id"] == told[2]
        assert told[:2] == (values["producer_id"], values["sequence_id"])
        assert told[3:] == (place["entry_id"], place["partition"])
    if (acknowledged := ack_decode(data)) is not None:
        name, values = command_decode(command)
        assert name == "ACK" and values["ack_type"] == INDIVIDUAL and not entry
        places = [(each["ledger_id"], each["entry_id"]) for each in values["message_ids"]]
        assert acknowledged == (values["consumer_id"], places), "other places"
    if (flown := flow_decode(data)) is not None:
        name, values = command_decode(command)
        assert name == "FLOW" and not entry
        assert flown == (values["consumer_id"], values["permits"]), "other permits"


def commands(data: bytes) -> None:
    """A command is written as it was read, but for what is not known of it."""
    from pulsarx.wire.commands import command_decode, command_encode

    name, values = command_decode(data)
    written = command_encode(name, values)
    assert command_decode(written) == (name, values), "written anew"


# REST ---------------------------------------------------------------------------------------------


class AtOnce(Executor):
    """Performs in the thread that asks."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(function(*arguments, **named))
        except BaseException as error:
            done.set_exception(error)
        return done


class Reached(errors.TopicNotFound):
    """A verb would be performed: its arguments passed."""


class NoFolder:
    """A host in whose place no verb is performed, once its arguments are checked."""

    access = None
    broker_port = broker_tls_port = advertised_address = None
    advertised_listeners: dict[str, Any] = {}  # noqa: RUF012
    read_only = False

    def __init__(self) -> None:
        self.folder = self.sampler = self.state = self

    def __getattr__(self, name: str) -> Any:
        raise errors.OperationNotSupported(detail=name)

    def perform(self, verb: str, arguments: dict[str, Any]) -> Any:
        from pulsarx.broker.verbs.table import perform

        folder: Any = self
        return perform(folder, verb, arguments)

    def require_open(self) -> None:
        raise Reached(detail="reached")


@cache
def application() -> tuple[Any, Any]:
    from pulsarx.rest.application import make_application

    logging.getLogger("pulsarx").setLevel(logging.CRITICAL)
    host: Any = NoFolder()
    return asyncio.new_event_loop(), make_application(host, AtOnce(), True)


def rest(data: bytes) -> None:
    """A request as it comes over a socket; no request fails because of a bug."""
    import h11

    loop, asked = application()
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=12 << 10)
    body = b""
    try:
        connection.receive_data(data)
        request = connection.next_event()
        if not isinstance(request, h11.Request):
            return
        while isinstance(part := connection.next_event(), h11.Data):
            body += part.data
    except h11.RemoteProtocolError:
        return
    path, _, query = request.target.partition(b"?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "method": request.method.decode("ascii"),
        "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 8080), "client": None,
        "raw_path": path, "query_string": query, "root_path": "", "state": {},
        "headers": [(name.lower(), value) for name, value in request.headers],
    }  # fmt: skip
    told: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        told.append(message)

    loop.run_until_complete(asked(scope, receive, send))
    assert [each["type"] for each in told[:1]] == ["http.response.start"]
    assert 200 <= told[0]["status"] != 500, b"".join(each.get("body", b"") for each in told[1:])


_REFUSED = (errors.CorruptDataError, errors.UnreadableEntryError)
_CATALOGUE = (errors.CatalogueError, errors.NewerFormatError)


def _wire() -> tuple[type[BaseException], ...]:
    from pulsarx.wire.protobuf import WireError

    return (WireError,)


TARGETS = {
    each.name: each
    for each in (
        Target("entry-frame", native("fuzz_entry_frame"), size_max=64),
        Target("entry", native("fuzz_entry")),
        Target("entry-codec", entry_codec, _REFUSED, ("pulsarx.compression",)),
        Target("message-metadata", native("fuzz_message_metadata")),
        Target("single-metadata", native("fuzz_single_metadata")),
        Target("compacted-entry", native("fuzz_compacted_entry")),
        Target("chunks", native("fuzz_chunks"), size_max=400),
        Target("cursor-header", native("fuzz_cursor_header")),
        Target("cursor-snapshot", native("fuzz_cursor_snapshot")),
        Target("cursor-tail", native("fuzz_cursor_tail"), size_max=1024),
        Target("cursor-sections", native("fuzz_cursor_sections")),
        Target("cursor-label", cursor_label),
        Target("ledger-header", native("fuzz_ledger_header")),
        Target("ledger-file", native("fuzz_ledger_file")),
        Target("ledger-name", native("fuzz_ledger_name"), size_max=1536),
        Target("name-record", name_record, size_max=1536),
        Target("lz4-block", native("fuzz_lz4_block")),
        Target("snappy-block", native("fuzz_snappy_block")),
        Target("compression", compression, _REFUSED, ("pulsarx.compression",)),
        Target("plain-json", plain_json),
        Target("json-line", json_line),
        Target("json-columns", json_columns, size_max=1024),
        Target("avro-columns", avro_columns, size_max=512),
        Target("selector", native("fuzz_selector"), size_max=1024),
        Target("schema-of-command", schema_of_command, (errors.IncompatibleSchema,),
               ("pulsarx.wire.schemas", "pulsarx.schema.pair_shapes")),
        Target("topic-name", topic_name, (errors.InvalidTopicName,), ("pulsarx.topic_name",)),
        Target("topic-pattern", topic_pattern, (errors.InvalidTopicName,),
               ("pulsarx.sessions.linear_pattern",), size_max=1200),
        Target("catalogue-commit", catalogue_commit, _CATALOGUE,
               ("pulsarx.broker.catalogue", "pulsarx.broker.folder.copies")),
        Target("catalogue-operations", catalogue_operations, (), ("pulsarx.broker.catalogue",),
               size_max=200),
        Target("folder-marker", folder_marker, (), ("pulsarx.broker.folder.folder_marker",)),
        Target("frames", frames, (), ("pulsarx.wire",)),
        Target("hot-commands", hot_commands),
        Target("commands", commands, _wire(), ("pulsarx.wire",)),
        Target("rest", rest, (), ("pulsarx.rest", "pulsarx.admin.http_forms"), size_max=4096),
    )
}  # fmt: skip
