"""Facts about tools/progress.py and what a bootstrap says."""

from __future__ import annotations

import progress
import pytest
from progress import Progress, say_seconds


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_a_step_says_what_is_done_of_all_and_the_time_left_every_few_seconds(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress("building", 4, weight=400) as step:
        for second in range(1, 13):
            clock.now += 1
            if second % 3 == 0:
                step.done(100)
            step.show()
    assert capsys.readouterr().err.splitlines() == [
        "building: 0 of 4 files",
        "building: 1 of 4 files, about 12 s left",
        "building: 2 of 4 files, about 8 s left",
        "building: 4 of 4 files, about 0 s left",
        "building: 4 files in 12 s",
    ]


def test_a_step_that_fails_is_not_said_to_be_over(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OSError), Progress("building", 4, weight=4):
        raise OSError
    assert capsys.readouterr().err.splitlines() == ["building: 0 of 4 files"]


def test_what_cannot_be_counted_says_how_long_it_takes(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    def is_over() -> bool:
        clock.now += 1
        return clock.now >= 110

    say_seconds("installing 3 packages", is_over)
    assert capsys.readouterr().err.splitlines() == [
        "installing 3 packages",
        "installing 3 packages: 4 s",
        "installing 3 packages: 8 s",
        "installing 3 packages: 10 s",
    ]
