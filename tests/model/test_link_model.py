"""No order of steps leaves what came over a connection undone, and each known defect is found by
trying all of them."""

from __future__ import annotations

import pytest
from link_model import (
    caller,
    consumer_closer,
    new_link,
    nothing_that_came_is_forgotten,
    owner,
    reading_thread,
)
from waking_model import LostWaking, explore

LINKS: dict[str, list[str]] = {
    "a message": ["a"],
    "messages of two": ["b", "a"],
    "what a caller leaves behind": ["cold", "a"],
    "what a caller leaves in between": ["a", "cold", "b"],
}
LINK_DEFECTS = {
    "the poller does not look for the socket again": "messages of two",
    "what is left is told to nobody": "what a caller leaves in between",
    "a caller reads on although something is left": "what a caller leaves behind",
    "a caller does not look whether its event has moved": "messages of two",
}


def explore_link(frames: list[str], *defects: str) -> int:
    parties = [owner(frames), reading_thread(), caller("a"), caller("b")]
    return explore(new_link(["a", "b"], *defects), parties, nothing_that_came_is_forgotten)


@pytest.mark.standard
@pytest.mark.parametrize("frames", LINKS.values(), ids=LINKS)
def test_nothing_stays_in_a_connection_that_callers_read(frames: list[str]) -> None:
    assert explore_link(frames) > 100


@pytest.mark.standard
@pytest.mark.parametrize("defect", LINK_DEFECTS)
def test_a_defect_of_reading_by_callers_is_found(defect: str) -> None:
    with pytest.raises(LostWaking):
        explore_link(LINKS[LINK_DEFECTS[defect]], defect)


def closing_callers(*defects: str) -> int:
    parties = [owner(["a"]), reading_thread(), caller("a"), caller("b"), consumer_closer()]
    return explore(new_link(["a", "b"], *defects), parties, nothing_that_came_is_forgotten)


@pytest.mark.standard
def test_closing_ends_callers_that_read() -> None:
    assert closing_callers() > 100


def test_a_close_that_tells_no_caller_is_found() -> None:
    with pytest.raises(LostWaking):
        closing_callers("a close tells nobody")
