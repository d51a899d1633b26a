"""Attaching staged ledgers to topics, in the process that owns the data directory.

In this order, so that a kill between any two steps leaves all of the ledgers or none:

  1  is the batch attached already?             then its record is the answer
  2  check every staged file                    nothing was touched until here
  3  no topic has a larger backlog than its quota lets publish beside; no producer has any of them
     to itself, nor gets it before the end
  4  close the open ledger of each topic        the next publish opens one behind the new ledgers
  5  link the files to their ledger names       a name not committed yet: an orphan after a kill
  6  flush the folders of those names, and see that the names mean what was checked
  7  one commit of the catalogue, which         from here on all of it is there
     registers the schemas of the messages too
  8  wake consumers, seal what was closed, take the staged names away
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack

from pulsarx import errors
from pulsarx.broker.catalogue import changes
from pulsarx.broker.folder.directory_flush import flush_directories
from pulsarx.broker.staging.staged_file import STAGING_NAME, StagedFile, identity, staged_path
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.staging.new_schema import NewSchema
    from pulsarx.broker.topics.topic import Topic

# An application that attached nothing for so long is forgotten; its batches would be new again.
TRANSACTION_KEPT_MS = 30 * 24 * 3600 * 1000


def attached_already(
    state: CatalogueState, application: str, batch_id: int
) -> dict[str, Any] | None:
    """The result of attaching this batch, if it was attached. A later batch of the application
    answers for earlier ones."""
    record = state.transactions.get(application)
    if record is None or record.batch_id < batch_id:
        return None
    found = {name: getattr(record, name) for name in record.__slots__}
    return {**found, "already": True}


def attach_ledgers(
    broker: Broker,
    application: str,
    batch_id: int,
    files: list[StagedFile],
    thorough: bool,
    content: str = "",
    schemas: Sequence[NewSchema] = (),
) -> dict[str, Any]:
    """Attach all of them or none. content: what the record keeps to tell another write under the
    same batch by. schemas: registered with them, unless their topics have them. Any thread; after
    its files were checked, one attach at a time goes on in a broker."""
    broker.state.require_open()
    known = attached_already(broker.catalogue.state, application, batch_id)
    if known is not None:
        return known
    attachment = _Attachment(broker, application, batch_id, files, content, schemas)
    failure: Exception | None = None
    try:
        attachment.check(thorough)
    except Exception as error:
        failure = error  # or another one of the same batch has taken the files meanwhile
    with broker.runtime.attach_lock:
        broker.state.require_open()
        known = attached_already(broker.catalogue.state, application, batch_id)
        if known is not None:
            return known
        if failure is not None:
            raise failure
        return attachment.run()


class _Attachment:
    """An attach on its way. For one thread."""

    def __init__(
        self,
        broker: Broker,
        application: str,
        batch_id: int,
        files: list[StagedFile],
        content: str,
        schemas: Sequence[NewSchema],
    ) -> None:
        self.broker = broker
        self.application = application
        self.batch_id = batch_id
        self.files = files
        self.content = content
        self.schemas = schemas
        self.topics: list[Topic] = []
        self.linked: list[str] = []
        self.checked: list[tuple[int, ...]] = []  # what each file was when it was checked

    def check(self, thorough: bool) -> None:
        """Check everything about the files that can be told without a lock."""
        self._check_named_once()
        directory = self.broker.directory
        path, store_id = directory.path, directory.folder_id
        self.checked = [file.check(path, store_id, thorough) for file in self.files]

    def run(self) -> dict[str, Any]:
        for name in sorted({file.topic for file in self.files}):
            topic = self.broker.topic(TopicName.of(name), create=False)
            self.topics.append(topic.require_kept("attach ledgers"))
        self._check_not_attached()
        for topic in self.topics:
            self._check_room(topic)
        with ExitStack() as stack:
            for topic in self.topics:
                stack.enter_context(topic.producers.shared())
            self._run_held()
        self._clean_up()
        record = self.broker.catalogue.state.transactions[self.application]
        return {**{name: getattr(record, name) for name in record.__slots__}, "already": False}

    def _run_held(self) -> None:
        held: list[Topic] = []
        try:
            # In the order of the names, so that no two ever wait for each other.
            for topic in self.topics:
                topic.ledger.lock.acquire()
                try:
                    topic.ledger.begin_attach()
                except BaseException:
                    topic.ledger.lock.release()
                    raise
                held.append(topic)
            self._attach()
        finally:
            for topic in reversed(held):
                topic.ledger.end_attach()
                topic.ledger.lock.release()

    def _check_named_once(self) -> None:
        seen: set[object] = set()
        for file in self.files:
            for key in (file.uuid, (file.job, file.name)):
                if key in seen:
                    raise errors.NotAllowedError(detail=f"attach {file!r}: it is named twice")
                seen.add(key)

    def _check_not_attached(self) -> None:
        files: dict[str, list[StagedFile]] = {}
        for file in self.files:
            files.setdefault(file.topic, []).append(file)
        for topic in self.topics:
            known = {each.uuid: each.ledger_id for each in topic.ledger.ledgers()}
            for file in files[topic.name]:
                if file.uuid in known:
                    raise errors.NotAllowedError(
                        detail=f"attach {file!r}: topic {topic.name} has it already, as ledger "
                        f"{known[file.uuid]}; it was attached as another batch"
                    )

    @staticmethod
    def _check_room(topic: Topic) -> None:
        """ProducerBlockedQuotaExceededError and ...Exception, as for a producer that comes."""
        try:
            topic.effects.check_room()
        except errors.PulsarException as error:
            text = f"attach: {errors.detail_of(error)}. Nothing was attached"
            raise errors.remade(type(error), text, errors.attributes_of(error)) from error

    def _attach(self) -> None:
        ids = self.broker.catalogue.allocate_ids(len(self.files))
        by_topic: dict[str, list[int]] = {topic.name: [] for topic in self.topics}
        rows: dict[str, list[Any]] = {topic.name: [] for topic in self.topics}
        for ledger_id, file in zip(ids, self.files):
            by_topic[file.topic].append(ledger_id)
            rows[file.topic].append(
                [
                    ledger_id, file.uuid, file.entry_count, file.message_count, file.size,
                    file.first_publish_ms, file.last_publish_ms,
                ]
            )  # fmt: skip
        came = False
        try:
            for topic in self.topics:
                topic.expect_ledgers(by_topic[topic.name])
            self._link(ids)
            self.broker.catalogue.commit(lambda state: self._operations(state, rows))
            came = True
        except BaseException:
            came = self._may_have_come()
            if not came:
                self._take_back()
            raise
        finally:
            for topic in self.topics:
                self._told(topic, by_topic[topic.name], came)

    @staticmethod
    def _told(topic: Topic, ids: list[int], came: bool) -> None:
        """Whatever goes wrong here does not change what was committed."""
        try:
            topic.ledgers_came(ids, came)
        except Exception:
            import logging

            logging.getLogger("pulsarx").exception("%s: tell of attached ledgers", topic.name)

    def _may_have_come(self) -> bool:
        """Whether the commit was kept after an error, as far as can be told."""
        catalogue = self.broker.catalogue
        try:
            catalogue.refresh()
        except errors.PulsarException:
            return True
        record = catalogue.state.transactions.get(self.application)
        kept = record is not None and record.batch_id == self.batch_id
        return kept or catalogue.outcome_unknown

    def _operations(
        self, state: CatalogueState, rows: dict[str, list[Any]]
    ) -> list[dict[str, Any]]:
        found = [self._operation(state, rows)]
        for each in self.schemas:
            topic = TopicName.of(each.topic)
            found += self.broker.schemas.planned(state, topic, each.info, each.version)
        return found

    def _operation(self, state: CatalogueState, rows: dict[str, list[Any]]) -> dict[str, Any]:
        now_ms = self.broker.runtime.clock.now_ms()
        forgotten = [
            each.application
            for each in state.transactions.values()
            if each.attached_ms < now_ms - TRANSACTION_KEPT_MS
            and each.application != self.application
        ]
        return changes.attach_ledgers(
            self.application,
            self.batch_id,
            attached_ms=now_ms,
            ledgers=rows,
            forgotten=forgotten,
            content=self.content,
        )

    def _link(self, ids: list[int]) -> None:
        """Give each file its name as a ledger. Never takes a name away from another file."""
        directory, files = self.broker.directory, self.broker.directory.files
        try:
            targets = directory.prepare_ledger_paths(ids)
            known = []  # of each file the name that has what was checked
            for target, file in zip(targets, self.files):
                source = staged_path(directory.path, file.job, file.name)
                known.append(source if self._link_one(source, target) else target)
                self.linked.append(target)
            flush_directories(files, [os.path.dirname(target) for target in targets])
            for path, file, checked in zip(known, self.files, self.checked):
                if identity(path) != checked:
                    raise errors.CorruptDataError(
                        detail=f"attach {file!r}: it was changed while it was being attached. "
                        "Nothing was attached"
                    )
        except OSError as error:
            raise _refused(error) from error

    def _link_one(self, source: str, target: str) -> bool:
        """Whether the target is a copy."""
        files = self.broker.directory.files
        try:
            return files.link_or_copy(source, target)
        except FileExistsError:
            # An attach before this one was killed, and the catalogue does not know the name; or
            # there is another owner, which is told from the catalogue.
            if not os.path.samefile(source, target):
                self.broker.catalogue.refresh()
                self.broker.directory.set_aside(target)
                return files.link_or_copy(source, target)
            return False

    def _take_back(self) -> None:
        for target in self.linked:
            try:
                self.broker.directory.files.unlink(target)
            except OSError:
                pass  # an orphan, which is set aside when its id comes again

    def _clean_up(self) -> None:
        """A courtesy: `collect_staging` finds what stays."""
        path = self.broker.directory.path
        for file in self.files:
            try:
                self.broker.directory.files.unlink(staged_path(path, file.job, file.name))
            except OSError:
                pass
        for job in {file.job for file in self.files}:
            try:
                os.rmdir(f"{path}/{STAGING_NAME}/{job}")
            except OSError:
                pass  # another attempt of a task wrote something there


def _refused(error: OSError) -> errors.StorageError:
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    kind = errors.StorageFullError if is_full else errors.StorageError
    return kind(detail=f"attach: {error}. Nothing was attached", errno=error.errno)
