"""What the page asks for beside the admin REST API, without a browser."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from administered import Administered, Reply
from encryption_steps import write_keys
from signing import SECRET_TEXT, token

import pulsarx
from pulsarx import ConsumerType
from pulsarx.access import AccessSettings
from pulsarx.clock import Deadline, ManualClock
from pulsarx.rest import console

ORDERS = "persistent://public/default/orders"
PLACE = "public/default"
Open = Callable[..., Administered]


def ask(administered: Administered, name: str, **query: object) -> Reply:
    given = {each.rstrip("_"): value for each, value in query.items()}
    return administered.ask("GET", f"//console/{name}?{urlencode(given)}")


def get(administered: Administered, name: str, **query: object) -> Any:
    reply = ask(administered, name, **query)
    assert reply.status == 200, reply
    return reply.body


def topics(administered: Administered, **query: object) -> list[str]:
    found = get(administered, "topics", namespace=PLACE, now="true", **query)
    return [each["topic"].rpartition("/")[2] for each in found["rows"]]


def publish(administered: Administered, topic: str, count: int, **more: Any) -> None:
    producer = administered.client.create_producer(topic)
    for number in range(count):
        producer.send(b"message %d" % number, **more)
    producer.close()


def behind(page: Any) -> str:
    return "+".join(map(str, page["next"]))


def data(page: Any) -> list[str]:
    return [base64.b64decode(each["data"]).decode() for each in page["messages"]]


# Topics -------------------------------------------------------------------------------------------


@pytest.fixture
def three(administered: Administered) -> Administered:
    """Topics a, b and c with backlogs of 1, 3 and 2; b alone is consumed."""
    for name, count in (("a", 1), ("b", 3), ("c", 2)):
        administered.client.subscribe(name, "s").close()
        publish(administered, name, count)
    administered.client.subscribe("b", "s")
    administered.client.admin.topics.create_non_partitioned_topic("empty")
    return administered


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["b", "c", "a", "empty"]),
        ({"reverse": "true"}, ["empty", "a", "c", "b"]),
        ({"sort": "name"}, ["a", "b", "c", "empty"]),
        ({"sort": "name", "reverse": "true"}, ["empty", "c", "b", "a"]),
        ({"sort": "consumers"}, ["b", "a", "c", "empty"]),
        ({"only": "backlog"}, ["b", "c", "a"]),
        ({"only": "stuck"}, ["c", "a"]),
        ({"filter": "EMP"}, ["empty"]),
        ({"limit": 2, "offset": 1}, ["c", "a"]),
        ({"offset": 10}, []),
    ],
)
def test_topics_are_sorted_filtered_and_paged(
    three: Administered, query: dict[str, object], found: list[str]
):
    assert topics(three, **query) == found


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"sort": "size"}, 412),
        ({"only": "all"}, 412),
        ({"limit": 0}, 412),
        ({"limit": 201}, 412),
        ({"limit": "x"}, 412),
        ({"namespace": "public/none"}, 404),
    ],
)
def test_what_cannot_be_listed_is_refused(
    three: Administered, query: dict[str, object], status: int
):
    assert ask(three, "topics", **query).status == status


def test_a_page_says_how_many_there_are(three: Administered):
    found = get(three, "topics", namespace=PLACE, only="backlog", limit=1)
    assert (found["topics"], found["found"], len(found["rows"])) == (4, 3, 1)
    assert found["sums"]["backlog"] == 6


def test_a_partitioned_topic_is_one_row_with_the_sum_of_its_partitions(administered: Administered):
    administered.client.admin.topics.create_partitioned_topic("parts", 3)
    administered.client.subscribe("parts", "s").close()
    publish(administered, "parts", 7)
    [row] = get(administered, "topics", namespace=PLACE)["rows"]
    assert row["topic"] == "persistent://public/default/parts"
    assert (row["partitions"], row["backlog"], row["subscriptions"]) == (3, 7, 1)
    found = get(administered, "topic", topic="parts")
    assert sum(each["backlog"] for each in found["partitions"]) == 7
    assert found["subscriptions"]["s"]["backlog"] == 7
    assert found["subscriptions"]["s"]["consumers"] == []
    assert found["subscriptions"]["s"]["points"][-1][1] == 7
    consumer = administered.client.subscribe("parts", "s", ConsumerType.Shared, consumer_name="c")
    consumer.receive()
    [one] = get(administered, "topic", topic="parts")["subscriptions"]["s"]["consumers"]
    assert (one["name"], one["unacked"] > 0, one["metadata"]) == ("c", True, {})


def test_rates_and_backlogs_are_remembered(open_administered: Open):
    clock = ManualClock(1_000_000)
    administered = open_administered(clock)
    administered.server._stop_looking()  # which would come in between
    administered.client.subscribe("orders", "billing").close()
    get(administered, "topics", namespace=PLACE, now="true")
    for _ in range(3):
        publish(administered, "orders", 20)
        clock.advance(10)
        [row] = get(administered, "topics", namespace=PLACE, now="true")["rows"]
        assert row["rate_in"] == 2
    assert [backlog for _, backlog in row["trend"]][-4:] == [0, 20, 40, 60]
    found = get(administered, "topic", topic="orders")
    assert [point[1:3] for point in found["points"]][-4:] == [[0, 0], [20, 2], [40, 2], [60, 2]]
    assert [point[1] for point in found["subscriptions"]["billing"]["points"]][-2:] == [40, 60]
    [row] = get(administered, "topics", namespace=PLACE, now="true")["rows"]
    assert row["rate_in"] == 2  # less than a second says nothing


def test_the_server_looks_by_itself(open_administered: Open):
    clock = ManualClock(1_000_000)
    administered = open_administered(clock)
    administered.client.subscribe("orders", "billing").close()
    sampler = administered.server.sampler
    pause = threading.Event()
    for backlog in (10, 20, 30):
        publish(administered, "orders", 10)
        deadline = Deadline(60_000)
        while all(point[1] != backlog for point in sampler.points(ORDERS, None, 0, 100)):
            assert not deadline.expired()
            clock.advance(1)
            pause.wait(0.005)
    assert {point[1] for point in sampler.points(ORDERS, None, 0, 100)} >= {10, 20, 30}


def test_what_nobody_looks_at_is_not_opened(open_administered: Open, tmp_path: Path):
    with pulsarx.Client(tmp_path / "events") as client:
        client.subscribe("orders", "billing").close()
        client.create_producer("orders").send(b"1")
    administered = open_administered(folder=tmp_path / "events")
    administered.server.sampler.look()
    opened = administered.server.broker.topics.open_topic
    assert opened(ORDERS) is None
    [row] = administered.server.sampler.rows()
    assert (row.backlog, row.stored > 0) == (None, True)
    [shown] = get(administered, "topics", namespace=PLACE)["rows"]
    assert shown["backlog"] == 1
    assert opened(ORDERS) is not None


def test_a_topic_that_cannot_be_opened_is_listed_with_the_reason(
    open_administered: Open, tmp_path: Path
):
    folder = tmp_path / "events"
    with pulsarx.Client(folder) as client:
        for name in ("bad", "good"):
            client.create_producer(name).send(b"the payload of " + name.encode())
    files = [each for each in folder.rglob("*.ledger") if b"payload of bad" in each.read_bytes()]
    for path in files:
        path.unlink()
        path.mkdir()
    administered = open_administered(folder=folder)
    rows = get(administered, "topics", namespace=PLACE, sort="name")["rows"]
    assert [row["backlog"] for row in rows] == [None, 0]
    assert str(files[0]) in rows[0]["flaw"]
    assert ask(administered, "topic", topic="bad").status == 500


# A topic ------------------------------------------------------------------------------------------


def test_a_topic_shows_subscriptions_consumers_and_permits(administered: Administered):
    consumer = administered.client.subscribe(
        "orders", "billing", ConsumerType.Shared, consumer_name="till", receiver_queue_size=10
    )
    publish(administered, "orders", 4)
    consumer.receive()
    found = get(administered, "topic", topic="orders")
    assert (found["messages"], found["terminated"], found["keeps"]) == (4, False, True)
    billing = found["subscriptions"]["billing"]
    assert (billing["type"], billing["backlog"], billing["durable"]) == ("Shared", 4, True)
    [one] = billing["consumers"]
    assert (one["name"], one["permits"], one["unacked"]) == ("till", 6, 4)
    assert ask(administered, "topic", topic="none").status == 404
    assert ask(administered, "topic").status == 412


def test_more_producers_and_consumers_than_are_named_are_counted(
    administered: Administered, monkeypatch: pytest.MonkeyPatch
):
    """The page counted those that it was told the names of."""
    monkeypatch.setattr(console, "_CONSUMERS_MAX", 2)
    kept: list[object] = [administered.client.create_producer("orders") for _ in range(3)]
    shared = ConsumerType.Shared
    kept += [administered.client.subscribe("orders", "billing", shared) for _ in range(4)]
    found = get(administered, "topic", topic=ORDERS)
    assert (len(found["producers"]), found["producer_count"]) == (2, 3)
    billing = found["subscriptions"]["billing"]
    assert (len(billing["consumers"]), billing["consumer_count"]) == (2, 4)


def test_keys_that_a_consumer_holds_back_are_shown(administered: Administered):
    one = administered.client.subscribe(
        "orders", "billing", ConsumerType.KeyShared, consumer_name="old"
    )
    for number in range(64):
        publish(administered, "orders", 1, partition_key=f"key-{number}")
    for _ in range(64):
        one.receive()
    # The second half of the hashes is another consumer's now.
    two = administered.client.subscribe(
        "orders", "billing", ConsumerType.KeyShared, consumer_name="new"
    )
    for number in range(64):
        publish(administered, "orders", 1, partition_key=f"key-{number}")
    with pytest.raises(pulsarx.Timeout):
        two.receive(0)
    billing = get(administered, "topic", topic="orders")["subscriptions"]["billing"]
    assert billing["keys_held_count"] == len(billing["keys_held"]) > 0
    assert {each["held_by"] for each in billing["keys_held"]} == {"old"}
    shares = [each["ranges"] for each in billing["consumers"]]
    assert sum(shares) == 1 and all(0 < each < 1 for each in shares)


def test_a_job_that_holds_ledgers_is_shown(administered: Administered):
    publish(administered, "orders", 5)
    ledgers = administered.client.admin.topics.stats("orders")["ledgers"]
    ids = [each["ledger_id"] for each in ledgers]
    arguments = {"job": "spark-stream-1", "ledgers": {"orders": ids}, "ttl_ms": 60_000}
    administered.server.perform("leases.set", arguments)
    [lease] = get(administered, "topic", topic="orders")["leases"]
    assert (lease["job"], lease["messages"]) == ("spark-stream-1", 5)
    administered.server.perform("leases.release", {"job": "spark-stream-1"})
    assert get(administered, "topic", topic="orders")["leases"] == []


# Messages -----------------------------------------------------------------------------------------


def test_messages_come_in_pages(administered: Administered):
    publish(administered, "orders", 7)
    page = get(administered, "messages", topic="orders", count=3)
    assert data(page) == ["message 0", "message 1", "message 2"]
    page = get(
        administered, "messages", topic="orders", count=3, from_="+".join(map(str, page["next"]))
    )
    assert data(page) == ["message 3", "message 4", "message 5"]
    page = get(
        administered, "messages", topic="orders", count=3, from_="+".join(map(str, page["next"]))
    )
    assert (data(page), page["next"]) == (["message 6"], None)


def test_messages_come_from_the_end_an_id_or_a_time_on(open_administered: Open):
    clock = ManualClock(1_000_000)
    administered = open_administered(clock)
    for _ in range(5):
        publish(administered, "orders", 1)
        clock.advance(1)
    page = get(administered, "messages", topic="orders", from_="latest", count=2)
    assert len(page["messages"]) == 2
    last = page["messages"][1]["message_id"]
    for begin in (last, last.rpartition(":")[0], "@1003500"):
        found = get(administered, "messages", topic="orders", from_=begin)["messages"]
        assert [each["message_id"] for each in found] == [last]
    assert get(administered, "messages", topic="orders", from_="@9999999999999")["messages"] == []


@pytest.mark.parametrize("begin", ["x", "@x", "1+x", "1:2:3:4:5:6", "-1+0"])
def test_a_position_that_is_none_is_refused(administered: Administered, begin: str):
    publish(administered, "orders", 1)
    assert ask(administered, "messages", topic="orders", from_=begin).status == 412


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("AGE 2", ["message 2"]),
        ("colour=r", ["message 3"]),
        ("customer-9", ["message 4"]),
        ("<b>", ["message 5"]),
        ("nothing", []),
    ],
)
def test_messages_are_searched_by_value_properties_and_key(
    administered: Administered, text: str, found: list[str]
):
    producer = administered.client.create_producer("orders")
    more: list[dict[str, Any]] = [{} for _ in range(6)]
    more[3] = {"properties": {"colour": "red"}}
    more[4] = {"partition_key": "customer-9"}
    more[5] = {"properties": {"html": "<b>"}}
    for number, each in enumerate(more):
        producer.send(b"message %d" % number, **each)
    page = get(administered, "messages", topic="orders", text=text)
    assert (data(page), page["examined"], page["next"]) == (found, 6, None)


def test_what_a_subscription_has_not_acknowledged_is_shown(administered: Administered):
    consumer = administered.client.subscribe("orders", "billing", ConsumerType.Shared)
    publish(administered, "orders", 4)
    received = [consumer.receive() for _ in range(4)]
    for each in (received[0], received[2]):
        consumer.acknowledge(each)
    page = get(administered, "messages", topic="orders", subscription="billing")
    assert data(page) == ["message 1", "message 3"]
    assert ask(administered, "messages", topic="orders", subscription="none").status == 404


def test_a_long_value_is_cut_unless_it_is_asked_for_alone(administered: Administered):
    administered.client.create_producer("orders").send(b"x" * 100_000)
    [cut] = get(administered, "messages", topic="orders")["messages"]
    assert (len(base64.b64decode(cut["data"])), cut["size"]) == (4096, 100_000)
    begin = "+".join(map(str, cut["place"]))
    [whole] = get(administered, "messages", topic="orders", from_=begin, count=1)["messages"]
    assert len(base64.b64decode(whole["data"])) == 100_000


def test_damaged_messages_are_shown_as_such(open_administered: Open, tmp_path: Path):
    folder = tmp_path / "events"
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("orders")
        for payload in (b"first", b"second", b"third"):
            producer.send(payload)
    [path] = [
        each for each in folder.rglob("*") if each.is_file() and b"second" in each.read_bytes()
    ]
    path.write_bytes(path.read_bytes().replace(b"second", b"secont"))
    administered = open_administered(folder=folder)
    for count in (50, 2):
        page = get(administered, "messages", topic="orders", count=count)
        found = page["messages"]
        assert [each.get("damage") is not None for each in found] == [False, True, False]
        assert "ledger" in found[1]["damage"]


def test_encrypted_messages_show_their_keys_and_no_value(
    administered: Administered, tmp_path: Path
):
    keys = write_keys(tmp_path / "k")
    producer = administered.client.create_producer(
        "orders", encryption_key="alice", crypto_key_reader=keys, batching_enabled=True
    )
    producer.send_async(b"secret", None)
    producer.send_async(b"secret too", None)
    producer.flush()
    [found] = get(administered, "messages", topic="orders")["messages"]
    assert (found["encrypted"], found["messages"]) == (["alice"], 2)
    assert found["data"] == ""
    assert get(administered, "messages", topic="orders", text="secret")["messages"] == []


def test_messages_in_chunks_are_one_each_in_any_page(administered: Administered):
    producer = administered.client.create_producer("orders", chunking_enabled=True)
    producer.send(b"small")
    producer.send(b"x" * (12 << 20))
    producer.send(b"last")
    found, begin = [], "earliest"
    for _ in range(3):
        page = get(administered, "messages", topic="orders", count=2, from_=begin)
        found += [each["size"] for each in page["messages"]]
        if page["next"] is None:
            break
        begin = behind(page)
    assert found == [5, 12 << 20, 4]


def test_a_message_without_a_value_says_so(administered: Administered):
    administered.client.create_producer("orders").send(None, partition_key="k")
    [found] = get(administered, "messages", topic="orders")["messages"]
    assert found["data"] is None


# Dead letters -------------------------------------------------------------------------------------


def replay(administered: Administered, headers: Any = None, **more: object) -> Reply:
    body = {"topic": "orders", "subscription": "billing", **more}
    return administered.ask("POST", "//console/replay", body, headers=headers)


def test_dead_letters_are_replayed_once(administered: Administered):
    consumer = administered.client.subscribe("orders", "audit")
    publish(administered, "orders-billing-DLQ", 3, properties={"REAL_TOPIC": ORDERS, "a": "b"})
    reply = replay(administered, count=2)
    assert (reply.status, reply.body["replayed"], reply.body["more"]) == (200, {ORDERS: 2}, True)
    assert replay(administered).body == {
        "replayed": {ORDERS: 1}, "damage": [], "more": False, "stopped": None,
    }  # fmt: skip
    assert replay(administered).body["replayed"] == {}
    received = [consumer.receive(0) for _ in range(3)]
    assert [each.data() for each in received] == [b"message 0", b"message 1", b"message 2"]
    assert received[0].properties() == {"a": "b"}


def test_what_was_replayed_before_a_letter_that_cannot_be_is_told(administered: Administered):
    """It was refused as a whole, though some were published again."""
    consumer = administered.client.subscribe("orders", "audit")
    gone = {"REAL_TOPIC": "persistent://public/default/gone"}
    publish(administered, "orders-billing-DLQ", 2, properties={"REAL_TOPIC": ORDERS})
    publish(administered, "orders-billing-DLQ", 1, properties=gone)
    publish(administered, "orders-billing-DLQ", 1, properties={"REAL_TOPIC": ORDERS})
    reply = replay(administered)
    assert (reply.status, reply.body["replayed"], reply.body["more"]) == (200, {ORDERS: 2}, True)
    assert gone["REAL_TOPIC"] in reply.body["stopped"]
    assert replay(administered).status == 404
    administered.client.admin.topics.create_non_partitioned_topic("gone")
    assert replay(administered).body["replayed"] == {gone["REAL_TOPIC"]: 1, ORDERS: 1}
    assert len([consumer.receive(0) for _ in range(3)]) == 3
    with pytest.raises(pulsarx.Timeout):
        consumer.receive(0)


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"topic": ""}, 400),
        ({"subscription": 1}, 400),
        ({"count": 0}, 412),
        ({"count": 1001}, 412),
        ({"count": "x"}, 400),
        ({"dlq": "none"}, 404),
        ({"dlq": "orders"}, 412),  # to itself
    ],
)
def test_what_cannot_be_replayed_is_refused(
    administered: Administered, more: dict[str, object], status: int
):
    publish(administered, "orders", 1)
    assert replay(administered, **more).status == status
    assert administered.client.admin.topics.stats("orders")["messages"] == 1


# Who may ------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(open_administered: Open) -> Administered:
    """alice may produce in the namespace and bob consume, carol consume `orders` alone."""
    access = AccessSettings(token_secret_key=SECRET_TEXT, superuser_roles=["admin"])
    found = open_administered(access=access)
    publish(found, "orders", 1)
    publish(found, "orders-billing-DLQ", 1, properties={"REAL_TOPIC": ORDERS})
    namespaces = found.client.admin.namespaces
    namespaces.grant_permission_on_namespace(PLACE, "alice", ["produce"])
    namespaces.grant_permission_on_namespace(PLACE, "bob", ["consume"])
    found.client.admin.topics.grant_permission(ORDERS, "carol", ["consume"])
    return found


def bearer(role: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(role)}"}


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("topics?namespace=public/default", "admin alice bob"),
        ("topic?topic=orders", "admin alice bob carol"),
        ("messages?topic=orders", "admin bob carol"),
    ],
)
def test_a_role_sees_what_it_may(guarded: Administered, path: str, allowed: str):
    for role in ("admin", "alice", "bob", "carol", "eve"):
        reply = guarded.ask("GET", f"//console/{path}", headers=bearer(role))
        assert reply.status == (200 if role in allowed.split() else 403), role
        assert reply.status == 200 or f"role {role} may not" in reply.body["reason"]
    assert guarded.ask("GET", f"//console/{path}").status == 401


def test_a_role_is_told_the_namespaces_it_may_look_into(guarded: Administered):
    everything = [PLACE, "pulsar/system"]
    for role, found in (("admin", everything), ("bob", [PLACE]), ("carol", []), ("eve", [])):
        reply = guarded.ask("GET", "//console/overview", headers=bearer(role))
        assert (reply.body["role"], reply.body["namespaces"]) == (role, found)
        assert guarded.ask("GET", "//console/topics", headers=bearer(role)).body["topics"] == (
            2 if found else 0
        )


def test_replaying_wants_to_consume_the_letters_and_to_produce_where_they_go(
    guarded: Administered,
):
    for role in ("alice", "bob", "carol"):
        assert replay(guarded, bearer(role)).status == 403, role
    assert guarded.client.admin.topics.stats("orders")["messages"] == 1
    assert replay(guarded, bearer("admin")).body["replayed"] == {ORDERS: 1}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Host": "evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize("path", ["overview", "topics", "messages?topic=orders", "replay"])
def test_pages_of_others_are_not_heard(
    administered: Administered, path: str, headers: dict[str, str]
):
    method = "POST" if path == "replay" else "GET"
    assert administered.ask(method, f"//console/{path}", headers=headers).status == 403


def test_names_with_anything_in_them_are_found(administered: Administered):
    for name in ('<b onclick="x">', "b?c&d=e#f %2F", "é\u202e"):
        publish(administered, name, 1)
        full = f"persistent://public/default/{name}"
        assert get(administered, "topic", topic=full)["topic"] == full
        assert administered.ask("GET", f"//console/messages?topic={quote(full)}").status == 200
