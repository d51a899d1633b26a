"""The processes of the simulation: each is a real broker of the folder, its owner's or a guest's,
and a real client, whose threads are tasks of the scheduler and whose socket is a wire.

What is not real: threads, locks and waiting (`scheduler`), the socket (`wire`), and the greeting of
a guest, which the control socket does. A killed process is abandoned as a forked child abandons
what is its parent's: nothing is closed or written, its lock and its end of each wire are let go.
"""

from __future__ import annotations

import _thread
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import seeded_scheduler as simulated
import simulated_wire as wire
from seeded_scheduler import Owner, Scheduler

import pulsarx
from pulsarx import errors
from pulsarx._pycore.ground.clock_core import ManualClockCore
from pulsarx._pycore.ground.interval_job import IntervalJob
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx.broker import runtime
from pulsarx.broker.broker import Broker
from pulsarx.broker.folder import data_directory
from pulsarx.broker.runtime import BrokerSettings
from pulsarx.client import Client
from pulsarx.ground.attempt import attempt
from pulsarx.processes.guest import (
    attached_consumer,
    connection,
    folders,
    owner_connection,
    producers,
)
from pulsarx.processes.guest import broker as guest_broker
from pulsarx.processes.guest import subscription as guest_subscription
from pulsarx.processes.guest import topic as guest_topic
from pulsarx.processes.owner import arrivals, service
from pulsarx.randomness import Randomness

LOOK = 0.2  # how often, of a step, one looks who may have been woken natively
ADDRESS = "simulated"
# Small ledgers, so that a few messages already cross from one to the next.
OPTIONS = [
    pulsarx.BrokerOptions(
        managed_ledger_max_entries_per_ledger=7, broker_deduplication_enabled=each
    )
    for each in (False, True)
]


