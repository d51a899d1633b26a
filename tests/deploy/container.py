"""Runs an image as a container: its user, a read-only root, namespaces, no capability."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from dockerfile import Stage

INIT = Path(__file__).with_name("container_init.py")
PATIENCE_SECONDS = 120.0


class Container:
    """One that runs. Its network is its own: who asks it does so by `run`, or inside."""

    def __init__(
        self,
        root: Path,
        stage: Stage,
        volumes: dict[str, Path],
        arguments: list[str] | None = None,
    ) -> None:
        """volumes: by their places inside. arguments: in the place of CMD."""
        user = stage.container["USER"].partition(":")[0]
        command = [
            *stage.container["ENTRYPOINT"],
            *(stage.container["CMD"] if arguments is None else arguments),
        ]
        self.stage = stage
        self.root = root
        given = {
            "root": str(root),
            "volumes": {place: str(folder) for place, folder in volumes.items()},
            "user": int(user),
            "environment": stage.environment,
            "command": command,
        }
        self.outer = subprocess.Popen(
            [
                "unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork",
                "--kill-child", sys.executable, INIT, json.dumps(given),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def first_line(self) -> str:
        """What the program prints first."""
        assert self.outer.stdout is not None
        return self.outer.stdout.readline()

    @property
    def pid(self) -> int:
        """The first process of the container, as it is known outside."""
        children = Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children")
        return int(children.read_text().split()[0])

    def health(self) -> int:
        """The status of HEALTHCHECK, done inside."""
        command: list[str] = self.stage.container["HEALTHCHECK"]["command"]
        user = self.stage.container["USER"].partition(":")[0]
        inside = ["nsenter", f"--target={self.pid}", "--net", "--pid", "--mount", "--root"]
        return subprocess.run(
            [*inside, f"--setuid={user}", f"--setgid={user}", *command],
            capture_output=True,
            timeout=PATIENCE_SECONDS,
        ).returncode

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A program of this machine's Python on the network of the container."""
        return subprocess.run(
            [
                "nsenter",
                f"--net=/proc/{self.pid}/ns/net",
                sys.executable,
                "-c",
                program,
                *arguments,
            ],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
            timeout=PATIENCE_SECONDS,
        )

    def stop(self) -> tuple[int, str]:
        """As `docker stop`: the status, and what was said on standard error."""
        os.kill(self.pid, signal.SIGTERM)
        return self.ended()

    def ended(self) -> tuple[int, str]:
        _, said = self.outer.communicate(timeout=PATIENCE_SECONDS)
        return self.outer.returncode, said

    def close(self) -> None:
        """End it at once, where it still runs: another user's process does not die with its
        parent."""
        if self.outer.poll() is None:
            with suppress(IndexError, ProcessLookupError, FileNotFoundError):
                os.kill(self.pid, signal.SIGKILL)
            self.outer.kill()
        self.outer.communicate()
