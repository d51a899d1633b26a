"""UnflushedLedgers: the sealed ledgers of a topic that may not be on the device, as durability os
seals them without a flush. Any thread may use it."""

from __future__ import annotations

from pulsarx._pycore.ground.locks import Lock
from pulsarx.broker.folder.storage_errors import storage_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.catalogue.records import LedgerRecord
    from pulsarx.broker.runtime import BrokerRuntime


class UnflushedLedgers:
    """Kept by the id of the first of them; all behind it count."""

    __slots__ = ("_first_id", "_lock", "_runtime", "_turn")

    def __init__(self, runtime: BrokerRuntime, *, sealed_before: bool) -> None:
        """sealed_before: whether earlier owners sealed some, of whatever durability they were."""
        self._runtime = runtime
        self._turn = Lock()  # of a flush, which whoever needs it waits for
        self._lock = Lock()  # of the next one
        # What does not have to be written costs a flush little, so each owner does it once.
        self._first_id: int = 1 if sealed_before else 0  # 0: there is none

    def add(self, ledger_id: int) -> None:
        """It is about to be sealed without a flush."""
        with self._lock:
            self._first_id = min(self._first_id or ledger_id, ledger_id)

    def flush(self, ledgers: Callable[[], list[LedgerRecord]]) -> None:
        """Have them on the device. ledgers: those of the topic. StorageError."""
        with self._turn:
            with self._lock:
                first_id, self._first_id = self._first_id, 0
            if not first_id:
                return
            try:
                self._flush([each for each in ledgers() if each.ledger_id >= first_id])
            except BaseException:
                self.add(first_id)
                raise

    def _flush(self, ledgers: list[LedgerRecord]) -> None:
        directory = self._runtime.directory
        for file_id in dict.fromkeys(each.file_id for each in ledgers):
            path = directory.ledger_path(file_id)
            if path is None:
                continue  # in memory
            try:
                directory.files.flush_file(path)
            except FileNotFoundError:
                pass  # removed meanwhile, lost, or in an object store
            except OSError as error:
                raise storage_error(f"flush {path}", error) from error
