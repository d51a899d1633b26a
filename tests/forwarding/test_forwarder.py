"""Facts about a forwarder: what arrives, and what it does when something cannot."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from forwarded import TOPIC, Centre, arrived, await_lag, await_stopped, payloads
from support.topics import backlog, filled
from support.waiting import wait_until

import pulsarx
from pulsarx import errors
from pulsarx.forwarding.positions import IN_CLUSTER, IN_FOLDER
from pulsarx.schema import AvroSchema, Integer, JsonSchema, Record, String, StringSchema
from pulsarx.server import serve

HOUR_MS = 3_600_000


class Reading(Record):  # type: ignore[misc]
    unit = String()
    value = Integer()


def test_all_that_a_message_has_arrives_in_order(edge: pulsarx.Client, centre: Centre) -> None:
    with edge.create_producer("t", batching_enabled=True) as producer:
        for number in range(300):
            producer.send_async(
                b"%d" % number if number % 50 else None,
                None,
                {"n": str(number)} if number % 3 else None,
                f"key-{number % 7}" if number % 5 else None,
                f"order-{number % 4}" if number % 2 else None,
                event_timestamp=number or None,
            )
    edge.create_producer("t").send(b"alone")
    with pulsarx.Forwarder(edge, centre.place, "t") as forwarder:
        status = await_lag(forwarder)
        edge.create_producer("t").send(b"later")
        wait_until(lambda: len(payloads(centre.client)) == 302)
    assert status == {
        "target": TOPIC, "state": "forwarding", "forwarded": 301, "last_error": None, "lag": 0,
    }  # fmt: skip

    def told(message: Any) -> tuple[Any, ...]:
        return (
            message.data(),
            message.has_null_value(),
            message.properties(),
            message.partition_key(),
            message.has_key(),
            message.ordering_key(),
            message.event_timestamp(),
            message.deliver_at(),
        )

    sent = [told(each) for each in arrived(edge)]
    assert len(sent) == 302
    assert [told(each) for each in arrived(centre.client)] == sent


def test_delays_are_kept_where_they_are_ahead(edge: pulsarx.Client, centre: Centre) -> None:
    ahead_ms = int(time.time() * 1000) + HOUR_MS
    producer = edge.create_producer("t")
    producer.send(b"now")
    producer.send(b"ahead", deliver_at=ahead_ms)
    producer.send(b"over", deliver_at=5)
    producer.send(b"last")
    with pulsarx.Forwarder(edge, centre.place, "t") as forwarder:
        await_lag(forwarder)
    found = [(each.data(), each.deliver_at()) for each in arrived(centre.client)]
    assert found == [(b"now", 0), (b"ahead", ahead_ms), (b"over", 0), (b"last", 0)]


def test_schemas_are_kept_by_version(edge: pulsarx.Client, centre: Centre) -> None:
    edge.create_producer("t").send(b"bytes")
    edge.create_producer("s", schema=StringSchema()).send("text")
    edge.create_producer("r", schema=AvroSchema(Reading)).send(Reading(unit="K", value=3))
    edge.create_producer("j", schema=JsonSchema(Reading)).send(Reading(unit="C", value=4))
    topics = {each: f"persistent://public/default/{each}" for each in "tsrj"}
    with pulsarx.Forwarder(edge, centre.place, list("tsrj")) as forwarder:
        for topic in topics.values():
            await_lag(forwarder, topic)
    kinds = {
        each: centre.client.admin.schemas.get_schema_info(each).schema_type().name for each in "srj"
    }
    assert kinds == {"s": "STRING", "r": "AVRO", "j": "JSON"}
    earliest = pulsarx.MessageId.earliest
    reader = centre.client.create_reader("r", earliest, schema=AvroSchema(Reading))
    assert reader.read_next().value().value == 3
    with pytest.raises(errors.TopicNotFound):
        centre.client.admin.schemas.get_schema_info("t")


def test_messages_of_two_schemas_follow_one_another(edge: pulsarx.Client, centre: Centre) -> None:
    plain, text = edge.create_producer("t"), edge.create_producer("t", schema=StringSchema())
    for number in range(3):
        plain.send(b"%d" % number)
        text.send(f"{number}s")
    with pulsarx.Forwarder(edge, centre.place, "t") as forwarder:
        await_lag(forwarder)
    found = [(each.data(), each.int_schema_version()) for each in arrived(centre.client)]
    assert found == [
        (b"0", -1), (b"0s", 0), (b"1", -1), (b"1s", 0), (b"2", -1), (b"2s", 0),
    ]  # fmt: skip


def test_a_pattern_follows_new_topics(edge: pulsarx.Client, centre: Centre) -> None:
    filled(edge, 2, "first")
    filled(edge, 1, "other")
    pattern = re.compile("persistent://public/default/f.*")
    with pulsarx.Forwarder(edge, centre.place, pattern) as forwarder:
        await_lag(forwarder, "persistent://public/default/first")
        filled(edge, 3, "further")
        await_lag(forwarder, "persistent://public/default/further")
        assert sorted(forwarder.status()) == [
            "persistent://public/default/first", "persistent://public/default/further",
        ]  # fmt: skip
    assert payloads(centre.client, "further") == [b"0", b"1", b"2"]
    assert "persistent://public/default/other" not in centre.client.admin.topics.get_list()


def test_a_topic_that_was_deleted_is_not_made_again(
    edge: pulsarx.Client, open_centre: Callable[..., Centre]
) -> None:
    filled(edge, 2, "first")
    centre = open_centre(False)
    name = "persistent://public/default/first"
    with pulsarx.Forwarder(edge, centre.place, re.compile("first")) as forwarder:
        await_lag(forwarder, name)
        edge.admin.topics.delete("first", force=True)
        wait_until(lambda: forwarder._links[name].is_gone)
        assert name not in edge.admin.topics.get_list()
        filled(edge, 1, "first", begin=7)
        wait_until(lambda: payloads(centre.client, "first") == [b"0", b"1", b"7"])


def test_a_partition_goes_to_the_partition_of_its_number(
    edge: pulsarx.Client, open_centre: Callable[..., Centre]
) -> None:
    centre = open_centre()
    edge.admin.topics.create_partitioned_topic("t", 3)
    with edge.create_producer("t") as producer:
        for number in range(30):
            producer.send(b"%d" % number, partition_key=f"key-{number % 10}")
    centre.client.admin.topics.create_partitioned_topic("t", 3)
    with pulsarx.Forwarder(edge, centre.place, "t") as forwarder:
        for index in range(3):
            await_lag(forwarder, f"{TOPIC}-partition-{index}")
    for index in range(3):
        name = f"t-partition-{index}"
        assert payloads(centre.client, name) == payloads(edge, name)


def test_a_target_that_can_be_administered_is_made_and_grows(
    edge: pulsarx.Client, open_centre: Callable[..., Centre]
) -> None:
    centre = open_centre(deduplicates=False)
    edge.admin.topics.create_partitioned_topic("t", 2)
    with pulsarx.Forwarder(edge, centre.place, "t", admin_url=centre.admin_url) as forwarder:
        await_lag(forwarder, f"{TOPIC}-partition-1")
        edge.admin.topics.update_partitioned_topic("t", 3)
        edge.create_producer("t-partition-2").send(b"new")
        await_lag(forwarder, f"{TOPIC}-partition-2")
    topics = centre.client.admin.topics
    assert topics.get_partitioned_topic_metadata("t") == {"partitions": 3}
    assert topics.get_deduplication("t") is True
    assert payloads(centre.client, "t-partition-2") == [b"new"]


@pytest.mark.parametrize("partitions", [0, 2, 4])
def test_a_target_of_other_partitions_is_refused(
    edge: pulsarx.Client, cluster: Centre, partitions: int
) -> None:
    edge.admin.topics.create_partitioned_topic("t", 3)
    if partitions:
        cluster.client.admin.topics.create_partitioned_topic("t", partitions)
    else:
        cluster.client.admin.topics.create_non_partitioned_topic("t")
    with pulsarx.Forwarder(edge, cluster.place, "t") as forwarder:
        told = await_stopped(forwarder, f"{TOPIC}-partition-0")
    assert f"{TOPIC} has {partitions} partitions, and the source has 3" in told


def test_what_cannot_be_forwarded_stops_its_topic_alone(
    edge: pulsarx.Client, cluster: Centre
) -> None:
    with edge.create_producer("t") as producer:
        first = producer.send(b"before")
        second = producer.new_message().key_bytes(b"\xff").value(b"of a key of bytes").send()
    assert first != second
    filled(edge, 3, "other")
    with pulsarx.Forwarder(edge, cluster.place, ["t", "other"]) as forwarder:
        await_lag(forwarder, "persistent://public/default/other")
        told = await_stopped(forwarder)
        assert forwarder.status()[TOPIC]["lag"] == 1
        assert not forwarder.wait(0)
    assert "its key is bytes" in told
    assert str(second) in told
    assert payloads(cluster.client) == [b"before"]
    assert payloads(cluster.client, "other") == [b"0", b"1", b"2"]


def test_what_is_in_front_of_a_refused_message_is_forwarded(
    edge: pulsarx.Client, cluster: Centre
) -> None:
    filled(edge, 1)
    with pulsarx.Forwarder(edge, cluster.place, "t") as forwarder:
        await_lag(forwarder)  # from now on batches are large
    filled(edge, 5, begin=1)
    edge.create_producer("t").new_message().key_bytes(b"\xff").value(b"refused").send()
    filled(edge, 2, begin=7)
    with pulsarx.Forwarder(edge, cluster.place, "t") as forwarder:
        await_stopped(forwarder)
        assert forwarder.status()[TOPIC]["lag"] == 3
    assert payloads(cluster.client) == [b"%d" % each for each in range(6)]


def test_a_message_that_is_too_large_for_the_target_stops_its_topic(
    edge: pulsarx.Client, open_centre: Callable[..., Centre]
) -> None:
    centre = open_centre()
    large = pulsarx.BrokerOptions(max_message_size=8 << 20)
    edge.shutdown()
    with pulsarx.Client(edge._url.text, durability="os", broker_options=large) as client:
        producer = client.create_producer("t", batching_enabled=True)
        producer.send(b"before")
        too_large = producer.send(b"x" * (6 << 20))
        producer.send(b"behind")
        with pulsarx.Forwarder(client, centre.place, "t") as forwarder:
            told = await_stopped(forwarder)
            assert forwarder.status()[TOPIC]["lag"] == 2
            assert forwarder.wait(60)  # there is no other topic
    assert told.startswith("MessageTooBig")
    assert str(too_large) in told
    assert payloads(centre.client) == [b"before"]


def test_a_batch_that_is_too_large_for_the_target_is_sent_in_parts(
    edge: pulsarx.Client, open_centre: Callable[..., Centre], tmp_path: Any
) -> None:
    pytest.importorskip("_pulsar")
    with edge.create_producer("t", batching_enabled=True) as producer:
        for number in range(100):
            producer.send_async(b"%d" % number * 3000, None)
    small = pulsarx.BrokerOptions(max_message_size=100_000)
    pulsarx.Client(tmp_path / "small", durability="os", broker_options=small).close()
    with pulsarx.Client(tmp_path / "small", durability="os", broker_options=small) as client:
        client.admin.namespaces.set_deduplication("public/default", True)
        with (
            serve(client, port=0) as service,
            pulsarx.Forwarder(edge, service.service_url, "t") as forwarder,
        ):
            await_lag(forwarder)
        assert payloads(client) == [b"%d" % each * 3000 for each in range(100)]


def test_a_schema_that_the_target_refuses_stops_its_topic(
    edge: pulsarx.Client, centre: Centre
) -> None:
    centre.client.create_producer("t", schema=JsonSchema(Reading))
    edge.create_producer("t", schema=StringSchema()).send("text")
    with pulsarx.Forwarder(edge, centre.place, "t") as forwarder:
        assert await_stopped(forwarder).startswith("IncompatibleSchema")


def test_what_was_stored_and_not_acknowledged_is_not_stored_again(
    edge: pulsarx.Client, centre: Centre
) -> None:
    filled(edge, 20)
    with pulsarx.Forwarder(edge, centre.place, "t") as forwarder:
        await_lag(forwarder)
    edge.admin.topics.reset_cursor("t", "forward", pulsarx.MessageId.earliest)
    assert backlog(edge, "forward") == 20  # as if it had been killed before it acknowledged
    with pulsarx.Forwarder(edge, centre.place, "t") as forwarder:
        assert await_lag(forwarder)["forwarded"] == 0
        filled(edge, 5, begin=20)
        wait_until(lambda: len(payloads(centre.client)) >= 25)
    assert payloads(centre.client) == [b"%d" % each for each in range(25)]


def test_another_target_than_before_is_refused(
    edge: pulsarx.Client, open_centre: Callable[..., Centre]
) -> None:
    filled(edge, 3)
    before, now = open_centre(True, "before"), open_centre(False, "now")
    with pulsarx.Forwarder(edge, before.place, "t") as forwarder:
        await_lag(forwarder)
    filled(edge, 2, begin=3)
    with pulsarx.Forwarder(edge, now.place, "t") as forwarder:
        told = await_stopped(forwarder)
        assert forwarder.status()[TOPIC]["lag"] == 2
    assert "the other side is folder" in told
    with pulsarx.Forwarder(edge, now.place, "t", accept_target=True) as forwarder:
        await_lag(forwarder)
    assert payloads(now.client) == [b"3", b"4"]
    with pulsarx.Forwarder(edge, now.place, "t") as forwarder:  # it is known by now
        filled(edge, 1, begin=5)
        wait_until(lambda: payloads(now.client) == [b"3", b"4", b"5"])
    with pulsarx.Forwarder(edge, now.place, "t", name="anew") as forwarder:
        wait_until(lambda: len(payloads(now.client)) == 9)


def test_a_target_that_does_not_deduplicate_is_refused(
    edge: pulsarx.Client, open_centre: Callable[..., Centre]
) -> None:
    centre = open_centre(deduplicates=False)
    filled(edge, 5)
    with pulsarx.Forwarder(edge, centre.place, "t") as forwarder:
        assert "does not deduplicate" in await_stopped(forwarder)
    assert payloads(centre.client) == [b"0"]
    with pulsarx.Forwarder(edge, centre.place, "t", at_least_once=True) as forwarder:
        await_lag(forwarder)
    assert payloads(centre.client) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_folder_is_made_to_deduplicate(
    edge: pulsarx.Client, open_centre: Callable[..., Centre]
) -> None:
    centre = open_centre(False, deduplicates=False)
    filled(edge, 5)
    with pulsarx.Forwarder(edge, centre.place, "t") as forwarder:
        await_lag(forwarder)
    assert centre.client.admin.topics.get_deduplication("t") is True


def test_batches_by_key_hold_one_key(edge: pulsarx.Client, centre: Centre) -> None:
    with edge.create_producer("t", batching_enabled=True) as producer:
        for key in "aabbba":
            producer.send_async(key.encode(), None, partition_key=key)
    by_key = pulsarx.BatchingType.KeyBased
    with pulsarx.Forwarder(edge, centre.place, "t", batching_type=by_key) as forwarder:
        await_lag(forwarder)
    entries: dict[tuple[int, int], set[str]] = {}
    for each in arrived(centre.client):
        place = (each.message_id().ledger_id(), each.message_id().entry_id())
        entries.setdefault(place, set()).add(each.partition_key())
    assert all(len(keys) == 1 for keys in entries.values())
    assert payloads(centre.client) == [b"a", b"a", b"b", b"b", b"b", b"a"]


def test_topics_go_into_another_namespace(edge: pulsarx.Client, centre: Centre) -> None:
    filled(edge, 2)
    admin = centre.client.admin
    admin.namespaces.create_namespace("public/device-7")
    admin.namespaces.set_deduplication("public/device-7", True)
    where: dict[str, Any] = {"target_namespace": "public/device-7"}
    with pulsarx.Forwarder(edge, centre.place, "t", **where) as forwarder:
        status = await_lag(forwarder)
    assert status["target"] == "persistent://public/device-7/t"
    assert payloads(centre.client, status["target"]) == [b"0", b"1"]


def test_a_target_that_was_away_gets_what_came_meanwhile(
    edge: pulsarx.Client, cluster: Centre
) -> None:
    filled(edge, 3)
    with pulsarx.Forwarder(edge, cluster.place, "t") as forwarder:
        await_lag(forwarder)
        port = cluster.leave()
        wait_until(lambda: forwarder.status()[TOPIC]["state"] == "waiting")
        filled(edge, 40, begin=3)
        cluster.serve(port)
        await_lag(forwarder)
        assert forwarder.status()[TOPIC]["last_error"] is None
    assert payloads(cluster.client) == [b"%d" % each for each in range(43)]


def test_a_target_that_is_away_from_the_start_is_waited_for(
    edge: pulsarx.Client, cluster: Centre
) -> None:
    filled(edge, 3)
    place, port = cluster.place, cluster.leave()
    quiet = pulsarx.FileLogger(pulsarx.LoggerLevel.Error, "/dev/null")
    with (
        pulsarx.Client(place, operation_timeout_seconds=1, logger=quiet) as target,
        pulsarx.Forwarder(edge, target, "t") as forwarder,
    ):
        wait_until(lambda: forwarder.status().get(TOPIC, {}).get("last_error"))
        assert forwarder.status()[TOPIC]["state"] == "waiting"
        assert forwarder.status()[TOPIC]["lag"] == 3
        cluster.serve(port)
        await_lag(forwarder)
    assert payloads(cluster.client) == [b"0", b"1", b"2"]


def test_stopping_does_not_wait_for_a_target_that_is_away(
    edge: pulsarx.Client, cluster: Centre
) -> None:
    filled(edge, 3)
    place = cluster.place
    with pulsarx.Forwarder(edge, place, "t") as forwarder:
        await_lag(forwarder)
        port = cluster.leave()
        wait_until(lambda: forwarder.status()[TOPIC]["state"] == "waiting")
        filled(edge, 2, begin=3)
    assert backlog(edge, "forward") == 2
    cluster.serve(port)
    with pulsarx.Forwarder(edge, place, "t") as forwarder:
        await_lag(forwarder)
    assert payloads(cluster.client) == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.long  # the official client may take a minute to connect anew
@pytest.mark.parametrize("direction", ["forward", "fetch"])
def test_a_network_that_breaks_loses_and_doubles_nothing(
    edge: pulsarx.Client, cluster: Centre, direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsarx.forwarding.link.MESSAGES_MAX", 20)
    places = [edge, cluster.place]
    source, target = edge, cluster.client
    if direction == "fetch":
        places.reverse()
        source, target = target, source
    count = 1000
    with source.create_producer("t", batching_enabled=True, batching_max_messages=7) as producer:
        for number in range(count):
            producer.send_async(b"%d" % number, None)
    with pulsarx.Forwarder(*places, "t") as forwarder:
        for wanted in range(0, count, count // 5):
            wait_until(partial(has_forwarded, forwarder, wanted))
            cluster.cut()
        wait_until(lambda: len(payloads(target)) >= count)
        # The official client sends an acknowledgement again that was lost with the next one.
        filled(source, 1, begin=count)
        wait_until(lambda: backlog(source, "forward") == 0)
    assert payloads(target) == [b"%d" % each for each in range(count + 1)]


def test_a_batch_that_was_stored_in_part_stops_its_topic_for_good(
    edge: pulsarx.Client, cluster: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(edge, 1)
    with pulsarx.Forwarder(edge, cluster.place, "t") as forwarder:
        await_lag(forwarder)  # from now on batches are large
    filled(edge, 5, begin=1)

    def without_the_first(target: Any, batch: Any, result: Any, native_id: Any) -> None:
        batch.answer = (result, native_id.batch_index() - 1)
        target._wake()

    with monkeypatch.context() as changed:
        changed.setattr("pulsarx.forwarding.target.ClusterTarget._told", without_the_first)
        with pulsarx.Forwarder(edge, cluster.place, "t") as forwarder:
            assert "the last 3 of 4 are stored" in await_stopped(forwarder)
    with pulsarx.Forwarder(edge, cluster.place, "t") as forwarder:
        assert "the last 3 of 4 are stored" in await_stopped(forwarder)
    with pulsarx.Forwarder(edge, cluster.place, "t", accept_target=True) as forwarder:
        await_lag(forwarder)


def test_two_forwarders_of_one_name_take_turns(
    edge: pulsarx.Client, open_centre: Callable[..., Centre]
) -> None:
    centre = open_centre(False)
    filled(edge, 3)
    with pulsarx.Forwarder(edge, centre.place, "t") as first:
        await_lag(first)
        with pulsarx.Forwarder(edge, centre.place, "t") as second:
            wait_until(lambda: second.status().get(TOPIC, {}).get("last_error"))
            assert second.status()[TOPIC]["last_error"].startswith("ConsumerBusy")
            first.stop()
            filled(edge, 3, begin=3)
            await_lag(second)
    assert payloads(centre.client) == [b"%d" % each for each in range(6)]


def test_an_encrypted_message_stops_its_topic(
    edge: pulsarx.Client, open_centre: Callable[..., Centre], tmp_path: Any
) -> None:
    pytest.importorskip("cryptography")
    from encryption_steps import encrypting, write_keys

    filled(edge, 3)
    encrypting(edge, write_keys(tmp_path)).send(b"secret")
    centre = open_centre(False)
    with pulsarx.Forwarder(edge, centre.place, "t") as forwarder:
        assert "is encrypted" in await_stopped(forwarder)
    assert payloads(centre.client) == [b"0", b"1", b"2"]


# Fetching -----------------------------------------------------------------------------------------


def test_what_a_cluster_has_is_fetched(edge: pulsarx.Client, cluster: Centre) -> None:
    with cluster.client.create_producer("t", batching_enabled=True) as producer:
        for number in range(200):
            producer.send_async(
                b"%d" % number if number % 50 else None,
                None,
                {"n": str(number)},
                f"key-{number % 7}",
                f"order-{number % 4}" if number % 2 else None,
                event_timestamp=number + 1,
            )
    cluster.client.create_producer("t", schema=StringSchema()).send("text")
    with pulsarx.Forwarder(cluster.place, edge, "t") as forwarder:
        wait_until(lambda: len(payloads(edge)) == 201)
        wait_until(lambda: backlog(cluster.client, "forward") == 0)
        assert forwarder.status()[TOPIC]["forwarded"] == 201
        assert forwarder.status()[TOPIC]["lag"] is None  # without an admin URL
        cluster.client.create_producer("t").send(b"later")
        wait_until(lambda: len(payloads(edge)) == 202)

    def told(message: Any) -> tuple[Any, ...]:
        return (
            message.data(), message.has_null_value(), message.properties(),
            message.partition_key(), message.ordering_key(), message.event_timestamp(),
            message.int_schema_version(),
        )  # fmt: skip

    sent = [told(each) for each in arrived(cluster.client)]
    assert [told(each) for each in arrived(edge)] == sent


def test_what_was_fetched_and_not_acknowledged_is_not_stored_again(
    edge: pulsarx.Client, cluster: Centre
) -> None:
    with cluster.client.create_producer("t", batching_enabled=True) as producer:
        for number in range(30):
            producer.send_async(b"%d" % number, None)
    with pulsarx.Forwarder(cluster.place, edge, "t") as forwarder:
        wait_until(lambda: len(payloads(edge)) == 30)
    cluster.client.admin.topics.reset_cursor("t", "forward", pulsarx.MessageId.earliest)
    filled(cluster.client, 3, begin=30)
    with pulsarx.Forwarder(cluster.place, edge, "t") as forwarder:
        wait_until(lambda: backlog(cluster.client, "forward") == 0)
        assert forwarder.status()[TOPIC]["forwarded"] == 3
    assert payloads(edge) == [b"%d" % each for each in range(33)]


def test_a_pattern_of_a_cluster_needs_its_admin_url(
    edge: pulsarx.Client, cluster: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsarx.forwarding.forwarder._CLUSTER_LOOK_SECONDS", 0.1)
    filled(cluster.client, 3)
    pattern = re.compile("public/default/.*")
    with pulsarx.Forwarder(cluster.place, edge, pattern) as forwarder:
        wait_until(forwarder.status)
        (status,) = forwarder.status().values()
        assert "give admin_url" in status["last_error"]
    with pulsarx.Forwarder(cluster.place, edge, pattern, admin_url=cluster.admin_url) as forwarder:
        await_lag(forwarder)
    assert payloads(edge) == [b"0", b"1", b"2"]


def test_fetching_from_another_cluster_than_before_is_refused(
    edge: pulsarx.Client, open_centre: Callable[..., Centre]
) -> None:
    before, now = open_centre(True, "before"), open_centre(True, "now")
    filled(before.client, 3)
    filled(now.client, 2, begin=5)
    with pulsarx.Forwarder(before.place, edge, "t") as forwarder:
        wait_until(lambda: len(payloads(edge)) == 3)
    with pulsarx.Forwarder(now.place, edge, "t") as forwarder:
        assert "the other side is url" in await_stopped(forwarder)
    with pulsarx.Forwarder(now.place, edge, "t", accept_target=True) as forwarder:
        wait_until(lambda: len(payloads(edge)) == 5)
    assert payloads(edge) == [b"0", b"1", b"2", b"5", b"6"]


# Arguments, and its life --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        (("a", "b", []), {}, ValueError),
        (("a", "b", "non-persistent://public/default/t"), {}, errors.OperationNotSupported),
        (("a", "b", "t-partition-1"), {}, ValueError),
        (("a", "b", "a/b/c/d/e"), {}, errors.InvalidTopicName),
        (("a", "b", "t"), {"name": ""}, errors.InvalidConfiguration),
        (("a", "b", "t"), {"target_namespace": "none"}, errors.InvalidTopicName),
        (("a", "b", "t"), {"compression_type": "LZ4"}, ValueError),
        (("pulsar://h:1", "pulsar://g:1", "t"), {}, errors.OperationNotSupported),
    ],
)
def test_what_cannot_be_is_refused(
    arguments: tuple[Any, ...], options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        pulsarx.Forwarder(*arguments, **options)


def test_a_folder_is_not_forwarded_to_itself(edge: pulsarx.Client) -> None:
    with pytest.raises(errors.NotAllowedError, match="same folder"):
        pulsarx.Forwarder(edge, edge._url.text, "t").start()


def test_it_is_started_once(edge: pulsarx.Client, open_centre: Callable[..., Centre]) -> None:
    forwarder = pulsarx.Forwarder(edge, open_centre(False).place, "t")
    with forwarder:
        assert not forwarder.wait(0)
        with pytest.raises(errors.NotAllowedError):
            forwarder.start()
    assert forwarder.wait(0)
    forwarder.stop()
    with pytest.raises(errors.NotAllowedError):
        forwarder.start()


def test_sequence_ids_grow_with_positions() -> None:
    made = pulsarx.MessageId
    places = [(0, 0, -1), (0, 0, 1), (0, 1, 0), (1, 0, -1), (1, 0, 3), (2, 5, 0)]
    for positions in (IN_FOLDER, IN_CLUSTER):
        found = [
            positions.sequence_of(made(-1, ledger, entry, index)) for ledger, entry, index in places
        ]
        assert found == sorted(set(found))
        assert found[-1] < 1 << 63
        for ledger, entry, index in ((1 << 30, 0, 0), (0, 1 << 20, 0), (0, 0, 1 << 18)):
            with pytest.raises(errors.OperationNotSupported, match="makes no sequence id"):
                positions.sequence_of(made(-1, ledger, entry, index))


def has_forwarded(forwarder: pulsarx.Forwarder, count: int) -> bool:
    return bool(forwarder.status().get(TOPIC, {}).get("forwarded", -1) >= count)
