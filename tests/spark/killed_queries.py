"""Kills processes of a query, or of a batch job, in the middle, again and again, and starts it
again; each time more messages are published. Run as a program:

    python killed_queries.py FOLDER ROLE SEED KILLS

    role     what is killed                                     its children
    source   the process of the source, at a line or a file     none
    driver   the process of the query, at a step of it          live on, or die with it
    task     an attempt of a task, at a line or a file
    commit   the process that commits for the sink, as that
    owner    the process that owns the folder, as that          go on without it
    frozen   a query stops at a step, and goes on when another  none
             one of its checkpoint has done all there is
    job      what a batch job consists of, each as above
    served-  driver or task, into a cluster, with deduplicate; or
             owner, which is the server then: at a line of a task

The steps of a query are those of micro_batches. A line is one of PulsarX in Python; a file is a
call of the system on files. The process kills itself there, with no word to anybody. It ends with 0
when what was read is there once, and in its order, whatever was killed. In half of the runs the
source has a subscription, and nothing else keeps what it has acknowledged.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import pickle
import random
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from micro_batches import Dead, Here, Job, Query, text_of
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

import pulsarx
from pulsarx._pycore.ground import file_system
from pulsarx.rest import serve_http
from pulsarx.server import serve

ROLES = (
    "source",
    "driver",
    "task",
    "commit",
    "owner",
    "frozen",
    "job",
    "served-driver",
    "served-task",
    "served-owner",
)
SERVED = "served-"
PARTS = ("task", "commit", "driver")  # of a job
KEYS = 5
SMALL_LEDGERS = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=3)
SUBSCRIPTION = "stream"
OPERATIONS = (
    "open", "write", "flush", "flush_directory", "rename", "link", "unlink", "make_directory",
)  # fmt: skip
LINES, STEPS = 500, 12  # of a process, about
ROUNDS_MAX = 40  # for each kill that is wanted: not all places are reached
_PARENT_DEATH_SIGNAL, _SUBREAPER = 1, 36  # of prctl
_OURS = f"{os.sep}pulsarx{os.sep}"
ROWS = StructType([StructField("value", BinaryType()), StructField("__key", StringType())])


def kill_me() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def control(what: int, value: int) -> None:
    ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


class Place:
    """Where a process dies. A value."""

    def __init__(self, number: int, operation: str = "", turn: int = 0) -> None:
        self.number = number  # of the line, the call, or the step
        self.operation = operation  # empty: a line, or a step
        self.turn = turn  # of several processes of the role, which one

    def __repr__(self) -> str:
        return f"{self.operation or 'line'} {self.number} of turn {self.turn}"


class Lines:
    """Counts the lines of PulsarX that all threads of this process run; at one of them it dies, or
    kills another one."""

    def __init__(self, kill: Callable[[], None] = kill_me) -> None:
        self.count = 0
        self._last = 0
        self._kill = kill

    def begin(self, last: int) -> None:
        self.count, self._last = 0, last

    def watch(self) -> None:
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def _enter(self, frame: Any, event: str, argument: Any) -> Any:
        return self._step if _OURS in frame.f_code.co_filename else None

    def _step(self, frame: Any, event: str, argument: Any) -> Any:
        if event == "line":
            self.count += 1
            if self.count == self._last:
                self._kill()
        return self._step


def dies_at(place: Place, lines: Lines) -> None:
    """From here on."""
    file_system.faults_install()
    if place.operation:
        file_system.faults_add(place.operation, place.number, kind="kill")
    else:
        lines.begin(place.number)
        lines.watch()


# What a child must not hold open: somebody waits for the end of it.
_private: set[int] = set()


def close_private(*more: int) -> None:
    for each in (*_private, *more):
        os.close(each)
    _private.clear()


def note_counts(path: Path, lines: Lines) -> None:
    """How often something was done before which this process could have died."""
    found = {each: file_system.faults_calls(each) for each in OPERATIONS}
    path.write_text(json.dumps({"": lines.count, **found}))


def fork(work: Callable[[], Any]) -> tuple[int, int]:
    """A child, and where its answer comes from: what work returns, or why there is none."""
    answer, tell = os.pipe()
    child = os.fork()
    if child:
        os.close(tell)
        return child, answer
    try:
        close_private(answer)
        _private.add(tell)
        try:
            found: Any = (True, work())
        except BaseException as error:
            found = (False, text_of(error))
        sys.settrace(None)
        with open(tell, "wb") as file:
            pickle.dump(found, file)
    finally:
        os._exit(0)


def answer_of(child: int, answer: int) -> Any:
    """Dead, RuntimeError: it died, or failed."""
    with open(answer, "rb") as file:
        told = file.read()
    with contextlib.suppress(ChildProcessError):  # somebody saw it end
        os.waitpid(child, 0)
    if not told:
        raise Dead(f"process {child} died")
    went_well, found = pickle.loads(told)
    if not went_well:
        raise RuntimeError(found)
    return found


class Forks(Here):
    """Does the work of other processes in children. One of them dies, or this one."""

    def __init__(
        self,
        role: str,
        place: Place | None,
        notes: Path,
        kill: Callable[[], None] = kill_me,
    ) -> None:
        """kill: what a task or a commit does at its place."""
        self._kill = kill
        self._role = role
        self._place = place
        self._notes = notes
        self._turn = self._step = 0

    def at(self, step: str) -> None:
        if self._role not in ("driver", "frozen") or self._place is None:
            return
        self._step += 1
        if self._step == self._place.number:
            os.kill(os.getpid(), signal.SIGSTOP if self._role == "frozen" else signal.SIGKILL)
        (self._notes / self._role).write_text(json.dumps({"": self._step}))

    def start(self, role: str, work: Callable[[], Any]) -> Callable[[], Any]:
        dying = role == self._role and self._place is not None and self._turn == self._place.turn
        self._turn += role == self._role

        def run() -> Any:
            # A source may be about to die, at a line or a file.
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            file_system.faults_remove()
            if self._role == "driver" and self._place is not None and self._place.turn:
                control(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
            lines = Lines(self._kill)
            file_system.faults_install()
            if dying and self._place is not None:
                dies_at(self._place, lines)
            found = work()
            sys.settrace(None)
            note_counts(self._notes / role, lines)
            return found

        child, answer = fork(run)

        def wait() -> Any:
            try:
                return answer_of(child, answer)
            except Dead:
                (self._notes / "died").touch()
                raise

        return wait


class Owner:
    """A process that owns the folder, publishes when it is asked to, and dies at a place."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ask, asked = os.pipe()[::-1]
        answer, self._tell = os.pipe()
        self._answers = open(answer, "rb")  # noqa: SIM115
        self.child = os.fork()
        if not self.child:
            try:
                close_private(self._ask, self._answers.fileno())
                self._live(asked)
            finally:
                os._exit(0)
        os.close(asked)
        os.close(self._tell)
        _private.update((self._ask, self._answers.fileno()))
        self._answer()

    def _live(self, asked: int) -> None:
        lines = Lines()
        lines.watch()
        with opened(self._folder) as client:
            os.write(self._tell, b"lives\n")
            for line in open(asked):  # noqa: SIM115
                what, argument = json.loads(line)
                if what == "publish":
                    publish(client, argument)
                elif what == "note":
                    note_counts(Path(argument), lines)
                else:
                    number, operation = argument
                    lines.begin(0 if operation else number)
                    file_system.faults_install()
                    if operation:
                        file_system.faults_add(operation, number, kind="kill")
                os.write(self._tell, b"done\n")

    def _answer(self) -> None:
        if not self._answers.readline():
            raise Dead("the owner died")

    def ask(self, what: str, argument: Any) -> None:
        """Dead."""
        try:
            os.write(self._ask, json.dumps([what, argument]).encode() + b"\n")
        except BrokenPipeError:
            raise Dead("the owner died") from None
        self._answer()

    def end(self) -> None:
        _private.difference_update((self._ask, self._answers.fileno()))
        os.close(self._ask)
        self._answers.close()
        os.waitpid(self.child, 0)


