# cython: language_level=3
"""Body of batcher.pxd."""

import weakref

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.batch_encode cimport (
    batch_encode_add, batch_encode_clear, batch_encode_single,
)
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.message_metadata cimport MessageMetadata
from pulsarx._core.single_metadata cimport (
    METADATA_DELIVER_AT, METADATA_REPLICATE_TO, METADATA_SEQUENCE_ID, SingleMetadata,
)
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.ground.clock_core cimport ClockCore, Timer
from pulsarx._pycore.ledger.open_transactions cimport TransactionCore
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.ground.mutex cimport mutex_init, mutex_lock, mutex_unlock
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.ground.rate_limit cimport PublishMeter, RateLimit
from pulsarx._pycore.ground.signals cimport signals_raised
from pulsarx._pycore.ground.weak_reference cimport referent
from pulsarx._pycore.publish.admission cimport (
    ADMITTED, PRODUCER_CLOSED, PRODUCER_FENCED, PRODUCER_FORKED, PRODUCER_HELD, PRODUCER_OPEN,
    Admission, Wait,
)
from pulsarx._pycore.publish.chunker cimport Chunker
from pulsarx._pycore.publish.completion_queue cimport callback_count
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher, Receipt
from pulsarx._pycore.publish.envelope cimport Envelope, Payload, fill_frame
from pulsarx._pycore.publish.key_batches cimport KeyBatches
from pulsarx._pycore.publish.message_numbers cimport (
    KNOWN_NEW, KNOWN_ON_ITS_WAY, KNOWN_STORED, MessageNumbers,
)
from pulsarx._pycore.publish.open_batch cimport OpenBatch
from pulsarx._pycore.publish.producer_sequences cimport ProducerSequences

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept

cdef enum Tuning:
    HEADROOM = 1024            # for the metadata in front of a batch; a longer one makes it grow
    CAPACITY = 4096            # grows to what batches need


cdef class BatchDue:
    """See the pxd."""

    def __call__(self) -> None:
        cdef object found = referent(self.producer)
        if found is not None:
            (<Batcher>found).batch_due()


