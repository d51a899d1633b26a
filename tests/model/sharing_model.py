"""The owner of a folder and its guests, as small models of which every interleaving is tried: see
waking_model. An owner dies at any step, and the next one follows it.

What is published, and who sleeps on it:

  owner       publishes in ledger 1, goes on to ledger 2, which is prepared: core/ledger_append
  killer      kills it
  next owner  PublishedEnds.create, recovery, the control socket, then a ledger of its own
  link        the thread of a guest that reads its connection: GuestBroker._run
  reader      a thread of the guest: ConsumerCore.receive, LedgerReader, ReadOnlyLedger

Whose messages are whose:

  owner       hands out positions of a Shared subscription, and records acknowledgements
  killer      kills it
  guest       has a consumer, whose user takes a message and acknowledges it
  link        brings what the guest has to the next owner: GuestSubscription.resume
  next owner  awaits the guests of the last one (Arrivals), has a consumer of its own

A process that is dead takes no step; its label stays where it was.
"""

from __future__ import annotations

from collections.abc import Callable

from waking_model import END, Blocked, LostWaking, Process, State, Step

FREE, OPEN, ENDED = 0, 1, 3  # of a slot
OWN_EVENT = 0  # of the guest's tail, in no slot
FIRST, PREPARED, LATER = 1, 2, 3  # ledgers
NOBODY = ""
ASKS_EARLY = "whether an owner lives is asked before the catalogue is read"


# The published ends -------------------------------------------------------------------------------


def new_ends(*defects: str, later_slot: int = 1) -> State:
    """A guest whose readers sleep on the slot of ledger 1; ledger 2 is prepared behind it. The next
    owner has its ledger in one of their slots."""
    return {
        "defects": frozenset(defects),
        "holder": "owner",  # of the lock of the folder
        "serves": "owner",  # who listens at the control socket
        "epoch": 1,
        # slots 1 and 2, by number
        "ledger": {1: FIRST, 2: PREPARED},
        "slot epoch": {1: 1, 2: 1},
        "end": {1: 0, 2: 0},  # messages
        "state": {1: OPEN, 2: OPEN},
        "event": {OWN_EVENT: 0, 1: 0, 2: 0},
        "waiters": {OWN_EVENT: 0, 1: 0, 2: 0},
        # files and the catalogue
        "written": {FIRST: 0, PREPARED: 0, LATER: 0},
        "listed": {FIRST: "open", PREPARED: "prepared"},
        "slot of": {FIRST: 1, PREPARED: 2, LATER: later_slot},
        # the guest
        "known": {FIRST: "open", PREPARED: "prepared"},  # as it has read the catalogue
        "sees an owner": True,
        "tail event": 1,
        "polls": False,
        # its readers, by name
        "passed": {},  # the ledger that it reads
        "offset": {},
        "fixed": {},  # the end of a ledger that does not grow any more; -1: it grows
        "on": {},  # the event that it has entered
        "seen": {},
        "asleep": {},  # by name: on which event
        "taken": {},
    }


def wake(s: State, event: int) -> None:
    if s["waiters"][event]:
        s["event"][event] += 1
        s["asleep"] = {name: on for name, on in s["asleep"].items() if on != event}


def of_process(name: str, steps: dict[str, Step]) -> dict[str, Step]:
    """Steps of an owner, which takes none when it is dead."""

    def alive(step: Step) -> Step:
        def taken(s: State, me: str) -> str:
            if s["holder"] != name:
                raise Blocked
            return step(s, me)

        return taken

    return {label: alive(step) for label, step in steps.items()}


def publishing(ledger: int, slot: int, label: str, after: str, drops: str = "") -> dict[str, Step]:
    """One message: written, published, and who sleeps is woken."""

    def write(s: State, me: str) -> str:
        s["written"][ledger] += 1
        if "the waker counts waiters before its change" in s["defects"]:
            return f"{label}late, wakes" if s["waiters"][slot] else f"{label}late"
        return f"{label}publish"

    def publish(s: State, me: str) -> str:
        s["end"][slot] += 1
        return f"{label}wake"

    def tell(s: State, me: str) -> str:
        if not drops or drops not in s["defects"]:
            wake(s, slot)
        return after

    def late(s: State, me: str) -> str:
        s["end"][slot] += 1
        return after

    def late_wakes(s: State, me: str) -> str:
        s["end"][slot] += 1
        return f"{label}wake"

    return {
        f"{label}write": write,
        f"{label}publish": publish,
        f"{label}late": late,
        f"{label}late, wakes": late_wakes,
        f"{label}wake": tell,
    }


