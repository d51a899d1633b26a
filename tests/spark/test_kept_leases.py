"""The lease of a read: the driver keeps it while Spark can read under it, then gives it back."""

from __future__ import annotations

import contextlib
import gc
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.waiting import wait_until

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from spark_steps import PREFIX, read, send

import pulsarx
from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.broker.scan import lease as leases
from pulsarx.broker.scan.lease import release_lease
from pulsarx.clock import wall_ms
from pulsarx.spark import (
    lease_keeper,
    map_topic,
    plan_topic,
    read_partitions,
    read_topic,
    topic_rdd,
)
from pulsarx.spark.data_source import PulsarxDataSource
from pulsarx.spark.lease_keeper import LeaseKeeper
from pulsarx.spark.partition_reader import _text_of
from pulsarx.spark.topic_plan import given_back_on_error
from pulsarx.testing import inspect

T = PREFIX + "t"
TWO_A_LEDGER = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)


def open_owner(folder: Path, **options: Any) -> pulsarx.Client:
    return pulsarx.Client(folder, durability="os", broker_options=TWO_A_LEDGER, **options)


@pytest.fixture
def topic(folder: Path) -> Path:
    """Ten messages in several ledgers, which a subscription holds."""
    with open_owner(folder) as client:
        client.subscribe("t", "s").close()
        for number in range(10):
            send(client, "t", [b"%d" % number])
    return folder


@pytest.fixture(params=["an owner", "none"])
def owned(request: pytest.FixtureRequest, topic: Path) -> Iterator[Path]:
    """The topic, beside an owner and without one."""
    with open_owner(topic) if request.param == "an owner" else contextlib.nullcontext():
        yield topic


def leases_of(folder: Path) -> dict[str, Any]:
    broker = ReadOnlyBroker(str(folder))
    found = dict(broker.catalogue.state.leases)
    broker.close()
    return found


class Quiet(LeaseKeeper):
    """Looks when the test says."""

    def _run(self, wake: threading.Event) -> None:
        pass


@pytest.fixture
def clock() -> pulsarx.ManualClock:
    return pulsarx.ManualClock()


@pytest.fixture
def keeper(clock: pulsarx.ManualClock, monkeypatch: pytest.MonkeyPatch) -> LeaseKeeper:
    """That of this process, on the clock of the test."""
    made = Quiet(clock)
    monkeypatch.setattr(lease_keeper, "keeper", made)
    return made


# Without Spark ------------------------------------------------------------------------------------


def test_a_lease_is_renewed_while_something_is_left_and_then_given_back(
    topic: Path, clock: pulsarx.ManualClock, keeper: LeaseKeeper
) -> None:
    """Only tasks renewed it, so it was over when nothing was read for an hour."""
    left = [True]
    with open_owner(topic, clock=clock) as client:
        groups = plan_topic(topic, "t", lease_ms=60_000)
        keeper.keep(groups, lambda: left[0])
        client.subscribe("t", "s").unsubscribe()
        for _ in range(600):
            clock.advance(10)
            keeper.look()
        (lease,) = leases_of(topic).values()
        assert lease.expires_ms > clock.now_ms()
        assert plan_topic(topic, "t", lease_ms=0)[0][0].first_message == 0
        left[0] = False
        keeper.look()
        assert not leases_of(topic)
        keeper.look()


def test_what_has_no_lease_is_not_kept(topic: Path, keeper: LeaseKeeper) -> None:
    keeper.keep(plan_topic(topic, "t", lease_ms=0), lambda: False)
    keeper.keep([], lambda: False)
    assert keeper._kept == []


def test_a_lease_that_was_over_is_taken_again_as_a_whole(
    topic: Path, clock: pulsarx.ManualClock, keeper: LeaseKeeper
) -> None:
    """As where the host of the driver slept."""
    with open_owner(topic, clock=clock):
        groups = plan_topic(topic, "t", lease_ms=60_000)
        keeper.keep(groups, lambda: True)
        clock.advance(3600)
        keeper.look()
        (lease,) = leases_of(topic).values()
        assert lease.expires_ms == clock.now_ms() + 60_000
        assert lease.job == (groups[0][0].lease or ("",))[0]
        first = groups[0][0].ledger_id
        assert lease.ledgers == {T: [[first, first]]}


