"""The HTTP service of the operator's page, for a folder that this process need not own."""

from __future__ import annotations

from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.access.service_settings import ServiceSettings
from pulsarx.ground.extras import optional_module
from pulsarx.rest.folder_beside import FolderBeside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from pulsarx.client import Client
    from pulsarx.rest.http_service import HttpServer


class ConsoleService:
    """Listens on loopback from when it is made until it is closed. Any thread may call."""

    def __init__(
        self,
        path: str,
        visit: Callable[[], AbstractContextManager[Client]],
        secret: str,
        port: int = 0,
    ) -> None:
        """visit: a client that publishes in the folder, closed after each use. secret: what every
        request has to have as its token, for else every user of the machine might ask.

        FolderError: there is no folder. ConnectError: it cannot be listened to there. ImportError:
        a package is missing; the text says which.
        """
        for package in ("starlette.applications", "uvicorn"):
            optional_module(package, "serve", "the console")
        self.place = path
        self._visit = visit
        control_plane.perform(self._open, (secret, port), lambda _: self.close())

    def _open(self, secret: str, port: int) -> Any:
        from pulsarx.rest.http_service import HttpServer

        self._folder = FolderBeside(self.place, self._visit)
        try:
            settings = ServiceSettings("127.0.0.1", port)
            self._server: HttpServer = HttpServer(self._folder, settings, secret=secret)
        except BaseException:
            self._folder.close()
            raise
        return self._server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    def close(self) -> None:
        """Answer what was asked up to now, and hang up. Idempotent."""
        control_plane.perform(self._close)

    def _close(self) -> None:
        self._server.close()
        self._folder.close()

    def __enter__(self) -> ConsoleService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
