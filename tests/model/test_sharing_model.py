"""No order of steps of an owner, its death, the next owner and their guests loses a waking or a
message, and each known defect is found by trying all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from seeds import SCALE
from sharing_model import (
    ASKS_EARLY,
    ends_link,
    ends_owner,
    every_message_is_done,
    guest_killer,
    killer,
    mortal,
    new_ends,
    new_positions,
    next_owner,
    no_reader_waits_in_vain,
    positions_killer,
    positions_link,
    positions_next,
    positions_owner,
    reader,
    user,
)
from waking_model import LostWaking, Process, State, explore


def living_owner() -> list[Process]:
    """It publishes and rolls over; its guest reads all of it."""
    return [ends_owner(2), reader("a", 3)]


def taken_over() -> list[Process]:
    """It dies at any step, and the next one wakes whoever sleeps."""
    return [ends_owner(rolls_over=False), killer(), next_owner(), ends_link(), reader("a", 2)]


def taken_over_elsewhere() -> list[Process]:
    """The next one goes on in another slot than that on which the guest sleeps."""
    owner = ends_owner(rolls_over=False)
    return [owner, killer(), next_owner(OTHER_SLOT), ends_link(), reader("a", 2)]


def taken_over_unseen() -> list[Process]:
    """A client that only reads has no connection, and nobody who tells it."""
    return [ends_owner(rolls_over=False), killer(), next_owner(), reader("a", 2)]


def taken_over_in_between() -> list[Process]:
    """It may die while it goes on to the next ledger, too."""
    return [ends_owner(), killer(), next_owner(), ends_link(), reader("a", 3)]


def taken_over_in_between_unseen() -> list[Process]:
    """Likewise, beside a client that only reads."""
    return [ends_owner(), killer(), next_owner(), reader("a", 3)]


def nobody_follows() -> list[Process]:
    """It dies at any step, and nobody owns the folder afterwards."""
    return [ends_owner(), killer(), ends_link(), reader("a", 2)]


def guest_dies() -> list[Process]:
    """Another guest is killed, asleep or not, and counts as a sleeper for ever."""
    owner = ends_owner(2, rolls_over=False)
    return [owner, reader("a", 2), mortal(reader("b", 1)), guest_killer("b")]


OTHER_SLOT = 2
ENDS = [living_owner, taken_over, taken_over_unseen, nobody_follows, guest_dies]
# Minutes, together.
LARGE = [taken_over_elsewhere, taken_over_in_between, taken_over_in_between_unseen]
ENDS_DEFECTS = {
    "a wake-up is dropped": guest_dies,
    "the waker counts waiters before its change": living_owner,
    "a sleeper does not look again": living_owner,
    "a full ledger ends in silence": living_owner,
    "a reader looks once at what it leaves": living_owner,
    "readers are not told that the owner has gone": nobody_follows,
    "a sleeper does not ask where the topic grows": taken_over_elsewhere,
    ASKS_EARLY: taken_over_in_between_unseen,
    "the next owner wakes nobody": taken_over_in_between_unseen,
    "the next owner forgets who sleeps": taken_over,
    "the id of a slot comes first": taken_over,
}


def begin(scene: Callable[[], list[Process]], *defects: str) -> State:
    return new_ends(*defects, later_slot=OTHER_SLOT if scene is taken_over_elsewhere else 1)


@pytest.mark.standard
@pytest.mark.parametrize("scene", ENDS + (LARGE if SCALE >= 1 else []))
def test_no_guest_misses_what_any_owner_publishes(scene: Callable[[], list[Process]]) -> None:
    assert explore(begin(scene), scene(), no_reader_waits_in_vain) > 100


@pytest.mark.standard
@pytest.mark.parametrize("defect", ENDS_DEFECTS)
def test_a_defect_of_published_ends_is_found(defect: str) -> None:
    scene = ENDS_DEFECTS[defect]
    with pytest.raises(LostWaking):
        explore(begin(scene, defect), scene(), no_reader_waits_in_vain)


MESSAGES = 2
POSITIONS_DEFECTS = (
    "a wake-up is dropped",
    "a sleeper does not look again",
    "nobody is awaited",
    "acknowledgements that were not recorded are forgotten",
    "what was not handed out stays",
    "what is acknowledged comes again",
    "what is held comes again",
)


def explore_positions(*defects: str) -> int:
    parties = [
        *positions_owner(),
        positions_killer(),
        *positions_next(MESSAGES),
        positions_link(),
        user(MESSAGES),
    ]
    verdict = every_message_is_done(MESSAGES)
    return explore(new_positions(MESSAGES, *defects), parties, verdict)


@pytest.mark.standard
def test_no_position_is_lost_or_handed_out_twice() -> None:
    assert explore_positions() > 100


@pytest.mark.standard
@pytest.mark.parametrize("defect", POSITIONS_DEFECTS)
def test_a_defect_of_positions_is_found(defect: str) -> None:
    with pytest.raises(LostWaking):
        explore_positions(defect)
