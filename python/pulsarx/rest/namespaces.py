"""Routes of namespaces. Their policies are in `policies`."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.admin.http_forms import CLUSTER
from pulsarx.broker.policies.permissions import PERMISSIONS
from pulsarx.broker.policies.quota_types import quota_name
from pulsarx.broker.policies.table import POLICIES
from pulsarx.rest.call import Refusal
from pulsarx.rest.policies import NAMESPACE, QUOTA, quotas_of, value_of
from pulsarx.rest.route import Route
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.policies.policy_row import Policy, Rest
    from pulsarx.rest.call import Call

    Json = dict[str, Any]

FIRST_HASH, LAST_HASH = "0x00000000", "0xffffffff"
BUNDLES: dict[str, Any] = {"boundaries": [FIRST_HASH, LAST_HASH], "numBundles": 1}
_MODES = {"PERSISTENT": "persistent", "NON_PERSISTENT": "non-persistent", "ALL": "any"}
_GRANTED = {"namespace_auth": "namespace", "subscription_auth_roles": "subscriptions"}


def _create(call: Call) -> None:
    """With the policies of the body, but for those that are as they are without being set: Pulsar's
    clients send all of them. What there is not is refused."""
    found = call.json({}) or {}
    if not isinstance(found, dict):
        raise Refusal(400, "the body must be a JSON object")
    clusters = found.get("replication_clusters")
    if clusters not in (None, [], [CLUSTER]):
        raise Refusal(403, f"{clusters!r:.100}: the only cluster is {CLUSTER}")
    policies: Json = {}
    for name, value in found.items():
        if name in ("bundles", "replication_clusters") or _is_usual(name, value):
            continue
        try:
            read = _read_policy(name, value)
            if PERMISSIONS in read:  # which come in two parts
                read = {PERMISSIONS: {**policies.get(PERMISSIONS, {}), **read[PERMISSIONS]}}
            policies.update(read)
        except ValueError as error:
            raise Refusal(400, f"{name}: {error}") from None
    more = {"policies": policies} if policies else {}
    call.perform("namespaces.create_namespace", namespace=call.namespace, **more)


def _read_policy(name: str, value: Any) -> Json:
    """Policies, by our names, that the document of all policies has under a name."""
    if name == "backlog_quota_map":
        return {quota_name(kind): QUOTA.read(each) for kind, each in _parts(value).items()}
    if name == "auth_policies":
        parts = {key: each for key, each in _parts(value).items() if not _is_usual(name, each)}
        if set(parts) <= set(_GRANTED):
            return {PERMISSIONS: {_GRANTED[key]: _parts(each) for key, each in parts.items()}}
        raise Refusal(405, "permissions of topics are granted by their own path")
    if name == "subscription_auth_mode":
        return {PERMISSIONS: {name: value}}
    for policy, rest in _documented():
        if name != (rest.field or policy.name):
            continue
        if rest.by_cluster:
            value = {key: each for key, each in _parts(value).items() if not _is_usual(name, each)}
            if set(value) != {CLUSTER}:
                raise Refusal(
                    403, f"{name} of {', '.join(value):.100}: the only cluster is {CLUSTER}"
                )
            value = value[CLUSTER]
        return {policy.name: policy.read(value)}
    raise Refusal(405, f"{name} of a namespace is not supported by PulsarX")


def _documented() -> list[tuple[Policy, Rest]]:
    """The policies in the document of all policies."""
    return [(each, each.rest) for each in POLICIES.values() if each.rest is not None]


def _parts(value: Any) -> Json:
    if not isinstance(value, dict):
        raise ValueError("it must be a JSON object")
    return value


def _is_usual(name: str, value: Any) -> bool:
    """Whether a policy is as it is without being set."""
    if isinstance(value, dict):
        return all(_is_usual(name, each) for each in value.values())
    return value in (None, 0, "", []) or value in _USUAL.get(name, ())


# As clients in Java and Go write what they do not set; FULL is what holds then.
_USUAL: dict[str, tuple[Any, ...]] = {
    "subscription_auth_mode": ("None",),
    "schema_auto_update_compatibility_strategy": ("Full",),
    "schema_compatibility_strategy": ("UNDEFINED", "FULL", "Full"),
    "is_allow_auto_update_schema": (True,),
    "offload_threshold": (-1,),
    "offload_threshold_in_seconds": (-1,),
}


def _policies(call: Call) -> Json:
    # 404: it is not there.
    granted = call.perform("namespaces.get_policies", namespace=call.namespace).get(PERMISSIONS, {})
    found: Json = {
        "auth_policies": {
            "namespace_auth": granted.get("namespace", {}),
            "destination_auth": granted.get("topics", {}),
            "subscription_auth_roles": granted.get("subscriptions", {}),
        },
        "replication_clusters": [CLUSTER],
        "allowed_clusters": [],
        "bundles": BUNDLES,
        "backlog_quota_map": quotas_of("namespace", call),
        "clusterDispatchRate": {},
        "replicatorDispatchRate": {},
        **{rest.field: {} for _, rest in _documented() if rest.by_cluster},
        "latency_stats_sample_rate": {},
        "deleted": False,
        "encryption_required": False,
        "subscription_auth_mode": granted.get("subscription_auth_mode", "None"),
        "offload_threshold": -1,
        "offload_threshold_in_seconds": -1,
        "schema_compatibility_strategy": "UNDEFINED",
        "schema_validation_enforced": False,
        "is_allow_auto_update_schema": True,
        "subscription_types_enabled": [],
        "properties": {},
        "migrated": False,
    }
    for policy, rest in _documented():
        value = value_of(policy, "namespace", call)
        if value is not None:
            found[rest.field or policy.name] = {CLUSTER: value} if rest.by_cluster else value
    return found


def _topics(call: Call) -> list[str]:
    mode = call.query.get("mode") or "PERSISTENT"
    if mode not in _MODES:
        raise Refusal(412, f"there is no mode {mode!r:.100} of topics")
    found: list[str] = call.perform(
        "topics.get_list",
        namespace=call.namespace,
        include_system_topic=call.flag("includeSystemTopic"),
        domain=_MODES[mode],
    )
    return found


def _bundles(call: Call) -> Json:
    call.perform("namespaces.get_policies", namespace=call.namespace)
    return BUNDLES


# All topics of a namespace ------------------------------------------------------------------------


def _each_topic(call: Call, verb: str, wanted: str | None, **more: object) -> None:
    """For all subscriptions of all topics, or for those of one name."""
    names = call.perform(
        "topics.get_list", namespace=call.namespace, include_system_topic=False, domain="persistent"
    )
    for topic in names:
        for name in _unless_gone(call, "get_subscriptions", topic=topic) or ():
            if wanted in (None, name):
                _unless_gone(call, verb, topic=topic, name=name, **more)


def _unless_gone(call: Call, verb: str, **arguments: object) -> Any:
    """A topic or subscription that was deleted meanwhile is passed over."""
    try:
        return call.perform(f"topics.{verb}", **arguments)
    except (errors.TopicNotFound, errors.SubscriptionNotFound):
        return None


def _clear(call: Call) -> None:
    _each_topic(call, "skip_all_messages", None)


def _clear_subscription(call: Call) -> None:
    _each_topic(call, "skip_all_messages", call.subscription)


def _unsubscribe(call: Call) -> None:
    _each_topic(call, "delete_subscription", call.subscription, force=False)


def _unload(call: Call) -> None:
    for topic in call.perform("namespaces.get_topics", namespace=call.namespace):
        if TopicName.of(topic).persistent:
            _unless_gone(call, "unload", topic=topic)


OWN: dict[str, Callable[[Call], Any]] = {
    "namespaces.create_namespace": _create,
    "namespaces.get_policies": _policies,
}
ROUTES = [
    Route(
        "GET",
        f"{NAMESPACE}/topics",
        _topics,
        "Get the topics of a namespace.",
        query=("mode", "includeSystemTopic"),
    ),
    Route("GET", f"{NAMESPACE}/bundles", _bundles, "Get the bundles of a namespace: one."),
    Route(
        "POST", f"{NAMESPACE}/clearBacklog", _clear, "Clear the backlog of a namespace's topics."
    ),
    Route(
        "POST",
        f"{NAMESPACE}/clearBacklog/{{subscription}}",
        _clear_subscription,
        "Clear the backlog of a subscription on a namespace's topics.",
    ),
    Route(
        "POST",
        f"{NAMESPACE}/unsubscribe/{{subscription}}",
        _unsubscribe,
        "Delete a subscription on a namespace's topics.",
        refused=412,
    ),
    Route("PUT", f"{NAMESPACE}/unload", _unload, "Unload the topics of a namespace."),
]
