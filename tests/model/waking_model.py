"""Waking up, as a small model of which every interleaving is tried.

A process is a table of steps; a step is atomic, changes the state it is given and answers the label
of the next one. `explore` runs every order of the steps of all processes and asks, wherever none
can go on, whether somebody waits who should not. The processes are the parties of the real thing:

  publisher     ManagedLedger, LedgerTail and the core's append: a ledger appears, grows, the next
  switcher      a publisher that finds the ledger full and the next one prepared: LedgerTail alone
  flusher       durability sync: ledger_append_flush, and LedgerPublisher.make_durable
  lane          ManagedLedger.settle_left
  sleeper       ConsumerCore.receive, on a WaitEvent
  asker         receive_async, and cancel: ReceiveQueue
  pool thread   SerialWork: completes futures
  seeker        moves the reader back
  closer        closes the consumer, then the pool
  taker         MultiConsumerCore.receive, on the flags of its topics
  forwarder     the thread of a connection that publishes for another process: OwnerLink.wake_soon

A defect is a name that a step looks for: with it in `defects` the step does what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

State = dict[str, Any]
Step = Callable[[State, str], str]
END = "end"


class Blocked(Exception):
    """The step cannot be taken yet."""


class Process:
    """Steps by their labels; begins at the first."""

    def __init__(self, name: str, steps: dict[str, Step]) -> None:
        self.name = name
        self.steps = steps


class LostWaking(Exception):
    """An order of steps behind which somebody waits for ever."""


def explore(
    state: State, processes: list[Process], verdict: Callable[[State, dict[str, str]], str | None]
) -> int:
    """Try every order; how many states there are. LostWaking: the verdict on one in which nobody
    can go on, and the steps that led there."""
    steps = {each.name: each.steps for each in processes}
    first = {each.name: next(iter(each.steps)) for each in processes}
    seen = {key_of(state, first)}
    todo: list[tuple[State, dict[str, str], Any]] = [(state, first, None)]
    while todo:
        state, at, path = todo.pop()
        moved = False
        for name, label, after in moves(state, at, steps):
            moved = True
            then = {**at, name: label}
            key = key_of(after, then)
            if key not in seen:
                seen.add(key)
                todo.append((after, then, (path, f"{name}: {at[name]}")))
        if not moved and (wrong := verdict(state, at)) is not None:
            raise LostWaking("\n".join([wrong, *reversed(list(told(path)))]))
    return len(seen)


def moves(
    state: State, at: dict[str, str], steps: dict[str, dict[str, Step]]
) -> Iterator[tuple[str, str, State]]:
    for name, label in at.items():
        if label != END:
            after = {each: copied(value) for each, value in state.items()}
            try:
                yield name, steps[name][label](after, name), after
            except Blocked:
                pass


def copied(value: Any) -> Any:
    return value.copy() if isinstance(value, (dict, list, set)) else value


def key_of(state: State, at: dict[str, str]) -> tuple[Any, ...]:
    return (*map(frozen, state.values()), *at.values())


def frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(sorted(value.items()))
    if isinstance(value, set):
        return frozenset(value)
    return tuple(value) if isinstance(value, list) else value


def told(path: Any) -> Iterator[str]:
    while path is not None:
        path, line = path
        yield f"  {line}"


# The topic and its reader ---------------------------------------------------------------------


def new_topic(*defects: str) -> State:
    return {
        "defects": frozenset(defects),
        # the topic: ledgers are numbered from 1
        "catalogue": 0,  # the newest ledger that readers are told of
        "registered": 0,  # the newest whose writer can be found
        "tail": 0,  # the one that entries go to
        "prepared": 0,  # known to the catalogue, and not yet to readers; 0: none
        "changes": 0,  # of the list of ledgers, counted
        "seen changes": -1,  # by the reader, when there was no ledger to go on with
        "written": {},  # ledger: messages; only where they are flushed later
        "published": {},  # ledger: messages
        "spans": {},  # ledger: whether a reader takes it for one that grows
        # the reader
        "passed": 0,  # the ledger it reads or has read
        "offset": 0,  # messages of it that were taken
        "open": True,
        # WaitEvent
        "event": 0,
        "waiters": 0,
        "asleep": set(),
        "seen": {},  # sleeper: the event when it entered
        # ReceiveQueue and SerialWork
        "lock": "",
        "futures": [],  # that wait
        "watching": False,
        "due": False,
        "taken": False,
        "jobs": [],
        "pool closed": False,
        # OwnerLink
        "kept wake": False,
        # what came of it
        "results": {},  # future or sleeper: what it got
    }


def look(s: State) -> int | None:
    """LedgerReader.next_entry, with the mutex: the next message, None when there is none."""
    while True:
        if s["passed"]:
            grows = s["spans"][s["passed"]]
            if grows and s["published"].get(s["passed"], 0) > s["offset"]:
                s["offset"] += 1
                return s["passed"] * 100 + s["offset"]
            if grows and s["passed"] == s["tail"]:
                return None
            if (
                grows
                and not is_final(s, s["passed"])
                and ("a reader does not ask whether a full ledger is durable" not in s["defects"])
            ):
                return None
        if s["seen changes"] == s["changes"]:
            return None
        if s["passed"] >= listed(s):
            s["seen changes"] = s["changes"]
            return None
        s["passed"] += 1
        s["seen changes"] = -1
        s["offset"] = 0
        # Without a writer it is taken for a sealed one, and kept as that.
        s["spans"].setdefault(s["passed"], s["passed"] <= s["registered"])


def is_final(s: State, ledger: int) -> bool:
    """ledger_append_is_final."""
    published: int = s["published"].get(ledger, 0)
    return published == s["written"].get(ledger, published)


def listed(s: State) -> int:
    """ManagedLedger.ledgers: the last one; a prepared one counts when it is in use."""
    newest: int = s["catalogue"]
    if newest != s["prepared"]:
        return newest
    if s["tail"] < newest:
        return newest - 1
    return newest if is_final(s, newest - 1) else newest - 1


def has_more(s: State) -> bool:
    return look({name: copied(value) for name, value in s.items()}) is not None


def unread(s: State) -> int:
    """Messages that were published and not taken, whatever the reader believes."""
    total = sum(s["published"].values())
    before = sum(count for ledger, count in s["published"].items() if ledger < s["passed"])
    return total - before - (s["offset"] if s["passed"] else 0)


# WaitEvent ------------------------------------------------------------------------------------


def ring(s: State) -> None:
    """wait_event_wake, whose steps nobody can come between to any effect but one: see `wakes`."""
    s["event"] += 1
    s["asleep"] = set()


def due(s: State) -> None:
    """SerialWork.due: one step under the interpreter's lock."""
    s["due"] = True
    if not s["taken"]:
        s["taken"] = True
        s["jobs"].append("work")


