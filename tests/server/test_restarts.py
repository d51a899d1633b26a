"""Facts about transactions of a network whose broker is gone before they have ended: the next one
goes on with them."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from peer import Peer, batch, entry, serving
from support.killed_owners import left_by_kill
from transacting import begin, end, opened_producer, seen, send

import pulsarx
from pulsarx._pycore.ranges.entry_codec import encode_batch
from pulsarx.admin import Admin
from pulsarx.broker.transactions.coordinator import TransactionCoordinator
from pulsarx.clock import ManualClock
from pulsarx.testing import fault_plan
from pulsarx.wire.commands import ABORT, COMMIT, CUMULATIVE, EXCLUSIVE, INDIVIDUAL, SHARED

INVALID_STATUS, NOT_FOUND = 21, 24

Restart = Callable[..., "Broker"]


class Broker:
    """A broker with one client, which can be killed, or closed, and started again."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.options = options
        self.client = pulsarx.Client(str(folder), **options)
        self.server = serving(self.client)
        self.peer = Peer(self.server)
        self.peer.connect()

    def close(self) -> None:
        self.server.close()
        self.client.close()

    def restarted(self, *, killed: bool) -> Broker:
        """The next one. killed: it finds the folder as this one had it in the middle."""
        return Broker(self.gone(killed=killed), **self.options)

    def gone(self, *, killed: bool) -> Path:
        """Its folder, as it has left it."""
        folder = self.folder
        if killed:
            folder = left_by_kill(self.client, folder.with_name(f"{folder.name}+"))
        self.close()
        return folder


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    started: list[Broker] = []

    def start(**options: Any) -> Broker:
        started.append(Broker(tmp_path / "folder", **options))
        return started[-1]

    yield start


@pytest.fixture(params=[False, True], ids=["closed", "killed"])
def killed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_messages_stay_hidden_and_are_seen_when_it_is_committed(
    start: Callable[..., Broker], killed: bool, durability: str
) -> None:
    one = start(durability=durability)
    opened_producer(one.peer)
    number = begin(one.peer)
    send(one.peer, entry(b"plain"), None)
    send(one.peer, entry(b"a"), number, 2)
    send(one.peer, batch(b"b", b"c"), number, 3)
    send(one.peer, entry(b"behind"), None, 4)
    two = one.restarted(killed=killed)
    assert seen(two.client) == [b"plain"]
    opened_producer(two.peer)
    send(two.peer, entry(b"d"), number, 5)
    assert seen(two.client) == [b"plain"]
    assert end(two.peer, number, COMMIT) is None
    assert seen(two.client) == [b"plain", b"a", b"b", b"c", b"behind", b"d"]
    assert begin(two.peer) > number
    two.close()


def test_messages_are_never_seen_when_it_is_aborted(
    start: Callable[..., Broker], killed: bool
) -> None:
    one = start()
    opened_producer(one.peer)
    number, other = begin(one.peer), begin(one.peer)
    send(one.peer, entry(b"a"), number, 1)
    send(one.peer, entry(b"b"), other, 2)
    two = one.restarted(killed=killed)
    assert end(two.peer, number, ABORT) is None
    assert seen(two.client) == []
    three = two.restarted(killed=killed)
    assert seen(three.client) == []
    assert end(three.peer, other, COMMIT) is None
    assert seen(three.client) == [b"b"]
    three.close()


def test_it_keeps_its_deadline(
    start: Callable[..., Broker], killed: bool, manual_clock: ManualClock
) -> None:
    one = start(clock=manual_clock)
    opened_producer(one.peer)
    number = begin(one.peer, timeout_ms=10_000)
    send(one.peer, entry(b"a"), number, 1)
    send(one.peer, entry(b"plain"), None, 2)
    manual_clock.advance(6.0)
    two = one.restarted(killed=killed)
    manual_clock.advance(3.998)
    assert seen(two.client) == []
    manual_clock.advance(0.003)
    assert seen(two.client) == [b"plain"]
    assert end(two.peer, number, COMMIT) == INVALID_STATUS
    two.close()


