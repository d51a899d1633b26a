from collections.abc import Callable
from typing import Any

from pulsarx._pycore.ground.clock_core import ClockCore
from pulsarx._pycore.ground.owner_link import OwnerLink
from pulsarx._pycore.publish.completion_queue import CompletionQueue
from pulsarx._pycore.publish.entry_publisher import EntryPublisher

class ConnectionPublisher(EntryPublisher):
    """Sends the entries of one producer over a connection. Any thread may call."""

    transacts_in: Any  # the folder whose transactions it takes; None: it takes none
    def __init__(
        self,
        completions: CompletionQueue,
        partition: int,
        encode: Callable[..., bytes],
        clock: ClockCore | None = None,
        send_timeout_ms: int = 0,
        what: str = "",
        leave_ms: int = 0,
        unserved: Callable[[str], str] | None = None,
    ) -> None: ...
    def is_busy(self) -> bool: ...
    def confirmed(
        self, sequence_id: int, ledger_id: int, entry_id: int, kept: list[int] | None = None
    ) -> None: ...
    def failed(self, sequence_id: int, error: Exception) -> None: ...
    def lost(self, error: Exception) -> None: ...
    @property
    def last_confirmed(self) -> tuple[int, int] | None:
        """(ledger id, entry id) of the entry that was confirmed last; None: none was."""

    @property
    def is_pending(self) -> bool:
        """Whether something was sent that is not answered."""

    def pause(self) -> None:
        """The connection has ended: what is sent is kept."""

    def hold(self, reason: str, refused: bool) -> None:
        """The broker takes nothing for now, and says why: what is sent is kept."""

    def resume(
        self,
        link: OwnerLink | None,
        number: int,
        stored: list[tuple[bytes, int, int]],
        unknown: Exception | None = None,
        compares: bool = False,
        all_are_new: bool = False,
        known: int = -1,
    ) -> None:
        """Go on over the next connection, as its producer of this number."""

    def begin_comparing(self) -> None:
        """The broker tells duplicates of what is sent from here on."""
