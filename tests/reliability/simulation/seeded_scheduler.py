"""One thread of control for many: greenlets that a seed chooses among, and what stands for threads,
locks and the time that callers wait in code that is run by them.

A task runs until it blocks, so whatever the product does between two waits is one step.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from pulsarx._pycore.ground.job_queue import JobQueue


class Hang(AssertionError):
    """Somebody waits for what does not come."""


class Owner:
    """The process that a task, a queue of jobs or a timer belongs to."""

    is_alive = True
    is_stopped = False


class Task(greenlet):
    """One thread of one process. The scheduler switches to it; it switches back when it blocks."""

    def __init__(self, scheduler: Scheduler, work: Callable[[], object], process: Owner) -> None:
        super().__init__(self._work, scheduler.home)
        self.work = work
        self.process = process
        self.until: Callable[[], object] | None = None  # what it waits for; None: it is ready
        self.due_ms: int | None = None  # how long
        self.failure: BaseException | None = None

    def _work(self) -> None:
        try:
            self.work()
        except GreenletExit:
            pass
        except BaseException as error:
            self.failure = error


class Scheduler:
    """Chooses by its seed who goes on. `now_ms` is the time of everybody."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.home = getcurrent()
        self.now_ms = 1_704_067_200_000
        self.tasks: list[Task] = []
        self.queues: list[tuple[JobQueue, Owner]] = []
        self.ended: list[Task] = []  # of killed processes
        self.sleepers: list[Task] = []
        self.running: set[JobQueue] = set()  # whose jobs a task runs
        self.acting: Owner | None = None  # the process of what runs now
        self.steps = 0

    def spawn(self, work: Callable[[], object], process: Owner | None = None) -> Task:
        owner = process or self.acting
        assert owner is not None
        task = Task(self, work, owner)
        self.tasks.append(task)
        return task

    def block(self, until: Callable[[], object], timeout_ms: int | None = None) -> bool:
        """Have others run until something is so; False: the time was over first."""
        if until():
            return True
        task = getcurrent()
        if not isinstance(task, Task):
            raise AssertionError("only a task may wait")
        if not task.process.is_alive:
            raise GreenletExit
        task.until = until
        task.due_ms = None if timeout_ms is None else self.now_ms + max(timeout_ms, 0)
        self.home.switch()
        task.until = task.due_ms = None
        return bool(until())

    def sleep(self, until: Callable[[], object], timeout_ms: int) -> bool:
        """Like block, at a place where a task may be woken by something native as well: it goes on
        once in a while, and at the latest when nobody else can. timeout_ms: below 0: for ever."""
        task = getcurrent()
        assert isinstance(task, Task)
        self.sleepers.append(task)
        try:
            return self.block(until, timeout_ms if timeout_ms >= 0 else None)
        finally:
            if task in self.sleepers:
                self.sleepers.remove(task)

    def wake_one(self) -> None:
        """Have one of those who sleep look."""
        awake = [each for each in self.sleepers if not each.process.is_stopped]
        if awake:
            self.resume(self.random.choice(awake))

    def wake_all(self) -> bool:
        """Have all of those who sleep look; whether somebody can go on since."""
        for each in list(self.sleepers):
            if each in self.sleepers and not each.process.is_stopped:
                self.resume(each)
        return bool(self.ready())

    def pause(self) -> None:
        """Let others go first, if the seed has it so."""
        moment = self.steps
        self.block(lambda: self.steps > moment)

    def ready(self) -> list[Callable[[], object]]:
        """What can be done now: a part of the work of some process each."""
        found: list[Callable[[], object]] = []
        for task in self.tasks:
            process = task.process
            if process.is_stopped:
                continue
            if (
                task.until is None
                or task.until()
                or (task.due_ms is not None and task.due_ms <= self.now_ms)
            ):
                found.append(lambda task=task: self.resume(task))  # type: ignore[misc]
        for queue, process in self.queues:
            if not process.is_stopped and queue not in self.running and not queue.idle:
                found.append(lambda q=queue, p=process: self._run_jobs(q, p))  # type: ignore[misc]
        return found

    def resume(self, task: Task) -> None:
        before, self.acting = self.acting, task.process
        try:
            task.switch()
        finally:
            self.acting = before
        if task.dead:
            self.tasks.remove(task)
            if task.failure is not None:
                raise task.failure

    def _run_jobs(self, queue: JobQueue, process: Owner) -> None:
        def run() -> None:
            try:
                queue.run_rest()
            finally:
                self.running.discard(queue)

        self.running.add(queue)
        self.resume(self.spawn(run, process))

    def next_due(self) -> int | None:
        """When somebody has waited long enough."""
        due = [
            task.due_ms
            for task in self.tasks
            if task.due_ms is not None and not task.process.is_stopped
        ]
        return min(due, default=None)

    def end(self, process: Owner) -> None:
        """A process is killed: none of its threads goes on."""
        process.is_alive = False
        self.queues = [each for each in self.queues if each[1] is not process]
        self.ended += [each for each in self.tasks if each.process is process]
        self.tasks = [each for each in self.tasks if each.process is not process]
        self.sleepers = [each for each in self.sleepers if each.process is not process]

    def unwind(self) -> None:
        """Give back what the threads of killed processes have on their stacks. What these processes
        had can do nothing any more."""
        for task in self.ended:
            self.acting = task.process
            while task and not task.dead:
                task.throw(GreenletExit)
        self.ended.clear()
        self.acting = None


