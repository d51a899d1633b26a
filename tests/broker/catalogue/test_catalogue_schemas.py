"""Facts about schemas in the catalogue: versions, checkpoints, a crash at every call."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from catalogue_folder import TOPIC, checkpoints, create, open_folder, read_folder
from plain_files import PlainFiles
from seeds import seeds
from simulated_files import Crash, SimulatedFiles

from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.policies.policy_store import PolicyStore
from pulsarx.broker.schemas.registry import SchemaRegistry
from pulsarx.broker_options import BrokerOptions
from pulsarx.errors import CatalogueError
from pulsarx.schema import SchemaInfo, SchemaType
from pulsarx.topic_name import TopicName

NAME = f"{TOPIC}t"
TOPIC_NAME = TopicName.of(NAME)


def registry_of(catalogue: Catalogue) -> SchemaRegistry:
    return SchemaRegistry(catalogue, PolicyStore(catalogue, BrokerOptions()), lambda: 5)


def schema(number: int) -> SchemaInfo:
    fields = ",".join(f'{{"name":"f{n}","type":"int","default":0}}' for n in range(number + 1))
    return SchemaInfo(
        SchemaType.AVRO, "", f'{{"type":"record","name":"R","fields":[{fields}]}}', {"n": "x"}
    )


def add(version: int, **changed: Any) -> dict[str, Any]:
    operation = changes.add_schema(
        NAME, version, type_name="JSON", name="", definition="{}", properties={}, created_ms=1
    )
    return operation | changed


def test_versions_follow_each_other_and_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path)
    create(catalogue, "t")
    catalogue.commit([add(0), add(1), changes.delete_schema(NAME, 2, deleted_ms=1), add(3)])
    before = catalogue.state.document()
    for wrong in (
        add(3),
        add(5),
        add(4, type_name="ZORK"),
        add(4, topic=f"{TOPIC}gone"),
        add(4, properties={"a": 1}),
        add(4, definition=None),
        changes.delete_schema(NAME, 7, deleted_ms=1),
        changes.delete_schema(f"{TOPIC}gone", 0, deleted_ms=1),
    ):
        with pytest.raises(CatalogueError):
            catalogue.commit([wrong])
    catalogue.commit([changes.delete_schema(NAME, 4, deleted_ms=1)])
    with pytest.raises(CatalogueError, match="has no schema"):
        catalogue.commit([changes.delete_schema(NAME, 5, deleted_ms=1)])
    assert len(catalogue.state.schemas[NAME]) == 5 and len(before["schemas"][NAME]) == 4
    catalogue.close()
    directory.close()


def test_schemas_go_with_their_topic(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path)
    create(catalogue, "t")
    catalogue.commit([add(0), {"op": "delete_topic", "topic": NAME}])
    assert catalogue.state.schemas == {}
    create(catalogue, "t")
    catalogue.commit([add(0)])
    catalogue.commit([{"op": "delete_topic", "topic": NAME}])
    assert catalogue.state.schemas == {}
    catalogue.close()
    directory.close()


def test_schemas_are_in_the_checkpoint(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path)
    create(catalogue, "t")
    registry = registry_of(catalogue)
    registry.register(TOPIC_NAME, schema(0))
    registry.delete(TOPIC_NAME)
    registry.register(TOPIC_NAME, schema(1))
    catalogue.checkpoint()
    assert checkpoints(tmp_path)
    catalogue.close()
    directory.close()
    read = read_folder(tmp_path)
    assert read.state == catalogue.state
    assert [each.version for each in read.state.schemas[NAME]] == [0, 1, 2]
    assert read.state.schemas[NAME][2].properties == {"n": "x"}


# A crash at every call ----------------------------------------------------------------------------


def run(files: SimulatedFiles, path: str, registered: list[int]) -> None:
    directory = None
    try:
        directory = DataDirectory.open(path, files=files)
        catalogue = Catalogue.open(directory, checkpoint_interval=2)
        registry = registry_of(catalogue)
        create(catalogue, "t")
        for number in range(4):
            assert registry.register(TOPIC_NAME, schema(number)) == number
            registered.append(number)
        catalogue.close()
    finally:
        if directory is not None:
            directory.close()


def check(path: str, registered: list[int]) -> None:
    directory = DataDirectory.open(path, files=PlainFiles(flush=False))
    catalogue = Catalogue.open(directory)
    registry = registry_of(catalogue)
    if catalogue.topic(NAME) is None:
        assert not registered
        create(catalogue, "t")
    found = registry.versions(TOPIC_NAME)
    assert found == [schema(number) for number in range(len(found))]
    assert len(registered) <= len(found) <= len(registered) + 1
    for number in range(4):  # the producers come again
        assert registry.register(TOPIC_NAME, schema(number)) == number
    catalogue.close()
    directory.close()


@pytest.mark.parametrize("seed", [None, *seeds(1)])
def test_a_crash_around_a_registration_leaves_the_old_or_the_new_schemas(
    tmp_path: Path, seed: int | None
) -> None:
    print("seed", seed)
    root = tmp_path / "root"
    for crash_at in range(10_000):
        root.mkdir()
        files = SimulatedFiles(str(root), crash_at=crash_at)
        registered: list[int] = []
        folder = str(root / "folder")
        try:
            run(files, folder, registered)
            assert crash_at > 50
            return
        except Crash:
            pass
        files.power_cut(None if seed is None else random.Random(seed * 10_000 + crash_at))
        check(folder, registered)
        shutil.rmtree(root)
    raise AssertionError("the sweep did not end")
