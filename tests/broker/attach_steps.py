"""What the tests of attaching share: a folder, and looks at what is in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from topic_reading import whole_topic

import pulsarx
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx.broker import registry
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.folder.data_directory import DataDirectory


@pytest.fixture(name="folder")
def folder_of_topics(tmp_path: Path) -> Path:
    """A data directory with the topics t, u and, of three partitions, p; nobody owns it."""
    path = tmp_path / "data"
    with pulsarx.Client(path) as client:
        for name in "tu":
            client.admin.topics.create_non_partitioned_topic(name)
        client.admin.topics.create_partitioned_topic("p", 3)
    return path


def contents(folder: Path, *topics: str) -> list[list[bytes]]:
    with pulsarx.Client(folder) as client:
        return [whole_topic(client, topic) for topic in topics]


def catalogue(folder: Path) -> Catalogue:
    return Catalogue.open(DataDirectory.open(str(folder), files=FileSystem(), read_only=True))


def publish(folder: Path, topic: str) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer(topic).send(b"published")


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    yield
    assert not registry._registry
