"""Facts about tools/native_build.py: what is made again, and what a build leaves that fails."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import Cython.Compiler.Main  # noqa: F401  # once, not in each process that makes a file
import link_tree
import native_build
import pytest
from build_mode import build_mode
from link_tree import TREE
from native_build import BuildError, Contracts, Recipe, Unit, linked, made, units_in
from setuptools import Distribution

ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = pytest.mark.standard

HEADER = "static int doubled(int value) { return 2 * value; }\n"
CONTRACT = 'cdef extern from "doubled.h":\n    int doubled(int value)\n'
MODULES = {
    "first": "from doubling cimport doubled\n\ndef first():\n    return doubled(1)\n",
    "second": "def second():\n    return 2\n",
}


class Project:
    """Two modules; one reads a contract, which names a header."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("doubled.h", HEADER)
        self.write("doubling.pxd", CONTRACT)
        for name, text in MODULES.items():
            self.write(f"{name}.pyx", text)
        self.recipe = Recipe(
            build_mode(), native_build.commands(), folder / "objects", folder / "c",
            include_path=(folder,), header_path=(folder,), flags=("-O0",),
        )  # fmt: skip
        self.units = [Unit(name, folder / f"{name}.pyx") for name in MODULES]

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def made_again(self, **options: bool) -> set[str]:
        """Build; the modules whose objects are others now."""
        before = {unit.name: self._identity(unit) for unit in self.units}
        made(self.units, self.recipe, **options)
        return {unit.name for unit in self.units if self._identity(unit) != before[unit.name]}

    def _identity(self, unit: Unit) -> int:
        path = self.recipe.object(unit)
        return path.stat().st_mtime_ns if path.exists() else 0


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(native_build, "ROOT", tmp_path)
    return Project(tmp_path)


def test_only_what_reads_another_content_is_made_again(project: Project) -> None:
    assert project.made_again() == {"first", "second"}
    assert not project.made_again()
    for path in project.folder.iterdir():
        os.utime(path)  # another time is no other content
    assert not project.made_again()
    project.write("second.pyx", MODULES["second"] + "# more\n")
    assert project.made_again() == {"second"}
    project.write("doubling.pxd", CONTRACT + "# more\n")
    assert project.made_again() == {"first"}
    project.write("doubled.h", HEADER + "/* more */\n")
    assert project.made_again() == {"first"}
    assert project.made_again(force=True) == {"first", "second"}


def test_a_library_is_linked_again_for_other_objects_alone(project: Project) -> None:
    library = project.folder / "first.so"
    objects = made(project.units[:1], project.recipe)
    linked(objects, library, project.recipe)
    before = library.stat().st_mtime_ns
    assert linked(objects, library, project.recipe).stat().st_mtime_ns == before
    spec = importlib.util.spec_from_file_location("first", library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.first() == 2
    project.write("doubled.h", HEADER.replace("2", "3"))
    linked(made(project.units[:1], project.recipe), library, project.recipe)
    assert library.stat().st_mtime_ns != before


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("second.pyx", "def second(:\n", r"Cython refuses second\.pyx:(.|\n)*second\.pyx:1:11"),
        (
            "second.pyx",
            "cdef void f() nogil: pass\ndef g():\n    with nogil: f()\n",
            "xception check",
        ),
        ("doubled.h", "int doubled(int value) {", r"compile first\.pyx: \S+ refuses:(.|\n)*error"),
    ],
)
def test_what_a_compiler_refuses_is_said_and_the_rest_is_kept(
    project: Project, name: str, text: str, said: str
) -> None:
    (project.folder / ".git").mkdir()  # a clone is strict
    kept = (project.folder / name).read_text()
    project.write(name, text)
    with pytest.raises(BuildError) as told:
        made(project.units, project.recipe, jobs=1)
    assert re.search(said, str(told.value))
    project.write(name, kept)
    project.made_again()
    assert not project.made_again()


