"""Reading a connection beside the owner, as a small model of which every interleaving is tried: see
waking_model.

  owner           the other end, which sends frames
  reading thread  OwnerLink.wait, and what its caller does with what came
  caller          ConsumerCore.receive: OwnerLink.lead
  closer          closes the consumers
"""

from __future__ import annotations

from waking_model import END, Blocked, LostWaking, Process, State, Step


def new_link(callers: list[str], *defects: str) -> State:
    """The reading thread has not begun, and everybody waits for what comes over the connection."""
    return {
        "defects": frozenset(defects),
        "callers": tuple(callers),
        "socket": [],  # frames that were sent and not read: whom they are for, or "cold"
        "taken": [],  # frames that a caller read and left
        "came": [],  # frames that the reading thread has in hand
        "read by": "nobody",
        "armed": True,  # the poller of the reading thread looks for the socket
        "left": False,
        "rung": False,  # the reading thread, by what was left to it
        "wanted": "",  # the caller that would have read
        "queue": dict.fromkeys(callers, 0),  # messages that have arrived
        "cold": 0,  # frames that the reading thread did which nobody else does
        "event": dict.fromkeys(callers, 0),
        "waiters": dict.fromkeys(callers, 0),
        "seen": {},
        "asleep": set(),  # on their event
        "watches": set(),  # whose bell is rung with their event
        "heard": set(),  # who is about to sleep in poll, or sleeps
        "bell": set(),  # whose eventfd is set
        "open": True,
        "results": {},
    }


def wake_caller(s: State, name: str) -> None:
    """LedgerTail.wake of the event of one caller; the GIL is held behind the change."""
    if s["waiters"][name]:
        s["event"][name] += 1
        s["asleep"].discard(name)
    if name in s["watches"] and name in s["heard"]:
        s["bell"].add(name)


def do_frame(s: State, frame: str) -> None:
    if frame in s["queue"]:
        s["queue"][frame] += 1
        wake_caller(s, frame)
    else:
        s["cold"] += 1


def owner(frames: list[str]) -> Process:
    """Sends frames, one after the other."""
    steps: dict[str, Step] = {}
    for number, frame in enumerate(frames):
        after = f"send {number + 1}" if number + 1 < len(frames) else END

        def send(s: State, me: str, frame: str = frame, after: str = after) -> str:
            s["socket"].append(frame)
            return after

        steps[f"send {number}"] = send
    return Process("owner", steps)


def reading_thread() -> Process:
    """OwnerLink.wait, and its caller."""

    def end_reading(s: State, me: str) -> str:
        if s["read by"] == "thread":
            s["read by"] = "nobody"
        if s["wanted"] and "who would have read is not told" not in s["defects"]:
            wake_caller(s, s["wanted"])
        s["wanted"] = ""
        return "arm"

    def arm(s: State, me: str) -> str:
        s["armed"] = s["read by"] != "caller"
        return "poll"

    def poll(s: State, me: str) -> str:
        if s["rung"]:
            s["rung"] = False
            return "take left"
        if s["armed"] and s["socket"]:
            return "begin"
        raise Blocked

    def begin(s: State, me: str) -> str:
        if s["read by"] == "caller":
            return "arm"
        s["read by"] = "thread"
        return "read"

    def read(s: State, me: str) -> str:
        s["came"], s["socket"] = s["socket"], []
        return "take left"

    def take_left(s: State, me: str) -> str:
        if s["left"]:
            if s["read by"] == "caller":
                raise LostWaking("two read the connection at a time")
            s["left"] = False
            s["read by"] = "thread"
        if s["read by"] == "thread":
            s["came"], s["taken"] = [*s["taken"], *s["came"]], []
        return "do"

    def do(s: State, me: str) -> str:
        if not s["came"]:
            return "end reading"
        do_frame(s, s["came"].pop(0))
        return "do"

    steps = {
        "end reading": end_reading, "arm": arm, "poll": poll, "begin": begin, "read": read,
        "take left": take_left, "do": do,
    }  # fmt: skip
    return Process("reading thread", steps)