def test_one_whose_time_is_over_meanwhile_is_aborted(
    start: Callable[..., Broker], killed: bool, manual_clock: ManualClock
) -> None:
    one = start(clock=manual_clock)
    opened_producer(one.peer)
    number = begin(one.peer, timeout_ms=10_000)
    send(one.peer, entry(b"a"), number, 1)
    send(one.peer, entry(b"plain"), None, 2)
    folder = one.gone(killed=killed)
    manual_clock.advance(10.0)
    two = Broker(folder, clock=manual_clock)
    assert seen(two.client) == [b"plain"]
    assert end(two.peer, number, COMMIT) in (NOT_FOUND, INVALID_STATUS)
    two.close()


@pytest.mark.parametrize("action", [COMMIT, ABORT])
def test_acknowledgements_stay_pending(
    start: Callable[..., Broker], killed: bool, action: int
) -> None:
    one = start()
    one.peer.produce(entry(b"a"), entry(b"b", 2), entry(b"c", 3))
    one.peer.subscribe(type=SHARED)
    told = one.peer.say("FLOW", consumer_id=0, permits=10)
    ids = [each[1]["message_id"] for each in told]
    number = begin(one.peer)
    for each in ids[:2]:
        one.peer.say(
            "ACK", consumer_id=0, ack_type=INDIVIDUAL, message_ids=[each], request_id=9,
            transaction_least=number, transaction_most=0,
        )  # fmt: skip
    two = one.restarted(killed=killed)
    two.peer.subscribe(type=SHARED)
    told = two.peer.say("FLOW", consumer_id=0, permits=10)
    assert [each[1]["message_id"]["entry_id"] for each in told] == [2]
    assert end(two.peer, number, action) is None
    three = two.restarted(killed=killed)
    three.peer.subscribe(type=SHARED)
    told = three.peer.say("FLOW", consumer_id=0, permits=10)
    found = [each[1]["message_id"]["entry_id"] for each in told]
    assert found == ([2] if action == COMMIT else [0, 1, 2])
    three.close()


def test_a_cumulative_acknowledgement_stays_pending(
    start: Callable[..., Broker], killed: bool
) -> None:
    one = start()
    one.peer.produce(entry(b"a"), entry(b"b", 2), entry(b"c", 3))
    one.peer.subscribe(type=EXCLUSIVE)
    told = one.peer.say("FLOW", consumer_id=0, permits=10)
    number = begin(one.peer)
    one.peer.say(
        "ACK", consumer_id=0, ack_type=CUMULATIVE, message_ids=[told[1][1]["message_id"]],
        request_id=9, transaction_least=number, transaction_most=0,
    )  # fmt: skip
    two = one.restarted(killed=killed)
    assert end(two.peer, number, COMMIT) is None
    two.peer.subscribe(type=EXCLUSIVE)
    told = two.peer.say("FLOW", consumer_id=0, permits=10)
    assert [each[1]["message_id"]["entry_id"] for each in told] == [2]
    two.close()


def test_ledgers_behind_the_first_wait_as_well(start: Callable[..., Broker], killed: bool) -> None:
    one = start(broker_options=pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2))
    opened_producer(one.peer)
    send(one.peer, entry(b"0"), None, 1)
    number, other = begin(one.peer), begin(one.peer)
    wanted = [b"0"]
    for at in range(2, 10):
        which = {2: number, 5: other, 7: number}.get(at)
        send(one.peer, entry(b"%d" % at), which, at)
        wanted += [] if which == other else [b"%d" % at]
    two = one.restarted(killed=killed)
    assert seen(two.client) == [b"0"]
    three = two.restarted(killed=killed)
    opened_producer(three.peer)
    send(three.peer, entry(b"10"), None, 10)
    assert end(three.peer, other, ABORT) is None
    assert seen(three.client) == [b"0"]
    assert end(three.peer, number, COMMIT) is None
    assert seen(three.client) == [*wanted, b"10"]
    four = three.restarted(killed=killed)
    assert seen(four.client) == [*wanted, b"10"]
    with four.client.create_reader("t", pulsarx.MessageId.earliest) as reader:
        assert [each.index() for each in reader.read_many(20, 0)] == [
            each for each in range(10) if each != 4
        ]
    four.close()