current: Scheduler | None = None  # of the history that runs now


def scheduler() -> Scheduler:
    assert current is not None
    return current


def use(made: Scheduler | None) -> None:
    global current
    current = made


class Latch:
    def __init__(self) -> None:
        self.is_set = False
        self._told: list[Callable[[], object]] = []

    def set(self) -> None:
        self.is_set = True
        told, self._told = self._told, []
        for notify in told:
            notify()

    def tell(self, notify: Callable[[], object]) -> None:
        if self.is_set:
            notify()
        else:
            self._told.append(notify)

    def wait(self, timeout: float | None = None) -> bool:
        return scheduler().block(lambda: self.is_set, _ms(timeout))


class Event:
    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        return scheduler().block(lambda: self._is_set, _ms(timeout))


class Lock:
    """Also an RLock: who holds it may take it again."""

    def __init__(self) -> None:
        self._holder: Any = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me = getcurrent()
        if self._holder is not me:
            wait_ms = None if timeout < 0 else _ms(timeout)
            if self._holder is not None and not (
                blocking and scheduler().block(lambda: self._holder is None, wait_ms)
            ):
                return False
            self._holder = me
        self._count += 1
        return True

    def release(self) -> None:
        self._count -= 1
        if not self._count:
            self._holder = None

    def locked(self) -> bool:
        return self._holder is not None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Condition(Lock):
    def __init__(self) -> None:
        super().__init__()
        self._turn = 0

    def wait(self, timeout: float | None = None) -> bool:
        turn, count = self._turn, self._count
        self._holder, self._count = None, 0
        try:
            return scheduler().block(lambda: self._turn != turn, _ms(timeout))
        finally:
            self.acquire()
            self._count = count

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        wait_ms = _ms(timeout)
        until = None if wait_ms is None else scheduler().now_ms + wait_ms
        while not (found := predicate()):
            left = None if until is None else until - scheduler().now_ms
            if left is not None and left <= 0:
                break
            self.wait(None if left is None else left / 1000)
        return found

    def notify_all(self) -> None:
        self._turn += 1


class Deadline:
    def __init__(self, timeout_ms: float | None) -> None:
        self._due_ms = None if timeout_ms is None else scheduler().now_ms + max(timeout_ms, 0)

    def remaining_ms(self) -> float | None:
        return None if self._due_ms is None else max(self._due_ms - scheduler().now_ms, 0)

    def remaining_seconds(self) -> float | None:
        left = self.remaining_ms()
        return None if left is None else left / 1000

    def expired(self) -> bool:
        return self.remaining_ms() == 0


class OwnThread:
    def __init__(self, work: Callable[[], object], name: str) -> None:
        self._work = work
        self._task: Task | None = None

    def start(self) -> None:
        self._task = scheduler().spawn(self._work)

    def runs_here(self) -> bool:
        return getcurrent() is self._task

    def join(self) -> None:
        task = self._task
        if task is not None:
            scheduler().block(lambda: task.dead)


class Jobs(JobQueue):
    """A queue of jobs for which its users wait as for all else here."""

    def wait(self, deadline: Any = None) -> bool:
        left = None if deadline is None else deadline.remaining_ms()
        return scheduler().block(lambda: self.idle, left)


class BrokerJobs(JobQueue):
    """A queue of jobs that wait for nobody: who waits for them has them run at once."""

    def wait(self, deadline: Any = None) -> bool:
        self.run_rest()
        return True


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else -int(-seconds * 1000 // 1)
