"""A topic with subscriptions in plain lists and dicts: what a broker may do, and what it must.

Nothing of PulsarX is imported. It is told every step in the order of the steps, deliveries of the
real thing among them, and raises Violation at the first one that is not allowed. It prescribes no
choice: which consumer a broker picks, and what lies in whose receiver queue, is the broker's
affair. A message is known by its index in the topic; times are milliseconds.

A message of a subscription   waits_for   is in a window [earliest_ms, latest_ms] of time in which
  was never delivered         nothing     (at once)
  and has a deliver-at time   delay       it becomes due: never before, at the latest one tick after
  is with a consumer          ack         its acknowledgement timeout fires; never without one
  was nacked                  nack        its redelivery delay is over
  is to be redelivered        nothing     (at once)
"""

from __future__ import annotations

from typing import Any

EXCLUSIVE = "Exclusive"
FAILOVER = "Failover"
SHARED = "Shared"
KEY_SHARED = "KeyShared"
ORDERED = (EXCLUSIVE, FAILOVER)
ALL_TYPES = (EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED)

NEVER = 1 << 62
NO_KEY = "NON_KEY"
TICK_MS = 1000
GATHERED_MS = 256  # a refusal may come again so much earlier, with one before it

Step = tuple[str, dict[str, Any]]


class Violation(AssertionError):
    """The broker did what it must not, or did not what it must."""


class PublishedMessage:
    """One message of the topic."""

    def __init__(self, index: int, key: str | None, deliver_at_ms: int | None) -> None:
        self.index = index
        self.given_key = key
        self.key = NO_KEY if key is None else key
        self.deliver_at_ms = deliver_at_ms


class ConsumerModel:
    """One connected consumer."""

    def __init__(self, priority: int, queue_size: int, ack_timeout_ms: int) -> None:
        self.priority = priority
        self.queue_size = queue_size
        self.ack_timeout_ms = ack_timeout_ms


class MessageState:
    """What one subscription knows of one message."""

    def __init__(self, message: PublishedMessage, step: int) -> None:
        self.message = message
        self.acknowledged = False
        self.delivered = False
        self.consumer: str | None = None  # who has it, or nacked it
        self.waits_for = ""
        self.earliest_ms = 0
        self.latest_ms = 0
        self.free_since_step = step  # since when a broker may have given it to somebody
        self.lowest_count = self.highest_count = 0  # of redeliveries

    def wait(self, reason: str, earliest_ms: int, latest_ms: int) -> None:
        self.waits_for, self.earliest_ms, self.latest_ms = reason, earliest_ms, latest_ms

    def outstanding(self) -> bool:
        return self.waits_for == "ack"


