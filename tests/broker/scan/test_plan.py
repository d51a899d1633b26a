"""plan: which parts of which files hold the messages from here to there."""

from __future__ import annotations

import itertools
import json
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
from range_topics import (
    FULL,
    Beside,
    compare_offsets,
    publish,
    small_ledgers,
    tables,
    values,
)
from support.clients import OpenClient, clients_of

import pulsarx
from pulsarx import errors
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.scan import plan as plan_module
from pulsarx.broker.scan.ledger_range import RANGES_MAX, LedgerRange, group_ranges
from pulsarx.broker.scan.offsets import format_offsets, parse_offsets
from pulsarx.broker.scan.plan import Planner, plan
from pulsarx.testing import inspect


def ledger_ids(planner: Planner) -> list[int]:
    return [each.ledger_id for each in planner.plan()]


def remove_ledgers(client: pulsarx.Client, ids: list[int]) -> None:
    inspect(client).settle()
    inspect(client).ledger(FULL).remove(ids)


# Whole topics


def test_a_plan_holds_every_message_once_in_order(client: pulsarx.Client):
    sent = publish(client, 100, batch=4)
    ranges = plan(inspect(client).broker, "t", columns=["value"])
    assert len(ranges) == 9
    assert values(ranges) == sent
    assert sum(each.message_count for each in ranges) == 100


def test_a_topic_without_messages_gives_no_range(client: pulsarx.Client):
    client.create_producer("t")
    assert plan(inspect(client).broker, "t") == []
    assert Planner(inspect(client).broker, "t").latest() == {FULL: (0, 0)}


def test_partitions_are_planned_with_their_numbers(client: pulsarx.Client):
    client.admin.topics.create_partitioned_topic("p", 3)
    for index in range(3):
        publish(client, 5, f"p-partition-{index}")
    ranges = plan(inspect(client).broker, "p")
    assert [(each.topic[-1], each.partition) for each in ranges] == [
        (str(index), index) for index in range(3) for _ in range(2)
    ]
    identities = [row["__messageId"] for rows in tables(ranges) for row in rows]
    assert [pulsarx.MessageId.deserialize(each).partition() for each in identities] == (
        [0] * 5 + [1] * 5 + [2] * 5
    )


def test_several_topics_are_planned_in_the_order_named(client: pulsarx.Client):
    publish(client, 2, "b")
    publish(client, 2, "a")
    assert [each.topic[-1] for each in plan(inspect(client).broker, ["b", "a"])] == ["b", "a"]
    with pytest.raises(ValueError, match="named twice"):
        plan(inspect(client).broker, ["a", "persistent://public/default/a"])


def test_a_plan_of_whole_ledgers_opens_no_file(client: pulsarx.Client):
    publish(client, 9)
    inspect(client).settle()
    client.close()
    folder = Path(inspect(client).directory.path)
    for path in folder.glob("ledgers/*/*.ledger"):
        path.unlink()
    with clients_of(folder) as make, make(read_only=True) as reader:
        assert len(plan(inspect(reader).broker, "t")) == 3


def test_a_range_is_a_value(client: pulsarx.Client):
    publish(client, 2)
    (found,) = plan(inspect(client).broker, "t")
    assert pickle.loads(pickle.dumps(found)) == found
    assert LedgerRange.of_row(json.loads(json.dumps(found.row()))) == found
    assert len({found, pickle.loads(pickle.dumps(found))}) == 1
    assert found.folder_id == inspect(client).directory.folder_id


def test_a_group_takes_neighbours_of_several_topics_up_to_a_size(client: pulsarx.Client):
    """985 small topics were 985 tasks of Spark."""
    publish(client, 12, "a")
    publish(client, 12, "b")
    ranges = plan(inspect(client).broker, ["a", "b"])
    groups = group_ranges(ranges, ranges[0].size * 3)
    assert [len(group) for group in groups] == [3, 3, 2]
    assert len({each.topic for each in groups[1]}) == 2
    assert [each for group in groups for each in group] == ranges
    assert [len(group) for group in group_ranges(ranges, 1 << 30, 6)] == [2, 2, 2, 2]


def test_a_group_has_no_more_ledgers_than_a_task_opens_in_moments(client: pulsarx.Client):
    publish(client, 3)
    (one,) = plan(inspect(client).broker, "t")
    groups = group_ranges([one] * (2 * RANGES_MAX + 1), 1 << 40)
    assert [len(group) for group in groups] == [RANGES_MAX, RANGES_MAX, 1]


# Offsets


