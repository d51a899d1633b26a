"""`pulsarx perf`: loads a topic and measures it, in the grammar of pulsar-perf."""

from __future__ import annotations

import random
import threading
from functools import partial
from itertools import count

from pulsarx import errors
from pulsarx.cli.command import FAILED, command, topic_argument
from pulsarx.cli.declared import Choice, Exit, Fraction, Group, Whole, option
from pulsarx.cli.latencies import Figures, Latencies
from pulsarx.clock import monotonic_us, wall_ms
from pulsarx.enumerations import CompressionType, ConsumerType, InitialPosition
from pulsarx.results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pulsarx.cli.folder import Folder
    from pulsarx.cli.output import Output

_LOOK_SECONDS = 0.1  # how often the main thread looks whether all is done
_RECEIVE_MS = 100
_COMPRESSIONS = ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY")
_TYPES = ("Exclusive", "Shared", "Failover", "Key_Shared")
_KEYS = ("autoIncrement", "random")
_KEYS_MAX = 100_000


perf: Group = Group(
    "Load a topic and measure it. As pulsar-perf; see the help of produce and consume."
)


def _shared(function: Any) -> Any:
    """Options of both."""
    for declare in (
        option(
            "-i",
            "--stats-interval-seconds",
            "interval",
            type=Fraction(min=0.1),
            default=10.0,
            show_default=True,
            help="How often to print.",
        ),
        option(
            "-time",
            "--test-duration",
            "duration",
            type=Fraction(min=0),
            default=0.0,
            help="Seconds; 0: until Ctrl-C.",
        ),
        option(
            "-m",
            "--num-messages",
            "messages",
            type=Whole(min=0),
            default=0,
            help="How many in all; 0: without end.",
        ),
    ):
        function = declare(function)
    return function


@command("pulsarx perf produce orders -r 10000 -s 100 -time 60")
@topic_argument
@option(
    "-r",
    "--rate",
    type=Fraction(min=0),
    default=100.0,
    show_default=True,
    help="Messages a second, of all producers; 0: as many as possible.",
)
@option(
    "-s",
    "--size",
    type=Whole(min=0),
    default=1024,
    show_default=True,
    help="Bytes of a message.",
)
@option(
    "-n",
    "--num-producers",
    "producers",
    type=Whole(min=1),
    default=1,
    show_default=True,
    help="How many producers.",
)
@option(
    "-threads",
    "--num-test-threads",
    "threads",
    type=Whole(min=1),
    default=1,
    show_default=True,
    help="How many threads send, each with producers of its own.",
)
@option(
    "-b",
    "--batch-time-window",
    "batch_ms",
    type=Whole(min=0),
    default=1,
    show_default=True,
    help="How many milliseconds a batch waits.",
)
@option(
    "-bm",
    "--batch-max-messages",
    "batch_messages",
    type=Whole(min=1),
    default=1000,
    show_default=True,
    help="Messages of a batch, at most.",
)
@option(
    "-bb",
    "--batch-max-bytes",
    "batch_bytes",
    type=Whole(min=1),
    default=131072,
    show_default=True,
    help="Bytes of a batch, at most.",
)
@option("-db", "--disable-batching", is_flag=True, help="No batches: an entry for each message.")
@option(
    "-z",
    "--compression",
    type=Choice(_COMPRESSIONS, case_sensitive=False),
    default=_COMPRESSIONS[0],
    show_default=True,
    help="Compress batches, or entries.",
)
@option(
    "-o",
    "--max-outstanding",
    "outstanding",
    type=Whole(min=1),
    default=1000,
    show_default=True,
    help="Messages of a producer that are not confirmed, at most.",
)
@option(
    "-ch",
    "--chunking",
    is_flag=True,
    api="chunking_enabled",
    help="Send messages larger than an entry in chunks.",
)
@option(
    "-mk",
    "--message-key-generation-mode",
    "keys",
    type=Choice(_KEYS),
    help="Give messages keys.",
)
@_shared
def produce(
    folder: Folder,
    topic: str,
    rate: float,
    size: int,
    producers: int,
    threads: int,
    batch_ms: int,
    batch_messages: int,
    batch_bytes: int,
    disable_batching: bool,
    compression: str,
    outstanding: int,
    chunking: bool,
    keys: str | None,
    interval: float,
    duration: float,
    messages: int,
) -> None:
    """Publish messages at a rate, and print how many there were and how long each took.

    A latency is the time from the call of send to its confirmation.
    """
    letters = bytes(65 + number % 26 for number in range(256))  # as pulsar-perf
    payload = random.Random(size).randbytes(size).translate(letters)
    with folder.connected("perf") as client:
        made = [
            client.create_producer(
                topic,
                send_timeout_millis=0,
                compression_type=getattr(CompressionType, compression),
                max_pending_messages=outstanding,
                block_if_queue_full=True,
                batching_enabled=not disable_batching,
                batching_max_messages=batch_messages,
                batching_max_allowed_size_in_bytes=batch_bytes,
                batching_max_publish_delay_ms=batch_ms,
                chunking_enabled=chunking,
            )
            for _ in range(producers)
        ]
        run = _Run(folder.output, "produced", interval, duration, messages)
        threads = min(threads, producers)
        for index in range(threads):
            sender = _Sender(run, made[index::threads], payload, keys)
            sender.rate = rate / threads
            sender.limit = _share(messages, threads, index)
            run.start(sender.run)
        run.wait()


