from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pulsarx._pycore.ground.clock_core import ClockCore
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx._pycore.ledger.ledger_tail import LedgerTail

class EntryCounter:
    """Has a job run so many entries, or milliseconds, after the first entry."""

    def __init__(
        self,
        clock: ClockCore,
        jobs: JobQueue,
        due: Callable[[], object],
        many: Callable[[], object],
        entries_max: int,
        interval_ms: int,
    ) -> None: ...
    @property
    def entries(self) -> int: ...
    def start(self) -> None:
        """Count anew."""

    def skip(self) -> None:
        """The job was not done; it is due again after as many entries."""

    def stop(self) -> None: ...

class ProducerSequences:
    """Records how far one producer of a topic has come."""

    last_ms: int
    def __init__(
        self,
        counter: EntryCounter,
        complete: int = -1,
        seen: Iterable[int] | None = None,
        last_ms: int = 0,
    ) -> None: ...
    @property
    def pushed(self) -> int: ...
    @property
    def stored(self) -> int: ...
    def row(self) -> list[Any]:
        """Return what a snapshot keeps; in the form of the arguments, without the counter."""

    def end_transaction(self, transaction: Any, committed: bool) -> None: ...

def read_sequences(
    tail: LedgerTail,
    topic_name: str,
    ledger_id: int,
    message: int,
    known: dict[str, ProducerSequences],
    counter: EntryCounter,
    decompress: Callable[[int, bytes, int, int], bytes],
    limit: int,
) -> tuple[int, list[str]]:
    """Read the entries from a position on and note their sequence ids in known, by the name of
    their producer. How many entries were read, and what could not be."""

def read_held(
    writer: Any,
    offset: int,
    tail: LedgerTail,
    transactions: Mapping[int, Any],
    known: dict[str, ProducerSequences],
    counter: EntryCounter,
    decompress: Callable[[int, bytes, int, int], bytes],
    limit: int,
) -> list[tuple[str, Any]]:
    """Like read_sequences, of what readers do not see of a ledger yet, from an offset on.
    transactions: those that go on, by number. The (name, transaction) of what is of those."""
