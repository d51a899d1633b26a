"""A history of one topic, its owner and four guests: steps drawn from a seed, done to the real
thing, and what users saw of it.

  state of a process   steps
  absent               start
  running              publish, consume, receive, acknowledge, redeliver, seek, close, stop, kill
  stopped              continue, kill

The threads of a user are one a process: its calls wait for each other.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections import deque
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import simulated_process as process
from seeded_scheduler import Hang
from simulated_process import Process, World
from subscription_model import ORDERED, Seen, TopicModel, Violation

import pulsarx
from pulsarx import ConsumerType, InitialPosition, errors
from pulsarx.ground.attempt import attempt
from pulsarx.results import Result
from pulsarx.topic_name import TopicName

TOPIC = "t"
NAME = TopicName.of(TOPIC)
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
SLOTS = 5  # places of processes; the first one is the owner at first
TYPES = ("Exclusive", "Shared", "Failover", "Key_Shared")
KEYS = ("a", "b", "c")
STEPS_MAX = 60_000  # of the scheduler; a history takes some hundred
NACK_MS = 2_000
IDLE_ROUNDS_MAX = 4  # in which nothing comes, though something is left
Step = tuple[Any, ...]  # its name, and its arguments


@dataclass(frozen=True)
class Plan:
    """What is to be done: it says all, but for what the scheduler chooses."""

    seed: int
    types: dict[str, str]
    resends: bool  # producers keep their names, and send again what was not confirmed
    deduplicates: bool
    steps: tuple[Step, ...]

    def text(self) -> str:
        head = f"Plan({self.seed}, {self.types}, {self.resends}, {self.deduplicates}, ("
        return "\n".join([head, *(f"    {step!r}," for step in self.steps), "))"])


WEIGHTS = {
    "publish": 24, "consume": 8, "receive": 34, "acknowledge": 8, "refuse": 3, "redeliver": 2,
    "close": 4, "kill": 4, "kill owner": 2, "burst": 9, "stop": 3, "continue": 3, "advance": 5,
    "start": 6, "seek": 1,
}  # fmt: skip


def new_plan(seed: int) -> Plan:
    """Few steps each: the shorter a history, the more there are."""
    chance = random.Random(seed)
    names = ["s0"] if chance.random() < 0.6 else ["s0", "s1"]
    types = {name: chance.choice(TYPES) for name in names}
    steps: list[Step] = [("start", slot, 0) for slot in range(1, SLOTS)]
    for slot in range(SLOTS):
        if chance.random() < 0.5:
            steps.append(_drawn("publish", chance, slot, names))
        if chance.random() < 0.5:
            steps.append(_drawn("consume", chance, slot, names))
    kinds, weights = list(WEIGHTS), list(WEIGHTS.values())
    for _ in range(chance.randint(4, 28)):
        kind = chance.choices(kinds, weights)[0]
        if kind != "burst":
            steps.append(_drawn(kind, chance, chance.randrange(SLOTS), names))
            continue
        # The owner is killed while much is on the way.
        for _ in range(chance.randint(1, 4)):
            step = _drawn(
                chance.choice(("publish", "receive")), chance, chance.randrange(SLOTS), names
            )
            steps.append((*step[:2], chance.randint(0, 4), *step[3:]))
        steps.append(("kill owner", 0, int(chance.expovariate(1 / 8))))
    deduplicates = chance.random() < 0.4
    return Plan(seed, types, deduplicates or chance.random() < 0.3, deduplicates, tuple(steps))


def _drawn(kind: str, chance: random.Random, slot: int, names: list[str]) -> Step:
    gap = int(chance.expovariate(1 / 12)) if chance.random() < 0.8 else 60
    name = chance.choice(names)
    more: tuple[Any, ...] = ()
    if kind == "publish":
        more = (chance.randint(1, 6), chance.random() < 0.4, chance.getrandbits(16))
    elif kind in ("consume", "redeliver", "refuse", "close"):
        more = (name,)
    elif kind == "receive":
        more = (name, chance.randint(1, 8), chance.randint(0, 8), chance.getrandbits(16))
    elif kind == "acknowledge":
        more = (name, chance.randint(1, 8), chance.getrandbits(16))
    elif kind == "seek":
        more = (name, chance.random())
    elif kind == "advance":
        more = (chance.choice((5, 100, 1500, 4000)),)
    return kind, slot, gap, *more


class User:
    """Who uses one process: its calls, one after the other."""

    def __init__(self, history: History, slot: int, number: int) -> None:
        self.history = history
        self.world = history.world
        self.process: Process = self.world.new_process()
        self.slot, self.number = slot, number
        self.todo: deque[partial[None]] = deque()
        self.busy: str = "starting"
        self.call: Any = None
        self.sent_here: list[str] = []  # payloads that are not answered
        self.producer: Any = None
        self.sent = 0
        self.consumers: dict[str, tuple[str, Any]] = {}  # by subscription
        self.closing: dict[str, tuple[str, Any]] = {}
        self.all_consumers: list[Any] = []
        self.held: dict[str, dict[Any, Any]] = {}  # messages by id, by subscription
        self.world.scheduler.spawn(self._run, self.process)

    @property
    def is_idle(self) -> bool:
        return not self.busy and not self.todo

    def _run(self) -> None:
        scheduler = self.world.scheduler
        scheduler.block(lambda: self.process.client is not None)
        self.busy = ""
        while True:
            scheduler.block(lambda: self.todo)
            call = self.todo.popleft()
            self.call, self.busy = call, call.func.__name__
            call()
            self.call, self.busy = None, ""

    def see(self, *seen: Any) -> None:
        self.history.seen.append(seen)

    def forget(self) -> None:
        """Let go of messages, which no collector finds in a cycle."""
        self.held.clear()
        for consumer in self.all_consumers:
            attempt(partial(consumer.dispatcher.leave, consumer.receiver))
        self.all_consumers.clear()
        self.consumers.clear()

    # Calls ----------------------------------------------------------------------------------------

    def publish(self, count: int, batched: bool, chance: int) -> None:
        if self.producer is None and not self._new_producer():
            return
        keys = random.Random(chance)
        for _ in range(count):
            self._send(self.sent, keys.choice(KEYS))
            self.sent += 1

    def _new_producer(self) -> bool:
        name = f"n{self.slot}" if self.history.plan.resends else None
        try:
            self.producer = self.process.client.create_producer(
                TOPIC,
                producer_name=name,
                send_timeout_millis=0,
                batching_enabled=self.slot % 2 == 0,
                batching_max_messages=4,
            )
        except errors.ProducerBusy:  # of the process before in its place, which is being noticed
            return False
        if name is not None:
            self._send_again()
        return True

    def _send(self, number: int, key: str) -> None:
        producer = f"n{self.slot}" if self.history.plan.resends else f"u{self.number}"
        payload = f"{producer}:{number}"
        self.see("sent", payload)
        self.sent_here.append(payload)
        self.history.payloads.setdefault(producer, {})[number] = key
        more = {"sequence_id": number} if self.history.plan.resends else {}
        told = partial(self._told, payload)
        self.producer.send_async(payload.encode(), told, partition_key=key, **more)

    def _send_again(self) -> None:
        """What the one before did not see confirmed: nobody can know whether it is stored."""
        sent = self.history.payloads.get(f"n{self.slot}", {})
        unsure = [each for each in sent if f"n{self.slot}:{each}" not in self.history.confirmed]
        self.sent = max(sent, default=-1) + 1
        if unsure:
            for number in range(min(unsure), self.sent):
                self._send(number, sent[number])

    def _told(self, payload: str, result: Any, message_id: Any) -> None:
        self.sent_here.remove(payload)
        if result == Result.Timeout and ("owner killed",) in self.history.seen:
            return  # the ledgers it may be in were trimmed: it may be stored
        if result != Result.Ok:
            self.history.failures.append(f"{payload} failed with {result}")
        self.history.confirmed.add(payload)
        place = id_of(message_id)
        self.see("confirmed", payload, None if place[0] < 0 else place)

    def consume(self, name: str) -> None:
        if name in self.consumers:
            return
        history = self.history
        consumer_name = f"c{len(history.seen)}-{self.process.name}"
        try:
            consumer = self.process.client.subscribe(
                TOPIC,
                name,
                consumer_type=TYPE_VALUES[history.plan.types[name]],
                consumer_name=consumer_name,
                initial_position=InitialPosition.Earliest,
                negative_ack_redelivery_delay_ms=NACK_MS,
                receiver_queue_size=(1000, 3, 1)[self.number % 3],
            )
        except errors.ConsumerBusy:
            return
        self.all_consumers.append(consumer)
        self.consumers[name] = consumer_name, consumer
        self.held[name] = {}
        self.see("opened", name, consumer_name, self.process.pid)

    def receive(self, name: str, count: int, acknowledged: int, chance: int) -> None:
        """Take what there is, and do something with some of what it holds then."""
        self._take(name, count)
        self.acknowledge(name, acknowledged, chance)

    def _take(self, name: str, count: int) -> None:
        if name not in self.consumers:
            return
        consumer_name, consumer = self.consumers[name]
        try:
            found = consumer.receive_many(count, 0)
        except errors.AlreadyClosed:
            self._is_closed(name)
            return
        for message in found:
            place = id_of(message.message_id())
            payload, key = message.data().decode(), message.partition_key()
            self.see("received", name, consumer_name, place, payload, key)
            self.history.message_ids[place] = message.message_id()
            self.held[name][place] = message

    def _is_closed(self, name: str) -> None:
        """The owner closed it, which it may do to a process that was stopped too long."""
        if self.process.pid not in self.history.late:
            raise Violation(f"{self.consumers[name][0]} was closed")
        self.see("closed", name, self.consumers.pop(name)[0])
        del self.held[name]

    def acknowledge(self, name: str, count: int, chance: int) -> None:
        """Some of what it holds, in one way or another."""
        if name not in self.consumers:
            return
        consumer_name, consumer = self.consumers[name]
        held, choices = self.held[name], random.Random(chance)
        ordered = self.history.plan.types[name] in ORDERED
        for place in sorted(held)[:count]:
            message = held.get(place)
            if message is None:
                continue
            way = choices.random()
            if way < 0.6:
                consumer.acknowledge(message)
                self.see("acked", name, consumer_name, place, False)
                del held[place]
            elif way < 0.7 and ordered:
                consumer.acknowledge_cumulative(message)
                self.see("acked", name, consumer_name, place, True)
                for each in [each for each in held if each <= place]:
                    del held[each]
            elif way < 0.8:
                self.refuse(name, place)

    def refuse(self, name: str, place: Any = None) -> None:
        """Have a message delivered again, the first it holds where none is named."""
        held = self.held.get(name, {})
        first = min(held, default=None) if place is None else place
        if first is None:
            return
        consumer_name, consumer = self.consumers[name]
        self.see("refused", name, consumer_name, first)
        consumer.negative_acknowledge(held[first])
        is_ordered = self.history.plan.types[name] in ORDERED  # then all behind it comes, too
        for each in [each for each in held if each == first or (is_ordered and each > first)]:
            del held[each]

    def redeliver(self, name: str) -> None:
        if name in self.consumers:
            consumer_name, consumer = self.consumers[name]
            self.see("redelivered", name, consumer_name)
            self.held[name].clear()
            consumer.redeliver_unacknowledged_messages()

    def seek(self, name: str, share: float) -> None:
        """Where others receive as well, nobody could tell what comes from before."""
        others = [each for each in self.history.users if name in each.consumers]
        places = sorted({each[3] for each in self.history.seen if each[0] == "received"})
        if others != [self] or not places or self.history.is_joining(name, self):
            return
        consumer_name, consumer = self.consumers[name]
        place = places[int(share * len(places))]
        self.see("seeking", name, consumer_name)
        self.held[name].clear()
        consumer.seek(self.history.message_ids[place])
        self.see("sought", name, consumer_name, place)

    def close(self, name: str) -> None:
        if name not in self.consumers:
            return
        consumer_name, consumer = self.consumers.pop(name)
        del self.held[name]
        self.see("closing", name, consumer_name)
        self.closing = {name: (consumer_name, consumer)}
        consumer.close()
        self.closing = {}
        self.see("closed", name, consumer_name)

    def take_all(self, name: str) -> None:
        """At the end: acknowledge whatever comes."""
        self._take(name, 100)
        if name not in self.consumers:
            return
        consumer_name, consumer = self.consumers[name]
        for place in sorted(self.held[name]):
            consumer.acknowledge(self.held[name].pop(place))
            self.see("acked", name, consumer_name, place, False)


class History:
    """One run of a plan."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.world = World(folder, plan.seed, plan.deduplicates)
        self.world.tell_late = self.be_late
        self.world.tell_arrived = lambda pid: self.seen.append(("arrived", pid))
        self.seen: list[Seen] = []
        self.users: list[User] = []  # of living processes
        self.all_users: list[User] = []
        self.payloads: dict[str, dict[int, str]] = {}  # keys by number, by producer
        self.confirmed: set[str] = set()
        self.failures: list[str] = []  # of sends
        self.message_ids: dict[Any, Any] = {}
        self.late: set[int] = set()  # processes that were stopped when owners changed
        # What killed processes had acknowledged, until their owner has read all they sent.
        self.unsure: list[tuple[Any, list[Seen]]] = []

    def run(self) -> None:
        """Violation, Hang: a promise is not kept. Whatever else is raised is a fault, too."""
        try:
            self._run()
        finally:
            for user in self.all_users:
                user.forget()
        TopicModel(self.plan.types, self.plan.deduplicates).judge(self.seen)

    def _run(self) -> None:
        with process.using(self.world):
            self._do("start", 0)
            self._go_on(None)
            for name in self.plan.types:
                self.users[0].todo.append(partial(self.users[0].consume, name))
                self.users[0].todo.append(partial(self.users[0].close, name))
            self._go_on(None)
            for step, slot, gap, *arguments in self.plan.steps:
                self._go_on(gap)
                self._do(step, slot, *arguments)
            self._finish()

    def _go_on(self, count: int | None) -> None:
        """Let processes go on for some steps; None: until there is nothing to do now."""
        done = 0
        while count is None or done < count:
            if not self.world.step():
                if count is not None:
                    return
                due_ms = self.world.next_due()
                waits = any(not each.is_idle for each in self.users)
                if due_ms is None or not (waits or self._is_changing()):
                    return
                self.world.advance_to(due_ms)
            done += 1
            if self.world.scheduler.steps > STEPS_MAX:
                raise Hang(f"there is no end: {self._waiting()}")

    def _is_changing(self) -> bool:
        """Whether guests look for an owner."""
        return self.world.owner() is None or any(
            getattr(each.process.broker, "_is_resuming", False) for each in self.users
        )

    def _waiting(self) -> list[str]:
        return [f"{each.process.name} {each.busy} {len(each.todo)}" for each in self.users]

    def user(self, slot: int) -> User | None:
        return next((each for each in self.users if each.slot == slot), None)

    def is_joining(self, name: str, but: User) -> bool:
        return any(
            call.func.__name__ == "consume" and call.args == (name,)
            for each in self.users
            for call in ([*each.todo] + ([each.call] if each.call is not None else []))
            if each is not but
        )

    def _do(self, step: str, slot: int, *arguments: Any) -> None:
        user = self.user(slot)
        if step == "start":
            if user is None:
                self.users.append(User(self, slot, len(self.all_users) + 1))
                self.all_users.append(self.users[-1])
        elif step == "advance":
            self.world.advance_to(self.world.scheduler.now_ms + arguments[0])
        elif step == "kill owner":
            owner = self.world.owner()
            self._kill(next((each for each in self.users if each.process is owner), None))
        elif step == "kill":
            self._kill(user)
        elif user is None:
            return
        elif step == "stop":
            user.process.is_stopped = True
        elif step == "continue":
            user.process.is_stopped = False
        else:
            user.todo.append(partial(getattr(user, step), *arguments))

    def _kill(self, user: User | None) -> None:
        if user is None:
            return
        was_owner = user.process.host is not None
        if was_owner:
            self.world.do_last_things(user.process)
        at_risk = self._at_risk(user)
        end = self.world.served_end(user.process)
        lost = [risks for served, risks in self.unsure if not served.is_hung_up]
        self.users.remove(user)
        self.world.kill(user.process)
        self.seen.append(("killed", user.process.pid))
        if at_risk and (was_owner or end is None or user.process.broker._is_resuming):
            self.seen += at_risk
        elif at_risk:
            self.unsure.append((end, at_risk))
        if was_owner:
            self.seen.append(("owner killed",))
            for risks in lost:
                self.seen += risks
            self.unsure.clear()

    def _at_risk(self, user: User) -> list[Seen]:
        """Acknowledgements that a guest has made and not heard to be recorded."""
        found: list[Seen] = []
        for name, (consumer_name, consumer) in [*user.consumers.items(), *user.closing.items()]:
            unrecorded = getattr(consumer.dispatcher, "unrecorded", None)
            count = sum(max(each[3], 1) for each in unrecorded()) if unrecorded else 0
            mine = [
                each
                for each in self.seen
                if each[0] == "acked" and each[1:3] == (name, consumer_name)
            ]
            found += [("unsure", name, each[3], each[4]) for each in mine[len(mine) - count :]]
        return found

    def be_late(self, pid: int) -> None:
        """A process was stopped while owners changed, and nobody waits for it any more."""
        self.late.add(pid)
        self.seen.append(("late", pid))
        for user in self.users:
            if user.process.pid == pid:
                self.seen += self._at_risk(user)

    def _finish(self) -> None:
        """Nobody is stopped or killed any more: everything comes, and is acknowledged."""
        for user in self.users:
            user.process.is_stopped = False
        if not self.users:
            self._do("start", 0)
        self._go_on(None)
        self._require_idle()
        idle_rounds = 0
        while idle_rounds < IDLE_ROUNDS_MAX:
            before = len(self.seen)
            for name in self.plan.types:
                if not any(name in each.consumers for each in self.users):
                    self.users[0].todo.append(partial(self.users[0].consume, name))
                for user in self.users:
                    user.todo.append(partial(user.take_all, name))
            self._go_on(None)
            self._require_idle()
            if len(self.seen) > before:
                idle_rounds = 0
                continue
            if not self._backlogs() and not self._unconfirmed():
                return
            idle_rounds += 1
            self.world.advance_to(self.world.scheduler.now_ms + 2 * NACK_MS)
        raise Hang(f"left: {self._backlogs()}, unconfirmed: {self._unconfirmed()}")

    def _unconfirmed(self) -> list[str]:
        return [each for user in self.users for each in user.sent_here] + self.failures

    def _backlogs(self) -> dict[str, int]:
        """What the owner has that is not acknowledged."""
        owner = self.world.owner()
        assert owner is not None and owner.host is not None
        found = owner.host.topic(NAME)
        counts = {name: each.backlog()[0] for name, each in found.subscriptions.items()}
        return {name: count for name, count in counts.items() if count}

    def _require_idle(self) -> None:
        busy = [each for each in self.users if not each.is_idle]
        if busy or self.world.owner() is None:
            raise Hang(f"nobody goes on: {self._waiting()}")


def run_plan(plan: Plan, where: str | None = MEMORY) -> None:
    """Run a history of its own folder. See History.run."""
    folder = Path(tempfile.mkdtemp(dir=where, prefix="simulation-"))
    try:
        History(plan, folder).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


TYPE_VALUES = {
    "Exclusive": ConsumerType.Exclusive,
    "Shared": ConsumerType.Shared,
    "Failover": ConsumerType.Failover,
    "Key_Shared": ConsumerType.KeyShared,
}


def id_of(message_id: pulsarx.MessageId) -> tuple[int, int, int]:
    return message_id.ledger_id(), message_id.entry_id(), message_id.batch_index()
