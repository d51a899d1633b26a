# cython: language_level=3
"""Body of batcher.pxd."""

import weakref

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free
from cpython.weakref cimport PyWeakref_GetObject
from libc.stddef cimport size_t
from libc.stdint cimport INT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx import errors
from pulsarx._core.batch_encode cimport (
    batch_encode_add, batch_encode_clear, batch_encode_single,
)
from pulsarx._core.entry_frame cimport ENTRY_CHUNK, ENTRY_COMPRESSED, EntryFrame
from pulsarx._core.message_metadata cimport MessageMetadata, message_metadata_size
from pulsarx._core.single_metadata cimport (
    METADATA_DELIVER_AT, METADATA_ENCRYPTED, METADATA_REPLICATE_TO, METADATA_SCHEMA_VERSION,
    METADATA_SEQUENCE_ID, METADATA_UUID, SingleMetadata,
)
from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.sticky_key cimport sticky_key_of_entry
from pulsarx._pycore.ground.clock_core cimport ClockCore, Timer
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.latch cimport Latch
from pulsarx._pycore.ground.mutex cimport mutex_init, mutex_lock, mutex_unlock
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.ground.rate_limit cimport PublishMeter, RateLimit
from pulsarx._pycore.ground.signals cimport signals_raised
from pulsarx._pycore.message.message_id cimport MessageId, message_id_chunked
from pulsarx._pycore.publish.chunked_rate cimport ChunkedRate
from pulsarx._pycore.publish.completion_queue cimport SendTold, callback_count
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher, Receipt
from pulsarx._pycore.publish.key_batches cimport KeyBatches
from pulsarx._pycore.publish.memory_limit cimport MemoryLimit
from pulsarx._pycore.publish.open_batch cimport OpenBatch
from pulsarx._pycore.publish.producer_sequences cimport ProducerSequences

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept

cdef enum Tuning:
    HEADROOM = 1024            # for the metadata in front of a batch; a longer one makes it grow
    CAPACITY = 4096            # grows to what batches need
    # bytes that an entry may have above max_message_size, for its metadata; as in Pulsar
    ENTRY_PADDING = 10240
    DECOMPRESSED_SIZE_MAX = 134217728    # what every client decompresses


class MustWait(BaseException):
    """A send that its caller does not wait for has to wait; nothing of it is done. Raised with the
    mutex held, and met by producer_core."""

    def __init__(self, held=False, look_ms=0):
        """held: by a quota or the publish rate, which send_timeout_millis bounds. look_ms: when it
        may be otherwise in monotonic time, if that is known."""
        super().__init__(held, look_ms)
        self.held = held
        self.look_ms = look_ms


cdef class BatchDue:
    """See the pxd."""

    def __call__(self) -> None:
        cdef object found = <object>PyWeakref_GetObject(self.producer)
        if found is not None:
            (<Batcher>found).batch_due()


