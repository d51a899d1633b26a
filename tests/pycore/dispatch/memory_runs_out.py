"""Drives a subscription while one allocation fails, the first, the second and so on, and looks
afterwards whether anything is missing. For test_memory_runs_out, in a process of its own.

memory_runs_out.py <subscription type> <seed> <of a place> <functions looked at>,<failures in a row>
    ...

of a place: how many of the allocations that are asked for at one place of the library; 0: all.
"""

from __future__ import annotations

import ctypes
import itertools
import logging
import os
import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from seeds import some_of

from pulsarx import (
    BatchingType,
    BrokerOptions,
    Client,
    ConsumerKeySharedPolicy,
    ConsumerType,
    InitialPosition,
    ManualClock,
    PulsarException,
)

MESSAGES = 120
TOGETHER = 12  # sent by one of the producers
KEYS = 11
CALLS = 60
ONE = os.environ.get("MEMORY_RUNS_OUT_AT")  # to repeat one
PLACES_MAX = 100_000
QUEUE_SIZE = 30
ENTRY_SIZE = 4000  # what is larger is sent in chunks
DELAYED = 29  # each so many-th message waits for its time


class FailingMemory:
    """See failing_memory.c."""

    def __init__(self, frames: int, in_a_row: int) -> None:
        lines = Path("/proc/self/maps").read_text().splitlines()
        bounds = [line.split()[0].split("-") for line in lines if "_linked" in line]
        self.low = min(int(low, 16) for low, _ in bounds)
        self.high = max(int(high, 16) for _, high in bounds)
        self.frames = frames
        self.in_a_row = in_a_row
        library = ctypes.CDLL(None)
        self.fails = library.memory_fails
        self.fails.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_int, ctypes.c_size_t,
                               ctypes.c_size_t]  # fmt: skip
        self.keeps = library.memory_keeps
        self.keeps.argtypes = [ctypes.c_void_p, ctypes.c_long]
        self.pauses = library.memory_pauses
        self.lasts = library.memory_lasts
        self.lasts.restype = ctypes.c_long
        library.memory_failed_at.restype = ctypes.c_size_t
        self.failed_at = library.memory_failed_at

    def arm(self, number: int) -> None:
        self.fails(number, self.in_a_row, self.frames, self.low, self.high)

    def count(self) -> None:
        """As arm; nothing fails, and `places` tells what would have."""
        self.kept = (ctypes.c_size_t * PLACES_MAX)()
        self.keeps(self.kept, PLACES_MAX)
        self.fails(1 << 60, 0, self.frames, self.low, self.high)

    def places(self) -> list[int]:
        counted = self.lasts()
        self.keeps(None, 0)
        return self.kept[:counted]


def key_of(number: int) -> str:
    return f"k{number * 7 % KEYS}"


