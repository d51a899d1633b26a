"""The texts of cells in tables: figures with their units, which the names of fields tell."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
_OF_BYTES = ("size", "bytes", "stored")  # how the names of fields end that are sizes
_SECONDS = ((86400, "d"), (3600, "h"), (60, "min"))


def cell(name: str, value: Any) -> str:
    """The text of the value of a field. A figure that only the owner of the folder knows is None;
    -1 is what is not limited, or not known."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(cell("", each) for each in value)
    name = name.rpartition(".")[2]
    if isinstance(value, float | int) and value >= 0:
        return _figure(name, value)
    return _shown_name(name, str(value))


def _shown_name(name: str, text: str) -> str:
    """Persistent topics go without their domain, by which commands find them as well."""
    return shown_text(text.removeprefix("persistent://") if name == "topic" else text)


def _figure(name: str, value: float) -> str:
    text = f"{value:,.1f}" if isinstance(value, float) else f"{value}"
    if name in ("bytes/s", "in/s", "out/s"):  # heads of `top`, which say it
        return size(value) if name == "bytes/s" else text
    if name.startswith("msg_throughput"):
        return f"{size(value)}/s"
    if name.startswith("msg_rate"):
        return f"{text} /s"
    if name.endswith(_OF_BYTES):
        return size(value)
    if name.endswith(("_seconds", "_s")):
        return _age(value)
    return f"{text} ms" if name.endswith("_ms") and "time" not in name else text


def size(count: float) -> str:
    """A number of bytes, to three digits."""
    at = 0
    while count >= 1024 and at < len(_SIZES) - 1:
        count, at = count / 1024, at + 1
    return f"{count:.1f} {_SIZES[at]}" if at else f"{count:.0f} {_SIZES[at]}"


def _age(seconds: float) -> str:
    for of, unit in _SECONDS:
        if seconds >= 2 * of:
            return f"{seconds / of:.1f} {unit}"
    return f"{seconds:g} s"


def shown_text(text: str) -> str:
    """A text with escapes for everything that a terminal would not just show: control characters,
    line ends, and what turns the direction of writing."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
