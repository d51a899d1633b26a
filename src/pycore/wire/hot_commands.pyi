def send_decode(frame: bytes) -> tuple[int, int, bytes] | None: ...
def receipt_encode(
    producer_id: int, sequence_id: int, ledger_id: int, entry_id: int, partition: int
) -> bytes: ...
def message_encode(
    consumer_id: int,
    ledger_id: int,
    entry_id: int,
    partition: int,
    redelivery_count: int,
    epoch: int,
    entry: bytes,
) -> bytes: ...
