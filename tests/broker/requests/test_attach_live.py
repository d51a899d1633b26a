"""An owner that publishes and consumes all the while others attach, in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from child_process import ChildProcess
from staged_ledgers import stage
from topic_reading import OpenClient, read_all, whole_topic

import pulsarx
from pulsarx import InitialPosition, errors
from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.broker.staging.ledger_attachment import _Attachment
from pulsarx.broker.topics.topic import Topic
from pulsarx.clock import monotonic_ms

PARTITIONS = 3
SUBSCRIPTIONS = ["Exclusive", "Shared", "Failover", "KeyShared", "listener"]

LIVE = """
import sys, threading, pulsarx
from pulsarx import ConsumerType, InitialPosition
names = ["Exclusive", "Shared", "Failover", "KeyShared", "listener"]
client = pulsarx.Client(sys.argv[1], durability=sys.argv[2])
saying, stop, done = threading.Lock(), threading.Event(), threading.Event()
found = {name: [] for name in names}
sent = {}

def say(*words):
    with saying:
        print(*words, flush=True)

def took(name, message):
    data = message.data().decode()
    found[name].append((message.message_id().partition(), data))
    if data.startswith("a"):
        say(name, data)

def consume(name):
    while not done.is_set():
        try:
            message = consumers[name].receive(100)
        except pulsarx.Timeout:
            continue
        took(name, message)
        consumers[name].acknowledge(message)

def listen(consumer, message):
    took("listener", message)
    consumer.acknowledge(message)

def produce(who):
    producer = client.create_producer("p", batching_enabled=who == 1)
    last, number = {}, 0
    while not stop.is_set():
        content = b"p%d-%d" % (who, number)
        identity = producer.send(content, partition_key=str(number % 7))
        place = identity.ledger_id(), identity.entry_id(), identity.batch_index()
        if last.get(identity.partition(), (-1,)) >= place:
            say("an id does not increase:", place, last)
        last[identity.partition()] = place
        number += 1
        stop.wait(0.002)
    sent[who] = number

consumers = {
    name: client.subscribe(
        "p", name, getattr(ConsumerType, name), initial_position=InitialPosition.Earliest
    )
    for name in names[:4]
}
listener = client.subscribe(
    "p", "listener", ConsumerType.Shared, message_listener=listen,
    initial_position=InitialPosition.Earliest,
)
consuming = [threading.Thread(target=consume, args=(name,)) for name in names[:4]]
producing = [threading.Thread(target=produce, args=(who,)) for who in range(2)]
for each in consuming + producing:
    each.start()
say("ready")
attached = int(sys.stdin.readline())
stop.set()
for each in producing:
    each.join()
wanted = attached + sum(sent.values())
for _ in range(1200):
    if all(len(each) >= wanted for each in found.values()):
        break
    done.wait(0.05)
done.wait(0.2)
done.set()
for each in consuming:
    each.join()
for name, each in found.items():
    if len(each) != wanted or len({data for _, data in each}) != wanted:
        say(name, "has", len(each), len({data for _, data in each}), "not", wanted)
    last = {}
    for partition, data in each:
        who, number = data.rsplit("-", 1)
        if last.get((partition, who), -1) >= int(number):
            say(name, "out of order", partition, data)
        last[partition, who] = int(number)
client.close()
say("end", sent[0] > 0 and sent[1] > 0)
"""


@pytest.mark.standard
@pytest.mark.parametrize("durability", ["sync", "os"])
def test_all_that_is_attached_arrives_within_a_second_while_producing_goes_on(
    folder: Path, open_client: OpenClient, durability: str
) -> None:
    with open_client() as client:
        client.admin.topics.create_partitioned_topic("p", PARTITIONS)
    waits_ms = []
    with ChildProcess(LIVE, folder, durability) as owner:
        assert owner.line() == "ready"
        for batch in range(6):
            files = [
                stage(
                    folder,
                    f"p-partition-{index}",
                    [b"a%d-%d" % (index, 2 * batch + each) for each in range(2)],
                )
                for index in range(PARTITIONS)
            ]
            attach(folder, Transaction("query", batch), files)
            begun_ms = monotonic_ms()
            seen = {owner.line() for _ in range(2 * PARTITIONS * len(SUBSCRIPTIONS))}
            waits_ms.append(monotonic_ms() - begun_ms)
            assert seen == {
                f"{name} a{index}-{2 * batch + each}"
                for name in SUBSCRIPTIONS
                for index in range(PARTITIONS)
                for each in range(2)
            }
        owner.tell(str(6 * 2 * PARTITIONS))
        assert owner.end() == ["end True"]
    assert min(waits_ms) < 1000  # in the others the machine may have been busy


MORTAL = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1])
producer = client.create_producer("t")
for number in range(int(sys.argv[2]), 1 << 30):
    producer.send(b"p-%d" % number)
    print(number, flush=True)
"""


