"""Facts about subscriptions with a selector: what is delivered, and what becomes of the rest."""

from __future__ import annotations

import re
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from compaction_steps import compact
from flow_steps import comes_after, every_kind, join, sharing, statistics
from support.topics import backlog
from topic_reading import OpenClient, drain, numbers, payloads

import pulsarx
from pulsarx import CompressionType, ConsumerType, InitialPosition, ManualClock, MessageId
from pulsarx.broker.subscriptions.subscription import Subscription

TENTH = "n LIKE '%0'"


def send(
    client: pulsarx.Client, count: int, batch: int = 0, topic: str = "t", **options: Any
) -> None:
    """Payloads b"0", b"1" ..., with the number as property n."""
    if batch:
        options |= {"batching_enabled": True, "batching_max_messages": batch}
    with client.create_producer(topic, block_if_queue_full=True, **options) as producer:
        for number in range(count):
            described = {"properties": {"n": str(number)}, "partition_key": f"k{number % 7}"}
            producer.send_async(b"%d" % number, None, **described)
        producer.flush()


def tenths(count: int) -> list[bytes]:
    return [payload for payload in numbers(count) if payload.endswith(b"0")]


@every_kind
@pytest.mark.parametrize("batch", [0, 7, 100], ids=["single", "small_batches", "large_batches"])
def test_what_it_does_not_match_counts_as_acknowledged(
    client: pulsarx.Client, kind: ConsumerType, batch: int
) -> None:
    consumer = join(client, kind, selector=TENTH)
    send(client, 300, batch)
    found = drain(consumer)
    assert sorted(int(each.data()) for each in found) == list(range(0, 300, 10))
    assert backlog(client) == 30
    for each in found:
        consumer.acknowledge(each)
    assert backlog(client) == 0
    figures = statistics(client)
    assert figures["filter_accepted_msg_count"] == 30
    assert figures["filter_rejected_msg_count"] == 270
    assert figures["backlog_entries"] == 0


@every_kind
@pytest.mark.parametrize(
    "compression", [CompressionType.LZ4, CompressionType.ZSTD], ids=["lz4", "zstd"]
)
def test_compressed_batches_are_looked_into(
    client: pulsarx.Client, kind: ConsumerType, compression: CompressionType
) -> None:
    consumer = join(client, kind, selector=TENTH)
    send(client, 200, 50, compression_type=compression)
    assert sorted(payloads(consumer), key=int) == tenths(200)
    assert backlog(client) == 20


@every_kind
def test_the_rest_stays_acknowledged_after_a_restart(
    open_client: OpenClient, kind: ConsumerType
) -> None:
    with open_client() as client:
        consumer = join(client, kind, selector=TENTH)
        send(client, 100, 30)
        assert len(drain(consumer)) == 10
    with open_client() as client:
        assert backlog(client) == 10
        client.admin.topics.update_subscription_properties("t", "s", {})
        assert sorted(payloads(join(client, kind)), key=int) == tenths(100)


def test_a_subscription_keeps_its_selector(open_client: OpenClient) -> None:
    with open_client() as client:
        join(client, ConsumerType.Shared, selector=TENTH)
    with open_client() as client:
        send(client, 30, 10)
        assert payloads(join(client, ConsumerType.Shared)) == tenths(30)
        found = client.admin.topics.get_subscription_properties("t", "s")
        assert found == {"jms.selector": TENTH}


def test_a_selector_is_a_property_of_its_subscription(client: pulsarx.Client) -> None:
    given = {"jms.selector": TENTH, "colour": "blue"}
    consumer = client.subscribe("t", "s", subscription_properties=given)
    send(client, 30, 10)
    assert payloads(consumer) == tenths(30)
    assert statistics(client)["subscription_properties"] == given
    client.subscribe("u", "s", subscription_properties={"colour": "red"}, selector=TENTH)
    found = client.admin.topics.get_subscription_properties("u", "s")
    assert found == {"jms.selector": TENTH, "colour": "red"}


