"""Facts about the room that a folder keeps for what frees room: whose it is while it is spent."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest
from sleeping_thread import until_asleep

from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx.broker.folder.reserve import with_reserve
from pulsarx.testing.faults import fault_plan

SIZE = 1 << 16


@pytest.fixture
def reserve(tmp_path: Path) -> Path:
    return tmp_path / "reserve"


@pytest.fixture
def files(reserve: Path) -> FileSystem:
    made = FileSystem()
    made.keep_reserve(str(reserve.parent), reserve.name, SIZE)
    assert reserve.stat().st_size == SIZE
    return made


class Full:
    """An action that finds no room, and then looks whether the reserve keeps any."""

    def __init__(self, files: FileSystem, reserve: Path) -> None:
        self.files = files
        self.reserve = reserve
        self.is_tried = False

    def __call__(self) -> bool:
        if not self.is_tried:
            self.is_tried = True
            raise OSError(errno.ENOSPC, "full")
        self.files.fill_reserve()  # as another thread does that has committed something
        return self.reserve.exists()


def test_what_has_the_room_of_the_reserve_has_it_until_it_is_done(
    files: FileSystem, reserve: Path
) -> None:
    """Another thread filled the reserve between the two tries, and the second found no room."""
    assert with_reserve(files, Full(files, reserve)) is False
    assert reserve.stat().st_size == SIZE


def test_the_last_that_spends_the_reserve_fills_it(files: FileSystem, reserve: Path) -> None:
    outer, left = Full(files, reserve), []

    def spend() -> None:
        outer()
        assert with_reserve(files, Full(files, reserve)) is False
        left.append(reserve.exists())

    with_reserve(files, spend)
    assert left == [False] and reserve.stat().st_size == SIZE


def test_what_fails_twice_gives_the_reserve_back(files: FileSystem, reserve: Path) -> None:
    def fail() -> None:
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full"):
        with_reserve(files, fail)
    assert reserve.stat().st_size == SIZE


def test_a_reserve_that_grows_just_now_is_given_up_whole(files: FileSystem, reserve: Path) -> None:
    """The file was removed while it grew: it took room until it was closed, and nobody had it."""
    reserve.unlink()
    stalled: list[int] = []
    with fault_plan() as plan:

        def spend() -> None:
            assert files.spend_reserve()
            stalled.append(plan.stalled())

        plan.stall("allocate")
        filling = threading.Thread(
            target=lambda: files.keep_reserve(str(reserve.parent), reserve.name, SIZE)
        )
        filling.start()
        while not plan.stalled():
            pass
        spending = threading.Thread(target=spend)
        spending.start()
        until_asleep(spending)
        plan.release()
        filling.join()
        spending.join()
    assert stalled == [0]
    assert not reserve.exists()
    files.end_spending()
    assert reserve.stat().st_size == SIZE
