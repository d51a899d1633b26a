"""The fewest steps of a plan that still fail, found by leaving out others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from guest_history import Plan, run_plan

RUNS_MAX = 200


def failure_of(plan: Plan) -> BaseException | None:
    """What a history fails with; None: with nothing."""
    try:
        run_plan(plan)
    except Exception as error:
        return error
    return None


def shrunk_plan(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """Leave out as many steps as may be: parts of half of them first, single ones at the end."""
    runs = 0
    size = max(len(plan.steps) // 2, 1)
    while size:
        at = 0
        while at < len(plan.steps) and runs < RUNS_MAX:
            runs += 1
            tried = replace(plan, steps=plan.steps[:at] + plan.steps[at + size :])
            if fails(tried):
                plan = tried
            else:
                at += size
        size //= 2
    return plan


def described(plan: Plan, failure: BaseException) -> str:
    """A failing plan as `run_plan` takes it, and as few of its steps as fail alike."""
    short = shrunk_plan(plan, lambda tried: type(failure_of(tried)) is type(failure))
    return f"{failure}\n{short.text()}\nwhich fails as: {failure_of(short)}"
