"""An HTTP request as the functions of the routes see it."""

from __future__ import annotations

import json
from urllib.parse import unquote, unquote_plus

from pulsarx.admin.http_forms import BODIES
from pulsarx.options.argument_check import is_whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Protocol

    from pulsarx.access.access import Access
    from pulsarx.access.advertised_listeners import AdvertisedListener
    from pulsarx.broker.broker import Broker
    from pulsarx.rest.sampler import Sampler
    from pulsarx.rest.served_folder import ServedFolder

    class Host(Protocol):
        """The service of a request, as the request sees it."""

        folder: ServedFolder
        sampler: Sampler
        access: Access | None  # what clients may do; None: everything
        broker_port: int | None  # of the binary protocol; None: it is not served
        broker_tls_port: int | None  # the same with TLS
        advertised_address: str | None  # the name that clients are led to
        advertised_listeners: dict[str, AdvertisedListener]  # those that ask for one

        @property
        def broker(self) -> Broker:
            """OperationNotSupported: it is another process's."""

        def per_second(self, key: tuple[str, ...], *counts: int) -> tuple[float, ...]:
            """How fast counters grow that are at `counts` now. key: of a topic, its subscription, a
            consumer of that, the names."""

        def figures(self, consumers: bool, role: str | None) -> Iterator[bytes]:
            """The answer of /metrics to the role, in pieces."""

        def perform(self, verb: str, arguments: dict[str, Any]) -> Any:
            """See broker.verbs.table."""


DOMAINS = ("persistent", "non-persistent")
_DEPTH_MAX = 64  # of JSON: what a client sends has three levels


class Refusal(Exception):
    """An answer that is no success: a status of HTTP, and why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Answer:
    """An answer that is not JSON with status 200, or nothing with 204. A value."""

    __slots__ = ("body", "headers", "kind", "status")

    def __init__(
        self,
        body: bytes,
        kind: str = "application/json",
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.body: bytes = body
        self.kind: str = kind
        self.status: int = status
        self.headers: dict[str, str] = dict(headers or {})


class Call:
    """One thread."""

    __slots__ = ("_body", "_path", "host", "listener", "own_url", "query", "role", "server")

    def __init__(
        self,
        host: Host,
        path: Mapping[str, str],
        query: Mapping[str, str],
        body: bytes,
        *,
        server: str,
        own_url: str,
        listener: str | None,
        role: str | None = None,
    ) -> None:
        """path: the variable parts of the path, as they came. server: the name by which the client
        reached this host, own_url: with the port. listener: which one it wants to be led to.
        role: who it is; None: it was not asked."""
        self.host: Host = host
        self._path = path
        self.query: Mapping[str, str] = query
        self._body = body
        self.server: str = server
        self.own_url: str = own_url
        self.listener: str | None = listener
        self.role: str | None = role

    def perform(self, verb: str, **arguments: Any) -> Any:
        """See broker.verbs.table. AuthorizationError: the client may not do it."""
        if self.host.access is not None and self.role is not None:
            from pulsarx.access.verb_permissions import require_verb

            require_verb(self.host.access, self.role, verb, arguments)
        return self.host.perform(verb, arguments)

    def require_lookup(self) -> None:
        """AuthorizationError: the client may not find the topic."""
        if self.host.access is not None and self.role is not None:
            self.host.access.require_lookup(self.role, self.topic)

    def broker_urls(self) -> tuple[str | None, str | None]:
        """The URLs of the binary protocol, without TLS and with it; None: it is not served."""
        name = self.host.advertised_address or self.server
        name = f"[{name}]" if ":" in name and not name.startswith("[") else name
        plain, secure = self.host.broker_port, self.host.broker_tls_port
        return (
            None if plain is None else f"pulsar://{name}:{plain}",
            None if secure is None else f"pulsar+ssl://{name}:{secure}",
        )

    # The path -------------------------------------------------------------------------------------

    def part(self, name: str) -> str:
        """A variable part of the path, decoded as Pulsar's clients encode it."""
        try:
            return unquote_plus(self._path[name], errors="strict")
        except UnicodeDecodeError:
            raise Refusal(412, f"{name} is not UTF-8") from None

    def number(self, name: str) -> int:
        """A part of the path that is a number."""
        return whole(name, self.part(name))

    @property
    def namespace(self) -> str:
        return f"{self.part('tenant')}/{self.part('namespace')}"

    @property
    def domain(self) -> str:
        found = self.part("domain")
        if found not in DOMAINS:
            raise Refusal(404, f"there is no domain {found!r:.100} of topics")
        return found

    @property
    def topic(self) -> str:
        """Its full name."""
        local = self.part("topic")
        return f"{self.domain}://{self.namespace}/{local}"

    @property
    def subscription(self) -> str:
        """Its name, which Pulsar decodes twice, and its Java client encodes twice."""
        name = unquote_plus(unquote(self._path["subscription"]))
        try:
            name.encode()
        except UnicodeEncodeError:
            raise Refusal(412, "the name of a subscription is not UTF-8") from None
        return name

    # The query and the body -----------------------------------------------------------------------

    def flag(self, name: str, default: bool = False) -> bool:
        found = self.query.get(name)
        return default if found is None else found.lower() == "true"

    @property
    def has_body(self) -> bool:
        return bool(self._body.strip())

    def json(self, default: object = None) -> Any:
        """The body; a missing one is the default."""
        if not self.has_body:
            return default
        try:
            found = json.loads(self._body)
        except (ValueError, RecursionError) as error:
            raise Refusal(400, f"the body is no JSON: {error}") from None
        _check_depth(found)
        return found

    def json_object(self) -> dict[str, Any]:
        """The body, an object; a missing one is empty."""
        found = self.json({})
        if not isinstance(found, dict):
            raise Refusal(400, "the body must be a JSON object")
        return found

    def json_integer(self) -> int:
        """The body, a whole number."""
        found = self.json()
        if not is_whole_number(found):
            raise Refusal(400, "the body must be a whole number")
        return found

    def json_flag(self) -> bool:
        found = self.json()
        if not isinstance(found, bool):
            raise Refusal(400, "the body must be true or false")
        return found

    def json_text(self) -> str:
        """The body, a text, with quotation marks or without."""
        text = self._body.strip()
        if not text.startswith(b'"'):
            return text.decode("utf-8", "replace")
        found = self.json()
        if not isinstance(found, str):
            raise Refusal(400, "the body must be a text")
        return found


def _check_depth(value: Any, depth: int = 0) -> None:
    if depth > _DEPTH_MAX:
        raise Refusal(400, "the body is nested too deeply")
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            _check_depth(each, depth + 1)


def whole(name: str, text: str) -> int:
    """A number that came as text."""
    digits = text[1:] if text[:1] == "-" else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise Refusal(412, f"{name} must be a whole number, not {text!r:.100}")
    return int(text)


def read_form(form: str, found: object) -> Any:
    """The argument of a verb that JSON in a form of `admin/http_forms` stands for."""
    try:
        return BODIES[form].read(found)
    except ValueError as error:
        raise Refusal(400, str(error)) from None


def integer_of(found: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """A whole number of a JSON object."""
    value = found.get(name, default)
    if not is_whole_number(value):
        raise Refusal(400, f"{name} must be a whole number, not {value!r:.100}")
    return value
