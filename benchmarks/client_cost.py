"""The script that is run with either package, in a process of its own: it publishes, or receives
and acknowledges, and prints what a call costs.

    python client_cost.py PACKAGE PLACE VERB SIZE COUNT [DURABILITY]

PACKAGE: pulsarx or pulsar; PLACE: a folder or a URL; VERB: send, send_async or receive. CPU time is
that of the whole process, user and system: threads of the library count, the broker does not.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from itertools import repeat
from typing import Any

from fresh_process import print_figures

WARM_UP = 10  # a tenth of the calls is made before those that count


def told(result: Any, message_id: Any) -> None:
    """The callback of send_async."""


def publish(producer: Any, verb: str, payloads: list[bytes]) -> None:
    if verb == "send":
        send = producer.send
        for payload in payloads:
            send(payload)
    else:
        send_async = producer.send_async
        for payload in payloads:
            send_async(payload, told)
        producer.flush()


def receive(consumer: Any, count: int) -> None:
    receive, acknowledge = consumer.receive, consumer.acknowledge
    for _ in repeat(None, count):
        message = receive()
        message.data()
        acknowledge(message)


def main(
    package: str, place: str, verb: str, size: int, count: int, durability: str | None = None
) -> None:
    pulsar: Any = importlib.import_module(package)
    options: dict[str, Any] = {"logger": pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)}
    if durability:
        options["durability"] = durability
    client = pulsar.Client(place, **options)
    topic = f"measured-{time.time_ns():x}"
    producer = client.create_producer(
        topic, batching_enabled=verb != "send", block_if_queue_full=True
    )
    payloads = [b"%0*d" % (size, number) for number in range(count)]
    warm_up = count // WARM_UP
    if verb == "receive":
        consumer = client.subscribe(
            topic, "worker", initial_position=pulsar.InitialPosition.Earliest
        )
        publish(producer, verb, payloads[:warm_up])
        publish(producer, verb, payloads)
        receive(consumer, warm_up)
    else:
        publish(producer, verb, payloads[:warm_up])
    began, cpu_began = time.perf_counter(), time.process_time()
    if verb == "receive":
        receive(consumer, count)
        consumer.close()  # acknowledgements that wait to be sent together count
    else:
        publish(producer, verb, payloads)
    cpu, elapsed = time.process_time() - cpu_began, time.perf_counter() - began
    client.close()
    print_figures(cpu=cpu / count, elapsed=elapsed / count)


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:6]), *sys.argv[6:])  # type: ignore[arg-type]
