# cython: language_level=3
"""Body of single_active_dispatcher.pxd."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.ack_bits cimport ack_bits_count_below
from pulsarx._core.cursor_state cimport LedgerAcks, cursor_state_find
from pulsarx._core.entry_frame cimport ENTRY_CHUNK, ENTRY_REWRITTEN
from pulsarx._core.message_runs cimport (
    MessageRuns, message_runs_append, message_runs_cut, message_runs_cut_before,
    message_runs_find, message_runs_free, message_runs_has, message_runs_init, message_runs_meet,
    message_runs_union,
)
from pulsarx._core.pending_acks cimport (
    PENDING_COUNTED, PENDING_DEAD, PENDING_DELAYED, PENDING_HELD, PENDING_NACKED, PENDING_NOBODY,
    PendingAck, pending_acks_find, pending_acks_next, pending_acks_remove, pending_acks_set_state,
)
from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.timer_wheel cimport TIMER_NONE
from pulsarx._pycore.message.chunked_message cimport ChunkedMessage
from pulsarx._pycore.message.entry_view cimport (
    EntryView, entry_view_chunked, entry_view_new, entry_view_stored,
)
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader, READ_DAMAGE, READ_NOTHING
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail, ledger_span_end
from pulsarx._pycore.message.message cimport Message, message_extent, message_ordinal
from pulsarx._pycore.message.message_filter cimport MessageFilter
from pulsarx._pycore.message.message_at cimport chunked_message_at, message_at
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.dispatch.active_choice cimport active_choice
from pulsarx._pycore.dispatch.entry_sink cimport CLAIM_STALE, Dispatcher, EntrySink
from pulsarx._pycore.dispatch.entry_source cimport CHUNK_ORDINARY, CHUNK_WAITS, CHUNK_WHOLE
from pulsarx._pycore.dispatch.dispatch_throttle cimport DispatchThrottle
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.dispatch.transacted_acks cimport TransactionAcks


cdef class SingleActiveDispatcher(Dispatcher):
    """Exclusive, Failover or a reader. Any thread may call; the mutex orders them."""

    def __cinit__(self):
        message_runs_init(&self.repeats)

    def __dealloc__(self):
        message_runs_free(&self.repeats)

    def __init__(self, SubscriptionCore core not None, LedgerTail tail not None,
                 str topic_name not None, uint32_t decompressed_size_max, bint exclusive,
                 int partition_index=-1):
        super().__init__(core, tail, topic_name, decompressed_size_max)
        self.reader = LedgerReader(tail, topic_name)
        self.receivers = []
        self.exclusive = exclusive
        self.comes_together = True
        self.partition_index = partition_index
        if core.tracker is not None:
            mutex_lock(&core.mutex)
            core.dispatcher = self     # whole by now: a timer may fire at once
            mutex_unlock(&core.mutex)

    # Who reads ------------------------------------------------------------------------------------

    def join(self, EntrySink receiver not None, object key_shared=None, int before=-1) -> None:
        """before: how many of the receivers came before it; -1: all of them. ConsumerBusy: it is
        Exclusive and somebody reads already. Call `settled` afterwards."""
        mutex_lock(&self.core.mutex)
        try:
            if self.exclusive and self.receivers:
                raise errors.ConsumerBusy(
                    detail=f"the subscription of {self.topic_name} is Exclusive and has a "
                    f"consumer, {(<EntrySink>self.receivers[0]).consumer_name}; close that one "
                    "first")
            self.receivers.insert(before if before >= 0 else len(self.receivers), receiver)
            receiver.index = 0
            self.core.chunk_limits = receiver.chunk_limits
            try:
                if not self.activate() and not self.exclusive:
                    self.tell(receiver, False)
            except BaseException:
                self.receivers.remove(receiver)
                receiver.index = PENDING_NOBODY
                self.active = None
                self.activate_again()
                raise
        finally:
            mutex_unlock(&self.core.mutex)

    def leave(self, EntrySink receiver not None) -> None:
        """Detach a receiver; what it did not acknowledge goes to the next active one. Call
        `settled` afterwards."""
        mutex_lock(&self.core.mutex)
        try:
            if receiver in self.receivers:
                self.receivers.remove(receiver)
                receiver.index = PENDING_NOBODY
                receiver.clear()
                if receiver is self.active:
                    self.ahead = None
                if self.deposed is not None:
                    self.wakes = True    # it may be the one that the active one waits for
                self.activate()
        finally:
            mutex_unlock(&self.core.mutex)

    def release(self) -> None:
        cdef EntrySink each
        mutex_lock(&self.core.mutex)
        self.ahead = None
        self.reader.let_go()
        for each in self.receivers:
            each.clear()
        mutex_unlock(&self.core.mutex)

    cdef int activate(self) except -1:
        """Let the right one read; 1 when that is another than before."""
        cdef EntrySink chosen = active_choice(self.receivers, self.partition_index)
        cdef EntrySink before = self.active
        if chosen is before:
            return 0
        self.active = chosen
        if before is not None and before in self.receivers:
            self.tell(before, False)
            if chosen is not None:
                self.deposed = [*(self.deposed or ()), before]
        if chosen is not None:
            self.tell(chosen, True)
        self.wakes = True
        self.core.forget(True, False)
        if self.core.tracker is not None:
            self.rewind_to_mark_delete()
        return 1

    cdef bint must_wait(self) except -1:
        cdef EntrySink each
        self.deposed = [each for each in self.deposed if each is not self.active
                        and each in self.receivers and not each.has_let_go()] or None
        return self.deposed is not None

    cdef int activate_again(self) except -1:
        """A newcomer was refused after it had been chosen: the one before reads on."""
        try:
            self.activate()
        except Exception:
            import logging

            # It is the active one by now, and whatever keeps a ledger from being read, its next
            # call is told.
            logging.getLogger("pulsarx").exception(
                "%s: a consumer could not be made the active one", self.topic_name)
        return 0

    def tell(self, EntrySink receiver, bint active) -> None:
        if not self.exclusive:
            if self.told is None:
                self.told = []
            self.told.append((receiver, active))

    # Where it reads -------------------------------------------------------------------------------

    def reset(self, uint64_t ledger_id, uint64_t message) -> None:
        """Seek: everything before the position is acknowledged, nothing from it on; durable on
        return."""
        mutex_lock(&self.core.mutex)
        try:
            # Before the cursor is written, which keeps counts.
            self.core.forget(True, True)
            if self.core.transacted is not None:
                self.core.transacted.drop_acknowledged(self.core.tracker)
            self.end_repeats()
            try:
                self.core.tracker.reset(ledger_id, message)
                self.forget_chunks()
                self.go(ledger_id, message)
            except BaseException:
                self.rewind_to_mark_delete()     # what waited for its time is read again
                raise
        finally:
            mutex_unlock(&self.core.mutex)

    def move(self, uint64_t ledger_id, uint64_t message) -> None:
        """Read on from this message of this ledger (a ledger that is gone: from the next one there
        is).

        ledger_id 0: from the first ledger. Entries handed out before are stale from now on.
        """
        span, offset, entry_id = self.reader.locate(ledger_id, message)
        mutex_lock(&self.core.mutex)
        self.generation += 1
        self.end_repeats()
        self.forget_chunks()
        self.reader.go(span, offset, entry_id, ledger_id, message)
        self.skip_ledger_id = ledger_id
        self.skip_messages = message
        mutex_unlock(&self.core.mutex)

    cdef int go(self, uint64_t ledger_id, uint64_t message) except -1:
        if self.repeating and self.repeat_before(ledger_id, message):
            return 0
        self.generation += 1
        self.skip_ledger_id = ledger_id
        self.skip_messages = message
        return self.reader.find(ledger_id, message)

    cdef int rewind_to_mark_delete(self) except -1:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        self.core.tracker.mark_delete_position(&ledger_id, &message)
        self.end_repeats()
        self.forget_chunks()
        return self.go(ledger_id, message)

    def forget_chunks(self) -> None:
        """Reading begins anew in front of all chunks of unacknowledged messages."""
        self.later = None
        self.late = None
        if self.core.chunks is not None:
            self.core.chunks.clear()

    def statistics(self) -> dict:
        """The figures of the consumers; see Subscription.statistics."""
        cdef EntrySink each
        cdef uint64_t held = 0
        cdef list found = []
        mutex_lock(&self.core.mutex)
        try:
            if self.active is not None:
                held = self.held_count()
            for each in self.receivers:
                found.append(each.statistics(held if each is self.active else 0))
            active = self.active.consumer_name if self.active is not None else ""
        finally:
            mutex_unlock(&self.core.mutex)
        return {"consumers": found, "unacked_messages": held, "active_consumer_name": active}

    def reader_statistics(self) -> tuple:
        """Return the first message (ledger id, ordinal) that a reader was not given, and the
        figures of its consumer."""
        cdef EntrySink each
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        mutex_lock(&self.core.mutex)
        try:
            self.delivered_end(&ledger_id, &message)
            found = [each.statistics(0) for each in self.receivers]
        finally:
            mutex_unlock(&self.core.mutex)
        return (ledger_id, message), found

    def given(self) -> list:
        """See Dispatcher."""
        cdef EntrySink each
        return [(each.consumer_name, each.given.messages, each.given.size)
                for each in list(self.receivers) if each is not None]

    def unacknowledged_messages(self) -> int:
        """See Dispatcher."""
        mutex_lock(&self.core.mutex)
        try:
            return self.held_count() if self.active is not None else 0
        finally:
            mutex_unlock(&self.core.mutex)

    cdef uint64_t held_count(self) except? 0:
        """Messages that were handed out and are not acknowledged."""
        cdef uint64_t ledger_id = 0
        cdef uint64_t first = 0
        cdef uint64_t end_ledger = 0
        cdef uint64_t end = 0
        cdef uint64_t total = 0
        cdef LedgerAcks* acks
        self.delivered_end(&end_ledger, &end)
        for ledger_id in self.core.tracker.ledger_ids:
            if ledger_id > end_ledger:
                break
            acks = cursor_state_find(&self.core.tracker.c_state, ledger_id)
            handed_out = end if ledger_id == end_ledger else self.messages_in(acks)
            if self.core.transacted is not None:
                total += self.count_untaken(ledger_id, 0, handed_out)
            else:
                total += handed_out - ack_bits_count_below(&acks.bits, handed_out)
        if self.core.chunks is not None:
            for at in self.core.chunks.hidden(True):
                if at < (end_ledger, end) and not self.core.is_taken(at[0], at[1]):
                    total -= 1
        if self.repeating:
            total -= min(total, self.count_repeats())
        return total

    cdef uint64_t count_repeats(self) except? 0:
        """The messages that come again and were not handed out yet."""
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef uint64_t found = 0
        cdef size_t at
        self.handed_out_end(&ledger_id, &message)
        for at in range(message_runs_find(&self.repeats, ledger_id, message), self.repeats.count):
            found += self.count_untaken(
                self.repeats.runs[at].ledger_id,
                max(self.repeats.runs[at].first, message)
                if self.repeats.runs[at].ledger_id == ledger_id else self.repeats.runs[at].first,
                self.repeats.runs[at].end)
        return found

    cdef uint64_t count_untaken(self, uint64_t ledger_id, uint64_t first,
                                uint64_t end) except? 0:
        """The messages of [first, end) that are not acknowledged, be it in a transaction."""
        cdef uint64_t at = first
        cdef uint64_t found = 0
        while True:
            at = self.core.next_untaken(ledger_id, at, end)
            if at >= end:
                return found
            found += 1
            at += 1

    def forget_before(self, uint64_t ledger_id) -> None:
        """Ledgers below this one are gone. Mutex held."""
        self.acknowledged_through(ledger_id, 0)

    def leave_gone(self, uint64_t first_id) -> None:
        """The topic begins with this ledger. Mutex held."""
        if type(self.reader) is LedgerReader:
            self.reader.leave_gone(first_id)

    def was_delivered(self, uint64_t ledger_id, uint64_t message) -> bool:
        cdef uint64_t end_ledger = 0
        cdef uint64_t end = 0
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        if ack != NULL and ack.state == PENDING_DEAD:
            return True
        if self.active is None:
            return False         # the next one begins anew
        self.delivered_end(&end_ledger, &end)
        return (ledger_id, message) < (end_ledger, end)

    def position(self) -> tuple:
        """(ledger id, offset) of the next frame to be read; for statistics and tests."""
        return (self.reader.passed_ledger_id if self.reader.span is None
                else self.reader.span.ledger_id, self.reader.offset)

    # Handing out ----------------------------------------------------------------------------------

    cdef int defer(self, bint defers) noexcept:
        self.reader.defers = defers
        return 0

    cdef bint supply(self, EntrySink receiver) except -1:
        cdef EntryView view
        if receiver is not self.active or (self.deposed is not None and self.must_wait()):
            receiver.drop_view()
            return False
        if self.core.unarmed:
            self.core.rearm()
        view = (self.next_view(receiver) if self.core.throttle is None
                else self.throttled_view(receiver))
        receiver.view = view
        if view is None:
            return False
        receiver.place.generation = self.generation
        receiver.place.at = 0
        receiver.place.index = 0
        receiver.place.end = view.message_count
        receiver.count_given(view, view.message_count if self.core.filter is None
                             else self.wanted_count(view))
        receiver.place.filtered = (
            self.core.pending.count != 0 or receiver.redelivery.ack_timeout_ms != 0
            or self.core.ttl_ms != 0 or not self.is_whole(view))
        return True

    cdef int plain_ahead(self) noexcept:
        if self.has_gaps or self.later is not None or self.deposed is not None or (
                self.repeating) or (
                self.core.throttle is not None or self.core.unarmed
                or self.core.filter is not None):
            return -1
        return self.reader.plain_ahead()

    cdef EntryView next_view(self, EntrySink receiver):
        """The next entry with something to deliver, None when nothing more is published."""
        cdef LedgerReader reader = self.reader
        cdef EntryView view
        cdef uint64_t last
        cdef bint taken_apart
        cdef int step
        self.late = None
        while True:
            if self.later is not None:
                view = self.next_later(receiver)
                if view is not None:
                    return view
            if self.repeating:
                self.next_repeat()
            if self.passed_count and self.rests(reader):
                return None
            step = reader.next_entry()
            if step == READ_NOTHING:
                if self.has_gaps:
                    self.pass_gap(True)
                return None
            if step == READ_DAMAGE:
                self.tell_damage(reader)
                continue
            if self.has_gaps:
                self.pass_gap(False)
            last = reader.next_message
            step = CHUNK_ORDINARY
            taken_apart = False
            try:
                if reader.c_frame.flags & ENTRY_CHUNK:
                    step = self.read_chunk(reader)
                    if step == CHUNK_WAITS:
                        continue
                if self.core.tracker is not None:
                    if self.core.next_untaken(
                            reader.span.ledger_id, reader.c_frame.first_message, last) >= last:
                        continue
                if self.repeating and not message_runs_meet(
                        &self.repeats, reader.span.ledger_id, reader.c_frame.first_message,
                        last) and not self.is_repeated(reader.span.ledger_id, last - 1):
                    continue
                if reader.span.ledger_id == self.skip_ledger_id and last <= self.skip_messages:
                    continue
                if self.core.ttl_ms and self.core.is_expired(reader.c_frame.publish_time_ms):
                    self.expire(reader.span.ledger_id, reader.c_frame.first_message, last)
                    continue
                if step == CHUNK_WHOLE:
                    view = entry_view_chunked(self.whole, receiver.context)
                    if self.core.filter is not None and not self.select(view):
                        continue
                    return view
                taken_apart = True
                if receiver.takes_entries and self.core.filter is None and (
                        reader.c_frame.flags & ENTRY_REWRITTEN == 0):
                    return entry_view_stored(reader.span.file, receiver.context,
                                             reader.span.ledger_id, &reader.c_frame,
                                             reader.c_entry)
                view = entry_view_new(reader.span.file, receiver.context, reader.span.ledger_id,
                                      &reader.c_frame, reader.c_entry, self.decompressed_size_max)
                if view.entry_flags & ENTRY_REWRITTEN and not self.takes_rewritten(view):
                    continue
                if self.core.filter is not None and not self.select(view):
                    continue
                return view
            except errors.CorruptDataError as error:
                if not taken_apart:
                    raise              # of a chunk, and told
                self.lose_entry(reader, error)
            except BaseException:      # no memory, Ctrl-C in a codec: nothing is wrong with it
                reader.unread()
                raise

    cdef uint64_t wanted_count(self, EntryView view) noexcept:
        """How many messages of the view, which was just read, are to be delivered."""
        cdef MessageFilter filter = self.core.filter
        if filter is None or not filter.knows(view):
            return view.message_count
        return view.message_count - filter.rejected_count

    cdef EntryView next_later(self, EntrySink receiver):
        """The next chunked message that was read ahead of its turn, None when there is none."""
        cdef ChunkedMessage chunked
        cdef EntryView view
        while self.later:
            chunked = self.later.pop(0)
            if self.core.tracker is None or not self.core.is_taken(
                    chunked.chunks[chunked.count - 1].ledger_id, chunked.frame.first_message):
                view = entry_view_chunked(chunked, receiver.context)
                if self.core.filter is not None and not self.select(view):
                    continue
                self.late = chunked
                return view
        self.later = None
        return None

    cdef EntryView throttled_view(self, EntrySink receiver):
        cdef DispatchThrottle throttle = self.core.throttle
        cdef EntryView view = self.view_ahead(receiver)
        if throttle.is_lifted():
            self.core.throttle = None
        elif view is None or not throttle.lets_pass(self.reader):
            return None
        else:
            throttle.take(view, <uint32_t>self.wanted_count(view), 1)
        self.ahead = None
        return view

    cdef EntryView view_ahead(self, EntrySink receiver):
        cdef EntryView view = self.ahead
        self.ahead = None
        if view is None or self.ahead_generation != self.generation:
            view = self.next_view(receiver)
        elif self.core.ttl_ms and self.core.is_expired(view.publish_time_ms):
            self.expire_view(view)
            view = self.next_view(receiver)
        elif self.core.tracker is not None and self.core.next_untaken(
                view.ledger_id, view.first_message, view.first_message + view.message_count) >= (
                view.first_message + view.message_count):
            view = self.next_view(receiver)
        self.ahead = view
        self.ahead_generation = self.generation
        return view

    cdef bint has_next(self, EntrySink receiver) except -1:
        if self.is_ready(receiver):
            return True
        # A reader is told what there is, be it for later.
        return self.core.tracker is None and self.ahead is not None and (
            self.ahead_generation == self.generation)

    cdef int pass_gap(self, bint to_end) except -1:
        return 0

    cdef bint takes_rewritten(self, EntryView view) except -1:
        return True

    def has_read_all(self) -> bool:
        return self.reader.is_at_end()

    cdef int whole_later(self, ChunkedMessage chunked) except -1:
        if self.later is None:
            self.later = []
        self.later.append(chunked)
        return 0

    cdef int look_for_chunks(self, uint64_t ledger_id, uint64_t end) except -1:
        cdef LedgerReader ahead
        cdef uint64_t at_ledger = self.reader.passed_ledger_id
        cdef int step
        if at_ledger > ledger_id or (
                at_ledger == ledger_id and self.reader.next_message >= end):
            return 0             # all of it was read
        if not control_plane.perform_whole(self.tail.managed_ledger.holds_chunks, ()):
            return 0
        ahead = LedgerReader(self.tail, self.topic_name)
        if self.reader.span is not None:
            ahead.find(self.reader.span.ledger_id, self.reader.next_message)
        else:
            ahead.find(self.reader.start_ledger_id, self.reader.next_message)
        while True:
            step = ahead.next_entry()
            if step == READ_NOTHING:
                break
            if step == READ_DAMAGE:
                continue         # its readers are told
            if ahead.span.ledger_id > ledger_id or (
                    ahead.span.ledger_id == ledger_id and ahead.c_frame.first_message >= end):
                break
            if ahead.c_frame.flags & ENTRY_CHUNK:
                try:
                    self.read_chunk(ahead)
                except errors.CorruptDataError:
                    pass         # the log tells
        if self.reader.span is not None:
            self.come_in_turn(self.reader.span.ledger_id, self.reader.next_message)
        else:
            self.come_in_turn(self.reader.passed_ledger_id + 1, 0)
        return 0

    cdef int keep_late(self) except -1:
        """Reading is about to go back: a message in hand that lies in front of that, and that was
        not handed out, comes all the same."""
        cdef EntrySink active = self.active
        cdef bint in_hand = self.ahead is not None and self.ahead_generation == self.generation
        if not in_hand and active is not None and active.view is not None:
            in_hand = active.place.generation == self.generation and active.place.index == 0
        if self.late is not None and in_hand:
            self.later = [self.late, *(self.later or ())]
        self.late = None
        return 0

    def come_in_turn(self, uint64_t ledger_id, uint64_t message) -> None:
        """Drop the messages set aside for later that are read again, from this message on, so that
        each comes once."""
        cdef ChunkedMessage each
        if self.later:
            self.later = [each for each in self.later if (
                each.chunks[each.count - 1].ledger_id,
                each.chunks[each.count - 1].message) < (ledger_id, message)]

    cdef bint is_whole(self, EntryView view) noexcept:
        """Whether every message of the view is wanted, so that none needs to be asked about."""
        cdef LedgerAcks* acks
        if view.ledger_id == self.skip_ledger_id and view.first_message < self.skip_messages:
            return False
        if self.core.filter is not None and self.core.filter.rejected_count:
            return False
        if self.core.tracker is None:
            return True
        if self.repeating or self.core.transacted is not None:
            return False
        acks = cursor_state_find(&self.core.tracker.c_state, view.ledger_id)
        return acks == NULL or (acks.bits.beyond == 0
                                and acks.bits.contiguous <= view.first_message)

    cdef bint is_wanted(self, EntryView view, uint64_t message) noexcept:
        # One that comes late lies in front of where reading went on.
        if view.ledger_id == self.skip_ledger_id and message < self.skip_messages and (
                self.late is None):
            return False
        if self.repeating and self.late is None and not self.is_repeated(view.ledger_id, message):
            return False
        if self.core.tracker is None:
            return self.core.filter is None or (
                not self.core.filter.rejects(view.ledger_id, message))
        return not self.core.is_taken(view.ledger_id, message)

    cdef int claim(self, EntrySink receiver, EntryView view, uint32_t index) except -2:
        cdef uint64_t message = view.first_message + index
        cdef PendingAck* ack
        if not self.is_wanted(view, message):
            return CLAIM_STALE
        if self.core.ttl_ms and self.core.is_expired(view.publish_time_ms):
            self.expire_view(view)
            return CLAIM_STALE
        if receiver.redelivery.ack_timeout_ms:
            ack = self.core.add(view.ledger_id, message)
            if ack.state != PENDING_DEAD and ack.state != PENDING_NACKED:
                self.core.cancel_timer(ack)
                ack.tag = TIMER_NONE
                pending_acks_set_state(&self.core.pending, view.ledger_id, message, ack,
                                       PENDING_HELD)
                ack.tag = self.core.arm_wait(receiver.ack_due_ms(), view.ledger_id, message)
        else:
            ack = pending_acks_find(&self.core.pending, view.ledger_id, message)
            if ack == NULL:
                return 0
        return CLAIM_STALE if ack.state == PENDING_DEAD else <int>ack.redelivery_count

    cdef int unreceive(self, EntrySink receiver, list messages) except -1:
        # With what other threads of the same consumer took behind the first of them.
        cdef Message each = messages[0]
        cdef uint64_t ledger_id = each.entry.ledger_id
        cdef uint64_t first = message_ordinal(each)
        cdef uint64_t end_ledger = 0
        cdef uint64_t end = 0
        cdef uint64_t at
        cdef PendingAck* ack
        self.delivered_end(&end_ledger, &end)
        if receiver is not self.active or (ledger_id, first) >= (end_ledger, end):
            return 0             # it is handed out again anyway
        for each in messages:
            if each.entry.chunked is not None:
                self.core.assembler().remember(each.entry.chunked)
            for at in range(message_ordinal(each), message_ordinal(each) + message_extent(each)):
                ack = pending_acks_find(&self.core.pending, each.entry.ledger_id, at)
                if ack != NULL and ack.state == PENDING_HELD:
                    self.core.unread(each.entry.ledger_id, at, ack)
        self.core.rearm()
        self.wakes = True
        if self.repeating:
            return self.repeat_messages(messages)
        for each in messages:        # one that came late lies in front of others
            ledger_id, first = min((ledger_id, first),
                                   (each.entry.ledger_id, message_ordinal(each)))
        self.keep_late()
        self.come_in_turn(ledger_id, first)
        return self.go(ledger_id, first)

    cdef int repeat_messages(self, list messages) except -1:
        """Hand out messages again that were taken while others were repeated."""
        cdef MessageRuns runs
        cdef Message each
        cdef RepeatPlace place
        cdef list found = []
        cdef uint64_t ledger_id
        cdef uint64_t first
        cdef uint64_t end
        cdef int status = STATUS_OK
        for each in messages:
            first = message_ordinal(each)
            found.append((each.entry.ledger_id, first, first + message_extent(each)))
        self.find_place(&place)
        message_runs_init(&runs)
        try:
            for ledger_id, first, end in sorted(found):
                status = message_runs_append(&runs, ledger_id, first, end)
                if status != STATUS_OK:
                    raise MemoryError("take messages back: out of memory")
            self.repeat(&runs, &place)
        finally:
            message_runs_free(&runs)
        return 0

    cdef int64_t bytes_ahead(self) noexcept:
        if self.reader.span is None:
            return 0
        return <int64_t>ledger_span_end(self.reader.span) - <int64_t>self.reader.offset

    cdef bint is_ready(self, EntrySink receiver) except -1:
        while True:
            if receiver.view is None or receiver.place.generation != self.generation:
                if not receiver.fill():
                    return False
            if self.core.ttl_ms and self.core.is_expired(receiver.view.publish_time_ms):
                self.expire_view(receiver.view)
                receiver.drop_view()
                continue
            if not receiver.place.filtered or self.has_wanted(receiver):
                return True
            receiver.drop_view()       # what is left of it was acknowledged, or is dead

    cdef bint has_wanted(self, EntrySink receiver) noexcept:
        cdef EntryView view = receiver.view
        cdef uint64_t message
        cdef PendingAck* ack
        for message in range(view.first_message + receiver.place.index,
                             view.first_message + receiver.place.end):
            if self.is_wanted(view, message):
                ack = pending_acks_find(&self.core.pending, view.ledger_id, message)
                if ack == NULL or ack.state != PENDING_DEAD:
                    return True
        return False

    # Acknowledgements and redelivery --------------------------------------------------------------

    def ttl_changed(self) -> None:
        if self.active is not None:
            self.active.place.filtered = True

    cdef void ask_about_view(self, uint64_t ledger_id, uint64_t end) noexcept:
        """Up to end something was acknowledged: maybe what the active one has yet to hand out."""
        cdef EntrySink active = self.active
        if active is not None and active.view is not None and (
                active.view.ledger_id < ledger_id
                or (active.view.ledger_id == ledger_id
                    and active.view.first_message + active.place.index < end)):
            active.place.filtered = True

    cdef int acknowledged(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1:
        cdef uint64_t at_ledger = ledger_id
        cdef uint64_t at = first
        cdef PendingAck* ack
        self.ask_about_view(ledger_id, first + count)
        while self.core.pending.count:
            ack = pending_acks_next(&self.core.pending, &at_ledger, &at)
            if ack == NULL or at_ledger != ledger_id or at >= first + count:
                break
            self.core.cancel_timer(ack)
            pending_acks_remove(&self.core.pending, at_ledger, at)
            at += 1
        return 0

    cdef int acknowledged_through(self, uint64_t ledger_id, uint64_t end) except -1:
        cdef uint64_t at_ledger = 0
        cdef uint64_t at = 0
        cdef PendingAck* ack
        self.ask_about_view(ledger_id, end)
        while self.core.pending.count:
            ack = pending_acks_next(&self.core.pending, &at_ledger, &at)
            if ack == NULL or at_ledger > ledger_id or (at_ledger == ledger_id and at >= end):
                break
            self.core.cancel_timer(ack)
            pending_acks_remove(&self.core.pending, at_ledger, at)
            at += 1
        return 0

    cdef int set_aside(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1:
        cdef uint64_t at_ledger = ledger_id
        cdef uint64_t at = first
        cdef PendingAck* ack
        self.ask_about_view(ledger_id, first + count)
        while self.core.pending.count:
            ack = pending_acks_next(&self.core.pending, &at_ledger, &at)
            if ack == NULL or at_ledger != ledger_id or at >= first + count:
                break
            self.core.unread(at_ledger, at, ack)
            at += 1
        return 0

    cdef int set_aside_through(self, uint64_t ledger_id, uint64_t end) except -1:
        cdef uint64_t at_ledger = 0
        cdef uint64_t at = 0
        cdef PendingAck* ack
        self.ask_about_view(ledger_id, end)
        while self.core.pending.count:
            ack = pending_acks_next(&self.core.pending, &at_ledger, &at)
            if ack == NULL or at_ledger > ledger_id or (at_ledger == ledger_id and at >= end):
                break
            self.core.unread(at_ledger, at, ack)
            at += 1
        return 0

    cdef int nack(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                  int64_t delay_ms) except -1:
        # What a consumer had that is active no more went on to the one that is.
        return self.redeliver_later(receiver, ledger_id, message, delay_ms) if (
            receiver is self.active) else 0

    cdef int redeliver_later(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                             int64_t delay_ms) except -1:
        cdef uint64_t end_ledger = 0
        cdef uint64_t end = 0
        cdef uint32_t timer
        cdef PendingAck* ack
        self.delivered_end(&end_ledger, &end)
        if ledger_id > end_ledger or (ledger_id == end_ledger and message >= end) or (
                self.core.is_taken(ledger_id, message)):
            return 0
        ack = pending_acks_find(&self.core.pending, ledger_id, message)
        if ack != NULL and ack.state == PENDING_DEAD:
            return 0
        # First: what raises there changes nothing.
        timer = self.core.arm_wait(self.core.gathered_ms(delay_ms), ledger_id, message) if (
            delay_ms) else <uint32_t>TIMER_NONE
        ack = self.core.add(ledger_id, message)
        self.core.cancel_timer(ack)
        ack.tag = timer
        pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_NACKED)
        return self.due(ledger_id, message, 0) if delay_ms == 0 else 0

    cdef EntrySink asks_backoff(self, uint64_t ledger_id, uint64_t message):
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        cdef EntrySink active = self.active
        if ack == NULL or ack.state != PENDING_HELD or ack.tag != TIMER_NONE:
            return None
        if active is None or active.redelivery.ack_timeout_backoff is None:
            return None
        return active

    cdef int due(self, uint64_t ledger_id, uint64_t message, int64_t backoff_ms) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        if ack == NULL:
            return 0
        ack.tag = TIMER_NONE
        if ack.state == PENDING_DELAYED:
            # Of the Shared consumers that were here before: it is read like any other now.
            return self.core.unread(ledger_id, message, ack)
        if ack.state != PENDING_NACKED and ack.state != PENDING_HELD:
            return 0
        if ack.state == PENDING_HELD and backoff_ms:
            ack.tag = self.core.arm_wait(self.core.later_ms(backoff_ms), ledger_id, message)
            pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_NACKED)
            return 0
        pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_NACKED)
        return self.note_due(ledger_id, message)

    cdef int all_due(self) except -1:
        cdef uint64_t ledger_id = self.again_ledger
        cdef uint64_t message = self.again_message
        if ledger_id == 0:
            return 0
        self.again_ledger = 0
        try:
            return self.rewind_from(ledger_id, message, False)
        except BaseException:
            self.due_again(ledger_id, message)
            raise

    cdef int revive(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                    int64_t delay_ms) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        if ack == NULL or ack.state != PENDING_DEAD:
            return 0
        if self.core.tracker.is_acknowledged(ledger_id, message):
            pending_acks_remove(&self.core.pending, ledger_id, message)     # by a seek
            return 0
        pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_COUNTED)
        return self.redeliver_later(receiver, ledger_id, message, delay_ms)

    cdef int redeliver(self, EntrySink receiver) except -1:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        if receiver is not self.active:
            return 0
        self.core.tracker.mark_delete_position(&ledger_id, &message)
        return self.rewind_from(ledger_id, message, True)

    cdef int rewind(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                    uint64_t unseen_ledger, uint64_t unseen) except -1:
        cdef uint64_t end_ledger = 0
        cdef uint64_t end = 0
        if receiver is not self.active:
            return 0
        self.delivered_end(&end_ledger, &end)
        if (unseen_ledger, unseen) < (end_ledger, end):
            self.keep_late()
            self.come_in_turn(unseen_ledger, unseen)
            self.go(unseen_ledger, unseen)
            self.wakes = True
        if ledger_id != 0:
            return self.rewind_from(ledger_id, message, False)
        self.core.tracker.mark_delete_position(&ledger_id, &message)
        return self.rewind_from(ledger_id, message, True)

    cdef int delivered_end(self, uint64_t* ledger_id, uint64_t* message) except -1:
        """The first message that was not handed out."""
        self.handed_out_end(ledger_id, message)
        if self.repeating and (ledger_id[0] < self.repeats_end_ledger or (
                ledger_id[0] == self.repeats_end_ledger and message[0] < self.repeats_end)):
            ledger_id[0] = self.repeats_end_ledger
            message[0] = self.repeats_end
        return 0

    cdef int handed_out_end(self, uint64_t* ledger_id, uint64_t* message) except -1:
        cdef EntrySink active = self.active
        if active is not None and active.view is not None and self.late is None and (
                active.place.generation == self.generation):
            ledger_id[0] = active.view.ledger_id
            message[0] = active.view.first_message + active.place.index
        elif self.ahead is not None and self.late is None and (
                self.ahead_generation == self.generation):
            ledger_id[0] = self.ahead.ledger_id
            message[0] = self.ahead.first_message
        elif self.reader.span is not None:
            ledger_id[0] = self.reader.span.ledger_id
            message[0] = self.reader.next_message
        else:
            ledger_id[0] = self.reader.passed_ledger_id + 1
            message[0] = 0
        return 0

    cdef int rewind_from(self, uint64_t ledger_id, uint64_t message, bint counts_all) except -1:
        """Hand out again what was handed out from this message on and is not acknowledged.
        counts_all: each of them was redelivered once more, not only those that were refused."""
        cdef uint64_t end_ledger = 0
        cdef uint64_t end = 0
        cdef uint64_t first
        cdef uint64_t at
        cdef LedgerAcks* acks
        self.delivered_end(&end_ledger, &end)
        if ledger_id > end_ledger or (ledger_id == end_ledger and message >= end):
            return 0
        try:
            if not counts_all:
                self.count_refused(ledger_id, message, end_ledger, end)
            else:
                for at in self.core.tracker.ledger_ids:
                    if at < ledger_id or at > end_ledger:
                        continue
                    acks = cursor_state_find(&self.core.tracker.c_state, at)
                    first = message if at == ledger_id else 0
                    self.count_all(at, first, end if at == end_ledger else self.messages_in(acks))
        finally:
            self.keep_late()
            self.come_in_turn(ledger_id, message)
            self.go(ledger_id, message)      # what is buried was read with the same reader
        self.wakes = True
        self.core.rearm()
        return 0

    cdef uint64_t messages_in(self, LedgerAcks* acks) except? 0:
        """The number of messages of a ledger that was read to its end; the tracker may not know yet
        that it is sealed."""
        if acks.sealed:
            return acks.message_count
        return self.tail.messages_in(acks.ledger_id)

    cdef int count_all(self, uint64_t ledger_id, uint64_t first, uint64_t end) except -1:
        cdef uint64_t at = first
        cdef set hidden = self.core.chunks.hidden(True) if self.core.chunks is not None else None
        while True:
            at = self.core.next_untaken(ledger_id, at, end)
            if at >= end:
                return 0
            if hidden is None or (ledger_id, at) not in hidden:
                self.count_one(ledger_id, at, self.core.add(ledger_id, at))
            at += 1

    cdef int count_refused(self, uint64_t ledger_id, uint64_t message, uint64_t end_ledger,
                           uint64_t end) except -1:
        """The others come again because they lie behind those, and nobody complained of them."""
        cdef uint64_t at_ledger = ledger_id
        cdef uint64_t at = message
        cdef PendingAck* ack
        while True:
            ack = pending_acks_next(&self.core.pending, &at_ledger, &at)
            if ack == NULL or at_ledger > end_ledger or (at_ledger == end_ledger and at >= end):
                return 0
            if ack.state == PENDING_NACKED or (
                    ack.state == PENDING_HELD and ack.tag == TIMER_NONE):    # it is overdue
                self.count_one(at_ledger, at, ack)
            elif ack.state == PENDING_HELD:
                self.core.unread(at_ledger, at, ack)
            at += 1

    cdef int count_one(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1:
        """Redeliver the message once more, or give it up."""
        cdef EntrySink active = self.active
        cdef ChunkedMessage chunked
        if ack.state == PENDING_DEAD:
            return 0
        self.core.cancel_timer(ack)
        self.core.count_redelivery(ledger_id, message, ack)
        pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_COUNTED)
        if active is None or not active.redelivery.is_too_often(ack.redelivery_count):
            return 0
        chunked = None
        if self.core.chunks is not None:
            chunked = self.core.chunks.find(ledger_id, message)
        if chunked is not None:
            dead = chunked_message_at(chunked, active.context, ack.redelivery_count,
                                      self.decompressed_size_max)
        else:
            dead = message_at(self.reader, active.context, ledger_id, message,
                              ack.redelivery_count, self.decompressed_size_max)
        if dead is not None:
            pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_DEAD)
            self.bury(active, dead)
        return 0

    # Out of turn ----------------------------------------------------------------------------------

    cdef int come_back(self, TransactionAcks acks, const MessageRuns* runs) except -1:
        cdef EntrySink active = self.active
        cdef MessageRuns back
        cdef MessageRuns none
        cdef RepeatPlace place
        cdef uint64_t at
        cdef size_t number
        cdef bint counted = False
        self.find_place(&place)
        message_runs_init(&back)
        message_runs_init(&none)
        try:
            if message_runs_union(runs, &none, &back) != STATUS_OK:
                raise MemoryError("deliver messages again: out of memory")
            message_runs_cut(&back, place.end_ledger, place.end)     # what was not delivered yet
            if back.count == 0:
                return 0
            try:
                for number in range(back.count):
                    for at in range(back.runs[number].first, back.runs[number].end):
                        self.count_one(back.runs[number].ledger_id, at,
                                       self.core.add(back.runs[number].ledger_id, at))
                counted = True
            finally:                 # what is buried was read with the same reader
                if counted and active is not None and active.by_flow and (
                        not active.takes_entries):
                    # It is in another process, and takes positions in their order.
                    self.keep_late()
                    self.come_in_turn(back.runs[0].ledger_id, back.runs[0].first)
                    self.go(back.runs[0].ledger_id, back.runs[0].first)
                else:
                    self.repeat(&back if counted else &none, &place)
        finally:
            message_runs_free(&back)
        self.wakes = True
        self.core.rearm()
        return 0

    cdef int find_place(self, RepeatPlace* place) except -1:
        self.delivered_end(&place.end_ledger, &place.end)
        return self.handed_out_end(&place.ledger_id, &place.message)

    cdef int repeat(self, const MessageRuns* runs, const RepeatPlace* place) except -1:
        cdef MessageRuns joined
        cdef ChunkedMessage each
        if self.repeating:
            message_runs_cut_before(&self.repeats, place.ledger_id, place.message)
        message_runs_init(&joined)
        if message_runs_union(&self.repeats, runs, &joined) != STATUS_OK:
            raise MemoryError("deliver messages again: out of memory")
        self.keep_late()
        if self.later:                   # of those, one that was not handed out comes in its turn
            self.later = [each for each in self.later if not message_runs_has(
                &joined, each.chunks[each.count - 1].ledger_id,
                each.chunks[each.count - 1].message)]
        self.end_repeats()
        self.repeats = joined
        self.repeats_end_ledger = place.end_ledger
        self.repeats_end = place.end
        self.repeating = True
        self.ahead = None
        self.generation += 1
        self.skip_ledger_id = 0
        self.wakes = True
        if joined.count == 0:
            return self.pass_repeats()
        return self.reader.find(joined.runs[0].ledger_id, joined.runs[0].first)

    cdef int pass_repeats(self) except -1:
        """Go on where reading was before messages were repeated."""
        cdef uint64_t ledger_id = self.repeats_end_ledger
        cdef uint64_t message = self.repeats_end
        self.end_repeats()
        self.skip_ledger_id = ledger_id
        self.skip_messages = message
        return self.reader.find(ledger_id, message)

    cdef bint repeat_before(self, uint64_t ledger_id, uint64_t message) except -1:
        cdef uint64_t at_ledger = 0
        cdef uint64_t at = 0
        self.handed_out_end(&at_ledger, &at)
        message_runs_cut_before(&self.repeats, at_ledger, at)
        message_runs_cut(&self.repeats, ledger_id, message)
        if self.repeats.count == 0:
            self.end_repeats()
            return False
        if ledger_id < self.repeats_end_ledger or (
                ledger_id == self.repeats_end_ledger and message < self.repeats_end):
            self.repeats_end_ledger = ledger_id
            self.repeats_end = message
        self.generation += 1
        self.reader.find(self.repeats.runs[0].ledger_id, self.repeats.runs[0].first)
        return True

    cdef int next_repeat(self) except -1:
        cdef LedgerReader reader = self.reader
        cdef uint64_t ledger_id = reader.passed_ledger_id + 1
        cdef uint64_t message = 0
        cdef size_t at
        if reader.span is not None:
            ledger_id = reader.span.ledger_id
            message = reader.next_message
        elif reader.start_ledger_id:
            ledger_id = reader.start_ledger_id
            message = reader.next_message
        if ledger_id > self.repeats_end_ledger or (
                ledger_id == self.repeats_end_ledger and message >= self.repeats_end):
            return self.end_repeats()
        at = message_runs_find(&self.repeats, ledger_id, message)
        if at < self.repeats.count:
            if self.repeats.runs[at].ledger_id == ledger_id and (
                    self.repeats.runs[at].first <= message):
                return 0
            return reader.find(self.repeats.runs[at].ledger_id, self.repeats.runs[at].first)
        return self.pass_repeats()

    cdef int end_repeats(self) noexcept:
        self.repeating = False
        message_runs_free(&self.repeats)
        return 0
