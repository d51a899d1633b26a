"""A client whose consumers are those of another process, as far as they can know: their
subscriptions are reached over a pipe, and they read the ledgers beside the owner."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipe import Pipe

from pulsarx._pycore.ground.owner_link import OwnerLink
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx._pycore.ledger.ledger_tail import LedgerTail
from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.broker.topics.read_only_topic import ReadOnlyTopic
from pulsarx.client import Client
from pulsarx.clock import ManualClock
from pulsarx.consuming import subscribing
from pulsarx.processes.guest.subscription import subscribe_there
from pulsarx.processes.owner.session_verbs import SessionGuests
from pulsarx.sessions.server import Server
from pulsarx.testing.inspection import Inspection, inspect
from pulsarx.topic_name import TopicName

# Where there is one: what stands for a broker in memory needs no disk.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
attach_in_process = subscribing._attach
advance_alone = ManualClock.advance
settle_owner = Inspection.settle
_sides: dict[int, GuestSide] = {}  # by their brokers' runtimes
_folders: dict[str, Any] = {}  # of what was to be in memory


class GuestSide:
    """What a process beside the owner has, of one broker."""

    def __init__(self, broker: Any, clock: Any) -> None:
        self.clients = 0
        self._server = Server(broker)
        self.clock = broker.runtime.clock
        self.pipe = Pipe(self._server, 30, guests=SessionGuests)
        self.connection = self.pipe.connection
        self.connection.link = OwnerLink(-1, self.pipe.to_session)
        self.connection.open()
        self.folder = ReadOnlyBroker(broker.directory.path)
        self._topics: dict[str, BesideTopic] = {}
        if isinstance(clock, ManualClock):
            clock.settles(self.pipe)
            clock.settles(self._server.completions.jobs)
            clock.settles(self.connection.background)

    def topic(self, name: str) -> Any:
        self.folder.refresh()
        found = self._topics.get(name)
        if found is None or found.is_gone:
            record = self.folder.catalogue.state.topics[name]
            found = self._topics[name] = BesideTopic(self, record)
        return found

    def close(self) -> None:
        self.connection.close()
        self._server.close()
        self.folder.close()


class BesideTopic(ReadOnlyTopic):
    def __init__(self, side: GuestSide, record: Any) -> None:
        super().__init__(side.folder, record)
        self.connection = side.connection
        self.clock = side.clock
        self.members = WeakList()
        self.consumer_tail = LedgerTail(self.ledger, self.ledger.partition)

    @property
    def is_gone(self) -> bool:
        self.broker.refresh()  # the client's followers are the owner's, which are told at once
        return super().is_gone

    def take_back(self, subscription: Any) -> None:
        subscription.take_back()

    def bring(self, subscription: Any) -> None:
        raise AssertionError("there is one connection")

    def subscribe(self, request: Any, make: Any) -> Any:
        return subscribe_there(self, request, make)


class GuestClient(Client):
    """What it makes but consumers is the owner's."""

    def __init__(self, service_url: Any = None, *arguments: Any, **options: Any) -> None:
        if isinstance(service_url, str) and service_url.startswith("memory:"):
            known = _folders.get(service_url)
            if known is None or not Path(known.name).exists():
                # An owner that a test has dropped may write when it is removed.
                known = tempfile.TemporaryDirectory(dir=MEMORY, ignore_cleanup_errors=True)
                _folders[service_url] = known
            service_url = known.name
            options["durability"] = "os"
        super().__init__(service_url, *arguments, **options)
        if self.read_only:
            return
        broker = inspect(self).broker
        side = _sides.get(id(broker.runtime))
        if side is None:
            side = _sides[id(broker.runtime)] = GuestSide(broker, broker.runtime.clock)
        side.clients += 1

    @property
    def admin(self) -> Any:
        settle()
        return super().admin

    def _take_leave(self) -> None:
        side = None if self.read_only else _sides.get(id(inspect(self).runtime))
        failure = self._close_members()
        if side is not None:
            side.clients -= 1
            if not side.clients:
                side.close()
                del _sides[id(inspect(self).runtime)]
        super()._take_leave()
        if failure is not None:
            raise failure


def settle() -> None:
    """Return when what consumers have said is done."""
    for each in list(_sides.values()):
        if not each.connection.is_lost:
            each.connection.settle()


def settled(call: Callable[..., Any]) -> Callable[..., Any]:
    """A method that is called when what the owner had to send has come."""

    def when_settled(*arguments: Any, **named: Any) -> Any:
        settle()
        return call(*arguments, **named)

    return when_settled


def advance(clock: ManualClock, *arguments: Any, **named: Any) -> None:
    """As ManualClock.advance, when what consumers have said is done."""
    settle()
    advance_alone(clock, *arguments, **named)


def settle_all(inspection: Inspection) -> None:
    """As Inspection.settle, when what consumers have said is done."""
    settle()
    settle_owner(inspection)


def forget_folders() -> None:
    """A test is over."""
    for each in list(_sides.values()):
        each.close()
    _sides.clear()
    for each in _folders.values():
        each.cleanup()
    _folders.clear()


def attach(topic: Any, options: Any, *others: Any) -> Any:
    """As subscribing._attach, by a process beside the owner."""
    if TopicName.of(topic.name).persistent:
        topic = _sides[id(topic.runtime)].topic(topic.name)
    return attach_in_process(topic, options, *others)