def test_offsets_have_one_text():
    offsets = {"persistent://public/default/b": (3, 4), "persistent://public/default/a": (12, 0)}
    text = format_offsets(offsets)
    assert text == (
        '{"persistent://public/default/a":[12,0],"persistent://public/default/b":[3,4]}'
    )
    assert parse_offsets(text) == offsets
    assert format_offsets(dict(reversed(offsets.items()))) == text
    assert parse_offsets('{"a": [1, 2]}') == {"persistent://public/default/a": (1, 2)}


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"a": 1}', '{"a": [1]}', '{"a": [1, -1]}', '{"a": [true, 1]}',
             '{"a": [0, 1]}', '{"a": "now"}', '{"a": [1, 1], "public/default/a": [2, 1]}',
             '{"a": "1:2"}', '{"a": "-1:-1:-1"}', "7"],
)  # fmt: skip
def test_what_is_no_offset_is_refused(text: str):
    with pytest.raises(ValueError, match="offset"):
        parse_offsets(text)


def test_every_stretch_between_two_offsets_is_exact(client: pulsarx.Client):
    """Down to the batch index: from any message to any other."""
    sent = publish(client, 20, batch=4)
    planner = Planner(inspect(client).broker, "t")
    places = [(each.ledger_id, at) for each in planner.plan() for at in range(each.message_count)]
    places.append(planner.latest()[FULL])
    for low, high in itertools.combinations(range(21), 2):
        start, end = {FULL: places[low]}, {FULL: places[high]}
        found = planner.plan(format_offsets(start), format_offsets(end), ["value"])
        assert values(found) == sent[low:high]


def test_one_place_has_one_offset(client: pulsarx.Client):
    """The end of a full ledger and the beginning of the next one were two texts once, and a stream
    then ran empty batches."""
    publish(client, 3)
    planner = Planner(inspect(client).broker, "t")
    before = planner.latest()
    ledger = inspect(client).ledger(FULL)
    ledger.roll_over(ledger.tail.writer)
    inspect(client).settle()
    assert planner.latest() == before
    publish(client, 1)
    ledgers = inspect(client).ledger(FULL).ledgers()
    assert planner.resolve({FULL: (ledgers[1].ledger_id, 0)}) == before
    assert planner.resolve({FULL: (ledgers[0].ledger_id, 0)}) == planner.earliest()


def test_from_one_latest_offset_to_the_next_nothing_is_lost(client: pulsarx.Client):
    client.create_producer("t").close()
    planner = Planner(inspect(client).broker, "t")
    place = planner.earliest()
    sent: list[bytes] = []
    found: list[Any] = []
    for count in (1, 2, 7, 1, 3):
        sent += publish(client, count)
        latest = planner.latest()
        assert compare_offsets(place, latest) == -1
        found += values(planner.plan(place, latest))
        assert planner.plan(latest, latest) == []
        place = latest
    assert found == sent


def test_a_message_id_as_text_is_the_next_message(client: pulsarx.Client):
    sent = publish(client, 8, batch=4)
    identity = pulsarx.MessageId.deserialize(
        next(
            rows[5]["__messageId"]
            for rows in tables(plan(inspect(client).broker, "t"))
            if len(rows) > 5
        )
    )
    start = {FULL: identity.to_text()}
    assert values(plan(inspect(client).broker, "t", json.dumps(start))) == sent[5:]
    assert values(plan(inspect(client).broker, "t", {FULL: "latest"})) == []
    assert values(plan(inspect(client).broker, "t", {FULL: "earliest"}, "latest")) == sent


def test_a_new_partition_is_read_from_its_beginning(client: pulsarx.Client):
    client.admin.topics.create_partitioned_topic("p", 1)
    publish(client, 2, "p-partition-0")
    planner = Planner(inspect(client).broker, "p")
    before = planner.latest()
    client.admin.topics.update_partitioned_topic("p", 2)
    publish(client, 2, "p-partition-1")
    assert [each.partition for each in planner.plan(before, planner.latest())] == [1]
    with pytest.raises(ValueError, match=r"do not name .*p-partition-1"):
        planner.plan("earliest", before)


# What does not fit


def test_offsets_of_other_topics_are_refused(client: pulsarx.Client):
    publish(client, 2)
    publish(client, 2, "other")
    with pytest.raises(ValueError, match="other topics: persistent://public/default/other"):
        plan(inspect(client).broker, "t", {"persistent://public/default/other": (3, 1)})
    with pytest.raises(ValueError, match="never had ledger"):
        plan(inspect(client).broker, "t", {FULL: (10_000, 1)})
    ledger_id = plan(inspect(client).broker, "other")[0].ledger_id
    with pytest.raises(ValueError, match="never had ledger"):
        plan(inspect(client).broker, "t", {FULL: (ledger_id, 1)})


