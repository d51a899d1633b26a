"""Leases: ledgers a job reads stay, until it gives them back or is overdue."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from catalogue_folder import TOPIC, create, open_folder, read_folder

import pulsarx
from pulsarx import errors
from pulsarx.broker.catalogue.topic_operations import id_runs
from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.broker.scan import lease as leases
from pulsarx.broker.scan import lease_renewal
from pulsarx.broker.scan.lease import (
    bear_lease,
    finish_part,
    lease,
    lease_ranges,
    release_lease,
    renew_lease,
)
from pulsarx.broker.scan.lease_renewal import LeaseRenewals
from pulsarx.broker.scan.ledger_range import LedgerRange
from pulsarx.broker.scan.plan import plan
from pulsarx.broker.scan.read_range import read_range
from pulsarx.clock import Deadline
from pulsarx.errors import CatalogueError
from pulsarx.testing import inspect

T = TOPIC + "t"
Ledgers = Callable[[], list[int]]


@pytest.fixture
def clock() -> pulsarx.ManualClock:
    return pulsarx.ManualClock()


@pytest.fixture
def client(folder: Path, clock: pulsarx.ManualClock) -> Iterator[pulsarx.Client]:
    """The owner: a topic of four ledgers, all acknowledged but what is in the last."""
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=1)
    with pulsarx.Client(folder, clock=clock, durability="os", broker_options=options) as opened:
        opened.create_producer("t").send(b"0")
        opened.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest)
        for number in range(1, 4):
            opened.create_producer("t").send(b"%d" % number)
        yield opened


def ledger_ids(client: pulsarx.Client) -> list[int]:
    inspect(client).settle()
    return [each["ledger_id"] for each in client.admin.topics.stats("t")["ledgers"]]


def acknowledge_all(client: pulsarx.Client) -> None:
    with_s = client.subscribe("t", "other")
    with_s.unsubscribe()
    inspect(client).topic(T).unsubscribe("s")
    client.admin.namespaces.set_retention("public/default", 0, 0)
    inspect(client).settle()


def test_trimming_spares_what_is_leased_and_what_comes_after(
    client: pulsarx.Client, folder: Path
) -> None:
    ids = ledger_ids(client)
    lease(folder, "job", {T: [ids[1]]}, 1000)
    acknowledge_all(client)
    assert ledger_ids(client) == ids[1:]
    assert release_lease(folder, "job")
    assert not release_lease(folder, "job")
    assert ledger_ids(client) == ids[3:]


def test_a_lease_ends_by_itself_and_trimming_comes_by(
    client: pulsarx.Client, folder: Path, clock: pulsarx.ManualClock
) -> None:
    ids = ledger_ids(client)
    assert lease(folder, "job", {T: ids[:1]}, 60_000) == clock.now_ms() + 60_000
    acknowledge_all(client)
    clock.advance(59)
    assert renew_lease(folder, "job", 600_000) == clock.now_ms() + 600_000
    clock.advance(590)
    assert ledger_ids(client) == ids
    clock.advance(200)
    assert ledger_ids(client) == ids[3:]
    with pytest.raises(errors.NotAllowedError, match="it has none"):
        renew_lease(folder, "job", 1000)


def held_by_leases(client: pulsarx.Client) -> tuple[int, int]:
    inspect(client).settle()
    found = client.admin.topics.stats("t")
    return found["held_by_leases_ledgers"], found["held_by_leases_size"]


def test_statistics_and_the_log_say_what_leases_hold_back(
    client: pulsarx.Client, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Retention and merging were switched off in silence."""
    caplog.set_level("INFO", logger="pulsarx")
    ids = ledger_ids(client)
    lease(folder, "job", {T: [ids[1]]}, 60_000)
    assert held_by_leases(client) == (0, 0)  # retention would remove nothing yet
    acknowledge_all(client)
    sizes = {each["ledger_id"]: each["size"] for each in client.admin.topics.stats("t")["ledgers"]}
    assert held_by_leases(client) == (2, sizes[ids[1]] + sizes[ids[2]])
    inspect(client).topic(T).trim()
    told = f"{T}: jobs that read it keep 2 ledgers ({sizes[ids[1]] + sizes[ids[2]]} bytes), from"
    assert caplog.text.count(told) == 1
    lease(folder, "job", {T: ids[1:3]}, 60_000)
    assert client.admin.topics.merge_ledgers("t") == {"ledgers": 0, "files": 0}
    assert f"{T}: 2 small ledgers are not merged, jobs lease them" in caplog.text
    release_lease(folder, "job")
    assert held_by_leases(client) == (0, 0)
    assert caplog.text.count("leases keep nothing from retention any more") == 1


