"""The processes that used a folder through its last owner, and come to the next one.

Each brings acknowledgements that the last owner may not have recorded, and consumers that go on
where they were. Until all have done that no consumer gets a message, which may be one of those, and
nobody else takes their place in a subscription.

a process                    is awaited
that has ended               no longer
that does not come           for COMING_MS: it may be stopped
that has come                until it has brought all it has, BUSY_MS at most
"""

from __future__ import annotations

from functools import partial

from pulsarx._pycore.ground.failure_log import log_failure
from pulsarx._pycore.ground.file_system import open_descriptor
from pulsarx._pycore.ground.locks import Condition
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx.clock import Deadline
from pulsarx.ground.attempt import attempt, insist

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

COMING_MS = 1000
BUSY_MS = 10_000
_LOOK_SECONDS = 0.01


class Arrivals:
    """The awaited processes of one broker. Any thread may call."""

    def __init__(self, pids: Iterable[int]) -> None:
        """pids: of the processes that the last owner named."""
        self._changed = Condition()  # of what follows
        self._awaited = {each for each in pids if is_running(each)}
        self._has_come: set[int] = set()
        self._told: list[Callable[[], object]] = []
        self._coming = Deadline(COMING_MS)
        self._busy = Deadline(BUSY_MS)
        self._is_watched = False

    @property
    def is_over(self) -> bool:
        """Whether nobody is awaited."""
        return not self._awaited

    @property
    def awaited(self) -> set[int]:
        """Processes that have not brought all they have."""
        with self._changed:
            return set(self._awaited)

    def comes(self, pid: int) -> None:
        """A process is connected, and begins to bring what it has."""
        self._has_come.add(pid)

    def has_arrived(self, pid: int) -> None:
        """A process has brought all it has, or will not."""
        with self._changed:
            self._awaited.discard(pid)
            self._changed.notify_all()
        if not self._awaited:
            self._tell()

    def wait(self) -> None:
        """Return when nobody is awaited."""
        while not self.is_over:
            self.look()
            with self._changed:
                self._changed.wait_for(lambda: self.is_over, _LOOK_SECONDS)

    def tell(self, over: Callable[[], object]) -> None:
        """Call over() when nobody is awaited any more, in any thread; at once where that is so. It
        may only enqueue. RuntimeError: there is no thread to await them with."""
        with self._changed:
            self._told.append(over)
            begins = not self._is_watched and not self.is_over
            self._is_watched = self._is_watched or begins
        if begins:
            try:
                OwnThread(partial(insist, self.wait), "pulsarx-arrivals").start()
            except BaseException:  # no more threads
                with self._changed:
                    self._is_watched = False
                    self._told = [each for each in self._told if each is not over]
                raise
        if self.is_over:
            self._tell()

    def look(self) -> None:
        """Await those no longer that have ended, or are late. A caller that waits calls it again
        and again."""
        with self._changed:
            late = self._awaited - self._has_come if self._coming.expired() else set()
            if self._busy.expired():
                late = set(self._awaited)
            gone = {each for each in self._awaited if not is_running(each)}
        for each in late | gone:
            self.has_arrived(each)

    def _tell(self) -> None:
        with self._changed:
            told, self._told = self._told, []
        for each in told:
            failure = attempt(each)  # consumers wait for each of them
            if failure is not None:
                log_failure("pulsarx", failure, "what waits for other processes: %s", each)


def is_running(pid: int) -> bool:
    """Whether a process of this machine has not ended; one that its parent has not asked for yet
    has."""
    try:
        with open(f"/proc/{pid}/stat", "rb", opener=open_descriptor) as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False
