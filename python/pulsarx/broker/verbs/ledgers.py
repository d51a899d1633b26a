"""Verbs about ledger files: attaching what others wrote."""

from __future__ import annotations

from pulsarx.broker.staging.ledger_attachment import attach_ledgers
from pulsarx.broker.staging.staged_file import StagedFile
from pulsarx.broker.verbs.verb import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker


def attach(
    broker: Broker, application: str, batch_id: int, files: list[Any], thorough: bool
) -> dict[str, Any]:
    if batch_id < 0:
        raise ValueError(f"attach: batch_id {batch_id} is below 0")
    staged = [StagedFile.of_document(each) for each in files]
    return attach_ledgers(broker, application, batch_id, staged, thorough)


VERBS = {
    "ledgers.attach": Verb(
        attach, {"application": str, "batch_id": int, "files": list, "thorough": bool}
    ),
}
