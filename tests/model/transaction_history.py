"""Random histories of transactions over topics and subscriptions, beside a plain model of them; the
owner is killed in front of chosen operations on files, or closes, and the next one goes on.

transaction_history.py <folder> <seed> <sessions> <steps> <durability> [<planted bug>]

A session is an owner in a process forked from this one, which opens no folder itself. What it
begins and what was confirmed to it is written to a log that a kill leaves; the next one reads it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from killed_sessions import run_history

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, InitialPosition, MessageId
from pulsarx.broker.transactions import coordinator as coordinating
from pulsarx.broker.transactions.coordinator import TransactionCoordinator
from pulsarx.testing import fault_plan, inspect, unacknowledged

TOPICS = ("t", "u", "v")
TYPES = {
    "exclusive": ConsumerType.Exclusive,
    "failover": ConsumerType.Failover,
    "shared": ConsumerType.Shared,
    "key_shared": ConsumerType.KeyShared,
}
KILLED_AT = ("write", "flush", "allocate", "link", "rename", "flush_directory", "open", "close")
KILLED_ENDS = 0.1
OPEN_MAX = 3
PATIENCE = 60.0


# The model ----------------------------------------------------------------------------------------


@dataclass
class Message:
    text: str
    key: str = ""
    transaction: int | None = None
    is_confirmed: bool = False


@dataclass
class Transaction:
    end: str = "open"  # commit, abort
    is_ended: bool = False  # that was confirmed
    acknowledged: list[tuple[str, str, str]] = field(default_factory=list)  # topic, name, text

    def was(self, end: str) -> bool:
        return self.is_ended and self.end == end


@dataclass
class Model:
    """What one client was told."""

    topics: dict[str, list[Message]] = field(default_factory=lambda: {each: [] for each in TOPICS})
    transactions: dict[int, Transaction] = field(default_factory=dict)
    # Acknowledged, by topic and name; whether that was confirmed.
    subscriptions: dict[tuple[str, str], dict[str, bool]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def visible(self, topic: str) -> list[Message]:
        """What all see of it now: what is in front of the first open transaction, without what was
        aborted."""
        found = []
        for each in self.topics[topic]:
            transaction = None
            if each.transaction is not None:
                transaction = self.transactions[each.transaction]
                if not transaction.is_ended:
                    break
            if transaction is None or transaction.was("commit"):
                found.append(each)
        return found

    def left(self, topic: str, name: str) -> list[str]:
        """What a subscription is to be given now, by position."""
        gone = set(self.subscriptions[topic, name])
        for each in self.transactions.values():
            if not each.is_ended:
                gone |= {text for *of, text in each.acknowledged if of == [topic, name]}
        return [each.text for each in self.visible(topic) if each.text not in gone]

    # What the log says ----------------------------------------------------------------------------

    def apply(self, event: list[Any]) -> None:
        getattr(self, f"_{event[0]}")(*event[1:])

    def _send(self, topic: str, texts: list[str], keys: list[str], number: int | None) -> None:
        made = zip(texts, keys, strict=True)
        self.topics[topic] += [Message(text, key, number) for text, key in made]

    def _sent(self, topic: str, count: int) -> None:
        for each in self.topics[topic][-count:]:
            each.is_confirmed = True

    def _begin(self, number: int) -> None:
        self.transactions[number] = Transaction()

    def _end(self, number: int, end: str) -> None:
        self.transactions[number].end = end

    def _ended(self, number: int) -> None:
        transaction = self.transactions[number]
        transaction.is_ended = True
        if transaction.end == "commit":
            for topic, name, text in transaction.acknowledged:
                self.subscriptions[topic, name][text] = True

    def _subscribe(self, topic: str, name: str) -> None:
        self.subscriptions.setdefault((topic, name), {})

    def _acknowledge(self, topic: str, name: str, texts: list[str], number: int | None) -> None:
        if number is not None:
            self.transactions[number].acknowledged += [(topic, name, text) for text in texts]
        else:
            self.subscriptions[topic, name].update(dict.fromkeys(texts, False))

    def _acknowledged(self, topic: str, name: str, texts: list[str]) -> None:
        self.subscriptions[topic, name].update(dict.fromkeys(texts, True))

    def _look(self, texts: list[str]) -> None:
        self.seen.update(texts)

    # Behind a kill --------------------------------------------------------------------------------

    def settle(self, found: dict[str, list[str]], left: dict[tuple[str, str], list[str]]) -> None:
        """Its owner is gone. AssertionError: what the next one finds cannot be so."""
        there = {text for texts in found.values() for text in texts}
        for number, transaction in self.transactions.items():
            if not transaction.is_ended:
                self._decide(number, transaction, there, left)
        for topic, messages in self.topics.items():
            kept = []
            for each in messages:
                counts = each.transaction is None or self.transactions[each.transaction].was(
                    "commit"
                )
                assert each.text not in there or counts, f"{each} was not committed, and is there"
                assert each.text in there or not (counts and each.is_confirmed), f"{each} is lost"
                kept += [each] if each.text in there else []
            assert found[topic] == [each.text for each in kept], (topic, found[topic], kept)
            self.topics[topic] = [Message(each.text, each.key, None, True) for each in kept]
        assert self.seen <= there, f"seen before, and gone: {self.seen - there}"
        for (topic, name), acknowledged in self.subscriptions.items():
            texts = left.get((topic, name))
            if texts is None:  # it was about to be made
                continue
            again = [each for each in texts if acknowledged.get(each)]
            assert not again, f"{name} of {topic} gets {again} again"
            missing = set(found[topic]) - set(texts) - set(acknowledged)
            assert not missing, f"{name} of {topic} does not get {missing}"
            self.subscriptions[topic, name] = dict.fromkeys(set(found[topic]) - set(texts), True)
        self.transactions.clear()

    def _decide(
        self,
        number: int,
        transaction: Transaction,
        there: set[str],
        left: dict[tuple[str, str], list[str]],
    ) -> None:
        """Nobody was told of its end: all of it counts, or nothing."""
        sent = {
            each.text
            for messages in self.topics.values()
            for each in messages
            if each.transaction == number and each.is_confirmed
        }
        signs = {text in there for text in sent}
        for topic, name, text in transaction.acknowledged:
            if (topic, name) in left:
                signs.add(text not in left[topic, name])
        assert len(signs) < 2, f"half of transaction {number}: {transaction}, sent {sent}"
        transaction.is_ended = True
        if True in signs:
            assert transaction.end == "commit", f"transaction {number} counts: {transaction}"
            for topic, name, text in transaction.acknowledged:
                self.subscriptions[topic, name][text] = True
        elif signs or transaction.end != "commit":
            transaction.end = "abort"


# A session ----------------------------------------------------------------------------------------


class Looks:
    """Another thread that reads all topics in turn, while a transaction is committed."""

    def __init__(self, client: pulsarx.Client) -> None:
        self._readers = {each: client.create_reader(each, MessageId.earliest) for each in TOPICS}
        self._known: dict[str, set[str]] = {each: set() for each in TOPICS}
        self._stops = False
        self._turns = threading.Semaphore(0)
        self._lines: list[tuple[str, set[str]]] = []
        self._wrong: list[str] = []

    def look(self, topic: str) -> set[str]:
        known = self._known[topic]
        known.update(each.data().decode() for each in self._readers[topic].read_many(1000, 0))
        return set(known)

    def run(self, groups: dict[str, set[str]], log: Callable[..., None]) -> None:
        """groups: the messages that come together, by topic."""
        order = TOPICS
        while True:
            is_last = self._stops
            came: set[str] = set()
            order = tuple(reversed(order))
            for topic in order:
                found = self.look(topic)
                came |= groups[topic] & found
                if came and groups[topic] - found:
                    self._wrong.append(f"{came} are seen, and not {groups[topic] - found}")
            if came:
                log("look", sorted(came))
            self._turns.release()
            if is_last:
                return

    def turn(self) -> None:
        """Wait until it has looked at all from here on."""
        while self._turns.acquire(blocking=False):
            pass
        for _ in range(2):
            assert self._turns.acquire(timeout=PATIENCE)

    @contextmanager
    def during(self, groups: dict[str, set[str]], log: Callable[..., None]) -> Iterator[None]:
        global looking
        self._stops = False
        for topic in TOPICS:
            self.look(topic)
        thread = threading.Thread(target=self.run, args=(groups, log), daemon=True)
        thread.start()
        looking = self
        try:
            yield
        finally:
            looking = None
            self._stops = True
            thread.join()
        assert not self._wrong, self._wrong[:3]


looking: Looks | None = None


class Session:
    """One owner of the folder."""

    def __init__(self, folder: Path, seed: int, number: int, durability: str) -> None:
        self.folder = folder
        self.durability = durability
        self.chance = random.Random(f"{seed} {number}")
        self.number = number
        self.count = 0
        self.model = Model()
        self.log_path = folder.with_name("log")
        self.log_file = os.open(self.log_path, os.O_CREAT | os.O_APPEND | os.O_RDWR)
        self.open: dict[int, Any] = {}

    def log(self, *event: Any) -> None:
        os.write(self.log_file, json.dumps(event).encode() + b"\n")

    def note(self, *event: Any) -> None:
        self.log(*event)
        self.model.apply(list(event))

    # Opening --------------------------------------------------------------------------------------

    def open_client(self) -> None:
        self.client = pulsarx.Client(
            self.folder,
            durability=self.durability,
            clock=pulsarx.ManualClock(),
            broker_options=BrokerOptions(managed_ledger_max_entries_per_ledger=4),
        )
        self.client.admin.namespaces.set_retention("public/default", -1, -1)
        self.producers = {each: self.client.create_producer(each) for each in TOPICS}
        self.batching = {
            each: self.client.create_producer(each, batching_enabled=True) for each in TOPICS
        }
        self.looks = Looks(self.client)
        self.consumers: dict[tuple[str, str], Any] = {}

    def find(self) -> dict[str, list[str]]:
        return {topic: [each.data().decode() for each in self.read(topic)] for topic in TOPICS}

    def read(self, topic: str, **options: Any) -> list[Any]:
        with self.client.create_reader(topic, MessageId.earliest, **options) as reader:
            found = []
            while reader.has_message_available():
                found.append(reader.read_next(60_000))
            return found

    def settle(self) -> None:
        """What the owner before left is as it was told."""
        left = {}
        for topic in TOPICS:
            for name in self.client.admin.topics.get_subscriptions(topic):
                texts = [each.data().decode() for each in unacknowledged(self.client, topic, name)]
                left[topic, name] = texts
        for topic, name in list(self.model.subscriptions):
            if (topic, name) not in left:
                del self.model.subscriptions[topic, name]
        self.model.settle(self.find(), left)
        for topic, name in left:
            self.consumers[topic, name] = self.client.subscribe(topic, name, TYPES[name])

    def restore(self) -> None:
        """The model as those before have left it."""
        self.model = Model()
        with self.log_path.open() as lines:
            for line in lines:
                event = json.loads(line)
                if event[0] == "settled":
                    _, topics, subscriptions, seen = event
                    self.model = Model(seen=set(seen))
                    for topic, rows in topics.items():
                        self.model.topics[topic] = [Message(*each) for each in rows]
                    for topic, name, texts in subscriptions:
                        self.model.subscriptions[topic, name] = dict.fromkeys(texts, True)
                else:
                    self.model.apply(event)

    def settled(self) -> None:
        model = self.model
        self.log(
            "settled",
            {
                topic: [[each.text, each.key, None, True] for each in messages]
                for topic, messages in model.topics.items()
            },
            [[*of, list(texts)] for of, texts in model.subscriptions.items()],
            sorted(model.seen),
        )

    def begin_session(self) -> None:
        self.restore()
        self.open_client()
        self.settle()
        self.settled()

    # Steps ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        if len(self.open) < OPEN_MAX:
            opened = self.client.new_transaction()
            number = opened.txn_id()[1]
            self.note("begin", number)
            self.open[number] = opened

    def any_transaction(self) -> int | None:
        return self.chance.choice([None, *self.open]) if self.open else None

    def send(self) -> None:
        topic, number = self.chance.choice(TOPICS), self.any_transaction()
        count = self.chance.choice((1, 1, 3))
        texts = [f"{self.number}-{self.count + each}" for each in range(count)]
        self.count += count
        keys = [self.chance.choice("abcd") for _ in texts]
        self.note("send", topic, texts, keys, number)
        transaction = None if number is None else self.open[number]
        if count == 1:
            self.producers[topic].send(
                texts[0].encode(), partition_key=keys[0], transaction=transaction
            )
        else:
            self.batching[topic].send_many(
                [each.encode() for each in texts], keys=keys, transaction=transaction
            )
        self.note("sent", topic, count)

    def end(self) -> None:
        if not self.open:
            return
        number = self.chance.choice(list(self.open))
        end = self.chance.choice(("commit", "commit", "abort"))
        transaction = self.open.pop(number)
        groups: dict[str, set[str]] = {
            topic: {each.text for each in messages if each.transaction == number}
            for topic, messages in self.model.topics.items()
        }
        self.note("end", number, end)
        if self.chance.random() < KILLED_ENDS:
            self.plan.kill(self.chance.choice(("write", "link")))
        if end == "abort" or self.open:
            getattr(transaction, end)()
        else:  # nothing but itself holds its messages back
            with self.looks.during(groups, self.log):
                transaction.commit()
        self.note("ended", number)

    def look(self) -> None:
        for topic in TOPICS:
            wanted = [each.text for each in self.model.visible(topic)]
            found = self.read(topic)
            texts = [each.data().decode() for each in found]
            assert texts == wanted, f"{topic}: there is {texts}, and not {wanted}"
            self.note("look", texts)
            last = self.client.admin.topics.get_last_message_id(topic)
            assert last == (found[-1].message_id() if found else MessageId()), (last, texts)

    def subscribe(self) -> None:
        topic, name = self.chance.choice(TOPICS), self.chance.choice(list(TYPES))
        if (topic, name) not in self.consumers:
            self.note("subscribe", topic, name)
            self.consumers[topic, name] = self.client.subscribe(
                topic, name, TYPES[name], initial_position=InitialPosition.Earliest
            )

    def take(self) -> None:
        """A subscription is given all that it is to be given, or some, and acknowledges it."""
        if not self.consumers:
            return
        topic, name = self.chance.choice(list(self.consumers))
        consumer, wanted = self.consumers[topic, name], self.model.left(topic, name)
        number = self.any_transaction()
        messages = consumer.receive_many(2 if number is not None else 1000, 0)
        texts = [each.data().decode() for each in messages]
        if number is None:
            ordered = name in ("exclusive", "failover")
            is_same = texts == wanted if ordered else sorted(texts) == sorted(wanted)
            assert is_same, f"{name} of {topic} is given {texts}, and not {wanted}"
        assert set(texts) <= set(wanted), f"{name} of {topic} is given {texts} of {wanted}"
        if not messages:
            return
        self.note("acknowledge", topic, name, texts, number)
        consumer.acknowledge_many(
            messages, transaction=None if number is None else self.open[number]
        )
        if number is None:
            self.note("acknowledged", topic, name, texts)

    def compact(self) -> None:
        topic = self.chance.choice(TOPICS)
        self.client.admin.topics.trigger_compaction(topic)
        inspect(self.client).settle()
        visible = self.model.visible(topic)
        found = [each.data().decode() for each in self.read(topic, is_read_compacted=True)]
        latest = list({each.key: each.text for each in visible}.values())
        texts = [each.text for each in visible]
        assert set(latest) <= set(found), f"{topic}: compacted {found}, without some of {latest}"
        assert found == [each for each in texts if each in set(found)], (found, texts)

    def rest(self) -> None:
        inspect(self.client).settle()

    def reopen(self) -> None:
        """Those that are open are aborted."""
        for number in list(self.open):
            self.note("end", number, "abort")
        self.open.clear()
        self.client.close()
        self.open_client()
        self.settle()
        self.settled()

    def step(self) -> None:
        weights = {
            self.begin: 4, self.send: 12, self.end: 4, self.look: 2, self.subscribe: 2,
            self.take: 5, self.compact: 1, self.rest: 1, self.reopen: 0.5,
        }  # fmt: skip
        (chosen,) = self.chance.choices(list(weights), list(weights.values()))
        chosen()

    def run(self, steps: int) -> None:
        self.begin_session()
        with fault_plan() as self.plan:
            for _ in range(self.chance.choice((0, 1))):
                self.plan.kill(self.chance.choice(KILLED_AT), self.chance.randint(1, 40))
            for _ in range(steps):
                self.step()
        if self.chance.random() < 0.5:
            os.kill(os.getpid(), signal.SIGKILL)
        for number in list(self.open):
            self.note("end", number, "abort")
        self.client.close()


# Planted bugs -------------------------------------------------------------------------------------


def turn() -> None:
    if looking is not None:
        looking.turn()


def shown_before_the_record() -> None:
    """And the owner is killed between the two."""
    tell = TransactionCoordinator._tell_catalogue

    def told(self: Any, transaction: Any, committed: bool, messages: Any) -> None:
        if committed:
            coordinating.release(transaction, True)
            if looking is not None:
                looking.turn()
                os.kill(os.getpid(), signal.SIGKILL)
        tell(self, transaction, committed, messages)

    TransactionCoordinator._tell_catalogue = told  # type: ignore[method-assign]


def shown_topic_by_topic() -> None:
    release = coordinating.release

    def one_by_one(transaction: Any, committed: bool) -> None:
        topics = dict(transaction.topics)
        for each in topics:
            transaction.topics.clear()
            transaction.topics[each] = True
            release(transaction, committed)
            turn()
        transaction.topics.update(topics)

    coordinating.release = one_by_one  # type: ignore[assignment]


def aborted_are_not_hidden() -> None:
    from pulsarx.broker.ledgers.aborted_messages import AbortedMessages

    AbortedMessages.add = lambda self, runs: None  # type: ignore[method-assign]


def acknowledged_apart() -> None:
    """The record of a commit does not say what was acknowledged."""
    from pulsarx.broker.catalogue import changes

    end = changes.end_transaction

    def without(number: int, **fields: Any) -> Any:
        return end(number, **{**fields, "acknowledged": []})

    def killed(self: Any, transaction: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    from pulsarx.broker.subscriptions.subscription import Subscription

    changes.end_transaction = without  # type: ignore[assignment]
    Subscription.commit_transaction = killed  # type: ignore[method-assign]


BUGS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        shown_before_the_record, shown_topic_by_topic, aborted_are_not_hidden, acknowledged_apart,
    )
}  # fmt: skip


if __name__ == "__main__":
    run_history(Session, BUGS)
