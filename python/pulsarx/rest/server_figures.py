"""The figures of `/metrics` that are of the server and no topic: device, process, version, log, and
what went wrong. `metrics` asks, a thread of the server.
"""

from __future__ import annotations

import logging
import os
import resource
from contextlib import suppress
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.broker import Broker

_LEVELS = (logging.WARNING, logging.ERROR, logging.CRITICAL)
_STAT = Path("/proc/self/stat")
# Of the fields behind the name, which may hold spaces; numbered as in proc(5), from the third on.
_USER_TICKS, _SYSTEM_TICKS, _START_TICKS, _RESIDENT_PAGES = (each - 3 for each in (14, 15, 22, 24))


class LogCount(logging.Filter):
    """Counts what is said under the logger `pulsarx`, and holds nothing back. A filter, as a
    handler would take the place of the one that writes to standard error when there is none."""

    def __init__(self) -> None:
        super().__init__()
        self._counts = dict.fromkeys(_LEVELS, 0)

    def filter(self, record: logging.LogRecord) -> bool:
        for level in reversed(_LEVELS):
            if record.levelno >= level:
                self._counts[level] += 1
                break
        return True

    def rows(self) -> list[tuple[str, int]]:
        """The name of each level, and how many messages there were of it."""
        return [(logging.getLevelName(level).lower(), self._counts[level]) for level in _LEVELS]

    def begin(self) -> None:
        logging.getLogger("pulsarx").addFilter(self)

    def end(self) -> None:
        logging.getLogger("pulsarx").removeFilter(self)


def device_figures(broker: Broker) -> dict[str, float]:
    """The room on the device of the folder. Nothing of a folder in memory, or while the system
    does not tell."""
    directory = broker.runtime.directory
    if directory.ends_path is None:
        return {}
    try:
        found = os.statvfs(directory.path)
    except OSError:
        return {}
    return {
        "pulsarx_storage_free_bytes": found.f_bavail * found.f_frsize,
        "pulsarx_storage_capacity_bytes": found.f_blocks * found.f_frsize,
    }


def process_figures() -> dict[str, float]:
    """The standard metrics of a process, as far as the system tells them."""
    found: dict[str, float] = {"process_max_fds": resource.getrlimit(resource.RLIMIT_NOFILE)[0]}
    with suppress(OSError):
        found["process_open_fds"] = len(os.listdir("/proc/self/fd")) - 1  # that of the listing
    with suppress(OSError, ValueError, IndexError):
        fields = _STAT.read_text().rpartition(")")[2].split()
        ticks = os.sysconf("SC_CLK_TCK")
        spent = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
        found["process_cpu_seconds_total"] = spent / ticks
        found["process_resident_memory_bytes"] = int(fields[_RESIDENT_PAGES]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
        # Last: a hardened service may see no more of /proc than processes.
        found["process_start_time_seconds"] = _booted_at() + int(fields[_START_TICKS]) / ticks
    return found


def _booted_at() -> int:
    """When the system was started, in seconds since 1970."""
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith("btime "):
            return int(line.split()[1])
    raise ValueError("/proc/stat has no btime")


def server_figures(broker: Broker) -> dict[str, float]:
    """The value of each metric of the level SERVER that is known."""
    return {
        **device_figures(broker),
        "pulsarx_damage_found_total": broker.runtime.damage_count,
        "pulsarx_catalogue_failed": int(broker.catalogue.outcome_unknown),
        **process_figures(),
    }


def pulsarx_version() -> str:
    """The version that is installed; 0: it runs in a clone."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pulsarx")
    except PackageNotFoundError:
        return "0"
