"""Facts about processes that share a folder and are killed at random: nothing is lost, nothing is
stored twice, and each producer's messages are in order."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path

import pytest
from child_process import ChildProcess
from seeds import new_seed, scaled
from sharing_process import SharingProcess

import pulsarx

# Publishes without an end; says before each message which one it begins, and behind it that it was
# confirmed. One that is killed may have stored what it began.
PUBLISHER = """
import sys, pulsarx
folder, name, durability = sys.argv[1:4]
client = pulsarx.Client(folder, durability=durability)
topic = "persistent://public/default/t"
single = client.create_producer(topic, producer_name="single " + name)
batches = client.create_producer(
    topic, producer_name="batches " + name, batching_enabled=True, batching_max_messages=7,
    max_pending_messages=200, block_if_queue_full=True,
)
confirmed = []
print("ready", flush=True)
number = 0
while True:
    for _ in range(20):
        # The same bytes each time: only how often they are there tells them apart.
        batches.send_async(b"b %s" % name.encode(), lambda result, _: confirmed.append(result))
    single.send(b"s %s %d" % (name.encode(), number))
    number += 1
    bad = [each for each in confirmed if each != pulsarx.Result.Ok]
    print(number, len(confirmed), bad, flush=True)
    if sys.stdin in __import__("select").select([sys.stdin], [], [], 0)[0]:
        break
batches.flush()
print("end", number, len(confirmed), flush=True)
client.close()
"""


# An owner whose receipts get lost from when `mute` holds something.
MUTES = """
from pulsarx.sessions.server import Server
mute, open_session = [], Server.open_session
def opened(server, write, *rest, **given):
    def tell(data):
        if not (mute and data[8:10] == bytes((8, 7))):  # the type of SEND_RECEIPT
            write(data)
    return open_session(server, tell, *rest, **given)
Server.open_session = opened
"""


def test_duplicates_whose_answer_died_with_the_owner_are_told_as_such(folder: Path) -> None:
    """They were told as failed, with ConnectError: nothing of them was found in front of what was
    stored. So was a batch of which the owner had left out the duplicates."""
    results: list[tuple[int, pulsarx.Result]] = []

    def payloads(client: pulsarx.Client) -> list[int]:
        with client.create_reader("t", pulsarx.MessageId.earliest) as reader:
            return [int(each.data()) for each in reader]

    with SharingProcess(folder) as owner:
        owner.run(MUTES)
        owner.run("client.admin.topics.create_non_partitioned_topic('t')")
        owner.run("client.admin.topics.set_deduplication('t', True)")
        owner.run("p = client.create_producer('t', producer_name='n')")
        owner.run("[p.send(b'%d' % n, sequence_id=n) and None for n in range(10)] and None")
        owner.run("p.close()")
        with pulsarx.Client(folder) as client:
            producer = client.create_producer(
                "t",
                "n",
                batching_enabled=True,
                batching_max_messages=4,
                batching_max_publish_delay_ms=60_000,
            )
            owner.run("mute.append(True)")
            # Duplicates; two of them and two new ones; new ones; one batch of those again; new ones
            sent = [2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 12, 13, 14, 15, 16, 17, 18, 19]
            for number in sent:
                producer.send_async(
                    b"%d" % number,
                    lambda result, _, number=number: results.append((number, result)),
                    sequence_id=number,
                )
            pause = threading.Event()
            while len(payloads(client)) < 20:
                pause.wait(0.01)
            assert not results
            owner.kill()
            producer.flush()
            assert results == [(number, pulsarx.Result.Ok) for number in sent]
            assert payloads(client) == list(range(20))
            assert producer.last_sequence_id() == 19


# An owner that closes just when a guest comes, and hangs up some time later.
CLOSES = """
import threading
from pulsarx.processes.owner.service import ServedGuest
from pulsarx.sessions.producers import SessionProducers
refused, part, begin = threading.Event(), ServedGuest._part, SessionProducers.begin
def part_late(guest):
    refused.wait(3)
    part(guest)
def close_first(producers, values):
    threading.Thread(target=client.close).start()
    while producers._broker.state.is_open:
        pass
    begin(producers, values)
ServedGuest._part, SessionProducers.begin = part_late, close_first
"""


def test_a_producer_that_comes_to_an_owner_that_closes_goes_on_with_the_next_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That had refused it, and hung up a second later: it was closed for good."""
    monkeypatch.setattr(pulsarx.Client, "_may_own", False)  # before the other has had time to
    with SharingProcess(folder) as owner, SharingProcess(folder) as closing:
        closing.run(CLOSES)
        with pulsarx.Client(folder) as client:
            producer = client.create_producer("t")
            producer.send(b"0")
            owner.kill()
            producer.send(b"1")
            assert closing.run("refused.set()") is None
            with client.create_reader("t", pulsarx.MessageId.earliest) as reader:
                assert [each.data() for each in reader] == [b"0", b"1"]


