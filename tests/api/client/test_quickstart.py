"""`make quickstart` on few flights: it passes when all is well and fails when something is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from flight_source import install_flights

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def run_quickstart(tmp_path: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    """before: run before main, with the module at hand as `quickstart`."""
    environment = install_flights(tmp_path / "site", flight_count=3000)
    script = f"""
import sys
sys.path.insert(0, {str(EXAMPLES)!r})
import quickstart
quickstart.FLIGHT_COUNT = 3000
{before}
sys.exit(quickstart.main([{str(tmp_path / "folder")!r}]))
"""
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True
    )


def test_everything_arrives_over_a_kill(tmp_path: Path):
    run = run_quickstart(tmp_path)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    assert "then killed (SIGKILL)" in run.stdout
    assert "AA American" in run.stdout
    assert "WRONG" not in run.stdout
    assert not (tmp_path / "folder.notes").exists()


def test_a_message_that_differs_from_the_source_fails_it(tmp_path: Path):
    before = """
load = quickstart.load
def load_and_publish_others():
    flights = load()
    publish = quickstart.publish
    others = [flights[0]._replace(value=b"{}"), *flights[1:]]
    quickstart.publish = lambda folder, _: publish(folder, others)
    return flights
quickstart.load = load_and_publish_others
"""
    run = run_quickstart(tmp_path, before)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 WRONG" in run.stdout
    assert "MISMATCH" in run.stdout


def test_a_consumer_that_forgets_its_acknowledgements_fails_it(tmp_path: Path):
    before = """
consume = quickstart.consume
def consume_from_the_start(folder, notes_path, notes, kill_at):
    if kill_at is None:
        with quickstart.pulsarx.Client(folder) as client:
            consumer = client.subscribe(quickstart.TOPIC, quickstart.SUBSCRIPTION)
            consumer.seek(quickstart.pulsarx.MessageId.earliest)
    return consume(folder, notes_path, notes, kill_at)
quickstart.consume = consume_from_the_start
"""
    run = run_quickstart(tmp_path, before)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "MISMATCH" in run.stdout