def test_an_overdue_lease_is_forgotten_by_the_next(
    client: pulsarx.Client, folder: Path, clock: pulsarx.ManualClock
) -> None:
    lease(folder, "a", {T: ledger_ids(client)}, 1000)
    clock.advance(2)
    lease(folder, "b", {}, 1000)
    assert list(inspect(client).catalogue.state.leases) == ["b"]
    assert release_lease(folder, "b")
    assert not inspect(client).catalogue.state.leases


def test_ledgers_that_are_gone_cannot_be_leased(client: pulsarx.Client, folder: Path) -> None:
    ids = ledger_ids(client)
    acknowledge_all(client)
    with pytest.raises(errors.NotAllowedError, match=f"3 of them are not there.*{ids[0]} for one"):
        lease(folder, "job", {T: ids}, 1000)
    with pytest.raises(errors.TopicNotFound):
        lease(folder, "job", {TOPIC + "nowhere": [1]}, 1000)
    assert not inspect(client).catalogue.state.leases


def test_a_lease_that_comes_while_trimming_decides_is_kept(
    client: pulsarx.Client, folder: Path
) -> None:
    """Which ledgers may go is decided before; the commit that removes them looks again."""
    ids = ledger_ids(client)
    lease(folder, "job", {T: [ids[1]]}, 1000)
    assert inspect(client).ledger(T).remove(ids[:3]) == ids[:1]
    assert ledger_ids(client) == ids[1:]


def test_without_an_owner_and_across_owners(folder: Path) -> None:
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=1)
    with pulsarx.Client(folder, durability="os", broker_options=options) as client:
        for _ in range(3):
            client.create_producer("t").send(b"x")
        ids = ledger_ids(client)
    lease(folder, "job", {T: ids[:1]}, 60_000)
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("t").send(b"x")
        client.admin.namespaces.set_retention("public/default", 0, 0)
        assert ledger_ids(client)[:3] == ids
        release_lease(folder, "job")
        assert len(ledger_ids(client)) == 1


def expires_ms(folder: Path) -> dict[str, int]:
    broker = ReadOnlyBroker(str(folder))
    try:
        return {each.job: each.expires_ms for each in broker.catalogue.state.leases.values()}
    finally:
        broker.close()


def test_a_lease_is_made_shorter_when_all_parts_of_the_plan_were_read(
    client: pulsarx.Client, folder: Path, clock: pulsarx.ManualClock
) -> None:
    """One that was never given back kept what no job read any more, for an hour."""
    ids = ledger_ids(client)
    ranges = planned_ranges(client, folder, 3_600_000)
    acknowledge_all(client)
    began_ms = clock.now_ms()
    clock.advance(60)
    for part in (0, 2, 0):
        assert not finish_part(ranges[part], part, 3)
        assert expires_ms(folder)["job"] == began_ms + 3_600_000
    assert finish_part(ranges[1], 1, 3)
    assert expires_ms(folder) == {"job": clock.now_ms() + 300_000}
    assert ledger_ids(client) == ids  # the next action may read it again
    assert not finish_part(ranges[1], 1, 3)  # and has to read all parts
    clock.advance(301)
    inspect(client).topic(T).trim()
    assert ledger_ids(client) == ids[3:]
    assert not finish_part(ranges[1], 0, 1)  # nothing is left to be made shorter


def test_a_job_whose_name_begins_as_that_of_another_keeps_its_lease(
    client: pulsarx.Client, folder: Path
) -> None:
    """It was taken for a part of that one, and given back with it."""
    ledger_ids(client)
    longer = ("job#", "job#two", "job 2")
    for job in ("job", *longer):
        ranges = plan(inspect(client).broker, "t", columns=["value"])
        lease_ranges(folder, job, ranges, 3_600_000)
    release_lease(folder, "job")
    assert sorted(expires_ms(folder)) == sorted(longer)