def ends_owner(messages: int = 1, rolls_over: bool = True) -> Process:
    """So many messages in ledger 1; then on to ledger 2, and one there."""
    steps: dict[str, Step] = {}
    last = "ended" if rolls_over else END
    for number in range(messages):
        after = f"{number + 1} write" if number + 1 < messages else last
        steps |= publishing(FIRST, 1, f"{number} ", after, "a wake-up is dropped")

    def ended(s: State, me: str) -> str:
        s["state"][1] = ENDED
        return "ended wake"

    def ended_wake(s: State, me: str) -> str:
        if "a full ledger ends in silence" not in s["defects"]:
            wake(s, 1)
        return "2 write"

    steps |= {"ended": ended, "ended wake": ended_wake}
    steps |= publishing(PREPARED, 2, "2 ", END)
    return Process("owner", of_process("owner", steps))


def killer() -> Process:
    def kill(s: State, me: str) -> str:
        s["holder"] = s["serves"] = NOBODY
        return END

    return Process("killer", {"kill": kill})


def next_owner(later_slot: int = 1) -> Process:
    """Takes the lock, starts the published ends anew, recovers, serves, and publishes a message in
    a ledger of its own."""

    def lock(s: State, me: str) -> str:
        if s["holder"] != NOBODY:
            raise Blocked
        s["holder"] = "next owner"
        return "epoch"

    def epoch(s: State, me: str) -> str:
        s["epoch"] = 2
        return "free 1"

    steps: dict[str, Step] = {"epoch": epoch}
    for slot, after in ((1, "free 2"), (2, "recover")):

        def free(s: State, me: str, slot: int = slot) -> str:
            s["ledger"][slot] = 0
            s["state"][slot] = FREE
            if "the next owner forgets who sleeps" in s["defects"]:
                s["waiters"][slot] = 0
            return f"wake {slot}"

        def wake_slot(s: State, me: str, slot: int = slot, after: str = after) -> str:
            if "the next owner wakes nobody" not in s["defects"]:
                wake(s, slot)
            return after

        steps |= {f"free {slot}": free, f"wake {slot}": wake_slot}

    def recover(s: State, me: str) -> str:
        s["listed"] = {FIRST: "sealed", PREPARED: "sealed"}
        return "serve"

    def serve(s: State, me: str) -> str:
        s["serves"] = me
        return "begin slot"

    def begin_slot(s: State, me: str) -> str:
        slot = s["slot of"][LATER]
        s["slot epoch"][slot] = 2
        if "the id of a slot comes first" in s["defects"]:
            s["ledger"][slot] = LATER
            return "list"
        s["end"][slot] = 0
        s["state"][slot] = OPEN
        return "id"

    def name_slot(s: State, me: str) -> str:
        s["ledger"][s["slot of"][LATER]] = LATER
        return "list"

    def list_it(s: State, me: str) -> str:
        s["listed"] |= {LATER: "open"}
        return "empty" if "the id of a slot comes first" in s["defects"] else "3 write"

    def empty(s: State, me: str) -> str:
        slot = s["slot of"][LATER]
        s["end"][slot] = 0
        s["state"][slot] = OPEN
        return "3 write"

    steps |= {
        "recover": recover, "serve": serve, "begin slot": begin_slot, "id": name_slot,
        "list": list_it, "empty": empty,
    }  # fmt: skip
    steps |= publishing(LATER, later_slot, "3 ", END)
    return Process("next owner", {"lock": lock} | of_process("next owner", steps))


