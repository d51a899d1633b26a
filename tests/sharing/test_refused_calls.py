"""Facts about calls that are refused after a topic was made for them: it goes again, whoever owns
the folder."""

from __future__ import annotations

from typing import Any

import pytest

import pulsarx
from pulsarx import ConsumerType, MessageId, errors
from pulsarx.consuming import subscribing
from pulsarx.schema import StringSchema

pytestmark = pytest.mark.standard

NS = "public/default"
DOMAINS = ["persistent", "non-persistent"]


def local_names(client: pulsarx.Client) -> list[str]:
    topics = client.admin.topics
    names = [*topics.get_list(), *topics.get_partitioned_topic_list()]
    return sorted(each.rpartition("/")[2] for each in names)


@pytest.fixture
def busy(client: pulsarx.Client) -> pulsarx.Consumer:
    return client.subscribe("there", "s")


@pytest.mark.parametrize("partitions", [0, 2])
@pytest.mark.parametrize("domain", DOMAINS)
def test_a_refused_subscriber_takes_back_the_topics_that_were_made_for_it(
    client: pulsarx.Client, busy: pulsarx.Consumer, domain: str, partitions: int
) -> None:
    """They stayed where another process owned the folder."""
    if partitions:
        client.admin.namespaces.set_auto_topic_creation(NS, True, "partitioned", partitions)
    new = f"{domain}://{NS}/new"
    for _ in range(2):
        with pytest.raises(errors.ConsumerBusy):
            client.subscribe([new, f"{domain}://{NS}/other", "there"], "s")
        assert local_names(client) == ["there"]
    busy.close()
    client.subscribe([new, "there"], "s").close()
    client.create_producer(new).send(b"1")


def test_a_refused_subscriber_takes_back_its_retry_topic(
    client: pulsarx.Client, busy: pulsarx.Consumer
) -> None:
    with pytest.raises(errors.ConsumerBusy):
        client.subscribe("there", "s", ConsumerType.Shared, retry_enable=True)
    assert local_names(client) == ["there"]


@pytest.mark.parametrize("partitions", [0, 2])
def test_a_refused_reader_takes_back_its_topic(client: pulsarx.Client, partitions: int) -> None:
    """It stayed, in the process of the owner too."""
    if partitions:
        client.admin.namespaces.set_auto_topic_creation(NS, True, "partitioned", partitions)
    with pytest.raises(errors.NotAllowedError, match="is_read_compacted"):
        client.create_reader(
            f"non-persistent://{NS}/new", MessageId.earliest, is_read_compacted=True
        )
    assert local_names(client) == []


def test_what_somebody_uses_by_now_stays(
    client: pulsarx.Client, busy: pulsarx.Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = subscribing._subscribe_named
    used: list[Any] = []

    def subscribe_and_use(*given: Any) -> Any:
        try:
            return named(*given)
        finally:
            used.append(client.create_producer("used"))
            client.admin.topics.create_subscription("other", "mine", MessageId.latest)
            client.admin.schemas.create_schema("third", StringSchema().schema_info())

    monkeypatch.setattr(subscribing, "_subscribe_named", subscribe_and_use)
    with pytest.raises(errors.ConsumerBusy):
        client.subscribe(["used", "other", "third", "nobody's", "there"], "s")
    assert local_names(client) == ["other", "there", "third", "used"]
