"""Facts about what the logger `pulsarx` tells of a broker's life."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest
from topic_reading import OpenClient

import pulsarx
from pulsarx.testing import inspect

pytestmark = pytest.mark.usefixtures("nothing_forgotten")

LEAVE_OPEN = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
client.create_producer("t").send_many([b"1", b"2", b"3"])
os._exit(0)
"""


def told(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == level]


def test_open_and_close_are_told_at_info(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pulsarx")
    with pulsarx.Client(folder) as client:
        client.create_producer("t").send(b"x")
        assert told(caplog, logging.INFO) == [f"{folder}: opened, epoch 1, 0 topics"]
    assert told(caplog, logging.INFO)[1:] == [f"{folder}: closed, epoch 1"]
    caplog.clear()
    pulsarx.Client(folder).close()
    assert told(caplog, logging.INFO) == [
        f"{folder}: opened, epoch 2, 1 topics", f"{folder}: closed, epoch 2"
    ]  # fmt: skip


def test_take_over_and_recovery_are_told_at_info(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    subprocess.run([sys.executable, "-c", LEAVE_OPEN, str(folder)], check=True, timeout=60)
    caplog.set_level(logging.INFO, "pulsarx")
    with pulsarx.Client(folder) as client:
        client.create_producer("t")
    taken, opened, recovered, closed = told(caplog, logging.INFO)
    assert "taken over from an owner that did not close it; 1 ledgers are recovered" in taken
    assert "opened, epoch 2, 1 topics" in opened
    assert "persistent://public/default/t: recovered ledger" in recovered
    assert recovered.endswith(": 1 entries, 3 messages")
    assert "closed" in closed


def test_roll_over_and_trimming_are_told_at_debug(
    open_client: OpenClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "pulsarx")
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    client = open_client(broker_options=options)
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    ids = [producer.send(b"%d" % number) for number in range(5)]
    ledger_ids = sorted({each.ledger_id() for each in ids})
    topic = "persistent://public/default/t"
    inspect(client).settle()  # what is trimmed already is in no list
    consumer.acknowledge_cumulative(ids[-1])
    inspect(client).settle()
    rolled = [each for each in told(caplog, logging.DEBUG) if "rolled over" in each]
    # In either order: where nothing is prepared the publisher tells, else the lane.
    assert (
        f"{topic}: rolled over from ledger {ledger_ids[0]}, 2 entries, to ledger {ledger_ids[1]}"
    ) in rolled
    assert len(rolled) == 2
    trimmed = [each for each in told(caplog, logging.DEBUG) if "trimmed" in each]
    assert "".join(trimmed).count(str(ledger_ids[0])) >= 1


def test_nothing_is_told_and_nothing_loaded_where_nobody_listens(folder: Path) -> None:
    program = """
import sys, pulsarx
with pulsarx.Client(sys.argv[1]) as client:
    client.create_producer("t").send(b"x")
print("logging" in sys.modules)
"""
    ran = subprocess.run(
        [sys.executable, "-S", "-c", program, str(folder)],
        capture_output=True, text=True, timeout=60, env={"PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert (ran.stdout.strip(), ran.stderr) == ("False", "")
