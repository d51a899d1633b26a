"""Builds the image of a Dockerfile where there is no Docker: root and debootstrap do its steps, in
folders that are gone afterwards, but for the last stage's.

`image_builder.py TARGET [--build-context NAME=FOLDER] [--keep-base FILE.tar]`
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from dockerfile import DockerfileError, Stage, ignored, stages, variables

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy/Dockerfile"
SUITES = {"debian:bookworm-slim": "bookworm"}
MIRROR = "http://deb.debian.org/debian"
# What a build may know of the machine, as Docker's predefined arguments: how to reach a network.
PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


class NoBuild(Exception):
    """It cannot be built here; the text says what to do. Nothing is left of it."""


def why_not() -> str:
    """Why nothing can be built here; empty: it can."""
    if os.geteuid() != 0:
        return "the steps of the image need root: run it as root, or use docker build"
    missing = [each for each in ("debootstrap", "unshare", "mount") if shutil.which(each) is None]
    if missing:
        return f"{', '.join(missing)} not found: apt-get install debootstrap util-linux"
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        return "this user may not mount (unshare --mount): run it where root may, or use Docker"
    return ""


def build(
    target: Path,
    *,
    path: Path = DOCKERFILE,
    contexts: dict[str, Path] | None = None,
    base: Path | None = None,
) -> Stage:
    """Make the file system of the last stage at target, which must not be there; the stage.

    contexts: folders in the place of stages, as --build-context of Docker. base: a tar file of
    what debootstrap makes, which is made when it is missing. NoBuild; there is no target then.
    """
    reason = why_not()
    if reason:
        raise NoBuild(reason)
    if target.exists():
        raise NoBuild(f"{target} is there already: choose another folder")
    made = dict(contexts or {})
    with ExitStack() as stack:
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        found = stages(path)
        for number, stage in enumerate(found):
            if stage.name in made:
                continue
            folder = scratch / (stage.name or f"stage-{number}")
            print(f"stage {stage.name or number}: FROM {stage.base}", flush=True)
            begin(stage.base, folder, base)
            place = "/"
            environment: dict[str, str] = {}
            for word, rest in stage.steps:
                print(f"  {word} {rest[:90]}", flush=True)
                if word == "ENV":
                    environment |= variables(rest)
                elif word == "WORKDIR":
                    place = rest
                    inside(folder, place).mkdir(parents=True, exist_ok=True)
                elif word == "COPY":
                    copy(folder, place, rest, path, made)
                else:
                    run(folder, place, rest, environment)
            made[stage.name or str(number)] = folder
        os.rename(made[found[-1].name or str(len(found) - 1)], target)
    return found[-1]


def begin(base: str, folder: Path, kept: Path | None) -> None:
    if base == "scratch":
        folder.mkdir()
        return
    if base not in SUITES:
        raise DockerfileError(f"FROM {base}: only {', '.join(SUITES)} and scratch are known here")
    if kept is not None and kept.exists():
        folder.mkdir()
        call(["tar", "-xpf", kept, "-C", folder], f"unpack {kept}")
        return
    command: list[str | Path] = ["debootstrap", "--variant=minbase", SUITES[base], folder, MIRROR]
    call(command, f"make the base {base}")
    shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
    if Path(CERTIFICATES).exists():  # a proxy's among them; the package replaces the file
        (folder / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)
        shutil.copy(CERTIFICATES, folder / "etc/ssl/certs/of-the-machine.crt")
    if kept is not None:
        partly = kept.with_name(f"{kept.name}.partly")
        call(["tar", "-cpf", partly, "-C", folder, "."], f"keep {kept}")
        os.rename(partly, kept)


def copy(folder: Path, place: str, text: str, dockerfile: Path, made: dict[str, Path]) -> None:
    *sources, target = shlex.split(text)
    origin = ROOT
    without = ignored(dockerfile.with_name(f"{dockerfile.name}.dockerignore"))
    if sources[0].startswith("--from="):
        origin, without = made[sources.pop(0).removeprefix("--from=")], ()
    into = inside(folder, target if target.startswith("/") else f"{place}/{target}")
    for name in sources:
        source = origin / name.lstrip("/")
        if not source.exists():
            raise NoBuild(f"COPY {text}: there is no {source}")
        if source.is_dir():
            shutil.copytree(
                source,
                into,
                symlinks=True,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns(*without),
            )
            keep_owners(source, into)
        elif target.endswith("/"):
            into.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, into / source.name)
        else:
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, into)


def keep_owners(source: Path, target: Path) -> None:
    for each in target.rglob("*"):
        there = source / each.relative_to(target)
        if there.exists() and not each.is_symlink():
            found = there.stat()
            os.chown(each, found.st_uid, found.st_gid)
            os.chmod(each, found.st_mode & 0o7777)


def inside(folder: Path, path: str) -> Path:
    return folder / path.lstrip("/")


def run(folder: Path, place: str, text: str, environment: dict[str, str]) -> None:
    """In namespaces of its own: what it mounts and starts is gone when it ends."""
    known = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    pip.pop("PIP_FIND_LINKS", None)  # folders of this machine
    if (folder / "etc/ssl/certs/of-the-machine.crt").exists() and "PIP_CERT" in pip:
        pip["PIP_CERT"] = "/etc/ssl/certs/of-the-machine.crt"
    inner = shlex.join(["chroot", str(folder), "/bin/sh", "-ec", f"cd {place} && {text}"])
    outer = (
        f"mount -t proc proc {shlex.quote(str(folder / 'proc'))} && "
        f"mount --rbind /dev {shlex.quote(str(folder / 'dev'))} && exec {inner}"
    )
    call(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-ec", outer],
        f"RUN {text[:200]}",
        {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
        | known
        | pip
        | environment,
    )


def call(
    command: Sequence[str | Path], what: str, environment: dict[str, str] | None = None
) -> None:
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        raise NoBuild(f"{what}: status {done.returncode}\n{done.stdout[-4000:]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("--build-context", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--keep-base", type=Path, metavar="FILE.tar")
    given = parser.parse_args()
    contexts = {}
    for each in given.build_context:
        name, _, folder = each.partition("=")
        contexts[name] = Path(folder).resolve()
    try:
        build(given.target.resolve(), contexts=contexts, base=given.keep_base)
    except (NoBuild, DockerfileError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
