from pulsarx._pycore.ledger.ledger_tail import LedgerTail

def stored_entries(
    tail: LedgerTail, topic_name: str, ledger_id: int, message: int, producer_name: bytes
) -> tuple[list[tuple[bytes, int, int]], bool]: ...