def test_a_reader_beside_nobody_waits_for_it_too(
    start: Callable[..., Broker], killed: bool
) -> None:
    one = start()
    opened_producer(one.peer)
    number = begin(one.peer)
    send(one.peer, entry(b"plain"), None)
    send(one.peer, entry(b"a"), number, 2)
    send(one.peer, entry(b"behind"), None, 3)
    folder = one.gone(killed=killed)
    with pulsarx.Client(str(folder), read_only=True) as beside:
        reader = beside.create_reader("t", pulsarx.MessageId.earliest)
        assert [each.data() for each in reader.read_many(9, 0)] == [b"plain"]
        assert not reader.has_message_available()
        two = Broker(folder)
        assert reader.read_many(9, 0) == []
        assert end(two.peer, number, COMMIT) is None
        assert [each.data() for each in reader.read_many(9, 5000)] == [b"a", b"behind"]
        two.close()


def test_a_reader_beside_nobody_goes_on_when_its_time_is_over(
    start: Callable[..., Broker], killed: bool, manual_clock: ManualClock
) -> None:
    """Its deadline, by the clock that opened it, is long over by that of the reader."""
    one = start(clock=manual_clock)
    opened_producer(one.peer)
    number = begin(one.peer, timeout_ms=1000)
    send(one.peer, entry(b"a"), number, 2)
    send(one.peer, entry(b"behind"), None, 3)
    folder = one.gone(killed=killed)
    with pulsarx.Client(str(folder), read_only=True) as beside:
        assert seen(beside) == [b"behind"]


@pytest.mark.parametrize("action", [COMMIT, ABORT])
def test_what_is_sent_again_is_a_duplicate_until_it_is_aborted(
    start: Callable[..., Broker], killed: bool, action: int
) -> None:
    one = start()
    one.client.admin.namespaces.set_deduplication("public/default", True)
    opened_producer(one.peer, producer_name="p")
    number = begin(one.peer)
    send(one.peer, entry(b"plain", 1), None, 1)
    send(one.peer, entry(b"a", 2), number, 2)
    two = one.restarted(killed=killed)
    (told,) = two.peer.say("PRODUCER", topic="t", producer_id=0, request_id=0, producer_name="p")
    assert told[1]["last_sequence_id"] == 2
    send(two.peer, entry(b"a", 2), number, 2)
    assert end(two.peer, number, action) is None
    assert seen(two.client) == ([b"plain", b"a"] if action == COMMIT else [b"plain"])
    send(two.peer, entry(b"again", 2), None, 2)
    assert seen(two.client) == [b"plain", b"a" if action == COMMIT else b"again"]
    two.close()


def test_a_batch_whose_duplicates_are_left_out_goes_on(
    start: Callable[..., Broker], killed: bool
) -> None:
    """It is written anew, and was without its transaction then: its messages were lost."""
    one = start()
    one.client.admin.namespaces.set_deduplication("public/default", True)
    opened_producer(one.peer, producer_name="p")
    number = begin(one.peer)
    send(one.peer, entry(b"a", 1), None, 1)
    messages = [(each, {"sequence_id": at}) for at, each in enumerate([b"a", b"b", b"c"], 1)]
    send(one.peer, encode_batch(messages, producer_name="p", publish_time_ms=1), number, 1)
    two = one.restarted(killed=killed)
    assert end(two.peer, number, COMMIT) is None
    assert seen(two.client) == [b"a", b"b", b"c"]
    two.close()


