"""Facts about positions behind what a power cut left: they are clamped to it, and the log says so.

A power cut is played by a kill, after which zeros stand where something was never flushed."""

from __future__ import annotations

from pathlib import Path

import pytest
from child_process import ChildProcess
from damaged_ledgers import data_of, fill, frame_offsets, ledger_paths, receive_all
from support.logged import lines
from topic_reading import whole_topic
from type_steps import publish, statistics

import pulsarx
from pulsarx import ConsumerType, MessageId

LEAVE_OPEN = """
import sys, pulsarx
from pulsarx.testing import inspect
options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=int(sys.argv[2]))
client = pulsarx.Client(sys.argv[1], durability="os", broker_options=options)
producer = client.create_producer("t")
client.subscribe("t", "holder")
consumer = client.subscribe("t", "s")
for number in range(10):
    producer.send(b"%d" % number)
    if number < 8:
        consumer.acknowledge(consumer.receive())
client.subscribe("t", "late")
inspect(client).settle()
print("sent", flush=True)
sys.stdin.read()
"""


def cut_power(folder: Path, kept: int, per_ledger: int = 1000) -> list[Path]:
    """Ten messages, subscription s that acknowledged eight, and late, made behind the last; of the
    last ledger only so many entries are left, and the cursor file of late is not there yet."""
    with ChildProcess(LEAVE_OPEN, folder, per_ledger) as child:
        assert child.line() == "sent"
        child.kill()
    paths = ledger_paths(folder)
    fill(paths[-1], frame_offsets(paths[-1])[kept], paths[-1].stat().st_size)
    cursors = sorted((folder / "cursors").iterdir(), key=lambda path: int(path.stem))
    cursors[-1].unlink()
    return paths


def test_a_subscription_made_behind_what_survived_begins_at_its_end(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The topic could not be opened any more: `seek to message 10 of ledger 2: it holds 1`."""
    [path] = cut_power(folder, 1)
    for turn in range(2):
        with pulsarx.Client(folder) as client:
            publish(client, f"new {turn}")
            assert len(whole_topic(client)) == 2 + turn
            client.subscribe("t", f"other {turn}")
        if turn == 0:
            said = lines(caplog, "subscription late", f"message 10 of ledger {path.stem}")
            assert len(said) == 1 and f"it begins at message 1 of ledger {path.stem}" in said[0]
        else:
            assert not lines(caplog, "subscription late")
        caplog.clear()
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "late")
        assert data_of(receive_all(consumer)[0]) == ["new 0", "new 1"]
        consumer.unsubscribe()


def test_acknowledgements_of_what_did_not_survive_are_said_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    [path] = cut_power(folder, 3)
    for turn in range(2):
        with pulsarx.Client(folder) as client:
            consumer = client.subscribe("t", "s")
            publish(client, "new")
            assert data_of(receive_all(consumer)[0]) == ["new"] * (turn + 1)
            assert statistics(client)["msg_backlog"] == turn + 1
        words = ("subscription s", f"5 messages of ledger {path.stem} from message 3 on")
        assert len(lines(caplog, *words)) == (turn == 0)
        caplog.clear()


@pytest.mark.parametrize("behind", [False, True])
def test_a_position_in_a_ledger_that_is_gone_begins_with_what_follows(
    folder: Path, caplog: pytest.LogCaptureFixture, behind: bool
) -> None:
    """Everything was delivered again, from the first message on."""
    paths = cut_power(folder, 0, per_ledger=4)
    (folder / "ends").unlink()
    assert len(paths) == 3
    if behind:
        late = sorted((folder / "cursors").iterdir())
        with pulsarx.Client(folder) as client:
            publish(client, "first")
            assert client.subscribe("t", "late").receive(0).data() == b"first"
        for path in set((folder / "cursors").iterdir()) - set(late):
            path.unlink()
        caplog.clear()
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "late", consumer_type=ConsumerType.Shared)
        publish(client, "new")
        assert data_of(receive_all(consumer)[0]) == (["first", "new"] if behind else ["new"])
        assert statistics(client, name="late")["msg_backlog"] == 1 + behind
    assert len(lines(caplog, "subscription late", f"ledger {paths[-1].stem}")) >= 1


def test_a_reader_behind_what_survived_begins_at_its_end(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    [path] = cut_power(folder, 3)
    with pulsarx.Client(folder) as client:
        reader = client.create_reader("t", MessageId(-1, int(path.stem), 7))
        publish(client, "new")
        assert data_of(receive_all(reader)[0]) == ["new"]
    assert len(lines(caplog, f"({path.stem},7,", "3 entries", "begins at the end")) == 1
