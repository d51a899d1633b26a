"""Attaching: put sealed ledgers that wait in the staging area behind the others of their topics.

For any process that can reach the folder, be there an owner or not. One commit for all topics and
partitions: after a kill at any moment all of the ledgers are there or none, and the same call again
completes it. Knows no Spark.
"""

from __future__ import annotations

import os

from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.catalogue.kept_log import keep_log, take_log
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.requests.owner_request import TIMEOUT_MS, ask_owner
from pulsarx.broker.staging.file_list import listed_files
from pulsarx.broker.staging.ledger_attachment import attached_already
from pulsarx.errors import shown
from pulsarx.options.argument_check import INT64_MAX, is_whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.broker.staging.new_schema import NewSchema
    from pulsarx.broker.staging.staged_file import StagedFile

_APPLICATION_SIZE_MAX = 1000
# More are listed in a file: a description has 400 bytes as a rule, a request 32 MiB at most.
_FILES_IN_REQUEST_MAX = 1000
_FILE_MS = 5  # 0.1 on a local disk


class Transaction:
    """The name under which files are attached, once. A value.

    Batches of one application are attached in ascending order: the last one is remembered (for 30
    days), and it or an earlier one again is answered from memory. A job that attaches once is an
    application of its own, with batch 0.
    """

    __slots__ = ("application", "batch_id")

    def __init__(self, application: str, batch_id: int) -> None:
        if not isinstance(application, str) or not 0 < len(application) <= _APPLICATION_SIZE_MAX:
            raise ValueError(
                f"application {shown(application)}: 1 to {_APPLICATION_SIZE_MAX} characters"
            )
        if not is_whole_number(batch_id) or not 0 <= batch_id <= INT64_MAX:
            raise ValueError(f"batch_id {shown(batch_id)} must be int, from 0 to 2**63 - 1")
        self.application: str = application
        self.batch_id: int = batch_id

    def __repr__(self) -> str:
        return f"Transaction({self.application!r}, {self.batch_id})"


class AttachResult:
    """The outcome of attaching: what is attached now. A value; equal for the first call and its
    repetitions."""

    __slots__ = (
        "already", "application", "batch_id", "attached_ms", "first_ledger_id", "ledger_count",
        "message_count", "content",
    )  # fmt: skip

    def __init__(
        self,
        already: bool,
        application: str,
        batch_id: int,
        attached_ms: int,
        first_ledger_id: int,
        ledger_count: int,
        message_count: int,
        content: str = "",
    ) -> None:
        self.already: bool = already  # True: an earlier call did it, this one touched nothing
        self.application: str = application
        self.batch_id: int = batch_id  # greater than the one asked for: a later batch was attached
        self.attached_ms: int = attached_ms
        # The files became ledgers first_ledger_id, first_ledger_id + 1 ... in the order given.
        self.first_ledger_id: int = first_ledger_id
        self.ledger_count: int = ledger_count
        self.message_count: int = message_count
        self.content: str = content  # as it was given then; another one: of another write

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AttachResult):
            return NotImplemented
        names = self.__slots__[1:]
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        return hash((self.application, self.batch_id, self.first_ledger_id))

    def __repr__(self) -> str:
        return (
            f"AttachResult(already={self.already}, application={self.application!r}, "
            f"batch_id={self.batch_id}, ledger_count={self.ledger_count})"
        )


def attach(
    folder: str | os.PathLike[str],
    transaction: Transaction,
    staged_files: Iterable[StagedFile],
    *,
    thorough: bool = False,
    content: str = "",
    schemas: Iterable[NewSchema] = (),
    timeout_ms: int | None = None,
) -> AttachResult:
    """Attach all files or none. In a topic they come in the order given. Durable on return.

    thorough: read every entry of the files before, not only header and footer.
    content: a digest of the messages, kept with the transaction: the result has that of the write
        that was attached, so that a caller can tell whether it was this one.
    schemas: registered in the same commit, unless their topics have them: an attach that fails
        leaves no version of one.
    timeout_ms: None: a minute, and longer for very many files. There may be a million.
    FolderError: the files are of another data directory. StorageError, CorruptDataError: one is
    missing, or is not what its writer said. TopicNotFound: a topic of them does not exist.
    NotAllowedError: a file was attached before, by another transaction. IncompatibleSchema: the
    topic's policies refuse the schema, or its version is another one by now.
    FolderOwnedError: the owner cannot be reached. Nothing was attached after any of these.
    Timeout, CatalogueError: it may have been attached; call again.
    """
    files = list(staged_files)
    wait_ms = TIMEOUT_MS + _FILE_MS * len(files) if timeout_ms is None else timeout_ms
    arguments: dict[str, Any] = {
        "application": transaction.application,
        "batch_id": transaction.batch_id,
        "thorough": thorough,
    }
    if content:
        arguments["content"] = content
    documents = [each.document() for each in schemas]
    if documents:
        arguments["schemas"] = documents

    def known() -> dict[str, Any] | None:
        # Reading a large catalogue costs more than looking whether there is anything to attach.
        waiting = files and all(file.is_there(folder) for file in files)
        return None if waiting else _known(folder, transaction)

    if len(files) <= _FILES_IN_REQUEST_MAX:
        arguments["files"] = [file.document() for file in files]
        return AttachResult(**ask_owner(folder, "ledgers.attach", arguments, wait_ms, known))
    found = known()
    if found is None:
        with listed_files(folder, files) as listed:
            found = ask_owner(folder, "ledgers.attach_list", arguments | listed, wait_ms, known)
    return AttachResult(**found)


def attached(folder: str | os.PathLike[str], transaction: Transaction) -> AttachResult | None:
    """The result of what this transaction has attached; None: nothing (yet). Only reads, beside any
    owner."""
    found = _known(folder, transaction)
    return None if found is None else AttachResult(**found)


def _known(folder: str | os.PathLike[str], transaction: Transaction) -> dict[str, Any] | None:
    from pulsarx._pycore.ground.file_system import FileSystem

    path = os.path.realpath(os.fspath(folder))
    directory = DataDirectory.open(path, files=FileSystem(), read_only=True)
    try:
        catalogue = Catalogue.open(directory, log=take_log(directory))
        found = attached_already(catalogue.state, transaction.application, transaction.batch_id)
        catalogue.close()
        log = catalogue.part_with_log()
        if log is not None:
            keep_log(directory, log)
        return found
    finally:
        directory.close()
