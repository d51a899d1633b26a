"""Routes of the page at `/`, for what the admin REST API does not tell: statistics of all topics,
now and before, messages page by page, replaying dead letters; with `console_views` those of its
other views. No other program is promised them."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.rest.call import Refusal, integer_of, whole
from pulsarx.rest.route import Route
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.rest.call import Call
    from pulsarx.rest.sampler import TopicRow

    Json = dict[str, Any]

_TOPICS_MAX = 200  # of a page
_CONSUMERS_MAX = 500  # of a subscription
_KEYS_MAX = 100
_POINTS_MAX = 300  # of a plot,
_TREND_POINTS_MAX = 60  # and of one in a list
_TREND_MS = 3600 * 1000
_LETTERS_MAX = 1000  # of a request
_SORTS = {
    "backlog": "backlog",
    "consumers": "consumers",
    "in": "rate_in",
    "out": "rate_out",
    "stored": "stored",
}
_SHOWN = ("topic", "partitions", "backlog", "consumers", "producers", "subscriptions", "rate_in",
          "rate_out", "stored", "age", "terminated", "flaw")  # fmt: skip


def _overview(call: Call) -> Json:
    """The role that asks, and the folder and namespaces that it may look into. hidden: whether the
    role is told nothing of the server."""
    hidden = not sees_server(call)
    return {
        "hidden": hidden,
        "folder": None if hidden else call.host.folder.place,
        "owner": None if hidden else call.host.folder.owner(),
        "role": call.role,
        "namespaces": namespaces_of(call),
    }


def sees_server(call: Call) -> bool:
    """Whether the role is told of the server itself, as by `/metrics`."""
    access = call.host.access
    return access is None or access.metrics_filter(call.role or "") is None


def namespaces_of(call: Call) -> list[str]:
    """The namespaces that the role may look into."""
    tenants = call.host.perform("tenants.get_tenants", {})
    found = [
        namespace
        for tenant in tenants
        for namespace in call.host.perform("namespaces.get_namespaces", {"tenant": tenant})
    ]
    return [each for each in found if _may_list(call, each)]


def _may_list(call: Call, namespace: str) -> bool:
    if call.host.access is None or call.role is None:
        return True
    try:
        call.host.access.require_in_namespace(call.role, namespace)
    except errors.AuthorizationError:
        return False
    return True


# Topics -------------------------------------------------------------------------------------------


def _topics(call: Call) -> Json:
    """A page of the topics of a namespace, or of all that the role may look into."""
    wanted = call.query.get("namespace", "")
    if wanted:
        call.perform("namespaces.get_topics", namespace=wanted)  # 404, 403
    allowed = {wanted} if wanted else set(namespaces_of(call))
    offset, limit = _number(call, "offset", 0), _number(call, "limit", 50)
    if not 1 <= limit <= _TOPICS_MAX:
        raise Refusal(412, f"limit is from 1 to {_TOPICS_MAX}, not {limit}")
    sampler = call.host.sampler
    sampler.watched(now=call.flag("now"))
    text = call.query.get("filter", "").lower()
    only = call.query.get("only", "")
    rows = [each for each in sampler.rows() if TopicName.of(each.topic).namespace_name in allowed]
    found = [each for each in rows if text in each.topic.lower() and _is(only, each)]
    _sort(call, found)
    page = found[offset : offset + limit]
    since_ms = max(call.host.folder.clock.now_ms() - _TREND_MS, sampler.began_ms)
    trends = sampler.trends([each.topic for each in page], since_ms, _TREND_POINTS_MAX)
    return {
        "time": sampler.sampled_ms,
        "since": since_ms,
        "interval": sampler.interval_ms,
        "topics": len(rows),
        "found": len(found),
        "sums": _sums(rows),
        "rows": [
            {name: getattr(each, name) for name in _SHOWN} | {"trend": trend}
            for each, trend in zip(page, trends)
        ],
    }


def _is(only: str, row: TopicRow) -> bool:
    """only: backlog, of which some is not acknowledged; stuck, where nobody consumes it."""
    if only == "backlog":
        return bool(row.backlog)
    if only == "stuck":
        return bool(row.backlog) and not row.consumers
    if only:
        raise Refusal(412, f"only is backlog or stuck, not {only!r:.100}")
    return True


def _sort(call: Call, rows: list[TopicRow]) -> None:
    sort = call.query.get("sort", "") or "backlog"
    rows.sort(key=lambda row: row.topic, reverse=sort == "name" and call.flag("reverse"))
    if sort == "name":
        return
    if sort not in _SORTS:
        raise Refusal(412, f"sort is name, {', '.join(_SORTS)}, not {sort!r:.100}")
    name, sign = _SORTS[sort], 1 if call.flag("reverse") else -1
    # What is not known comes last.
    rows.sort(key=lambda row: (getattr(row, name) is None, sign * (getattr(row, name) or 0)))


def _sums(rows: list[TopicRow]) -> Json:
    return {
        name: sum(getattr(each, name) or 0 for each in rows)
        for name in ("backlog", "rate_in", "rate_out", "stored")
    }


# A topic ------------------------------------------------------------------------------------------


def _topic(call: Call) -> Json:
    """All that is shown of a topic: its figures now, and how they were."""
    name = str(TopicName.of(query_of(call, "topic")))
    partitions = call.perform("topics.get_partitioned_topic_metadata", topic=name)["partitions"]
    verb = "partitioned_stats" if partitions else "stats"
    found: Json = call.perform(f"topics.{verb}", topic=name)
    sampler = call.host.sampler
    sampler.watched(now=call.flag("now"))
    now_ms = call.host.folder.clock.now_ms()
    since_ms = max(now_ms - _number(call, "span", _TREND_MS), sampler.began_ms)
    producers = found["publishers"]
    return {
        "topic": name,
        "partitions": [
            {"topic": each, "stored": one["storage_size"], "backlog": _backlog(one)}
            for each, one in found.get("partitions", {}).items()
        ],
        "terminated": found.get("terminated", False),
        "stored": found["storage_size"],
        "messages": found["messages"],
        "ledgers": len(found.get("ledgers", ())),
        "oldest": found["oldest_backlog_message_age_seconds"],
        "in": found["msg_in_counter"],
        "producer_count": None if producers is None else len(producers),
        "producers": None
        if producers is None
        else [each["producer_name"] for each in producers[:_CONSUMERS_MAX]],
        "subscriptions": {
            each: _subscription(figures, _consumers(found, each))
            | {"points": sampler.points(name, each, since_ms, _TREND_POINTS_MAX)}
            for each, figures in found["subscriptions"].items()
        },
        "points": sampler.points(name, None, since_ms, _POINTS_MAX),
        "now": now_ms,
        "since": since_ms,
        "keeps": TopicName.of(name).persistent,
        "leases": [] if partitions else _leases(call, name),
    }


def _backlog(found: Json) -> int:
    return sum(each["msg_backlog"] for each in found["subscriptions"].values())


def _subscription(found: Json, consumers: list[Json] | None) -> Json:
    held = found.get("keys_held_back") or []
    return {
        "type": found["type"],
        "durable": found["is_durable"],
        "backlog": found["msg_backlog"],
        "size": found.get("backlog_size"),
        "oldest": found.get("oldest_backlog_message_age_seconds"),
        "unacked": found.get("unacked_messages"),
        "blocked": bool(found.get("blocked_subscription_on_unacked_msgs")),
        "behind": bool(found.get("blocked_subscription_on_look_ahead")),
        "replay": found.get("msg_in_replay", 0),
        "active": found.get("active_consumer_name"),
        "mark_delete": found.get("mark_delete_position"),
        "out": found["msg_out_counter"],
        "keys_held": held[:_KEYS_MAX] if isinstance(held, list) else [],
        "keys_held_count": len(held) if isinstance(held, list) else held,
        "consumer_count": None if consumers is None else len(consumers),
        "consumers": None if consumers is None else consumers[:_CONSUMERS_MAX],
    }


def _consumers(found: Json, name: str) -> list[Json] | None:
    """The consumers of a subscription; one that is on several partitions is told once. None: the
    owner alone knows them."""
    shown: dict[tuple[int, str], Json] = {}
    for topic in found.get("partitions", {}).values() if "partitions" in found else [found]:
        figures = topic["subscriptions"].get(name, {"consumers": []})
        if figures.get("consumers") is None:
            return None
        alike: dict[str, int] = {}  # consumers may have one name
        for each in figures["consumers"]:
            number = alike[each["consumer_name"]] = alike.get(each["consumer_name"], 0) + 1
            one = _consumer(figures, each)
            known = shown.setdefault((number, one["name"]), one)
            if known is not one:
                for count in ("permits", "unacked", "out"):
                    known[count] += one[count]
                known["blocked"] |= one["blocked"]
                known["ranges"] = None
    return list(shown.values())


def _consumer(figures: Json, each: Json) -> Json:
    return {
        "name": each["consumer_name"],
        "permits": each["available_permits"],
        "pulls": each.get("reads_ledger_on_receive", False),
        "unacked": each["unacked_messages"],
        "blocked": each["blocked_consumer_on_unacked_msgs"],
        "out": each["msg_out_counter"],
        "metadata": each["metadata"],
        "ranges": _ranges_of(figures, each["consumer_name"]),
    }


def _ranges_of(found: Json, consumer: str) -> float | None:
    """Which part of all hashes of keys is the consumer's; None: the type has none."""
    ranges = found.get("hash_ranges")
    if not isinstance(ranges, list):
        return None
    sizes: list[tuple[int, str]] = [(end - start + 1, name) for start, end, name in ranges]
    mine: int = sum(size for size, name in sizes if name == consumer)
    return mine / max(sum(size for size, _ in sizes), 1.0)