def test_a_build_that_was_killed_goes_on_where_it_was(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is there without its digest is not taken for whole."""
    project.made_again()
    first = project.recipe.object(project.units[0])
    first.write_bytes(b"half")
    first.with_name("first.o.of").unlink()
    assert project.made_again() == {"first"}
    assert first.read_bytes() != b"half"


def test_what_is_changed_while_it_is_built_is_not_taken_for_built(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would be for good where the change is taken back."""
    translate = native_build._translate

    def change_first(unit: Unit, *others: Any) -> str:
        project.write("second.pyx", MODULES["second"] + "# more\n")
        return translate(unit, *others)

    with monkeypatch.context() as patch:
        patch.setattr(native_build, "_translate", change_first)
        with pytest.raises(BuildError, match=r"second\.pyx was changed while it was built"):
            made(project.units[1:], project.recipe)
    project.write("second.pyx", MODULES["second"])
    assert project.made_again() == {"first", "second"}


def test_a_build_that_was_killed_does_not_hold_the_next_one(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processes that it had started have its lock."""
    read, write = os.pipe()

    def wait_for_ever(*_: Any) -> None:
        os.write(write, b"begun")
        signal.pause()

    with monkeypatch.context() as patch:
        patch.setattr(native_build, "_translate", wait_for_ever)
        pid = os.fork()
        if not pid:
            try:
                made(project.units, project.recipe)
            finally:
                os._exit(1)
    assert os.read(read, 5) == b"begun"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert project.made_again() == {"first", "second"}
    os.close(read)
    os.close(write)


def is_locked(lock: Path) -> bool:
    """Whether a build beside this one would wait."""
    with open(lock, "w") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_no_other_build_makes_what_is_being_linked_or_copied(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It linked objects of which the other one had made some again, and wrote the same file."""
    lock = project.folder / "c" / "lock"
    library, package = project.folder / "first.so", project.folder / "package" / "first.so"
    objects = made(project.units[:1], project.recipe)
    assert not is_locked(lock)
    held: list[bool] = []
    run, copy = native_build._run, shutil.copyfile
    monkeypatch.setattr(
        native_build, "_run", lambda *each: (held.append(is_locked(lock)), run(*each))[1]
    )
    monkeypatch.setattr(
        shutil, "copyfile", lambda *each: (held.append(is_locked(lock)), copy(*each))[1]
    )
    native_build.copied(linked(objects, library, project.recipe), package, project.recipe)
    assert held == [True, True] and not is_locked(lock)
    assert package.read_bytes() == library.read_bytes()
    assert [each.name for each in package.parent.iterdir()] == ["first.so"]


def test_a_library_is_in_the_package_before_another_build_begins(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the package had the library of the build that copied last, of older sources maybe."""
    spec = importlib.util.spec_from_file_location("setup_of_the_library", ROOT / "setup.py")
    assert spec is not None and spec.loader is not None
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    lock, held = project.folder / "c" / "lock", []

    def note(*_: Any, **__: Any) -> Path:
        held.append(is_locked(lock))
        return lock

    monkeypatch.setattr(setup, "Recipe", lambda *_: project.recipe)
    monkeypatch.setattr(setup, "units_in", lambda *_: [])
    for name in ("made", "linked", "copied"):
        monkeypatch.setattr(setup, name, note)
    command = setup.BuildLibrary(Distribution())
    command.initialize_options()
    command.finalize_options()
    command.build_extension(setup.library())
    assert held == [True, True, True] and not is_locked(lock)


def test_looking_for_pip_leaves_distutils_to_setuptools() -> None:
    """On Python 3.11 an import of pip, and a search by importlib, gives distutils back to Python,
    whose commands refuse what setuptools has made before."""
    look = (
        "import setuptools, packages\n"
        "packages.has_pip()\n"
        "import distutils.dist\n"
        "assert issubclass(setuptools.Distribution, distutils.dist.Distribution)\n"
    )
    tools = os.environ | {"PYTHONPATH": str(ROOT / "tools")}
    subprocess.run([sys.executable, "-c", look], env=tools, check=True)


def test_one_process_at_a_time_links_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where links are refused it is made of copies, and two wrote the same one."""
    monkeypatch.setattr(link_tree, "TREE", tmp_path / "tree")
    held: list[bool] = []
    link = link_tree._link
    monkeypatch.setattr(
        link_tree,
        "_link",
        lambda *each: (held.append(is_locked(tmp_path / "tree.lock")), link(*each))[1],
    )
    assert link_tree.link_tree() == tmp_path / "tree"
    assert held and all(held) and not is_locked(tmp_path / "tree.lock")
    assert (tmp_path / "tree" / "pulsarx" / "client.py").exists()


def test_a_process_whose_build_was_killed_before_it_began_ends() -> None:
    pid = os.fork()
    if not pid:
        try:
            native_build._begin(os.getpid())
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1


def test_a_missing_compiler_is_named(project: Project) -> None:
    without = native_build.Commands(("no-such-compiler",), ("no-such-linker",))
    recipe = Recipe(build_mode(), without, project.folder, project.folder, (project.folder,))
    with pytest.raises(
        BuildError, match="no C compiler 'no-such-compiler': install one, or set CC"
    ):
        made(project.units, recipe)


def test_contracts_are_those_that_cython_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a change of one would not be noticed."""
    from Cython.Build.Dependencies import create_dependency_tree
    from Cython.Compiler.Main import Context
    from Cython.Compiler.Options import CompilationOptions

    folders = {"pulsarx._core": ROOT / "src" / "core", "pulsarx._pycore": ROOT / "src" / "pycore"}
    recipe = Recipe(build_mode(), native_build.Commands((), ()), ROOT, ROOT, (TREE,))
    contracts = Contracts(recipe)
    options = CompilationOptions(include_path=[str(TREE)])
    monkeypatch.setattr("sys.path", [])  # where it looks for each contract as well, for seconds
    tree = create_dependency_tree(Context.from_options(options), quiet=True)
    for package, folder in folders.items():
        for unit in units_in(folder, package):
            theirs = {Path(each).resolve() for each in tree.all_dependencies(str(unit.source))}
            theirs = {each for each in theirs if each.is_relative_to(ROOT / "src")}
            ours = {each.resolve() for each in contracts.read_by(unit.source)}
            assert ours >= theirs, unit.name
