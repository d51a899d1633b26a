"""Facts about selectors of consumers and readers in processes that do not own the folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from sharing_process import SharingProcess
from support.consumer_types import ALL_TYPES

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId

pytestmark = pytest.mark.standard

PATIENCE_MS = 60_000
SELECTOR = "n LIKE '%7'"


def send(client: pulsarx.Client, count: int, topic: str = "t") -> None:
    with client.create_producer(topic, batching_enabled=True) as producer:
        for n in range(count):
            producer.send_async(b"%d" % n, None, properties={"n": str(n)}, partition_key=f"k{n}")
        producer.flush()


@pytest.mark.parametrize("kind", ALL_TYPES)
@pytest.mark.parametrize("topic", ["t", "non-persistent://public/default/t"])
def test_the_owner_selects_for_its_guests(
    client: pulsarx.Client, kind: ConsumerType, topic: str
) -> None:
    consumer = client.subscribe(
        topic, "s", kind, selector=SELECTOR, initial_position=InitialPosition.Earliest
    )
    send(client, 30, topic)
    found = [consumer.receive(PATIENCE_MS) for _ in range(3)]
    assert sorted(int(each.data()) for each in found) == [7, 17, 27]
    for each in found:
        consumer.acknowledge(each)
    with pytest.raises(pulsarx.InvalidConfiguration, match="InvalidConfiguration"):
        client.subscribe(topic, "other", kind, selector="n LIKE 7")
    if topic == "t":
        with pytest.raises(pulsarx.NotAllowedError):
            client.subscribe(topic, "s", kind, selector="n = 1")
        consumer.close()
        figures = client.admin.topics.stats(topic)["subscriptions"]["s"]
        assert (figures["msg_backlog"], figures["filter_rejected_msg_count"]) == (0, 27)


def test_a_reader_beside_the_owner_skips(client: pulsarx.Client) -> None:
    send(client, 30)
    reader = client.create_reader("t", MessageId.earliest, selector=SELECTOR)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(PATIENCE_MS).data())
    assert found == [b"7", b"17", b"27"]


def test_a_changed_selector_stays_when_another_process_becomes_the_owner(
    folder: Path, owner: SharingProcess
) -> None:
    """A consumer that goes on gives what it was given at first, and is not refused for it."""
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s", ConsumerType.Shared, selector="n = 1")
        changed = {"jms.selector": "n = 2"}
        client.admin.topics.update_subscription_properties("t", "s", changed)
        send(client, 4)
        message = consumer.receive(PATIENCE_MS)
        assert message.data() == b"2"
        consumer.acknowledge(message)
        owner.run("client.close()")
        send(client, 4)
        assert consumer.receive(PATIENCE_MS).data() == b"2"
        assert client.admin.topics.get_subscription_properties("t", "s") == changed
