"""What a plan has leased can be read, whatever retention does meanwhile; a lease that is given back
too early is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from counts import counted
from leased_plans import History, PromiseBroken
from seeds import seed_of, seeds

from pulsarx.broker.catalogue.state import CatalogueState
from pulsarx.broker.scan import lease as leases
from pulsarx.broker.scan.lease_renewal import LeaseRenewals

STEPS = 40
CASES_MAX = 40  # until a bug is found
Mutation = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("seed", seeds(20))
def test_what_is_leased_can_be_read(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"seed {seed}")
    history = History(tmp_path / "data", seed, monkeypatch)
    history.run(STEPS)
    counted(1, "histories")
    assert history.read_count


def given_back_with_the_first_part(patch: pytest.MonkeyPatch) -> None:
    """Each part is taken for the last one of its plan."""
    finish = leases.finish_part
    patch.setattr(
        leases, "finish_part", lambda planned, part, parts, **o: finish(planned, 0, 1, **o)
    )


def given_back_by_a_reader_that_leaves(patch: pytest.MonkeyPatch) -> None:
    leave = LeaseRenewals.leave

    def leaving(self: LeaseRenewals, lease: Any, planned: Any) -> None:
        leave(self, lease, planned)
        leases.release_lease(planned.folder, planned.lease[0])

    patch.setattr(LeaseRenewals, "leave", leaving)


def not_renewed_while_it_is_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LeaseRenewals, "_arm", lambda self, lease: None)


def renewed_too_late(patch: pytest.MonkeyPatch) -> None:
    from pulsarx.broker.scan import lease_renewal

    patch.setattr(lease_renewal, "_interval_ms", lambda ttl_ms: ttl_ms + 1000)


def taken_for_the_last_ledger_alone(patch: pytest.MonkeyPatch) -> None:
    take = leases.lease

    def taking(folder: Any, job: str, ledgers: Any, ttl_ms: int, **options: Any) -> int:
        last = {topic: [max(ids)] for topic, ids in ledgers.items()}
        return take(folder, job, last, ttl_ms, **options)

    patch.setattr(leases, "lease", taking)


def over_in_a_quarter_of_its_time(patch: pytest.MonkeyPatch) -> None:
    ask = leases.ask_owner

    def asking(folder: Any, verb: str, arguments: Any, timeout_ms: int) -> Any:
        if verb in ("leases.set", "leases.renew"):
            arguments = {**arguments, "ttl_ms": arguments["ttl_ms"] // 4}
        return ask(folder, verb, arguments, timeout_ms)

    patch.setattr(leases, "ask_owner", asking)


def not_asked_for_by_retention(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CatalogueState, "leased_from", lambda self, topic, now_ms: (1 << 62, 0))


PLANTED: list[Mutation] = [
    given_back_with_the_first_part,
    given_back_by_a_reader_that_leaves,
    not_renewed_while_it_is_read,
    renewed_too_late,
    taken_for_the_last_ledger_alone,
    over_in_a_quarter_of_its_time,
    not_asked_for_by_retention,
]


@pytest.mark.parametrize("bug", PLANTED)
def test_a_lease_given_back_early_is_found(bug: Mutation, tmp_path: Path) -> None:
    first = seed_of(0)
    for case in range(CASES_MAX):
        with pytest.MonkeyPatch.context() as patch:
            bug(patch)
            history = History(tmp_path / str(case), first + case, patch)
            try:
                history.run(STEPS)
            except PromiseBroken as error:
                print(f"found by case {case + 1}: {error}")
                return
    pytest.fail(f"not found in {CASES_MAX} cases")
