"""Facts about many consumers of one subscription over connections: what one of them does costs
nothing for each of the others, and nobody waits for what he could have."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from peer import Peer, names
from seeds import new_seed, scaled

import pulsarx
from pulsarx import BrokerOptions
from pulsarx.broker.subscriptions.subscription import Subscription
from pulsarx.sessions.server import Server
from pulsarx.wire.commands import INDIVIDUAL, KEY_SHARED, SHARED

KINDS = pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
LOOK_AHEAD = BrokerOptions(
    key_shared_look_ahead_msg_in_replay_threshold_per_consumer=4,
    key_shared_look_ahead_msg_in_replay_threshold_per_subscription=100,
)


@pytest.fixture
def client() -> Iterator[pulsarx.Client]:
    with pulsarx.Client("memory:", durability="os", broker_options=LOOK_AHEAD) as found:
        yield found


def attached(
    server: Server,
    kind: int,
    name: str,
    permits: int = 10,
    topic: str = "t",
    has_room: Any = lambda: True,
) -> Peer:
    made = Peer(server, has_room=has_room)
    made.connect()
    made.subscribe(type=kind, consumer_name=name, topic=topic)
    made.say("FLOW", consumer_id=0, permits=permits)
    made.woken.clear()
    return made


def woken(peers: list[Peer]) -> int:
    found = sum(each.woken.is_set() for each in peers)
    for each in peers:
        each.woken.clear()
    return found


def heard(peer: Peer) -> list[bytes]:
    """The entries it is sent when it is woken; none when it is not."""
    if not peer.woken.is_set():
        return []
    peer.woken.clear()
    peer.session.deliver()
    found, peer.told = peer.told, []
    return [each[2] for each in found if each[0] == "MESSAGE"]


def publish(client: pulsarx.Client, keys: list[str], topic: str = "t") -> None:
    with client.create_producer(topic, batching_enabled=False) as producer:
        for key in keys:
            producer.send(key.encode(), partition_key=key)


@KINDS
def test_a_newcomer_wakes_nobody_who_has_nothing_to_look_for(server: Server, kind: int) -> None:
    """Of a thousand consumers each woke all others, and a connection looks when it is woken."""
    peers = [attached(server, kind, f"c{number}") for number in range(8)]
    attached(server, kind, "newcomer")
    assert woken(peers) == 0


@KINDS
@pytest.mark.parametrize("how", ["closed", "hung up"])
def test_a_consumer_that_goes_wakes_nobody_who_has_nothing_to_look_for(
    server: Server, kind: int, how: str
) -> None:
    first, *peers = [attached(server, kind, f"c{number}") for number in range(8)]
    if how == "closed":
        assert names(first.say("CLOSE_CONSUMER", consumer_id=0, request_id=2)) == ["SUCCESS"]
    else:
        first.session.close()
    assert woken(peers) == 0


@KINDS
def test_those_that_are_told_are_of_several_connections(
    client: pulsarx.Client, server: Server, kind: int
) -> None:
    """A connection looks for one of its consumers at a time, and may be busy for long: where all
    that were told were of one, nobody else heard of a message."""
    producer = client.create_producer("t", batching_enabled=False)
    producer.send(b"before")  # whose ledger is told to all
    together = attached(server, kind, "a0")
    for number in range(1, 8):
        together.say(
            "SUBSCRIBE",
            topic="t",
            subscription="s",
            type=kind,
            consumer_id=number,
            request_id=number + 1,
            consumer_name=f"a{number}",
        )
        together.say("FLOW", consumer_id=number, permits=10)
    alone = [attached(server, kind, f"b{number}") for number in range(3)]
    for number in range(20):
        producer.send(b"%d" % number, partition_key=f"k{number}")
    assert all(each.woken.is_set() for each in alone)
    # The one with several does not look.
    assert sum(len(heard(each)) for each in alone) > 0


@KINDS
def test_what_a_consumer_that_goes_leaves_comes_to_others(
    client: pulsarx.Client, server: Server, kind: int
) -> None:
    peers = [attached(server, kind, f"c{number}", 100) for number in range(4)]
    keys = [f"k{number}" for number in range(40)]
    publish(client, keys)
    counts = [len(heard(each)) for each in peers]
    assert sum(counts) == 40 and counts[0]
    woken(peers)
    peers[0].session.close()
    rest = peers[1:]
    assert sum(len(heard(each)) for each in rest) == counts[0]


def split(client: pulsarx.Client, server: Server) -> tuple[list[str], list[str]]:
    """Keys that consumer a has beside consumer b, and those that b has."""
    a, b = (attached(server, KEY_SHARED, name, 1000, "probe") for name in ("a", "b"))
    keys = [f"k{number:02}" for number in range(60)]
    publish(client, keys, "probe")
    entries = heard(a)
    assert 0 < len(entries) < 60 and len(entries) + len(heard(b)) == 60
    of_a = [key for key in keys if any(key.encode() in entry for entry in entries)]
    return of_a, [key for key in keys if key not in of_a]


def test_a_newcomer_wakes_those_who_may_be_read_for_again(
    client: pulsarx.Client, server: Server
) -> None:
    """What may wait for a full consumer grows with the number of consumers, so that reading goes on
    for one that is there."""
    of_a, of_b = split(client, server)
    a, b = attached(server, KEY_SHARED, "a", 1), attached(server, KEY_SHARED, "b", 100)
    publish(client, [*[of_a[0]] * 9, of_b[0], *[of_a[0]] * 3])
    assert len(heard(a)) == 1
    assert heard(b) == []  # eight wait for a: nothing more is read
    b.woken.clear()
    attached(server, KEY_SHARED, "newcomer", 0)
    assert len(heard(b)) == 1


def test_a_consumer_that_goes_leaves_its_keys_to_those_who_wait(
    client: pulsarx.Client, server: Server
) -> None:
    of_a, _ = split(client, server)
    a, b = attached(server, KEY_SHARED, "a", 0), attached(server, KEY_SHARED, "b", 100)
    publish(client, of_a[:5])
    assert (heard(a), heard(b)) == ([], [])
    b.woken.clear()
    a.session.close()
    assert len(heard(b)) == 5


@KINDS
def test_acknowledging_all_wakes_nobody_in_vain(
    client: pulsarx.Client, server: Server, kind: int
) -> None:
    peers = [attached(server, kind, f"c{number}", 100) for number in range(4)]
    publish(client, ["k"])
    for each in peers:
        each.session.deliver()
    woken(peers)
    (holder,) = [each for each in peers if "MESSAGE" in names(each.told)]
    (told,) = [each for each in holder.told if each[0] == "MESSAGE"]
    place = {name: told[1]["message_id"][name] for name in ("ledger_id", "entry_id")}
    holder.say("ACK", consumer_id=0, ack_type=INDIVIDUAL, message_ids=[place])
    assert woken(peers) == 0


# Who is told of a message -------------------------------------------------------------------------


@KINDS
def test_a_message_is_told_to_a_few(client: pulsarx.Client, server: Server, kind: int) -> None:
    """Each connection looked whenever one was published."""
    peers = [attached(server, kind, f"c{number}") for number in range(40)]
    begin(client, peers)
    publish(client, ["k"])
    assert 1 <= sum(each.woken.is_set() for each in peers) <= 4
    assert all_heard(peers) == [1]


def begin(client: pulsarx.Client, peers: list[Peer]) -> None:
    """Publish the first message, with which a ledger comes: of that all are told."""
    publish(client, ["first"])
    all_heard(peers)


def all_heard(peers: list[Peer]) -> list[int]:
    """How many entries those are sent who are sent some, until nobody is woken any more."""
    counts = dict.fromkeys(range(len(peers)), 0)
    while any(each.woken.is_set() for each in peers):
        for number, each in enumerate(peers):
            counts[number] += len(heard(each))
    return [count for count in counts.values() if count]


@KINDS
def test_who_looks_has_those_told_who_get_something(
    client: pulsarx.Client, server: Server, kind: int
) -> None:
    peers = [attached(server, kind, f"c{number}", 3) for number in range(40)]
    keys = [f"k{number}" for number in range(100)]
    publish(client, keys)
    counts = all_heard(peers)
    assert len(counts) > 10
    if kind == SHARED:
        assert sum(counts) == 100 and max(counts) == 3


@KINDS
@pytest.mark.parametrize("how", ["stalled", "closed", "hung up"])
def test_those_who_were_told_and_do_not_look_have_others_told(
    client: pulsarx.Client, server: Server, kind: int, how: str
) -> None:
    room = [True]
    few = [attached(server, kind, f"a{n}", 1000, has_room=lambda: room[0]) for n in range(4)]
    others = [attached(server, kind, f"b{n}", 1000) for n in range(8)]
    begin(client, [*few, *others])
    while not all(each.woken.is_set() for each in few):  # those who are told take turns
        all_heard([*few, *others])
        publish(client, [f"k{number}" for number in range(40)])
    told = [each for each in few if each.woken.is_set()]
    assert len(told) == 4 and not any(each.woken.is_set() for each in others)
    room[0] = False
    for each in few:
        if how == "stalled" and each.woken.is_set():
            each.session.deliver()
        elif how == "closed":
            each.session.received(b"")
            each.say("CLOSE_CONSUMER", consumer_id=0, request_id=2)
        elif how == "hung up":
            each.session.close()
    assert all_heard(others)
    room[0] = True


def test_the_end_of_a_topic_is_told_to_all(
    client: pulsarx.Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each asked for the figures of all, so that the end of a topic with 1,000 consumers took as
    long as a million of them."""

    def ask(_: Subscription) -> None:
        raise AssertionError("the figures of all consumers")

    peers = [attached(server, SHARED, f"c{number}") for number in range(12)]
    client.create_producer("t").close()
    monkeypatch.setattr(Subscription, "statistics", ask)
    client.admin.topics.terminate("t")
    assert all(each.woken.is_set() for each in peers)
    for each in peers:
        each.session.deliver()
        assert "REACHED_END_OF_TOPIC" in names(each.told)


