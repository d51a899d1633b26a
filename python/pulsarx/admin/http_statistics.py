"""Statistics of topics turned into the JSON that Pulsar writes, and back: for client and server.
What PulsarX does not know is left out, and never 0."""

from __future__ import annotations

from collections import Counter
from urllib.parse import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    Json = dict[str, Any]

    class Rates(Protocol):
        def per_second(self, key: tuple[str, ...], *counts: int) -> tuple[float, ...]: ...

    class Call(Protocol):
        """The request that is answered, see `rest/call`."""

        own_url: str

        @property
        def host(self) -> Rates: ...
        def flag(self, name: str, default: bool = False) -> bool: ...


# Of features that PulsarX does not have, in every topic.
_NEVER_OF_TOPIC: Json = {
    "systemTopicBytesInCounter": 0,
    "replication": {},
}
_NEVER_OF_SUBSCRIPTION: Json = {
    "isReplicated": False,
    "replicated": False,
    "filterRescheduledMsgCount": 0,
}
# Of whose consumers Pulsar does not count what they have not acknowledged.
_IN_ORDER = ("Exclusive", "Failover")
_COMPACTION = {
    "last_compaction_removed_event_count": "lastCompactionRemovedEventCount",
    "last_compaction_succeed_timestamp": "lastCompactionSucceedTimestamp",
    "last_compaction_failed_timestamp": "lastCompactionFailedTimestamp",
    "last_compaction_duration_time_in_mills": "lastCompactionDurationTimeInMills",
}


def topic_statistics(call: Call, found: Json) -> Json:
    """The statistics of a topic without partitions. found: the answer of topics.stats."""
    name = found["topic"]
    messages, size = found["msg_in_counter"], found["bytes_in_counter"]
    rate, throughput = call.host.per_second((name,), messages, size)
    subscriptions = {
        each: _subscription(call, name, each, figures)
        for each, figures in (found["subscriptions"] | found["readers"]).items()
    }
    publishers = [] if call.flag("excludePublishers") else found["publishers"]
    return {
        "msgRateIn": rate,
        "msgThroughputIn": throughput,
        "msgRateOut": sum((each["msgRateOut"] for each in subscriptions.values()), 0.0),
        "msgThroughputOut": sum((each["msgThroughputOut"] for each in subscriptions.values()), 0.0),
        "bytesInCounter": size,
        "msgInCounter": messages,
        "bytesOutCounter": sum(each["bytesOutCounter"] for each in subscriptions.values()),
        "msgOutCounter": sum(each["msgOutCounter"] for each in subscriptions.values()),
        "averageMsgSize": throughput / rate if rate else 0.0,
        "storageSize": found["storage_size"],
        "backlogSize": found["backlog_size"],
        "oldestBacklogMessageAgeSeconds": found["oldest_backlog_message_age_seconds"]
        if name.startswith("persistent:")
        else 0,
        "publishRateLimitedTimes": found["publish_rate_limited_times"],
        "ongoingTxnCount": found["ongoing_txn_count"],
        "abortedTxnCount": found["aborted_txn_count"],
        "committedTxnCount": found["committed_txn_count"],
        **_NEVER_OF_TOPIC,
        "offloadedStorageSize": found["offloaded_storage_size"],
        "lastOffloadLedgerId": max(
            (each["ledger_id"] for each in found.get("ledgers", ()) if each["offloaded"]), default=0
        ),
        "lastOffloadSuccessTimeStamp": found["last_offload_success_timestamp"],
        "lastOffloadFailureTimeStamp": found["last_offload_failed_timestamp"],
        "heldByLeasesLedgers": found["held_by_leases_ledgers"],
        "heldByLeasesSize": found["held_by_leases_size"],
        "publishers": [_publisher(each) for each in publishers],
        "subscriptions": subscriptions,
        "deduplicationStatus": found["deduplication_status"],
        "topicEpoch": found["topic_epoch"],
        "compaction": {theirs: found["compaction"][ours] for ours, theirs in _COMPACTION.items()},
        "ownerBroker": call.own_url.partition("://")[2],
    }


def _publisher(figures: Json) -> Json:
    shown = {
        "accessMode": figures["access_mode"],
        "producerName": figures["producer_name"],
        "chunkedMessageRate": figures["chunked_message_rate"],
        "supportsPartialProducer": False,
        "metadata": figures.get("metadata", {}),
    }
    if "client_version" in figures:
        shown["clientVersion"] = figures["client_version"]
    if "msg_drop_rate" in figures:
        shown["msgDropRate"] = figures["msg_drop_rate"]
    return shown


