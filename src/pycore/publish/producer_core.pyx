# cython: language_level=3
"""Body of producer_core.pxd."""

import os
import weakref
from collections import deque

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyCallable_Check
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx import errors
from pulsarx._core.batch_encode cimport (
    batch_encode_add, batch_encode_add_plain, batch_encode_payload_size,
)
from pulsarx._core.single_metadata cimport METADATA_SEQUENCE_ID, SingleMetadata
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.ground.mutex cimport (
    PyThread_get_thread_ident, is_within, mutex_enter, mutex_lock, mutex_unlock,
)
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.ground.signals cimport signals_raised
from pulsarx._pycore.ground.weak_reference cimport referent
from pulsarx._pycore.ledger.open_transactions cimport TransactionCore, transaction_of
from pulsarx._pycore.message.message_id cimport message_id_chunked, message_id_new
from pulsarx._pycore.publish.admission cimport (
    MUST_WAIT, PRODUCER_HELD, PRODUCER_OPEN, Wait,
)
from pulsarx._pycore.publish.batcher cimport HEADER_SIZE_MAX, Batcher
from pulsarx._pycore.publish.completion_queue cimport CompletionQueue, SendTold
from pulsarx._pycore.publish.entry_publisher cimport Receipt
from pulsarx._pycore.publish.open_batch cimport OpenBatch
from pulsarx._pycore.publish.outgoing_message cimport (
    outgoing_content, outgoing_deliver_at, outgoing_describe, outgoing_replicate_to,
)

cdef enum:
    PACKED_BESIDE_MIN = 32768    # bytes: for fewer a codec takes less time than a thread to wake

cdef int CPU_COUNT = len(os.sched_getaffinity(0))

# What send_async raises beside a callback: nobody could call it, or the call itself is wrong; so
# it does with what a signal handler has raised.
cdef tuple NEVER_TOLD = (errors.ForkedError, errors.OperationNotSupported)


# What send_async has behind its key, when nothing more is said.
cdef tuple NOT_DESCRIBED = (None, None, None, False, None, None, None, None)


cdef class ResumeCall:
    """See the pxd."""

    def __init__(self, producer) -> None:
        self.producer = weakref.ref(producer)

    def __call__(self) -> None:
        cdef object found = referent(self.producer)
        cdef ProducerCore producer
        if found is not None:
            producer = found
            producer.look_again = True
            if producer.places is not None:      # those who wait look whether it is for them
                producer.give_places()
            if producer.queued and not producer.resuming:
                producer.publisher.completions.jobs.put(producer.resume_queued)


