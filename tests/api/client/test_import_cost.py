"""Facts about what importing the library costs."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import py_compile
import subprocess
import sys
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path

import pytest

import pulsarx

EXPENSIVE = ("asyncio", "concurrent.futures", "dataclasses", "difflib", "enum", "importlib",
             "inspect", "json", "logging", "numpy", "pyarrow", "pyspark", "random", "re", "typing",
             "urllib.parse", "uuid", "warnings")  # fmt: skip
# Libraries of their own, each of which takes longer to be opened than most of our modules.
OPENED = ("_queue", "_socket", "fcntl", "zlib")


LATER = ("ground.call_timeout", "ground.replaced_calls", "processes", "randomness", "topic_name")


def loaded_by(program: str) -> set[str]:
    """The modules that a program loads beside those that Python starts with."""
    program = f"import sys; before = set(sys.modules); {program}; print(*set(sys.modules) - before)"
    # Isolated: what site packages load at the start is not ours.
    found = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(pulsarx.__file__).parent.parent)},
    )
    assert found.returncode == 0, found.stderr
    return set(found.stdout.split())


def test_importing_the_library_loads_what_is_asked_for() -> None:
    own = {"pulsarx", "pulsarx.errors", "pulsarx.errors.base"}
    own |= {"pulsarx.ground", "pulsarx.ground.linked_modules"}
    assert loaded_by("import pulsarx") - {"__future__"} == own
    message_id = loaded_by("import pulsarx; pulsarx.MessageId")
    assert "pulsarx.message_id" in message_id and "pulsarx.client" not in message_id


def test_importing_all_of_the_library_loads_nothing_expensive() -> None:
    assert loaded_by("from pulsarx import *").isdisjoint(EXPENSIVE)


def test_opening_a_folder_loads_nothing_expensive_and_not_what_a_producer_needs(
    folder: Path,
) -> None:
    in_catalogues = ("records", "topic_operations")
    later = ("errno", *(f"pulsarx.{name}" for name in LATER))
    for _ in range(2):  # an empty one, and one with a catalogue
        loaded = loaded_by(f"import pulsarx; pulsarx.Client({str(folder)!r}).close()")
        assert loaded.isdisjoint((*EXPENSIVE, *OPENED, *later, "struct", "weakref"))
        assert "pulsarx.options.members" not in loaded and "pulsarx.message_id" not in loaded
        assert "pulsarx.errors.calls" not in loaded
        assert loaded.isdisjoint(f"pulsarx.broker.catalogue.{name}" for name in in_catalogues)


# What the verbs say of themselves: what they do is loaded by who does it.
DECLARED = ("catalogue.changes", "folder.at_once", "folder.storage_errors", "ledgers.ledger_gone",
            "subscriptions.subscription_changes", "topics.partitioned_topic",
            "topics.topic_gone")  # fmt: skip
OF_VERBS = ("pulsarx.broker.policies.", "pulsarx.broker.verbs.")


def test_asking_over_http_loads_what_the_verbs_declare_and_no_broker() -> None:
    before = loaded_by("from pulsarx.admin import Admin")
    loaded = loaded_by("from pulsarx.admin import Admin; Admin.at('http://127.0.0.1:1')") - before
    declared = {f"pulsarx.broker.{name}" for name in DECLARED}
    packages = {name.rpartition(".")[0] for name in declared}
    of_broker = {name for name in loaded if name.startswith("pulsarx.broker.")}
    assert {name for name in of_broker if not f"{name}.".startswith(OF_VERBS)} <= (
        declared | packages
    )
    assert len([name for name in loaded if name.startswith("pulsarx.")]) <= 68
    assert loaded.isdisjoint(f"pulsarx.{name}" for name in ("clock", "_core.ledger_read"))
    assert "pulsarx.broker.verbs.topics" in loaded


def test_the_library_is_in_the_path_of_a_package_before_that_runs() -> None:
    """A thread that imported a module of a package that another one was just importing did not find
    it."""
    program = """
from importlib.machinery import SourceFileLoader
run, paths = SourceFileLoader.exec_module, {}
def look(self, module):
    paths[module.__name__] = list(getattr(module, "__path__", ()))
    run(self, module)
SourceFileLoader.exec_module = look
import pulsarx
pulsarx.Client("memory:").create_producer("t").send(b"1")
packages = {name: path for name, path in paths.items() if path and name.startswith("pulsarx._")}
print(sorted(packages), all("_linked" in path[-1] for path in packages.values()), sep="\\n")
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(pulsarx.__file__).parent.parent)}
    found = subprocess.check_output([sys.executable, "-c", program], env=environment, text=True)
    packages, have_it = found.splitlines()
    assert "pulsarx._core" in packages and "pulsarx._pycore.dispatch" in packages
    assert have_it == "True"