@pytest.mark.standard
def test_owners_are_killed_while_others_attach_and_nothing_is_lost_or_twice(
    folder: Path, open_client: OpenClient
) -> None:
    with open_client() as client:
        client.admin.topics.create_non_partitioned_topic("t")
    told: set[int] = set()
    for turn in range(4):
        with ChildProcess(MORTAL, folder, 100_000 * turn) as owner:
            told.add(int(owner.line()))
            for batch in range(5 * turn, 5 * turn + 5):
                file = stage(folder, "t", [b"a-%d" % batch])
                if batch % 5 == turn:
                    killing = threading.Timer(0.005 * turn, owner.signal, [9])
                    killing.start()
                result = attach(folder, Transaction("query", batch), [file])
                assert (result.batch_id, result.message_count) == (batch, 1)
            killing.join()
            told.update(int(line) for line in owner.rest())
    with pulsarx.Client(folder) as client:
        messages = read_all(client, "t")
    attached = [each.data() for each in messages if each.data().startswith(b"a")]
    assert attached == [b"a-%d" % batch for batch in range(20)]
    published = [int(each.data()[2:]) for each in messages if each.data().startswith(b"p")]
    assert published == sorted(set(published))
    assert told <= set(published)
    ids = [(each.message_id().ledger_id(), each.message_id().entry_id()) for each in messages]
    assert ids == sorted(set(ids))


SAME = """
import sys, json
from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.broker.staging.ledger_attachment import _Attachment
from pulsarx.broker.topics.topic import Topic
from pulsarx.broker.staging.staged_file import StagedFile
folder, documents = sys.argv[1:]
files = [StagedFile.of_document(each) for each in json.loads(documents)]
print("ready", flush=True)
sys.stdin.readline()
for batch in range(4):
    result = attach(folder, Transaction("query", batch), files[batch : batch + 1])
    print(result.already, result.first_ledger_id, result.batch_id, flush=True)
"""


@pytest.mark.parametrize("owned", [True, False])
def test_the_same_transactions_from_several_processes_at_once(
    folder: Path, open_client: OpenClient, owned: bool
) -> None:
    """As two drivers that each believe the other one dead."""
    with open_client() as client:
        client.admin.topics.create_non_partitioned_topic("t")
    files = [stage(folder, "t", [b"%d" % batch]) for batch in range(4)]
    documents = json.dumps([each.document() for each in files])
    owner = open_client() if owned else None
    with ExitStack() as stack:
        children = [stack.enter_context(ChildProcess(SAME, folder, documents)) for _ in range(3)]
        for each in children:
            assert each.line() == "ready"
        for each in children:
            each.tell()
        told = [line.split() for each in children for line in each.end()]
    for batch in range(4):
        # One is asked for a batch when a later one is there already: that answers for it.
        mine = [line for line in told if line[2] == str(batch)]
        assert [line[0] for line in mine].count("False") == 1
        assert len({line[1] for line in mine}) == 1
    if owner is not None:
        owner.close()
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == [b"0", b"1", b"2", b"3"]


def test_an_owner_that_hangs_is_a_timeout_and_the_same_call_again_tells(
    folder: Path, open_client: OpenClient
) -> None:
    with open_client() as client:
        client.admin.topics.create_non_partitioned_topic("t")
    file = stage(folder, "t", [b"a"])
    with ChildProcess(MORTAL, folder, 0) as owner:
        owner.line()
        owner.signal(signal.SIGSTOP)
        try:
            with pytest.raises(errors.Timeout, match="may have been done; ask again"):
                attach(folder, Transaction("query", 0), [file], timeout_ms=2000)
        finally:
            owner.signal(signal.SIGCONT)
        result = attach(folder, Transaction("query", 0), [file])
        assert (result.ledger_count, result.message_count) == (1, 1)
        owner.kill()
    with pulsarx.Client(folder) as client:
        assert whole_topic(client).count(b"a") == 1


def test_a_forked_child_of_the_owner_attaches_over_the_socket(
    folder: Path, open_client: OpenClient
) -> None:
    client = open_client()
    client.create_producer("t").send(b"a")
    consumer = client.subscribe("t", "s")
    file = stage(folder, "t", [b"b"])
    child = os.fork()
    if child == 0:
        try:
            result = attach(folder, Transaction("query", 0), [file])
            os._exit(0 if result.ledger_count == 1 else 1)
        finally:
            os._exit(2)
    assert consumer.receive(60_000).data() == b"b"
    assert os.waitpid(child, 0)[1] == 0


def test_a_subscription_that_is_made_during_an_attach_acknowledges_what_comes(
    folder: Path, open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told of the ledger behind the commit, when it had received of it."""
    client = open_client()
    client.admin.topics.create_non_partitioned_topic("t")
    consumers: list[pulsarx.Consumer] = []
    link, ledgers_came = _Attachment._link, Topic.ledgers_came

    def subscribe() -> None:
        consumers.append(client.subscribe("t", "s", initial_position=InitialPosition.Earliest))

    def link_late(attachment: _Attachment, ids: list[int]) -> None:
        thread = threading.Thread(target=subscribe)
        thread.start()
        thread.join()
        link(attachment, ids)

    def come_late(topic: Topic, ids: list[int], came: bool) -> None:
        for consumer in consumers:
            consumer.acknowledge(consumer.receive(60_000))
        ledgers_came(topic, ids, came)

    monkeypatch.setattr(_Attachment, "_link", link_late)
    monkeypatch.setattr(Topic, "ledgers_came", come_late)
    attach(folder, Transaction("query", 0), [stage(folder, "t", [b"a"])])
    (subscription,) = client.admin.topics.stats("t")["subscriptions"].values()
    assert subscription["msg_backlog"] == 0
