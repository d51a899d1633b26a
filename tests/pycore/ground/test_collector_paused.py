"""Facts about blocks in which the collector of garbage does not run."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from pulsarx._pycore.ground.collector_paused import CollectorPaused, call_paused, import_paused

pytestmark = pytest.mark.usefixtures("nothing_forgotten")


def test_it_runs_again_behind_the_block_if_it_did_before() -> None:
    with CollectorPaused():
        with CollectorPaused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_runs_in_a_child_that_another_thread_forks_meanwhile() -> None:
    ended: list[int] = []

    def fork() -> None:
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    with CollectorPaused():
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
        assert not gc.isenabled()
    assert ended == [0]
    assert gc.isenabled()


def test_it_runs_again_behind_a_call_that_fails() -> None:
    def fail(what: str) -> None:
        assert not gc.isenabled()
        raise ValueError(what)

    with pytest.raises(ValueError, match="broken"):
        call_paused(fail, "broken")
    assert gc.isenabled()
    with pytest.raises(ModuleNotFoundError):
        import_paused("pulsarx.no_such_module")
    assert gc.isenabled()


def test_it_stays_off_for_a_program_that_does_without() -> None:
    gc.disable()
    try:
        assert call_paused(gc.isenabled) is False
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_runs_again_when_the_last_of_several_threads_is_done() -> None:
    entered, over = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        over.wait(60)

    thread = threading.Thread(target=call_paused, args=(hold,))
    with CollectorPaused():
        thread.start()
        assert entered.wait(60)
    assert not gc.isenabled()
    over.set()
    thread.join()
    assert gc.isenabled()