def caller(name: str) -> Process:
    """ConsumerCore.receive: one message."""

    def take(s: State, me: str) -> str:
        if s["queue"][me]:
            s["queue"][me] -= 1
            s["results"][me] = "a message"
            return END
        if not s["open"]:
            s["results"][me] = "closed"
            return END
        s["waiters"][me] += 1
        s["seen"][me] = s["event"][me]
        return "look again"

    def look_again(s: State, me: str) -> str:
        return "leave" if s["queue"][me] or not s["open"] else "begin leading"

    def begin_leading(s: State, me: str) -> str:
        blocked = s["left"] and "a caller reads on although something is left" not in s["defects"]
        if s["read by"] == "nobody" and not blocked:
            s["read by"] = "caller"
            s["armed"] = False
            return "watch"
        if s["read by"] != "caller":
            s["wanted"] = me
        return "sleep"

    def watch(s: State, me: str) -> str:
        """One step under the GIL with the look at the event, up to the sleep."""
        s["watches"].add(me)
        return "hear"

    def hear(s: State, me: str) -> str:
        s["heard"].add(me)
        looks = "a caller does not look whether its event has moved" not in s["defects"]
        if looks and s["event"][me] != s["seen"][me]:
            return "give"
        return "poll"

    def poll(s: State, me: str) -> str:
        if me not in s["bell"] and not s["socket"]:
            raise Blocked
        s["bell"].discard(me)
        return "cut"

    def cut(s: State, me: str) -> str:
        s["heard"].discard(me)
        while s["socket"]:
            s["taken"].append(s["socket"].pop(0))
        while s["taken"] and s["taken"][0] in s["queue"]:
            do_frame(s, s["taken"].pop(0))
        return "give" if s["taken"] else "hear"

    def give(s: State, me: str) -> str:
        s["heard"].discard(me)
        s["watches"].discard(me)
        s["read by"] = "nobody"
        s["armed"] = "the poller does not look for the socket again" not in s["defects"]
        if s["taken"]:
            s["left"] = True
            s["rung"] = "what is left is told to nobody" not in s["defects"]
        return "leave"

    def sleep(s: State, me: str) -> str:
        if s["event"][me] != s["seen"][me]:
            return "leave"
        s["asleep"].add(me)
        return "asleep"

    def asleep(s: State, me: str) -> str:
        if me in s["asleep"]:
            raise Blocked
        return "leave"

    def leave(s: State, me: str) -> str:
        s["waiters"][me] -= 1
        return "take"

    steps = {
        "take": take, "look again": look_again, "begin leading": begin_leading, "watch": watch,
        "hear": hear, "poll": poll, "cut": cut, "give": give, "sleep": sleep, "asleep": asleep,
        "leave": leave,
    }  # fmt: skip
    return Process(name, steps)


def consumer_closer() -> Process:
    """Closes the consumers of all callers."""

    def shut(s: State, me: str) -> str:
        s["open"] = False
        return "wake"

    def wake(s: State, me: str) -> str:
        if "a close tells nobody" not in s["defects"]:
            for each in s["callers"]:
                wake_caller(s, each)
        return END

    return Process("closer", {"shut": shut, "wake": wake})


def nothing_that_came_is_forgotten(s: State, at: dict[str, str]) -> str | None:
    """What is wrong where nothing goes on any more; None: nothing is."""
    unread = [*s["socket"], *s["taken"], *s["came"]]
    waiting = [each for each in s["callers"] if at.get(each, END) != END]
    if unread:
        return f"{unread} have come, and nobody does them"
    if not s["open"] and waiting:
        return f"the consumers are closed, and {waiting} wait"
    late = [each for each in waiting if s["queue"][each]]
    if late:
        return f"messages are there for {late}, who wait"
    places = (END, "poll", "asleep")
    stuck = [name for name, label in at.items() if label not in places]
    return f"{stuck} cannot go on" if stuck else None
