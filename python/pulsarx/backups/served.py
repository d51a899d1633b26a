"""Backups and checks of a folder that `pulsarx serve` serves, by its URL: the server reads it, and
what is found here is what came from there. In the caller's thread, so that a signal ends it.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import fields as fields_of

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx.backups.contents import Contents, Damage
from pulsarx.backups.proof import check as prove
from pulsarx.backups.received_folder import ReceivedFolder
from pulsarx.backups.records import records
from pulsarx.backups.workplace import workplace
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.tables.progress import progress_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.admin.http_channel import HttpChannel

_DAMAGE_MAX = 100_000  # more is kept in memory for no server


def backup(channel: HttpChannel, target: Any, progress: Any) -> Contents:
    """See pulsarx.backups.backup."""
    show = progress_of(progress, "bytes")
    what = f"copy {channel.url}"
    path = os.path.realpath(os.fspath(target))
    with workplace(path, channel.url, FileSystem()) as work:
        with closing(channel.stream("/pulsarx/backup", "copy a folder")) as source:
            _receive(source, work, what, show)
        control_plane.perform(_require_own_ledgers, (work, what))
        # As what is restored: a copy that came whole is one of a folder that may be damaged.
        return prove(work, False)


def _receive(source: Any, work: str, what: str, show: Any) -> None:
    done = total = 0
    with ReceivedFolder(work, what) as folder:
        for fields, data in records(source, what):
            if data:
                folder.write(data)
                done += len(data)
                show(done, max(total, done + 1))
            elif "file" in fields:
                folder.begin(fields["file"])
            elif "remove" in fields:
                folder.remove(fields["remove"])
            elif "total" in fields:
                total = _number(fields["total"])
            elif "end" in fields:
                folder.finish()
                if fields["end"] != folder.size:
                    raise errors.CorruptDataError(
                        detail=f"{what}: {folder.size} bytes came of {fields['end']!s:.50}"
                    )
    show(done, done)


def _require_own_ledgers(work: str, what: str) -> None:
    """A copy has all its ledgers in it. Where the catalogue that came names objects elsewhere,
    nobody is to look there, or to remove them later: which those are a server has said."""
    directory = DataDirectory.open(work, files=FileSystem(), read_only=True)
    try:
        state = Catalogue.open(directory).state
    except errors.CatalogueError:
        return  # which is told as damage, and names none
    finally:
        directory.close()
    if state.offloads or state.deletions:
        raise errors.UnknownError(
            detail=f"{what}: a catalogue came that names files and objects which are not in the "
            "copy"
        )


def check(channel: HttpChannel, progress: Any) -> Contents:
    """See pulsarx.backups.check."""
    show = progress_of(progress, "bytes")
    what = f"check {channel.url}"
    found = Contents()
    damage: list[Damage] = []
    done = 0
    with closing(channel.stream("/pulsarx/check", "check a folder")) as source:
        for fields, _ in records(source, what):
            if "damage" in fields:
                if len(damage) == _DAMAGE_MAX:
                    raise errors.UnknownError(
                        detail=f"{what}: over {_DAMAGE_MAX} damaged places came"
                    )
                damage.append(_value(Damage, fields["damage"], what))
            elif "contents" in fields:
                found = _value(Contents, fields["contents"], what)
            elif "progress" in fields:
                done, total = _pair(fields["progress"])
                show(done, max(total, done + 1))
    show(done, done)
    found.damage = damage
    return found


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _pair(value: object) -> tuple[int, int]:
    first, second = value if isinstance(value, list) and len(value) == 2 else (0, 0)
    return _number(first), _number(second)


def _value(kind: Any, fields: Any, what: str) -> Any:
    """Without what a newer server adds. UnknownError: it is no such value."""
    known = {each.name for each in fields_of(kind)}
    try:
        given = {name: fields[name] for name in known.intersection(fields)}
        return kind(**given)
    except TypeError:
        raise errors.UnknownError(
            detail=f"{what}: {fields!r:.200} came, no {kind.__name__}"
        ) from None
