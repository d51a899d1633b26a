"""Facts about the messages of non-persistent topics: who gets them, and which are dropped."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sleeping_thread import until_asleep
from support.consumer_types import ALL_TYPES
from topic_reading import OpenClient

import pulsarx
from pulsarx import ConsumerType, MessageId, errors

TOPIC = "non-persistent://public/default/t"


def texts(consumer: Any) -> list[str]:
    """What it can receive without waiting."""
    found = []
    while (message := consumer.take_now()) is not None:
        found.append(message.data().decode())
    return found


def dropped(client: pulsarx.Client, subscription: str = "s", topic: str = TOPIC) -> int:
    stats: dict[str, Any] = client.admin.topics.stats(topic)
    count: int = stats["subscriptions"][subscription]["msg_drop_count"]
    return count


def send(producer: Any, *contents: str) -> None:
    for each in contents:
        producer.send(each.encode())


@pytest.mark.parametrize(
    "kind",
    ALL_TYPES,
)
def test_a_consumer_of_each_type_gets_what_is_published_while_it_is_there(
    memory_client: pulsarx.Client, kind: ConsumerType
) -> None:
    producer = memory_client.create_producer(TOPIC)
    send(producer, "before")
    consumer = memory_client.subscribe(TOPIC, "s", kind)
    send(producer, "a", "b")
    assert texts(consumer) == ["a", "b"]
    consumer.close()
    send(producer, "nobody")
    again = memory_client.subscribe(TOPIC, "s", kind)
    send(producer, "c")
    assert texts(again) == ["c"]


def test_the_initial_position_says_nothing(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer(TOPIC)
    send(producer, "before")
    earliest = memory_client.subscribe(
        TOPIC, "s", initial_position=pulsarx.InitialPosition.Earliest
    )
    assert texts(earliest) == []


@pytest.mark.parametrize("batched", [False, True])
def test_a_message_is_confirmed_whether_somebody_gets_it_or_not(
    memory_client: pulsarx.Client, batched: bool
) -> None:
    told: list[Any] = []
    producer = memory_client.create_producer(TOPIC, batching_enabled=batched)
    place = MessageId(-1, 0, 0, -1)
    assert producer.send(b"nobody") == place
    memory_client.subscribe(TOPIC, "s")
    assert producer.send(b"somebody") == place
    for _ in range(2):
        producer.send_async(b"x", lambda result, found: told.append((result, found)))
    producer.flush()
    assert told == [(pulsarx.Result.Ok, place)] * 2
    assert producer.send_many([b"a", b"b", b"c"]) == [place] * 3
    assert producer.last_sequence_id() == 6


@pytest.mark.parametrize(
    "kind",
    ALL_TYPES,
)
def test_what_does_not_fit_into_the_receiver_queue_is_dropped_and_counted(
    memory_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = memory_client.subscribe(TOPIC, "s", kind, receiver_queue_size=3)
    producer = memory_client.create_producer(TOPIC)
    send(producer, *"abcde")
    assert texts(consumer) == ["a", "b", "c"]
    assert dropped(memory_client) == 2
    send(producer, *"fghi")
    assert consumer.receive().data() == b"f"
    send(producer, *"jk")  # one place is free again
    assert texts(consumer) == ["g", "h", "j"]
    assert dropped(memory_client) == 4
    stats = memory_client.admin.topics.stats(TOPIC)
    assert stats["publishers"][0]["msg_drop_count"] == 4
    (figures,) = stats["subscriptions"]["s"]["consumers"]
    assert (figures["available_permits"], figures["receiver_queue_messages"]) == (3, 0)
    assert not figures["reads_ledger_on_receive"]


def test_a_consumer_with_any_room_gets_a_whole_batch(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe(TOPIC, "s", receiver_queue_size=3)
    producer = memory_client.create_producer(TOPIC)
    producer.send_many([b"a", b"b"])
    producer.send_many([b"c", b"d", b"e"])
    producer.send_many([b"f", b"g"])  # 5 in a queue of 3
    assert consumer.receive().data() == b"a"
    assert consumer.receive().data() == b"b"
    producer.send_many([b"h"])  # 3 of 3
    assert consumer.receive().data() == b"c"
    producer.send_many([b"i"])
    assert texts(consumer) == ["d", "e", "i"]
    assert dropped(memory_client) == 3


def test_a_consumer_without_a_queue_gets_what_comes_while_it_waits(
    memory_client: pulsarx.Client,
) -> None:
    consumer = memory_client.subscribe(TOPIC, "s", receiver_queue_size=0)
    producer = memory_client.create_producer(TOPIC)
    send(producer, "nobody waits")
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(consumer.receive().data()))
    thread.start()
    until_asleep(thread)
    send(producer, "a", "b")  # it asked for one
    thread.join(60)
    assert found == [b"a"]
    assert dropped(memory_client) == 2


def test_each_subscription_gets_everything(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer(TOPIC)
    first = memory_client.subscribe(TOPIC, "first", receiver_queue_size=1)
    second = memory_client.subscribe(TOPIC, "second")
    send(producer, *"abc")
    assert texts(first) == ["a"]
    assert texts(second) == ["a", "b", "c"]
    assert (dropped(memory_client, "first"), dropped(memory_client, "second")) == (2, 0)


def test_consumers_of_a_shared_subscription_take_turns(memory_client: pulsarx.Client) -> None:
    first, second = (
        memory_client.subscribe(TOPIC, "s", ConsumerType.Shared, receiver_queue_size=3)
        for _ in range(2)
    )
    producer = memory_client.create_producer(TOPIC)
    send(producer, *"abcd")
    assert sorted([texts(first), texts(second)]) == [["a", "c"], ["b", "d"]]
    send(producer, *"efgh")
    texts(first)
    send(producer, *"ijkl")  # one has room for 3 and the other for 1
    assert (len(texts(first)), len(texts(second))) == (3, 3)
    assert dropped(memory_client) == 0


def test_a_batch_goes_whole_to_one_shared_consumer(memory_client: pulsarx.Client) -> None:
    consumers = [memory_client.subscribe(TOPIC, "s", ConsumerType.Shared) for _ in range(2)]
    producer = memory_client.create_producer(TOPIC)
    producer.send_many([b"a", b"b", b"c"])
    assert sorted(texts(each) for each in consumers) == [[], ["a", "b", "c"]]


def test_a_shared_consumer_of_higher_priority_gets_everything_it_has_room_for(
    memory_client: pulsarx.Client,
) -> None:
    low = memory_client.subscribe(TOPIC, "s", ConsumerType.Shared, priority_level=1)
    high = memory_client.subscribe(
        TOPIC, "s", ConsumerType.Shared, priority_level=0, receiver_queue_size=2
    )
    send(memory_client.create_producer(TOPIC), *"abcd")
    assert texts(high) == ["a", "b"]
    assert texts(low) == ["c", "d"]


def test_only_the_active_failover_consumer_gets_messages(memory_client: pulsarx.Client) -> None:
    first = memory_client.subscribe(TOPIC, "s", ConsumerType.Failover, receiver_queue_size=1)
    second = memory_client.subscribe(TOPIC, "s", ConsumerType.Failover)
    producer = memory_client.create_producer(TOPIC)
    send(producer, *"ab")  # the other one is not asked
    assert (texts(first), texts(second)) == (["a"], [])
    assert dropped(memory_client) == 1
    send(producer, "lost with its consumer")
    first.close()
    send(producer, "c")
    assert texts(second) == ["c"]


def test_a_second_exclusive_consumer_is_refused(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe(TOPIC, "s")
    with pytest.raises(errors.ConsumerBusy):
        memory_client.subscribe(TOPIC, "s")
    with pytest.raises(errors.ConsumerBusy):
        memory_client.subscribe(TOPIC, "s", ConsumerType.Shared)
    send(memory_client.create_producer(TOPIC), "a")
    assert texts(consumer) == ["a"]


@pytest.mark.parametrize("compression", [pulsarx.CompressionType.NONE, pulsarx.CompressionType.LZ4])
def test_a_batch_of_several_keys_is_split_among_the_owners_of_the_keys(
    memory_client: pulsarx.Client, compression: pulsarx.CompressionType
) -> None:
    consumers = [memory_client.subscribe(TOPIC, "s", ConsumerType.KeyShared) for _ in range(3)]
    producer = memory_client.create_producer(TOPIC, compression_type=compression)
    keys = [str(number % 20) for number in range(100)]
    owners: dict[str, int] = {}
    got: dict[str, list[str]] = {}

    def note() -> None:
        for number, consumer in enumerate(consumers):
            while (message := consumer.take_now()) is not None:
                key = message.partition_key()
                assert owners.setdefault(key, number) == number
                got.setdefault(key, []).append(message.data().decode())

    producer.send_many([f"batch-{n}".encode() for n in range(100)], keys=keys)
    note()
    for number, key in enumerate(keys):
        producer.send(f"single-{number}".encode(), partition_key=key)
    note()
    assert set(owners.values()) == {0, 1, 2}
    for key in set(keys):
        numbers = [number for number in range(100) if keys[number] == key]
        assert got[key] == [f"{kind}-{n}" for kind in ("batch", "single") for n in numbers]


def test_a_split_batch_drops_only_what_an_owner_has_no_room_for(
    memory_client: pulsarx.Client,
) -> None:
    ranges = [[(0, 32767)], [(32768, 65535)]]
    first, second = (
        memory_client.subscribe(
            TOPIC,
            "s",
            ConsumerType.KeyShared,
            receiver_queue_size=size,
            key_shared_policy=pulsarx.ConsumerKeySharedPolicy(
                key_shared_mode=pulsarx.KeySharedMode.Sticky, sticky_ranges=each
            ),
        )
        for each, size in zip(ranges, (2, 1000), strict=True)
    )
    keys = [str(number) for number in range(40)]
    memory_client.create_producer(TOPIC).send_many([k.encode() for k in keys], keys=keys)
    of_first, of_second = texts(first), texts(second)
    assert len(of_first) == 2
    assert dropped(memory_client) == 40 - 2 - len(of_second) > 0


def test_key_shared_waits_for_nothing_when_a_consumer_joins(memory_client: pulsarx.Client) -> None:
    first = memory_client.subscribe(TOPIC, "s", ConsumerType.KeyShared)
    producer = memory_client.create_producer(TOPIC)
    keys = [str(number) for number in range(40)]
    producer.send_many([b"old"] * 40, keys=keys)
    second = memory_client.subscribe(TOPIC, "s", ConsumerType.KeyShared)
    producer.send_many([b"new"] * 40, keys=keys)
    assert "new" in texts(second)  # though keys of it lie unacknowledged with the other
    assert texts(first).count("old") == 40


def test_messages_of_a_compressed_batch_arrive_as_they_were_sent(
    memory_client: pulsarx.Client,
) -> None:
    consumer = memory_client.subscribe(TOPIC, "s")
    producer = memory_client.create_producer(TOPIC, compression_type=pulsarx.CompressionType.ZLib)
    contents = [b"x" * size for size in (0, 1, 5000)]
    producer.send_many(contents)
    producer.send(b"y" * 5000, properties={"a": "b"})
    assert [consumer.receive().data() for _ in contents] == contents
    message = consumer.receive()
    assert (message.data(), message.properties()) == (b"y" * 5000, {"a": "b"})


def test_an_interrupted_codec_loses_no_message(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receive that fails before the message is shown leaves it in the queue."""
    from pulsarx.broker.subscriptions import subscription

    fails = [True]
    real = subscription.decompress

    def sometimes(*arguments: Any) -> bytes:
        if fails and fails.pop():
            raise MemoryError("once")
        return real(*arguments)

    monkeypatch.setattr(subscription, "decompress", sometimes)
    consumer = memory_client.subscribe(TOPIC, "s")
    producer = memory_client.create_producer(TOPIC, compression_type=pulsarx.CompressionType.ZLib)
    producer.send(b"x")
    with pytest.raises(MemoryError):
        consumer.receive()
    assert consumer.receive().data() == b"x"


