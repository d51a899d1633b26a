"""Decides which role sends a request."""

from __future__ import annotations

import asyncio
import hmac
import json
from concurrent.futures import Future

from pulsarx import errors
from pulsarx.access.verb_permissions import authenticate_header
from pulsarx.rest.guard import refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from concurrent.futures import Executor
    from typing import Any

    from pulsarx.access.access import Access

    Scope = dict[str, Any]
    Application = Callable[[Scope, Any, Any], Awaitable[None]]

# What a balancer of load asks for, and the page, which holds nothing and asks for a token.
_OF_ALL = ("/status.html", "/")
_OF_ALL_BELOW = "/page/"


class Roles:
    """An ASGI application around another, which finds the role in scope["state"]["role"]. None:
    clients are not asked who they are."""

    def __init__(
        self,
        application: Application,
        access: Access | None,
        executor: Executor,
        secret: str | None = None,
    ) -> None:
        """executor: where it is found out, passwords apart, which take longer. secret: instead of
        access, what every request has to have as its token."""
        self._secret = None if secret is None else f"Bearer {secret}".encode()
        self._application = application
        self._access = access
        self._executor = executor

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        state = scope.setdefault("state", {})
        state["role"] = None
        is_open = scope["path"] in _OF_ALL or scope["path"].startswith(_OF_ALL_BELOW)
        if self._secret is not None and not is_open:
            given = [value for name, value in scope["headers"] if name == b"authorization"]
            if len(given) != 1 or not hmac.compare_digest(given[0], self._secret):
                await refuse(send, 401, "open the page by the whole address that was printed")
                return
        if self._access is not None and not is_open:
            named = state.get("certificate_name")
            host = str((scope.get("client") or ("",))[0])
            given = [value for name, value in scope["headers"] if name == b"authorization"]
            header = given[0] if given else None
            loop = asyncio.get_running_loop()
            try:
                if len(given) > 1:
                    raise errors.AuthenticationError(detail="more than one Authorization")
                found = await loop.run_in_executor(
                    self._executor,
                    authenticate_header,
                    self._access,
                    header,
                    named and named(),
                    host,
                )
                if isinstance(found, Future):
                    # Others may wait for the same one.
                    found = await asyncio.shield(asyncio.wrap_future(found))
                state["role"] = found.role
            except errors.AuthenticationError:
                await _refuse(send, self._access.methods)
                return
            except errors.ServiceUnitNotReady as error:
                await refuse(send, 503, errors.detail_of(error))
                return
        await self._application(scope, receive, send)


async def _refuse(send: Any, methods: tuple[str, ...]) -> None:
    body = json.dumps({"reason": "Authentication required"}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if "basic" in methods:
        headers.append((b"www-authenticate", b'Basic realm="pulsarx"'))
    if "token" in methods:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})
