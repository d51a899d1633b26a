"""The first steps of a container: run by `container`, as the first process of its namespaces, with
the description of the container, JSON. It becomes the program of the image."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_MDWE = 24, 38, 65
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
DEVICES = ("null", "zero", "full", "random", "urandom")


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


def main(given: dict[str, object]) -> None:
    root = Path(str(given["root"]))
    volumes: dict[str, str] = dict(given["volumes"])  # type: ignore[call-overload]
    for place in volumes:
        (root / place[1:]).mkdir(parents=True, exist_ok=True)
    mount("--bind", root, root)
    mount("-o", "remount,bind,ro", root)
    for place, folder in volumes.items():
        mount("--bind", folder, root / place[1:])
    mount("-t", "tmpfs", "-o", "mode=0755,size=64k", "tmpfs", root / "dev")
    for name in DEVICES:
        (root / "dev" / name).touch()
        mount("--bind", f"/dev/{name}", root / "dev" / name)
    mount("-t", "proc", "-o", "nosuid,nodev,noexec", "proc", root / "proc")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    os.chroot(root)
    os.chdir("/")
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for capability in range(64):
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    user = int(str(given["user"]))
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # As MemoryDenyWriteExecute of systemd; older kernels do not know it.
    prctl(PR_SET_MDWE, 1, 0, 0, 0)
    os.umask(0o077)
    command = [str(each) for each in given["command"]]  # type: ignore[attr-defined]
    os.execve(command[0], command, dict(given["environment"]))  # type: ignore[call-overload]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