class Process(Owner):
    """One process: its number, clock, broker and client."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.pid = 1000 + number
        self.name = f"p{number}"
        self.clock = ManualClockCore(world.scheduler.now_ms)
        self.broker: Any = None  # what its client uses
        self.host: Broker | None = None  # that owns the folder
        self.client: Any = None
        self.wires: list[wire.End] = []  # its ends
        self.lock = simulated.Lock()  # of its guest's folders

    def settings(self) -> BrokerSettings:
        """Those of its client. The clock is its own, and no business of others."""
        seed = self.world.scheduler.random.getrandbits(32)
        made = BrokerSettings(self.clock, Randomness(seed), "os", None, self.world.options)
        made._asked = [each for each in made._asked if each not in ("clock", "randomness")]
        return made

    def start(self) -> None:
        """Open the folder: as its owner, where there is none. By a task."""
        try:
            self.broker = self.own()
        except errors.FolderOwnedError:
            key = f"{self.pid} {self.world.folder}"
            self.broker = folders.join(key, self.world.folder, self.settings(), 30, True)
            if not self.broker.is_guest:
                self.host = self.broker
        self.client = ProcessClient(self)

    def own(self) -> Broker:
        """A broker that owns the folder. FolderOwnedError: another process does."""
        broker = Broker(self.world.folder, self.settings())
        self.host = broker
        broker.directory.announce(broker.catalogue.epoch, ADDRESS)
        return broker

    def fire(self) -> None:
        """Let the next timer of its clock fire."""
        self.clock.fire_next(self.world.scheduler.now_ms)


class ProcessClient(Client):
    def __init__(self, process: Process) -> None:
        self._process = process
        super().__init__(process.world.folder)

    def _acquire(self, *_: object) -> Any:
        return self._process.broker


class World:
    """All processes of one history, and their folder."""

    def __init__(self, folder: Path, seed: int, deduplicates: bool = False) -> None:
        self.options = OPTIONS[deduplicates]
        self.tell_late: Callable[[int], object] = _nobody
        self.tell_arrived: Callable[[int], object] = _nobody
        self.folder = str(folder)
        self.scheduler = Scheduler(seed)
        self.processes: list[Process] = []
        self.dead: list[Process] = []  # kept, so that nothing of them is finalized meanwhile

    def new_process(self) -> Process:
        made = Process(self, len(self.processes) + len(self.dead))
        self.processes.append(made)
        self.scheduler.spawn(made.start, made)
        return made

    def owner(self) -> Process | None:
        return next((each for each in self.processes if each.host is not None), None)

    def find(self, pid: int) -> Process | None:
        return next((each for each in self.processes if each.pid == pid), None)

    def kill(self, process: Process) -> None:
        """End a process as SIGKILL does."""
        self.processes.remove(process)
        self.dead.append(process)
        for each in process.wires:
            each.close()
        before, self.scheduler.acting = self.scheduler.acting, None
        try:
            self._abandon(process)
        finally:
            self.scheduler.acting = before
        self.scheduler.end(process)

    def do_last_things(self, process: Process) -> None:
        """Have some threads of an owner do the next thing that they were sent, and tell nobody: as
        when it is killed behind what they write to files."""
        if process.is_stopped:
            return
        for each in process.wires:
            each.is_dying = True
        for each in process.wires:
            if each.came and each.reader is not None and self.scheduler.random.random() < 0.7:
                self.scheduler.resume(each.reader)

    def _abandon(self, process: Process) -> None:
        if process.client is not None:
            process.client._owner.forgotten.cancel()
        for each in {
            id(each): each for each in (process.broker, process.host) if each is not None
        }.values():
            each.abandon()
            directory: Any = each.directory
            directory.abandon()

    def served_end(self, guest: Process) -> wire.End | None:
        """The owner's end of the wire of a guest; None: it has none."""
        owner = self.owner()
        ends = [] if owner is None else owner.wires
        return next((each for each in ends if each.peer in guest.wires[-1:]), None)

    def connect(self, guest: Process, owner: Process) -> wire.End:
        """A connection of a guest, which the owner serves."""
        one, other = wire.connected()
        guest.wires.append(one)
        owner.wires.append(other)
        host = owner.host
        assert host is not None
        before, self.scheduler.acting = self.scheduler.acting, owner
        try:
            host.runtime.arrivals.comes(guest.pid)
            if not service.take_guest(host, other, guest.pid):  # type: ignore[arg-type]
                other.close()
        finally:
            self.scheduler.acting = before
        return one

    def step(self) -> bool:
        """Let one of those go on that can; False: nobody can."""
        scheduler = self.scheduler
        choices = scheduler.ready()
        for each in self.processes:
            if not each.is_stopped:
                due_ms = each.clock.next_due_ms()
                if due_ms is not None and due_ms <= scheduler.now_ms:
                    choices.append(partial(self._fire, each))
        scheduler.steps += 1
        if not choices:
            return scheduler.wake_all()
        scheduler.random.choice(choices)()
        if scheduler.random.random() < LOOK:
            scheduler.wake_one()
        return True

    def _fire(self, process: Process) -> None:
        self.scheduler.resume(self.scheduler.spawn(process.fire, process))

    def next_due(self) -> int | None:
        """When somebody has something to do, where nobody has now."""
        found = [self.scheduler.next_due()]
        found += [each.clock.next_due_ms() for each in self.processes if not each.is_stopped]
        return min((each for each in found if each is not None), default=None)

    def advance_to(self, now_ms: int) -> None:
        self.scheduler.now_ms = max(now_ms, self.scheduler.now_ms)
        for each in self.processes:
            each.clock.set_now_ms(self.scheduler.now_ms)

    def end(self) -> None:
        for each in list(self.processes):
            self.kill(each)
        folders._guests.clear()
        for process in self.dead:
            if process.host is not None and process.host._topics is not None:
                topics: list[Any] = list(process.host._topics._topics.values())
                found = [each for topic in topics for each in topic.subscriptions.values()]
                for subscription in found:  # entries, which no collector finds in a cycle
                    attempt(subscription.dispatcher.release)
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            self.scheduler.unwind()
        finally:
            logging.disable(before)


