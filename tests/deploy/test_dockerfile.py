"""deploy/Dockerfile, and the reader of Dockerfiles by which its steps are tested."""

from __future__ import annotations

import socket
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import image_root
import pytest
from certificates import Authority
from dockerfile import DockerfileError, ignored, stages
from image_builder import DOCKERFILE, NoBuild, build

import pulsarx
from pulsarx.access import TlsSettings
from pulsarx.access.service_settings import DEFAULT_PORT
from pulsarx.cli.serve import _parse
from pulsarx.rest import serve_http
from pulsarx.rest.http_service import DEFAULT_PORT as HTTP_PORT
from pulsarx.rest.http_service import DEFAULT_PORT_TLS


def test_the_image_is_of_the_last_stage_and_begins_with_nothing():
    found = stages(DOCKERFILE)
    assert [(each.base, each.name) for each in found] == [
        ("debian:bookworm-slim", "wheel"),
        ("debian:bookworm-slim", "image"),
        ("scratch", ""),
    ]
    assert found[-1].steps[0] == ("COPY", "--from=image /image /")


def test_its_user_is_not_root_and_its_command_is_understood():
    last = stages(DOCKERFILE)[-1]
    user, _, group = last.container["USER"].partition(":")
    assert int(user) > 0 and int(group) > 0
    assert last.container["EXPOSE"] == f"{DEFAULT_PORT} {HTTP_PORT}"
    assert last.container["VOLUME"] == "/data"
    assert last.container["STOPSIGNAL"] == "SIGTERM"
    assert last.container["ENTRYPOINT"] == ["/usr/bin/pulsarx"]
    serve, *arguments = last.container["CMD"]
    folder, options, several = _parse(arguments)
    assert (serve, folder) == ("serve", "/data/folder")
    assert "--allow-anonymous" not in options and options["--token-secret-key"]
    assert several["--superuser"] == ["admin"]


def test_its_health_is_asked_for_by_a_program_that_is_in_it():
    check = stages(DOCKERFILE)[-1].container["HEALTHCHECK"]
    assert set(check) == {"interval", "timeout", "start-period", "retries", "command"}
    assert check["command"][-1] == "/usr/share/pulsarx/health.py"


@pytest.mark.standard
@pytest.mark.parametrize("with_tls", [False, True])
def test_its_health_is_that_of_the_server_at_its_usual_ports(tmp_path: Path, with_tls: bool):
    tls = None
    if with_tls:
        files = Authority(tmp_path).sign("localhost")
        tls = TlsSettings(*files)
    with pulsarx.Client("memory:") as client:
        with serve_http(client, port=0, tls=tls) as service:
            other = socket.create_server(("127.0.0.1", 0))
            closed = other.getsockname()[1]
            other.close()
            usual = {HTTP_PORT: closed, DEFAULT_PORT_TLS: closed}
            usual[DEFAULT_PORT_TLS if with_tls else HTTP_PORT] = service.port
            program = image_root.HEALTH
            for port, instead in usual.items():
                assert f'"127.0.0.1", {port},' in program
                program = program.replace(f'"127.0.0.1", {port},', f'"127.0.0.1", {instead},')
            assert subprocess.run([sys.executable, "-c", program]).returncode == 0
        run = subprocess.run([sys.executable, "-c", program], capture_output=True)
        assert run.returncode != 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("RUN true\n", "before the first FROM"),
        ("FROM a b\n", "FROM a b is not understood"),
        ("FROM a\nADD b c\n", "ADD b c is not understood"),
        ("FROM a\nENV B\n", "give NAME=VALUE"),
        ("FROM a\nCMD serve\n", "a JSON list is needed"),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, text: str, complaint: str):
    path = tmp_path / "Dockerfile"
    path.write_text(text)
    with pytest.raises(DockerfileError, match=complaint):
        stages(path)


def test_lines_that_go_on_are_one_step(tmp_path: Path):
    path = tmp_path / "Dockerfile"
    path.write_text("# a\nFROM a AS b\nRUN c \\\n    # d\n    && e\nENV F=1 G='2 3'\n")
    (found,) = stages(path)
    assert found.steps == [("RUN", "c && e"), ("ENV", "F=1 G='2 3'")]
    assert found.environment == {"F": "1", "G": "2 3"}


def test_what_is_built_here_is_no_part_of_the_context(tmp_path: Path):
    assert "*.so" in ignored(DOCKERFILE.with_name("Dockerfile.dockerignore"))
    path = tmp_path / "ignore"
    path.write_text("build\n")
    with pytest.raises(DockerfileError, match="give \\*\\*/NAME"):
        ignored(path)


def test_all_that_git_tracks_of_what_is_copied_is_part_of_the_context():
    """The sources of LZ4 used to be left out as if they had been made here."""
    root = DOCKERFILE.parents[1]
    if not (root / ".git").exists():
        pytest.skip("not a git clone")
    copied = [
        rest.split()[0]
        for word, rest in stages(DOCKERFILE)[0].steps
        if word == "COPY" and len(rest.split()) == 2
    ]
    assert {"python", "src", "vendored"} <= set(copied)
    tracked = subprocess.run(
        ["git", "-c", f"safe.directory={root}", "ls-files", *copied],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    patterns = ignored(DOCKERFILE.with_name("Dockerfile.dockerignore"))
    left_out = [
        each
        for each in tracked
        if any(fnmatch(part, pattern) for part in Path(each).parts for pattern in patterns)
    ]
    assert "vendored/lz4/lz4.c" in tracked and not left_out


def test_where_nothing_can_be_built_it_is_said_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(NoBuild, match="run it as root, or use docker build"):
        build(tmp_path / "image")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(NoBuild, match="apt-get install debootstrap"):
        build(tmp_path / "image")
    assert not any(tmp_path.iterdir())
