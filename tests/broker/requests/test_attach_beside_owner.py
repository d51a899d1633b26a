"""Facts about ledgers attached from another process while an owner publishes and consumes."""

from __future__ import annotations

import json
import os
import resource
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess, run_program
from staged_ledgers import PREFIX, folder_id, stage, staged_names
from topic_reading import OpenClient, numbers, payloads, whole_topic

import pulsarx
from pulsarx import ConsumerType, InitialPosition, errors
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.requests.attach import Transaction, attach, attached
from pulsarx.broker.requests.owner_request import ask_owner
from pulsarx.broker.scan.lease import lease, release_lease
from pulsarx.testing import inspect

OWNER = """
import sys, json, pulsarx
from pulsarx.testing import inspect
client = pulsarx.Client(sys.argv[1], durability=sys.argv[2])
producers, consumers = {}, {}
print("ready", flush=True)
for line in sys.stdin:
    verb, topic, *words = line.split()
    if verb == "publish":
        if topic not in producers:
            producers[topic] = client.create_producer(topic)
        for word in words:
            producers[topic].send(word.encode())
        print("done", flush=True)
    elif verb == "subscribe":
        consumers[topic] = client.subscribe(
            topic, "s", getattr(pulsarx.ConsumerType, words[0]),
            initial_position=pulsarx.InitialPosition.Earliest,
        )
        print("done", flush=True)
    elif verb == "settle":
        inspect(client).settle()
        print("done", flush=True)
    elif verb == "receive":
        for _ in range(int(words[0])):
            message = consumers[topic].receive(60_000)
            consumers[topic].acknowledge(message)
            print(message.data().decode(), flush=True)
    elif verb == "idle":
        import os
        used = os.times()
        print(used.user + used.system, flush=True)
client.close()
"""


class Owner(ChildProcess):
    def __init__(self, folder: Path, durability: str = "sync") -> None:
        super().__init__(OWNER, folder, durability)
        assert self.line() == "ready"

    def does(self, what: str) -> None:
        self.tell(what)
        assert self.line() == "done"


@pytest.fixture
def owner(folder: Path) -> Iterator[Owner]:
    with Owner(folder) as started:
        yield started


@pytest.mark.parametrize("mode", ["Exclusive", "ExclusiveWithFencing"])
def test_nothing_is_attached_to_a_topic_that_a_producer_has_to_itself(
    folder: Path, open_client: OpenClient, mode: str
) -> None:
    client = open_client()
    client.create_producer("u").close()
    holder = client.create_producer(
        "t", "holder", access_mode=getattr(pulsarx.ProducerAccessMode, mode)
    )
    holder.send(b"mine")
    files = [stage(folder, "u", [b"a"]), stage(folder, "t", [b"b"])]
    with pytest.raises(errors.ProducerBusy, match="holder"):
        attach(folder, Transaction("app", 1), files)
    assert (whole_topic(client, "u"), whole_topic(client)) == ([], [b"mine"])
    holder.send(b"still mine")
    holder.close()
    attach(folder, Transaction("app", 1), files)
    assert (whole_topic(client, "u"), whole_topic(client)) == (
        [b"a"],
        [b"mine", b"still mine", b"b"],
    )


@pytest.mark.parametrize(
    ("policy", "refusal"),
    [
        ("producer_request_hold", errors.ProducerBlockedQuotaExceededError),
        ("producer_exception", errors.ProducerBlockedQuotaExceededException),
    ],
)
def test_nothing_is_attached_to_a_topic_whose_backlog_is_larger_than_its_quota(
    folder: Path, open_client: OpenClient, policy: str, refusal: type[Exception]
) -> None:
    """Attaching did not heed quotas: a job could add to a backlog in which no producer may."""
    client = open_client()
    client.create_producer("u").close()
    client.subscribe("t", "s").close()
    client.create_producer("t").send(bytes(5000))
    client.admin.topics.set_backlog_quota("t", limit_size=1000, policy=policy)
    files = [stage(folder, "u", [b"a"]), stage(folder, "t", [b"b"])]
    with pytest.raises(refusal, match=r"1000.*Nothing was attached"):
        attach(folder, Transaction("app", 1), files)
    assert (whole_topic(client, "u"), whole_topic(client)) == ([], [bytes(5000)])
    client.admin.topics.skip_all_messages("t", "s")
    attach(folder, Transaction("app", 1), files)
    assert (whole_topic(client, "u"), whole_topic(client)[-1]) == ([b"a"], b"b")


