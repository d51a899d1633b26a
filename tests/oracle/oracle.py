"""`make oracle`: runs every scenario on a real Pulsar and on PulsarX, and compares what they saw.

    python tests/oracle/oracle.py [--own-only] [NAME...]

Then it runs tests/cluster/both_sides.py with the client that PulsarX makes for a cluster: it must
see on the real Pulsar what it sees in a folder. And tests/programs on the real Pulsar, with the
official client: they must print what is stored beside them, which is what they print under PulsarX
in `make test`. And the tests of Spark on a cluster, which is a served folder in `make test`. While
the broker is there, it also measures what a call costs beside the official client, and writes that
part of benchmarks/RESULTS.md. Then another broker starts, with transactions, which are measured.

NAME: scenarios that begin so; the script is called cluster.both_sides, programs programs.NAME, the
tests of Spark cluster.spark, what is measured benchmark and transactions.
--own-only: no broker; fails where a scenario ends with an error.
Every difference stands in differences.md with its reason. An unlisted one fails, and so does a
listed one that is not there any more. Ends with 0 when all is as listed, and when there is no
Java or Maven: that is said.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from real_pulsar import VERSION, Missing, RealPulsar, libraries
from world import RealAdmin

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "programs"))
import program_runs  # noqa: E402

DIFFERENCES = HERE / "differences.md"
PROGRAMS = "programs."
BOTH_SIDES = "cluster.both_sides"
SPARK = "cluster.spark"
BENCHMARK = "benchmark"
TRANSACTIONS = "transactions"
RUN = f"{int(time.time()):x}"
_ROW = re.compile(r"^\| `([^`]+)` \| (.+) \|$")


def differences() -> dict[str, str]:
    """The reason of each listed difference, by the scenario's name; `*` at its end: all such."""
    rows = (_ROW.match(line) for line in DIFFERENCES.read_text().splitlines())
    return {row[1]: row[2] for row in rows if row}


def reason_for(name: str, listed: dict[str, str]) -> str | None:
    """The entry of the list that names this scenario."""
    for entry in listed:
        if name == entry or (entry.endswith("*") and name.startswith(entry[:-1])):
            return entry
    return None


def run(package: str, place: str, names: list[str]) -> dict[str, Any]:
    """What they saw. Topics are called the same on either side: names decide some answers."""
    with tempfile.NamedTemporaryFile(suffix=".json") as output:
        command = [sys.executable, str(HERE / "run_scenarios.py"), package, place, RUN, output.name]
        subprocess.run([*command, *names], check=True)
        return dict(json.loads(Path(output.name).read_text()))


def judge(
    real: dict[str, Any], own: dict[str, Any], listed: dict[str, str], *, all_ran: bool
) -> list[str]:
    """A line for each thing that is not as listed."""
    told: list[str] = []
    used: set[str] = set()
    for name in real:
        if real[name] == own.get(name):
            continue
        entry = reason_for(name, listed)
        if entry is None:
            told.append(f"{name}:\n  Pulsar   {real[name]}\n  PulsarX  {own.get(name)}")
        else:
            used.add(entry)
    if all_ran:
        told += [f"{entry}: listed, and there is no difference" for entry in listed.keys() - used]
    return told


def programs(broker: RealPulsar, names: list[str]) -> list[str]:
    """A line for each program that prints something else than what is stored."""
    told: list[str] = []
    admin = RealAdmin(broker.url, broker.web_url)
    for name in program_runs.NAMES:
        if names and not f"{PROGRAMS}{name}".startswith(tuple(names)):
            continue
        for topic, partitions in program_runs.partitioned_topics(name).items():
            admin.create_partitioned(f"persistent://public/default/{topic}", partitions)
        printed = program_runs.output_of(name, [], broker.url)
        if printed != program_runs.expected(name):
            told.append(f"programs.{name} prints on Pulsar:\n{printed}")
    return told


