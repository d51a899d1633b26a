"""plan: ledgers cut to size, and limits on how far a step of a stream goes."""

from __future__ import annotations

from typing import Any

import pytest
from range_topics import FULL, Beside, batches_of, compare_offsets, publish, values
from support.clients import OpenClient

import pulsarx
from pulsarx.broker.scan.plan import Planner, plan
from pulsarx.testing import inspect


def ledger_ids(planner: Planner) -> list[int]:
    return [each.ledger_id for each in planner.plan()]


# Cutting


@pytest.mark.parametrize("batch", [1, 10])
def test_large_ledgers_are_cut_by_bytes_between_entries(
    open_client: OpenClient, beside: Beside, batch: int
):
    client = open_client()
    producer = client.create_producer("t", **batches_of(batch))
    sent = [b"%05d" % number * 200 for number in range(2000)]
    for at in range(0, 2000, batch):
        producer.send_many(sent[at : at + batch])
    for broker in (inspect(client).broker, beside()):
        ranges = plan(broker, "t", target_bytes=300_000)
        assert values(ranges) == sent
        assert 6 <= len(ranges) <= 8
        assert max(each.size for each in ranges) < 300_000 + 70_000
        assert [each.first_message for each in ranges[1:]] == [
            each.end_message for each in ranges[:-1]
        ]
        assert all(each.first_message % batch == 0 for each in ranges)
        assert len(plan(broker, "t", max_bytes_per_partition=1_000_000)) in (2, 3)


def test_records_of_a_range_are_limited(client: pulsarx.Client):
    sent = publish(client, 60, batch=10)
    for most in (1, 3, 10, 15, 29, 1000):
        ranges = plan(inspect(client).broker, "t", max_records_per_partition=most)
        assert values(ranges) == sent
        assert max(each.message_count for each in ranges) <= most
    # Between entries where there is a choice.
    ranges = plan(inspect(client).broker, "t", max_records_per_partition=15)
    assert {each.message_count for each in ranges} == {10}


def test_there_are_as_many_ranges_as_wanted(client: pulsarx.Client):
    sent = publish(client, 20, batch=10)
    for wanted in (1, 2, 3, 7, 20):
        ranges = plan(inspect(client).broker, "t", min_partitions=wanted)
        assert values(ranges) == sent
        assert len(ranges) == max(wanted, 1)
    assert len(plan(inspect(client).broker, "t", min_partitions=50)) == 20


# Limits


@pytest.mark.parametrize("limit", [{"max_messages": 15}, {"max_entries": 3}, {"max_bytes": 700}])
@pytest.mark.parametrize("batch", [1, 5])
def test_limited_steps_reach_the_end_and_lose_nothing(
    client: pulsarx.Client, limit: dict[str, int], batch: int
):
    client.admin.topics.create_partitioned_topic("p", 3)
    sent: dict[int, list[bytes]] = {}
    for index in range(3):
        sent[index] = publish(client, 60 * index + 10, f"p-partition-{index}", batch=batch)
    planner = Planner(inspect(client).broker, "p")
    place = planner.earliest()
    found: dict[int, list[Any]] = {0: [], 1: [], 2: []}
    steps = 0
    while compare_offsets(place, planner.latest()) < 0:
        step = planner.limit(place, **limit)
        amounts = planner.amounts(place, step)
        for name, most in limit.items():
            assert amounts[name.removeprefix("max_")] <= most + 3 * (200 if "b" in name[4:] else 1)
        for each in planner.plan(place, step, ["value"]):
            found[each.partition] += values([each])
        assert compare_offsets(place, step) == -1
        place = step
        steps += 1
    assert found == sent
    assert steps > 5


def test_limits_that_are_not_reached_change_nothing(client: pulsarx.Client):
    publish(client, 20, batch=4)
    planner = Planner(inspect(client).broker, "t")
    limits = {"max_messages": 20, "max_entries": 5, "max_bytes": 1 << 20}
    assert planner.limit("earliest", **limits) == planner.latest()
    assert planner.amounts("earliest")["messages"] == 20
    assert planner.amounts("earliest")["entries"] == 5
    ledger_id = ledger_ids(planner)[0]
    assert planner.amounts({FULL: (ledger_id, 3)}, {FULL: (ledger_id, 9)})["entries"] == 3
    assert planner.limit("earliest", max_messages=6) == {FULL: (ledger_id, 4)}
    assert planner.limit("earliest", max_messages=3) == {FULL: (ledger_id, 3)}
    assert planner.limit("earliest", max_entries=2, max_messages=9) == {FULL: (ledger_id, 8)}
