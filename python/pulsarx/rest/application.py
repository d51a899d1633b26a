"""The ASGI application, which leads requests by their routes to the functions that perform them."""

from __future__ import annotations

import asyncio
import json
import logging

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from pulsarx.backups.streams import Stream
from pulsarx.rest.call import DOMAINS, Answer, Call, Refusal
from pulsarx.rest.console import ROUTES as CONSOLE
from pulsarx.rest.console_publish import ROUTES as CONSOLE_PUBLISH
from pulsarx.rest.console_views import ROUTES as CONSOLE_VIEWS
from pulsarx.rest.copies import ROUTES as COPIES
from pulsarx.rest.guard import BODY_MAX, BodyTooLarge, Guard
from pulsarx.rest.hosts import Hosts, host_name
from pulsarx.rest.lookup import ROUTES as LOOKUP
from pulsarx.rest.metrics import CONTENT_TYPE
from pulsarx.rest.namespaces import ROUTES as NAMESPACES
from pulsarx.rest.openapi import description
from pulsarx.rest.page_routes import page_routes
from pulsarx.rest.pieces import STREAMS_MAX, HeardResponse, PiecesResponse
from pulsarx.rest.policies import ROUTES as POLICIES
from pulsarx.rest.pulsar_paths import is_of_pulsar, unsupported_reason
from pulsarx.rest.roles import Roles
from pulsarx.rest.schemas import ROUTES as SCHEMAS
from pulsarx.rest.statuses import refusal_of
from pulsarx.rest.subscriptions import ROUTES as SUBSCRIPTIONS
from pulsarx.rest.tenants import ROUTES as TENANTS
from pulsarx.rest.topics import ROUTES as TOPICS
from pulsarx.rest.transactions import ROUTES as TRANSACTIONS
from pulsarx.rest.unsupported import ROUTES as UNSUPPORTED
from pulsarx.rest.verb_routes import ROUTES as VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from concurrent.futures import Executor
    from typing import Any

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from pulsarx.rest.call import Host
    from pulsarx.rest.guard import Application
    from pulsarx.rest.route import Route

ROUTES: list[Route] = [
    *VERBS,
    *LOOKUP,
    *TENANTS,
    *NAMESPACES,
    *POLICIES,
    *SCHEMAS,
    *SUBSCRIPTIONS,
    *TOPICS,
    *TRANSACTIONS,
    *UNSUPPORTED,
    *COPIES,
]
# What the page asks for beside routes of its own; all that is served where another owns the folder.
_OF_PAGE = [
    each
    for each in [*VERBS, *SUBSCRIPTIONS, *TOPICS]
    if each.method != "GET" and each.group == "topics" and "/permissions" not in each.path
] + [
    each
    for each in VERBS
    if each.path.removeprefix("/admin/v3/transactions") in ("", "/abortTransaction/{most}/{least}")
]
_log = logging.getLogger("pulsarx")


def make_application(
    host: Host,
    executor: Executor,
    local_only: bool,
    more: Sequence[BaseRoute] = (),
    secret: str | None = None,
) -> Application:
    """executor: where verbs are performed. more: routes of others, which come first, and are for
    every role. secret: see Roles; then the page is served alone."""
    routes = [*more, *page_routes()]
    if secret is None:
        routes.append(StarletteRoute("/openapi.json", _describe, methods=["GET"]))
        routes += _metrics_routes(host, executor)
    served = [*CONSOLE, *CONSOLE_VIEWS, *CONSOLE_PUBLISH, *(ROUTES if secret is None else _OF_PAGE)]
    begun: set[PiecesResponse] = set()
    routes += [_starlette_route(host, executor, begun, each) for each in served]
    application = Starlette(
        routes=routes,
        exception_handlers={HTTPException: _not_found, BodyTooLarge: _too_large},
    )
    application.router.redirect_slashes = False
    own_names = [] if host.advertised_address is None else [host.advertised_address]
    for listener in host.advertised_listeners.values():
        own_names += listener.hosts()
    hosts = Hosts(
        local_only=local_only,
        is_guarded=host.access is not None and host.access.knows_all,
        advertised=own_names,
    )
    return Guard(Roles(application, host.access, executor, secret), hosts)