class SubscriptionModel:
    """One subscription. Its type is that of its consumers; without any it has none."""

    def __init__(self) -> None:
        self.type: str | None = None
        self.consumers: dict[str, ConsumerModel] = {}  # in the order they came
        self.states: list[MessageState] = []
        self.in_order = True  # of keys; False: allow_out_of_order_delivery
        self.owners: dict[str, str] = {}  # consumer of a key, as seen since members changed
        self.members_changed_step = 0
        self.members_changed_ms = 0
        self.now_ms = 0
        self.step = 0

    # -- what happens to messages -----------------------------------------------------------------

    def add(self, message: PublishedMessage) -> None:
        state = MessageState(message, self.step)
        self.states.append(state)
        self.free(state)

    def free(self, state: MessageState, latest_ms: int = 0) -> None:
        """It may go to somebody from now on, unless its deliver-at time is ahead.

        latest_ms: from when on it must; where messages are in order that is at once.
        """
        state.consumer = None
        state.free_since_step = self.step
        ordered = self.type in ORDERED
        state.wait("", self.now_ms, self.now_ms if ordered else max(latest_ms, self.now_ms))
        deliver_at_ms = state.message.deliver_at_ms
        if deliver_at_ms is not None and deliver_at_ms > self.now_ms and not ordered:
            # Seen before its time, on a subscription that was ordered then: either is right.
            earliest_ms = self.now_ms if state.delivered else deliver_at_ms
            state.wait("delay", earliest_ms, deliver_at_ms + TICK_MS)

    def redeliver(self, state: MessageState) -> None:
        """Its delay or timeout is over. Where messages are in order, all behind it come again."""
        state.lowest_count += 1
        state.highest_count += 1
        opened_ms = state.earliest_ms
        self.free(state)
        if opened_ms <= self.members_changed_ms:
            # It may have come due, and been given to somebody, before members changed.
            state.free_since_step = min(state.free_since_step, self.members_changed_step)
        if self.type in ORDERED:
            for later in self.states[state.message.index + 1 :]:
                if not later.acknowledged and later.waits_for in ("ack", "nack"):
                    # Its own refusal counts, and so may its timeout; to come along does not.
                    later.highest_count += (
                        later.waits_for == "nack" or self.now_ms >= later.earliest_ms
                    )
                    self.free(later)

    def let_time_pass(self, now_ms: int) -> None:
        """Everything that must have come due by now, in the order of time."""
        while True:
            due = [
                state
                for state in self.states
                if not state.acknowledged
                and state.waits_for in ("ack", "nack")
                and state.latest_ms <= now_ms
            ]
            if not due:
                break
            first = min(due, key=lambda state: (state.latest_ms, state.message.index))
            self.now_ms = max(self.now_ms, first.latest_ms)
            self.redeliver(first)
        self.now_ms = now_ms

    def give_back(self, consumer: str | None = None, may_wait: bool = False) -> None:
        """A consumer is gone; None: whoever had something. Whether a nack whose time had not come
        counts is left open, and with may_wait whether it still waits for that time."""
        for state in self.states:
            mine = state.consumer is not None and consumer in (None, state.consumer)
            if mine and not state.acknowledged:
                nacked = state.waits_for == "nack"
                state.highest_count += nacked or self.now_ms >= state.earliest_ms
                self.free(state, state.latest_ms if nacked and may_wait else 0)

    # -- consumers --------------------------------------------------------------------------------

    def active(self) -> str | None:
        """Exclusive and Failover: the highest priority, of those the one who came first."""
        return min(self.consumers, key=lambda name: self.consumers[name].priority, default=None)

    def may_join(self, consumer_type: str) -> bool:
        return not self.consumers or (self.type == consumer_type and self.type != EXCLUSIVE)

    def join(self, name: str, consumer_type: str, consumer: ConsumerModel) -> None:
        if not self.may_join(consumer_type):
            raise Violation(f"{name} joined as {consumer_type} though it is {self.type} and busy")
        active_before = self.active()
        if not self.consumers and self.type != consumer_type:
            self.type = consumer_type
            for state in self.states:
                if not state.acknowledged:
                    self.free(state, state.latest_ms if state.delivered else 0)
        self.consumers[name] = consumer
        self.members_changed()
        if self.type in ORDERED and active_before not in (None, self.active()):
            self.give_back()

    def leave(self, name: str) -> None:
        was_active = self.active() == name
        del self.consumers[name]
        self.members_changed()
        if self.type not in ORDERED:
            self.give_back(name)
        elif was_active:
            self.give_back()

    def members_changed(self) -> None:
        self.owners.clear()
        self.members_changed_step = self.step
        self.members_changed_ms = self.now_ms

    # -- what may be delivered --------------------------------------------------------------------

    def refusal(self, name: str, state: MessageState) -> str | None:
        """Why the message may not go to that consumer now; None: it may."""
        if name not in self.consumers:
            return "to a consumer that is not connected"
        if state.acknowledged:
            return "though it is acknowledged"
        if self.now_ms < state.earliest_ms:
            if state.outstanding():
                return f"while it is outstanding with {state.consumer}"
            return f"{state.earliest_ms - self.now_ms} ms early ({state.waits_for})"
        if self.type in ORDERED:
            return self.refusal_of_order(name, state)
        if self.type == KEY_SHARED and self.in_order:
            return self.refusal_of_key(name, state)
        return None

    def refusal_of_order(self, name: str, state: MessageState) -> str | None:
        if name != self.active():
            return f"to a stand-by of {self.active()}"
        for earlier in self.states[: state.message.index]:
            if not earlier.acknowledged and self.now_ms >= earlier.latest_ms:
                return f"before message {earlier.message.index}"
        return None

    def refusal_of_key(self, name: str, state: MessageState) -> str | None:
        for other in self.states_of_key(state):
            if other.outstanding():
                if other.consumer == name:
                    continue
                if self.now_ms < other.earliest_ms:
                    return f"while {other.consumer} has message {other.message.index} of its key"
            if other.message.index > state.message.index:
                continue
            # It may lie in a receiver queue since before the earlier one came due.
            if other.waits_for == "delay" and state.earliest_ms <= other.latest_ms:
                continue
            return f"before message {other.message.index} of its key"
        owner = self.owners.get(state.message.key, name)
        if owner != name and state.free_since_step > self.members_changed_step:
            return f"though its key belongs to {owner}"
        return None

    def states_of_key(self, state: MessageState) -> list[MessageState]:
        """The others of its key that are not acknowledged."""
        return [
            other
            for other in self.states
            if other.message.key == state.message.key
            and other is not state
            and not other.acknowledged
        ]

    def deliver(self, name: str, index: int, redelivery_count: int) -> None:
        state = self.states[index]
        reason = self.refusal(name, state)
        if reason is not None:
            raise Violation(f"message {index} went to {name} {reason}")
        since_change = state.free_since_step > self.members_changed_step
        if state.waits_for in ("ack", "nack"):
            self.redeliver(state)  # its window is open: it came due
        if not state.lowest_count <= redelivery_count <= state.highest_count:
            raise Violation(
                f"message {index} came with redelivery count {redelivery_count} and not "
                f"{state.lowest_count} .. {state.highest_count}"
            )
        if since_change:
            self.owners[state.message.key] = name
        state.lowest_count = state.highest_count = redelivery_count
        state.delivered = True
        state.consumer = name
        timeout_ms = self.consumers[name].ack_timeout_ms
        due_ms = self.now_ms + timeout_ms if timeout_ms else NEVER
        state.wait("ack", due_ms, due_ms + TICK_MS if timeout_ms else NEVER)

    # -- what must be delivered -------------------------------------------------------------------

    def overdue(self) -> list[int]:
        """What must have come when all consumers asked until none had anything."""
        return [state.message.index for state in self.states if self.must_go(state)]

    def must_go(self, state: MessageState) -> bool:
        if state.acknowledged or state.outstanding() or self.now_ms < state.latest_ms:
            return False
        takers = [name for name in self.consumers if self.refusal(name, state) is None]
        if self.type != KEY_SHARED or not self.in_order or len(self.consumers) == 1:
            return takers != []
        if any(other.outstanding() for other in self.states_of_key(state)):
            # It waits for the holder, unless the holder is who the key belongs to.
            return self.owners.get(state.message.key) in takers
        return takers != []


