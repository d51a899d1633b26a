"""The permissions that a role needs for an admin operation: the same as Pulsar's broker asks for it
over HTTP."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.verbs.table import VERBS
from pulsarx.broker.verbs.verb import (
    CONSUME,
    IN_NAMESPACE,
    LOOKUP,
    PRODUCE,
    SUPERUSER,
    TENANT_ADMIN,
)
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future
    from typing import Any

    from pulsarx.access.access import Access
    from pulsarx.access.identity import Identity


def require_verb(access: Access, role: str, name: str, arguments: dict[str, Any]) -> None:
    """AuthorizationError: the role may not do it, by what the verb's row says that it needs. A verb
    that there is not is the superusers'."""
    if access.is_superuser(role):
        return
    verb = VERBS.get(name)
    needs = SUPERUSER if verb is None else verb.needs
    topic, subscription = arguments.get("topic"), arguments.get("name")
    if needs == TENANT_ADMIN:
        access.require_admin(role, _tenant_of(arguments), name)
    elif needs == IN_NAMESPACE:
        access.require_in_namespace(role, str(arguments.get("namespace")))
    elif needs == SUPERUSER or topic is None:
        access.require_superuser(role, name)
    elif needs == LOOKUP:
        access.require_lookup(role, topic)
    elif needs == PRODUCE:
        access.require_produce(role, topic)
    elif needs == CONSUME and subscription is None:
        access.require_consume(role, topic)
    else:
        access.require_subscribe(role, topic, str(subscription))


def _tenant_of(arguments: dict[str, Any]) -> str:
    """That of what a verb is about."""
    topic, namespace = arguments.get("topic"), arguments.get("namespace")
    if topic is not None:
        return TopicName.of(topic).tenant
    return str(arguments.get("tenant") if namespace is None else namespace).partition("/")[0]


def authenticate_header(
    access: Access, header: bytes | None, certificate_name: str | None, host: str
) -> Identity | Future[Identity]:
    """The role that sends a request over HTTP. header: its Authorization. The rest as
    Access.authenticate."""
    import base64

    kind, _, proof = (header or b"").strip().partition(b" ")
    kind, proof = kind.lower(), proof.strip()
    if kind == b"bearer":
        return access.authenticate("token", proof, None, host)
    if kind == b"basic":
        try:
            proof = base64.b64decode(proof, validate=True)
        except ValueError:
            raise errors.AuthenticationError(detail="the Authorization is not base64") from None
        return access.authenticate("basic", proof, None, host)
    if header is None:
        method = "tls" if certificate_name else ""
        return access.authenticate(method, b"", certificate_name, host)
    raise errors.AuthenticationError(detail="an Authorization is Bearer or Basic")