def test_a_renewal_that_fails_is_told_once_and_tried_again(
    topic: Path,
    clock: pulsarx.ManualClock,
    keeper: LeaseKeeper,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise errors.FolderOwnedError(detail="nobody answers")

    with open_owner(topic, clock=clock):
        keeper.keep(plan_topic(topic, "t", lease_ms=60_000), lambda: True)
        with monkeypatch.context() as patch:
            patch.setattr(leases, "ask_owner", refuse)
            for _ in range(5):
                clock.advance(10)
                keeper.look()
        assert caplog.text.count("is not renewed by the driver: Pulsar error") == 1
        clock.advance(5)
        keeper.look()
        assert next(iter(leases_of(topic).values())).expires_ms == clock.now_ms() + 60_000


def test_a_lease_that_cannot_be_given_back_ends_by_itself(
    topic: Path, keeper: LeaseKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper.keep(plan_topic(topic, "t"), lambda: False)
    moved = topic.rename(topic.with_name("moved"))
    keeper.look()
    assert keeper._kept == [] and len(leases_of(moved)) == 1


def test_each_of_two_reads_of_other_ledgers_has_its_own_lease(
    owned: Path, keeper: LeaseKeeper
) -> None:
    left = {"earliest": True, "where": True}
    whole = plan_topic(owned, "t")
    keeper.keep(whole, lambda: left["earliest"])
    (one,) = leases_of(owned)
    behind = whole[0][1].ledger_id if len(whole[0]) > 1 else whole[1][0].ledger_id
    keeper.keep(plan_topic(owned, "t", where=f"__ledgerId >= {behind}"), lambda: left["where"])
    (two,) = set(leases_of(owned)) - {one}
    left["earliest"] = False
    keeper.look()
    assert list(leases_of(owned)) == [two]
    keeper.release_all()
    assert not leases_of(owned)


def commits(folder: Path) -> int:
    broker = ReadOnlyBroker(str(folder))
    found = broker.catalogue.state.number
    broker.close()
    return found


def jobs(groups: list[list[Any]]) -> set[str]:
    return {each.lease[0] for group in groups for each in group}


def test_reads_of_the_same_ledgers_share_a_lease(
    topic: Path, clock: pulsarx.ManualClock, keeper: LeaseKeeper
) -> None:
    """Each wrote one of its own, which was two thirds of the time of its plan; a notebook that
    asked again and again had hundreds of them."""
    left = [True, True, True]
    with open_owner(topic, clock=clock):
        first = plan_topic(topic, "t", lease_ms=60_000)
        keeper.keep(first, lambda: left[0])
        for number in (1, 2):
            before = commits(topic)
            groups = plan_topic(topic, "t", lease_ms=60_000)
            assert jobs(groups) == jobs(first) and groups == first
            keeper.keep(groups, lambda number=number: left[number])  # type: ignore[misc]
            assert commits(topic) == before
        for number in range(3):
            assert set(leases_of(topic)) == jobs(first)
            left[number] = False
            keeper.look()
        assert not leases_of(topic)


def test_a_plan_that_joins_is_spared_as_long_as_by_a_lease_of_its_own(
    topic: Path, clock: pulsarx.ManualClock, keeper: LeaseKeeper
) -> None:
    with open_owner(topic, clock=clock):
        first = plan_topic(topic, "t", lease_ms=60_000)
        keeper.keep(first, lambda: False)
        written = []
        for _ in range(8):
            clock.advance(5)
            before = commits(topic)
            groups = plan_topic(topic, "t", lease_ms=60_000)
            assert jobs(groups) == jobs(first)
            (lease,) = leases_of(topic).values()
            assert 60_000 <= lease.expires_ms - clock.now_ms() <= 75_000
            assert groups[0][0].lease is not None and groups[0][0].lease[2] == lease.expires_ms
            written.append(commits(topic) - before)
        assert written == [1, 0, 0, 0, 1, 0, 0, 0]  # a quarter longer, for those that come soon
        # Nobody has it kept: it is spared for what was promised, and no longer.
        clock.advance(59)
        keeper.look()
        assert set(leases_of(topic)) == jobs(first)
        clock.advance(2)
        keeper.look()
        assert not leases_of(topic)


def test_a_plan_that_joined_and_failed_leaves_the_lease_to_the_others(
    topic: Path, clock: pulsarx.ManualClock, keeper: LeaseKeeper
) -> None:
    left = [True]
    with open_owner(topic, clock=clock):
        keeper.keep(plan_topic(topic, "t", lease_ms=60_000), lambda: left[0])
        groups = plan_topic(topic, "t", lease_ms=60_000)
        with pytest.raises(KeyboardInterrupt), given_back_on_error(groups):
            raise KeyboardInterrupt
        assert len(leases_of(topic)) == 1
        left[0] = False
        keeper.look()
        assert not leases_of(topic)


def test_a_lease_is_joined_only_where_it_is_one_for_all_that_is_planned(
    topic: Path, clock: pulsarx.ManualClock, keeper: LeaseKeeper
) -> None:
    with open_owner(topic, clock=clock) as client:
        first = plan_topic(topic, "t", lease_ms=60_000)
        keeper.keep(first, lambda: True)
        assert jobs(plan_topic(topic, "t", lease_ms=59_000)) != jobs(first)
        for number in range(4):  # ledgers that it does not have
            send(client, "t", [b"%d" % number])
        second = plan_topic(topic, "t", lease_ms=60_000)
        assert jobs(second) != jobs(first)
        keeper.keep(second, lambda: True)
        (job,) = jobs(second)
        assert release_lease(topic, job)  # by hand
        third = plan_topic(topic, "t", lease_ms=60_000)
        assert not jobs(third) & (jobs(first) | jobs(second))
        keeper.keep(third, lambda: True)
        clock.advance(60)  # it is over, and nobody has looked
        assert not jobs(plan_topic(topic, "t", lease_ms=60_000)) & jobs(third)


def test_a_lease_that_cannot_be_made_longer_is_not_joined(
    topic: Path,
    clock: pulsarx.ManualClock,
    keeper: LeaseKeeper,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, **__: Any) -> int:
        raise errors.NotAllowedError(detail="it is over")

    with open_owner(topic, clock=clock):
        first = plan_topic(topic, "t", lease_ms=60_000)
        keeper.keep(first, lambda: False)
        clock.advance(1)
        with monkeypatch.context() as patch:
            patch.setattr(lease_keeper, "renew_lease", refuse)
            second = plan_topic(topic, "t", lease_ms=60_000)
        assert not jobs(second) & jobs(first)
        keeper.look()
        assert set(leases_of(topic)) == jobs(second)  # the other one is held by nobody


def test_what_one_keeps_is_not_taken_from_those_that_joined_later(
    topic: Path, clock: pulsarx.ManualClock, keeper: LeaseKeeper
) -> None:
    """The lease was given back when it was over for the plan that joined first."""
    left = [True]
    with open_owner(topic, clock=clock):
        keeper.keep(plan_topic(topic, "t", lease_ms=60_000), lambda: left[0])
        second = plan_topic(topic, "t", lease_ms=60_000)
        clock.advance(50)
        third = plan_topic(topic, "t", lease_ms=60_000)
        assert jobs(second) == jobs(third)
        keeper.keep(second, lambda: left[0])
        left[0] = False
        clock.advance(11)  # the third is promised another 49 s
        keeper.look()
        assert set(leases_of(topic)) == jobs(third)
        keeper.keep(third, lambda: left[0])
        keeper.look()
        assert not leases_of(topic)


@pytest.mark.parametrize("joins", [False, True])
def test_a_read_that_is_kept_and_then_fails_takes_nothing_from_others(
    topic: Path, clock: pulsarx.ManualClock, keeper: LeaseKeeper, joins: bool
) -> None:
    """As with Ctrl-C in the last line of `keep`, or behind it: what another thread had joined was
    let go in its place."""
    with open_owner(topic, clock=clock):
        if joins:
            keeper.keep(plan_topic(topic, "t", lease_ms=60_000), lambda: False)
        first = plan_topic(topic, "t", lease_ms=60_000)
        with pytest.raises(KeyboardInterrupt), given_back_on_error(first):
            keeper.keep(first, lambda: False)
            other = plan_topic(topic, "t", lease_ms=60_000)  # of another thread
            raise KeyboardInterrupt
        assert jobs(other) == jobs(first)
        keeper.look()
        assert set(leases_of(topic)) == jobs(other)
        keeper.keep(other, lambda: False)
        keeper.look()
        assert not leases_of(topic)


def test_what_is_planned_and_not_kept_is_spared_when_the_driver_ends(
    topic: Path, clock: pulsarx.ManualClock, keeper: LeaseKeeper
) -> None:
    """As `plan_topic` for another process: alone it has a lease that lasts, and lost it where it
    had joined one."""
    with open_owner(topic, clock=clock):
        keeper.keep(plan_topic(topic, "t", lease_ms=60_000), lambda: True)
        groups = plan_topic(topic, "t", lease_ms=60_000)
        assert pickle.loads(pickle.dumps(groups)) == groups
        keeper.release_all()
        assert set(leases_of(topic)) == jobs(groups)
        clock.advance(61)
        keeper.release_all()
        assert not leases_of(topic)


def test_a_lease_that_is_kept_late_is_renewed_before_it_is_over(
    topic: Path, clock: pulsarx.ManualClock, keeper: LeaseKeeper
) -> None:
    """Where Spark takes long to make the frame: the first renewal came a third behind that."""
    with open_owner(topic, clock=clock):
        groups = plan_topic(topic, "t", lease_ms=60_000)
        clock.advance(50)
        keeper.keep(groups, lambda: True)
        for _ in range(30):
            keeper.look()
            (lease,) = leases_of(topic).values()
            assert lease.expires_ms > clock.now_ms()
            clock.advance(1)


def test_a_lease_that_is_given_back_while_it_is_renewed_is_not_taken_again(
    topic: Path,
    clock: pulsarx.ManualClock,
    keeper: LeaseKeeper,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where the driver ends meanwhile: it stayed for an hour."""

    def renew(*arguments: Any, **options: Any) -> int:
        keeper.release_all()
        return leases.renew_lease(*arguments, **options)

    with open_owner(topic, clock=clock):
        keeper.keep(plan_topic(topic, "t", lease_ms=60_000), lambda: True)
        clock.advance(30)
        monkeypatch.setattr(lease_keeper, "renew_lease", renew)
        keeper.look()
        assert not leases_of(topic)


def test_a_lease_that_is_given_back_while_a_plan_makes_it_longer_is_not_joined(
    topic: Path,
    clock: pulsarx.ManualClock,
    keeper: LeaseKeeper,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where the owner takes longer to answer than a short lease lasts."""

    def renew(*arguments: Any, **options: Any) -> int:
        found = leases.renew_lease(*arguments, **options)
        clock.advance(61)
        keeper.look()
        return found

    with open_owner(topic, clock=clock):
        keeper.keep(plan_topic(topic, "t", lease_ms=60_000), lambda: False)
        clock.advance(1)
        with monkeypatch.context() as patch:
            patch.setattr(lease_keeper, "renew_lease", renew)
            groups = plan_topic(topic, "t", lease_ms=60_000)
        assert set(leases_of(topic)) == jobs(groups)


def test_an_interrupted_plan_gives_its_lease_back(
    owned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C while read_topic plans: nobody is left to give it back for an hour."""

    class Interrupted:
        """Leaves when the call has run, as one whose caller was interrupted."""

        def perform(self, function: Any, arguments: Any = (), give_back: Any = None) -> Any:
            made = control_plane.perform(function, arguments)
            if give_back is None:
                return made
            assert len(leases_of(owned)) == 1
            give_back(made)
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pulsarx.broker.scan.plan.control_plane", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            plan_topic(owned, "t")
    assert not leases_of(owned)
    assert plan_topic(owned, "t")


def test_a_plan_that_is_interrupted_when_it_is_leased_gives_its_lease_back(
    owned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C while thousands of ledgers are put together for tasks."""

    def interrupted(*_: Any) -> None:
        assert len(leases_of(owned)) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr("pulsarx.spark.topic_plan.group_ranges", interrupted)
    with pytest.raises(KeyboardInterrupt):
        plan_topic(owned, "t")
    assert not leases_of(owned)


def forgotten_by_now(folder: Path) -> dict[str, Any]:
    """The leases that are left when a plan that is forgotten last has given its own back."""
    gc.collect()
    (job,) = jobs(plan_topic(folder, "t", lease_ms=7_000_000))
    wait_until(lambda: job not in leases_of(folder), "a forgotten plan keeps its lease")
    return leases_of(folder)


def test_a_plan_that_nobody_has_any_more_gives_its_lease_back(owned: Path) -> None:
    """It stayed for an hour, so a job every half an hour switched retention off."""
    groups = plan_topic(owned, "t")
    first = groups[0][0]
    del groups
    assert len(forgotten_by_now(owned)) == 1
    assert sum(len(batch) for batch in read_partitions([first])) == first.message_count
    del first
    assert not forgotten_by_now(owned)


def test_retention_goes_on_between_plans(topic: Path) -> None:
    with open_owner(topic) as client:
        assert sum(each.message_count for part in plan_topic(topic, "t") for each in part) == 10
        assert not forgotten_by_now(topic)
        client.admin.topics.skip_all_messages("t", "s")
        inspect(client).settle()
        assert len(client.admin.topics.stats("t")["ledgers"]) < 5


@pytest.mark.parametrize("way", ["pickle", "row", "frame text"])
def test_the_lease_of_a_plan_that_went_elsewhere_stays(owned: Path, way: str) -> None:
    """Whoever got it may read later."""
    groups = plan_topic(owned, "t")
    if way == "pickle":
        pickle.dumps(groups[0][-1])
    elif way == "row":
        groups[0][-1].row()
    else:
        _text_of(groups[0])
    del groups
    assert len(forgotten_by_now(owned)) == 1


def test_a_plan_that_joined_and_is_forgotten_leaves_the_lease_to_the_others(
    topic: Path, clock: pulsarx.ManualClock, keeper: LeaseKeeper
) -> None:
    left = [True]
    with open_owner(topic, clock=clock):
        keeper.keep(plan_topic(topic, "t", lease_ms=60_000), lambda: left[0])
        groups = plan_topic(topic, "t", lease_ms=60_000)
        del groups
        assert len(forgotten_by_now(topic)) == 1
        left[0] = False
        keeper.look()
        assert not leases_of(topic)  # though it was promised for another minute


def test_a_plan_is_of_what_others_committed_since_the_one_before_it(topic: Path) -> None:
    """A driver keeps the catalogue from one plan to the next."""

    def planned() -> int:
        parts = plan_topic(topic, "t")
        return sum(each.end_message - each.first_message for part in parts for each in part)

    assert (planned(), planned()) == (10, 10)
    with open_owner(topic) as client:
        for number in range(11, 20):
            send(client, "t", [b"more"])
            assert planned() == number
    assert planned() == 19
    # Another folder in its place.
    topic.rename(topic.with_name("moved"))
    with open_owner(topic) as client:
        send(client, "t", [b"other"])
    assert planned() == 1


PLANNING = """
import os, sys
from pulsarx.spark import plan_topic
from pulsarx.spark.lease_keeper import keeper
groups = plan_topic(sys.argv[1], "t")
if sys.argv[2] == "inherit":
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    del groups
    sys.exit()
if sys.argv[2] != "hold":
    keeper.keep(groups, lambda: True)
if sys.argv[2] == "fork":
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    print(len(keeper._kept), flush=True)
    if child:
        os._exit(0)
"""


def run(program: str, *arguments: Any) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
        timeout=200,
    )
    return done.stdout


@pytest.mark.parametrize("what", ["end", "hold"])
def test_a_driver_that_ends_gives_back_what_it_has(owned: Path, what: str) -> None:
    run(PLANNING, owned, what)
    assert not leases_of(owned)


def test_a_forked_child_gives_back_nothing_of_its_parent(owned: Path) -> None:
    assert run(PLANNING, owned, "fork").split() == ["0", "1"]
    assert len(leases_of(owned)) == 1


def test_a_plan_that_a_forked_child_may_read_keeps_its_lease(owned: Path) -> None:
    run(PLANNING, owned, "inherit")
    assert len(leases_of(owned)) == 1


def test_it_is_looked_after_without_being_asked(topic: Path) -> None:
    """By a thread that sleeps as long as there is nothing to keep."""
    made = LeaseKeeper(pulsarx.ManualClock())
    over, looked = threading.Event(), threading.Event()

    def is_left() -> bool:
        looked.set()
        return not over.is_set()

    for _ in range(2):
        over.clear()
        looked.clear()
        made.keep(plan_topic(topic, "t", lease_ms=300), is_left)
        assert looked.wait(60)
        over.set()
        wait_until(lambda: not made._kept)
    assert [each.name for each in threading.enumerate()].count("pulsarx-leases") >= 1


def test_a_new_plan_has_nobody_asked_about_the_others(topic: Path) -> None:
    """Java was asked about each at each new one: a query took the longer, the more came before."""
    made = LeaseKeeper(pulsarx.ManualClock())
    asked: list[int] = []

    def is_left() -> bool:
        asked.append(1)
        return True

    for _ in range(20):
        made.keep(plan_topic(topic, "t", lease_ms=3_600_000), is_left)
        wait_until(lambda: not made._wake.is_set())
    assert not asked


def planned_read(folder: Path) -> tuple[Any, list[Any]]:
    """As Spark plans a batch of format("pulsarx"), in several tasks, and hands it to them."""
    options = {"root": str(folder), "topic": "t", "columns": "value", "minPartitions": "3"}
    made = PulsarxDataSource(options)
    reader = made.reader(made.schema())
    parts = [pickle.loads(pickle.dumps(each)) for each in reader.partitions()]
    assert len(parts) >= 3
    return reader, parts


def test_the_lease_of_a_format_read_is_made_shorter_by_the_task_that_ends_last(
    topic: Path, clock: pulsarx.ManualClock
) -> None:
    """It held everything for an hour behind each job."""

    def left() -> dict[str, int]:
        return {each.job: each.expires_ms for each in leases_of(topic).values()}

    with open_owner(topic, clock=clock):
        reader, parts = planned_read(topic)
        hour_ms = clock.now_ms() + 3_600_000
        (job,) = left()
        begun = reader.read(parts[-1])
        next(begun)
        begun.close()  # as a task that is killed, or needs no more
        for number, each in enumerate(parts[:-1]):
            for _ in range(2):  # as one that Spark repeats
                assert list(reader.read(each))
            wait_until(lambda number=number: len(left()) == number + 2)  # type: ignore[misc]
        assert left()[job] == hour_ms
        assert list(reader.read(parts[-1]))
        wait_until(lambda: left()[job] == clock.now_ms() + 300_000)


def test_a_task_that_cannot_tell_that_it_has_read_all_succeeds(
    topic: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a host that does not reach the owner."""
    asked = threading.Semaphore(0)

    def refuse(*_: Any, **__: Any) -> None:
        asked.release()
        raise errors.FolderOwnedError("nobody answers")

    reader, parts = planned_read(topic)
    monkeypatch.setattr(leases, "ask_owner", refuse)
    found = [batch.column(0).to_pylist() for each in parts for batch in reader.read(each)]
    assert sum(map(len, found)) == 10
    for _ in parts:
        assert asked.acquire(timeout=60)


# With Spark ---------------------------------------------------------------------------------------


def collect(spark: Any, keeper: LeaseKeeper) -> None:
    """What nobody in Python holds is gone in Java as well, some time."""
    gc.collect()
    spark._jvm.System.gc()
    keeper.look()


@pytest.mark.parametrize("make", ["read", "map", "rdd"])
def test_the_lease_of_a_read_is_given_back_when_nothing_made_of_it_is_left(
    spark: Any, owned: Path, keeper: LeaseKeeper, make: str
) -> None:
    """It stayed for an hour after each job."""
    if make == "rdd":
        made = topic_rdd(spark, "t", root=owned, columns="value")
        derived = made.map(lambda row: (row[0],)).toDF(["v"])
    elif make == "map":
        made = map_topic(spark, "t", iter, "value binary", root=owned, columns="value")
        derived = made.union(made).distinct()
    else:
        made = read_topic(spark, "t", root=owned, columns="value")
        derived = made.selectExpr("CAST(value AS string) AS v").where("v >= '0'").alias("x")
    (job,) = leases_of(owned)
    assert made.count() == 10
    del made
    for _ in range(3):
        collect(spark, keeper)
    assert list(leases_of(owned)) == [job]
    assert derived.count() == 10
    collect(spark, keeper)
    assert list(leases_of(owned)) == [job]
    del derived

    def is_gone() -> bool:
        collect(spark, keeper)
        return not leases_of(owned)

    wait_until(is_gone, "the lease is still there")


def test_the_lease_of_a_read_that_cannot_be_made_is_given_back(
    spark: Any, owned: Path, keeper: LeaseKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with Ctrl-C while Spark makes the frame: nobody kept it, so it stayed for an hour."""
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        map_topic(spark, "t", iter, "no schema!", root=owned)
    assert not leases_of(owned)

    def interrupted(*_: Any) -> None:
        assert len(leases_of(owned)) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(keeper, "keep", interrupted)
    for make in (read_topic, topic_rdd):
        with pytest.raises(KeyboardInterrupt):
            make(spark, "t", root=owned)
        assert not leases_of(owned)


def test_a_query_of_the_format_gives_most_of_its_lease_back(spark: Any, owned: Path) -> None:
    frame = read(spark, owned, "t", columns="value", minPartitions="3")
    assert frame.count() == 10
    wait_until(lambda: max(e.expires_ms for e in leases_of(owned).values()) <= wall_ms() + 300_000)
    assert len(frame.collect()) == 10


def test_a_second_action_long_after_the_first_reads_under_a_lease(spark: Any, owned: Path) -> None:
    """With format("pulsarx"), where the driver cannot keep it, the tasks take one."""
    frame = read(spark, owned, "t", columns="value", leaseSeconds="1")

    def expires_ms() -> int:
        # One that has ended may be gone by then.
        return max((each.expires_ms for each in leases_of(owned).values()), default=0)

    assert frame.count() == 10
    wait_until(lambda: expires_ms() < wall_ms())
    begun_ms = wall_ms()
    assert frame.count() == 10
    taken: list[Any] = []

    def is_taken() -> bool:
        taken[:] = [each for each in leases_of(owned).values() if each.expires_ms > begun_ms]
        return bool(taken)

    wait_until(is_taken)
    own = max(taken, key=lambda each: each.expires_ms)
    assert list(own.ledgers) == [T]
    assert own.job.rpartition("-")[0].startswith("spark-read-")


def test_a_lease_that_was_given_back_too_early_is_taken_by_the_tasks(
    spark: Any, topic: Path, keeper: LeaseKeeper
) -> None:
    frame = read_topic(spark, "t", root=topic, columns="value", lease_ms=1000)
    ((job, lease),) = leases_of(topic).items()
    release_lease(topic, job)
    wait_until(lambda: wall_ms() > lease.expires_ms)
    assert frame.count() == 10
    wait_until(lambda: any(each.startswith(f"{job}-") for each in leases_of(topic)))
