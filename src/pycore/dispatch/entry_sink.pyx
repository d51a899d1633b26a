# cython: language_level=3
"""Body of entry_sink.pxd."""

from collections import deque

cimport cython
from cpython.mem cimport PyMem_Free
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._pycore.message.entry_view import KeyWanted
from pulsarx._core.ack_bits cimport ack_bits_count_below
from pulsarx._core.cursor_state cimport LedgerAcks, cursor_state_find
from pulsarx._core.message_runs cimport MessageRuns
from pulsarx._core.pending_acks cimport (
    PENDING_DELAYED, PENDING_HELD, PENDING_NACKED, PENDING_NOBODY, PendingAck, pending_acks_find,
)
from pulsarx._core.timer_wheel cimport TIMER_NONE, TimerNode, timer_wheel_pop
from pulsarx._core.wait_event cimport WaitEvent
from pulsarx._pycore.cursor.ack_tracker cimport AckTracker
from pulsarx._pycore.dispatch.chunk_assembler cimport ChunkAssembler
from pulsarx._pycore.message.chunked_message cimport ChunkedMessage
from pulsarx._pycore.message.entry_view cimport (
    ENTRY_UNREADABLE, EntryContext, EntryView, entry_view_join, entry_view_repacked,
)
from pulsarx._pycore.message.message cimport REDELIVERY_SHIFT, Message, message_ordinal
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.ground.waits cimport sleep_on
from pulsarx._pycore.dispatch.entry_source cimport CRYPTO_CONSUME, CRYPTO_DISCARD, CRYPTO_FAIL
from pulsarx._pycore.dispatch.redelivery cimport DeadLetterSink, Redelivery, packed_letter
from pulsarx._pycore.dispatch.slice_queue cimport (
    Slice, plain_has_room, slices_at, slices_clear, slices_free, slices_pop, slices_push,
    slices_push_first, slices_reserve,
)
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.dispatch.transacted_acks cimport TransactionAcks

cdef enum:
    FAILED_DUE_MS = 1000         # how long a redelivery waits that failed


cdef class ConsumerEvents:
    """See the pxd."""

    def __init__(self, SerialWork work not None) -> None:
        self.work = work
        self.waiting = deque()

    cdef int tell(self, bint active, int partition) except -1:
        self.waiting.append((active, partition))
        return self.work.due()

    def take(self) -> tuple[bool, int] | None:
        """(active, partition) as told, in order; None: nothing waits."""
        return self.waiting.popleft() if self.waiting else None


