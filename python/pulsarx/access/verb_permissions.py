"""What a role needs for a verb, as Pulsar's broker asks it for the same over HTTP."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future
    from typing import Any

    from pulsarx.access.access import Access
    from pulsarx.access.identity import Identity

_OF_SUPERUSERS = {"tenants.create_tenant", "tenants.update_tenant", "tenants.delete_tenant"}
_OF_NAMESPACE_USERS = {
    "topics.get_list", "topics.get_partitioned_topic_list", "namespaces.get_topics",
}  # fmt: skip
_OF_TOPIC_USERS = {
    "topics.get_partitioned_topic_metadata", "topics.stats", "topics.partitioned_stats",
    "schemas.get_schema_info", "schemas.get_all_schemas", "schemas.get_version_by_schema",
    "schemas.test_compatibility",
}  # fmt: skip
_OF_CONSUMERS = {
    "topics.create_subscription", "topics.delete_subscription", "topics.get_subscriptions",
    "topics.reset_cursor", "topics.skip_all_messages", "topics.skip_messages",
    "topics.expire_messages", "topics.peek_messages", "topics.get_last_message_id",
    "topics.get_backlog_size", "topics.examine_message", "topics.get_message",
    "topics.find_message_id", "topics.browse_messages",
}  # fmt: skip
_OF_PRODUCERS = {"schemas.create_schema"}


def require_verb(access: Access, role: str, verb: str, arguments: dict[str, Any]) -> None:
    """AuthorizationError: the role may not do it. Of verbs that are not named here those about a
    tenant, or what is in it, are its administrators', and others the superusers'."""
    if access.is_superuser(role):
        return
    topic, namespace = arguments.get("topic"), arguments.get("namespace")
    tenant, subscription = arguments.get("tenant"), arguments.get("name")
    if verb in _OF_SUPERUSERS:
        access.require_superuser(role, verb)
    elif isinstance(topic, str) and verb in _OF_TOPIC_USERS:
        access.require_lookup(role, topic)
    elif isinstance(topic, str) and verb in _OF_CONSUMERS:
        if isinstance(subscription, str):
            access.require_subscribe(role, topic, subscription)
        else:
            access.require_consume(role, topic)
    elif isinstance(topic, str) and verb in _OF_PRODUCERS:
        access.require_produce(role, topic)
    elif isinstance(namespace, str) and verb in _OF_NAMESPACE_USERS:
        access.require_in_namespace(role, namespace)
    elif isinstance(topic, str):
        access.require_admin(role, TopicName.of(topic).tenant, verb)
    elif isinstance(namespace, str):
        access.require_admin(role, namespace.partition("/")[0], verb)
    elif isinstance(tenant, str):
        access.require_admin(role, tenant, verb)
    else:
        access.require_superuser(role, verb)


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
