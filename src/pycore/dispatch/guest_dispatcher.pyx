# cython: language_level=3
"""Body of guest_dispatcher.pxd."""

from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.pending_acks cimport (
    PENDING_COUNT_MAX, PENDING_DEAD, PENDING_DUE, PENDING_HELD, PENDING_NACKED, PENDING_NOBODY,
    PENDING_NONE, PENDING_QUEUED, PendingAck, pending_acks_find, pending_acks_next,
    pending_acks_remove, pending_acks_set_state,
)
from pulsarx._core.timer_wheel cimport TIMER_NONE
from pulsarx._core.wait_event cimport WaitEvent
from pulsarx._pycore.dispatch.entry_sink cimport EntrySink
from pulsarx._pycore.dispatch.pending_dispatcher cimport PendingDispatcher
from pulsarx._pycore.dispatch.sent_acks cimport (
    SentAck, sent_acks_cover, sent_acks_free, sent_acks_keep, sent_acks_recorded,
)
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_try_lock, mutex_unlock
from pulsarx._pycore.ground.owner_link cimport (
    LINK_ACKNOWLEDGE, LINK_ACKNOWLEDGE_THROUGH, LINK_EXPIRED, LINK_FLOW, LINK_GIVE_BACK, LINK_NACK,
    LINK_RESET_DONE, LINK_REWIND, OwnerLink,
)
from pulsarx._pycore.ground.waits cimport others_run_here
from pulsarx._pycore.ledger.compacted_reader cimport CompactedReader
from pulsarx._pycore.ledger.ledger_reader cimport (
    READ_DAMAGE, READ_ENTRY, READ_NOTHING, LedgerReader,
)
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.ledger.open_transactions cimport TransactionCore
from pulsarx._pycore.message.entry_view cimport EntryContext

cdef enum:
    LOOK_AHEAD_MESSAGES = 64             # dispatched for one who already has something to do


class _NoLimits:
    """Answers for DispatchLimits with no limits: the owner keeps them."""

    unacknowledged_per_consumer = 0
    unacknowledged_per_subscription = 0


