"""Offloads open topics by themselves, and tidies behind: every 60 seconds those of users are
offloaded that hold more than their threshold, histories are written that are not so any more, files
go whose objects are old enough, and objects that nobody needs."""

from __future__ import annotations

from collections import deque
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.file_system import may_exist
from pulsarx.broker import life_log
from pulsarx.broker.offload.history_writer import (
    keep_history,
    own_places,
    stored_topics,
    sweep_histories,
    url_of_object,
)
from pulsarx.broker.offload.stored_object import StoredObject
from pulsarx.broker.offload.topic_offload import forget_object, logger
from pulsarx.broker.periodic_check import PeriodicCheck
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.catalogue.records import LedgerRecord, OffloadRecord
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.topics.topic import Topic

THRESHOLD = "offload_threshold"
DELETION_LAG = "offload_deletion_lag_ms"
_INTERVAL_MS = 60_000


class OffloadMonitor:
    """Removes files and objects of a broker with an object store. Any thread may call. The steps of
    looks are jobs of the broker's offload queue, as runs are, so an object that is not finished is
    nobody's. One puts the next behind what is there: a run waits for one topic and not for all.
    """

    def __init__(self, runtime: BrokerRuntime, open_topics: Callable[[], list[Topic]]) -> None:
        self._runtime = runtime
        self._open_topics = open_topics
        self._check = PeriodicCheck(runtime.clock, runtime.offloads, _INTERVAL_MS, self._look)
        self._closed = False
        self._released: set[int] = set()  # files that have gone
        self._steps: deque[Callable[[], object]] = deque()  # of the look that goes on
        self._kept_number = -1  # of the commit that all histories are as new as
        self._are_kept = True  # so far in this look
        self._swept: set[str] = set()  # places
        # Topics and places whose histories were not kept.
        self._told_behind: set[tuple[str, str]] = set()
        self._told: set[int] = set()  # whose object could not be removed or found, which was said

    def arm(self) -> None:
        """Look in 60 seconds."""
        if self._runtime.directory.ledger_path(1) is not None:  # it is not in memory
            self._check.arm()

    # A look ---------------------------------------------------------------------------------------

    def _look(self) -> bool:
        """Begin one: False, as its last step arms the next."""
        runtime, number = self._runtime, self._runtime.catalogue.state.number
        stored = stored_topics(runtime)
        records: dict[str, list[OffloadRecord]] = {}
        for each in list(runtime.catalogue.state.offloads.values()):
            records.setdefault(each.topic, []).append(each)
        self._are_kept = True
        steps: list[Callable[[], object]] = []
        places = [*own_places(runtime), *(url for urls in stored.values() for url in urls)]
        for url in dict.fromkeys(places):
            if url not in self._swept:
                steps.append(partial(self._sweep, url))
        is_changed = number != self._kept_number
        for topic, urls in stored.items():
            steps.append(partial(self._look_at, topic, records.get(topic, []), urls, is_changed))
        steps += [partial(self._end_keeping, number), self._trigger]
        self._steps = deque(steps)
        self._step()
        return False

    def _step(self) -> None:
        """One step, and put the next."""
        if self._closed:
            return
        try:
            if self._steps:
                self._steps.popleft()()
        finally:
            if self._steps:
                self._runtime.offloads.post(self._step)
            else:
                self.arm()

    def _look_at(
        self, topic: str, records: list[OffloadRecord], urls: list[str], is_changed: bool
    ) -> None:
        behind = self._keep(topic, urls) if is_changed else {}
        for record in records:
            if self._closed:
                return
            if self._runtime.catalogue.state.offloads.get(record.file_id) is record:
                self._tidy(record, urls, behind)

    def _keep(self, topic: str, urls: list[str]) -> dict[str, Exception]:
        """The places whose histories do not tell what is so; it is said once and tried again at
        the next look."""
        try:
            behind = keep_history(self._runtime, topic, urls)
        except Exception as error:  # of one topic: the others go on
            behind = dict.fromkeys(urls, error)
        for url in urls:
            self._tell_behind(topic, url, behind.get(url))
        return behind

    def _sweep(self, url: str) -> None:
        try:
            sweep_histories(self._runtime, url, stored_topics(self._runtime))
        except Exception as error:
            self._tell_behind("the histories", url, error)
        else:
            self._tell_behind("the histories", url, None)
            self._swept.add(url)

    def _tell_behind(self, what: str, url: str, error: Exception | None) -> None:
        if error is None:
            self._told_behind.discard((what, url))
            return
        self._are_kept = False
        if (what, url) not in self._told_behind:
            self._told_behind.add((what, url))
            logger().warning("%s: %s", what, errors.detail_of(error))

    def _needed(self, record: OffloadRecord, urls: list[str]) -> list[str]:
        """The places whose histories are not to name an object when it goes: that beside it, and
        that of the option. Others may do so for ever, as stores of options before are gone."""
        beside = url_of_object(record, self._runtime.directory.folder_id)
        named = {url.partition("?")[0] for url in (*own_places(self._runtime), beside) if url}
        return [url for url in urls if url.partition("?")[0] in named]

    def _end_keeping(self, number: int) -> None:
        if self._are_kept:
            self._kept_number = number

    def _trigger(self) -> None:
        for topic in self._open_topics():
            if self._closed:
                return
            if topic.topic_name.is_system:
                continue
            try:
                topic.offload.trigger_above(self._threshold(topic.topic_name))
            except (errors.TopicNotFound, errors.StorageError):
                continue  # it goes; or its ledgers cannot be read, which others are told

    def _tidy(self, record: OffloadRecord, urls: list[str], behind: dict[str, Exception]) -> None:
        """behind: places whose histories do not tell what is so, to which those come that fail now.
        What they name stays."""
        runtime, state = self._runtime, self._runtime.catalogue.state
        topic = state.topics.get(record.topic)
        ledgers = [
            each
            for each in (() if topic is None else topic.ledgers)
            if each.file_id == record.file_id
        ]
        try:
            if not record.size:
                forget_object(runtime, record.file_id, record.location)
            elif not ledgers:
                needed = self._needed(record, urls)
                if behind.keys().isdisjoint(needed):
                    # As of now: it may have been trimmed since the history was kept. A store that
                    # was gone in this look is not asked once more for each object.
                    left = [url for url in urls if url not in behind]
                    behind.update(keep_history(runtime, record.topic, left))
                if not behind.keys().isdisjoint(needed):
                    return
                forget_object(runtime, record.file_id, record.location)
                self._released.discard(record.file_id)
            elif record.file_id not in self._released:
                self._release(record, ledgers)
        except Exception as error:  # of one object: the others go on
            if record.file_id not in self._told:
                self._told.add(record.file_id)
                logger().warning("%s: %s", record.topic, errors.detail_of(error))

    def _release(self, record: OffloadRecord, ledgers: list[LedgerRecord]) -> None:
        """Remove the file of these ledgers when its object is old enough, and is there."""
        runtime = self._runtime
        if runtime.clock.now_ms() - record.offloaded_ms < self._lag_ms(TopicName.of(record.topic)):
            return
        path = str(runtime.directory.ledger_path(record.file_id))
        if may_exist(path):
            size = StoredObject(record.location).size()
            if size != record.size:
                raise errors.StorageError(
                    detail=f"the file {path} stays: {record.location} should have {record.size} "
                    "bytes and " + ("is not there" if size is None else f"has {size}")
                )
            # Tasks of other hosts may have the file mapped over a network file system, where one
            # that is removed cannot be read on.
            state = runtime.catalogue.state
            if state.leased(record.topic, ledgers, runtime.clock.now_ms()):
                return
            try:
                runtime.files.unlink(path)
            except FileNotFoundError:
                pass
            except OSError as error:
                from pulsarx.broker.folder.storage_errors import storage_error

                raise storage_error(f"remove {path}, which was offloaded", error) from error
            life_log.info("%s: removed %s, which is in %s", record.topic, path, record.location)
        self._released.add(record.file_id)

    def _threshold(self, topic: TopicName) -> int:
        """In bytes; -1: it is offloaded only when that is asked for."""
        found = self._runtime.policies.in_force(topic, THRESHOLD)
        options = self._runtime.options
        if found is None:
            found = options.managed_ledger_offload_auto_trigger_size_threshold_bytes
        return int(found)

    def _lag_ms(self, topic: TopicName) -> int:
        found = self._runtime.policies.in_force(topic, DELETION_LAG)
        options = self._runtime.options
        return int(options.managed_ledger_offload_deletion_lag_ms if found is None else found)

    def close(self) -> None:
        """Look no more."""
        self._closed = True
        self._check.close()
