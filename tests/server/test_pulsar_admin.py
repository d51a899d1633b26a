"""Commands of the real pulsar-admin against the REST API: what each prints, or the reason why it is
refused. Skipped where there is no Java 17 or Maven, or where neither Maven Central nor a local
repository has it."""

from __future__ import annotations

import base64
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import maven
import pytest

import pulsarx
from pulsarx.rest import serve_http
from pulsarx.server import serve

SOURCES = Path(__file__).parent / "pulsar_admin"

pytestmark = pytest.mark.long


class Step(NamedTuple):
    """A line of commands.txt."""

    command: str
    mark: str  # "->": it prints this text; "!>": it is refused with it; "": it prints nothing
    text: str


def steps() -> list[Step]:
    found = []
    for line in (SOURCES / "commands.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        mark = next((each for each in ("->", "!>") if f" {each} " in line), "")
        command, _, text = line.partition(f" {mark} ") if mark else (line, "", "")
        found.append(Step(command, mark, text))
    return found


class PulsarAdmin:
    """See Commands.java."""

    def __init__(self, libraries: Path, url: str) -> None:
        command = ["java", "-Xmx400m", "-cp", f"{libraries}/*", str(SOURCES / "Commands.java"), url]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )

    def perform(self, command: str) -> tuple[bool, str, str]:
        """Whether it was done, what it printed and what it complained about; white space is one."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(shlex.split(command)) + "\n")
        self._process.stdin.flush()
        done, *texts = self._process.stdout.readline().split()
        printed, complained = (
            " ".join(base64.b64decode(each[1:]).decode().split()) for each in texts
        )
        return done == "true", printed, complained

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return maven.libraries(SOURCES, tmp_path_factory.mktemp("java"))


@pytest.fixture
def admin(libraries: Path, tmp_path: Path) -> Iterator[PulsarAdmin]:
    """Of a folder with a topic that has three messages, and an offloader."""
    options = pulsarx.BrokerOptions(offload_url=(tmp_path / "far").as_uri())
    with (
        pulsarx.Client(tmp_path / "folder", broker_options=options) as client,
        serve(client, port=0) as broker,
        serve_http(client, port=0, broker_port=broker.port) as http,
    ):
        with client.create_producer("public/default/clicks") as producer:
            for number in range(3):
                producer.send(b"click %d" % number, properties={"a": "b"}, partition_key="k")
        made = PulsarAdmin(libraries, http.url)
        yield made
        made.close()


def flaw_of(step: Step, done: bool, printed: str, complained: str) -> str | None:
    if step.mark == "!>":
        is_right = not done and step.text in complained
    elif step.mark == "->":
        is_right = done and step.text in printed
    else:
        is_right = done and not printed
    if is_right:
        return None
    return f"{step.command}\n  wanted {step.mark} {step.text}\n  {done}: {printed}\n  {complained}"


def test_commands_of_pulsar_admin_are_done_or_refused_with_a_reason(admin: PulsarAdmin) -> None:
    found = steps()
    assert len(found) >= 200
    flaws = []
    for step in found:
        flaws.append(flaw_of(step, *admin.perform(step.command.format(here=SOURCES))))
    told = [each for each in flaws if each is not None]
    assert not told, "\n".join(told)
