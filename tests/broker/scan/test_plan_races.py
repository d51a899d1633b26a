"""plan: what comes in between, places that are not there, and cuts that lose nothing."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from range_topics import FULL, Beside, publish, small_ledgers, values
from seeds import scaled
from support.clients import OpenClient, clients_of

import pulsarx
from pulsarx import errors
from pulsarx.broker.scan.ledger_range import LedgerRange
from pulsarx.broker.scan.plan import Planner, plan
from pulsarx.broker.scan.read_range import read_range
from pulsarx.testing import inspect


def ledger_of(client: pulsarx.Client) -> Any:
    inspect(client).settle()
    return inspect(client).ledger(FULL)


def remove(client: pulsarx.Client, count: int) -> None:
    ledger = ledger_of(client)
    ledger.remove([each.ledger_id for each in ledger.ledgers()][:count])


# What comes in between


def test_messages_published_between_start_and_end_are_no_error(
    client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
):
    """The end was settled first: a start that was "latest" could then lie behind it."""
    publish(client, 2)
    planner = Planner(inspect(client).broker, "t")
    resolve = planner.resolve

    def publishing(*arguments: Any, **options: Any) -> Any:
        found = resolve(*arguments, **options)
        publish(client, 2)
        return found

    monkeypatch.setattr(planner, "resolve", publishing)
    assert len(values(planner.plan("latest", "latest", ["value"]))) == 2


@pytest.mark.parametrize(("inside", "turn"), [(True, 1), (True, 2), (False, 1)])
def test_ledgers_removed_while_they_are_planned_are_a_loss(
    client: pulsarx.Client,
    beside: Beside,
    monkeypatch: pytest.MonkeyPatch,
    inside: bool,
    turn: int,
):
    """They were left out in silence, though the start had been checked."""
    sent = publish(client, 9)
    planner = Planner(inspect(client).broker if inside else beside(), "t")
    first = planner.plan()[0].ledger_id
    resolve = planner.resolve
    turns: list[int] = []

    def removing(*arguments: Any, **options: Any) -> Any:
        found = resolve(*arguments, **options)
        turns.append(1)
        if len(turns) == turn:
            remove(client, 1)
        return found

    monkeypatch.setattr(planner, "resolve", removing)
    with pytest.raises(errors.DataLossError, match="retention has removed"):
        planner.plan({FULL: (first, 1)})
    turns.clear()
    assert values(planner.plan("earliest", columns=["value"])) == sent[6:]


def test_the_owner_plans_while_it_trims(client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch):
    """A ledger gone between looking and opening came out as an error nobody knew."""
    sent = publish(client, 9)
    ledger = ledger_of(client)
    planner = Planner(inspect(client).broker, "t")
    make_span = type(ledger).make_span
    turns: list[int] = []

    def trimming(self: Any, record: Any) -> Any:
        if not turns:
            turns.append(1)
            remove(client, 1)
        return make_span(self, record)

    monkeypatch.setattr(type(ledger), "make_span", trimming)
    ranges = planner.plan(max_records_per_partition=1, columns=["value"])
    assert turns
    assert values(ranges) == sent[3:]


def test_planning_in_the_owner_while_it_publishes_and_trims(open_client: OpenClient):
    client = open_client(broker_options=small_ledgers())
    producer = client.create_producer("t", batching_enabled=False)
    stop = threading.Event()
    sent: list[bytes] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            while not stop.is_set() and len(sent) < 600:
                sent.append(b"%05d" % len(sent))
                producer.send(sent[-1])
                if len(sent) % 50 == 0:
                    remove(client, 3)
        except BaseException as error:  # shown below
            failures.append(error)

    producer.send(b"first")
    planner = Planner(inspect(client).broker, "t")
    thread = threading.Thread(target=run)
    thread.start()
    try:
        for _ in range(60):
            ranges = planner.plan(max_records_per_partition=2, columns=["value"])
            assert all(
                one.end_message == two.first_message or two.first_message == 0
                for one, two in itertools.pairwise(ranges)
            )
    finally:
        stop.set()
        thread.join()
    assert not failures


# Places that are not there


def test_ids_of_no_message_are_refused(client: pulsarx.Client):
    """Such an id was taken for the end of its entry or ledger, that of the end for the start."""
    publish(client, 8, batch=4)
    ledger_id = plan(inspect(client).broker, "t")[0].ledger_id
    for text in (f"{ledger_id}:7:-1:-1", f"{ledger_id}:0:-1:9"):
        with pytest.raises(errors.DataLossError, match="has no such message"):
            plan(inspect(client).broker, "t", {FULL: text})
        assert plan(inspect(client).broker, "t", {FULL: text}, fail_on_data_loss=False) is not None
    latest = pulsarx.MessageId.latest.to_text()
    with pytest.raises(ValueError, match="offset"):
        plan(inspect(client).broker, "t", f'{{"t": "{latest}"}}')


@pytest.mark.parametrize(
    "options", [{"max_bytes_per_partition": 0}, {"target_bytes": 0}, {"min_partitions": -1}]
)
def test_sizes_below_one_are_refused(client: pulsarx.Client, options: dict[str, int]):
    publish(client, 1)
    with pytest.raises(ValueError, match=next(iter(options))):
        plan(inspect(client).broker, "t", **options)


# Times


def test_batches_of_several_producers_are_not_in_order_of_time(open_client: OpenClient):
    """A batch bears the time of its first message: one sent later may bear an earlier time. What
    lay behind the first later one was left out."""
    clock = pulsarx.ManualClock()
    client = open_client(clock=clock)
    slow = client.create_producer("t", batching_enabled=True, batching_max_publish_delay_ms=60_000)
    fast = client.create_producer("t", batching_enabled=False)
    start_ms = clock.now_ms()
    slow.send_async(b"0", None)
    slow.send_async(b"0", None)
    clock.advance(5)
    fast.send(b"5")
    slow.flush()
    clock.advance(1)
    fast.send(b"6")
    for _ in range(2):
        for low in range(8):
            for high in range(low, 8):
                ranges = plan(
                    inspect(client).broker,
                    "t",
                    start_ms + low * 1000,
                    start_ms + high * 1000,
                    ["value"],
                )
                expected = [each for each in (b"5", b"0", b"0", b"6") if low <= int(each) < high]
                assert values(ranges) == expected
        assert (
            plan(inspect(client).broker, "t", start_ms + 7000)
            == plan(inspect(client).broker, "t", "earliest", start_ms)
            == []
        )
        client.close()  # the ledger is sealed, and its times are in the catalogue
        client = open_client(clock=clock)


# Without open ledgers


def test_sealed_ledgers_only(client: pulsarx.Client, beside: Beside):
    sent = publish(client, 8)
    ledger_of(client)
    for broker in (inspect(client).broker, beside()):
        planner = Planner(broker, "t", sealed_only=True)
        latest = planner.latest()
        assert values(planner.plan("earliest", latest, ["value"])) == sent[:6]
        assert values(plan(broker, "t", sealed_only=True, columns=["value"])) == sent[:6]
        assert planner.at_time(1 << 50) == latest
        assert planner.limit("earliest", max_messages=100) == latest
        beyond = Planner(broker, "t").latest()
        assert planner.plan(latest, beyond) == []
        with pytest.raises(ValueError, match="behind the end"):
            planner.plan(beyond)
    planner = Planner(inspect(client).broker, "t", sealed_only=True)
    place = planner.latest()
    publish(client, 2)
    ledger_of(client)
    assert len(values(planner.plan(place, planner.latest()))) == 3


# Cuts


@settings(max_examples=scaled(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    entries=st.lists(
        st.lists(st.integers(0, 3000), min_size=1, max_size=12), min_size=1, max_size=12
    ),
    ledger_entries=st.integers(1, 6),
    target=st.integers(1, 20_000),
    records=st.none() | st.integers(1, 20),
    least=st.integers(0, 30),
    low=st.integers(0, 200),
    high=st.integers(0, 200),
    sealed=st.booleans(),
    packed=st.booleans(),
)
@pytest.mark.standard
def test_cuts_leave_no_gap_and_no_overlap(
    tmp_path_factory: Any,
    entries: list[list[int]],
    ledger_entries: int,
    target: int,
    records: int | None,
    least: int,
    low: int,
    high: int,
    sealed: bool,
    packed: bool,
):
    folder: Path = tmp_path_factory.mktemp("cuts") / "data"
    with clients_of(folder) as make:
        client = make(broker_options=small_ledgers(ledger_entries))
        sent = []
        for at, sizes in enumerate(entries):
            kind = pulsarx.CompressionType.LZ4 if packed and at % 2 else None
            options = {} if kind is None else {"compression_type": kind}
            producer = client.create_producer("t", batching_enabled=len(sizes) > 1, **options)
            batch = [b"%06d" % (len(sent) + n) + b"x" * size for n, size in enumerate(sizes)]
            producer.send_many(batch)
            producer.close()
            sent += batch
        if sealed:
            client.close()
            client = make()
        planner = Planner(inspect(client).broker, "t")
        places = [
            (each.ledger_id, count)
            for each in planner.plan()
            for count in range(each.first_message + 1, each.end_message + 1)
        ]
        places.insert(0, (0, 0))
        low, high = sorted((low % len(places), high % len(places)))
        ranges = planner.plan(
            {FULL: places[low]},
            {FULL: places[high]},
            ["value"],
            target_bytes=target,
            max_records_per_partition=records,
            min_partitions=least,
        )
        assert values(ranges) == sent[low:high]
        assert all(each.message_count > 0 and each.size > 0 for each in ranges)
        if records is not None:
            assert all(each.message_count <= records for each in ranges)
        assert len(ranges) >= min(least, high - low)
        by_ledger: dict[int, list[LedgerRange]] = {}
        for each in ranges:
            by_ledger.setdefault(each.ledger_id, []).append(each)
        for parts in by_ledger.values():
            for one, two in itertools.pairwise(parts):
                assert one.end_message == two.first_message


def test_values_up_to_the_limit_of_a_message_and_a_batch(client: pulsarx.Client):
    """A batch is full with 8 MiB, and a message larger than that has its own."""
    producer = client.create_producer("t", batching_enabled=False)
    sent = [bytes([number]) * size for number, size in enumerate((4 << 20, 3 << 20, 2 << 20, 1))]
    for each in sent:
        producer.send(each)
    found = [
        pa.record_batch(batch).column("value").to_pylist()
        for each in plan(inspect(client).broker, "t", columns=["value"])
        for batch in read_range(each)
    ]
    assert [value for batch in found for value in batch] == sent
    assert all(sum(map(len, batch)) <= 8 << 20 or len(batch) == 1 for batch in found)
    whole = plan(inspect(client).broker, "t")
    keys = [len(b) for each in whole for b in read_range(each, ["__publishTime"], 65536, 1 << 20)]
    assert keys == [3, 1]  # what is not a column does not count


def test_a_range_of_the_open_ledger_holds_after_it_grew_and_was_sealed(
    client: pulsarx.Client, beside: Beside
):
    sent = publish(client, 2)
    ranges = plan(beside(), "t", columns=["value"])
    readers = [read_range(each) for each in ranges]
    publish(client, 9, batch=1)
    ledger_of(client)
    client.close()
    found = [pa.record_batch(b).column(0).to_pylist() for each in readers for b in each]
    assert [value for values_ in found for value in values_] == sent
    assert values(ranges) == sent