class _Sender:
    """Sends with some producers in turn. One thread."""

    rate = 0.0  # messages a second; 0: as many as go
    limit: int | None = None

    def __init__(self, run: _Run, producers: list[Any], payload: bytes, keys: str | None) -> None:
        self._run = run
        self._producers = producers
        self._payload = payload
        self._keys = keys

    def run(self) -> None:
        latencies = {id(each): self._run.latencies() for each in self._producers}
        senders = [
            (each.send_async, partial(self._told, latencies[id(each)], len(self._payload)))
            for each in self._producers
        ]
        stopped, begun_us, keys = self._run.stopped, monotonic_us(), _keys_of(self._keys)
        for number in count():
            if number == self.limit or stopped.is_set():
                break
            if self.rate:
                wait_us = begun_us + number * 1e6 / self.rate - monotonic_us()
                if wait_us > 0 and stopped.wait(wait_us / 1e6):
                    break
            send, told = senders[number % len(senders)]
            send(self._payload, partial(told, monotonic_us()), partition_key=next(keys))
        for each in self._producers:
            each.flush()

    @staticmethod
    def _told(latencies: Latencies, size: int, sent_us: int, result: Any, _: Any) -> None:
        if result == Result.Ok:
            latencies.add(monotonic_us() - sent_us, size)
        else:
            latencies.failures += 1
            latencies.why = result.name


def _keys_of(mode: str | None) -> Iterator[str | None]:
    if mode is None:
        while True:
            yield None
    chosen = random.Random(0)
    for number in count():
        yield str(number if mode == "autoIncrement" else chosen.randrange(_KEYS_MAX))


def _share(messages: int, threads: int, index: int) -> int | None:
    """Return how many of the messages a thread sends; None: without end."""
    return messages // threads + (index < messages % threads) if messages else None


@command("pulsarx perf consume orders -ss perf -sp Earliest")
@topic_argument
@option(
    "-ss",
    "--subscriptions",
    "subscription",
    default="sub",
    show_default=True,
    metavar="NAME",
    help="Name of the subscription.",
)
@option(
    "-st",
    "--subscription-type",
    "kind",
    api="consumer_type",
    type=Choice(_TYPES),
    default=_TYPES[0],
    show_default=True,
    help="Its type.",
)
@option(
    "-sp",
    "--subscription-position",
    "--initial-position",
    "position",
    api="initial_position",
    type=Choice(("Latest", "Earliest")),
    default="Latest",
    show_default=True,
    help="Where it begins, if it is new.",
)
@option(
    "-n",
    "--num-consumers",
    "consumers",
    type=Whole(min=1),
    default=1,
    show_default=True,
    help="How many consumers, a thread each.",
)
@option(
    "-q",
    "--receiver-queue-size",
    "queue",
    api="receiver_queue_size",
    type=Whole(min=0),
    default=1000,
    show_default=True,
    help="Size of the receiver queue of each consumer.",
)
@_shared
def consume(
    folder: Folder,
    topic: str,
    subscription: str,
    kind: str,
    position: str,
    consumers: int,
    queue: int,
    interval: float,
    duration: float,
    messages: int,
) -> None:
    """Receive and acknowledge messages, and print how many there were and how old each was.

    A latency is the time from publishing to receiving, by the time of day, in whole milliseconds.
    """
    with folder.connected("perf") as client:
        made = [
            client.subscribe(
                topic,
                subscription,
                getattr(ConsumerType, kind.replace("_", "")),
                initial_position=getattr(InitialPosition, position),
                receiver_queue_size=queue,
            )
            for _ in range(consumers)
        ]
        run = _Run(folder.output, "received", interval, duration, messages)
        left = _Left(messages)
        for each in made:
            run.start(partial(_receive, run, each, left))
        run.wait()


