"""What a program was told while it was recorded, and whether what it finds after a crash is true to
that (docs/concepts/promises.md).

A workload puts its marks into the recording: what it begins, and what was confirmed. Marks in front
of a crash say what must be found behind it, and what may be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pulsarx._pycore.ground import file_system

SYSTEM_TOPIC = "/__change_events"  # to which the broker itself publishes
# How sure a thing is: it was begun; a kill cannot take it; a power cut cannot, either.
BEGUN, WRITTEN, DURABLE = range(3)


@dataclass
class FoundTopic:
    """What a client found in a topic."""

    messages: list[str] = field(default_factory=list)
    unacknowledged: dict[str, list[str]] = field(default_factory=dict)  # of each subscription
    damage: list[str] = field(default_factory=list)
    limit: int | None = None  # a policy


Found = dict[str, FoundTopic]


@dataclass
class Acknowledged:
    """Of a subscription: what must be acknowledged after a power cut, after a kill, what may be."""

    durable: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)

    def allows(self, present: set[str], unacknowledged: set[str], killed: bool) -> bool:
        must = self.written if killed else self.durable
        return not must & unacknowledged and present - self.begun <= unacknowledged


@dataclass
class Subscription:
    sure: int = BEGUN
    states: list[Acknowledged] = field(default_factory=list)  # any of them; several while seeking

    def may_have(self, message: str) -> bool:
        return any(message in each.begun for each in self.states)


@dataclass
class Topic:
    sure: int = BEGUN
    goes: bool = False
    messages: dict[str, int] = field(default_factory=dict)  # in the order they were sent: how sure
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    limits: list[int | None] = field(default_factory=lambda: [None])  # any of them
    deduplicated: bool = False
    large: set[str] = field(default_factory=set)  # messages of several entries
    is_damaged: bool = False  # that was found before

    def may_be_damaged(self, killed: bool, least: int) -> bool:
        """Whether so many entries were not flushed: where a later one of them is there, and of an
        earlier one its frame and not all of its bytes, nobody can tell a page that was never
        written from one that was lost, so that is told as damage. One alone is a torn tail, unless
        its ledger was sealed without a flush."""
        left = [each for each, sure in self.messages.items() if sure < DURABLE]
        entries = len(left) + len(self.large & set(left))
        return self.is_damaged or (not killed and entries >= least)


@dataclass
class Transacted:
    """A transaction: its messages are seen together, from when it is committed on, or never."""

    messages: list[tuple[str, str]] = field(default_factory=list)  # topic, text
    acknowledged: list[tuple[str, str, str]] = field(default_factory=list)  # topic, name, text
    may_count: bool = False  # its commit was begun


class History:
    """What the marks so far said. durability: of the client that made them."""

    def __init__(self, durability: str) -> None:
        self.durability = durability
        self.confirmed = DURABLE if durability == "sync" else WRITTEN
        self.topics: dict[str, Topic] = {}
        self._least = 1 if durability == "os" else 2  # entries that are told as damage
        self._is_damaged = False  # a topic of the broker itself
        self.groups: list[list[tuple[str, str]]] = []  # messages that come all or not at all
        self.transactions: dict[str, Transacted] = {}

    # Marks ---------------------------------------------------------------------------------------

    def apply(self, data: bytes) -> None:
        name, *arguments = json.loads(data)
        getattr(self, f"_{name}")(*arguments)

    def _create(self, topic: str) -> None:
        self.topics.setdefault(topic, Topic())

    def _created(self, topic: str, is_durable: bool) -> None:
        self.topics[topic].sure = DURABLE if is_durable else self.confirmed

    def _deduplicate(self, topic: str) -> None:
        self.topics[topic].deduplicated = True

    def _delete(self, topic: str) -> None:
        self.topics[topic].goes = True

    def _deleted(self, topic: str) -> None:
        del self.topics[topic]

    def _send(self, topic: str, messages: list[str], entries: int = 1) -> None:
        """entries: of each message."""
        self.topics[topic].messages.update(dict.fromkeys(messages, BEGUN))
        self.topics[topic].large.update(messages if entries > 1 else ())

    def _sent(self, topic: str, messages: list[str]) -> None:
        self.topics[topic].sure = DURABLE
        self.topics[topic].messages.update(dict.fromkeys(messages, self.confirmed))

    def _join(self, transaction: str, topic: str, messages: list[str]) -> None:
        """They are sent in a transaction that is open."""
        self._send(topic, messages)
        joined = self.transactions.setdefault(transaction, Transacted())
        joined.messages += [(topic, each) for each in messages]

    def _acknowledge_in(self, transaction: str, topic: str, name: str, text: str) -> None:
        joined = self.transactions.setdefault(transaction, Transacted())
        joined.acknowledged.append((topic, name, text))

    def _commit(self, transaction: str) -> None:
        self.transactions[transaction].may_count = True
        for topic, name, text in self.transactions[transaction].acknowledged:
            self._acknowledge(topic, name, [text])

    def _committed(self, transaction: str) -> None:
        sure = WRITTEN if self.durability == "os" else DURABLE
        for topic, message in self.transactions[transaction].messages:
            self.topics[topic].messages[message] = sure
        for topic, name, text in self.transactions[transaction].acknowledged:
            self._acknowledged(topic, name, [text])
            if sure == DURABLE:
                for each in self.topics[topic].subscriptions[name].states:
                    each.durable.add(text)

    def _attach(self, files: list[list[Any]]) -> None:
        for topic, messages in files:
            self._send(topic, messages)
        self.groups.append([(topic, each) for topic, messages in files for each in messages])

    def _attached(self, files: list[list[Any]]) -> None:
        for topic, messages in files:
            self.topics[topic].messages.update(dict.fromkeys(messages, DURABLE))

    def _subscribe(self, topic: str, name: str, acknowledged: list[str]) -> None:
        state = Acknowledged(set(acknowledged), set(acknowledged), set(acknowledged))
        self.topics[topic].subscriptions[name] = Subscription(BEGUN, [state])

    def _subscribed(self, topic: str, name: str) -> None:
        self.topics[topic].sure = DURABLE
        self.topics[topic].subscriptions[name].sure = DURABLE

    def _acknowledge(self, topic: str, name: str, messages: list[str]) -> None:
        for each in self.topics[topic].subscriptions[name].states:
            each.begun.update(messages)

    def _acknowledged(self, topic: str, name: str, messages: list[str]) -> None:
        for each in self.topics[topic].subscriptions[name].states:
            each.written.update(messages)

    def _seek(self, topic: str, name: str, acknowledged: list[str]) -> None:
        state = Acknowledged(set(acknowledged), set(acknowledged), set(acknowledged))
        self.topics[topic].subscriptions[name].states.append(state)

    def _sought(self, topic: str, name: str) -> None:
        del self.topics[topic].subscriptions[name].states[:-1]

    def _limit(self, topic: str, limit: int) -> None:
        self.topics[topic].limits.append(limit)

    def _limited(self, topic: str) -> None:
        del self.topics[topic].limits[:-1]

    def _flushed(self) -> None:
        """All that was confirmed is on the device: the flush interval is over."""
        for topic in self.topics.values():
            topic.sure = DURABLE if topic.sure == WRITTEN else topic.sure
            for message, sure in topic.messages.items():
                topic.messages[message] = DURABLE if sure == WRITTEN else sure
            for subscription in topic.subscriptions.values():
                for each in subscription.states:
                    each.durable |= each.written

    # Crashes -------------------------------------------------------------------------------------

    def faults(self, found: Found, killed: bool) -> list[str]:
        """In which ways it is not true to what was said. killed: all that was written is there."""
        told = [f"{name} is there and never was made" for name in found if name not in self.topics]
        for name, topic in self.topics.items():
            there = found.get(name)
            if there is None:
                if not topic.goes and topic.sure >= (WRITTEN if killed else DURABLE):
                    told.append(f"{name} is gone")
                continue
            told += [f"{name}: {each}" for each in self._faults_of(topic, there, killed)]
        for group in self.groups:
            lost = [each for each in group if each[0] not in found or not holds(found, each)]
            if lost and len(lost) != len(group):
                told.append(f"of {group} there are not {lost}")
        for name, transaction in self.transactions.items():
            told += self._faults_of_transaction(name, transaction, found, killed)
        return told

    def _faults_of_transaction(
        self, name: str, transaction: Transacted, found: Found, killed: bool
    ) -> Iterable[str]:
        there = [each for each in transaction.messages if each[0] in found and holds(found, each)]
        lost = [each for each in transaction.messages if each not in there]
        if there and not transaction.may_count:
            yield f"{name} was not committed, and there are {there}"
        if there and lost and (killed or self.durability != "os"):
            yield f"of {name} there are {there}, and not {lost}"
        for topic, subscription, text in transaction.acknowledged:
            is_left = topic in found and text in found[topic].unacknowledged.get(subscription, ())
            if there and is_left and (killed or self.durability != "os"):
                yield f"of {name} there are {there}, and {text} is not acknowledged"

    @property
    def transacts(self) -> bool:
        return bool(self.transactions)

    def may_be_damaged(self, killed: bool, damage: str) -> bool:
        """Whether a check of the folder may say that."""
        if SYSTEM_TOPIC in damage:
            return self._is_damaged or (self.durability != "sync" and not killed)
        return any(each.may_be_damaged(killed, self._least) for each in self.topics.values())

    def _faults_of(self, topic: Topic, found: FoundTopic, killed: bool) -> Iterable[str]:
        must = WRITTEN if killed else DURABLE
        if found.damage and not topic.may_be_damaged(killed, self._least):
            yield f"damage: {found.damage}"
        expected = list(topic.messages)
        unknown = [each for each in found.messages if each not in topic.messages]
        if unknown:
            yield f"never sent: {unknown}"
        if len(set(found.messages)) != len(found.messages):
            yield f"twice: {found.messages}"
        if found.messages != [each for each in expected if each in set(found.messages)]:
            yield f"not in order: {found.messages}"
        present = set(found.messages)
        for message, sure in topic.messages.items():
            if sure >= must and message not in present and not self._may_be_trimmed(topic, message):
                yield f"lost {message}; there are {found.messages}"
        for name, subscription in topic.subscriptions.items():
            if name not in found.unacknowledged:
                if subscription.sure >= must and not topic.goes:
                    yield f"{name} is gone"
                continue
            left = set(found.unacknowledged[name])
            if len(left) != len(found.unacknowledged[name]):
                yield f"{name} has twice: {found.unacknowledged[name]}"
            if not left <= present:
                yield f"{name} has what is not there: {left - present}"
            if not any(each.allows(present, left, killed) for each in subscription.states):
                yield f"{name} has {sorted(left)} of {sorted(present)}, not {subscription.states}"
        if found.limit not in topic.limits:
            yield f"limit {found.limit}, not of {topic.limits}"

    @staticmethod
    def _may_be_trimmed(topic: Topic, message: str) -> bool:
        subscriptions = topic.subscriptions.values()
        return bool(subscriptions) and all(each.may_have(message) for each in subscriptions)

    def seen(self, found: Found) -> History:
        """A history that begins with what was found: another crash takes nothing of it, and brings
        nothing back."""
        begun = History(self.durability)
        begun._is_damaged = self.durability != "sync"
        begun.topics = {
            name: Topic(
                DURABLE,
                messages=dict.fromkeys(each.messages, DURABLE),
                subscriptions={
                    subscription: Subscription(DURABLE, [settled(each.messages, left)])
                    for subscription, left in each.unacknowledged.items()
                },
                limits=[each.limit],
                deduplicated=self.topics[name].deduplicated,
                is_damaged=self.topics[name].may_be_damaged(False, self._least),
            )
            for name, each in found.items()
        }
        return begun


def settled(messages: list[str], left: list[str]) -> Acknowledged:
    done = set(messages) - set(left)
    return Acknowledged(set(done), set(done), set(done))


def holds(found: Found, message: tuple[str, str]) -> bool:
    return message[1] in found[message[0]].messages


def mark(name: str, *arguments: Any) -> None:
    file_system.record_mark(json.dumps([name, *arguments]).encode())
