"""Says in a ledger file whose it is, so that a lost catalogue can be made again (`backups`)."""

from __future__ import annotations

from pulsarx._pycore.ledger.name_record import name_record_bytes
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.catalogue.state import CatalogueState


def written_name(
    state: CatalogueState,
    folder_id: str,
    topic: str,
    ledger_id: int,
    uuid: bytes,
    horizon: tuple[int, int, int] | None = None,
) -> bytes:
    """The name record of a ledger file that is about to be made. horizon: of what a compaction
    leaves, as CompactionRecord has it; None: it is a ledger of the topic."""
    name = TopicName.of(topic)
    whole = state.topics.get(name.partitioned_name) if name.partition_index >= 0 else None
    record: bytes = name_record_bytes(
        topic=topic,
        uuid=uuid,
        folder_id=bytes.fromhex(folder_id),
        ledger_id=ledger_id,
        partition_count=0 if whole is None else whole.partition_count,
        compacted=horizon is not None,
        horizon=horizon or (0, 0, 0),
    )
    return record
