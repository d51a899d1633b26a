"""Runs all scenarios on one of the two packages and writes what they saw as JSON. Started by
oracle.py in a process of its own. RUN is part of the topics' names.

    python tests/oracle/run_scenarios.py pulsarx FOLDER RUN OUTPUT [NAME...]
    python tests/oracle/run_scenarios.py pulsar URL,WEB_URL RUN OUTPUT [NAME...]

With a URL and `pulsarx` the clients are those that PulsarX makes for a cluster.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

from world import SCENARIOS, OwnAdmin, RealAdmin, World

SCENARIO_SECONDS = 60
API_TESTS = Path(__file__).resolve().parent.parent / "api"  # its chunk_entries

# What standalone.conf in real_pulsar.py says too: looked at soon, and only where a policy asks.
OWN_OPTIONS: dict[str, Any] = {
    "backlog_quota_check_interval_in_seconds": 1,
    "broker_delete_inactive_topics_enabled": True,
    "broker_delete_inactive_topics_frequency_seconds": 1,
    "broker_delete_inactive_topics_max_inactive_duration_seconds": 1_000_000,
}


def load() -> None:
    sys.path.append(str(API_TESTS))
    for each in sorted((Path(__file__).parent / "scenarios").glob("*.py")):
        importlib.import_module(f"scenarios.{each.stem}")


def chosen(names: list[str]) -> list[str]:
    """Those whose name begins with one of these; all when none is given."""
    return [each for each in SCENARIOS if not names or each.startswith(tuple(names))]


def run_one(name: str, world: World) -> Any:
    """What the scenario saw, or the error that ended it; a scenario that hangs ends the process."""
    answer: list[Any] = []

    def work() -> None:
        try:
            answer.append(SCENARIOS[name](world))
        except Exception as error:
            answer.append({"failed": f"{type(error).__name__}: {error}"[:300]})

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(SCENARIO_SECONDS)
    return answer[0] if answer else {"failed": f"no end after {SCENARIO_SECONDS} s"}


def main(package: str, place: str, run: str, output: str, names: list[str]) -> None:
    load()
    if "://" in place:
        pulsar = importlib.import_module(package)
        url, _, web_url = place.partition(",")
        admin: Any = RealAdmin(url, web_url)
        quiet = {"logger": pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)}
        owner = None
    else:
        pulsar = importlib.import_module(package)
        url, quiet = place, {"broker_options": pulsar.BrokerOptions(**OWN_OPTIONS)}
        owner = pulsar.Client(place, **quiet)
        admin = OwnAdmin(owner)
    found: dict[str, Any] = {}
    for name in chosen(names):
        prefix = re.sub(r"\W+", "-", f"{name}-{run}")
        world = World(pulsar, url, admin, prefix, quiet)
        began = time.monotonic()
        try:
            found[name] = json.loads(json.dumps(run_one(name, world)))
        except (TypeError, ValueError) as error:
            found[name] = {"failed": f"not JSON: {error}"}
        world.close()
        print(f"{time.monotonic() - began:6.2f} s  {name}", file=sys.stderr, flush=True)
        Path(output).write_text(json.dumps(found))
    if owner is not None:
        owner.close()
    os._exit(0)  # whatever a scenario left running


if __name__ == "__main__":
    main(*sys.argv[1:5], sys.argv[5:])