cdef class EntrySink:
    """The base of what consumers receive with. With the subscription's mutex held."""

    def __init__(self, Dispatcher dispatcher not None, EntryContext context not None,
                 str consumer_name not None, object settings):
        """settings: a ReceiverSettings of the broker; None for a reader."""
        self.dispatcher = dispatcher
        self.context = context
        self.consumer_name = consumer_name
        self.index = PENDING_NOBODY
        self.redelivery = Redelivery(settings)
        self.queue_size = 1000
        self.chunk_limits.pending_max = 10
        if settings is not None:
            self.priority_level = settings.priority_level
            self.queue_size = settings.receiver_queue_size
            self.properties = settings.properties
            self.chunk_limits.pending_max = settings.chunked_pending_max
            self.chunk_limits.acknowledges_oldest = settings.acks_oldest_chunked
            self.chunk_limits.expiry_ms = settings.chunked_expiry_ms
        self.permits = self.queue_size

    def __dealloc__(self):
        self.drop_view()
        slices_free(&self.queue)

    cdef Message take(self):
        raise NotImplementedError

    cdef bint fill(self) except -1:
        return self.dispatcher.supply(self)

    cdef void push(self, const Slice* slice) noexcept:
        self.count_given(<EntryView>slice.view, slice.item_count if slice.items != NULL
                         else slice.end - slice.first)
        slices_push(&self.queue, slice)
        if self.member is not None and not self.member.was_given and (
                self.member.notify is not None):
            self.member.was_given = True
            self.dispatcher.given_count += 1

    cdef void push_first(self, const Slice* slice) noexcept:
        slices_push_first(&self.queue, slice)

    cdef EntryView bounded_view(self, EntryView view):
        if self.passes_on or not plain_has_room(view):
            return entry_view_repacked(view, self.context)
        return view

    cdef int reserve_slices(self, uint32_t count) except -1:
        return slices_reserve(&self.queue, count)

    cdef uint32_t slice_messages(self) noexcept:
        cdef Slice slice
        cdef uint32_t found = 0
        cdef uint32_t number
        for number in range(self.queue.count + 1):
            if self.slice_at(number, &slice):
                found += slice.end - slice.first
        return found

    cdef bint next_slice(self) noexcept:
        cdef Slice* slice
        if self.queue.count == 0:
            return False
        slice = slices_pop(&self.queue)
        self.forget_given()          # it looks
        self.drop_view()
        self.view = <EntryView>slice.view
        Py_DECREF(self.view)          # the queue's reference became this object's
        self.place.generation = self.dispatcher.generation
        self.place.items = slice.items
        self.place.item_at = 0
        self.place.at = slice.at
        self.place.index = slice.first
        self.place.end = slice.item_count if slice.items != NULL else slice.end
        self.place.tag = slice.tag
        self.place.filtered = True
        return True

    cdef void forget_given(self) noexcept:
        if self.member is not None and self.member.was_given:
            self.member.was_given = False
            self.dispatcher.given_count -= 1

    cdef bint slice_at(self, uint32_t number, Slice* slice) noexcept:
        if number:
            slice[0] = slices_at(&self.queue, number - 1)[0]
            if slice.items != NULL:
                slice.first = 0
                slice.end = slice.item_count
            return True
        if self.view is None:
            return False
        slice.view = <void*>self.view
        slice.items = self.place.items
        slice.first = self.place.item_at if self.place.items != NULL else self.place.index
        slice.end = self.place.end
        slice.tag = self.place.tag
        return True

    cdef void drop_view(self) noexcept:
        self.view = None
        if self.place.items != NULL:
            PyMem_Free(self.place.items)
            self.place.items = NULL

    cdef void clear(self) noexcept:
        self.drop_view()
        slices_clear(&self.queue)

    cdef bint has_let_go(self) noexcept:
        return True

    cdef inline void stop_asking(self) noexcept:
        if self.queue_size == 0:
            self.permits = 0

    cdef int64_t ack_due_ms(self) except -1:
        return self.redelivery.at_tick(
            self.dispatcher.core.later_ms(self.redelivery.ack_timeout_ms))

    def statistics(self, uint64_t unacknowledged) -> dict:
        """Return the figures of Pulsar's consumer stats. available_permits: messages that may still
        be pushed. reads_ledger_on_receive: Exclusive and Failover, where nothing is pushed: no
        message waits in a queue, and the permits stay what receiver_queue_size says."""
        return {
            "consumer_name": self.consumer_name,
            "available_permits": self.permits,
            "receiver_queue_size": self.queue_size,
            "reads_ledger_on_receive": not (self.dispatcher.shares
                                            or self.dispatcher.keeps_nothing),
            "unacked_messages": unacknowledged,
            "priority_level": self.priority_level,
            "receiver_queue_messages": self.queued,
            "blocked_consumer_on_unacked_msgs": bool(self.blocked),
            "metadata": dict(self.properties or {}),
            "msg_out_counter": self.given.messages,
            "bytes_out_counter": self.given.size,
        }

    def set_dead_letters(self, uint32_t max_redeliver_count, DeadLetterSink sink) -> None:
        """From so many redeliveries on, hand messages to the sink instead of redelivering."""
        if sink is not None:
            sink.decompressed_size_max = self.dispatcher.decompressed_size_max
        self.redelivery.max_redeliver_count = max_redeliver_count
        self.redelivery.dead_letters = sink

    def set_events(self, ConsumerEvents events, int partition) -> None:
        """Tell them when this receiver becomes active or inactive, as of that partition."""
        self.events = events
        self.partition = partition

    def revive(self, Message message not None) -> None:
        """A dead message could not be given up: have it delivered again later, whatever is closed
        or forgotten. Takes the mutex."""
        cdef SubscriptionCore core = self.dispatcher.core
        # With no mutex held: a backoff is the user's code.
        cdef int64_t delay_ms = self.redelivery.nack_delay(message.flags >> REDELIVERY_SHIFT)
        cdef uint64_t first = message_ordinal(message)
        cdef Dispatcher dispatcher
        mutex_lock(&core.mutex)
        try:
            # The type of the subscription may have changed since the message was buried.
            dispatcher = core.dispatcher
            if dispatcher is None:
                return       # closed: it is unread for whoever opens it again
            dispatcher.revive(self, message.entry.ledger_id, first, delay_ms)
            dispatcher.all_due()
        finally:
            mutex_unlock(&core.mutex)
        dispatcher.settle()


