"""Forwards a folder to a real Apache Pulsar and fetches it back, while broker and forwarder are
killed: each message must be there once, in order. Then the rate beside a bare official producer's.

    python tests/oracle/forwarding.py [--kills N] [--messages N] [--no-rates]

Needs what real_pulsar.py needs. Exit status 1: something is missing, twice, or out of order.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "api")]

from child_process import ChildProcess  # noqa: E402
from real_pulsar import Missing, RealPulsar  # noqa: E402
from seeds import new_seed  # noqa: E402

import pulsarx  # noqa: E402

TOPICS = ("first", "second")
LOOKS_MAX = 3000  # of a hundredth of a second: a broker that was killed comes back in less
FORWARDER = """
import sys, select, pulsarx
source, target, admin_url, name = sys.argv[1:5]
topics = [f"persistent://public/default/{each}" for each in ("first", "second")]
with pulsarx.Forwarder(source, target, topics, name=name, admin_url=admin_url) as forwarder:
    while not select.select([sys.stdin], [], [], 0.01)[0]:
        print(sum(each["forwarded"] for each in forwarder.status().values()), flush=True)
print("end", flush=True)
"""


def payload(topic: str, number: int) -> bytes:
    return b"%s %d" % (topic.encode(), number)


def fill(folder: Path, count: int) -> None:
    with pulsarx.Client(folder) as client:
        for topic in TOPICS:
            with client.create_producer(
                topic, batching_enabled=True, block_if_queue_full=True
            ) as producer:
                for number in range(count):
                    producer.send_async(payload(topic, number), None, partition_key=f"{number % 9}")


def come_to(child: ChildProcess, more: int) -> None:
    """Until so many more are forwarded, or none for some seconds."""
    begin = last = int(child.line())
    same = 0
    while last < begin + more and same < LOOKS_MAX:
        found = int(child.line())
        same = same + 1 if found == last else 0
        last = found


def run(
    broker: RealPulsar, arguments: tuple[Any, ...], total: int, kills: int, chance: random.Random
) -> None:
    """Forward all, with kills on the way."""
    child = ChildProcess(FORWARDER, *arguments)
    for turn in range(kills):
        wanted = chance.randrange(1, max(total // (kills + 1) - 1, 2))
        if turn % 2:
            come_to(child, wanted)
            child.kill()
            child.__exit__(None, None, None)
            child = ChildProcess(FORWARDER, *arguments)
        else:
            come_to(child, wanted)
            broker.kill_and_start()
        print(f"kill {turn + 1} of {kills}", flush=True)
    come_to(child, total)
    with child:
        child.tell()
        child.end()


def payloads(client: Any, topic: str, count: int) -> list[bytes]:
    """What a topic has."""
    found: list[bytes] = []
    with client.create_reader(topic, pulsarx.MessageId.earliest) as reader:
        while len(found) < 2 * count:
            try:
                found.append(reader.read_next(2000).data())
            except pulsarx.Timeout:
                break
    return found


def check(client: Any, count: int, where: str) -> bool:
    is_right = True
    for topic in TOPICS:
        found = payloads(client, topic, count)
        expected = [payload(topic, number) for number in range(count)]
        is_right &= found == expected
        print(
            f"{where} {topic}: {len(found)} messages, {len(set(found))} different, "
            f"{'each once in order' if found == expected else 'WRONG'}",
            flush=True,
        )
    return is_right


def rates(broker: RealPulsar, folder: Path, count: int) -> None:
    """The forwarder's, and a bare official producer's, in turns."""
    import pulsar

    data = b"x" * 100

    def described(number: int) -> dict[str, Any]:
        key = f"key-{number % 100}"
        return {"partition_key": key, "properties": {"a": "b"}, "event_timestamp": number + 1}

    log = pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null")
    official = pulsar.Client(broker.url, logger=log)
    edge = pulsarx.Client(folder)
    for topic in ("plain", "described"):
        with edge.create_producer(topic, batching_enabled=True, block_if_queue_full=True) as made:
            for number in range(count):
                made.send_async(data, None, **(described(number) if topic == "described" else {}))

    def bare(topic: str, has_callback: bool) -> float:
        producer = official.create_producer(
            f"bare-{topic}",
            batching_enabled=True,
            block_if_queue_full=True,
            max_pending_messages=10_000,
        )
        told, done = [0], threading.Event()

        def callback(*_: object) -> None:
            told[0] += 1
            if told[0] == count:
                done.set()

        begin = time.perf_counter()
        for number in range(count):
            more = described(number) if topic == "described" else {}
            producer.send_async(data, callback if has_callback else None, **more)
        producer.flush()
        if has_callback:
            done.wait()
        seconds = time.perf_counter() - begin
        producer.close()
        return count / seconds

    def forwarded(topic: str, name: str) -> float:
        full = f"persistent://public/default/{topic}"
        with pulsarx.Forwarder(
            edge, broker.url, topic, name=name, admin_url=broker.web_url
        ) as forwarder:

            def come() -> int:
                found = forwarder.status().get(full)
                return found["forwarded"] if found else 0

            while (first := come()) == 0:
                threading.Event().wait(0.005)
            begin = time.perf_counter()
            while (last := come()) < count:
                threading.Event().wait(0.01)
            return (last - first) / (time.perf_counter() - begin)

    for turn in range(3):
        for topic in ("plain", "described"):
            told = [bare(topic, True), bare(topic, False), forwarded(topic, f"rate-{turn}")]
            print(
                f"{topic}: a bare producer {told[0]:,.0f} messages/s, without callbacks "
                f"{told[1]:,.0f}; the forwarder {told[2]:,.0f}: {told[2] / told[0]:.2f} and "
                f"{told[2] / told[1]:.2f}",
                flush=True,
            )
    official.close()
    edge.close()


def main() -> int:
    given = argparse.ArgumentParser()
    given.add_argument("--kills", type=int, default=6)
    given.add_argument("--messages", type=int, default=200_000)
    given.add_argument("--no-rates", action="store_true")
    options = given.parse_args()
    chance = random.Random(new_seed())
    count = options.messages // 2
    with RealPulsar() as broker, tempfile.TemporaryDirectory(prefix="pulsarx-") as place:
        source, target = Path(place) / "source", Path(place) / "target"
        if not options.no_rates:
            rates(broker, Path(place) / "rates", count)
        fill(source, count)
        run(
            broker, (source, broker.url, broker.web_url, "forward"),
            options.messages, options.kills, chance,
        )  # fmt: skip
        quiet = pulsarx.FileLogger(pulsarx.LoggerLevel.Error, "/dev/null")
        with pulsarx.Client(broker.url, logger=quiet) as client:
            is_right = check(client, count, "forwarded")
        run(
            broker, (broker.url, target, broker.web_url, "fetch"),
            options.messages, options.kills, chance,
        )  # fmt: skip
        with pulsarx.Client(target) as client:
            is_right &= check(client, count, "fetched")
    return 0 if is_right else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Missing as error:
        sys.exit(f"no broker: {error}")
