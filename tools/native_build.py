"""Makes objects and libraries of .pyx files. setup.py, the core's tests and the benchmarks call it.

Cython translates each file into C, the C compiler makes an object of that: one file in one process,
as many at a time as there are processors, the longest first. What is made lies beside the digest of
all it was made of (`<file>.of`), which is written last. So a file is made again when what it reads
has another content, whatever the times of files say, and a build that was interrupted, or found the
disk full, goes on where it was.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from build_mode import ROOT, BuildMode
from progress import Progress
from strict_cython import be_strict

# What a file costs beside its lines: modules of a few take as long as 150 lines of others.
LINES_OF_EVERY_MODULE = 150
PR_SET_PDEATHSIG = 1  # of prctl: the signal a process gets when its parent ends
_READS = re.compile(
    rb"^[ \t]*(?:from[ \t]+(?P<module>[\w.]+)[ \t]+cimport\b|cimport[ \t]+(?P<whole>[\w.]+)"
    rb'|cdef[ \t]+extern[ \t]+from[ \t]+"(?P<header>[^"<]+)"|#[ \t]*include[ \t]+"(?P<c>[^"]+)")',
    re.MULTILINE,
)
# Cython's way to end `and` and `or`: the value of the last operand becomes that of the whole.
_LAST_OPERAND = re.compile(
    r"(__pyx_t_\d+) = (__pyx_t_\d+);((?:\s|#line[^\n]*\n)*__pyx_L\d+_bool_binop_done:;)"
)


class BuildError(Exception):
    """A compiler refuses a file; the text is what it says."""


@dataclass(frozen=True)
class Unit:
    """One .pyx. name: what the module is imported as."""

    name: str
    source: Path

    @property
    def weight(self) -> int:
        """What making it costs, in lines."""
        return LINES_OF_EVERY_MODULE + self.source.read_bytes().count(b"\n")


@dataclass(frozen=True)
class Commands:
    """How this Python's extensions are compiled and linked, without the names of files."""

    compile: tuple[str, ...]
    link: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """What the files of one build have in common."""

    mode: BuildMode
    commands: Commands
    objects: Path  # a folder
    c_folder: Path | None  # for generated C; None: beside the sources
    include_path: tuple[Path, ...]  # where contracts lie, by their import names
    header_path: tuple[Path, ...] = (ROOT / "src" / "core",)
    directives: dict[str, Any] = field(default_factory=dict)  # beside those of the mode
    flags: tuple[str, ...] = ()  # of the C compiler, behind those of the mode
    python_headers: tuple[Path, ...] = ()  # none: those of this Python

    def c_file(self, unit: Unit) -> Path:
        if self.c_folder is None:
            return unit.source.with_suffix(".c")
        return (self.c_folder / unit.source.relative_to(ROOT)).with_suffix(".c")

    def object(self, unit: Unit) -> Path:
        return (self.objects / unit.source.relative_to(ROOT)).with_suffix(".o")

    @property
    def cython_options(self) -> dict[str, Any]:
        return {
            "include_path": [_shown(each) for each in self.include_path],
            "compiler_directives": self.mode.directives | self.directives,
            "emit_linenums": self.mode.lines_of_sources,
        }

    def compile_command(self, unit: Unit) -> list[str]:
        """Without the names of the files."""
        macros = [f"-D{name}={value}" for name, value in self.mode.macros]
        headers = [f"-I{_shown(each)}" for each in self.header_path]
        flags = [*self.mode.compile_flags, *self.mode.optimisation(unit.name), *self.flags]
        python = [f"-I{each}" for each in self.python_headers] or _python_headers()
        return [*self.commands.compile, *macros, *headers, *python, *flags]


