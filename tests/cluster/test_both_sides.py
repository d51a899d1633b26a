"""One script sees the same in a folder, over a connection and, in `make oracle`, on a cluster."""

from __future__ import annotations

import both_sides
import pytest
from border_client import BorderClient

import pulsarx


def test_a_folder_and_a_connection_look_the_same() -> None:
    with pulsarx.Client("memory:near") as client:
        near = both_sides.seen(client, "topic")
    with BorderClient("memory:far") as client:
        far = both_sides.seen(client, "topic")
    refused = far.pop("intercepting")
    assert refused == "not over a connection"
    assert near.pop("intercepting") != refused
    assert far == near


def test_a_step_tells_more_than_nothing() -> None:
    with pulsarx.Client("memory:") as client:
        seen = both_sides.seen(client, "topic")
    assert all(seen.values())
    assert seen["ids"][0] == [b"1"]
    assert seen["reading"] == [b"1", b"2", b"3", b"0"]


@pytest.mark.parametrize("step", ["many", "closing"])
def test_a_step_is_named_by_its_function(step: str) -> None:
    assert callable(getattr(both_sides, step))
