"""Runs one planted race in a process of its own: `race_child.py BUG`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
for each in (".", "reliability", "core", "sharing", "api"):
    sys.path.insert(0, str(HERE.parent / each))

from planted_code import plant  # noqa: E402
from race_scenes import core_races, growing_ledgers, nothing, run_all  # noqa: E402

TURNS = 2000
IN_THE_LIBRARY = "publish_plainly"
PLANTED = (
    "count_without_atomics",
    "publish_without_release",
    "forget_the_mutex",
    "free_too_early",
    IN_THE_LIBRARY,
)


def main(bug: str) -> None:
    native = core_races()
    if bug == IN_THE_LIBRARY:
        # In the place of the function that says how far a ledger may be read.
        plant("pulsarx._core.ledger_flush", "ledger_publish", native.address_of_plain_publication())
        growing_ledgers(Path(), TURNS)
        return
    body = getattr(native.PlantedRaces(), bug)
    run_all([partial(body, who, TURNS) for who in range(2)], nothing)


if __name__ == "__main__":
    main(sys.argv[1])
