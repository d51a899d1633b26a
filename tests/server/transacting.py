"""What tests of transactions say as a client of a network."""

from __future__ import annotations

from typing import Any

from peer import Peer, Told

import pulsarx

MINUTE_MS = 60_000


def begin(peer: Peer, timeout_ms: int = MINUTE_MS, **values: Any) -> int:
    """Open a transaction; its number."""
    (told,) = peer.say("NEW_TXN", request_id=1, timeout_ms=timeout_ms, **values)
    assert told[0] == "NEW_TXN_RESPONSE"
    assert told[1]["error"] is None, told
    assert told[1]["most"] == 0
    least: int = told[1]["least"]
    return least


def end(peer: Peer, number: int, action: int) -> int | None:
    """End a transaction; the code of the answer."""
    said = peer.say("END_TXN", request_id=2, least=number, most=0, action=action)
    (told,) = [each for each in said if each[0] != "MESSAGE"]
    assert (told[0], told[1]["least"], told[1]["most"]) == ("END_TXN_RESPONSE", number, 0)
    error: int | None = told[1]["error"]
    return error


def send(peer: Peer, data: bytes, number: int | None, sequence_id: int = 1) -> Told:
    ids = {} if number is None else {"transaction_least": number, "transaction_most": 0}
    (told,) = peer.say("SEND", data, producer_id=0, sequence_id=sequence_id, **ids)
    return told


def opened_producer(peer: Peer, **values: Any) -> None:
    (told,) = peer.say("PRODUCER", topic="t", producer_id=0, request_id=0, **values)
    assert told[0] == "PRODUCER_SUCCESS"


def seen(client: pulsarx.Client, topic: str = "t") -> list[bytes]:
    """What a reader sees of a topic."""
    with client.create_reader(topic, pulsarx.MessageId.earliest) as reader:
        return [each.data() for each in reader.read_many(100, 0)]
