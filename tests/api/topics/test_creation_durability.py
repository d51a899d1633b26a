"""Facts about when a topic is on the device: when its creation returns, with durability `sync` and
by the verbs of `admin`; later where messages are written later."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest
from child_process import run_program
from topic_reading import OpenClient, whole_topic

import pulsarx
from pulsarx import errors
from pulsarx.clock import Deadline
from pulsarx.testing.faults import FaultPlan, fault_plan

pytestmark = pytest.mark.usefixtures("nothing_forgotten")

TOPICS = [f"t{number}" for number in range(20)]


def flushes(plan: FaultPlan) -> int:
    return plan.calls("flush") + plan.calls("flush_directory")


def named(client: pulsarx.Client) -> set[str]:
    return {each.rpartition("/")[2] for each in client.admin.topics.get_list("public/default")}


@pytest.mark.parametrize("durability", ["sync", "os"])
def test_a_producer_waits_for_the_device_where_its_messages_do(
    open_client: OpenClient, durability: str
) -> None:
    client = open_client(durability=durability)
    client.create_producer("first")
    with fault_plan() as plan:
        for topic in TOPICS:
            client.create_producer(topic)
        assert flushes(plan) == (2 * len(TOPICS) if durability == "sync" else 0)


def test_what_admin_creates_is_on_the_device_with_all_before_it(open_client: OpenClient) -> None:
    client = open_client(durability="os")
    client.create_producer("first")
    with fault_plan() as plan:
        client.admin.topics.create_non_partitioned_topic("second")
        assert (plan.calls("flush"), plan.calls("flush_directory")) == (2, 2)


def test_many_topics_become_durable_as_one_file(open_client: OpenClient) -> None:
    client = open_client(durability="os")
    for topic in TOPICS:
        client.create_producer(topic)
    with fault_plan() as plan:
        client.admin.topics.create_non_partitioned_topic("last")
        assert flushes(plan) == 4  # a checkpoint and a commit


def test_a_subscription_and_a_message_come_behind_their_topic(open_client: OpenClient) -> None:
    client = open_client(durability="os")
    for make in (
        lambda: client.subscribe("a", "s"),
        lambda: client.create_producer("b").send(b"x"),
    ):
        with fault_plan() as plan:
            plan.fail("flush_directory", call=2, error=errno.ENOSPC)  # the first one announces
            with pytest.raises(errors.PulsarException):
                make()
        make()


def test_the_flush_interval_counts_for_topics_too(open_client: OpenClient) -> None:
    client = open_client(durability="interval", flush_interval_ms=1)
    deadline = Deadline(10_000)
    with fault_plan() as plan:
        client.create_producer("t")
        while not plan.calls("flush") and not deadline.expired():
            threading.Event().wait(0.001)
        assert plan.calls("flush") == 1


@pytest.mark.parametrize("durability", ["os", "interval"])
def test_a_kill_loses_no_topic(folder: Path, durability: str) -> None:
    program = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1], durability=sys.argv[2])
for number in range(20):
    client.create_producer(f"t{number}")
os._exit(0)
"""
    run_program(program, folder, durability)
    with pulsarx.Client(folder) as client:
        assert named(client) == set(TOPICS)
    assert not list(folder.glob("catalogue/*.unflushed"))


def test_what_a_power_cut_leaves_is_opened_and_goes_on(folder: Path) -> None:
    """The last commits are empty files, as a file system that writes names first leaves them."""
    program = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1], durability="os")
client.create_producer("kept").send(b"x")
for number in range(20):
    client.create_producer(f"t{number}")
os._exit(0)
"""
    run_program(program, folder)
    for lost in sorted(folder.glob("catalogue/*.commit"))[-8:]:
        lost.write_bytes(b"")
    for durability in ("sync", "os"):
        with pulsarx.Client(folder, durability=durability) as client:
            assert named(client) == {"kept", *TOPICS[:12]}
            assert whole_topic(client, "kept") == [b"x"]
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("t19").send(b"y")
    with pulsarx.Client(folder, read_only=True) as client:
        assert whole_topic(client, "t19") == [b"y"]