def world() -> World:
    assert _world is not None
    return _world


_world: World | None = None


@contextmanager
def using(made: World) -> Iterator[World]:
    """Make it the one of whatever asks the system here."""
    global _world
    _world = made
    simulated.use(made.scheduler)
    try:
        yield made
    finally:
        made.end()
        _world = None
        simulated.use(None)


# What stands for the system ----------------------------------------------------------------------


class _System:
    """The module `os` of a process, whose number is its own."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def getpid(self) -> int:
        if _world is None:
            return os.getpid()
        acting = _world.scheduler.acting
        return acting.pid if isinstance(acting, Process) else 0


class _Registry:
    """The module `registry` of a guest that becomes the owner."""

    def acquire(self, _: str, __: str, ___: BrokerSettings) -> Broker:
        acting = world().scheduler.acting
        assert isinstance(acting, Process)
        return acting.own()

    def release(self, _: str, broker: Broker) -> None:
        broker.close()


class _ProcessLock:
    """A lock of which each process has its own."""

    def _mine(self) -> simulated.Lock:
        acting = world().scheduler.acting
        assert isinstance(acting, Process)
        return acting.lock

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        return self._mine().acquire(blocking, timeout)

    def release(self) -> None:
        self._mine().release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _ControlPlane:
    """Calls run where they are made: no task is the main thread."""

    def perform(self, function: Callable[..., Any], arguments: tuple[Any, ...] = ()) -> Any:
        return function(*arguments)

    def hold(self) -> None: ...
    def let_go(self) -> None: ...


def greet_owner(directory: Any, owner: Any, deadline: Any) -> tuple[wire.End, dict[str, Any]]:
    """As guest.owner_connection.greet_owner and ControlSocket."""
    made = world()
    guest = made.scheduler.acting
    assert isinstance(guest, Process)
    made.scheduler.pause()
    found = made.find(owner.pid)
    if found is None or found.host is None or found.host.directory.epoch != owner.epoch:
        raise owner_connection.NoOwner("it has gone")
    left = deadline.remaining_ms()
    if not made.scheduler.block(lambda: not found.is_stopped or not found.is_alive, left):
        raise errors.Timeout(detail="the owner does not answer")
    if not found.is_alive:
        raise owner_connection.NoOwner("it has gone")
    told = {**found.host.settings.shared(), "manual_clock": False, "pid": found.pid}
    return made.connect(guest, found), told


def is_running(pid: int) -> bool:
    return world().find(pid) is not None


def process_clock() -> ManualClockCore:
    acting = world().scheduler.acting
    assert isinstance(acting, Process)
    return acting.clock


def process_randomness() -> Randomness:
    return Randomness(world().scheduler.random.getrandbits(32))


class Threads:
    """Stands for `_thread.start_new_thread` in the thread of the simulation: the jobs of a queue
    are run by the scheduler. Threads of others start."""

    def __init__(self) -> None:
        self._start = _thread.start_new_thread
        self._thread = threading.get_ident()
        self._begun: list[tuple[Callable[..., object], str]] = []

    def __call__(self, function: Any, arguments: Any, *others: Any) -> Any:
        queue = getattr(arguments[0], "__self__", None) if arguments else None
        if threading.get_ident() != self._thread or not isinstance(queue, JobQueue):
            return self._start(function, arguments, *others)
        self._begun.append((function, arguments[1]))
        if _world is not None and _world.scheduler.acting is not None:
            _world.scheduler.queues.append((queue, _world.scheduler.acting))
        return 0

    def have_begun(self) -> None:
        """Whoever counts threads that were started is told that they have begun."""
        begun, self._begun = self._begun, []

        def begin() -> None:
            for function, name in begun:
                function(_nothing, name)

        done = _thread.allocate_lock()
        done.acquire()

        def begin_all() -> None:
            begin()
            done.release()

        self._start(begin_all, ())
        done.acquire()


def _nothing() -> None:
    pass


def _nobody(_: int) -> None:
    pass


class Interval(IntervalJob):
    """A flush that runs a while after it was asked for, by the clock of its process."""

    due: Any  # as the stub has nothing that only its clock and its queue call

    def __init__(self, clock: Any, jobs: JobQueue, interval_ms: int, job: Any) -> None:
        super().__init__(clock, jobs, interval_ms, job)
        self._interval_ms = interval_ms
        self._is_armed = False

    def arm(self) -> int:
        if not self._is_armed:
            self._is_armed = True
            process_clock().call_after(self._interval_ms, self.due)
        return 0

    def run(self) -> None:
        self._is_armed = False
        super().run()  # type: ignore[misc]


class Arrivals(arrivals.Arrivals):
    """Tells of processes that have brought all they have, and of those that are not waited for any
    more although they live."""

    _looks = False

    def has_arrived(self, pid: int) -> None:
        super().has_arrived(pid)
        if not self._looks:
            world().tell_arrived(pid)

    def look(self) -> None:
        before, self._looks = self.awaited, True
        super().look()
        self._looks = False
        for pid in before - self.awaited:
            if is_running(pid):
                world().tell_late(pid)


REPLACED: tuple[tuple[Any, dict[str, Any]], ...] = (
    (connection, {"Latch": simulated.Latch, "Condition": simulated.Condition,
                  "Event": simulated.Event, "Deadline": simulated.Deadline}),
    (folders, {"registry": _Registry(), "Event": simulated.Event, "Deadline": simulated.Deadline,
               "_lock": _ProcessLock(), "_guests": {}}),
    (owner_connection, {"OwnerLink": wire.Link, "shut": wire.shut}),
    (guest_broker, {"Condition": simulated.Condition, "OwnThread": simulated.OwnThread,
                    "JobQueue": simulated.Jobs, "Deadline": simulated.Deadline,
                    "system_clock": process_clock, "Randomness": process_randomness,
                    "registry": _Registry(), "control_plane": _ControlPlane(),
                    "greet_owner": greet_owner, "os": _System()}),
    (producers, {"Event": simulated.Event, "Lock": simulated.Lock, "RLock": simulated.Lock,
                 "Deadline": simulated.Deadline}),
    (guest_subscription, {"Event": simulated.Event, "Deadline": simulated.Deadline}),
    (attached_consumer, {"Lock": simulated.Lock}),
    (guest_topic, {"RLock": simulated.Lock}),
    (service, {"OwnThread": simulated.OwnThread, "Event": simulated.Event, "Lock": simulated.Lock,
               "OwnerLink": wire.Link, "shut": wire.shut, "Deadline": simulated.Deadline,
               "_making": simulated.Lock()}),
    (arrivals, {"OwnThread": simulated.OwnThread, "Condition": simulated.Condition,
                "Deadline": simulated.Deadline, "is_running": is_running,
                "Arrivals": Arrivals}),
    (runtime, {"JobQueue": simulated.BrokerJobs, "IntervalJob": Interval}),
    (data_directory, {"os": _System()}),
)  # fmt: skip


@contextmanager
def simulation() -> Iterator[None]:
    """Inside, in this thread, guests and owners are those of a World."""
    threads = Threads()
    kept = [(module, name, getattr(module, name)) for module, names in REPLACED for name in names]
    for module, names in REPLACED:
        for name, value in names.items():
            setattr(module, name, value)
    _thread.start_new_thread = threads
    try:
        yield
    finally:
        threads.have_begun()
        _thread.start_new_thread = threads._start
        for module, name, value in kept:
            setattr(module, name, value)
