"""A Prometheus that scrapes a `pulsarx serve`, for tests and for the picture of the dashboard."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "deploy/prometheus/prometheus.yml"
RULES = ROOT / "deploy/prometheus/pulsarx.rules.yml"
DASHBOARD = ROOT / "deploy/grafana/pulsarx.json"
PATIENCE_LOOKS, PAUSE_SECONDS = 1200, 0.1


def missing() -> str:
    """Which program is missing, and what to do; empty: none is."""
    lacks = [each for each in ("prometheus", "promtool") if shutil.which(each) is None]
    return f"{' and '.join(lacks)} not found: apt-get install prometheus" if lacks else ""


class Served:
    """A `pulsarx serve` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pulsarx", "serve", str(folder), "--port=0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        said = [self.process.stdout.readline() for _ in range(2)]
        self.url = said[0].rpartition(" ")[2].strip()
        self.http_url = said[1].rpartition(" ")[2].strip()

    def close(self) -> None:
        self.process.terminate()
        self.process.communicate()


class Prometheus:
    """The program, with the settings of deploy/prometheus but for address and intervals."""

    def __init__(self, target: str, interval: str = "500ms") -> None:
        """target: host:port of what is scraped."""
        self.folder = Path(tempfile.mkdtemp(prefix="pulsarx-prometheus-"))
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{one.getsockname()[1]}"
        text = SETTINGS.read_text(encoding="utf-8").replace("127.0.0.1:8080", target)
        text = re.sub(r"interval: \w+", f"interval: {interval}", text)
        (self.folder / "prometheus.yml").write_text(text)
        shutil.copy(RULES, self.folder)
        self.log = (self.folder / "log").open("wb")
        self.process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={self.folder}/prometheus.yml",
                f"--storage.tsdb.path={self.folder}/data",
                f"--web.listen-address={address}",
            ],
            stdout=self.log,
            stderr=self.log,
        )
        self.url = f"http://{address}"

    def ask(self, path: str, **query: str) -> Any:
        with urllib.request.urlopen(
            f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=60
        ) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[Any]:
        found: list[Any] = self.ask("query", query=expression)["result"]
        return found

    def wait_until_scraped(self, times: int) -> None:
        """Return when the server was scraped so often; RuntimeError, with what Prometheus said."""
        pause = threading.Event()
        for _ in range(PATIENCE_LOOKS):
            if self.process.poll() is not None:
                break
            try:
                found = self.query('sum(count_over_time(up{job="pulsarx"}[1h]))')
                if found and int(found[0]["value"][1]) >= times:
                    return
            except (OSError, urllib.error.URLError):
                pass  # it is not ready
            pause.wait(PAUSE_SECONDS)
        said = (self.folder / "log").read_text(errors="replace")
        raise RuntimeError(f"nothing was scraped from {self.url}; Prometheus said:\n{said[-3000:]}")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)


def panels() -> list[Any]:
    """The panels of the dashboard, in their order."""
    found: list[Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return found


def expression_of(text: str, interval: str) -> str:
    """A query of a panel, as Grafana would ask it."""
    return text.replace("$__rate_interval", interval)