def notify(s: State) -> None:
    """LedgerTail.notify."""
    if s["watching"]:
        due(s)


def waking(after: str, label: str = "") -> dict[str, Step]:
    """The steps of LedgerTail.wake: is anybody waiting, wake them, tell the watchers."""

    def count(s: State, me: str) -> str:
        return f"{label}wake" if s["waiters"] else f"{label}notify"

    def wake(s: State, me: str) -> str:
        ring(s)
        return f"{label}notify"

    def tell(s: State, me: str) -> str:
        notify(s)
        return after

    return {f"{label}count waiters": count, f"{label}wake": wake, f"{label}notify": tell}


# The parties ----------------------------------------------------------------------------------


def publisher(counts: list[int]) -> Process:
    """So many messages to each of as many ledgers."""
    steps: dict[str, Step] = {}

    def then(label: str, change: Callable[[State], None], after: str) -> None:
        def step(s: State, me: str) -> str:
            change(s)
            return after

        steps[label] = step

    def register(s: State, number: int) -> None:
        s["registered"] = number

    def commit(s: State, number: int) -> None:
        s["catalogue"] = number

    def switch(s: State, number: int) -> None:
        s["tail"] = number
        s["changes"] += 1

    def append(s: State, number: int) -> None:
        s["published"][number] = s["published"].get(number, 0) + 1

    for number, count in enumerate(counts, 1):
        here = f"{number} "

        def change(what: Callable[[State, int], None], n: int = number) -> Callable[[State], None]:
            return lambda s: what(s, n)

        def first(s: State, me: str, n: int = number, here: str = here) -> str:
            early = "the catalogue tells before the writer is registered" in s["defects"]
            (commit if early else register)(s, n)
            return f"{here}second"

        def second(s: State, me: str, n: int = number, here: str = here) -> str:
            early = "the catalogue tells before the writer is registered" in s["defects"]
            (register if early else commit)(s, n)
            return f"{here}switch"

        steps[f"{here}register or commit"] = first
        steps[f"{here}second"] = second
        begin = f"{here}0 append"
        then(f"{here}switch", change(switch), f"{here}s count waiters")
        steps |= waking(begin, f"{here}s ")
        for message in range(count):
            last = message + 1 == count
            after = f"{here}{message + 1} append"
            if last:
                after = END if number == len(counts) else f"{number + 1} register or commit"
            label = f"{here}{message} "

            def count_first(s: State, me: str, n: int = number, label: str = label) -> str:
                # The defect: who came to wait since is not seen.
                early = "the waker counts waiters before its change" in s["defects"]
                waiters = s["waiters"]
                if not early:
                    append(s, n)
                    return f"{label}count waiters"
                return f"{label}late, wakes" if waiters else f"{label}late"

            steps[f"{label}append"] = count_first
            then(f"{label}late", change(append), f"{label}notify")
            then(f"{label}late, wakes", change(append), f"{label}wake")
            steps |= waking(after, label)
    return Process("publisher", steps)