class Contracts:
    """Which files a file reads, itself included: contracts and headers, at any depth."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._known: dict[Path, tuple[str, list[Path]]] = {}  # digest, what it names itself

    def read_by(self, source: Path) -> list[Path]:
        found: dict[Path, None] = {}
        waiting = [source, source.with_suffix(".pxd")]
        while waiting:
            path = waiting.pop()
            if path not in found and path.exists():
                found[path] = None
                waiting += self._named_by(path)[1]
        return sorted(found)

    def digest(self, source: Path) -> str:
        """Of the contents of all that a file reads."""
        return _digest(*(self._named_by(path)[0] for path in self.read_by(source)))

    def _named_by(self, path: Path) -> tuple[str, list[Path]]:
        if path not in self._known:
            content = path.read_bytes()
            digest = _digest(os.path.relpath(path, ROOT), content)
            self._known[path] = digest, list(self._named_in(content))
        return self._known[path]

    def _named_in(self, content: bytes) -> Iterator[Path]:
        for found in _READS.finditer(content):
            header = found["header"] or found["c"]
            module = (found["module"] or found["whole"] or b"").decode().replace(".", "/")
            folders = self._recipe.header_path if header else self._recipe.include_path
            name = header.decode() if header else f"{module}.pxd"
            # The first that has it, as the compilers look; what none has is a part of the system.
            yield from [path for each in folders if (path := each / name).exists()][:1]


_entered: set[Path] = set()


@contextmanager
def only_build(recipe: Recipe) -> Iterator[None]:
    """Meanwhile no other process makes files of the same generated C, links them, or copies what
    was linked. `made`, `linked` and `copied` enter it; who calls several of them does before."""
    place = recipe.c_folder or recipe.objects
    if place in _entered:
        yield
        return
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("building: waiting for another build", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        _entered.add(place)
        try:
            yield
        finally:
            _entered.remove(place)


def made(
    units: Sequence[Unit],
    recipe: Recipe,
    *,
    noun: str = "modules",
    jobs: int | None = None,
    force: bool = False,
) -> list[Path]:
    """The objects of the units, those that are stale made again. Raises BuildError."""
    with only_build(recipe):
        return _made(units, recipe, noun, jobs, force)


def _made(
    units: Sequence[Unit], recipe: Recipe, noun: str, jobs: int | None, force: bool
) -> list[Path]:
    contracts = Contracts(recipe)
    compiler = _digest(_version_of(recipe.commands.compile[0]), sys.version)
    stale: list[tuple[Unit, str, str]] = []
    for unit in units:
        of_c = _of_c(contracts.digest(unit.source), recipe)
        of_object = _digest(of_c, compiler, *recipe.compile_command(unit))
        if force:
            _forget(recipe.c_file(unit))
        if force or not _is_of(recipe.object(unit), of_object):
            stale.append((unit, of_c, of_object))
    if stale:
        stale.sort(key=lambda each: -each[0].weight)
        _make_all(stale, recipe, jobs, noun)
    return [recipe.object(unit) for unit in units]


def linked(objects: Sequence[Path], library: Path, recipe: Recipe) -> Path:
    """A library of objects, linked again when it is stale. Raises BuildError."""
    with only_build(recipe):
        command = [*recipe.commands.link, *recipe.mode.link_flags]
        digest = _digest(*command, *(_digest_beside(each).read_text() for each in objects))
        if not _is_of(library, digest):
            _forget(library)
            library.parent.mkdir(parents=True, exist_ok=True)
            partly = _partly(library)
            _run([*command, *map(str, objects), "-o", str(partly)], f"link {library.name}")
            _keep(partly, library, digest)
        return library


def copied(library: Path, target: Path, recipe: Recipe) -> None:
    """The target is the library. A process that has the one before keeps it."""
    with only_build(recipe):
        target.parent.mkdir(parents=True, exist_ok=True)
        partly = target.with_name(f"{target.name}.partly")
        shutil.copyfile(library, partly)
        partly.replace(target)


def commands(compiler: str = "") -> Commands:
    """Those of this Python, with the flags of the environment: CC, CFLAGS, LDSHARED, LDFLAGS.
    compiler: instead of CC."""
    import setuptools  # noqa: F401  # brings distutils to Pythons that have none

    # isort: split
    from distutils.ccompiler import new_compiler
    from distutils.sysconfig import customize_compiler

    before = os.environ.get("CC")
    made: Any = new_compiler()
    try:
        if compiler:
            os.environ["CC"] = compiler
        customize_compiler(made)
    finally:
        if compiler:
            os.environ.pop("CC")
        if before is not None:
            os.environ["CC"] = before
    return Commands(tuple(made.compiler_so), tuple(made.linker_so))


# In the processes that make them ------------------------------------------------------------------


def _make_all(
    stale: list[tuple[Unit, str, str]], recipe: Recipe, jobs: int | None, noun: str
) -> None:
    """Raises what the first that fails was refused with; the others that were begun are kept."""
    jobs = min(jobs or len(os.sched_getaffinity(0)), len(stale))
    context = multiprocessing.get_context("fork")
    weights: dict[Future[str], int] = {}
    progress = Progress("building", len(stale), sum(unit.weight for unit, _, _ in stale), noun)
    with ProcessPoolExecutor(jobs, context, _begin, (os.getpid(),)) as pool, progress:
        for unit, of_c, of_object in stale:
            weights[pool.submit(_make, unit, recipe, of_c, of_object)] = unit.weight
        waiting = set(weights)
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=1, return_when=FIRST_COMPLETED)
                for each in done:
                    progress.say(each.result())
                    progress.done(weights[each])
                progress.show()
        except BaseException:
            pool.shutdown(cancel_futures=True)  # waits: the next build must not meet this one
            raise


def _begin(parent: int) -> None:
    """In a process that makes files: Ctrl-C is for the one that waits for it, with which it ends
    in any case. It has inherited the lock, for which the next build would wait for ever."""
    import ctypes
    import gc

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was killed before
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What Cython makes for a file lives until the file is done; looking for garbage meanwhile
    # took a fifth of the time.
    gc.disable()
    # A released sdist must still build when a newer Cython has a new warning.
    if (ROOT / ".git").exists():
        be_strict()


def _make(unit: Unit, recipe: Recipe, of_c: str, of_object: str) -> str:
    """Translate and compile one file; what the compilers remark on."""
    import gc

    os.chdir(ROOT)  # names in C and in what the compilers say are short
    c_file, target = recipe.c_file(unit), recipe.object(unit)
    said = ""
    if not _is_of(c_file, of_c):
        _forget(c_file)
        before = Contracts(recipe).digest(unit.source)
        said = _translate(unit, recipe, c_file)
        if Contracts(recipe).digest(unit.source) != before or _of_c(before, recipe) != of_c:
            raise BuildError(f"{_shown(unit.source)} was changed while it was built: build again")
        _digest_beside(c_file).write_text(of_c)
        gc.collect()
    _forget(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    partly = _partly(target)
    files = ["-c", os.path.relpath(c_file, ROOT), "-o", str(partly)]
    if recipe.mode.counts_branches:
        counted = target.with_suffix(".c")
        counted.write_text(as_counted(c_file.read_text(), counted.name))
        files = ["-c", str(counted), "-o", str(partly)]
        # gcov's notes and counts lie beside the object, by its name.
        files += ["-dumpdir", f"{target.parent}/", "-dumpbase", target.name, "-dumpbase-ext", ".o"]
    said += _run([*recipe.compile_command(unit), *files], f"compile {_shown(unit.source)}")
    _keep(partly, target, of_object)
    return said


def _translate(unit: Unit, recipe: Recipe, c_file: Path) -> str:
    from Cython.Compiler.Errors import PyrexError
    from Cython.Compiler.Main import compile_single
    from Cython.Compiler.Options import CompilationOptions

    c_file.parent.mkdir(parents=True, exist_ok=True)
    options = CompilationOptions(output_file=str(c_file), **recipe.cython_options)
    heard = io.StringIO()
    try:
        with redirect_stderr(heard):
            failed = compile_single(_shown(unit.source), options, unit.name).num_errors
    except PyrexError as error:
        raise BuildError(
            f"Cython refuses {_shown(unit.source)}:\n{heard.getvalue()}{error}"
        ) from None
    if failed:
        raise BuildError(f"Cython refuses {_shown(unit.source)}:\n{heard.getvalue()}")
    return heard.getvalue()


def as_counted(c: str, name: str) -> str:
    """Cython's C with the branches of the source: the last operand of `and` and `or` is branched on
    as the others are, and what follows a function is not taken for lines of the .pyx."""
    c = _LAST_OPERAND.sub(r"if (\2) \1 = \2; else \1 = \2;\3", c)
    lines: list[str] = []
    for line in c.split("\n"):
        lines.append(line)
        if line == "}":
            lines.append(f'#line {len(lines) + 2} "{name}"')
    return "\n".join(lines)


def _run(command: list[str], what: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{what}: {command[0]} refuses:\n{done.stdout}{done.stderr}")
    return done.stderr


# Digests ------------------------------------------------------------------------------------------


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for each in parts:
        data = each.encode() if isinstance(each, str) else each
        digest.update(b"%d " % len(data) + data)
    return digest.hexdigest()


def _of_c(contents: str, recipe: Recipe) -> str:
    return _digest(_cython_version(), repr(recipe.cython_options), contents)


def _digest_beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.of")


def _is_of(path: Path, digest: str) -> bool:
    """Whether a file was made of just that."""
    try:
        return path.exists() and _digest_beside(path).read_text() == digest
    except FileNotFoundError:
        return False


def _forget(path: Path) -> None:
    _digest_beside(path).unlink(missing_ok=True)


def _partly(path: Path) -> Path:
    """Where a compiler makes it: one whose build was killed may still write."""
    return path.with_name(f"{path.name}.{os.getpid()}.partly")


def _keep(partly: Path, path: Path, digest: str) -> None:
    partly.replace(path)
    _digest_beside(path).write_text(digest)


@cache
def _version_of(compiler: str) -> str:
    try:
        done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        raise BuildError(f"there is no C compiler {compiler!r}: install one, or set CC") from None
    return done.stdout


@cache
def _cython_version() -> str:
    import Cython

    return str(Cython.__version__)


@cache
def _python_headers() -> list[str]:
    import sysconfig

    paths = sysconfig.get_paths()
    return [f"-I{paths[each]}" for each in dict.fromkeys(("include", "platinclude"))]


def _shown(path: Path) -> str:
    return os.path.relpath(path, ROOT)


def units_in(folder: Path, package: str) -> Iterable[Unit]:
    """One for each .pyx below a folder that is a package."""
    for path in sorted(folder.rglob("*.pyx")):
        parts = path.relative_to(folder).with_suffix("").parts
        yield Unit(".".join((package, *parts)), path)