class _Left:
    """Counts the messages that all consumers have still to receive."""

    def __init__(self, messages: int) -> None:
        self._numbers = iter(range(messages)) if messages else count()

    def take(self) -> bool:
        """False: there were enough. One step to other threads."""
        return next(self._numbers, None) is not None


def _receive(run: _Run, consumer: Any, left: _Left) -> None:
    latencies = run.latencies()
    while not run.stopped.is_set():
        try:
            message = consumer.receive(_RECEIVE_MS)
        except errors.Timeout:
            continue
        if not left.take():
            return  # it stays unacknowledged
        age_us = max(wall_ms() - message.publish_timestamp(), 0) * 1000
        latencies.add(age_us, len(message.data()))
        consumer.acknowledge(message)


# Measuring ----------------------------------------------------------------------------------------


class _Run:
    """Threads that load a topic, and what they have measured."""

    def __init__(
        self, output: Output, verb: str, interval: float, duration: float, messages: int
    ) -> None:
        """interval, duration: in seconds. duration, messages: 0 for no end."""
        self._output = output
        self._verb = verb
        self._interval_us = interval * 1e6
        self._end_us = duration * 1e6
        self._messages = messages
        self._latencies: list[Latencies] = []
        self._threads: list[threading.Thread] = []
        self._failure: BaseException | None = None
        self.stopped = threading.Event()

    def latencies(self) -> Latencies:
        made = Latencies()
        self._latencies.append(made)
        return made

    def start(self, work: Callable[[], object]) -> None:
        """Do it in a thread, until `stopped`."""

        def run() -> None:
            try:
                work()
            except BaseException as error:
                self._failure = self._failure or error
                self.stopped.set()

        self._threads.append(threading.Thread(target=run, name="pulsarx-perf"))

    def wait(self) -> None:
        """Wait until all threads have ended, or the time is over; prints. Raises what one of them
        raised."""
        begun_us = printed_us = monotonic_us()
        before = Figures([])
        for each in self._threads:
            each.start()
        try:
            while any(each.is_alive() for each in self._threads) and not self._is_over(begun_us):
                self.stopped.wait(_LOOK_SECONDS)
                now_us = monotonic_us()
                if now_us - printed_us >= self._interval_us:
                    now = Figures(self._latencies)
                    self._print(now.since(before), now_us - printed_us, now_us - begun_us, False)
                    before, printed_us = now, now_us
        finally:
            self.stopped.set()
            for each in self._threads:
                each.join()
            last_us = max((each.last_us for each in self._latencies), default=0)
            took_us = max(last_us - begun_us, 1)
            self._print(Figures(self._latencies), took_us, took_us, True)
        if self._failure is not None:
            raise self._failure
        failed = [each for each in self._latencies if each.failures]
        if failed:
            self._output.note(
                f"{sum(each.failures for each in failed)} messages failed, the last one with "
                f"{failed[-1].why}"
            )
            raise Exit(FAILED)

    def _is_over(self, begun_us: int) -> bool:
        if self._end_us and monotonic_us() - begun_us >= self._end_us:
            return True
        done = sum(sum(each.counts) + each.failures for each in self._latencies)
        return 0 < self._messages <= done

    def _print(self, figures: Figures, took_us: int, now_us: int, is_total: bool) -> None:
        found = {
            "total": is_total,
            "time_s": round(now_us / 1e6, 3),
            **figures.fields(took_us / 1e6),
        }
        if not self._output.is_table:
            self._output.record(found)
            self._output.flush()
            return
        latency = ""
        if figures.messages:
            shown = ", ".join(f"{name} {value:.3f}" for name, value in found["latency_ms"].items())
            latency = f", latency in ms: {shown}"
        self._output.sentence(
            f"{'In all' if is_total else f'{now_us / 1e6:.0f} s'}: {self._verb} {figures.messages} "
            f"messages, {found['rate']:.1f} a second, {found['mbit_s']:.3f} Mbit/s, "
            f"{figures.failures} failures{latency}"
        )


perf.add_command(produce, "produce")
perf.add_command(consume, "consume")