def _leases(call: Call, topic: str) -> list[Json]:
    """The leases of jobs that read the topic, as Spark's streams without a subscription do."""
    if not TopicName.of(topic).persistent:
        return []
    found: list[Json] = call.host.perform("leases.get_leases", {"topic": topic})
    return found


# Messages -----------------------------------------------------------------------------------------


def _messages(call: Call) -> Any:
    """A page of them; see the verb. from: earliest, latest, an id, a time in ms behind `@`, or
    where the page before ended, as `ledger+ordinal`; `newest`, or such a place behind `before:`, is
    for the messages in front of it, the newest first."""
    begin = call.query.get("from") or "earliest"
    count = _number(call, "count", 50)
    more = {
        name: call.query[given]
        for name, given in (("name", "subscription"), ("text", "text"))
        if call.query.get(given)
    }
    return call.perform(
        "topics.browse_messages",
        topic=query_of(call, "topic"),
        position=_position(begin, count),
        count=count,
        **more,
    )


def _position(begin: str, count: int) -> Json:
    from pulsarx.message_id import MessageId

    if begin == "latest":
        return {"from_end": count}
    if begin == "newest":
        return {"before": None}
    if begin.startswith("before:"):
        found = _position(begin.removeprefix("before:"), count)
        if "place" not in found:
            raise Refusal(412, f"before: is followed by a place, not by {begin!r:.100}")
        return {"before": found["place"]}
    if begin == "earliest":
        return {"message_id": MessageId.earliest.to_text()}
    if begin.startswith("@"):
        return {"publish_time_ms": whole("from", begin[1:])}
    if " " in begin or "+" in begin:  # which a query may mean as a space
        ledger_id, _, ordinal = begin.replace("+", " ").partition(" ")
        return {"place": [whole("from", ledger_id), whole("from", ordinal)]}
    parts = begin.split(":")
    if len(parts) == 2:
        begin = f"{begin}:-1"
    return {"message_id": begin}


