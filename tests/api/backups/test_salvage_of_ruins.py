"""Whatever is damaged: a salvage loses nothing in silence, and makes up nothing."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from seeds import seeds
from various_topics import OTHER, lose_names, make, opened, read_whole

import pulsarx
from pulsarx import errors
from pulsarx.backups import check, salvage
from pulsarx.backups.contents import Salvaged

TOPICS = ("t", OTHER, "keyed", *(f"parts-partition-{index}" for index in range(4)))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("whole"))


def messages_of(client: pulsarx.Client, topics: tuple[str, ...]) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    for topic in topics:
        found.update(read_whole(client, topic))
    return found


@pytest.fixture(scope="module")
def published(whole: Path) -> Counter[bytes]:
    copy = Path(shutil.copytree(whole, whole.parent / "copy"))
    with opened(copy) as client:
        return messages_of(client, TOPICS)


def lose_marker(folder: Path) -> None:
    (folder / "PULSARX").unlink()


def lose_nothing(folder: Path) -> None:
    pass


def files_of(folder: Path) -> list[Path]:
    found = (each for each in folder.rglob("*") if each.is_file() and each.stat().st_size)
    return sorted(found)


def flip(chance: random.Random, path: Path) -> None:
    """Change one bit, of every second file in its header."""
    data = bytearray(path.read_bytes())
    end = len(data) if chance.random() < 0.5 else min(len(data), 4096)
    data[chance.randrange(end)] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def ruin(chance: random.Random, folder: Path) -> None:
    """Damage a file of a folder badly."""
    path = chance.choice(files_of(folder))
    data = bytearray(path.read_bytes())
    kind = chance.choice(("zeros", "cut", "another", "gone"))
    at = chance.randrange(len(data)) // 512 * 512
    if kind == "gone":
        path.unlink()
        return
    if kind == "zeros":
        data[at : at + 512] = bytes(len(data[at : at + 512]))
    elif kind == "cut":
        del data[at:]
    else:
        data = bytearray(chance.choice(files_of(folder)).read_bytes())
    path.write_bytes(data)


def salvaged(folder: Path, target: Path) -> tuple[Salvaged, Counter[bytes]]:
    """The report, and the messages of all topics that it says are found."""
    found = salvage(folder, target)
    check(target)
    with opened(target) as client:
        return found, messages_of(client, tuple(each.topic for each in found.found))


@pytest.mark.parametrize("seed", seeds(20))
@pytest.mark.parametrize("lose", [lose_names, lose_marker, lose_nothing])
def test_bits_that_flip_lose_nothing_in_silence(
    lose: Callable[[Path], None],
    seed: int,
    whole: Path,
    published: Counter[bytes],
    tmp_path: Path,
) -> None:
    chance = random.Random(seed)
    folder = Path(shutil.copytree(whole, tmp_path / "f"))
    lose(folder)
    for path in chance.sample(files_of(folder), chance.choice((1, 3, 10))):
        flip(chance, path)
    found, got = salvaged(folder, tmp_path / "made")
    assert not got - published, "messages that nobody published"
    told = [each for each in found.damage if each.what not in ("marker", "catalogue")]
    if published - got:
        assert told, f"lost in silence: {published - got}"


@pytest.mark.parametrize("seed", seeds(20))
def test_ruins_give_what_they_hold_or_nothing(
    seed: int, whole: Path, published: Counter[bytes], tmp_path: Path
) -> None:
    chance = random.Random(seed)
    folder = Path(shutil.copytree(whole, tmp_path / "f"))
    chance.choice((lose_names, lose_marker, lose_nothing))(folder)
    for _ in range(chance.choice((1, 5, 30))):
        ruin(chance, folder)
    try:
        _, got = salvaged(folder, tmp_path / "made")
    except errors.FolderError:
        assert not (tmp_path / "made").exists()
        return
    # A ledger that lies there twice is one.
    assert not got - published, "messages that nobody published"
