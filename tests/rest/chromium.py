"""A headless Chromium, driven by chromedriver in the protocol of WebDriver."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
_ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip


class Chromium:
    def __init__(self, profile: Path) -> None:
        """profile: an empty folder."""
        assert DRIVER is not None
        self._driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True)
        assert self._driver.stdout is not None
        for line in self._driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                break
        else:
            raise AssertionError("chromedriver did not start")
        self._url = f"http://127.0.0.1:{found[1]}/session"
        arguments = [*_ARGUMENTS, f"--user-data-dir={profile}", "--window-size=1400,900"]
        options = {"binary": CHROMIUM, "args": arguments}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        try:
            self._url += "/" + self._do("POST", "", wanted)["sessionId"]
        except BaseException:
            self._end_driver()
            raise

    def _do(self, method: str, path: str, body: object = None) -> Any:
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self._url + path, data, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def open(self, url: str) -> None:
        self._do("POST", "/url", {"url": url})

    def run(self, script: str) -> Any:
        """What a function body of JavaScript returns."""
        return self._do("POST", "/execute/sync", {"script": script, "args": []})

    def until(self, condition: str) -> Any:
        """Wait until an expression of JavaScript is true; its value."""
        self._do("POST", "/timeouts", {"script": 100_000})
        script = (
            "const done = arguments[0]; const look = () => { let found; "
            f"try {{ found = {condition}; }} catch {{ }} "
            "found ? done(found) : setTimeout(look, 50); }; look();"
        )
        return self._do("POST", "/execute/async", {"script": script, "args": []})

    def resize(self, width: int, height: int) -> None:
        """Narrower than a window can be, as a telephone."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        command = {"cmd": "Emulation.setDeviceMetricsOverride", "params": size}
        self._do("POST", "/goog/cdp/execute", command)

    def prefer(self, scheme: str) -> None:
        """light or dark, as the system of a user says."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        command = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": [feature]}}
        self._do("POST", "/goog/cdp/execute", command)

    def key(self, code: str) -> None:
        """Press it, where the focus is."""
        presses = [{"type": kind, "value": code} for kind in ("keyDown", "keyUp")]
        self._do("POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": presses}]})

    def close(self) -> None:
        try:
            self._do("DELETE", "")
        finally:
            self._end_driver()

    def _end_driver(self) -> None:
        self._driver.terminate()
        self._driver.communicate()
