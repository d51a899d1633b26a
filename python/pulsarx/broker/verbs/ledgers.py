"""Verbs about ledger files: attaching what others wrote."""

from __future__ import annotations

from pulsarx.broker.verbs.verb import SUPERUSER, verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.staging.new_schema import NewSchema


@verb("ledgers.attach", needs=SUPERUSER)
def attach(
    broker: Broker,
    application: str,
    batch_id: int,
    files: list[Any],
    thorough: bool,
    content: str = "",
    schemas: list[Any] | None = None,
) -> dict[str, Any]:
    from pulsarx.broker.staging.ledger_attachment import attach_ledgers
    from pulsarx.broker.staging.staged_file import StagedFile

    if batch_id < 0:
        raise ValueError(f"attach: batch_id {batch_id} is below 0")
    staged = [StagedFile.of_document(each) for each in files]
    new = _new_schemas(schemas)
    return attach_ledgers(broker, application, batch_id, staged, thorough, content, new)


@verb("ledgers.attach_list", needs=SUPERUSER)
def attach_list(
    broker: Broker,
    application: str,
    batch_id: int,
    job: str,
    name: str,
    count: int,
    checksum: int,
    thorough: bool,
    content: str = "",
    schemas: list[Any] | None = None,
) -> dict[str, Any]:
    """Attach ledgers as `attach` does; the files are described in a list in the staging area."""
    from pulsarx.broker.staging.file_list import read_list
    from pulsarx.broker.staging.ledger_attachment import attach_ledgers, attached_already

    if batch_id < 0:
        raise ValueError(f"attach_list: batch_id {batch_id} is below 0")
    known = attached_already(broker.catalogue.state, application, batch_id)
    if known is not None:
        return known
    staged = read_list(broker.directory.path, job, name, count, checksum)
    new = _new_schemas(schemas)
    return attach_ledgers(broker, application, batch_id, staged, thorough, content, new)


def _new_schemas(documents: list[Any] | None) -> list[NewSchema]:
    from pulsarx.broker.staging.new_schema import NewSchema

    return [NewSchema.of_document(each) for each in documents or ()]