class Crowd:
    """Peers of one subscription that do things by chance, and look when they are woken."""

    def __init__(self, client: pulsarx.Client, server: Server, kind: int, seed: int) -> None:
        self.draw = random.Random(seed)
        self.client, self.server, self.kind = client, server, kind
        self.peers: list[Peer] = []
        self.rooms: dict[Peer, list[bool]] = {}
        self.permits: dict[Peer, int] = {}
        self.sent = self.got = self.count = 0
        self.unacknowledged: dict[Peer, int] = {}
        self.producer = client.create_producer("t", batching_enabled=False)

    def step(self) -> None:
        steps = [self.publish, self.come, self.flow, self.look, self.stall, self.resume, self.go]
        self.draw.choices(steps, [6, 4, 6, 8, 2, 4, 1])[0]()

    def publish(self) -> None:
        for _ in range(self.draw.randint(1, 5)):
            self.producer.send(b"x", partition_key=f"k{self.draw.randrange(50)}")
            self.sent += 1

    def come(self) -> None:
        if len(self.peers) >= 20:
            return
        room = [True]
        made = attached(self.server, self.kind, f"c{self.count}", 0, has_room=lambda: room[0])
        self.count += 1
        self.peers.append(made)
        self.rooms[made], self.permits[made] = room, 0

    def any_peer(self) -> Peer | None:
        return self.draw.choice(self.peers) if self.peers else None

    def flow(self) -> None:
        """Of one whose connection takes something: else nobody looks for what waits for it, and
        Key_Shared may read no further until then."""
        able = [each for each in self.peers if self.rooms[each][0]]
        if able:
            peer, permits = self.draw.choice(able), self.draw.choice([1, 2, 40])
            self.permits[peer] += permits
            self.take(peer, peer.say("FLOW", consumer_id=0, permits=permits))

    def take(self, peer: Peer, told: list[Any]) -> None:
        entries = [each for each in told if each[0] == "MESSAGE"]
        self.permits[peer] -= len(entries)
        self.got += len(entries)
        for each in entries:
            place = {name: each[1]["message_id"][name] for name in ("ledger_id", "entry_id")}
            ids = [place]
            more = peer.say("ACK", consumer_id=0, ack_type=INDIVIDUAL, message_ids=ids)
            self.take(peer, more)

    def look(self) -> None:
        """Somebody who was woken."""
        woken = [each for each in self.peers if each.woken.is_set()]
        if woken:
            self.look_of(self.draw.choice(woken))

    def look_of(self, peer: Peer) -> None:
        peer.woken.clear()
        peer.session.deliver()
        found, peer.told = peer.told, []
        self.take(peer, found)

    def stall(self) -> None:
        """Some of them, or all that were told something."""
        only_told = self.draw.random() < 0.7
        for peer in self.peers:
            if peer.woken.is_set() if only_told else self.draw.random() < 0.3:
                self.rooms[peer][0] = False

    def resume(self) -> None:
        for peer in self.peers:
            if not self.rooms[peer][0] and self.draw.random() < 0.5:
                self.rooms[peer][0] = True
                peer.woken.set()  # as a connection does that takes more again

    def go(self) -> None:
        peer = self.any_peer()
        if peer is not None:
            self.peers.remove(peer)
            peer.session.close()

    def settle(self) -> None:
        while any(each.woken.is_set() for each in self.peers):
            self.look()


@KINDS
@pytest.mark.parametrize("round_number", range(12))
def test_nobody_waits_for_what_he_could_have(
    client: pulsarx.Client, server: Server, kind: int, round_number: int
) -> None:
    """Whatever comes, goes, stalls and is told meanwhile: when nobody is woken any more, nobody who
    takes messages is owed one."""
    seed = new_seed()
    crowd = Crowd(client, server, kind, seed)
    for _ in range(scaled(120)):
        crowd.step()
        if crowd.draw.random() < 0.1:
            crowd.settle()
            check(crowd, seed)
    crowd.settle()
    check(crowd, seed)
    for peer in crowd.peers:
        crowd.rooms[peer][0] = True
        peer.woken.set()
    crowd.come()
    crowd.settle()
    for peer in crowd.peers:
        crowd.take(peer, peer.say("FLOW", consumer_id=0, permits=1000))
    crowd.settle()
    assert crowd.got == crowd.sent, f"seed {seed}"


def check(crowd: Crowd, seed: int) -> None:
    """Statistics dispatch what there is to those who have permits, and have them told."""
    crowd.client.admin.topics.stats("t")
    told = [each for each in crowd.peers if each.woken.is_set() and crowd.rooms[each][0]]
    assert not told, f"seed {seed}"