def both_sides(broker: RealPulsar, names: list[str]) -> list[str]:
    """A line when PulsarX's client of a cluster sees another thing there than in a folder."""
    if names and not BOTH_SIDES.startswith(tuple(names)):
        return []
    script = str(HERE.parent / "cluster" / "both_sides.py")
    near, far = (
        subprocess.run(
            [sys.executable, script, url, f"both-{RUN}"],
            capture_output=True,
            encoding="utf-8",
        )
        for url in ("memory:", broker.url)
    )
    if near.returncode or far.returncode or near.stdout != far.stdout:
        there, here = (f"{each.stdout}{each.stderr}" for each in (far, near))
        return [f"{BOTH_SIDES}:\n  Pulsar   {there}\n  PulsarX  {here}"]
    return []


def spark(broker: RealPulsar, names: list[str]) -> list[str]:
    """A line when a test of Spark on a cluster fails there. It deletes all topics of
    public/default."""
    if names and not SPARK.startswith(tuple(names)):
        return []
    tests = [
        str(HERE.parent / "spark" / f"test_{name}.py") for name in ("cluster", "cluster_stream")
    ]
    environment = os.environ | {"PULSARX_TEST_CLUSTER": f"{broker.url} {broker.web_url}"}
    command = [sys.executable, "-m", "pytest", "-q", "-n0", *tests]
    if subprocess.run(command, env=environment, cwd=HERE.parent.parent).returncode:
        return [f"{SPARK}: a test failed"]
    return []


def benchmark(broker: RealPulsar, names: list[str]) -> list[str]:
    """A line when a row of what a call costs has no figure."""
    if names and not BENCHMARK.startswith(tuple(names)):
        return []
    return measured(BENCHMARK, "--group", "real_pulsar", "--pulsar-url", broker.url)


def transactions(names: list[str]) -> list[str]:
    """A line when a row of what a transaction costs has no figure. Lists of topics are others where
    a broker has transactions, so it is another one."""
    if names and not TRANSACTIONS.startswith(tuple(names)):
        return []
    with RealPulsar("transactionCoordinatorEnabled=true") as broker:
        options = ["--pulsar-url", broker.url, "--java-classpath", f"{libraries()}/*"]
        return measured(TRANSACTIONS, "--group", "transactions", *options)


def measured(what: str, *options: str) -> list[str]:
    script = str(HERE.parent.parent / "benchmarks" / "run.py")
    if subprocess.run([sys.executable, script, *options]).returncode:
        return [f"{what}: a row has no figure"]
    return []


def failed(found: dict[str, Any]) -> list[str]:
    """Scenarios that an error ended: they say nothing about the packages."""
    return [
        f"{name}: {answer['failed']}"
        for name, answer in found.items()
        if isinstance(answer, dict) and "failed" in answer
    ]


def on_pulsar(names: list[str], only_others: bool) -> tuple[list[str], dict[str, Any]]:
    """What was not as expected on a real broker, and what the scenarios saw there."""
    with RealPulsar() as broker:
        told = programs(broker, names) + both_sides(broker, names)
        real: dict[str, Any] = {}
        if not only_others:
            real = run("pulsar", f"{broker.url},{broker.web_url}", names)
        told += spark(broker, names)
        told += benchmark(broker, names)
        return told, real


def main(arguments: list[str]) -> int:
    own_only = "--own-only" in arguments
    names = [each for each in arguments if each != "--own-only"]
    others = (PROGRAMS, BOTH_SIDES, SPARK, BENCHMARK, TRANSACTIONS)
    only_others = bool(names) and all(each.startswith(others) for each in names)
    own: dict[str, Any] = {}
    if not only_others:
        with tempfile.TemporaryDirectory() as folder:
            own = run("pulsarx", f"{folder}/own", names)
    if own_only:
        told = failed(own)
    else:
        try:
            told, real = on_pulsar(names, only_others) if names != [TRANSACTIONS] else ([], {})
            told += transactions(names)
        except Missing as error:
            print(f"skipped: {error}")
            return 0
        told += [f"on Pulsar: {each}" for each in failed(real)]
        told += judge(real, own, differences(), all_ran=not names)
    print("\n".join(told))
    what = "on PulsarX alone" if own_only else f"against Apache Pulsar {VERSION}"
    print(f"{len(own)} scenarios {what}: {len(told)} not as expected")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
