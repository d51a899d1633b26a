"""Facts about producers of processes that do not own the folder: what they are told is what a
producer of the owner's process is told."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import pulsarx
from pulsarx import MessageId, errors

pytestmark = pytest.mark.standard


def fill(client: pulsarx.Client, policy: str, **options: Any) -> pulsarx.Producer:
    """A producer of a topic whose backlog is larger than its quota."""
    topics = client.admin.topics
    topics.create_non_partitioned_topic("t")
    topics.create_subscription("t", "s", MessageId.earliest)
    topics.set_backlog_quota("t", limit_size=1000, policy=policy)
    producer = client.create_producer("t", **options)
    pause = threading.Event()
    for _ in range(100):
        producer.send(bytes(2000))
        try:
            client.create_producer("t").close()
        except errors.PulsarException:
            break
        pause.wait(0.05)
    # The check that stops those who are there comes once a second.
    pause.wait(1.5)
    return producer


def test_a_send_that_a_quota_holds_says_so(client: pulsarx.Client) -> None:
    """Beside the owner it said that the owner had gone."""
    producer = fill(client, "producer_request_hold", send_timeout_millis=700)
    count = client.admin.topics.stats("t")["messages"]
    for _ in range(2):
        with pytest.raises(errors.Timeout) as caught:
            producer.send(b"held")
        assert "persistent://public/default/t: the backlog has" in caught.value.detail
        assert "its quota is 1000" in caught.value.detail
        assert "no room for 700 ms, which is send_timeout_millis" in caught.value.detail
        assert "nothing was stored" in caught.value.detail
    assert producer.is_connected()
    client.admin.topics.skip_all_messages("t", "s")
    pause = threading.Event()
    for _ in range(100):
        try:
            producer.send(b"there is room")
            break
        except errors.Timeout:
            pause.wait(0.1)
    assert client.admin.topics.stats("t")["messages"] == count + 1


def test_a_producer_that_a_quota_shut_is_not_connected(client: pulsarx.Client) -> None:
    """Beside the owner it said that it was, and each send was refused."""
    producer = fill(client, "producer_exception")
    for _ in range(2):
        with pytest.raises(errors.ProducerBlockedQuotaExceededException):
            producer.send(b"refused")
        assert not producer.is_connected()
    client.admin.topics.skip_all_messages("t", "s")
    with pytest.raises(errors.ProducerBlockedQuotaExceededException):
        producer.send(b"refused")
    client.create_producer("t").send(b"another one")
