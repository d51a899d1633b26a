"""The statistics of a topic that `admin.topics.stats` tells. Names as in Pulsar's topic stats, in
snake_case."""

from __future__ import annotations

from collections import Counter

from pulsarx.broker.topics.compaction import compaction_statistics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import Any

    from pulsarx.broker.faces import TopicView
    from pulsarx.broker.topics.counted_rates import TopicRates


_RATES = ("msg_rate_in", "msg_throughput_in", "msg_rate_out", "msg_throughput_out")
_HELD = ("held_by_leases_ledgers", "held_by_leases_size")
_TRANSACTIONS = ("ongoing_txn_count", "aborted_txn_count", "committed_txn_count")
_LATEST = ("last_offload_success_timestamp", "last_offload_failed_timestamp")


def topic_statistics(topic: TopicView) -> dict[str, Any]:
    """storage_size: bytes of the ledgers up to their published ends, offloaded_storage_size: of
    those that are in an object store. backlog_size and
    oldest_backlog_message_age_seconds: the greatest of the durable subscriptions. A read-only topic
    has no live counts: None there. Counters count from when the topic was opened. Rates are those a
    second since the look before last: see TopicRates. readers: those of the owner's process, as the
    subscriptions that they have in Pulsar. held_by_leases_ledgers, held_by_leases_size: what
    retention would have removed when it looked last, if no job had a lease on it."""
    ledgers = []
    for ledger in topic.ledger.ledgers():
        entries, messages = topic.ledger.published_counts(ledger)
        size = topic.ledger.size_of(ledger)
        ledgers.append(
            {
                "ledger_id": ledger.ledger_id,
                "state": ledger.state,
                "entries": entries,
                "messages": messages,
                "size": size,
                "offloaded": topic.ledger.offloaded_ms(ledger) is not None,
            }
        )
    subscriptions = topic.subscription_statistics()
    durable = [each for each in subscriptions.values() if each["is_durable"]]
    record = topic.ledger.record()
    publishers = topic.publisher_statistics()
    published = topic.published_since_opened()
    known = topic.tail.transactions
    if known is not None and topic.rates is not None:
        published = published[0] + known.held_messages(), published[1] + known.held_size()
    held = topic.held_by_leases
    found: dict[str, Any] = {
        "topic": topic.name,
        "terminated": record is not None and record.terminated,
        "storage_size": sum(each["size"] for each in ledgers),
        "offloaded_storage_size": sum(each["size"] for each in ledgers if each["offloaded"]),
        "last_offload_success_timestamp": max(
            (topic.ledger.offloaded_ms(each) or 0 for each in topic.ledger.ledgers()), default=0
        ),
        "last_offload_failed_timestamp": topic.offload_failed_ms,
        "held_by_leases_ledgers": None if held is None else held[0],
        "held_by_leases_size": None if held is None else held[1],
        "backlog_size": max((each["backlog_size"] for each in durable), default=0),
        "oldest_backlog_message_age_seconds": max(
            (each["oldest_backlog_message_age_seconds"] for each in durable), default=-1
        ),
        "entries": sum(each["entries"] for each in ledgers),
        "messages": sum(each["messages"] for each in ledgers),
        "ledgers": ledgers,
        "msg_in_counter": published[0],
        "bytes_in_counter": published[1],
        "topic_epoch": topic.epoch,
        "deduplication_status": topic.deduplication_status,
        "compaction": compaction_statistics(topic.ledger, topic.compaction_failed_ms),
        "publishers": publishers,
        "chunked_message_rate": _chunked_rate(publishers),
        "publish_rate_limited_times": topic.publish_rate_limited_times,
        **dict(zip(_TRANSACTIONS, _transaction_counts(topic))),
        "subscriptions": subscriptions,
        "readers": topic.reader_statistics(),
    }
    _add_rates(topic.rates, found)
    return found


def _transaction_counts(topic: TopicView) -> tuple[int | None, int | None, int | None]:
    """Transactions with messages here that are open; that were aborted, and committed, since the
    topic was opened."""
    if topic.rates is None:
        return None, None, None
    known = topic.tail.transactions
    return (0, 0, 0) if known is None else (len(known), known.aborted_count, known.committed_count)


