# cython: language_level=3
"""Body of producer_store.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx import errors
from pulsarx._core.atomic cimport atomic_load_u32
from pulsarx._core.batch_encode cimport (
    batch_encode_add, batch_encode_clear, batch_encode_compressed, batch_encode_finish,
    batch_encode_free, batch_encode_init, batch_encode_payload_size, batch_encode_plain_payload,
    batch_encode_single,
)
from pulsarx._core.entry_frame cimport ENTRY_BATCH, ENTRY_COMPRESSED, ENTRY_MIXED_KEYS, EntryFrame
from pulsarx._core.ledger_append cimport (
    LEDGER_FENCED, LEDGER_OPEN, ledger_append_entry, ledger_append_flush,
)
from pulsarx._core.message_metadata cimport MessageMetadata
from pulsarx._core.single_metadata cimport (
    METADATA_BATCH, METADATA_DELIVER_AT, METADATA_SEQUENCE_ID, SingleMetadata,
)
from pulsarx._core.status cimport (
    STATUS_CLOSED, STATUS_INTERRUPTED, STATUS_IO, STATUS_LEDGER_FULL, STATUS_OK,
)
from pulsarx._core.sticky_key cimport sticky_key_of_entry
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter
from pulsarx._pycore.ground.mutex cimport mutex_destroy, mutex_init, mutex_lock, mutex_unlock
from pulsarx._pycore.publish.pending_sends cimport PendingSends
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.ground.signals cimport signals_check

cdef enum Tuning:
    # for the metadata in front of a batch; a longer one makes the buffer grow
    HEADROOM = 1024
    # bytes: a smaller write is over before another thread could take the GIL
    GIL_KEPT_UP_TO = 4096


cdef class ProducerStore:
    """Encodes, batches and stores for one producer. Any thread may call; the mutex orders them."""

    def __cinit__(self):
        mutex_init(&self.mutex)
        memset(&self.batch, 0, sizeof(self.batch))

    def __init__(self, object topic, LedgerTail tail not None, object options, str name not None,
                 object clock, object completions, object compress, uint32_t durability,
                 uint32_t message_size_max):
        """options: a ProducerOptions. name: unique on the topic while this producer lives."""
        self.topic = topic
        self.tail = tail
        self.clock = clock
        self.pending = PendingSends(completions, tail.partition)
        self.compress = compress
        self.schema = options.schema
        self.bytes_schema = options.schema_is_bytes
        self.name_utf8 = name.encode()
        self.batching = options.batching_enabled
        self.by_key = self.batching and options.is_batching_by_key
        self.plain_sends = self.batching and self.bytes_schema and not self.by_key
        self.batch_messages_max = options.batching_max_messages
        self.batch_bytes_max = options.batching_max_allowed_size_in_bytes
        self.batch_delay_ms = options.batching_max_publish_delay_ms
        self.message_size_max = message_size_max
        self.pending_max = options.max_pending_messages
        self.block_if_queue_full = options.block_if_queue_full
        self.compression = int(options.compression_type)
        self.durability = durability
        self.stored_sequence_id = -1
        if options.initial_sequence_id is not None:
            self.next_sequence_id = options.initial_sequence_id + 1
            self.stored_sequence_id = options.initial_sequence_id
        cdef size_t capacity = 4096          # grows to what batches need
        cdef int status = batch_encode_init(&self.batch, HEADROOM + len(self.name_utf8), capacity)
        if status != STATUS_OK:
            raise_status(status, 0, f"make producer {name}")
        self.state = PRODUCER_OPEN

    def __dealloc__(self):
        batch_encode_free(&self.batch)
        PyMem_Free(self.scratch.views)
        mutex_destroy(&self.mutex)

    cdef int add(self, SingleMetadata* metadata, const uint8_t* payload, object callback) except -1:
        """Put a message into the open batch; close the batch before when it does not fit."""
        cdef size_t size = 24 + metadata.payload_size + metadata.partition_key_size
        size += metadata.ordering_key_size
        if self.batch.message_count and (
                batch_encode_payload_size(&self.batch) + size > self.batch_bytes_max
                or metadata.sequence_id <= self.batch.last_sequence_id):
            self.close_batch()
        if self.batch.message_count == 0:
            self.begin_batch()
        cdef int status = batch_encode_add(&self.batch, metadata, payload)
        if status != STATUS_OK:
            raise_status(status, 0, f"add a message of {metadata.payload_size} bytes to the batch")
        if callback is not None:
            if self.callbacks is None:
                self.callbacks = []
            self.callbacks.append((self.batch.message_count - 1, callback))
        return 0

    cdef int begin_batch(self) except -1:
        """Start the clock of a new batch: its publish time, and the deadline by which it goes
        out."""
        self.batch_publish_ms = self.clock.now_ms()
        if self.timer is None:
            self.timer = self.topic.arm_batch(self, self.batch_publish_ms + self.batch_delay_ms)
        return 0

    def batch_due(self) -> None:
        """The deadline armed by begin_batch has come: send the batch, or wait on for a younger
        one."""
        if self.state != PRODUCER_OPEN:
            return
        mutex_lock(&self.mutex)
        try:
            self.timer = None
            if self.batch.message_count + self.keyed_count == 0:
                return
            if <int64_t>self.clock.now_ms() - self.batch_publish_ms < self.batch_delay_ms:
                self.timer = self.topic.arm_batch(self, self.batch_publish_ms + self.batch_delay_ms)
                return
            try:
                self.close_open()
            except Exception as error:
                self.failure = error
        finally:
            mutex_unlock(&self.mutex)

    cdef int close_open(self) except -1:
        """Store all that waits for company: one batch here, several where batches are by key."""
        return self.close_batch()

    cdef int close_batch(self) except -1:
        """Store the open batch as one entry. Mutex held. On failure its callbacks are told and it
        is gone."""
        cdef MessageMetadata envelope
        cdef EntryFrame frame
        cdef uint8_t* entry = NULL
        cdef uint32_t entry_size = 0
        cdef int status
        if self.batch.message_count == 0:
            return 0
        try:
            self.fill_envelope(&envelope, self.batch_publish_ms)
            if self.compression:
                self.compress_batch(&envelope, &entry, &entry_size)
            else:
                status = batch_encode_finish(&self.batch, &envelope, &entry, &entry_size)
                if status != STATUS_OK:
                    raise_status(status, 0, f"encode a batch of {self.batch.message_count} "
                                            f"messages")
            memset(&frame, 0, sizeof(frame))
            frame.entry_size = entry_size
            frame.message_count = self.batch.message_count
            frame.publish_time_ms = self.batch_publish_ms
            frame.flags = (ENTRY_BATCH if envelope.flags & METADATA_BATCH else 0) | (
                ENTRY_COMPRESSED if envelope.compression else 0) | (ENTRY_MIXED_KEYS
                        if self.batch.mixed_keys else 0)
            frame.sticky_hash = sticky_key_of_entry(&envelope)
            self.store(&frame, entry)
            self.stored_sequence_id = <int64_t>self.batch.last_sequence_id
        except BaseException as error:
            self.give_up(error)
            raise
        finally:
            batch_encode_clear(&self.batch)
        return 0

    cdef int store_single(self, SingleMetadata* single, const uint8_t* payload,
                          int64_t deliver_at_ms) except -1:
        """Store one message as an entry of its own. Mutex held."""
        cdef MessageMetadata metadata
        cdef EntryFrame frame
        cdef uint8_t* entry
        cdef uint32_t entry_size
        cdef uint32_t size = single.payload_size
        cdef bytes packed
        cdef int status
        try:
            self.fill_envelope(&metadata, self.clock.now_ms())
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
            if self.compression and size:
                packed = self.compress(self.compression, payload[:size])
                metadata.compression = self.compression
                metadata.uncompressed_size = size
                payload = <const uint8_t*>PyBytes_AS_STRING(packed)
                size = <uint32_t>PyBytes_GET_SIZE(packed)
            status = batch_encode_single(&self.batch, &metadata, payload, size, &entry, &entry_size)
            if status != STATUS_OK:
                raise_status(status, 0, f"encode a message of {single.payload_size} bytes")
            if entry_size > self.message_size_max + 10240:
                self.refuse_size(entry_size)
            memset(&frame, 0, sizeof(frame))
            frame.entry_size = entry_size
            frame.message_count = 1
            frame.publish_time_ms = <int64_t>metadata.publish_time_ms
            frame.deliver_at_ms = deliver_at_ms
            frame.flags = ENTRY_COMPRESSED if metadata.compression else 0
            frame.sticky_hash = sticky_key_of_entry(&metadata)
            self.store(&frame, entry)
            self.stored_sequence_id = <int64_t>single.sequence_id
        except BaseException as error:
            self.give_up(error)
            raise
        finally:
            batch_encode_clear(&self.batch)
        return 0

    cdef LedgerWriter store(self, EntryFrame* frame, uint8_t* entry):
        """Append to the topic's open ledger, rolling it over when it is full."""
        cdef LedgerWriter writer
        cdef uint64_t offset
        cdef uint32_t state
        cdef int status
        self.entry_count += 1
        while True:
            writer = self.tail.writer
            if writer is None:
                self.tail.managed_ledger.open_writer()
                continue
            state = atomic_load_u32(&writer.c_ledger.state)
            if state == LEDGER_FENCED or (state == LEDGER_OPEN
                                          and frame.publish_time_ms >= self.tail.roll_over_at_ms):
                self.tail.managed_ledger.roll_over(writer)
                continue
            if frame.entry_size > GIL_KEPT_UP_TO:
                with nogil:
                    status = ledger_append_entry(&writer.c_ledger, frame, entry, &offset)
            else:
                status = ledger_append_entry(&writer.c_ledger, frame, entry, &offset)
            if status == STATUS_OK:
                break
            # Refused without an error: another producer has just begun to roll the ledger over.
            if status == STATUS_LEDGER_FULL or status == STATUS_CLOSED or (
                    status == STATUS_IO and writer.c_ledger.error == 0):
                self.tail.managed_ledger.roll_over(writer)
                continue
            raise_status(status, writer.c_ledger.error,
                         f"append {frame.entry_size} bytes to ledger {writer.ledger_id} of "
                         f"{self.topic.name}")
        self.stored_writer = writer
        self.stored_ledger_id = writer.ledger_id
        self.stored_entry_id = frame.entry_id
        callbacks, self.callbacks = self.callbacks, None
        if self.durability == DURABILITY_SYNC:
            self.pending.add(writer, frame.entry_id, frame.message_count, callbacks)
            if not self.caller_waits:
                self.pending.completions.expect(self)
        else:
            if callbacks:
                self.pending.completions.post(callbacks, writer.ledger_id, frame.entry_id,
                                              frame.message_count, None, self.tail.partition)
            if self.durability == DURABILITY_INTERVAL:
                self.tail.managed_ledger.arm_flush()
            if self.tail.watchers:
                self.tail.notify()
        return writer

    cdef int give_up(self, object error) except -1:
        """The entry could not be stored: tell its callbacks, and the next flush when there are
        messages nobody else is told about. A batch's own send is told by the error itself."""
        cdef uint32_t told = 1 if self.caller_waits else 0
        callbacks, self.callbacks = self.callbacks, None
        if not isinstance(error, Exception):
            error = errors.Interrupted(f"{error!r} while a batch was being stored")
        if callbacks:
            told += <uint32_t>len(callbacks)
            self.pending.completions.post(callbacks, 0, 0, 0, error, self.tail.partition)
        if self.batch.message_count > told:
            self.failure = error
        return 0

    cdef int compress_batch(self, MessageMetadata* envelope, uint8_t** entry,
                            uint32_t* entry_size) except -1:
        cdef const uint8_t* plain
        cdef uint32_t size
        cdef bytes packed
        cdef int status
        batch_encode_plain_payload(&self.batch, &plain, &size)
        packed = self.compress(self.compression, plain[:size])
        envelope.compression = self.compression
        status = batch_encode_compressed(&self.batch, envelope,
                                         <const uint8_t*>PyBytes_AS_STRING(packed),
                                         <uint32_t>PyBytes_GET_SIZE(packed), entry, entry_size)
        if status != STATUS_OK:
            raise_status(status, 0, f"encode a batch of {self.batch.message_count} messages")
        return 0

    cdef void fill_envelope(self, MessageMetadata* envelope, int64_t publish_time_ms) noexcept:
        memset(envelope, 0, sizeof(MessageMetadata))
        envelope.message_count = 1
        envelope.publish_time_ms = <uint64_t>publish_time_ms
        envelope.producer_name = <const uint8_t*>PyBytes_AS_STRING(self.name_utf8)
        envelope.producer_name_size = <uint32_t>PyBytes_GET_SIZE(self.name_utf8)

    cdef inline bint is_crowded(self) noexcept:
        """Whether max_pending_messages are on their way."""
        return self.pending_max != 0 and (
            self.batch.message_count + self.keyed_count + self.pending.message_count
            >= self.pending_max)

    cdef int make_room(self) except -1:
        """Too many messages are on their way: send the open batch, then wait or refuse. Mutex
        held."""
        self.close_open()
        self.pending.settle()
        while self.pending.message_count >= self.pending_max:
            if not self.block_if_queue_full:
                raise errors.ProducerQueueIsFull(
                    f"{self.pending.message_count} messages of {self.name_utf8.decode()} are "
                    f"not durable yet and "
                    f"max_pending_messages is {self.pending_max}; wait, or set block_if_queue_full")
            oldest = self.pending.oldest()
            self.wait_durable(oldest[0], oldest[4])
        return 0

    cdef int wait_durable(self, LedgerWriter writer, uint64_t entry_id) except -1:
        """Return when the entry is flushed; the first to come flushes for all who wait."""
        cdef int status
        while True:
            with nogil:
                status = ledger_append_flush(&writer.c_ledger, entry_id + 1)
            if status != STATUS_INTERRUPTED:
                break
            signals_check()
        if status != STATUS_OK:
            try:
                raise_status(status, writer.c_ledger.error,
                             f"flush ledger {writer.ledger_id} of {self.topic.name}")
            except Exception as error:
                if self.pending.fail(error):
                    self.failure = error
                raise
        self.pending.settle()
        if self.tail.watchers:
            self.tail.notify()
        return 0

    def flush_pending(self):
        """Make everything that was stored durable; called by the thread that runs callbacks too.

        Returns what the flush failed with, or None.
        """
        cdef object newest
        mutex_lock(&self.mutex)
        try:
            self.pending.settle()
            newest = self.pending.newest()
        finally:
            mutex_unlock(&self.mutex)
        if newest is None or self.state == PRODUCER_FORKED:
            return None
        cdef LedgerWriter writer = newest[0]
        cdef uint64_t entry_count = newest[1]
        cdef int status
        while True:
            with nogil:
                status = ledger_append_flush(&writer.c_ledger, entry_count)
            if status != STATUS_INTERRUPTED:
                break
            signals_check()
        mutex_lock(&self.mutex)
        try:
            if status == STATUS_OK:
                self.pending.settle()
                if self.tail.watchers:
                    self.tail.notify()
                return None
            try:
                raise_status(status, writer.c_ledger.error,
                             f"flush ledger {writer.ledger_id} of {self.topic.name}")
            except Exception as error:
                # Also when callbacks are told: the next flush or close must not look like success.
                self.failure = error
                self.pending.fail(error)
                return error
        finally:
            mutex_unlock(&self.mutex)

    def flush(self) -> None:
        """Send the open batch and return when everything sent is as durable as the client was
        opened for.

        The callbacks of it have run then too. Raises what an earlier batch without callbacks failed
        with.
        """
        self.check_open()
        self.drain()

    def drain(self) -> None:
        """flush, also while closing."""
        mutex_lock(&self.mutex)
        self.caller_waits = True
        try:
            self.close_open()
        finally:
            self.caller_waits = False
            mutex_unlock(&self.mutex)
        failed = self.flush_pending()
        self.pending.completions.wait()
        failure, self.failure = failed or self.failure, None
        if failure is not None:
            raise failure

    cdef int refuse_size(self, Py_ssize_t size) except -1:
        raise errors.MessageTooBig(
            f"send {size} bytes to {self.topic.name}: max_message_size is {self.message_size_max}")

    cdef int check_open(self) except -1:
        if self.state == PRODUCER_OPEN:
            return 0
        if self.state == PRODUCER_FORKED:
            raise errors.ForkedError("the client was opened before this process was forked; open "
                                     "one of its own")
        raise errors.AlreadyClosed(f"producer {self.name_utf8.decode()} on {self.topic.name}")

    def shut(self) -> None:
        """Send what is open, then refuse further calls. AlreadyClosed when it was shut already."""
        self.check_open()
        mutex_lock(&self.mutex)
        try:
            self.check_open()
            # First: what another thread sends from now on is refused, not forgotten.
            self.state = PRODUCER_CLOSED
        finally:
            mutex_unlock(&self.mutex)
        try:
            self.drain()
        finally:
            timer, self.timer = self.timer, None
            if timer is not None:
                timer.cancel()

    def abandon(self) -> None:
        """In a forked child: refuse further calls; touch nothing."""
        self.state = PRODUCER_FORKED

    @property
    def is_open(self) -> bool:
        return self.state == PRODUCER_OPEN

    def limit_pending(self, uint32_t message_count) -> None:
        """Change max_pending_messages: the share of one partition shrinks when its topic grows."""
        mutex_lock(&self.mutex)
        self.pending_max = message_count
        mutex_unlock(&self.mutex)

    def last_sequence_id(self) -> int:
        """Sequence id of the last message that was stored, -1 before the first."""
        return self.stored_sequence_id