# An owner that takes long over an entry, while its connection ends and the guest comes again.
LINGERS = """
import threading
from pulsarx.processes.owner import service as guest_service
from pulsarx.sessions.producer import SessionProducer
came, goes_on, ended = (threading.Event() for _ in range(3))
publish = SessionProducer._publish
def linger(producer, *entry):
    if came.is_set():
        return publish(producer, *entry)
    came.set()
    goes_on.wait()
    try:
        publish(producer, *entry)
    finally:
        ended.set()
SessionProducer._publish = linger
def cut():
    for service in guest_service._services.members():
        for guest in list(service.connections):
            guest._socket.shutdown(2)
"""


@pytest.mark.parametrize("durability", ["os", "sync"])
def test_an_entry_that_an_ended_connection_left_behind_is_stored_once(
    folder: Path, durability: str
) -> None:
    """Its thread stored it when the guest had come again, and had sent it once more."""
    with (
        SharingProcess(folder, durability=durability) as owner,
        pulsarx.Client(folder, durability=durability) as client,
    ):
        producer = client.create_producer("t")
        producer.send(b"0")
        owner.run(LINGERS)
        told: list[pulsarx.Result] = []
        producer.send_async(b"1", lambda result, _: told.append(result))
        assert owner.run("came.wait(60)")
        owner.run("cut()")
        producer.flush()
        owner.run("goes_on.set()")
        assert owner.run("ended.wait(60)")
        producer.send(b"2")
        assert told == [pulsarx.Result.Ok]
        with client.create_reader("t", pulsarx.MessageId.earliest) as reader:
            assert [each.data() for each in reader] == [b"0", b"1", b"2"]


class Publisher(ChildProcess):
    def __init__(self, folder: Path, name: str, durability: str) -> None:
        super().__init__(PUBLISHER, folder, name, durability)
        self.name = name
        self.rounds = self.confirmed = 0
        assert self.line() == "ready"

    def follow(self, rounds: int) -> None:
        """Read what it says, until it has done so many rounds more."""
        until = self.rounds + rounds
        while self.rounds < until:
            self.heard(self.line())

    def heard(self, line: str) -> None:
        if line.startswith("end"):
            self.rounds, self.confirmed = map(int, line.split()[1:])
            return
        number, confirmed, bad = line.split(" ", 2)
        assert bad == "[]", line
        self.rounds, self.confirmed = int(number), int(confirmed)


def campaign(folder: Path, count: int, kills: int, durability: str, seed: int) -> None:
    chance = random.Random(seed)
    made = 0
    living: list[Publisher] = []
    killed: list[Publisher] = []
    try:
        while len(living) < count:
            living.append(Publisher(folder, f"p{made}", durability))
            made += 1
        for _ in range(kills):
            for each in living:
                each.follow(chance.randrange(1, 6))
            # The owner, which is the one that LOCK names, half of the time.
            pid = int((folder / "LOCK").read_text().split()[1])
            owners = [each for each in living if each.pid == pid]
            victim = owners[0] if owners and chance.random() < 0.5 else chance.choice(living)
            victim.kill()
            for line in victim.rest():
                if line.endswith("]"):
                    victim.heard(line)
            living.remove(victim)
            killed.append(victim)
            living.append(Publisher(folder, f"p{made}", durability))
            made += 1
        for each in living:
            each.follow(2)
            each.tell("end")
            while True:
                line = each.line()
                each.heard(line)
                if line.startswith("end"):
                    break
        with pulsarx.Client(folder, durability=durability) as client:
            check(client, living, killed)
        for each in living:
            assert each.end() == []
    finally:
        for each in (*living, *killed):
            each.__exit__(None, None, None)


def check(client: pulsarx.Client, living: list[Publisher], killed: list[Publisher]) -> None:
    singles: dict[str, list[int]] = {}
    batched: Counter[str] = Counter()
    with client.create_reader("t", pulsarx.MessageId.earliest) as reader:
        while reader.has_message_available():
            kind, name, *number = reader.read_next(60_000).data().decode().split()
            if kind == "s":
                singles.setdefault(name, []).append(int(number[0]))
            else:
                batched[name] += 1
    for each in living:
        assert singles[each.name] == list(range(each.rounds)), each.name
        assert batched[each.name] == 20 * each.rounds == each.confirmed, each.name
    for each in killed:
        # It may have sent once more than it could say.
        assert singles[each.name] == list(range(len(singles[each.name]))), each.name
        assert each.rounds <= len(singles[each.name]) <= each.rounds + 1, each.name
        assert each.confirmed <= batched[each.name] <= 20 * (each.rounds + 1), each.name


@pytest.mark.parametrize(("count", "durability"), [(2, "sync"), (4, "os")])
def test_owners_and_guests_are_killed_while_all_publish(
    folder: Path, count: int, durability: str
) -> None:
    campaign(folder, count, scaled(6), durability, new_seed())


@pytest.mark.long
def test_sixteen_processes_are_killed_while_all_publish(folder: Path) -> None:
    campaign(folder, 16, scaled(20), "interval", new_seed())
