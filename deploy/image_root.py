"""Makes the root file system of the image of `pulsarx serve`: `image_root.py PACKAGES TARGET`.

Called by deploy/Dockerfile in its stage `image`. It has Debian's Python without what serving never
imports, the packages, each shared library that one of these files names, and a user.
"""

from __future__ import annotations

import compileall
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

USER = 10001  # and group
# Of the standard library: what builds, tests, draws, teaches, or speaks what nothing here speaks.
WITHOUT_MODULES = (
    "config-*", "ctypes/test", "distutils", "ensurepip", "idlelib", "lib2to3", "pydoc_data",
    "sqlite3", "test", "tkinter", "turtle.py", "turtledemo", "unittest", "venv", "wsgiref",
    "xml", "xmlrpc", "curses", "dbm", "msilib", "pdb.py", "pydoc.py", "doctest.py",
    "pickletools.py",
    "cgi*.py", "ftplib.py", "imaplib.py", "mailbox.py", "nntplib.py", "poplib.py", "smtp*.py",
    "telnetlib.py", "lib-dynload/_test*", "lib-dynload/_ctypes_test*", "lib-dynload/_sqlite3*",
    "lib-dynload/nis*", "lib-dynload/ossaudiodev*", "lib-dynload/_xx*", "lib-dynload/_elementtree*",
    "lib-dynload/_tkinter*", "lib-dynload/_curses*", "lib-dynload/readline*", "lib-dynload/_dbm*",
    "lib-dynload/_crypt*", "lib-dynload/audioop*", "lib-dynload/xxlimited*",
    "lib-dynload/_xxtestfuzz*", "lib-dynload/_codecs_[cht]*", "lib-dynload/_codecs_[ij]*",
    "lib-dynload/_codecs_k*",
)  # fmt: skip
# Of the packages: what is only for building, and Spark, which has an image of its own.
WITHOUT_PACKAGES = (
    "pulsarx/spark", "pyspark_pulsarx.py", "pytest_pulsarx.py", "bin", "*/tests",
    "cffi", "cffi-*", "pycparser", "pycparser-*", "*.dist-info/sboms", "uvloop/*.c",
    "**/*.pyi", "**/*.pxd", "**/*.pyx",
)  # fmt: skip
LINKED = re.compile(r"(?:=> )?(/\S+) \(0x")
HEALTH = """\
import http.client
import ssl

try:
    asked = http.client.HTTPConnection("127.0.0.1", 8080, timeout=4)
    asked.connect()
except ConnectionRefusedError:  # served with --tls-only, under a name that is not this one
    unverified = ssl._create_unverified_context()
    asked = http.client.HTTPSConnection("127.0.0.1", 8443, timeout=4, context=unverified)
asked.request("GET", "/status.html")
raise SystemExit(asked.getresponse().status != 200)
"""
COMMAND = """\
#!/usr/bin/python3 -I
from pulsarx.cli import main

raise SystemExit(main())
"""


def main(packages: Path, target: Path) -> None:
    python = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    make_folders(target)
    copy(python, target)
    (target / "usr/bin/python3").symlink_to(python.name)
    copy_tree(library, target, WITHOUT_MODULES)
    place = target / "usr/lib/python3/dist-packages"
    shutil.copytree(packages, place)
    remove(place, WITHOUT_PACKAGES)
    for each in place.rglob("*.so*"):
        if each.is_file():
            subprocess.run(["strip", "--strip-unneeded", each], check=True)
    copy_linked(target)
    write(target / "usr/bin/pulsarx", COMMAND, 0o755)
    write(target / "usr/share/pulsarx/health.py", HEALTH, 0o644)
    # Nothing can be compiled where the image is read-only.
    checked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for each in (target / str(library)[1:], place):
        compileall.compile_dir(
            str(each), stripdir=str(target), prependdir="/", quiet=2, invalidation_mode=checked
        )
    size = sum(each.lstat().st_size for each in target.rglob("*"))
    print(f"{target}: {size / 1e6:.1f} MB")


def make_folders(target: Path) -> None:
    for name in ("usr/bin", "usr/lib", "etc", "proc", "sys", "dev", "run/secrets", "tmp", "data"):
        (target / name).mkdir(parents=True)
    # As in Debian: where libraries name their loader, and where it looks for others.
    for name in ("bin", "lib", "lib64"):
        (target / name).symlink_to(f"usr/{name}")
    (target / "usr/lib64").mkdir()
    (target / "tmp").chmod(0o1777)
    # A volume that is new takes these over.
    os.chown(target / "data", USER, USER)
    (target / "data").chmod(0o700)
    write(target / "etc/passwd", f"root:x:0:0::/:\npulsarx:x:{USER}:{USER}::/data:\n", 0o644)
    write(target / "etc/group", f"root:x:0:\npulsarx:x:{USER}:\n", 0o644)


def copy(path: Path, target: Path) -> None:
    """One file, under its own name, behind links."""
    place = target / str(path)[1:]
    place = place.parent.resolve() / place.name
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        shutil.copy2(path, place)


def copy_tree(folder: Path, target: Path, without: tuple[str, ...]) -> None:
    place = target / str(folder)[1:]
    shutil.copytree(folder, place, symlinks=False, ignore=shutil.ignore_patterns("__pycache__"))
    remove(place, without)


def remove(folder: Path, patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        for each in list(folder.glob(pattern)):
            if each.is_dir():
                shutil.rmtree(each)
            else:
                each.unlink(missing_ok=True)


def copy_linked(target: Path) -> None:
    """The shared libraries of all that was copied, and the loader."""
    own = [each for each in target.rglob("*") if each.is_file() and is_elf(each)]
    inside = {each.name for each in own}
    for each in own:
        asked = subprocess.run(["ldd", each], capture_output=True, text=True, check=False)
        for found in LINKED.findall(asked.stdout):
            library = Path(found)
            if library.name not in inside:
                copy(library, target)


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
