"""The offloading of one topic: copies files of sealed ledgers to an object store, oldest first.

A run does this with each file, and a kill behind each step leaves:

1  read every entry of the file; a damaged one stays;   as before
   make the folder that the object is to be in
2  commit `begin_offload`, which names the object       as before; the next owner removes the object
3  write the object, and read it back                   as before
4  commit `finish_offload`                              offloaded: the object is as good as the file

Behind a run its history is written (`history_writer`); behind a kill, by the monitor of the next
owner.

The file goes later (`OffloadMonitor`); from then on what is read of it is fetched. Nothing else of
a topic changes: ids, positions, counts and policies are as they were.
"""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx._pycore.ground.file_system import may_exist
from pulsarx._pycore.ground.locks import Lock
from pulsarx.broker import life_log
from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.records import LEDGER_SEALED
from pulsarx.broker.ledgers.ledger_list import LATEST, open_ledger
from pulsarx.broker.offload.history_writer import keep_histories
from pulsarx.broker.offload.stored_object import Stopped, StoredObject, joined
from pulsarx.ground.attempt import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from typing import Any

    from pulsarx.broker.catalogue.records import LedgerRecord
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
    from pulsarx.broker.runtime import BrokerRuntime

NOT_RUN, RUNNING, SUCCESS, ERROR = "NOT_RUN", "RUNNING", "SUCCESS", "ERROR"
_HEADER_SIZE = 4096


class OffloadStopped(Stopped):
    """The topic or the broker closes. Never leaves this package."""


