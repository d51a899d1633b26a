"""The deduplication of a topic: how far each of its producers has come, kept over restarts.

The sequence ids themselves are told apart by the producers (`publish/producer_sequences`). Here is
what they begin with: a snapshot, and the entries that came behind it. A snapshot is a file of the
highest ids and a position, written when

  so many entries were stored, or seconds passed, since the last one    in the background
  the topic closes
  ledgers are trimmed that the last one does not cover

It names nothing that a power cut could take away: the ledgers are flushed before it is written.
What it says may be ahead of its position, for reading an entry twice changes nothing.
"""

from __future__ import annotations

import os
from contextlib import suppress

from pulsarx import errors
from pulsarx._pycore.ground.file_system import may_exist
from pulsarx._pycore.ground.locks import RLock
from pulsarx._pycore.publish.entry_intake import EntryIntake
from pulsarx._pycore.publish.producer_sequences import (
    EntryCounter,
    ProducerSequences,
    read_held,
    read_sequences,
)
from pulsarx.broker.catalogue.file import (
    SEQUENCES,
    TEMPORARY_SUFFIX,
    catalogue_file_decode,
    catalogue_file_encode,
)
from pulsarx.broker.folder.storage_errors import storage_error
from pulsarx.clock import monotonic_ms
from pulsarx.compression import decompress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger

    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.topics.producer_registry import ProducerRegistry
    from pulsarx.broker.transactions.broker_transaction import BrokerTransaction

FOLDER = "deduplication"
# A snapshot takes at most one part of so many of the time; recovery reads what came meanwhile.
_SHARE = 20


class Deduplication:
    """Deduplicates the messages of one open topic. Calls of the control plane, and jobs of the
    background."""

    def __init__(
        self,
        runtime: BrokerRuntime,
        topic: str,
        topic_id: int,
        ledger: ManagedLedger,
        producers: ProducerRegistry,
    ) -> None:
        """Reads the snapshot, and what the topic holds behind it. producers: that are there."""
        options = runtime.options
        self._runtime = runtime
        self._topic = topic
        self._ledger = ledger
        self._present = producers
        self._lock = RLock()  # of what follows
        self._counter = EntryCounter(
            runtime.clock,
            runtime.background,
            self.snapshot,
            self._snapshot_soon,
            options.broker_deduplication_entries_interval,
            options.broker_deduplication_snapshot_interval_seconds * 1000,
        )
        self._producers: dict[str, ProducerSequences] = {}
        self._read_to: Position = (0, 0)
        self._covered: Position = (0, 0)  # by the last snapshot
        self._not_before_ms = 0
        self._closed = False
        self._path = snapshot_path(runtime, topic_id)
        self._load()
        self.catch_up()
        going_on = runtime.taken_up.get(topic)
        if going_on:
            self._read_held(going_on)

    def _load(self) -> None:
        if self._path is None:
            return
        directory = self._runtime.directory
        try:
            data = directory.files.read(self._path)
            document, _ = catalogue_file_decode(SEQUENCES, directory.folder_id, self._path, data)
            self._producers = {
                name: ProducerSequences(self._counter, complete, seen, last_ms)
                for name, complete, seen, last_ms in document["producers"]
            }
            ledger_id, message = document["position"]
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(f"read {self._path}", error) from error
        except (errors.CatalogueError, KeyError, TypeError, ValueError) as error:
            logger().error(
                "%s: the deduplication begins with what the topic holds; its snapshot is damaged: "
                "%s", self._topic, errors.detail_of(error),
            )  # fmt: skip
            self._producers.clear()
            return
        self._read_to = self._covered = (ledger_id, message)

    def catch_up(self) -> None:
        """Read the entries that came since, whoever sent them."""
        with self._lock:
            self._ledger.flush(sealed=False)  # what is not visible yet is there, too
            end = self._ledger.end_position()
            ledger_id, message = self._read_to
            if not ledger_id:
                ledger_id, message = self._ledger.first_position()
            if not ledger_id:
                return
            _, damage = read_sequences(
                self._ledger.tail,
                self._topic,
                ledger_id,
                message,
                self._producers,
                self._counter,
                decompress,
                self._runtime.decompressed_size_max,
            )
            self._read_to = end
            for text in damage:
                logger().error("%s: %s", self._topic, text)

    def _read_held(self, going_on: dict[int, BrokerTransaction]) -> None:
        """Read the entries that transactions hold back which the owner before has left open."""
        for writer in self._ledger.tail.held_ledgers():
            senders = read_held(
                writer,
                writer.published_end,
                self._ledger.tail,
                going_on,
                self._producers,
                self._counter,
                decompress,
                self._runtime.decompressed_size_max,
            )
            for name, transaction in senders:
                transaction.senders[LeftSender(self, name)] = (-1, -1)

    def end_transaction(self, name: str, transaction: BrokerTransaction, committed: bool) -> None:
        """One has ended in which a producer of this name has sent to the owner before."""
        with self._lock:
            producer = self._present.by_name().get(name)
            if isinstance(producer, EntryIntake):  # which guards its numbers
                producer.leave(transaction, committed)
            elif name in self._producers:
                self._producers[name].end_transaction(transaction, committed)

    def of(self, name: str) -> ProducerSequences:
        """The sequences with which a producer begins."""
        with self._lock:
            found = self._producers.get(name)
            if found is None:
                found = self._producers[name] = ProducerSequences(self._counter)
                self._forget_silent(name)
            found.last_ms = max(found.last_ms, self._runtime.clock.now_ms())
            return found

    def highest(self) -> dict[str, int]:
        """The highest sequence id that is stored of each producer that has some."""
        with self._lock:
            rows = {name: each.row() for name, each in self._producers.items()}
        found = {name: max([complete, *seen]) for name, (complete, seen, _) in rows.items()}
        return {name: sequence_id for name, sequence_id in found.items() if sequence_id >= 0}

    def left(self, name: str) -> None:
        """The producer of this name has gone."""
        with self._lock:
            if name in self._producers:
                self._producers[name].last_ms = self._runtime.clock.now_ms()

    def _forget_silent(self, coming: str = "") -> None:
        """Forget names that are silent for too long, and the longest silent of too many, but none
        with a producer that is there or comes."""
        options = self._runtime.options
        silent_ms = options.broker_deduplication_producer_inactivity_timeout_minutes * 60_000
        before_ms = self._runtime.clock.now_ms() - silent_ms
        too_many = len(self._producers) - options.broker_deduplication_max_number_of_producers
        kept = self._present.names() | {coming}
        closed = [
            (each.last_ms, name) for name, each in self._producers.items() if name not in kept
        ]
        for number, (last_ms, name) in enumerate(sorted(closed)):
            if last_ms >= before_ms and number >= too_many:
                break
            del self._producers[name]

    # Snapshots ------------------------------------------------------------------------------------

    def _snapshot_soon(self) -> None:
        if monotonic_ms() < self._not_before_ms:
            self._counter.skip()
            return
        began_ms = monotonic_ms()
        self.snapshot()
        self._not_before_ms = monotonic_ms() + _SHARE * (monotonic_ms() - began_ms)

    def snapshot(self) -> None:
        """Write down how far all have come. Durable on return."""
        with self._lock:
            if self._closed:
                return
            self._counter.start()
            # First: what is ahead of it is read again, as is what is of open transactions, which
            # rows leave out.
            position = self._ledger.end_position()
            self._forget_silent()
            rows = [[name, *each.row()] for name, each in self._producers.items()]
            if self._path is not None:
                self._ledger.flush()
                self._write(position, rows)
            self._covered = position

    def _write(self, position: Position, rows: list[list[object]]) -> None:
        directory, path = self._runtime.directory, str(self._path)
        document = {"topic": self._topic, "position": list(position), "producers": rows}
        data, _ = catalogue_file_encode(SEQUENCES, directory.folder_id, document)
        temporary = path + TEMPORARY_SUFFIX
        self._runtime.keeps_sequences = True
        try:
            with suppress(FileExistsError):
                directory.files.make_directory(os.path.dirname(path))
            with suppress(FileNotFoundError):
                directory.files.unlink(temporary)
            directory.files.create(temporary, data)
            directory.files.rename(temporary, path)
            directory.files.flush_directory(os.path.dirname(path))
        except OSError as error:
            raise storage_error(f"write {path}", error) from error

    def before_trimming(self, ledger_ids: list[int]) -> None:
        """Know without these ledgers what they hold."""
        if ledger_ids and self._covered[0] <= ledger_ids[-1]:
            self.snapshot()

    def close(self) -> None:
        """The topic closes: the next one to open it reads nothing."""
        with self._lock:
            if self._counter.entries or self._covered != self._ledger.end_position():
                self.snapshot()
            self._closed = True
            self._counter.stop()

    def forget(self) -> None:
        """Deduplication was turned off."""
        with self._lock:
            self._closed = True
            self._counter.stop()
            if self._path is not None:
                forget_snapshot(self._path, self._runtime)