def test_what_is_attached_is_evicted_above_the_quota_as_other_messages(
    folder: Path, open_client: OpenClient
) -> None:
    clock = pulsarx.ManualClock()
    client = open_client(clock=clock)
    consumer = client.subscribe("t", "s")
    client.admin.topics.set_backlog_quota("t", limit_size=2000, policy="consumer_backlog_eviction")
    attach(folder, Transaction("app", 1), [stage(folder, "t", [bytes(1000)] * 10)])
    clock.advance(60)
    assert 0 < len(payloads(consumer)) <= 2


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "KeyShared"])
def test_consumers_of_the_owner_are_woken_and_its_producers_roll_over(
    folder: Path, durability: str, kind: str
) -> None:
    with Owner(folder, durability) as owner:
        owner.does("publish t a b")
        owner.does(f"subscribe t {kind}")
        owner.tell("receive t 5")
        assert [owner.line(), owner.line()] == ["a", "b"]
        files = [stage(folder, "t", [b"c", b"d"]), stage(folder, "t", [b"e"])]
        result = attach(folder, Transaction("query", 0), files)
        assert (result.already, result.ledger_count, result.message_count) == (False, 2, 3)
        assert [owner.line() for _ in range(3)] == ["c", "d", "e"]
        owner.does("publish t f")
        owner.tell("receive t 1")
        assert owner.line() == "f"
        assert staged_names(folder) == []
        with pulsarx.Client(folder, read_only=True) as beside:
            assert whole_topic(beside)[-1] == b"f"  # what is acknowledged may be trimmed by now


def test_the_same_transaction_again_touches_nothing(owner: Owner, folder: Path) -> None:
    owner.does("publish t a")
    files = [stage(folder, "t", [b"b"])]
    first = attach(folder, Transaction("query", 3), files)
    owner.does("settle t")
    before = sorted(os.listdir(folder / "catalogue"))
    again = attach(folder, Transaction("query", 3), files)
    assert again == first and again.already
    older = attach(folder, Transaction("query", 1), [])
    assert older.already and older.batch_id == 3
    assert sorted(os.listdir(folder / "catalogue")) == before


def test_all_partitions_come_in_one_commit(folder: Path, open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic("p", 3)
    consumer = client.subscribe(
        "p", "s", ConsumerType.Shared, initial_position=InitialPosition.Earliest
    )
    files = [
        stage(folder, f"p-partition-{index}", [b"%d-%d" % (index, turn)])
        for turn in range(2)
        for index in range(3)
    ]
    before = len(os.listdir(folder / "catalogue"))
    result = run_attach(folder, "query", 0, files)
    assert result["ledger_count"] == 6
    assert len(os.listdir(folder / "catalogue")) == before + 1
    found = [consumer.receive(60_000).data() for _ in range(6)]
    for index in range(3):
        assert [each for each in found if each[:1] == b"%d" % index] == [
            b"%d-0" % index,
            b"%d-1" % index,
        ]


ATTACH = """
import sys, json
from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.broker.staging.staged_file import StagedFile
from pulsarx.testing import inspect
folder, application, batch_id, documents = sys.argv[1:]
files = [StagedFile.of_document(each) for each in json.loads(documents)]
result = attach(folder, Transaction(application, int(batch_id)), files)
print(json.dumps({name: getattr(result, name) for name in result.__slots__}))
"""


def run_attach(folder: Path, application: str, batch_id: int, files: list[Any]) -> dict[str, Any]:
    """Attach from another process."""
    documents = json.dumps([file.document() for file in files])
    found: dict[str, Any] = json.loads(
        run_program(ATTACH, folder, application, batch_id, documents)[-1]
    )
    return found


def test_an_owner_in_this_process_is_asked_without_a_socket(
    folder: Path, open_client: OpenClient
) -> None:
    client = open_client()
    client.create_producer("t").send(b"a")
    attach(folder, Transaction("query", 0), [stage(folder, "t", [b"b"])])
    assert whole_topic(client) == [b"a", b"b"]


def test_publishing_and_consuming_go_on_while_others_attach(
    folder: Path, open_client: OpenClient
) -> None:
    client = open_client(durability="sync")
    producer = client.create_producer("t")
    producer.send(b"first")
    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
    failures: list[BaseException] = []

    def publish(who: int) -> None:
        try:
            mine = client.create_producer("t")
            for number in range(100):
                mine.send(b"p%d-%d" % (who, number))
        except BaseException as error:
            failures.append(error)

    def attach_some(who: int) -> None:
        try:
            for batch in range(5):
                content = [b"a%d-%d" % (who, 10 * batch + each) for each in range(10)]
                file = stage(folder, "t", content, job=f"job{who}-{batch}")
                attach(folder, Transaction(f"query{who}", batch), [file])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=publish, args=(who,)) for who in range(2)]
    threads += [threading.Thread(target=attach_some, args=(who,)) for who in range(2)]
    for thread in threads:
        thread.start()
    found = []
    for _ in range(301):
        message = consumer.receive(60_000)
        consumer.acknowledge(message)
        found.append(message.data())
    for thread in threads:
        thread.join()
    assert not failures
    assert len(set(found)) == 301
    for who, count in ((b"p0", 100), (b"p1", 100), (b"a0", 50), (b"a1", 50)):
        mine = [int(each.partition(b"-")[2]) for each in found if each.startswith(who)]
        assert mine == list(range(count))
    with pytest.raises(errors.Timeout):
        consumer.receive(10)


