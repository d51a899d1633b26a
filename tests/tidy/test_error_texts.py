"""The library names the text of its errors, `detail=`: what stands without a name is the text of an
error that a program makes itself, and takes the place of the official client's."""

from __future__ import annotations

import re

import pytest
from source_files import LIBRARY, files, shown

from pulsarx import errors

NOT_OURS = {
    "python/pulsarx/compat/pulsar_asyncio.py",  # the official client's own, of that module
    "src/pycore/ground/waits.pyx",  # of gevent
}
BUILT_IN = {"LookupError"}  # ours only behind `errors.`
DERIVED = re.compile(r"^class (\w+)\((?:\w+\.)?(\w+)\):", re.MULTILINE)


def kinds(texts: list[str]) -> set[str]:
    """Names of the exceptions, those that are derived of them elsewhere too."""
    found = set(errors.__all__)
    pairs = [pair for text in texts for pair in DERIVED.findall(text)]
    while more := {name for name, base in pairs if base in found} - found:
        found |= more
    return found


def nameless_texts(text: str, names: set[str]) -> list[str]:
    plain = "|".join(sorted(names - BUILT_IN))
    made = re.compile(
        rf"(?<!class )(?<![\w.])((?:\w+\.)*errors\.(?:{'|'.join(sorted(names))})|(?:{plain}))"
        r"\((?!\s*detail=|\s*\)?[:`]|\w+\):)[^\n]*"
    )
    return [found.group() for found in made.finditer(text)]


def test_every_error_of_the_library_is_given_its_text_by_name() -> None:
    found = {shown(path): path.read_text() for path in files(LIBRARY) if path.suffix != ".h"}
    names = kinds(list(found.values()))
    assert {"TopicGone", "WrittenBeforeError", "Timeout"} <= names
    wrong = {
        path: lines
        for path, text in found.items()
        if path not in NOT_OURS and (lines := nameless_texts(text, names))
    }
    assert not wrong


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ('raise errors.Timeout("late")', True),
        ('raise errors.Timeout(\n    f"late"\n)', True),
        ("raise Timeout(text)", True),
        ("raise errors.Timeout()", True),
        ("return pulsarx.errors.LookupError(text)", True),
        ('raise LookupError("of Python")', False),
        ('raise errors.Timeout(detail="late")', False),
        ('raise errors.Timeout(\n    detail="late"\n)', False),
        ("class Timeout(PulsarException):", False),
        ("except (errors.Timeout, errors.ConnectError):", False),
        ("raise errors.Timeout", False),
    ],
)
def test_a_text_without_its_name_is_found(text: str, is_wrong: bool) -> None:
    assert bool(nameless_texts(text, set(errors.__all__))) is is_wrong
