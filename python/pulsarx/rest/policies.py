"""Routes of policies, of namespaces and topics. How each is written is in `policy_documents`.

GET gives what is set at that level, or with `applied=true` what is in force.
"""

from __future__ import annotations

from functools import partial

from pulsarx.admin.policy_documents import DOCUMENTS, QUOTA_TYPES, read_quota, shown_quota
from pulsarx.rest.call import Refusal, whole
from pulsarx.rest.route import Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.admin.policy_documents import PolicyDocument
    from pulsarx.broker_options import BrokerOptions
    from pulsarx.rest.call import Call

    Json = dict[str, Any]

NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
TOPIC = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"
PREFIXES = {"namespace": NAMESPACE, "topic": TOPIC}

# What the broker's options say, as verbs write it.
DEFAULTS: dict[str, Callable[[BrokerOptions], Any]] = {
    "retention": lambda each: {
        "time_minutes": each.default_retention_time_in_minutes,
        "size_mb": each.default_retention_size_in_mb,
    },
    "message_ttl": lambda each: each.ttl_duration_default_in_seconds,
    "subscription_expiration_time": lambda each: each.subscription_expiration_time_minutes,
    "deduplication": lambda each: each.broker_deduplication_enabled,
    "auto_topic_creation": lambda each: {
        "allowed": each.allow_auto_topic_creation,
        "type": each.allow_auto_topic_creation_type,
        "partitions": each.default_num_partitions,
    },
    "auto_subscription_creation": lambda each: each.allow_auto_subscription_creation,
    "subscription_types_enabled": lambda each: list(each.subscription_types_enabled),
    "dispatch_rate": lambda each: {
        "msgs": each.dispatch_throttling_rate_per_topic_in_msg,
        "bytes": each.dispatch_throttling_rate_per_topic_in_byte,
        "relative_to_publish_rate": False,
        "period_seconds": 1,
    },
    "subscription_dispatch_rate": lambda each: {
        "msgs": each.dispatch_throttling_rate_per_subscription_in_msg,
        "bytes": each.dispatch_throttling_rate_per_subscription_in_byte,
        "relative_to_publish_rate": False,
        "period_seconds": 1,
    },
    "publish_rate": lambda _: {"msgs": -1, "bytes": -1},
    "subscribe_rate": lambda _: {"per_consumer": -1, "period_seconds": 30},
    "delayed_delivery": lambda each: {
        "tick_time_millis": each.delayed_delivery_tick_time_millis,
        "active": each.delayed_delivery_enabled,
        "max_delivery_delay_in_millis": each.delayed_delivery_max_delay_in_millis,
    },
    "inactive_topics": lambda each: {
        "mode": each.broker_delete_inactive_topics_mode,
        "seconds": each.broker_delete_inactive_topics_max_inactive_duration_seconds
        or each.broker_delete_inactive_topics_frequency_seconds,
        "enabled": each.broker_delete_inactive_topics_enabled,
    },
    "max_producers_per_topic": lambda each: each.max_producers_per_topic,
    "max_consumers_per_topic": lambda each: each.max_consumers_per_topic,
    "max_consumers_per_subscription": lambda each: each.max_consumers_per_subscription,
    "max_subscriptions_per_topic": lambda each: each.max_subscriptions_per_topic,
    "max_topics_per_namespace": lambda each: each.max_topics_per_namespace,
    "max_unacked_messages_per_consumer": lambda each: each.max_unacked_messages_per_consumer,
    "max_unacked_messages_per_subscription": lambda each: (
        each.max_unacked_messages_per_subscription
    ),
    "compaction_threshold": lambda _: 0,
    "offload_threshold": lambda each: each.managed_ledger_offload_auto_trigger_size_threshold_bytes,
    "offload_deletion_lag_ms": lambda each: each.managed_ledger_offload_deletion_lag_ms,
    "schema_compatibility_strategy": lambda each: each.schema_compatibility_strategy,
    "schema_validation_enforced": lambda each: each.is_schema_validation_enforced,
    "is_allow_auto_update_schema": lambda each: each.is_allow_auto_update_schema_enabled,
}
# What Pulsar tells where nothing is set, if it tells anything.
_UNSET: dict[tuple[str, str], Any] = {
    ("subscription_types_enabled", "namespace"): [],
    ("subscription_types_enabled", "topic"): [],
    ("schema_compatibility_strategy", "namespace"): "UNDEFINED",
    ("schema_validation_enforced", "namespace"): False,
    ("schema_validation_enforced", "topic"): False,
    ("is_allow_auto_update_schema", "namespace"): True,
    ("max_topics_per_namespace", "namespace"): 0,
    ("offload_threshold", "namespace"): -1,
}