cdef class ProducerCore(Batcher):
    """Takes messages from callers. Any thread may call."""

    def __init__(self, publisher, options, name, topic_name, clock, compress, message_size_max,
                 JobQueue background not None):
        """background: where it is closed when its user has dropped it."""
        self.queued = self.wait_timer = self.last_queued = self.places = None
        self.has_queued = self.resuming = self.look_again = self.is_forgotten = False
        super().__init__(publisher, options, name, topic_name, clock, compress, message_size_max,
                         background)
        self.background = background
        if self.admission.queues_sends:
            self.admission.resume_call = ResumeCall(self)

    def __del__(self) -> None:
        # The collector may run in the middle of a call that holds a mutex which closing needs.
        if self.background is not None and self.admission.is_live():
            self.is_forgotten = True
            self.background.put(self.close_forgotten)

    def close_forgotten(self) -> None:
        """Send what is open and leave; a job of the background."""
        raise NotImplementedError

    def send(self, content, properties=None, partition_key=None, ordering_key=None,
             sequence_id=None,
             replication_clusters=None, disable_replication=False, event_timestamp=None,
             deliver_at=None,
             deliver_after=None, *, transaction=None):
        cdef Receipt receipt = Receipt.__new__(Receipt)
        cdef TransactionCore within = None
        cdef OpenBatch batch
        cdef uint32_t index = 0
        cdef bint taken = False
        if transaction is not None:
            within = transaction_of(transaction)
            within.begin_send(self)
        try:
            if self.has_queued and not is_within(&self.publisher.mutex,
                                                 PyThread_get_thread_ident()):
                self.wait_for_queued()
            if not mutex_enter(&self.publisher.mutex):
                self.keep_nested(content, None, (
                    properties, partition_key, ordering_key, sequence_id, replication_clusters,
                    disable_replication, event_timestamp, deliver_at, deliver_after, transaction))
                return message_id_new(-1, -1, -1, -1, 0)
            try:
                if self.nested is not None:
                    self.send_nested()
                if self.accept(content, None, properties, partition_key, ordering_key, sequence_id,
                               replication_clusters, disable_replication, event_timestamp,
                               deliver_at, deliver_after, transaction, receipt, True, NULL,
                               &taken) == IN_BATCH:
                    batch = self.open if self.keyed is None else self.keyed.last
                    index = batch.batch.message_count - 1
                    if batch.receipt is None:
                        batch.receipt = receipt
                    receipt = batch.receipt
                    if self.keyed is not None:
                        self.keyed.awaited = batch
                    self.close_open(True)
            except BaseException as error:
                self.publisher.nobody_waits()    # for a batch before that went out with this call
                if transaction is not None:
                    note_failed(transaction, error)
                raise
            finally:
                if self.keyed is not None:
                    self.keyed.awaited = None
                mutex_unlock(&self.publisher.mutex)
            if self.publisher.confirms_later and not self.publisher.is_confirmed_with(
                    within, self.admission.pending_max):
                try:
                    self.publisher.wait(receipt)
                except errors.PulsarException as error:
                    if transaction is not None:
                        note_failed(transaction, error)
                    raise
            return self.id_of(receipt, index)
        finally:
            if within is not None:
                within.end_send(self)

    cdef object id_of(self, Receipt receipt, uint32_t index):
        """The id of the message with this index in a published entry."""
        cdef int place
        if receipt.is_duplicate:
            return message_id_new(-1, -1, -1, -1, 0)
        if receipt.kept is not None:
            place = receipt.place_in_stored(<int>index)
            if place < 0:
                return message_id_new(-1, -1, -1, -1, 0)
            return message_id_new(<int64_t>receipt.ledger_id, <int64_t>receipt.entry_id,
                                  self.publisher.partition, place, <int>receipt.message_count)
        if receipt.first_chunk is not None:
            return message_id_chunked(
                <int64_t>receipt.ledger_id, <int64_t>receipt.entry_id, self.publisher.partition,
                <int64_t>receipt.first_chunk.ledger_id, <int64_t>receipt.first_chunk.entry_id)
        # Ledger 0: the entry was not kept, and its messages have no place of their own.
        if receipt.message_count == 1 or receipt.ledger_id == 0:
            return message_id_new(<int64_t>receipt.ledger_id, <int64_t>receipt.entry_id,
                                  self.publisher.partition, -1, 0)
        return message_id_new(<int64_t>receipt.ledger_id, <int64_t>receipt.entry_id,
                              self.publisher.partition, <int>index, <int>receipt.message_count)

    def send_async_described(
            self, content, callback, properties=None, partition_key=None, ordering_key=None,
            sequence_id=None,
            replication_clusters=None, disable_replication=False, event_timestamp=None,
            deliver_at=None,
            deliver_after=None, *, transaction=None) -> None:
        """send_async with whatever arguments; send_async itself is in send_entry."""
        cdef Wait wait
        cdef TransactionCore within = None
        cdef tuple rest = (properties, partition_key, ordering_key, sequence_id,
                           replication_clusters, disable_replication, event_timestamp, deliver_at,
                           deliver_after, transaction)
        if callback is not None and not PyCallable_Check(callback):
            refuse_callback(callback)
        if transaction is not None:
            try:
                transaction_of(transaction).begin_send(self)
            except errors.PulsarException as error:
                if callback is None:
                    raise
                self.tell(callback, error)
                return
            within = transaction
        try:
            if self.has_queued or self.send_described(content, callback, rest, &wait) == MUST_WAIT:
                self.queue_send(content, callback, rest)
        finally:
            if within is not None:
                within.end_send(self)

    cdef int send_described(self, object content, object callback, tuple rest,
                            Wait* wait) except -1:
        cdef bint taken = False
        cdef int answer = IN_BATCH
        cdef uint64_t raised = signals_raised()
        refused = None
        if not mutex_enter(&self.publisher.mutex):
            return self.keep_nested(content, callback, rest)
        try:
            if self.nested is not None:
                self.send_nested()
            answer = self.accept_described(content, callback, rest, wait, &taken)
        except errors.PulsarException as error:
            if rest[9] is not None:
                note_failed(rest[9], error)
            if callback is None or isinstance(error, NEVER_TOLD) or signals_raised() != raised:
                raise
            refused = error
        finally:
            mutex_unlock(&self.publisher.mutex)
        if refused is not None and not taken:
            self.tell(callback, refused)
        return answer

    cdef int accept_described(self, object content, object callback, tuple rest, Wait* wait,
                              bint* taken) except -1:
        cdef int answer = self.accept(content, callback, rest[0], rest[1], rest[2], rest[3],
                                      rest[4], rest[5], rest[6], rest[7], rest[8], rest[9], None,
                                      False, wait, taken)
        if answer == IN_BATCH and self.open_count() >= self.batch_messages_max:
            self.close_open(False)
        return answer

    # Sends from within another call of their thread -----------------------------------------------

    cdef int keep_nested(self, object content, object callback, tuple rest) except -1:
        if self.nested is None:
            self.nested = []
        if rest[9] is not None:
            transaction_of(rest[9]).begin_later(self)
        self.nested.append((content, callback, rest))
        # Whoever takes the mutex next sends it; should nobody come, that job does.
        self.publisher.completions.jobs.put(self.send_kept)
        return 0

    def send_kept(self) -> None:
        """Send what is left of what came from within calls; a job."""
        mutex_lock(&self.publisher.mutex)
        try:
            if self.nested is not None:
                self.send_nested()
        finally:
            mutex_unlock(&self.publisher.mutex)

    cdef int send_nested(self) except -1:
        cdef Wait wait
        cdef bint taken
        cdef uint64_t raised = signals_raised()
        kept, self.nested = self.nested, None
        try:
            while kept:
                taken = False
                content, callback, rest = kept.pop(0)
                try:
                    if self.accept_described(content, callback, rest, &wait, &taken) == MUST_WAIT:
                        self.append_queued(content, callback, rest)
                except Exception as error:
                    if signals_raised() != raised:
                        if not taken:
                            kept.insert(0, (content, callback, rest))
                        elif rest[9] is not None:
                            (<TransactionCore>rest[9]).end_send(self)
                        raise
                    if not taken:
                        self.give_up(None if callback is None else [-1, callback], 1, False, error)
                    elif callback is None:
                        self.failure = error
                    if rest[9] is not None:
                        note_failed(rest[9], error)
                if rest[9] is not None:
                    (<TransactionCore>rest[9]).end_send(self)
        finally:
            if kept:                         # interrupted: they go out with the next call
                self.nested = kept if self.nested is None else kept + self.nested
        return 0

    cdef bint sends_plain(self) noexcept:
        return Batcher.sends_plain(self) and not self.has_queued

    # Sends that wait without their callers --------------------------------------------------------

    cdef int queue_send(self, object content, object callback, tuple rest) except -1:
        if not self.admission.queues_sends:
            if self.admission.resume_call is None:
                self.admission.resume_call = ResumeCall(self)
            try:
                self.wait_for_place()
            except errors.PulsarException as error:
                if rest[9] is not None:
                    note_failed(rest[9], error)
                if callback is None or isinstance(error, NEVER_TOLD):
                    raise
                self.tell(callback, error)
                return 0
        return self.append_queued(content, callback, rest)

    cdef int append_queued(self, object content, object callback, tuple rest) except -1:
        cdef QueuedSend send = QueuedSend.__new__(QueuedSend)
        if self.admission.resume_call is None:
            self.admission.resume_call = ResumeCall(self)
        send.content = content
        send.callback = callback
        send.rest = rest
        if self.admission.send_timeout_ms > 0:
            send.expires_ms = self.clock.monotonic() + self.admission.send_timeout_ms
        if self.queued is None:
            self.queued = deque()
        if rest[9] is not None:
            (<TransactionCore>rest[9]).begin_later(self)
        self.has_queued = True               # what comes now goes behind it
        self.plain_sends = False
        self.queued.append(send)
        self.last_queued = send
        if len(self.queued) == 1:
            self.admission.resume_call()     # for what made room meanwhile
        return 0

    cdef bint is_full(self) noexcept:
        return self.admission.pending_max != 0 and self.queued is not None and (
            len(self.queued) + self.publisher.pending_count >= self.admission.pending_max)

    cdef int wait_for_place(self) except -1:
        cdef Latch place
        while self.is_full():
            if not self.admission.block_if_queue_full or not self.admission.may_wait():
                raise errors.ProducerQueueIsFull(
                    detail=f"{len(self.queued)} messages of {self.admission.producer_name} wait "
                    f"for the publish rate or the backlog quota of {self.topic_name}, and "
                    f"max_pending_messages is {self.admission.pending_max}; wait, or set "
                    f"block_if_queue_full")
            place = Latch()
            if self.places is None:
                self.places = []
            self.places.append(place)
            self.publisher.room_wanted = self.admission.resume_call
            if self.is_full():
                place.wait()
            self.admission.require_open()
        return 0

    cdef int give_places(self) except -1:
        places, self.places = self.places, None
        if places is not None:
            for place in places:
                (<Latch>place).set()
        return 0

    cdef int end_queued(self, QueuedSend send, object error) except -1:
        cdef TransactionCore within = send.rest[9]
        if within is not None and not send.ended:
            if error is not None:
                note_failed(within, error)
            within.end_send(self)
        send.ended = True
        if send.end is not None:
            send.end.set()
        if self.places is not None:
            self.give_places()
        if error is None:
            return 0
        if send.callback is not None:
            return self.tell(send.callback, error)
        self.failure = error                 # of the next flush
        return 0

    cdef int wait_for_queued(self) except -1:
        cdef QueuedSend last = self.last_queued
        if last is None or last.ended or self.admission.queues_sends or (
                not self.admission.may_wait()):
            return 0
        if last.end is None:
            last.end = Latch()
        if not last.ended:
            last.end.wait()
        return 0

    def drop_queued(self, TransactionCore transaction not None) -> None:
        """A transaction is aborted: what is queued of it is not sent."""
        cdef QueuedSend send
        for send in list(self.queued) if self.queued is not None else ():
            if send.rest[9] is not transaction:
                continue
            try:
                self.queued.remove(send)
            except ValueError:
                continue                     # another thread has it in hand
            error = None
            if send.callback is not None:
                error = errors.InvalidTxnStatusError(
                    detail=f"send to {self.topic_name}: transaction {transaction} was aborted "
                    "while it waited")
            self.end_queued(send, error)
        if self.admission.resume_call is not None:
            self.admission.resume_call()

    def resume_queued(self) -> None:
        """Send what is queued, in order, as far as there is room; a job of the callbacks' thread.
        """
        cdef QueuedSend send
        cdef Wait wait
        if self.resuming or self.queued is None:
            self.look_again = True
            return
        self.resuming = True
        try:
            while self.queued:
                self.look_again = False
                send = self.queued.popleft()
                if isinstance(send.callback, SendTold) and (
                        (<SendTold>send.callback).is_given_up()):
                    self.end_queued(send, None)
                    continue                 # cancelled while it waited: nothing is sent
                try:
                    if self.send_described(send.content, send.callback, send.rest,
                                           &wait) != MUST_WAIT:
                        self.end_queued(send, None)
                        continue
                except Exception as error:
                    self.end_queued(send, error)
                    continue
                send.held = wait.held
                if wait.held and send.expires_ms and self.clock.monotonic() >= send.expires_ms:
                    error = self.admission.held_too_long()
                    if error is not None:
                        self.end_queued(send, error)
                        continue
                self.queued.appendleft(send)
                self.arm_queued(wait.look_ms, wait.held)
                if not self.look_again:
                    break
            # Nobody else does: the loops whose sends they are have had their turn.
            self.send_open()
        finally:
            self.resuming = False
            self.has_queued = len(self.queued) > 0
            self.plain_sends = self.sends_plain()
            # What came while the open batch went out; or it was closed, which they are told.
            if self.queued and (self.look_again or not self.admission.is_live()):
                self.admission.resume_call()

    cdef int arm_queued(self, int64_t look_ms, bint held) except -1:
        """Look again at look_ms, and when the first that is queued has waited for too long."""
        cdef QueuedSend first = self.queued[0]
        cdef int64_t due_ms = look_ms
        if held and first.expires_ms and (due_ms == 0 or first.expires_ms < due_ms):
            due_ms = first.expires_ms
        if self.wait_timer is not None and self.wait_timer.due_ms == due_ms:
            return 0
        if look_ms and self.admission.rate is not None:
            self.admission.rate.limited_times += 1
        timer = self.wait_timer              # until there is another one
        self.wait_timer = self.clock.arm_monotonic(due_ms, self.queue_due) if due_ms else None
        if timer is not None:
            (<Timer>timer).cancel()
        return 0

    def queue_due(self) -> None:
        """The time armed by arm_queued has come."""
        self.wait_timer = None
        # The thread of the callbacks may be the one that waits for the disk.
        self.publisher.completions.timeouts.put(self.expire_queued)

    def expire_queued(self) -> None:
        """Give up what was held for too long; a job."""
        cdef QueuedSend first
        cdef int64_t now_ms = self.clock.monotonic()
        if self.resuming:
            self.admission.resume_call()
            return
        while self.queued and self.admission.state == PRODUCER_HELD:
            first = self.queued[0]
            if not first.held or not first.expires_ms or first.expires_ms > now_ms:
                break
            error = self.admission.held_too_long()
            if error is None:
                break
            # Making the error runs Python: another thread may have it in hand by now, or sent it.
            if self.resuming or not self.queued or self.queued[0] is not first:
                break
            self.queued.popleft()
            if self.queued:
                (<QueuedSend>self.queued[0]).held = True
            self.end_queued(first, error)
        self.admission.resume_call()

    cdef int refuse_queued(self, object error) except -1:
        cdef QueuedSend send
        cdef uint64_t untold = 0
        timer, self.wait_timer = self.wait_timer, None
        if timer is not None:
            (<Timer>timer).cancel()
        while self.queued:
            send = self.queued.popleft()
            untold += send.callback is None
            self.end_queued(send, error)
        if untold:
            import logging

            logging.getLogger("pulsarx").warning(
                "%d messages that send_async took for %s while nothing passed are not sent: %s",
                untold, self.topic_name, errors.detail_of(error))
        self.has_queued = self.resuming
        if self.places is not None:
            self.give_places()
        return 0

    cdef int send_plain(self, object content, object callback, object key,
                        bint* taken) except -1:
        """send_async of bytes into a batch, with a key or None: what the fast entry calls.
        MUST_WAIT: it is to be queued."""
        cdef SingleMetadata metadata
        cdef Wait wait
        cdef Py_ssize_t size = PyBytes_GET_SIZE(content)
        memset(&metadata, 0, sizeof(metadata))
        metadata.flags = METADATA_SEQUENCE_ID
        if size > self.envelope.message_size_max and self.admission.is_live():
            self.envelope.check_size(size)
        metadata.payload_size = <uint32_t>size
        if key is not None:
            outgoing_describe(&metadata, &self.scratch, key, None, None, None, None)
        if not mutex_enter(&self.publisher.mutex):
            taken[0] = True
            return self.keep_nested(content, callback, (None, key) + NOT_DESCRIBED)
        try:
            if self.nested is not None:
                self.send_nested()
            if (self.admission.state != PRODUCER_OPEN or self.is_crowded()) and (
                    self.admit(False, &wait) == MUST_WAIT):
                return MUST_WAIT
            if self.publisher.transaction is not None:
                self.join(None)
            if self.numbers.sequences is not None:
                self.numbers.lift_own_ids()
            metadata.sequence_id = self.numbers.next_sequence_id
            self.numbers.next_sequence_id += 1
            if self.numbers.sequences is not None and (
                    self.is_duplicate(metadata.sequence_id, False)):
                taken[0] = True
                self.publisher.confirm_duplicate(Receipt.__new__(Receipt), callback)
                return 0
            self.add(&metadata, <const uint8_t*>PyBytes_AS_STRING(content), callback, False)
            taken[0] = True
            if self.open.batch.message_count >= self.batch_messages_max:
                self.close(self.open, False)
        finally:
            mutex_unlock(&self.publisher.mutex)
        return 0

    cdef int send_told(self, object content, object callback, object key) except -1:
        """send_plain with a callback, which is told what would be raised without one."""
        cdef bint taken = False
        cdef int answer = IN_BATCH
        cdef uint64_t raised = signals_raised()
        if not PyCallable_Check(callback):
            refuse_callback(callback)
        try:
            answer = self.send_plain(content, callback, key, &taken)
        except errors.PulsarException as error:
            if isinstance(error, NEVER_TOLD) or signals_raised() != raised:
                raise
            if not taken:
                self.tell(callback, error)
        if answer == MUST_WAIT:
            self.queue_send(content, callback, (None, key) + NOT_DESCRIBED)
        return 0

    cdef int send_untold(self, object content, object key) except -1:
        cdef bint taken = False
        if self.send_plain(content, None, key, &taken) == MUST_WAIT:
            self.queue_send(content, None, (None, key) + NOT_DESCRIBED)
        return 0

    cdef int tell(self, object callback, object error) except -1:
        return self.publisher.completions.refuse(callback, error, self.publisher.partition)

    cdef int accept(self, object content, object callback, object properties, object partition_key,
                    object ordering_key, object sequence_id, object replication_clusters,
                    object disable_replication, object event_timestamp, object deliver_at,
                    object deliver_after, object transaction, Receipt receipt, bint awaited,
                    Wait* wait, bint* taken) except -1:
        cdef SingleMetadata metadata
        cdef const uint8_t* payload = NULL
        cdef OpenBatch last
        cdef int64_t deliver_at_ms = 0
        cdef bytes replicate_to = None
        # First: the rest is one step under the mutex.
        if self.admit(awaited, wait) == MUST_WAIT:
            return MUST_WAIT
        if self.publisher.transaction is not transaction:
            self.join(transaction)
        elif transaction is not None:
            (<TransactionCore>transaction).require_taking()
        memset(&metadata, 0, sizeof(metadata))
        metadata.flags = METADATA_SEQUENCE_ID
        if not (self.bytes_schema and type(content) is bytes):
            content = outgoing_content(self.schema, content, &metadata)
        if content is not None:
            self.envelope.check_size(PyBytes_GET_SIZE(content))
            payload = <const uint8_t*>PyBytes_AS_STRING(content)
            metadata.payload_size = <uint32_t>PyBytes_GET_SIZE(content)
            if wait != NULL and self.must_wait_for_chunks(metadata.payload_size, wait):
                return MUST_WAIT
        if partition_key is not None or properties is not None or ordering_key is not None or (
                sequence_id is not None or event_timestamp is not None):
            outgoing_describe(&metadata, &self.scratch, partition_key, ordering_key, properties,
                              event_timestamp,
                              sequence_id)
        if replication_clusters is not None or disable_replication is not False:
            replicate_to = outgoing_replicate_to(replication_clusters, disable_replication)
        if deliver_at is not None or deliver_after is not None:
            deliver_at_ms = self.admission.may_be_delayed(
                outgoing_deliver_at(self.clock, deliver_at, deliver_after))
        if sequence_id is None:
            if self.numbers.sequences is not None:
                self.numbers.lift_own_ids()
            metadata.sequence_id = self.numbers.next_sequence_id
            self.numbers.next_sequence_id += 1
        if self.numbers.sequences is not None and (
                self.is_duplicate(metadata.sequence_id, awaited)):
            taken[0] = True
            self.publisher.confirm_duplicate(
                receipt if receipt is not None else Receipt.__new__(Receipt), callback)
            return ALONE
        # A batch has one field for all its messages that says where they are replicated to.
        if not self.batching or deliver_at_ms or replicate_to is not None:
            self.close_open(awaited)
            if self.open.batch.message_count:
                self.close(self.open, awaited)      # of a send_many beside batches by key
            taken[0] = True
            if receipt is None:
                receipt = Receipt.__new__(Receipt)
            if self.publisher.memory is not None:
                self.publisher.memory.used += metadata.payload_size
                receipt.reserved = metadata.payload_size
            self.publish_single(&metadata, payload, deliver_at_ms, replicate_to, callback,
                                receipt, sequence_id is None, awaited)
            return ALONE
        self.numbers.note_used(metadata.sequence_id)
        self.add(&metadata, payload, callback, awaited)
        if self.publisher.memory is not None:
            self.publisher.memory.used += metadata.payload_size
            last = self.open if self.keyed is None else self.keyed.last
            last.reserved += metadata.payload_size
        taken[0] = True
        return IN_BATCH

    cdef bint must_wait_for_chunks(self, uint32_t size, Wait* wait) except -1:
        """Whether a message that may go in chunks, of half an entry at least, finds no room and
        its caller does not sleep for it."""
        cdef uint32_t entry_size = self.envelope.message_size_max // 2
        if not self.admission.queues_sends or not self.envelope.chunking or size <= entry_size:
            return False
        wait.held = False
        wait.look_ms = 0
        return self.admission.room_for_chunks(size // max(entry_size, 1) + 1) == MUST_WAIT

    # Many at once ---------------------------------------------------------------------------------

    def send_arrow(self, data, value="value", *, key=None, properties=None, event_time=None):
        # Loaded with the first columns to send.
        control_plane.load("pulsarx._pycore.publish.producer_arrow")
        from pulsarx._pycore.publish.producer_arrow import send_rows_of

        return send_rows_of(self, data, value, key, properties, event_time)

    def send_many(self, payloads, *, keys=None, properties=None, event_timestamps=None,
                  transaction=None) -> list:
        cdef list contents = payloads if type(payloads) is list else list(payloads)
        cdef Py_ssize_t count = PyList_GET_SIZE(contents)
        cdef TransactionCore within = None
        for name, column in (("keys", keys), ("properties", properties), ("event_timestamps",
                event_timestamps)):
            if isinstance(column, str):
                raise ValueError(f"{name} is a str; give a list, one element a message")
            if column is not None and len(column) != count:
                raise ValueError(f"{name} has {len(column)} elements and payloads {count}")
        if transaction is not None:
            within = transaction_of(transaction)
            within.begin_send(self)
        try:
            return self.send_in_batches(contents, keys, properties, event_timestamps, transaction)
        finally:
            if within is not None:
                within.end_send(self)

    cdef list send_in_batches(self, list contents, object keys, object properties,
                              object event_timestamps, object transaction):
        """send_many, whose arguments are checked."""
        cdef Py_ssize_t count = PyList_GET_SIZE(contents)
        cdef list receipts = []
        cdef list ids
        cdef Receipt receipt
        cdef int64_t ledger_id
        cdef int64_t entry_id
        cdef int partition
        cdef uint32_t message_count
        cdef uint32_t index
        cdef bint in_order
        cdef bint some_lost
        if self.has_queued:
            self.wait_for_queued()
        refused = None
        ids = []
        # One by one where some may be duplicates, or in chunks, or have to wait for memory.
        in_order = self.keyed is None and not self.envelope.chunking and (
            self.publisher.memory is None) and (
            self.numbers.sequences is None or self.numbers.own_ids_are_new)
        try:
            if in_order:
                self.send_by_arrival(contents, keys, properties, event_timestamps, transaction,
                                     receipts)
            else:
                self.send_by_key(contents, keys, properties, event_timestamps, transaction,
                                 receipts)
        except BaseException as error:
            refused = error
        # Of a flush that failed, or did not end in time: what it was for is not published.
        some_lost = isinstance(refused, (errors.StorageError, errors.Timeout))
        if in_order:
            for receipt in receipts:
                if some_lost and not self.publisher.is_confirmed(receipt):
                    continue
                if receipt.is_duplicate or receipt.kept is not None:
                    for index in range(receipt.message_count + receipt.left_out):
                        ids.append(self.id_of(receipt, index))
                    continue
                if receipt.message_count == 1 or receipt.ledger_id == 0:
                    for index in range(receipt.message_count):
                        ids.append(self.id_of(receipt, 0))
                    continue
                ledger_id, entry_id = <int64_t>receipt.ledger_id, <int64_t>receipt.entry_id
                partition, message_count = self.publisher.partition, receipt.message_count
                for index in range(message_count):
                    ids.append(message_id_new(ledger_id, entry_id, partition, <int>index,
                                              <int>message_count))
        else:
            for receipt, index in receipts:
                if some_lost and not self.publisher.is_confirmed(receipt):
                    continue
                if receipt.message_count or receipt.is_duplicate:
                    ids.append(self.id_of(receipt, index))
        if refused is not None:
            if transaction is not None:
                note_failed(transaction, refused)
            refused.add_note(f"{len(ids)} of {count} messages were published")
            raise refused
        return ids

    cdef list send_by_arrival(self, list contents, object keys, object properties,
                              object event_timestamps, object transaction, list receipts):
        """The batches of send_many; their receipts, in order."""
        cdef Py_ssize_t count = PyList_GET_SIZE(contents)
        cdef Py_ssize_t at = 0
        cdef bint plain = (keys is None and properties is None and event_timestamps is None
                           and self.bytes_schema)
        cdef bint begun = False
        refused = None
        mutex_lock(&self.publisher.mutex)
        try:
            if self.nested is not None:
                self.send_nested()
            if self.admission.state != PRODUCER_OPEN:
                self.admission.check_open(NULL)
            self.close_open(True)
            begun = True
            while at < count:
                if self.admission.state == PRODUCER_HELD:
                    begun = False            # what is open then is of others
                    self.wait_between()
                    begun = True
                if self.publisher.transaction is not transaction:
                    self.join(transaction)
                elif transaction is not None:
                    (<TransactionCore>transaction).require_taking()
                try:
                    at = self.fill_batch(self.open, contents, at, keys, properties,
                                         event_timestamps, plain)
                    if at < count and self.packs_beside():
                        at = self.fill_batch(self.second, contents, at, keys, properties,
                                             event_timestamps, plain)
                        self.second.pack(self.envelope)
                except Exception as error:
                    refused = error          # what came before it goes out
                    at = count
                self.close_filled(self.open, receipts)
                if self.second is not None:
                    self.close_filled(self.second, receipts)
        except BaseException as error:
            if begun:                        # not published: the caller is told how many were
                self.open.clear()
                if self.second is not None:
                    self.second.clear()
            refused = error
        finally:
            mutex_unlock(&self.publisher.mutex)
        if receipts and self.publisher.confirms_later and isinstance(refused, Exception | None):
            if self.publisher.places_later:
                self.publisher.place(receipts)
            if not self.publisher.is_confirmed_with(transaction, self.admission.pending_max):
                self.publisher.wait(receipts[len(receipts) - 1])
        else:
            self.publisher.nobody_waits()
        if refused is not None:
            raise refused
        return receipts

    cdef bint packs_beside(self) except -1:
        """Have the full batch compressed by another thread while this one fills the second and
        compresses that: a codec takes ten times as long as all else."""
        if (self.envelope.compression == 0 or CPU_COUNT == 1
                or self.admission.state != PRODUCER_OPEN
                or batch_encode_payload_size(&self.open.batch) < PACKED_BESIDE_MIN):
            return False
        if self.second is None:
            self.second = self.new_batch()
        self.open.pack_beside(self.envelope)
        return True

    cdef Py_ssize_t fill_batch(self, OpenBatch batch, list contents, Py_ssize_t at, object keys,
                               object properties, object event_timestamps, bint plain) except -1:
        """Put messages from at on into the batch until it is full; returns where to go on. Mutex
        held, batch empty."""
        cdef SingleMetadata metadata
        cdef Py_ssize_t count = PyList_GET_SIZE(contents)
        cdef const uint8_t* payload
        cdef Py_ssize_t size
        cdef object content
        cdef bint sequenced = self.numbers.sequences is not None
        cdef int status
        memset(&metadata, 0, sizeof(metadata))
        metadata.flags = METADATA_SEQUENCE_ID
        batch.publish_ms = self.clock.now()
        while at < count and batch.batch.message_count < self.batch_messages_max:
            content = <object>PyList_GET_ITEM(contents, at)
            if plain and not sequenced and type(content) is bytes:
                # Nearly all messages: what follows, for one that surely fits behind others.
                size = PyBytes_GET_SIZE(content)
                if (size <= self.envelope.message_size_max
                        and batch_encode_payload_size(&batch.batch) + HEADER_SIZE_MAX
                        + <size_t>size <= self.batch_bytes_max
                        and batch_encode_add_plain(
                            &batch.batch, <const uint8_t*>PyBytes_AS_STRING(content),
                            <uint32_t>size, self.numbers.next_sequence_id)):
                    self.numbers.next_sequence_id += 1
                    at += 1
                    continue
            if not (plain and type(content) is bytes):
                memset(&metadata, 0, sizeof(metadata))
                metadata.flags = METADATA_SEQUENCE_ID
                if not (self.bytes_schema and type(content) is bytes):
                    content = outgoing_content(self.schema, content, &metadata)
                outgoing_describe(&metadata, &self.scratch, None if keys is None else keys[at],
                                  None,
                                  None if properties is None else properties[at],
                                  None if event_timestamps is None else event_timestamps[at], None)
            else:
                metadata.flags = METADATA_SEQUENCE_ID   # the one before may have had no value
            payload = NULL
            metadata.payload_size = 0
            if content is not None:
                payload = <const uint8_t*>PyBytes_AS_STRING(content)
                size = PyBytes_GET_SIZE(content)
                self.envelope.check_size(size)
                metadata.payload_size = <uint32_t>size
            if batch.batch.message_count and not self.fits(batch, &metadata):
                return at
            if sequenced:
                self.numbers.lift_own_ids()
            metadata.sequence_id = self.numbers.next_sequence_id
            status = batch_encode_add(&batch.batch, &metadata, payload)
            if status != STATUS_OK:
                raise_status(status, 0, f"add a message of {metadata.payload_size} bytes to the "
                                        f"batch")
            self.numbers.next_sequence_id += 1
            if sequenced:
                self.numbers.sequences.pushed = <int64_t>metadata.sequence_id
            at += 1
        return at

    cdef int close_filled(self, OpenBatch batch, list receipts) except -1:
        """Publish what fill_batch added and append its receipt."""
        cdef Receipt receipt
        if batch.batch.message_count == 0:
            return 0
        receipt = Receipt.__new__(Receipt)
        batch.receipt = receipt
        self.close(batch, True)
        receipts.append(receipt)
        return 0

    cdef list send_by_key(self, list contents, object keys, object properties,
                          object event_timestamps, object transaction, list places):
        """send_many where batches are of one key each; of each message its batch's receipt and its
        index there."""
        cdef OpenBatch last
        cdef Receipt alone
        cdef bint begun = False
        cdef bint taken = False
        refused = None
        mutex_lock(&self.publisher.mutex)
        try:
            if self.nested is not None:
                self.send_nested()
            if self.admission.state != PRODUCER_OPEN:
                self.admission.check_open(NULL)
            self.admission.many_count += 1             # the caller waits for all of it
            begun = True
            self.close_open(True)
            for at, content in enumerate(contents):
                alone = Receipt.__new__(Receipt)
                if self.admission.state == PRODUCER_HELD and self.open_count() == 0:
                    self.wait_between()
                try:
                    if self.accept(content, None, None if properties is None else properties[at],
                                   None if keys is None else keys[at], None, None, None, False,
                                   None if event_timestamps is None else event_timestamps[at],
                                   None, None, transaction, alone, True, NULL,
                                   &taken) == ALONE:
                        places.append((alone, 0))
                        continue
                except Exception as error:
                    refused = error          # what came before it goes out
                    break
                last = self.open if self.keyed is None else self.keyed.last
                if last.receipt is None:
                    last.receipt = Receipt.__new__(Receipt)
                places.append((last.receipt, last.batch.message_count - 1))
                if self.open_count() >= self.batch_messages_max:
                    self.close_open(True)
            self.close_open(True)
        except BaseException as error:
            refused = error
        finally:
            if begun:
                self.admission.many_count -= 1
            mutex_unlock(&self.publisher.mutex)
        if places and self.publisher.confirms_later and isinstance(refused, Exception | None):
            if self.publisher.places_later:
                self.publisher.place([receipt for receipt, _ in places])
            if not self.publisher.is_confirmed_with(transaction, self.admission.pending_max):
                self.publisher.wait(last_published(places))
        else:
            self.publisher.nobody_waits()
        if refused is not None:
            raise refused
        return places


cdef int note_failed(object transaction, object error) except -1:
    """A send in a transaction failed."""
    if isinstance(transaction, TransactionCore) and isinstance(
            error, (errors.PulsarException, MemoryError)) and not isinstance(
            error, errors.InvalidTxnStatusError):
        (<TransactionCore>transaction).fail(error)
    return 0


cdef int refuse_callback(object callback) except -1:
    raise TypeError(f"callback must be a function of a Result and a MessageId, or None, and not "
                    f"{type(callback).__name__}: {errors.shown(callback)}")


cdef Receipt last_published(list places):
    """The receipt of the entry that was published last: batches by key go out in their own order.
    """
    cdef Receipt receipt
    cdef Receipt last = places[0][0]
    for receipt, _ in places:
        if (receipt.ledger_id, receipt.entry_id) > (last.ledger_id, last.entry_id):
            last = receipt
    return last
