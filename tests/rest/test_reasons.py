"""Why a request is refused, in the words of Pulsar 4.2.4, which programs look for."""

from __future__ import annotations

import pytest
from administered import Administered

import pulsarx
from pulsarx.admin import Admin

P = "/persistent/public/default"
TOPIC = "Topic persistent://public/default/none not found"
PARTITIONED = "Partitioned Topic persistent://public/default/{} not found"
SUBSCRIPTION = "Subscription none not found for topic persistent://public/default/plain"

OF_NO_TOPIC = [
    *(("GET", each) for each in ("stats", "internalStats", "lastMessageId", "subscriptions")),
    *(("GET", each) for each in ("partitions", "compaction", "offload", "messageid/1")),
    *(("GET", each) for each in ("examinemessage", "ledger/1/entry/1", "properties")),
    *(("GET", each) for each in ("messageTTL", "subscription/s/position/1")),
    *(("PUT", each) for each in ("unload", "compaction")),
    *(("DELETE", each) for each in ("", "truncate", "subscription/s")),
    *(("POST", each) for each in ("terminate", "trim", "all_subscription/expireMessages/1")),
    *(("POST", f"subscription/s/{each}") for each in ("skip/1", "skip_all")),
    *(("POST", f"subscription/s/{each}") for each in ("resetcursor/1", "expireMessages/1")),
]
OF_NO_SUBSCRIPTION = [
    ("DELETE", ""),
    *(("POST", each) for each in ("skip/1", "skip_all", "resetcursor/1", "expireMessages/1")),
]


@pytest.mark.parametrize(("method", "path"), OF_NO_TOPIC)
def test_a_topic_that_is_missing_is_named(administered: Administered, method: str, path: str):
    reply = administered.ask(method, f"{P}/none/{path}".rstrip("/"))
    assert (reply.status, reply.body["reason"]) == (404, TOPIC)


@pytest.mark.parametrize("path", ["partitioned-stats", "partitioned-internalStats"])
@pytest.mark.parametrize("topic", ["none", "plain"])
def test_a_partitioned_topic_is_wanted(administered: Administered, topic: str, path: str):
    administered.client.admin.topics.create_non_partitioned_topic("plain")
    reply = administered.ask("GET", f"{P}/{topic}/{path}")
    assert (reply.status, reply.body["reason"]) == (404, PARTITIONED.format(topic))


@pytest.mark.parametrize(("method", "path"), OF_NO_SUBSCRIPTION)
def test_a_subscription_that_is_missing_is_named(
    administered: Administered, method: str, path: str
):
    administered.client.admin.topics.create_non_partitioned_topic("plain")
    reply = administered.ask(method, f"{P}/plain/subscription/none/{path}".rstrip("/"))
    assert (reply.status, reply.body["reason"]) == (404, SUBSCRIPTION)


def test_a_topic_without_partitions_is_not_terminated_as_one_with_them(administered: Administered):
    administered.client.admin.topics.create_non_partitioned_topic("plain")
    reply = administered.ask("POST", f"{P}/plain/terminate/partitions")
    assert (reply.status, reply.body["reason"]) == (
        405,
        "Termination of a non-partitioned topic is not allowed using partitioned-terminate, "
        "please use terminate commands",
    )


def test_a_topic_may_be_called_a_subscription(administered: Administered):
    """Over HTTP the kind of the error is told by its text."""
    topics = Admin.at(administered.url).topics
    with pytest.raises(pulsarx.TopicNotFound):
        topics.stats("my subscription s")
    topics.create_non_partitioned_topic("t")
    with pytest.raises(pulsarx.SubscriptionNotFound):
        topics.delete_subscription("t", "s")