class TopicModel:
    """The topic. Call `do` with the name of a step; `history` can be done again on a new one."""

    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self.messages: list[PublishedMessage] = []
        self.subscriptions: dict[str, SubscriptionModel] = {}
        self.history: list[Step] = []

    def do(self, step: str, /, **arguments: Any) -> None:
        self.history.append((step, arguments))
        for subscription in self.subscriptions.values():
            subscription.step = len(self.history)
        try:
            getattr(self, "_" + step)(**arguments)
        except Violation as violation:
            raise Violation(f"{violation}\n{as_text(self.history)}") from None

    def _publish(self, key: str | None = None, deliver_at_ms: int | None = None) -> None:
        """One message; those of a batch one after the other."""
        message = PublishedMessage(len(self.messages), key, deliver_at_ms)
        self.messages.append(message)
        for subscription in self.subscriptions.values():
            subscription.add(message)

    def _subscribe(self, subscription: str, in_order: bool = True) -> None:
        """A new one, at the beginning of the topic."""
        made = self.subscriptions[subscription] = SubscriptionModel()
        made.now_ms, made.in_order = self.now_ms, in_order
        for message in self.messages:
            made.add(message)

    def _join(
        self,
        subscription: str,
        consumer: str,
        consumer_type: str,
        priority: int = 0,
        queue_size: int = 1000,
        ack_timeout_ms: int = 0,
    ) -> None:
        made = ConsumerModel(priority, queue_size, ack_timeout_ms)
        self.subscriptions[subscription].join(consumer, consumer_type, made)

    def _leave(self, subscription: str, consumer: str) -> None:
        self.subscriptions[subscription].leave(consumer)

    def _deliver(self, subscription: str, consumer: str, index: int, count: int = 0) -> None:
        self.subscriptions[subscription].deliver(consumer, index, count)

    def _drained(self, subscription: str) -> None:
        """Every consumer asked, and again until none of them got anything."""
        overdue = self.subscriptions[subscription].overdue()
        if overdue:
            raise Violation(f"{subscription} is stuck: nobody got {overdue}")

    def _prefetched(
        self, subscription: str, consumer: str, count: int, permits: int | None = None
    ) -> None:
        """So many messages lie in its receiver queue, so many more may come."""
        size = max(self.subscriptions[subscription].consumers[consumer].queue_size, 1)
        if not 0 <= count <= size or not 0 <= count + (permits or 0) <= size:
            raise Violation(
                f"{consumer} has {count} messages and {permits} permits in a queue of {size}"
            )

    def _backlog(self, subscription: str, count: int) -> None:
        """So many messages are not acknowledged."""
        states = self.subscriptions[subscription].states
        expected = sum(not state.acknowledged for state in states)
        if count != expected:
            raise Violation(f"{subscription} has a backlog of {count} and not {expected}")

    def _acknowledge(self, subscription: str, index: int) -> None:
        """By whomever, whether it was delivered or not."""
        self.subscriptions[subscription].states[index].acknowledged = True

    def _acknowledge_cumulative(self, subscription: str, index: int) -> None:
        for state in self.subscriptions[subscription].states[: index + 1]:
            state.acknowledged = True

    def _nack(self, subscription: str, consumer: str, index: int, delay_ms: int) -> None:
        """Only the one who has it can."""
        state = self.subscriptions[subscription].states[index]
        if not state.acknowledged and state.outstanding() and state.consumer == consumer:
            due_ms = self.now_ms + delay_ms
            gathered = self.subscriptions[subscription].type in ORDERED
            early_ms = min(delay_ms // 4, GATHERED_MS) if gathered else 0
            state.wait("nack", due_ms - early_ms, due_ms)

    def _redeliver(self, subscription: str, consumer: str) -> None:
        """redeliver_unacknowledged_messages."""
        found = self.subscriptions[subscription]
        if found.type not in ORDERED or found.active() == consumer:
            its = [
                state
                for state in found.states
                if not state.acknowledged and state.consumer == consumer
            ]
            for state in its:  # each counts, in order too
                nacked, due_ms = state.waits_for == "nack", state.latest_ms
                found.redeliver(state)
                if nacked:
                    found.free(state, due_ms)  # at once or at its time: left open

    def _advance(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
        for subscription in self.subscriptions.values():
            subscription.let_time_pass(self.now_ms)

    def _restart(self) -> None:
        """Closed or killed, and opened again: acknowledgements and counts stay, consumers go."""
        for subscription in self.subscriptions.values():
            subscription.consumers.clear()
            subscription.members_changed()
            subscription.give_back(may_wait=True)

    def _finished(self, subscription: str) -> None:
        """Nothing is lost: everything was acknowledged in the end."""
        states = self.subscriptions[subscription].states
        missing = [state.message.index for state in states if not state.acknowledged]
        if missing:
            raise Violation(f"{subscription} never got rid of {missing}")


def as_text(history: list[Step]) -> str:
    """A step a line; arguments that are 0 or None are left out."""
    return "\n".join(
        " ".join([step, *(f"{name}={value}" for name, value in arguments.items() if value)])
        for step, arguments in history
    )


def replay(history: list[Step]) -> TopicModel:
    """Do it all on a new topic; raises the Violation it contains."""
    model = TopicModel()
    for step, arguments in history:
        model.do(step, **arguments)
    return model