@every_kind
def test_a_changed_selector_holds_for_what_is_dispatched_afterwards(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(client, kind, selector=TENTH)
    send(client, 50, 10)
    assert sorted(payloads(consumer), key=int) == tenths(50)
    client.admin.topics.update_subscription_properties("t", "s", {"jms.selector": "n = 7"})
    send(client, 50, 10)
    assert payloads(consumer) == [b"7"]
    client.admin.topics.update_subscription_properties("t", "s", {})
    send(client, 3)
    assert payloads(consumer) == numbers(3)


@every_kind
def test_what_comes_again_is_asked_about_again(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    client = clocked_client
    consumer = join(client, kind, selector=TENTH, negative_ack_redelivery_delay_ms=1000)
    send(client, 30, 15)
    for each in drain(consumer):
        consumer.negative_acknowledge(each)
    client.admin.topics.update_subscription_properties("t", "s", {"jms.selector": "n > 5"})
    assert sorted(comes_after(consumer, manual_clock, 1), key=int) == [b"10", b"20"]
    assert backlog(client) == 2


@sharing
@pytest.mark.parametrize("batch", [0, 5])
def test_delayed_messages_are_selected_when_their_time_has_come(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType, batch: int
) -> None:
    client = clocked_client
    consumer = join(client, kind, selector="n < 3")
    with client.create_producer("t") as producer:
        for n in range(5):
            producer.send(b"%d" % n, properties={"n": str(n)}, deliver_after=timedelta(seconds=10))
    assert payloads(consumer) == []
    assert statistics(client)["filter_rejected_msg_count"] == 2
    client.admin.topics.update_subscription_properties("t", "s", {"jms.selector": "n <> 1"})
    assert sorted(comes_after(consumer, manual_clock, 10)) == [b"0", b"2"]
    assert backlog(client) == 2


@every_kind
def test_a_message_in_chunks_is_delivered_or_rejected_as_a_whole(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(client, kind, selector="n = 2")
    with client.create_producer("t", chunking_enabled=True) as producer:
        for n in range(4):
            large = bytes([n]) * (6 << 20)
            producer.send(large, properties={"n": str(n)}, partition_key="k")
    (found,) = drain(consumer)
    assert found.data() == bytes([2]) * (6 << 20)
    consumer.acknowledge(found)
    assert backlog(client) == 0


@pytest.mark.border(left_out="dead letters")
def test_dead_letters_are_those_that_it_matched(
    clocked_client: pulsarx.Client, manual_clock: ManualClock
) -> None:
    client = clocked_client
    policy = pulsarx.ConsumerDeadLetterPolicy(max_redeliver_count=1, dead_letter_topic="dead")
    consumer = join(
        client,
        ConsumerType.Shared,
        selector="n = 4",
        dead_letter_policy=policy,
        negative_ack_redelivery_delay_ms=1000,
    )
    dead = client.subscribe("dead", "s", initial_position=InitialPosition.Earliest)
    send(client, 6, 3)
    for _ in range(2):
        (found,) = drain(consumer)
        consumer.negative_acknowledge(found)
        manual_clock.advance(1)
    assert drain(consumer) == []
    assert dead.receive(60_000).data() == b"4"
    assert payloads(dead) == []


@pytest.mark.border(left_out="compacted topics")
def test_what_compaction_left_is_selected(client: pulsarx.Client) -> None:
    send(client, 100, 20)
    compact(client)
    consumer = client.subscribe(
        "t",
        "c",
        is_read_compacted=True,
        selector="n > 96",
        initial_position=InitialPosition.Earliest,
    )
    assert payloads(consumer) == [b"97", b"98", b"99"]
    reader = client.create_reader(
        "t", MessageId.earliest, is_read_compacted=True, selector="n = 98"
    )
    assert payloads_of(reader) == [b"98"]


def payloads_of(reader: Any) -> list[bytes]:
    found = []
    while reader.has_message_available():
        found.append(reader.read_next().data())
    return found


@pytest.mark.parametrize("batch", [0, 7, 100])
def test_a_reader_skips_what_it_does_not_match(client: pulsarx.Client, batch: int) -> None:
    send(client, 200, batch)
    reader = client.create_reader("t", MessageId.earliest, selector=TENTH)
    assert payloads_of(reader) == tenths(200)
    send(client, 9)
    assert payloads_of(reader) == [b"0"]
    reader.seek(MessageId.earliest)
    assert payloads_of(reader) == [*tenths(200), b"0"]
    assert not client.create_reader(
        "t", MessageId.earliest, selector="n = 'x'"
    ).has_message_available()


@pytest.mark.border(left_out="several topics")
def test_a_reader_of_partitions_skips_too(client: pulsarx.Client) -> None:
    client.admin.topics.create_partitioned_topic("t", 3)
    send(client, 60)
    reader = client.create_reader("t", MessageId.earliest, selector=TENTH)
    assert sorted(payloads_of(reader), key=int) == tenths(60)


@pytest.mark.border(left_out="several topics")
def test_all_partitions_and_topics_share_the_selector(client: pulsarx.Client) -> None:
    client.admin.topics.create_partitioned_topic("t", 2)
    consumer = client.subscribe(["t", "u"], "s", selector=TENTH)
    send(client, 40)
    send(client, 40, topic="u")
    assert sorted(payloads(consumer), key=int) == sorted(2 * tenths(40), key=int)
    client.admin.topics.update_partitioned_topic("t", 4)
    found = client.admin.topics.get_subscription_properties("t-partition-3", "s")
    assert found == {"jms.selector": TENTH}


@every_kind
@pytest.mark.parametrize("batch", [0, 10, 100])
def test_of_a_topic_that_keeps_nothing_the_rest_is_passed_over(
    client: pulsarx.Client, kind: ConsumerType, batch: int
) -> None:
    topic = "non-persistent://public/default/t"
    consumer = client.subscribe(topic, "s", kind, selector=TENTH)
    send(client, 100, batch, topic, compression_type=CompressionType.LZ4)
    assert sorted(payloads(consumer), key=int) == tenths(100)
    figures = client.admin.topics.stats(topic)["subscriptions"]["s"]
    assert figures["filter_accepted_msg_count"] == 10
    assert figures["filter_rejected_msg_count"] == 90
    assert figures["msg_drop_count"] == 0


@pytest.mark.border(left_out="the inside is changed")
@pytest.mark.guest(left_out="the owner's inside is changed")
def test_a_first_consumer_is_pushed_nothing_before_its_selector_counts(
    client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = "non-persistent://public/default/t"
    take = Subscription._take_properties

    def publish_first(subscription: Subscription, given: dict[str, str]) -> None:
        send(client, 10, 0, topic)
        take(subscription, given)

    monkeypatch.setattr(Subscription, "_take_properties", publish_first)
    consumer = client.subscribe(topic, "s", selector=TENTH)
    assert payloads(consumer) == tenths(10)


def test_key_and_times_are_selected_by(clocked_client: pulsarx.Client) -> None:
    client = clocked_client
    for name, selector in {
        "key": "JMSXGroupID = 'b'",
        "event": "__eventTime BETWEEN 2 AND 3",
        "publish": "__publishTime > 0",
        "none": "__key IS NULL",
    }.items():
        client.subscribe("t", name, selector=selector).close()
    with client.create_producer("t") as producer:
        producer.send(b"1", partition_key="a", event_timestamp=1)
        producer.send(b"2", partition_key="b", event_timestamp=2)
        producer.send(b"3", event_timestamp=3)
    found = {
        name: payloads(client.subscribe("t", name)) for name in ("key", "event", "publish", "none")
    }
    assert found == {
        "key": [b"2"],
        "event": [b"2", b"3"],
        "publish": [b"1", b"2", b"3"],
        "none": [b"3"],
    }


@pytest.mark.border(left_out="overdue acknowledgements, columns")
def test_receive_arrow_gets_what_matches(client: pulsarx.Client) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    consumer = join(client, ConsumerType.Exclusive, selector=TENTH)
    send(client, 100, 50)
    found = consumer.receive_arrow(1000, 0)
    assert pyarrow.record_batch(found).num_rows == 10
    assert backlog(client) == 10


def test_a_consumer_that_waits_is_woken_by_what_matches(client: pulsarx.Client) -> None:
    consumer = join(client, ConsumerType.Shared, selector="n = 3")
    future = consumer.receive_async()
    send(client, 3)
    assert not future.done()
    send(client, 4)
    assert future.result(60).data() == b"3"


def test_many_that_do_not_match_are_passed_over_at_once(client: pulsarx.Client) -> None:
    """A receive goes through 300000 messages without a match, several turns of the mutex."""
    consumer = join(client, ConsumerType.Exclusive, selector="n = 'last'")
    shared = client.subscribe(
        "t", "shared", ConsumerType.Shared, selector="n = 'last'",
        initial_position=InitialPosition.Earliest,
    )  # fmt: skip
    reader = client.create_reader("t", MessageId.earliest, selector="n = 'last'")
    with client.create_producer("t", batching_enabled=True) as producer:
        producer.send_many([b"x"] * 300_000)
        producer.send(b"y", properties={"n": "last"})
    assert reader.has_message_available()
    assert reader.read_next(0).data() == b"y"
    assert consumer.receive(60_000).data() == b"y"
    assert shared.receive(60_000).data() == b"y"


# Refused ------------------------------------------------------------------------------------------


def test_a_wrong_selector_is_refused_with_its_place(client: pulsarx.Client) -> None:
    wrong = "price > 1 AND AND region = 'EU'"
    place = "column 15: expected a name, a literal or \\(, found \"AND region = 'EU'\""
    for call in (
        lambda: client.subscribe("t", "s", selector=wrong),
        lambda: client.subscribe("t", "s", subscription_properties={"jms.selector": wrong}),
        lambda: client.create_reader("t", MessageId.earliest, selector=wrong),
    ):
        with pytest.raises(pulsarx.InvalidConfiguration) as told:
            call()
        assert told.match(place) or place in told.value.detail
    assert client.admin.topics.get_list("public/default") == []
    join(client, ConsumerType.Shared, selector=TENTH)
    for change in (
        lambda: client.admin.topics.update_subscription_properties(
            "t", "s", {"jms.selector": wrong}
        ),
        lambda: client.admin.topics.create_subscription(
            "t", "other", properties={"jms.selector": wrong}
        ),
    ):
        with pytest.raises(pulsarx.InvalidConfiguration):
            change()
    assert client.admin.topics.get_subscription_properties("t", "s") == {"jms.selector": TENTH}
    assert client.admin.topics.get_subscriptions("t") == ["s"]


@pytest.mark.border(left_out="clients that come again")
def test_another_selector_than_the_subscription_has_is_refused(client: pulsarx.Client) -> None:
    first = join(client, ConsumerType.Shared, selector=TENTH)
    with pytest.raises(pulsarx.NotAllowedError):
        join(client, ConsumerType.Shared, selector="n = 1")
    join(client, ConsumerType.Shared)
    join(client, ConsumerType.Shared, selector=TENTH)
    send(client, 20)
    assert payloads(first)


def test_a_subscription_without_properties_takes_those_of_a_consumer(
    open_client: OpenClient,
) -> None:
    with open_client() as client:
        client.admin.topics.create_non_partitioned_topic("t")
        client.admin.topics.create_subscription("t", "s", MessageId.earliest)
        send(client, 20)
        assert payloads(join(client, ConsumerType.Shared, selector=TENTH)) == tenths(20)
    with open_client() as client:
        found = client.admin.topics.get_subscription_properties("t", "s")
        assert found == {"jms.selector": TENTH}


def test_an_empty_selector_is_none(client: pulsarx.Client) -> None:
    consumer = join(client, ConsumerType.Shared, selector="  ")
    send(client, 3)
    assert payloads(consumer) == numbers(3)


def test_two_selectors_at_a_time_are_refused(client: pulsarx.Client) -> None:
    with pytest.raises(pulsarx.InvalidConfiguration):
        client.subscribe(
            "t", "s", selector="n = 1", subscription_properties={"jms.selector": "n = 2"}
        )


def test_a_refused_consumer_leaves_no_selector(client: pulsarx.Client) -> None:
    consumer = join(client, ConsumerType.Exclusive)
    for kind in (ConsumerType.Exclusive, ConsumerType.Shared):
        with pytest.raises(pulsarx.ConsumerBusy):
            join(client, kind, selector=TENTH)
    send(client, 3)
    assert payloads(consumer) == numbers(3)
    assert client.admin.topics.get_subscription_properties("t", "s") == {}


@pytest.mark.border(left_out="letters and read-only clients")
def test_retry_letters_are_not_selected_again(client: pulsarx.Client) -> None:
    consumer = join(client, ConsumerType.Shared, selector="n = 1", retry_enable=True)
    send(client, 3)
    (found,) = drain(consumer)
    consumer.reconsume_later(found, 0, {"n": "2"})
    again = consumer.receive(60_000)
    assert (again.data(), again.properties()["n"]) == (b"1", "2")


def test_like_matches_what_a_regular_expression_does(memory_client: pulsarx.Client) -> None:
    random = Random(1)
    texts = ["".join(random.choices("abé", k=random.randrange(9))) for _ in range(100)]
    with memory_client.create_producer("t") as producer:
        for text in texts:
            producer.send(b"", properties={"p": text})
    for number in range(200):
        pattern = "".join(random.choices("ab%%_é", k=random.randrange(9)))
        matches = re.compile(pattern.replace("%", ".*").replace("_", ".")).fullmatch
        consumer = memory_client.subscribe(
            "t",
            f"{number}",
            selector=f"p LIKE '{pattern}'",
            initial_position=InitialPosition.Earliest,
        )
        found = [each.properties()["p"] for each in drain(consumer)]
        assert found == list(filter(matches, texts)), pattern