def test_parts_are_counted_across_owners_and_without_one(folder: Path) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("t").send(b"x")
        ranges = planned_ranges(client, folder, 3_600_000)
        assert not finish_part(ranges[0], 0, 3)
    assert not finish_part(ranges[0], 1, 3)
    before_ms = expires_ms(folder)["job"]
    with pulsarx.Client(folder, durability="os"):
        assert finish_part(ranges[0], 2, 3)
    assert expires_ms(folder)["job"] < before_ms - 3_000_000


@pytest.mark.parametrize("how", ["released", "over"])
def test_nothing_is_left_of_parts_when_the_lease_is_gone(
    client: pulsarx.Client, folder: Path, clock: pulsarx.ManualClock, how: str
) -> None:
    ranges = planned_ranges(client, folder, 30_000)
    lease(folder, "other", {T: ledger_ids(client)}, 60_000)
    finish_part(ranges[0], 0, 3)
    clock.advance(20)
    renew_lease(folder, "job", 30_000)
    clock.advance(20)  # the mark was made for less
    release_lease(folder, "nobody")
    lease(folder, "another", {}, 60_000)
    assert set(expires_ms(folder)) == {"job", "job#0", "other", "another"}
    if how == "released":
        release_lease(folder, "job")
    else:
        clock.advance(11)
        lease(folder, "another", {}, 60_000)
    assert set(expires_ms(folder)) == {"other", "another"}


# The operations -----------------------------------------------------------------------------------


def test_runs_of_ids() -> None:
    assert id_runs([]) == []
    assert id_runs([5, 3, 4, 9, 4]) == [[3, 5], [9, 9]]


def add_ledgers(catalogue: Any, count: int) -> list[int]:
    ids: list[int] = catalogue.allocate_ids(count)
    catalogue.commit(
        [{"op": "add_ledger", "topic": T, "ledger_id": each, "uuid": f"{each}"} for each in ids]
    )
    return ids


def test_leases_and_transactions_are_the_same_for_every_reader(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path)
    create(catalogue, "t")
    ids = add_ledgers(catalogue, 5)
    rows = [[each, f"{each}", 1, 1, 5000, 1, 2] for each in catalogue.allocate_ids(2)]
    attach = {"op": "attach_ledgers", "application": "a", "batch_id": 0, "attached_ms": 9}
    catalogue.commit([{**attach, "ledgers": {T: rows}}])
    wanted = {"op": "set_lease", "job": "j", "expires_ms": 7}
    catalogue.commit([{**wanted, "ledgers": {T: [ids[0], ids[1], ids[4]]}}])
    assert read_folder(tmp_path).state == catalogue.state
    assert catalogue.state.leased_from(T, 6) == (ids[0], 7)
    assert catalogue.state.leased_from(T, 7)[0] > 1 << 60
    catalogue.checkpoint()
    assert read_folder(tmp_path).state == catalogue.state
    catalogue.commit([{"op": "renew_lease", "job": "j", "expires_ms": 70}])
    catalogue.commit([{"op": "remove_leases", "jobs": ["j", "unknown"]}])
    assert read_folder(tmp_path).state == catalogue.state
    assert not catalogue.state.leases
    directory.close()


@pytest.mark.parametrize(
    ("ledgers", "text"),
    [
        ({T: [[1, "u", 1, 1, 1, 1]]}, "does not describe"),
        ({T: [[0, "u", 1, 1, 1, 1, 1]]}, "does not describe"),
        ({T: [["x", "u", 1, 1, 1, 1, 1]]}, "does not describe"),
        ({T: [[9, "u", -1, 1, 1, 1, 1]]}, "does not describe"),
        ({T: [5]}, "does not describe"),
        ({T: 5}, "is no rows"),
        ({T: [[90, "u", 1, 1, 1, 1, 1], [92, "v", 1, 1, 1, 1, 1]]}, "follow each other"),
        ({T: [[91, "u", 1, 1, 1, 1, 1], [90, "v", 1, 1, 1, 1, 1]]}, "comes before"),
        ({T: [[90, "u", 1, 1, 1, 1, 1], [90, "v", 1, 1, 1, 1, 1]]}, "already"),
        ({T: [[2, "u", 1, 1, 1, 1, 1]]}, "already|in use"),
        ({TOPIC + "v": [[90, "u", 1, 1, 1, 1, 1]]}, "no topic"),
    ],
)
def test_ledgers_that_cannot_be_attached(tmp_path: Path, ledgers: Any, text: str) -> None:
    directory, catalogue = open_folder(tmp_path)
    create(catalogue, "t")
    assert add_ledgers(catalogue, 1) == [2]
    attach = {"op": "attach_ledgers", "application": "a", "batch_id": 0, "attached_ms": 9}
    with pytest.raises(CatalogueError, match=text):
        catalogue.commit([{**attach, "ledgers": ledgers}])
    assert not catalogue.state.transactions
    directory.close()


