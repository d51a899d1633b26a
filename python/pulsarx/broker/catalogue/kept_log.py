"""Keeps the catalogue this process read last without owning it, for the next request.

A job that attaches or plans again and again without owning the folder would else read a large
catalogue whole each time. Used by Broker, `attach` and Spark's plans. At most one log is kept, and
it is checked before it is used again, because the path may name another folder by then.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.catalogue.log import CatalogueLog
    from pulsarx.broker.folder.data_directory import DataDirectory
    from pulsarx.broker.folder.memory_directory import MemoryDirectory

_kept: dict[str, CatalogueLog] = {}


def keep_log(directory: DataDirectory | MemoryDirectory, log: CatalogueLog) -> None:
    """Keep the log of a broker that is closed and uses it no more."""
    _kept.clear()
    _kept[directory.catalogue_path] = log


def take_log(directory: DataDirectory) -> CatalogueLog | None:
    """The log, for the caller alone and up to date; None: it has to be loaded."""
    log = _kept.pop(directory.catalogue_path, None)
    if log is None or not log.resume(directory.files, directory.folder_id):
        return None
    return log
