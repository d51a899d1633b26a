"""Facts about what the broker says of an entry in front of it: to clients that understand it, where
it is to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from chunk_entries import ChunkWriter
from peer import Peer, batch, entry, serving
from support.clients import OpenClient

import pulsarx
from pulsarx import BrokerOptions, ManualClock
from pulsarx.wire.commands import EXCLUSIVE, SHARED

TIME, INDEX = "AppendBrokerTimestampMetadataInterceptor", "AppendIndexMetadataInterceptor"
UNDERSTANDS = {"supports_broker_entry_metadata": True}
CHANGED = {"managed_ledger_max_entries_per_ledger": 2}


class RawPeer(Peer):
    """A client that keeps the bytes of each MESSAGE, too."""

    def __init__(self, client: pulsarx.Client, **features: Any) -> None:
        super().__init__(serving(client))
        self.raw: list[bytes] = []
        self.say("CONNECT", client_version="test", protocol_version=20, feature_flags=features)

    def _hear(self, data: bytes) -> None:
        self.raw.append(data)
        super()._hear(data)

    def messages(self, type: int = SHARED) -> list[tuple[dict[int, int], bytes]]:
        """(fields in front, entry) of each."""
        self.subscribe(type=type)
        self.raw.clear()
        told = self.say("FLOW", consumer_id=0, permits=100)
        raw = [each for each in self.raw if b"\x0e\x01" in each]
        assert len(raw) == len(told)
        return [(in_front(data, found), found) for data, (_, _, found) in zip(raw, told)]


def in_front(frame: bytes, found: bytes) -> dict[int, int]:
    head = frame[8 + int.from_bytes(frame[4:8], "big") : -len(found)]
    if not head:
        return {}
    assert head[:2] == b"\x0e\x02" and int.from_bytes(head[2:6], "big") == len(head) - 6
    fields, at = {}, 6
    while at < len(head):
        tag, at = varint(head, at)
        fields[tag >> 3], at = varint(head, at)
    return fields


def varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return number, at


@pytest.fixture
def opened(
    open_client: OpenClient, manual_clock: ManualClock
) -> Iterator[Callable[..., pulsarx.Client]]:
    def make(*kinds: str, exposes: bool = True) -> pulsarx.Client:
        options = BrokerOptions(
            broker_entry_metadata_interceptors=kinds,
            exposing_broker_entry_metadata_to_client_enabled=exposes,
            **CHANGED,
        )
        return open_client(broker_options=options, clock=manual_clock)

    yield make


@pytest.mark.parametrize("type", [SHARED, EXCLUSIVE])
def test_time_and_index_of_the_last_message_stand_in_front(
    opened: Callable[..., pulsarx.Client], manual_clock: ManualClock, type: int
) -> None:
    client = opened(TIME, INDEX)
    peer = RawPeer(client, **UNDERSTANDS)
    sent = [entry(b"one"), batch(b"a", b"b", b"c"), entry(b"two"), batch(b"d", b"e")]
    began = manual_clock.now_ms()
    peer.produce(sent[0])
    for each in sent[1:]:
        manual_clock.advance(1)
        peer.send(each)
    assert peer.messages(type) == [
        ({1: began + 1000 * at, 2: index}, each)
        for at, (index, each) in enumerate(zip((0, 3, 4, 6), sent))
    ]
    peer.server.close()


def test_each_chunk_has_its_own(opened: Callable[..., pulsarx.Client]) -> None:
    client = opened(INDEX)
    peer = RawPeer(client, **UNDERSTANDS)
    client.create_producer("t").close()
    ChunkWriter(client, "t").whole("m", [b"a", b"b", b"c"])
    assert [fields for fields, _ in peer.messages()] == [{2: 0}, {2: 1}, {2: 2}]
    peer.server.close()


@pytest.mark.parametrize(("kinds", "fields"), [((INDEX,), {2}), ((TIME,), {1}), ((), set())])
def test_what_is_not_configured_is_not_sent(
    opened: Callable[..., pulsarx.Client], kinds: tuple[str, ...], fields: set[int]
) -> None:
    peer = RawPeer(opened(*kinds), **UNDERSTANDS)
    peer.produce(entry(b"one"))
    assert [set(found) for found, _ in peer.messages()] == [fields]
    peer.server.close()


@pytest.mark.parametrize(("exposes", "features"), [(False, UNDERSTANDS), (True, {})])
def test_nothing_is_sent_where_it_is_off_or_not_understood(
    opened: Callable[..., pulsarx.Client], exposes: bool, features: dict[str, bool]
) -> None:
    peer = RawPeer(opened(TIME, INDEX, exposes=exposes), **features)
    peer.produce(entry(b"one"))
    assert peer.messages() == [({}, entry(b"one"))]
    peer.server.close()