def test_a_batch_that_was_attached_is_refused_by_the_catalogue_too(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path)
    attach = {"op": "attach_ledgers", "application": "a", "attached_ms": 9, "ledgers": {}}
    catalogue.commit([{**attach, "batch_id": 4}])
    for batch in (4, 3):
        with pytest.raises(CatalogueError, match="attached batch 4 already"):
            catalogue.commit([{**attach, "batch_id": batch}])
    catalogue.commit([{**attach, "batch_id": 4, "forgotten": ["a"]}])
    directory.close()


# While ranges are read ----------------------------------------------------------------------------


@pytest.fixture
def renewals(clock: pulsarx.ManualClock, monkeypatch: pytest.MonkeyPatch) -> LeaseRenewals:
    """Those of this process, on the clock of the test."""
    made = LeaseRenewals(clock)
    monkeypatch.setattr(lease_renewal, "renewals", made)
    return made


def planned_ranges(client: pulsarx.Client, folder: Path, ttl_ms: int) -> list[LedgerRange]:
    ranges = plan(inspect(client).broker, "t", columns=["value"])
    expires_ms = lease_ranges(folder, "job", ranges, ttl_ms)
    assert {each.lease for each in ranges} == {("job", ttl_ms, expires_ms, ranges[0].ledger_id)}
    return ranges


def pass_time(clock: pulsarx.ManualClock, renewals: LeaseRenewals, seconds: int) -> None:
    for _ in range(seconds):
        clock.advance(1)
        renewals.wait()


def test_a_read_may_take_much_longer_than_its_lease(
    client: pulsarx.Client, folder: Path, clock: pulsarx.ManualClock, renewals: LeaseRenewals
) -> None:
    ids = ledger_ids(client)
    ranges = planned_ranges(client, folder, 30_000)
    acknowledge_all(client)
    found = []
    for each in ranges:
        for batch in read_range(each):
            pass_time(clock, renewals, 300)
            assert ledger_ids(client) == ids
            found.append(len(batch))
    assert found == [1] * 4
    # Nobody reads any more: the lease ends, and the next look at retention takes them.
    pass_time(clock, renewals, 31)
    inspect(client).topic(T).trim()
    assert ledger_ids(client) == ids[3:]
    assert not any(each.timer for each in renewals._leases.values())


def test_a_reader_that_is_dropped_renews_no_more(
    client: pulsarx.Client, folder: Path, clock: pulsarx.ManualClock, renewals: LeaseRenewals
) -> None:
    ids = ledger_ids(client)
    ranges = planned_ranges(client, folder, 30_000)
    acknowledge_all(client)
    reader = read_range(ranges[0])
    next(reader)
    pass_time(clock, renewals, 100)
    assert ledger_ids(client) == ids
    del reader
    pass_time(clock, renewals, 31)
    inspect(client).topic(T).trim()
    assert ledger_ids(client) == ids[3:]


