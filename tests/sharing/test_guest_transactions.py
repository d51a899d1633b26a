"""Facts about transactions of a process beside the owner of the folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sharing_process import Refused, SharingProcess
from support.waiting import wait_until

import pulsarx
from pulsarx import MessageId, Result, errors
from pulsarx.transaction import TransactionState

# The owner dies, with the end of a transaction recorded or just before.
DIES_BEFORE_THE_RECORD = """
from pulsarx.broker.transactions.coordinator import TransactionCoordinator
TransactionCoordinator._tell_catalogue = lambda *_: os._exit(9)
"""
DIES_BEHIND_THE_RECORD = """
from pulsarx.broker.transactions.coordinator import TransactionCoordinator
TransactionCoordinator._apply = lambda *_: os._exit(9)
"""
DIES_BEFORE_THE_ANSWER = """
from pulsarx.processes.owner.transactions import GuestTransactions
end = GuestTransactions._end
def end_and_die(transactions, arguments):
    end(transactions, arguments)
    os._exit(9)
GuestTransactions._end = end_and_die
from pulsarx.processes.owner.session_verbs import SessionGuests
"""

# An owner that stores, and whose receipts get lost from when `mute` holds something; and one that
# hangs up on its guests, too.
MUTES = """
from pulsarx.sessions.server import Server
mute, open_session = [], Server.open_session
def opened(server, write, *rest, **given):
    def tell(data):
        if not (mute and data[8:10] == bytes((8, 7))):  # the type of SEND_RECEIPT
            write(data)
    return open_session(server, tell, *rest, **given)
Server.open_session = opened
"""
CUTS = (
    MUTES
    + """
from pulsarx.processes.owner import service as guest_service
def cut():
    mute.clear()
    for service in guest_service._services.members():
        for guest in list(service.connections):
            guest._socket.shutdown(2)
