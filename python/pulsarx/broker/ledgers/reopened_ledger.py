"""Opens a ledger that its owner left open with messages of transactions that go on: as it is, held
back from the first of them on. It is sealed when they have ended, like one that is full. Used by
the managed ledger of its topic, while that is made.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ledger.ledger_writer import LedgerWriter
from pulsarx._pycore.ledger.open_transactions import OpenTransactions
from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.records import LEDGER_PREPARED
from pulsarx.broker.ledgers.aborted_messages import runs_without
from pulsarx.broker.ledgers.ledger_list import open_ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx._pycore.ledger.ledger_recovery import LedgerRecovery
    from pulsarx.broker.catalogue.records import LedgerRecord
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.transactions.broker_transaction import BrokerTransaction


def reopened(
    topic: Any, ledger: LedgerRecord, path: str, recovery: LedgerRecovery, is_behind: bool
) -> LedgerWriter | None:
    """The ledger, of which readers see nothing before `show_reopened`; None: no transaction that
    goes on has messages here, so it is to be sealed. topic: the ManagedLedger. is_behind: one in
    front of it was reopened, so whatever it has is held back.

    Where it cannot be reopened, the transactions with messages here are told that they are lost.
    What is raised leaves nothing open.
    """
    runtime: BrokerRuntime = topic.runtime
    going_on: dict[int, BrokerTransaction] = runtime.taken_up.get(topic.name, {})
    if not going_on:
        return None
    missing = runtime.held_entries.pop(ledger.ledger_id, 0) - recovery.entry_count
    if missing > 0:
        tell_lost(topic, ledger, f"its last {missing} entries are missing")
        return None
    record = topic.record()
    committed = record.committed.get(ledger.ledger_id, [])
    aborted = record.aborted.get(ledger.ledger_id, [])
    named = [
        (each[0], run)
        for each in recovery.named
        if each[0] in going_on
        for run in runs_without(runs_without([list(each[1:])], committed), aborted)
    ]
    if not named and not is_behind:
        return None
    try:
        writer = _reopen(topic, ledger, path, recovery)
    except (errors.PulsarException, MemoryError) as error:
        tell_lost(topic, ledger, errors.detail_of(error) or str(error))
        return None
    try:
        _take_up(topic, ledger, writer, recovery, named)
    except BaseException:
        forget_reopened(topic, {ledger.ledger_id: writer})
        raise
    return writer


def _take_up(
    topic: Any,
    ledger: LedgerRecord,
    writer: LedgerWriter,
    recovery: LedgerRecovery,
    named: list[tuple[int, list[int]]],
) -> None:
    """Note whose its messages are. named: (number, run) of those of transactions that go on."""
    runtime: BrokerRuntime = topic.runtime
    committed = topic.record().committed.get(ledger.ledger_id, [])
    kept = sorted(run for _, run in named)
    left = runs_without(runs_without(recovery.transacted, committed), kept)
    operations = []
    if ledger.state == LEDGER_PREPARED:
        operations.append(changes.use_ledger(topic.name, ledger.ledger_id))
    if left:
        operations.append(changes.abort_messages(topic.name, ledger.ledger_id, left))
    if operations:
        runtime.catalogue.commit(operations)
    if topic.tail.transactions is None:
        topic.tail.transactions = OpenTransactions(topic.tail)
    going_on = runtime.taken_up[topic.name]
    numbers = {number: going_on[number] for number, _ in named}
    topic.tail.transactions.take_up(writer, writer.map(), numbers)


def tell_lost(topic: Any, ledger: LedgerRecord, why: str) -> None:
    """A ledger of a topic, the ManagedLedger, is not as its owner left it: no transaction goes on
    that may have messages there."""
    for each in topic.runtime.taken_up.get(topic.name, {}).values():
        each.lose(f"ledger {ledger.ledger_id} of {topic.name}: {why}")


def forget_reopened(topic: Any, writers: dict[int, LedgerWriter]) -> None:
    """Let go of reopened ledgers, by their ids: the topic could not be opened, so nobody has it.
    Whoever opens it again seals them. No transaction has messages there that could be told."""
    runtime: BrokerRuntime = topic.runtime
    for each in runtime.taken_up.get(topic.name, {}).values():
        each.topics.pop(topic.tail.transactions, None)
    while writers:
        _, writer = writers.popitem()
        topic.tail.detach(writer)
        writer.close()
        runtime.ends.release(writer.slot)


def _reopen(topic: Any, ledger: LedgerRecord, path: str, recovery: LedgerRecovery) -> LedgerWriter:
    runtime: BrokerRuntime = topic.runtime
    if recovery.damaged_entries or recovery.headless or recovery.header_damaged:
        raise errors.CorruptDataError(detail="it is damaged")
    slot = runtime.ends.take_left(ledger.ledger_id)
    if not slot:
        raise errors.CorruptDataError(detail="how far it was published is not known")
    writer: LedgerWriter | None = None
    try:
        file = open_ledger(path, ledger, runtime.directory.folder_id)
        writer = LedgerWriter.reopen(
            file,
            recovery.end,
            size_max=runtime.options.managed_ledger_max_size_per_ledger_mbytes << 20,
            publish_on_flush=runtime.durability == "sync",
            slots=runtime.ends,
            slot=slot,
            first_index=topic.indexes.note(ledger, file, recovery.end),
        )
        writer.map()
        if runtime.durability != "os":
            writer.flush()
    except BaseException:
        if writer is not None:
            writer.close()
        runtime.ends.release(slot)
        raise
    return writer
