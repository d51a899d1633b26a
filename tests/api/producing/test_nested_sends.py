"""Facts about sends from within another call of the same producer in the same thread, as of a
finalizer that Python's collector runs there, of a schema or a signal handler."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from child_process import run_program
from sleeping_thread import until_asleep
from topic_reading import OpenClient, whole_topic

import pulsarx
from pulsarx import BatchingType, BrokerOptions, CompressionType, errors
from pulsarx.producing.topic_producer import TopicProducer
from pulsarx.schema import StringSchema

NOT_KNOWN = pulsarx.MessageId(-1, -1, -1, -1)
PRODUCERS: list[dict[str, Any]] = [
    {},
    {"batching_enabled": True},
    {"batching_enabled": True, "batching_max_messages": 2},
    {"batching_enabled": True, "batching_type": BatchingType.KeyBased},
    {"batching_enabled": True, "compression_type": CompressionType.LZ4},
    {"chunking_enabled": True},
]


class Audited(StringSchema):
    """Calls back in the middle of the send whose content it encodes."""

    def __init__(self, *calls: Any) -> None:
        super().__init__()
        self.calls = list(calls)

    def encode(self, obj: str) -> bytes:
        while self.calls:
            self.calls.pop(0)()
        return super().encode(obj)


def audited(client: pulsarx.Client, **options: Any) -> tuple[pulsarx.Producer[Any], list[Any]]:
    """A producer, and what its next send calls from within."""
    schema = Audited()
    options.setdefault("block_if_queue_full", True)
    return client.create_producer("t", schema=schema, **options), schema.calls


@pytest.mark.parametrize("options", PRODUCERS)
@pytest.mark.parametrize("partitions", [0, 2])
@pytest.mark.parametrize("outer", ["send", "send_async", "send_many"])
def test_what_is_sent_from_within_a_send_goes_out_behind_it(
    memory_client: pulsarx.Client, options: dict[str, Any], partitions: int, outer: str
) -> None:
    """NotAllowedError was raised: of a finalizer nobody sees it, and the message was lost."""
    if partitions:
        memory_client.admin.topics.create_partitioned_topic("t", partitions)
    producer, calls = audited(memory_client, **options)
    told: list[Any] = []
    found: list[Any] = []
    calls += [
        lambda: found.append(producer.send("1", partition_key="k")),
        lambda: producer.send_async("2", None, partition_key="k"),
        lambda: producer.send_async(
            "3", lambda *ended: told.append(ended), partition_key="k", properties={"a": "b"}
        ),
    ]
    if outer == "send":
        producer.send("0", partition_key="k")
    elif outer == "send_async":
        producer.send_async("0", None, partition_key="k")
    else:
        producer.send_many(["0"], keys=["k"])
    producer.send("4", partition_key="k")
    producer.flush()
    assert whole_topic(memory_client) == [b"0", b"1", b"2", b"3", b"4"]
    assert found == [NOT_KNOWN]
    [(result, message_id)] = told
    assert result == pulsarx.Result.Ok and message_id > NOT_KNOWN


@pytest.mark.parametrize("last", ["flush", "close", "nothing"])
def test_what_is_sent_from_within_the_last_send_is_stored(
    memory_client: pulsarx.Client, last: str
) -> None:
    producer, calls = audited(memory_client, batching_enabled=True)
    calls.append(lambda: producer.send("1"))
    producer.send("0")
    if last != "nothing":
        getattr(producer, last)()
    reader = memory_client.create_reader("t", pulsarx.MessageId.earliest)
    if last == "nothing":  # a thread of the client puts it into the batch, whose delay is over soon
        assert [reader.read_next(60_000).data() for _ in range(2)] == [b"0", b"1"]
    assert whole_topic(memory_client) == [b"0", b"1"]


def test_what_a_send_from_within_fails_with_is_told(open_client: OpenClient) -> None:
    client = open_client("memory:", broker_options=BrokerOptions(max_message_size=100))
    producer, calls = audited(client)
    told: list[Any] = []
    large = "x" * 101
    calls += [
        lambda: producer.send(large),
        lambda: producer.send_async(large, lambda result, _: told.append(result)),
    ]
    producer.send("0")
    with pytest.raises(errors.MessageTooBig):
        producer.flush()
    producer.flush()
    assert told == [pulsarx.Result.MessageTooBig]
    assert whole_topic(client) == [b"0"]


def test_what_is_sent_from_within_counts_towards_a_full_queue(
    memory_client: pulsarx.Client,
) -> None:
    producer, calls = audited(memory_client, max_pending_messages=1, batching_enabled=True)
    calls += [lambda: producer.send_async("y", None)] * 5
    producer.send_async("x", None)
    producer.flush()
    assert whole_topic(memory_client) == [b"x"] + [b"y"] * 5


FINALIZERS = """
import gc, sys, pulsarx
from pulsarx import MessageId
lost = []
sys.unraisablehook = lambda what: lost.append(repr(what.exc_value))
finalized = 0

