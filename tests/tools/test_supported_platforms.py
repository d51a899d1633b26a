"""Where PulsarX cannot be built, setup.py ends with one sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest
from build_mode import ROOT

# As there: modules of Linux are missing, and setup.py must not come to them.
ELSEWHERE = """
import runpy, sys, sysconfig
sysconfig.get_config_vars()["Py_GIL_DISABLED"] = {free_threaded}
sys.platform = {platform!r}
for name in ("fcntl", "setuptools"):
    sys.modules[name] = None
sys.argv = ["setup.py", "bdist_wheel"]
runpy.run_path("setup.py", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("platform", "free_threaded", "said"),
    [
        ("darwin", 0, "PulsarX runs on Linux alone, and this is macOS: use "),
        ("win32", 0, "PulsarX runs on Linux alone, and this is Windows: use "),
        ("freebsd15", 0, "PulsarX runs on Linux alone, and this is freebsd15: use "),
        ("linux", 1, "PulsarX does not work on free-threaded builds of Python (Py_GIL_DISABLED) "),
    ],
)
def test_building_ends_with_one_sentence(platform: str, free_threaded: int, said: str) -> None:
    program = ELSEWHERE.format(platform=platform, free_threaded=free_threaded)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"setup.py: {said}")


def test_this_platform_is_one() -> None:
    command = [sys.executable, "setup.py", "--version"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "0.1.0", done.stderr
