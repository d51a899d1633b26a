"""A folder in memory that is administered over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import pulsarx
from pulsarx.clock import ManualClock
from pulsarx.rest import HttpService, serve_http


class Reply(NamedTuple):
    status: int
    body: Any  # of JSON, else its text
    headers: dict[str, str]  # names in lower case


class Administered:
    """The folder, by the clock of the test where there is one."""

    def __init__(
        self,
        clock: ManualClock | None = None,
        folder: str | Path = "memory:",
        broker_options: pulsarx.BrokerOptions | None = None,
        durability: str = "os",
        **options: Any,
    ) -> None:
        """folder: in memory unless another is named."""
        self.client = pulsarx.Client(
            folder, durability=durability, clock=clock, broker_options=broker_options
        )
        self.service: HttpService = serve_http(self.client, port=0, **options)
        self.url = self.service.url
        self.server = self.service._server

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        raw: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """path: behind /admin/v2, unless it begins with //."""
        place = path[1:] if path.startswith("//") else f"/admin/v2{path}"
        data = raw if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + place, data, {"Content-Type": "application/json", **(headers or {})}
        )
        request.method = method
        try:
            answer = urllib.request.urlopen(request, timeout=120)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            text = answer.read()
        found = {name.lower(): value for name, value in answer.headers.items()}
        if found.get("content-type") == "application/json" and text:
            return Reply(answer.status, json.loads(text), found)
        return Reply(answer.status, text.decode("utf-8", "replace"), found)

    def get(self, path: str) -> Any:
        """What a GET is answered, which did not fail."""
        reply = self.ask("GET", path)
        assert reply.status == 200, reply
        return reply.body

    def do(self, method: str, path: str, body: object = None) -> None:
        """A change that did not fail."""
        reply = self.ask(method, path, body)
        assert reply.status == 204, reply

    def close(self) -> None:
        self.service.close()
        self.client.shutdown()
