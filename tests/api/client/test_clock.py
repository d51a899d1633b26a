"""Facts about the clocks. Nothing here sleeps: threads meet at events."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarx import errors
from pulsarx._pycore.ground import clock_core
from pulsarx.clock import (
    MANUAL_START_MS,
    Clock,
    Deadline,
    ManualClock,
    SystemClock,
    monotonic_ms,
    system_clock,
    wall_ms,
)

PATIENCE_SECONDS = 60


def test_a_manual_clock_starts_at_a_fixed_date_and_stands_still() -> None:
    clock = ManualClock()
    assert clock.now_ms() == MANUAL_START_MS == 1_704_067_200_000
    assert time.gmtime(MANUAL_START_MS / 1000)[:6] == (2024, 1, 1, 0, 0, 0)
    clock.advance(1.5)
    assert clock.now_ms() == MANUAL_START_MS + 1500
    assert ManualClock(5).now_ms() == 5


def test_advance_fires_what_is_due_in_order_each_at_its_time() -> None:
    clock = ManualClock(0)
    fired: list[tuple[str, int]] = []
    for name, due_ms in (("late", 3000), ("b", 1000), ("c", 1000), ("a", 10), ("at end", 2000)):
        clock.call_at(due_ms, partial(lambda n: fired.append((n, clock.now_ms())), name))
    clock.advance(2)
    assert fired == [("a", 10), ("b", 1000), ("c", 1000), ("at end", 2000)]
    assert clock.now_ms() == 2000
    assert clock.next_due_ms() == 3000


def test_timers_armed_by_callbacks_fire_within_the_same_span() -> None:
    clock = ManualClock(0)
    ticks: list[int] = []

    def tick() -> None:
        ticks.append(clock.now_ms())
        clock.call_after(100, tick)

    clock.call_after(100, tick)
    clock.advance(0.55)
    assert ticks == [100, 200, 300, 400, 500]
    assert clock.now_ms() == 550


def test_what_is_overdue_fires_at_the_next_advance_without_turning_time_back() -> None:
    clock = ManualClock(1000)
    fired: list[int] = []
    clock.call_at(1, lambda: fired.append(clock.now_ms()))
    assert fired == []
    clock.advance(0)
    assert fired == [1000]


def test_a_cancelled_timer_never_fires() -> None:
    clock = ManualClock(0)
    fired: list[str] = []
    timer = clock.call_at(1, lambda: fired.append("x"))
    assert timer.is_waiting()
    assert timer.cancel()
    assert not timer.cancel()
    assert not timer.is_waiting()
    assert clock.next_due_ms() is None
    clock.advance(1)
    assert fired == []


def test_a_fired_timer_cannot_be_cancelled() -> None:
    clock = ManualClock(0)
    answers: list[bool] = []
    timer = clock.call_at(1, lambda: answers.append(timer.cancel()))
    clock.advance(1)
    assert answers == [False]
    assert not timer.cancel()


def test_a_callback_may_cancel_a_later_one() -> None:
    clock = ManualClock(0)
    fired: list[str] = []
    later = clock.call_at(5, lambda: fired.append("later"))
    clock.call_at(4, later.cancel)
    clock.advance(1)
    assert fired == []


def test_a_failing_callback_is_logged_and_the_rest_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock(0)
    fired: list[str] = []

    def fail() -> None:
        raise ZeroDivisionError("on purpose")

    clock.call_at(1, fail)
    clock.call_at(2, lambda: fired.append("x"))
    clock.advance(1)
    assert fired == ["x"]
    assert "on purpose" in caplog.text


@pytest.mark.parametrize("seconds", [-1, -0.001, float("nan")])
def test_time_does_not_go_back(seconds: float) -> None:
    clock = ManualClock(0)
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(seconds)
    assert clock.now_ms() == 0


def test_a_callback_cannot_advance() -> None:
    clock = ManualClock(0)
    errors: list[str] = []

    def advance() -> None:
        try:
            clock.advance(1)
        except RuntimeError as error:
            errors.append(str(error))

    clock.call_at(1, advance)
    clock.advance(1)
    assert len(errors) == 1
    clock.advance(1)
    assert clock.now_ms() == 2000


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=60), st.integers(0, 60))
def test_exactly_the_due_and_uncancelled_fire(
    plan: list[tuple[int, bool]], seconds_times_1000: int
) -> None:
    clock = ManualClock(0)
    fired: list[tuple[int, int]] = []
    expected = []
    for number, (due_ms, cancelled) in enumerate(plan):
        timer = clock.call_at(due_ms, partial(fired.append, (due_ms, number)))
        if cancelled:
            timer.cancel()
        elif due_ms <= seconds_times_1000:
            expected.append((due_ms, number))
    clock.advance(seconds_times_1000 / 1000)
    assert fired == sorted(expected)


def test_threads_may_arm_cancel_and_advance_at_once() -> None:
    clock = ManualClock(0)
    fired: list[int] = []
    kept = 0

    def arm(seed: int) -> None:
        nonlocal kept
        for i in range(500):
            timer = clock.call_after(i % 7, lambda: fired.append(1))
            if (i + seed) % 2 and timer.cancel():
                continue
            with lock:
                kept += 1

    def advance() -> None:
        for _ in range(100):
            clock.advance(0.001)

    lock = threading.Lock()
    threads = [threading.Thread(target=arm, args=(n,)) for n in range(4)]
    threads += [threading.Thread(target=advance) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.now_ms() == 200
    clock.advance(1)
    assert len(fired) == kept


@pytest.mark.parametrize("make", [lambda: ManualClock(0), SystemClock])
def test_cancelled_timers_do_not_pile_up(make: type[Clock]) -> None:
    clock = make()
    clock.call_after(3_600_000, lambda: None)
    for _ in range(10_000):
        clock.call_after(3_600_000, lambda: None).cancel()
    assert clock.timer_count == 1


@given(st.lists(st.integers(-(2**70), 2**70), max_size=20))
def test_any_time_may_be_a_deadline(times_ms: list[int]) -> None:
    clock = ManualClock(-7)
    fired: list[int] = []
    for due_ms in times_ms:
        clock.call_at(due_ms, partial(fired.append, due_ms))
    clock.advance(0)
    near = [due_ms for due_ms in times_ms if due_ms <= -7]
    assert sorted(fired) == sorted(near)
    # A few thousand years about 1970 are told apart; so are those of every caller.
    assert [t for t in fired if abs(t) < 2**50] == sorted(t for t in near if abs(t) < 2**50)
    assert clock.now_ms() == -7


def test_the_system_clock_is_the_time_of_day() -> None:
    before = time.time_ns() // 1_000_000
    assert before <= system_clock().now_ms() <= time.time_ns() // 1_000_000
    assert before <= wall_ms() <= time.time_ns() // 1_000_000
    assert system_clock() is system_clock()


@pytest.mark.parametrize("call", ["call_at", "call_after", "call_monotonic"])
def test_the_system_clock_never_fires_early(call: str) -> None:
    clock = SystemClock()
    fired: list[tuple[int, bool]] = []
    done = threading.Event()
    time_ms = clock.now_ms if call == "call_at" else clock.steady_ms
    start_ms = time_ms()
    for delay_ms in (30, 10, 20):

        def fire(delay_ms: int = delay_ms) -> None:
            fired.append((delay_ms, time_ms() >= start_ms + delay_ms))
            if len(fired) == 3:
                done.set()

        getattr(clock, call)(delay_ms if call == "call_after" else start_ms + delay_ms, fire)
    assert done.wait(PATIENCE_SECONDS)
    # In whatever order: this thread may be stopped between arming one and the next.
    assert sorted(fired) == [(10, True), (20, True), (30, True)]


def test_the_system_clock_fires_what_is_due_in_order() -> None:
    """All are armed before the first can fire, for the clock's thread is busy until then."""
    clock = SystemClock()
    fired: list[int] = []
    armed, done = threading.Event(), threading.Event()
    clock.call_after(0, lambda: armed.wait(PATIENCE_SECONDS))
    start_ms = clock.steady_ms()
    for delay_ms in (30, 10, 20):
        clock.call_monotonic(start_ms + delay_ms, partial(fired.append, delay_ms))
    clock.call_monotonic(start_ms + 31, done.set)
    armed.set()
    assert done.wait(PATIENCE_SECONDS)
    assert fired == [10, 20, 30]


