from pulsarx._pycore.ground.clock_core import ClockCore
from pulsarx._pycore.ground.owner_link import OwnerLink
from pulsarx._pycore.ledger.ledger_tail import LedgerTail
from pulsarx._pycore.publish.completion_queue import CompletionQueue

class EntryPublisher:
    """Publishes entries on one topic for one producer. Any thread may call."""

    partition: int
    pending_count: int
    came_over: OwnerLink | None  # what is published here comes over it
    @property
    def fenced(self) -> str | None:
        """Why nothing is published any more; None: it is."""

    def fence(self, reason: str, kind: type[Exception] = ...) -> None:
        """Publish nothing from now on. What is stored by then is confirmed as ever."""

    def flush_expected(self) -> None: ...
    def abandon(self) -> None: ...

class LedgerPublisher(EntryPublisher):
    """Appends to the ledgers of a topic of this process."""

    topic_name: str
    send_timeout_ms: int
    def __init__(
        self,
        topic_name: str,
        tail: LedgerTail,
        completions: CompletionQueue,
        durability: int,
        clock: ClockCore | None = None,
        send_timeout_ms: int = 0,
        stamp_clock: ClockCore | None = None,
    ) -> None:
        """durability: 1 sync, 2 interval, 3 os. send_timeout_ms: how long on the clock an entry may
        be pending; 0 and less: for ever. stamp_clock: entries are stored with its time."""
