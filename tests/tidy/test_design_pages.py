"""The pages of docs/design, ARCHITECTURE, CONTRIBUTING and the READMEs of the source are true as
far as a test can tell: what they name is there, their links lead somewhere, every thread is in
the table, every module is in its map."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from functools import cache
from itertools import chain
from pathlib import Path

from source_files import LIBRARY, ROOT, files

DESIGN = ROOT / "docs" / "design"
ARCHITECTURE, CONTRIBUTING = ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"
PAGES = sorted(DESIGN.glob("*.md"))
BROKER = ROOT / "python" / "pulsarx" / "broker"
CORE, PYCORE, BENCHMARKS = ROOT / "src" / "core", ROOT / "src" / "pycore", ROOT / "benchmarks"
MAPS = [BROKER / "README.md", CORE / "README.md", CORE / "FORMAT.md", PYCORE / "README.md"]
FOLDERS = (
    "src", "python", "spark", "tests", "docs", "tools", "benchmarks", "examples", "vendored",
    "wheels",
)  # fmt: skip
OVERVIEW_SIZE_MAX = 15_000  # bytes
# What is made, or lies in a data directory, and is no file of the repository.
ELSEWHERE = re.compile(r"(build|dist|orphans)/|ledgers/\.\.|.*[<*]")
NAMESPACES = {"public/default", "pulsar/system"}
# Of others: what uvicorn asks for, the system's locks and calls. And names that the code makes of
# two.
OF_OTHERS = {"h11", "F_OFD_GETLK", "F_OFD_SETLK", "renameat2"}
OF_TWO = {"backlog_quota_destination_storage", "backlog_quota_message_age"}


def quoted(text: str) -> list[str]:
    """What stands in backquotes, but for blocks of code."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


@cache
def places() -> dict[str, frozenset[str]]:
    """Each end of a path in the repository, with and without its suffix: the paths, without their
    suffixes, that have it. The contract and the body of a module are one."""
    found: dict[str, set[str]] = {}
    paths = [each for folder in FOLDERS for each in sorted((ROOT / folder).rglob("*"))]
    for path in [*paths, *ROOT.glob(".ci/*"), *ROOT.glob("*.*")]:
        whole = path.relative_to(ROOT)
        if "__pycache__" in whole.parts or path.suffix in {".so", ".pyc"}:
            continue
        stem = str(whole.with_suffix(""))
        for each in {str(whole), stem}:
            parts = each.split("/")
            for at in range(len(parts)):
                found.setdefault("/".join(parts[at:]), set()).add(stem)
    return {name: frozenset(stems) for name, stems in found.items()}


def path_faults(text: str) -> list[str]:
    """Paths in backquotes that are not there, or are the end of several."""
    found = []
    for name in quoted(text):
        if name in NAMESPACES or ELSEWHERE.match(name):
            continue
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", name):
            stems = places().get(name.rstrip("/"), frozenset())
            if len(stems) != 1:
                found.append(f"{name}: {sorted(stems) or 'is not there'}")
    return found


@cache
def words() -> frozenset[str]:
    """Every word of the sources, of the packages they ask for, and of the names of files."""
    found = OF_OTHERS | OF_TWO
    for path in [*files((*LIBRARY, "tests", "tools")), ROOT / "pyproject.toml"]:
        found.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
        found.add(path.stem)
    return frozenset(found)


def name_faults(text: str) -> list[str]:
    """Names of Python or C in backquotes that no source has."""
    names = [each for each in quoted(text) if re.fullmatch(r"[A-Za-z_][\w.]*(\(\))?", each)]
    parts = {part for name in names for part in re.findall(r"\w+", name)}
    return sorted(parts - words())


def link_faults(path: Path) -> list[str]:
    found = []
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", path.read_text("utf-8")):
        file = (path.parent / target) if target else path
        if not file.exists():
            found.append(f"{path.name}: {target} is not there")
        elif anchor and anchor not in anchors(file.read_text("utf-8")):
            found.append(f"{path.name}: {target}#{anchor} is not there")
    return found


