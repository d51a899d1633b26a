"""What a subscription owes to its users, as a plain model of what they saw: sends, receipts,
deliveries and acknowledgements, and the deaths of processes in between.

A history is judged when it is over, when the order of all messages is known: that of their ids.

a message is    for a subscription
acked           YES: it may not come again; MAYBE: whoever said so was killed before it was known to
                be recorded; NO: it has to come
held            by the consumer that received it last, and has neither acknowledged nor given it up
loose           given up: refused, or of a consumer that leaves; it may come again, to anybody
stray           not acknowledged when the owner was killed, on Shared and Key_Shared: the next owner
                does not know who holds it, and may have given it to another one, whose queue it
                leaves although its holder acknowledges it meanwhile; so does one that is
                acknowledged by who does not hold it any more
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NO, MAYBE, YES = 0, 1, 2
ORDERED = ("Exclusive", "Failover")
Id = tuple[int, int, int]  # ledger, entry, index in its batch
Seen = tuple[Any, ...]  # what happened, and its arguments


class Violation(AssertionError):
    """A promise that was not kept."""


@dataclass
class State:
    """One message on one subscription."""

    index: int
    key: str
    acked: int = NO
    holder: str | None = None
    is_loose: bool = False
    is_stray: bool = False
    came: int = 0  # how often it was delivered


@dataclass
class Subscription:
    """All there is of one subscription. `states` is in the order of the topic."""

    name: str
    type: str
    states: list[State]
    consumers: dict[str, int] = field(default_factory=dict)  # open ones, and their processes
    active: str | None = None  # who received last, where one has all
    # Processes that the present owner knows, and those that it does not wait for.
    arrived: set[int] = field(default_factory=set)
    late: set[int] = field(default_factory=set)

    def give_up(self, consumer: str, is_loose: bool) -> None:
        """What a consumer holds may go to others; is_loose: it may stay there, too."""
        for state in self.states:
            if state.holder == consumer and state.acked != YES:
                state.is_loose = is_loose
                if not is_loose:
                    state.holder = None

    def leave(self, consumer: str) -> None:
        if self.consumers.pop(consumer, None) is not None:
            self.give_up(consumer, False)
        if self.active == consumer:
            self.active = None

    def receive(self, consumer: str, state: State) -> None:
        if consumer not in self.consumers:
            raise Violation("came to a consumer that has left")
        state.came += 1
        pid = self.consumers[consumer]
        if pid not in self.arrived and (pid in self.late or self.type not in ORDERED):
            # It hands out what an owner before gave it. This one may have given that to others.
            state.holder, state.is_loose = state.holder or consumer, True
            return
        if state.acked == YES and not state.is_stray:
            raise Violation("came though it was acknowledged")
        held = state.holder is not None and not state.is_loose
        if held and state.holder == consumer:
            raise Violation("came twice to the same consumer")
        if self.type in ORDERED:
            self._require_turn(consumer)
            self._require_order(consumer, state)
        elif held:
            raise Violation(f"came while {state.holder} has it")
        elif self.type == "Key_Shared":
            self._require_key(consumer, state)
        if not state.is_stray:
            state.acked = NO  # else it may be acknowledged there all the same
        state.is_stray = state.is_loose = False
        state.holder = consumer

    def _require_turn(self, consumer: str) -> None:
        """One has the subscription for itself until it leaves."""
        if self.active not in (None, consumer):
            raise Violation(f"came while {self.active} has the subscription")
        self.active = consumer

    def _require_order(self, consumer: str, state: State) -> None:
        for earlier in self.states[: state.index]:
            if earlier.acked == NO and earlier.holder != consumer and not earlier.is_loose:
                raise Violation(f"came before message {earlier.index}")
        if state.is_loose:  # everything behind it comes again as well
            for later in self.states[state.index + 1 :]:
                if later.acked != YES and later.holder == consumer:
                    later.holder = None

    def _require_key(self, consumer: str, state: State) -> None:
        for other in self.states:
            if other is state or other.key != state.key or other.acked != NO or other.is_loose:
                continue
            if other.holder not in (None, consumer):
                raise Violation(f"came while {other.holder} has message {other.index} of its key")
            if other.index < state.index and other.holder is None:
                raise Violation(f"came before message {other.index} of its key")


class TopicModel:
    """Judges a history: `judge` raises Violation where a promise was not kept."""

    def __init__(self, types: dict[str, str], deduplicates: bool) -> None:
        """types: of the subscriptions. deduplicates: else what was sent twice may be stored so."""
        self._types = types
        self._deduplicates = deduplicates

    def judge(self, seen: list[Seen]) -> None:
        ids: dict[Id, tuple[str, str]] = {}  # payload and key
        for name, *arguments in seen:
            if name == "received":
                _, _, message_id, payload, key = arguments
                if ids.setdefault(message_id, (payload, key)) != (payload, key):
                    raise Violation(f"{message_id} was {ids[message_id]}, and now {payload}")
        order = sorted(ids)
        self._judge_stored(seen, ids, order)
        for name, type_name in self._types.items():
            states = [State(at, ids[message_id][1]) for at, message_id in enumerate(order)]
            places = dict(zip(order, states))
            self._judge_subscription(Subscription(name, type_name, states), places, seen, order)

    # What is stored -------------------------------------------------------------------------------

    def _judge_stored(self, seen: list[Seen], ids: dict[Id, Any], order: list[Id]) -> None:
        sent: dict[str, int] = {}
        places: dict[str, list[Id]] = {}
        for message_id in order:
            places.setdefault(ids[message_id][0], []).append(message_id)
        for name, *arguments in seen:
            if name == "sent":
                sent[arguments[0]] = sent.get(arguments[0], 0) + 1
        for payload, found in places.items():
            if payload not in sent:
                raise Violation(f"{payload} was never sent")
            if len(found) > (1 if self._deduplicates else sent[payload]):
                raise Violation(f"{payload} is stored {len(found)} times: {found}")
        skipped = max((each[3] for each in seen if each[0] == "sought"), default=(-1, -1, -1))
        for name, *arguments in seen:
            if name == "confirmed":
                payload, message_id = arguments
                if payload not in places and message_id is not None and message_id <= skipped:
                    continue
                if payload not in places:
                    raise Violation(f"{payload} was confirmed, and is lost")
                if message_id is not None and message_id not in places[payload]:
                    raise Violation(f"{payload} was confirmed as {message_id}: {places[payload]}")
        self._judge_order(places)

    def _judge_order(self, places: dict[str, list[Id]]) -> None:
        """Messages of one producer are in the order they were sent."""
        last: dict[str, tuple[int, Id]] = {}
        firsts = sorted((found[0], payload) for payload, found in places.items())
        for message_id, payload in firsts:
            producer, number = payload.split(":")
            before = last.get(producer)
            if before is not None and before[0] > int(number):
                raise Violation(f"{payload} is stored behind {producer}:{before[0]}")
            last[producer] = int(number), message_id

    # What is delivered ----------------------------------------------------------------------------

    def _judge_subscription(
        self, subscription: Subscription, places: dict[Id, State], seen: list[Seen], order: list[Id]
    ) -> None:
        for at, (name, *arguments) in enumerate(seen):
            try:
                self._take(subscription, places, name, arguments)
            except Violation as violation:
                raise Violation(
                    f"{subscription.type} subscription {subscription.name}, event {at}, "
                    f"{name} {arguments}: {violation}"
                ) from None
        for state in subscription.states:
            if state.acked == NO:
                raise Violation(
                    f"{subscription.type} subscription {subscription.name}: message "
                    f"{state.index}, {order[state.index]}, never came again"
                )

    def _take(
        self, found: Subscription, places: dict[Id, State], name: str, arguments: list[Any]
    ) -> None:
        if name == "killed":
            for consumer, pid in list(found.consumers.items()):
                if pid == arguments[0]:
                    found.leave(consumer)
        elif name == "arrived":
            found.arrived.add(arguments[0])
            found.late.discard(arguments[0])
        elif name == "owner killed":
            found.arrived.clear()
            if found.type not in ORDERED:
                for state in found.states:
                    state.is_loose = state.is_stray = state.acked != YES
        elif name == "late":  # it was stopped when owners changed: others need not wait for it
            found.late.add(arguments[0])
            for consumer, pid in found.consumers.items():
                if pid == arguments[0]:
                    found.give_up(consumer, True)
                    if found.active == consumer:
                        found.active = None
        elif not arguments or arguments[0] != found.name:
            return
        elif name == "opened":
            consumer, pid = arguments[1:]
            others = [each for each, its in found.consumers.items() if its not in found.late]
            if found.type == "Exclusive" and others:
                raise Violation(f"{others} had it")
            found.consumers[consumer] = pid
            found.arrived.add(pid)
        elif name == "closing":
            found.give_up(arguments[1], True)
            if found.active == arguments[1]:
                found.active = None
        elif name == "closed":
            found.leave(arguments[1])
        elif name == "received":
            found.receive(arguments[1], places[arguments[2]])
        elif name == "acked":
            for state in self._meant(found, places, arguments[2], arguments[3]):
                # The owner has given it to another one since, whose queue it may lie in.
                state.is_stray |= found.type not in ORDERED and state.holder != arguments[1]
                state.acked, state.holder, state.is_loose = YES, None, False
        elif name == "unsure":  # acknowledged by a process that was killed
            for state in self._meant(found, places, *arguments[1:]):
                if state.acked == YES:
                    state.acked = MAYBE
        elif name == "refused":
            self._refuse(found, arguments[1], places[arguments[2]])
        elif name == "redelivered":
            found.give_up(arguments[1], True)
        elif name == "seeking":
            for state in found.states:
                state.acked, state.holder = max(state.acked, MAYBE), None
        elif name == "sought":
            for message_id, state in places.items():
                state.acked = NO if message_id > arguments[2] else YES
                state.holder, state.is_loose = None, False

    def _meant(
        self, found: Subscription, places: dict[Id, State], message_id: Id, is_cumulative: bool
    ) -> list[State]:
        last = places[message_id]
        return found.states[: last.index + 1] if is_cumulative else [last]

    def _refuse(self, found: Subscription, consumer: str, state: State) -> None:
        behind = found.states[state.index :] if found.type in ORDERED else [state]
        for each in behind:
            if each.acked != YES and each.holder == consumer:
                each.is_loose = True
