"""The conditions for a request to be heard at all: its size, its path, and where it comes from.

In front of everything else, so that what it refuses costs little.
"""

from __future__ import annotations

import json
from urllib.parse import unquote_to_bytes, urlsplit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from pulsarx.rest.hosts import Hosts

    Scope = dict[str, Any]
    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]
    Application = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_MAX = 4 << 20  # bytes: the largest schema, with escapes
PATH_MAX = 8 << 10  # bytes, and the same of the query


class Guard:
    """An ASGI application around another."""

    def __init__(self, application: Application, hosts: Hosts) -> None:
        """hosts: under which names it may be asked."""
        self._application = application
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        of_size = _flaw_of_size(scope)
        refusal = _flaw_of_origin(scope, headers, self._hosts) or _flaw_of_path(scope) or of_size
        if refusal is not None:
            await refuse(send, *refusal, hang_up=of_size is not None)
            return
        # Not decoded: a topic's own name may hold a slash, as %2F.
        scope["path"] = scope["raw_path"].decode("ascii")
        came = 0

        async def receive_bounded() -> dict[str, Any]:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > BODY_MAX:
                raise BodyTooLarge
            return message

        await self._application(scope, receive_bounded, send)


class BodyTooLarge(Exception):
    """More came than was announced, or than a body may have."""


def _flaw_of_size(scope: Scope) -> tuple[int, str] | None:
    sizes = [value for name, value in scope["headers"] if name == b"content-length"]
    coded = any(name == b"transfer-encoding" for name, _ in scope["headers"])
    if len(sizes) + coded > 1:
        # A proxy in front may have taken the other one for where the request ends.
        return 400, "the end of the body is said twice: one Content-Length, or Transfer-Encoding"
    size = sizes[0] if sizes else b"0"
    if not size.isdigit() or len(size) > 18 or int(size) > BODY_MAX:
        return 413, f"the body has {size.decode('ascii', 'replace')} bytes; at most {BODY_MAX}"
    return None


def _flaw_of_path(scope: Scope) -> tuple[int, str] | None:
    path: bytes = scope["raw_path"]
    if len(path) > PATH_MAX or len(scope["query_string"]) > PATH_MAX:
        return 414, f"the path, or the query, has more than {PATH_MAX} bytes"
    if not path.isascii() or not path.startswith(b"/"):
        return 400, "a path begins with / and is ASCII; write other characters as %.."
    for part in path.split(b"/"):
        decoded = unquote_to_bytes(part)
        if decoded in (b".", b".."):
            return 400, "the path has a part . or .."
        if any(character < 0x20 or character == 0x7F for character in decoded):
            return 400, "the path has a control character"
    return None


def _flaw_of_origin(
    scope: Scope, headers: dict[bytes, bytes], hosts: Hosts
) -> tuple[int, str] | None:
    """A page that a browser got elsewhere can send requests here: those are told by their Origin,
    or, where a name of its own leads here, by the Host."""
    host = headers.get(b"host", b"").decode("latin-1")
    flaw = hosts.flaw_of(host)
    if flaw is not None:
        return 403, flaw
    origin = headers.get(b"origin")
    if origin is not None and _host_of(origin.decode("latin-1")) != host.lower():
        return 403, "a page of another origin may not call this server"
    if headers.get(b"sec-fetch-site") == b"cross-site" and not _follows_a_link(scope, headers):
        return 403, "a page of another site may not call this server"
    return None


def _follows_a_link(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Whether a user came to the page from elsewhere, which holds nothing."""
    return (
        scope["method"] == "GET"
        and scope["raw_path"] == b"/"
        and headers.get(b"sec-fetch-mode") == b"navigate"
        and headers.get(b"sec-fetch-dest") == b"document"
    )


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


async def refuse(send: Send, status: int, reason: str, *, hang_up: bool = False) -> None:
    """The answer of a refused request. hang_up: its body has no end, or one that is too far off;
    else it is thrown away, for who is hung up on while he sends does not read the answer."""
    body = json.dumps({"reason": reason}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if hang_up:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
