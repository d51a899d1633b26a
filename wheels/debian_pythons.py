"""CPythons of Debian's suites, unpacked into folders: headers for the compiler, interpreters to try
wheels with. make_wheels calls it.

apt-get fetches a Python with all it needs, its signatures checked, for any processor; dpkg-deb
unpacks it. No script of a package runs and nothing is installed, so that neither debootstrap nor
root is needed for that; to enter a folder as a chroot, root or user namespaces are. Each folder is
made beside its place and moved there when it is whole. It is entered in a mount namespace of its
own: what is mounted there goes with the process.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SUITES = ("bookworm", "trixie", "sid")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SHOWN = 200  # characters of what a command says
ENTER = """set -e
root=$1 here=$2; shift 2
for each in /dev /proc /sys "$here"; do
    mkdir -p "$root$each"; mount --rbind "$each" "$root$each"
done
for each in /etc/resolv.conf /etc/hosts /etc/ssl/certs /usr/share/ca-certificates; do
    [ -e "$each" ] || continue
    if [ -d "$each" ]; then mkdir -p "$root$each"; else touch "$root$each"; fi
    mount --rbind "$(readlink -f "$each")" "$root$each"
done
exec chroot "$root" "$@"
"""


class NoPythonError(Exception):
    """There is no such Python to be had; the text says why and what to do."""


@dataclass(frozen=True)
class Python:
    """A CPython of one version and processor."""

    origin: str
    headers: tuple[Path, ...]
    command: tuple[str, ...]  # runs it; empty: it cannot be run here
    emulated: bool = False  # by qemu: alone, without starting others
    why_not_run: str = ""


class DebianPythons:
    """Keeps the folders below one of its own. One process at a time."""

    def __init__(self, folder: Path, shared: Path) -> None:
        """shared: a folder that an entered Python sees at its own place."""
        self._folder, self._shared = folder, shared
        self._suites: dict[str, dict[str, str]] = {}  # by machine: the suite that has a version

    def python(self, version: str, machine: str) -> Python:
        """Raises NoPythonError."""
        if machine not in ARCHITECTURES:
            raise NoPythonError(f"Debian's name of the processor {machine} is not known here")
        suite = self._suite_of(version, machine)
        root = self._folder / f"python{version}-{suite}-{machine}"
        if not root.exists():
            self._unpack(root, suite, version, machine)
        headers = (root / "headers" / f"python{version}", root / "headers")
        if not (headers[0] / "Python.h").exists():
            raise NoPythonError(f"{headers[0]} has no Python.h: remove {root} and try again")
        program = f"usr/bin/python{version}"
        origin = f"Debian {suite}"
        if machine == platform.machine():
            command, why = self._entered(root, f"/{program}")
            return Python(origin, headers, command, why_not_run=why)
        qemu = shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")
        if qemu is None:
            why = f"no qemu-{machine} here: install Debian's qemu-user-static to try it"
            return Python(origin, headers, (), why_not_run=why)
        emulator = (qemu, "-L", str(root), str(root / program))
        return Python(origin, headers, emulator, emulated=True)

    def _entered(self, root: Path, program: str) -> tuple[tuple[str, ...], str]:
        """How to run a program there, or why that cannot be."""
        rights = [] if os.getuid() == 0 else ["--map-root-user"]
        enter = ["unshare", "--mount", *rights, "sh", "-c", ENTER, "sh", str(root)]
        command = [*enter, str(self._shared), program]
        try:
            done = _run([*command, "-c", "print(1)"])
        except OSError as error:
            return (), f"a chroot needs unshare, of util-linux: {error}"
        if done.returncode:
            said = f"{done.stdout}{done.stderr}".strip()[-SHOWN:]
            return (), f"no chroot can be entered here, run it as root: {said}"
        return tuple(command), ""

    def source(self, version: str, folder: Path) -> Path:
        """The archive of CPython's source, put into a folder. Raises NoPythonError."""
        suite = self._suite_of(version, platform.machine())
        apt = self._apt(suite, platform.machine())
        _checked([*apt("apt-get"), "update"], f"ask for the packages of Debian {suite}")
        fetch = [*apt("apt-get"), "source", "--download-only", f"python{version}"]
        _checked(fetch, f"fetch the source of Python {version}", folder)
        archives = list(folder.glob("*.orig.tar.*z"))
        if len(archives) != 1:
            raise NoPythonError(f"the source of Python {version} in Debian {suite} is no archive")
        return archives[0]

    # Packages -------------------------------------------------------------------------------------

    def _suite_of(self, version: str, machine: str) -> str:
        if machine not in self._suites:
            self._suites[machine] = self._look(machine)
        if version not in self._suites[machine]:
            there = ", ".join(sorted(self._suites[machine]))
            raise NoPythonError(
                f"Debian's {', '.join(SUITES)} have no Python {version} for {machine} (they have "
                f"{there})"
            )
        return self._suites[machine][version]

    def _look(self, machine: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for suite in SUITES:  # the oldest suite that has it: its Python is the best tried one
            apt = self._apt(suite, machine)
            _checked([*apt("apt-get"), "update"], f"ask for the packages of Debian {suite}")
            names = _checked([*apt("apt-cache"), "pkgnames", "libpython3."], "list packages")
            for version in re.findall(r"^libpython(3\.\d+)-dev$", names, re.MULTILINE):
                found.setdefault(version, suite)
        return found

    def _apt(self, suite: str, machine: str) -> _Apt:
        for needed in ("apt-get", "dpkg-deb"):
            if shutil.which(needed) is None:
                raise NoPythonError(f"no {needed} here, which fetches Debian's Pythons")
        return _Apt(self._folder / "apt" / f"{suite}-{machine}", suite, machine)

    def _unpack(self, root: Path, suite: str, version: str, machine: str) -> None:
        apt = self._apt(suite, machine)
        names = [f"python{version}", f"python{version}-venv", f"libpython{version}-dev"]
        names += ["dash", "libstdc++6"]  # a shell, and what packages from PyPI ask for
        fetch = [*apt("apt-get"), "install", "--yes", "--download-only", *names]
        _checked(fetch, f"fetch Python {version} of Debian {suite}")
        partly = root.with_name(f"{root.name}.partly")
        shutil.rmtree(partly, ignore_errors=True)
        try:
            for folder in ("bin", "sbin", "lib", "lib64"):
                (partly / "usr" / folder).mkdir(parents=True)
                (partly / folder).symlink_to(f"usr/{folder}")
            for folder in ("dev", "proc", "sys", "etc", "root", "tmp"):
                (partly / folder).mkdir()
            for package in sorted(apt.archives.glob("*.deb")):
                _checked(["dpkg-deb", "-x", str(package), str(partly)], f"unpack {package.name}")
            _part_headers(partly, version)
            partly.rename(root)
        finally:
            shutil.rmtree(partly, ignore_errors=True)
            shutil.rmtree(apt.archives, ignore_errors=True)


def _part_headers(root: Path, version: str) -> None:
    """Put Python's headers apart from those of glibc beside them, which are not the wheel's."""
    include, name = root / "usr" / "include", f"python{version}"
    (root / "headers").mkdir()
    (root / "headers" / name).symlink_to(f"../usr/include/{name}")
    for own in include.glob(f"*-linux-gnu/{name}"):  # pyconfig.h of the processor
        (root / "headers" / own.parent.name).mkdir()
        (root / "headers" / own.parent.name / name).symlink_to(
            f"../../usr/include/{own.parent.name}/{name}"
        )


class _Apt:
    """An apt of its own: what it knows and fetches lies in a folder, apart from the system's."""

    def __init__(self, folder: Path, suite: str, machine: str) -> None:
        self._folder = folder
        self.archives = folder / "cache" / "archives"
        for each in (folder / "state" / "lists" / "partial", self.archives / "partial"):
            each.mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()  # nothing is installed
        signed = f" [signed-by={KEYRING}]" if KEYRING.exists() else ""
        place = f"{signed} {_mirror()} {suite} main\n"
        (folder / "sources.list").write_text(f"deb{place}deb-src{place}")
        name = ARCHITECTURES[machine]
        self._options = {
            "APT::Architecture": name,
            "APT::Architectures": name,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": "2",
            "Debug::NoLocking": "true",
            "Dir::Cache": str(folder / "cache"),
            "Dir::Etc::sourcelist": str(folder / "sources.list"),
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State": str(folder / "state"),
            "Dir::State::status": str(folder / "status"),
        }

    def __call__(self, program: str) -> list[str]:
        """The program with its options."""
        options = [f"-o{name}={value}" for name, value in self._options.items()]
        # update says by its status, too, that an index could not be had.
        return [program, "-qq", "-oAPT::Update::Error-Mode=any", *options]


def _mirror() -> str:
    """Where this machine has Debian from."""
    says = ["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)"]
    found = re.findall(r"^Debian (\S+?/debian/?)$", _run(says).stdout, re.MULTILINE)
    if not found:
        raise NoPythonError("the apt of this machine names no mirror of Debian")
    return str(found[0])


def _run(command: list[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    nothing = subprocess.DEVNULL
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, stdin=nothing
    )


def _checked(command: list[str], what: str, folder: Path | None = None) -> str:
    done = _run(command, folder)
    if done.returncode:
        said = f"{done.stdout}{done.stderr}".strip()[-SHOWN:]
        raise NoPythonError(f"cannot {what}; is there a network? {said}")
    return done.stdout