cdef class Batcher:
    """Encodes and batches for one producer. Any thread may call; the mutex orders them."""

    def __init__(self, EntryPublisher publisher not None, object options, str name not None,
                 str topic_name not None, ClockCore clock not None, object compress,
                 uint32_t message_size_max) -> None:
        """options: a ProducerOptions. name: unique on the topic while this producer lives. Called
        once more by a forked child, for a producer of its own: with nothing of the parent's."""
        self.timer = self.failure = self.sequences = self.fenced_by = self.fenced_as = None
        self.held_by = self.rate = self.held = self.encrypt = self.before_chunks = None
        self.keyed = self.schema_version = self.second = self.nested = None
        self.next_sequence_id = self.many_count = 0
        self.caller_waits = self.lifts_own_ids = False
        self.publisher = publisher
        self.topic_name = topic_name
        self.clock = clock
        self.chunked = ChunkedRate(clock)
        self.compress = compress
        self.schema = options.schema
        self.bytes_schema = options.schema_is_bytes
        self.name_utf8 = name.encode()
        self.batching = options.batching_enabled
        self.chunking = options.chunking_enabled
        self.open = self.new_batch()
        if self.batching and options.is_batching_by_key:
            self.keyed = KeyBatches(len(self.name_utf8))
        publisher.memory = options.memory_limit
        self.never_waits = options.for_letters
        self.queues_sends = options.queues_sends
        self.plain_sends = self.sends_plain()
        self.batch_messages_max = options.batching_max_messages
        # An entry is never larger than a message may be.
        self.batch_bytes_max = min(options.batching_max_allowed_size_in_bytes, message_size_max)
        self.batch_delay_ms = options.batching_max_publish_delay_ms
        self.message_size_max = message_size_max
        self.pending_max = options.max_pending_messages
        self.block_if_queue_full = options.block_if_queue_full
        self.compression = int(options.compression_type)
        self.publisher.published_sequence_id = -1
        self.own_ids_are_new = options.initial_sequence_id is None
        if options.initial_sequence_id is not None:
            self.next_sequence_id = options.initial_sequence_id + 1
            self.publisher.published_sequence_id = options.initial_sequence_id
        self.send_timeout_ms = options.send_timeout_millis
        self.batch_due_call = BatchDue.__new__(BatchDue)
        self.batch_due_call.producer = weakref.ref(self)
        self.state = PRODUCER_OPEN

    cdef OpenBatch new_batch(self):
        return OpenBatch(HEADROOM + len(self.name_utf8), CAPACITY)

    cdef bint sends_plain(self) noexcept:
        return (self.batching and self.bytes_schema and self.keyed is None
                and self.publisher.memory is None)

    def __dealloc__(self) -> None:
        PyMem_Free(self.scratch.views)

    cdef int send_nested(self) except -1:
        return 0

    # Batches --------------------------------------------------------------------------------------

    cdef int add(self, SingleMetadata* metadata, const uint8_t* payload,
                 object callback) except -1:
        cdef OpenBatch batch = self.open
        cdef int status
        if self.keyed is not None:
            if not self.keyed.fits(metadata, self.batch_bytes_max):
                self.close_open()
            batch = self.keyed.batch_of(metadata)
            if batch.batch.message_count and (
                    batch.entry != NULL or metadata.sequence_id <= batch.batch.last_sequence_id):
                self.close_open()
                batch = self.keyed.batch_of(metadata)
        elif batch.batch.message_count and (
                not self.fits(batch, metadata)
                or metadata.sequence_id <= batch.batch.last_sequence_id or batch.entry != NULL):
            self.close(batch, self.caller_waits)
        if batch.batch.message_count == 0:
            self.begin(batch)
        status = batch_encode_add(&batch.batch, metadata, payload)
        if status != STATUS_OK:
            raise_status(status, 0, f"add a message of {metadata.payload_size} bytes to the batch")
        if callback is not None:
            batch.add_callback(callback)
        if self.keyed is not None:
            self.keyed.added(metadata, batch)
            if self.sequences is not None:
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
        mutex_lock(&self.publisher.mutex)
        try:
            if sequences is not None and self.keyed is not None:
                self.close_for_ids()
            if catch_up is not None:
                catch_up()
            if self.open.batch.message_count:
                pushed = <int64_t>self.open.batch.last_sequence_id
            if sequences is not None:
                sequences.begin(pushed)
                if resume and self.own_ids_are_new:
                    self.next_sequence_id = <uint64_t>(sequences.stored + 1)
                    self.publisher.published_sequence_id = sequences.stored
            self.sequences = sequences
        finally:
            mutex_unlock(&self.publisher.mutex)

    cdef int close_for_ids(self) except -1:
        """Publish batches by key that do not know the ids of their messages. What fails is told as
        at their deadline."""
        try:
            self.close_open()
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
        self.lifts_own_ids = self.own_ids_are_new
        if self.lift_above(sequence_id):
            self.publisher.published_sequence_id = max(self.publisher.published_sequence_id,
                                                       sequence_id)
        mutex_unlock(&self.publisher.mutex)

    def lift_own_ids_above(self, int64_t sequence_id, bint begin=False) -> bool:
        """As resume_after, when messages were sent already: those that wait go out first. begin:
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
            return self.lift_above(sequence_id)
        finally:
            mutex_unlock(&self.publisher.mutex)

    cdef bint lift_above(self, int64_t sequence_id) noexcept:
        if not self.lifts_own_ids or sequence_id < <int64_t>self.next_sequence_id:
            return False
        self.next_sequence_id = <uint64_t>(sequence_id + 1)
        return True

    cdef void note_used(self, uint64_t sequence_id) noexcept:
        if self.lifts_own_ids and sequence_id >= self.next_sequence_id:
            self.next_sequence_id = sequence_id + 1

    cdef bint number_anew(self, MessageMetadata* metadata, bint own_id) noexcept:
        # Duplicates that are told here were told when the message was taken.
        if not own_id or self.sequences is not None or (
                metadata.sequence_id + 1 == self.next_sequence_id):
            return False
        metadata.sequence_id = self.next_sequence_id
        self.next_sequence_id += 1
        return True

    cdef int lift_own_ids(self) except -1:
        if self.own_ids_are_new and <int64_t>self.next_sequence_id <= self.sequences.pushed:
            self.next_sequence_id = <uint64_t>(self.sequences.pushed + 1)
        return 0

    cdef bint is_duplicate(self, uint64_t sequence_id) except -1:
        if <int64_t>sequence_id > self.sequences.pushed:
            self.sequences.pushed = <int64_t>sequence_id
            return False
        return self.was_pushed(<int64_t>sequence_id)

    cdef bint was_pushed(self, int64_t sequence_id) except -1:
        cdef ProducerSequences known = self.sequences
        if known.seen is None and sequence_id <= known.stored:
            return True
        # The first one is on its way, or was: this one is of the same outcome.
        self.close_open()
        known.fall_back()
        if sequence_id <= known.pushed:
            return known.is_stored(sequence_id)
        known.pushed = sequence_id
        return False

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
        if self.state != PRODUCER_OPEN and self.state != PRODUCER_HELD:
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
                self.close_open()
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
        if self.state != PRODUCER_OPEN and self.state != PRODUCER_HELD:
            return
        mutex_lock(&self.publisher.mutex)
        try:
            if self.nested is not None:
                self.send_nested()
            self.close_open()
        except errors.PulsarException as error:
            if not is_refusal(error, raised):
                raise
        finally:
            mutex_unlock(&self.publisher.mutex)

    cdef uint32_t open_count(self) noexcept:
        return self.open.batch.message_count + (
            self.keyed.message_count if self.keyed is not None else 0)

    cdef int close_open(self) except -1:
        cdef OpenBatch batch
        cdef bint told
        if self.keyed is None:
            return self.close(self.open, self.caller_waits)
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
                    self.close(batch, self.caller_waits and told)
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
        cdef MessageMetadata envelope
        cdef Receipt receipt
        cdef uint32_t count = batch.batch.message_count
        cdef uint64_t raised = signals_raised()
        if count == 0:
            return 0
        if self.keyed is not None:
            batch.batch.first_sequence_id = batch.batch.last_sequence_id
        receipt = batch.receipt if batch.receipt is not None else Receipt.__new__(Receipt)
        receipt.reserved = batch.reserved
        self.fill_envelope(&envelope, batch.publish_ms)
        self.entry_count += 1
        try:
            batch.encode(&envelope, self.compress, self.compression, self.encrypt)
            if batch.packed_size > self.message_size_max or (
                    batch.frame.entry_size > self.message_size_max + ENTRY_PADDING):
                self.refuse_size(batch.frame.entry_size)
            self.publisher.publish(&batch.frame, batch.entry, receipt, batch.callbacks, awaited)
        except BaseException as error:
            if not is_refusal(error, raised):
                raise
            callbacks = batch.callbacks
            self.publisher.release(receipt)
            batch.clear()
            if self.sequences is not None:
                self.sequences.failed = True
            self.give_up(callbacks, count, awaited, error)
            raise
        if self.sequences is not None:
            self.sequences.note_stored(<int64_t>batch.batch.last_sequence_id, batch.ids,
                                       batch.batch.more_follow, batch.publish_ms)
        if not self.publisher.places_later:
            self.publisher.published_sequence_id = <int64_t>batch.batch.last_sequence_id
        batch.clear()
        return 0

    cdef int publish_single(self, SingleMetadata* single, const uint8_t* payload,
                            int64_t deliver_at_ms, bytes replicate_to, object callback,
                            Receipt receipt, bint own_id) except -1:
        cdef MessageMetadata metadata
        cdef EntryFrame frame
        cdef uint8_t* entry
        cdef uint32_t entry_size
        cdef uint32_t size = single.payload_size
        cdef bytes packed
        cdef bytes fields
        cdef list callbacks = None if callback is None else [-1, callback]
        cdef uint64_t raised = signals_raised()
        cdef int status
        self.fill_envelope(&metadata, self.clock.now())
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
            if self.compression and size:
                packed = self.compress(self.compression, payload[:size])
                metadata.compression = self.compression
                metadata.uncompressed_size = size
                payload = <const uint8_t*>PyBytes_AS_STRING(packed)
                size = <uint32_t>PyBytes_GET_SIZE(packed)
            if self.chunking and not self.fits_entry(&metadata, size):
                self.publish_chunks(&metadata, payload, size, callbacks, receipt, own_id)
            else:
                if self.encrypt is not None:
                    fields, packed = self.encrypt(payload[:size])
                    set_encryption(&metadata, fields)
                    payload = <const uint8_t*>PyBytes_AS_STRING(packed)
                    size = <uint32_t>PyBytes_GET_SIZE(packed)
                status = batch_encode_single(&self.open.batch, &metadata, payload, size, &entry,
                                             &entry_size)
                if status != STATUS_OK:
                    raise_status(status, 0, f"encode a message of {single.payload_size} bytes")
                if size > self.message_size_max or (
                        entry_size > self.message_size_max + ENTRY_PADDING):
                    self.refuse_size(entry_size)
                fill_frame(&frame, &metadata, entry_size)
                self.note_used(metadata.sequence_id)
                self.publisher.publish(&frame, entry, receipt, callbacks, self.caller_waits)
            if not self.publisher.places_later:
                self.publisher.published_sequence_id = <int64_t>metadata.sequence_id
            if self.sequences is not None:
                self.sequences.note_stored(<int64_t>metadata.sequence_id, None, False,
                                           <int64_t>metadata.publish_time_ms)
        except BaseException as error:
            if receipt.reserved:
                self.publisher.release(receipt)
            if not isinstance(error, Exception):
                raise
            if self.sequences is not None:
                self.sequences.failed = True
            if is_refusal(error, raised):
                self.give_up(callbacks, 0, self.caller_waits, error)
            raise
        finally:
            batch_encode_clear(&self.open.batch)
        return 0

    # Messages in chunks ---------------------------------------------------------------------------

    cdef bint fits_entry(self, const MessageMetadata* metadata, uint32_t size) noexcept:
        return <uint64_t>size + message_metadata_size(metadata) <= self.message_size_max

    cdef int publish_chunks(self, MessageMetadata* metadata, const uint8_t* payload, uint32_t size,
                            list callbacks, Receipt receipt, bint own_id) except -1:
        cdef EntryFrame frame
        cdef PropertyScratch scratch
        cdef Receipt chunk
        cdef uint8_t* entry
        cdef uint32_t entry_size
        cdef uint32_t count
        cdef uint32_t number
        cdef uint32_t most
        cdef uint32_t metadata_size
        cdef uint32_t part
        cdef const uint8_t* piece
        cdef bytes sealed
        cdef bytes fields
        cdef int status
        cdef bytes uuid
        metadata.flags |= METADATA_UUID
        metadata.chunked_size = size
        while True:
            uuid = self.name_utf8 + f"-{metadata.sequence_id}".encode()
            metadata.uuid = <const uint8_t*>PyBytes_AS_STRING(uuid)
            metadata.uuid_size = <uint32_t>PyBytes_GET_SIZE(uuid)
            metadata.chunk_count = metadata.chunk_id = INT32_MAX     # the longest they may be
            metadata_size = message_metadata_size(metadata)
            if metadata_size >= self.message_size_max:
                raise errors.MessageTooBig(
                    detail=f"send {size} bytes in chunks to {self.topic_name}: key, properties and "
                    f"what else goes with each chunk take {metadata_size} bytes, and "
                    "max_message_size is "
                    f"{self.message_size_max}", size=size, max_size=self.message_size_max)
            most = self.message_size_max - metadata_size
            count = (size - 1) // most + 1
            # Other threads send while this one waits: its properties are not theirs to overwrite.
            scratch = self.scratch
            memset(&self.scratch, 0, sizeof(self.scratch))
            try:
                self.make_room_for(count)
            finally:
                PyMem_Free(self.scratch.views)
                self.scratch = scratch
            if not self.number_anew(metadata, own_id):
                break
        self.note_used(metadata.sequence_id)
        if self.before_chunks is not None:
            control_plane.perform_whole(self.before_chunks, ())
            self.before_chunks = None
        metadata.chunk_count = count
        try:
            for number in range(count):
                metadata.chunk_id = number
                part = min(most, size - number * most)
                piece = payload + <size_t>number * most
                if self.encrypt is not None:
                    fields, sealed = self.encrypt(piece[:part])
                    set_encryption(metadata, fields)
                    piece = <const uint8_t*>PyBytes_AS_STRING(sealed)
                    part = <uint32_t>PyBytes_GET_SIZE(sealed)
                with nogil:
                    status = batch_encode_single(&self.open.batch, metadata, piece, part, &entry,
                                                 &entry_size)
                if status != STATUS_OK:
                    raise_status(status, 0, f"encode a chunk of {part} bytes")
                if entry_size > self.message_size_max + ENTRY_PADDING:
                    self.refuse_size(entry_size)
                fill_frame(&frame, metadata, entry_size)
                if number + 1 < count:
                    chunk = Receipt.__new__(Receipt)
                    self.publisher.publish(&frame, entry, chunk, None, True)
                    if number == 0:
                        receipt.first_chunk = chunk
                        callbacks = with_first_chunk(callbacks, chunk)
                else:
                    self.publisher.publish(&frame, entry, receipt, callbacks, self.caller_waits)
        except BaseException:
            # Chunks in front of the one that failed stay; their readers give them up.
            receipt.message_count = 0
            self.publisher.nobody_waits()
            raise
        self.chunked.count()
        return 0

    def chunked_message_rate(self) -> float:
        """Messages in chunks that it published, a second, over the last minute."""
        return self.chunked.per_second()

    def say_before_chunks(self, object call not None) -> None:
        """Have it called once, before the first chunk is stored."""
        self.before_chunks = call

    cdef int make_room_for(self, uint32_t message_count) except -1:
        cdef bint awaited = self.caller_waits
        if self.pending_max == 0:
            return 0
        if message_count <= self.pending_max:
            self.publisher.settle()
            while self.publisher.pending_count + message_count > self.pending_max:
                if not self.block_if_queue_full:
                    break
                if self.queues_sends:
                    return 0                 # room_for_chunks has looked, before it was begun
                # Another thread may use this producer meanwhile, or close it.
                self.caller_waits = False
                try:
                    self.publisher.wait_for_oldest()
                finally:
                    self.caller_waits = awaited
                self.check_open()
            else:
                return 0
        raise errors.ProducerQueueIsFull(
            detail=f"a message of {message_count} chunks takes as many of max_pending_messages, "
            f"which is {self.pending_max}, and {self.publisher.pending_count} messages of "
            f"{self.name_utf8.decode()} are not durable yet; wait, set block_if_queue_full, or "
            f"raise max_pending_messages above the number of chunks")

    cdef int give_up(self, list callbacks, uint32_t message_count, bint awaited,
                     object error) except -1:
        """The entry will not be published: tell its callbacks, and the next flush when there are
        messages without a callback. The send that closed the batch gets the error itself."""
        cdef uint32_t told = callback_count(callbacks) + (1 if awaited else 0)
        if callbacks:
            self.publisher.completions.post(callbacks, 0, 0, 0, error, self.publisher.partition)
        if message_count > told:
            self.failure = error
        return 0

    cdef void fill_envelope(self, MessageMetadata* envelope, int64_t publish_ms) noexcept:
        memset(envelope, 0, sizeof(MessageMetadata))
        envelope.message_count = 1
        envelope.publish_time_ms = <uint64_t>publish_ms
        envelope.producer_name = <const uint8_t*>PyBytes_AS_STRING(self.name_utf8)
        envelope.producer_name_size = <uint32_t>PyBytes_GET_SIZE(self.name_utf8)
        if self.schema_version is not None:
            envelope.flags = METADATA_SCHEMA_VERSION
            envelope.schema_version = <const uint8_t*>PyBytes_AS_STRING(self.schema_version)
            envelope.schema_version_size = <uint32_t>PyBytes_GET_SIZE(self.schema_version)

    def encrypt_by(self, object encrypt not None) -> None:
        """Encrypt what is sent from now on; called before anything is. encrypt: bytes -> (fields of
        the metadata, bytes); what it raises is what the send fails with."""
        self.encrypt = encrypt

    def encode_by(self, object schema not None, bint is_bytes, bytes version) -> None:
        """Encode what is sent from now on by a schema of this version on the topic, None for none.
        is_bytes: contents that are bytes go through as they are.
        The open batch goes out first where the version is another; what it fails with is raised,
        and nothing changes."""
        mutex_lock(&self.publisher.mutex)
        try:
            if self.state != PRODUCER_HELD:
                self.check_open()
            if version != self.schema_version:
                self.close_open()
            self.schema = schema
            self.schema_version = version
            self.bytes_schema = is_bytes
            self.plain_sends = self.sends_plain()
        finally:
            mutex_unlock(&self.publisher.mutex)

    # Bounds ---------------------------------------------------------------------------------------

    cdef inline bint is_crowded(self) noexcept:
        """Whether max_pending_messages are on their way."""
        cdef uint64_t count = self.open.batch.message_count + self.publisher.pending_count
        if self.keyed is not None:
            count += self.keyed.message_count
        return self.pending_max != 0 and count >= self.pending_max and self.many_count == 0

    cdef int make_room(self) except -1:
        """Too many messages are on their way: send the open batch, then wait or refuse."""
        cdef bint awaited = self.caller_waits
        while True:
            self.close_open()
            self.publisher.settle()
            if self.publisher.pending_count < self.pending_max:
                return 0
            if not self.block_if_queue_full:
                raise errors.ProducerQueueIsFull(
                    detail=f"{self.publisher.pending_count} messages of {self.name_utf8.decode()} "
                    f"are not durable yet and "
                    f"max_pending_messages is {self.pending_max}; wait, or set block_if_queue_full")
            if self.queues_sends:
                self.publisher.room_wanted = self.resume_call
                raise MustWait()
            # Another thread may use this producer meanwhile.
            self.caller_waits = False
            try:
                self.publisher.wait_for_oldest()
            finally:
                self.caller_waits = awaited
            self.check_open()

    cdef int wait_for_memory(self) except -1:
        cdef MemoryLimit memory = self.publisher.memory
        cdef bint awaited = self.caller_waits
        while memory.is_full():
            self.close_open()
            self.publisher.settle()
            if not memory.is_full():
                break
            if not self.block_if_queue_full:
                raise errors.MemoryBufferIsFull(
                    detail=f"{memory.used} bytes of messages of this client are not confirmed yet "
                    f"and memory_limit_bytes is {memory.limit}; wait, or set block_if_queue_full")
            if self.queues_sends:
                memory.want(self.resume_call)
                raise MustWait()
            # Another thread may use this producer meanwhile.
            self.caller_waits = False
            try:
                if self.publisher.pending_count:
                    self.publisher.wait_for_oldest()
                else:
                    mutex_unlock(&self.publisher.mutex)
                    try:
                        self.publisher.completions.wait_for_memory(memory)
                    finally:
                        mutex_lock(&self.publisher.mutex)
            finally:
                self.caller_waits = awaited
            self.check_open()
        return 0

    cdef int check_size(self, Py_ssize_t size) except -1:
        if size <= self.message_size_max:
            return 0
        if self.compression:
            if size > DECOMPRESSED_SIZE_MAX:
                raise errors.MessageTooBig(
                    detail=f"send {size} bytes to {self.topic_name}: consumers decompress "
                    f"{DECOMPRESSED_SIZE_MAX} bytes at most",
                    size=size, max_size=DECOMPRESSED_SIZE_MAX)
            return 0
        if not self.chunking:
            self.refuse_size(size)
        if size > INT32_MAX:
            raise errors.MessageTooBig(
                detail=f"send {size} bytes to {self.topic_name}: a message in chunks is at most "
                f"{INT32_MAX} bytes long", size=size, max_size=INT32_MAX)
        return 0

    cdef int refuse_size(self, Py_ssize_t size) except -1:
        raise errors.MessageTooBig(
            detail=f"send {size} bytes to {self.topic_name}: max_message_size is "
            f"{self.message_size_max}",
            size=size, max_size=self.message_size_max)

    def limit_pending(self, uint32_t message_count) -> None:
        """Change max_pending_messages: the share of one partition shrinks when its topic grows."""
        mutex_lock(&self.publisher.mutex)
        self.pending_max = message_count
        mutex_unlock(&self.publisher.mutex)

    # Life -----------------------------------------------------------------------------------------

    cdef int check_open(self) except -1:
        cdef int64_t timeout_ms = 0
        cdef int64_t look_ms = 0
        while self.state == PRODUCER_HELD and self.many_count == 0 and (
                self.publisher.fenced is None):
            if self.held_by is not None:
                if self.queues_sends:
                    raise MustWait(True)
                if not self.may_wait():
                    raise errors.ProducerBlockedQuotaExceededError(detail=self.held_by)
                look_ms = 0
            else:
                look_ms = self.rate.waits_until()
                if look_ms and self.queues_sends:
                    raise MustWait(True, look_ms)
                if look_ms == 0 or self.never_waits or not self.may_wait():
                    break                    # it is counted all the same
                self.rate.limited_times += 1
            if timeout_ms == 0 and self.send_timeout_ms > 0:
                timeout_ms = self.clock.monotonic() + self.send_timeout_ms
            self.wait_while_held(look_ms, timeout_ms)
        if self.state == PRODUCER_OPEN or self.state == PRODUCER_HELD:
            return self.publisher.check_fenced()
        if self.state == PRODUCER_FORKED:
            raise errors.forked_error(self.owner_pid)
        if self.state == PRODUCER_FENCED:
            raise self.fenced_as(detail=self.fenced_by)
        raise errors.AlreadyClosed(
            detail=f"producer {self.name_utf8.decode()} on {self.topic_name}")

    cdef bint may_wait(self) except -1:
        return True

    cdef int wait_while_held(self, int64_t look_ms, int64_t timeout_ms) except -1:
        cdef bint awaited = self.caller_waits
        cdef Latch room = Latch()
        cdef Timer look = None
        cdef Timer timeout = None
        if self.held is None:
            self.held = []
        self.held.append(room)
        # What was taken goes on its way without the caller, who has sent nothing yet.
        self.caller_waits = False
        mutex_unlock(&self.publisher.mutex)
        try:
            if look_ms:
                look = self.clock.arm_monotonic(look_ms, room.set)
            if timeout_ms:
                timeout = self.clock.arm_monotonic(timeout_ms, room.set)
            room.wait()
        finally:
            if look is not None:
                look.cancel()
            if timeout is not None:
                timeout.cancel()
            mutex_lock(&self.publisher.mutex)
            self.caller_waits = awaited
            if room in self.held:
                self.held.remove(room)
        if self.state != PRODUCER_HELD or not timeout_ms or self.clock.monotonic() < timeout_ms:
            return 0
        error = self.held_too_long()
        if error is not None:
            raise error
        return 0

    cdef object held_too_long(self):
        if self.held_by is not None:
            return errors.Timeout(
                detail=f"{self.held_by}; no room for {self.send_timeout_ms} ms, which "
                                  f"is send_timeout_millis; nothing was stored")
        if self.rate is not None and self.rate.waits_until():
            return errors.Timeout(
                detail=f"send to {self.topic_name}: the publish rate of the topic was used up for "
                f"{self.send_timeout_ms} ms, which is send_timeout_millis; nothing was stored")
        return None

    cdef int wait_between(self) except -1:
        cdef uint32_t many = self.many_count
        if self.state != PRODUCER_HELD or self.rate is None or self.rate.waits_until() == 0:
            return 0
        self.publisher.nobody_waits()        # for what went out before
        self.many_count = 0
        try:
            self.check_open()
        finally:
            self.many_count += many
        return self.close_open()

    def hold(self, str reason not None) -> None:
        """Let senders wait from now on, until `release`, or send_timeout_millis are over. What was
        sent before goes out."""
        mutex_lock(&self.publisher.mutex)
        self.held_by = reason
        self.change_hold()
        mutex_unlock(&self.publisher.mutex)

    def release(self) -> None:
        """There is room again."""
        mutex_lock(&self.publisher.mutex)
        self.held_by = None
        self.change_hold()
        mutex_unlock(&self.publisher.mutex)
        self.wake_held()

    def limit_rate(self, RateLimit rate, PublishMeter meter) -> None:
        """Let senders wait while this limit is used up; None: never. meter: told what is published,
        or None. Those that wait look again."""
        self.publisher.count(rate, meter)
        mutex_lock(&self.publisher.mutex)
        self.rate = rate
        self.change_hold()
        mutex_unlock(&self.publisher.mutex)
        self.wake_held()

    cdef int change_hold(self) except -1:
        if self.state == PRODUCER_OPEN or self.state == PRODUCER_HELD:
            self.state = PRODUCER_HELD
            if self.held_by is None and self.rate is None:
                self.state = PRODUCER_OPEN
        return 0

    def wake_held(self) -> None:
        """Those that wait look again."""
        for room in list(self.held or ()):
            room.set()
        if self.resume_call is not None:
            self.resume_call()

    cdef int refuse_queued(self, object error) except -1:
        return 0

    cdef int wait_for_queued(self) except -1:
        return 0

    cdef int room_for_chunks(self, uint32_t size) except -1:
        """MustWait: not now, of a message that may go in chunks of half an entry at least."""
        cdef uint64_t count = size // max(self.message_size_max // 2, 1) + 1
        if self.pending_max == 0 or not self.block_if_queue_full:
            return 0
        self.publisher.settle()
        if self.publisher.pending_count and (
                self.publisher.pending_count + count > self.pending_max):
            self.publisher.room_wanted = self.resume_call
            raise MustWait()
        return 0

    def limit_delay(self, int64_t delay_max_ms) -> None:
        """Refuse messages that are delayed for longer; 0: none."""
        self.deliver_delay_max_ms = delay_max_ms

    cdef int check_delay(self, int64_t deliver_at_ms) except -1:
        cdef int64_t now_ms = self.clock.now()
        if deliver_at_ms > now_ms and deliver_at_ms - now_ms > self.deliver_delay_max_ms:
            raise errors.NotAllowedError(
                detail=f"send to {self.topic_name} for {deliver_at_ms - now_ms} ms from now: the "
                f"longest delay of a message is {self.deliver_delay_max_ms} ms there")
        return 0

    def flush(self) -> None:
        """Send the open batch and return when everything sent is as durable as the client was
        opened for.

        The callbacks of it have run then too. Raises what an earlier batch without callbacks failed
        with.
        """
        if self.state != PRODUCER_HELD:
            self.check_open()
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
            self.caller_waits = True
            self.close_open()
        except BaseException as error:
            if at_last and isinstance(error, Exception):
                self.give_up_open(error, True)
            self.publisher.nobody_waits()
            if not isinstance(error, Exception) or signals_raised() != raised:
                raise
            refused = error
        finally:
            self.caller_waits = False
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
        if self.state == PRODUCER_OPEN or self.state == PRODUCER_HELD:
            self.fenced_by = reason
            self.fenced_as = kind
            self.state = PRODUCER_FENCED     # first: a call that waits for the mutex is refused
        self.publisher.fence(reason, kind)
        self.wake_held()
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
            was_fenced = self.state == PRODUCER_FENCED or (
                self.publisher.fenced is not None
                and (self.state == PRODUCER_OPEN or self.state == PRODUCER_HELD))
            if not was_fenced and self.state != PRODUCER_HELD:
                self.check_open()
                if self.nested is not None:
                    self.send_nested()       # it came before
            # First: what another thread sends from now on is refused, not forgotten.
            self.state = PRODUCER_CLOSED
        finally:
            mutex_unlock(&self.publisher.mutex)
        self.publisher.begin_leaving()
        self.wake_held()
        self.refuse_queued(errors.AlreadyClosed(
            detail=f"producer {self.name_utf8.decode()} on {self.topic_name}"))
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
        if self.state != PRODUCER_FORKED:    # else by the child of a child
            self.owner_pid = errors.parent_pid()
        self.state = PRODUCER_FORKED
        self.plain_sends = False
        if self.publisher.mutex.owner != PyThread_get_thread_ident():
            mutex_init(&self.publisher.mutex)    # a thread that is not there may have had it
        self.publisher.abandon()

    def require_open(self) -> None:
        """AlreadyClosed (ForkedError in a forked child) unless it is open."""
        if self.state != PRODUCER_HELD:
            self.check_open()

    @property
    def is_forked(self) -> bool:
        return self.state == PRODUCER_FORKED

    @property
    def is_open(self) -> bool:
        return (self.state == PRODUCER_OPEN or self.state == PRODUCER_HELD) and (
            self.publisher.fenced is None)

    def last_sequence_id(self) -> int:
        """Sequence id of the last message that was published, -1 before the first."""
        return self.publisher.published_sequence_id


cdef class ChunkedCallback:
    """The callback of a message in chunks: its id is to hold that of the first one."""
    cdef object callback
    cdef Receipt first

    def __call__(self, result, MessageId message_id) -> None:
        if message_id is not None:
            message_id = message_id_chunked(
                message_id.c_ledger_id, message_id.c_entry_id, message_id.c_partition,
                <int64_t>self.first.ledger_id, <int64_t>self.first.entry_id)
        self.callback(result, message_id)


cdef class ChunkedSend(SendTold):
    """As ChunkedCallback, of one that only takes note."""
    cdef SendTold send
    cdef Receipt first

    cdef int told(self, object message_id, object error) except -1:
        if message_id is not None:
            message_id = message_id_chunked(
                (<MessageId>message_id).c_ledger_id, (<MessageId>message_id).c_entry_id,
                (<MessageId>message_id).c_partition, <int64_t>self.first.ledger_id,
                <int64_t>self.first.entry_id)
        return self.send.told(message_id, error)


cdef list with_first_chunk(list callbacks, Receipt first):
    cdef ChunkedCallback wrapped
    cdef ChunkedSend noted
    cdef list found = []
    cdef Py_ssize_t at
    if callbacks is None:
        return None
    for at in range(0, len(callbacks), 2):
        callback = callbacks[at + 1]
        if isinstance(callback, SendTold):
            noted = ChunkedSend.__new__(ChunkedSend)
            noted.send = callback
            noted.first = first
            found += (callbacks[at], noted)
            continue
        wrapped = ChunkedCallback.__new__(ChunkedCallback)
        wrapped.callback = callback
        wrapped.first = first
        found += (callbacks[at], wrapped)
    return found


cdef inline void set_encryption(MessageMetadata* metadata, bytes fields) noexcept:
    """The fields are to be kept until the metadata is encoded."""
    metadata.flags |= METADATA_ENCRYPTED
    metadata.encryption = <const uint8_t*>PyBytes_AS_STRING(fields)
    metadata.encryption_size = <uint32_t>PyBytes_GET_SIZE(fields)


cdef void fill_frame(EntryFrame* frame, const MessageMetadata* metadata,
                     uint32_t entry_size) noexcept:
    """What the frame of an entry of one message, or of a chunk, says."""
    memset(frame, 0, sizeof(EntryFrame))
    frame.entry_size = entry_size
    frame.message_count = 1
    frame.publish_time_ms = <int64_t>metadata.publish_time_ms
    frame.deliver_at_ms = metadata.deliver_at_ms
    frame.flags = (ENTRY_COMPRESSED if metadata.compression else 0) | (
        ENTRY_CHUNK if metadata.flags & METADATA_UUID else 0)
    frame.sticky_hash = sticky_key_of_entry(metadata)


cdef bint is_refusal(object error, uint64_t raised):
    """Whether an entry will never be published. An interrupt says nothing about the entry, nor does
    what a codec raises, which may be out of memory. raised: signals_raised before it was tried."""
    return isinstance(error, errors.PulsarException) and signals_raised() == raised
