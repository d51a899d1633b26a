"""Facts about non-persistent topics: which there are, who may publish, what a restart leaves."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess, run_program
from sleeping_thread import until_asleep
from topic_reading import OpenClient

import pulsarx
from pulsarx import ConsumerType, MessageId, ProducerAccessMode, RegexSubscriptionMode, errors
from pulsarx.admin import Admin
from pulsarx.broker.scan.plan import Planner
from pulsarx.testing.inspection import inspect

TOPIC = "non-persistent://public/default/t"
PARTS = [f"{TOPIC}-partition-{index}" for index in range(3)]


def texts(consumer: Any) -> list[str]:
    found = []
    while (message := consumer.take_now()) is not None:
        found.append(message.data().decode())
    return found


def files_in(folder: Path) -> dict[str, int]:
    """Every file with its size, but for those of the catalogue and of the owner."""
    found = {}
    for each in folder.rglob("*"):
        if each.is_file() and each.parent.name in ("ledgers", "cursors", "staging", "orphans"):
            found[str(each)] = each.stat().st_size
    return found


def test_nothing_of_its_messages_is_on_disk(folder: Path, open_client: OpenClient) -> None:
    client = open_client(durability="sync")
    consumer = client.subscribe(TOPIC, "s")
    before = sorted(os.listdir(folder / "catalogue"))
    client.create_producer(TOPIC).send_many([b"x" * 1000] * 100)
    assert len(texts(consumer)) == 100
    assert files_in(folder) == {}
    assert sorted(os.listdir(folder / "catalogue")) == before


def test_one_without_partitions_is_gone_after_a_restart(open_client: OpenClient) -> None:
    client = open_client()
    client.create_producer(TOPIC).send(b"x")
    client.admin.topics.create_non_partitioned_topic(f"{TOPIC}-made")
    assert client.admin.topics.get_list() == [TOPIC, f"{TOPIC}-made"]
    client.close()
    again = open_client()
    assert again.admin.topics.get_list() == []
    again.subscribe(TOPIC, "s")
    assert again.admin.topics.get_list() == [TOPIC]


def test_a_partitioned_one_is_kept(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic(TOPIC, 2)
    client.close()
    again = open_client()
    topics = again.admin.topics
    assert topics.get_partitioned_topic_list() == [TOPIC]
    assert topics.get_partitioned_topic_metadata(TOPIC) == {"partitions": 2}
    assert topics.get_list() == PARTS[:2]
    topics.update_partitioned_topic(TOPIC, 3)
    assert topics.get_list() == PARTS
    assert again.get_topic_partitions(TOPIC) == PARTS


def test_the_catalogue_holds_it_through_checkpoints(folder: Path, open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic(TOPIC, 2)
    for number in range(200):
        client.admin.topics.create_non_partitioned_topic(f"p{number}")
    client.close()
    assert list((folder / "catalogue").glob("*.checkpoint"))
    again = open_client(read_only=True)
    assert again.admin.topics.get_list(domain="non-persistent") == PARTS[:2]


def test_lists_are_of_one_domain_or_of_both(open_client: OpenClient) -> None:
    client = open_client()
    topics = client.admin.topics
    topics.create_non_partitioned_topic("p")
    topics.create_non_partitioned_topic(TOPIC)
    topics.create_non_partitioned_topic("non-persistent://public/default/p")
    persistent = ["persistent://public/default/p"]
    others = ["non-persistent://public/default/p", TOPIC]
    assert topics.get_list() == others + persistent
    assert topics.get_list("public/default", domain="persistent") == persistent
    assert topics.get_list(domain="non-persistent") == others
    assert client.admin.namespaces.get_topics("public/default") == others + persistent
    with pytest.raises(ValueError, match="domain must be persistent or non-persistent"):
        topics.get_list(domain="Persistent")
    with pytest.raises(errors.NotAllowedError, match="exists already"):
        topics.create_non_partitioned_topic(TOPIC)
    with pytest.raises(errors.NotAllowedError, match="exists already"):
        topics.create_partitioned_topic(TOPIC, 2)
    with pytest.raises(errors.NotAllowedError):
        topics.create_non_partitioned_topic(f"{TOPIC}-partition-7")


def test_messages_of_partitions_reach_one_consumer_and_those_of_new_ones(
    memory_client: pulsarx.Client,
) -> None:
    memory_client.admin.topics.create_partitioned_topic(TOPIC, 2)
    consumer = memory_client.subscribe(TOPIC, "s", ConsumerType.Shared)
    producer = memory_client.create_producer(TOPIC)
    ids = [producer.send(b"%d" % number) for number in range(4)]
    assert {each.partition() for each in ids} == {0, 1}
    assert {(each.ledger_id(), each.entry_id(), each.batch_index()) for each in ids} == {(0, 0, -1)}
    messages = [consumer.receive(60_000) for _ in range(4)]
    assert sorted(each.data() for each in messages) == [b"0", b"1", b"2", b"3"]
    consumer.acknowledge(messages[0])
    memory_client.admin.topics.update_partitioned_topic(TOPIC, 3)
    for number in range(6):
        producer.send(b"%d" % number)
    messages = [consumer.receive(60_000) for _ in range(6)]
    assert {each.topic_name() for each in messages} == set(PARTS)
    consumer.close()
    small = memory_client.subscribe(TOPIC, "small", receiver_queue_size=1)
    for number in range(6):
        producer.send(b"%d" % number)  # two to each partition
    stats = memory_client.admin.topics.partitioned_stats(TOPIC)
    assert stats["subscriptions"]["small"]["msg_drop_count"] == 3
    assert [each["msg_drop_count"] for each in stats["publishers"]] == [3]
    assert small.is_connected()
    assert set(stats["partitions"]) == set(PARTS)


def test_automatic_creation_follows_the_policies(open_client: OpenClient) -> None:
    options = pulsarx.BrokerOptions(
        allow_auto_topic_creation_type="partitioned",
        default_num_partitions=2,
        max_topics_per_namespace=3,
    )
    client = open_client(broker_options=options)
    client.create_producer(TOPIC)
    assert client.admin.topics.get_list() == PARTS[:2]
    client.admin.topics.create_non_partitioned_topic(f"{TOPIC}-one")
    with pytest.raises(errors.NotAllowedError, match="max_topics_per_namespace"):
        client.admin.topics.create_non_partitioned_topic(f"{TOPIC}-two")
    client.admin.namespaces.set_auto_topic_creation("public/default", False)
    with pytest.raises(errors.TopicNotFound):
        client.subscribe("non-persistent://public/default/none", "s")
    with pytest.raises(errors.TopicNotFound):
        client.subscribe("non-persistent://public/none/t", "s")


def test_limits_hold(open_client: OpenClient) -> None:
    options = pulsarx.BrokerOptions(
        max_producers_per_topic=1,
        max_consumers_per_topic=2,
        max_consumers_per_subscription=1,
        max_subscriptions_per_topic=2,
        subscription_types_enabled=["Shared"],
    )
    client = open_client(broker_options=options)
    kept: list[Any] = [client.create_producer(TOPIC)]
    kept.append(client.subscribe(TOPIC, "a", ConsumerType.Shared))
    with pytest.raises(errors.ProducerBusy):
        client.create_producer(TOPIC)
    with pytest.raises(errors.NotAllowedError, match="subscription_types_enabled"):
        client.subscribe(TOPIC, "b", ConsumerType.Exclusive)
    with pytest.raises(errors.ConsumerBusy, match="max_consumers_per_subscription"):
        client.subscribe(TOPIC, "a", ConsumerType.Shared)
    kept.append(client.subscribe(TOPIC, "b", ConsumerType.Shared))
    with pytest.raises(errors.ConsumerBusy, match="max_consumers_per_topic"):
        client.subscribe(TOPIC, "c", ConsumerType.Shared)
    kept.pop().close()
    kept.append(client.create_reader(TOPIC, MessageId.latest))  # readers do not count
    kept.append(client.subscribe(TOPIC, "b", ConsumerType.Shared))
    kept.pop().close()
    kept.pop(1).close()
    kept.append(client.subscribe(TOPIC, "c", ConsumerType.Shared))
    kept.append(client.subscribe(TOPIC, "d", ConsumerType.Shared))
    kept[-1].close()
    assert client.admin.topics.stats(TOPIC)["subscriptions"].keys() >= {"c"}


def test_no_more_subscriptions_are_made_than_there_may_be(open_client: OpenClient) -> None:
    client = open_client(broker_options=pulsarx.BrokerOptions(max_subscriptions_per_topic=1))
    kept: list[Any] = [client.subscribe(TOPIC, "a", ConsumerType.Shared)]
    kept.append(client.create_reader(TOPIC, MessageId.latest))
    kept.append(client.subscribe(TOPIC, "a", ConsumerType.Shared))
    with pytest.raises(errors.NotAllowedError, match="max_subscriptions_per_topic"):
        client.subscribe(TOPIC, "b", ConsumerType.Shared)
    assert "a" in client.admin.topics.get_subscriptions(TOPIC)


def test_a_topic_is_deleted_when_nobody_uses_it_or_by_force(open_client: OpenClient) -> None:
    client = open_client()
    topics = client.admin.topics
    producer = client.create_producer(TOPIC)
    consumer = client.subscribe(TOPIC, "s")
    reader = client.create_reader(TOPIC, MessageId.latest)
    with pytest.raises(errors.NotAllowedError, match="1 producers, 1 consumers and 1 readers"):
        topics.delete(TOPIC)
    producer.send(b"still there")
    assert texts(consumer) == ["still there"]
    topics.delete(TOPIC, force=True)
    assert topics.get_list() == []
    for refused in (
        lambda: producer.send(b"x"),
        consumer.receive,
        lambda: reader.read_next(),
    ):
        with pytest.raises(errors.AlreadyClosed):
            refused()
    with pytest.raises(errors.TopicNotFound):
        topics.delete(TOPIC)
    again = client.subscribe(TOPIC, "s")
    client.create_producer(TOPIC).send(b"anew")
    assert texts(again) == ["anew"]


def test_a_namespace_counts_and_takes_its_non_persistent_topics(open_client: OpenClient) -> None:
    client = open_client()
    admin = client.admin
    admin.tenants.create_tenant("a")
    admin.namespaces.create_namespace("a/b")
    consumer = client.subscribe("non-persistent://a/b/t", "s")
    with pytest.raises(errors.NotAllowedError, match="it has 1 topics"):
        admin.namespaces.delete_namespace("a/b")
    admin.namespaces.delete_namespace("a/b", force=True)
    with pytest.raises(errors.AlreadyClosed):
        consumer.receive()
    with pytest.raises(errors.TopicNotFound, match="a/b"):
        admin.topics.get_list("a/b")
    admin.namespaces.create_namespace("a/b")
    assert admin.topics.get_list("a/b") == []
    admin.namespaces.create_namespace("a/c")
    other = client.create_producer("non-persistent://a/c/t")
    admin.tenants.delete_tenant("a", force=True)
    with pytest.raises(errors.AlreadyClosed):
        other.send(b"x")
    admin.tenants.create_tenant("a")
    admin.namespaces.create_namespace("a/c")
    assert admin.topics.get_list("a/c") == []


def test_a_partitioned_one_is_deleted_with_its_partitions(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic(TOPIC, 2)
    producer = client.create_producer(TOPIC)
    client.admin.topics.delete_partitioned_topic(TOPIC, force=True)
    with pytest.raises(errors.AlreadyClosed):
        producer.send(b"x")
    client.close()
    assert open_client().admin.topics.get_list() == []


def test_access_modes_hold_with_an_epoch_in_memory(open_client: OpenClient) -> None:
    client = open_client()
    first = client.create_producer(TOPIC, access_mode=ProducerAccessMode.Exclusive)
    with pytest.raises(errors.ProducerBusy):
        client.create_producer(TOPIC)
    with pytest.raises(errors.ProducerFenced):
        client.create_producer(TOPIC, access_mode=ProducerAccessMode.Exclusive)
    consumer = client.subscribe(TOPIC, "s")
    first.send(b"first")
    second = client.create_producer(TOPIC, access_mode=ProducerAccessMode.ExclusiveWithFencing)
    assert not first.is_connected()
    with pytest.raises(errors.ProducerFenced):
        first.send(b"lost")
    second.send(b"second")
    assert texts(consumer) == ["first", "second"]
    assert client.admin.topics.stats(TOPIC)["topic_epoch"] == 1
    client.close()
    again = open_client()
    again.create_producer(TOPIC)
    assert again.admin.topics.stats(TOPIC)["topic_epoch"] is None


def test_a_producer_waits_until_it_has_the_topic_to_itself(memory_client: pulsarx.Client) -> None:
    holder = memory_client.create_producer(TOPIC)
    made: list[Any] = []

    def wait() -> None:
        mode = ProducerAccessMode.WaitForExclusive
        made.append(memory_client.create_producer(TOPIC, access_mode=mode))

    thread = threading.Thread(target=wait)
    thread.start()
    until_asleep(thread)
    assert made == []
    holder.close()
    thread.join(60)
    consumer = memory_client.subscribe(TOPIC, "s")
    made[0].send(b"x")
    assert texts(consumer) == ["x"]


def test_new_partitions_are_taken_for_the_holder(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_partitioned_topic(TOPIC, 1)
    holder = memory_client.create_producer(TOPIC, access_mode=ProducerAccessMode.Exclusive)
    memory_client.admin.topics.update_partitioned_topic(TOPIC, 2)
    with pytest.raises(errors.ProducerBusy):
        memory_client.create_producer(PARTS[1])
    consumer = memory_client.subscribe(TOPIC, "s")
    for number in range(4):
        holder.send(b"%d" % number)
    assert sorted(consumer.receive(60_000).data() for _ in range(4)) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (RegexSubscriptionMode.PersistentOnly, ["p", "p-late"]),
        (RegexSubscriptionMode.NonPersistentOnly, ["n", "n-late", "parts"]),
        (RegexSubscriptionMode.AllTopics, ["n", "n-late", "p", "p-late", "parts"]),
    ],
)
def test_a_pattern_means_the_topics_of_its_mode(
    memory_client: pulsarx.Client, mode: RegexSubscriptionMode, expected: list[str]
) -> None:
    heads = {"p": "persistent", "n": "non-persistent"}
    for domain in heads.values():
        memory_client.admin.topics.create_non_partitioned_topic(f"{domain}://public/default/fin-a")
    memory_client.admin.topics.create_partitioned_topic(
        "non-persistent://public/default/fin-parts", 2
    )
    consumer = memory_client.subscribe(
        re.compile("fin-.*"), "s", ConsumerType.Shared, regex_subscription_mode=mode
    )
    for letter, domain in heads.items():
        for name, text in (("fin-a", letter), ("fin-late", f"{letter}-late")):
            producer = memory_client.create_producer(f"{domain}://public/default/{name}")
            producer.send(text.encode())
    parts = memory_client.create_producer("non-persistent://public/default/fin-parts")
    parts.send(b"parts")
    found = [consumer.receive(60_000).data().decode() for _ in expected]
    assert sorted(found) == expected
    memory_client.admin.topics.delete("non-persistent://public/default/fin-late", force=True)
    memory_client.create_producer("non-persistent://public/default/fin-late").send(b"reborn")
    if mode != RegexSubscriptionMode.PersistentOnly:
        assert consumer.receive(1000).data() == b"reborn"
    with pytest.raises(errors.Timeout):
        consumer.receive(0)


def test_letters_beside_such_a_pattern_are_refused(memory_client: pulsarx.Client) -> None:
    with pytest.raises(errors.NotAllowedError, match="delivered once"):
        memory_client.subscribe(
            re.compile("fin-.*"),
            "s",
            ConsumerType.Shared,
            dead_letter_policy=pulsarx.ConsumerDeadLetterPolicy(max_redeliver_count=1),
            regex_subscription_mode=RegexSubscriptionMode.AllTopics,
        )


def test_one_consumer_has_topics_of_both_domains(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe(["p", TOPIC], "s", ConsumerType.Shared)
    assert memory_client.admin.topics.get_subscriptions(TOPIC) == ["s"]
    for topic in ("p", TOPIC):
        memory_client.create_producer(topic).send(topic.encode())
    messages = [consumer.receive(60_000) for _ in range(2)]
    assert sorted(each.data().decode() for each in messages) == [TOPIC, "p"]
    for each in messages:
        consumer.acknowledge(each)
    assert memory_client.admin.topics.stats("p")["subscriptions"]["s"]["msg_backlog"] == 0


def test_a_client_opened_read_only_is_refused_with_the_reason(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic(TOPIC, 1)
    reading = open_client(read_only=True)
    for topic in (PARTS[0], f"{TOPIC}-none"):
        with pytest.raises(errors.OperationNotSupported, match="keeps no messages"):
            reading.create_reader(topic, MessageId.earliest)
    assert reading.admin.topics.get_list() == PARTS[:1]


READ_ONLY = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1], read_only=True)
try:
    client.create_reader("non-persistent://public/default/t-partition-0", pulsarx.MessageId.latest)
except pulsarx.errors.OperationNotSupported as error:
    print("read_only" in error.detail)
print(client.admin.topics.get_list())
"""


