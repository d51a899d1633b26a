"""A folder that another process owns, opened beside it: entries are read from its files, and all
else is asked of the owner over one connection. What `Client(folder)` opens in a second process.

state        holds                                        left by
CONNECTED    a connection to the owner                    the owner's end, close
LOST         nothing: processes race for the folder       the next owner, be it this process; close
CLOSED       nothing                                      -

When the owner leaves or dies, the first guest that gets the lock of the folder opens a broker in
its own process, and stays a guest of that one: so nothing that its users hold has to change.
"""

from __future__ import annotations

import os
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.failure_log import log_failure
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx._pycore.ground.locks import Condition
from pulsarx._pycore.ground.threads import OwnThread, rest_for_memory
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx._pycore.publish.completion_queue import CompletionQueue
from pulsarx.broker import registry
from pulsarx.broker.folder.data_directory import BRIEF_OWNER
from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.broker.runtime import DURABILITIES, BrokerSettings
from pulsarx.clock import Deadline, system_clock
from pulsarx.ground.attempt import attempt
from pulsarx.ground.call_timeout import call_timeout
from pulsarx.processes.guest.non_persistent_topic import GuestNonPersistentTopic
from pulsarx.processes.guest.owner_connection import (
    GuestConnection,
    NoOwner,
    greet_owner,
    how_to_go_on,
)
from pulsarx.processes.guest.partitions import GuestPartitions
from pulsarx.processes.guest.schemas import GuestSchemas
from pulsarx.processes.guest.topic import GuestTopic
from pulsarx.processes.guest.topics import GuestTopics
from pulsarx.randomness import Randomness
from pulsarx.results import Result, result_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.catalogue.records import TopicRecord
    from pulsarx.broker_options import BrokerOptions
    from pulsarx.clock import SystemClock
    from pulsarx.processes.guest.transactions import GuestTransactions
    from pulsarx.topic_name import TopicName

    Values = dict[str, Any]

_WAIT_FIRST_SECONDS = 0.002
_WAIT_MAX_SECONDS = 0.05
_COURTESY_MS = 5000  # how long one that should not own the folder lets others do it
_LOOKS_MAX = 100  # at a topic that comes and goes


class _NotTakenOver(Exception):
    """This process could not open the folder. Never leaves this module."""