cdef class GuestDispatcher(PendingDispatcher):
    """One consumer of a subscription elsewhere. Any thread may call; the mutex orders them."""

    def __init__(self, SubscriptionCore core not None, LedgerTail tail not None,
                 LedgerTail ledgers not None, str topic_name not None,
                 uint32_t decompressed_size_max, OwnerLink link not None, uint64_t consumer_id,
                 str type_name not None, settle_there, compacted_source=None) -> None:
        """tail: what those who wait sleep on; of all consumers of the topic here. ledgers: where
        they are read. type_name: as Pulsar's statistics call the type of the subscription.
        settle_there: a call of the control plane; see the pxd. compacted_source: of a consumer that
        reads the topic as it was compacted; with compacted_ledger(), as the catalogue is now."""
        super().__init__(core, tail, topic_name, decompressed_size_max, _NoLimits)
        self.again = self.plain = LedgerReader(ledgers, topic_name)
        if compacted_source is not None:
            self.compacted = CompactedReader(ledgers, topic_name, compacted_source)
        self.link = link
        self.consumer_id = consumer_id
        self.settle_there = settle_there
        self.rewinds = self.comes_together = type_name in ("Exclusive", "Failover")
        self.keeps_key_order = type_name == "Key_Shared"
        self.has_several = not self.rewinds
        mutex_lock(&core.mutex)
        core.dispatcher = self               # whole by now: a timer may fire at once
        mutex_unlock(&core.mutex)

    def __dealloc__(self):
        sent_acks_free(&self.sent)

    def join(self, EntrySink receiver not None) -> None:
        """The owner is about to attach it."""
        mutex_lock(&self.core.mutex)
        receiver.index = 0
        receiver.redelivery.timed = receiver.redelivery.ack_timeout_ms != 0 or self.core.ttl_ms != 0
        self.receivers.append(receiver)
        self.receiver = receiver
        mutex_unlock(&self.core.mutex)

    @property
    def is_attached(self) -> bool:
        """Whether the owner there is has attached it."""
        return bool(self.attached)

    def begin(self) -> None:
        """The owner has attached it: let messages come, behind what was acknowledged before."""
        cdef SentAck* each
        cdef size_t at
        mutex_lock(&self.core.mutex)
        try:
            self.attached = True
            for at in range(self.sent.at, self.sent.end):
                each = &self.sent.acks[at]
                self.link.tell(each.kind, self.consumer_id, each.ledger_id, each.first, each.count,
                               0)
            if self.receiver is not None:
                self.give_permits()
        finally:
            mutex_unlock(&self.core.mutex)

    def leave(self, EntrySink receiver not None) -> None:
        """Detach the receiver and drop what it has; its caller tells the owner, which has it
        again."""
        mutex_lock(&self.core.mutex)
        try:
            self.receiver = None
            self.again_view = None
            self.forget_all()
            receiver.index = PENDING_NOBODY
            self.wakes = True
        finally:
            mutex_unlock(&self.core.mutex)
            self.settle()

    def forget_all(self) -> None:
        """Nothing arrived, but for what is on its way to the dead letters. Mutex held."""
        cdef EntrySink each
        self.core.forget(True, True)
        self.generation += 1
        self.again_view = None
        self.unacknowledged = 0
        self.arrived_ledger = self.arrived_end = 0
        self.coming = self.pieces = None
        for each in self.receivers:
            each.clear()
            each.permits = each.queue_size
            each.queued = 0
            each.taken = 0
            each.unacknowledged = 0

    # From the owner -------------------------------------------------------------------------------

    def chunk(self, uint64_t ledger_id, uint64_t message) -> None:
        """Note where a chunk is of the message that arrives next. By the thread that reads the
        connection."""
        if self.coming is None:
            self.coming = []
        self.coming.append((ledger_id, message))

    def arrive(self, uint64_t ledger_id, uint64_t first, uint64_t count,
               uint32_t redelivery_count) -> None:
        """Messages of a ledger are this consumer's. By the thread that reads the connection, which
        calls `settled` when all have arrived that came together."""
        cdef bint some_told
        cdef uint64_t message
        cdef PendingAck* ack
        mutex_lock(&self.core.mutex)
        try:
            coming, self.coming = self.coming, None
            self.granted -= <int64_t>count
            if self.receiver is None:
                return
            if self.rewinds_asked != self.rewinds_done and self.rewinds:
                return
            if self.rewinds_asked != self.rewinds_done and self.keeps_key_order:
                self.link.tell(LINK_GIVE_BACK, self.consumer_id, ledger_id, first, count, 0)
                return
            some_told = sent_acks_cover(&self.sent, ledger_id, first, count)
            if coming is not None and not some_told:
                if self.pieces is None:
                    self.pieces = {}
                self.pieces[ledger_id, first] = coming
            if (ledger_id, first + count) > (self.arrived_ledger, self.arrived_end):
                self.arrived_ledger = ledger_id
                self.arrived_end = first + count
            for message in range(first, first + count):
                if some_told and sent_acks_cover(&self.sent, ledger_id, message, 1):
                    continue             # the owner sent it before it heard of that
                ack = self.core.add(ledger_id, message)
                # One that is refused comes with all behind it, so it waits for that here.
                if self.kept is not None and (ledger_id, message) in self.kept and (
                        ack.state == PENDING_HELD or (
                            ack.state == PENDING_NACKED and self.rewinds)):
                    self.kept.discard((ledger_id, message))
                    continue             # it was handed out under the owner before
                if ack.state == PENDING_HELD or ack.state == PENDING_NACKED:
                    self.let_go(ack)         # it comes again all the same
                    self.core.cancel_timer(ack)
                elif ack.state != PENDING_NONE:
                    continue                 # it is here already
                ack.redelivery_count = <uint32_t>min(redelivery_count,
                                                     <uint32_t>PENDING_COUNT_MAX)
                ack.consumer = PENDING_NOBODY
                ack.tag = TIMER_NONE
                pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_DUE)
                if self.receiver.redelivery.is_too_often(redelivery_count):
                    try:
                        self.give_up(ledger_id, message, ack, self.receiver)
                    except Exception:
                        pass             # tried once more when it is taken, by who is told
            if self.receiver.queue_size == 0 and not self.asking and not self.rewinds:
                self.return_unseen()         # nobody asks any more
            self.wakes = True
        finally:
            mutex_unlock(&self.core.mutex)

    def reset(self, uint64_t received, int64_t permits, uint64_t rewinds_done,
              bint moved) -> None:
        """See LINK_RESET. By the thread that reads the connection."""
        mutex_lock(&self.core.mutex)
        try:
            self.rewinds_done = rewinds_done
            self.granted = permits + <int64_t>(self.flown - received)
            if moved:
                self.forget_all()
            self.resets_done += 1
            self.link.tell(LINK_RESET_DONE, self.consumer_id, self.resets_done, 0, 0, 0)
            if self.receiver is not None:
                self.give_permits()
            self.wakes = True
        finally:
            mutex_unlock(&self.core.mutex)
            self.settle()

    def recorded(self, uint64_t count) -> None:
        """So many acknowledgements are recorded by this owner. By the thread that reads the
        connection."""
        mutex_lock(&self.core.mutex)
        sent_acks_recorded(&self.sent, count)
        mutex_unlock(&self.core.mutex)

    def unrecorded(self) -> list:
        """[(kind, ledger id, first, count)]: the acknowledgements that no owner has said to be
        recorded, as they were sent."""
        cdef size_t at
        mutex_lock(&self.core.mutex)
        try:
            return [(self.sent.acks[at].kind, self.sent.acks[at].ledger_id,
                     self.sent.acks[at].first, self.sent.acks[at].count)
                    for at in range(self.sent.at, self.sent.end)]
        finally:
            mutex_unlock(&self.core.mutex)

    def resume(self, OwnerLink link not None, uint64_t consumer_id) -> None:
        """Another owner is about to attach the consumer: what was not handed out is void. Call
        `begin` afterwards."""
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef PendingAck* ack
        mutex_lock(&self.core.mutex)
        try:
            self.link = link
            self.consumer_id = consumer_id
            self.attached = False
            if self.core.ttl_ms:
                self.core.ttl_ms = 0     # the next owner tells its own
                self.ttl_changed()
            self.granted = 0
            self.flown = self.rewinds_asked = self.rewinds_done = self.resets_done = 0
            self.arrived_ledger = self.arrived_end = 0
            self.coming = None
            self.kept = set()
            while True:
                ack = pending_acks_next(&self.core.pending, &ledger_id, &message)
                if ack == NULL:
                    break
                if ack.state == PENDING_QUEUED or ack.state == PENDING_DUE:
                    self.drop(ledger_id, message, ack)
                else:
                    if ack.state == PENDING_HELD or ack.state == PENDING_NACKED:
                        self.kept.add((ledger_id, message))
                    self.arrived_ledger = ledger_id
                    self.arrived_end = message + 1
                message += 1
            if self.receiver is not None:
                self.receiver.clear()
            self.sent.recorded_count = 0     # by the next one
        finally:
            mutex_unlock(&self.core.mutex)
            self.settle()

    def first_open(self) -> tuple | None:
        """(ledger id, ordinal) of the first message that is here and not acknowledged, or else of
        the one behind those that were; None: none came."""
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        mutex_lock(&self.core.mutex)
        try:
            if pending_acks_next(&self.core.pending, &ledger_id, &message) != NULL:
                return ledger_id, message
            return (self.arrived_ledger, self.arrived_end) if self.arrived_ledger else None
        finally:
            mutex_unlock(&self.core.mutex)

    def became(self, bint active) -> None:
        """It reads from now on, or does not any more. By the thread that reads the connection."""
        mutex_lock(&self.core.mutex)
        try:
            if self.receiver is not None and self.receiver.events is not None:
                self.receiver.events.tell(active, self.receiver.partition)
        finally:
            mutex_unlock(&self.core.mutex)

    # What the consumer takes ----------------------------------------------------------------------

    cdef int dispatch(self) except -1:
        cdef EntrySink receiver = self.receiver
        if receiver is None:
            return 0
        if self.core.unarmed:
            self.core.rearm()
        if receiver.queue_size == 0 and receiver.queued == 0 and receiver.permits <= 0:
            receiver.permits = 1
            self.asking = True
        while self.core.pending.due_count and receiver.permits > 0 and (
                receiver.queue.count == 0 or receiver.queued < LOOK_AHEAD_MESSAGES):
            self.push_due(receiver, <uint64_t>receiver.permits)
            self.say_loss()
        return self.give_permits()

    cdef bint supply(self, EntrySink receiver) except -1:
        if receiver.next_slice():
            return True
        receiver.drop_view()
        self.dispatch()
        return receiver.next_slice()

    cdef bint is_ready(self, EntrySink receiver) except -1:
        while True:
            if receiver.queued and self.core.ttl_ms:
                self.expire_queued(receiver)
            if receiver.queued:
                return True
            self.dispatch()
            if receiver.queued == 0 or self.core.ttl_ms == 0:
                return receiver.queued != 0

    def is_busy(self) -> bool:
        """Whether a thread has its mutex, be it this one."""
        if not mutex_try_lock(&self.core.mutex):
            return True
        mutex_unlock(&self.core.mutex)
        return False

    cdef int wake_sleepers(self) except -1:
        self.tail.wake()                 # one that reads the connection is woken as a watcher
        return 0

    cdef int sleep(self, WaitEvent* event, uint32_t seen, int64_t left_ns) except -1:
        cdef OwnerLink link = self.link  # of this owner
        # Who reads the connection keeps its thread from others.
        if others_run_here() or not link.lead(event, seen, left_ns, self.tail.watchers, self.tail):
            return PendingDispatcher.sleep(self, event, seen, left_ns)
        return 0

    cdef bint ask_there(self) except -1:
        cdef uint64_t before
        while True:
            before = self.resets_done
            self.flown_asked = self.flown
            control_plane.perform_held(self.settle_there)
            if before == self.resets_done:
                return True
            # The owner has just heard how much there is room for.

    cdef bint asks_more(self) except -1:
        return self.flown != self.flown_asked

    cdef int stopped_asking(self) except -1:
        self.asking = False
        if self.granted > 0 and self.attached:
            self.flown -= <uint64_t>self.granted
            self.link.tell(LINK_FLOW, self.consumer_id, <uint64_t>-self.granted, 0, 0, 0)
            self.granted = 0
        return self.return_unseen() if not self.rewinds else 0

    cdef int return_unseen(self) except -1:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef PendingAck* ack
        while self.core.pending.due_count or self.receiver.queued:
            ack = pending_acks_next(&self.core.pending, &ledger_id, &message)
            if ack == NULL:
                break
            if ack.state == PENDING_QUEUED or ack.state == PENDING_DUE:
                self.drop(ledger_id, message, ack)
                self.link.tell(LINK_GIVE_BACK, self.consumer_id, ledger_id, message, 1, 0)
            message += 1
        return 0

    def has_read_all(self) -> bool:
        return not self.core.pending.due_count

    cdef int expire(self, uint64_t ledger_id, uint64_t first, uint64_t end) except -1:
        self.acknowledged(ledger_id, first, end - first)
        return self.tell_ack(LINK_EXPIRED, ledger_id, first, end - first)

    cdef bint read_again(self, EntryContext context, uint64_t ledger_id,
                         uint64_t message) except -1:
        cdef bint found = True
        cdef list pieces = None if self.pieces is None else self.pieces.get((ledger_id, message))
        if pieces is None:
            return PendingDispatcher.read_again(self, context, ledger_id, message)
        try:
            for of_ledger, at in pieces:
                found = self.step_to(of_ledger, at) == READ_ENTRY and found
                if found:
                    self.read_chunk(self.again)
            return found and PendingDispatcher.read_again(self, context, ledger_id, message)
        except errors.CorruptDataError as error:
            self.note_loss(errors.detail_of(error))
            return False
        finally:
            if self.core.chunks is not None:
                self.core.chunks.clear()

    cdef bint frame_again(self, uint64_t ledger_id, uint64_t message) except -1:
        cdef int step = self.step_to(ledger_id, message)
        if step == READ_DAMAGE:
            self.note_loss(self.count_damage(self.again))
        elif step == READ_NOTHING and self.compacted is not None:
            # Compacted away since the owner read it.
            self.tell_ack(LINK_ACKNOWLEDGE, ledger_id, message, 1)
        return step == READ_ENTRY

    cdef int step_to(self, uint64_t ledger_id, uint64_t message) except -1:
        """See LedgerReader.read_message; `again` is the reader that did it."""
        cdef int step
        if self.compacted is None:
            return self.again.read_message(ledger_id, message)
        self.again = self.compacted
        step = self.again.read_message(ledger_id, message)
        if step != READ_NOTHING:
            return step
        # Another compaction took it away, or took it over while its ledger was trimmed.
        self.again = self.plain
        step = self.again.read_message(ledger_id, message)
        if step != READ_NOTHING:
            return step
        self.again = self.compacted
        self.again.find(ledger_id, message)
        return self.again.read_message(ledger_id, message)

    cdef int give_permits(self) except -1:
        """Let the owner send as much as there is room for, once that is half of the queue."""
        cdef EntrySink receiver = self.receiver
        cdef int64_t room = receiver.permits - self.granted - <int64_t>self.core.pending.due_count
        if not self.attached or self.rewinds_asked != self.rewinds_done:
            return 0
        if room <= 0 or (2 * room < receiver.queue_size and self.granted > 0):
            return 0
        self.granted += room
        self.flown += <uint64_t>room
        return self.link.tell(LINK_FLOW, self.consumer_id, <uint64_t>room, 0, 0, 0)

    # What becomes of messages ---------------------------------------------------------------------

    cdef int drop(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1:
        if self.pieces is not None:
            self.pieces.pop((ledger_id, message), None)
        return PendingDispatcher.drop(self, ledger_id, message, ack)

    cdef int tell_ack(self, int kind, uint64_t ledger_id, uint64_t first,
                      uint64_t count) except -1:
        sent_acks_keep(&self.sent, kind, ledger_id, first, count)
        if not self.attached:
            return 0             # `begin` tells it
        return self.link.tell(kind, self.consumer_id, ledger_id, first, count, 0)

    cdef int acknowledge_there(self, uint64_t ledger_id, uint64_t first,
                               uint64_t count) except -1:
        mutex_lock(&self.core.mutex)
        try:
            self.tell_ack(LINK_ACKNOWLEDGE, ledger_id, first, count)
            self.acknowledged(ledger_id, first, count)
        finally:
            mutex_unlock(&self.core.mutex)
            if self.wakes:
                self.settle()
        return 0

    cdef int acknowledge_through_there(self, uint64_t ledger_id, uint64_t end) except -1:
        mutex_lock(&self.core.mutex)
        try:
            self.tell_ack(LINK_ACKNOWLEDGE_THROUGH, ledger_id, end, 0)
            self.acknowledged_through(ledger_id, end)
        finally:
            mutex_unlock(&self.core.mutex)
            if self.wakes:
                self.settle()
        return 0

    cdef object begin_in(self, TransactionCore transaction):
        """Find what acknowledges there. Mutex not held."""
        cdef object there
        transaction.require_open()
        there = self.transact_there()
        if there is None:
            raise errors.AlreadyClosed(detail="consumer")
        return there

    def acknowledge_in(self, TransactionCore transaction not None, list runs not None) -> None:
        """Acknowledge messages in a transaction, (ledger id, first, count) each, all or none.
        Returns when the owner has noted it; raises what that refuses it with. Mutex not held."""
        cdef object there = self.begin_in(transaction)
        cdef uint64_t resets = self.resets_done
        cdef uint64_t ledger_id
        cdef uint64_t message
        cdef PendingAck* ack
        cdef list here = []
        mutex_lock(&self.core.mutex)
        try:
            for ledger_id, first, count in runs:
                for message in range(first, first + count):
                    ack = pending_acks_find(&self.core.pending, ledger_id, message)
                    if ack != NULL:
                        here.append((ledger_id, message, ack.redelivery_count))
        finally:
            mutex_unlock(&self.core.mutex)
        control_plane.perform(there, (transaction, runs))
        mutex_lock(&self.core.mutex)
        try:
            # What was aborted by now may have come again: it stays.
            if resets != self.resets_done:
                return
            for ledger_id, message, redeliveries in here:
                ack = pending_acks_find(&self.core.pending, ledger_id, message)
                if ack != NULL and ack.redelivery_count == <uint32_t>redeliveries:
                    self.acknowledged(ledger_id, message, 1)
        finally:
            mutex_unlock(&self.core.mutex)
            if self.wakes:
                self.settle()

    def acknowledge_through_in(self, TransactionCore transaction not None, uint64_t ledger_id,
                               uint64_t end) -> None:
        """Acknowledge everything before a message in a transaction; like acknowledge_in."""
        cdef object there = self.begin_in(transaction)
        cdef uint64_t resets = self.resets_done
        control_plane.perform(there, (transaction, None, ledger_id, end))
        mutex_lock(&self.core.mutex)
        try:
            if resets == self.resets_done:
                self.acknowledged_through(ledger_id, end)
        finally:
            mutex_unlock(&self.core.mutex)
            if self.wakes:
                self.settle()

    cdef int go_there(self, uint64_t ledger_id, uint64_t message, int64_t delay_ms) except -1:
        """A message is to be delivered again, to any consumer that has room then."""
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        if ack != NULL:
            self.drop(ledger_id, message, ack)
        if self.keeps_key_order:
            self.return_unseen()
        self.link.tell(LINK_NACK, self.consumer_id, ledger_id, message, 1, <uint64_t>delay_ms)
        if self.keeps_key_order and self.attached:
            self.rewinds_asked += 1
            self.link.tell(LINK_REWIND, self.consumer_id, 0, 0, 0, 0)
        return 0

    cdef int rewind_there(self, uint64_t ledger_id, uint64_t message) except -1:
        """A message is to be delivered again, and all behind it; ledger id 0: all of them."""
        cdef uint64_t unseen_ledger = self.arrived_ledger
        cdef uint64_t unseen = self.arrived_end
        cdef uint64_t at_ledger = 0
        cdef uint64_t at = 0
        cdef PendingAck* ack
        if unseen_ledger == 0:
            return 0             # nothing arrived that could come again
        while True:
            ack = pending_acks_next(&self.core.pending, &at_ledger, &at)
            if ack == NULL:
                break
            if ack.state == PENDING_QUEUED or ack.state == PENDING_DUE:
                if (at_ledger, at) < (unseen_ledger, unseen):
                    unseen_ledger = at_ledger
                    unseen = at
                self.drop(at_ledger, at, ack)
            elif ack.state != PENDING_DEAD and (at_ledger, at) >= (ledger_id, message):
                self.drop(at_ledger, at, ack)
            at += 1
        self.receiver.clear()
        self.core.rearm()
        self.arrived_ledger, self.arrived_end = min(
            (ledger_id, message), (unseen_ledger, unseen))
        if not self.attached:
            return 0             # reading begins anew anyway
        self.rewinds_asked += 1
        return self.link.tell(LINK_REWIND, self.consumer_id, ledger_id, message, unseen_ledger,
                              unseen)

    cdef int nack(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                  int64_t delay_ms) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        if self.receiver is None or (ack == NULL and self.rewinds):
            return 0
        # One that the owner has again may have another delay from now on.
        if ack == NULL or ack.state == PENDING_HELD or ack.state == PENDING_NACKED or (
                not self.rewinds and ack.state != PENDING_DEAD):
            return self.postpone(ledger_id, message, delay_ms)
        return 0

    cdef int postpone(self, uint64_t ledger_id, uint64_t message, int64_t delay_ms) except -1:
        if self.rewinds:
            return PendingDispatcher.postpone(self, ledger_id, message, delay_ms)
        return self.go_there(ledger_id, message, delay_ms)

    cdef int again_or_dead(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1:
        # Whether it is a dead letter is found out when it comes again.
        if self.rewinds:
            ack.tag = TIMER_NONE
            pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_NACKED)
            return self.note_due(ledger_id, message)
        return self.go_there(ledger_id, message, 0)

    cdef int all_due(self) except -1:
        cdef uint64_t ledger_id = self.again_ledger
        cdef uint64_t message = self.again_message
        if ledger_id == 0:
            return 0
        self.again_ledger = 0
        try:
            if self.attached:
                self.tell_refused(ledger_id, message)
            return self.rewind_there(ledger_id, message)
        except BaseException:
            self.due_again(ledger_id, message)
            raise

    cdef int tell_refused(self, uint64_t ledger_id, uint64_t message) except -1:
        """Say which messages from this one on were refused, or are overdue: they count when it all
        comes again, which is asked for next."""
        cdef uint64_t first = 0
        cdef uint64_t count = 0          # of the run that begins with first
        cdef uint64_t at_ledger = ledger_id
        cdef uint64_t at = message
        cdef bint times_out = self.receiver is not None and (
            self.receiver.redelivery.ack_timeout_ms != 0)
        cdef PendingAck* ack
        while True:
            ack = pending_acks_next(&self.core.pending, &at_ledger, &at)
            if count and (ack == NULL or at_ledger != ledger_id or at != first + count):
                self.link.tell(LINK_NACK, self.consumer_id, ledger_id, first, count, INT64_MAX)
                count = 0
            if ack == NULL:
                return 0
            if ack.state == PENDING_NACKED or (
                    times_out and ack.state == PENDING_HELD and ack.tag == TIMER_NONE):
                if count == 0:
                    ledger_id, first = at_ledger, at
                count += 1
            at += 1

    cdef int revive(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                    int64_t delay_ms) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        if ack == NULL or ack.state != PENDING_DEAD:
            return 0
        if not self.rewinds or self.receiver is None:
            pending_acks_remove(&self.core.pending, ledger_id, message)
            return self.link.tell(LINK_NACK, self.consumer_id, ledger_id, message, 1,
                                  <uint64_t>delay_ms)
        ack.consumer = PENDING_NOBODY
        ack.tag = TIMER_NONE
        pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_NACKED)
        return self.postpone(ledger_id, message, delay_ms)

    cdef int redeliver(self, EntrySink receiver) except -1:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef PendingAck* ack
        if self.receiver is None:
            return 0
        if self.rewinds:
            return self.rewind_there(0, 0)
        while True:
            ack = pending_acks_next(&self.core.pending, &ledger_id, &message)
            if ack == NULL:
                break
            if ack.state == PENDING_HELD:
                self.go_there(ledger_id, message, 0)
            message += 1
        self.return_unseen()
        receiver.clear()
        self.core.rearm()
        if self.attached:        # those, too, that wait there for their time
            self.rewinds_asked += 1
            self.link.tell(LINK_REWIND, self.consumer_id, 0, 0, 1, 0)
        return 0

    cdef uint64_t lose_messages(self, uint64_t ledger_id, uint64_t first,
                                uint64_t end) except? 18446744073709551615:
        self.loss_kept = end > first
        if end <= first:
            return 0
        self.acknowledged(ledger_id, first, end - first)
        self.tell_ack(LINK_ACKNOWLEDGE, ledger_id, first, end - first)
        return end - first

    def set_delayed_delivery(self, bint delayed_delivery, int64_t early_ms) -> None:
        """The owner keeps the time."""