def ends_link(name: str = "link") -> Process:
    """GuestBroker._run, and GuestBroker._begin_whole for the next connection."""

    def let_go(s: State, me: str) -> str:
        if s["serves"] == "owner":
            raise Blocked
        if "readers are not told that the owner has gone" not in s["defects"]:
            wake(s, s["tail event"])
        return "connect"

    def connect(s: State, me: str) -> str:
        if s["serves"] != "next owner":
            raise Blocked
        return "listen"

    def listen(s: State, me: str) -> str:
        s["known"] = dict(s["listed"])
        s["sees an owner"] = s["holder"] != NOBODY
        listen_where_it_grows(s)
        return "wake"

    def wake_readers(s: State, me: str) -> str:
        wake(s, s["tail event"])
        return END

    steps = {"let go": let_go, "connect": connect, "listen": listen, "wake": wake_readers}
    return Process(name, steps)


def is_published(s: State, ledger: int) -> bool:
    """PublishedEnds.find, where an owner is seen."""
    slot = s["slot of"][ledger]
    holds = s["sees an owner"] and s["ledger"][slot] == ledger
    return bool(holds and s["slot epoch"][slot] == s["epoch"])


def is_used(s: State, known: str) -> bool:
    """ReadOnlyLedger._is_used of ledger 2; known: how the catalogue has ledger 1."""
    if is_published(s, PREPARED):
        if known == "sealed":
            return True
        return s["ledger"][1] == FIRST and s["state"][1] == ENDED
    return bool(s["written"][PREPARED])


def listen_where_it_grows(s: State) -> None:
    """ReadOnlyLedger._listen."""
    s["polls"] = True
    for ledger, state in s["known"].items():
        grows = state == "open" or (state == "prepared" and is_used(s, s["known"][FIRST]))
        if grows and is_published(s, ledger):
            s["tail event"] = s["slot of"][ledger]
            s["polls"] = False


def end_now(s: State, me: str) -> int:
    """How many messages the reader sees in the ledger that it reads."""
    fixed: int = s["fixed"][me]
    ledger = s["passed"][me]
    slot = s["slot of"][ledger]
    if fixed >= 0:
        return fixed
    return int(s["end"][slot]) if s["ledger"][slot] == ledger else 0


def has_more(s: State, me: str) -> bool:
    return end_now(s, me) > int(s["offset"][me])


def advance(s: State, me: str) -> bool:
    """LedgerList.span_after: whether there is something to read, which it has found then."""
    ledger = s["passed"][me]
    if s["fixed"][me] < 0 and not is_published(s, ledger):
        s["fixed"][me] = s["written"][ledger]  # sealed, or recovered as far as the file is whole
        if has_more(s, me):
            return True
    later = [each for each in s["known"] if each > ledger]
    if not later:
        return False
    following = later[0]
    if s["known"][following] == "prepared" and not is_used(s, s["known"][FIRST]):
        return False
    if has_more(s, me) and "a reader looks once at what it leaves" not in s["defects"]:
        return True
    final = s["fixed"][me] >= 0 or s["state"][s["slot of"][ledger]] == ENDED
    if not final and s["known"][ledger] != "sealed":
        return False
    s["passed"][me], s["offset"][me] = following, 0
    s["fixed"][me] = -1 if is_published(s, following) else s["written"][following]
    return True