class GuestBroker(ReadOnlyBroker):
    """Any thread may call but the main one. All clients of a folder in this process share it."""

    read_only = False
    is_guest = True
    _opened_how = ""

    def __init__(
        self, folder: str, key: str, settings: BrokerSettings, timeout_seconds: int, may_own: bool
    ) -> None:
        """settings: what the client asks for. timeout_seconds: how long the owner may take to
        answer. may_own: whether this process takes the folder over before others have had time to.

        NoOwner: there is none to be connected to. InvalidConfiguration: it has other settings.
        """
        try:
            super().__init__(folder)
        except errors.FolderError as error:
            # Its owner is just making it: the lock is taken before there is a marker.
            raise NoOwner(errors.detail_of(error)) from error
        self.key = key
        self.name = folder
        self._timeout_seconds = timeout_seconds
        self.reference_count = 0
        self.may_own = may_own
        self.process: int = os.getpid()
        try:
            deadline = Deadline(timeout_seconds * 1000)
            socket, told, pid = self._greet(deadline)
            try:
                self._use(_agreed(folder, settings, told))
            except BaseException:
                socket.close()
                raise
        except BaseException:
            super().close()
            raise
        self.clock: SystemClock = system_clock()
        self.randomness: Randomness = Randomness()
        self.background: JobQueue = JobQueue("pulsarx-background")
        self.completions: CompletionQueue = CompletionQueue(Result.Ok, result_of)
        self._resuming = JobQueue("pulsarx-resume")  # brings members to the next connection
        self.post: Callable[[Callable[[], object]], object] = self.background.post
        self._schemas = GuestSchemas(self)
        self._transactions: GuestTransactions | None = None  # made with the first
        self.topics: GuestTopics = GuestTopics(self)
        self.producers: WeakList = WeakList()  # GuestProducer
        self.members: WeakList = (
            WeakList()
        )  # what else goes on with the next owner: consumers, TopicNews
        self._non_persistent: dict[str, GuestNonPersistentTopic] = {}
        self._name_count = 0
        self._name_token = self.randomness.token(8)
        self._changed = Condition()  # of what follows
        self._current: GuestConnection | None = None  # is read
        self._live: GuestConnection | None = None  # of that, when the owner has greeted
        self._is_closing = False
        self._failure: Exception | None = None  # why there will be no connection any more
        self._host: Broker | None = None  # of this process, when it owns the folder
        self._losses = 0
        self._reason = ""  # why this process could not take it over
        self._is_resuming = False  # what this process has at the owner is being brought to the next
        control_plane.hold()
        self._thread = OwnThread(partial(self._run, socket, pid), "pulsarx-guest")
        try:
            self._thread.start()
            self.connection  # noqa: B018  # until it is greeted
        except BaseException:
            attempt(self.close)
            raise

    def _use(self, settings: BrokerSettings) -> None:
        """Have those of the owner, where this process asked for nothing; the next owner may have
        others."""
        self.settings = settings
        self.options: BrokerOptions = settings.options
        self.durability_code: int = DURABILITIES[settings.durability]
        self.decompressed_size_max: int = max(self.options.max_message_size, 1 << 27)
        self.policies.use_options(self.options)

    @property
    def timeout_seconds(self) -> int:
        """How long the owner may take to answer the call that this thread makes."""
        return call_timeout() or self._timeout_seconds

    def wait_as_long_as(self, timeout_seconds: int) -> None:
        """Let requests that no client waits for, but all need, take as long as the most patient
        client allows."""
        self._timeout_seconds = max(self._timeout_seconds, timeout_seconds)

    @property
    def runtime(self) -> Any:
        """The state that its topics share."""
        return self

    # The connection -------------------------------------------------------------------------------

    @property
    def connection(self) -> GuestConnection:
        """The connection to the owner there is now. Waits while owners come and go. Timeout: none
        has come in time. Raises why there is none any more."""
        return self.live(Deadline(self.timeout_seconds * 1000))

    def live(self, deadline: Deadline) -> GuestConnection:
        """The connection, waited for until the deadline."""
        with self._changed:
            while self._live is None or self._live.is_lost:
                if self._failure is not None:
                    raise errors.again(self._failure)
                if self._is_closing:
                    raise errors.AlreadyClosed(detail="client")
                seconds = deadline.remaining_seconds()
                if seconds is not None and seconds <= 0:
                    raise errors.Timeout(detail=f"{self.unserved()}; nothing was done")
                self._changed.wait(seconds)
            return self._live

    def ask(self, name: str, **values: Any) -> Values:
        """The answer of the owner to a command that may be repeated, and is while owners come and
        go. Raises what it answers. Timeout: it does not answer, and may have done it."""
        found: Values = self.asked(name, lambda connection: connection.request(name, **values))
        return found

    def ask_verb(self, verb: str, **arguments: Any) -> Any:
        """Like `ask`, for a verb of the session."""
        return self.asked(verb, lambda connection: connection.perform(verb, arguments))

    def asked(self, what: str, ask: Callable[[GuestConnection], Any]) -> Any:
        """Like `ask`, for what may be asked of a connection."""
        deadline = Deadline(self.timeout_seconds * 1000)
        while True:
            connection = self.live(deadline)
            try:
                return ask(connection)
            except errors.ConnectError:
                if not connection.is_lost:
                    raise
            except errors.Timeout as error:
                raise self.unanswered(what, connection) from error

    def unanswered(self, what: str, connection: GuestConnection) -> errors.Timeout:
        """The owner lives, and does not answer."""
        return errors.Timeout(
            detail=f"{what} in {self.name}: no answer of its owner (process "
            f"{connection.owner_pid}) within {self.timeout_seconds} s. It may have done it, or do "
            "it later. " + how_to_go_on(connection.owner_pid)
        )

    def unserved(self, within: str = "") -> str:
        """That there is no owner which does what it is asked, and what it is. within: in which
        time; else that of calls."""
        within = within or f"{self.timeout_seconds} s"
        try:
            owner = self.directory.owner()
        except errors.StorageError:
            owner = None
        if owner is None:
            return (
                f"{self.name}: its owner has gone, and within {within} no other "
                f"process has become it{self._reason}"
            )
        return (
            f"{self.name}: process {owner.pid} owns it, and has not answered within "
            f"{within}. {how_to_go_on(owner.pid)}"
        )

    def _greet(self, deadline: Deadline) -> tuple[_socket.socket, Values, int]:
        owner = self.directory.owner()
        if owner is None:
            raise NoOwner("nobody owns it")
        if owner.control_socket in ("", BRIEF_OWNER):
            raise NoOwner(f"its owner (process {owner.pid}) does not listen yet")
        socket, told = greet_owner(self.directory, owner, deadline)
        return socket, told, owner.pid

    def _run(self, socket: _socket.socket, pid: int) -> None:
        """Read connections, one after the other. The thread of it, which callers wait for: where
        there is no memory it goes on when there is some."""
        connection: GuestConnection | None = None
        is_read = False
        while True:
            try:
                if connection is None:
                    connection = self._connection(socket, pid)
                if not is_read:
                    is_read = True
                    self._read(connection)
                self._let_go(connection)
                found = self._connect_again()
            except MemoryError:
                rest_for_memory()
                continue
            if found is None:
                return
            socket, pid = found
            connection, is_read = None, False

    def _read(self, connection: GuestConnection) -> None:
        """Until it ends."""
        try:
            with self._changed:
                self._current = connection
                is_closing = self._is_closing
            if not is_closing:
                # By another thread: this one reads the answer.
                self._resuming.post(partial(self._begin, connection))
                connection.read()
        except Exception as error:  # as without memory; the same owner may be the next
            log_failure("pulsarx", error, "the connection to the owner of %s", self.name)

    def _connection(self, socket: _socket.socket, pid: int) -> GuestConnection:
        return GuestConnection(
            socket, pid, lambda: self.timeout_seconds, self.completions, self.background
        )

    def _let_go(self, connection: GuestConnection) -> None:
        """It has ended, or is not read any more. May be called again."""
        connection.lost(
            errors.ConnectError(
                detail=f"the owner of {self.name} (process {connection.owner_pid}) has left"
            )
        )
        with self._changed:
            self._losses += 1
            self._is_resuming = True
            self._changed.notify_all()
        connection.let_go()
        self._wake_readers()

    def _begin(self, connection: GuestConnection) -> None:
        """Greet the owner, and bring what this process has there. A job."""
        try:
            self._begin_whole(connection)
        except MemoryError:  # half begun, nobody would be told of it: once more
            connection.lost(
                errors.ConnectError(detail=f"{self.name}: there was no memory to connect")
            )
            connection.close()

    def _begin_whole(self, connection: GuestConnection) -> None:
        try:
            connection.open()
        except errors.PulsarException as error:
            if not connection.is_lost:
                connection.lost(error)
                connection.close()
            return
        for each in list(self._topics.values()):
            attempt(each.ledger.listen_again)
        with self._changed:
            self._live = connection
            self._changed.notify_all()
        self._wake_readers()
        if not self._losses:
            return
        for member in (*self.producers.members(), *self.members.members()):  # sends time out
            self._bring(member, connection)
        failure = attempt(partial(connection.perform, "guest.arrived", {"pid": self.process}))
        self._log_failure("come to the next owner", failure, connection)
        with self._changed:
            self._is_resuming = connection.is_lost
            self._changed.notify_all()

    def _bring(self, member: Any, connection: GuestConnection) -> None:
        failure = attempt(partial(member.resume, connection))
        self._log_failure(f"{member.name} of {member.topic.name}", failure, connection)

    def _log_failure(
        self, what: str, failure: Exception | None, connection: GuestConnection
    ) -> None:
        if failure is None or connection.is_lost:
            return  # or it is brought to the next one
        import logging

        logging.getLogger("pulsarx").error("%s: %s", what, errors.detail_of(failure))

    def bring(self, member: Any) -> None:
        """Bring a member to the owner there is now: its connection was lost while it was made, so
        that nobody else may have done it."""

        def bring() -> None:
            with self._changed:
                connection = self._live
            if connection is not None and not connection.is_lost:
                self._bring(member, connection)

        self._resuming.post(bring)

    def settle(self) -> None:
        """Return when the owner has done what this process has told it. Timeout: there is none, or
        it does not answer."""
        deadline = Deadline(self.timeout_seconds * 1000)
        while True:
            connection = self.live(deadline)
            with self._changed:
                self._changed.wait_for(lambda: not self._is_resuming, deadline.remaining_seconds())
            try:
                connection.settle()
                return
            except errors.ConnectError:
                if not connection.is_lost:
                    raise

    def resume_later(self, job: Callable[[], object]) -> None:
        """Bring something to a connection; by any thread, and not now."""
        self._resuming.post(job)

    def _wake_readers(self) -> None:
        """Have readers look where they sleep: an owner that was killed wakes nobody."""
        for topic in list(self._topics.values()):
            topic.tail.wake()

    def _connect_again(self) -> tuple[_socket.socket, int] | None:
        """A connection to the next owner, or to the same one; None: closed."""
        wait_seconds = _WAIT_FIRST_SECONDS
        courtesy = Deadline(0 if self.may_own else _COURTESY_MS)
        while True:
            with self._changed:
                if self._is_closing:
                    return None
            if not self.directory.is_there():
                self._end(
                    errors.FolderError(
                        detail=f"{self.name} was removed, moved or replaced while it was open, and "
                        "its owner has left. Close the client and open the folder again"
                    )
                )
                return None
            try:
                if self.directory.owner() is None and courtesy.expired():
                    self._take_over()
                socket, told, pid = self._greet(Deadline(self.timeout_seconds * 1000))
                try:
                    self._use(_agreed(self.name, self.settings, told))
                except BaseException:
                    socket.close()
                    raise
                return socket, pid
            except (NoOwner, errors.Timeout, errors.StorageError, MemoryError):
                pass
            except _NotTakenOver:
                courtesy = Deadline(_COURTESY_MS)
            except Exception as error:  # its owner shares it with nobody, or is of another version
                self._end(error)
                return None
            with self._changed:
                self._changed.wait_for(lambda: self._is_closing, wait_seconds)
            wait_seconds = min(2 * wait_seconds, _WAIT_MAX_SECONDS)

    def _take_over(self) -> None:
        """Own the folder, if no other process is faster."""
        host, self._host = self._host, None
        if host is not None:  # it has lost it: closed by somebody else in this process
            registry.release(self.key, host)
        try:
            self._host = registry.acquire(self.key, self.directory.path, self.settings)
        except errors.FolderOwnedError:
            raise NoOwner("another process was faster") from None
        except Exception as error:
            self._reason = f", and this one cannot: {errors.detail_of(error)}"
            import logging

            logging.getLogger("pulsarx").error("take over %s%s", self.name, self._reason)
            raise _NotTakenOver from error
        self._reason = ""

    def _end(self, failure: Exception) -> None:
        """There will be no connection any more."""
        import logging

        logging.getLogger("pulsarx").error("%s: %s", self.name, errors.detail_of(failure))
        with self._changed:
            self._failure = failure
            self._changed.notify_all()
        for member in (*self.producers.members(), *self.members.members()):
            attempt(partial(member.end, failure))

    # Topics ---------------------------------------------------------------------------------------

    def lookup(self, name: TopicName, *, create: bool = True) -> Any:
        """Like Broker.lookup."""
        self.state.require_open()
        if not name.persistent:
            return control_plane.perform(self._found_non_persistent, (name, create, True))
        return control_plane.perform(self._found, (self._lookup, name, create))

    def topic(self, name: TopicName, *, create: bool = True) -> Any:
        """Like Broker.topic."""
        self.state.require_open()
        if not name.persistent:
            return control_plane.perform(self._found_non_persistent, (name, create, False))
        return control_plane.perform(self._found, (self._topic, name, create))

    def _found_non_persistent(self, name: TopicName, create: bool, whole: bool) -> Any:
        """Whether it is there only the owner knows, where it has no partitions. whole: with its
        partitions, if it has some."""
        try:
            self._ask_for(name, create)
        except errors.TopicNotFound:
            with self._lock:
                self.volatile = {each: () for each in self.volatile if each != name.full}
            raise
        self.refresh()
        record = self.catalogue.state.topics.get(name.full)
        if whole and record is not None and record.partition_count:
            return self._told_of(self._new_partitions(record))
        topic_id = 0 if record is None else record.topic_id
        with self._lock:
            if record is None:
                self.volatile = {**self.volatile, name.full: ()}
            found = self._non_persistent.get(name.full)
            if found is None or found.topic_id != topic_id:
                found = GuestNonPersistentTopic(self, name, topic_id)
                self._non_persistent[name.full] = found
            return found

    def _ask_for(self, name: TopicName, create: bool) -> None:
        """TopicNotFound: the owner has no such topic, and is to make none, or may not."""
        answer = self.ask("PARTITIONED_METADATA", topic=name.full, auto_creation_enabled=create)
        if answer["created"]:
            self.topics.made(name)

    def refresh_non_persistent(self, namespaces: set[str]) -> None:
        """Have `volatile` name the owner's non-persistent topics without partitions."""
        for namespace in namespaces:
            arguments = {
                "namespace": namespace,
                "include_system_topic": False,
                "domain": "non-persistent",
            }
            names = self.connection.perform("topics.get_list", arguments)
            self.refresh()
            head = f"non-persistent://{namespace}/"
            with self._lock:
                kept = {name: () for name in self.volatile if not name.startswith(head)}
                known = self.catalogue.state.topics
                self.volatile: dict[str, Any] = kept | {
                    name: () for name in names if name not in known
                }

    def _found(self, look: Callable[[TopicName], Any], name: TopicName, create: bool) -> Any:
        for _ in range(_LOOKS_MAX):
            try:
                return self._told_of(look(name))
            except errors.TopicNotFound:
                if not create:
                    raise
            self._ask_for(name, True)
        raise errors.TopicNotFound(detail=f"{name}: it was deleted as often as it was made")

    def _told_of(self, found: Any) -> Any:
        """A topic that is found; how many partitions it has the owner tells from now on."""
        if isinstance(found, GuestPartitions):
            self.topics.listen()
        return found

    def _new_topic(self, record: TopicRecord) -> GuestTopic:
        return GuestTopic(self, record)

    def _new_partitions(self, record: TopicRecord) -> GuestPartitions:
        # Without its partitioned topic, a partition is not to be made anew.
        return GuestPartitions(self, record, partial(self.topic, create=False))

    @property
    def schemas(self) -> GuestSchemas:
        return self._schemas

    @property
    def transactions(self) -> GuestTransactions:
        """See BrokerRuntime."""
        if self._transactions is None:
            from pulsarx.processes.guest.transactions import GuestTransactions

            self._transactions = GuestTransactions(self)
        return self._transactions

    def perform(self, verb: str, arguments: dict[str, Any]) -> Any:
        """The answer of a verb. A call of the control plane. See ask_owner."""
        from pulsarx.broker.requests.owner_request import ask_owner

        self.state.require_open()
        self.settle()  # what was acknowledged, and so on, comes first
        answer = ask_owner(self.directory.path, verb, arguments, self.timeout_seconds * 1000)
        self.refresh()
        if verb == "topics.update_partitioned_topic":
            # As where this process owns the folder: whoever follows is there when the call returns.
            self.topics.look()
        return answer

    def next_producer_name(self) -> str:
        """Unique in the folder."""
        with self._changed:
            self._name_count += 1
            return f"standalone-{self._name_token}-{self._name_count - 1}"

    def runs_callbacks_here(self) -> bool:
        """See BrokerRuntime."""
        return self.completions.jobs.runs_here() or self.completions.timeouts.runs_here()

    # Life -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Send what producers have, leave the owner, and give the folder back where this process
        owns it. Idempotent."""
        if not self.state.close():
            return
        failure: Exception | None = None
        for each in self.producers.members():
            error = attempt(each.shut)
            if not isinstance(error, errors.AlreadyClosed):
                failure = error or failure
        # What users have dropped is sent in the background, as long as there is a connection.
        if self.background.runs_here():
            self.background.run_rest()
        else:
            self.background.wait()
        self.completions.close()
        with self._changed:
            self._is_closing = True
            current = self._current
            self._changed.notify_all()
        if current is not None:
            current.close()
        if not self._thread.runs_here():
            self._thread.join()
        for queue in (self._resuming, self.background):
            failure = attempt(queue.close) or failure
        host, self._host = self._host, None
        if host is not None:
            failure = attempt(lambda: registry.release(self.key, host)) or failure
        if self.ends is not None:
            self.ends.close_file()
        self.directory.close()
        control_plane.let_go()
        if failure is not None:
            raise failure

    def abandon(self) -> None:
        """In a forked child: every call raises; the parent's connection is let go of."""
        super().abandon()
        current = self._current
        if current is None or os.getpid() == self.process:
            return
        for each in self.producers.members():
            each.abandon()
        for each in self.members.members():
            each.abandon()
        current.abandon()


def _agreed(folder: str, asked: BrokerSettings, told: Values) -> BrokerSettings:
    """The settings that clients of this process ask for, and else those of the owner.
    InvalidConfiguration: they ask for others."""
    stand = BrokerSettings.of_owner(told)
    conflicts = asked.differences(stand, in_memory=False)
    if told["manual_clock"]:
        conflicts["clock"] = (asked.clock, "a ManualClock, which only its process can advance")
    if conflicts:
        values = ", ".join(
            f"{name}={errors.shown(used)}, not {errors.shown(wanted)}"
            for name, (wanted, used) in conflicts.items()
        )
        raise errors.InvalidConfiguration(
            detail=f"{folder} is open in process {told['pid']} with {values}; processes that share "
            "a folder must agree, and each has the clock of the system",
            conflicts=conflicts,
        )
    return asked.completed_by(stand)
