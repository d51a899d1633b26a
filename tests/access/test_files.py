"""What docs/security.md says of files is so: who of the machine may read and change a folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import pulsarx
from pulsarx.backups import backup, restore, salvage


@pytest.fixture
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """The umask of the process in this test."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def use(folder: Path) -> None:
    """Have all kinds of files made in it."""
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("orders", "billing", pulsarx.ConsumerType.Shared)
        producer = client.create_producer("orders")
        client.admin.topics.set_deduplication("orders", True)
        producer.send_many([b"one", b"two"])
        consumer.acknowledge(consumer.receive(60_000))
        assert mode(folder / "control.sock") == 0o600


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o027], ids=oct, indirect=True)
def test_a_new_folder_is_private(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "above" / "shop"
    use(folder)
    assert mode(folder) == 0o700
    assert mode(tmp_path / "above") == 0o755 & ~umask
    use(folder)
    assert mode(folder) == 0o700


@pytest.mark.parametrize("umask", [0o022], ids=oct, indirect=True)
@pytest.mark.parametrize("wanted", [0o755, 0o750, 0o700], ids=oct)
def test_a_folder_that_is_made_before_stays_as_it_is(
    tmp_path: Path, umask: int, wanted: int
) -> None:
    tmp_path.chmod(wanted)
    use(tmp_path)
    assert mode(tmp_path) == wanted


@pytest.mark.parametrize(
    ("umask", "others"), [(0o022, 0o055), (0o077, 0o000)], ids=["022", "077"], indirect=["umask"]
)
def test_what_lies_in_a_folder_is_as_the_umask_says(
    tmp_path: Path, umask: int, others: int
) -> None:
    """Nobody else may write; with 077 nobody else may read."""
    folder = tmp_path / "shop"
    use(folder)
    found = {path.relative_to(folder): mode(path) & 0o077 & ~others for path in folder.rglob("*")}
    assert len(found) > 8
    assert not {path: oct(rights) for path, rights in found.items() if rights}


@pytest.mark.parametrize("umask", [0o022], ids=oct, indirect=True)
@pytest.mark.parametrize("wanted", [None, 0o750], ids=["new", "made before"])
@pytest.mark.parametrize("copy", [backup, restore, salvage], ids=lambda each: each.__name__)
def test_a_copy_is_as_private_as_a_folder(
    tmp_path: Path, umask: int, wanted: int | None, copy: object
) -> None:
    """An empty target that was private used to be readable for all when the copy was there."""
    source, target = tmp_path / "shop", tmp_path / "copy"
    use(source)
    if wanted is not None:
        target.mkdir(wanted)
    assert callable(copy)
    copy(source, target)
    assert mode(target) == (wanted or 0o700)
