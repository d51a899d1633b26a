"""Compiles tests/core/test_*.pyx and hands their `test_` functions to pytest, fixtures included.

A module is compiled again when it, a pxd or header of the project, the mode or a compiler changed;
results are kept in build/tests. They call the compiled core, so that one must have been built
(`make test` does).
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.util
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COMPILER = HERE / "compile_module.py"
# Asked here: two threads that ask first at once may both be told None (Python 3.11).
SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))
FOR_SANITIZERS = {"LD_PRELOAD", "PYTHONMALLOC"}
sys.path.insert(0, str(ROOT / "tools"))

from build_mode import build_mode  # noqa: E402

FOLDER = ROOT / "build" / "tests" / build_mode().name
_pool = ThreadPoolExecutor(max_workers=os.cpu_count())


@functools.cache
def _digest_of_contracts() -> str:
    import Cython

    digest = hashlib.sha256(f"{Cython.__version__} {sys.version} {build_mode()}".encode())
    contracts = [*ROOT.glob("src/**/*.pxd"), *ROOT.glob("src/**/*.h"), *HERE.glob("*.pxd")]
    contracts.append(COMPILER)
    for path in sorted(contracts):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _compiled(source: Path) -> Path:
    """Return the .so of a test module, compiled if need be; raises with all the compilers said."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / f"{source.stem}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # processes of pytest-xdist collect at the same time
        return _compiled_alone(source)


def _compiled_alone(source: Path) -> Path:
    library = FOLDER / (source.stem + SUFFIX)
    stamp = FOLDER / (source.stem + ".digest")
    digest = hashlib.sha256(_digest_of_contracts().encode() + source.read_bytes()).hexdigest()
    if library.exists() and stamp.exists() and stamp.read_text() == digest:
        return library
    stamp.unlink(missing_ok=True)
    library.unlink(missing_ok=True)
    command = [sys.executable, str(COMPILER), str(source), str(FOLDER), str(FOLDER / "c")]
    # Compilers need no sanitizers, and are twice as slow with them.
    environment = {name: os.environ[name] for name in os.environ if name not in FOR_SANITIZERS}
    result = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if result.returncode != 0 or not library.exists():
        raise pytest.Collector.CollectError(f"{source.name} does not compile:\n{result.stdout}")
    stamp.write_text(digest)
    return library


def _imported(name: str, library: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        text = f"{name} compiles but cannot be imported; is the core built? (`make test`)\n{error}"
        raise pytest.Collector.CollectError(text) from error
    return module


def _as_python_function(function: Any) -> Any:
    """pytest takes only functions written in Python for tests."""

    @functools.wraps(function)
    def test(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return test


class CythonTestModule(pytest.Module):
    """A test_*.pyx. Compiling begins when it is met, and is waited for when it is collected."""

    compiling: Future[Path]

    def _getobj(self) -> ModuleType:
        module = _imported(self.path.stem, self.compiling.result())
        vars(module).pop("__test__", None)  # Cython's table of doctests; empty, it hides the module
        for name, value in list(vars(module).items()):
            if name.startswith("test_") and callable(value):
                setattr(module, name, _as_python_function(value))
        return module

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        collected = list(super().collect())
        if not collected:
            raise self.CollectError(f"{self.path.name} holds no test_ function")
        return collected


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix != ".pyx" or not file_path.name.startswith("test_"):
        return None
    module = CythonTestModule.from_parent(parent, path=file_path)
    module.compiling = _pool.submit(_compiled, file_path)
    return module


def pytest_collection_finish() -> None:
    """No idle thread stays behind: tests fork, and count threads."""
    _pool.shutdown()