def anchors(text: str) -> set[str]:
    """Those of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def thread_names() -> set[str]:
    """Those that the sources give the threads they start."""
    makers = r"\b(?:OwnThread|JobQueue|WorkPool|WorkThreads|thread_start)\([^\"]{0,200}"
    found = set()
    for path in files(LIBRARY, {".py", ".pyx"}):
        found |= set(re.findall(makers + r"\"(pulsarx-[\w-]+)\"", path.read_text("utf-8")))
    return found


def recipes(text: str) -> dict[str, str]:
    """Of `Where do I`: what each says, by its question."""
    section = text[text.index("## Where do I") :]
    section = section[: section.index("\n## ", 1)]
    parts = re.split(r"^\*\*(.+)\*\*$", section, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def test_files_that_the_pages_name_are_there():
    pages = [*PAGES, *MAPS, ARCHITECTURE, CONTRIBUTING, BENCHMARKS / "README.md"]
    wrong = {str(page): path_faults(page.read_text("utf-8")) for page in pages}
    assert not {page: faults for page, faults in wrong.items() if faults}


def test_names_that_the_pages_name_are_in_the_sources():
    pages = [*PAGES, *MAPS, ARCHITECTURE, CONTRIBUTING]
    wrong = {str(page): name_faults(page.read_text("utf-8")) for page in pages}
    assert not {page: faults for page, faults in wrong.items() if faults}


def test_links_lead_somewhere():
    pages = [*PAGES, *MAPS, ARCHITECTURE, CONTRIBUTING]
    assert not [text for page in pages for text in link_faults(page)]


def test_the_overview_is_short_and_leads_to_every_page():
    assert len(ARCHITECTURE.read_bytes()) <= OVERVIEW_SIZE_MAX
    index = (DESIGN / "README.md").read_text("utf-8")
    others = {page.name for page in PAGES} - {"README.md"}
    assert set(re.findall(r"^\| \[[^]]+\]\(([^)]+)\)", index, re.MULTILINE)) == others
    assert not {page for page in others if page not in ARCHITECTURE.read_text("utf-8")}


def test_every_thread_is_in_the_table():
    text = (DESIGN / "threads.md").read_text("utf-8")
    assert thread_names()
    assert not {name for name in thread_names() if f"`{name}" not in text}


def first_cells(text: str) -> list[str]:
    """The first cells of the tables."""
    return re.findall(r"^\|([^|]*)\|", text, re.MULTILINE)


def test_the_map_of_the_broker_names_every_module():
    text = (BROKER / "README.md").read_text("utf-8")
    table = text[text.index("## The modules") : text.index("## Data directory")]
    named = set(re.findall(r"`(\w+)`", " ".join(first_cells(table))))
    assert named == {path.stem for path in BROKER.rglob("*.py")} - {"__init__"}


def test_the_map_of_the_core_names_every_module():
    cells = " ".join(first_cells((CORE / "README.md").read_text("utf-8")))
    assert set(re.findall(r"`(\w+)`", cells)) == {path.stem for path in CORE.glob("*.pxd")}


def test_the_map_of_pycore_names_every_module_in_its_folder():
    named: dict[str, set[str]] = {}
    folder = ""
    text = (PYCORE / "README.md").read_text("utf-8")
    for cell in first_cells(text[text.index("| **ground** |") :]):
        headline = re.fullmatch(r" \*\*(\w+)\*\* ", cell)
        folder = headline.group(1) if headline else folder
        named.setdefault(folder, set()).update(re.findall(r"`(\w+)`", cell))
    modules = [*PYCORE.glob("*/*.pyx"), *PYCORE.glob("*/*.pxd")]
    folders = {path.parent.name for path in modules}
    assert named == {
        each: {path.stem for path in modules if path.parent.name == each} for each in folders
    }


def test_the_map_of_the_benchmarks_names_every_file():
    text = (BENCHMARKS / "README.md").read_text("utf-8")
    named = [each.strip("/") for each in quoted(" ".join(first_cells(text)))]
    there = [
        path.name
        for path in BENCHMARKS.iterdir()
        if path.suffix in {".py", ".pyx"} or (path.is_dir() and any(path.glob("*.py")))
    ]
    assert not [name for name in there if not any(fnmatch(name, each) for each in named)]


def test_every_package_that_is_asked_for_has_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = [project.get("dependencies", []), *project["optional-dependencies"].values()]
    names = {re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in chain(*asked)}
    reasons = quoted((DESIGN / "dependencies.md").read_text("utf-8"))
    assert names and not names - set(reasons)


def test_each_recipe_has_six_lines_that_name_files():
    found = recipes(CONTRIBUTING.read_text("utf-8"))
    assert found
    for question, text in found.items():
        lines = re.findall(r"^\d\. (.*)$", text, re.MULTILINE)
        assert len(lines) == 6, question
        assert len([line for line in lines if re.search(r"`[^`]*/[^`]*`", line)]) >= 4, question


def test_a_path_that_is_not_there_is_found():
    assert not path_faults("`publish/batcher`, `src/pycore/publish/batcher.pyx`, `tests/tidy`")
    assert not path_faults("`build/tree/pulsarx`, `ledgers/<id>.ledger`\n```\n`a/b`\n```")
    assert path_faults("`publish/batches`") == ["publish/batches: is not there"]
    assert len(path_faults("`schema/schema`")) == 1  # that of the alias has the same end


def test_a_name_that_is_not_there_is_found():
    assert not name_faults("`Client`, `ledger_tail.LedgerSpan`, `send`, `read_table()`")
    assert name_faults("`LedgerTail.no_such" + "_attribute`") == ["no_such" + "_attribute"]


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("# One two\n[a](#one-two) [b](page.md#one-two) [c](https://x.y/z) [d](e.md)")
    assert link_faults(page) == ["page.md: e.md is not there"]
    page.write_text("# One\n[a](#two)")
    assert link_faults(page) == ["page.md: #two is not there"]