def test_removed_messages_are_a_loss_unless_that_is_allowed(client: pulsarx.Client):
    sent = publish(client, 9)
    planner = Planner(inspect(client).broker, "t")
    first, second, _ = ledger_ids(planner)
    remove_ledgers(client, [first, second])
    for place in ((0, 0), (first, 1), (first, 3), (second, 0), (second, 2)):
        with pytest.raises(errors.DataLossError, match=r"retention has removed .*failOnDataLoss"):
            planner.plan({FULL: place})
        assert values(planner.plan({FULL: place}, fail_on_data_loss=False)) == sent[6:]
    assert values(planner.plan()) == sent[6:]


def test_what_was_read_to_its_end_may_be_removed(client: pulsarx.Client):
    """A stream that had read everything failed once, when retention then removed the ledger."""
    publish(client, 3)
    planner = Planner(inspect(client).broker, "t")
    place = planner.latest()
    sent = publish(client, 2)
    remove_ledgers(client, [place[FULL][0]])
    assert values(planner.plan(place)) == sent
    assert planner.earliest() == place


def test_what_was_removed_is_known_after_a_restart(open_client: OpenClient):
    client = open_client(broker_options=small_ledgers())
    publish(client, 9)
    first, second, _ = ledger_ids(Planner(inspect(client).broker, "t"))
    remove_ledgers(client, [first, second])
    inspect(client).catalogue.checkpoint()
    client.close()
    reader = open_client(read_only=True)
    planner = Planner(inspect(reader).broker, "t")
    assert planner.earliest() == {FULL: (second, 3)}
    with pytest.raises(ValueError, match="3 messages only"):
        planner.plan({FULL: (second, 4)})


def test_an_offset_beyond_the_end_of_its_ledger_is_a_loss(client: pulsarx.Client):
    sent = publish(client, 5)
    planner = Planner(inspect(client).broker, "t")
    first, last = ledger_ids(planner)
    with pytest.raises(errors.DataLossError, match="has only 2 messages"):
        planner.plan({FULL: (last, 3)})
    assert planner.plan({FULL: (last, 3)}, fail_on_data_loss=False) == []
    end = {FULL: (last, 9)}
    assert values(planner.plan({FULL: (first, 1)}, end, fail_on_data_loss=False)) == sent[1:]


def test_a_start_behind_the_end_is_refused(client: pulsarx.Client):
    publish(client, 5)
    with pytest.raises(ValueError, match="is behind the end"):
        plan(inspect(client).broker, "t", "latest", "earliest")


def test_unknown_names_are_refused_with_the_nearest(client: pulsarx.Client):
    publish(client, 1, "flights")
    with pytest.raises(errors.TopicNotFound, match=r"did you mean .*/flights"):
        plan(inspect(client).broker, "flihgts")
    with pytest.raises(ValueError, match="'__keys'; did you mean '__key'"):
        plan(inspect(client).broker, "flights", columns=["value", "__keys"])
    with pytest.raises(ValueError, match="named twice"):
        plan(inspect(client).broker, "flights", columns=["value", "value"])
    with pytest.raises(ValueError, match="max_records_per_partition is 0"):
        plan(inspect(client).broker, "flights", max_records_per_partition=0)


def test_memory_cannot_be_planned():
    client = pulsarx.Client("memory:plan")
    try:
        client.create_producer("t").send(b"x")
        with pytest.raises(errors.OperationNotSupported, match="in memory"):
            plan(inspect(client).broker, "t")
    finally:
        client.close()


# Time


def test_time_is_cut_exactly_and_prunes_ledgers(open_client: OpenClient):
    clock = pulsarx.ManualClock()
    client = open_client(broker_options=small_ledgers(), clock=clock)
    start_ms = clock.now_ms()
    sent = []
    for _ in range(9):
        sent += publish(client, 1)
        clock.advance(1)
    inspect(client).settle()
    for low, high in itertools.combinations_with_replacement(range(-1, 11), 2):
        found = plan(
            inspect(client).broker, "t", start_ms + low * 1000, start_ms + high * 1000, ["value"]
        )
        assert values(found) == sent[max(low, 0) : max(high, 0)]
    assert len(plan(inspect(client).broker, "t", start_ms + 6000)) == 1
    planner = Planner(inspect(client).broker, "t")
    assert values(planner.plan(planner.at_time(start_ms + 4000))) == sent[4:]
    assert planner.at_time(start_ms + 99_000) == planner.latest()


# Beside an owner, after one, without one


