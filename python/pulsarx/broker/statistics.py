"""What `admin.topics.stats` tells of a topic. Names as in Pulsar's topic stats, in snake_case."""

from __future__ import annotations


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.foreign_topic import ForeignTopic
    from pulsarx.broker.topic import Topic


def topic_statistics(topic: Topic | ForeignTopic) -> dict[str, Any]:
    """storage_size: bytes of the ledgers up to their published ends. A foreign topic has no live
    counts: None there."""
    ledgers = []
    for ledger in topic.ledger.ledgers():
        entries, messages = topic.ledger.published_counts(ledger)
        size = ledger.size if ledger.state == "sealed" else topic.ledger.span(ledger).end
        ledgers.append(
            {
                "ledger_id": ledger.ledger_id,
                "state": ledger.state,
                "entries": entries,
                "messages": messages,
                "size": size,
            }
        )
    return {
        "topic": topic.name,
        "storage_size": sum(each["size"] for each in ledgers),
        "entries": sum(each["entries"] for each in ledgers),
        "messages": sum(each["messages"] for each in ledgers),
        "ledgers": ledgers,
        "publishers": topic.publisher_count(),
        "subscriptions": topic.subscription_statistics(),
    }
