"""Facts about transactions in the admin REST API, in `client.admin` and in `/metrics`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from administered import Administered

import pulsarx
from pulsarx import errors
from pulsarx.admin import Admin
from pulsarx.clock import ManualClock

PATH = "//admin/v3/transactions"
TOPIC = "persistent://public/default/t"


@pytest.fixture
def clocked(
    open_administered: Callable[..., Administered], manual_clock: ManualClock
) -> Administered:
    return open_administered(manual_clock)


@pytest.fixture(params=["process", "http"])
def admin(request: pytest.FixtureRequest, clocked: Administered) -> Admin:
    return clocked.client.admin if request.param == "process" else Admin.at(clocked.url)


def opened(client: pulsarx.Client, *topics: str, **options: Any) -> pulsarx.Transaction:
    """A transaction with a message in each topic."""
    made = client.new_transaction(**options)
    for each in topics:
        client.create_producer(each).send(b"a", transaction=made)
    return made


def test_open_ones_are_listed_with_their_age_and_what_they_hold_back(
    clocked: Administered, admin: Admin, manual_clock: ManualClock
) -> None:
    client = clocked.client
    assert admin.transactions.get_transactions() == []
    first = opened(client, "t")
    manual_clock.advance(2.0)
    opened(client, "t", "u", timeout_millis=5000)
    with client.create_producer("t") as producer:
        producer.send_many([b"1", b"2", b"3"])
    manual_clock.advance(1.0)
    one, other = admin.transactions.get_transactions()
    assert (one["txn_id"], one["status"], one["age_ms"], one["timeout_at"]) == (
        "(0,0)", "OPEN", 3000, 60_000
    )  # fmt: skip
    assert one["held_messages"] == {TOPIC: 5}
    assert (other["age_ms"], other["timeout_at"]) == (1000, 5000)
    # On the first topic it waits itself.
    assert other["held_messages"] == {"persistent://public/default/u": 1}
    assert set(other["produced_partitions"]) == {TOPIC, "persistent://public/default/u"}
    first.commit()
    (left,) = admin.transactions.get_transactions()
    assert left["held_messages"][TOPIC] == 4


def test_one_is_shown_until_it_ends(clocked: Administered, admin: Admin) -> None:
    client = clocked.client
    client.create_producer("t").send(b"plain")
    made = opened(client, "t")
    with client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest) as consumer:
        consumer.acknowledge(consumer.receive(60_000), transaction=made)
        found = admin.transactions.get_transaction_metadata(*made.txn_id())
        stats = admin.transactions.get_pending_ack_stats("t", "s")
        with pytest.raises(errors.SubscriptionNotFound):
            admin.transactions.get_pending_ack_stats("t", "missing")
    assert stats == {"state": "Ready", "ongoing_txn_size": 1}
    assert found["produced_partitions"][TOPIC] == {"start_position": "2:1", "aborted": False}
    assert found["acked_partitions"] == {TOPIC: {"s": {}}}
    assert found.get("owner") is None
    made.commit()
    with pytest.raises(errors.TransactionNotFound, match=r"\(0,0\)"):
        admin.transactions.get_transaction_metadata(0, 0)
    with pytest.raises(errors.TransactionNotFound):
        admin.transactions.get_transaction_metadata(1, 0)


def test_slow_ones_are_those_with_a_longer_timeout(clocked: Administered, admin: Admin) -> None:
    """Whatever their age, as in Pulsar."""
    opened(clocked.client, timeout_millis=60_000)
    for timeout_ms, found in ((0, ["(0,0)"]), (59_999, ["(0,0)"]), (60_000, [])):
        assert list(admin.transactions.get_slow_transactions(timeout_ms)) == found


def test_one_is_aborted(clocked: Administered, admin: Admin) -> None:
    client = clocked.client
    made = opened(client, "t")
    reader = client.create_reader("t", pulsarx.MessageId.earliest)
    client.create_producer("t").send(b"plain")
    assert reader.read_many(10, 0) == []
    admin.transactions.abort_transaction(*made.txn_id())
    assert [each.data() for each in reader.read_many(10, 0)] == [b"plain"]
    with pytest.raises(errors.InvalidTxnStatusError):
        made.commit()
    with pytest.raises(errors.TransactionNotFound):
        admin.transactions.abort_transaction(*made.txn_id())


def test_the_coordinator_counts(clocked: Administered, admin: Admin) -> None:
    assert [each["id"] for each in admin.transactions.list_transaction_coordinators()] == [0]
    stats = admin.transactions.get_coordinator_stats()
    assert (stats[0]["least_sig_bits"], stats[0]["ongoing_txn_size"]) == (-1, 0)
    made = [clocked.client.new_transaction() for _ in range(4)]
    made[0].commit()
    made[1].abort()
    stats = admin.transactions.get_coordinator_stats()
    assert stats[0] == {
        "state": "Ready",
        "least_sig_bits": 3,
        "low_water_mark": 1,
        "ongoing_txn_size": 2,
        "created_count": 4,
        "committed_count": 1,
        "aborted_count": 1,
        "timeout_count": 0,
    }


def test_a_topic_tells_of_its_transactions(clocked: Administered, admin: Admin) -> None:
    client = clocked.client
    client.create_producer("t").send(b"plain")
    opened(client, "t").commit()
    opened(client, "t").abort()
    third = opened(client, "t")
    found = admin.transactions.get_transaction_buffer_stats("t")
    assert found == {
        "state": "Ready",
        "max_read_position": "2:1",
        "ongoing_txn_size": 1,
        "committed_txn_count": 1,
        "aborted_txn_count": 1,
        "held_messages": 1,
    }
    group = admin.transactions
    here = group.get_transaction_in_buffer_stats("t", *third.txn_id())
    assert here == {"start_position": "2:3", "aborted": False}
    gone = group.get_transaction_in_buffer_stats("t", 0, 1)
    assert (gone.get("start_position"), gone["aborted"]) == (None, True)
    for ask in (group.get_transaction_buffer_stats,):
        with pytest.raises(errors.TopicNotFound):
            ask("missing")


@pytest.mark.parametrize("beside", [False, True])
def test_statistics_of_topics_count_them(clocked: Administered, beside: bool) -> None:
    client = clocked.client
    client.admin.topics.create_partitioned_topic("parts", 2)
    for end in ("commit", "commit", "abort", ""):
        made = opened(client, "t")
        with client.create_producer("parts") as producer:
            for _ in range(2):
                producer.send(b"a", transaction=made)
        if end:
            getattr(made, end)()
    names = ("ongoing_txn_count", "aborted_txn_count", "committed_txn_count")
    for found in (
        client.admin.topics.stats("t"),
        Admin.at(clocked.url).topics.stats("t"),
    ):
        assert [found[each] for each in names] == [1, 1, 2]
    told = clocked.get("/persistent/public/default/t/stats")
    assert [told[each] for each in ("ongoingTxnCount", "abortedTxnCount", "committedTxnCount")] == [
        1, 1, 2
    ]  # fmt: skip
    whole = client.admin.topics.partitioned_stats("parts")
    assert [whole[each] for each in names] == [2, 2, 4]
    assert clocked.get("/persistent/public/default/parts/partitioned-stats")["ongoingTxnCount"] == 2


def test_statistics_of_topics_without_any_are_0(administered: Administered) -> None:
    client = administered.client
    client.create_producer("t")
    client.create_producer("non-persistent://public/default/n")
    for topic in ("persistent/public/default/t", "non-persistent/public/default/n"):
        found = administered.get(f"/{topic}/stats")
        assert (found["ongoingTxnCount"], found["abortedTxnCount"]) == (0, 0)


# HTTP ---------------------------------------------------------------------------------------------


def test_answers_are_those_of_pulsar(clocked: Administered) -> None:
    client = clocked.client
    made = opened(client, "t")
    found = clocked.get(f"{PATH}/transactionMetadata/0/0")
    assert found == {
        "txnId": "(0,0)",
        "status": "OPEN",
        "openTimestamp": found["openTimestamp"],
        "timeoutAt": 60_000,
        "producedPartitions": {TOPIC: {"startPosition": "2:0", "aborted": False}},
        "ackedPartitions": {},
    }
    assert clocked.get(f"{PATH}/slowTransactions/1000") == {"(0,0)": found}
    assert clocked.get(f"{PATH}/coordinatorStats?coordinatorId=0")["leastSigBits"] == 0
    assert clocked.get(f"{PATH}/coordinatorStats")["0"]["ongoingTxnSize"] == 1
    assert clocked.get(f"{PATH}/coordinators")[0]["id"] == 0
    place = f"{PATH}/transactionInBufferStats/public/default/t/0/0"
    assert clocked.get(place) == {"startPosition": "2:0", "aborted": False}
    assert clocked.get(f"{PATH}/transactionBufferStats/public/default/t")["ongoingTxnSize"] == 1
    assert clocked.ask("POST", f"{PATH}/abortTransaction/0/0").status == 204
    assert made.state() is pulsarx.TransactionState.OPEN  # until it is used again


def test_peeking_finds_what_was_committed(clocked: Administered) -> None:
    client = clocked.client
    client.subscribe("t", "s")
    for end in ("abort", "commit", ""):
        made = client.new_transaction()
        client.create_producer("t").send(end.encode() or b"open", transaction=made)
        if end:
            getattr(made, end)()
    place = "/persistent/public/default/t/subscription/s/position"
    found = clocked.ask("GET", f"{place}/1")
    assert (found.status, found.body) == (200, "commit")
    assert not [each for each in found.headers if "txn" in each.lower()]
    assert clocked.ask("GET", f"{place}/2").status == 404


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "transactionMetadata/0/7", 404),
        ("GET", "transactionMetadata/0/seven", 412),
        ("POST", "abortTransaction/0/7", 404),
        ("GET", "coordinatorStats?coordinatorId=3", 404),
        ("GET", "transactionBufferStats/public/default/missing", 404),
        ("GET", "transactionInBufferStats/public/default/missing/0/0", 404),
        ("GET", "coordinatorInternalStats/0", 405),
        ("GET", "transactionBufferInternalStats/public/default/t", 405),
        ("GET", "pendingAckInternalStats/public/default/t/s", 405),
        ("GET", "abortTransaction/0/7", 405),
    ],
)
def test_what_is_not_there_is_told_so(
    administered: Administered, method: str, path: str, status: int
) -> None:
    found = administered.ask(method, f"{PATH}/{path}")
    assert found.status == status
    assert found.body["reason"]


def test_there_is_one_coordinator(administered: Administered) -> None:
    path = f"{PATH}/transactionCoordinator/replicas"
    assert administered.ask("POST", path, 16).status == 406


# Metrics ------------------------------------------------------------------------------------------


def figures(administered: Administered) -> dict[str, float]:
    text = administered.get("//metrics")
    found = re.findall(r"^(pulsarx?_txn_\w+)\{[^}]*\} (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


def test_metrics_tell_of_the_coordinator_and_of_topics(
    clocked: Administered, manual_clock: ManualClock
) -> None:
    none = dict.fromkeys(figures(clocked), 0.0)
    assert figures(clocked) == none
    client = clocked.client
    opened(client, "t").commit()
    opened(client, "t").abort()
    opened(client, "t")
    client.create_producer("t").send(b"plain")
    manual_clock.advance(5.0)
    assert figures(clocked) == {
        "pulsar_txn_active_count": 1,
        "pulsarx_txn_oldest_age_seconds": 5,
        "pulsar_txn_created_total": 3,
        "pulsar_txn_committed_total": 1,
        "pulsar_txn_aborted_total": 1,
        "pulsar_txn_timeout_total": 0,
        "pulsar_txn_tb_active_total": 1,
        "pulsar_txn_tb_committed_total": 1,
        "pulsar_txn_tb_aborted_total": 1,
        "pulsarx_txn_held_messages": 2,
    }
    assert "# TYPE pulsar_txn_tb_active_total gauge" in clocked.get("//metrics")
