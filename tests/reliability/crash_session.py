"""The owner that comes after a crash: what it finds, and whether the folder is as good as new."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crash_history import Found, FoundTopic, mark

import pulsarx
from pulsarx import BrokerOptions, MessageId, errors
from pulsarx.backups import check
from pulsarx.testing import messages, unacknowledged

NAMESPACE = "public/default"
NEVER_MS = 1 << 30  # flushes of an interval come when a workload says
AFTER = "after"
USED_MAX = 4  # topics
OPTIONS = BrokerOptions(
    managed_ledger_max_entries_per_ledger=4,
    broker_deduplication_entries_interval=3,
    max_message_size=9000,
    topic_level_policies_enabled=True,
)


def opened(folder: Path, durability: str) -> pulsarx.Client:
    return pulsarx.Client(
        folder,
        durability=durability,
        flush_interval_ms=NEVER_MS,
        clock=pulsarx.ManualClock(),
        broker_options=OPTIONS,
    )


def text_of(message: Any) -> str:
    """The first word: long payloads say it again and again."""
    words = message.data().decode().split()
    assert words and set(words) == {words[0]}, f"not whole: {words[:2]} ... {words[-2:]}"
    return str(words[0])


def find(client: pulsarx.Client) -> Found:
    found: Found = {}
    for topic in client.admin.topics.get_list(NAMESPACE):
        name = topic.rpartition("/")[2]
        there = found[name] = FoundTopic()
        there.messages, there.damage = read(client, name)
        for subscription in client.admin.topics.get_subscriptions(name):
            left = unacknowledged(client, name, subscription)
            there.unacknowledged[subscription] = [text_of(each) for each in left]
        there.limit = client.admin.topics.get_max_producers_per_topic(name)
    return found


def read(client: pulsarx.Client, topic: str) -> tuple[list[str], list[str]]:
    """The messages of a topic, and what is told of damage in it."""
    reader = client.create_reader(topic, MessageId.earliest)
    found: list[str] = []
    damage = []
    while True:
        try:
            many = reader.read_many(1000, 0)
        except errors.CorruptDataError as error:
            damage.append(str(error))
            continue
        if not many:
            break
        found += [text_of(each) for each in many]
    reader.close()
    return found, damage


def read_compacted(client: pulsarx.Client, topic: str) -> tuple[list[str], list[str]]:
    """What a reader of the compacted topic gets, and what of the topic it must get: the last
    message of each key. Empty where no message has a key."""
    latest: dict[str, str] = {}
    for message in messages(client, topic):
        if message.has_key():
            latest[message.partition_key()] = text_of(message)
    if not latest:
        return [], []
    reader = client.create_reader(topic, MessageId.earliest, is_read_compacted=True)
    found = []
    while reader.has_message_available():
        found.append(text_of(reader.read_next(60_000)))
    reader.close()
    return found, list(latest.values())


def received(client: pulsarx.Client, topic: str, subscription: str) -> list[str]:
    """What a consumer gets that comes after the crash."""
    consumer = client.subscribe(topic, subscription)
    found: list[str] = []
    while True:
        try:
            many = consumer.receive_many(1000, 0)
        except errors.CorruptDataError:
            continue
        if not many:
            break
        found += [text_of(each) for each in many]
    consumer.close()
    return found


def delivery_faults(client: pulsarx.Client, found: Found) -> list[str]:
    told = []
    for name, topic in found.items():
        for subscription, left in topic.unacknowledged.items():
            got = received(client, name, subscription)
            if got != left:
                told.append(f"{name}: {subscription} received {got}, not {left}")
        with suppress(errors.CorruptDataError):  # which was told before
            got, wanted = read_compacted(client, name)
            if not set(wanted) <= set(got) or len(set(got)) != len(got):
                told.append(f"{name}: compacted {got}, without some of {wanted}")
    return told


def number_of(message: str) -> int:
    """Of a message of a topic with deduplication: its sequence id."""
    return int(message[1:])


def use(client: pulsarx.Client, found: Found, deduplicated: set[str]) -> None:
    """Publish to what is there, in marked steps; to a few where there are many."""
    for name, topic in list(found.items())[:USED_MAX]:
        options: dict[str, Any] = {}
        earlier = [each for each in topic.messages if each.startswith(AFTER)]
        texts = [f"{AFTER}{len(earlier)}"]
        if name in deduplicated:
            options["producer_name"] = "p"
            numbers = [number_of(each) for each in topic.messages if each not in earlier]
            last = max(numbers, default=-1)
            texts = [f"d{number}" for number in range(last + 2)]
        producer = client.create_producer(name, **options)
        new = [each for each in texts if each not in topic.messages]
        for each in texts:
            if options:
                options = {"sequence_id": number_of(each)}
            if each in new:
                mark("send", name, [each])
            producer.send(each.encode(), **options)
            if each in new:
                mark("sent", name, [each])
        topic.messages += new
        for left in topic.unacknowledged.values():
            left += new


def transact(client: pulsarx.Client, found: Found, deduplicated: set[str]) -> None:
    """Commit a transaction and abort one, each over all topics there are."""
    producers = {name: client.create_producer(name) for name in found if name not in deduplicated}
    for end in ("commit", "abort") if producers else ():
        transaction = client.new_transaction()
        label = f"{AFTER}, {end}"
        sent: dict[str, str] = {}
        for name, producer in producers.items():
            known = [each for each in found[name].messages if each.startswith(AFTER)]
            sent[name] = f"{AFTER}{len(known)}" if end == "commit" else f"{AFTER}-not{len(known)}"
            mark("join", label, name, [sent[name]])
            producer.send(sent[name].encode(), transaction=transaction)
        if end == "abort":
            transaction.abort()
            continue
        mark("commit", label)
        transaction.commit()
        mark("committed", label)
        for name, text in sent.items():
            found[name].messages.append(text)
            for left in found[name].unacknowledged.values():
                left.append(text)


@dataclass
class Recovery:
    """What an owner found in a folder and did there."""

    found: Found
    faults: list[str]  # of what it did behind that
    checked: list[str] = field(default_factory=list)  # damage that a check of the folder found
    error: str = ""  # the folder does not open, or is not read


def is_same(found: Found, again: Found) -> bool:
    """But for messages that all subscriptions have acknowledged, and the damage told once."""
    for name, topic in found.items():
        there = again.get(name)
        if there is None or there.unacknowledged != topic.unacknowledged:
            return False
        gone = set(topic.messages) - set(there.messages)
        if there.messages != [each for each in topic.messages if each not in gone]:
            return False
        if gone and (not topic.unacknowledged or is_left(topic, gone)):
            return False
    return found.keys() == again.keys()


def is_left(topic: FoundTopic, messages: set[str]) -> bool:
    return any(messages & set(left) for left in topic.unacknowledged.values())


def recover(
    folder: Path, durability: str, deduplicated: set[str], *, transacts: bool = False
) -> Recovery:
    """Own the folder, look, use it, look again, leave it and check it."""
    recovery = Recovery({}, [])
    try:
        with opened(folder, durability) as client:
            recovery.found = find(client)
            now = deepcopy(recovery.found)
            use(client, now, deduplicated)
            if transacts:
                transact(client, now, deduplicated)
            again = find(client)
            if not is_same(now, again):
                recovery.faults.append(f"behind what was published: {again}, not {now}")
            recovery.faults += delivery_faults(client, again)
        recovery.checked = [str(each) for each in check(folder).damage]
    except (AssertionError, pulsarx.PulsarException, OSError) as error:
        recovery.error = f"{type(error).__name__}: {errors.detail_of(error) or error}"
    return recovery
