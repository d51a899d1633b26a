"""The HTTP port of a folder: the loop that carries requests, and the threads that perform them."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
from contextlib import suppress

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.file_system import hold_low_descriptors
from pulsarx._pycore.ground.locks import Event, Lock
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx._pycore.ground.when_forgotten import WhenForgotten
from pulsarx.access.access import Access
from pulsarx.access.connection_bound import connections_max
from pulsarx.access.listening import listen
from pulsarx.access.service_settings import ServiceSettings
from pulsarx.access.tls_contexts import TlsContexts
from pulsarx.broker.broker import Broker
from pulsarx.broker.topics.counted_rates import LOOK_MS, Rates
from pulsarx.ground.extras import optional_module
from pulsarx.ground.fork import at_fork
from pulsarx.rest.owned_folder import OwnedFolder
from pulsarx.rest.sampler import Sampler
from pulsarx.rest.server_figures import LogCount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from pulsarx.access.access_settings import AccessSettings
    from pulsarx.access.advertised_listeners import AdvertisedListener
    from pulsarx.access.tls_settings import TlsSettings
    from pulsarx.client import Client
    from pulsarx.clock import Timer
    from pulsarx.rest.served_folder import ServedFolder

DEFAULT_PORT = 8080
DEFAULT_PORT_TLS = 8443
CONNECTIONS_MAX = 256
THREADS_MAX = 8  # that perform verbs
_BACKLOG = 128  # connections that are not accepted yet
_HEAD_SIZE_MAX = 12 << 10  # bytes of a request before its body; Pulsar takes 8 KiB
_log = logging.getLogger("pulsarx")
_PARTING_SECONDS = 5  # how long requests may take that are being answered


def serve_http(
    client: Client,
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    allow_anonymous: bool = False,
    broker_port: int | None = None,
    broker_tls_port: int | None = None,
    advertised_address: str | None = None,
    advertised_listeners: Mapping[str, str | Iterable[str]] | None = None,
    access: AccessSettings | None = None,
    tls: TlsSettings | None = None,
) -> HttpService:
    """Let tools administer the folder of a client by Pulsar's admin REST API, until the service or
    the last client of the folder in this process is closed.

    host, port: where to listen; port 0 takes a free one. allow_anonymous: listen on another address
    than loopback, where nobody is asked who he is. broker_port: of the service that serves Pulsar's
    binary protocol under the same name, to which clients with an http:// URL are led.
    broker_tls_port: the same with TLS. advertised_address: the name of this host that they are led
    to; else the one by which they have reached it. advertised_listeners: see serve. access: how
    clients prove who they are, who then may do what they were granted. tls: speak HTTPS, and
    nothing else.
    InvalidConfiguration: such an address without access or allow_anonymous; settings that do not
    fit together; files that cannot be used. ConnectError: it cannot be listened to there.
    ImportError: a package is missing; the text says which.
    """
    settings = ServiceSettings(
        host,
        port,
        allow_anonymous=allow_anonymous,
        access=access,
        tls=tls,
        tls_port=port if tls is not None else None,
        advertised_address=advertised_address,
        advertised_listeners=advertised_listeners,
    )
    return HttpService(client, settings, broker_port, broker_tls_port)


class HttpService:
    """Listens from when it is made until it is closed, or forgotten. Any thread may call."""

    def __init__(
        self,
        client: Client,
        settings: ServiceSettings,
        broker_port: int | None = None,
        broker_tls_port: int | None = None,
    ) -> None:
        """See serve_http."""
        client._require_writable("serve")
        broker: Any = client._broker
        if not isinstance(broker, Broker):
            raise errors.OperationNotSupported(detail="serve: the client has no folder of its own")
        hold_low_descriptors()  # packages may open something, too
        for package in ("starlette.applications", "uvicorn"):
            optional_module(package, "serve", "serving over HTTP")
        self._client = client  # which is closed when it is forgotten
        arguments = (broker, settings, broker_port, broker_tls_port)
        control_plane.perform(self._open, arguments, lambda server: server.close())

    def _open(self, broker: Broker, *arguments: Any) -> HttpServer:
        broker.state.require_open()
        self._server = HttpServer(OwnedFolder(broker, self._client), *arguments)
        self._server.close_with(broker.on_close)
        self._forgotten = WhenForgotten(control_plane.post, self._server.close)
        return self._server

    @property
    def host(self) -> str:
        """The address that is listened to."""
        return self._server.host

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def url(self) -> str:
        """The URL that a browser opens, if the address is not one for all of a host's."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self._server.scheme}://{host}:{self.port}"

    def close(self) -> None:
        """Answer what was asked up to now, and hang up. The folder stays open. Idempotent; in a
        forked child, which serves nobody, nothing."""
        control_plane.perform(self._server.close)

    def __enter__(self) -> HttpService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class HttpServer:
    """Made and closed by calls of the control plane."""

    def __init__(
        self,
        folder: ServedFolder,
        settings: ServiceSettings,
        broker_port: int | None = None,
        broker_tls_port: int | None = None,
        secret: str | None = None,
    ) -> None:
        """See serve_http. secret: see Roles."""
        from pulsarx.access.work_threads import WorkThreads
        from pulsarx.rest.application import make_application
        from pulsarx.rest.loop_server import LoopServer

        self.process: int = os.getpid()
        self.folder = folder
        self.broker_port = broker_port
        self.broker_tls_port = broker_tls_port
        self.advertised_address: str | None = settings.advertised_address
        self.advertised_listeners: dict[str, AdvertisedListener] = settings.advertised_listeners
        self.access: Access | None = None
        if settings.access is not None:
            self.access = Access(settings.access, folder.broker.catalogue, folder.clock)
        contexts = None if settings.tls is None else TlsContexts(settings.tls)
        self.scheme = "http" if contexts is None else "https"
        self._listener, is_local = _listener(settings)
        address = self._listener.getsockname()
        self.host: str = address[0]
        self.port: int = address[1]
        self._rates = Rates(folder.clock.steady_ms())
        self.sampler: Sampler = Sampler(folder.perform, folder.clock)
        self._sample_timer: Timer | None = None
        self._log_count = LogCount()
        self._on_close: list[Any] = []  # of whom to tell that it is closed
        self._executor = WorkThreads(THREADS_MAX, "pulsarx-http-work")
        self._timer: Timer | None = None
        self._closing = Lock()
        self._ended = Event()  # the loop has
        hold_low_descriptors()
        self.loop: AbstractEventLoop = asyncio.new_event_loop()
        try:
            application = make_application(self, self._executor, is_local, secret=secret)
            self._server: LoopServer | None = LoopServer(
                application,
                connections_max=min(CONNECTIONS_MAX, max(1, connections_max() // 2)),
                head_size_max=_HEAD_SIZE_MAX,
                backlog=_BACKLOG,
                parting_seconds=_PARTING_SECONDS,
                contexts=contexts,
            )
            self._look_later()
            self._sample_later()
            OwnThread(self._run, "pulsarx-http").start()
        except BaseException:
            self._stop_looking()
            self._listener.close()
            self.loop.close()
            raise
        self._log_count.begin()
        _servers.add(self)

    @property
    def broker(self) -> Broker:
        """OperationNotSupported: it is another process's."""
        return self.folder.broker

    def close_with(self, steps: list[Any]) -> None:
        """Close it when these are done. It leaves them when it is closed before."""
        self._on_close = steps
        steps.append(self.close)

    def perform(self, verb: str, arguments: dict[str, Any]) -> Any:
        """See broker.verbs.table."""
        return self.folder.perform(verb, arguments)

    def per_second(self, key: tuple[str, ...], *counts: int) -> tuple[float, ...]:
        """See Rates."""
        return self._rates.per_second(self.folder.clock.steady_ms(), key, *counts)

    def _look_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.folder.clock.call_after(LOOK_MS, self._look_soon)

    def _look_soon(self) -> None:
        """By the clock."""
        self.folder.post(self._look)

    def _sample_later(self) -> None:
        clock = self.folder.clock
        due_ms = clock.now_ms() + self.sampler.interval_ms
        self._sample_timer = clock.call_at(due_ms, self._sample_soon)

    def _sample_soon(self) -> None:
        """By the clock. It takes too long for the folder's own threads."""
        with suppress(RuntimeError):  # it is closed
            self._executor.submit(self._sample)

    def _look(self) -> None:
        """Take note of what topics count, from which rates are made."""
        if self._ended.is_set() or not self.folder.is_open:
            return
        self._look_later()
        found = self.folder.counters()
        self._rates.look(self.folder.clock.steady_ms(), found)

    def _sample(self) -> None:
        if self._ended.is_set() or not self.folder.is_open:
            return
        try:
            self.sampler.look()
        except errors.PulsarException as error:
            # Who looks at the page is told the same.
            _log.info("%s: look at topics: %s", self.folder.place, errors.detail_of(error))
        except Exception:
            _log.exception("%s: looking at topics failed, because of a bug", self.folder.place)
        finally:
            if not self._ended.is_set():
                self._sample_later()

    def _stop_looking(self) -> None:
        for each in (self._timer, self._sample_timer):
            if each is not None:
                each.cancel()

    def figures(self, consumers: bool, role: str | None) -> Iterator[bytes]:
        """The answer of /metrics, in pieces. By a thread that may call the broker."""
        sees = None if self.access is None else self.access.metrics_filter(role or "")
        yield from self.folder.figures(self.per_second, consumers, sees, self._log_count)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            assert self._server is not None
            self.loop.run_until_complete(self._server.serve(self._listener))
        finally:
            self.loop.close()
            asyncio.set_event_loop(None)
            self._ended.set()

    def close(self) -> None:
        """See HttpService. A request that closes the broker would wait for itself: there is no
        verb that does."""
        if os.getpid() != self.process:
            return
        with self._closing:
            if self._server is None:
                return
            try:
                self.loop.call_soon_threadsafe(self._server.end)
            except RuntimeError:
                pass  # it has ended
            self._ended.wait()
            self.sampler.end()
            self._listener.close()
            self._executor.shutdown()
            self._log_count.end()
            self._stop_looking()
            if self.access is not None:
                self.access.close()
            if self.close in self._on_close:
                self._on_close.remove(self.close)
            # The application and this are a cycle. A loop in it runs Python where it is collected,
            # and what a signal handler raises there is lost.
            self._server = None
            del self.loop

    def abandon(self) -> None:
        """In a forked child: its copies of the sockets would keep them open. By number, as nobody
        else may close them there: what waits for them is the parent's."""
        descriptors = [] if self._server is None else self._server.descriptors()
        for each in (self._listener.fileno(), *descriptors):
            if each >= 0:
                os.close(each)
        self._listener.detach()


_servers = WeakList()  # those that were opened
at_fork(__name__, abandon=_servers)


def _listener(settings: ServiceSettings) -> tuple[socket.socket, bool]:
    """And whether only programs of this host reach it."""
    host, port = settings.host, settings.port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        is_local = ipaddress.ip_address(address[0]).is_loopback
        if not (settings.allow_anonymous or settings.access is not None or is_local):
            raise errors.InvalidConfiguration(
                detail=f"listen on {host}: anybody who reaches that address could administer the "
                "folder; use a loopback address, have clients prove who they are, or allow "
                "anonymous clients"
            )
        return listen(address, family, _BACKLOG), is_local
    except (OSError, OverflowError, UnicodeError) as error:
        raise errors.ConnectError(detail=f"listen on {host}:{port}: {error}") from error