# Dead letters -------------------------------------------------------------------------------------


def _replay(call: Call) -> Json:
    """Publish dead letters of a subscription to the topic they came from again. dlq: the topic they
    are on, where it has not the usual name. What ends it behind some of them is told with them, as
    `stopped`; the letter that could not be published is the next one then."""
    from pulsarx.letters.replay import SUBSCRIPTION, Replay, dead_letters_of, letter_consumer

    found = call.json_object()
    topic, subscription = text_of(found, "topic"), text_of(found, "subscription")
    count = integer_of(found, "count", _LETTERS_MAX)
    if not 1 <= count <= _LETTERS_MAX:
        raise Refusal(412, f"count is from 1 to {_LETTERS_MAX}, not {count}")
    letters = text_of(found, "dlq") if found.get("dlq") else dead_letters_of(topic, subscription)
    access, role = call.host.access, call.role

    def check(target: str) -> None:
        if access is not None and role is not None:
            access.require_produce(role, target)

    if access is not None and role is not None:
        access.require_subscribe(role, letters, SUBSCRIPTION)
    done: dict[str, int] = {}
    damage: list[str] = []
    stopped: str | None = None
    with call.host.folder.client() as client:
        consumer = letter_consumer(client, letters)
        replay = Replay(client, check)
        try:
            while sum(done.values()) < count:
                try:
                    letter = consumer.receive(0)
                except errors.Timeout:
                    break
                except (errors.CorruptDataError, errors.DataLossError) as error:
                    damage.append(errors.detail_of(error))
                    continue
                try:
                    target = replay.publish(letter, topic)
                except errors.PulsarException as error:
                    if not done and not damage:
                        raise
                    stopped = errors.detail_of(error)
                    break
                consumer.acknowledge(letter)
                done[target] = done.get(target, 0) + 1
        finally:
            replay.close()
            consumer.close()
    more = stopped is not None or sum(done.values()) == count
    return {"replayed": done, "damage": damage, "more": more, "stopped": stopped}


# Arguments ----------------------------------------------------------------------------------------


def query_of(call: Call, name: str) -> str:
    found = call.query.get(name, "")
    if not found:
        raise Refusal(412, f"{name} is missing")
    return found


def _number(call: Call, name: str, default: int) -> int:
    found = call.query.get(name)
    return default if found is None else max(whole(name, found), 0)


def text_of(found: Json, name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value:
        raise Refusal(400, f"{name} must be a text")
    return value


ROUTES = [
    Route("GET", "/console/overview", _overview, "Get who asks, and the namespaces it may see."),
    Route("GET", "/console/topics", _topics, "Get a page of topics with their figures."),
    Route("GET", "/console/topic", _topic, "Get the figures of a topic, and how they were."),
    Route("GET", "/console/messages", _messages, "Get a page of messages."),
    Route("POST", "/console/replay", _replay, "Replay dead letters.", refused=412),
]
