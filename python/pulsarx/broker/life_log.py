"""The messages in which the broker tells of its life, under the logger `pulsarx`: INFO and DEBUG.
What went wrong is told elsewhere, where it is found."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger
    from typing import Any

DEBUG, INFO = 10, 20  # of the module logging


def listener(level: int) -> Logger | None:
    """The logger, if somebody wants what is told at this level. Where nobody has loaded `logging`
    nobody does, and it stays so: that is half of the time an import of the library takes."""
    find: Any = getattr(sys.modules.get("logging"), "getLogger", None)
    if find is None:
        return None  # or another thread is just loading it
    logger: Logger = find("pulsarx")
    return logger if logger.isEnabledFor(level) else None


def info(text: str, *arguments: object) -> None:
    logger = listener(INFO)
    if logger is not None:
        logger.info(text, *arguments)


def debug(text: str, *arguments: object) -> None:
    logger = listener(DEBUG)
    if logger is not None:
        logger.debug(text, *arguments)
