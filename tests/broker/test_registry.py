"""Facts about which folders are open in a process, and how its end closes them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sleeping_thread import until_asleep

import pulsarx
from pulsarx import errors
from pulsarx.broker import registry
from pulsarx.testing import inspect

PATIENCE_SECONDS = 60


def test_the_end_of_the_process_waits_for_a_thread_that_opens_or_closes_a_folder(tmp_path: Path):
    """It closed folders that another thread was just closing, or opening."""
    client = pulsarx.Client(tmp_path / "f")
    broker = inspect(client).broker
    with registry._lock:  # as that thread holds it
        ending = threading.Thread(target=registry._close_all_at_exit)
        ending.start()
        until_asleep(ending)
        assert broker.state.is_open
    ending.join(PATIENCE_SECONDS)
    assert not broker.state.is_open
    with pytest.raises(errors.AlreadyClosed):
        client.create_producer("t")
    client.close()
    pulsarx.Client(tmp_path / "f").close()


def test_a_thread_that_hangs_does_not_hold_up_the_end_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(registry, "_EXIT_WAIT_SECONDS", 0.01)
    client = pulsarx.Client(tmp_path / "f")
    broker = inspect(client).broker
    with registry._lock:
        ending = threading.Thread(target=registry._close_all_at_exit)
        ending.start()
        ending.join(PATIENCE_SECONDS)
        assert not broker.state.is_open
    client.close()


def test_the_end_of_the_process_waits_for_no_job_that_waits_for_it(tmp_path: Path):
    """It closed folders under the lock that the job wants which gives back the reference of a
    forgotten client, and hung."""
    client = pulsarx.Client(tmp_path / "f")
    broker = inspect(client).broker
    key = next(key for key, each in registry._registry.items() if each is broker)
    released = threading.Event()

    def give_back() -> None:
        pause = threading.Event()
        while broker.state.is_open:
            pause.wait(0.001)
        registry.release(key, broker)
        released.set()

    broker.runtime.background.post(give_back)
    ending = threading.Thread(target=registry._close_all_at_exit, daemon=True)
    ending.start()
    ending.join(PATIENCE_SECONDS)
    assert not ending.is_alive()
    assert released.is_set()
    client.close()
    pulsarx.Client(tmp_path / "f").close()