def target_of(level: str, call: Call) -> str:
    return call.namespace if level == "namespace" else call.topic


def value_of(policy: PolicyDocument, level: str, call: Call) -> Any:
    """What is set, in JSON; None: nothing."""
    target = {level: target_of(level, call)}
    found = call.perform(f"{level}s.get_policy", name=policy.name, **target)
    return None if found is None else policy.shown(found)


def _answer(policy: PolicyDocument, level: str, call: Call) -> Any:
    found = value_of(policy, level, call)
    if found is not None or not call.flag("applied"):
        return _UNSET.get((policy.name, level)) if found is None else found
    if level == "topic" and policy.paths["namespace"] is not None:
        found = value_of(policy, "namespace", call)
    if found is None:
        return policy.shown(DEFAULTS[policy.name](call.host.broker.settings.options))
    return found


def _set(policy: PolicyDocument, level: str, call: Call) -> None:
    named = call.query.get(policy.query or "")
    if policy.kind == "string":
        found: Any = call.json_text()
    else:
        found = call.json() if named is None else whole(policy.name, named)
    try:
        value = policy.read(found)
    except ValueError as error:
        raise Refusal(400, f"{policy.name}: {error}") from None
    _put(policy, level, call, value)


def _remove(policy: PolicyDocument, level: str, call: Call) -> None:
    _put(policy, level, call, None)


def _put(policy: PolicyDocument, level: str, call: Call, value: object) -> None:
    """None takes it away."""
    target = {level: target_of(level, call)}
    call.perform(f"{level}s.set_policy", policy={policy.name: value}, **target)


# Backlog quotas -----------------------------------------------------------------------------------


def quotas_of(level: str, call: Call) -> Json:
    """By type, as far as they are set."""
    found = {}
    for kind in QUOTA_TYPES:
        name = f"backlog_quota_{kind}"
        value = call.perform(f"{level}s.get_policy", name=name, **{level: target_of(level, call)})
        if value is not None:
            found[kind] = shown_quota(value)
    return found


def _set_quota(level: str, call: Call) -> None:
    try:
        value = read_quota(call.json())
    except ValueError as error:
        raise Refusal(400, f"backlog quota: {error}") from None
    _put_quota(level, call, value)


def _remove_quota(level: str, call: Call) -> None:
    _put_quota(level, call, None)


def _put_quota(level: str, call: Call, value: object) -> None:
    kind = call.query.get("backlogQuotaType") or QUOTA_TYPES[0]
    if kind not in QUOTA_TYPES:
        raise Refusal(412, f"there is no backlog quota of type {kind!r:.100}")
    policy = {f"backlog_quota_{kind}": value}
    call.perform(f"{level}s.set_policy", policy=policy, **{level: target_of(level, call)})


def _routes_of(policy: PolicyDocument, level: str, path: str) -> list[Route]:
    said = f"the {policy.name.replace('_', ' ')} of a {level}."
    return [
        Route("GET", path, partial(_answer, policy, level), f"Get {said}", query=("applied",)),
        Route(
            policy.setting[level],
            path,
            partial(_set, policy, level),
            f"Set {said}",
            query=() if policy.query is None else (policy.query,),
            body=policy.kind,
            refused=412,
            invalid=400 if policy.name == "retention" else 412,
        ),
        Route("DELETE", path, partial(_remove, policy, level), f"Remove {said}"),
    ]


def _routes() -> list[Route]:
    found = []
    for level, prefix in PREFIXES.items():
        for policy in DOCUMENTS:
            last = policy.paths[level]
            if last is not None:
                found += _routes_of(policy, level, f"{prefix}/{last}")
        kind = ("backlogQuotaType",)
        quota = f"{prefix}/backlogQuota"
        found += [
            Route(
                "GET",
                f"{prefix}/backlogQuotaMap",
                partial(quotas_of, level),
                f"Get the backlog quotas of a {level}.",
            ),
            Route(
                "POST",
                quota,
                partial(_set_quota, level),
                f"Set a backlog quota of a {level}.",
                query=kind,
                body="BacklogQuota",
                refused=412,
            ),
            Route(
                "DELETE",
                quota,
                partial(_remove_quota, level),
                f"Remove a backlog quota of a {level}.",
                query=kind,
            ),
        ]
    return found


ROUTES = _routes()
