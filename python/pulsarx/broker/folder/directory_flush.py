"""flush_directories: makes the names in many directories durable at once. Anybody may call."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsarx.broker.folder.file_operations import FileOperations

# Flushed one after another each costs a device's flush, about 3 ms; many at a time share it.
_THREADS_MAX = 16
_ALONE_MAX = 3


def flush_directories(files: FileOperations, paths: Iterable[str]) -> None:
    """Durable when it returns. OSError: of the first that failed."""
    waiting = sorted(set(paths), reverse=True)
    failures: list[BaseException] = []

    def work() -> None:
        while waiting and not failures:
            try:
                files.flush_directory(waiting.pop())
            except IndexError:
                return  # another thread took the last one
            except BaseException as error:
                failures.append(error)

    count = min(_THREADS_MAX, len(waiting) // _ALONE_MAX)
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
