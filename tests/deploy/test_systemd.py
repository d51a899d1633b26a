"""The unit of deploy/systemd: systemd itself says whether it is one, and how exposed it is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pulsarx.cli.serve import _parse

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "deploy/systemd/pulsarx.service"
OPTIONS = ROOT / "deploy/systemd/serve.conf"
PROGRAM = "/opt/pulsarx/bin/pulsarx"
EXPOSURE_MAX = 1.5  # of 10; systemd calls it OK up to 4.9


def unit() -> dict[str, list[str]]:
    """The values of each name of [Service], in their order."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line
        elif "=" in line and not line.startswith("#") and section == "[Service]":
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


@pytest.fixture
def checked(tmp_path: Path) -> Path:
    """The unit, with a program that is there."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not there: apt-get install systemd")
    path = tmp_path / "pulsarx.service"
    path.write_text(UNIT.read_text(encoding="utf-8").replace(PROGRAM, sys.executable))
    return path


def test_systemd_understands_it(checked: Path):
    run = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", checked], capture_output=True, text=True
    )
    assert (run.returncode, run.stdout + run.stderr) == (0, "")


def test_a_unit_that_is_wrong_is_found(checked: Path):
    checked.write_text(checked.read_text().replace("ProtectSystem=strict", "ProtectSystem=much"))
    run = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", checked], capture_output=True, text=True
    )
    assert "Failed to parse protect system value, ignoring: much" in run.stderr


def test_it_is_hardly_exposed(checked: Path):
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", checked]
    run = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", run.stdout)
    assert found, run.stdout + run.stderr
    print(found[0])
    assert float(found[1]) <= EXPOSURE_MAX, run.stdout
    page = (ROOT / "docs/deployment.md").read_text(encoding="utf-8")
    assert f"exposure of {found[1]}" in page


def test_its_command_is_understood_and_listens_on_loopback_alone():
    (command,) = unit()["ExecStart"]
    program, serve, *arguments = command.split()
    assert (program, serve) == (PROGRAM, "serve")
    assert arguments.pop() == "$PULSARX_SERVE_OPTIONS"
    assert unit()["EnvironmentFile"] == ["-/etc/pulsarx/serve.conf"]
    folder, options, _ = _parse(arguments)
    assert folder == f"/var/lib/{unit()['StateDirectory'][0]}"
    assert not options


def test_the_options_that_are_proposed_are_understood():
    text = OPTIONS.read_text(encoding="utf-8")
    (line,) = re.findall(r"^# PULSARX_SERVE_OPTIONS=(.*)$", text, re.MULTILINE)
    assert not re.search(r"^[^#\n]", text, re.MULTILINE)  # all of it is commented out
    _, options, several = _parse(["/var/lib/pulsarx", *line.split()])
    assert options["--token-secret-key"] and "--tls-only" in options
    assert several["--superuser"] == ["admin"]


def test_the_limits_are_those_the_server_asks_for():
    from pulsarx.cli import serve

    assert unit()["LimitNOFILE"] == [str(serve._FILES_MAX)]
    assert unit()["Type"] == ["notify"]


def test_the_user_is_made_as_systemd_does(tmp_path: Path):
    if shutil.which("systemd-sysusers") is None:
        pytest.skip("systemd-sysusers is not there: apt-get install systemd")
    (tmp_path / "etc").mkdir()
    path = ROOT / "deploy/systemd/pulsarx.sysusers"
    command = ["systemd-sysusers", f"--root={tmp_path}", "-"]
    run = subprocess.run(command, input=path.read_text(), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    made = (tmp_path / "etc/passwd").read_text()
    (user,) = unit()["User"]
    assert re.search(rf"^{user}:x:[0-9]+:[0-9]+:PulsarX:/var/lib/pulsarx:\S+nologin$", made, re.M)
