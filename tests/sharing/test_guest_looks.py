"""Facts about consumers beside the owner that look for messages without waiting."""

from __future__ import annotations

from pathlib import Path

import pytest
from sharing_process import SharingProcess

import pulsarx
from pulsarx.processes.guest.subscription import Settler


@pytest.mark.parametrize("asks", [False, True])
def test_a_look_finds_what_is_behind_messages_that_were_trimmed_as_they_came(
    asks: bool, folder: Path, processes: list[SharingProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended with nothing: the room that the trimmed ones left was made known, not waited for."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.close()")
    owner.run("options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)")
    owner.run("client = pulsarx.Client(sys.argv[1], broker_options=options)")
    owner.run("durable = client.subscribe('t', 'durable')")
    owner.run("producer = client.create_producer('t')")
    owner.run("import pulsarx.testing")
    settle = Settler.settle
    looks: list[bool] = []
    trimmed: list[bool] = []

    def settle_and_trim(self: Settler) -> None:
        if trimmed or not looks:
            settle(self)
        else:
            owner.run("for number in range(6): producer.send(b'%d' % number)")
            settle(self)
            owner.run("durable.acknowledge_cumulative(durable.receive_many(6, 60_000)[-1])")
            owner.run("producer.send(b'6')")
            owner.run("pulsarx.testing.inspect(client).settle()")
            trimmed.append(True)

    monkeypatch.setattr(Settler, "settle", settle_and_trim)
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe(
            "t",
            "s",
            receiver_queue_size=3,
            subscription_mode=pulsarx.SubscriptionMode.NonDurable,
            initial_position=pulsarx.InitialPosition.Earliest,
        )
        looks.append(True)
        found = consumer.has_message() if asks else consumer.receive_many(10, 0)
        assert trimmed
        assert found
        assert asks or [each.data() for each in found] == [b"6"]
