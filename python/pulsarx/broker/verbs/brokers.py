"""Verbs about the broker of a folder as a whole."""

from __future__ import annotations

import os

from pulsarx.broker.verbs.http import Http
from pulsarx.broker.verbs.verb import SUPERUSER, verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.faces import OpenFolder

PARTS = ("ledgers", "cursors", "catalogue", "staging", "orphans")


@verb("brokers.get_storage_size", needs=SUPERUSER, reads=True)
def get_storage_size(folder: OpenFolder) -> dict[str, int]:
    """Bytes that the files of the folder take on the device, by what they are, and of all; zeros in
    memory."""
    path = folder.directory.path
    found = {part: _size_below(f"{path}/{part}") for part in PARTS}
    return {**found, "total": sum(found.values())}


def _size_below(path: str) -> int:
    total = 0
    for place, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(f"{place}/{name}").st_blocks * 512
            except FileNotFoundError:
                pass  # removed meanwhile
    return total


@verb("brokers.healthcheck", needs=SUPERUSER,
    http=Http("GET", "/brokers/health", "Publish a message and read it again."))  # fmt: skip
def healthcheck(broker: Broker) -> None:
    """Publish a message to a topic of the system and read it again."""
    from pulsarx.broker.topics.system_topics import check_health

    check_health(broker.runtime, broker.topics)
