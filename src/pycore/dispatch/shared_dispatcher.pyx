# cython: language_level=3
"""Body of shared_dispatcher.pxd."""

from cpython.list cimport PyList_GET_ITEM
from cpython.ref cimport Py_INCREF
from libc.stdint cimport UINT32_MAX, UINT64_MAX, int64_t, uint16_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.cursor_state cimport CursorState, LedgerAcks, cursor_state_find
from pulsarx._core.entry_frame cimport ENTRY_CHUNK
from pulsarx._core.key_order cimport KEY_CONSUMERS_MAX
from pulsarx._core.message_runs cimport MessageRuns
from pulsarx._core.pending_acks cimport (
    PENDING_COUNTED, PENDING_DEAD, PENDING_DELAYED, PENDING_GIVEN, PENDING_NOBODY, PENDING_NONE,
    PENDING_QUEUED, PENDING_RESTORED, PendingAck, pending_acks_add, pending_acks_add_run,
    pending_acks_find, pending_acks_next, pending_acks_next_absent, pending_acks_set_state,
)
from pulsarx._core.single_metadata cimport METADATA_BATCH
from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.timer_wheel cimport TIMER_NONE, timer_wheel_cancel
from pulsarx._pycore.message.chunked_message cimport Chunk, ChunkedMessage
from pulsarx._pycore.message.entry_view cimport (
    ENTRY_PLAIN, EntryContext, EntryView, entry_view_chunked, entry_view_is_packed,
    entry_view_new, entry_view_share, entry_view_stored,
)
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader, READ_DAMAGE, READ_NOTHING
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.ledger.ledger_tail import LedgerWanted
from pulsarx._pycore.message.message_at cimport message_place
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.dispatch.pending_dispatcher cimport (
    PendingDispatcher, count_queued, queue_for,
)
from pulsarx._pycore.dispatch.entry_sink cimport EntrySink
from pulsarx._pycore.dispatch.entry_source cimport CHUNK_WAITS, CHUNK_WHOLE
from pulsarx._pycore.dispatch.slice_queue cimport Slice
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.dispatch.transacted_acks cimport TransactedAcks, TransactionAcks

cdef enum Tuning:
    # messages and entries dispatched for one who already has something to do: more would only grow
    # cold, or wait for the room of others
    LOOK_AHEAD_MESSAGES = 64
    LOOK_AHEAD_ENTRIES = 64
    # a run of messages that were dealt with before: from so many on, searching beats reading
    SKIP_MESSAGES_MIN = 1024


cdef inline uint32_t queue_open(SharedDispatcher self, EntrySink receiver, uint64_t room,
                                uint32_t key_hash, uint16_t key_hint,
                                uint64_t* message) except? 4294967295:
    """Note the view's messages from this one on as queued, as far as nobody dealt with them, with
    the last tag: how many, at most room; message: one behind them. What raises changes nothing."""
    cdef EntryView view = self.view
    cdef uint64_t ledger_id = view.ledger_id
    cdef uint64_t end = view.first_message + view.message_count
    cdef CursorState* state = &self.core.tracker.c_state
    cdef LedgerAcks* acks = cursor_state_find(state, ledger_id)
    cdef uint32_t tag = self.last_tag
    cdef uint32_t given = 0
    cdef uint64_t count
    cdef uint64_t at
    cdef bint unread
    cdef PendingAck* ack
    cdef TransactedAcks transacted = self.core.transacted
    # Where nothing is acknowledged from here on, as usual, it is not asked of each.
    unread = end - message[0] > 1 and ledger_id >= state.acknowledged_below and (
        transacted is None) and (
        acks == NULL or (acks.bits.beyond == 0 and acks.bits.contiguous <= message[0]))
    while message[0] < end and given < room:
        if unread:
            ack = pending_acks_add_run(&self.core.pending, ledger_id, message[0],
                                       min(end - message[0], room - given), &count)
            if ack == NULL:
                self.unqueue(view, message[0], tag)
                raise MemoryError("remember delivered messages: out of memory")
            for at in range(count):
                if ack[at].state == PENDING_NONE or ack[at].state == PENDING_COUNTED:
                    queue_for(self, receiver.index, ledger_id, message[0] + at, &ack[at], key_hash,
                              key_hint, tag)
                    given += 1
            message[0] += count
            continue
        if not is_acknowledged(state, acks, ledger_id, message[0]) and (
                transacted is None or not transacted.has(ledger_id, message[0])):
            ack = pending_acks_add(&self.core.pending, ledger_id, message[0])
            if ack == NULL:
                self.unqueue(view, message[0], tag)
                raise MemoryError("remember a delivered message: out of memory")
            if ack.state == PENDING_NONE or ack.state == PENDING_COUNTED:
                queue_for(self, receiver.index, ledger_id, message[0], ack, key_hash, key_hint, tag)
                given += 1
        message[0] += 1
    return given