def _subscription(call: Call, topic: str, name: str, figures: Json) -> Json:
    counts = figures["msg_out_counter"], figures["bytes_out_counter"]
    rate, throughput = call.host.per_second((topic, name), *counts)
    consumers = [] if call.flag("excludeConsumers") else figures["consumers"]
    kind = figures["type"] or figures.get("last_type") or "None"
    # Of entries; clients put messages that are delayed into one each.
    delayed = min(figures.get("msg_delayed", 0), figures["backlog_entries"])
    shown = {
        "msgRateOut": rate,
        "msgThroughputOut": throughput,
        "bytesOutCounter": counts[1],
        "msgOutCounter": counts[0],
        "msgBacklog": figures["backlog_entries"],  # entries, as in Pulsar
        "msgBacklogNoDelayed": figures["backlog_entries"] - delayed,
        "msgDelayed": delayed,
        "backlogMessages": figures["msg_backlog"],
        "backlogSize": figures["backlog_size"],
        "blockedSubscriptionOnUnackedMsgs": figures.get(
            "blocked_subscription_on_unacked_msgs", False
        ),
        "unackedMessages": 0 if kind in _IN_ORDER else figures["unacked_messages"],
        "type": kind,
        # Entries, too.
        "msgRateExpired": figures.get("entry_rate_expired", 0.0),
        "totalMsgExpired": figures.get("expired_entries", 0),
        "consumers": [_consumer(call, topic, name, each, kind) for each in consumers],
        "isDurable": figures["is_durable"],
        "durable": figures["is_durable"],
        **_NEVER_OF_SUBSCRIPTION,
        **_filtered(figures),
    }
    if figures.get("active_consumer_name"):
        shown["activeConsumerName"] = figures["active_consumer_name"]
    if "msg_drop_rate" in figures:
        shown["msgDropRate"] = figures["msg_drop_rate"]
    return shown


def _filtered(figures: Json) -> Json:
    accepted = figures.get("filter_accepted_msg_count", 0)
    rejected = figures.get("filter_rejected_msg_count", 0)
    return {
        "subscriptionProperties": figures.get("subscription_properties", {}),
        "filterProcessedMsgCount": accepted + rejected,
        "filterAcceptedMsgCount": accepted,
        "filterRejectedMsgCount": rejected,
    }


def _consumer(call: Call, topic: str, subscription: str, figures: Json, kind: str) -> Json:
    counts = figures["msg_out_counter"], figures["bytes_out_counter"]
    key = (topic, subscription, figures["consumer_name"])
    rate, throughput = call.host.per_second(key, *counts)
    return {
        "msgRateOut": rate,
        "msgThroughputOut": throughput,
        "bytesOutCounter": counts[1],
        "msgOutCounter": counts[0],
        "consumerName": figures["consumer_name"],
        "availablePermits": figures["available_permits"],
        "unackedMessages": 0 if kind in _IN_ORDER else figures["unacked_messages"],
        "blockedConsumerOnUnackedMsgs": figures["blocked_consumer_on_unacked_msgs"],
        "metadata": figures["metadata"],
    }


# Partitioned topics -------------------------------------------------------------------------------


def partitioned_statistics(call: Call, found: Json, *, per_partition: bool) -> Json:
    """found: the answer of topics.partitioned_stats."""
    partitions = {name: topic_statistics(call, each) for name, each in found["partitions"].items()}
    total: Json = {}
    for each in partitions.values():
        _add(total, each)
    total.pop("ownerBroker", None)
    rate = total["msgRateIn"]
    total["averageMsgSize"] = total["msgThroughputIn"] / rate if rate else 0.0
    total["metadata"] = {"partitions": len(partitions), "deleted": False}
    total["partitions"] = partitions if per_partition else {}
    return total


def _add(total: Json, figures: Json) -> None:
    """Add numbers, and what is inside; texts and flags are those of the first, ages are the
    greatest, 0 at least as in Pulsar. A producer has the same name on all partitions and is told
    once, and so has a consumer, whose numbers are added."""
    for name, value in figures.items():
        if name == "oldestBacklogMessageAgeSeconds" or name.startswith("lastOffload"):
            total[name] = max(total.get(name, 0), value)
        elif name == "consumers":
            _add_consumers(total.setdefault(name, []), value)
        elif name == "publishers":
            known = {each["producerName"] for each in total.setdefault(name, [])}
            total[name] += [each for each in value if each["producerName"] not in known]
        elif isinstance(value, list):
            total[name] = [*total.get(name, []), *value]
        elif isinstance(value, dict):
            _add(total.setdefault(name, {}), value)
        elif isinstance(value, (bool, str)) or value is None:
            total.setdefault(name, value)
        else:
            total[name] = total.get(name, 0) + value


