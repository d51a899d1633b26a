"""Facts about properties of subscriptions, and their selectors, in the admin REST API."""

from __future__ import annotations

import pytest
from administered import Administered

import pulsarx
from pulsarx import MessageId, errors
from pulsarx.admin import Admin

SUBSCRIPTION = "/persistent/public/default/t/subscription/s"
WRONG = {"jms.selector": "n > > 1"}


def test_properties_are_set_and_told_as_pulsar_does(administered: Administered) -> None:
    administered.ask("PUT", "/persistent/public/default/t")
    place = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}
    given = {"jms.selector": "n = 1", "aColour": "red"}
    assert administered.ask("PUT", SUBSCRIPTION, {**place, "properties": given}).status == 204
    assert administered.ask("GET", f"{SUBSCRIPTION}/properties").body == given
    assert administered.ask("PUT", f"{SUBSCRIPTION}/properties", {"a": "b"}).status == 204
    assert administered.ask("GET", f"{SUBSCRIPTION}/properties").body == {"a": "b"}
    refused = administered.ask("PUT", f"{SUBSCRIPTION}/properties", WRONG)
    assert refused.status == 412
    assert "column 5: expected a name" in refused.body["reason"]
    assert administered.ask("PUT", f"{SUBSCRIPTION}/properties", ["a"]).status in (400, 412, 422)
    missing = "/persistent/public/default/t/subscription/none/properties"
    assert administered.ask("GET", missing).status == 404
    assert administered.ask("PUT", missing, {"a": "b"}).status == 404


def test_an_admin_over_http_does_the_same(administered: Administered) -> None:
    topics = Admin.at(administered.url).topics
    topics.create_non_partitioned_topic("t")
    given = {"jms.selector": "n = 1", "aColour": "red"}
    topics.create_subscription("t", "s", MessageId.earliest, given)
    assert topics.get_subscription_properties("t", "s") == given
    topics.update_subscription_properties("t", "s", {"jms.selector": "n = 2"})
    assert topics.get_subscription_properties("t", "s") == {"jms.selector": "n = 2"}
    with pytest.raises(pulsarx.NotAllowedError, match="NotAllowed") as told:
        topics.update_subscription_properties("t", "s", WRONG)  # a status stands for several errors
    assert "column 5" in errors.detail_of(told.value)


def test_what_was_filtered_is_counted(administered: Administered) -> None:
    client = administered.client
    consumer = client.subscribe("t", "s", selector="n = 1", subscription_properties={"aB": "c"})
    with client.create_producer("t") as producer:
        for n in range(3):
            producer.send(b"%d" % n, properties={"n": str(n)})
    assert consumer.receive(60_000).data() == b"1"
    with pytest.raises(pulsarx.Timeout):
        consumer.receive(0)
    stats = administered.ask("GET", "/persistent/public/default/t/stats").body
    figures = stats["subscriptions"]["s"]
    assert figures["filterAcceptedMsgCount"] == 1
    assert figures["filterRejectedMsgCount"] == 2
    assert figures["filterProcessedMsgCount"] == 3
    assert figures["subscriptionProperties"] == {"jms.selector": "n = 1", "aB": "c"}
    read = Admin.at(administered.url).topics.stats("t")["subscriptions"]["s"]
    assert read["filter_accepted_msg_count"] == 1
    assert read["subscription_properties"] == {"jms.selector": "n = 1", "aB": "c"}
    text = administered.ask("GET", "//metrics").body
    for name, count in (("processed", 3), ("accepted", 1), ("rejected", 2)):
        line = next(
            each
            for each in text.splitlines()
            if each.startswith(f"pulsar_subscription_filter_{name}_msg_count{{")
        )
        assert float(line.split()[-1]) == count
