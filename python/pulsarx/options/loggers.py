"""The loggers of a client: the classes of the official one, mapped onto the module `logging`."""

from __future__ import annotations

from pulsarx.enumerations import LoggerLevel
from pulsarx.options.argument_check import check_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Handler, Logger

LOGGING_LEVELS = {
    LoggerLevel.Debug: 10,
    LoggerLevel.Info: 20,
    LoggerLevel.Warn: 30,
    LoggerLevel.Error: 40,
}


class ConsoleLogger:
    """The standard output, for the log of a cluster's client. A folder logs through `logging`."""

    def __init__(self, log_level: LoggerLevel = LoggerLevel.Info) -> None:
        """Keep a level.

        Args:
            log_level: A LoggerLevel.

        Raises:
            ValueError: It is none.
        """
        check_type(LoggerLevel, log_level, "log_level")
        self.log_level = log_level


class FileLogger:
    """A file, for the log of a cluster's client. A folder logs through `logging`."""

    def __init__(self, log_level: LoggerLevel, log_file: str) -> None:
        """Keep a level and a file.

        Args:
            log_level: A LoggerLevel.
            log_file: The path of the file.

        Raises:
            ValueError: An argument is of the wrong type.
        """
        check_type(LoggerLevel, log_level, "log_level")
        check_type(str, log_file, "log_file")
        self.log_level = log_level
        self.log_file = log_file


def check_logger(logger: object) -> None:
    """ValueError unless None, a `logging.Logger`, a ConsoleLogger or a FileLogger."""
    if logger is None or isinstance(logger, (ConsoleLogger, FileLogger)):
        return
    import logging

    if not isinstance(logger, logging.Logger):
        raise ValueError(
            "logger must be a logging.Logger, a ConsoleLogger, a FileLogger or None, "
            f"not {type(logger).__name__}"
        )


def logger_of(logger: Logger | ConsoleLogger | FileLogger | None) -> Logger:
    """The `logging.Logger` to use; without one given, the one named `pulsarx`."""
    import logging
    import sys

    if logger is None:
        return logging.getLogger("pulsarx")
    if isinstance(logger, logging.Logger):
        return logger
    handler: Handler
    if isinstance(logger, FileLogger):
        handler = logging.FileHandler(logger.log_file, encoding="utf-8", delay=True)
    else:
        handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-5s %(name)s | %(message)s"))
    # Not registered by name: two clients may log to two places.
    made = logging.Logger("pulsarx", LOGGING_LEVELS[logger.log_level])
    made.addHandler(handler)
    return made
