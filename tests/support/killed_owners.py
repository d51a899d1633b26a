"""Folders as a kill of their owner leaves them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pulsarx
from pulsarx.testing import inspect


def left_by_kill(client: pulsarx.Client, to: Path) -> Path:
    """What a kill of the process that owns the client's folder would leave now, copied; the client
    goes on. The background is done first, as a file that goes while all are copied cannot be."""
    inspection = inspect(client)
    inspection.settle()
    path = inspection.directory.path
    assert path is not None
    return Path(shutil.copytree(path, to, ignore=shutil.ignore_patterns("*.sock")))
