"""Facts about rolling over and trimming."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any

import pytest
from damaged_ledgers import ledger_paths
from support.topics import filled
from topic_reading import OpenClient, drain, numbers, payloads, whole_topic

import pulsarx
from pulsarx import InitialPosition, errors
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

FIVE_A_LEDGER = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=5)
NAMESPACE = "public/default"


def settle(client: pulsarx.Client) -> None:
    """Let the broker's thread finish sealing and trimming."""
    inspect(client).settle()


def ledger_files(folder: Path) -> list[int]:
    return [int(path.stem) for path in ledger_paths(folder)]


def ledgers(client: pulsarx.Client) -> list[dict[str, Any]]:
    settle(client)
    found: list[dict[str, Any]] = client.admin.topics.stats("t")["ledgers"]
    return found


def acknowledge_all(consumer: Any) -> None:
    consumer.acknowledge_cumulative(drain(consumer)[-1])


def test_a_ledger_is_full_at_its_entries(open_client: OpenClient) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    filled(client, 12)
    assert [each["entries"] for each in ledgers(client)] == [5, 5, 2]
    assert [each["state"] for each in ledgers(client)] == ["sealed", "sealed", "open"]
    assert whole_topic(client) == numbers(12)


def test_a_ledger_is_full_at_its_size(open_client: OpenClient) -> None:
    client = open_client(
        broker_options=pulsarx.BrokerOptions(managed_ledger_max_size_per_ledger_mbytes=1)
    )
    producer = client.create_producer("t")
    for number in range(20):
        producer.send(bytes([number]) * 200_000)
    found = ledgers(client)
    assert len(found) in (4, 5)
    assert all(each["size"] <= 1_300_000 for each in found)
    assert whole_topic(client) == [bytes([number]) * 200_000 for number in range(20)]


