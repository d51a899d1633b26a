"""Facts about batches whose checksum is right and whose inside is not: what can be read comes, the
rest is passed over, and no permit is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from damaged_batch import damage
from topic_reading import OpenClient
from type_steps import check, join, publish, publish_batch, statistics

import pulsarx
from pulsarx import ConsumerType, errors

SHARING = [ConsumerType.Shared, ConsumerType.KeyShared]
ALL = [ConsumerType.Exclusive, ConsumerType.Failover, *SHARING]
READABLE = ["message-0", "message-1", "message-2"]


@pytest.fixture
def client(open_client: OpenClient, folder: Path, mixed: bool) -> pulsarx.Client:
    """A topic of a damaged batch and one sound message behind it; subscription s is at its
    begin."""
    client = open_client()
    join(client, ConsumerType.Exclusive).close()
    keys = ["a", "b"] if mixed else [""]
    publish_batch(
        client,
        *(
            f"{keys[each % len(keys)]}:message-{each}" if mixed else f"message-{each}"
            for each in range(6)
        ),
    )
    publish(client, "behind")
    client.close()
    damage(folder)
    return open_client()


def read(consumer: Any) -> tuple[list[str], int]:
    """What comes, without keys, and how often damage was told."""
    found: list[str] = []
    told = 0
    while True:
        try:
            found.append(consumer.receive(0).data().decode().rpartition(":")[2])
        except errors.CorruptDataError:
            told += 1
        except errors.Timeout:
            return found, told


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("size", [1, 2, 4, 1000])
@pytest.mark.parametrize("kind", ALL)
def test_what_can_be_read_comes_and_the_rest_is_passed_over(
    client: pulsarx.Client, kind: ConsumerType, size: int
) -> None:
    """On shared subscriptions the unreadable rest used to stay queued, with its permits."""
    consumer = join(client, kind, receiver_queue_size=size)
    found, told = read(consumer)
    assert sorted(found) == ["behind", *READABLE]
    assert told == 1
    check(consumer)
    assert read(consumer) == ([], 0)
    assert statistics(client)["unacked_messages"] == 4
    assert statistics(client)["msg_backlog"] == 4


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("kind", SHARING)
def test_nothing_is_lost_beside_it_when_its_consumer_leaves(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    first = join(client, kind)
    second = join(client, kind)  # by now everything is assigned to the first
    check(second)
    first.close()
    found, _ = read(second)
    assert sorted(found) == ["behind", *READABLE]
    check(second)
    second.redeliver_unacknowledged_messages()
    check(second)
    assert sorted(read(second)[0]) == ["behind", *READABLE]
    check(second)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("kind", ALL)
def test_columns_come_without_it(client: pulsarx.Client, kind: ConsumerType) -> None:
    consumer = join(client, kind)
    rows = 0
    for _ in range(6):
        try:
            rows += len(consumer.receive_arrow(100, 0))
        except errors.CorruptDataError:
            pass
    assert rows == 4
    check(consumer)