def check(how, partitions, **options):
    global finalized
    finalized = 0
    with pulsarx.Client(sys.argv[1] + "/" + how + str(partitions), durability="os") as client:
        if partitions:
            client.admin.topics.create_partitioned_topic("t", partitions)
        producer = client.create_producer(
            "t", block_if_queue_full=True, max_pending_messages=50, **options
        )

        class Session:
            def __init__(self):
                self.me = self  # in a cycle

            def __del__(self):
                global finalized
                finalized += 1
                if how == "send":
                    producer.send(b"ended")
                else:
                    producer.send_async(b"ended", None if how == "alone" else lambda *_: None)

        gc.set_threshold(3, 2, 2)
        for number in range(300):
            Session()
            producer.send(b"x", properties={"a": "b"})
            producer.send_async(b"x", lambda *_: [number])
            producer.send_many([b"x"])
        gc.set_threshold(700, 10, 10)
        while finalized < 300 and not lost:  # a collection may be under way in another thread
            gc.collect()
        producer.flush()
        topics = client.get_topic_partitions("t")
        stored = sum(client.admin.topics.stats(each)["messages"] for each in topics)
        assert finalized == 300 and not lost, (finalized, lost[:3])
        assert stored == 900 + finalized, (how, partitions, options, stored)

for how in ("send", "alone", "told"):
    for partitions in (0, 2):
        check(how, partitions, batching_enabled=how != "send")
"""


@pytest.mark.standard
def test_a_finalizer_may_send_wherever_the_collector_runs_it(folder: Path) -> None:
    """It was refused now and then; and in a thread that did something for a send, such as to open
    the next ledger, it waited for that send, which waited for it."""
    run_program(FINALIZERS, folder)


def test_a_signal_handler_may_send_from_within_a_send(memory_client: pulsarx.Client) -> None:
    producer, calls = audited(memory_client)
    before = signal.signal(signal.SIGUSR1, lambda *_: producer.send("1"))
    try:
        calls.append(lambda: signal.raise_signal(signal.SIGUSR1))
        producer.send("0")
    finally:
        signal.signal(signal.SIGUSR1, before)
    producer.flush()
    assert whole_topic(memory_client) == [b"0", b"1"]


@pytest.mark.parametrize("closed", ["producer", "client"])
def test_closing_waits_for_what_a_signal_handler_sends_meanwhile(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    """The producer was taken for one in the middle of whose call it was closed: NotAllowedError."""
    client = open_client(durability="os")
    producer, calls = audited(client)
    closers: list[threading.Thread] = []
    sends = threading.Event()
    let_go = TopicProducer.let_go

    def interrupt_closer(self: Any) -> None:
        closers.append(threading.current_thread())
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        sends.wait(60)
        let_go(self)

    def until_it_closes() -> None:
        sends.set()
        until_asleep(closers[0])

    monkeypatch.setattr(TopicProducer, "let_go", interrupt_closer)
    calls.append(until_it_closes)
    before = signal.signal(signal.SIGUSR1, lambda *_: producer.send("1"))
    try:
        (producer if closed == "producer" else client).close()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert closers
    assert whole_topic(open_client(durability="os")) == [b"1"]


def test_closing_from_within_a_send_is_refused_and_done_after_it(
    memory_client: pulsarx.Client,
) -> None:
    producer, calls = audited(memory_client)
    refused: list[Exception] = []

    def close() -> None:
        try:
            producer.close()
        except errors.NotAllowedError as error:
            refused.append(error)

    calls.append(close)
    producer.send("1")
    assert len(refused) == 1 and producer.is_connected()
    close()
    assert len(refused) == 1 and not producer.is_connected()
    assert whole_topic(memory_client) == [b"1"]
