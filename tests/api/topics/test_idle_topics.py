"""What a topic holds that was used and is idle: a folder may have tens of thousands."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

from pulsarx import Client

COUNT = 200
BYTES_MAX = 4096


def test_idle_topic_holds_little_memory(tmp_path: Path) -> None:
    with Client(tmp_path / "data", durability="os") as client:
        client.create_producer("loads-what-all-need").close()
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for number in range(COUNT):
                client.create_producer(f"topic-{number}").close()
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (after - before) / COUNT <= BYTES_MAX