"""
)


def contents(client: pulsarx.Client, topic: str) -> list[bytes]:
    with client.create_reader(topic, MessageId.earliest) as reader:
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(60000).data())
        return found


def test_all_processes_see_it_when_it_is_committed(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess]
) -> None:
    other = SharingProcess(folder)
    looking = SharingProcess(folder, read_only=True)
    processes += [other, looking]
    with pulsarx.Client(folder) as client:
        first, second = client.create_producer("a"), client.create_producer("b")
        first.send(b"plain")
        with client.new_transaction() as txn:
            first.send(b"1", transaction=txn)
            second.send(b"2", transaction=txn)
            first.send(b"behind")
            for each in (owner, other, looking):
                assert each.run("contents('a'), contents('b')") == ([b"plain"], [])
        assert txn.state() is TransactionState.COMMITTED
        for each in (owner, other, looking):
            found = each.run("contents('a'), contents('b')")
            assert found == ([b"plain", b"1", b"behind"], [b"2"])
        assert contents(client, "a") == [b"plain", b"1", b"behind"]


def test_nobody_sees_what_is_aborted(folder: Path, owner: SharingProcess) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        with pytest.raises(KeyError), client.new_transaction() as txn:
            producer.send(b"1", transaction=txn)
            raise KeyError
        assert txn.state() is TransactionState.ABORTED
        producer.send(b"2")
        assert contents(client, "t") == owner.run("contents('t')") == [b"2"]
        with pytest.raises(errors.InvalidTxnStatusError, match="ABORTED"):
            txn.commit()
        with pytest.raises(errors.InvalidTxnStatusError):
            producer.send(b"3", transaction=txn)


def test_a_batch_belongs_to_one_transaction_or_to_none(folder: Path, owner: SharingProcess) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer(
            "t", batching_enabled=True, batching_max_publish_delay_ms=60000
        )
        told: list[Result] = []
        first, second = client.new_transaction(), client.new_transaction()
        for content, txn in ((b"0", None), (b"1", first), (b"2", second), (b"3", None)):
            producer.send_async(content, lambda result, _: told.append(result), transaction=txn)
        second.commit()
        first.abort()
        producer.flush()
        assert told == [Result.Ok] * 4
        assert owner.run("contents('t')") == [b"0", b"2", b"3"]


def test_partitions_take_part(folder: Path, owner: SharingProcess) -> None:
    with pulsarx.Client(folder) as client:
        client.admin.topics.create_partitioned_topic("t", 3)
        producer = client.create_producer("t")
        with client.new_transaction() as txn:
            for number in range(9):
                producer.send(b"%d" % number, transaction=txn)
            assert owner.run("contents('t')") == []
        assert sorted(owner.run("contents('t')")) == [b"%d" % number for number in range(9)]


def test_topics_that_keep_nothing_and_other_folders_take_no_part(
    folder: Path, tmp_path: Path, owner: SharingProcess
) -> None:
    with pulsarx.Client(folder) as client, pulsarx.Client(tmp_path / "other") as elsewhere:
        volatile = client.create_producer("non-persistent://public/default/t")
        with pytest.raises(errors.NotAllowedError, match="keeps no messages"):
            volatile.send(b"1", transaction=client.new_transaction())
        producer = client.create_producer("t")
        with pytest.raises(errors.NotAllowedError, match="another folder"):
            producer.send(b"1", transaction=elsewhere.new_transaction())
        with client.new_transaction() as txn:
            producer.send(b"2", transaction=txn)
        assert owner.run("contents('t')") == [b"2"]


def test_a_timeout_aborts_it_and_is_told(folder: Path, owner: SharingProcess) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        txn = client.new_transaction(timeout_millis=1)
        try:
            producer.send(b"1", transaction=txn)
        except errors.InvalidTxnStatusError:
            pass  # it was late
        wait_until(lambda: txn.state() is TransactionState.TIME_OUT)
        with pytest.raises(errors.InvalidTxnStatusError, match="TIME_OUT"):
            txn.commit()
        producer.send(b"2")
        assert owner.run("contents('t')") == [b"2"]


@pytest.mark.parametrize("leaves", ["killed", "closed"])
def test_who_leaves_aborts_its_own(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess], leaves: str
) -> None:
    """At once, and not when the timeout is over: what lies behind is seen."""
    guest = SharingProcess(folder)
    processes.append(guest)
    guest.run("txn = client.new_transaction()")
    guest.run("producer = client.create_producer('t')")
    guest.run("producer.send(b'1', transaction=txn) and None")
    owner.run("reader = client.create_reader('t', MessageId.earliest)")
    owner.run("client.create_producer('t').send(b'2') and None")
    assert owner.run("contents('t')") == []
    if leaves == "killed":
        guest.kill()
    else:
        guest.run("client.close()")
    assert owner.run("reader.read_next(60000).data()") == b"2"


def test_what_is_open_ends_with_the_owner(folder: Path, owner: SharingProcess) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        producer.send(b"0")
        txn = client.new_transaction()
        producer.send(b"1", transaction=txn)
        producer.send(b"2")
        owner.kill()
        producer.send(b"3")
        assert contents(client, "t") == [b"0", b"2", b"3"]
        assert txn.state() is TransactionState.ABORTED
        for call in (txn.commit, txn.abort, lambda: producer.send(b"4", transaction=txn)):
            with pytest.raises(errors.InvalidTxnStatusError, match=f"process {owner.pid}"):
                call()
        with client.new_transaction() as txn:
            producer.send(b"5", transaction=txn)
        assert contents(client, "t") == [b"0", b"2", b"3", b"5"]


def test_a_context_says_that_the_owner_took_it_along(folder: Path, owner: SharingProcess) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        with (
            pytest.raises(errors.InvalidTxnStatusError, match=f"process {owner.pid}"),
            client.new_transaction() as txn,
        ):
            producer.send(b"1", transaction=txn)
            owner.kill()
            producer.send(b"2")
        assert txn.state() is TransactionState.ABORTED
        assert contents(client, "t") == [b"2"]


@pytest.mark.parametrize("dies", [DIES_BEHIND_THE_RECORD, DIES_BEFORE_THE_ANSWER])
def test_a_commit_whose_answer_got_lost_succeeds_when_it_was_recorded(
    folder: Path, owner: SharingProcess, dies: str
) -> None:
    with pulsarx.Client(folder) as client:
        first, second = client.create_producer("a"), client.create_producer("b")
        txn = client.new_transaction()
        first.send(b"1", transaction=txn)
        second.send(b"2", transaction=txn)
        owner.run(dies)
        txn.commit()
        assert txn.state() is TransactionState.COMMITTED
        assert (contents(client, "a"), contents(client, "b")) == ([b"1"], [b"2"])
    with pulsarx.Client(folder) as client:
        assert (contents(client, "a"), contents(client, "b")) == ([b"1"], [b"2"])


def test_a_commit_that_was_not_recorded_fails_and_nobody_sees_it(
    folder: Path, owner: SharingProcess
) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        txn = client.new_transaction()
        producer.send(b"1", transaction=txn)
        owner.run(DIES_BEFORE_THE_RECORD)
        with pytest.raises(errors.InvalidTxnStatusError, match="ended before it was committed"):
            txn.commit()
        assert txn.state() is TransactionState.ERROR
        producer.send(b"2")
        assert contents(client, "t") == [b"2"]
    with pulsarx.Client(folder) as client:
        assert contents(client, "t") == [b"2"]


@pytest.mark.parametrize("dies", [DIES_BEFORE_THE_RECORD, DIES_BEFORE_THE_ANSWER])
def test_an_abort_whose_answer_got_lost_succeeds(
    folder: Path, owner: SharingProcess, dies: str
) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        txn = client.new_transaction()
        producer.send(b"1", transaction=txn)
        owner.run(dies)
        txn.abort()
        assert txn.state() is TransactionState.ABORTED
        assert contents(client, "t") == []


@pytest.mark.parametrize("stored", [False, True])
def test_what_was_sent_in_it_is_not_sent_again_to_the_next_owner(
    folder: Path, owner: SharingProcess, stored: bool
) -> None:
    """The plain messages between are stored once; the others fail, whether they were stored or
    not."""
    owner.run("client.close()")
    owner.run(MUTES)
    owner.run("client = pulsarx.Client(sys.argv[1])")
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t", producer_name="p")
        producer.send(b"0")
        told: dict[bytes, Result] = {}

        def say(content: bytes) -> Callable[[Any, Any], None]:
            return lambda result, _: told.setdefault(content, result)

        txn = client.new_transaction()
        if stored:
            owner.run("mute.append(1)")
        else:
            owner.run(
                "from pulsarx.sessions.producer import SessionProducer\n"
                "SessionProducer._publish = lambda *_: None"
            )
        for number in range(1, 7):
            content = b"%d" % number
            in_it = txn if number % 2 else None
            producer.send_async(content, say(content), transaction=in_it)
        if stored:
            owner.run("import pulsarx.testing")
            wait_until(lambda: owner.run(STORED) == 7)
        owner.kill()
        producer.flush()
        plain = {b"2": Result.Ok, b"4": Result.Ok, b"6": Result.Ok}
        assert {each: told[each] for each in plain} == plain
        if not stored:
            assert all(told[each] != Result.Ok for each in (b"1", b"3", b"5"))
        assert contents(client, "t") == [b"0", b"2", b"4", b"6"]
        with pytest.raises(errors.InvalidTxnStatusError):
            txn.commit()
        assert contents(client, "t") == [b"0", b"2", b"4", b"6"]


STORED = "pulsarx.testing.inspect(client).ledger('t').tail.writer.entry_count"


def test_a_failed_send_aborts_it_at_the_commit(folder: Path, owner: SharingProcess) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t", send_timeout_millis=0)
        txn = client.new_transaction()
        producer.send(b"1", transaction=txn)
        owner.run(
            "from pulsarx.sessions.producer import SessionProducer\n"
            "publish = SessionProducer._publish\n"
            "def refuse(producer, entry, answer, *rest):\n"
            "    producer.refuse(answer, errors.BrokerPersistenceError(detail='as planted'))\n"
            "SessionProducer._publish = refuse"
        )
        told: list[Result] = []
        producer.send_async(b"2", lambda result, _: told.append(result), transaction=txn)
        with pytest.raises(errors.TransactionHasOperationFailed, match="as planted"):
            txn.commit()
        assert told != [Result.Ok]
        assert txn.state() is TransactionState.ABORTED
        owner.run("SessionProducer._publish = publish")
        producer.send(b"3")
        assert contents(client, "t") == [b"3"]


# Waits for each message of one topic, and looks at the other then: it must be there by now.
OBSERVER = """
def observe(first, second, count):
    readers = [client.create_reader(each, MessageId.earliest) for each in (first, second)]
    seen, torn = [], []
    for number in range(count):
        seen.append(readers[0].read_next(60000).data())
        if not readers[1].has_message_available():
            torn.append(number)
        seen.append(readers[1].read_next(60000).data())
    for reader in readers:
        reader.close()
    return torn, seen == [b'%d' % (number // 2) for number in range(2 * count)]
"""
COMMITS = 40


def test_observers_see_a_transaction_in_two_topics_at_one_moment(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess]
) -> None:
    guests = [SharingProcess(folder), SharingProcess(folder)]
    looking = [SharingProcess(folder, read_only=True), SharingProcess(folder, read_only=True)]
    processes += guests + looking
    with pulsarx.Client(folder) as client:
        first, second = client.create_producer("a"), client.create_producer("b")
        observers = [*guests, *looking]
        for number, each in enumerate(observers):
            each.run(OBSERVER)
            each.ask(f"observe({('a', 'b')[number % 2]!r}, {('b', 'a')[number % 2]!r}, {COMMITS})")
        for number in range(COMMITS):
            aborted = client.new_transaction()
            first.send(b"never", transaction=aborted)
            second.send(b"never", transaction=aborted)
            aborted.abort()
            with client.new_transaction() as txn:
                first.send(b"%d" % number, transaction=txn)
                second.send(b"%d" % number, transaction=txn)
        for each in observers:
            assert each.answer() == ([], True)


def test_what_the_owner_ends_by_itself_is_told_at_the_next_call(
    folder: Path, owner: SharingProcess
) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        first, second = client.new_transaction(), client.new_transaction()
        producer.send(b"1", transaction=first)
        for txn in (first, second):
            client.admin.transactions.abort_transaction(*txn.txn_id())
        with pytest.raises(errors.InvalidTxnStatusError, match="aborted"):
            first.commit()
        assert first.state() is TransactionState.ERROR
        with pytest.raises(errors.InvalidTxnStatusError, match="has ended"):
            producer.send(b"2", transaction=second)
        producer.send(b"3")
        assert owner.run("contents('t')") == [b"3"]


def test_the_owner_has_limits(folder: Path, owner: SharingProcess) -> None:
    owner.run("client.close()")
    owner.run(
        "options = pulsarx.BrokerOptions(max_active_transactions_per_coordinator=1,"
        " max_transaction_timeout_in_seconds=60)"
    )
    owner.run("client = pulsarx.Client(sys.argv[1], broker_options=options)")
    with pulsarx.Client(folder) as client:
        with pytest.raises(ValueError, match="max_transaction_timeout_in_seconds"):
            client.new_transaction(timeout_millis=60_001)
        with client.new_transaction(), pytest.raises(errors.NotAllowedError, match="as many as"):
            client.new_transaction()
        client.new_transaction().commit()


def test_a_client_that_only_reads_opens_none(folder: Path, owner: SharingProcess) -> None:
    with (
        pulsarx.Client(folder, read_only=True) as client,
        pytest.raises(errors.OperationNotSupported),
    ):
        client.new_transaction()


def test_a_closed_client_opens_none(folder: Path, owner: SharingProcess) -> None:
    client = pulsarx.Client(folder)
    txn = client.new_transaction()
    client.close()
    assert txn.state() is TransactionState.ABORTED
    with pytest.raises(errors.AlreadyClosed):
        client.new_transaction()


def test_what_lies_behind_a_transaction_of_others_is_stored_once(
    folder: Path, owner: SharingProcess
) -> None:
    """Where the connection ends and its owner lives on: readers do not see it, so that it was sent
    once more."""
    owner.run("client.close()")
    owner.run(CUTS)
    owner.run("client = pulsarx.Client(sys.argv[1])")
    owner.run("import pulsarx.testing")
    owner.run("other = client.create_producer('t')")
    owner.run("txn = client.new_transaction()")
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t", producer_name="p")
        producer.send(b"0")
        owner.run("other.send(b'1', transaction=txn) and None")
        owner.run("mute.append(1)")
        told: list[Result] = []
        producer.send_async(b"2", lambda result, _: told.append(result))
        wait_until(lambda: owner.run(STORED) == 3)
        owner.run("cut()")
        producer.flush()
        producer.send(b"3")
        assert told == [Result.Ok]
        owner.run("txn.commit()")
        assert contents(client, "t") == [b"0", b"1", b"2", b"3"]


def test_the_ids_of_aborted_messages_are_new_again(folder: Path, owner: SharingProcess) -> None:
    owner.run("client.admin.namespaces.set_deduplication('public/default', True)")
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t", producer_name="p")
        producer.send(b"0", sequence_id=6)
        txn = client.new_transaction()
        producer.send(b"aborted", sequence_id=7, transaction=txn)
        txn.abort()
        producer.send(b"1", sequence_id=7)
        producer.send(b"duplicate", sequence_id=7)
        with client.new_transaction() as txn:
            producer.send(b"2", sequence_id=8, transaction=txn)
            producer.send(b"duplicate", sequence_id=8, transaction=txn)
        producer.send(b"duplicate", sequence_id=8)
        assert owner.run("contents('t')") == [b"0", b"1", b"2"]


FAILS_TO_FLUSH = """
from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
flush = ManagedLedger.flush
def fails(*_, **__):
    raise errors.StorageError(detail="the disk failed")
"""
OPEN_IN_SESSIONS = """
from pulsarx.processes.owner import transactions as of_guests
sessions, begin = [], of_guests.GuestTransactions.__init__
def noted(session, *given):
    sessions.append(session)
    begin(session, *given)
of_guests.GuestTransactions.__init__ = noted
"""


@pytest.mark.parametrize("leaves", ["close", "kill"])
def test_a_commit_that_failed_there_is_ended_when_its_process_leaves(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess], leaves: str
) -> None:
    owner.run(FAILS_TO_FLUSH)
    guest = SharingProcess(folder)
    processes.append(guest)
    guest.run("txn = client.new_transaction()")
    guest.run("client.create_producer('t').send(b'1', transaction=txn) and None")
    owner.run("client.create_producer('t').send(b'plain') and None")
    owner.run("ManagedLedger.flush = fails")
    with pytest.raises(Refused, match="StorageError"):
        guest.run("txn.commit()")
    owner.run("ManagedLedger.flush = flush")
    if leaves == "close":
        guest.run("client.close()")
    else:
        guest.kill()
    wanted = [b"1", b"plain"] if leaves == "close" else [b"plain"]
    wait_until(lambda: owner.run("contents('t')") == wanted)


def test_the_next_producer_of_a_name_sends_again_what_a_killed_one_had_not_committed(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess]
) -> None:
    """Its name was free before its transaction was aborted: what was sent again was lost."""
    owner.run("client.admin.namespaces.set_deduplication('public/default', True)")
    guest = SharingProcess(folder)
    processes.append(guest)
    guest.run("txn = client.new_transaction()")
    guest.run("producer = client.create_producer('t', producer_name='p')")
    guest.run("producer.send(b'1', sequence_id=1, transaction=txn) and None")
    guest.kill()

    def made() -> bool:
        try:
            owner.run("producer = client.create_producer('t', producer_name='p')")
        except Refused as refused:
            assert refused.kind == "ProducerBusy"
            return False
        return True

    wait_until(made)
    owner.run("producer.send(b'1!', sequence_id=1) and None")
    assert owner.run("contents('t')") == [b"1!"]


def test_the_owner_keeps_none_that_took_too_long(folder: Path, owner: SharingProcess) -> None:
    owner.run(OPEN_IN_SESSIONS)
    with pulsarx.Client(folder) as client:
        txn = client.new_transaction(timeout_millis=200)
        wait_until(lambda: txn.state() is TransactionState.TIME_OUT)
        assert owner.run("[len(each._open) for each in sessions]")[-1:] == [0]
