"""The image of deploy/Dockerfile is built by its own steps, in folders of debootstrap, and run as a
container: another user, a root that is read-only, no capability. `make test-deploy`."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container import Container
from dockerfile import Stage
from image_builder import NoBuild, build, why_not

import pulsarx

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parents[2]
SIZE_MAX = 80_000_000  # bytes of all files, as `docker images` counts
CLIENT = """
import sys, jwt, pulsarx
key = open(sys.argv[1], "rb").read()
token = jwt.encode({"sub": "admin"}, key, "HS256")
quiet = pulsarx.ConsoleLogger(pulsarx.LoggerLevel.Error)
with pulsarx.Client(
    "pulsar://127.0.0.1:6650",
    authentication=pulsarx.AuthenticationToken(token),
    logger=quiet,
) as client:
    consumer = client.subscribe("t", "s")
    client.create_producer("t").send(b"from outside")
    message = consumer.receive(60_000)
    print(message.data())
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Stage]:
    """Its file system. PULSARX_IMAGE_WHEEL names a folder whose dist/ has a wheel for CPython 3.11:
    without it the wheel is compiled, which takes minutes."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    place = tmp_path_factory.mktemp("image") / "root"
    wheel = os.environ.get("PULSARX_IMAGE_WHEEL")
    contexts = {} if wheel is None else {"wheel": Path(wheel).resolve()}
    base = ROOT / "build" / "deploy"
    base.mkdir(parents=True, exist_ok=True)
    return place, build(place, contexts=contexts, base=base / "bookworm.tar")


@pytest.fixture
def volumes(tmp_path: Path, image: tuple[Path, Stage]) -> dict[str, Path]:
    """A volume for data, and the key of tokens, as files that the user may read."""
    user = int(image[1].container["USER"].partition(":")[0])
    data, key = tmp_path / "data", tmp_path / "key"
    for each in (data, key):
        each.mkdir(mode=0o700)
        os.chown(each, user, user)
    (key / "token.key").write_bytes(secrets.token_bytes(32))
    os.chown(key / "token.key", user, user)
    return {"/data": data, "/run/secrets/pulsarx": key}


@pytest.fixture
def start(image: tuple[Path, Stage]) -> Iterator[Any]:
    made: list[Container] = []

    def one(volumes: dict[str, Path], arguments: list[str] | None = None) -> Container:
        made.append(Container(*image, volumes, arguments))
        return made[-1]

    yield one
    for each in made:
        each.close()


def test_it_is_small_and_has_no_shell(image: tuple[Path, Stage]):
    root, _ = image
    files = [each for each in root.rglob("*") if not each.is_symlink()]
    size = sum(each.stat().st_size for each in files if each.is_file())
    print(f"{size / 1e6:.1f} MB")
    assert size <= SIZE_MAX
    names = {each.name for each in files}
    assert not names & {"sh", "bash", "dash", "busybox", "apt", "dpkg", "pip", "su", "sudo"}
    assert not [each for each in files if each.is_file() and each.stat().st_mode & 0o6000]


def test_it_serves_as_another_user_on_a_read_only_root_and_ends_when_told_to(
    image: tuple[Path, Stage], volumes: dict[str, Path], start: Any
):
    container = start(volumes)
    line = container.first_line()
    assert re.fullmatch(r"/data/folder is served at pulsar://0\.0\.0\.0:6650\n", line), (
        line or container.ended()[1]
    )
    status = Path(f"/proc/{container.pid}/status").read_text()
    user = image[1].container["USER"].partition(":")[0]
    assert re.search(rf"^Uid:\t{user}\t{user}\t{user}\t{user}$", status, re.MULTILINE)
    assert re.search(r"^NSpid:.*\s1$", status, re.MULTILINE)
    assert re.search(r"^CapBnd:\t0+$", status, re.MULTILINE)
    assert container.health() == 0
    done = container.run(CLIENT, str(volumes["/run/secrets/pulsarx"] / "token.key"))
    assert (done.returncode, done.stdout) == (0, "b'from outside'\n"), done.stderr
    assert container.stop() == (0, "")
    with pulsarx.Client(str(volumes["/data"] / "folder")) as client:
        assert client.admin.topics.stats("t")["messages"] == 1


def test_its_command_works_inside(volumes: dict[str, Path], start: Any):
    made = start(volumes, ["produce", "orders", "-m", "one", "--url", "/data/folder"])
    status, said = made.ended()
    assert status != 0 and "folder" in said  # a folder is never made by that
    with pulsarx.Client(str(volumes["/data"] / "folder")) as client:
        client.create_producer("orders").send(b"x")
    owner = os.stat(volumes["/data"])
    for each in [volumes["/data"] / "folder", *(volumes["/data"] / "folder").rglob("*")]:
        os.chown(each, owner.st_uid, owner.st_gid)
    made = start(volumes, ["check", "--url", "/data/folder"])
    assert made.ended() == (0, "")


def test_without_the_key_of_tokens_it_says_so_and_ends(volumes: dict[str, Path], start: Any):
    del volumes["/run/secrets/pulsarx"]
    status, said = start(volumes).ended()
    assert status == 2 and "/run/secrets/pulsarx/token.key" in said


def test_its_health_is_bad_while_nothing_is_served(volumes: dict[str, Path], start: Any):
    container = start(volumes, ["serve", "/data/folder", "--no-http"])
    assert "is served at" in container.first_line()
    assert container.health() != 0


def test_a_step_that_fails_leaves_nothing(tmp_path: Path):
    reason = why_not()
    if reason:
        pytest.skip(reason)
    path = tmp_path / "Dockerfile"
    path.write_text("FROM scratch\nRUN true\n")
    with pytest.raises(NoBuild, match="RUN true: status"):
        build(tmp_path / "image", path=path)
    assert [each.name for each in tmp_path.iterdir()] == ["Dockerfile"]
