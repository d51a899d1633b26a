"""PulsarX in a few seconds: `make quickstart`, or `python examples/quickstart.py [folder]`.

Publishes 336,776 real flights to a durable topic in a folder, consumes them in another process,
kills that process half-way (SIGKILL), starts it again, and checks that it went on exactly where it
was: nothing lost, nothing that was acknowledged delivered again. Exit code 1 when anything differs.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import flight_board
from flight_board import BEGUN_NS, DISORDER, DONE, ENDED_NS, FIRST, SUBSCRIPTION, TOPIC, Notes
from flights import Flight, read_airlines, read_flights
from progress_bar import ProgressBar

import pulsarx

FLIGHT_COUNT = 336_776
FOLDER = Path(__file__).resolve().parent.parent / "build" / "quickstart"


def load() -> list[Flight]:
    bar = ProgressBar("read", FLIGHT_COUNT)
    flights = []
    for flight in read_flights():
        flights.append(flight)
        if len(flights) % 4096 == 0:
            bar.show(len(flights))
    size = sum(len(flight.value) for flight in flights)
    bar.stop(len(flights), f"flights, {size / 1e6:.0f} MB of JSON")
    return flights


def publish(folder: Path, flights: list[Flight]) -> None:
    """Send every flight; returns when all of them are on the device."""
    bar = ProgressBar("publish", len(flights))
    with pulsarx.Client(folder) as client:
        # The subscription comes first: what it has not acknowledged is kept from here on.
        client.subscribe(
            TOPIC, SUBSCRIPTION, initial_position=pulsarx.InitialPosition.Earliest
        ).close()
        producer = client.create_producer(
            TOPIC,
            batching_enabled=True,
            max_pending_messages=50_000,
            block_if_queue_full=True,
        )
        begun = time.monotonic_ns()
        for index, (carrier, scheduled_ms, value) in enumerate(flights):
            producer.send_async(value, None, partition_key=carrier, event_timestamp=scheduled_ms)
            if index % 4096 == 0:
                bar.show(index)
        producer.flush()
        rate = len(flights) / (time.monotonic_ns() - begun) * 1e9
        bar.stop(len(flights), f"{rate:,.0f} a second, all flushed to the device")


def consume(folder: Path, notes_path: Path, notes: Notes, kill_at: int | None) -> bool:
    """Run the consumer process, killed once kill_at messages are done. False: it failed."""
    count = len(notes.receipts)
    before = sum(notes.acknowledged)
    notes.counters[DONE] = 0
    bar = ProgressBar("consume" if kill_at is not None else "resume", count)
    # Should this process be kept waiting, the consumer must not be done before it can be killed.
    pause_at = -1 if kill_at is None else (kill_at + count) // 2
    command = [flight_board.__file__, str(folder), str(notes_path), str(count), str(pause_at)]
    process = subprocess.Popen([sys.executable, *command])
    try:
        while process.poll() is None:
            done = notes.counters[DONE]
            bar.show(before + done)
            if kill_at is not None and done >= kill_at:
                process.kill()
                process.wait()
            time.sleep(0.005)
    finally:
        process.kill()
        process.wait()
    elapsed = max(notes.counters[ENDED_NS] - notes.counters[BEGUN_NS], 1)
    rate = f"{notes.counters[DONE] / elapsed * 1e9:,.0f} a second, each acknowledged"
    killed = process.returncode == -signal.SIGKILL
    bar.stop(before + notes.counters[DONE], rate + (", then killed (SIGKILL)" if killed else ""))
    if killed != (kill_at is not None) or (not killed and process.returncode != 0):
        print(f"the consumer process ended with {process.returncode}")
        return False
    return True


def size_on_disk(folder: Path) -> str:
    """In MB, as the file system allocated it."""
    size = sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
    return f"{size / 1e6:,.1f}"


def backlog(folder: Path) -> int:
    """Messages the subscription has not acknowledged, as the topic's statistics say."""
    with pulsarx.Client(folder) as client:
        stats = client.admin.topics.stats(TOPIC)
        count: int = stats["subscriptions"][SUBSCRIPTION]["msg_backlog"]
        return count


