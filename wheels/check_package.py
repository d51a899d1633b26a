"""Checks what `make wheel` made as a package index, pip and a packager look at it.

`check_package.py dist`, with a wheel for this Python in the folder: twine and pip find nothing
wrong, a bare install is light, the wheel says what is compiled into it, and building again makes
the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = f"cp{sys.version_info[0]}{sys.version_info[1]}-"
WEIGHT_MAX = 12 << 20  # bytes of a bare install, without the byte code that pip makes of it
LIGHT = {"pulsarx", "click"} | (set() if sys.version_info >= (3, 14) else {"backports.zstd"})

# In the environment where it is installed: the sizes of files by package, byte code apart.
WEIGHT = """
import importlib.metadata, json
found = {}
for each in importlib.metadata.distributions():
    if each.name not in ("pip", "setuptools", "wheel"):
        files = [path.locate() for path in each.files or []]
        there = [path for path in files if path.is_file()]
        code = [path for path in there if path.suffix == ".pyc"]
        sizes = [sum(path.stat().st_size for path in group) for group in (there, code)]
        found[each.name] = [sizes[0] - sizes[1], sizes[1]]
print(json.dumps(found))
"""


class PackageError(Exception):
    """What a packager would send back; the text says what."""


def run(what: str, *command: str, **more: str) -> str:
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | more,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise PackageError(f"{what}:\n{done.stdout}{done.stderr}")
    return done.stdout


def check_bare_install(wheel: Path, folder: Path) -> str:
    """Install it as a user does; what its files weigh."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    run("install the wheel", *pip, "install", "-q", str(wheel))
    run("pip check", *pip, "check")
    found = json.loads(run("weigh what is installed", python, "-c", WEIGHT))
    if set(found) != LIGHT:
        raise PackageError(f"a bare install brings {sorted(found)}, and should {sorted(LIGHT)}")
    weight = sum(files for files, _ in found.values())
    each = ", ".join(f"{name} {files / 2**20:.1f}" for name, (files, _) in sorted(found.items()))
    if weight > WEIGHT_MAX:
        raise PackageError(f"a bare install has {weight:,} bytes, more than {WEIGHT_MAX:,}: {each}")
    code = sum(code for _, code in found.values())
    return f"a bare install has {weight / 2**20:.1f} MB ({each}); byte code {code / 2**20:.1f} MB"


def check_bill(wheel: Path) -> str:
    """The wheel says what of others is compiled in, and has their licences."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (bill,) = [name for name in names if name.endswith(".dist-info/sboms/pulsarx.cdx.json")]
        components = json.loads(archive.read(bill))["components"]
    if not any(name.endswith("/licenses/vendored/lz4/LICENSE") for name in names):
        raise PackageError(f"{wheel.name} lacks the licence of LZ4")
    named = ", ".join(f"{each['name']} {each['version']}" for each in components)
    return f"compiled in, says the bill of materials: {named}"


def check_reproduced(folder: Path) -> str:
    """Two builds of the same sources, in folders of their own, are the same bytes."""
    made: list[str] = []
    for number in ("1", "2"):
        place = folder / number
        build = ("build", "-b", str(place / "build"))
        wheel = ("bdist_wheel", "-d", str(place), "-b", str(place / "files"))
        run("build a wheel", sys.executable, "setup.py", "-q", *build, *wheel)
        (found,) = place.glob("*.whl")
        made.append(hashlib.sha256(found.read_bytes()).hexdigest())
    if made[0] != made[1]:
        raise PackageError(f"two builds of the same sources differ: {made}")
    return f"two builds are the same bytes: sha256 {made[0]}"


def main(dist: Path) -> int:
    files = sorted(map(str, [*dist.glob("*.whl"), *dist.glob("*.tar.gz")]))
    own = [each for each in map(Path, files) if each.suffix == ".whl" and HERE in each.name]
    if not own:
        print(f"check_package: {dist} has no wheel for this Python: make wheel", file=sys.stderr)
        return 1
    try:
        with tempfile.TemporaryDirectory(prefix="pulsarx-package-") as folder:
            run("twine check", sys.executable, "-m", "twine", "check", "--strict", *files)
            print("twine check --strict: nothing", flush=True)
            print(check_bill(own[0]), flush=True)
            print(check_bare_install(own[0], Path(folder) / "bare"), flush=True)
            print(check_reproduced(Path(folder) / "twice"), flush=True)
    except PackageError as error:
        print(f"check_package: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
