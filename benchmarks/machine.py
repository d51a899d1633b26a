"""Where and with what the figures were measured."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "peers": ("pulsarx", "pulsar-client", "lmdb", "rocksdict", "redis", "nats-py", "iceoryx2"),
    "core": ("pulsarx", "lmdb", "pyarrow", "pytest-benchmark", "Cython"),
    "official": ("pulsarx", "pulsar-client", "pytest-benchmark", "Cython"),
    "real_pulsar": ("pulsarx", "pulsar-client", "pytest-benchmark", "Cython"),
    "transactions": ("pulsarx", "pytest-benchmark", "Cython"),
    "serve": ("pulsarx", "pulsar-client", "pytest-benchmark", "Cython"),
    "spark": ("pulsarx", "pyspark", "pyarrow", "numpy", "pytest-benchmark", "Cython"),
}


def described(group: str = "core") -> list[tuple[str, str]]:
    """(what, its value), for the head of a table."""
    packages = [f"{name} {version(name)}" for name in PACKAGES[group]]
    return [
        ("processor", f"{_processor()}, {os.cpu_count()} cores"),
        ("memory", f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"),
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
        ("file system", _file_system(ROOT)),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("packages", ", ".join(packages)),
        *([("Java", _java())] if group == "spark" else []),
        ("build", _build()),
        ("revision", _revision()),
        ("load before", " ".join(f"{load:.2f}" for load in os.getloadavg())),
    ]


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "in place" if package == "pulsarx" else "absent"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _file_system(folder: Path) -> str:
    """The type of the file system a folder lies on: of the longest mount point above it."""
    best = ("", "unknown")
    try:
        for line in Path("/proc/mounts").read_text().splitlines():
            _, point, kind = line.split()[:3]
            if folder.is_relative_to(point) and len(point) > len(best[0]):
                best = (point, kind)
    except OSError:
        pass
    return best[1]


def _java() -> str:
    """The one that Spark takes."""
    from pulsarx.spark.java_runtime import find_java, java_version

    return str(java_version(os.path.join(find_java(), "bin", "java")))


def _build() -> str:
    """The mode the library that is found was built in: all but release makes the figures void."""
    found = importlib.util.find_spec("pulsarx")
    if found is None or found.origin is None:
        return "unknown"
    tree = Path(found.origin).parents[1]  # release's lies in build, those of others in build/MODE
    if tree.name != "tree":
        return "unknown"
    return "release" if tree.parent.name == "build" else tree.parent.name


def _revision() -> str:
    git = ["git", "-c", f"safe.directory={ROOT}", "describe", "--always", "--dirty"]
    done = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