def test_every_public_name_is_there() -> None:
    assert set(pulsarx.__all__) <= set(dir(pulsarx))
    for name in pulsarx.__all__:
        assert getattr(pulsarx, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Clint'"):
        pulsarx.Clint


# Public modules, and a name that programs want of each.
MODULES = {
    "access": "AccessSettings", "admin": "Admin", "aio": "Client", "backups": "check",
    "errors": "Timeout", "exceptions": "Timeout", "functions": "Function",
    "hashing": "partition_of", "rest": "serve_http", "schema": "BytesSchema", "server": "serve",
    "spark": "read_topic", "testing": "fault_plan",
}  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_importing_the_library_is_enough_for_its_modules(module: str) -> None:
    """`pulsarx.aio` was an AttributeError until somebody had imported it."""
    # Spark's names are loaded with PySpark, which need not be there.
    name = "__name__" if module == "spark" else MODULES[module]
    loaded = loaded_by(f"import pulsarx; pulsarx.{module}.{name}")
    assert f"pulsarx.{module}" in loaded
    listed = loaded_by(f"import pulsarx; assert {module!r} in dir(pulsarx)")
    assert module == "errors" or f"pulsarx.{module}" not in listed


def test_exceptions_are_found_under_the_name_that_the_official_client_has() -> None:
    for name in pulsarx.errors.__all__:
        assert getattr(pulsarx.exceptions, name) is getattr(pulsarx, name)


def test_modules_are_found_as_python_finds_them() -> None:
    names = {name for _, name, _ in pkgutil.iter_modules(pulsarx.__path__)}
    assert {"client", "broker", "_core", "ground"} <= names
    finder = sys.path_importer_cache[pulsarx.__path__[0]]
    assert isinstance(finder, FileFinder) and type(finder) is not FileFinder
    for name in ("client", "broker", "broker.catalogue"):
        own = importlib.util.find_spec(f"pulsarx.{name}")
        assert own is not None and own.origin is not None
        path = os.path.dirname(
            own.origin if own.parent != own.name else os.path.dirname(own.origin)
        )
        details = (SourceFileLoader, [".py"])
        pythons = FileFinder(path, details).find_spec(own.name)
        assert pythons is not None
        assert (own.origin, own.cached) == (pythons.origin, pythons.cached)
        assert own.submodule_search_locations == pythons.submodule_search_locations
    assert importlib.util.find_spec("pulsarx.no_such_module") is None


COPIED = ("__init__.py", "errors/__init__.py", "errors/base.py", "enumerations.py",
          "ground/__init__.py", "ground/linked_modules.py", "hashing.py")  # fmt: skip


@pytest.mark.parametrize("options", [(), ("-O",), ("-X", "pycache_prefix=elsewhere")])
def test_a_source_that_changed_is_loaded_anew(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Its byte code is of the size and time that the source had."""
    package = Path(pulsarx.__file__).parent
    for folder in ("errors", "ground"):
        (tmp_path / "pulsarx" / folder).mkdir(parents=True)
    for name in COPIED:
        (tmp_path / "pulsarx" / name).write_text((package / name).read_text())
    source = tmp_path / "pulsarx" / "enumerations.py"
    program = "import pulsarx.enumerations as e; print(e.WORD, e.__cached__)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def word(text: str, time_s: int) -> str:
        whole = (package / "enumerations.py").read_text() + f"WORD = {text!r}\n"
        source.write_text(whole)
        os.utime(source, (time_s, time_s))
        command = [sys.executable, "-S", *options, "-c", program]
        for _ in range(2):  # the first one writes its byte code, which the second one loads
            done = subprocess.run(command, capture_output=True, text=True, check=True,
                                  env=environment, cwd=tmp_path)  # fmt: skip
            found, _, kept = done.stdout.strip().partition(" ")
            assert (tmp_path / kept).exists()
        return found

    assert word("one", 1_700_000_000) == "one"
    assert word("two", 1_700_000_002) == "two"
    assert word("three", 1_700_000_002) == "three"


def test_a_copy_of_byte_code_alone_can_be_used(tmp_path: Path) -> None:
    package = Path(pulsarx.__file__).parent
    for folder in ("errors", "ground"):
        (tmp_path / "pulsarx" / folder).mkdir(parents=True)
    for name in COPIED:
        py_compile.compile(
            str(package / name), cfile=str(tmp_path / "pulsarx" / f"{name}c"), doraise=True
        )
    program = "import pulsarx.ground.linked_modules, pulsarx.enumerations as e; print(e.__file__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.stdout.strip() == str(tmp_path / "pulsarx" / "enumerations.pyc")
