"""Facts about `pulsarx forward` and `pulsarx fetch`."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from child_process import PACKAGE_PARENT
from forwarded import Centre, payloads
from support.topics import filled
from support.waiting import wait_until

import pulsarx

pytestmark = pytest.mark.standard

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: object, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "pulsarx", *map(str, arguments)]
        made = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": PACKAGE_PARENT, **environment},
        )
        started.append(made)
        return made

    yield run
    for each in started:
        each.kill()
        each.communicate()


def first_line(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_forwards_until_a_signal_comes(
    tmp_path: Path, open_centre: Callable[..., Centre], start: Start, number: int
) -> None:
    centre, folder = open_centre(), tmp_path / "edge"
    with pulsarx.Client(folder, durability="os") as client:
        filled(client, 5)
        filled(client, 2, "other")
    pattern = "public/default/.*"
    process = start("forward", folder, centre.place, "--topics", pattern, "--name", "device")
    assert first_line(process) == {
        "source": str(folder), "target": centre.place, "name": "device",
    }  # fmt: skip
    wait_until(lambda: len(payloads(centre.client)) == 5)
    wait_until(lambda: len(payloads(centre.client, "other")) == 2)
    process.send_signal(number)
    assert process.wait(60) == 0


def test_it_fetches(
    tmp_path: Path, edge: pulsarx.Client, open_centre: Callable[..., Centre], start: Start
) -> None:
    centre = open_centre()
    filled(centre.client, 5)
    process = start("fetch", centre.place, tmp_path / "edge", "-t", "t")  # a guest of this process
    assert first_line(process)["name"] == "forward"
    wait_until(lambda: len(payloads(edge)) == 5)
    process.terminate()
    assert process.wait(60) == 0


def test_it_tells_the_service_manager(
    tmp_path: Path, open_centre: Callable[..., Centre], start: Start
) -> None:
    for name in ("edge", "target"):
        pulsarx.Client(tmp_path / name, durability="os").close()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        process = start(
            "forward", tmp_path / "edge", tmp_path / "target", "--topics", "t",
            NOTIFY_SOCKET=str(tmp_path / "notify"),
        )  # fmt: skip
        assert manager.recv(100) == b"READY=1"
        process.terminate()
        assert manager.recv(100) == b"STOPPING=1"
        assert process.wait(60) == 0


def test_it_fails_when_all_topics_have_stopped(
    tmp_path: Path, open_centre: Callable[..., Centre], start: Start
) -> None:
    centre = open_centre(deduplicates=False)
    with pulsarx.Client(tmp_path / "edge", durability="os") as client:
        filled(client, 2)
    process = start("forward", tmp_path / "edge", centre.place, "--topics", "t")
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "persistent://public/default/t: NotAllowedError" in told
    assert "--admin-url" in told
    options = ("--topics", "t", "--admin-url", centre.admin_url, "--compression-type", "zstd")
    process = start("forward", tmp_path / "edge", centre.place, *options)
    wait_until(lambda: payloads(centre.client) == [b"0", b"1"])


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("forward", "nowhere", "target", "--topics", "t"), 1, "nowhere does not exist"),
        (("forward", "nowhere", "target"), 2, "--topics"),
        (("fetch", "pulsar://h:1", "nowhere", "--topics", "t"), 1, "nowhere does not exist"),
        (("forward", "pulsar://h:1", "pulsar://g:1", "-t", "t"), 1, "one of the two"),
    ],
)
def test_what_cannot_be_is_said(
    tmp_path: Path, start: Start, arguments: tuple[str, ...], status: int, text: str
) -> None:
    process = start(*arguments, "--url", tmp_path)
    _, told = process.communicate(timeout=60)
    assert process.returncode == status
    assert text in told
    assert not Path("nowhere").exists()
