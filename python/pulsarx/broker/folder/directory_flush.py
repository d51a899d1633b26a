"""flush_directories: makes the names in many directories durable at once. Anybody may call."""

from __future__ import annotations

from functools import partial

from pulsarx.broker.folder.at_once import take_at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsarx.broker.folder.file_operations import FileOperations


def flush_directories(files: FileOperations, paths: Iterable[str]) -> None:
    """Durable when it returns. OSError: of the first that failed."""
    take_at_once([partial(files.flush_directory, path) for path in sorted(set(paths))])