def test_what_was_attached_survives_the_owner(folder: Path, open_client: OpenClient) -> None:
    with Owner(folder) as owner:
        owner.does("publish t a")
        attach(folder, Transaction("query", 0), [stage(folder, "t", [b"b"])])
        owner.does("publish t c")
        owner.kill()
    assert attach(folder, Transaction("query", 0), []).already
    client = open_client()
    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
    assert payloads(consumer) == [b"a", b"b", b"c"]


def test_without_an_owner_what_a_dead_one_left_open_is_sealed_first(
    folder: Path, open_client: OpenClient
) -> None:
    with Owner(folder) as owner:
        owner.does("publish t a b")
        owner.kill()
    attach(folder, Transaction("query", 0), [stage(folder, "t", [b"c"])])
    client = open_client()
    client.create_producer("t").send(b"d")
    assert whole_topic(client) == [b"a", b"b", b"c", b"d"]


def test_a_reader_beside_sees_what_was_attached(owner: Owner, folder: Path) -> None:
    owner.does("publish t a")
    with pulsarx.Client(folder, read_only=True) as beside:
        reader = beside.create_reader("t", pulsarx.MessageId.earliest)
        assert reader.read_next(60_000).data() == b"a"
        found: list[bytes] = []
        thread = threading.Thread(target=lambda: found.append(reader.read_next(60_000).data()))
        thread.start()
        attach(folder, Transaction("query", 0), [stage(folder, "t", [b"b"])])
        thread.join(60)
        assert found == [b"b"]


def test_a_subscription_holds_what_was_attached_until_it_is_acknowledged(
    folder: Path, open_client: OpenClient
) -> None:
    client = open_client()
    client.create_producer("t").send(b"a")
    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
    attach(folder, Transaction("query", 0), [stage(folder, "t", numbers(3))])
    stats = client.admin.topics.stats("t")
    assert stats["subscriptions"]["s"]["msg_backlog"] == 4
    client.create_producer("t").send(b"z")
    for _ in range(5):
        consumer.acknowledge(consumer.receive(60_000))
    inspect(client).settle()
    assert client.admin.topics.stats("t")["messages"] == 1


def test_a_leased_ledger_is_not_trimmed(folder: Path, open_client: OpenClient) -> None:
    client = open_client()
    client.create_producer("t").send(b"a")
    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
    attach(folder, Transaction("query", 0), [stage(folder, "t", numbers(3))])
    leased = [each["ledger_id"] for each in client.admin.topics.stats("t")["ledgers"]]
    lease(folder, "job", {PREFIX + "t": leased}, 60_000)
    client.create_producer("t").send(b"z")
    for _ in range(5):
        consumer.acknowledge(consumer.receive(60_000))
    inspect(client).settle()
    assert client.admin.topics.stats("t")["messages"] == 5
    assert release_lease(folder, "job")
    inspect(client).settle()
    assert client.admin.topics.stats("t")["messages"] == 1


def test_who_asked_and_died_finds_it_done(owner: Owner, folder: Path) -> None:
    owner.does("publish t a")
    file = stage(folder, "t", [b"b"])
    place = DataDirectory.open(str(folder), files=FileSystem(), read_only=True).owner()
    assert place is not None
    whole = {"folder": file.store_id, "epoch": place.epoch, "verb": "ledgers.attach"}
    arguments = {"application": "q", "batch_id": 0, "files": [file.document()], "thorough": True}
    data = json.dumps({**whole, "arguments": arguments}).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(folder / "control.sock"))
        connection.sendall(len(data).to_bytes(4, "big") + data)
    for _ in range(1000):
        if attached(folder, Transaction("q", 0)) is not None:
            break
        threading.Event().wait(0.01)
    assert attach(folder, Transaction("q", 0), [file]).already
    owner.does("subscribe t Shared")
    owner.tell("receive t 2")
    assert [owner.line(), owner.line()] == ["a", "b"]


def test_an_idle_owner_uses_no_cpu_for_its_socket(owner: Owner, folder: Path) -> None:
    ask_owner(folder, "topics.ensure", {"topic": "t", "partitions": 0})
    found: list[float] = []
    # What making the topic left to do is done in the first of them; waking costs more on a busy
    # machine. A socket that is asked again and again costs in each.
    while len(found) < 5 and (not found or min(found) > 0.02):
        owner.tell("idle t")
        before = float(owner.line())
        threading.Event().wait(0.5)
        owner.tell("idle t")
        found.append(float(owner.line()) - before)
    assert min(found) <= 0.02


def test_no_descriptor_is_left_open(folder: Path, open_client: OpenClient) -> None:
    for _ in range(3):
        open_client().close()
    before = len(os.listdir("/proc/self/fd"))
    for batch in range(5):
        open_client().close()
        with pytest.raises(errors.TopicNotFound):
            attach(folder, Transaction("q", batch), [stage(folder, "nowhere", [b"x"])])
    assert len(os.listdir("/proc/self/fd")) <= before
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 0
    assert folder_id(folder)
