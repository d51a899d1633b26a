"""The folder of cursors is listed once, and again only for a cursor that was opened before."""

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
    assert sorted(listing.names_of(7)) == ["7.1", "7.2"]
    assert listing.names_of(70) == ["70.5"]
    assert listing.names_of(71) == ["71.3.damaged"]
    assert listing.names_of(9) == []
    assert files.listed == 1
    (tmp_path / "7.3").touch()
    (tmp_path / "9.1").touch()
    assert sorted(listing.names_of(7)) == ["7.1", "7.2", "7.3"]
    assert listing.names_of(9) == ["9.1"]
