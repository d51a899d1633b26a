"""Facts about blocks in which the collector of garbage does not run."""

from __future__ import annotations

import gc
import os
import threading
from types import SimpleNamespace

import pytest

from pulsarx.broker import collector_paused
from pulsarx.broker.collector_paused import CollectorPaused


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


def test_it_runs_in_a_child_that_is_forked_while_the_block_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It did not where the fork came just before the collector was turned on again."""
    ended: list[int] = []

    def fork() -> None:
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    threads = [threading.Thread(target=fork)]

    def enable() -> None:
        while threads:
            thread = threads.pop()
            thread.start()
            thread.join()
        gc.enable()

    fake = SimpleNamespace(isenabled=gc.isenabled, disable=gc.disable, enable=enable)
    monkeypatch.setattr(collector_paused, "gc", fake)
    with CollectorPaused():
        pass
    assert ended == [0]