def print_carriers(flights: list[Flight], notes: Notes, acked_before: bytes) -> int:
    """The table by carrier; returns how many flights did not arrive as they are in the source."""
    source: Counter[str] = Counter()
    early: Counter[str] = Counter()
    late: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for index, flight in enumerate(flights):
        source[flight.carrier] += 1
        if notes.receipts[index] == 0 or notes.checksums[index] != flight_board.checksum(*flight):
            wrong[flight.carrier] += 1
        elif acked_before[index]:
            early[flight.carrier] += 1
        else:
            late[flight.carrier] += 1
    names = read_airlines()
    head = ("before kill", "after it", "arrived", "in source")
    print(f"\n{'carrier':<32}{head[0]:>12}{head[1]:>12}{head[2]:>12}{head[3]:>12}")
    for carrier, count in source.most_common():
        row = (early[carrier], late[carrier], early[carrier] + late[carrier], count)
        verdict = "ok" if wrong[carrier] == 0 else f"{wrong[carrier]:,} WRONG"
        print(f"{carrier} {names[carrier]:<29}" + "".join(f"{n:>12,}" for n in row), verdict)
    row = (early.total(), late.total(), early.total() + late.total(), source.total())
    print(f"{'all':<32}" + "".join(f"{n:>12,}" for n in row) + "\n")
    return wrong.total()


def check(flights: list[Flight], notes: Notes, acked_before: bytes, left: int) -> bool:
    """Print what was found and whether it is what must be."""
    again = [index for index, receipts in enumerate(notes.receipts) if receipts > 1]
    acked_again = sum(acked_before[index] for index in again)
    acked_count, first = sum(acked_before), notes.counters[FIRST]
    wrong = print_carriers(flights, notes, acked_before)
    # A kill between acknowledging a message and noting that leaves one acknowledgement unnoted.
    resumed = first - acked_count in (0, 1) and acked_before.count(1, 0, first) == acked_count
    facts = [
        (len(flights), "flights in the source", len(flights) == FLIGHT_COUNT),
        (acked_count, "acknowledged when the consumer was killed", 0 < acked_count < len(flights)),
        (first + 1, "the flight at which the new process went on, the next one", resumed),
        (notes.receipts.tobytes().count(0), "lost", 0 not in notes.receipts),
        (wrong, "different from the source", wrong == 0),
        (acked_again, "acknowledged and yet delivered again", acked_again == 0),
        (len(again), "in hand but not acknowledged at the kill, delivered again", len(again) <= 1),
        (notes.counters[DISORDER], "out of order", notes.counters[DISORDER] == 0),
        (left, "still to be acknowledged", left == 0),
    ]
    for count, text, fine in facts:
        print(f"{count:>8,}  {text:<60} {'ok' if fine else 'WRONG'}")
    return all(fine for _, _, fine in facts)


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else FOLDER
    if not arguments:
        shutil.rmtree(folder, ignore_errors=True)
    elif folder.exists():
        print(f"{folder} exists; name a new folder")
        return 1
    notes_path = folder.with_name(folder.name + ".notes")
    folder.parent.mkdir(parents=True, exist_ok=True)
    print(f"PulsarX {pulsarx.__version__}: topic {TOPIC!r} in the folder {folder}")
    flights = load()
    publish(folder, flights)
    notes = Notes(str(notes_path), len(flights), create=True)
    try:
        half = consume(folder, notes_path, notes, kill_at=len(flights) // 2)
        acked_before = notes.acknowledged.tobytes()
        whole = half and consume(folder, notes_path, notes, kill_at=None)
    finally:
        notes_path.unlink()
    good = whole and check(flights, notes, acked_before, backlog(folder))
    print(f"{size_on_disk(folder):>8}  MB on disk in {folder}")
    print("Everything arrived as it was sent." if good else "MISMATCH: see above.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
