"""Starts a real Apache Pulsar standalone broker from Maven Central, on loopback, and stops it.

    python tests/oracle/real_pulsar.py            start it, and run it until Ctrl-C

The libraries (about 240 MB) come once, into build/oracle/lib-VERSION; each broker begins with empty
data in build/oracle/run. Needs Java 17 or later and Maven; `Missing` says which is not there.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSION = "4.2.4"
FOLDER = HERE.parent.parent / "build" / "oracle"
START_SECONDS = 180

# Those of the distribution's standalone.conf that matter here, besides the broker's own defaults:
# one bookie, a journal that is not flushed to the device. Then acknowledgements of single messages
# of a batch, as PulsarX has them; quotas and unused topics are looked at soon.
CONFIGURATION = """
clusterName=standalone
bindAddress=127.0.0.1
advertisedAddress=127.0.0.1
managedLedgerDefaultEnsembleSize=1
managedLedgerDefaultWriteQuorum=1
managedLedgerDefaultAckQuorum=1
bookkeeperClientMinNumRacksPerWriteQuorum=1
bookkeeperClientEnforceMinNumRacksPerWriteQuorum=false
ledgerStorageClass=org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage
journalMaxGroupWaitMSec=1
journalSyncData=false
acknowledgmentAtBatchIndexLevelEnabled=true
brokerDeleteInactiveTopicsEnabled=true
brokerDeleteInactiveTopicsFrequencySeconds=1
brokerDeleteInactiveTopicsMaxInactiveDurationSeconds=1000000
backlogQuotaCheckIntervalInSeconds=1
loadBalancerEnabled=false
nettyMaxFrameSizeBytes=5253120
"""
LOGGING = """<Configuration status="ERROR"><Appenders><Console name="C">
<PatternLayout pattern="%d %-5p %c{1} %m%n"/></Console></Appenders>
<Loggers><Root level="warn"><AppenderRef ref="C"/></Root></Loggers></Configuration>
"""
OPENED = (
    "java.base/java.io", "java.base/java.util.zip", "java.base/java.nio",
    "java.base/jdk.internal.misc", "java.base/jdk.internal.platform",
    "java.management/sun.management", "jdk.management/com.sun.management.internal",
)  # fmt: skip


class Missing(Exception):
    """What the machine lacks to run a real broker."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def libraries() -> Path:
    """The folder of the broker's jars, fetched when it is not there."""
    folder = FOLDER / f"lib-{VERSION}"
    if folder.is_dir():
        return folder
    if shutil.which("mvn") is None:
        raise Missing("Maven (mvn) is not installed: it fetches the broker")
    part = FOLDER / f"lib-{VERSION}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)
    print("fetching Apache Pulsar", VERSION, "from Maven Central: about 240 MB", flush=True)
    command = ["mvn", "-B", "-q", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies"]
    command += [f"-Dpulsar.version={VERSION}", "-DincludeScope=runtime"]
    subprocess.run([*command, f"-DoutputDirectory={part}"], check=True)
    part.rename(folder)
    return folder


class RealPulsar:
    """A broker in a process of its own. A context manager: it is stopped at the end."""

    def __init__(self, *lines: str) -> None:
        """lines: added to its configuration."""
        java = os.environ.get("JAVA", "java")
        if shutil.which(java) is None:
            raise Missing("Java is not installed: 17 or later, or JAVA=... names it")
        jars = libraries()
        self.port, self.web_port, bookie = free_port(), free_port(), free_port()
        run = FOLDER / "run"
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir(parents=True)
        ports = f"brokerServicePort={self.port}\nwebServicePort={self.web_port}\n"
        more = "".join(f"{line}\n" for line in lines)
        (run / "standalone.conf").write_text(CONFIGURATION + ports + more)
        (run / "log4j2.xml").write_text(LOGGING)
        command = [java, "-Xms512m", "-Xmx1500m", "-XX:MaxDirectMemorySize=1500m"]
        command += ["-cp", f"{jars}/*", f"-Dlog4j.configurationFile={run}/log4j2.xml"]
        command += ["-Djava.net.preferIPv4Stack=true", "-Dlog4j2.is.webapp=false"]
        command += ["-Dio.netty.tryReflectionSetAccessible=true"]
        for each in OPENED:
            command += ["--add-opens", f"{each}=ALL-UNNAMED"]
        command += ["org.apache.pulsar.PulsarStandaloneStarter"]
        command += ["--config", f"{run}/standalone.conf"]
        command += ["--no-functions-worker", "--no-stream-storage", "--bookkeeper-port"]
        command += [str(bookie), "--metadata-dir", f"{run}/data/metadata"]
        command += ["--bookkeeper-dir", f"{run}/data/bookkeeper"]
        self._command = command
        self._log = run / "log"
        self._start()

    def _start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._log.parent, stdout=log, stderr=log
            )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        return f"pulsar://127.0.0.1:{self.port}"

    @property
    def web_url(self) -> str:
        return f"http://127.0.0.1:{self.web_port}"

    def _wait(self) -> None:
        """Until a topic can be made."""
        ends, pause = time.monotonic() + START_SECONDS, threading.Event()
        while time.monotonic() < ends:
            if self._process.poll() is not None:
                raise RuntimeError(f"the broker ended:\n{self._last_lines()}")
            try:
                with urllib.request.urlopen(
                    f"{self.web_url}/admin/v2/namespaces/public", timeout=2
                ) as answer:
                    if "public/default" in json.load(answer):
                        return
            except (OSError, urllib.error.URLError, ValueError):
                pass
            pause.wait(0.5)
        raise RuntimeError(f"no answer after {START_SECONDS} s:\n{self._last_lines()}")

    def _last_lines(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def kill_and_start(self) -> None:
        """Kill it, and start it again with what it has stored; the ports stay."""
        self._process.kill()
        self._process.wait()
        self._start()

    def __enter__(self) -> RealPulsar:
        # A process that is told to end takes the broker with it.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


if __name__ == "__main__":
    try:
        with RealPulsar() as broker:
            print(f"Apache Pulsar {VERSION}: {broker.url}, {broker.web_url}", flush=True)
            signal.pause()
    except Missing as error:
        sys.exit(f"no broker: {error}")
    except KeyboardInterrupt:
        pass
