"""Makes what the site has beside the written pages: the navigation out of what lies in docs/, the
table of REST paths out of the declared routes, the help of commands that read their own arguments.

An extension of Sphinx; conf.py loads it.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sphinx.application import Sphinx

# Caption: pages below docs/ in their order; a pattern stands for the pages that nothing names. A
# page that is not there is left out, and a new one joins by lying in its folder.
SECTIONS = {
    "Begin": ("tutorials/first-ten-minutes", "comparison", "tutorials/*"),
    "Concepts": (
        "concepts/publish-and-subscribe",
        "concepts/subscriptions",
        "concepts/keys",
        "concepts/batches",
        "concepts/storage",
        "concepts/time",
        "concepts/promises",
        "concepts/*",
    ),
    "How to": (
        "producers",
        "consumers",
        "selectors",
        "topics",
        "schemas",
        "asyncio",
        "processes",
        "testing",
        "columns",
        "sql",
        "spark",
        "functions",
        "pulsar-client",
        "how-to/*",
        "*",
    ),
    "Recipes": ("recipes/*",),
    "Operation": (
        "command-line",
        "administration",
        "serve",
        "deployment",
        "monitoring",
        "tuning",
        "security",
        "backups",
        "offload",
        "upgrading",
        "troubleshooting",
        "operations/*",
    ),
    "Coming from": ("coming-from/pulsar-client", "coming-from/*"),
    "Reference": (
        "reference/api",
        "reference/command-line",
        "reference/rest",
        "options",
        "reference/limits",
        "reference/*",
    ),
    "Design": ("design/README",),
}
INDEXED = ("design", "reference")  # what is left of these folders stands below their index
# Below which page the pages that are no part of docs/, or of a folder with an index, stand.
BELOW = {
    "docs/design/README": (
        "docs/design/*",
        "ARCHITECTURE",
        "CONTRIBUTING",
        "src/core/FORMAT",
        "src/core/README",
        "src/pycore/README",
        "python/pulsarx/broker/README",
        "wheels/README",
    ),
    "docs/concepts/promises": ("RELIABILITY",),
    "docs/reference/api": ("docs/reference/api/*",),
    "docs/comparison": ("benchmarks/*", "tests/oracle/differences", "tests/transactions"),
    "docs/spark": ("spark/README", "docs/spark-cluster", "docs/spark-catalogues"),
}
HIDDEN = ("docs/index", "README", "CHANGELOG")  # found by links alone
# What classes have for the library itself, public to its modules and to nobody else.
INTERNAL = {
    "attach", "calls_of_core", "close_with_client", "declared_calls", "declaring_class", "events",
    "fill", "has_message", "is_forked", "is_let_go", "is_open", "keep", "let_go", "letters",
    "owner", "require_open", "start_listener", "take_back", "take_now", "unwatch", "watch",
}  # fmt: skip
# Made by calls of a client and of a message, never by users.
MADE_BY_CALLS = {
    f"pulsarx.{name}" for name in ("Reader", "TableView", "EncryptionContext", "EncryptionKey")
}
GOOGLE = re.compile(
    r"^(Args|Returns|Raises|Yields|Examples?|Attributes|Durability|Note):$", re.MULTILINE
)
REDIRECT = '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html">\n'


def arranged(pages: Iterable[str]) -> dict[str, list[str]]:
    """The pages below docs/ by caption; each is named once."""
    left = dict.fromkeys(sorted(pages))
    named = {each for patterns in SECTIONS.values() for each in patterns if "*" not in each}
    found: dict[str, list[str]] = {}
    for caption, patterns in SECTIONS.items():
        chosen: list[str] = []
        for pattern in patterns:
            chosen += [each for each in left if _fits(each, pattern, named)]
            for each in chosen:
                left.pop(each, None)
        found[caption] = chosen
    found["More"] = [each for each in left if "/" not in each or each.split("/")[0] not in INDEXED]
    return found


def _fits(page: str, pattern: str, named: set[str]) -> bool:
    if page == pattern:
        return True
    same_depth = page.count("/") == pattern.count("/")
    return same_depth and page not in named and fnmatchcase(page, pattern)


def toctree(caption: str, pages: Iterable[str]) -> str:
    lines = [":hidden:", ":titlesonly:", *([f":caption: {caption}"] if caption else []), ""]
    return "\n".join(["\n\n```{toctree}", *lines, *(f"/{each}" for each in pages), "```\n"])


def add_navigation(app: Sphinx, docname: str, source: list[str]) -> None:
    pages = sorted(app.env.found_docs - set(HIDDEN))
    if docname == "docs/index":
        here = [each.removeprefix("docs/") for each in pages if each.startswith("docs/")]
        for caption, chosen in arranged(here).items():
            if chosen:
                source[0] += toctree(caption, [f"docs/{each}" for each in chosen])
    patterns = BELOW.get(docname, ())
    below = [page for pattern in patterns for page in pages if fnmatchcase(page, pattern)]
    below = [each for each in dict.fromkeys(below) if each != docname]
    if below:
        source[0] += toctree("", below)


def adapt_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Have a page outside the navigation say so, else Sphinx warns of it."""
    if docname in HIDDEN[1:]:
        source[0] = f"---\norphan: true\n---\n\n{source[0]}"
    # The language of the drawings that the repository's pages show needs a browser's script.
    source[0] = source[0].replace("```mermaid", "```text")