def prepared_topic(*defects: str) -> State:
    """One message in a ledger that is full now, written and not flushed; the next is prepared."""
    state = new_topic(*defects)
    state |= {"catalogue": 2, "registered": 2, "tail": 1, "prepared": 2, "passed": 1}
    return state | {"spans": {1: True}, "written": {1: 1}, "published": {1: 0}}


def switcher(interrupted: bool = False) -> Process:
    """LedgerTail.use_prepared, one step, and its waking; then one message, flushed with what is in
    front of it. interrupted: it leaves before its message."""

    def switch(s: State, me: str) -> str:
        s["tail"] = 2
        s["changes"] += 1
        return "s count waiters"

    def append(s: State, me: str) -> str:
        s["written"][2] = 1
        return "flush first"

    def flush_first(s: State, me: str) -> str:
        s["published"][1] = 1
        return "f count waiters"

    def flush(s: State, me: str) -> str:
        s["published"][2] = 1
        return "count waiters"

    steps = {"switch": switch, **waking(END if interrupted else "append", "s "), "append": append}
    steps |= {"flush first": flush_first, **waking("flush", "f "), "flush": flush, **waking(END)}
    return Process("switcher", steps)


def flusher() -> Process:
    """Who published the message in the full ledger flushes it."""

    def flush(s: State, me: str) -> str:
        s["published"][1] = 1
        silent = "a full ledger that becomes durable tells nobody" in s["defects"]
        return END if silent else "count waiters"

    return Process("flusher", {"flush": flush, **waking(END)})


