"""Tries a wheel: `test_wheel.py dist/x.whl` in a fresh environment; no argument: in this one."""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_IN_WHEELS = {".pyx", ".pxd", ".c", ".h"}


def try_in_fresh_environment(wheel: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="pulsarx-wheel-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, str(wheel)], check=True)
        subprocess.run([python, str(Path(__file__).resolve())], check=True, cwd=folder)


def try_what_is_installed() -> None:
    import pulsarx

    home = Path(str(pulsarx.__file__)).parent
    assert ROOT not in home.parents or ".venv" in home.parts, f"{home} is the source, no wheel"
    files = importlib.metadata.files("pulsarx") or []
    sources = [str(file) for file in files if file.suffix in NOT_IN_WHEELS]
    assert not sources, f"the wheel holds sources: {sources}"
    for folder, package in (("core", "_core"), ("pycore", "_pycore")):
        for path in sorted((ROOT / "src" / folder).rglob("*.pyx")):
            parts = path.relative_to(ROOT / "src" / folder).with_suffix("").parts
            module = importlib.import_module(".".join(["pulsarx", package, *parts]))
            assert Path(str(module.__file__)).parent == home
    for path in sorted((ROOT / "spark").glob("*.py")):
        assert (home / "spark" / path.name).exists(), f"the wheel lacks pulsarx.spark: {path.name}"
    importlib.import_module("pulsarx.spark")
    importlib.import_module("pyspark_pulsarx")  # never fails, with or without PySpark
    assert (home / "py.typed").exists()
    plugins = importlib.metadata.entry_points(group="pytest11", name="pytest_pulsarx")
    assert [plugin.value for plugin in plugins] == ["pytest_pulsarx"]
    assert (home.parent / "pytest_pulsarx.py").exists()
    command = importlib.metadata.entry_points(group="console_scripts", name="pulsarx")
    assert [each.load()(["--help"]) for each in command] == [0]
    if hasattr(pulsarx, "Client"):
        publish_and_consume()
    print(f"ok: pulsarx {importlib.metadata.version('pulsarx')}, Python {sys.version.split()[0]}")


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


if __name__ == "__main__":
    if len(sys.argv) > 1:
        try_in_fresh_environment(Path(sys.argv[1]).resolve())
    else:
        try_what_is_installed()