def test_delayed_messages_come_at_once(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe(TOPIC, "s", ConsumerType.Shared)
    producer = memory_client.create_producer(TOPIC)
    producer.send(b"x", deliver_at=2**50)
    assert texts(consumer) == ["x"]


def test_acknowledging_does_nothing_and_never_raises(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe(TOPIC, "s")
    producer = memory_client.create_producer(TOPIC)
    send(producer, *"abc")
    message = consumer.receive()
    for _ in range(2):
        consumer.acknowledge(message)
        consumer.acknowledge(message.message_id())
        consumer.acknowledge_cumulative(message)
        consumer.acknowledge_many([message])
        consumer.acknowledge(MessageId(-1, 77, 5, 3))
    assert texts(consumer) == ["b", "c"]
    shared = memory_client.subscribe(TOPIC, "shared", ConsumerType.Shared)
    send(producer, "d")
    with pytest.raises(errors.CumulativeAcknowledgementNotAllowedError):
        shared.acknowledge_cumulative(shared.receive())


def test_nothing_is_delivered_again(clocked_client: Any, manual_clock: Any) -> None:
    consumer = clocked_client.subscribe(
        TOPIC,
        "s",
        ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=0,
        unacked_messages_timeout_ms=10_000,
    )
    send(clocked_client.create_producer(TOPIC), "a")
    message = consumer.receive()
    consumer.negative_acknowledge(message)
    consumer.redeliver_unacknowledged_messages()
    manual_clock.advance(60)
    assert texts(consumer) == []
    send(clocked_client.create_producer(TOPIC), "lost")
    consumer.close()
    assert texts(clocked_client.subscribe(TOPIC, "s", ConsumerType.Shared)) == []


def test_a_cancelled_future_gives_its_message_back_in_front(memory_client: pulsarx.Client) -> None:
    consumer: Any = memory_client.subscribe(TOPIC, "s")
    producer = memory_client.create_producer(TOPIC)
    producer.send_many([b"a", b"b", b"c"])
    send(producer, "d")
    taken = [consumer.take_now(), consumer.take_now()]
    consumer.give_back(taken)
    assert texts(consumer) == ["a", "b", "c", "d"]


def test_messages_picked_for_a_key_shared_consumer_are_given_back_in_front(
    memory_client: pulsarx.Client,
) -> None:
    consumer: Any = memory_client.subscribe(TOPIC, "s", ConsumerType.KeyShared)
    producer = memory_client.create_producer(TOPIC)
    producer.send_many([b"a", b"b", b"c"], keys=["1", "2", "3"])
    consumer.give_back([consumer.take_now()])
    assert texts(consumer) == ["a", "b", "c"]
    assert consumer.dispatcher.check() == []


def test_messages_are_received_as_columns(memory_client: pulsarx.Client) -> None:
    consumer: Any = memory_client.subscribe(TOPIC, "s", ConsumerType.KeyShared)
    plain: Any = memory_client.subscribe(TOPIC, "plain")
    producer = memory_client.create_producer(TOPIC)
    producer.send_many([b"a", b"b", b"c"], keys=["1", "2", "3"])
    send(producer, "d")
    for each in (consumer, plain):
        first = each.receive_arrow(2, 1000)
        assert len(first) == 2
        each.acknowledge_many(first)
        assert len(each.receive_arrow(10, 1000)) == 2
        assert each.dispatcher.check() == []


def test_many_threads_publish_and_none_of_what_fits_is_lost(memory_client: pulsarx.Client) -> None:
    threads, count = 4, 2000
    everything = memory_client.subscribe(TOPIC, "s", receiver_queue_size=threads * count)
    shared = [
        memory_client.subscribe(
            TOPIC, "shared", ConsumerType.Shared, receiver_queue_size=threads * count
        )
        for _ in range(2)
    ]
    producers = [memory_client.create_producer(TOPIC) for _ in range(threads)]

    def publish(number: int) -> None:
        for each in range(count):
            producers[number].send(f"{number}-{each}".encode())

    running = [threading.Thread(target=publish, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    got = [everything.receive(60_000).data().decode() for _ in range(threads * count)]
    for thread in running:
        thread.join()
    for number in range(threads):  # each producer's in its order
        mine = [each for each in got if each.startswith(f"{number}-")]
        assert mine == [f"{number}-{each}" for each in range(count)]
    assert sorted([*texts(shared[0]), *texts(shared[1])]) == sorted(got)
    assert dropped(memory_client) == dropped(memory_client, "shared") == 0


def test_a_waiting_receive_is_woken_by_every_message(memory_client: pulsarx.Client) -> None:
    """One message at a time, each sent when the consumer has asked for it or is about to."""
    consumer = memory_client.subscribe(TOPIC, "s", receiver_queue_size=1)
    answers = memory_client.subscribe(f"{TOPIC}-answers", "s", receiver_queue_size=1)
    answer = memory_client.create_producer(f"{TOPIC}-answers")
    producer = memory_client.create_producer(TOPIC)
    count = 1000

    def echo() -> None:
        for _ in range(count):
            answer.send(consumer.receive(60_000).data())

    thread = threading.Thread(target=echo)
    thread.start()
    for number in range(count):
        producer.send(b"%d" % number)
        assert answers.receive(60_000).data() == b"%d" % number
    thread.join()


def test_a_listener_and_a_future_are_told(memory_client: pulsarx.Client) -> None:
    came = threading.Event()
    heard: list[bytes] = []

    def listen(_: Any, message: Any) -> None:
        heard.append(message.data())
        came.set()

    memory_client.subscribe(TOPIC, "heard", message_listener=listen)
    future = memory_client.subscribe(TOPIC, "awaited").receive_async()
    memory_client.create_producer(TOPIC).send(b"x")
    assert future.result(60).data() == b"x"
    assert came.wait(60)
    assert heard == [b"x"]


def test_a_forgotten_consumer_gets_nothing_more(memory_client: pulsarx.Client) -> None:
    consumer = pulsarx.Client("memory:").subscribe(TOPIC, "s", ConsumerType.Failover)
    other = memory_client.subscribe(TOPIC, "s", ConsumerType.Failover)
    del consumer  # and its client
    memory_client.subscribe(TOPIC, "other").close()  # looks for forgotten ones
    send(memory_client.create_producer(TOPIC), "a")
    assert texts(other) == ["a"]


def test_the_rate_of_drops_is_that_of_the_last_minute(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    consumer = clocked_client.subscribe(TOPIC, "s", receiver_queue_size=1)
    producer = clocked_client.create_producer(TOPIC)
    for _ in range(61):
        producer.send(b"x")
    manual_clock.advance(30)
    stats = clocked_client.admin.topics.stats(TOPIC)
    assert stats["subscriptions"]["s"]["msg_drop_rate"] == 1.0
    assert stats["publishers"][0]["msg_drop_rate"] == 1.0
    manual_clock.advance(31)
    stats = clocked_client.admin.topics.stats(TOPIC)
    assert stats["subscriptions"]["s"]["msg_drop_rate"] == 0.0
    assert stats["subscriptions"]["s"]["msg_drop_count"] == 60
    assert texts(consumer) == ["x"]


def test_a_reader_gets_what_is_published_while_it_is_there(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer(TOPIC)
    send(producer, "before")
    reader = memory_client.create_reader(TOPIC, MessageId.earliest, receiver_queue_size=2)
    assert not reader.has_message_available()
    send(producer, *"abc")
    assert reader.has_message_available()
    assert [reader.read_next(60_000).data() for _ in range(2)] == [b"a", b"b"]
    assert not reader.has_message_available()
    assert len(memory_client.admin.topics.get_subscriptions(TOPIC)) == 1
    reader.close()
    assert memory_client.admin.topics.get_subscriptions(TOPIC) == []


def test_all_subscriptions_that_are_there_are_named(memory_client: pulsarx.Client) -> None:
    """Those of readers too, as in Pulsar."""
    consumer = memory_client.subscribe(TOPIC, "s")
    reader = memory_client.create_reader(TOPIC, MessageId.latest, reader_name="mine")
    of_reader, of_consumer = memory_client.admin.topics.get_subscriptions(TOPIC)
    assert (of_reader.partition("-")[0], of_consumer) == ("reader", "s")
    reader.close()
    assert memory_client.admin.topics.get_subscriptions(TOPIC) == ["s"]
    consumer.close()
    assert memory_client.admin.topics.get_subscriptions(TOPIC) == []


def test_a_reader_from_latest_inclusive_gets_what_comes(memory_client: pulsarx.Client) -> None:
    reader = memory_client.create_reader(TOPIC, MessageId.latest, start_message_id_inclusive=True)
    send(memory_client.create_producer(TOPIC), "a")
    assert reader.read_next(60_000).data() == b"a"


def test_a_table_view_has_what_came_while_it_was_there(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer(TOPIC)
    producer.send(b"before", partition_key="k")
    view = memory_client.create_table_view(TOPIC)
    assert len(view) == 0
    came = threading.Event()
    view.for_each_and_listen(lambda key, value: came.set())
    producer.send(b"after", partition_key="k")
    assert came.wait(60)
    assert view.get("k") == b"after"
    view.close()


def test_what_needs_kept_messages_is_refused(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe(TOPIC, "s")
    reader = memory_client.create_reader(TOPIC, MessageId.latest)
    topics = memory_client.admin.topics
    for refused in (
        consumer.get_last_message_id,
        lambda: consumer.seek(MessageId.earliest),
        lambda: consumer.seek(0),
        reader.get_last_message_id,
        lambda: reader.seek(0),
        lambda: topics.terminate(TOPIC),
        lambda: topics.truncate(TOPIC),
        lambda: topics.get_last_message_id(TOPIC),
        lambda: topics.create_subscription(TOPIC, "kept"),
        lambda: topics.reset_cursor(TOPIC, "s", 0),
        lambda: topics.skip_messages(TOPIC, "s", 1),
        lambda: topics.skip_all_messages(TOPIC, "s"),
        lambda: topics.expire_messages(TOPIC, "s", 1),
        lambda: topics.peek_messages(TOPIC, "s", 1),
        lambda: topics.delete_subscription(TOPIC, "s"),
        lambda: topics.set_deduplication(TOPIC, True),
    ):
        with pytest.raises(errors.OperationNotSupported, match="non-persistent topic"):
            refused()
    assert topics.get_deduplication(TOPIC) is None
    send(memory_client.create_producer(TOPIC), "a")
    assert texts(consumer) == ["a"]


def test_letters_of_a_non_persistent_topic_are_refused(memory_client: pulsarx.Client) -> None:
    policy = pulsarx.ConsumerDeadLetterPolicy(max_redeliver_count=1)
    cases: list[dict[str, Any]] = [{"dead_letter_policy": policy}, {"retry_enable": True}]
    for options in cases:
        with pytest.raises(errors.NotAllowedError, match="delivered once"):
            memory_client.subscribe(TOPIC, "s", ConsumerType.Shared, **options)
    assert memory_client.admin.topics.get_list() == []


def test_a_typed_producer_and_consumer_meet(memory_client: pulsarx.Client) -> None:
    schema = pulsarx.schema.StringSchema()
    producer = memory_client.create_producer(TOPIC, schema=schema)
    consumer = memory_client.subscribe(TOPIC, "s", schema=schema)
    producer.send("ä")
    assert consumer.receive().value() == "ä"
    with pytest.raises(errors.IncompatibleSchema):
        memory_client.create_producer(TOPIC, schema=pulsarx.schema.JsonSchema(_Record))
    (info,) = memory_client.admin.schemas.get_all_schemas(TOPIC)
    assert info.schema_type() == pulsarx.schema.SchemaType.STRING
    memory_client.admin.schemas.delete_schema(TOPIC)
    assert memory_client.admin.schemas.get_all_schemas(TOPIC) == []
    with pytest.raises(errors.TopicNotFound):
        memory_client.admin.schemas.get_schema_info(TOPIC)


class _Record(pulsarx.schema.Record):
    a = pulsarx.schema.Integer()


def test_off_every_use_is_refused(open_client: OpenClient) -> None:
    off = pulsarx.BrokerOptions(enable_non_persistent_topics=False)
    client = open_client(broker_options=off)
    for refused in (
        lambda: client.create_producer(TOPIC),
        lambda: client.subscribe(TOPIC, "s"),
        lambda: client.create_reader(TOPIC, MessageId.latest),
        lambda: client.admin.topics.create_non_partitioned_topic(TOPIC),
        lambda: client.admin.topics.create_partitioned_topic(TOPIC, 2),
    ):
        with pytest.raises(errors.NotAllowedError, match="enable_non_persistent_topics is off"):
            refused()
    assert client.admin.topics.get_list() == []
