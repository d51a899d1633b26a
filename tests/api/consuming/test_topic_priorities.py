"""Facts about topic_priorities: which topic a consumer of several topics takes from first."""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from topics_steps import in_thread

import pulsarx
from pulsarx import ConsumerType, InitialPosition, errors
from pulsarx.testing import inspect

PATIENCE = 60
PATIENCE_MS = PATIENCE * 1000
LEVELS = {"urgent": 0, "normal": 1, "idle": 2}
TOPICS = ["idle", "normal", "urgent"]
TURN = 100  # of so many messages one is of a lower level that waits


def subscribe(client: pulsarx.Client, topics: Any = None, **options: Any) -> Any:
    options.setdefault("topic_priorities", LEVELS)
    options.setdefault("initial_position", InitialPosition.Earliest)
    return client.subscribe(TOPICS if topics is None else topics, "s", **options)


def publish(client: pulsarx.Client, topic: str, count: int = 1, begin: int = 0) -> list[bytes]:
    """Publish `topic 0`, `topic 1`, ..., which have come to all consumers."""
    sent = [b"%s %d" % (topic.encode(), number) for number in range(begin, begin + count)]
    with client.create_producer(topic) as producer:
        producer.send_many(sent)
    inspect(client).settle()
    return sent


def taken(consumer: Any, count: int) -> list[bytes]:
    return [consumer.receive(PATIENCE_MS).data() for _ in range(count)]


def levels(consumer: Any, count: int) -> str:
    """The first letters of the topics of so many messages."""
    return "".join(chr(each[0]) for each in taken(consumer, count))