cdef class SharedDispatcher(PendingDispatcher):
    """A Shared subscription. Any thread may call; the mutex orders them."""

    def __init__(self, SubscriptionCore core not None, LedgerTail tail not None,
                 str topic_name not None, uint32_t decompressed_size_max, object limits):
        """limits: a DispatchLimits of the broker."""
        super().__init__(core, tail, topic_name, decompressed_size_max, limits)
        self.reader = LedgerReader(tail, topic_name)
        self.crowd = ConsumerCrowd()
        self.delayed_delivery = limits.delayed_delivery
        self.early_ms = limits.early_ms
        self.turn = UINT32_MAX     # the first one is next
        mutex_lock(&self.core.mutex)
        try:
            self.core.dispatcher = self      # whole by now: a timer may fire at once
            self.core.forget(False, False)
            self.restart()
        finally:
            mutex_unlock(&self.core.mutex)

    # Who receives ---------------------------------------------------------------------------------

    def join(self, EntrySink receiver not None, object key_shared=None) -> None:
        """Dispatch what is already published to the receivers already attached, then add this one.
        Call `settled` afterwards.

        key_shared: the policy of a Key_Shared consumer, else None.
        """
        mutex_lock(&self.core.mutex)
        try:
            # Who waits is woken where there is something for him. Of a thousand each newcomer would
            # wake all others in vain; it looks itself.
            if self.dispatch_all():
                self.wakes = True
            index = 0
            while index < len(self.receivers) and self.receivers[index] is not None:
                index += 1
            if index == KEY_CONSUMERS_MAX:
                raise errors.ConsumerAssignError(
                    detail=f"the subscription of {self.topic_name} has {index} consumers; that is "
                    "the most"
                )
            if index == len(self.receivers):
                self.receivers.append(None)
            receiver.index = index
            receiver.redelivery.timed = (
                receiver.redelivery.ack_timeout_ms != 0 or self.core.ttl_ms != 0)
            try:
                self.joined(receiver, key_shared)
            except BaseException:
                receiver.index = PENDING_NOBODY
                raise
            self.receivers[index] = receiver
            self.receiver_count += 1
            self.core.chunk_limits = receiver.chunk_limits
        finally:
            mutex_unlock(&self.core.mutex)

    def leave(self, EntrySink receiver not None) -> None:
        """Detach a receiver; its messages go to the others, and are not counted as redelivered.
        Call `settled` afterwards."""
        mutex_lock(&self.core.mutex)
        try:
            if receiver.index == PENDING_NOBODY:
                return
            self.give_all_back(receiver)
            self.left(receiver)
            receiver.forget_given()
            receiver.clear()
            self.receivers[receiver.index] = None
            self.receiver_count -= 1
            if self.receiver_count == 0:
                self.view = None           # the next receiver begins with a new dispatcher
                self.again_view = None
            receiver.index = PENDING_NOBODY
            self.core.rearm()
        finally:
            mutex_unlock(&self.core.mutex)

    def release(self) -> None:
        cdef EntrySink each
        mutex_lock(&self.core.mutex)
        self.view = None
        self.again_view = None
        self.reader.let_go()
        if self.again is not None:
            self.again.let_go()
        for each in self.receivers:
            if each is not None:
                each.clear()
        mutex_unlock(&self.core.mutex)

    def leave_gone(self, uint64_t first_id) -> None:
        """The topic begins with this ledger. Mutex held."""
        super().leave_gone(first_id)
        self.reader.leave_gone(first_id)

    cdef int give_all_back(self, EntrySink receiver) except -1:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef PendingAck* ack
        self.all_go_back = True
        try:
            while receiver.unacknowledged:       # else those of all others are walked through, too
                ack = pending_acks_next(&self.core.pending, &ledger_id, &message)
                if ack == NULL:
                    return 0
                if ack.consumer == receiver.index and ack.state != PENDING_DEAD:
                    self.give_back(ledger_id, message, ack)
                message += 1
        finally:
            self.all_go_back = False
        return 0

    cdef int joined(self, EntrySink receiver, object key_shared) except -1:
        return 0

    cdef int left(self, EntrySink receiver) except -1:
        return 0

    cdef inline uint64_t room(self, EntrySink receiver) noexcept:
        cdef uint64_t room
        if receiver.permits <= 0 or receiver.blocked:
            return 0
        room = <uint64_t>receiver.permits
        if self.receiver_max and self.receiver_max - receiver.unacknowledged < room:
            room = self.receiver_max - receiver.unacknowledged
        if self.unacknowledged_max:
            if self.unacknowledged >= self.unacknowledged_max:
                return 0
            if self.unacknowledged_max - self.unacknowledged < room:
                room = self.unacknowledged_max - self.unacknowledged
        return room

    cdef EntrySink next_receiver(self):
        """Return the receiver whose turn it is: the next of the highest level (the lowest number)
        that has room."""
        cdef uint32_t count = <uint32_t>len(self.receivers)
        cdef uint32_t at = self.turn
        cdef uint32_t step
        cdef EntrySink each
        cdef EntrySink best = None
        for step in range(count):
            at += 1
            if at >= count:
                at = 0
            if <object>PyList_GET_ITEM(self.receivers, at) is None:
                continue
            each = <EntrySink>PyList_GET_ITEM(self.receivers, at)
            if self.room(each) and (best is None or each.priority_level < best.priority_level):
                best = each
                if best.priority_level == 0:
                    break
        return best

    # Where it reads -------------------------------------------------------------------------------

    def reset(self, uint64_t ledger_id, uint64_t message) -> None:
        """Seek: everything before the position is acknowledged, nothing from it on; durable on
        return. EntrySink queues are emptied."""
        mutex_lock(&self.core.mutex)
        try:
            # Before the cursor is written, which keeps counts and due times.
            self.core.forget(True, True)
            if self.core.transacted is not None:
                self.core.transacted.drop_acknowledged(self.core.tracker)
            try:
                self.core.tracker.reset(ledger_id, message)
            finally:
                self.restart()
        finally:
            mutex_unlock(&self.core.mutex)

    def move(self, uint64_t ledger_id, uint64_t message) -> None:
        """Nothing was published that could be acknowledged: only read on from the first ledger."""
        mutex_lock(&self.core.mutex)
        try:
            self.core.forget(True, True)
            self.restart()
        finally:
            mutex_unlock(&self.core.mutex)

    cdef int restart(self) except -1:
        """Every queue is empty and reading begins at the first unacknowledged message."""
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef EntrySink each
        self.generation += 1
        self.view = None
        self.again_view = None
        self.unacknowledged = 0
        self.blocked = False
        self.keys_cleared()
        if self.core.chunks is not None:
            self.core.chunks.clear()
        for each in self.receivers:
            if each is not None:
                each.clear()
                each.permits = each.permits + each.queued if each.by_flow else each.queue_size
                each.queued = 0
                each.taken = 0
                each.unacknowledged = 0
                each.blocked = False
        self.core.tracker.mark_delete_position(&ledger_id, &message)
        self.wakes = True
        return self.reader.find(ledger_id, message)

    def statistics(self) -> dict:
        """Statistics of the consumers, dispatched up to now; see Subscription.statistics."""
        cdef EntrySink each
        mutex_lock(&self.core.mutex)
        try:
            self.dispatch_all()
            found = [each.statistics(each.unacknowledged)
                     for each in self.receivers if each is not None]
            counts = {"consumers": found, "unacked_messages": self.unacknowledged,
                      "blocked_subscription_on_unacked_msgs": bool(self.blocked)}
            counts.update(self.key_statistics())
        finally:
            mutex_unlock(&self.core.mutex)
            self.settle()
        return counts

    def delayed_messages(self) -> int:
        """See Dispatcher."""
        mutex_lock(&self.core.mutex)
        try:
            return self.core.delays.wheel.count
        finally:
            mutex_unlock(&self.core.mutex)

    def key_statistics(self) -> dict:
        return {}

    def position(self) -> tuple:
        """(ledger id, offset) of the next frame to be read; for statistics and tests."""
        return (self.reader.passed_ledger_id if self.reader.span is None
                else self.reader.span.ledger_id, self.reader.offset)

    # Dispatch -------------------------------------------------------------------------------------

    cdef int dispatch(self, EntrySink target) except -1:
        """Deliver what can be delivered, until the target has enough to do."""
        cdef uint32_t steps = 0
        if self.core.unarmed:
            self.core.rearm()
        # Slices alone say little: what is left of them may have been acknowledged or recalled.
        while target.queue.count == 0 or target.queued == 0 or (
                target.queued < LOOK_AHEAD_MESSAGES and steps < LOOK_AHEAD_ENTRIES):
            if not self.step():
                return 0
            steps += 1
        return 0

    cdef bint dispatch_all(self) except -1:
        cdef EntrySink each
        cdef bint found = False
        cdef uint64_t steps = LOOK_AHEAD_ENTRIES
        for each in self.receivers:
            steps += self.room(each) if each is not None else 0
        self.defer(True)
        try:
            while steps:
                steps -= 1
                try:
                    if not self.step():
                        break
                except errors.CorruptDataError:
                    pass               # the log tells
                found = True
        except LedgerWanted:
            pass                       # by whoever receives
        finally:
            self.defer(False)
        return found

    cdef int defer(self, bint defers) noexcept:
        self.reader.defers = defers
        return 0

    cdef bint supply(self, EntrySink receiver) except -1:
        if receiver.next_slice():
            return True
        receiver.drop_view()
        if receiver.index == PENDING_NOBODY:
            return False
        if receiver.queue_size == 0 and receiver.queued == 0 and not receiver.by_flow:
            receiver.permits = 1
        try:
            self.dispatch(receiver)
        except LedgerWanted:
            if not receiver.next_slice():
                raise
            return True                # it is not needed yet
        return receiver.next_slice()

    def set_delayed_delivery(self, bint delayed_delivery, int64_t early_ms) -> None:
        """Whether messages wait for their time, and how much before it they may come. Those that
        wait already come at once where none are to."""
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef PendingAck* ack
        mutex_lock(&self.core.mutex)
        try:
            self.delayed_delivery = delayed_delivery
            self.early_ms = early_ms
            while not delayed_delivery:
                ack = pending_acks_next(&self.core.pending, &ledger_id, &message)
                if ack == NULL:
                    break
                if ack.state == PENDING_DELAYED:
                    self.core.cancel_timer(ack)
                    self.delay_over(ledger_id, message, ack)
                    self.wakes = True
                message += 1
            self.core.rearm()
        finally:
            mutex_unlock(&self.core.mutex)
        self.settle()

    cdef bint is_ready(self, EntrySink receiver) except -1:
        if receiver.queued and self.core.ttl_ms:
            self.expire_queued(receiver)
        if receiver.queued == 0 and receiver.index != PENDING_NOBODY:
            if receiver.queue_size == 0:
                receiver.permits = 1
            self.dispatch(receiver)
        return receiver.queued != 0

    cdef int tell_given(self) except -1:
        return self.crowd.tell_given()

    cdef int keys_cleared(self) except -1:
        return 0

    cdef bint lets_pass(self) except -1:
        if self.core.throttle.is_lifted():
            self.core.throttle = None
            return True
        return self.core.throttle.lets_pass(self.reader)

    cdef bint step(self) except -1:
        cdef EntrySink receiver = self.next_receiver()
        if receiver is None:
            return False
        if self.core.throttle is not None and not self.lets_pass():
            return False
        if self.core.pending.due_count:
            return self.give_due(receiver)
        if self.blocked:
            return False
        return self.give_new(receiver)

    cdef bint look_again(self) noexcept:
        """Whether reading found no entry, but something to deliver."""
        cdef bint came = self.came_later
        self.came_later = False
        return came

    cdef bint read_new(self, EntryContext context, bint packed) except -1:
        cdef LedgerReader reader = self.reader
        cdef ChunkedMessage chunked
        cdef EntryView view
        cdef uint64_t ledger_id
        cdef bint taken_apart
        cdef int step
        while True:
            if self.passed_count and self.rests(reader):
                return False
            step = reader.next_entry()
            if step == READ_NOTHING:
                return False
            if step == READ_DAMAGE:
                self.tell_damage(reader)
                continue
            taken_apart = False
            try:
                chunked = None
                if reader.c_frame.flags & ENTRY_CHUNK:
                    step = self.read_chunk(reader)
                    if step == CHUNK_WAITS:
                        if self.came_later:
                            return False     # that one may go out now
                        continue
                    if step == CHUNK_WHOLE:
                        chunked = self.whole
                ledger_id = reader.span.ledger_id
                if self.next_open(ledger_id, reader.c_frame.first_message,
                                  reader.next_message) == reader.next_message:
                    self.skip_far()
                    continue
                if self.core.ttl_ms and self.core.is_expired(reader.c_frame.publish_time_ms):
                    self.expire(ledger_id, reader.c_frame.first_message, reader.next_message)
                    continue
                view = None
                if self.core.filter is not None:
                    # First: what it does not let pass need not wait for its time.
                    taken_apart = chunked is None
                    if chunked is not None:
                        view = entry_view_chunked(chunked, context)
                    else:
                        view = entry_view_new(
                            reader.span.file, context, ledger_id, &reader.c_frame, reader.c_entry,
                            self.decompressed_size_max)
                    if not self.select(view):
                        continue
                if reader.c_frame.deliver_at_ms and self.delayed_delivery and (
                        reader.c_frame.deliver_at_ms > self.core.now_ms() + self.early_ms):
                    self.delay()
                    continue
                if view is not None:
                    self.view = view
                elif chunked is not None:
                    self.view = entry_view_chunked(chunked, context)
                elif packed:
                    taken_apart = True
                    self.view = entry_view_stored(
                        reader.span.file, context, ledger_id, &reader.c_frame, reader.c_entry)
                else:
                    taken_apart = True
                    self.view = entry_view_new(
                        reader.span.file, context, ledger_id, &reader.c_frame, reader.c_entry,
                        self.decompressed_size_max)
            except errors.CorruptDataError as error:
                if not taken_apart:
                    raise              # of a chunk, and told
                self.lose_entry(reader, error)
                continue
            except BaseException:      # no memory, Ctrl-C in a codec: nothing is wrong with it
                if reader.c_entry != NULL:
                    reader.unread()
                raise
            self.view_at = 0
            self.view_index = 0
            return True

    def has_read_all(self) -> bool:
        return self.reader.is_at_end()

    cdef int whole_later(self, ChunkedMessage chunked) except -1:
        cdef Chunk* last = &chunked.chunks[chunked.count - 1]
        cdef PendingAck* ack
        if self.next_open(last.ledger_id, last.message, last.message + 1) != last.message:
            return 0
        ack = self.core.add(last.ledger_id, last.message)
        ack.key_hash = chunked.frame.sticky_hash
        self.came_later = True
        return self.give_back(last.ledger_id, last.message, ack)

    cdef inline uint64_t next_open(self, uint64_t ledger_id, uint64_t message,
                                   uint64_t end) noexcept:
        """The first message of [message, end) nobody dealt with, else end."""
        cdef uint64_t absent
        while message < end:
            message = self.core.next_untaken(ledger_id, message, end)
            if message == end or self.core.pending.count == 0:
                return message
            absent = pending_acks_next_absent(&self.core.pending, ledger_id, message, end)
            if absent == message:
                return message
            message = absent
        return end

    cdef int skip_far(self) except -1:
        """The entry read last was dealt with: if the same holds of many behind it, jump."""
        cdef LedgerReader reader = self.reader
        cdef uint64_t far
        if reader.next_message & 63:
            return 0       # look now and then
        far = self.next_open(reader.span.ledger_id, reader.next_message,
                             reader.next_message + SKIP_MESSAGES_MIN)
        if far - reader.next_message < SKIP_MESSAGES_MIN:
            return 0
        far = self.next_open(reader.span.ledger_id, far, <uint64_t>1 << 37)
        reader.skip_to(far)
        return 0

    cdef uint32_t key_hash_of(self, LedgerReader reader) noexcept:
        return reader.c_frame.sticky_hash

    cdef int delay(self) except -1:
        """The entry read last is for later: remember when."""
        cdef LedgerReader reader = self.reader
        cdef uint64_t ledger_id = reader.span.ledger_id
        cdef uint64_t message
        cdef uint32_t timer
        cdef PendingAck* ack
        for message in range(reader.c_frame.first_message, reader.next_message):
            if self.next_open(ledger_id, message, message + 1) != message:
                continue
            timer = self.core.arm(reader.c_frame.deliver_at_ms - self.early_ms, ledger_id, message)
            ack = pending_acks_add(&self.core.pending, ledger_id, message)
            if ack == NULL:
                timer_wheel_cancel(&self.core.delays.wheel, timer)
                raise MemoryError("keep a message for later: out of memory")
            pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_DELAYED)
            ack.tag = timer
            ack.key_hash = self.key_hash_of(reader)
            self.core.delayed_changed += 1
        return self.core.keep_delayed(False)

    cdef bint is_unread(self, uint64_t ledger_id, uint64_t message) noexcept:
        cdef LedgerReader reader = self.reader
        cdef EntryView view = self.view
        if ledger_id > reader.passed_ledger_id or (
                ledger_id == reader.passed_ledger_id and message >= reader.next_message):
            return True
        return view is not None and view.ledger_id == ledger_id and (
            view.first_message + self.view_index <= message
            < view.first_message + view.message_count)

    cdef int delay_over(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1:
        cdef LedgerReader reader = self.reader
        if ledger_id > reader.passed_ledger_id or (
                ledger_id == reader.passed_ledger_id and message >= reader.next_message):
            # Reading began anew meanwhile and will come to it, in its order.
            self.wakes = True
            return self.core.unread(ledger_id, message, ack)
        if ack.flags & PENDING_RESTORED:
            if not self.frame_again(ledger_id, message):
                return self.lost(ledger_id, message)
            ack.key_hash = self.key_hash_of(self.again)
            ack.flags = 0
        return self.give_back(ledger_id, message, ack)

    cdef bint give_new(self, EntrySink receiver) except -1:
        """Give the receiver the next entry, or as much of it as it has room for."""
        if self.view is None and not self.read_new(receiver.context,
                                                   receiver.takes_entries):
            return self.look_again()
        self.turn = receiver.index
        self.give_run(receiver, self.room(receiver), 0, 0)
        return True

    cdef uint32_t give_run(self, EntrySink receiver, uint64_t room, uint32_t key_hash,
                           uint16_t key_hint) except? 4294967295:
        """Give the receiver the view's next messages, as many as it has room for; how many."""
        cdef EntryView view = self.view
        cdef uint64_t message = view.first_message + self.view_index
        cdef uint64_t end = view.first_message + view.message_count
        cdef uint32_t given
        cdef uint32_t walked = self.view_index
        cdef int status = STATUS_OK
        cdef EntryView shared = view
        cdef Slice slice
        if view.encryption != ENTRY_PLAIN or receiver.takes_entries or entry_view_is_packed(view):
            room = UINT64_MAX    # as a whole; of what is encrypted it is not known what is where
        # Memory first: where it runs out, the view and the table stay as they are.
        receiver.reserve_slice()
        if view.context is not receiver.context and (self.view_index or room < end - message):
            shared = entry_view_share(view, receiver.context)
        shared = receiver.view_to_queue(shared)
        self.last_tag += 1
        given = queue_open(self, receiver, room, key_hash, key_hint, &message)
        count_queued(self, receiver, given)
        slice.first = self.view_index
        slice.at = self.view_at
        slice.end = <uint32_t>(message - view.first_message)
        slice.tag = self.last_tag
        slice.items = NULL
        slice.item_count = 0
        self.view = None
        if given:
            if self.has_keys:
                self.key_given(key_hash, key_hint, given)
            if shared is view:
                view.context = receiver.context      # nobody else has it
            Py_INCREF(shared)
            slice.view = <void*>shared
            receiver.push(&slice)
        if message < end:
            if view.metadata_flags & METADATA_BATCH:
                status = message_place(view, slice.end, &self.view_at, &walked)
            if status == STATUS_OK:
                self.view_index = slice.end
                self.view = view
        # Last what may raise.
        if given and self.core.throttle is not None:
            self.core.throttle.take(shared, given, 1 if slice.first == 0 else 0)
        if status != STATUS_OK:
            self.lose_rest(view, walked, status)
        return given

    cdef void unqueue(self, EntryView view, uint64_t end, uint32_t tag) noexcept:
        """Messages of the view in front of end that were queued with this tag were not."""
        cdef uint64_t message
        cdef PendingAck* ack
        for message in range(view.first_message + self.view_index, end):
            ack = pending_acks_find(&self.core.pending, view.ledger_id, message)
            if ack != NULL and ack.state == PENDING_QUEUED and ack.tag == tag:
                self.core.unread(view.ledger_id, message, ack)

    cdef int key_given(self, uint32_t key_hash, uint16_t key_hint, uint32_t count) noexcept:
        return 0

    # Delivering again -----------------------------------------------------------------------------

    cdef bint give_due(self, EntrySink receiver) except -1:
        """Give the receiver the first messages that are due, as far as they are of one entry."""
        cdef uint32_t given
        if not self.core.pending.due_count:
            return False
        self.turn = receiver.index
        given = self.push_due(receiver, self.room(receiver))
        if self.core.throttle is not None and given:
            self.core.throttle.take(self.again_view, given, 1)
        self.forget_large(receiver)
        self.say_loss()
        return True

    # Transactions ---------------------------------------------------------------------------------

    cdef int come_back(self, TransactionAcks acks, const MessageRuns* runs) except -1:
        cdef uint64_t ledger_id
        cdef uint64_t message
        cdef size_t at
        for at in range(runs.count):
            ledger_id = runs.runs[at].ledger_id
            for message in range(runs.runs[at].first, runs.runs[at].end):
                self.give_back_untold(ledger_id, message)
                self.core.transacted.release(acks, ledger_id, message)
        return 0

    cdef int give_back_untold(self, uint64_t ledger_id, uint64_t message) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        cdef int64_t due_ms
        cdef uint32_t timer = TIMER_NONE
        cdef uint32_t key_hash = 0
        if ack != NULL and ack.state != PENDING_COUNTED:
            return 0                     # it came back before something was raised
        self.wakes = True
        if self.is_unread(ledger_id, message):
            return 0
        if not self.frame_again(ledger_id, message) or (
                not self.learn_key(ledger_id, message, &key_hash)):
            return 0                     # the log tells
        due_ms = self.again.c_frame.deliver_at_ms
        if due_ms and self.delayed_delivery and due_ms > self.core.now_ms() + self.early_ms:
            timer = self.core.arm(due_ms - self.early_ms, ledger_id, message)
        ack = pending_acks_add(&self.core.pending, ledger_id, message)
        if ack == NULL:
            if timer != TIMER_NONE:
                timer_wheel_cancel(&self.core.delays.wheel, timer)
            raise MemoryError("deliver a message again: out of memory")
        ack.key_hash = key_hash
        if timer != TIMER_NONE:          # it was acknowledged before it was delivered
            pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_DELAYED)
            ack.tag = timer
            return 0
        pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_COUNTED)
        self.core.count_redelivery(ledger_id, message, ack)
        ack.flags = PENDING_GIVEN
        self.give_back(ledger_id, message, ack)
        return self.key_came_back(key_hash, ledger_id, message)

    cdef bint learn_key(self, uint64_t ledger_id, uint64_t message, uint32_t* key_hash) except -1:
        return True
