"""CommitMessage: what one task of a write tells the driver. A value: pickles, is JSON."""

from __future__ import annotations

import json

from pulsarx.broker.staging.staged_file import StagedFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CommitMessage:
    """The sealed ledgers that a task has left in the staging area."""

    __slots__ = ("partition_id", "message_count", "files", "content", "given")

    def __init__(
        self,
        partition_id: int,
        message_count: int,
        files: list[StagedFile],
        content: int = 0,
        given: int = 0,
    ) -> None:
        self.partition_id: int = partition_id  # of Spark
        self.message_count: int = message_count
        self.files: list[StagedFile] = (
            files  # in the order written; of one topic partition in that of its rows
        )
        self.content: int = content  # digest of the rows, see rows_digest; 0: it is not wanted
        self.given: int = given  # of what their values were made of; 0: it does not matter

    def text(self) -> str:
        documents = [file.document() for file in self.files]
        return json.dumps(
            [self.partition_id, self.message_count, documents, self.content, self.given]
        )

    @staticmethod
    def of_text(text: str) -> CommitMessage:
        partition_id, message_count, documents, content, given = json.loads(text)
        files = [StagedFile.of_document(document) for document in documents]
        return CommitMessage(partition_id, message_count, files, content, given)

    def __reduce__(self) -> tuple[Any, ...]:
        return CommitMessage.of_text, (self.text(),)

    def __repr__(self) -> str:
        return (
            f"CommitMessage(partition {self.partition_id}, {self.message_count} messages, "
            f"{len(self.files)} files)"
        )
