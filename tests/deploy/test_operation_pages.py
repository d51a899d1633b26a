"""The pages about running PulsarX as a service are true: their commands run as they stand, files
that they name are there, and each exception has its row."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from page_samples import Page, samples

import pulsarx
from pulsarx import errors

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("deployment", "monitoring", "tuning", "upgrading", "troubleshooting", "security")
WIDTH = 110
PATIENCE_SECONDS = 300.0
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PORTS = ("6650", "8080")


def page(name: str) -> str:
    return (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")


def blocks(name: str, kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page(name)) if found == kind]


def with_shell() -> list[str]:
    return [name for name in PAGES if blocks(name, "sh")]


def free_ports() -> list[str]:
    sockets = [socket.socket() for _ in PORTS]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    found = [str(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return found


@pytest.mark.standard
@pytest.mark.parametrize("name", with_shell())
def test_every_command_runs(name: str, tmp_path: Path):
    """All of a page in one shell, in their order; with other ports, which nobody else has."""
    text = "\n".join(blocks(name, "sh"))
    lacks = [
        each
        for each in ("bash", "curl", "promtool", "systemd-analyze")
        if shutil.which(each) is None and (each in text or each == "bash")
    ]
    if lacks:
        pytest.skip(f"{', '.join(lacks)} not found: apt-get install what has it, and run it again")
    for port, other in zip(PORTS, free_ports()):
        text = text.replace(port, other)
        text = text.replace("pulsarx serve events", f"pulsarx serve events {_option(port, other)}")
    programs = tmp_path / "bin"
    programs.mkdir()
    for program, command in (("pulsarx", "-m pulsarx"), ("python3", ""), ("python", "")):
        path = programs / program
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n')
        path.chmod(0o755)
    place = tmp_path / "place"
    place.mkdir()
    (place / "deploy").symlink_to(ROOT / "deploy")
    (place / "benchmarks").symlink_to(ROOT / "benchmarks")
    # What is started in the background ends with the shell.
    script = f"set -euo pipefail -m\ntrap 'kill -TERM $(jobs -p) 2>/dev/null || true' EXIT\n{text}"
    shell = subprocess.Popen(
        ["bash", "-c", script],
        cwd=place,
        env=os.environ
        | {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(Path(pulsarx.__file__).parent.parent),
        },
        stdin=subprocess.DEVNULL,
        stdout=(tmp_path / "out").open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        status = shell.wait(PATIENCE_SECONDS)
    finally:
        for each in _of_session(shell.pid):
            os.kill(each, signal.SIGKILL)
    assert status == 0, (tmp_path / "out").read_text(errors="replace")


@pytest.mark.standard
@pytest.mark.parametrize("name", PAGES)
def test_every_block_of_python_runs(name: str, tmp_path: Path):
    found = [each for each in samples(page(name)) if each.language == "python"]
    Page(tmp_path, dict(os.environ)).run(found)


def _option(port: str, other: str) -> str:
    return f"--port {other}" if port == "6650" else f"--http-port {other}"


def _of_session(session: int) -> list[int]:
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                fields = (each / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session:
                found.append(int(each.name))
    return found


@pytest.mark.parametrize("name", PAGES)
def test_files_that_are_named_are_there(name: str):
    found = re.findall(r"\b((?:deploy|benchmarks|tests|tools|docs)/[\w./-]*\w)", page(name))
    missing = [each for each in found if not (ROOT / each).exists()]
    assert not missing


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(name: str):
    """No line is long, and no cell of a table is a paragraph."""
    for number, line in enumerate(page(name).splitlines(), 1):
        assert len(line) <= WIDTH, f"{name}.md:{number}"
        assert not line.startswith("|") or all(len(each) <= 60 for each in line.split("|"))
    for _, text in BLOCK.findall(page(name)):
        assert max(map(len, text.splitlines())) <= 100


def exceptions() -> set[str]:
    return {
        name
        for name in errors.__all__
        if isinstance(getattr(errors, name), type)
        and issubclass(getattr(errors, name), errors.PulsarException)
    }


def test_every_exception_has_a_cause_and_a_remedy():
    text = page("troubleshooting").partition("\n## Exceptions\n")[2]
    unwrapped = re.sub(r"\n  +", " ", text)
    rows = re.findall(r"^- ((?:`\w+`(?:, )?)+): (.+)", unwrapped, re.MULTILINE)
    named = [name for names, _ in rows for name in re.findall(r"`(\w+)`", names)]
    assert len(named) == len(set(named)), "one is told of twice"
    assert set(named) == exceptions()
    assert exceptions() == set(errors.__all__)
    for names, told in rows:
        assert len(told.split()) >= 6, names