@pytest.mark.standard
@pytest.mark.parametrize("operation", ["rename", "write", "unlink", "link", "flush_directory"])
def test_an_owner_that_is_killed_while_it_takes_over_loses_none(
    start: Callable[..., Broker], killed: bool, operation: str
) -> None:
    """Between its first commit and its own log it had none, and the one behind it looked for no
    other."""
    one = start(durability="os")
    opened_producer(one.peer)
    number = begin(one.peer)
    send(one.peer, entry(b"plain"), None, 1)
    send(one.peer, entry(b"a"), number, 2)
    send(one.peer, entry(b"behind"), None, 3)
    folder = one.gone(killed=killed)
    for call in range(1, 100):
        copy = folder.with_name(f"copy-{call}")
        shutil.copytree(folder, copy)
        child = os.fork()
        if child == 0:
            with fault_plan() as plan:
                plan.kill(operation, call)
                Broker(copy, **one.options)
                os._exit(0)
        _, status = os.waitpid(child, 0)
        with pulsarx.Client(str(copy), read_only=True) as beside:
            assert seen(beside) == [b"plain"]
        two = Broker(copy, **one.options)
        assert seen(two.client) == [b"plain"]
        assert end(two.peer, number, COMMIT) is None
        assert seen(two.client) == [b"plain", b"a", b"behind"]
        two.close()
        if status == 0:
            break


@pytest.mark.parametrize("how", ["gone", "empty", "another", "without its last entry", "headless"])
@pytest.mark.parametrize("which", ["first", "second"])
def test_one_that_lacks_a_ledger_or_a_part_of_it_is_aborted(
    start: Callable[..., Broker], how: str, which: str
) -> None:
    """In all its topics. What was left of it could be committed."""
    one = start(broker_options=pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2))
    opened_producer(one.peer)
    number = begin(one.peer)
    for at in range(4):
        send(one.peer, entry(b"t%d" % at * 99), number if at % 2 else None, at)
    one.peer.say("PRODUCER", topic="other", producer_id=1, request_id=0)
    one.peer.say(
        "SEND", entry(b"o"), producer_id=1, sequence_id=1,
        transaction_least=number, transaction_most=0,
    )  # fmt: skip
    one.close()
    ledgers = sorted(one.folder.rglob("*.ledger"))
    first, second = (each for each in ledgers if b"t" in each.read_bytes()[4096:])
    path = first if which == "first" else second
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how == "without its last entry":
        last = data.rindex(b"t1" * 99 if which == "first" else b"t3" * 99)
        path.write_bytes(data[:last])
    else:
        others = {"empty": b"", "headless": data[:4096]}
        path.write_bytes(others.get(how, (second if which == "first" else first).read_bytes()))
    two = Broker(one.folder, **one.options)
    assert end(two.peer, number, COMMIT) == INVALID_STATUS
    assert seen(two.client, "other") == []
    three = two.restarted(killed=False)
    assert end(three.peer, number, COMMIT) in (INVALID_STATUS, NOT_FOUND)
    assert seen(three.client, "other") == []
    three.close()


def test_one_that_is_lost_is_not_committed_while_it_cannot_be_aborted(
    start: Callable[..., Broker],
) -> None:
    """The disk is full when its abort is to be noted. A client could commit what was left of it."""
    one = start()
    opened_producer(one.peer)
    number = begin(one.peer)
    send(one.peer, entry(b"a"), number, 1)
    one.peer.say("PRODUCER", topic="other", producer_id=1, request_id=0)
    one.peer.say(
        "SEND", entry(b"b" * 99), producer_id=1, sequence_id=1,
        transaction_least=number, transaction_most=0,
    )  # fmt: skip
    one.close()
    (path,) = (each for each in one.folder.rglob("*.ledger") if b"b" * 99 in each.read_bytes())
    path.unlink()
    with fault_plan() as plan:
        calls: list[int] = []

        def end_late(coordinator: Any, transaction: Any, **named: Any) -> None:
            if not calls:
                plan.fail("write", error=errno.ENOSPC, sticky=True)
                plan.fail("allocate", error=errno.ENOSPC, sticky=True)
            calls.append(transaction.number)
            known(coordinator, transaction, **named)

        known = TransactionCoordinator.end_late
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TransactionCoordinator, "end_late", end_late)
            two = Broker(one.folder, clock=pulsarx.ManualClock())
        assert calls == [number]
        assert end(two.peer, number, COMMIT) is not None
    assert end(two.peer, number, COMMIT) == INVALID_STATUS
    assert seen(two.client) == []
    two.close()