def _add_rates(rates: TopicRates | None, found: dict[str, Any]) -> None:
    """Put msg_rate_in, msg_throughput_in (bytes) of the topic beside its counters, and the same of
    what goes out beside those of subscriptions and consumers. rates None: nobody here knows them.
    """
    counted: list[tuple[Hashable, dict[str, Any], str]] = [((), found, "in")]
    for name, subscription in found["subscriptions"].items():
        counted.append(((name,), subscription, "out"))
        met: Counter[str] = Counter()  # several consumers may have one name
        for consumer in subscription.get("consumers") or ():
            own = consumer["consumer_name"]
            counted.append(((name, own, met[own]), consumer, "out"))
            met[own] += 1
    counters: dict[Hashable, tuple[int, ...]] = {
        key: (figures[f"msg_{way}_counter"], figures[f"bytes_{way}_counter"])
        for key, figures, way in counted
    }
    known = {} if rates is None else rates.per_second(counters)
    for key, figures, way in counted:
        figures[f"msg_rate_{way}"], figures[f"msg_throughput_{way}"] = known.get(key, (None, None))
    for name in ("msg_rate_out", "msg_throughput_out"):
        found[name] = _sum_known([each[name] for each in found["subscriptions"].values()])


def _chunked_rate(publishers: list[dict[str, Any]] | None) -> float | None:
    """Messages in chunks a second, over the last minute, of the producers that are there."""
    if publishers is None:
        return None
    return float(sum(each["chunked_message_rate"] for each in publishers))


def _sum_known(counts: list[Any]) -> Any:
    """None: only the owner knows them."""
    known = [each for each in counts if each is not None]
    return sum(known) if len(known) == len(counts) else None


def partitioned_statistics(name: str, partitions: list[dict[str, Any]]) -> dict[str, Any]:
    """Numbers of the partitions added up. A producer is told once, as it has the same name on all
    partitions."""
    subscriptions: dict[str, dict[str, Any]] = {}
    for each in partitions:
        for subscription, figures in each["subscriptions"].items():
            _add(subscriptions.setdefault(subscription, {}), figures)
    return {
        "topic": name,
        "metadata": {"partitions": len(partitions)},
        "storage_size": sum(each["storage_size"] for each in partitions),
        "offloaded_storage_size": sum(each["offloaded_storage_size"] for each in partitions),
        **{name: max(each[name] for each in partitions) for name in _LATEST},
        **{name: _sum_known([each[name] for each in partitions]) for name in _HELD},
        "backlog_size": sum(each["backlog_size"] for each in partitions),
        "oldest_backlog_message_age_seconds": max(
            each["oldest_backlog_message_age_seconds"] for each in partitions
        ),
        "entries": sum(each["entries"] for each in partitions),
        "messages": sum(each["messages"] for each in partitions),
        "msg_in_counter": _sum_known([each["msg_in_counter"] for each in partitions]),
        "bytes_in_counter": _sum_known([each["bytes_in_counter"] for each in partitions]),
        **{name: _sum_known([each[name] for each in partitions]) for name in _RATES},
        "publishers": _publishers(partitions),
        "chunked_message_rate": _chunked_rate(_publishers(partitions)),
        "publish_rate_limited_times": _sum_known(
            [each["publish_rate_limited_times"] for each in partitions]
        ),
        **{name: _sum_known([each[name] for each in partitions]) for name in _TRANSACTIONS},
        "subscriptions": subscriptions,
        "partitions": {each["topic"]: each for each in partitions},
    }


def _publishers(partitions: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    found: dict[str, dict[str, Any]] = {}
    for each in partitions:
        if each["publishers"] is None:
            return None
        for figures in each["publishers"]:
            figures = figures.copy()
            known = found.setdefault(figures["producer_name"], figures)
            if known is figures:
                continue
            known["last_sequence_id"] = max(known["last_sequence_id"], figures["last_sequence_id"])
            # Drops are counted on non-persistent topics alone.
            for name in ("chunked_message_rate", "msg_drop_count", "msg_drop_rate"):
                if name in figures:
                    known[name] += figures[name]
    return list(found.values())


def _add(total: dict[str, Any], figures: dict[str, Any]) -> None:
    """Add numbers; texts and flags are those of the first partition, ages are the greatest,
    positions are left out."""
    for name, value in figures.items():
        if value is None:  # only the owner knows it
            total[name] = None
        elif name == "oldest_backlog_message_age_seconds":
            total[name] = max(total.get(name, -1), value)
        elif isinstance(value, (bool, str)):
            total.setdefault(name, value)
        elif isinstance(value, int | float):
            total[name] = total.get(name, 0) + value