def lane() -> Process:
    """After the switch: the full ledger is made durable, and those who wait look once more."""

    def settle(s: State, me: str) -> str:
        if s["tail"] != 2:
            raise Blocked
        s["published"][1] = 1
        silent = "a full ledger that becomes durable tells nobody" in s["defects"]
        return END if silent else "changed"

    def changed(s: State, me: str) -> str:
        s["changes"] += 1
        return "count waiters"

    return Process("lane", {"settle": settle, "changed": changed, **waking(END)})


def sleeper(name: str) -> Process:
    """ConsumerCore.receive: one message."""

    def take(s: State, me: str) -> str:
        if not s["open"]:
            s["results"][me] = "closed"
            return END
        message = look(s)
        if message is None:
            return "enter"
        s["results"][me] = message
        return END

    def enter(s: State, me: str) -> str:
        s["waiters"] += 1
        s["seen"][me] = s["event"]
        if "a sleeper does not look again" in s["defects"]:
            return "sleep"
        return "look again"

    def look_again(s: State, me: str) -> str:
        return "leave" if not s["open"] or has_more(s) else "sleep"

    def sleep(s: State, me: str) -> str:
        if s["event"] != s["seen"][me]:
            return "leave"
        s["asleep"].add(me)
        return "asleep"

    def asleep(s: State, me: str) -> str:
        if me in s["asleep"]:
            raise Blocked
        return "leave"

    def leave(s: State, me: str) -> str:
        s["waiters"] -= 1
        return "take"

    steps = {
        "take": take, "enter": enter, "look again": look_again, "sleep": sleep, "asleep": asleep,
        "leave": leave,
    }  # fmt: skip
    return Process(name, steps)


def update_watch(s: State) -> None:
    """ReceiveQueue.watch."""
    s["watching"] = bool(s["futures"])


def acquire(after: str) -> Step:
    def step(s: State, me: str) -> str:
        if s["lock"]:
            raise Blocked
        s["lock"] = me
        return after

    return step


def asker(name: str, futures: list[str], cancels: tuple[str, ...] = ()) -> Process:
    """receive_async so often; those of `cancels` are cancelled at once."""
    steps: dict[str, Step] = {}
    for number, future in enumerate(futures):
        after = f"{futures[number + 1]} lock" if number + 1 < len(futures) else END

        def look_now(s: State, me: str, future: str = future, after: str = after) -> str:
            message = None if s["futures"] else look(s)
            if not s["open"]:
                message = "closed"
            if message is None:
                return f"{future} append"
            s["results"][future] = message
            s["lock"] = ""
            return after

        def append(s: State, me: str, future: str = future) -> str:
            s["futures"].append(future)
            update_watch(s)
            s["lock"] = ""
            return f"{future} due"

        def tell(s: State, me: str, future: str = future) -> str:
            if "a future that came to wait looks no more" not in s["defects"]:
                due(s)
            return f"{future} is open"

        def is_open(s: State, me: str, future: str = future, after: str = after) -> str:
            following = f"{future} cancel" if future in cancels else after
            if s["open"] or "a future does not ask whether it is open still" in s["defects"]:
                return following
            if s["lock"]:
                raise Blocked
            for each in s["futures"]:
                s["results"][each] = "closed"
            s["futures"] = []
            update_watch(s)
            return following

        def cancel(s: State, me: str, future: str = future, after: str = after) -> str:
            """ReceiveQueue.give_up."""
            if s["lock"]:
                raise Blocked
            if future in s["futures"]:
                s["futures"].remove(future)
                s["results"][future] = "cancelled"
                if "cancelling one unwatches for all" in s["defects"]:
                    s["watching"] = False
                else:
                    update_watch(s)
            return after

        steps[f"{future} lock"] = acquire(f"{future} look")
        steps[f"{future} look"] = look_now
        steps[f"{future} append"] = append
        steps[f"{future} due"] = tell
        steps[f"{future} is open"] = is_open
        steps[f"{future} cancel"] = cancel
    return Process(name, steps)