class TopicOffload:
    """Offloads the ledgers of one open topic. Any thread may call; runs are jobs of the broker's
    offload queue."""

    __slots__ = (
        "_last_error", "_ledger", "_lock", "_run_lock", "_runtime", "_status", "_stopped",
        "failed_ms",
    )  # fmt: skip

    def __init__(self, runtime: BrokerRuntime, ledger: ManagedLedger) -> None:
        self._runtime = runtime
        self._ledger = ledger
        self._lock = Lock()  # of what follows
        self._status = NOT_RUN
        self._last_error = ""
        self._stopped = False
        self._run_lock = Lock()  # held by a run
        self.failed_ms: int = 0  # when the last run failed that did; 0: none, since it was opened

    # Asking ---------------------------------------------------------------------------------------

    def status(self) -> dict[str, str]:
        """The status of the last run since the topic was opened."""
        with self._lock:
            return {"status": self._status, "last_error": self._last_error}

    def check_idle(self) -> None:
        """OperationNotSupported: there is no object store. NotAllowedError: a run goes on."""
        require_store(self._runtime, f"offload {self._ledger.name}")
        with self._lock:
            if self._status == RUNNING:
                raise errors.NotAllowedError(
                    detail=f"offload {self._ledger.name}: it is being offloaded"
                )

    def trigger(self, threshold: int, before_id: int = LATEST) -> None:
        """Begin a run that leaves the newest `threshold` bytes of the topic, and the ledgers from
        one on. As check_idle."""
        self.check_idle()
        with self._lock:
            if self._stopped:
                raise errors.TopicNotFound(
                    detail=f"offload {self._ledger.name}: it was closed or deleted"
                )
            if self._status == RUNNING:
                raise errors.NotAllowedError(
                    detail=f"offload {self._ledger.name}: it is being offloaded"
                )
            self._status = RUNNING
        try:
            self._runtime.offloads.post(lambda: self._run(threshold, before_id))
        except BaseException:
            with self._lock:
                self._status = NOT_RUN
            raise

    def trigger_above(self, threshold: int) -> None:
        """Begin a run if there is anything to do."""
        if threshold < 0 or not self._files(threshold):
            return
        try:
            self.trigger(threshold)
        except (errors.NotAllowedError, errors.TopicNotFound):
            pass  # it runs, or the topic goes

    def stop(self) -> None:
        """End the run that goes on, and begin none any more."""
        self.stop_soon()
        with self._run_lock:
            pass

    def stop_soon(self) -> None:
        """Stop the offloading of a topic that is deleted, without waiting: a run that goes on,
        which may wait for its store, finds no ledger and takes back what it had begun."""
        with self._lock:
            self._stopped = True

    # Running --------------------------------------------------------------------------------------

    def _files(self, threshold: int, before_id: int = LATEST) -> dict[int, list[LedgerRecord]]:
        """The ledgers of each file that is to be offloaded, oldest first."""
        offloads = self._runtime.catalogue.state.offloads
        ledgers = self._ledger.ledgers()
        size = 0
        found: set[int] = set()
        for each in reversed(ledgers):
            size += max(self._ledger.size_of(each) - _HEADER_SIZE, 0)
            if size > threshold and each.file_id not in offloads:
                found.add(each.file_id)
        files: dict[int, list[LedgerRecord]] = {}
        for each in ledgers:
            if each.file_id in found:
                files.setdefault(each.file_id, []).append(each)
        return {
            file_id: those
            for file_id, those in files.items()
            if those[-1].ledger_id < before_id
            and all(
                each.state == LEDGER_SEALED and each.entry_count and not each.damaged
                for each in those
            )
        }

    def _run(self, threshold: int, before_id: int) -> None:
        error = ""
        # For ledgers that are just being sealed. Not with the lock: a job of the background that
        # deletes the topic waits for that.
        self._runtime.roll_overs.wait()
        self._runtime.background.wait()
        with self._run_lock:
            try:
                tried: set[int] = set()
                # Again, as ledgers may be merged meanwhile, into a file that is not there yet.
                while left := self._left(threshold, before_id, tried):
                    for file_id, ledgers in left.items():
                        tried.add(file_id)
                        self._offload(file_id, ledgers)
            except Exception as failure:
                if isinstance(failure, OffloadStopped) or self._ledger.record() is None:
                    error = "it was stopped: the topic was closed, emptied or deleted"
                else:
                    error = errors.detail_of(failure)
                    logger().error("%s: offloading failed: %s", self._ledger.name, error)
            # Also of those in front of one that failed.
            left_out = self._keep_histories()
            error = error or left_out
        with self._lock:
            self._status = ERROR if error else SUCCESS
            self._last_error = error
            if error:
                self.failed_ms = self._runtime.clock.now_ms()

    def _keep_histories(self) -> str:
        """Keep them, and return what went wrong. Not where it is stopped: closing would wait for
        the store once for each topic."""
        if not self._goes_on():
            return ""
        try:
            keep_histories(self._runtime, self._ledger.name, self._goes_on)
        except Exception as failure:
            told = errors.detail_of(failure)
            logger().error("%s: its history was not written: %s", self._ledger.name, told)
            return f"its history in the store was not written, which is tried again: {told}"
        return ""

    def _left(
        self, threshold: int, before_id: int, tried: set[int]
    ) -> dict[int, list[LedgerRecord]]:
        """The files of _files, without those that were tried."""
        self._check_goes_on()
        found = self._files(threshold, before_id)
        return {file_id: each for file_id, each in found.items() if file_id not in tried}

    def _goes_on(self) -> bool:
        return not self._stopped and bool(self._runtime.state.is_open)

    def _check_goes_on(self) -> None:
        if not self._goes_on():
            raise OffloadStopped

    def _offload(self, file_id: int, ledgers: list[LedgerRecord]) -> None:
        """One file."""
        self._check_goes_on()
        runtime, topic = self._runtime, self._ledger.name
        path = str(runtime.directory.ledger_path(file_id))
        size = self._whole_size(path, ledgers)
        if not size:
            return
        uuid = ledgers[0].uuid
        # A name of its own for each try: copies of the folder have ledgers of the same uuid.
        name = f"{runtime.directory.folder_id}/{file_id}-{uuid}-{os.urandom(4).hex()}.ledger"
        location = joined(runtime.options.offload_url, name)
        there = StoredObject(location)
        there.size()  # before anything is begun: can the store be reached?
        for each in list(runtime.catalogue.state.offloads.values()):
            if each.size and each.location.rpartition("/")[0] == location.rpartition("/")[0]:
                StoredObject(each.location).require_place()  # what is not mounted is not made
                break
        there.make_place()
        begun = changes.begin_offload(topic, file_id, uuid, location)
        done = False

        def beginning(state: CatalogueState) -> list[dict[str, Any]]:
            nonlocal done
            record = state.topics.get(topic)
            known = () if record is None else record.ledgers
            done = file_id in state.offloads or all(each.file_id != file_id for each in known)
            # Removed or merged since the list was taken.
            return [changes.forget_offloads([])] if done else [begun]

        runtime.catalogue.commit(beginning)
        if done:
            return
        try:
            there.write(path, size, self._check_goes_on)
            if not there.matches(path, size, self._check_goes_on):
                raise errors.StorageError(
                    detail=f"offload file {file_id} of {topic}: {location} is not what was written"
                )
            runtime.catalogue.commit(
                [changes.finish_offload(file_id, location, size, runtime.clock.now_ms())]
            )
        except BaseException as error:
            if not runtime.catalogue.outcome_unknown:
                attempt(lambda: forget_object(runtime, file_id, location))
            if isinstance(error, errors.StorageError) and not self._is_needed(file_id):
                return  # it was removed or merged meanwhile, and there is nothing to be offloaded
            raise
        life_log.info("%s: offloaded file %d to %s", topic, file_id, location)

    def _is_needed(self, file_id: int) -> bool:
        """Whether any ledger is in a file."""
        return any(each.file_id == file_id for each in self._ledger.ledgers())

    def _whole_size(self, path: str, ledgers: list[LedgerRecord]) -> int:
        """How many bytes of the file are ledgers, once every entry was read; 0: one cannot be, or
        the file has gone. What is behind was never used."""
        size = 0
        try:
            for each in ledgers:
                file = open_ledger(path, each, self._runtime.directory.folder_id)
                summary = file.summary()
                count = file.check_entries(_HEADER_SIZE, summary.size)
                if (count, summary.message_count) != (each.entry_count, each.message_count):
                    return 0
                size = max(size, each.merged_at + int(file.sealed_size))
        except errors.CorruptDataError as error:
            logger().error(
                "%s: a ledger is damaged and not offloaded: %s",
                self._ledger.name, errors.detail_of(error),
            )  # fmt: skip
            return 0
        except errors.StorageError:
            if may_exist(path):
                raise
            return 0
        return size


def forget_object(runtime: BrokerRuntime, file_id: int, location: str) -> None:
    """Remove an object that nobody reads, and the catalogue's record of it."""
    StoredObject(location).remove()

    def forgetting(state: CatalogueState) -> list[dict[str, Any]]:
        record = state.offloads.get(file_id)
        there = record is not None and record.location == location
        return [changes.forget_offloads([file_id] if there else [])]

    runtime.catalogue.commit(forgetting)


def require_store(runtime: BrokerRuntime, action: str) -> None:
    """OperationNotSupported: there is no object store."""
    if runtime.directory.ledger_path(1) is None:
        raise errors.OperationNotSupported(
            detail=f"{action}: a folder in memory has no files to offload"
        )
    if not runtime.options.offload_url:
        raise errors.OperationNotSupported(
            detail=f"{action}: the owner of the folder has no object store; open it with "
            "broker_options=BrokerOptions(offload_url='s3://bucket/prefix')"
        )


def logger() -> logging.Logger:
    import logging

    return logging.getLogger("pulsarx")
