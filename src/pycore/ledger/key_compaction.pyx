# cython: language_level=3
"""Body of key_compaction.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from pulsarx import errors
from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.byte_reader cimport (
    ByteReader, byte_reader_start,
)
from pulsarx._core.byte_writer cimport (
    ByteWriter, byte_writer_bytes, byte_writer_start, byte_writer_u32_be, byte_writer_varint,
)
from pulsarx._core.compacted_entry cimport (
    COMPACTED_HEADER_SIZE, CompactedPlace, compacted_entry_encode,
)
from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.entry_frame cimport ENTRY_BATCH, ENTRY_REWRITTEN, EntryFrame
from pulsarx._core.key_positions cimport (
    key_positions_fetch_record, key_positions_fetch_slot, key_positions_find, key_positions_free,
    key_positions_hash, key_positions_init, key_positions_mark, key_positions_put,
)
from pulsarx._core.ledger_append cimport ledger_append_entry
from pulsarx._core.limits cimport ENTRY_FRAME_SIZE, ENTRY_SIZE_MAX
from pulsarx._core.message_metadata cimport EntryParts, entry_count_holds, entry_decode
from pulsarx._core.proto_field cimport proto_field_skip, proto_field_tag
from pulsarx._core.single_metadata cimport (
    METADATA_BATCH, METADATA_COMPACTED_OUT, METADATA_ENCRYPTED, METADATA_MARKER,
    METADATA_NULL_VALUE, METADATA_PARTITION_KEY, METADATA_SEQUENCE_ID, SingleMetadata,
    single_metadata_decode,
)
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK, STATUS_TOO_LARGE
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.ledger.followed_chunks cimport FollowedChunks
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader, READ_DAMAGE, READ_NOTHING
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter

cdef extern from *:
    int __builtin_popcountll(unsigned long long word) noexcept nogil

cdef extern from "<fcntl.h>" nogil:
    int sync_file_range(int fd, int64_t offset, int64_t size, unsigned flags)
    unsigned SYNC_FILE_RANGE_WRITE

cdef enum:
    TAG_PARTITION_KEY = 0x12             # of SingleMessageMetadata
    TAG_PAYLOAD_SIZE = 0x18
    TAG_UNCOMPRESSED_SIZE = 0x48         # of MessageMetadata: field 9
    KEYS_AHEAD = 64                      # whose memory is fetched together
    TAKEN_OUT_SIZE = 8                   # of a message that is taken out, with its size
    VARINT_ROOM = 16
    ENTRY_HEADER_SIZE = 10               # magic, checksum, size of the metadata
    PADDING = 8                          # behind an entry, for the ledger
    MARKS_OF_A_KEY = 64                  # messages that are marked together: 8 bytes a key
    WRITTEN_BACK_SIZE = 8388608

# payload_size 0, compacted_out 1
cdef const uint8_t* TAKEN_OUT = b"\x00\x00\x00\x04\x18\x00\x20\x01"


cdef class KeyCompaction:
    """See the pxd."""

    def __cinit__(self):
        key_positions_init(&self.keys, 0)

    def __init__(self, *, end: tuple[int, int], retain_null_key: bool, seed: int, decompress,
                 compress, decompressed_size_max: int, marks_least: int,
                 open_max: int = 10_000) -> None:
        """end: the position of the topic that both passes go to. seed: a random number.
        decompress: (kind, data, uncompressed size, limit) -> bytes; compress: (kind, data).
        marks_least: messages whose survivors are marked together, a bit each; more where there are
        many keys. open_max: messages in chunks that are followed at once; where there are more, all
        survive whose chunks were not followed to their end."""
        self.chunks = FollowedChunks(seed, open_max)
        self.marks.least = marks_least
        self.end_ledger_id, self.end_message = end
        self.retain_null_key = retain_null_key
        self.keys.seed = seed
        self.decompress = decompress
        self.compress = compress
        self.decompressed_size_max = decompressed_size_max
        self.last_survivor.batch_index = -1
        self.ledgers = []

    def __dealloc__(self):
        key_positions_free(&self.keys)
        free(self.hand.messages)
        free(self.marks.words)
        free(self.room)

    @property
    def key_count(self) -> int:
        """Distinct keys, those that were removed included."""
        return self.keys.key_count

    @property
    def memory_size(self) -> int:
        """Bytes that the keys and the marks of survivors take."""
        return (self.keys.memory_size + self.chunks.ends.memory_size
                + self.marks.capacity * sizeof(uint64_t))

    @property
    def last(self) -> tuple[int, int, int] | None:
        """Ledger id, entry id and batch index of the last survivor."""
        cdef LastSurvivor* found = &self.last_survivor
        return (found.ledger_id, found.entry_id, found.batch_index) if found.ledger_id else None

    # The passes -----------------------------------------------------------------------------------

    def scan(self, LedgerReader reader not None, entry_count: int) -> bool:
        """Note the last message of each key, of so many entries more; False: all was read."""
        cdef EntryParts parts
        cdef list chunked
        cdef uint64_t first
        cdef int kind
        cdef int status = STATUS_OK
        cdef uint32_t left = entry_count
        while left:
            left -= 1
            if not self.next_entry(reader):
                return False
            kind = self.look_into(reader, &parts)
            first = self.scanned_count
            self.scanned_count += reader.c_frame.message_count
            if kind == KIND_MESSAGES or kind == KIND_CHUNK:
                if kind == KIND_CHUNK:
                    self.others_survive = True
                    chunked = self.chunks.follow(&parts, first)
                    if chunked is None or chunked[1] < chunked[2]:
                        continue         # the message is where its last chunk is
                    status = self.chunks.note_end(chunked, first)
                if status == STATUS_OK:
                    with nogil:
                        status = self.note_keys(first)
                if status != STATUS_OK:
                    raise_status(status, 0, f"keep {self.keys.key_count} keys of "
                                            f"{reader.topic_name} in memory")
            elif kind == KIND_WHOLE:
                self.others_survive = True
        return True

    def copy(self, LedgerReader reader not None, LedgerWriter writer not None,
             entry_count: int) -> bool:
        """Store what survives of so many entries more; False: all was read."""
        cdef EntryParts parts
        cdef uint64_t ledger_id
        cdef uint64_t first
        cdef uint32_t survivors
        cdef uint32_t count
        cdef uint32_t index
        cdef uint32_t last
        cdef bint is_batch
        cdef bint is_whole
        cdef int kind
        cdef uint32_t left = entry_count
        cdef list row = self.ledgers[len(self.ledgers) - 1] if self.ledgers else None
        self.chunks.begin_again()
        while left:
            left -= 1
            if not self.next_entry(reader):
                if self.copied_count != self.scanned_count:
                    raise_other_messages(reader, self.copied_count, self.scanned_count)
                return False
            count = reader.c_frame.message_count
            first = self.copied_count
            self.copied_count += count
            self.mark_survivors(reader, first, count)
            survivors = self.marked(first, count)
            last = count - 1
            is_whole = survivors == count and entry_decode(
                reader.c_entry, reader.c_frame.entry_size, False, &parts) == STATUS_OK and (
                parts.metadata.chunk_count <= 1)             # chunks are followed
            if is_whole:
                is_batch = parts.metadata.flags & METADATA_BATCH != 0
            elif survivors == 0 and not self.others_survive:
                continue
            else:
                kind = self.look_into(reader, &parts)
                if kind == KIND_NOTHING:
                    continue
                is_whole = kind == KIND_WHOLE
                is_batch = reader.c_frame.flags & ENTRY_BATCH != 0
            if not is_whole:
                if kind == KIND_CHUNK:
                    survivors = self.choose_chunk(&parts, first)
                else:
                    with nogil:
                        survivors = self.choose(first)
                if survivors == 0:
                    continue
                for index in range(self.hand.count):
                    if self.hand.messages[index].survives:
                        last = index
                is_batch = kind == KIND_MESSAGES and parts.metadata.flags & METADATA_BATCH != 0
                is_whole = survivors == count or not self.needs_rewrite()
            elif survivors != count:
                survivors = count
            if is_whole:
                self.store(reader, writer, survivors, reader.c_entry, reader.c_frame.entry_size,
                           reader.c_frame.flags)
            else:
                self.store_rewritten(reader, writer, survivors, &parts)
            self.kept_count += survivors
            ledger_id = reader.span.ledger_id
            self.last_survivor.ledger_id = ledger_id
            self.last_survivor.entry_id = reader.c_frame.entry_id
            self.last_survivor.batch_index = last if is_batch else -1
            if row is None or row[0] != ledger_id:
                row = [ledger_id, 0]
                self.ledgers.append(row)
            row[1] = reader.c_frame.first_message + last + 1
        return True

    cdef int mark_survivors(self, LedgerReader reader, uint64_t first, uint32_t count) except -1:
        """Have the survivors among the messages of an entry, and of those behind it, marked."""
        cdef uint64_t wanted
        cdef uint64_t words
        cdef uint64_t* grown
        if first >= self.marks.first and first + count <= self.marks.first + self.marks.count:
            return 0
        if first + count > self.scanned_count:
            raise_other_messages(reader, first + count, self.scanned_count)
        # All keys are looked at for it: seldom enough to cost nothing, and of a part of their size.
        wanted = max(self.marks.least, MARKS_OF_A_KEY * self.keys.key_count)
        wanted = min(max(wanted, <uint64_t>count), self.scanned_count - first)
        words = (wanted + 63) // 64
        if words > self.marks.capacity:
            grown = <uint64_t*>realloc(self.marks.words, words * sizeof(uint64_t))
            if grown == NULL:
                raise MemoryError(f"compact {reader.topic_name}: out of memory for the marks of "
                                  f"{wanted} messages")
            self.marks.words = grown
            self.marks.capacity = words
        with nogil:
            memset(self.marks.words, 0, words * sizeof(uint64_t))
            key_positions_mark(&self.keys, first, wanted, self.marks.words)
        self.marks.first = first
        self.marks.count = wanted
        return 0

    cdef bint is_marked(self, uint64_t position) noexcept nogil:
        position -= self.marks.first
        return (self.marks.words[position >> 6] >> (position & 63)) & 1

    cdef uint32_t marked(self, uint64_t first, uint32_t count) noexcept nogil:
        """How many of some messages survive, as far as keys tell."""
        cdef uint64_t at = first - self.marks.first
        cdef uint64_t end = at + count
        cdef uint64_t word
        cdef uint64_t taken
        cdef uint32_t found = 0
        while at < end:
            word = self.marks.words[at >> 6] >> (at & 63)
            taken = min(64 - (at & 63), end - at)
            if taken < 64:
                word &= (<uint64_t>1 << taken) - 1
            found += __builtin_popcountll(word)
            at += taken
        return found

    cdef bint needs_rewrite(self) noexcept:
        """Whether a message is to be taken out of the batch that is still in it."""
        cdef uint32_t index
        for index in range(self.hand.count):
            if not self.hand.messages[index].survives and not self.hand.messages[index].taken_out:
                return True
        return False

    cdef bint next_entry(self, LedgerReader reader) except -1:
        cdef int step = reader.next_entry()
        if step == READ_NOTHING:
            return False
        if step == READ_DAMAGE:
            raise errors.CorruptDataError(detail=reader.damage_text(
                f"{reader.lost_end - reader.lost_first} messages cannot be compacted"))
        if reader.span.ledger_id > self.end_ledger_id or (
                reader.span.ledger_id == self.end_ledger_id
                and reader.c_frame.first_message >= self.end_message):
            reader.unread()
            return False
        return True

    # Entries --------------------------------------------------------------------------------------

    cdef int look_into(self, LedgerReader reader, EntryParts* parts) except -1:
        """Fill `messages`; an EntryKind."""
        cdef int status = entry_decode(reader.c_entry, reader.c_frame.entry_size, False, parts)
        cdef const uint8_t* payload = parts.payload
        cdef uint32_t payload_size = parts.payload_size
        cdef bint is_batch
        cdef uint32_t count
        self.plain = None
        self.hand.count = 0
        if status == STATUS_OK and not entry_count_holds(parts, reader.c_frame.message_count):
            status = STATUS_CORRUPT
        if status != STATUS_OK:
            return KIND_WHOLE
        if parts.metadata.flags & METADATA_MARKER:
            return KIND_NOTHING
        is_batch = parts.metadata.flags & METADATA_BATCH != 0
        if is_batch and parts.metadata.flags & METADATA_ENCRYPTED:
            return KIND_WHOLE
        count = reader.c_frame.message_count
        self.reserve_messages(count)
        if not is_batch:
            memset(&self.hand.messages[0], 0, sizeof(CompactedMessage))
            if parts.metadata.flags & METADATA_PARTITION_KEY:
                self.hand.messages[0].key = parts.metadata.partition_key
                self.hand.messages[0].key_size = parts.metadata.partition_key_size
            self.hand.messages[0].is_removal = parts.metadata.flags & METADATA_NULL_VALUE != 0 or (
                parts.metadata.uncompressed_size == 0 if parts.metadata.compression
                else parts.payload_size == 0)
            self.hand.count = 1
            if parts.metadata.chunk_count <= 1:
                return KIND_MESSAGES
            if parts.metadata.uuid == NULL or (
                    parts.metadata.chunk_id >= parts.metadata.chunk_count):
                return KIND_WHOLE        # its readers are told
            return KIND_CHUNK
        if parts.metadata.compression:
            try:
                self.plain = self.decompress(
                    parts.metadata.compression, parts.payload[:parts.payload_size],
                    parts.metadata.uncompressed_size, self.decompressed_size_max)
            except (errors.CorruptDataError, errors.UnreadableEntryError):
                return KIND_WHOLE
            payload = <const uint8_t*>PyBytes_AS_STRING(self.plain)
            payload_size = <uint32_t>PyBytes_GET_SIZE(self.plain)
        with nogil:
            status = batch_messages(payload, payload_size, count, self.hand.messages)
        if status != STATUS_OK:
            return KIND_WHOLE
        self.hand.count = count
        return KIND_MESSAGES

    cdef int reserve_messages(self, uint32_t count) except -1:
        cdef CompactedMessage* grown
        if count <= self.hand.capacity:
            return 0
        grown = <CompactedMessage*>realloc(self.hand.messages, count * sizeof(CompactedMessage))
        if grown == NULL:
            raise MemoryError(f"compact a batch of {count} messages: out of memory")
        self.hand.messages = grown
        self.hand.capacity = count
        return 0

    cdef int reserve_room(self, uint64_t size) except -1:
        cdef uint8_t* grown
        if size <= self.room_size:
            return 0
        grown = <uint8_t*>realloc(self.room, size + size // 2)
        if grown == NULL:
            raise MemoryError(f"compact an entry of {size} bytes: out of memory")
        self.room = grown
        self.room_size = size + size // 2
        return 0

    cdef void fetch_keys(self, uint32_t start, uint32_t end) noexcept nogil:
        """Bring near what the keys of some messages need."""
        cdef uint32_t index
        cdef CompactedMessage* each
        for index in range(start, end):
            each = &self.hand.messages[index]
            if each.key != NULL:
                each.hash = key_positions_hash(&self.keys, each.key, each.key_size)
                key_positions_fetch_slot(&self.keys, each.hash)
        for index in range(start, end):
            each = &self.hand.messages[index]
            if each.key != NULL:
                key_positions_fetch_record(&self.keys, each.hash)

    # Messages in chunks ---------------------------------------------------------------------------

    cdef bint choose_chunk(self, const EntryParts* parts, uint64_t first) except -1:
        """Whether the message survives that the chunk in hand belongs to, with the chunk. One
        that ends behind what is compacted does, with all that came of it."""
        cdef CompactedMessage* message = &self.hand.messages[0]
        cdef list chunked = self.chunks.follow(parts, first)
        cdef uint64_t end = 0
        cdef uint64_t survivor = 0
        if chunked is None:
            message.survives = self.chunks.lost_sight
        elif not self.chunks.find_end(chunked, &end):
            message.survives = self.chunks.may_end_later(parts, chunked)
        elif message.key == NULL:
            message.survives = self.retain_null_key
        else:
            message.survives = key_positions_find(
                &self.keys, key_positions_hash(&self.keys, message.key, message.key_size),
                message.key, message.key_size, &survivor) and survivor == end
        return message.survives

    # Keys -----------------------------------------------------------------------------------------

    cdef int note_keys(self, uint64_t first) noexcept nogil:
        cdef uint32_t index
        cdef CompactedMessage* each
        cdef int status
        for index in range(self.hand.count):
            if index % KEYS_AHEAD == 0:
                self.fetch_keys(index, min(index + KEYS_AHEAD, self.hand.count))
            each = &self.hand.messages[index]
            if each.taken_out:
                continue
            if each.key == NULL:
                self.others_survive |= self.retain_null_key
                continue
            status = key_positions_put(&self.keys, each.hash, each.key, each.key_size,
                                       UINT64_MAX if each.is_removal else first + index)
            if status != STATUS_OK:
                return status
        return STATUS_OK

    cdef uint32_t choose(self, uint64_t first) noexcept nogil:
        """Mark the survivors among `messages`; how many there are."""
        cdef uint32_t index
        cdef uint32_t found = 0
        cdef CompactedMessage* each
        for index in range(self.hand.count):
            each = &self.hand.messages[index]
            if each.taken_out:
                each.survives = False
            elif each.key == NULL:
                each.survives = self.retain_null_key
            else:
                each.survives = self.is_marked(first + index)
            found += each.survives
        return found

    # Writing --------------------------------------------------------------------------------------

    cdef int store(self, LedgerReader reader, LedgerWriter writer, uint32_t survivors,
                   const uint8_t* entry, uint32_t size, uint32_t flags) except -1:
        """entry: may be in `room`, where it belongs."""
        cdef uint64_t total = <uint64_t>size + COMPACTED_HEADER_SIZE
        cdef CompactedPlace place
        cdef EntryFrame frame
        cdef uint64_t offset = 0
        cdef uint8_t* data
        cdef int status
        if total > ENTRY_SIZE_MAX:
            raise_status(STATUS_TOO_LARGE, 0, f"compact an entry of {size} bytes")
        self.reserve_room(ENTRY_FRAME_SIZE + total + PADDING)
        data = self.room + ENTRY_FRAME_SIZE
        place.ledger_id = reader.span.ledger_id
        place.entry_id = reader.c_frame.entry_id
        place.first_message = reader.c_frame.first_message
        place.message_count = reader.c_frame.message_count
        place.broker_time_ms = <uint64_t>reader.span.file.c_broker_time(reader.c_entry)
        frame = reader.c_frame
        frame.entry_size = <uint32_t>total
        frame.message_count = survivors
        frame.flags = flags
        frame.broker_time = 0            # the place says it
        with nogil:
            if entry != data + COMPACTED_HEADER_SIZE:
                memcpy(data + COMPACTED_HEADER_SIZE, entry, size)
            compacted_entry_encode(&place, data, frame.entry_size)
            status = ledger_append_entry(&writer.c_ledger, &frame, data, &offset)
        if status != STATUS_OK:
            writer.c_raise(status, f"append {total} bytes to")
        if writer.c_ledger.end - self.written_back >= WRITTEN_BACK_SIZE:
            with nogil:
                self.write_back(writer)
        return 0

    cdef void write_back(self, LedgerWriter writer) noexcept nogil:
        """Have the device begin with what is written, so that sealing waits for little. A refusal
        only means that it begins later."""
        cdef uint64_t end = writer.c_ledger.end
        sync_file_range(writer.c_ledger.fd, self.written_back, end - self.written_back,
                        SYNC_FILE_RANGE_WRITE)
        self.written_back = end

    cdef int store_rewritten(self, LedgerReader reader, LedgerWriter writer, uint32_t survivors,
                             const EntryParts* parts) except -1:
        """Store a batch in which the others are marked as taken out."""
        cdef uint64_t size = 0
        cdef uint64_t head = ENTRY_FRAME_SIZE + COMPACTED_HEADER_SIZE
        cdef uint32_t index
        cdef uint32_t metadata_size = 0
        cdef uint32_t checksum
        cdef uint8_t* payload
        cdef uint8_t* entry
        cdef bytes packed = None
        cdef int status
        cdef ByteWriter room
        for index in range(self.hand.count):
            size += self.hand.messages[index].size if self.hand.messages[index].survives else (
                <uint64_t>TAKEN_OUT_SIZE)
        head += ENTRY_HEADER_SIZE + <uint64_t>parts.encoded_metadata_size + VARINT_ROOM
        if head + size > ENTRY_SIZE_MAX:
            raise_status(STATUS_TOO_LARGE, 0, f"compact a batch of {size} bytes")
        self.reserve_room(head + size + PADDING)
        payload = self.room + head
        with nogil:
            payload_write(self.hand.messages, self.hand.count, payload)
        if parts.metadata.compression:
            packed = self.compress(parts.metadata.compression,
                                   PyBytes_FromStringAndSize(<const char*>payload,
                                                             <Py_ssize_t>size))
            self.reserve_room(head + <uint64_t>PyBytes_GET_SIZE(packed) + PADDING)
        entry = self.room + ENTRY_FRAME_SIZE + COMPACTED_HEADER_SIZE
        status = metadata_write(parts.encoded_metadata, parts.encoded_metadata_size,
                                <uint32_t>size, entry + ENTRY_HEADER_SIZE, &metadata_size)
        if status != STATUS_OK:
            raise_status(status, 0, f"write entry {reader.c_frame.entry_id} anew")
        payload = entry + ENTRY_HEADER_SIZE + metadata_size
        with nogil:
            if packed is None:
                payload_write(self.hand.messages, self.hand.count, payload)
        if packed is not None:
            size = <uint64_t>PyBytes_GET_SIZE(packed)
            memcpy(payload, PyBytes_AS_STRING(packed), size)
        size += ENTRY_HEADER_SIZE + <uint64_t>metadata_size
        byte_writer_start(&room, entry + 6, 4)
        byte_writer_u32_be(&room, metadata_size)
        checksum = crc32c(0, entry + 6, size - 6)
        entry[0] = 0x0E
        entry[1] = 0x01
        byte_writer_start(&room, entry + 2, 4)
        byte_writer_u32_be(&room, checksum)
        return self.store(reader, writer, survivors, entry, <uint32_t>size,
                          reader.c_frame.flags | ENTRY_REWRITTEN)


cdef int raise_other_messages(LedgerReader reader, uint64_t found, uint64_t scanned) except -1:
    raise errors.CorruptDataError(
        detail=f"compact {reader.topic_name}: the second reading came to {found} messages, the "
        f"first one to {scanned}; nothing was changed, compact it again")


cdef void payload_write(const CompactedMessage* messages, uint32_t count,
                        uint8_t* at) noexcept nogil:
    cdef uint32_t index
    for index in range(count):
        if messages[index].survives:
            memcpy(at, messages[index].start, messages[index].size)
            at += messages[index].size
        else:
            memcpy(at, TAKEN_OUT, TAKEN_OUT_SIZE)
            at += TAKEN_OUT_SIZE


cdef int metadata_write(const uint8_t* data, uint32_t size, uint32_t uncompressed_size,
                        uint8_t* room, uint32_t* written) noexcept nogil:
    """Copy the fields of a MessageMetadata, known or not, with another uncompressed size where it
    has one. It may have it often, in fewer bytes than the new one takes: that comes once."""
    cdef ByteReader reader
    cdef ByteWriter writer
    cdef const uint8_t* start
    cdef uint32_t tag = 0
    cdef bint has_size = False
    cdef int status
    byte_reader_start(&reader, data, size)
    byte_writer_start(&writer, room, <size_t>size + VARINT_ROOM)
    while reader.at < reader.end:
        start = reader.at
        status = proto_field_tag(&reader, &tag)
        if status == STATUS_OK:
            status = proto_field_skip(&reader, tag)
        if status != STATUS_OK:
            return status
        if tag != TAG_UNCOMPRESSED_SIZE:
            byte_writer_bytes(&writer, start, reader.at - start)
        elif not has_size:
            has_size = True
            byte_writer_varint(&writer, TAG_UNCOMPRESSED_SIZE)
            byte_writer_varint(&writer, uncompressed_size)
    written[0] = <uint32_t>(writer.at - room)
    return STATUS_OK


cdef int batch_messages(const uint8_t* payload, uint32_t size, uint32_t count,
                        CompactedMessage* messages) noexcept nogil:
    """All messages of a batch. CORRUPT, TRUNCATED: they are not as many, or not whole."""
    cdef BatchMessage found
    cdef SingleMetadata metadata
    cdef CompactedMessage* each
    cdef uint32_t at = 0
    cdef uint32_t start
    cdef uint32_t index
    cdef uint32_t key_size
    cdef int status
    for index in range(count):
        start = at
        status = batch_decode_next(payload, size, &at, &found)
        if status != STATUS_OK:
            return STATUS_CORRUPT
        each = &messages[index]
        each.start = payload + start
        each.size = at - start
        each.key = NULL
        each.key_size = 0
        each.is_removal = found.payload_size == 0 or found.flags & METADATA_NULL_VALUE != 0
        each.taken_out = found.flags & METADATA_COMPACTED_OUT != 0
        each.survives = False
        if found.flags & METADATA_PARTITION_KEY == 0:
            continue
        # As our producers write it: the key is the first field, and its size one byte.
        if found.flags & ~(<uint32_t>(METADATA_PARTITION_KEY | METADATA_SEQUENCE_ID)) == 0 and (
                found.encoded_metadata_size >= 3
                and found.encoded_metadata[0] == TAG_PARTITION_KEY
                and found.encoded_metadata[1] < 0x80):
            key_size = found.encoded_metadata[1]
            if key_size + 2 < found.encoded_metadata_size and (
                    found.encoded_metadata[2 + key_size] == TAG_PAYLOAD_SIZE):
                each.key = found.encoded_metadata + 2
                each.key_size = key_size
                continue
        status = single_metadata_decode(found.encoded_metadata, found.encoded_metadata_size,
                                        &metadata)
        if status != STATUS_OK:
            return status
        each.key = metadata.partition_key
        each.key_size = metadata.partition_key_size
    return STATUS_OK if at == size else STATUS_CORRUPT