def pool_thread() -> Process:
    """WorkPool.run and SerialWork.__call__, with `serve` as the step."""

    def get(s: State, me: str) -> str:
        if not s["jobs"]:
            raise Blocked
        if s["jobs"].pop(0) == "end":
            return END
        if "a step forgets what fell due while it ran" not in s["defects"]:
            s["due"] = False
        return "lock"

    def claim(s: State, me: str) -> str:
        """ReceiveQueue.claim_next."""
        s["lock"] = ""
        if not s["futures"]:
            return "not taken"
        message: Any = "closed" if not s["open"] else look(s)
        if message is None:
            return "not taken"
        s["results"][s["futures"].pop(0)] = message
        update_watch(s)
        return "lock"

    def not_taken(s: State, me: str) -> str:
        if "a step forgets what fell due while it ran" in s["defects"]:
            s["due"] = False
        s["taken"] = False
        return "again"

    def again(s: State, me: str) -> str:
        if not s["due"]:
            return "get"
        asks = "a step asks a closed pool to run it again" in s["defects"]
        if not s["pool closed"] or asks:
            due(s)
            return "get"
        s["due"] = False
        s["taken"] = True
        return "lock"

    steps = {
        "get": get, "lock": acquire("claim"), "claim": claim, "not taken": not_taken,
        "again": again,
    }  # fmt: skip
    return Process("pool thread", steps)


def read_topic(*defects: str) -> State:
    """One message, which was published and taken."""
    state = new_topic(*defects)
    state |= {"catalogue": 1, "registered": 1, "tail": 1, "passed": 1, "offset": 1}
    return state | {"published": {1: 1}, "spans": {1: True}}


def seeker() -> Process:
    """Subscription.seek to the earliest message."""

    def reset(s: State, me: str) -> str:
        s["passed"] = s["offset"] = 0
        s["seen changes"] = -1
        return END if "a seek tells nobody" in s["defects"] else "count waiters"

    return Process("seeker", {"reset": reset, **waking(END)})


def closer() -> Process:
    """Client.close: ConsumerCore.shut, then WorkPool.close."""

    def shut(s: State, me: str) -> str:
        s["open"] = False
        return "end the pool" if "a close tells nobody" in s["defects"] else "count waiters"

    def end(s: State, me: str) -> str:
        s["pool closed"] = True
        s["jobs"].append("end")
        return END

    return Process("closer", {"shut": shut, **waking("end the pool"), "end the pool": end})


def nobody_waits_in_vain(s: State, at: dict[str, str]) -> str | None:
    """What is wrong where nothing goes on any more; None: nothing is."""
    waiting = sorted(s["asleep"]) + s["futures"]
    if not s["open"] and waiting:
        return f"the consumer is closed, and {waiting} wait"
    if unread(s) and s["open"] and waiting:
        return f"{unread(s)} messages can be had, and {waiting} wait"
    stuck = [name for name, label in at.items() if label not in (END, "asleep", "get")]
    return f"{stuck} cannot go on" if stuck else None


# Several topics -------------------------------------------------------------------------------


def new_topics(count: int, *defects: str) -> State:
    return {
        "defects": frozenset(defects),
        "messages": dict.fromkeys(range(count), 0),
        "rung": dict.fromkeys(range(count), True),
        "ready": list(range(count)),
        "event": 0,
        "waiters": 0,
        "asleep": set(),
        "seen": {},
        "results": {},
        "left": {},
    }


def ring_once(s: State, topic: int) -> None:
    if not s["rung"][topic]:
        s["rung"][topic] = True
        s["ready"].append(topic)


def flag_publisher(topic: int, name: str) -> Process:
    """One message to one topic, whose flag it sets."""

    def append(s: State, me: str) -> str:
        s["messages"][topic] += 1
        return "set"

    def set_flag(s: State, me: str) -> str:
        ring_once(s, topic)
        return "wake"

    def wake(s: State, me: str) -> str:
        if s["waiters"]:
            ring(s)
        return END

    return Process(name, {"append": append, "set": set_flag, "wake": wake})