def test_an_earlier_timer_wakes_the_sleeping_thread() -> None:
    clock = SystemClock()
    clock.call_after(3_600_000, lambda: None)
    for number in range(200):
        done = threading.Event()
        clock.call_after(number % 2, done.set)
        assert done.wait(PATIENCE_SECONDS)


def test_a_callback_may_arm_the_next_timer() -> None:
    clock = SystemClock()
    done = threading.Event()
    clock.call_at(0, lambda: clock.call_after(1, lambda: clock.call_at(0, done.set)))
    assert done.wait(PATIENCE_SECONDS)


def test_a_failing_callback_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    clock = SystemClock()
    done = threading.Event()
    clock.call_after(0, lambda: 1 // 0)
    clock.call_after(0, sys.exit)
    clock.call_after(1, done.set)
    assert done.wait(PATIENCE_SECONDS)
    assert "ZeroDivisionError" in caplog.text
    assert "SystemExit" in caplog.text


def test_no_timer_is_lost_while_the_thread_ends_and_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock_core, "IDLE_SECONDS", 0)
    clock = SystemClock()
    for number in range(500):
        done = threading.Event()
        clock.call_after(number % 2, done.set)
        assert done.wait(PATIENCE_SECONDS)


def test_many_threads_may_arm_and_cancel_on_the_system_clock() -> None:
    clock = SystemClock()
    fired: list[int] = []
    expected: list[int] = []

    def arm(seed: int) -> None:
        for number in range(500):
            timer = clock.call_after(number % 5, partial(fired.append, seed * 1000 + number))
            if not (number % 3 == 0 and timer.cancel()):
                expected.append(seed * 1000 + number)

    threads = [threading.Thread(target=arm, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = threading.Event()
    clock.call_after(20, last.set)
    assert last.wait(PATIENCE_SECONDS)
    assert sorted(fired) == sorted(expected)


def test_the_thread_starts_with_the_first_timer_and_ends_when_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock_core, "IDLE_SECONDS", 0.01)
    clock = SystemClock()

    assert not clock.has_thread
    for _ in range(2):
        done = threading.Event()
        clock.call_after(0, done.set)
        assert done.wait(PATIENCE_SECONDS)
        deadline = Deadline(1000 * PATIENCE_SECONDS)
        while clock.has_thread and not deadline.expired():
            threading.Event().wait(0.001)
        assert not clock.has_thread


def test_a_fired_or_cancelled_timer_keeps_nothing_alive() -> None:
    class Producer:
        def flush(self) -> None:
            done.set()

    for cancel in (False, True):
        clock = SystemClock()
        done = threading.Event()
        producer = Producer()
        gone = weakref.ref(producer)
        timer = clock.call_after(3_600_000 if cancel else 0, producer.flush)
        if cancel:
            timer.cancel()
        else:
            assert done.wait(PATIENCE_SECONDS)
            last = threading.Event()
            clock.call_after(1, last.set)
            assert last.wait(PATIENCE_SECONDS)
        del producer
        gc.collect()
        assert gone() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_no_timers_and_working_clocks() -> None:
    manual, system = ManualClock(0), SystemClock()
    fired: list[str] = []
    manual.call_at(1, lambda: fired.append("parent's"))
    system.call_after(3_600_000, lambda: None)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            manual.advance(1)
            done = threading.Event()
            system.call_after(1, done.set)
            code = 0 if done.wait(PATIENCE_SECONDS) and not fired else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    manual.advance(1)
    assert fired == ["parent's"]


@pytest.mark.parametrize("work", ["clock.call_after(3600000, print)", "clock.call_after(0, print)",
    "[clock.call_after(i, lambda: sum(range(1000))) for i in range(100)]"])  # fmt: skip
def test_the_interpreter_exits_cleanly_with_timers_armed(work: str) -> None:
    program = f"from pulsarx.clock import SystemClock; clock = SystemClock(); {work}"
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_deadline_counts_down_in_real_time() -> None:
    assert Deadline(None).remaining_ms() is None
    assert Deadline(None).remaining_seconds() is None
    assert not Deadline(None).expired()
    for passed in (0, -5):
        assert Deadline(passed).expired()
        assert Deadline(passed).remaining_ms() == 0
        assert Deadline(passed).remaining_seconds() == 0
    later = Deadline(60_000)
    remaining_ms, remaining_seconds = later.remaining_ms(), later.remaining_seconds()
    assert remaining_ms is not None
    assert 0 < remaining_ms <= 60_000
    assert remaining_seconds is not None
    assert 0 < remaining_seconds <= 60
    assert not later.expired()


def test_monotonic_time_never_goes_back() -> None:
    readings = [monotonic_ms() for _ in range(1000)]
    assert readings == sorted(readings)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("count", [1, 5])
def test_a_timer_of_the_parent_that_a_child_cancels_takes_none_of_its_own(count: int) -> None:
    """A finalizer of something inherited may do so."""
    clock = ManualClock()
    inherited = [clock.call_at(clock.now_ms() + 10, lambda: None) for _ in range(count)]
    child = os.fork()
    if child == 0:
        fired: list[int] = []
        for number in range(count):
            clock.call_at(clock.now_ms() + 10, partial(fired.append, number))
        for timer in inherited:
            timer.cancel()
        clock.advance(20)
        os._exit(0 if fired == list(range(count)) else 1)
    assert os.waitpid(child, 0)[1] == 0


class BusyThread:
    """A thread that a clock waits for, and that never ends what it does."""

    idle = False

    def runs_here(self) -> bool:
        return False

    def wait(self, deadline: Deadline | None = None) -> bool:
        return False

    def busy_with(self) -> list[str]:
        return ["a thread that is not there in a child"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_waits_for_no_thread_of_its_parent() -> None:
    """The clock waited for those that its parent had registered, and `advance` failed."""
    clock = ManualClock(settle_seconds=0.01)
    busy = BusyThread()
    clock.settles(busy)
    with pytest.raises(errors.Timeout):
        clock.advance(1)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            clock.advance(1)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
