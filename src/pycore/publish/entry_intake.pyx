# cython: language_level=3
"""Publishes the entries of a producer at the other end of a connection: checked, and unchanged."""

from functools import partial

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pulsarx import errors
from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.batch_encode cimport batch_encode_single
from pulsarx._core.byte_reader cimport ByteReader, byte_reader_start
from pulsarx._core.entry_frame cimport (
    ENTRY_BATCH, ENTRY_CHUNK, ENTRY_MIXED_KEYS, EntryFrame, entry_frame_span,
)
from pulsarx._core.limits cimport ENTRY_FRAME_SIZE, ENTRY_MESSAGE_SIZE_MIN
from pulsarx._core.message_metadata cimport (
    EntryParts, MessageMetadata, message_metadata_transaction, replicate_to_next,
)
from pulsarx._core.single_metadata cimport (
    METADATA_ENCRYPTED, METADATA_HIGHEST_SEQUENCE, METADATA_ORDERING_KEY,
    METADATA_PARTITION_KEY, METADATA_REPLICATE_TO, SingleMetadata, single_metadata_decode,
)
from pulsarx._core.status cimport STATUS_END, STATUS_OK
from pulsarx._core.sticky_key cimport STICKY_NON_KEY, sticky_key_of_encoded
from pulsarx._pycore.ground.clock_core cimport ClockCore
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.ground.rate_limit cimport PublishMeter, RateLimit
from pulsarx._pycore.ledger.open_transactions cimport TransactionCore
from pulsarx._pycore.message.entry_bytes cimport entry_bytes_check
from pulsarx._pycore.publish.chunked_rate cimport ChunkedRate
from pulsarx._pycore.publish.entry_answers cimport EntryAnswer, EntryAnswers
from pulsarx._pycore.publish.entry_group cimport (
    GROUPED_SIZE_MAX, EntryGroup, group_give_back, group_take,
)
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher, LedgerPublisher, Receipt
from pulsarx._pycore.publish.open_batch cimport OpenBatch
from pulsarx._pycore.publish.producer_sequences cimport ProducerSequences, is_of_many
from pulsarx._pycore.publish.transaction_stamp import stamped

cdef enum:
    HEADROOM = 1024              # of a batch that is written anew; it grows
    ROOM_BEHIND = 8              # bytes a publisher may overwrite behind an entry
    TAG_SIZE = 16                # of an encrypted payload
    # bytes that a compressed byte stands for at most
    LZ4_RATIO = 255              # one of a length
    ZLIB_RATIO = 1032            # 258 bytes take two bits
    ZSTD_RATIO = 16384           # a block of 128 KiB takes 8 where not all its bytes are the same
    SNAPPY_RATIO = 22            # 64 bytes take three


cdef uint64_t messages_held_at_most(const EntryParts* parts) noexcept:
    """How many messages an encrypted batch may hold, by its size and how it is compressed."""
    cdef uint64_t size = parts.payload_size - min(parts.payload_size, <uint32_t>TAG_SIZE)
    if parts.metadata.compression == 1:
        size *= LZ4_RATIO
    elif parts.metadata.compression == 2:
        size *= ZLIB_RATIO
    elif parts.metadata.compression == 4:
        size *= SNAPPY_RATIO
    elif parts.metadata.compression:
        size *= ZSTD_RATIO
    return size // ENTRY_MESSAGE_SIZE_MIN


cdef bytes replicate_to_of(const EntryParts* parts):
    """Return the clusters to which the producer wants the entry replicated, as its metadata has
    them."""
    cdef ByteReader reader
    cdef const uint8_t* field = NULL
    cdef uint32_t size = 0
    cdef list fields = []
    byte_reader_start(&reader, parts.encoded_metadata, parts.encoded_metadata_size)
    while replicate_to_next(&reader, &field, &size) == STATUS_OK:
        fields.append(field[:size])
    return b"".join(fields)