class LeftSender:
    """Stands among the senders of a transaction for a producer of an owner before."""

    def __init__(self, of: Deduplication, name: str) -> None:
        self._of = of
        self._name = name

    def leave(self, transaction: BrokerTransaction, committed: bool) -> None:
        """The transaction has ended."""
        self._of.end_transaction(self._name, transaction, committed)


def snapshot_path(runtime: BrokerRuntime, topic_id: int) -> str | None:
    """None: in memory."""
    if runtime.directory.ends_path is None:
        return None
    return f"{runtime.directory.path}/{snapshot_name(topic_id)}"


def snapshot_name(topic_id: int) -> str:
    """The file of a topic's snapshot, in the folder."""
    return f"{FOLDER}/{topic_id}.{SEQUENCES}"


def forget_snapshot(path: str, runtime: BrokerRuntime) -> None:
    """Remove the snapshot of a topic without deduplication: it would name duplicates of messages
    sent long ago.
    StorageError: it could not be removed."""
    if runtime.keeps_sequences is None:
        runtime.keeps_sequences = os.path.isdir(os.path.dirname(path))
    if not runtime.keeps_sequences:
        return
    # The second one is left by an owner that was killed while it wrote the first.
    there = [each for each in (path, path + TEMPORARY_SUFFIX) if may_exist(each)]
    if not there:
        return
    try:
        for each in there:
            runtime.directory.files.unlink(each)
        runtime.directory.files.flush_directory(os.path.dirname(path))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise storage_error(f"remove {path}, the sequence ids of a topic", error) from error


def logger() -> Logger:
    import logging

    return logging.getLogger("pulsarx")