def test_beside_a_live_owner_the_open_ledger_is_read_to_its_published_end(
    client: pulsarx.Client, beside: Beside
):
    sent = publish(client, 5)
    planner = Planner(beside(), "t")
    place = planner.latest()
    assert values(planner.plan(end=place)) == sent
    more = publish(client, 8)
    assert values(planner.plan(place, planner.latest())) == more
    assert planner.latest() == Planner(inspect(client).broker, "t").latest()


def test_while_nothing_changes_the_catalogue_is_not_read_again(
    client: pulsarx.Client, beside: Beside, monkeypatch: pytest.MonkeyPatch
):
    sent = publish(client, 2)
    inspect(client).settle()  # the next ledger is prepared, which is a commit
    reader = beside()
    planner = Planner(reader, "t")
    planner.latest()
    refresh = Catalogue.refresh
    reads: list[int] = []

    def counted(self: Catalogue) -> int:
        if self is reader.catalogue:
            reads.append(1)
        return refresh(self)

    monkeypatch.setattr(Catalogue, "refresh", counted)
    for _ in range(20):
        planner.latest()
    assert not reads
    sent += publish(client, 20)
    assert values(planner.plan(end=planner.latest())) == sent
    assert reads


OWNER = """
import os, sys
import pulsarx
client = pulsarx.Client(sys.argv[1], durability="os")
producer = client.create_producer("t")
for number in range(5):
    producer.send(b"%d" % number)
print("sent", flush=True)
sys.stdin.readline()
"""


def test_without_an_owner_what_a_killed_one_left_is_read(
    tmp_path: Path, open_client: OpenClient, beside: Beside, run_child: Any
):
    owner = run_child(OWNER, tmp_path / "data")
    assert owner.stdout.readline() == "sent\n"
    living = Planner(beside(), "t")
    place = living.latest()
    expected = [b"%d" % number for number in range(5)]
    assert values(living.plan()) == expected
    owner.kill()
    owner.wait()
    assert living.latest() == place
    planner = Planner(beside(), "t")
    assert planner.latest() == place
    ranges = planner.plan()
    assert values(ranges) == expected
    # The next owner seals the ledger; ranges and offsets from before hold on.
    client = open_client()
    publish(client, 1)
    assert values(ranges) == expected
    assert values(living.plan(place)) == [b"00005"]
    assert compare_offsets(place, planner.latest()) == -1


def test_planning_needs_no_pyarrow(run_child: Any, client: pulsarx.Client):
    publish(client, 2)
    program = """
import sys
import pulsarx
from pulsarx.broker.scan.plan import plan
from pulsarx.broker.staging.sealed_writer import SealedLedgerWriter
from pulsarx.broker.scan.read_range import read_range
from pulsarx.testing import inspect
client = pulsarx.Client(sys.argv[1], read_only=True)
ranges = plan(inspect(client).broker, "t")
print(sum(len(batch) for each in ranges for batch in read_range(each)), "pyarrow" in sys.modules)
"""
    child = run_child(program, inspect(client).directory.path)
    assert child.communicate(timeout=30)[0] == "2 False\n"


def test_a_ledger_that_retention_removes_meanwhile_is_left_out(
    client: pulsarx.Client, beside: Beside, monkeypatch: pytest.MonkeyPatch
):
    sent = publish(client, 9)
    inspect(client).settle()
    planner = Planner(beside(), "t")
    first = ledger_ids(planner)[0]
    cut = plan_module.cut_pieces
    turns: list[int] = []

    def removing(*arguments: Any) -> Any:
        if not turns:
            turns.append(1)
            remove_ledgers(client, [first])
        return cut(*arguments)

    monkeypatch.setattr(plan_module, "cut_pieces", removing)
    assert values(planner.plan(max_records_per_partition=1)) == sent[3:]
    assert turns


@pytest.mark.standard
def test_an_owner_that_rolls_over_all_the_time_is_no_hindrance(
    client: pulsarx.Client, beside: Beside
):
    producer = client.create_producer("t", batching_enabled=False)
    planner = Planner(beside(), "t")
    place = planner.earliest()
    stop = threading.Event()
    sent: list[bytes] = []

    def run() -> None:
        while not stop.is_set() and len(sent) < 400:
            sent.append(b"%d" % len(sent))
            producer.send(sent[-1])

    thread = threading.Thread(target=run)
    thread.start()
    found: list[Any] = []
    try:
        while len(found) < 100 and thread.is_alive():
            latest = planner.latest()
            found += values(planner.plan(place, latest, ["value"]))
            place = latest
    finally:
        stop.set()
        thread.join()
    found += values(planner.plan(place, planner.latest(), ["value"]))
    assert found == sent