class RestRoutes(SphinxDirective):
    """Lists the paths of the admin REST API by their groups."""

    def run(self) -> list[nodes.Node]:
        text = "\n".join(_routes_text())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def _routes_text() -> Iterator[str]:
    from pulsarx.rest.application import ROUTES
    from pulsarx.rest.unsupported import ROUTES as UNSUPPORTED

    refused = {id(each) for each in UNSUPPORTED}
    for group in sorted(Counter(each.group for each in ROUTES)):
        yield f"## {group}\n"
        for each in sorted(ROUTES, key=lambda each: (each.path, each.method)):
            is_refused = id(each) in refused or each.summary.startswith("Not supported")
            if each.group != group or is_refused:
                continue
            yield f"- `{each.method} {each.path}`\\"
            details = [each.summary]
            if each.query:
                details.append(f"Query: {', '.join(f'`{name}`' for name in each.query)}.")
            if each.body is not None:
                details.append(f"Body: {each.body}.")
            yield "  " + " ".join(details)
        yield ""


class CommandHelp(SphinxDirective):
    """Shows what a command of `pulsarx` prints for --help."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, object]] = {}

    def run(self) -> list[nodes.Node]:
        command = [sys.executable, "-m", "pulsarx", *self.arguments[0].split(), "--help"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        shown = re.sub(r"__main__\.py|python -m pulsarx", "pulsarx", shown)
        return [nodes.literal_block(shown, shown, language="text")]


def skip_internal(
    app: Sphinx, what: str, name: str, item: object, skip: bool, options: object
) -> bool | None:
    return True if name in INTERNAL else None


def as_markup(
    app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]
) -> None:
    """Make code of examples. What has Google's sections is left to napoleon otherwise; elsewhere
    `argument: what it is` becomes an item, and an indented example a block of code."""
    if GOOGLE.search("\n".join(lines)):
        lines[:] = _with_code(lines)
        return
    made: list[str] = []
    for block in "\n".join(lines).split("\n\n"):
        made += ["", *_block_markup(block.strip("\n").split("\n"))]
    lines[:] = made


def _with_code(lines: list[str]) -> Iterator[str]:
    is_example = False
    for line in lines:
        if line and not line.startswith(" "):
            is_example = line.startswith("Example")
            yield line
            if is_example:
                yield from ["    ::", ""]
        else:
            yield f"    {line}" if is_example and line else line


def _block_markup(block: list[str]) -> Iterator[str]:
    if not any(block):
        return
    if all(line.startswith("    ") or not line for line in block):
        yield from ["::", "", *block]
        return
    indent = ""
    for line in block:
        argument = re.match(r"(\w+(?:, \w+)*): (?=\S)", line)
        if argument is not None:
            yield from ["", f"- **{argument[1]}**: {line[argument.end() :]}"]
            indent = "  "
        else:
            if re.match(r"(Raises|Returns) ", line):  # a sentence of the whole, after arguments
                indent = ""
                yield ""
            yield indent + line.strip()


def signature_of_init(
    app: Sphinx, what: str, name: str, item: object, options: object, signature: str, returned: str
) -> tuple[str, str] | None:
    """Show what a class is made with where its __new__ takes anything, to choose a subclass. What
    calls of the library make has no arguments for users."""
    if what != "class" or not signature:
        return None
    if name in MADE_BY_CALLS:
        return "", ""
    if "*_" not in signature:
        return None
    return _shown(inspect.signature(item.__init__)), returned  # type: ignore[misc]


def _shown(signature: inspect.Signature) -> str:
    """Without self and annotations."""
    plain = [each.replace(annotation=each.empty) for each in signature.parameters.values()][1:]
    return str(inspect.Signature(plain))


def write_entrance(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        Path(app.outdir, "index.html").write_text(REDIRECT, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", add_navigation)
    app.connect("source-read", adapt_page)
    app.connect("autodoc-skip-member", skip_internal)
    app.connect("autodoc-process-signature", signature_of_init)
    app.connect("autodoc-process-docstring", as_markup, priority=400)  # before napoleon
    app.connect("build-finished", write_entrance)
    app.add_directive("rest-routes", RestRoutes)
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