def test_short_reads_do_not_ask_the_owner(
    client: pulsarx.Client,
    folder: Path,
    clock: pulsarx.ManualClock,
    renewals: LeaseRenewals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranges = planned_ranges(client, folder, 240_000)
    asked: list[str] = []
    monkeypatch.setattr(leases, "ask_owner", lambda *a: asked.append(a[1]) or {"expires_ms": 0})
    for seconds, times in ((0, 0), (9, 0), (2, 1), (8, 1), (3, 2)):
        pass_time(clock, renewals, seconds)
        assert sum(len(batch) for each in ranges for batch in read_range(each)) == 4
        clock.advance(0)
        renewals.wait()
        assert asked == ["leases.renew"] * times


def test_a_lease_that_is_over_is_told_and_reading_goes_on(
    client: pulsarx.Client,
    folder: Path,
    clock: pulsarx.ManualClock,
    renewals: LeaseRenewals,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """There is nothing left to lease: retention has removed what is being read."""
    ranges = planned_ranges(client, folder, 30_000)
    reader = read_range(ranges[0])
    release_lease(folder, "job")
    acknowledge_all(client)
    assert ranges[0].ledger_id not in ledger_ids(client)
    for _ in reader:
        pass_time(clock, renewals, 100)
    assert caplog.text.count("is not renewed from host") == 1
    assert not inspect(client).catalogue.state.leases


def test_what_is_read_after_the_lease_is_over_is_leased_again_as_a_whole(
    client: pulsarx.Client, folder: Path, clock: pulsarx.ManualClock, renewals: LeaseRenewals
) -> None:
    """As by the second action of a DataFrame, an hour after the first: it read without a lease."""
    ids = ledger_ids(client)
    ranges = planned_ranges(client, folder, 30_000)
    for each in ranges:
        assert sum(len(batch) for batch in read_range(each)) == 1
    pass_time(clock, renewals, 3600)
    assert not inspect(client).catalogue.state.leased_from(T, clock.now_ms())[1]
    reader = read_range(ranges[2])
    next(reader)
    renewals.wait()
    acknowledge_all(client)
    assert ledger_ids(client) == ids
    pass_time(clock, renewals, 100)
    assert ledger_ids(client) == ids
    (job,) = inspect(client).catalogue.state.leases
    assert job.startswith("job-")
    assert sum(len(batch) for each in ranges for batch in read_range(each)) == 4
    del reader
    pass_time(clock, renewals, 31)
    inspect(client).topic(T).trim()
    assert ledger_ids(client) == ids[3:]


def test_what_is_being_read_again_outlives_the_end_of_the_first_read(
    client: pulsarx.Client, folder: Path, clock: pulsarx.ManualClock, renewals: LeaseRenewals
) -> None:
    """As where two threads of a driver have an action of one DataFrame each."""
    ids = ledger_ids(client)
    ranges = planned_ranges(client, folder, 240_000)
    reader = read_range(ranges[0])
    next(reader)
    acknowledge_all(client)
    assert finish_part(ranges[0], 0, 1)
    pass_time(clock, renewals, 1000)
    assert ledger_ids(client) == ids
    del reader
    pass_time(clock, renewals, 241)
    inspect(client).topic(T).trim()
    assert ledger_ids(client) == ids[3:]


def test_a_lease_that_a_reader_takes_itself_ends_soon_behind_it(
    client: pulsarx.Client, folder: Path, clock: pulsarx.ManualClock, renewals: LeaseRenewals
) -> None:
    ranges = planned_ranges(client, folder, 3_600_000)
    release_lease(folder, "job")
    clock.advance(3601)
    reader = read_range(ranges[0])
    next(reader)
    renewals.wait()
    pass_time(clock, renewals, 1000)
    (own,) = expires_ms(folder).values()
    assert 0 < own - clock.now_ms() <= 300_000


def test_where_some_of_a_job_is_gone_what_is_being_read_is_leased_again(
    client: pulsarx.Client, folder: Path, clock: pulsarx.ManualClock, renewals: LeaseRenewals
) -> None:
    ids = ledger_ids(client)
    ranges = planned_ranges(client, folder, 30_000)
    release_lease(folder, "job")
    assert inspect(client).ledger(T).remove(ids[:1]) == ids[:1]
    clock.advance(31)
    reader, later = read_range(ranges[2]), read_range(ranges[1])
    next(reader)
    renewals.wait()
    acknowledge_all(client)
    assert ledger_ids(client) == ids[2:]
    next(later)  # its file is open
    pass_time(clock, renewals, 31)
    assert ledger_ids(client) == ids[2:]


def test_a_topic_that_is_read_later_comes_under_the_new_lease_at_once(
    client: pulsarx.Client, folder: Path, clock: pulsarx.ManualClock, renewals: LeaseRenewals
) -> None:
    client.create_producer("u").send(b"x")
    ranges = [*plan(inspect(client).broker, "t"), *plan(inspect(client).broker, "u")]
    lease_ranges(folder, "job", ranges, 30_000)
    clock.advance(40)
    readers = []
    for each in (ranges[0], ranges[-1]):
        readers.append(read_range(each))
        next(readers[-1])
        renewals.wait()
    leases_now = inspect(client).catalogue.state.leases
    assert sorted(leases_now.popitem()[1].ledgers) == [T, TOPIC + "u"]


def test_a_lease_that_was_over_and_is_replaced_is_renewed_again(
    client: pulsarx.Client, folder: Path, clock: pulsarx.ManualClock, renewals: LeaseRenewals
) -> None:
    """As a stream does with the next batch, read by the same worker."""
    ids = ledger_ids(client)
    ranges = planned_ranges(client, folder, 30_000)
    release_lease(folder, "job")
    for _ in read_range(ranges[0]):
        pass_time(clock, renewals, 35)
    ranges = planned_ranges(client, folder, 30_000)
    acknowledge_all(client)
    for _ in read_range(ranges[0]):
        pass_time(clock, renewals, 100)
        inspect(client).topic(T).trim()
        assert ledger_ids(client) == ids


def test_a_reader_may_be_dropped_anywhere(
    client: pulsarx.Client, folder: Path, renewals: LeaseRenewals
) -> None:
    """The collector of garbage closes generators wherever it interrupts a thread."""
    reader = read_range(planned_ranges(client, folder, 30_000)[0])
    next(reader)
    with renewals._lock:
        del reader
    assert [each.reading for each in renewals._leases.values()] == [[]]


def test_what_a_forked_child_drops_leaves_its_own_timers(
    client: pulsarx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock numbers its timers anew in a child: the parent's would cancel another one."""
    own_clock = pulsarx.ManualClock()
    made = LeaseRenewals(own_clock)
    monkeypatch.setattr(lease_renewal, "renewals", made)
    ranges = planned_ranges(client, folder, 30_000)
    of_parent = read_range(ranges[0])
    next(of_parent)
    own_clock.forget_timers()  # in this order, as after a fork
    made.reset()
    of_child = read_range(ranges[0])
    next(of_child)
    assert own_clock.next_due_ms() is not None
    del of_parent
    assert own_clock.next_due_ms() is not None
    del of_child
    own_clock.advance(31)
    assert own_clock.next_due_ms() is None


def test_a_renewal_that_fails_is_tried_again(
    client: pulsarx.Client,
    folder: Path,
    clock: pulsarx.ManualClock,
    renewals: LeaseRenewals,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ids = ledger_ids(client)
    ranges = planned_ranges(client, folder, 30_000)
    acknowledge_all(client)
    ask = leases.ask_owner
    turns: list[int] = []

    def failing(*arguments: Any) -> Any:
        turns.append(1)
        if len(turns) % 3:
            raise errors.FolderOwnedError(detail="nobody answers")
        return ask(*arguments)

    monkeypatch.setattr(leases, "ask_owner", failing)
    for _ in read_range(ranges[0]):
        pass_time(clock, renewals, 200)
    assert ledger_ids(client) == ids
    assert "nobody answers" in caplog.text


def test_a_leased_range_bears_its_lease_to_other_processes(
    client: pulsarx.Client, folder: Path
) -> None:
    (planned, *_) = planned_ranges(client, folder, 30_000)
    for copy in (
        pickle.loads(pickle.dumps(planned)),
        LedgerRange.of_row(json.loads(json.dumps(planned.row()))),
    ):
        assert copy == planned
        assert copy.lease == planned.lease
        assert copy.folder == str(folder)


READER = """
import json, sys
from pulsarx.broker.scan.ledger_range import LedgerRange
from pulsarx.broker.scan.read_range import read_range
planned = LedgerRange.of_row(json.loads(sys.argv[1]))
for batch in read_range(planned):
    print(len(batch), flush=True)
    sys.stdin.readline()
"""


def test_another_process_renews_through_the_owner(folder: Path, run_child: Any) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("t").send(b"x")
        (planned,) = plan(inspect(client).broker, "t")
        ttl_ms = 600_000  # longer than any machine takes to start a process
        lease_ranges(folder, "job", [planned], ttl_ms)
        leases_now = inspect(client).catalogue.state.leases
        first_ms = leases_now["job"].expires_ms
        bear_lease([planned], "job", ttl_ms, first_ms - ttl_ms)  # so it is due at once
        child = run_child(READER, json.dumps(planned.row()))
        assert child.stdout.readline() == "1\n"
        deadline = Deadline(60_000)
        while leases_now["job"].expires_ms <= first_ms and not deadline.expired():
            inspect(client).settle()
            leases_now = inspect(client).catalogue.state.leases
        assert leases_now["job"].expires_ms > first_ms
        child.stdin.write("\n")
        child.stdin.close()
        assert child.wait(60) == 0
