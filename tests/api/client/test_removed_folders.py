"""Facts about folders that are removed, moved or replaced while they are open."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess, run_program
from topic_reading import OpenClient, whole_topic

import pulsarx
from pulsarx import errors
from pulsarx.admin import Admin
from pulsarx.testing import inspect

FirstClient = Callable[..., pulsarx.Client]

GUEST = """
import sys, pulsarx
folder = sys.argv[1]
first = pulsarx.Client(folder)
first.create_producer("t").send(b"before")
print("joined", flush=True)
sys.stdin.readline()
second = pulsarx.Client(folder)
second.create_producer("t").send(b"from the guest")
print("confirmed", flush=True)
sys.stdin.readline()
second.close()
try:
    first.create_producer("u").send(b"nowhere")
except pulsarx.PulsarException as error:
    print(type(error).__name__, "removed" in str(error), flush=True)
first.shutdown()
"""
LEFT_OPEN = """
import logging, shutil, sys, pulsarx, pulsarx.testing
logging.basicConfig(stream=sys.stdout)
first = pulsarx.Client(sys.argv[1], durability="os")
first.create_producer("t").send(b"before")
pulsarx.testing.inspect(first).settle()
shutil.rmtree(sys.argv[1])
second = pulsarx.Client(sys.argv[1], durability="os")
second.create_producer("t").send(b"after")
"""


def files_below(folder: Path) -> dict[str, bytes]:
    """All but the socket and what changes while a folder is open."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in found if path.name != "ends"
    }


@pytest.fixture
def first_client(folder: Path) -> Iterator[FirstClient]:
    """Opens a client of the folder, with a message in topic t. It may be closed without it."""
    opened: list[pulsarx.Client] = []

    def make(**options: Any) -> pulsarx.Client:
        client = pulsarx.Client(folder, durability="os", **options)
        opened.append(client)
        client.create_producer("t").send(b"before")
        inspect(client).settle()  # what is made while files are removed would be left
        return client

    yield make
    for client in opened:
        with suppress(errors.PulsarException):
            client.shutdown()


def move(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))


def replace_by_an_empty_one(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


@pytest.mark.parametrize("leave", [shutil.rmtree, move, replace_by_an_empty_one])
def test_a_new_client_makes_the_folder_anew(
    folder: Path,
    first_client: FirstClient,
    open_client: OpenClient,
    leave: Callable[[Path], object],
) -> None:
    first_client()
    leave(folder)
    second = open_client()
    second.create_producer("t").send(b"after")
    second.close()
    assert whole_topic(open_client()) == [b"after"]


def test_a_new_client_opens_the_copy_that_was_put_in_its_place(
    folder: Path, tmp_path: Path, first_client: FirstClient, open_client: OpenClient
) -> None:
    first_client()
    shutil.copytree(folder, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock"))
    shutil.rmtree(folder)
    (tmp_path / "copy").rename(folder)
    second = open_client()
    second.create_producer("t").send(b"after")
    second.close()
    assert whole_topic(open_client()) == [b"before", b"after"]


def test_two_clients_of_a_folder_that_is_there_share_it(
    folder: Path, open_client: OpenClient
) -> None:
    first = open_client()
    shutil.rmtree(folder)
    second, third = open_client(), open_client()
    second.create_producer("t").send(b"x")
    assert whole_topic(third) == [b"x"]
    first.shutdown()
    assert whole_topic(third) == [b"x"]


def test_who_has_the_removed_folder_changes_nothing_in_the_new_one(
    folder: Path, first_client: FirstClient, open_client: OpenClient
) -> None:
    first = first_client()
    consumer = first.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest)
    for number in range(40):
        first.create_producer(f"t{number}").send(b"before")
    producer = first.create_producer("t")
    producer.send(b"before")
    shutil.rmtree(folder)
    second = open_client()
    second.create_producer("t").send(b"after")
    second.subscribe("t", "s").close()
    second.close()
    before = files_below(folder)
    consumer.acknowledge(consumer.receive(60000))
    with pytest.raises(errors.StorageError, match=r"removed, moved or replaced|Stale"):
        first.subscribe("t", "another")
    with pytest.raises(errors.StorageError, match="removed, moved or replaced"):
        first.create_producer("new")
    with pytest.raises(errors.StorageError, match="removed, moved or replaced"):
        first.close()
    assert files_below(folder) == before
    assert whole_topic(open_client()) == [b"after"]


def test_no_ledger_is_begun_in_a_removed_folder(folder: Path, first_client: FirstClient) -> None:
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    producer = first_client(broker_options=options).create_producer("t")
    shutil.rmtree(folder)
    with pytest.raises(errors.StorageError):
        for _ in range(10):
            producer.send(b"nowhere")
    assert not folder.exists()


def test_what_is_asked_of_a_path_is_answered_by_the_folder_there(
    folder: Path, first_client: FirstClient, open_client: OpenClient
) -> None:
    first_client()
    shutil.rmtree(folder)
    open_client().create_producer("after").send(b"x")
    names = Admin.at(folder).namespaces.get_topics("public/default")
    assert names == ["persistent://public/default/after"]


def test_a_process_that_ends_closes_both_folders(folder: Path) -> None:
    (line,) = run_program(LEFT_OPEN, folder)
    assert f"closing {folder} failed" in line  # the removed one
    assert not (folder / "control.sock").exists()  # it goes when the owner closes
    with pulsarx.Client(folder, read_only=True) as client:
        assert whole_topic(client) == [b"after"]


@pytest.mark.standard
def test_a_guest_of_a_removed_folder_joins_the_owner_of_the_new_one(
    folder: Path, first_client: FirstClient, open_client: OpenClient
) -> None:
    first = first_client()
    with ChildProcess(GUEST, folder) as guest:
        assert guest.line() == "joined"
        shutil.rmtree(folder)
        second = open_client()
        guest.tell()
        assert guest.line() == "confirmed"
        assert whole_topic(second) == [b"from the guest"]
        with pytest.raises(errors.StorageError, match="removed, moved or replaced"):
            first.close()
        guest.tell()
        assert guest.line() == "FolderError True"
        assert guest.rest() == []