cdef class Batcher:
    """Encodes and batches for one producer. Any thread may call; the mutex orders them."""

    def __cinit__(self, *args, **named):
        # What copies an object does so; all of its methods would read what __init__ sets.
        if not args and not named:
            raise TypeError(f"{type(self).__name__} is made by a client, not by __new__ alone")

    def __init__(self, EntryPublisher publisher not None, object options, str name not None,
                 str topic_name not None, ClockCore clock not None, object compress,
                 uint32_t message_size_max, JobQueue background not None) -> None:
        """options: a ProducerOptions. name: unique on the topic while this producer lives. Called
        once more by a forked child, for a producer of its own: with nothing of the parent's."""
        self.timer = self.failure = self.keyed = self.second = self.nested = None
        self.publisher = publisher
        self.topic_name = topic_name
        self.clock = clock
        self.envelope = Envelope(options, name, topic_name, compress, message_size_max)
        self.numbers = MessageNumbers()
        self.admission = Admission(publisher, options, name, topic_name, clock, background)
        self.chunker = Chunker(publisher, self.envelope, self.numbers, self.admission, clock)
        self.schema = options.schema
        self.bytes_schema = options.schema_is_bytes
        self.batching = options.batching_enabled
        self.open = self.new_batch()
        if self.batching and options.is_batching_by_key:
            self.keyed = KeyBatches(len(self.envelope.name_utf8))
        publisher.memory = options.memory_limit
        self.plain_sends = self.sends_plain()
        self.batch_messages_max = options.batching_max_messages
        # An entry is never larger than a message may be.
        self.batch_bytes_max = min(options.batching_max_allowed_size_in_bytes, message_size_max)
        self.batch_delay_ms = options.batching_max_publish_delay_ms
        self.publisher.published_sequence_id = -1
        if options.initial_sequence_id is not None:
            self.numbers.begin_behind(options.initial_sequence_id)
            self.publisher.published_sequence_id = options.initial_sequence_id
        self.batch_due_call = BatchDue.__new__(BatchDue)
        self.batch_due_call.producer = weakref.ref(self)

    cdef OpenBatch new_batch(self):
        return OpenBatch(HEADROOM + len(self.envelope.name_utf8), CAPACITY)

    cdef bint sends_plain(self) noexcept:
        return (self.batching and self.bytes_schema and self.keyed is None
                and self.publisher.memory is None)

    def __dealloc__(self) -> None:
        PyMem_Free(self.scratch.views)

    cdef int send_nested(self) except -1:
        return 0

    # Batches --------------------------------------------------------------------------------------

    cdef int add(self, SingleMetadata* metadata, const uint8_t* payload, object callback,
                 bint awaited) except -1:
        cdef OpenBatch batch = self.open
        cdef int status
        if self.keyed is not None:
            if not self.keyed.fits(metadata, self.batch_bytes_max):
                self.close_open(awaited)
            batch = self.keyed.batch_of(metadata)
            if batch.batch.message_count and (
                    batch.entry != NULL or metadata.sequence_id <= batch.batch.last_sequence_id):
                self.close_open(awaited)
                batch = self.keyed.batch_of(metadata)
        elif batch.batch.message_count and (
                not self.fits(batch, metadata)
                or metadata.sequence_id <= batch.batch.last_sequence_id or batch.entry != NULL):
            self.close(batch, awaited)
        if batch.batch.message_count == 0:
            self.begin(batch)
        status = batch_encode_add(&batch.batch, metadata, payload)
        if status != STATUS_OK:
            raise_status(status, 0, f"add a message of {metadata.payload_size} bytes to the batch")
        if callback is not None:
            batch.add_callback(callback)
        if self.keyed is not None:
            self.keyed.added(metadata, batch)
            if self.numbers.sequences is not None:
                if batch.ids is None:
                    batch.ids = []
                batch.ids.append(<int64_t>metadata.sequence_id)
        return 0

    # Duplicates -----------------------------------------------------------------------------------

    def deduplicate(self, ProducerSequences sequences, catch_up=None, bint resume=False) -> None:
        """Tell duplicates by these numbers from now on; None: no more.

        catch_up: called first, with nothing of this producer on its way into the topic. resume: its
        own ids go on behind what was stored under its name.
        """
        cdef int64_t pushed = -1
        cdef int64_t stored
        mutex_lock(&self.publisher.mutex)
        try:
            if sequences is not None and self.keyed is not None:
                self.close_for_ids()
            if catch_up is not None:
                catch_up()
            if self.open.batch.message_count:
                pushed = <int64_t>self.open.batch.last_sequence_id
            stored = self.numbers.tell_duplicates(sequences, pushed, resume)
            if stored >= 0:
                self.publisher.published_sequence_id = stored
        finally:
            mutex_unlock(&self.publisher.mutex)

    cdef int join(self, TransactionCore transaction) except -1:
        cdef TransactionCore before = self.publisher.transaction
        self.close_for_ids()
        self.publisher.join(transaction)
        if before is not None:
            before.left(self, self.publisher.published_sequence_id)
        if transaction is not None:
            transaction.entered(self, self.publisher.published_sequence_id)
        return 0

    cdef int note_stored(self, int64_t last, list ids, bint more_follow,
                         int64_t now_ms) except -1:
        """An entry is stored, where there are sequences."""
        return self.numbers.sequences.note_stored(last, ids, more_follow, now_ms,
                                                  self.publisher.transaction)

    def finish(self, TransactionCore transaction not None, bint confirmed) -> object:
        """Send what is open of a transaction that ends, and return when all of it is confirmed,
        where that is wanted: what failed, or None. What failed of others is left to their flush."""
        mutex_lock(&self.publisher.mutex)
        try:
            if self.nested is not None:
                self.send_nested()
            if self.publisher.transaction is transaction:
                self.close_for_ids()
        finally:
            mutex_unlock(&self.publisher.mutex)
        return self.publisher.confirm_within(transaction) if confirmed else None

    def look_again(self) -> None:
        """A transaction has ended: see EntryPublisher."""
        self.publisher.look_again()

    def may_wait(self) -> bool:
        """Whether this thread may wait for what is queued: nothing of that waits for it."""
        return self.admission.may_wait()

    def leave(self, TransactionCore transaction not None, bint committed) -> None:
        """A transaction has ended: keep it no longer. The sequence ids of what was aborted are new
        again, where nothing was stored behind them."""
        mutex_lock(&self.publisher.mutex)
        try:
            if self.publisher.transaction is transaction:
                self.join(None)
            if not committed:
                self.publisher.published_sequence_id = transaction.before(
                    self, self.publisher.published_sequence_id)
            if self.numbers.sequences is not None:
                self.numbers.sequences.leave(transaction, committed)
        finally:
            mutex_unlock(&self.publisher.mutex)

    cdef int close_for_ids(self) except -1:
        """Publish what is open. What fails is told as at its deadline."""
        try:
            self.close_open(False)
        except Exception as error:
            if self.open_count():
                raise                        # not given up: nothing has changed
            self.failure = error
        return 0

    def resume_after(self, int64_t sequence_id) -> None:
        """The broker, which is in another process, knows of this id under the producer's name, -1:
        of none. Whether it tells duplicates is not known here, so the producer's own ids go on
        above all that were used, as they do where it does."""
        mutex_lock(&self.publisher.mutex)
        if self.numbers.resume_after(sequence_id):
            self.publisher.published_sequence_id = max(self.publisher.published_sequence_id,
                                                       sequence_id)
        mutex_unlock(&self.publisher.mutex)

    def lift_own_ids_above(self, int64_t sequence_id, bint begin=False) -> bool:
        """Like resume_after, when messages were sent already: those that wait go out first. begin:
        the broker tells duplicates of what is sent from here on.

        Whether the name has come further than its producer, which another one used meanwhile, or
        before.
        """
        # In one step: what is numbered in between would go out behind it, and be a duplicate.
        mutex_lock(&self.publisher.mutex)
        try:
            self.close_for_ids()
            if begin:
                self.publisher.compare_from_here()
            return self.numbers.lift_above(sequence_id)
        finally:
            mutex_unlock(&self.publisher.mutex)

    cdef bint is_duplicate(self, uint64_t sequence_id, bint awaited) except -1:
        cdef int known = self.numbers.known(sequence_id)
        if known == KNOWN_ON_ITS_WAY:
            self.close_open(awaited)
            known = KNOWN_STORED if self.numbers.is_stored(sequence_id) else KNOWN_NEW
        if known != KNOWN_STORED:
            return False
        self.numbers.sequences.require_decided(<int64_t>sequence_id, self.publisher.transaction)
        return True

    cdef int begin(self, OpenBatch batch) except -1:
        cdef int64_t now_ms = self.clock.monotonic()
        batch.publish_ms = self.clock.now()
        if self.open_count() == 0:
            self.begun_ms = now_ms
        if self.timer is None:
            self.timer = self.clock.arm_monotonic(now_ms + self.batch_delay_ms,
                                                  self.batch_due_call)
        return 0

    def batch_due(self) -> None:
        """The deadline armed by begin has come: send the batch, or wait on for a younger one."""
        if not self.admission.is_live():
            return
        mutex_lock(&self.publisher.mutex)
        try:
            self.timer = None
            if self.open_count() == 0:
                return
            if self.clock.monotonic() - self.begun_ms < self.batch_delay_ms:
                self.timer = self.clock.arm_monotonic(self.begun_ms + self.batch_delay_ms,
                                                      self.batch_due_call)
                return
            try:
                self.close_open(False)
            except Exception as error:
                self.failure = error
                if self.open_count():
                    # Not given up, as when memory was out: tried again after the same delay.
                    self.timer = self.clock.arm_monotonic(
                        self.clock.monotonic() + max(self.batch_delay_ms, <int64_t>1),
                        self.batch_due_call)
        finally:
            mutex_unlock(&self.publisher.mutex)

    def send_open(self) -> None:
        """Send the open batch before its deadline. What it is refused with is told as then; what is
        raised leaves it open until then."""
        cdef uint64_t raised = signals_raised()
        if not self.admission.is_live():
            return
        mutex_lock(&self.publisher.mutex)
        try:
            if self.nested is not None:
                self.send_nested()
            self.close_open(False)
        except errors.PulsarException as error:
            if not is_refusal(error, raised):
                raise
        finally:
            mutex_unlock(&self.publisher.mutex)

    cdef uint32_t open_count(self) noexcept:
        return self.open.batch.message_count + (
            self.keyed.message_count if self.keyed is not None else 0)

    cdef int close_open(self, bint awaited) except -1:
        cdef OpenBatch batch
        cdef bint told
        if self.keyed is None:
            return self.close(self.open, awaited)
        if self.keyed.message_count == 0:
            return 0
        # All are tried. Raised is what the first one failed with; when a send waits for one batch,
        # only what that one failed with, and the next flush is told about the others.
        failure = None
        try:
            batches = self.keyed.ready()
            for at, batch in enumerate(batches):
                batch.batch.more_follow = at + 1 < len(batches)
                told = self.keyed.awaited is None or batch is self.keyed.awaited
                try:
                    self.close(batch, awaited and told)
                except BaseException as error:
                    if batch.batch.message_count:
                        raise                # it waits on, and so do the others
                    if failure is None and told:
                        failure = error
        finally:
            self.keyed.forget_closed()
        if failure is not None:
            raise failure
        return 0

    cdef int close(self, OpenBatch batch, bint awaited) except -1:
        cdef MessageMetadata metadata
        cdef Receipt receipt
        cdef uint32_t count = batch.batch.message_count
        cdef uint64_t raised = signals_raised()
        if count == 0:
            return 0
        if self.keyed is not None:
            batch.batch.first_sequence_id = batch.batch.last_sequence_id
        receipt = batch.receipt if batch.receipt is not None else Receipt.__new__(Receipt)
        receipt.reserved = batch.reserved
        self.envelope.fill(&metadata, batch.publish_ms)
        self.entry_count += 1
        try:
            batch.encode(&metadata, self.envelope)
            self.envelope.check_entry(batch.packed_size, batch.frame.entry_size)
            self.publisher.publish(&batch.frame, batch.entry, receipt, batch.callbacks, awaited)
        except BaseException as error:
            if not is_refusal(error, raised):
                raise
            callbacks = batch.callbacks
            self.publisher.release(receipt)
            batch.clear()
            if self.numbers.sequences is not None:
                self.numbers.sequences.failed = True
            self.give_up(callbacks, count, awaited, error)
            raise
        if self.numbers.sequences is not None:
            self.note_stored(<int64_t>batch.batch.last_sequence_id, batch.ids,
                             batch.batch.more_follow, batch.publish_ms)
        if not self.publisher.places_later:
            self.publisher.published_sequence_id = <int64_t>batch.batch.last_sequence_id
        batch.clear()
        return 0

    cdef int publish_single(self, SingleMetadata* single, const uint8_t* payload,
                            int64_t deliver_at_ms, bytes replicate_to, object callback,
                            Receipt receipt, bint own_id, bint awaited) except -1:
        cdef MessageMetadata metadata
        cdef EntryFrame frame
        cdef Payload content
        cdef uint8_t* entry
        cdef uint32_t entry_size
        cdef bytes packed
        cdef tuple sealed
        cdef list callbacks = None if callback is None else [-1, callback]
        cdef uint64_t raised = signals_raised()
        cdef int status
        content.data = payload
        content.size = single.payload_size
        self.envelope.fill(&metadata, self.clock.now())
        metadata.flags |= single.flags & ~<uint32_t>METADATA_SEQUENCE_ID
        metadata.sequence_id = single.sequence_id
        metadata.event_time_ms = single.event_time_ms
        metadata.partition_key = single.partition_key
        metadata.partition_key_size = single.partition_key_size
        metadata.ordering_key = single.ordering_key
        metadata.ordering_key_size = single.ordering_key_size
        metadata.properties = single.properties
        metadata.property_count = single.property_count
        if deliver_at_ms:
            metadata.flags |= METADATA_DELIVER_AT
            metadata.deliver_at_ms = deliver_at_ms
        if replicate_to is not None:
            metadata.flags |= METADATA_REPLICATE_TO
            metadata.replicate_to = <const uint8_t*>PyBytes_AS_STRING(replicate_to)
            metadata.replicate_to_size = <uint32_t>PyBytes_GET_SIZE(replicate_to)
        self.entry_count += 1
        try:
            packed = self.envelope.pack(&metadata, &content)         # keeps what it points into
            if self.envelope.chunking and not self.envelope.fits_entry(&metadata, content.size):
                self.chunker.publish(&metadata, content, &self.open.batch, &self.scratch, callbacks,
                                     receipt, own_id, awaited)
            else:
                sealed = self.envelope.seal(&metadata, &content)     # likewise
                status = batch_encode_single(&self.open.batch, &metadata, content.data,
                                             content.size, &entry, &entry_size)
                if status != STATUS_OK:
                    raise_status(status, 0, f"encode a message of {single.payload_size} bytes")
                self.envelope.check_entry(content.size, entry_size)
                fill_frame(&frame, &metadata, entry_size)
                self.numbers.note_used(metadata.sequence_id)
                self.publisher.publish(&frame, entry, receipt, callbacks, awaited)
            if not self.publisher.places_later:
                self.publisher.published_sequence_id = <int64_t>metadata.sequence_id
            if self.numbers.sequences is not None:
                self.note_stored(<int64_t>metadata.sequence_id, None, False,
                                 <int64_t>metadata.publish_time_ms)
        except BaseException as error:
            if receipt.reserved:
                self.publisher.release(receipt)
            if not isinstance(error, Exception):
                raise
            if self.numbers.sequences is not None:
                self.numbers.sequences.failed = True
            if is_refusal(error, raised):
                self.give_up(callbacks, 0, awaited, error)
            raise
        finally:
            batch_encode_clear(&self.open.batch)
        return 0

    def chunked_message_rate(self) -> float:
        """Chunks that it published, a second, over the last minute."""
        return self.chunker.rate.per_second()

    def say_before_chunks(self, object call not None) -> None:
        """Have it called once, before the first chunk is stored."""
        self.chunker.before_chunks = call

    cdef int give_up(self, list callbacks, uint32_t message_count, bint awaited,
                     object error) except -1:
        """The entry will not be published: tell its callbacks, and the next flush when there are
        messages without a callback. The send that closed the batch gets the error itself."""
        cdef uint32_t told = callback_count(callbacks) + (1 if awaited else 0)
        if self.publisher.transaction is not None:
            self.publisher.transaction.fail(error)
        if callbacks:
            self.publisher.completions.post(callbacks, 0, 0, 0, error, self.publisher.partition)
        if message_count > told:
            self.failure = error
        return 0

    def encrypt_by(self, object encrypt not None) -> None:
        """Encrypt what is sent from now on; called before anything is. encrypt: bytes -> (fields of
        the metadata, bytes); what it raises is what the send fails with."""
        self.envelope.encrypt = encrypt

    def encode_by(self, object schema not None, bint is_bytes, bytes version) -> None:
        """Encode what is sent from now on by a schema of this version on the topic, None for none.
        is_bytes: contents that are bytes go through as they are.
        The open batch goes out first where the version is another; what it fails with is raised,
        and nothing changes."""
        mutex_lock(&self.publisher.mutex)
        try:
            self.admission.require_open()
            if version != self.envelope.schema_version:
                self.close_open(False)
            self.schema = schema
            self.envelope.schema_version = version
            self.bytes_schema = is_bytes
            self.plain_sends = self.sends_plain()
        finally:
            mutex_unlock(&self.publisher.mutex)

    # Admission ------------------------------------------------------------------------------------

    cdef int admit(self, bint awaited, Wait* wait) except -1:
        cdef int answer = ADMITTED
        if self.admission.state != PRODUCER_OPEN:
            answer = self.admission.check_open(wait)
        # What waits for company goes out first: waiting for it would be waiting for oneself.
        while answer == ADMITTED and self.publisher.memory is not None and (
                self.publisher.memory.is_full()):
            self.close_open(awaited)
            answer = self.admission.wait_for_memory(wait)
        while answer == ADMITTED and self.is_crowded():
            self.close_open(awaited)
            answer = self.admission.wait_for_room(wait)
        return answer

    def limit_pending(self, uint32_t message_count) -> None:
        """Change max_pending_messages: the share of one partition shrinks when its topic grows."""
        mutex_lock(&self.publisher.mutex)
        self.admission.pending_max = message_count
        mutex_unlock(&self.publisher.mutex)

    cdef int wait_between(self) except -1:
        cdef uint32_t many = self.admission.many_count
        if self.admission.state != PRODUCER_HELD or self.admission.rate is None or (
                self.admission.rate.waits_until() == 0):
            return 0
        self.publisher.nobody_waits()        # for what went out before
        self.admission.many_count = 0
        try:
            self.admission.check_open(NULL)
        finally:
            self.admission.many_count += many
        return self.close_open(True)

    def hold(self, str reason not None) -> None:
        """Let senders wait from now on, until `release`, or send_timeout_millis are over. What was
        sent before goes out."""
        mutex_lock(&self.publisher.mutex)
        self.admission.hold(reason)
        mutex_unlock(&self.publisher.mutex)

    def release(self) -> None:
        """There is room again."""
        mutex_lock(&self.publisher.mutex)
        self.admission.hold(None)
        mutex_unlock(&self.publisher.mutex)
        self.admission.wake_held()

    def limit_rate(self, RateLimit rate, PublishMeter meter) -> None:
        """Let senders wait while this limit is used up; None: never. meter: told what is published,
        or None. Those that wait look again."""
        self.publisher.count(rate, meter)
        mutex_lock(&self.publisher.mutex)
        self.admission.limit_rate(rate)
        mutex_unlock(&self.publisher.mutex)
        self.admission.wake_held()

    cdef int refuse_queued(self, object error) except -1:
        return 0

    cdef int wait_for_queued(self) except -1:
        return 0

    def limit_delay(self, int64_t delay_max_ms) -> None:
        """Refuse messages that are delayed for longer; 0: none."""
        self.admission.deliver_delay_max_ms = delay_max_ms

    # Life -----------------------------------------------------------------------------------------

    def flush(self) -> None:
        self.admission.require_open()
        self.wait_for_queued()
        self.drain(False)

    cdef int drain(self, bint at_last) except -1:
        """flush, also while closing; at_last: what cannot be published now never will be."""
        cdef object refused = None
        cdef uint64_t raised = signals_raised()
        mutex_lock(&self.publisher.mutex)
        try:
            if self.nested is not None:
                self.send_nested()
            self.close_open(True)
        except BaseException as error:
            if at_last and isinstance(error, Exception):
                self.give_up_open(error, True)
            self.publisher.nobody_waits()
            if not isinstance(error, Exception) or signals_raised() != raised:
                raise
            refused = error
        finally:
            mutex_unlock(&self.publisher.mutex)
        if refused is not None:
            self.publisher.drain(refused)    # callbacks are told before the caller is
            raise refused
        failed = self.publisher.flush()
        if failed is not None:
            self.failure = failed            # told by the next flush, if this one is interrupted
        self.publisher.drain(failed)
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        return 0

    cdef int give_up_open(self, object error, bint awaited) except -1:
        """Closing or fenced: tell the callbacks of what was not published, and never will be.
        awaited: a caller gets the error itself."""
        cdef OpenBatch batch
        cdef uint32_t count
        for batch in [self.open] if self.keyed is None else self.keyed.ready():
            count = batch.batch.message_count
            callbacks = batch.callbacks
            if batch.reserved:
                self.publisher.memory.release(batch.reserved)
            batch.clear()
            if count:
                self.give_up(callbacks, count, awaited, error)
        if self.keyed is not None:
            self.keyed.forget_closed()
        return 0

    def fence(self, str reason not None, kind=errors.ProducerFenced) -> None:
        """Store nothing from now on, because another producer has the topic to itself, or as the
        exception says. Callbacks of what is not stored are told; what is stored is confirmed as
        ever."""
        if self.admission.is_live():
            self.admission.fenced_by = reason
            self.admission.fenced_as = kind
            # First: a call that waits for the mutex is refused.
            self.admission.state = PRODUCER_FENCED
        self.publisher.fence(reason, kind)
        self.admission.wake_held()
        self.refuse_queued(kind(detail=reason))
        mutex_lock(&self.publisher.mutex)
        try:
            self.give_up_open(kind(detail=reason), False)
        finally:
            mutex_unlock(&self.publisher.mutex)
        self.cancel_timer()

    cdef int cancel_timer(self) except -1:
        timer, self.timer = self.timer, None
        if timer is not None:
            (<Timer>timer).cancel()
        return 0

    def shut(self) -> None:
        """Send what is open, then refuse further calls. AlreadyClosed when it was shut already. A
        fenced one has nothing to send; its callbacks have run when this returns."""
        cdef bint was_fenced
        mutex_lock(&self.publisher.mutex)
        try:
            was_fenced = self.admission.state == PRODUCER_FENCED or (
                self.publisher.fenced is not None and self.admission.is_live())
            if not was_fenced and self.admission.state != PRODUCER_HELD:
                self.admission.require_open()
                if self.nested is not None:
                    self.send_nested()       # it came before
            # First: what another thread sends from now on is refused, not forgotten.
            self.admission.state = PRODUCER_CLOSED
        finally:
            mutex_unlock(&self.publisher.mutex)
        self.publisher.begin_leaving()
        self.admission.wake_held()
        self.refuse_queued(errors.AlreadyClosed(
            detail=f"producer {self.envelope.name_utf8.decode()} on {self.topic_name}"))
        try:
            if was_fenced:
                self.publisher.drain(self.publisher.flush())
            else:
                self.drain(True)
        finally:
            self.cancel_timer()
            self.publisher.cancel_timeout()

    def abandon(self) -> None:
        """In a forked child: refuse further calls; touch nothing."""
        if self.admission.state != PRODUCER_FORKED:      # else by the child of a child
            self.admission.owner_pid = errors.parent_pid()
        self.admission.state = PRODUCER_FORKED
        self.plain_sends = False
        if self.publisher.mutex.owner != PyThread_get_thread_ident():
            mutex_init(&self.publisher.mutex)    # a thread that is not there may have had it
        self.publisher.abandon()

    def require_open(self) -> None:
        """AlreadyClosed (ForkedError in a forked child) unless it is open."""
        self.admission.require_open()

    @property
    def is_forked(self) -> bool:
        return self.admission.state == PRODUCER_FORKED

    @property
    def is_open(self) -> bool:
        return self.admission.is_live() and self.publisher.fenced is None

    def last_sequence_id(self) -> int:
        return self.publisher.published_sequence_id


cdef bint is_refusal(object error, uint64_t raised):
    """Whether an entry will never be published. An interrupt says nothing about the entry, nor does
    what a codec raises, which may be out of memory. raised: signals_raised before it was tried."""
    return isinstance(error, errors.PulsarException) and signals_raised() == raised
