"""What this process read last of a catalogue it does not own: a job that attaches again and again
without an owner would else read a large one whole each time. Used by Broker and `attach`.

One at most. It is looked over before it is used again: the folder may be another one by then.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.catalogue.log import CatalogueLog
    from pulsarx.broker.folder.data_directory import DataDirectory
    from pulsarx.broker.folder.memory_directory import MemoryDirectory

_kept: dict[str, CatalogueLog] = {}


def keep_log(directory: DataDirectory | MemoryDirectory, log: CatalogueLog) -> None:
    """Nobody else uses it (any more)."""
    _kept.clear()
    _kept[directory.catalogue_path] = log


def take_log(directory: DataDirectory) -> CatalogueLog | None:
    """The log, for the caller alone and up to date; None: it has to be loaded."""
    log = _kept.pop(directory.catalogue_path, None)
    if log is None or not log.resume(directory.files, directory.folder_id):
        return None
    return log