def reader(name: str, wanted: int) -> Process:
    """ConsumerCore.receive, so many messages. What it looks for is looked for in steps, since the
    owner is in another process."""

    def take(s: State, me: str) -> str:
        s["passed"].setdefault(me, FIRST)
        s["offset"].setdefault(me, 0)
        s["fixed"].setdefault(me, -1)
        s["taken"].setdefault(me, ())
        if not has_more(s, me):
            return "refresh"
        ledger = s["passed"][me]
        s["offset"][me] += 1
        if s["offset"][me] > s["written"][ledger]:
            raise LostWaking(f"{me} reads behind what is written of ledger {ledger}")
        s["taken"][me] += (10 * ledger + s["offset"][me],)
        return END if len(s["taken"][me]) == wanted else "take"

    def looking(label: str, found: str, nothing: str) -> dict[str, Step]:
        """ReadOnlyLedger.span_after."""

        def refresh(s: State, me: str) -> str:
            """ReadOnlyBroker.refresh: the catalogue first, then whether an owner lives."""
            if ASKS_EARLY in s["defects"]:
                s["sees an owner"] = s["holder"] != NOBODY
            else:
                s["known"] = dict(s["listed"])
            return f"{label}ask"

        def ask(s: State, me: str) -> str:
            if ASKS_EARLY in s["defects"]:
                s["known"] = dict(s["listed"])
            else:
                s["sees an owner"] = s["holder"] != NOBODY
            return f"{label}advance"

        def go_on(s: State, me: str) -> str:
            if advance(s, me):
                return found
            listen_where_it_grows(s)
            return nothing

        return {f"{label}refresh": refresh, f"{label}ask": ask, f"{label}advance": go_on}

    def enter(s: State, me: str) -> str:
        event = s["tail event"]
        s["waiters"][event] += 1
        s["on"][me], s["seen"][me] = event, s["event"][event]
        if "a sleeper does not look again" in s["defects"]:
            return "sleep"
        return "leave" if has_more(s, me) else "again refresh"

    def sleep(s: State, me: str) -> str:
        event = s["on"][me]
        elsewhere = "a sleeper does not ask where the topic grows" not in s["defects"]
        if (s["tail event"] != event and elsewhere) or s["event"][event] != s["seen"][me]:
            return "leave"
        if s["polls"]:
            return "leave"  # soon
        s["asleep"][me] = event
        return "asleep"

    def asleep(s: State, me: str) -> str:
        if me in s["asleep"]:
            raise Blocked
        return "leave"

    def leave(s: State, me: str) -> str:
        s["waiters"][s["on"].pop(me)] -= 1
        s["seen"].pop(me)
        return "take"

    steps: dict[str, Step] = {"take": take, **looking("", "take", "enter"), "enter": enter}
    steps |= {**looking("again ", "leave", "sleep"), "sleep": sleep, "asleep": asleep}
    return Process(name, steps | {"leave": leave})


def guest_killer(name: str) -> Process:
    """Kills another guest, whose reader of this name then counts as a sleeper for ever."""

    def kill(s: State, me: str) -> str:
        s["asleep"] = {each: on for each, on in s["asleep"].items() if each != name}
        s["dead"] = name
        return END

    return Process("guest killer", {"kill": kill})


def mortal(process: Process) -> Process:
    """A reader of a process that may be killed."""

    def alive(step: Step) -> Step:
        def taken(s: State, me: str) -> str:
            if s.get("dead") == me:
                raise Blocked
            return step(s, me)

        return taken

    return Process(process.name, {each: alive(step) for each, step in process.steps.items()})


def is_dead(s: State, name: str) -> bool:
    if name in ("owner", "next owner"):
        return bool(s["holder"] != name)
    return bool(s.get("dead") == name)


def no_reader_waits_in_vain(s: State, at: dict[str, str]) -> str | None:
    """What is wrong where nothing goes on any more; None: nothing is."""
    published = [
        10 * ledger + number + 1
        for ledger, count in sorted(s["written"].items())
        for number in range(count)
    ]
    for name, taken in s["taken"].items():
        if list(taken) != published[: len(taken)]:
            return f"{name} has read {taken} of {published}"
        missed = published[len(taken) :]
        if missed and at[name] != END and not is_dead(s, name):
            return f"{name} waits although {missed} can be read"
    stuck = [
        name
        for name, label in at.items()
        if label not in (END, "asleep") and not is_dead(s, name) and name not in ("link", "killer")
    ]
    return f"{stuck} cannot go on" if stuck else None


# Positions of a Shared subscription ---------------------------------------------------------------