def test_a_reader_of_another_process_is_refused_with_the_reason(
    folder: Path, open_client: OpenClient
) -> None:
    open_client().admin.topics.create_partitioned_topic(TOPIC, 1)
    assert run_program(READ_ONLY, folder) == ["True", str(PARTS[:1])]


ADMIN = """
import sys
from pulsarx.admin import Admin
admin = Admin.at(sys.argv[1])
print(admin.topics.get_list())
print(admin.topics.stats(sys.argv[2])["subscriptions"]["s"]["msg_drop_count"])
admin.topics.delete(sys.argv[2], force=True)
"""


def test_another_process_administers_it_through_the_owner(
    folder: Path, open_client: OpenClient
) -> None:
    client = open_client()
    consumer = client.subscribe(TOPIC, "s", receiver_queue_size=1)
    client.create_producer(TOPIC).send_many([b"x"])
    client.create_producer(TOPIC).send(b"dropped")
    assert run_program(ADMIN, folder, TOPIC) == [str([TOPIC]), "1"]
    with pytest.raises(errors.AlreadyClosed):
        consumer.receive()
    assert Admin.at(folder).topics.get_list() == []


def test_a_plan_of_files_of_it_is_refused(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic(TOPIC, 1)
    for topic in (TOPIC, PARTS[0]):
        with pytest.raises(errors.OperationNotSupported, match="keeps no messages"):
            Planner(inspect(client).broker, topic)


def test_no_ledger_is_attached_to_it(folder: Path, open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic(TOPIC, 1)
    catalogue = inspect(client).catalogue
    added = {"op": "add_ledger", "topic": PARTS[0], "ledger_id": 99, "uuid": "a" * 32}
    with pytest.raises(errors.CatalogueError, match="has no ledgers"):
        catalogue.commit([added])
    assert client.admin.topics.stats(PARTS[0])["ledgers"] == []


def test_what_a_client_made_is_closed_with_it(open_client: OpenClient) -> None:
    client, other = open_client(), open_client()
    producer = client.create_producer(TOPIC, batching_enabled=True)
    consumer = other.subscribe(TOPIC, "s")
    reader = client.create_reader(TOPIC, MessageId.latest)
    producer.send_async(b"in the open batch", None)
    client.close()
    assert texts(consumer) == ["in the open batch"]
    with pytest.raises(errors.AlreadyClosed):
        producer.send(b"x")
    with pytest.raises(errors.AlreadyClosed):
        reader.read_next()
    assert other.admin.topics.get_subscriptions(TOPIC) == ["s"]


def test_closing_wakes_a_waiting_receive(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe(TOPIC, "s")
    failures: list[Exception] = []

    def wait() -> None:
        try:
            consumer.receive()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    until_asleep(thread)
    consumer.close()
    thread.join(60)
    assert [type(each) for each in failures] == [errors.AlreadyClosed]


FORKED = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
topic = "non-persistent://public/default/t"
producer, consumer = client.create_producer(topic), client.subscribe(topic, "s")
reader = client.create_reader(topic, pulsarx.MessageId.latest)
child = os.fork()
if child == 0:
    producer.send(b"child")  # it is the child's own now
    for call in (consumer.receive, reader.read_next):
        try:
            call()
        except pulsarx.errors.ForkedError:
            continue
        os._exit(1)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
producer.send(b"parent")
for _ in range(2):
    print(consumer.receive().data(), reader.read_next().data())
"""


@pytest.mark.standard
def test_a_forked_child_publishes_and_cannot_use_what_its_parent_receives_with(
    folder: Path,
) -> None:
    assert run_program(FORKED, folder) == ["0", "b'child' b'child'", "b'parent' b'parent'"]


KILLED = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1], durability="sync")
topic = "non-persistent://public/default/t"
client.admin.topics.create_partitioned_topic(topic, 2)
consumer = client.subscribe(topic + "-alone", "s")
client.create_producer(topic + "-alone").send(b"x")
print("there", flush=True)
sys.stdin.read()
"""


@pytest.mark.standard
def test_a_killed_owner_leaves_the_partitioned_one(folder: Path, open_client: OpenClient) -> None:
    with ChildProcess(KILLED, folder) as child:
        assert child.line() == "there"
        child.kill()
    client = open_client()
    assert client.admin.topics.get_list() == PARTS[:2]
    producer = client.create_producer(TOPIC)
    consumer = client.subscribe(TOPIC, "s")
    producer.send(b"x")
    assert consumer.receive(60_000).data() == b"x"


def test_no_policy_of_its_own_is_kept_for_one_without_partitions(
    memory_client: pulsarx.Client,
) -> None:
    memory_client.admin.topics.create_non_partitioned_topic(TOPIC)
    with pytest.raises(errors.OperationNotSupported, match="set it on the namespace"):
        memory_client.admin.topics.set_subscription_types_enabled(TOPIC, ["Shared"])
    memory_client.admin.topics.create_partitioned_topic(f"{TOPIC}-parts", 1)
    memory_client.admin.topics.set_subscription_types_enabled(f"{TOPIC}-parts", ["Shared"])
    with pytest.raises(errors.NotAllowedError, match="subscription_types_enabled"):
        memory_client.subscribe(f"{TOPIC}-parts", "s", ConsumerType.Exclusive)


def test_deduplication_of_one_is_refused(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_partitioned_topic(TOPIC, 1)
    with pytest.raises(errors.OperationNotSupported, match="keeps no messages"):
        memory_client.admin.topics.set_deduplication(TOPIC, True)


def test_unloading_one_changes_nothing(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe(TOPIC, "s")
    memory_client.admin.topics.unload(TOPIC)
    memory_client.create_producer(TOPIC).send(b"x")
    assert texts(consumer) == ["x"]
    assert inspect(memory_client).topic(TOPIC).keeps_messages is False
