"""The producers of one topic: their names, and who may publish beside whom. Any thread may call.

A producer that asks    while the topic is held      while others     while nobody
for                     exclusively, or one waits    are there        is there
Shared                  ProducerBusy                 joins            joins
Exclusive               ProducerFenced               ProducerFenced   takes it
WaitForExclusive        waits                        waits            takes it
ExclusiveWithFencing    shuts them all, takes it     the same         takes it

Taking a topic commits its next epoch first: where that fails, nothing has changed.

Source: Pulsar's AbstractTopic.incrementTopicEpochIfNeeded.
"""

from __future__ import annotations

import weakref
from contextlib import contextmanager

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx.broker.catalogue import changes
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.broker.topics.waiting_producer import ENDED, PROMOTED, WaitingProducer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any
    from weakref import ReferenceType

    from pulsarx.broker.policies.policy_store import TopicPolicies
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.topic_name import TopicName

    # What `make` makes: with is_open, is_forgotten, shut, fence, abandon, last_sequence_id
    Producer = Any

SHARED, EXCLUSIVE, WAIT_FOR_EXCLUSIVE, EXCLUSIVE_WITH_FENCING = range(4)  # ProducerAccessMode


class _Entry:
    """A producer that is there, or is being closed."""

    __slots__ = ("access_mode", "producer")

    def __init__(self, producer: Producer, access_mode: int) -> None:
        self.producer = weakref.ref(producer)
        self.access_mode = access_mode


class Reservation:
    """A new partition is kept for the producer that has the other ones to itself."""

    __slots__ = ("name", "owner")

    def __init__(self, name: str, owner: object) -> None:
        self.name: str = name
        self.owner: ReferenceType[object] = weakref.ref(owner)


