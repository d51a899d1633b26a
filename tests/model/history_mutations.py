"""Ways to break a history of a topic, for tests of the model: each is a thing no broker may do."""

from __future__ import annotations

import random
from typing import Any

from simulated_histories import NAME
from topic_model import KEY_SHARED, ORDERED, SHARED, Step, TopicModel


class Replay:
    """What the model knows after the beginning of a history."""

    def __init__(self, history: list[Step]) -> None:
        self.model = TopicModel()
        for step, arguments in history:
            self.model.do(step, **arguments)

    def consumers(self) -> list[str]:
        found = self.model.subscriptions.get(NAME)
        return list(found.consumers) if found else []

    def overdue(self) -> list[int]:
        return self.model.subscriptions[NAME].overdue()

    def key_is_held(self, index: int) -> bool:
        subscription = self.model.subscriptions[NAME]
        states = subscription.states_of_key(subscription.states[index])
        return any(
            state.outstanding() and state.earliest_ms > subscription.now_ms for state in states
        )


class Mutations:
    """Ways to break a history. Each answers a broken copy, or None where it finds no place."""

    def __init__(self, history: list[Step], consumer_type: str, chance: random.Random) -> None:
        self.history = history
        self.type = consumer_type
        self.chance = chance
        self.deliveries = [at for at, (step, _) in enumerate(history) if step == "deliver"]
        self.messages = [arguments for step, arguments in history if step == "publish"]

    def index(self, at: int) -> int:
        return int(self.history[at][1]["index"])

    def first_deliveries(self) -> list[int]:
        seen: set[int] = set()
        found = []
        for at in self.deliveries:
            if self.index(at) not in seen:
                seen.add(self.index(at))
                found.append(at)
        return found

    def without(self, start: int, index: int) -> list[Step]:
        """No step about the message from start on: its user never sees it again."""
        rest = [
            (step, arguments)
            for step, arguments in self.history[start:]
            if arguments.get("index") != index
            and step != "finished"
            and not (step == "acknowledge_cumulative" and arguments["index"] > index)
        ]
        return self.history[:start] + rest

    def with_step(self, at: int, step: str, **arguments: Any) -> list[Step]:
        """The history up to at, then the step: nothing after it matters."""
        return [*self.history[:at], (step, {"subscription": NAME, **arguments})]

    def pick(self, places: list[Any]) -> Any:
        return self.chance.choice(places) if places else None

    def consumer_at(self, end: int) -> str | None:
        """Somebody who is connected then."""
        connected: dict[str, None] = {}
        for step, arguments in self.history[:end]:
            if step == "join":
                connected[arguments["consumer"]] = None
            elif step == "leave":
                del connected[arguments["consumer"]]
            elif step == "restart":
                connected.clear()
        return next(iter(connected), None)

    def state_before(self, at: int) -> Replay:
        return Replay(self.history[:at])

    def lost_message(self) -> list[Step] | None:
        at = self.pick(self.first_deliveries())
        return None if at is None else self.without(at, self.index(at))

    def dropped_redelivery(self) -> list[Step] | None:
        at = self.pick(sorted(set(self.deliveries) - set(self.first_deliveries())))
        return None if at is None else self.without(at, self.index(at))

    def swapped_order(self) -> list[Step] | None:
        """Two messages of a key that came one after the other come the other way round."""
        if self.type == SHARED:
            return None
        pairs = []
        first = self.first_deliveries()
        for one in first:
            for other in first:
                between = self.history[one + 1 : other]
                same_key = self.key(one) == self.key(other) or self.type != KEY_SHARED
                quiet = all(step == "deliver" for step, _ in between)
                undelayed = not (self.is_delayed(one) or self.is_delayed(other))
                if one < other and same_key and quiet and undelayed:
                    pairs.append((one, other))
        pair = self.pick(pairs)
        if pair is None:
            return None
        swapped = list(self.history)
        swapped[pair[0]], swapped[pair[1]] = swapped[pair[1]], swapped[pair[0]]
        return swapped

    def key(self, at: int) -> Any:
        return self.messages[self.index(at)]["key"]

    def is_delayed(self, at: int) -> bool:
        return self.messages[self.index(at)]["deliver_at_ms"] is not None

    def twice_while_outstanding(self) -> list[Step] | None:
        at = self.pick(self.deliveries)
        return None if at is None else self.with_step(at + 1, "deliver", **self.arguments(at))

    def arguments(self, at: int) -> dict[str, Any]:
        return {name: self.history[at][1][name] for name in ("consumer", "index", "count")}

    def to_another_consumer(self) -> list[Step] | None:
        """While one has a message of the key (or is the active one)."""
        if self.type in (SHARED, "Exclusive"):
            return None
        places = []
        for at in self.deliveries:
            replay = self.state_before(at)
            others = set(replay.consumers()) - {self.history[at][1]["consumer"]}
            busy = self.type in ORDERED or replay.key_is_held(self.index(at))
            places += [(at, name) for name in sorted(others) if busy]
        place = self.pick(places)
        if place is None:
            return None
        at, name = place
        return self.with_step(at, "deliver", **{**self.arguments(at), "consumer": name})

    def early(self) -> list[Step] | None:
        """A delayed message right after it was published, a nacked one right after the nack."""
        places: list[list[Step]] = []
        for at, (step, arguments) in enumerate(self.history):
            consumer = self.consumer_at(at)
            if consumer is None:
                continue
            if step == "publish" and arguments["deliver_at_ms"] and self.type not in ORDERED:
                index = sum(one == "publish" for one, _ in self.history[:at])
                places.append(
                    self.with_step(at + 1, "deliver", consumer=consumer, index=index, count=0)
                )
            if step == "nack" and arguments["delay_ms"] > 0:
                again = {"consumer": arguments["consumer"], "index": arguments["index"]}
                places.append(self.with_step(at + 1, "deliver", **again, count=1))
        found: list[Step] | None = self.pick(places)
        return found

    def acknowledged_comes_back(self) -> list[Step] | None:
        """After the next restart, to whoever is there."""
        places: list[list[Step]] = []
        for at in range(len(self.history)):
            acknowledged = [
                arguments["index"]
                for step, arguments in self.history[:at]
                if step.startswith("acknowledge")
            ]
            restarted = any(step == "restart" for step, _ in self.history[:at])
            consumer = self.consumer_at(at)
            if acknowledged and restarted and consumer:
                again = {"consumer": consumer, "index": self.chance.choice(acknowledged)}
                places.append(self.with_step(at, "deliver", **again, count=0))
        found: list[Step] | None = self.pick(places)
        return found

    def stuck(self) -> list[Step] | None:
        """Everything that came between two drains does not come."""
        for end in [at for at, (step, _) in enumerate(self.history) if step == "drained"]:
            start = end
            while self.history[start - 1][0] == "deliver":
                start -= 1
            if start < end and self.state_before(start).overdue():
                return self.history[:start] + self.history[end : end + 1]
        return None

    def wrong_count(self) -> list[Step] | None:
        at = self.pick(self.deliveries)
        if at is None:
            return None
        changed = self.arguments(at)
        return self.with_step(at, "deliver", **{**changed, "count": changed["count"] + 5})

    def too_much_prefetched(self) -> list[Step] | None:
        at = self.pick(self.deliveries)
        if at is None:
            return None
        consumer = self.history[at][1]["consumer"]
        return self.with_step(at, "prefetched", consumer=consumer, count=1001)
