"""Facts about what a client that only reads is told beside an owner that goes on meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sharing_process import SharingProcess

import pulsarx
from pulsarx import errors
from pulsarx.broker.ledgers.ledger_list import LedgerTrimmed
from pulsarx.broker.ledgers.read_only_ledger import ReadOnlyLedger
from pulsarx.broker.subscriptions import backlog


@pytest.mark.parametrize("asked", ["stats", "last message id", "examine", "peek"])
@pytest.mark.parametrize("trims", [False, True])
def test_a_look_while_ledgers_are_sealed_and_removed_is_whole(
    folder: Path,
    processes: list[SharingProcess],
    monkeypatch: pytest.MonkeyPatch,
    trims: bool,
    asked: str,
) -> None:
    """The last message id was that of none, though the topic had one all the time."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.close()")
    owner.run("options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=1)")
    owner.run("client = pulsarx.Client(sys.argv[1], broker_options=options)")
    owner.run("consumer = client.subscribe('t', 's')")
    owner.run("producer = client.create_producer('t')")
    owner.run("producer.send(b'0') and None")
    owner.run("consumer.close()")
    owner.run("import pulsarx.testing")
    counts = ReadOnlyLedger.published_counts
    looks: list[bool] = []

    def counts_and_more(self: Any, ledger: Any) -> tuple[int, int]:
        found = counts(self, ledger)
        if looks == [True]:
            looks.append(False)
            owner.run("for number in range(1, 6): producer.send(b'%d' % number)")
            if trims:
                owner.run("client.admin.topics.truncate('t')")
                owner.run("producer.send(b'6') and None")
            owner.run("pulsarx.testing.inspect(client).settle()")
        return found

    monkeypatch.setattr(ReadOnlyLedger, "published_counts", counts_and_more)
    with pulsarx.Client(folder, read_only=True) as client:
        topics = client.admin.topics
        topics.stats("t")  # its ledger is mapped, and is the open one
        looks.append(True)
        if asked == "stats":
            found = topics.stats("t")
            assert found["messages"] in ((1, 2, 6) if trims else (1, 6))
        elif asked == "last message id":
            assert topics.get_last_message_id("t").ledger_id() > 0
        elif asked == "examine":
            assert topics.examine_message("t", "earliest", 1).data() in (b"0", b"6")
        else:
            assert topics.peek_messages("t", "s", 1)[0].data() in (b"0", b"6")
        assert looks == [True, False]


@pytest.mark.parametrize("failure", [errors.NotAllowedError("out of range"), LedgerTrimmed()])
def test_a_look_that_fails_because_its_owner_went_on_is_taken_again(
    folder: Path,
    processes: list[SharingProcess],
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception,
) -> None:
    """Between two steps of a look the slot of a ledger's end may become another ledger's."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("consumer = client.subscribe('t', 's')")
    owner.run("client.create_producer('t').send(b'0') and None")
    place_of = backlog._place_of
    moved: list[bool] = []

    def stumble(*arguments: Any) -> tuple[int, int]:
        if not moved:
            moved.append(True)
            owner.run("client.admin.topics.create_non_partitioned_topic('other')")
            raise failure
        return place_of(*arguments)

    monkeypatch.setattr(backlog, "_place_of", stumble)
    with pulsarx.Client(folder, read_only=True) as client:
        assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 1
        assert moved
        monkeypatch.setattr(backlog, "_place_of", _refuse)
        with pytest.raises(errors.NotAllowedError, match="for good"):
            client.admin.topics.stats("t")


def _refuse(*_: Any) -> tuple[int, int]:
    raise errors.NotAllowedError("for good")
