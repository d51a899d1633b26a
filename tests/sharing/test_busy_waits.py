"""Facts about calls that wait awake: a client that asks for it has those of its process keep their
core, and what they wait for reaches them all the same."""

from __future__ import annotations

import os
import resource
import signal
import threading
from pathlib import Path

import pytest
from sharing_process import SharingProcess
from support.waiting import wait_until

import pulsarx
from pulsarx import errors

pytestmark = pytest.mark.standard

PATIENCE_MS = 60_000
ROUNDS = 20


def sleeps(consumer: pulsarx.Consumer) -> int:
    """How often this thread sleeps while it waits so many times for a message that does not come:
    about once each, or hardly ever where it stays awake."""
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    for _ in range(ROUNDS):
        with pytest.raises(errors.Timeout):
            consumer.receive(timeout_millis=1)
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before


@pytest.mark.parametrize("partitions", [0, 2])
def test_who_waits_stays_awake_until_the_client_is_closed(folder: Path, partitions: int) -> None:
    with pulsarx.Client(folder) as client:
        if partitions:
            client.admin.topics.create_partitioned_topic("t", partitions)
        consumer = client.subscribe("t", "s")
        assert sleeps(consumer) > ROUNDS // 2
        busy = pulsarx.Client(folder, enable_busy_wait=True)
        assert sleeps(consumer) < ROUNDS // 2
        with pulsarx.Client(folder, enable_busy_wait=True):
            pass
        assert sleeps(consumer) < ROUNDS // 2
        busy.close()
        assert sleeps(consumer) > ROUNDS // 2


def test_a_client_that_nobody_refers_to_keeps_nobody_awake(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s")
        pulsarx.Client(folder, enable_busy_wait=True)
        wait_until(lambda: sleeps(consumer) > ROUNDS // 2)


def test_a_guest_stays_awake_too(folder: Path, owner: SharingProcess) -> None:
    with pulsarx.Client(folder, enable_busy_wait=True) as client:
        consumer = client.subscribe("t", "s")
        with pytest.raises(errors.Timeout):
            consumer.receive(timeout_millis=1)  # what it asks the owner first
        assert sleeps(consumer) < ROUNDS // 2


def test_messages_reach_who_waits_awake_both_ways(
    folder: Path, processes: list[SharingProcess]
) -> None:
    with pulsarx.Client(folder, durability="os", enable_busy_wait=True) as client:
        consumer, producer = client.subscribe("back", "s"), client.create_producer("there")
        guest = SharingProcess(folder, enable_busy_wait=True)
        processes.append(guest)
        guest.run("consumer = client.subscribe('there', 's')")
        guest.run("producer = client.create_producer('back')")
        guest.ask(
            "for _ in range(100):\n"
            "    message = consumer.receive(60000)\n"
            "    consumer.acknowledge(message)\n"
            "    producer.send(message.data())\n"
        )
        for number in range(100):
            producer.send(b"%d" % number)
            message = consumer.receive(PATIENCE_MS)
            assert message.data() == b"%d" % number
            consumer.acknowledge(message)
        assert guest.answer() is None


def test_who_waits_awake_is_told_that_its_consumer_is_closed(folder: Path) -> None:
    with pulsarx.Client(folder, enable_busy_wait=True) as client:
        consumer = client.subscribe("t", "s")
        told: list[str] = []

        def receive() -> None:
            try:
                consumer.receive()
            except errors.AlreadyClosed as error:
                told.append(type(error).__name__)

        thread = threading.Thread(target=receive)
        thread.start()
        consumer.close()
        thread.join()
        assert told == ["AlreadyClosed"]


def test_ctrl_c_reaches_who_waits_awake(folder: Path) -> None:
    with pulsarx.Client(folder, enable_busy_wait=True) as client:
        consumer = client.subscribe("t", "s")
        thread = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            thread.start()
            consumer.receive()
        thread.join()
        client.create_producer("t").send(b"1")
        assert consumer.receive(PATIENCE_MS).data() == b"1"


def test_a_forked_child_sleeps_unless_it_asks(folder: Path) -> None:
    with pulsarx.Client(folder, enable_busy_wait=True):
        child = os.fork()
        if not child:
            status = 1
            try:
                with pulsarx.Client("memory:") as client:
                    consumer = client.subscribe("t", "s")
                    slept = sleeps(consumer)
                    with pulsarx.Client("memory:", enable_busy_wait=True):
                        awake = sleeps(consumer)
                    again = sleeps(consumer)
                status = 0 if slept >= ROUNDS > awake and again >= ROUNDS else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_client_of_a_cluster_has_no_such_option() -> None:
    with pytest.raises(errors.OperationNotSupported, match="enable_busy_wait"):
        pulsarx.Client("pulsar://localhost:1", enable_busy_wait=True)