def test_a_topic_that_cannot_be_opened_ends_it_and_is_opened_later(
    start: Callable[..., Broker], killed: bool
) -> None:
    """What was reopened of it was sealed by two objects."""
    one = start(broker_options=pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2))
    opened_producer(one.peer)
    number = begin(one.peer)
    for at in range(5):
        send(one.peer, entry(b"%d" % at), number if at % 2 else None, at)
    folder = one.gone(killed=killed)
    with pytest.MonkeyPatch.context() as patch:

        def fail(*_: object) -> None:
            raise pulsarx.StorageError(detail="no more handles")

        patch.setattr("pulsarx.broker.topics.topic.KeptPolicyEffects", fail)
        two = Broker(folder, **one.options)
    assert end(two.peer, number, COMMIT) == INVALID_STATUS
    assert seen(two.client) == [b"0", b"2", b"4"]
    three = two.restarted(killed=killed)
    assert seen(three.client) == [b"0", b"2", b"4"]
    three.close()


def test_a_log_that_is_damaged_aborts_all(
    start: Callable[..., Broker], killed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """What was behind the damage was lost: a topic, and with it what was committed there."""
    one = start()
    opened_producer(one.peer)
    number = begin(one.peer)
    send(one.peer, entry(b"a"), number, 1)
    one.peer.say("PRODUCER", topic="other", producer_id=1, request_id=0)
    one.peer.say(
        "SEND", entry(b"b"), producer_id=1, sequence_id=1,
        transaction_least=number, transaction_most=0,
    )  # fmt: skip
    begin(one.peer)
    folder = one.gone(killed=killed)
    (log,) = folder.glob("catalogue/*.transactions")
    data = log.read_bytes()
    log.write_bytes(data.replace(b"default/other", b"default/Other"))
    two = Broker(folder)
    assert f"{log} is damaged" in caplog.text
    assert end(two.peer, number, COMMIT) == NOT_FOUND
    assert seen(two.client) == seen(two.client, "other") == []
    two.close()


def test_an_opening_that_fails_leaves_all_to_the_next_one(
    start: Callable[..., Broker], killed: bool
) -> None:
    """The topics that it had opened stayed open, and deadlines in force."""
    one = start()
    opened_producer(one.peer)
    number = begin(one.peer)
    send(one.peer, entry(b"a"), number, 1)
    folder = one.gone(killed=killed)
    with pytest.MonkeyPatch.context() as patch:

        def fail(*_: object) -> None:
            raise MemoryError

        patch.setattr(TransactionCoordinator, "take_up", fail)
        with pytest.raises(MemoryError):
            Broker(folder)
    two = Broker(folder)
    assert seen(two.client) == []
    assert end(two.peer, number, COMMIT) is None
    assert seen(two.client) == [b"a"]
    two.close()


def test_one_that_failed_to_close_whole_does_not_outlive_the_power(
    start: Callable[..., Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = start(durability="interval", flush_interval_ms=1 << 30)
    opened_producer(one.peer)
    number = begin(one.peer)
    send(one.peer, entry(b"a"), number, 1)
    send(one.peer, entry(b"plain"), None, 2)
    one.server.close()
    with fault_plan() as plan:
        plan.fail("flush", sticky=True)
        with pytest.raises(pulsarx.PulsarException):
            one.client.close()
    monkeypatch.setattr("pulsarx.broker.transactions.transaction_log.boot_id", lambda _: "another")
    two = Broker(one.folder)
    assert seen(two.client) == [b"plain"]
    assert end(two.peer, number, COMMIT) is not None
    two.close()


def test_what_cannot_go_on_whole_is_aborted(
    start: Callable[..., Broker], caplog: pytest.LogCaptureFixture
) -> None:
    """A commit must not lose the part of it that cannot be read any more."""
    one = start()
    opened_producer(one.peer)
    number = begin(one.peer)
    send(one.peer, entry(b"a" * 100), number, 1)
    send(one.peer, entry(b"b" * 100), number, 2)
    send(one.peer, entry(b"plain"), None, 3)
    one.close()
    (path,) = (each for each in one.folder.rglob("*.ledger") if each.stat().st_size > 4096)
    data = bytearray(path.read_bytes())
    data[data.index(b"b" * 100)] ^= 1
    path.write_bytes(data)
    two = Broker(one.folder)
    assert "is aborted: ledger" in caplog.text
    with two.client.create_reader("t", pulsarx.MessageId.earliest) as reader:
        with pytest.raises(pulsarx.CorruptDataError):
            reader.read_next(0)
        assert reader.read_next(0).data() == b"plain"
    assert end(two.peer, number, COMMIT) == INVALID_STATUS
    two.close()


def test_the_power_of_the_machine_ends_what_was_not_closed(
    start: Callable[..., Broker], killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages of a transaction are flushed by its commit: some of them may be lost."""
    one = start()
    opened_producer(one.peer)
    number = begin(one.peer)
    send(one.peer, entry(b"a"), number, 1)
    send(one.peer, entry(b"plain"), None, 2)
    folder = one.gone(killed=killed)
    monkeypatch.setattr("pulsarx.broker.transactions.transaction_log.boot_id", lambda _: "another")
    two = Broker(folder)
    assert seen(two.client) == ([b"plain"] if killed else [])
    assert (end(two.peer, number, COMMIT) is None) == (not killed)
    two.close()


def test_a_topic_that_is_deleted_meanwhile_is_not_missed(
    start: Callable[..., Broker], killed: bool
) -> None:
    one = start()
    opened_producer(one.peer)
    number = begin(one.peer)
    send(one.peer, entry(b"a"), number, 1)
    one.peer.say("PRODUCER", topic="other", producer_id=1, request_id=0)
    one.peer.say(
        "SEND", entry(b"b"), producer_id=1, sequence_id=1,
        transaction_least=number, transaction_most=0,
    )  # fmt: skip
    one.client.admin.topics.delete("other", force=True)
    two = one.restarted(killed=killed)
    assert end(two.peer, number, COMMIT) is None
    assert seen(two.client) == [b"a"]
    two.close()


def test_nothing_is_left_when_all_have_ended(start: Callable[..., Broker]) -> None:
    one = start()
    opened_producer(one.peer)
    for at in range(600):
        number = begin(one.peer)
        send(one.peer, entry(b"a"), number, at)
        assert end(one.peer, number, COMMIT) is None
    (log,) = one.folder.glob("catalogue/*.transactions")
    assert log.stat().st_size < 1 << 16
    two = one.restarted(killed=False)
    assert not list(one.folder.glob("catalogue/*.transactions"))
    two.close()


def test_a_request_between_two_brokers_leaves_it_open(
    start: Callable[..., Broker], killed: bool
) -> None:
    """Whoever has the folder for one request goes on with it, too, and leaves it to the next."""
    one = start()
    opened_producer(one.peer)
    number = begin(one.peer)
    send(one.peer, entry(b"a"), number, 1)
    send(one.peer, entry(b"plain"), None, 2)
    folder = one.gone(killed=killed)
    for name in ("x", "y"):
        Admin.at(str(folder)).topics.create_partitioned_topic(name, 1)
    two = Broker(folder)
    assert seen(two.client) == []
    assert end(two.peer, number, COMMIT) is None
    assert seen(two.client) == [b"a", b"plain"]
    two.close()


def test_a_topic_is_terminated_while_it_goes_on(start: Callable[..., Broker], killed: bool) -> None:
    one = start()
    opened_producer(one.peer)
    number = begin(one.peer)
    send(one.peer, entry(b"a"), number, 1)
    send(one.peer, entry(b"plain"), None, 2)
    two = one.restarted(killed=killed)
    two.client.admin.topics.terminate("t")
    assert seen(two.client) == []
    three = two.restarted(killed=killed)
    assert end(three.peer, number, COMMIT) is None
    assert seen(three.client) == [b"a", b"plain"]
    three.close()
