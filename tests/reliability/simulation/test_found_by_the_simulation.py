"""Faults that the simulation has found, each as the few steps that show it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from guest_history import Plan, Step, run_plan
from simulated_thread import in_simulation

from pulsarx import errors
from pulsarx.processes.guest.subscription import Settler

ORDERS = 12  # in which guests come to the next owner


def run_in_many_orders(types: dict[str, str], *steps: Step) -> None:
    guests: list[Step] = [("start", slot, 0) for slot in (1, 2, 3)]

    def work() -> None:
        for seed in range(ORDERS):
            run_plan(Plan(seed, types, False, False, (*guests, *steps)))

    in_simulation(work)


def test_the_active_consumer_stays_the_active_one_when_owners_change() -> None:
    """The guest that came first to the next owner used to become it, and got what the active one
    held."""
    run_in_many_orders(
        {"s0": "Failover"},
        ("consume", 1, 100, "s0"),
        ("consume", 2, 100, "s0"),
        ("consume", 3, 100, "s0"),
        ("publish", 0, 100, 6, False, 1),
        ("receive", 1, 100, "s0", 2, 0, 1),
        ("kill owner", 0, 100),
        ("receive", 2, 200, "s0", 6, 0, 1),
        ("receive", 3, 100, "s0", 6, 0, 1),
        ("receive", 1, 100, "s0", 6, 0, 1),
    )


@pytest.mark.parametrize("consumer_type", ["Exclusive", "Failover"])
def test_what_is_behind_a_refused_message_comes_again_where_owners_changed(
    consumer_type: str,
) -> None:
    """The refused message used to come alone, at once."""
    run_in_many_orders(
        {"s0": consumer_type},
        ("consume", 1, 100, "s0"),
        ("publish", 0, 100, 4, False, 1),
        ("receive", 1, 100, "s0", 4, 0, 1),
        ("refuse", 1, 100, "s0"),
        ("kill owner", 0, 100),
    )


def test_a_caller_that_asked_the_last_owner_is_not_told_that_it_has_gone() -> None:
    """It used to raise ConnectError where its consumer was with the next owner before it went on:
    whether that was lost was what it looked at."""

    class Owner:
        is_lost = False

        def settle(self) -> None:
            self.is_lost = True
            settler.connection = next_owner
            raise errors.ConnectError(detail="the owner has left")

    next_owner: Any = Owner()
    settler = Settler(cast(Any, Owner()))
    settler.settle()
