"""The operator's page at `/`: files as they are, which ask from the browser (see `console`)."""

from __future__ import annotations

from importlib.resources import files

from starlette.responses import Response
from starlette.routing import Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.requests import Request

_SCRIPTS = (
    "page", "api", "avro", "chart", "dialog", "download", "elements", "messages", "overview",
    "plot", "policies", "publish", "topic", "topics",
    "transactions", "value",
)  # fmt: skip
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    **{f"/page/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8") for name in _SCRIPTS},
}
# Nothing of another host, nothing written into the page, and in no frame.
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


def page_routes() -> list[Route]:
    return [_route(path, *found) for path, found in _FILES.items()]


def _route(path: str, name: str, kind: str) -> Route:
    async def endpoint(_: Request) -> Response:
        content = files("pulsarx.rest").joinpath("page", name).read_bytes()
        return Response(content, 200, _HEADERS | {"content-type": kind})

    return Route(path, endpoint, methods=["GET"])
