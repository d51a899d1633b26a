"""Facts about where a client logs to."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from pulsarx.enumerations import LoggerLevel
from pulsarx.options.loggers import ConsoleLogger, FileLogger, check_logger, logger_of


def test_without_a_logger_it_is_the_one_named_after_us() -> None:
    assert logger_of(None) is logging.getLogger("pulsarx")
    mine = logging.getLogger("mine")
    assert logger_of(mine) is mine


def test_the_console_gets_what_is_of_its_level(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logger_of(ConsoleLogger(LoggerLevel.Warn))
    logger.info("too little")
    logger.warning("enough")
    written = capsys.readouterr().out
    assert "enough" in written
    assert "too little" not in written
    assert ConsoleLogger().log_level is LoggerLevel.Info


def test_a_file_is_opened_with_the_first_text(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    logger = logger_of(FileLogger(LoggerLevel.Error, str(path)))
    assert not path.exists()
    logger.error("broken")
    logger.handlers[0].close()
    assert "broken" in path.read_text()


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [(ConsoleLogger, (1,)), (FileLogger, (1, "x")), (FileLogger, (LoggerLevel.Info, 5))],
)
def test_wrong_types_are_value_errors(kind: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError):
        kind(*arguments)


def test_only_loggers_are_loggers() -> None:
    for logger in (None, ConsoleLogger(), FileLogger(LoggerLevel.Info, "x"), logging.getLogger()):
        check_logger(logger)
    with pytest.raises(ValueError, match="logger must be"):
        check_logger(print)
