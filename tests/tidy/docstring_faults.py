"""Finds what a docstring lacks: a first sentence, each parameter with its unit, what is returned,
exceptions that exist. Docstrings are in Google's style, with a section `Durability:` besides."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from importlib import import_module

from docstring_parser import DocstringMeta, DocstringParam, DocstringRaises, ParseError
from docstring_parser.google import DEFAULT_SECTIONS, GoogleParser, Section, SectionType
from public_api import Callable
from write_docstrings import SECTIONS, Docstring

import pulsarx

DURABILITY = Section("Durability", "durability", SectionType.SINGULAR)
_parser = GoogleParser([*(each for each in DEFAULT_SECTIONS if each.title in SECTIONS), DURABILITY])
# Words of a name, behind which there is an amount of something.
AMOUNTS = {
    "bytes", "delay", "interval", "lag", "mb", "millis", "minutes", "ms", "period", "rate",
    "seconds", "size", "timeout", "us",
}  # fmt: skip
UNITS = re.compile(
    r"\b(micro|milli)?seconds?\b|\bminutes?\b|\bhours?\b|\bdays?\b|\bbytes\b|\b[KMG]iB\b"
    r"|\bmessages?\b|\bentries\b|\ba second\b",
    re.IGNORECASE,
)
NUMBERS = re.compile(r"\b(int|float)\b")
SAYS_WHAT_IT_RETURNS = re.compile(r"\b(return|yield|count|tell whether)\b", re.IGNORECASE)
WITHOUT_SUBJECT = {"Both", "Of", "That", "Who"}
NOTHING = {"", "None", "NoReturn"}


def faults(found: Callable) -> list[str]:
    """What is wrong with the docstring of one callable, in words."""
    try:
        return list(_faults(found))
    except ParseError as error:
        return [f"cannot be parsed: {error}"]


def _faults(found: Callable) -> Iterator[str]:
    if not found.doc.strip():
        yield "has no docstring"
        return
    parsed = _parser.parse(found.doc)
    first = parsed.short_description or ""
    whole = " ".join(found.doc.split("\n\n")[0].split())
    if not first or not re.search(r"[.:]( |$)", whole):
        yield "does not begin with a sentence"
    for title in re.findall(r"^(\w+):$", found.doc, re.MULTILINE):
        if title not in SECTIONS:
            yield f"has a section {title}; there are {', '.join(SECTIONS)}"
    if found.kind == "function":
        yield from _parameter_faults(found, parsed.params)
        yield from _answer_faults(found, parsed.meta)
    for each in parsed.meta:
        if (each.description or "").partition(" ")[0] in WITHOUT_SUBJECT:
            yield f"says of {' '.join(each.args)} nothing that has a subject: {each.description}"
        if isinstance(each, DocstringRaises) and _exception(each.type_name or "") is None:
            yield f"raises {each.type_name}, which is no exception"
    names = {each.name.lstrip("*") for each in found.parameters}
    for name in re.findall(r"^(\w[\w.]*)(?:, \w+)*: ", _prose(found.doc), re.MULTILINE):
        if name in names or _exception(name) is not None:
            yield f"tells of {name} outside of a section"


def _parameter_faults(found: Callable, described: list[DocstringParam]) -> Iterator[str]:
    texts = {each.arg_name: each.description or "" for each in described}
    for each in found.parameters:
        text = texts.pop(each.name, None)
        if not text:
            yield f"does not describe {each.name}"
        elif _is_amount(each.name, each.annotation) and not UNITS.search(text):
            yield f"gives no unit of {each.name}"
    for name in texts:
        yield f"describes {name}, which is no parameter"


def _is_amount(name: str, annotation: str) -> bool:
    if annotation and not NUMBERS.search(annotation):
        return False  # a text, a flag, an object
    return bool(AMOUNTS & set(name.lower().split("_")))


def _answer_faults(found: Callable, sections: list[DocstringMeta]) -> Iterator[str]:
    says = any(each.args[0] in ("returns", "yields") for each in sections)
    says = says or bool(SAYS_WHAT_IT_RETURNS.search(found.doc.split("\n\n")[0]))
    if found.answer not in NOTHING and not says:
        yield f"does not say what it returns, {found.answer}"


def _prose(doc: str) -> str:
    """What stands before the sections."""
    return re.split(rf"^(?:{'|'.join(SECTIONS)}):", doc, maxsplit=1, flags=re.MULTILINE)[0]


def _exception(name: str) -> type[BaseException] | None:
    module, _, own = name.rpartition(".")
    try:
        place = import_module(module) if module else pulsarx
    except ImportError:
        return Exception if module.startswith("google.") else None  # of an extra
    found = getattr(place, own, None) or (None if module else getattr(builtins, own, None))
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def examples(doc: str) -> list[str]:
    """The program in a docstring, if it has one."""
    found = Docstring.of(doc).texts.get("Example")
    return [] if found is None else [found]