def test_a_ledger_is_full_at_its_age(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    options = pulsarx.BrokerOptions(managed_ledger_max_ledger_rollover_time_minutes=10)
    client = open_client(clock=manual_clock, broker_options=options)
    filled(client, 2)
    manual_clock.advance(601)
    filled(client, 2, begin=2)
    assert [each["entries"] for each in ledgers(client)] == [2, 2]


def test_what_every_subscription_acknowledged_is_trimmed_and_its_files_are_gone(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    first, second = client.subscribe("t", "first"), client.subscribe("t", "second")
    filled(client, 23)
    settle(client)
    before = ledger_files(folder)
    acknowledge_all(first)
    settle(client)
    assert ledger_files(folder) == before
    messages = drain(second)
    second.acknowledge_cumulative(messages[11])
    settle(client)
    assert [each["entries"] for each in ledgers(client)] == [5, 5, 3]
    assert ledger_files(folder) == before[2:]
    second.acknowledge_cumulative(messages[-1])
    settle(client)
    assert ledger_files(folder) == before[4:]
    assert whole_topic(client) == numbers(3, 20)


def test_individual_acknowledgements_trim_as_well(open_client: OpenClient) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    consumer = client.subscribe("t", "s")
    filled(client, 12)
    messages = drain(consumer)
    for message in reversed(messages[1:]):
        consumer.acknowledge(message)
    assert len(ledgers(client)) == 3
    consumer.acknowledge(messages[0])
    assert len(ledgers(client)) == 1


def test_a_topic_nobody_subscribed_to_keeps_its_messages(open_client: OpenClient) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    filled(client, 23)
    settle(client)
    client.close()
    client = open_client(broker_options=FIVE_A_LEDGER)
    filled(client, 3, begin=23)
    settle(client)
    assert whole_topic(client) == numbers(26)


def test_a_subscription_holds_its_messages_while_nobody_consumes(open_client: OpenClient) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    client.subscribe("t", "s").close()
    filled(client, 23)
    client.close()
    client = open_client(broker_options=FIVE_A_LEDGER)
    filled(client, 3, begin=23)
    assert payloads(client.subscribe("t", "s")) == numbers(26)


def test_unsubscribing_the_slowest_lets_its_ledgers_go(open_client: OpenClient) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    slow, quick = client.subscribe("t", "slow"), client.subscribe("t", "quick")
    filled(client, 23)
    acknowledge_all(quick)
    assert len(ledgers(client)) == 5
    slow.unsubscribe()
    assert len(ledgers(client)) == 1


def test_retention_by_time_keeps_what_is_younger(
    open_client: OpenClient, folder: Path, manual_clock: pulsarx.ManualClock
) -> None:
    client = open_client(clock=manual_clock, broker_options=FIVE_A_LEDGER)
    client.admin.namespaces.set_retention(NAMESPACE, 10, -1)
    consumer = client.subscribe("t", "s")
    filled(client, 10)
    settle(client)
    manual_clock.advance(300)
    filled(client, 10, begin=10)
    acknowledge_all(consumer)
    assert len(ledgers(client)) == 4
    manual_clock.advance(420)
    settle(client)
    assert len(ledgers(client)) in (2, 3)
    assert whole_topic(client)[-10:] == numbers(10, 10)
    manual_clock.advance(3600)
    assert len(ledgers(client)) == 1
    assert len(ledger_files(folder)) == 1


def test_retention_by_size_keeps_so_much(open_client: OpenClient) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    client.admin.namespaces.set_retention(NAMESPACE, -1, 2)
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    for number in range(41):
        producer.send(bytes([number]) * 200_000)
    acknowledge_all(consumer)
    found = ledgers(client)
    sealed = sum(each["size"] for each in found if each["state"] == "sealed")
    assert 2 << 20 <= sealed < (2 << 20) + 1_100_000


def test_retention_without_limit_keeps_everything(open_client: OpenClient) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    client.admin.namespaces.set_retention(NAMESPACE, -1, -1)
    consumer = client.subscribe("t", "s")
    filled(client, 23)
    acknowledge_all(consumer)
    consumer.unsubscribe()
    settle(client)
    assert whole_topic(client) == numbers(23)


def test_a_retention_policy_trims_a_topic_nobody_subscribed_to(open_client: OpenClient) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    filled(client, 23)
    settle(client)
    client.admin.namespaces.set_retention(NAMESPACE, 0, 0)
    assert len(ledgers(client)) == 1


def test_a_retention_policy_survives_a_restart(open_client: OpenClient) -> None:
    client = open_client()
    assert client.admin.namespaces.get_retention(NAMESPACE) is None
    client.admin.namespaces.set_retention(NAMESPACE, 7, -1)
    client.close()
    assert open_client().admin.namespaces.get_retention(NAMESPACE) == (7, -1)


@pytest.mark.parametrize("wrong", [(-2, 0), (0, -2), ("1", 0), (0, 1.5), (True, 0), (None, 0)])
def test_a_wrong_retention_is_refused(
    memory_client: pulsarx.Client, wrong: tuple[Any, Any]
) -> None:
    with pytest.raises(ValueError):
        memory_client.admin.namespaces.set_retention(NAMESPACE, *wrong)
    assert memory_client.admin.namespaces.get_retention(NAMESPACE) is None


@pytest.mark.parametrize("single", [(0, 5), (5, 0), (0, -1), (-1, 0)])
def test_a_single_0_is_refused(memory_client: pulsarx.Client, single: tuple[int, int]) -> None:
    """It was taken, and kept nothing: who said 60 minutes and no size lost everything."""
    admin = memory_client.admin
    memory_client.create_producer("t").close()
    for group, target in ((admin.namespaces, NAMESPACE), (admin.topics, "t")):
        group.set_retention(target, 7, -1)
        with pytest.raises(ValueError, match="a single 0 would keep nothing"):
            group.set_retention(target, *single)
        assert group.get_retention(target) == (7, -1)


def test_retention_of_a_missing_namespace_is_not_found(memory_client: pulsarx.Client) -> None:
    with pytest.raises(errors.TopicNotFound):
        memory_client.admin.namespaces.set_retention("public/nowhere", 1, 1)


def test_a_sought_back_subscription_begins_at_what_is_left(open_client: OpenClient) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    consumer = client.subscribe("t", "s")
    filled(client, 23)
    acknowledge_all(consumer)
    settle(client)
    consumer.seek(pulsarx.MessageId.earliest)
    assert payloads(consumer) == numbers(3, 20)


def test_trimming_memory_gives_messages_up(memory_client: pulsarx.Client) -> None:
    with pulsarx.Client("memory:trim", broker_options=FIVE_A_LEDGER) as client:
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        filled(client, 23)
        acknowledge_all(consumer)
        settle(client)
        assert len(ledgers(client)) == 1


@pytest.mark.parametrize("reopened", [False, True])
def test_what_a_full_disk_kept_from_its_seal_is_sealed_and_trimmed_later(
    folder: Path, reopened: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Behind the one that stays open nothing could be trimmed."""
    late = threading.Event()
    # By itself the cursor would be flushed meanwhile, where that takes long.
    options: dict[str, Any] = {
        "durability": "os",
        "flush_interval_ms": 3_600_000,
        "broker_options": FIVE_A_LEDGER,
    }
    client = pulsarx.Client(folder, **options)
    consumer = client.subscribe("t", "s")
    inspect(client).post(late.wait)
    filled(client, 13)  # two ledgers wait for their seal
    acknowledge_all(consumer)
    with fault_plan() as plan:
        for operation in ("write", "allocate", "flush"):
            plan.fail(operation, error=errno.ENOSPC, sticky=True)
        late.set()
        settle(client)
    assert "no space left on the device" in caplog.text
    if reopened:
        client.close()
        client = pulsarx.Client(folder, **options)
    filled(client, 10, begin=13)
    for _ in range(3):
        settle(client)
    acknowledge_all(client.subscribe("t", "s") if reopened else consumer)
    for _ in range(3):
        settle(client)
    assert [each["state"] for each in ledgers(client)] == ["open"]
    client.close()
