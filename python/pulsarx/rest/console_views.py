"""Routes of the page's views of a folder's health, of policies and of schemas. As `console`, for
the page alone."""

from __future__ import annotations

import os

import pulsarx
from pulsarx import errors
from pulsarx.broker.policies.policy_row import NAMESPACE, TOPIC
from pulsarx.broker.policies.policy_value import REQUIRED
from pulsarx.broker.policies.table import POLICIES, TABLE
from pulsarx.rest.call import Refusal
from pulsarx.rest.console import namespaces_of, query_of, sees_server, text_of
from pulsarx.rest.route import Route
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.policies.policy_row import Policy
    from pulsarx.rest.call import Call
    from pulsarx.rest.sampler import TopicRow

    Json = dict[str, Any]

_LARGEST = 10  # topics
_FLAWS_MAX = 10
_DISK_LOW = 0.05  # of the device; what is written fails when it is full
_LEVELS = (NAMESPACE, TOPIC)


# Health -------------------------------------------------------------------------------------------


def _health(call: Call) -> Json:
    """The whole folder, as far as the role may look into it: what it takes of its device, what is
    wrong with it, its oldest message that waits, and its largest topics. hidden: as of overview."""
    folder, sampler = call.host.folder, call.host.sampler
    sampler.watched(now=call.flag("now"))
    allowed = set(namespaces_of(call))
    rows = [each for each in sampler.rows() if TopicName.of(each.topic).namespace_name in allowed]
    largest = sorted(rows, key=lambda row: (-row.stored, row.topic))[:_LARGEST]
    flaws = [{"topic": each.topic, "flaw": each.flaw} for each in rows if each.flaw]
    hidden = not sees_server(call)
    disk = None if hidden else _disk(folder.place)
    return {
        "version": pulsarx.__version__,
        "hidden": hidden,
        "folder": None if hidden else folder.place,
        "owner": None if hidden else folder.owner(),
        "time": folder.clock.now_ms(),
        "since": sampler.began_ms,
        "namespaces": len(allowed),
        "topics": len(rows),
        "stored": sum(each.stored for each in rows),
        "backlog": sum(each.backlog or 0 for each in rows),
        "disk": disk,
        "warnings": _warnings(disk, len(flaws)),
        "flaws": flaws[:_FLAWS_MAX],
        "oldest": _oldest(call, rows),
        "largest": [
            {
                "topic": each.topic,
                "stored": each.stored,
                "backlog": each.backlog,
                "partitions": each.partitions,
            }
            for each in largest
        ],
    }


def _disk(place: str) -> Json | None:
    """None: the folder is in memory."""
    try:
        found = os.statvfs(place)
    except OSError:
        return None
    return {"total": found.f_blocks * found.f_frsize, "free": found.f_bavail * found.f_frsize}


def _warnings(disk: Json | None, flaws: int) -> list[str]:
    found = []
    if disk is not None and disk["free"] < disk["total"] * _DISK_LOW:
        found.append("The device is nearly full: when it is, new messages are refused.")
    if flaws:
        what = "1 topic is" if flaws == 1 else f"{flaws} topics are"
        found.append(f"{what} damaged; pulsarx check says where.")
    return found


def _oldest(call: Call, rows: list[TopicRow]) -> Json | None:
    """The oldest message that a subscription has not acknowledged; None: all have all."""
    waiting = [each for each in rows if each.age >= 0 and each.backlog]
    if not waiting:
        return None
    row = max(waiting, key=lambda each: each.age)
    verb = "topics.partitioned_stats" if row.partitions else "topics.stats"
    try:
        found = call.host.perform(verb, {"topic": row.topic})
    except errors.TopicNotFound:
        return None  # it was deleted just now
    ages = {
        name: each.get("oldest_backlog_message_age_seconds", -1)
        for name, each in found["subscriptions"].items()
        if each["msg_backlog"]
    }
    if not ages:
        return None
    name = max(ages, key=lambda each: ages[each])
    return {
        "topic": row.topic,
        "subscription": name,
        "age": ages[name] if ages[name] >= 0 else row.age,
        "backlog": found["subscriptions"][name]["msg_backlog"],
    }


# Policies -----------------------------------------------------------------------------------------


def _policies(call: Call) -> Json:
    """Each policy of a topic, or of a namespace: what each level sets, and what holds where none
    does. null: nothing is set."""
    topic = call.query.get("topic", "")
    namespace = TopicName.of(topic).namespace_name if topic else query_of(call, "namespace")
    targets = {NAMESPACE: namespace} | ({TOPIC: topic} if topic else {})
    found = []
    for each in TABLE:
        if not topic and NAMESPACE not in each.levels:
            continue
        values = {
            level: _value(call, each, level, target)
            for level, target in targets.items()
            if level in each.levels
        }
        found.append(
            {"name": each.name, "unit": each.kind.unit, "values": values, **_unset(call, each)}
        )
    return {"topic": topic, "namespace": namespace, "policies": found}


def _value(call: Call, policy: Policy, level: str, target: str) -> Any:
    found = call.perform(f"{level}s.get_policy", name=policy.name, **{level: target})
    return None if found is None else policy.shown(found)


def _unset(call: Call, policy: Policy) -> Json:
    """The value by the broker's options, which its owner alone knows."""
    try:
        options = call.host.broker.settings.options
    except errors.OperationNotSupported:
        return {}
    found = policy.unset(options)
    if isinstance(found, dict) and REQUIRED in found.values():
        found = None  # nothing holds where no level sets it
    return {"unset": None if found is None else policy.shown(found)}


def _set_policy(call: Call) -> None:
    """value: null takes it away."""
    given = call.json_object()
    level, target, name = (text_of(given, each) for each in ("level", "target", "name"))
    policy = POLICIES.get(name)
    if level not in _LEVELS or policy is None or level not in policy.levels:
        raise Refusal(412, f"there is no policy {name!r:.100} of a {level!r:.20}")
    value = given.get("value")
    try:
        found = None if value is None else policy.read(value)
    except ValueError as error:
        raise Refusal(412, f"{name}: {error}") from None
    call.perform(f"{level}s.set_policy", policy={name: found}, **{level: target})


# Schemas ----------------------------------------------------------------------------------------


def _schemas(call: Call) -> list[Json]:
    """All versions of the schema of a topic, the newest first."""
    name = TopicName.of(query_of(call, "topic"))
    found: list[Json] = call.perform("schemas.get_all_schemas", topic=str(name))
    return found[::-1]


ROUTES = [
    Route("GET", "/console/health", _health, "Get how the folder is."),
    Route("GET", "/console/policies", _policies, "Get the policies of a topic or namespace."),
    Route("POST", "/console/policy", _set_policy, "Set or remove a policy.", refused=412),
    Route("GET", "/console/schemas", _schemas, "Get the versions of a topic's schema."),
]
