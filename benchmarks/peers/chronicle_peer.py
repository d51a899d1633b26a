"""Chronicle Queue in a JVM of its own: writeBytes, a named tailer, SyncMode.SYNC and sync() where
it flushes. The loops are in Java (chronicle/ChronicleSide.java); a payload is read into an array
that is used again, so no object is made for a message. Its tailer polls, as its documentation has
it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from peers.get import BUILD
from peers.peer import Missing, Peer

OPENED = (
    "java.base/java.lang", "java.base/java.lang.reflect", "java.base/java.util",
    "java.base/java.io", "java.base/java.nio", "java.base/sun.nio.ch", "java.base/jdk.internal.ref",
    "java.base/jdk.internal.misc", "jdk.compiler/com.sun.tools.javac.file",
)  # fmt: skip
WARM_UP = 30_000  # messages until the JVM has compiled
EXPORTED = ("java.base/jdk.internal.ref", "java.base/sun.nio.ch", "jdk.unsupported/sun.misc")


class Side:
    """A JVM that does what it is told."""

    def __init__(self, folder: Path, flushed: bool = False) -> None:
        chronicle = BUILD / "chronicle"
        if not (chronicle / "classes").is_dir() or shutil.which("java") is None:
            raise Missing("no Java, or no Maven to fetch it: python -m peers.get")
        command = ["java", "-Xmx512m", "-Dchronicle.analytics.disable=true"]
        command += ["-Dchronicle.announcer.disable=true", "-Ddisable.single.threaded.check=true"]
        for each in OPENED:
            command += ["--add-opens", f"{each}=ALL-UNNAMED"]
        for each in EXPORTED:
            command += ["--add-exports", f"{each}=ALL-UNNAMED"]
        command += ["-cp", f"{chronicle / 'classes'}:{chronicle / 'jars'}/*", "ChronicleSide"]
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [*command, str(folder), "flushed" if flushed else "page cache"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
        )  # fmt: skip
        try:
            self._answer("ready")
            self.tell("warm", WARM_UP)
            self.hear()
        except OSError as error:
            raise Missing(str(error)) from error

    def _answer(self, expected: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(expected):
                return line
        self.process.wait()
        self.log.seek(0)
        said = self.log.read().strip().splitlines() or ["nothing said"]
        raise OSError(f"Chronicle Queue ended: {said[0][:300]}")

    def tell(self, what: str, count: int, size: int = 100, together: int = 0) -> None:
        """together: how many messages are flushed at once, 0: none is."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what} {count} {size} {together}\n")
        self.process.stdin.flush()

    def hear(self) -> int:
        return int(self._answer("done").split()[1])

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.log.close()


class Chronicle(Peer):
    """One way to consume: it has no lists."""

    name = "Chronicle Queue"
    ways = ("publish_each", "publish_stream", "consume_each")

    def __init__(self, folder: Path, flushed: bool) -> None:
        self.side = Side(folder, flushed)
        self.flushed = flushed
        self.size = 0

    def _publish(self, payloads: list[bytes], together: int) -> None:
        self.size = len(payloads[0])
        self.side.tell("publish", len(payloads), self.size, together if self.flushed else 0)
        self.side.hear()

    def publish_each(self, payloads: list[bytes]) -> None:
        self._publish(payloads, 1)

    def publish_stream(self, payloads: list[bytes]) -> None:
        self._publish(payloads, self.batch)

    def consume_each(self, count: int) -> None:
        self.side.tell("consume", count, self.size)
        self.side.hear()

    def close(self) -> None:
        self.side.close()


class Conversation:
    """Between two threads of a JVM, or two JVMs."""

    name = "Chronicle Queue, polled"
    between = ("threads", "processes")
    bound = False

    def __init__(self, between: str, address: str) -> None:
        self.first = Side(Path(address))
        self.second = Side(Path(address)) if between == "processes" else None

    def round_trip(self, count: int) -> float:
        """The median, in seconds."""
        if self.second is None:
            self.first.tell("threads", count)
            return self.first.hear() * 1e-9
        self.second.tell("echo", count)
        self.first.tell("ping", count)
        found = self.first.hear() * 1e-9
        self.second.hear()
        return found

    def close(self) -> None:
        for side in (self.first, self.second):
            if side is not None:
                side.close()
