"""Random histories of transactions of one client of a network, beside a plain model of them: its
broker is killed in front of chosen operations on files, or closes, and the next one goes on. The
client asks again for what it was not answered.

served_history.py <folder> <seed> <sessions> <steps> <durability> [<planted bug>]

A session is a broker in a process forked from this one, which opens no folder itself. What the
client asks for, and is answered, is written to a log that a kill leaves; the next one reads it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "server"))

from killed_sessions import run_history
from peer import Peer, serving

import pulsarx
from pulsarx import BrokerOptions
from pulsarx._pycore.ranges.entry_codec import encode_batch, encode_entry
from pulsarx.broker.ledgers import reopened_ledger
from pulsarx.broker.subscriptions.subscription import Subscription
from pulsarx.broker.topics import deduplication
from pulsarx.broker.transactions import served_transaction, taking_up
from pulsarx.broker.transactions.transaction_log import LeftLog
from pulsarx.clock import wall_ms
from pulsarx.testing import fault_plan, inspect, messages, unacknowledged
from pulsarx.wire.commands import ABORT, COMMIT, CUMULATIVE, EXCLUSIVE, INDIVIDUAL, SHARED

PLAIN, ONCE = "public/default/t", "public/once/u"  # the second one with deduplication
TOPICS = (PLAIN, ONCE)
SUBSCRIPTIONS = {(PLAIN, "s"): SHARED, (ONCE, "s"): SHARED, (PLAIN, "x"): EXCLUSIVE}
ACTIONS = {"commit": COMMIT, "abort": ABORT}
KILLED_AT = ("write", "flush", "allocate", "link", "rename", "flush_directory", "open", "unlink")
OPEN_MAX = 3
HOUR_MS = 3_600_000
NOT_FOUND = 24
MAYBE, THERE, GONE = "maybe", "there", "gone"


# The model ----------------------------------------------------------------------------------------


@dataclass
class Message:
    text: str
    transaction: int | None
    state: str = MAYBE


@dataclass
class Acknowledgement:
    topic: str
    name: str
    texts: list[str]
    transaction: int | None
    state: str = MAYBE


@dataclass
class Transaction:
    is_local: bool  # of the process of the broker: it ends with that
    asked: str = ""
    ended: str = ""


@dataclass
class Model:
    """What the client asked for, and what it was answered."""

    topics: dict[str, list[Message]] = field(default_factory=lambda: {each: [] for each in TOPICS})
    sends: list[list[Any]] = field(default_factory=list)
    acks: list[Acknowledgement] = field(default_factory=list)
    transactions: dict[int, Transaction] = field(default_factory=dict)

    def apply(self, event: list[Any]) -> None:
        getattr(self, f"_{event[0]}")(*event[1:])

    def _begun(self, number: int, is_local: bool) -> None:
        self.transactions[number] = Transaction(is_local)

    def _send(self, topic: str, texts: list[str], number: int | None, first: int) -> None:
        self.sends.append([topic, texts, number, first, MAYBE])
        self.topics[topic] += [Message(text, number) for text in texts]

    def _told(self, state: str) -> None:
        """The last send is there, or is not."""
        topic, texts, *_ = self.sends[-1]
        self.sends[-1][-1] = state
        for each in self.topics[topic][-len(texts) :]:
            each.state = state

    def _ack(self, topic: str, name: str, texts: list[str], number: int | None) -> None:
        self.acks.append(Acknowledgement(topic, name, texts, number))

    def _acked(self, texts: list[str]) -> None:
        """These of the last acknowledgement count."""
        self.acks[-1].texts, self.acks[-1].state = texts, THERE

    def _asked(self, number: int, end: str) -> None:
        self.transactions[number].asked = end

    def _ended(self, number: int, end: str) -> None:
        self.transactions[number].ended = end

    def open(self) -> Iterator[int]:
        return (number for number, each in self.transactions.items() if not each.ended)

    def end_of(self, number: int | None) -> str:
        """ "": it is open."""
        return "commit" if number is None else self.transactions[number].ended

    def check(self, topic: str, found: list[str]) -> list[str]:
        """What all see of a topic; whether a message is there whose send was not answered is known
        by that, or remains open."""
        at = 0
        for each in self.topics[topic]:
            end = self.end_of(each.transaction)
            if each.state == GONE or end == "abort":
                continue
            is_next = at < len(found) and found[at] == each.text
            if end == "":
                if each.state == THERE or at == len(found):
                    break  # all behind it is held back
                each.state = GONE
            elif is_next:
                each.state = THERE
                at += 1
            else:
                assert each.state == MAYBE, f"{topic}: {each} is not in {found} at {at}"
                each.state = GONE
        assert at == len(found), f"{topic}: {found[at:]} must not be seen: {self.topics[topic]}"
        return found

    def left(
        self, topic: str, name: str, seen: list[str], pending: tuple[str, ...] = ()
    ) -> list[str]:
        """What a subscription has not acknowledged. pending: ("",) leaves out what open
        transactions have acknowledged, too: what it is to be given."""
        gone: set[str] = set()
        for each in self.acks:
            if (each.topic, each.name) == (topic, name) and each.state == THERE:
                if self.end_of(each.transaction) in ("commit", *pending):
                    gone.update(each.texts)
        return [each for each in seen if each not in gone]


# A session ----------------------------------------------------------------------------------------


class Session:
    """One broker of the folder, and its client."""

    def __init__(self, folder: Path, seed: int, number: int, durability: str) -> None:
        self.folder = folder
        self.durability = durability
        self.chance = random.Random(f"{seed} {number}")
        self.number = number
        self.log_path = folder.with_name("log")
        self.log_file = os.open(self.log_path, os.O_CREAT | os.O_APPEND | os.O_RDWR)
        self.model = Model()
        with self.log_path.open() as lines:
            for line in lines:
                self.model.apply(json.loads(line))
        self.sequence = max((each[3] + 3 for each in self.model.sends), default=0)
        self.local: dict[int, Any] = {}

    def note(self, *event: Any) -> None:
        os.write(self.log_file, json.dumps(event).encode() + b"\n")
        self.model.apply(list(event))

    # Opening --------------------------------------------------------------------------------------

    def look_beside(self) -> None:
        """As a reader does that finds no owner."""
        if not self.folder.exists() or any(
            each.asked and not each.ended for each in self.model.transactions.values()
        ):
            return
        with pulsarx.Client(str(self.folder), read_only=True) as beside:
            if set(beside.admin.topics.get_list("public/default")) and (
                set(beside.admin.namespaces.get_namespaces("public")) >= {"public/once"}
            ):
                there = [topic for topic in TOPICS if self.is_there(beside, topic)]
                ended = [n for n in self.model.open() if self.model.transactions[n].is_local]
                for number in ended:
                    self.model.transactions[number].ended = "abort"
                for topic in there:
                    self.model.check(topic, self.read(beside, topic))
                for number in ended:
                    self.model.transactions[number].ended = ""

    @staticmethod
    def is_there(client: pulsarx.Client, topic: str) -> bool:
        return f"persistent://{topic}" in client.admin.topics.get_list(topic.rpartition("/")[0])

    @staticmethod
    def read(client: pulsarx.Client, topic: str) -> list[str]:
        return [each.data().decode() for each in messages(client, topic)]

    def open(self) -> None:
        self.client = pulsarx.Client(
            str(self.folder),
            durability=self.durability,
            flush_interval_ms=1 << 30,
            broker_options=BrokerOptions(managed_ledger_max_entries_per_ledger=4),
        )
        namespaces = self.client.admin.namespaces
        if "public/once" not in namespaces.get_namespaces("public"):
            namespaces.create_namespace("public/once")
        for each in ("public/default", "public/once"):
            namespaces.set_retention(each, -1, -1)
        namespaces.set_deduplication("public/once", True)
        self.server = serving(self.client)
        self.peer = Peer(self.server)
        self.peer.connect()
        self.producers = {each: self.client.create_producer(each) for each in TOPICS}
        for at, topic in enumerate(TOPICS):
            self.say("PRODUCER", topic=topic, producer_id=at, request_id=0, producer_name="p")

    def say(self, name: str, data: bytes | None = None, **values: Any) -> dict[str, Any]:
        """A command; its answer, which has `error` where it was refused."""
        told = self.peer.say(name, data, **values)
        for each in told:
            if each[0] == "MESSAGE":
                self.delivered.append(each)
        answers = [each for each in told if each[0] not in ("MESSAGE", "ACTIVE_CONSUMER_CHANGE")]
        assert len(answers) == 1, (name, values, told)
        return {"error": None, **answers[0][1]}

    def begin_session(self) -> None:
        self.delivered: list[Any] = []
        self.look_beside()
        self.open()
        self.settle_transactions()
        self.settle_send()
        seen = {topic: self.model.check(topic, self.read(self.client, topic)) for topic in TOPICS}
        self.subscribe()
        self.settle_ack()
        self.check_deliveries(seen)

    def settle_transactions(self) -> None:
        runtime = inspect(self.client).broker.runtime
        going_on = {each.number for each in runtime.transactions.open_transactions()}
        for number in list(self.model.open()):
            transaction = self.model.transactions[number]
            if transaction.is_local:
                told = runtime.catalogue.state.ended.get(number)
                was = told is not None and told.committed
                assert not was or transaction.asked == "commit", f"{number} was committed"
                self.note("ended", number, "commit" if was else "abort")
            elif transaction.asked:
                error = self.end_by_peer(number, transaction.asked)
                is_empty = transaction.asked == "abort" or not any(
                    each.transaction == number for each in self.everything()
                )
                assert error is None or (error == NOT_FOUND and is_empty), (number, error)
                self.note("ended", number, transaction.asked)
            else:
                assert number in going_on, f"{number} does not go on: {transaction}"

    def everything(self) -> Iterator[Any]:
        """What may be of a transaction."""
        for topic in TOPICS:
            yield from self.model.topics[topic]
        yield from self.model.acks

    def settle_send(self) -> None:
        """Where duplicates are told, the last one is sent again, whether it was answered or not."""
        sent = [each for each in self.model.sends if each[0] == ONCE and each[3] >= 0]
        if not sent:
            return
        topic, texts, number, first, state = sent[-1]
        end = self.model.end_of(number)
        if end == "abort" or (state == MAYBE and end and number is not None):
            return  # what was aborted may be stored once more
        error = self.send_by_peer(topic, texts, None if end else number, first)
        assert error is None, (texts, number, error)
        if state == MAYBE:
            assert sent[-1] is self.model.sends[-1] or number is None, sent[-1]
        if sent[-1] is self.model.sends[-1]:
            self.note("told", THERE)

    def subscribe(self) -> None:
        for at, ((topic, name), kind) in enumerate(SUBSCRIPTIONS.items()):
            told = self.peer.say(
                "SUBSCRIBE", topic=topic, subscription=name, consumer_id=at, request_id=1,
                type=kind, initial_position=1,
            )  # fmt: skip
            assert "SUCCESS" in [each[0] for each in told], told
        self.delivered = []
        for at in range(len(SUBSCRIPTIONS)):
            self.delivered += [
                each
                for each in self.peer.say("FLOW", consumer_id=at, permits=100_000)
                if each[0] == "MESSAGE"
            ]

    def settle_ack(self) -> None:
        """What is not given again is acknowledged, of what was not answered."""
        if self.model.acks and self.model.acks[-1].state == MAYBE:
            last = self.model.acks[-1]
            given = self.given(last.topic, last.name)
            # Without what was acknowledged in it before.
            texts = self.model.left(last.topic, last.name, last.texts, ("",))
            counts = [each for each in texts if each not in given]
            assert last.transaction is None or counts in ([], texts), (last, counts)
            self.note("acked", last.texts if counts == texts else counts)

    def unacknowledged(self, topic: str, name: str) -> dict[str, Any]:
        found = unacknowledged(self.client, topic, name)
        return {each.data().decode(): each.message_id() for each in found}

    def given(self, topic: str, name: str) -> list[str]:
        """What the consumer of a subscription was given since it came, by position."""
        texts: dict[tuple[int, int], dict[int, str]] = {}
        for text, at in self.unacknowledged(topic, name).items():
            texts.setdefault((at.ledger_id(), at.entry_id()), {})[at.batch_index()] = text
        number = list(SUBSCRIPTIONS).index((topic, name))
        found = {}
        for each in self.delivered:
            if each[1]["consumer_id"] != number:
                continue
            place = each[1]["message_id"]
            position = place["ledger_id"], place["entry_id"]
            assert position in texts, f"{name} of {topic} is given what it has acknowledged"
            left = each[1]["ack_set"][0] if each[1]["ack_set"] else -1
            for at, text in texts[position].items():
                if at < 0 or left >> at & 1:
                    assert text not in found, f"{name} of {topic} is given {text} twice"
                    found[text] = (*position, at)
        return sorted(found, key=found.__getitem__)

    def check_deliveries(self, seen: dict[str, list[str]]) -> None:
        for topic, name in SUBSCRIPTIONS:
            wanted = self.model.left(topic, name, seen[topic], ("",))
            given = self.given(topic, name)
            assert given == wanted, (topic, name, given, wanted)
            wanted = self.model.left(topic, name, seen[topic])
            left = list(self.unacknowledged(topic, name))
            assert left == wanted, (topic, name, left, wanted)

    # Steps ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        if len(list(self.model.open())) >= OPEN_MAX:
            return
        if self.chance.random() < 0.3:
            opened = self.client.new_transaction(timeout_millis=HOUR_MS)
            self.local[opened.txn_id()[1]] = opened
            self.note("begun", opened.txn_id()[1], True)
            return
        told = self.say("NEW_TXN", request_id=1, timeout_ms=HOUR_MS, coordinator=0)
        self.note("begun", told["least"], False)

    def any_transaction(self) -> int | None:
        return self.chance.choice([None, *self.model.open()])

    def send_by_peer(
        self, topic: str, texts: list[str], number: int | None, first: int
    ) -> int | None:
        """The error of the answer."""
        data = encode_entry(
            texts[0].encode(), producer_name="p", sequence_id=first, publish_time_ms=wall_ms()
        )
        if len(texts) > 1:
            fields = [(text.encode(), {"sequence_id": at}) for at, text in enumerate(texts, first)]
            data = encode_batch(fields, producer_name="p", publish_time_ms=wall_ms())
        told = self.say(
            "SEND", data, producer_id=TOPICS.index(topic), sequence_id=first, **ids(number)
        )
        error: int | None = told["error"]
        return error

    def send(self) -> None:
        topic, number = self.chance.choice(TOPICS), self.any_transaction()
        texts = [f"{self.number}-{self.sequence + at}" for at in range(self.chance.choice((1, 3)))]
        if number in self.local:
            self.note("send", topic, texts[:1], number, -1)
            self.producers[topic].send(texts[0].encode(), transaction=self.local[number])
        else:
            first = self.sequence
            self.note("send", topic, texts, number, first)
            error = self.send_by_peer(topic, texts, number, first)
            assert error is None, (texts, number, error)
        self.sequence += len(texts)
        self.note("told", THERE)

    def ack(self) -> None:
        at = self.chance.randrange(len(SUBSCRIPTIONS))
        topic, name = list(SUBSCRIPTIONS)[at]
        left = self.unacknowledged(topic, name)
        number = self.any_transaction()
        texts = self.model.left(topic, name, list(left), ("",))
        if not texts or number in self.local:
            return
        if SUBSCRIPTIONS[topic, name] == EXCLUSIVE:
            # A batch that is acknowledged in part up to a message of it is given as a whole, until
            # the transaction has ended.
            ends = [
                at for at, text in enumerate(texts, 1)
                if number is None or left[text].batch_index() in (-1, 2)
            ]  # fmt: skip
            if not ends:
                return
            last = texts[self.chance.choice(ends) - 1]
            texts = list(left)[: list(left).index(last) + 1]
            kind, named = CUMULATIVE, [last]
        else:
            named = texts = self.chance.sample(texts, min(len(texts), self.chance.randint(1, 3)))
            kind = INDIVIDUAL
        self.note("ack", topic, name, texts, number)
        told = self.say(
            "ACK", consumer_id=at, ack_type=kind, request_id=9, **ids(number),
            message_ids=[id_of(left[each], kind) for each in named],
        )  # fmt: skip
        # Another transaction may acknowledge cumulatively, or one of these.
        self.note("acked", texts if told["error"] is None else [])

    def end_by_peer(self, number: int, end: str) -> int | None:
        told = self.say("END_TXN", request_id=2, least=number, most=0, action=ACTIONS[end])
        error: int | None = told["error"]
        return error

    def end(self) -> None:
        numbers = list(self.model.open())
        if not numbers:
            return
        number, end = self.chance.choice(numbers), self.chance.choice(("commit", "abort"))
        self.note("asked", number, end)
        if number in self.local:
            getattr(self.local[number], end)()
        else:
            assert self.end_by_peer(number, end) is None
        self.note("ended", number, end)

    def look(self) -> None:
        for topic in TOPICS:
            seen = self.model.check(topic, self.read(self.client, topic))
            for of, name in SUBSCRIPTIONS:
                if of == topic:
                    wanted = self.model.left(topic, name, seen)
                    left = list(self.unacknowledged(topic, name))
                    assert left == wanted, (topic, name, left, wanted)

    def rest(self) -> None:
        inspect(self.client).settle()

    def run(self, steps: int) -> None:
        weights = {
            self.begin: 4,
            self.send: 10,
            self.ack: 5,
            self.end: 3,
            self.look: 2,
            self.rest: 1,
        }
        with fault_plan() as plan:
            if self.chance.random() < 0.3:
                plan.kill(self.chance.choice(KILLED_AT), self.chance.randint(1, 25))
            self.begin_session()
            if self.chance.random() < 0.5:
                plan.kill(self.chance.choice(KILLED_AT), self.chance.randint(1, 40))
            for _ in range(self.chance.randint(0, steps)):
                (chosen,) = self.chance.choices(list(weights), list(weights.values()))
                chosen()
        if self.chance.random() < 0.5:
            os.kill(os.getpid(), signal.SIGKILL)
        for number in self.local:
            if not self.model.end_of(number):
                self.note("asked", number, "abort")
        self.server.close()
        self.client.close()


def ids(number: int | None) -> dict[str, int]:
    return {} if number is None else {"transaction_least": number, "transaction_most": 0}


def id_of(message_id: pulsarx.MessageId, kind: int) -> dict[str, Any]:
    """Of a message, or of all of its batch up to it."""
    found = {"ledger_id": message_id.ledger_id(), "entry_id": message_id.entry_id()}
    at = message_id.batch_index()
    if at < 0 or (kind == CUMULATIVE and at == 2):
        return found
    # The bits of the messages of its batch, three, that are not acknowledged by that.
    others = 0b111 & ~(1 << at) if kind == INDIVIDUAL else 0b111 & ~((1 << at + 1) - 1)
    return {**found, "batch_index": at, "ack_set": [others], "batch_size": 3}


# Planted bugs -------------------------------------------------------------------------------------


def none_go_on() -> None:
    taking_up.read_left = lambda *_: LeftLog()


def entries_name_none() -> None:
    served_transaction.stamped = lambda entry, _: entry


def acknowledgements_are_forgotten() -> None:
    Subscription.take_up_acks = lambda *_: None  # type: ignore[method-assign]


def sequence_ids_are_forgotten() -> None:
    deduplication.read_held = lambda *_: []  # type: ignore[assignment]


def some_ledgers_are_sealed() -> None:
    known = reopened_ledger._reopen

    def reopen(topic: Any, ledger: Any, path: str, recovery: Any) -> Any:
        if ledger.ledger_id % 2:
            reopened_ledger.tell_lost = lambda *_: None  # type: ignore[assignment]
            raise pulsarx.CorruptDataError(detail="planted")
        return known(topic, ledger, path, recovery)

    reopened_ledger._reopen = reopen


BUGS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        none_go_on, entries_name_none, acknowledgements_are_forgotten, sequence_ids_are_forgotten,
        some_ledgers_are_sealed,
    )
}  # fmt: skip


if __name__ == "__main__":
    run_history(Session, BUGS)
