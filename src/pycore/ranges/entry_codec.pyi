from collections.abc import Mapping, Sequence
from typing import Any

Bytes = bytes | bytearray | memoryview

def crc32c(data: Bytes, seed: int = 0) -> int: ...
def crc32c_portable(data: Bytes, seed: int = 0) -> int: ...
def murmur3_32(data: Bytes, seed: int = 0) -> int: ...
def encode_entry(
    payload: bytes,
    *,
    producer_name: str,
    sequence_id: int,
    publish_time_ms: int,
    key: str | bytes | None = None,
    ordering_key: str | bytes | None = None,
    properties: Mapping[str, str] | None = None,
    event_time_ms: int = 0,
    deliver_at_ms: int = 0,
    schema_version: bytes = b"",
    null_value: bool = False,
    compression: int = 0,
    key_base64: bool = False,
) -> bytes: ...
def encode_batch(
    messages: Sequence[tuple[bytes, Mapping[str, Any]]],
    *,
    producer_name: str,
    publish_time_ms: int,
    schema_version: bytes = b"",
    compression: int = 0,
) -> bytes: ...
def decode_entry(entry: bytes, verify: bool = True, limit: int = ...) -> dict[str, Any]: ...
