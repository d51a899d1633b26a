"""The unit of deploy/systemd: systemd itself says whether it is one, and how exposed it is."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import pulsarx
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


def permitted() -> set[str]:
    """The system calls that SystemCallFilter leaves, as this systemd knows its groups."""
    run = subprocess.run(
        ["systemd-analyze", "syscall-filter", "--no-pager"], capture_output=True, text=True
    )
    groups: dict[str, list[str]] = {}
    for line in run.stdout.splitlines():
        if line.startswith("@"):
            members = groups.setdefault(line.strip(), [])
        elif line.startswith("    ") and not line.strip().startswith("#"):
            members.append(line.strip())

    def calls(name: str) -> set[str]:
        if not name.startswith("@"):
            return {name}
        return {call for each in groups[name] for call in calls(each)}

    found: set[str] = set()
    for value in unit()["SystemCallFilter"]:
        named = {call for each in value.lstrip("~").split() for call in calls(each)}
        found = found - named if value.startswith("~") else found | named
    return found


@pytest.mark.standard
def test_the_system_calls_of_serving_are_permitted(tmp_path: Path):
    lacks = [each for each in ("strace", "systemd-analyze") if shutil.which(each) is None]
    if lacks:
        pytest.skip(f"{' and '.join(lacks)} not found: apt-get install strace systemd")
    trace = tmp_path / "trace"
    served = [sys.executable, "-m", "pulsarx", "serve", str(tmp_path / "folder"), "--port=0"]
    traced = subprocess.Popen(
        ["strace", "-f", "-qq", "-o", trace, *served],
        env=os.environ | {"PYTHONPATH": str(Path(pulsarx.__file__).parent.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert traced.stdout is not None
        lines = [traced.stdout.readline() for _ in range(2)]
        if not all(lines):
            pytest.skip(f"strace cannot trace here: {traced.communicate()[1].strip()}")
        url = lines[1].split()[-1]
        # Publishes a message durably and reads it, by the loop and the threads that clients have.
        for path in ("/admin/v2/brokers/health", "/metrics", "/status.html"):
            with urllib.request.urlopen(url + path) as answer:
                assert answer.status == 200
        children = Path(f"/proc/{traced.pid}/task/{traced.pid}/children").read_text()
        os.kill(int(children.split()[0]), signal.SIGTERM)
        assert traced.wait(120) == 0
    finally:
        traced.kill()
        traced.communicate()
    used = set(re.findall(r"^\d+ +(\w+)\(", trace.read_text(errors="replace"), re.MULTILINE))
    assert {"fdatasync", "mmap", "accept4"} & used
    assert not used - permitted()
