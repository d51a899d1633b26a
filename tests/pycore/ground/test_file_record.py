"""Facts about the recording of file operations: order, marks, stores to mappings, children."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx._pycore.ground import file_system


@pytest.fixture(autouse=True)
def freed() -> Iterator[None]:
    yield
    file_system.record_remove()
    file_system.record_free()


def recorded() -> list[Any]:
    return list(file_system.record_calls())


def test_calls_and_marks_are_in_the_order_in_which_they_took_effect(tmp_path: Path) -> None:
    files = file_system.FileSystem()
    file_system.record_install()
    files.create(str(tmp_path / "a"), b"data")
    file_system.record_mark(b"created")
    files.rename(str(tmp_path / "a"), str(tmp_path / "b"))
    files.flush_directory(str(tmp_path))
    file_system.record_remove()
    files.unlink(str(tmp_path / "b"))
    calls = recorded()
    assert [each.op for each in calls] == [
        "open", "write", "flush", "close", "mark", "rename", "flush_directory",
    ]  # fmt: skip
    assert calls[0].path == str(tmp_path / "a") and calls[0].is_new
    assert (calls[1].data, calls[1].offset, calls[1].size) == (b"data", 0, 4)
    assert calls[1].fd == calls[2].fd == calls[0].fd
    assert calls[4].data == b"created"
    assert (calls[5].path, calls[5].other) == (str(tmp_path / "a"), str(tmp_path / "b"))


def test_a_refused_call_is_recorded_with_its_error(tmp_path: Path) -> None:
    file_system.record_install()
    with pytest.raises(FileNotFoundError):
        file_system.FileSystem().unlink(str(tmp_path / "none"))
    assert [(each.op, each.error) for each in recorded()] == [("unlink", 2)]


def test_stores_to_mappings_are_seen_at_the_next_mark(tmp_path: Path) -> None:
    file_system.record_install()
    with pulsarx.Client(tmp_path) as client:
        consumer = client.subscribe("t", "s")
        client.create_producer("t").send(b"one")
        message = consumer.receive()
        file_system.record_mark(b"received")
        consumer.acknowledge(message)
        file_system.record_mark(b"acknowledged")
        calls = recorded()
    number = next(at for at, each in enumerate(calls) if each.data == b"acknowledged")
    store = calls[number - 1]
    assert store.op == "store" and len(store.data) == 4096
    mapping = next(each for each in calls if each.op == "map" and each.map == store.map)
    opened = [each for each in calls[: calls.index(mapping)] if each.op == "open"]
    assert [each.path for each in opened if each.fd == mapping.fd][-1].endswith(".unfinished")


def test_each_recording_begins_empty_and_a_child_adds_nothing(tmp_path: Path) -> None:
    files = file_system.FileSystem()
    file_system.record_install()
    files.create(str(tmp_path / "a"), b"")
    file_system.record_install()
    child = os.fork()
    if not child:
        files.create(str(tmp_path / "b"), b"")
        os._exit(len(recorded()))
    assert os.waitpid(child, 0)[1] == 0
    assert (tmp_path / "b").exists() and recorded() == []