def taker(name: str, topics: int, by_priority: bool = False) -> Process:
    """MultiConsumerCore.receive: one message of any topic. by_priority: of the first one that rang,
    by its number."""

    def pop(s: State, me: str) -> str:
        if not s["ready"]:
            return "enter"
        topic = min(s["ready"]) if by_priority else s["ready"][0]
        s["ready"].remove(topic)
        if "a flag is cleared behind the look" not in s["defects"]:
            s["rung"][topic] = False
        return f"{topic} take" if topic < topics else "pop"  # it was dropped

    steps: dict[str, Step] = {"pop": pop}
    for topic in range(topics):

        def take(s: State, me: str, topic: int = topic) -> str:
            if not s["messages"][topic]:
                return f"{topic} clear late"
            s["messages"][topic] -= 1
            s["results"][me] = topic
            return f"{topic} ring"

        def clear_late(s: State, me: str, topic: int = topic) -> str:
            if "a flag is cleared behind the look" in s["defects"]:
                s["rung"][topic] = False
            return "pop"

        def ring_again(s: State, me: str, topic: int = topic) -> str:
            if "a flag stays cleared behind a message" in s["defects"]:
                return END
            ring_once(s, topic)
            return "wake others"

        steps |= {
            f"{topic} take": take,
            f"{topic} clear late": clear_late,
            f"{topic} ring": ring_again,
        }

    def wake_others(s: State, me: str) -> str:
        if s["waiters"]:
            ring(s)
        return END

    def enter(s: State, me: str) -> str:
        s["waiters"] += 1
        s["seen"][me] = s["event"]
        return "look at flags"

    def look_at_flags(s: State, me: str) -> str:
        return "leave" if s["ready"] else "sleep"

    def sleep(s: State, me: str) -> str:
        if s["event"] != s["seen"][me]:
            return "leave"
        s["asleep"].add(me)
        return "asleep"

    def asleep(s: State, me: str) -> str:
        if me in s["asleep"]:
            raise Blocked
        return "leave"

    def leave(s: State, me: str) -> str:
        s["waiters"] -= 1
        return "pop"

    steps |= {
        "wake others": wake_others, "enter": enter, "look at flags": look_at_flags,
        "sleep": sleep, "asleep": asleep, "leave": leave,
    }  # fmt: skip
    return Process(name, steps)


def no_topic_waits_in_vain(s: State, at: dict[str, str]) -> str | None:
    left = sum(s["messages"].values())
    if left and s["asleep"]:
        return f"{left} messages can be had, and {sorted(s['asleep'])} sleep"
    stuck = [name for name, label in at.items() if label not in (END, "asleep")]
    return f"{stuck} cannot go on" if stuck else None


# A connection, whose reading thread publishes ----------------------------------------------------


def forwarder(count: int) -> Process:
    """So many messages of another process: LedgerPublisher.wake, and OwnerLink.wait behind them."""
    steps: dict[str, Step] = {}
    for number in range(count):
        after = f"{number + 1} append" if number + 1 < count else "wake kept"

        def append(s: State, me: str, number: int = number) -> str:
            s["published"][1] = s["published"].get(1, 0) + 1
            return f"{number} keep"

        def keep(s: State, me: str, after: str = after) -> str:
            if s["waiters"]:
                s["kept wake"] = True
            return after

        steps |= {f"{number} append": append, f"{number} keep": keep}

    def wake_kept(s: State, me: str) -> str:
        if "the thread of a connection sleeps before it wakes" in s["defects"]:
            return "sleep"
        if s["kept wake"]:
            ring(s)
        s["kept wake"] = False
        return "sleep"

    def sleep(s: State, me: str) -> str:
        """Nothing more comes."""
        return END

    return Process("forwarder", steps | {"wake kept": wake_kept, "sleep": sleep})
