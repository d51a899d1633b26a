"""The consumer process of the quickstart, which may be killed at any moment.

`flight_board.py folder notes count pause_at` receives and acknowledges one message after the other
and writes into a shared map what it saw. So the process that kills it can check afterwards what was
delivered and what was acknowledged.
"""

from __future__ import annotations

import mmap
import signal
import sys
import time
import zlib
from typing import TYPE_CHECKING

import pulsarx

if TYPE_CHECKING:
    from pulsarx import Message

TOPIC = "flights"
SUBSCRIPTION = "flight-board"


class Notes:
    """A map of a small file, shared by both processes; outlives a kill. One writer at a time.

    receipts[i]: how often message i was delivered. acknowledged[i]: 1 once `acknowledge` returned.
    checksums[i]: of what was delivered as message i. counters: of the process that runs now, but
    for DISORDER, which counts on.
    """

    def __init__(self, path: str, count: int, *, create: bool = False) -> None:
        with open(path, "w+b" if create else "r+b") as file:
            if create:
                file.truncate(8 * 8 + 6 * count)
            view = memoryview(mmap.mmap(file.fileno(), 0))
        self.counters = view[:64].cast("q")
        self.checksums = view[64 : 64 + 4 * count].cast("I")
        self.receipts = view[64 + 4 * count : 64 + 5 * count]
        self.acknowledged = view[64 + 5 * count :]


# Places in Notes.counters.
FIRST, DONE, DISORDER, BEGUN_NS, ENDED_NS = range(5)


def checksum(key: str, event_time_ms: int, value: bytes) -> int:
    """Of everything that must arrive as it was sent."""
    return zlib.crc32(value, zlib.crc32(b"%s %d " % (key.encode(), event_time_ms)))


def consume(folder: str, notes: Notes, pause_at: int) -> None:
    """Receive and acknowledge until nothing more comes; at pause_at wait to be killed."""
    counters = notes.counters
    counters[FIRST] = -1
    counters[DONE] = 0
    client = pulsarx.Client(folder)
    consumer = client.subscribe(TOPIC, SUBSCRIPTION)
    previous = -1
    counters[BEGUN_NS] = time.monotonic_ns()
    while True:
        try:
            message = consumer.receive(timeout_millis=100)  # all is published: silence is the end
        except pulsarx.Timeout:
            break
        index = note_receipt(notes, message)
        consumer.acknowledge(message)
        notes.acknowledged[index] = 1
        counters[DONE] += 1
        if previous < 0:
            counters[FIRST] = index
        elif index != previous + 1:
            counters[DISORDER] += 1
        previous = index
        counters[ENDED_NS] = time.monotonic_ns()
        if index == pause_at:
            signal.pause()
    client.close()


def note_receipt(notes: Notes, message: Message) -> int:
    """The message's place in the source: one producer sent all, with sequence ids from 0 on."""
    index: int = message.sequence_id()
    notes.receipts[index] += 1
    notes.checksums[index] = checksum(
        message.partition_key(), message.event_timestamp(), message.data()
    )
    return index


if __name__ == "__main__":
    consume(sys.argv[1], Notes(sys.argv[2], int(sys.argv[3])), int(sys.argv[4]))