class Story:
    """One subscription, what was done to it, and what its consumers hold."""

    def __init__(self, client: Client, clock: ManualClock, memory: FailingMemory, kind: str,
                 topic: str, seed: int) -> None:  # fmt: skip
        self.memory = memory
        self.in_order = kind not in ("Shared", "KeySharedOutOfOrder")
        self.seed = seed
        self.random = random.Random(seed)
        self.client = client
        self.clock = clock
        self.kind = getattr(ConsumerType, kind.removesuffix("OutOfOrder"))
        self.topic = topic
        self.consumers: list[Any] = []
        self.held: list[Any] = []
        self.acknowledged: set[int] = set()
        self.in_doubt: set[int] = set()  # its acknowledgement raised: it is kept, or comes again
        self.errors: list[str] = []
        self.subscribe().close()
        self.publish()

    def publish(self) -> None:
        """Batches, batches of one key each, single messages, chunks; some are for later."""
        together = self.client.create_producer(
            self.topic, batching_enabled=True, batching_max_messages=25)  # fmt: skip
        by_key = self.client.create_producer(
            self.topic, batching_enabled=True, batching_max_messages=50,
            batching_type=BatchingType.KeyBased)  # fmt: skip
        single = self.client.create_producer(self.topic, chunking_enabled=True)
        for number in range(MESSAGES):
            producer = (together, single, by_key)[number // TOGETHER % 3]
            named: dict[str, Any] = {"partition_key": key_of(number)}
            if (
                self.kind in (ConsumerType.Shared, ConsumerType.KeyShared)
                and number % DELAYED == DELAYED - 1
            ):
                named["deliver_after"] = timedelta(milliseconds=40)
            content = b"%d" % number
            if producer is single and number % 5 == 0:
                content = content.ljust(2 * ENTRY_SIZE)
            producer.send_async(content, None, **named)
            if number % TOGETHER == TOGETHER - 1:
                producer.flush()
        for producer in (together, by_key, single):
            producer.close()

    def attempt(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        self.memory.pauses(0)
        try:
            return call(*arguments, **named)
        except (MemoryError, PulsarException) as error:
            self.memory.pauses(1)
            self.errors.append(f"{type(error).__name__}: {error}")
            return None
        finally:
            self.memory.pauses(1)

    def control(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """As attempt, of what is mostly Python: memory fails where the library itself asks."""
        if self.memory.frames == 1:
            return self.attempt(call, *arguments, **named)
        return call(*arguments, **named)

    def subscribe(self) -> Any:
        policy = None
        if self.kind == ConsumerType.KeyShared:
            policy = ConsumerKeySharedPolicy(allow_out_of_order_delivery=not self.in_order)
        return self.client.subscribe(
            self.topic, "s", self.kind, initial_position=InitialPosition.Earliest,
            key_shared_policy=policy,
            receiver_queue_size=QUEUE_SIZE, negative_ack_redelivery_delay_ms=10,
            unacked_messages_timeout_ms=11000 if self.seed % 2 else None)  # fmt: skip

    def join(self) -> None:
        consumer = self.control(self.subscribe)
        if consumer is not None:
            self.consumers.append(consumer)

    def take(self, consumer: Any) -> None:
        message = self.attempt(consumer.take_now)
        if message is not None:
            self.held.append((consumer, message))

    def acknowledge(self) -> None:
        at = self.random.randrange(len(self.held))
        consumer, message = self.held[at]
        if self.attempt(lambda: consumer.acknowledge(message) or True):
            del self.held[at]
            self.acknowledged.add(int(message.data()))
        else:
            self.in_doubt.add(int(message.data()))

    def step(self) -> None:
        chance = self.random.random()
        if not self.consumers:
            return self.join()
        consumer = self.random.choice(self.consumers)
        if chance < 0.5:
            self.take(consumer)
        elif chance < 0.65 and self.held:
            self.acknowledge()
        elif chance < 0.75 and self.held:
            at = self.random.randrange(len(self.held))
            consumer, message = self.held[at]
            if self.attempt(lambda: consumer.negative_acknowledge(message) or True):
                del self.held[at]
        elif chance < 0.82:
            self.control(self.clock.advance, 0.02)
        elif chance < 0.86:
            self.control(consumer.redeliver_unacknowledged_messages)
        elif chance < 0.9 and len(self.consumers) > 1:
            self.consumers.remove(consumer)
            self.held = [each for each in self.held if each[0] is not consumer]
            self.control(consumer.close)
        elif chance < 0.94 and self.kind != ConsumerType.Exclusive:
            self.join()
        elif chance < 0.97:
            self.control(self.client.admin.topics.stats, self.topic)
        else:
            messages = self.attempt(consumer.receive_many, 20, timeout_millis=0)
            self.held += [(consumer, each) for each in messages or ()]
        return None

    def rest(self) -> list[str]:
        """Receive and acknowledge all that is left; what is wrong."""
        if not self.consumers:
            self.consumers.append(self.subscribe())
        first = self.consumers[0]
        wrong: list[str] = first.dispatcher.check()
        self.clock.advance(20)
        # What nobody holds comes by itself, what is held when it is asked for.
        self.drain(wrong)
        lost = set(range(MESSAGES)) - self.acknowledged - self.in_doubt
        lost -= {int(message.data()) for _, message in self.held}
        if self.kind == ConsumerType.KeyShared:  # behind what is held of its key it may wait
            keys = {message.partition_key() for _, message in self.held}
            lost = {number for number in lost if key_of(number) not in keys}
        # One that could not be made into an object counts as handed out, until it is redelivered.
        if lost and self.memory.frames == 1:
            wrong.append(f"nobody got {sorted(lost)}")
        for consumer in self.consumers:
            consumer.redeliver_unacknowledged_messages()
        while len(self.consumers) > 1:
            self.consumers.pop().close()
        self.drain(wrong)
        if missing := set(range(MESSAGES)) - self.acknowledged - self.in_doubt:
            wrong.append(f"after a redelivery nobody got {sorted(missing)}")
        wrong += first.dispatcher.check()
        stats = self.client.admin.topics.stats(self.topic)["subscriptions"]["s"]
        if stats["msg_backlog"] or stats["unacked_messages"]:
            wrong.append(f"backlog {stats['msg_backlog']}, unacked {stats['unacked_messages']}")
        return wrong

    def drain(self, wrong: list[str]) -> None:
        last: dict[str, int] = {}
        found = True
        while found:
            found = False
            for consumer in self.consumers:
                message = consumer.take_now()
                if message is None:
                    continue
                found = True
                number = int(message.data())
                key = message.partition_key()
                if number in self.acknowledged:
                    wrong.append(f"{number} came again, which was acknowledged")
                if self.in_order and number % DELAYED != DELAYED - 1:
                    if last.get(key, -1) > number:
                        wrong.append(f"{number} came behind {last[key]}")
                    last[key] = number
                consumer.acknowledge(message)
                self.acknowledged.add(number)


def tell(story: Story) -> None:
    for _ in range(CALLS):
        story.step()


def points(story: Story, of_a_place: int) -> list[int]:
    """The numbers of the allocations that are to fail, of those that a story asks for."""
    story.memory.pauses(1)
    story.memory.count()
    tell(story)
    by_place: dict[int, list[int]] = {}
    for number, place in enumerate(story.memory.places()):
        by_place.setdefault(place, []).append(number)
    story.memory.pauses(0)
    assert not story.rest()
    chosen = (some_of(each, of_a_place or len(each)) for each in by_place.values())
    return [int(ONE)] if ONE else sorted(itertools.chain.from_iterable(chosen))


def tell_all(
    client: Client, clock: ManualClock, kind: str, seed: int, of_a_place: int, way: str
) -> int:
    """Tell one story again and again while one allocation fails in it; how often something was
    wrong."""
    memory = FailingMemory(*map(int, way.split(",")))
    first = Story(client, clock, memory, kind, f"t{way}", seed)
    numbers = points(first, of_a_place)
    end(first)
    places: set[int] = set()
    bad = 0
    for number in numbers:
        story = Story(client, clock, memory, kind, f"t{way}-{number}", seed)
        memory.pauses(1)
        memory.arm(number)
        try:
            tell(story)
        finally:
            failures = memory.lasts()
            memory.pauses(0)
        place = memory.failed_at()
        wrong = story.rest()
        if wrong:
            bad += 1
            print(f"{way}: {number} at {place:#x}", wrong[:3], story.errors[:3], flush=True)
        end(story)
        if failures:
            places.add(place)
    print(f"{way}: {len(numbers)} allocations at {len(places)} places, {bad} left something wrong")
    assert places
    return bad


def end(story: Story) -> None:
    story.consumers[0].close()
    story.client.admin.topics.delete(story.topic, force=True)


def main(kind: str, seed: str, of_a_place: str, *ways: str) -> int:
    logging.getLogger("pulsarx").setLevel(logging.CRITICAL + 1)
    clock = ManualClock()
    options = BrokerOptions(max_message_size=ENTRY_SIZE)
    client = Client("memory:", clock=clock, broker_options=options)
    bad = sum(tell_all(client, clock, kind, int(seed), int(of_a_place), way) for way in ways)
    client.shutdown()
    return 1 if bad else 0


if __name__ == "__main__":
    # Not in the main thread: for that one, a thread of the control plane subscribes and closes.
    with ThreadPoolExecutor(1) as other:
        sys.exit(other.submit(main, *sys.argv[1:]).result())
