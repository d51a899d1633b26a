from __future__ import annotations

import tempfile
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from plain_files import PlainFiles
from seeds import scaled

from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.catalogue.state import CatalogueState
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.errors import CatalogueError

TOPICS = st.sampled_from([f"persistent://public/default/{name}" for name in ("a", "b", "ü\ud800")])
SMALL = st.integers(1, 12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
TEXTS = st.dictionaries(st.text(), st.text(), max_size=2)


def operation(op: str, /, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"op": st.just(op), **fields})


END = {
    name: st.integers(0, 2**62)
    for name in (
        "entry_count", "message_count", "size", "first_publish_ms", "last_publish_ms", "sealed_ms",
    )
}  # fmt: skip
OPERATIONS = st.one_of(
    operation("create_topic", topic=TOPICS, topic_id=SMALL, properties=TEXTS),
    operation("create_topic", topic=TOPICS, topic_id=SMALL),
    operation("delete_topic", topic=TOPICS),
    operation("add_ledger", topic=TOPICS, ledger_id=SMALL, uuid=st.just("u"), slot=SMALL),
    operation("prepare_ledger", topic=TOPICS, ledger_id=SMALL, uuid=st.just("u"), slot=SMALL),
    operation("use_ledger", topic=TOPICS, ledger_id=SMALL),
    operation("seal_ledger", topic=TOPICS, ledger_id=SMALL, **END),
    operation("remove_ledgers", topic=TOPICS, ledger_ids=st.lists(SMALL, max_size=3)),
    operation("create_subscription", topic=TOPICS, name=st.text(max_size=2), cursor_id=SMALL),
    operation("remove_subscription", topic=TOPICS, name=st.text(max_size=2)),
    operation(
        "set_subscription_properties", topic=TOPICS, name=st.text(max_size=2), properties=TEXTS
    ),
    operation("set_topic_policy", topic=TOPICS, policy=st.text(max_size=2), value=JSON),
    operation(
        "set_namespace_policy",
        namespace=st.just("public/default"),
        policy=st.text(max_size=2),
        value=JSON,
    ),
    operation("create_tenant", tenant=st.text(max_size=2)),
    operation(
        "add_schema",
        topic=TOPICS,
        version=st.integers(0, 3),
        type_name=st.sampled_from(["JSON", "STRING", "ZORK"]),
        name=st.text(max_size=2),
        definition=st.text(),
        properties=TEXTS,
        created_ms=SMALL,
    ),
    operation("delete_schema", topic=TOPICS, version=st.integers(0, 3), created_ms=SMALL),
)


OF_A_LEDGER = ("seal_ledger", "use_ledger")


def fitting(catalogue: Catalogue, step: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The step with most ids made such that they fit: fresh ones, or those of ledgers there are."""
    made = []
    for one in step:
        changed = one.copy()
        topic = catalogue.topic(one.get("topic", ""))
        ledgers = [ledger.ledger_id for ledger in topic.ledgers] if topic else []
        for field in ("topic_id", "cursor_id", "ledger_id"):
            if field in one and one[field] > 1 and one["op"] not in OF_A_LEDGER:
                changed[field] = catalogue.allocate_id()
        if one["op"] in OF_A_LEDGER and ledgers:
            changed["ledger_id"] = ledgers[one["ledger_id"] % len(ledgers)]
        if one["op"] == "remove_ledgers" and ledgers:
            changed["ledger_ids"] = ledgers[: len(one["ledger_ids"])]
        if one.get("version"):
            changed["version"] = len(catalogue.state.schemas.get(one["topic"], ()))
        made.append(changed)
    return made


@settings(max_examples=scaled(60), deadline=None)
@given(
    st.lists(st.lists(OPERATIONS, max_size=4) | st.just("reopen"), max_size=30), st.integers(1, 5)
)
def test_what_was_committed_is_what_is_read(
    script: list[list[dict[str, Any]] | str], interval: int
) -> None:
    """Any mix of commits, refused ones too, is read back equal, by an owner and by a follower."""
    files = PlainFiles(flush=False)
    with tempfile.TemporaryDirectory() as path:
        directory = DataDirectory.open(path, files=files)
        catalogue = Catalogue.open(directory, checkpoint_interval=interval)
        follower = Catalogue.open(DataDirectory.open(path, files=files, read_only=True))
        for step in script:
            before = catalogue.state.document()
            if isinstance(step, str):
                catalogue.close()
                directory.close()
                directory = DataDirectory.open(path, files=files)
                catalogue = Catalogue.open(directory, checkpoint_interval=interval)
                changed = {name: before[name] for name in ("number", "checksum", "epoch")}
                assert {**catalogue.state.document(), **changed} == before
                continue
            try:
                catalogue.commit(fitting(catalogue, step))
            except CatalogueError:
                assert catalogue.state.document() == before
        follower.refresh()
        assert follower.state == catalogue.state
        assert CatalogueState.of_document(catalogue.state.document()) == catalogue.state
        catalogue.close()
        directory.close()
