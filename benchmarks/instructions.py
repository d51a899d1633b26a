"""`make instructions`: how many instructions a hot call takes, which no load of the machine moves.

    python benchmarks/instructions.py [--write]

Counted by valgrind (callgrind), all threads, over CALLS calls of each row behind as many to warm
up, the lower of two turns, without those of an empty loop. Compared with `instructions.json`, which
says where it was counted: ends with 1 where a row has risen by more than 3 %. With another Python,
compiler or processor it says so and compares nothing; `--write` keeps what was counted now.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
KEPT = HERE / "instructions.json"
RISE_MAX = 1.03
CALLS = 1000
TURNS = 2
MANY = 100  # messages a list
MARK = "getppid"  # the function of libc whose entry ends a part


# What is counted: in a process of its own ---------------------------------------------------------


def rows(pulsarx: Any, folder: str) -> Iterator[tuple[str, int, Callable[[], object]]]:
    """The name of a row, how many messages a call takes, and the call."""
    earliest = pulsarx.InitialPosition.Earliest
    kinds = pulsarx.ConsumerType
    client = pulsarx.Client(folder, durability="os")
    payload = b"x" * 100
    payloads = [payload] * MANY
    properties = {"a": "1", "b": "2"}

    def filled(topic: str, count: int, **options: Any) -> None:
        with client.create_producer(topic, **options) as producer:
            producer.send_many(
                [payload] * count,
                keys=[f"k{number % 100}" for number in range(count)],
                properties=[{"a": "1"}] * count,
            )

    def subscribed(topic: str, **options: Any) -> Any:
        filled(topic, 4 * CALLS)
        return client.subscribe(topic, "s", initial_position=earliest, **options)

    def pair(receive: Callable[[], Any], acknowledge: Callable[[Any], object]) -> Any:
        return lambda: acknowledge(receive())

    yield "empty call", 1, no_call
    producer = client.create_producer("sent")
    yield "send", 1, lambda: producer.send(payload)
    yield "send_async", 1, lambda: producer.send_async(payload, None)
    yield "send with a key", 1, lambda: producer.send(payload, partition_key="key")
    yield "send with properties", 1, lambda: producer.send(payload, properties=properties)
    yield "send_many", MANY, lambda: producer.send_many(payloads)
    batching = client.create_producer("batched", batching_enabled=True)
    yield "send_async in batches", 1, lambda: batching.send_async(payload, None)
    volatile = client.create_producer("non-persistent://public/default/sent")
    yield "send, non-persistent", 1, lambda: volatile.send(payload)

    consumer = subscribed("exclusive")
    yield "receive, acknowledge", 1, pair(consumer.receive, consumer.acknowledge)
    consumer = subscribed("cumulative")
    yield "receive, cumulative", 1, pair(consumer.receive, consumer.acknowledge_cumulative)
    for kind in (kinds.Shared, kinds.KeyShared):
        consumer = subscribed(f"of-{kind.name}", consumer_type=kind)
        yield f"receive, acknowledge, {kind.name}", 1, pair(consumer.receive, consumer.acknowledge)
    consumer = subscribed("data")
    yield "receive, data, acknowledge", 1, lambda: read(consumer)
    consumer = subscribed("negative", consumer_type=kinds.Shared)
    yield "receive, negative", 1, pair(consumer.receive, consumer.negative_acknowledge)
    consumer = subscribed("selected", selector="a = '1'")
    yield "receive, acknowledge, selector", 1, pair(consumer.receive, consumer.acknowledge)
    for kind in (kinds.Exclusive, kinds.Shared, kinds.KeyShared):
        topic = f"many-{kind.name}"
        filled(topic, 4 * CALLS)
        consumer = client.subscribe(topic, "s", initial_position=earliest, consumer_type=kind)
        yield (
            f"receive_many, acknowledge_many, {kind.name}",
            MANY,
            lambda c=consumer: c.acknowledge_many(c.receive_many(MANY)),
        )
    consumer = subscribed("looped")
    following = iter(consumer).__next__
    yield "loop over a consumer, acknowledge", 1, pair(following, consumer.acknowledge)
    consumer = subscribed("payloads")
    yield "receive_many, payloads", MANY, lambda: take(pulsarx, consumer)
    filled("read", 4 * CALLS)
    reader = client.create_reader("read", pulsarx.MessageId.earliest)
    yield "read_next", 1, reader.read_next
    consumer = subscribed("in")
    producer_out = client.create_producer("out")
    yield "transaction of one", 1, lambda: transact(client, consumer, producer_out, payload)


def no_call() -> None:
    pass


def read(consumer: Any) -> None:
    message = consumer.receive()
    message.data()
    consumer.acknowledge(message)


def take(pulsarx: Any, consumer: Any) -> None:
    messages = consumer.receive_many(MANY)
    pulsarx.Message.payloads(messages)
    consumer.acknowledge_many(messages)


def transact(client: Any, consumer: Any, producer: Any, payload: bytes) -> None:
    message = consumer.receive()
    with client.new_transaction() as transaction:
        producer.send(payload, transaction=transaction)
        consumer.acknowledge(message, transaction=transaction)


def count_all(folder: str) -> None:
    """Make each call, and mark where its part begins and ends."""
    import gc

    import pulsarx

    gc.disable()
    for name, messages, call in rows(pulsarx, folder):
        calls = CALLS // messages
        for _ in range(calls):
            call()
        os.getppid()
        for _ in range(TURNS):
            for _ in range(calls):
                call()
            os.getppid()
        print(json.dumps([name, calls, messages]), flush=True)
    os._exit(0)


# How it is counted --------------------------------------------------------------------------------


def counted() -> dict[str, int]:
    """Instructions a message, by row."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as made:
        out = Path(made) / "count"
        command = [
            "valgrind", "--tool=callgrind", f"--dump-before={MARK}", f"--callgrind-out-file={out}",
            sys.executable, __file__, "--child", f"{made}/folder",
        ]  # fmt: skip
        environment = dict(os.environ, PYTHONHASHSEED="0")
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        names = [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode or not names:
            raise SystemExit(f"instructions: {command} failed\n{done.stdout}\n{done.stderr}")
        found: dict[str, int] = {}
        empty = 0.0
        for at, (name, calls, messages) in enumerate(names):
            # A part leads to a row, and TURNS are its own; other threads may disturb one of them.
            first = (TURNS + 1) * at + 2
            parts = range(first, first + TURNS)
            each = min(total(Path(f"{out}.{part}")) for part in parts) / calls
            if at:
                found[name] = round((each - empty) / messages)
            else:
                empty = each
        return found


def total(path: Path) -> int:
    match = re.search(r"^(?:totals|summary): (\d+)", path.read_text(), re.MULTILINE)
    assert match is not None, path
    return int(match[1])


def place() -> str:
    """What the counts hang on, besides the code."""
    compiler = platform.python_compiler()
    flags = set(re.findall(r"\w+", _cpu_flags())) & {"avx2", "avx512vl", "erms", "vpclmulqdq"}
    parts = f"CPython {platform.python_version()}", platform.machine(), *sorted(flags), compiler
    return ", ".join(parts)


def _cpu_flags() -> str:
    try:
        found = re.search(r"^flags\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        return ""
    return "" if found is None else found[1]


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--child"]:
        count_all(arguments[1])
    if shutil.which("valgrind") is None:
        print("instructions: valgrind is not installed, so nothing is counted")
        return 0
    known = json.loads(KEPT.read_text()) if KEPT.exists() else {"place": "", "rows": {}}
    found = counted()
    is_same = known["place"] == place()
    risen = []
    for name, count in found.items():
        before = known["rows"].get(name)
        ratio = count / before if is_same and before else 0
        print(f"{name:45} {count:8,}" + (f"  {ratio:.3f}" if ratio else ""))
        if ratio > RISE_MAX:
            risen.append(f"{name}: {before:,} to {count:,}")
    if "--write" in arguments:
        KEPT.write_text(json.dumps({"place": place(), "rows": found}, indent=1) + "\n")
        return 0
    if not is_same:
        print(f"instructions: counted on {known['place']} before, so nothing is compared here")
    if risen:
        print("instructions: more than 3 % above instructions.json (--write keeps them):")
        print("\n".join(risen))
    return bool(risen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