def new_positions(messages: int, *defects: str) -> State:
    """The owner has so many messages and the guest's consumer; nothing was handed out."""
    return {
        "defects": frozenset(defects),
        "holder": "owner",
        "backlog": tuple(range(messages)),  # that this owner has handed to nobody
        "recorded": frozenset(),  # acknowledgements, in the file of the cursor
        # the connection: positions to the guest; acknowledgements and others to the owner
        "to guest": (),
        "to owner": (),
        "has hung up": False,
        "permits": True,  # of the guest
        "awaited": False,  # the guest, by the next owner
        # the guest
        "queue": (),
        "held": frozenset(),  # by its user
        "sent": (),  # acknowledgements of which it has not heard that they are recorded
        "kept": frozenset(),  # held since an owner before
        "attached": True,
        "event": 0,
        "waiters": 0,
        "seen": 0,
        "asleep": False,
        "acknowledged": frozenset(),  # whose call has returned
        "brought": frozenset(),  # of them, those that had when it came to the next owner
        # the consumer of the next owner
        "elsewhere": frozenset(),
    }


def wake_guest(s: State) -> None:
    if s["waiters"]:
        s["event"] += 1
        s["asleep"] = False


def serving(name: str) -> dict[str, Step]:
    """What an owner does for its guest, in any order; a loop that ends nowhere."""

    def hand_out(s: State) -> bool:
        if not s["backlog"] or not s["permits"] or s["has hung up"]:
            return False
        s["to guest"] += (("run", s["backlog"][0]),)
        s["backlog"] = s["backlog"][1:]
        return True

    def hear(s: State) -> bool:
        if not s["to owner"]:
            return False
        kind, message = s["to owner"][0]
        s["to owner"] = s["to owner"][1:]
        if kind == "ack":
            s["recorded"] |= {message}
            s["backlog"] = tuple(each for each in s["backlog"] if each != message)
            s["to guest"] += (("recorded", message),)
        elif kind == "permits":
            s["permits"] = True
        elif kind == "arrived":
            s["awaited"] = False
        return True

    def serve(s: State, me: str) -> str:
        if not hear(s):
            raise Blocked
        return "serve"

    def deliver(s: State, me: str) -> str:
        if not hand_out(s):
            raise Blocked
        return "deliver"

    return {"serve": serve, "deliver": deliver}


def positions_owner() -> list[Process]:
    """The thread of the connection, and a sender that delivers."""
    steps = of_process("owner", serving("owner"))
    return [
        Process("owner", {"serve": steps["serve"]}),
        Process("sender", {"deliver": steps["deliver"]}),
    ]


def positions_killer() -> Process:
    def kill(s: State, me: str) -> str:
        """What it had not read of the connection goes with it; what it sent comes."""
        s["holder"] = NOBODY
        s["to owner"] = ()
        s["has hung up"] = True
        return END

    return Process("killer", {"kill": kill})


def positions_next(messages: int) -> list[Process]:
    """Owns the folder behind the dead owner, and has a consumer that takes all it gets."""

    def lock(s: State, me: str) -> str:
        if s["holder"] != NOBODY:
            raise Blocked
        s["holder"] = "next owner"
        s["backlog"] = tuple(each for each in range(messages) if each not in s["recorded"])
        s["awaited"] = "nobody is awaited" not in s["defects"]
        s["permits"] = False
        return "serve"

    def take(s: State, me: str) -> str:
        """Its own consumer."""
        if s["holder"] != "next owner" or s["awaited"] or not s["backlog"]:
            raise Blocked
        message = s["backlog"][0]
        if message in s["brought" if s["brought"] or s["attached"] else "acknowledged"]:
            raise LostWaking(f"{message} was acknowledged, and comes to another consumer")
        s["backlog"] = s["backlog"][1:]
        s["elsewhere"] |= {message}
        return "take"

    steps = serving("next owner")
    served = of_process("next owner", steps)
    return [
        Process("next owner", {"lock": lock, "serve": served["serve"]}),
        Process("next sender", {"deliver": served["deliver"]}),
        Process("its consumer", {"take": take}),
    ]


