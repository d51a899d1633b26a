"""The folder of cursors is listed once, and again only when a topic could not be opened."""

from __future__ import annotations

from pathlib import Path

from plain_files import PlainFiles

from pulsarx.broker.folder.cursor_listing import CursorListing


class CountingFiles(PlainFiles):
    listed = 0

    def list(self, path: str) -> list[str]:
        self.listed += 1
        return super().list(path)


def test_many_cursors_are_opened_with_one_listing(tmp_path: Path) -> None:
    for name in ("7.1", "7.2", "70.5", "71.3.damaged", "8.4.unfinished", "other"):
        (tmp_path / name).touch()
    files = CountingFiles()
    listing = CursorListing(files, str(tmp_path))
    assert sorted(listing.take(7)) == ["7.1", "7.2"]
    assert listing.take(70) == ["70.5"]
    assert listing.take(71) == ["71.3.damaged"]
    assert listing.take(9) == []
    assert files.listed == 1


def test_what_killed_owners_had_begun_to_write_is_removed_once(tmp_path: Path) -> None:
    for name in ("7.1", "7.2.unfinished", "8.1.unfinished", "9.1.damaged"):
        (tmp_path / name).touch()
    listing = CursorListing(CountingFiles(), str(tmp_path))
    assert listing.take(7) == ["7.1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["7.1", "9.1.damaged"]
    (tmp_path / "8.1.unfinished").touch()  # of this owner
    listing.list_again()
    assert listing.take(7) == ["7.1"]
    assert (tmp_path / "8.1.unfinished").exists()


def test_what_could_not_be_opened_is_listed_again(tmp_path: Path) -> None:
    (tmp_path / "7.1").touch()
    listing = CursorListing(CountingFiles(), str(tmp_path))
    assert (listing.take(7), listing.take(7)) == (["7.1"], [])
    (tmp_path / "7.2").touch()
    listing.list_again()
    assert sorted(listing.take(7)) == ["7.1", "7.2"]