def _starlette_route(
    host: Host, executor: Executor, begun: set[PiecesResponse], route: Route
) -> StarletteRoute:
    async def endpoint(request: Request) -> Response:
        call = await _call_of(host, request)
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(executor, _answer, route, call)
        if isinstance(found, Response):
            return found
        if len(begun) >= STREAMS_MAX:
            return reason_response(503, f"{STREAMS_MAX} checks and backups are under way")
        return PiecesResponse(found, route.answer, host, executor, begun)

    path = route.path.replace("{domain}", "{domain:pulsar_domain}")
    return StarletteRoute(path, endpoint, methods=[route.method])


def _metrics_routes(host: Host, executor: Executor) -> list[StarletteRoute]:
    one_at_a_time = asyncio.Lock()

    async def pieces(consumers: bool, role: str | None) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        async with one_at_a_time:
            found = host.figures(consumers, role)
            while True:
                piece = await loop.run_in_executor(executor, next, found, None)
                if piece is None:
                    return
                yield piece

    async def endpoint(request: Request) -> Response:
        consumers = request.query_params.get("consumers", "").lower() == "true"
        role = request.scope["state"]["role"]
        return HeardResponse(pieces(consumers, role), 200, None, CONTENT_TYPE)

    return [StarletteRoute(path, endpoint, methods=["GET"]) for path in ("/metrics", "/metrics/")]


async def _call_of(host: Host, request: Request) -> Call:
    body = b"" if request.method in ("GET", "HEAD") else await request.body()
    named = request.headers.get("host") or ""
    address = request.scope.get("server") or ("localhost", 0)
    server = host_name(named) or str(address[0])
    if ":" in server:
        server = f"[{server}]"
    return Call(
        host,
        request.path_params,
        request.query_params,
        body,
        server=server,
        own_url=f"{request.scope['scheme']}://{named or f'{server}:{address[1]}'}",
        role=request.state.role,
        listener=request.headers.get("x-pulsar-listenername"),
    )


def _answer(route: Route, call: Call) -> Response | Stream:
    """In a thread of the executor."""
    try:
        found = route.function(call)
    except Exception as error:
        refusal = refusal_of(error, route)
        if refusal is None:
            _log.exception("%s %s failed, because of a bug", route.method, route.path)
            refusal = Refusal(500, f"{type(error).__name__}: {error}")
        return reason_response(refusal.status, refusal.reason)
    if found is None:
        # Of GET: nothing is set.
        return Response(status_code=200 if route.method == "GET" else 204)
    if isinstance(found, Stream):
        return found
    if isinstance(found, Answer):
        return Response(found.body, found.status, found.headers, found.kind)
    return Response(json.dumps(found, separators=(",", ":")), 200, None, "application/json")


def reason_response(status: int, reason: str) -> Response:
    """An error as Pulsar's clients read it."""
    return Response(json.dumps({"reason": reason}), status, None, "application/json")


async def _not_found(request: Request, error: Any) -> Response:
    """No route has the path (404), or the method (405). A path that is Pulsar's is there, and not
    supported: its tools say so then, and do not take what is named in it for missing."""
    place = request.scope["path"]
    if error.status_code == 405 or (error.status_code == 404 and is_of_pulsar(place)):
        return reason_response(405, unsupported_reason(request.method, place))
    if error.status_code == 404:
        return reason_response(404, f"there is nothing at {place}; /openapi.json lists the paths")
    return reason_response(error.status_code, str(error.detail))


async def _too_large(_: Request, __: Exception) -> Response:
    response = reason_response(413, f"the body has more than {BODY_MAX} bytes")
    response.headers["connection"] = "close"
    return response


async def _describe(_: Request) -> Response:
    return Response(json.dumps(description(ROUTES)), 200, None, "application/json")


class _Domain(Convertor[str]):
    regex = "|".join(DOMAINS)

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("pulsar_domain", _Domain())