def positions_link() -> Process:
    """The guest's thread of the connection, and what brings its consumer to the next owner."""

    def read(s: State, me: str) -> str:
        if s["to guest"]:
            kind, message = s["to guest"][0]
            s["to guest"] = s["to guest"][1:]
            if kind == "recorded":
                s["sent"] = tuple(each for each in s["sent"] if each != message)
                return "read"
            return arrive(s, message)
        if not s["has hung up"]:
            raise Blocked
        return "resume"

    def arrive(s: State, message: int) -> str:
        """GuestDispatcher.arrive."""
        covered = "what is acknowledged comes again" not in s["defects"]
        if message in s["sent"] and covered:
            return "read"  # the owner sent it before it heard of that
        if (
            message in s["kept"]
            and message in s["held"]
            and ("what is held comes again" not in s["defects"])
        ):
            s["kept"] -= {message}
            return "read"  # it was handed out under the owner before
        if message not in s["queue"]:
            s["queue"] += (message,)
        return "wake"

    def tell(s: State, me: str) -> str:
        if "a wake-up is dropped" not in s["defects"]:
            wake_guest(s)
        return "read"

    def resume(s: State, me: str) -> str:
        """GuestDispatcher.resume."""
        if s["holder"] != "next owner":
            raise Blocked
        s["attached"] = False
        if "what was not handed out stays" not in s["defects"]:
            s["queue"] = ()
        s["kept"] = frozenset(s["held"])
        s["has hung up"] = False
        return "subscribe"

    def subscribe(s: State, me: str) -> str:
        return "begin"

    def begin(s: State, me: str) -> str:
        """GuestDispatcher.begin, with the mutex: what was acknowledged, then permits."""
        told = tuple(("ack", each) for each in s["sent"])
        s["brought"] = s["acknowledged"]
        if "acknowledgements that were not recorded are forgotten" in s["defects"]:
            told, s["sent"] = (), ()
        s["attached"] = True
        s["to owner"] += told
        s["to owner"] += (("permits", 0),)
        return "arrived"

    def arrived(s: State, me: str) -> str:
        s["to owner"] += (("arrived", 0),)
        return "read"

    steps: dict[str, Step] = {"read": read, "wake": tell, "resume": resume}
    return Process("link", steps | {"subscribe": subscribe, "begin": begin, "arrived": arrived})


def user(messages: int) -> Process:
    """Receives so many messages, and acknowledges each."""

    def take(s: State, me: str) -> str:
        if not s["queue"]:
            return "enter"
        message = s["queue"][0]
        if message in s["held"] or message in s["acknowledged"]:
            raise LostWaking(f"{message} comes to its consumer once more")
        s["queue"] = s["queue"][1:]
        s["held"] |= {message}
        return "acknowledge"

    def acknowledge(s: State, me: str) -> str:
        """One step, with the mutex; its frame is with the system when the call returns."""
        (message,) = s["held"]
        s["held"] = frozenset()
        s["sent"] += (message,)
        if s["attached"]:
            s["to owner"] += () if s["has hung up"] else (("ack", message),)
        s["acknowledged"] |= {message}
        return "take"

    def enter(s: State, me: str) -> str:
        s["waiters"] += 1
        s["seen"] = s["event"]
        if "a sleeper does not look again" in s["defects"]:
            return "sleep"
        return "leave" if s["queue"] else "sleep"

    def sleep(s: State, me: str) -> str:
        if s["event"] != s["seen"]:
            return "leave"
        s["asleep"] = True
        return "asleep"

    def asleep(s: State, me: str) -> str:
        if s["asleep"]:
            raise Blocked
        return "leave"

    def leave(s: State, me: str) -> str:
        s["waiters"] -= 1
        return "take"

    steps = {
        "take": take, "acknowledge": acknowledge, "enter": enter, "sleep": sleep,
        "asleep": asleep, "leave": leave,
    }  # fmt: skip
    return Process("user", steps)


def every_message_is_done(messages: int) -> Callable[[State, dict[str, str]], str | None]:
    def verdict(s: State, at: dict[str, str]) -> str | None:
        if s["queue"] and at["user"] == "asleep":
            return f"{s['queue']} are there, and the consumer sleeps"
        if s["holder"] == NOBODY:
            return None
        done = s["acknowledged"] | s["elsewhere"] | s["held"]
        left = set(range(messages)) - done
        if left:
            return f"nobody gets {left}"
        lost = s["acknowledged"] - s["recorded"]
        return f"{set(lost)} were acknowledged, and are not recorded" if lost else None

    return verdict