def _add_consumers(total: list[Json], consumers: list[Json]) -> None:
    met: Counter[str] = Counter()  # several may have one name
    for each in consumers:
        name = each["consumerName"]
        known = [one for one in total if one["consumerName"] == name]
        if met[name] == len(known):
            known.append({})
            total.append(known[-1])
        _add(known[met[name]], each)
        met[name] += 1


# Inside -------------------------------------------------------------------------------------------


def internal_statistics(found: Json) -> Json:
    """found: the answer of topics.stats."""
    if found["topic"].startswith("non-persistent://"):
        return {
            "numberOfEntries": 0,
            "totalSize": 0,
            "currentLedgerEntries": 0,
            "currentLedgerSize": 0,
            "cursors": {quote(name, safe=""): {} for name in found["subscriptions"]},
        }
    ledgers = found["ledgers"]
    last: Json = ledgers[-1] if ledgers else {"ledger_id": -1, "entries": 0, "size": 0, "state": ""}
    is_open = last["state"] == "open"
    compaction = found["compaction"]
    was_compacted = tuple(compaction["horizon"]) != (-1, -1)
    compacted = (compaction["compacted_entries"], compaction["compacted_size"])
    return {
        "numberOfEntries": found["entries"],
        "totalSize": found["storage_size"],
        "currentLedgerEntries": last["entries"] if is_open else 0,
        "currentLedgerSize": last["size"] if is_open else 0,
        "lastConfirmedEntry": f"{last['ledger_id']}:{last['entries'] - 1}",
        "state": "Terminated" if found["terminated"] else "LedgerOpened",
        "ledgers": [
            # What is in the open one stands above.
            _ledger(each["ledger_id"], 0, 0)
            if each["state"] == "open"
            else _ledger(each["ledger_id"], each["entries"], each["size"], each["offloaded"])
            for each in ledgers
        ],
        "cursors": {
            quote(name, safe=""): _cursor(each)
            for name, each in (found["subscriptions"] | found["readers"]).items()
        },
        "properties": {},
        "schemaLedgers": [],
        "compactedLedger": _ledger(-1, *(compacted if was_compacted else (-1, -1))),
    }


def deduplication_cursor(internal: Json, sequences: dict[str, int]) -> Json:
    """The cursor in which Pulsar keeps how far producers are: their highest sequence ids."""
    return {
        "markDeletePosition": internal["lastConfirmedEntry"],
        "state": "Open",
        "active": False,
        "numberOfEntriesSinceFirstNotAckedMessage": 0,
        "properties": sequences,
    }


def _ledger(ledger_id: int, entries: int, size: int, offloaded: bool = False) -> Json:
    return {
        "ledgerId": ledger_id,
        "entries": entries,
        "size": size,
        "offloaded": offloaded,
        "underReplicated": False,
    }


def _cursor(figures: Json) -> Json:
    ledger_id, entry_id = figures["mark_delete_position"]
    return {
        "markDeletePosition": f"{ledger_id}:{entry_id}",
        "state": "Open",
        "active": bool(figures.get("consumers")),
        "numberOfEntriesSinceFirstNotAckedMessage": figures["backlog_entries"],
        "properties": {},
    }


# Read ---------------------------------------------------------------------------------------------


def statistics_read(topic: str, found: Json) -> Json:
    """Under our names, which are Pulsar's in snake_case. How many messages it holds the API does
    not tell."""
    subscriptions = found.pop("subscriptions", None) or {}
    shown = _snake(found)
    return {
        "topic": topic,
        "messages": None,
        **shown,
        "subscriptions": {name: _subscription_read(each) for name, each in subscriptions.items()},
    }


def _subscription_read(found: Json) -> Json:
    """msg_backlog counts messages, where the server tells them."""
    properties = found.pop("subscriptionProperties", None)  # whose names are the user's
    shown: Json = _snake(found)
    if properties is not None:
        shown["subscription_properties"] = properties
    if "backlog_messages" in shown:
        shown["backlog_entries"] = shown["msg_backlog"]
        shown["msg_backlog"] = shown.pop("backlog_messages")
    return shown


def _snake(value: Any) -> Any:
    if isinstance(value, dict):
        return {_snake_name(name): _snake(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_snake(each) for each in value]
    return value


def _snake_name(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name).lstrip("_")
