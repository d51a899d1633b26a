"""The base of all exceptions, what is said of them, and those that are named when a folder is
opened. A leaf: imports nothing of ours.

The first group has the names and texts of the official client. The second adds what an embedded
broker can meet; each is a subclass of an official one, so that code written for the official client
catches it.
"""

from __future__ import annotations

import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__name__ = "pulsarx.errors"  # where users import them from, and pickles and tracebacks say they are
MAX_DETAIL = 4000
_SHOWN = 200


def shown(value: object) -> str:
    """The repr of an argument for the text of an error, shortened: an argument may be of any size,
    and any object."""
    size = ""
    if isinstance(value, (str, bytes, bytearray)):
        if len(value) <= _SHOWN:
            return repr(value)
        size = f"{len(value)} {'characters' if isinstance(value, str) else 'bytes'}"
        return f"{value[:_SHOWN]!r}... ({size})"
    if isinstance(value, int) and value.bit_length() > 8 * _SHOWN:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to write larger ones
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def raised_by_handler(error: BaseException) -> bool:
    """Whether an OSError that was caught where the library asks the system is not the system's:
    the handler of a signal may raise one between any two lines, such as a TimeoutError."""
    trace = error.__traceback__
    if getattr(error, "errno", None) is not None or trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    package = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
    return package != "pulsarx" and package not in sys.stdlib_module_names


def _cut(detail: str) -> str:
    left_out = len(detail) - MAX_DETAIL
    half = MAX_DETAIL // 2
    return f"{detail[:half]}... ({left_out} characters left out) ...{detail[-half:]}"


class PulsarException(Exception):
    """The base of all.

    `str` of an error that the library raises and the official client raises too is exactly the
    text it has there, such as `Pulsar error: TimeOut`, because programs compare it. `detail` says
    what was done, where, with which values; a traceback shows it below that text, as a note. The
    errors that only PulsarX has have the detail in their text.

    args: of an error that a program makes itself, whose text they are, as there. detail: given by
    the library alone; shortened in the middle when it is longer than 4,000 characters. attributes:
    those that the class has.
    """

    _text = ""
    _detail_in_text = False
    _attributes: tuple[str, ...] = ()  # what travels to another process besides the detail
    detail: str = ""

    def __init__(self, *args: object, detail: str | None = None, **attributes: object) -> None:
        """Make an error. Those of a program have the text they are given, as in the official
        client.

        Args:
            *args: The text.
            detail: What was done, where, with which values; given by the library alone. Shortened
                in the middle when it is longer than 4,000 characters.
            **attributes: Those that the class has, such as `pid`.
        """
        if attributes:
            self.__dict__.update(attributes)
        if detail is None:
            super().__init__(*args)
            return
        text = self._text
        if not detail or detail == text:
            super().__init__(text)
            return
        if len(detail) > MAX_DETAIL:
            detail = _cut(detail)
        self.detail = detail
        if self._detail_in_text:
            super().__init__(f"{text}: {detail}")
        else:
            super().__init__(text)
            self.add_note(detail)

    def __reduce__(self) -> tuple[Any, ...]:
        state = self.__dict__.copy()
        if "__notes__" in state:
            state["__notes__"] = list(state["__notes__"])  # a copy gets notes of its own
        return _remade, (type(self), self.args), state


def _remade(kind: type[PulsarException], args: tuple[Any, ...]) -> PulsarException:
    return kind.__new__(kind, *args)


def detail_of(error: BaseException) -> str:
    """Return what an error says to people, to be put into a log or into another error."""
    return getattr(error, "detail", "") or str(error)


def again(error: Exception) -> Exception:
    """The same error for another caller: each raises an object of its own. As `copy.copy`, which
    cannot be imported any more where a finalizer asks when the interpreter ends."""
    parts: Any = error.__reduce__()
    made: Exception = parts[0](*parts[1])
    if len(parts) > 2:
        made.__setstate__(parts[2])
    return made


def attributes_of(error: BaseException) -> dict[str, Any]:
    """The attributes besides `detail` that an error has when it reaches another process; values are
    JSON."""
    names = error._attributes if isinstance(error, PulsarException) else ()
    return {name: value for name in names if (value := getattr(error, name)) is not None}


def remade(kind: type[PulsarException], detail: str, attributes: object = None) -> PulsarException:
    """The error of another process. attributes: of attributes_of; what the class does not have, a
    newer PulsarX may have sent, and is left out."""
    told = attributes if isinstance(attributes, dict) else {}
    return kind(detail=detail, **{name: told[name] for name in kind._attributes if name in told})


class AlreadyClosed(PulsarException):
    """The object was closed. Do not use it again."""

    _text = "Pulsar error: AlreadyClosed"


class BrokerMetadataError(PulsarException):
    """The catalogue could not be read or written, or others still use what was to be removed."""

    _text = "Pulsar error: BrokerMetadataError"


class BrokerPersistenceError(PulsarException):
    """Storing or reading failed."""

    _text = "Pulsar error: BrokerPersistenceError"


class ConnectError(PulsarException):
    """The broker cannot be reached; in process: the folder cannot be opened."""

    _text = "Pulsar error: ConnectError"


class InvalidUrl(PulsarException, ValueError):
    """Not a folder, `file:`, `memory:` or `pulsar:` URL."""

    _text = "Pulsar error: InvalidUrl"


class UnsupportedVersionError(PulsarException):
    """Written by a newer version."""

    _text = "Pulsar error: UnsupportedVersionError"


class NotAllowedError(PulsarException):
    """Not allowed in the present state; `detail` says why."""

    _text = "Pulsar error: ResultNotAllowedError"


class StorageError(BrokerPersistenceError):
    """The disk or the operating system refused. errno: what the system said, where it did."""

    _detail_in_text = True
    _attributes = ("errno",)
    errno: int | None = None


class StorageFullError(StorageError):
    """No room on the device. Nothing was written; it works again once there is room."""


class CatalogueError(BrokerMetadataError, StorageError):
    """A commit of the catalogue is damaged or missing."""

    _detail_in_text = True


class FolderOwnedError(ConnectError):
    """Another process owns the data directory. folder: its path. pid: of that process; None: it is
    just opening or closing the folder."""

    _detail_in_text = True
    _attributes = ("folder", "pid")
    folder: str | None = None
    pid: int | None = None


class FolderError(ConnectError, InvalidUrl):
    """The path is no data directory and cannot become one."""

    _detail_in_text = True


class NewerFormatError(UnsupportedVersionError):
    """The folder or file was written by a newer PulsarX. Upgrade to open it."""

    _detail_in_text = True


_pid = posix.getpid()
_parent_pid = 0  # of a forked process: the process that forked it


def note_process() -> None:
    """Find out whether this process was forked; a step of ground/fork."""
    global _parent_pid, _pid
    pid = posix.getpid()
    if pid != _pid:
        _parent_pid, _pid = _pid, pid  # the parent may be gone by now, so it is not asked


def parent_pid() -> int:
    """The process that forked this one; 0: it was not forked since PulsarX was imported."""
    return _parent_pid