class ProducerRegistry:
    """A name belongs to one producer at a time, as long as that is open."""

    __slots__ = (
        "_access",
        "_coming",
        "_entries",
        "_epoch",
        "_holder",
        "_is_closed",
        "_is_terminated",
        "_keeps_epoch",
        "_lock",
        "_name",
        "_policies",
        "_runtime",
        "_shut",
        "_topic",
        "_waiting",
    )

    def __init__(
        self,
        topic: TopicName,
        runtime: BrokerRuntime,
        policies: TopicPolicies,
        *,
        keeps_epoch: bool = True,
    ) -> None:
        """policies: those that hold on the topic now. keeps_epoch: in the catalogue; else in
        memory."""
        self._name = topic
        self._topic = topic.full
        self._policies = policies
        self._runtime = runtime
        self._keeps_epoch = keeps_epoch
        self._epoch: int | None = None  # where it is not kept
        self._access = Lock()  # one comes, or attaches, at a time; before `_lock`
        self._lock = Lock()  # of what follows
        self._entries: dict[str, _Entry] = {}
        self._holder: _Entry | WaitingProducer | Reservation | None = None
        self._waiting: tuple[WaitingProducer, ...] = ()  # in the order they came
        self._coming: str | None = None  # the name of the one that is being made
        # Producers that are fenced, and not in `_entries` any more; made with the first.
        self._shut: WeakList | None = None
        self._is_closed = False
        self._is_terminated = False  # while it was open; one that was before lets nobody come

    # Coming ---------------------------------------------------------------------------------------

    def add(
        self,
        name: str | None,
        make: Callable[[str], Producer],
        access_mode: int = SHARED,
        *,
        epoch: int | None = None,
        owner: object = None,
    ) -> Producer | WaitingProducer:
        """Make a producer under its name, or a generated one; WaitForExclusive: or its place in the
        queue, to be ended by `promoted` or `withdraw`.

        epoch: that it had the topic with before. owner: for whom a new partition is reserved,
        because it has the others to itself.
        ProducerBusy: the name is taken, another producer has the topic to itself, or it has as many
        as it may. ProducerFenced: it cannot have the topic to itself. TopicGone: the topic is
        being deleted, or unloaded.
        """
        if (self._entries or self._waiting or self._holder) and self._is_being_closed():
            self._runtime.background.wait()
        if name is None:
            name = self._runtime.next_producer_name()
        with self._access:
            self._begin_coming(name)
            try:
                return self._add(name, make, access_mode, epoch, owner)
            finally:
                self._end_coming()

    def _add(
        self,
        name: str,
        make: Callable[[str], Producer],
        access_mode: int,
        epoch: int | None,
        owner: object,
    ) -> Producer | WaitingProducer:
        """Add a producer as `add` does. The access is held."""
        if access_mode == SHARED:
            self._check_shared()
        elif owner is not None:
            if not self._is_reserved_for(owner):
                self._check_nobody(name)
        elif access_mode == EXCLUSIVE:
            self._check_epoch(epoch)
            self._check_nobody(name, epoch)
        elif access_mode == WAIT_FOR_EXCLUSIVE:
            self._check_epoch(epoch)
            waiting = self._queue(name, access_mode, epoch)
            if waiting is not None:
                return waiting
        else:
            self._check_epoch(epoch)
            return self._take(name, make, access_mode, epoch, fencing=True)
        self._check_name(name)
        self._check_limit()
        epoch_is_taken = access_mode == SHARED or self._is_reserved_for(owner)
        return self._take(name, make, access_mode, epoch, epoch_is_taken=epoch_is_taken)

    def promoted(self, waiting: WaitingProducer, make: Callable[[str], Producer]) -> Producer:
        """Make the producer whose turn it is. Raises why it is not its turn any more."""
        with self._access:
            self._begin_coming(waiting.name, waiting)
            try:
                self._check_name(waiting.name)
                return self._take(waiting.name, make, waiting.access_mode, waiting.epoch)
            except BaseException:
                self.withdraw(waiting)
                raise
            finally:
                self._end_coming()

    def _begin_coming(self, name: str, waiting: WaitingProducer | None = None) -> None:
        """A producer comes, and counts as one that is there until `_end_coming`. waiting: whose
        turn it is; raises why it is not. The access is held."""
        with self._lock:
            if waiting is not None and waiting.failure is not None:
                raise waiting.failure
            if self._is_closed:
                raise TopicGone(detail=f"{self._topic}: it was deleted")
            self._coming = name

    def _end_coming(self) -> None:
        with self._lock:
            self._coming = None
            self._promote_next()

    def withdraw(self, waiting: WaitingProducer) -> None:
        """Its caller waits no longer: it leaves the queue, or gives the topic back. Idempotent."""
        with self._lock:
            if waiting.state != ENDED:
                waiting.change(ENDED, waiting.failure)
            self._waiting = tuple([each for each in self._waiting if each is not waiting])
            if self._holder is waiting:
                self._holder = None
            self._promote_next()

    def _take(
        self,
        name: str,
        make: Callable[[str], Producer],
        access_mode: int,
        epoch: int | None,
        *,
        epoch_is_taken: bool = False,
        fencing: bool = False,
    ) -> Producer:
        """Make the producer that may come now."""
        goes_on = self._goes_on(epoch)
        if not epoch_is_taken:
            self._commit_epoch(epoch)
        if fencing:
            self._fence_all(name, spares_waiting=goes_on)
        producer = make(name)
        entry = _Entry(producer, access_mode)
        with self._lock:
            self._entries[name] = entry
            if access_mode != SHARED:
                self._holder = entry
        return producer

    def _check_shared(self) -> None:
        with self._lock:
            self._drop_void_reservation()
            if self._holder is not None:
                raise errors.ProducerBusy(
                    detail=f"publish on {self._topic}: producer {self._holder_name()} has it to "
                    "itself"
                )
            if self._waiting and self._runtime.awaits_nobody:
                raise errors.ProducerBusy(
                    detail=f"publish on {self._topic}: producer {self._waiting[0].name} waits to "
                    f"have it to itself"
                )

    def _goes_on(self, epoch: int | None) -> bool:
        """Whether a producer had the topic to itself when the last owner of the folder left, and
        comes to this one: in front of those who wait for that."""
        return epoch is not None and epoch == self.epoch and not self._runtime.awaits_nobody

    def _check_nobody(self, name: str, epoch: int | None = None) -> None:
        with self._lock:
            self._drop_void_reservation()
            if self._holder is not None:
                why = f"producer {self._holder_name()} has"
            elif self._waiting and not self._goes_on(epoch):
                why = f"producer {self._waiting[0].name} waits to have"
            elif self._entries:
                why = f"producer {next(iter(self._entries))} publishes on"
            else:
                return
            raise errors.ProducerFenced(
                detail=f"producer {name} cannot have {self._topic} to itself: {why} it"
            )

    def _queue(self, name: str, access_mode: int, epoch: int | None) -> WaitingProducer | None:
        """A place in the queue; None: nobody is in the way. Those that published through the last
        owner of the folder are, until they have come, or are not awaited any more."""
        arrivals = self._runtime.arrivals
        with self._lock:
            self._drop_void_reservation()
            if self._is_terminated:
                raise self._terminated()
            are_awaited = not arrivals.is_over  # asked once: they may all have come a moment later
            if self._holder is None and not self._entries:
                if self._goes_on(epoch) or not (self._waiting or are_awaited):
                    return None
            waiting = WaitingProducer(name, access_mode, epoch)
            self._waiting += (waiting,)
        if are_awaited:
            try:
                arrivals.tell(lambda: self._runtime.background.post(self._all_have_arrived))
            except BaseException:  # no more threads
                self.withdraw(waiting)
                raise
        return waiting

    def _all_have_arrived(self) -> None:
        """A job."""
        with self._lock:
            self._promote_next()

    def _check_name(self, name: str) -> None:
        with self._lock:
            entry = self._entries.get(name)
            found = entry.producer() if entry is not None else None
            if found is not None and found.is_open:
                raise errors.ProducerBusy(
                    detail=f"a producer named {name} is already on {self._topic}; close it or "
                    f"choose another name"
                )

    def _check_limit(self) -> None:
        """ProducerBusy: the topic has as many producers as it may."""
        if self._policies.version != self._runtime.catalogue.state.policies_number:
            self._policies = self._runtime.policies.of_topic(self._name)
        limit = self._policies.messages.limits.max_producers_per_topic
        with self._lock:
            if limit and self._open_count() >= limit:
                raise errors.ProducerBusy(
                    detail=f"create a producer on {self._topic}: it has {limit}, which is "
                    "max_producers_per_topic"
                )

    def _open_count(self) -> int:
        """Open producers, but for those whose users dropped them. The lock is held."""
        found = [entry.producer() for entry in self._entries.values()]
        return sum(bool(each and each.is_open and not each.is_forgotten) for each in found)

    def _fence_all(self, name: str, *, spares_waiting: bool) -> None:
        """Shut everybody who waits or publishes: when this returns, nothing of them is stored any
        more. spares_waiting: those that wait came behind the one that takes the topic."""
        reason = f"producer {name} has taken {self._topic} for itself"
        with self._lock:
            if not spares_waiting:
                self._end_waiting(lambda: errors.ProducerFenced(detail=reason))
            self._holder = None
            found = [each.producer() for each in self._entries.values()]
            self._entries.clear()
        for producer in found:
            if producer is not None:
                self._remember_shut(producer)
                producer.fence(reason)

    def _end_waiting(self, failure: Callable[[], Exception]) -> None:
        """Nobody waits any more, nor takes his turn. The lock is held."""
        waiting = list(self._waiting)
        self._waiting = ()
        if isinstance(self._holder, WaitingProducer):
            waiting.append(self._holder)
            self._holder = None
        for each in waiting:
            each.change(ENDED, failure())

    def _remember_shut(self, producer: Producer) -> None:
        with self._lock:
            if self._shut is None:
                self._shut = WeakList()
            self._shut.add(producer)

    # Epochs ---------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int | None:
        """How often the topic was taken by one producer, from 0 on; None: never."""
        if not self._keeps_epoch:
            return self._epoch
        record = self._runtime.catalogue.state.topics.get(self._topic)
        return None if record is None or record.epoch < 0 else record.epoch

    def _check_epoch(self, epoch: int | None) -> None:
        current = self.epoch
        if epoch is not None and current is not None and epoch < current:
            raise errors.ProducerFenced(
                detail=f"a producer had {self._topic} to itself with epoch {epoch}; it is at "
                f"{current} now"
            )

    def _commit_epoch(self, epoch: int | None) -> None:
        current = self.epoch
        if epoch is None:
            epoch = 0 if current is None else current + 1
        if not self._keeps_epoch:
            self._epoch = epoch
            return
        if epoch != current:
            taken = changes.set_topic_epoch(self._topic, epoch)

            def operations(_: object) -> list[dict[str, Any]]:
                # A deletion closes the registry before it commits: its topic, or another one that
                # has its name by then, is not taken.
                if self._is_closed:
                    raise TopicGone(detail=f"{self._topic}: it was deleted")
                return [taken]

            self._runtime.catalogue.commit(operations)

    # Reserving ------------------------------------------------------------------------------------

    def reserve(self, name: str, owner: object) -> None:
        """Keep a topic that nobody knows yet for a producer, which comes with `owner`."""
        with self._lock:
            self._holder = Reservation(name, owner)
            if not self._keeps_epoch:
                self._epoch = 0  # as the commit says that made the partition of a persistent topic

    def is_kept_for(self, owner: object) -> bool:
        """Whether the topic is reserved for what comes with this owner."""
        with self._lock:
            return self._is_reserved_for(owner)

    def release(self, owner: object) -> None:
        """The owner of a reservation will not come."""
        with self._lock:
            if isinstance(self._holder, Reservation) and self._holder.owner() in (owner, None):
                self._holder = None
                self._promote_next()

    def _is_reserved_for(self, owner: object) -> bool:
        holder = self._holder
        return owner is not None and isinstance(holder, Reservation) and holder.owner() is owner

    def _drop_void_reservation(self) -> None:
        """The lock is held."""
        if isinstance(self._holder, Reservation) and self._holder.owner() is None:
            self._holder = None
            self._promote_next()

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Publish in the block, without a producer. ProducerBusy: one has the topic to itself.

        Whoever wants to have it to himself waits for the end of the block.
        """
        with self._access:
            self._check_shared()
            yield

    @contextmanager
    def unchanged(self) -> Iterator[dict[str, Producer]]:
        """The producers by name, those that are being closed too; none comes in the block."""
        with self._access:
            with self._lock:
                found = {name: entry.producer() for name, entry in self._entries.items()}
            yield {name: each for name, each in found.items() if each is not None}

    # Leaving --------------------------------------------------------------------------------------

    def remove(self, name: str, producer: Producer) -> None:
        """Give the name back, unless another producer has it by now, and the topic with it."""
        with self._lock:
            entry = self._entries.get(name)
            if entry is not None and entry.producer() in (producer, None):
                del self._entries[name]
                if self._holder is entry:
                    self._holder = None
            self._promote_next()

    def shut_all(self, reason: str, kind: type[Exception]) -> None:
        """Shut everybody who publishes, as the exception says; nothing of them is stored any more,
        and they are in nobody's way."""
        for name, producer in self._open().items():
            producer.fence(reason, kind)
            self._remember_shut(producer)
            self.remove(name, producer)

    def _promote_next(self) -> None:
        """The lock is held. One that is being made may take the topic: behind it is asked again."""
        if self._is_closed or not self._waiting or self._coming is not None:
            return
        if self._holder is None and not self._entries and self._runtime.awaits_nobody:
            waiting, *left = self._waiting
            self._waiting = tuple(left)
            self._holder = waiting
            waiting.change(PROMOTED)

    def _is_being_closed(self) -> bool:
        """Whether one that its user dropped is being closed in the background."""
        for entry in list(self._entries.values()):
            found = entry.producer()
            if found is None or found.is_forgotten:
                return True
        waiting = [*self._waiting, self._holder]
        return any(isinstance(each, WaitingProducer) and each.is_forgotten for each in waiting)

    # Looking --------------------------------------------------------------------------------------

    def _holder_name(self) -> str:
        """The lock is held."""
        holder = self._holder
        if isinstance(holder, (WaitingProducer, Reservation)):
            return holder.name
        return next(name for name, entry in self._entries.items() if entry is holder)

    def _open(self) -> dict[str, Producer]:
        with self._lock:
            found = {name: entry.producer() for name, entry in self._entries.items()}
        return {name: each for name, each in found.items() if each is not None and each.is_open}

    def names(self) -> set[str]:
        """The names of producers that are open, that are being made, and that are being closed."""
        with self._lock:
            coming = () if self._coming is None else (self._coming,)
            return {*self._entries, *coming}

    # Deleting -------------------------------------------------------------------------------------

    def close_to_newcomers(self, force: bool, consumers: int, readers: int) -> None:
        """Make no producer any more: the topic is being deleted.

        NotAllowedError: a producer is there, comes or waits, or others are attached, and it is not
        forced.
        """
        with self._lock:
            self._drop_void_reservation()
            there = self._open_count() + (self._coming is not None) + len(self._waiting)
            if isinstance(self._holder, (WaitingProducer, Reservation)):
                there += 1
            if not force and (there or consumers or readers):
                raise errors.NotAllowedError(
                    detail=f"delete {self._topic}: {there} producers, {consumers} consumers and "
                    f"{readers} readers are attached; close them, or delete it with force=True, "
                    "which does"
                )
            self._is_closed = True

    def open_to_newcomers(self) -> None:
        """The topic was not deleted after all."""
        with self._lock:
            self._is_closed = False
            self._promote_next()

    def end(self) -> list[Producer]:
        """The topic is deleted: tell those who wait for it; the producers that are to be shut. What
        was coming has come when this returns."""
        with self.unchanged() as producers, self._lock:
            self._end_waiting(lambda: errors.TopicNotFound(detail=f"{self._topic}: it was deleted"))
            self._holder = None
            return [each for each in producers.values() if each.is_open]

    def terminate(self) -> None:
        """The topic takes no more messages: who waits to have it to himself is told."""
        with self._lock:
            self._is_terminated = True
            self._end_waiting(self._terminated)

    def _terminated(self) -> Exception:
        return errors.TopicTerminated(
            detail=f"{self._topic} is terminated and takes no more messages"
        )

    def wait_for_forgotten(self) -> None:
        """Wait until producers that their users dropped are closed."""
        if self._is_being_closed():
            self._runtime.background.wait()

    # Looking --------------------------------------------------------------------------------------

    def is_used(self) -> bool:
        """Whether a producer is there, comes, or waits for its turn."""
        with self._lock:
            self._drop_void_reservation()
            return bool(
                self._open_count()
                or self._coming is not None
                or self._waiting
                or self._holder is not None
            )

    def holder(self) -> Producer | None:
        """The producer that has the topic to itself."""
        with self._lock:
            holder = self._holder
            return holder.producer() if isinstance(holder, _Entry) else None

    def open_producers(self) -> list[Producer]:
        return list(self._open().values())

    def by_name(self) -> dict[str, Producer]:
        """The open producers."""
        return self._open()

    def statistics(self) -> list[dict[str, Any]]:
        """The statistics of each open producer."""
        with self._lock:
            found = [
                (name, entry.access_mode, entry.producer()) for name, entry in self._entries.items()
            ]
        return [
            {
                "producer_name": name,
                "access_mode": ACCESS_MODE_NAMES[access_mode],
                "last_sequence_id": producer.last_sequence_id(),
                "chunked_message_rate": producer.chunked_message_rate(),
                **getattr(producer, "described", {}),
            }
            for name, access_mode, producer in found
            if producer is not None and producer.is_open
        ]

    def abandon(self) -> None:
        """In a forked child: refuse further calls; the locks may be left taken."""
        for entry in list(self._entries.values()):
            producer = entry.producer()
            if producer is not None:
                producer.abandon()
        if self._shut is not None:
            for producer in self._shut.members():
                producer.abandon()
        waiting = list(self._waiting)
        if isinstance(self._holder, WaitingProducer):
            waiting.append(self._holder)
        for each in waiting:
            each.change(ENDED, errors.forked_error(errors.parent_pid()))


ACCESS_MODE_NAMES = ("Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing")
