"""Opens what a root names, to be looked at: a data directory beside its owner, or the history of
topics in an object store. Driver only."""

from __future__ import annotations

import logging

from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.spark.cluster_url import is_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_told: set[str] = set()


def open_root(
    root: str,
    topics: Iterable[str] | None = None,
    take_log: Callable[[Any], Any] | None = None,
) -> ReadOnlyBroker:
    """topics: those that are wanted; None: which is not known yet. FolderError: it is neither."""
    if not is_store(root):
        return ReadOnlyBroker(root, take_log)
    from pulsarx.broker.offload.stored_broker import StoredBroker

    return StoredBroker(root, topics)


def tell_ends(broker: ReadOnlyBroker, topics: Iterable[str]) -> None:
    """Say in the log, once, where the history ends that is read of an object store."""
    if not broker.is_stored:
        return
    from pulsarx.broker.offload.stored_broker import StoredBroker

    assert isinstance(broker, StoredBroker)
    for text in broker.ends_told(topics):
        if text not in _told:
            _told.add(text)
            logging.getLogger("pulsarx.spark").warning("%s", text)