cdef class Dispatcher(EntrySource):
    """Hands the messages of a subscription or reader to its receivers; base of all kinds."""

    cdef int defer(self, bint defers) noexcept:
        return 0

    cdef bint supply(self, EntrySink receiver) except -1:
        raise NotImplementedError

    cdef int claim(self, EntrySink receiver, EntryView view, uint32_t index) except -2:
        raise NotImplementedError

    cdef int unclaim(self, EntrySink receiver, EntryView view, uint32_t index) except -1:
        return 0

    cdef int unreceive(self, EntrySink receiver, list messages) except -1:
        raise NotImplementedError

    cdef int pass_over(self, EntrySink receiver, EntryView view, uint32_t index) except -1:
        return 0

    # Messages in chunks ---------------------------------------------------------------------------

    cdef int join_chunks(self, EntrySink receiver, EntryView view) except -1:
        view.defers_keys = True
        try:
            entry_view_join(view, self.decompressed_size_max)
        except KeyWanted as wanted:
            self.unclaim(receiver, view, 0)
            receiver.key_wanted = wanted.fetch
            return 0
        except errors.UnreadableEntryError as error:
            text = f"{errors.detail_of(error)}; it stays unacknowledged; reading goes on behind"
            self.report_loss(text)
            receiver.drop_view()
            raise self.loss(errors.UnreadableEntryError, text)
        except errors.CorruptDataError as error:
            receiver.drop_view()
            if self.lose_messages(view.ledger_id, view.first_message, view.first_message + 1):
                self.raise_loss(f"{errors.detail_of(error)}; {self.count_text(1)}; reading goes on "
                                f"behind")
            return 0
        except BaseException:
            self.unclaim(receiver, view, 0)
            raise
        if view.encryption == ENTRY_UNREADABLE:
            self.undecrypted_chunks(receiver, view)
        return 0

    # What cannot be decrypted ---------------------------------------------------------------------

    cdef int failure_action(self, EntrySink receiver) except -1:
        decryption = receiver.context.decryption
        return CRYPTO_FAIL if decryption is None else <int>int(decryption.failure_action)

    def undecrypted_chunks(self, EntrySink receiver, EntryView view) -> None:
        """A claimed message in chunks cannot be decrypted."""
        cdef int action = self.failure_action(receiver)
        self.tell_undecrypted(view, action)
        if action == CRYPTO_CONSUME:
            return
        if receiver.place.filtered:
            self.claim(receiver, view, 0)        # unless it was: it is held from now on
        receiver.drop_view()
        if action == CRYPTO_DISCARD:
            self.discard(view, 0)

    # Expiry ---------------------------------------------------------------------------------------

    def unacknowledged_messages(self) -> int:
        """How many messages were handed out, or queued for a consumer, and not acknowledged. Takes
        the mutex and dispatches nothing."""
        raise NotImplementedError

    def given(self) -> list:
        """(name, messages, bytes) of each consumer: what it was given up to now."""
        raise NotImplementedError

    def set_delayed_delivery(self, bint delayed_delivery, int64_t early_ms) -> None:
        """Has an effect on Shared and Key_Shared; others deliver in order."""

    def set_unacknowledged_limits(self, uint64_t of_receiver, uint64_t of_all) -> None:
        """Has an effect on Shared and Key_Shared: see PendingDispatcher."""

    def ttl_changed(self) -> None:
        """The subscription's TTL is another. Mutex held."""
        raise NotImplementedError

    def delayed_messages(self) -> int:
        """How many messages wait for their time, of those that were looked at. Takes the mutex."""
        return 0

    def expire_before(self, uint64_t ledger_id, uint64_t message, uint64_t hidden,
                      uint64_t entries) -> bool:
        """Like acknowledge_before, for messages that expired: they are counted. hidden: chunks
        among them that are not the last one of their message. entries: that hold one of them."""
        cdef AckTracker tracker = self.core.tracker
        cdef LedgerAcks* acks
        cdef uint64_t count = 0
        cdef uint64_t end
        cdef uint64_t at
        mutex_lock(&self.core.mutex)
        try:
            for at in tracker.ledger_ids:
                acks = cursor_state_find(&tracker.c_state, at)
                if at > ledger_id or acks == NULL:
                    break
                end = message
                if at < ledger_id:
                    end = acks.message_count if acks.sealed else self.tail.messages_in(at)
                count += end - ack_bits_count_below(&acks.bits, end)
            count -= min(hidden, count)
            if not self.take_before(ledger_id, message, &count):
                return False
            self.core.count_expired(count, entries)
        finally:
            mutex_unlock(&self.core.mutex)
            self.settle()
        return True

    cdef bint take_before(self, uint64_t ledger_id, uint64_t message, uint64_t* count) except -1:
        """Acknowledge everything before a message; False: all of it was. count: raised by what lies
        behind it and is acknowledged with it. Mutex held."""
        if not self.core.tracker.acknowledge_messages_through(ledger_id, message):
            return False
        if self.core.chunks is not None:
            for of_ledger, last in self.core.chunks.cut(ledger_id, message):
                self.acknowledged(of_ledger, last, 1)
                count[0] += 1
        self.acknowledged_through(ledger_id, message)
        self.wakes = True
        return True

    def release(self) -> None:
        """Nothing more is received: let go of the entries in hand, and of what is mapped. The
        collector cannot see through an EntryView, which leads back here by way of the topic."""

    def check(self) -> list:
        """Recount and return where the counts are wrong; for tests."""
        return []

    cdef int64_t bytes_ahead(self) noexcept:
        return 0

    cdef bint is_ready(self, EntrySink receiver) except -1:
        raise NotImplementedError

    cdef bint has_next(self, EntrySink receiver) except -1:
        return self.is_ready(receiver)

    cdef int acknowledge_there(self, uint64_t ledger_id, uint64_t first,
                               uint64_t count) except -1:
        raise NotImplementedError

    cdef int acknowledge_through_there(self, uint64_t ledger_id, uint64_t end) except -1:
        raise NotImplementedError

    cdef bint ask_there(self) except -1:
        return False

    cdef bint asks_more(self) except -1:
        return False

    cdef int stopped_asking(self) except -1:
        return 0

    cdef int take_back(self, EntrySink receiver, uint64_t ledger_id, uint64_t first,
                       uint64_t count) except -1:
        raise NotImplementedError

    cdef int rewind(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                    uint64_t unseen_ledger, uint64_t unseen) except -1:
        raise NotImplementedError

    cdef int nack(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                  int64_t delay_ms) except -1:
        raise NotImplementedError

    cdef int revive(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                    int64_t delay_ms) except -1:
        raise NotImplementedError

    cdef int set_aside(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1:
        raise NotImplementedError

    cdef int set_aside_through(self, uint64_t ledger_id, uint64_t end) except -1:
        raise NotImplementedError

    cdef int come_back(self, TransactionAcks acks, const MessageRuns* runs) except -1:
        raise NotImplementedError

    cdef int bury(self, EntrySink receiver, Message message) except -1:
        if self.dead is None:
            self.dead = []
        self.dead.append((receiver, packed_letter(message, self.dead)))
        return 0

    cdef int due(self, uint64_t ledger_id, uint64_t message, int64_t backoff_ms) except -1:
        raise NotImplementedError

    cdef int all_due(self) except -1:
        return 0

    cdef int note_due(self, uint64_t ledger_id, uint64_t message) noexcept:
        if self.again_ledger == 0 or ledger_id < self.again_ledger or (
                ledger_id == self.again_ledger and message < self.again_message):
            self.again_ledger = ledger_id
            self.again_message = message
        return 0

    cdef int try_all_due(self) except -1:
        """all_due; what fails is tried again, said in the log."""
        try:
            self.all_due()
        except Exception:
            import logging

            logging.getLogger("pulsarx").exception(
                "%s: messages are due and could not be delivered again; tried once more in %d ms",
                self.topic_name, FAILED_DUE_MS)
        return 0

    cdef EntrySink asks_backoff(self, uint64_t ledger_id, uint64_t message):
        return None

    cdef int redeliver(self, EntrySink receiver) except -1:
        raise NotImplementedError

    def deadlines_due(self) -> None:
        """The clock reached the earliest deadline. Called unlocked, by the clock's thread."""
        cdef SubscriptionCore core = self.core
        cdef Dispatcher other = None
        mutex_lock(&core.mutex)
        try:
            if core.on_due is None:
                return
            if core.dispatcher is not self:
                other = core.dispatcher      # the type changed a moment ago
            else:
                core.disarm()
                try:
                    self.pop_due()
                finally:
                    self.rearm_later()   # whatever one message met, the others are not forgotten
        finally:
            mutex_unlock(&core.mutex)
        if other is not None:
            other.deadlines_due()
            return
        try:
            self.ask_backoffs()
        finally:
            self.settle()

    cdef int ask_backoffs(self) except -1:
        """Ask, with no mutex held, how long messages wait whose acknowledgement is overdue."""
        cdef EntrySink receiver
        cdef list overdue
        cdef list answers = []
        overdue, self.overdue = self.overdue, None
        if overdue is None:
            return 0
        for receiver, ledger_id, message, count in overdue:
            answers.append((receiver, ledger_id, message, receiver.redelivery.overdue_delay(
                count, receiver.consumer_name, self.topic_name)))
        mutex_lock(&self.core.mutex)
        try:
            for receiver, ledger_id, message, delay_ms in answers:
                # Unless it was acknowledged meanwhile, or went to another consumer.
                if self.asks_backoff(ledger_id, message) is receiver:
                    self.try_due(ledger_id, message, delay_ms)
            self.try_all_due()
        finally:
            self.rearm_later()
            mutex_unlock(&self.core.mutex)
        return 0

    cdef void rearm_later(self) noexcept:
        """Have the clock call at the earliest deadlines. Where memory runs out for that, whoever
        waits for a message looks, which does it."""
        try:
            self.core.rearm()
        except Exception:
            self.wakes = True

    cdef int pop_due(self) except -1:
        cdef TimerNode node
        cdef SubscriptionCore core = self.core
        cdef int64_t now_ms = core.now_ms()
        cdef int64_t waited_ms = core.later_ms(0)
        cdef EntrySink asked
        cdef PendingAck* ack
        while timer_wheel_pop(&core.delays.wheel, now_ms, &node) or (
                timer_wheel_pop(&core.waits.wheel, waited_ms, &node)):
            if node.first == 0:          # no ledger's: chunks that waited
                self.expire_chunks(waited_ms)
                continue
            ack = pending_acks_find(&core.pending, node.first, node.second)
            if ack != NULL and (ack.state == PENDING_HELD or ack.state == PENDING_NACKED
                                or ack.state == PENDING_DELAYED):
                ack.tag = TIMER_NONE
            asked = self.asks_backoff(node.first, node.second)
            if asked is None:
                self.try_due(node.first, node.second, 0)
                continue
            try:
                if self.overdue is None:
                    self.overdue = []
                self.overdue.append((asked, node.first, node.second, ack.redelivery_count))
            except MemoryError:          # then without a backoff
                self.try_due(node.first, node.second, 0)
        return self.try_all_due()

    def has_read_all(self) -> bool:
        """Whether nothing is published that was not read. Mutex held."""
        raise NotImplementedError

    def expire_chunks(self, int64_t now_ms) -> None:
        cdef ChunkAssembler chunks = self.core.chunks
        cdef int64_t due_ms
        if chunks is None:
            return
        chunks.armed_ms = 0
        try:
            # A consumer that is slow has the others yet to come.
            chunks.expire(now_ms, self.has_read_all())
        except Exception:
            import logging

            logging.getLogger("pulsarx").exception(
                "%s: chunks of messages that did not become whole could not be acknowledged; tried "
                "once more in %d ms", self.topic_name, FAILED_DUE_MS)
            due_ms = self.core.later_ms(FAILED_DUE_MS)
        else:
            due_ms = chunks.next_due_ms()
            if due_ms and due_ms <= now_ms:
                due_ms = self.core.later_ms(max(chunks.limits.expiry_ms, <int64_t>FAILED_DUE_MS))
        if due_ms:
            chunks.armed_ms = due_ms
            self.core.arm_wait(due_ms, 0, 0)
        while chunks.ready:
            self.whole_later(<ChunkedMessage>chunks.ready[0])
            del chunks.ready[0]
        self.wakes = True

    cdef int try_due(self, uint64_t ledger_id, uint64_t message, int64_t backoff_ms) except -1:
        """due; what fails is tried again, said in the log."""
        try:
            self.due(ledger_id, message, backoff_ms)
        except BaseException as error:
            self.due_again(ledger_id, message)
            if not isinstance(error, Exception):
                raise
            import logging

            logging.getLogger("pulsarx").exception(
                "%s: message %d of ledger %d is due and could not be delivered again; tried "
                "once more in %d ms", self.topic_name, message, ledger_id, FAILED_DUE_MS)
        return 0

    cdef int due_again(self, uint64_t ledger_id, uint64_t message) except -1:
        """Have `due` called once more, because what it was to do failed."""
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        cdef uint32_t timer
        if ack == NULL or ack.tag != TIMER_NONE or (
                ack.state != PENDING_HELD and ack.state != PENDING_NACKED
                and ack.state != PENDING_DELAYED):
            return 0
        try:
            if ack.state == PENDING_DELAYED:
                timer = self.core.arm(self.core.now_ms() + FAILED_DUE_MS, ledger_id, message)
            else:
                timer = self.core.arm_wait(self.core.later_ms(FAILED_DUE_MS), ledger_id, message)
        except MemoryError:
            return self.at_once(ledger_id, message)
        ack = pending_acks_find(&self.core.pending, ledger_id, message)
        ack.tag = timer
        return 0

    cdef int at_once(self, uint64_t ledger_id, uint64_t message) except -1:
        return 0

    cdef int settle(self) except -1:
        cdef EntrySink receiver
        cdef list dead
        cdef list undecrypted
        mutex_lock(&self.core.mutex)
        try:
            # First: where a signal handler raises in one that is told, the rest stays here. Telling
            # only enqueues; with the mutex held, or two threads could change the order.
            while self.told:
                receiver, active = self.told[0]
                if receiver.events is not None:
                    receiver.events.tell(active, receiver.partition)
                del self.told[0]
            self.told = None
            if self.given_count:
                self.tell_given()
            wakes, self.wakes = self.wakes, False
            dead, self.dead = self.dead, None
            undecrypted, self.undecrypted = self.undecrypted, None
        except BaseException:
            self.wakes = True                # the next call settles what is left here
            raise
        finally:
            mutex_unlock(&self.core.mutex)
        if wakes:
            try:
                self.tail.wake_at_once()
            except MemoryError:          # not all were woken: a later call does it
                self.wakes = True
            except BaseException:        # of a signal handler, in one that was told
                mutex_lock(&self.core.mutex)
                try:
                    self.wakes = True
                    if dead is not None:
                        self.dead = [*dead, *(self.dead or ())]
                    if undecrypted is not None:
                        self.undecrypted = [*undecrypted, *(self.undecrypted or ())]
                finally:
                    mutex_unlock(&self.core.mutex)
                raise
        if dead is not None:
            give_up(dead)
        # Last: where a signal handler raises in it, nothing but texts of the log is gone.
        if undecrypted is not None:
            self.log_undecrypted(undecrypted)
        return 0

    cdef int plain_ahead(self) noexcept:
        return -1

    cdef int wake_sleepers(self) except -1:
        return self.tail.wake_sleepers()

    cdef int sleep(self, WaitEvent* event, uint32_t seen, int64_t left_ns) except -1:
        sleep_on(event, seen, left_ns)
        return 0

    cdef int tell_given(self) except -1:
        return 0

    def acknowledge_before(self, uint64_t ledger_id, uint64_t message) -> bool:
        """Acknowledge everything before a message, for all consumers: what they have of it in their
        queues is not delivered. False: all of it was acknowledged. Durable after a flush."""
        cdef uint64_t count = 0
        mutex_lock(&self.core.mutex)
        try:
            return self.take_before(ledger_id, message, &count)
        finally:
            mutex_unlock(&self.core.mutex)
            self.settle()

    def acknowledge_message(self, uint64_t ledger_id, uint64_t message) -> None:
        """Acknowledge one message for all consumers, as acknowledge_before."""
        mutex_lock(&self.core.mutex)
        try:
            self.core.tracker.acknowledge_messages(ledger_id, message)
            self.acknowledged(ledger_id, message, 1)
            if self.core.chunks is not None:
                self.chunks_acknowledged(ledger_id, message, 1)
            self.wakes = True
        finally:
            mutex_unlock(&self.core.mutex)
            self.settle()

    def cancel_delayed(self, uint64_t ledger_id, uint64_t first, uint64_t count,
                       int64_t deliver_at_ms) -> str:
        """Acknowledge messages of an entry that wait for its time, for all consumers. Durable after
        a flush. Else nothing is changed, and the answer is why: `acknowledged` (all of them),
        `delivered` or `due` (one of them); `""`: it is done."""
        cdef uint64_t message
        cdef bint is_open = False
        mutex_lock(&self.core.mutex)
        try:
            for message in range(first, first + count):
                if self.core.tracker.is_acknowledged(ledger_id, message):
                    continue
                is_open = True
                if self.was_delivered(ledger_id, message):
                    return "delivered"
                if not self.waits_for_its_time(ledger_id, message) and (
                        deliver_at_ms <= self.core.now_ms()):
                    return "due"
            if not is_open:
                return "acknowledged"
            self.core.tracker.acknowledge_messages(ledger_id, first, count)
            self.acknowledged(ledger_id, first, count)
            if self.core.chunks is not None:
                self.chunks_acknowledged(ledger_id, first, count)
            self.wakes = True
            return ""
        finally:
            mutex_unlock(&self.core.mutex)
            self.settle()

    def waits_for_its_time(self, uint64_t ledger_id, uint64_t message) -> bool:
        """Whether a timer delivers the message when it is due. Mutex held."""
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        return ack != NULL and ack.state == PENDING_DELAYED

    def was_delivered(self, uint64_t ledger_id, uint64_t message) -> bool:
        """Whether a consumer has a message that is not acknowledged, had it, or gets it next. Mutex
        held."""
        raise NotImplementedError

    def settled(self) -> None:
        """Do what was left to be done without the mutex."""
        self.settle()


cdef int give_up(list dead) except -1:
    """Hand messages to the dead letters of the receivers that gave them up, in order."""
    cdef EntrySink receiver
    cdef EntrySink last = None
    cdef list messages = []
    for receiver, message in dead:
        if last is not None and last is not receiver:
            last.redelivery.dead_letters.hand_over(last, messages)
            messages = []
        last = receiver
        messages.append(message)
    if last is not None:
        last.redelivery.dead_letters.hand_over(last, messages)
    return 0