# The order ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared])
def test_what_waits_in_a_more_urgent_topic_is_received_first(
    memory_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = subscribe(memory_client, consumer_type=kind)
    sent = [publish(memory_client, topic, 3) for topic in TOPICS]
    assert taken(consumer, 9) == [*sent[2], *sent[1], *sent[0]]


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared])
def test_an_urgent_message_overtakes_what_was_pushed_before(
    memory_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = subscribe(memory_client, consumer_type=kind)
    publish(memory_client, "idle", 5)
    publish(memory_client, "normal", 5)
    assert taken(consumer, 2) == [b"normal 0", b"normal 1"]
    publish(memory_client, "urgent", 2)
    assert taken(consumer, 3) == [b"urgent 0", b"urgent 1", b"normal 2"]
    assert levels(consumer, 4) == "nnii"
    publish(memory_client, "normal", 1, begin=5)
    assert taken(consumer, 2) == [b"normal 5", b"idle 2"]


def receives(consumer: Any, count: int) -> list[bytes]:
    return taken(consumer, count)


def receives_many(consumer: Any, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        messages = consumer.receive_many(count - len(found), PATIENCE_MS)
        assert messages
        found += [each.data() for each in messages]
    return found


def receives_a_batch(consumer: Any, count: int) -> list[bytes]:
    return [each.data() for each in consumer.batch_receive()]


def receives_by_futures(consumer: Any, count: int) -> list[bytes]:
    futures = [consumer.receive_async() for _ in range(count)]
    return [each.result(PATIENCE).data() for each in futures]


def receives_columns(consumer: Any, count: int) -> list[bytes]:
    pyarrow = pytest.importorskip("pyarrow")
    found: list[bytes] = []
    while len(found) < count:
        rows = consumer.receive_arrow(2, PATIENCE_MS)
        values = pyarrow.record_batch(rows).column("value").to_pylist()
        assert values
        found += values
    return found


@pytest.mark.parametrize(
    "receive",
    [receives, receives_many, receives_a_batch, receives_by_futures, receives_columns],
    ids=lambda each: each.__name__,
)
def test_every_way_to_receive_takes_by_priority(
    memory_client: pulsarx.Client, receive: Callable[[Any, int], list[bytes]]
) -> None:
    policy = pulsarx.ConsumerBatchReceivePolicy(6, -1, PATIENCE_MS)
    consumer = subscribe(memory_client, batch_receive_policy=policy)
    sent = [publish(memory_client, topic, 2) for topic in TOPICS]
    assert receive(consumer, 6) == [*sent[2], *sent[1], *sent[0]]


def test_a_listener_is_called_by_priority(memory_client: pulsarx.Client) -> None:
    found: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    begun, goes_on = threading.Event(), threading.Event()

    def listen(consumer: Any, message: Any) -> None:
        found.put(message.data())
        begun.set()
        assert goes_on.wait(PATIENCE)

    consumer = subscribe(memory_client, message_listener=listen)
    publish(memory_client, "idle", 3)
    assert begun.wait(PATIENCE)
    publish(memory_client, "normal", 2)
    publish(memory_client, "urgent", 2)
    goes_on.set()
    assert [found.get(timeout=PATIENCE) for _ in range(7)] == [
        b"idle 0", b"urgent 0", b"urgent 1", b"normal 0", b"normal 1", b"idle 1", b"idle 2",
    ]  # fmt: skip
    consumer.close()


def test_interceptors_change_nothing_about_it(memory_client: pulsarx.Client) -> None:
    seen: list[bytes] = []

    class Audit(pulsarx.ConsumerInterceptor):
        def before_consume(self, consumer: Any, message: Any) -> Any:
            seen.append(message.data())
            return message

    consumer = subscribe(memory_client, interceptors=[Audit()])
    for topic in TOPICS:
        publish(memory_client, topic)
    assert levels(consumer, 3) == "uni"
    assert seen == [b"urgent 0", b"normal 0", b"idle 0"]


@pytest.mark.parametrize("topic", TOPICS)
def test_whoever_waits_is_woken_by_any_level(memory_client: pulsarx.Client, topic: str) -> None:
    consumer = subscribe(memory_client)
    thread, result = in_thread(consumer.receive)
    publish(memory_client, topic)
    thread.join(PATIENCE)
    assert result[0].data() == b"%s 0" % topic.encode()  # type: ignore[attr-defined]


def test_a_message_that_comes_again_has_the_priority_of_its_topic(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    consumer = subscribe(clocked_client, consumer_type=ConsumerType.Shared)
    publish(clocked_client, "urgent", 2)
    publish(clocked_client, "idle", 3)
    consumer.negative_acknowledge(consumer.receive(PATIENCE_MS))
    assert levels(consumer, 2) == "ui"
    manual_clock.advance(61)
    inspect(clocked_client).settle()
    assert taken(consumer, 2) == [b"urgent 0", b"idle 1"]


def test_messages_that_are_given_back_come_by_priority_too(
    memory_client: pulsarx.Client,
) -> None:
    """What does not fit into a batch any more is given back."""
    policy = pulsarx.ConsumerBatchReceivePolicy(10, 12, PATIENCE_MS)
    consumer = subscribe(memory_client, batch_receive_policy=policy)
    publish(memory_client, "urgent", 2)
    publish(memory_client, "normal", 2)
    assert [each.data() for each in consumer.batch_receive()] == [b"urgent 0"]
    publish(memory_client, "idle")
    assert [each.data() for each in consumer.batch_receive()] == [b"urgent 1"]
    assert levels(consumer, 3) == "nni"


# Levels -------------------------------------------------------------------------------------------


def test_topics_of_one_level_come_in_turn(memory_client: pulsarx.Client) -> None:
    priorities = {"a": 7, "b": 7, "c": 7}
    consumer = subscribe(memory_client, ["x", *priorities], topic_priorities=priorities)
    for topic in ("x", "a", "b", "c"):
        publish(memory_client, topic, 2)
    found = levels(consumer, 6)
    assert {found[:3], found[3:]} == {found[:3]}
    assert sorted(found[:3]) == ["a", "b", "c"]
    assert taken(consumer, 2) == [b"x 0", b"x 1"]


def test_topics_that_are_not_named_come_last_and_in_turn(memory_client: pulsarx.Client) -> None:
    topics = ["x", "idle", "y", "urgent"]
    consumer = subscribe(memory_client, topics, topic_priorities={"idle": 2**31 - 1, "urgent": 0})
    for topic in topics:
        publish(memory_client, topic, 2)
    found = levels(consumer, 8)
    assert found[:4] == "uuii"
    assert sorted(found[4:6]) == sorted(found[6:]) == ["x", "y"]


def test_a_topic_may_be_written_in_several_ways(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(
        memory_client,
        ["persistent://public/default/a", "b"],
        topic_priorities={
            "b": 0,
            "persistent://public/default/b": 0,
            "persistent://public/default/a": 1,
        },
    )
    publish(memory_client, "a")
    publish(memory_client, "b")
    assert levels(consumer, 2) == "ba"


def test_partitions_have_the_priority_of_their_topic(memory_client: pulsarx.Client) -> None:
    topics = memory_client.admin.topics
    for name, count in (("urgent", 2), ("normal", 3)):
        topics.create_partitioned_topic(name, count)
    consumer = subscribe(memory_client, ["normal", "urgent"], topic_priorities={"urgent": 0})
    topics.update_partitioned_topic("urgent", 4)
    for partition in range(3):
        publish(memory_client, f"normal-partition-{partition}")
    for partition in range(4):
        publish(memory_client, f"urgent-partition-{partition}")
    assert levels(consumer, 7) == "uuuunnn"


def test_a_partition_that_is_subscribed_to_by_its_name_has_its_own(
    memory_client: pulsarx.Client,
) -> None:
    memory_client.admin.topics.create_partitioned_topic("p", 2)
    names = ["p-partition-0", "p-partition-1"]
    consumer = subscribe(memory_client, names, topic_priorities={names[1]: 0})
    for name in names:
        publish(memory_client, name)
    assert taken(consumer, 2) == [b"p-partition-1 0", b"p-partition-0 0"]


def test_topics_of_a_pattern_have_theirs_also_those_that_come_later(
    memory_client: pulsarx.Client,
) -> None:
    for topic in ("t-normal", "t-other"):
        publish(memory_client, topic, 2)
    consumer = subscribe(
        memory_client,
        re.compile("t-.*"),
        topic_priorities={"t-urgent": 0, "t-normal": 1, "t-never": 2},
    )
    assert taken(consumer, 1) == [b"t-normal 0"]
    for topic in ("t-later", "t-urgent"):  # made now
        publish(memory_client, topic)
    found = taken(consumer, 5)
    assert found[:2] == [b"t-urgent 0", b"t-normal 1"]
    assert sorted(found[2:]) == [b"t-later 0", b"t-other 0", b"t-other 1"]


def test_a_topic_that_is_made_anew_has_its_priority_again(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client, re.compile("t-.*"), topic_priorities={"t-urgent": 0})
    publish(memory_client, "t-urgent")
    publish(memory_client, "t-x", 3)
    assert taken(consumer, 2) == [b"t-urgent 0", b"t-x 0"]
    memory_client.admin.topics.delete("t-urgent", force=True)
    assert taken(consumer, 1) == [b"t-x 1"]
    publish(memory_client, "t-urgent")
    assert taken(consumer, 2) == [b"t-urgent 0", b"t-x 2"]


@pytest.mark.parametrize(
    ("priorities", "expected"),
    [({"normal": 0}, "normal 1, normal 0"), ({"normal-s-RETRY": 0}, "normal 0, normal 1")],
    ids=["last", "first"],
)
def test_retry_letters_come_last_unless_their_topic_is_named(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    priorities: dict[str, int],
    expected: str,
) -> None:
    consumer = subscribe(
        clocked_client,
        "normal",
        topic_priorities=priorities,
        consumer_type=ConsumerType.Shared,
        retry_enable=True,
    )
    publish(clocked_client, "normal")
    consumer.reconsume_later(consumer.receive(PATIENCE_MS), 1000)
    publish(clocked_client, "normal", begin=1)
    manual_clock.advance(3)
    inspect(clocked_client).settle()
    assert b", ".join(taken(consumer, 2)) == expected.encode()


def test_non_persistent_topics_have_priorities(memory_client: pulsarx.Client) -> None:
    names = ["non-persistent://public/default/idle", "non-persistent://public/default/urgent"]
    consumer = subscribe(memory_client, names, topic_priorities={names[1]: 0})
    for name in names:
        memory_client.create_producer(name).send(name.rpartition("/")[2].encode())
    assert taken(consumer, 2) == [b"urgent", b"idle"]


# No level starves ---------------------------------------------------------------------------------


def test_every_hundredth_message_is_of_a_lower_level_that_waits(
    memory_client: pulsarx.Client,
) -> None:
    consumer = subscribe(memory_client)
    publish(memory_client, "normal", 3)
    publish(memory_client, "urgent", 400)
    found = levels(consumer, 403)
    assert found == ("u" * (TURN - 1) + "n") * 3 + "u" * (400 - 3 * (TURN - 1))


def test_lower_levels_have_these_turns_by_turns(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client)
    publish(memory_client, "normal", 10)
    publish(memory_client, "idle", 10)
    publish(memory_client, "urgent", 500)
    found = levels(consumer, 5 * TURN)
    assert found[TURN - 1 :: TURN] in ("ninin", "inini")
    assert found.count("u") == 5 * (TURN - 1)


def test_a_level_in_the_middle_does_not_starve_the_last_one(
    memory_client: pulsarx.Client,
) -> None:
    consumer = subscribe(memory_client)
    publish(memory_client, "idle", 2)
    publish(memory_client, "normal", 300)
    assert levels(consumer, 2 * TURN) == ("n" * (TURN - 1) + "i") * 2
    publish(memory_client, "urgent", 2)
    assert levels(consumer, 3) == "uun"


def test_a_level_that_did_not_wait_gets_no_turn_when_it_comes(
    memory_client: pulsarx.Client,
) -> None:
    """Messages that nobody waited behind are not counted."""
    consumer = subscribe(memory_client)
    publish(memory_client, "urgent", 400)
    assert levels(consumer, 2 * TURN) == "u" * 2 * TURN
    publish(memory_client, "idle", 1)
    assert levels(consumer, TURN) == "u" * (TURN - 1) + "i"


def test_an_empty_level_below_leaves_its_turn_to_one_that_waits(
    memory_client: pulsarx.Client,
) -> None:
    """It was looked at last when it had messages still."""
    consumer = subscribe(memory_client)
    assert consumer.receive_many(1, 0) == []
    publish(memory_client, "normal", 1)
    assert levels(consumer, 1) == "n"
    publish(memory_client, "idle", 1)
    publish(memory_client, "urgent", 300)
    assert levels(consumer, 2 * TURN) == "u" * (TURN - 1) + "i" + "u" * TURN


def test_columns_count_by_their_messages(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client)
    publish(memory_client, "normal", 35)
    publish(memory_client, "urgent", 400)
    sizes = [len(consumer.receive_arrow(60, PATIENCE_MS)) for _ in range(8)]
    assert sizes == [60, 60, 35, 60, 60, 60, 60, 40]


def test_many_threads_receive_every_message_once(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client, consumer_type=ConsumerType.Shared)
    found: list[bytes] = []
    count = 1000

    def receive() -> None:
        while True:
            found.extend(each.data() for each in consumer.receive_many(7))
            if len(found) >= 3 * count:
                consumer.close()

    threads = [in_thread(receive) for _ in range(3)]
    senders = [in_thread(lambda t=topic: publish(memory_client, t, count)) for topic in TOPICS]
    for thread, _ in [*senders, *threads]:
        thread.join(PATIENCE)
    assert len(found) == len(set(found)) == 3 * count
    assert all(isinstance(result[0], errors.AlreadyClosed) for _, result in threads)


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("topics", ["t", ["t", "u"], ["t"]])
def test_a_topic_that_the_consumer_does_not_have_is_refused(
    memory_client: pulsarx.Client, topics: Any
) -> None:
    with pytest.raises(errors.InvalidConfiguration) as caught:
        subscribe(memory_client, topics, topic_priorities={"t": 0, "elsewhere": 1})
    assert "persistent://public/default/elsewhere" in caught.value.detail
    assert "persistent://public/default/t" in caught.value.detail
    assert memory_client.admin.topics.get_list() == []
    assert subscribe(memory_client, topics, topic_priorities={"t": 0}).is_connected()


@pytest.mark.parametrize("name", ["elsewhere", "p-partition-0", "other/space/p"])
def test_a_topic_that_a_pattern_never_finds_is_refused(
    memory_client: pulsarx.Client, name: str
) -> None:
    memory_client.admin.topics.create_partitioned_topic("p", 2)
    with pytest.raises(errors.InvalidConfiguration, match=name):
        subscribe(memory_client, re.compile("p.*"), topic_priorities={"p": 0, name: 1})


def test_the_partition_of_a_topic_is_refused(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_partitioned_topic("p", 2)
    with pytest.raises(errors.InvalidConfiguration, match="p-partition-0"):
        subscribe(memory_client, ["p"], topic_priorities={"p-partition-0": 0})


@pytest.mark.parametrize(
    ("priorities", "expected"),
    [
        ({"t": -1}, ValueError),
        ({"t": 2**31}, ValueError),
        ({"t": "1"}, TypeError),
        ({"t": True}, TypeError),
        ({"t": 1.0}, TypeError),
        ({"t": None}, TypeError),
        ({1: 1}, TypeError),
        ([("t", 1)], ValueError),
        ({"": 1}, errors.InvalidTopicName),
        ({"t": 0, "persistent://public/default/t": 1}, errors.InvalidConfiguration),
    ],
    ids=str,
)
def test_these_are_no_priorities(
    memory_client: pulsarx.Client, priorities: Any, expected: type[Exception]
) -> None:
    with pytest.raises(expected):
        subscribe(memory_client, ["t"], topic_priorities=priorities)
    assert memory_client.admin.topics.get_list() == []


def test_an_empty_mapping_is_none(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client, ["a", "b"], topic_priorities={})
    for topic in "ab":
        publish(memory_client, topic, 2)
    assert levels(consumer, 4) in ("abab", "baba")


def test_the_mapping_may_change_later(memory_client: pulsarx.Client) -> None:
    priorities = {"t-urgent": 0}
    consumer = subscribe(memory_client, re.compile("t-.*"), topic_priorities=priorities)
    priorities.clear()
    publish(memory_client, "t-x")
    publish(memory_client, "t-urgent")
    assert taken(consumer, 2) == [b"t-urgent 0", b"t-x 0"]
