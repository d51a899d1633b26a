"""What a consumer of a pattern leaves when the disk refuses to make its subscriptions, and how
often it asks the disk."""

from __future__ import annotations

import errno
import re
import shutil
from pathlib import Path

import pytest

import pulsarx
from pulsarx import InitialPosition, errors
from pulsarx.testing.faults import fault_plan

pytestmark = pytest.mark.usefixtures("nothing_forgotten")

EARLIEST = InitialPosition.Earliest
ALL = re.compile("t-.*")


def prepare(client: pulsarx.Client, topics: int) -> None:
    for number in range(topics):
        with client.create_producer(f"t-{number}") as producer:
            producer.send(b"%d" % number)


def subscriptions(client: pulsarx.Client) -> list[str]:
    names = client.admin.topics.get_list()
    return [each for name in names for each in client.admin.topics.get_subscriptions(name)]


@pytest.mark.parametrize(
    "operation", ["open", "write", "allocate", "flush", "rename", "flush_directory", "link", "map"]
)
def test_a_refused_call_leaves_the_subscriptions_of_all_topics_or_of_none(
    tmp_path: Path, operation: str
) -> None:
    """The folder of cursors is flushed once for all of them, in front of the commit."""
    with pulsarx.Client(tmp_path / "before", durability="os") as client:
        prepare(client, 3)
    refused = 0
    for call in range(1, 100):
        folder = tmp_path / str(call)
        shutil.copytree(tmp_path / "before", folder)
        client = pulsarx.Client(folder, durability="os")
        with fault_plan() as plan:
            plan.fail(operation, call, error=errno.ENOSPC)
            try:
                client.subscribe(ALL, "s", initial_position=EARLIEST).close()
            except errors.PulsarException:
                refused += 1
            happened = plan.calls(operation) >= call
        client.close()
        with pulsarx.Client(folder, durability="os") as client:
            found = subscriptions(client)
            assert found in ([], ["s"] * 3)
            if not found:
                assert list((folder / "cursors").iterdir()) == []
            consumer = client.subscribe(ALL, "s", initial_position=EARLIEST)
            assert sorted(consumer.receive(60_000).data() for _ in range(3)) == [b"0", b"1", b"2"]
        if not happened:
            break
    assert refused


def test_the_folder_of_cursors_is_flushed_once_for_all_of_them(tmp_path: Path) -> None:
    counts = []
    for topics in (2, 12):
        with pulsarx.Client(tmp_path / str(topics), durability="os") as client:
            prepare(client, topics)
            with fault_plan() as plan:
                consumer = client.subscribe(ALL, "s")
                counts.append(plan.calls("flush_directory"))
            assert len(consumer.members()) == topics
            assert len(list((tmp_path / str(topics) / "cursors").iterdir())) == topics
    assert counts == [2, 2]  # of cursors, and of the commit that names them
