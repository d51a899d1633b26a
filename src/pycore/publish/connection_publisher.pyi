from collections.abc import Callable

from pulsarx._pycore.publish.completion_queue import CompletionQueue
from pulsarx._pycore.publish.entry_publisher import EntryPublisher

class ConnectionPublisher(EntryPublisher):
    """Sends the entries of one producer over a connection. Any thread may call."""

    def __init__(
        self,
        send: Callable[[int, int, bytes], object],
        completions: CompletionQueue,
        partition: int,
    ) -> None: ...
    def confirmed(self, sequence_id: int, ledger_id: int, entry_id: int) -> None: ...
    def failed(self, sequence_id: int, error: Exception) -> None: ...
    def lost(self, error: Exception) -> None: ...
