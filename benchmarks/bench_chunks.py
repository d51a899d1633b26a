"""Messages of 100 MB in chunks, against copying them into fresh memory, and what they hold there.

Run as a program, `bench_chunks.py send|receive <folder> <bytes>` does one of them and prints how
much memory the process had at most, above what it had before.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fresh_process import print_figures, run_fresh
from measurement import Measurement

KIB = os.urandom(1000)


def content(size: int) -> bytes:
    return KIB * (size // len(KIB))


class LargeMessages:
    """A topic with one message of that size at a time; deletes its folder at the end of `with`."""

    def __init__(self, folder: Path, size: int) -> None:
        import pulsarx

        self.folder = folder
        self.payload = content(size)
        self.client = pulsarx.Client(folder, durability="os")
        self.consumer: Any = self.client.subscribe(
            "measured", "worker", initial_position=pulsarx.InitialPosition.Earliest
        )
        self.producer = self.client.create_producer("measured", chunking_enabled=True)

    def copy(self) -> None:
        bytearray(self.payload)

    def send(self) -> None:
        self.producer.send(self.payload)

    def receive(self) -> None:
        message = self.consumer.receive()
        assert len(message.data()) == len(self.payload)
        self.consumer.acknowledge(message)

    def __enter__(self) -> LargeMessages:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        shutil.rmtree(self.folder)


def bench_chunked_send(measurement: Measurement, scratch: Path) -> None:
    with LargeMessages(scratch / "sent", measurement.sizes.large_message) as topic:
        sent = 0

        def send() -> None:
            nonlocal sent
            topic.send()
            sent += 1

        def drain() -> None:
            nonlocal sent
            while sent:
                topic.receive()
                sent -= 1

        measurement.pairs("chunked_send", topic.copy, send, before=drain, names=("copy", "send"))


def bench_chunked_receive(measurement: Measurement, scratch: Path) -> None:
    with LargeMessages(scratch / "received", measurement.sizes.large_message) as topic:
        measurement.pairs(
            "chunked_receive",
            topic.copy,
            topic.receive,
            before=topic.send,
            names=("copy", "receive and data"),
        )


def bench_chunked_memory(measurement: Measurement, scratch: Path) -> None:
    size = measurement.sizes.large_message

    def turn() -> float:
        folder = scratch / "memory"
        found = [
            run_fresh(__file__, what, str(folder), str(size))["bytes"]
            for what in ("send", "receive")
        ]
        shutil.rmtree(folder)
        return float(max(found)) / size

    measurement.values("chunked_memory", turn, 3)
    measurement.add_note(
        "of the sender, who has the content too, or the receiver; with mapped pages"
    )


def peak() -> int:
    """Bytes this process had in memory at most, pages of files included."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main(what: str, folder: str, size: int) -> None:
    import pulsarx

    client = pulsarx.Client(folder, durability="os")
    work: dict[str, Callable[[], object]] = {
        "send": lambda: client.create_producer("measured", chunking_enabled=True).send(
            content(size)
        ),
        "receive": lambda: (
            client.create_reader("measured", pulsarx.MessageId.earliest).read_next().data()
        ),
    }
    before = peak()
    work[what]()
    print_figures(bytes=peak() - before)
    client.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