cdef int64_t last_sequence_id(const EntryParts* parts, const BatchMessage* last) noexcept:
    """Return the last sequence id of a batch; the ids of its messages are read only where its
    metadata do not say it."""
    cdef SingleMetadata metadata
    cdef uint64_t highest = max(parts.metadata.sequence_id, parts.metadata.highest_sequence_id)
    if parts.metadata.highest_sequence_id == 0 and single_metadata_decode(
            last.encoded_metadata, last.encoded_metadata_size, &metadata) == STATUS_OK:
        highest = max(highest, metadata.sequence_id)
    return <int64_t>highest


cdef class EntryIntake(EntryAnswers):
    """Publishes entries of one producer. Any thread may call; the publisher's mutex orders them.

    What answers is a producer at the other end of a connection: a subclass in Python, which has
    `take` for what waits, and `refuse`."""

    cdef public bint is_open             # what comes is published, and answered
    cdef public bint is_gated            # what comes is for `take`: something waits
    cdef bint answers_at_once            # what is stored is confirmed
    cdef uint64_t sequence_id            # of the SEND that is taken
    cdef EntryAnswer answer              # to it; None: it has none yet
    cdef EntryGroup group                # of SENDs that are taken and not stored yet, or None
    cdef int64_t group_last_id           # of its last message
    cdef readonly EntryPublisher publisher
    cdef object decompress
    cdef object compress
    cdef ProducerSequences sequences     # None: all is stored
    cdef object before_chunks            # called before the first chunk is stored; None: it was
    cdef ChunkedRate chunked             # of chunks; None: nobody asks for it
    cdef bint is_chunk                   # the entry that came last is one
    cdef bint is_part                    # and not the last one of its message
    cdef tuple broken                    # uuid of a message with a refused chunk, and why; or None
    cdef bint is_shut                    # nothing is published any more; the publisher's mutex
    cdef int64_t last_id                 # of the last message of the entry that came last
    cdef list ids                        # of all its messages; None: no duplicates are told
    cdef bint more_follow                # entries that belong to it, as batch_encode marks them
    cdef bytes plain                     # its payload
    cdef OpenBatch rewritten             # without duplicates; made with the first
    cdef uint32_t entry_size_max
    cdef uint32_t decompressed_size_max
    cdef int64_t deliver_delay_max_ms    # of a message that is delayed; 0: no limit

    def __init__(self, EntryPublisher publisher not None, decompress, compress,
                 uint32_t entry_size_max, uint32_t decompressed_size_max,
                 before_chunks=None, ClockCore clock=None) -> None:
        """decompress: (kind, data, uncompressed size, limit) -> bytes. compress: (kind, bytes) ->
        bytes. before_chunks: called before the first chunk of a message is stored. clock: for
        statistics, None: for none."""
        self.chunked = None if clock is None else ChunkedRate(clock)
        self.before_chunks = before_chunks
        self.compress = compress
        self.publisher = publisher
        publisher.published_sequence_id = -1
        self.decompress = decompress
        self.entry_size_max = entry_size_max
        self.decompressed_size_max = decompressed_size_max
        self.is_open = True
        self.answers_at_once = (
            type(publisher) is LedgerPublisher and not publisher.confirms_later)

    # Over a connection ----------------------------------------------------------------------------

    cdef int take_send(self, uint64_t sequence_id, const uint8_t* entry, size_t size) except -1:
        cdef RateLimit limit = self.publisher.limit
        if self.is_gated or not self.is_open or limit is not None:
            self.store_group()
            if self.is_gated or not self.is_open or (limit is not None and limit.waits_until()):
                (<object>self).take(sequence_id, PyBytes_FromStringAndSize(
                    <const char*>entry, <Py_ssize_t>size))
                return 0
        elif size <= GROUPED_SIZE_MAX and self.group_send(sequence_id, entry, <uint32_t>size):
            return 0
        else:
            self.store_group()
        return self.take_one(sequence_id, entry, size)

    cdef int take_one(self, uint64_t sequence_id, const uint8_t* entry, size_t size) except -1:
        self.sequence_id = sequence_id
        self.answer = None
        self.publisher.expects_later = True
        try:
            self.publish_bytes(entry, size, None, None)
        except Exception as error:
            answer = self.answer_to(size)
            (<object>self).refuse(answer, error)
        finally:
            self.publisher.expects_later = False
            self.answer = None
        return 0

    cdef bint group_send(self, uint64_t sequence_id, const uint8_t* entry,
                         uint32_t size) except -1:
        """Keep an entry, which is stored together with those behind it. False: it is for take_one,
        which says what is wrong with it, if anything is."""
        cdef EntryFrame frame
        cdef EntryParts parts
        if self.sequences is not None or self.publisher.checks or size > self.entry_size_max or (
                type(self.publisher) is not LedgerPublisher):
            return False
        try:
            entry_bytes_check(entry, size, &frame, &parts)
            if frame.flags & ENTRY_CHUNK or self.is_delayed_too_long(&frame):
                return False
            if frame.flags & ENTRY_BATCH:
                self.check_batch(&frame, &parts)
            else:
                self.last_id = <int64_t>parts.metadata.sequence_id
        except Exception:
            return False
        if self.group is not None and not self.group.has_room(size):
            self.store_group()
        if self.group is None:
            self.group = group_take()
        self.is_chunk = self.is_part = False
        self.group.add(&frame, sequence_id, entry)
        self.group_last_id = self.last_id
        return True

    cdef int store_group(self) except -1:
        """Store what group_send has kept."""
        cdef EntryGroup group = self.group
        cdef uint32_t number
        cdef uint64_t at = 0
        cdef bint is_done = False
        if group is None:
            return 0
        self.group = None
        failure = None
        self.publisher.expects_later = True
        try:
            mutex_lock(&self.publisher.mutex)
            try:
                # Not where its producer was told that it is shut.
                is_done = self.is_shut or (
                    self.sequences is None and self.publish_group(group))
            except Exception as error:
                is_done = group.is_stored
                failure = error
            finally:
                mutex_unlock(&self.publisher.mutex)
            if is_done and failure is not None:
                for number in range(group.answered, group.count):
                    (<object>self).refuse(
                        self.expected(group.sequence_ids[number],
                                              group.frames[number].entry_size), failure)
            elif not is_done:
                # What is wrong is found out, and said, of each.
                for number in range(group.count):
                    self.take_one(group.sequence_ids[number], group.entry_at(at),
                                  group.frames[number].entry_size)
                    at += entry_frame_span(group.frames[number].entry_size)
        finally:
            self.publisher.expects_later = False
            group_give_back(group)
        return 0

    cdef bint publish_group(self, EntryGroup group) except -1:
        """False: it is to be published one by one. Mutex held."""
        cdef LedgerPublisher publisher = self.publisher
        cdef list pending = None
        cdef EntryAnswer answer
        cdef uint32_t number
        cdef uint32_t expected = 0       # answers, that are in flight
        if not self.answers_at_once:
            pending = []
        try:
            if pending is not None:
                for number in range(group.count):    # first: what is stored must be answered
                    answer = self.expected(group.sequence_ids[number],
                                                   group.frames[number].entry_size)
                    expected += 1
                    pending.append((Receipt.__new__(Receipt), [0, answer]))
            publisher.publish_group(group, pending)
        finally:
            for number in range(group.answered, expected):
                self.land(group.frames[number].entry_size)   # it gets another one
        if not group.is_stored:
            return False
        publisher.published_sequence_id = self.group_last_id
        if pending is None:
            for number in range(group.count):
                self.sequence_id = group.sequence_ids[number]
                self.answer = None
                self.confirm(group.ledger_id, group.frames[number].entry_id,
                             group.frames[number].entry_size)
                group.answered += 1
            self.answer = None
        return True

    cdef bint is_delayed_too_long(self, const EntryFrame* frame) noexcept:
        return self.deliver_delay_max_ms and frame.deliver_at_ms > frame.publish_time_ms and (
            frame.deliver_at_ms - frame.publish_time_ms > self.deliver_delay_max_ms)

    cdef int sends_taken(self, bint is_alone) except -1:
        self.store_group()
        # Another thread would be woken for it. More than one are likely to be followed by others,
        # which are read while that flushes.
        if is_alone:
            self.publisher.flush_soon(True)
        else:
            self.publisher.flush_soon(False)
        return 0

    cdef EntryAnswer answer_to(self, size_t size):
        """The answer to the SEND that is taken."""
        if self.answer is None:
            self.answer = self.expected(self.sequence_id, <int64_t>size)
        return self.answer

    cdef int confirm(self, uint64_t ledger_id, uint64_t entry_id, size_t size) except -1:
        """Answer what is stored. The publisher's mutex held."""
        try:
            self.write_receipt(self.sequence_id, <int64_t>ledger_id, <int64_t>entry_id,
                               self.publisher.partition)
        except MemoryError:
            self.publisher.completions.post([-1, self.answer_to(size)], ledger_id, entry_id, 1,
                                            None, self.publisher.partition)
        return 0

    # In either way --------------------------------------------------------------------------------

    def publish(self, bytes entry not None, callback, TransactionCore transaction=None) -> None:
        """Publish one entry as it is; callback(result, message id) once it is confirmed or failed,
        or what an EntryAnswer says. Where some of its messages were left out as duplicates, kept=
        gives the places of the others. transaction: that it is of; None: of none.

        MessageTooBig; CorruptDataError (its checksum, its metadata, or its batch does not hold):
        nothing was published, the callback is not called. Else as send, also InvalidTxnStatusError.
        """
        self.publish_bytes(<const uint8_t*>PyBytes_AS_STRING(entry),
                           <size_t>PyBytes_GET_SIZE(entry), callback, transaction)

    cdef int publish_bytes(self, const uint8_t* entry, size_t size, callback,
                           TransactionCore transaction) except -1:
        """callback None: what is to be told is the answer to the SEND that is taken."""
        cdef EntryFrame frame
        cdef EntryParts parts
        if size > self.entry_size_max:
            raise errors.MessageTooBig(
                detail=f"an entry of {size} bytes came over a connection; at most "
                f"{self.entry_size_max} are taken", size=size, max_size=self.entry_size_max)
        entry_bytes_check(entry, <uint32_t>size, &frame, &parts)
        self.is_chunk = self.is_part = False
        if frame.flags & ENTRY_CHUNK:
            self.is_chunk = True
            self.is_part = parts.metadata.chunk_id + 1 < parts.metadata.chunk_count
            self.check_chunk(&parts)
        try:
            self.publish_checked(entry, &frame, &parts, callback, transaction)
        except Exception as error:
            if self.is_part:
                self.broken = (parts.metadata.uuid[:parts.metadata.uuid_size],
                               errors.again(error))
            raise
        return 0

    cdef int publish_checked(self, const uint8_t* entry, EntryFrame* frame, EntryParts* parts,
                             callback, TransactionCore transaction) except -1:
        if self.is_delayed_too_long(frame):
            raise errors.NotAllowedError(
                detail=f"an entry came over a connection that is to be delivered "
                f"{frame.deliver_at_ms - frame.publish_time_ms} ms after it was published; at most "
                f"{self.deliver_delay_max_ms} ms are allowed on its topic")
        if self.is_chunk and self.before_chunks is not None:
            control_plane.perform_whole(self.before_chunks, ())
            self.before_chunks = None
        # From here on deduplication is neither turned on nor off.
        mutex_lock(&self.publisher.mutex)
        try:
            if self.is_shut:
                return 0                 # its producer is told that
            if frame.flags & ENTRY_BATCH:
                self.check_batch(frame, parts)
            else:
                self.last_id = <int64_t>parts.metadata.sequence_id
                self.ids = None if self.sequences is None else [self.last_id]
                self.more_follow = parts.metadata.highest_sequence_id != 0
            if transaction is not None:
                self.publisher.join(transaction)
                transaction.entered(self, self.publisher.published_sequence_id)
            if self.sequences is not None:
                self.publish_new(entry, frame, parts, callback)
            else:
                self.publish_entry(entry, frame, callback)
        finally:
            if transaction is not None and self.publisher.transaction is transaction:
                self.publisher.join(None)
                transaction.left(self, self.publisher.published_sequence_id)
            mutex_unlock(&self.publisher.mutex)
        return 0

    cdef int check_chunk(self, const EntryParts* parts) except -1:
        """A chunk goes the way of those in front of it: without them it is no message, and would be
        taken for one that is stored."""
        if self.broken is None:
            return 0
        if parts.metadata.chunk_id > 0 and (
                self.broken[0] == parts.metadata.uuid[:parts.metadata.uuid_size]):
            raise errors.again(self.broken[1])
        self.broken = None
        return 0

    cdef int publish_entry(self, const uint8_t* entry, EntryFrame* frame, callback) except -1:
        """Store frame.entry_size bytes. Mutex held."""
        cdef uint32_t size = frame.entry_size
        cdef uint8_t* room
        cdef Receipt receipt = Receipt.__new__(Receipt)
        cdef list callbacks = None
        cdef bint at_once = callback is None and self.answers_at_once
        if not at_once:
            callbacks = [0, self.answer_to(size) if callback is None else callback]
        room = <uint8_t*>PyMem_Malloc(ENTRY_FRAME_SIZE + size + ROOM_BEHIND)
        if room == NULL:
            raise MemoryError(f"publish an entry of {size} bytes")
        try:
            if self.is_chunk and self.chunked is not None:
                self.chunked.begin()
            memcpy(room + ENTRY_FRAME_SIZE, entry, size)
            memset(room + ENTRY_FRAME_SIZE + size, 0, ROOM_BEHIND)
            self.publisher.publish(frame, room + ENTRY_FRAME_SIZE, receipt, callbacks, False)
            if at_once:
                self.confirm(receipt.ledger_id, receipt.entry_id, size)
            if not self.is_part:
                self.publisher.published_sequence_id = (
                    self.last_id if self.ids is None else max(self.ids))
            if self.is_chunk and self.chunked is not None:
                self.chunked.count()
            if self.sequences is not None and not self.is_part:
                self.sequences.note_stored(max(self.ids), self.ids, self.more_follow,
                                           frame.publish_time_ms, self.publisher.transaction)
        finally:
            PyMem_Free(room)
        return 0

    def leave(self, TransactionCore transaction not None, bint committed) -> None:
        """A transaction has ended: see Batcher."""
        mutex_lock(&self.publisher.mutex)
        try:
            if not committed:
                self.publisher.published_sequence_id = transaction.before(
                    self, self.publisher.published_sequence_id)
            if self.sequences is not None:
                self.sequences.leave(transaction, committed)
        finally:
            mutex_unlock(&self.publisher.mutex)

    # Duplicates -----------------------------------------------------------------------------------

    def deduplicate(self, ProducerSequences sequences, catch_up=None) -> None:
        """Tell duplicates by these numbers from now on; None: no more. catch_up: called first, with
        nothing on its way into the topic."""
        mutex_lock(&self.publisher.mutex)
        try:
            if catch_up is not None:
                catch_up()
            if sequences is not None:
                sequences.begin(-1)
            self.sequences = sequences
        finally:
            mutex_unlock(&self.publisher.mutex)

    cdef int publish_new(self, const uint8_t* entry, EntryFrame* frame, EntryParts* parts,
                         callback) except -1:
        """Publish what of an entry is new. Mutex held."""
        cdef list kept = []
        cdef int64_t highest = self.sequences.stored
        for at, sequence_id in enumerate(self.ids):
            if sequence_id > highest or not self.sequences.is_stored(sequence_id):
                kept.append(at)
                highest = max(highest, <int64_t>sequence_id)
            elif sequence_id <= self.sequences.stored:
                self.sequences.require_decided(sequence_id, self.publisher.transaction)
        if not kept:
            if callback is None:
                callback = self.answer_to(frame.entry_size)
            return self.publisher.confirm_duplicate(Receipt.__new__(Receipt), callback)
        if len(kept) == len(self.ids):
            return self.publish_entry(entry, frame, callback)
        return self.publish_without(kept, frame, parts, callback)

    cdef int publish_without(self, list kept, EntryFrame* frame, EntryParts* parts,
                             callback) except -1:
        """Publish the messages of a batch that are kept, by their place in it."""
        cdef MessageMetadata metadata = parts.metadata
        cdef EntryFrame shorter = frame[0]
        cdef BatchMessage each
        cdef uint8_t* entry = NULL
        cdef const uint8_t* payload = <const uint8_t*>PyBytes_AS_STRING(self.plain)
        cdef uint32_t size = <uint32_t>PyBytes_GET_SIZE(self.plain)
        cdef uint32_t at = 0
        cdef uint32_t begin = 0
        cdef uint32_t number = 0
        cdef int status
        cdef set places = set(kept)
        cdef list slices = []
        cdef bytes replicate_to
        cdef bytes written
        cdef uint64_t most = 0
        cdef uint64_t least = 0
        while batch_decode_next(payload, size, &at, &each) == STATUS_OK:
            if number in places:
                slices.append(self.plain[begin:at])
            begin = at
            number += 1
        packed = b"".join(slices)
        if metadata.compression:
            metadata.uncompressed_size = <uint32_t>len(packed)
            packed = self.compress(metadata.compression, packed)
        self.ids = [self.ids[place] for place in kept]
        metadata.message_count = <uint32_t>len(kept)
        metadata.sequence_id = <uint64_t>self.ids[len(self.ids) - 1]
        if not self.more_follow:
            metadata.flags |= METADATA_HIGHEST_SEQUENCE
            metadata.sequence_id = <uint64_t>self.ids[0]
            metadata.highest_sequence_id = <uint64_t>self.ids[len(self.ids) - 1]
        metadata.property_count = 0          # a batch has those of its messages
        replicate_to = replicate_to_of(parts)
        if replicate_to:
            metadata.flags |= METADATA_REPLICATE_TO
            metadata.replicate_to = <const uint8_t*>PyBytes_AS_STRING(replicate_to)
            metadata.replicate_to_size = <uint32_t>PyBytes_GET_SIZE(replicate_to)
        if self.rewritten is None:
            self.rewritten = OpenBatch(HEADROOM, HEADROOM)
        status = batch_encode_single(&self.rewritten.batch, &metadata,
                                     <const uint8_t*>PyBytes_AS_STRING(packed),
                                     <uint32_t>PyBytes_GET_SIZE(packed), &entry,
                                     &shorter.entry_size)
        if status != STATUS_OK:
            raise_status(status, 0, f"write a batch of {len(kept)} messages anew")
        shorter.message_count = metadata.message_count
        written = entry[:shorter.entry_size]
        if message_metadata_transaction(parts.encoded_metadata, parts.encoded_metadata_size, &most,
                                        &least) and most == 0:
            written = stamped(written, least)    # the next owner knows by that whose it is
            shorter.entry_size = <uint32_t>PyBytes_GET_SIZE(written)
        if callback is None:
            callback = self.answer_to(frame.entry_size)
        if isinstance(callback, EntryAnswer):
            (<EntryAnswer>callback).kept = kept
        else:
            callback = partial(callback, kept=kept)
        return self.publish_entry(<const uint8_t*>PyBytes_AS_STRING(written), &shorter, callback)

    cdef int check_batch(self, EntryFrame* frame, EntryParts* parts) except -1:
        """Walk a batch: it holds as many messages as its metadata says. Sets what dispatch by key
        needs."""
        cdef BatchMessage each
        cdef bytes plain = None
        cdef SingleMetadata metadata
        cdef const uint8_t* payload = parts.payload
        cdef uint32_t size = parts.payload_size
        cdef uint32_t at = 0
        cdef uint32_t walked = 0
        cdef uint32_t hash
        cdef int status
        if parts.metadata.flags & METADATA_ENCRYPTED:
            return self.take_encrypted(parts)
        if parts.metadata.compression:
            plain = self.decompress(parts.metadata.compression, payload[:size],
                                    parts.metadata.uncompressed_size, self.decompressed_size_max)
            payload = <const uint8_t*>PyBytes_AS_STRING(plain)
            size = <uint32_t>PyBytes_GET_SIZE(plain)
        elif self.sequences is not None:
            plain = payload[:size]
        self.plain = plain
        self.ids = None if self.sequences is None else []
        while True:
            status = batch_decode_next(payload, size, &at, &each)
            if status == STATUS_END:
                break
            if status != STATUS_OK:
                raise_status(status, 0, f"read message {walked} of a batch that came over a "
                                        f"connection")
            if self.sequences is not None:
                status = single_metadata_decode(each.encoded_metadata,
                                                each.encoded_metadata_size, &metadata)
                raise_status(status, 0, f"read message {walked} of a batch that came over a "
                                        f"connection")
                self.ids.append(<int64_t>metadata.sequence_id)
            hash = STICKY_NON_KEY
            if each.flags & (METADATA_PARTITION_KEY | METADATA_ORDERING_KEY):
                status = sticky_key_of_encoded(each.encoded_metadata, each.encoded_metadata_size,
                                               &hash)
                raise_status(status, 0, f"read the key of message {walked} of a batch that came "
                                        f"over a connection")
            if walked == 0:
                frame.sticky_hash = hash
            elif hash != frame.sticky_hash:
                frame.flags |= ENTRY_MIXED_KEYS
            walked += 1
        if self.sequences is None:
            self.last_id = last_sequence_id(parts, &each)
        self.more_follow = self.sequences is not None and walked != 0 and (
            parts.metadata.highest_sequence_id == 0 and is_of_many(self.ids))
        if walked != frame.message_count:
            raise errors.CorruptDataError(
                detail=f"a batch that came over a connection holds {walked} messages; its metadata "
                f"says {frame.message_count}")
        return 0

    cdef int take_encrypted(self, const EntryParts* parts) except -1:
        """Nobody here can look into the batch: it counts as one, by the ids of its metadata, and is
        dispatched by their key."""
        cdef int64_t first = <int64_t>parts.metadata.sequence_id
        cdef int64_t highest = <int64_t>parts.metadata.highest_sequence_id
        cdef uint64_t held = messages_held_at_most(parts)
        # Nobody could read it, and it may claim as many messages as would fit in there.
        if parts.metadata.compression and (
                parts.metadata.uncompressed_size > self.decompressed_size_max):
            raise errors.UnreadableEntryError(
                detail=f"an encrypted batch that came over a connection claims "
                f"{parts.metadata.uncompressed_size} bytes before compression; at most "
                f"{self.decompressed_size_max} are taken")
        if parts.metadata.message_count > held:
            raise errors.UnreadableEntryError(
                detail=f"an encrypted batch of {parts.payload_size} bytes that came over a "
                f"connection claims {parts.metadata.message_count} messages; at most {held} fit in "
                "there")
        self.plain = None
        self.last_id = max(first, highest)
        self.ids = [self.last_id]
        # As in read_sequences: without the highest one nothing is known of those before it.
        self.more_follow = highest == 0
        return 0

    def settle(self) -> None:
        """Return when everything published is confirmed or failed, and its callbacks are queued.
        What failed is told by the next flush too."""
        self.publisher.flush_expected()

    def flush(self) -> None:
        """Return when everything published is confirmed and its callbacks have run."""
        failure = self.publisher.flush()
        self.publisher.drain(None)
        if failure is not None:
            raise failure

    def shut(self) -> None:
        """Like flush; what comes from now on is not published, and not answered."""
        mutex_lock(&self.publisher.mutex)
        self.is_shut = True
        mutex_unlock(&self.publisher.mutex)
        self.flush()

    def fence(self, str reason not None, kind=errors.ProducerFenced) -> None:
        """Publish nothing from now on."""
        self.publisher.fence(reason, kind)

    def limit_delay(self, int64_t delay_max_ms) -> None:
        """Refuse messages that are delayed for longer; 0: none."""
        self.deliver_delay_max_ms = delay_max_ms

    def limit_rate(self, RateLimit limit, PublishMeter meter) -> None:
        """Tell these what is published; None: there is none."""
        self.publisher.count(limit, meter)

    def went_on_from(self, int64_t sequence_id) -> None:
        """The producer published before it came here, up to this id; -1: it did not."""
        self.publisher.published_sequence_id = sequence_id

    def last_sequence_id(self) -> int:
        """The sequence id of the last message that was published; -1 before the first."""
        return self.publisher.published_sequence_id

    def chunked_message_rate(self) -> float:
        """Chunks that were published, a second, over the last minute."""
        return 0.0 if self.chunked is None else self.chunked.per_second()

    def waits_until(self) -> int:
        """When the publish rate of the topic lets the next entry pass; 0: now."""
        cdef RateLimit limit = self.publisher.limit
        return 0 if limit is None else limit.waits_until()

    def abandon(self) -> None:
        """In a forked child: touch nothing."""
        self.publisher.abandon()
