from collections.abc import Callable

from pulsarx._pycore.cursor.ack_tracker import AckTracker
from pulsarx._pycore.ledger.ledger_tail import LedgerSpan

def hidden_chunks(
    tracker: AckTracker, span: LedgerSpan, ledger_id: int, message_count: int
) -> int: ...
def open_entries(
    tracker: AckTracker,
    span_of: Callable[[], LedgerSpan],
    ledger_id: int,
    entry_count: int,
    message_count: int,
) -> int: ...
