"""Facts about what a client that only reads is told beside an owner that goes on meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sharing_process import SharingProcess

import pulsarx
from pulsarx import errors
from pulsarx.broker.ledgers.ledger_gone import LedgerTrimmed
from pulsarx.broker.ledgers.read_only_ledger import ReadOnlyLedger
from pulsarx.broker.subscriptions import backlog
from pulsarx.testing import inspect


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


@pytest.mark.parametrize(
    "failure", [errors.NotAllowedError(detail="out of range"), LedgerTrimmed()]
)
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
    raise errors.NotAllowedError(detail="for good")


class Leaving:
    """A span of a ledger that is sealed between two looks: its slot is another one's from then
    on, and says so by an end of 0."""

    is_growing = True

    def __init__(self, span: Any, looks: int) -> None:
        self.file = span.file
        self._ends = [span.end] * looks

    @property
    def end(self) -> int:
        return self._ends.pop() if self._ends else 0


@pytest.mark.parametrize("looks", [0, 1])
@pytest.mark.parametrize("asked", ["last message id", "at a time", "at an id", "stats"])
def test_a_look_while_its_ledger_gives_its_slot_away_finds_it(
    folder: Path,
    processes: list[SharingProcess],
    monkeypatch: pytest.MonkeyPatch,
    asked: str,
    looks: int,
) -> None:
    """It ended with a NotAllowedError about an offset, or found another message."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.subscribe('t', 's').close()")
    owner.run("producer = client.create_producer('t', batching_enabled=True)")
    for number in range(4):
        owner.run(f"producer.send_async(b'{number}', None)")
    owner.run("producer.flush()")
    make = ReadOnlyLedger.make_span
    made: list[Any] = []

    def make_leaving(self: Any, ledger: Any) -> Any:
        if not made:
            made.append(Leaving(make(self, ledger), looks))
            return made[0]
        return make(self, ledger)

    with pulsarx.Client(folder, read_only=True) as client:
        topics = client.admin.topics
        last = topics.get_last_message_id("t")
        second = pulsarx.MessageId(-1, last.ledger_id(), last.entry_id(), 1)
        look = {
            "last message id": lambda: topics.get_last_message_id("t").batch_index(),
            "at a time": lambda: inspect(client).ledger("t").position_at_time(1),
            "stats": lambda: topics.stats("t")["subscriptions"]["s"]["backlog_size"],
            "at an id": lambda: inspect(client).ledger("t").position_of(second, True),
        }[asked]
        right = look()
        inspected = inspect(client).ledger("t")
        inspected._spans = None
        monkeypatch.setattr(ReadOnlyLedger, "make_span", make_leaving)
        assert look() == right
        assert made
