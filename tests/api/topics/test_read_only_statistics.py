"""Facts about the statistics of a client opened read_only: the whole backlog is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from topic_reading import OpenClient

import pulsarx
from pulsarx import ConsumerType, InitialPosition

FIGURES = ("type", "is_durable", "msg_backlog", "backlog_entries", "mark_delete_position")


def figures(client: pulsarx.Client, topic: str = "t") -> dict[str, Any]:
    found = client.admin.topics.stats(topic)["subscriptions"]
    return {name: {each: one[each] for each in FIGURES} for name, one in found.items()}


def listing(folder: Path) -> dict[str, bytes]:
    """Every cursor file with what is in it."""
    return {each.name: each.read_bytes() for each in (folder / "cursors").iterdir()}


def use(client: pulsarx.Client) -> None:
    """Three subscriptions: one with holes, in batches and over several ledgers, one done, one
    new."""
    holes = client.subscribe("t", "holes", ConsumerType.Shared)
    done = client.subscribe("t", "done")
    producer = client.create_producer("t")
    for number in range(12):
        producer.send(b"%d" % number)
        producer.send_many([b"a", b"b", b"c"])
    messages = holes.receive_many(48)
    assert len(messages) == 48
    for number in (0, 1, 2, 3, 4, 6, 8, 9, 10, 11, 30, 31):
        holes.acknowledge(messages[number])
    done.acknowledge_cumulative(done.receive_many(48)[-1])
    client.subscribe("t", "new", initial_position=InitialPosition.Latest).close()
    client.subscribe("t", "all", initial_position=InitialPosition.Earliest).close()


@pytest.mark.parametrize("beside_owner", [True, False])
def test_the_backlog_is_that_of_the_owner(open_client: OpenClient, beside_owner: bool) -> None:
    """They used to be the types of the subscriptions and nothing else."""
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=7)
    owner = open_client(broker_options=options)
    use(owner)
    expected = figures(owner)
    assert [expected[each]["msg_backlog"] for each in ("holes", "done", "new", "all")] == [
        36, 0, 0, 48]  # fmt: skip
    child = """
import json, sys, pulsarx
with pulsarx.Client(sys.argv[1], read_only=True) as client:
    found = client.admin.topics.stats("t")
    assert found["held_by_leases_ledgers"] is found["held_by_leases_size"] is None  # not known here
    print(json.dumps(found["subscriptions"]))
"""
    folder = owner_folder(owner)
    if not beside_owner:
        owner.close()
    before = listing(folder)
    told = run_child(child, folder)
    assert listing(folder) == before
    found = {name: {each: one[each] for each in FIGURES} for name, one in told.items()}
    for each in [*expected.values(), *found.values()]:
        each["mark_delete_position"] = list(each["mark_delete_position"])
        each.pop("type")  # what the consumers asked for last; the owner says "" without consumers
    assert found == expected


def owner_folder(client: pulsarx.Client) -> Path:
    from pulsarx.testing import inspect

    return Path(os.fspath(inspect(client).directory.path))


def run_child(program: str, folder: Path) -> Any:
    import json
    import subprocess
    import sys

    ran = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_they_follow_what_the_owner_acknowledges(open_client: OpenClient) -> None:
    owner = open_client()
    consumer = owner.subscribe("t", "s")
    producer = owner.create_producer("t")
    folder = owner_folder(owner)
    program = """
import json, sys, pulsarx
with pulsarx.Client(sys.argv[1], read_only=True) as client:
    print(json.dumps(client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"]))
"""
    producer.send_many([b"1", b"2", b"3"])
    assert run_child(program, folder) == 3
    consumer.acknowledge(consumer.receive(60_000))
    assert run_child(program, folder) == 2  # in the mapped tail, not flushed by anybody


def test_a_damaged_cursor_counts_everything_and_stays_as_it_is(open_client: OpenClient) -> None:
    owner = open_client()
    consumer = owner.subscribe("t", "s")
    owner.create_producer("t").send_many([b"1", b"2", b"3"])
    consumer.acknowledge(consumer.receive(60_000))
    folder = owner_folder(owner)
    owner.close()
    (path,) = (folder / "cursors").iterdir()
    data = bytearray(path.read_bytes())
    data[:64] = bytes(range(64))
    path.write_bytes(data)
    before = listing(folder)
    with pulsarx.Client(folder, read_only=True) as client:
        assert figures(client)["s"]["msg_backlog"] == 3
    assert listing(folder) == before


def test_the_mark_delete_position_is_the_last_entry_up_to_which_all_is_acknowledged(
    memory_client: pulsarx.Client,
) -> None:
    """It used to be the first message that was not acknowledged, by its number in the ledger."""

    def position() -> Any:
        return figures(memory_client)["s"]["mark_delete_position"]

    consumer = memory_client.subscribe("t", "s")
    assert position() == (-1, -1)  # no ledger yet
    producer = memory_client.create_producer("t")
    ids = [producer.send(b"%d" % number) for number in range(5)]
    ledger_id = ids[0].ledger_id()
    messages = consumer.receive_many(5)
    assert position() == (ledger_id, -1)
    reached = []
    for number in (0, 2, 1, 3, 4):
        consumer.acknowledge(messages[number])
        reached.append(position())
    assert reached == [(ledger_id, each) for each in (0, 0, 2, 3, 4)]
    producer.send_many([b"a", b"b", b"c"])  # an entry of three, behind them
    producer.send(b"d")
    reached = []
    for message in consumer.receive_many(4):
        consumer.acknowledge(message)
        reached.append(position())
    assert reached == [(ledger_id, each) for each in (4, 4, 5, 6)]
