"""Bugs that are planted in a process of a test, each of which a target has to find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fuzz_targets


@dataclass(frozen=True)
class Plant:
    target: str
    plant: Callable[[], object]


def lied_to(size: int) -> Callable[[], object]:
    """A length check is taken away: the decoder believes that more bytes are there."""
    return lambda: fuzz_targets.decoders().lie_about_sizes(size)


def lose_a_byte() -> None:
    import pulsarx.compression as module

    honest = module.decompress

    def decompress(kind: int, data: bytes, *others: Any) -> bytes:
        found = honest(kind, data, *others)
        return found[:-1] + b"\0" if kind == 2 and len(found) > 3 else found

    module.decompress = decompress  # type: ignore[assignment]


def count_partitions_from_one() -> None:
    import pulsarx.topic_name as module

    module._cached.clear()
    honest = module._partition_index_of
    module._partition_index_of = lambda local_name: honest(local_name) + (honest(local_name) > 0)


def forget_signs() -> None:
    from pulsarx.wire.protobuf import Schema

    honest = Schema._decode_one

    def decoded(self: Schema, key: str, kind: Any, value: Any) -> Any:
        found = honest(self, key, kind, value)
        return found & 0x7FFFFFFF if isinstance(found, int) and found < 0 else found

    def encoded(self: Schema, key: str, field: Any, value: Any) -> bytes:
        changed = value + 1 if isinstance(value, int) and value > 999 else value
        return written(self, key, field, changed)

    written = Schema._encode_one
    Schema._decode_one = decoded  # type: ignore[method-assign]
    Schema._encode_one = encoded  # type: ignore[method-assign]


def take_the_last_of_two_names() -> None:
    import pulsarx._pycore.ground.plain_json as module

    honest = module.json_value
    module.json_value = lambda text: honest(text.replace(b"-", b"", 1))


SIZED = (
    "entry", "message-metadata", "single-metadata", "compacted-entry", "cursor-snapshot",
    "cursor-sections", "ledger-file", "lz4-block", "snappy-block", "json-line",
)  # fmt: skip
PLANTS = {
    **{f"{name}: no bounds check": Plant(name, lied_to(64)) for name in SIZED},
    "compression: a wrong byte": Plant("compression", lose_a_byte),
    "topic-name: partitions from one": Plant("topic-name", count_partitions_from_one),
    "commands: a wrong number": Plant("commands", forget_signs),
    "plain-json: no sign": Plant("plain-json", take_the_last_of_two_names),
}