def opened(folder: Path) -> Any:
    return pulsarx.Client(folder, durability="os", broker_options=SMALL_LEDGERS)


def publish(client: Any, numbers: list[int]) -> None:
    producer = client.create_producer("in", batching_enabled=True, batching_max_messages=7)
    for number in numbers:
        producer.send_async(b"%d" % number, None, partition_key=str(number % KEYS))
    producer.close()


@contextmanager
def none_left() -> Iterator[None]:
    """Children of dead children are ours, and waited for at the end."""
    control(_SUBREAPER, 1)
    yield
    wait_for_all()


def wait_for_all() -> None:
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


class Served:
    """A process that serves a folder of its own as a cluster, until this one ends. When it is
    killed another one takes its place, at the same ports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._note = folder.parent / "server"
        told, tell = os.pipe()
        waits, self._lives = os.pipe()
        _private.add(self._lives)
        if not os.fork():
            try:
                close_private(told)
                self._keep(tell, waits)
            finally:
                os._exit(0)
        os.close(tell)
        os.close(waits)
        with open(told) as file:
            self.options: dict[str, str] = json.loads(file.readline())

    def _keep(self, tell: int, waits: int) -> None:
        ports = (0, 0)
        while True:
            answer, say = os.pipe()
            child = os.fork()
            if not child:
                try:
                    self._serve(ports, say, waits)
                finally:
                    os._exit(0)
            os.close(say)
            with open(answer) as file:
                options, ports = json.loads(file.read())
            self._note.write_text(str(child))
            if tell >= 0:
                os.write(tell, json.dumps(options).encode() + b"\n")
                os.close(tell)
                tell = -1
            if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
                return

    def _serve(self, ports: tuple[int, int], say: int, waits: int) -> None:
        with opened(self.folder) as client:
            if not ports[0]:
                client.admin.namespaces.set_retention("public/default", -1, -1)
                client.admin.topics.create_partitioned_topic("out", 2)
                client.admin.topics.set_deduplication("out", True)
            service = serve(client, port=ports[0])
            http = serve_http(client, port=ports[1], broker_port=service.port)
            options = {"root": service.service_url, "adminUrl": http.url}
            with open(say, "w") as file:
                json.dump([options, [service.port, http.port]], file)
            os.read(waits, 1)
            os._exit(0)

    def kill(self) -> None:
        os.kill(int(self._note.read_text()), signal.SIGKILL)

    def end(self) -> None:
        os.close(self._lives)
        _private.discard(self._lives)


class Campaign:
    """A folder, and what is killed there."""

    def __init__(self, folder: Path, role: str, seed: int) -> None:
        self.folder = folder
        self.role = role.removeprefix(SERVED)
        self.draw = random.Random(f"{seed} {role}")
        self.served = Served(folder.parent / "cluster") if role.startswith(SERVED) else None
        self.notes = folder.parent / "notes"
        self.notes.mkdir()
        self.checkpoint = folder.parent / "checkpoint"
        self.published = 0
        self.failures: list[str] = []
        self.killed: list[str] = []
        self.subscribed = role != "job" and self.draw.random() < 0.5
        self._counts = {each: {"": LINES} for each in ROLES}
        self._counts |= {each: {"": STEPS} for each in ("driver", "frozen")}
        in_child(lambda: self._make())

    def _make(self) -> None:
        with opened(self.folder) as client:
            client.admin.namespaces.set_retention("public/default", -1, -1)
            client.admin.topics.create_partitioned_topic("in", 2)
            client.admin.topics.create_partitioned_topic("out", 2)
            if self.subscribed:
                client.admin.topics.set_retention("in", 0, 0)
                start = pulsarx.InitialPosition.Earliest
                client.subscribe("in", SUBSCRIPTION, initial_position=start).close()

    def place(self, role: str) -> Place:
        """One that was reached before, if any is known."""
        noted = self.notes / role
        found = json.loads(noted.read_text()) if noted.exists() else {}
        for operation, count in found.items():
            counts = self._counts[role]
            counts[operation] = max(counts.get(operation, 0), count)
        operations = [each for each, count in self._counts[role].items() if each and count]
        operation = ""
        if operations and self.draw.random() < 0.5 and not (role == "owner" and self.served):
            operation = self.draw.choice(operations)
        number = self.draw.randint(1, self._counts[role][operation])
        return Place(number, operation, self.draw.randrange(2))

    def more(self) -> list[int]:
        begin, self.published = self.published, self.published + self.draw.randrange(4, 25)
        return list(range(begin, self.published))

    def run(self, kills: int) -> None:
        for _ in range(kills * ROUNDS_MAX):
            if len(self.killed) >= kills:
                return
            self.round()
        raise AssertionError(f"{len(self.killed)} kills: {self.failures[-3:]}")

    def round(self) -> None:
        role = self.draw.choice(PARTS) if self.role == "job" else self.role
        place = self.place(role)
        numbers = self.more()
        is_owned = role == "owner" and self.served is None
        owner = Owner(self.folder) if is_owned or self.draw.random() < 0.5 else None
        if owner is not None:
            owner.ask("publish", numbers)
            if is_owned:
                with suppress(Dead):  # before it could answer: its own threads go on meanwhile
                    owner.ask("dies", [place.number, place.operation])
        else:
            in_child(lambda: self._publish(numbers))
        work = self._job if self.role == "job" else self._query
        (self.notes / "died").unlink(missing_ok=True)
        died = False
        try:
            if role == "frozen":
                self._freeze(place)
            else:
                in_child(lambda: work(role, place))
        except Dead:
            died = True
        except RuntimeError as error:
            self.failures.append(str(error))
        died = died or (self.notes / "died").exists()
        if owner is not None:
            if is_owned:
                try:
                    owner.ask("note", str(self.notes / "owner"))
                except Dead:
                    died = True
            owner.end()
        if died:
            self.killed.append(f"{role} at {place}")

    def _freeze(self, place: Place) -> None:
        """When it goes on, another driver has done what it was about to do, and more."""
        child, answer = fork(lambda: self._query("frozen", place))
        stopped = os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
        try:
            if stopped:
                (self.notes / "died").touch()
                in_child(lambda: self._query("", None))
        finally:
            if stopped:
                os.kill(child, signal.SIGCONT)
            answer_of(child, answer)

    def _publish(self, numbers: list[int]) -> None:
        with opened(self.folder) as client:
            publish(client, numbers)

    def options(self) -> tuple[dict[str, str], dict[str, str]]:
        root = {"root": str(self.folder)}
        source = {
            "topic": "in", "columns": "value,__key", "startingOffsets": "earliest",
            "maxEntriesPerTrigger": "3", "minPartitions": "2",
        }  # fmt: skip
        if self.subscribed:
            source |= {"subscription": SUBSCRIPTION, "leaseSeconds": "0"}
        sink = root
        if self.served is not None:
            sink = {**self.served.options, "deduplicate": "true"}
        return root | source, {**sink, "topic": "out"}

    def _query(self, role: str, place: Place | None) -> int:
        lines = Lines()
        if role == "source" and place is not None:
            dies_at(place, lines)
        forks = Forks(role, place, self.notes)
        if role == "owner" and self.served is not None:
            forks = Forks("task", place, self.notes, self._kill_server)
        found = Query(self.checkpoint, *self.options(), processes=forks).run()
        sys.settrace(None)
        if role == "source":
            note_counts(self.notes / role, lines)
        return found

    def _kill_server(self) -> None:
        assert self.served is not None
        (self.notes / "died").touch()
        self.served.kill()

    def _job(self, role: str, place: Place | None) -> None:
        """The number of the round is the version: a run that failed comes again with its rows."""
        forks = Forks(role, place, self.notes)
        done = self.notes / "done"
        begin, version = json.loads(done.read_text()) if done.exists() else (0, 1)
        asked = self.notes / "asked"
        if not asked.exists():
            asked.write_text(json.dumps(self.published))
        end = json.loads(asked.read_text())
        rows = [(b"%d" % each, str(each % KEYS)) for each in range(begin, end)]
        options = {**self.options()[1], "txnAppId": "job", "txnVersion": str(version)}
        Job(processes=forks).write(options, ROWS, [batches(rows[0::2]), batches(rows[1::2])])
        asked.unlink()
        done.write_text(json.dumps([end, version + 1]))

    def run_all(self, numbers: list[int]) -> None:
        """In this process."""
        self.published = len(numbers)
        self._publish(numbers)
        Query(self.checkpoint, *self.options()).run()
        self._check()

    def finish(self) -> None:
        """Run to the end, and look whether all is there once."""
        work = self._job if self.role == "job" else self._query
        in_child(self._check_subscription)
        for _ in range(3):
            if self.served is None:
                wait_for_all()
            in_child(lambda: work("", None))
        in_child(self._check)
        if self.served is not None:
            self.served.end()

    def _check(self) -> None:
        source, sink = read_all(self.folder, "in"), self._sunk()
        if not self.subscribed:
            assert sorted(int(value) for _, value in source) == list(range(self.published))
        found = sorted(int(value) for _, value in sink)
        assert found == list(range(self.published)), difference(found, self.published)
        if self.role != "job" and self.served is None:  # tasks send to a cluster at the same time
            for key in map(str, range(KEYS)):
                mine = [int(value) for each, value in sink if each == key]
                assert mine == sorted(mine), f"key {key} is out of order"
        self._check_subscription()
        damage = pulsarx.backups.check(self.folder).damage
        assert not damage, damage

    def _sunk(self) -> list[tuple[str, bytes]]:
        return read_all(self.folder if self.served is None else self.served.folder, "out")

    def _check_subscription(self) -> None:
        """What it has let go is in the sink."""
        stored = {value for _, value in self._sunk()}
        with pulsarx.Client(self.folder) as client:
            for index in range(2):
                topic = f"in-partition-{index}"
                found = client.admin.topics.stats(topic)["subscriptions"].get(SUBSCRIPTION)
                if found is not None:
                    some = [value for _, value in read_partition(client, topic)]
                    gone = some[: len(some) - found["msg_backlog"]]
                    assert stored.issuperset(gone), f"{topic} lets go what is not done"


def batches(rows: list[tuple[bytes, str]]) -> list[Any]:
    values, keys = [value for value, _ in rows], [key for _, key in rows]
    columns = [pa.array(values, pa.binary()), pa.array(keys, pa.string())]
    return [pa.record_batch(columns, ["value", "__key"])]


def read_all(folder: Path, topic: str) -> list[tuple[str, bytes]]:
    with pulsarx.Client(folder, read_only=True) as client:
        return [
            each
            for index in range(2)
            for each in read_partition(client, f"{topic}-partition-{index}")
        ]


def read_partition(client: Any, topic: str) -> list[tuple[str, bytes]]:
    found = []
    reader = client.create_reader(topic, pulsarx.MessageId.earliest)
    while some := reader.read_many(1000, 0):
        found += [(each.partition_key(), each.data()) for each in some]
    reader.close()
    return found


def difference(found: list[int], count: int) -> str:
    missing = sorted(set(range(count)) - set(found))
    twice = sorted({each for each in found if found.count(each) > 1})
    return f"missing {missing[:20]}, more than once {twice[:20]}"


def in_child(work: Callable[[], Any]) -> Any:
    """Dead, RuntimeError."""
    return answer_of(*fork(work))


def load_modules() -> None:
    """Those that a query takes, so that no child loads them itself: that takes a second."""

    def names() -> list[str]:
        campaign.run_all([*range(KEYS)])
        return list(sys.modules)

    with tempfile.TemporaryDirectory() as place:
        campaign = Campaign(Path(place, "data"), "source", 0)
        for name in in_child(names):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def main(folder: Path, role: str, seed: int, kills: int) -> None:
    with none_left():
        load_modules()
        campaign = Campaign(folder, role, seed)
        try:
            campaign.run(kills)
            campaign.finish()
        except BaseException:
            print(*campaign.killed, sep="\n")
            print("failures:", *campaign.failures, sep="\n", flush=True)
            raise
    print(f"{len(campaign.killed)} kills, {campaign.published} messages", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
