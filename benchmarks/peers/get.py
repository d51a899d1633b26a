"""Fetches what the peers need into build/peers, and nothing outside of it: Python packages of the
extra bench-peers, each into a folder of its own; Redis, which Debian has; NATS, which Go builds;
Chronicle Queue, by Maven. What cannot be had is named, and that peer is skipped.

    PYTHONPATH=benchmarks python -m peers.get
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peers.peer import Missing

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "peers"
PYTHON = BUILD / "python"
NATS = "github.com/nats-io/nats-server/v2@v2.15.2"
DEBIAN = ("redis-tools", "libjemalloc2", "liblzf1", "libatomic1")


def run(*command: str, **options: Any) -> None:
    """Missing, with what it said last, where it fails or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    except OSError as error:
        raise Missing(f"no {command[0]}: {error.strerror}") from error
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines() or ["nothing said"]
        raise Missing(f"{' '.join(command[:3])} failed: {said[-1][:200]}")


def package_names() -> list[str]:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return list(declared["project"]["optional-dependencies"]["bench-peers"])


def use_packages() -> None:
    """Have what was fetched importable; what .venv has goes before it."""
    for folder in sorted(PYTHON.glob("*")):
        if (folder / "complete").exists() and str(folder) not in sys.path:
            sys.path.append(str(folder))


def get_package(name: str) -> None:
    folder = PYTHON / name
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        run(sys.executable, str(ROOT / "tools" / "packages.py"), str(folder), name)
        (folder / "complete").touch()


def get_redis() -> None:
    if shutil.which("redis-server") or (BUILD / "redis" / "usr").is_dir():
        return
    packages, part = BUILD / "debian", BUILD / "redis.part"
    packages.mkdir(parents=True, exist_ok=True)
    try:
        run("apt-get", "download", *DEBIAN, cwd=packages)
    except Missing:  # lists that are not there, or of old: others in build/peers
        (BUILD / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        lists = ("-o", f"Dir::State::lists={BUILD / 'lists'}", "-o", "Dir::Cache::pkgcache=")
        run("apt-get", *lists, "update")
        run("apt-get", *lists, "download", *DEBIAN, cwd=packages)
    for package in packages.glob("*.deb"):
        run("dpkg", "-x", str(package), str(part))
    part.rename(BUILD / "redis")


def redis_server() -> tuple[str, dict[str, str]]:
    """The program and its environment."""
    found = shutil.which("redis-server")
    if found:
        return found, dict(os.environ)
    program = BUILD / "redis" / "usr" / "bin" / "redis-check-rdb"  # which is the server, by argv[0]
    server = BUILD / "redis" / "redis-server"
    if not program.exists():
        raise Missing("no redis-server")
    if not server.exists():
        server.unlink(missing_ok=True)  # of a folder that was moved
        server.symlink_to(Path("usr", "bin", program.name))
    libraries = sorted({str(path.parent) for path in (BUILD / "redis").rglob("*.so.*")})
    return str(server), os.environ | {"LD_LIBRARY_PATH": ":".join(libraries)}


def get_nats() -> None:
    if not (shutil.which("nats-server") or (BUILD / "bin" / "nats-server").exists()):
        run("go", "install", NATS, env=os.environ | {"GOBIN": str(BUILD / "bin")})


def nats_server() -> str:
    found = shutil.which("nats-server", path=f"{os.environ['PATH']}:{BUILD / 'bin'}")
    if not found:
        raise Missing("no nats-server")
    return found


def get_chronicle() -> None:
    """The jars, and the program beside this file."""
    jars, classes = BUILD / "chronicle" / "jars", BUILD / "chronicle" / "classes"
    if not jars.is_dir():
        part = jars.with_name("jars.part")
        pom = str(HERE / "chronicle" / "pom.xml")
        goal = ("dependency:copy-dependencies", f"-DoutputDirectory={part}")
        run("mvn", "-B", "-q", "-f", pom, *goal)
        part.rename(jars)
    source = HERE / "chronicle" / "ChronicleSide.java"
    run("javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), str(source))


def get_all() -> dict[str, str]:
    """Fetch all; why something could not be had, by its name."""
    works: dict[str, Callable[[], None]] = {
        "redis-server": get_redis,
        "nats-server": get_nats,
        "Chronicle Queue": get_chronicle,
    }
    for name in package_names():
        works[name] = lambda name=name: get_package(name)  # type: ignore[misc]
    failed = {}
    for name, work in works.items():
        try:
            work()
        except Missing as error:
            failed[name] = str(error)
    return failed


if __name__ == "__main__":
    for name, why in get_all().items():
        print(f"{name} cannot be had: {why}", file=sys.stderr)
