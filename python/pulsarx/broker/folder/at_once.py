"""Runs many steps that wait for the disk, several at a time. Anybody may call."""

from __future__ import annotations

from pulsarx._pycore.ground.threads import OwnThread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# One after another each costs flushes of the device, about 3 ms; many at a time share them.
_THREADS_MAX = 16
_ALONE_MAX = 3


def take_at_once(steps: Sequence[Callable[[], object]]) -> None:
    """All are taken when it returns. Raises what the first one raised that failed; the others were
    taken, or were not begun."""
    waiting = list(reversed(steps))
    failures: list[BaseException] = []

    def work() -> None:
        while waiting and not failures:
            try:
                step = waiting.pop()
            except IndexError:
                return  # another thread took the last one
            try:
                step()
            except BaseException as error:
                failures.append(error)

    threads = []
    for _ in range(min(_THREADS_MAX, len(steps) // _ALONE_MAX)):
        thread = OwnThread(work, "pulsarx-at-once")
        try:
            thread.start()
        except RuntimeError:
            break  # no more threads
        threads.append(thread)
    work()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
