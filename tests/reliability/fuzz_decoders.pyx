"""The decoders of the core, each given any bytes at the end of what may be read.

A function takes bytes and returns nothing. AssertionError: a decoder breaks what its contract says:
it took what it had to refuse, points outside of its bytes, or what it took cannot be written and
read once more. Reading outside of the bytes ends the process.
"""

import os

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from pulsarx import errors
from pulsarx._core.batch_decode cimport (
    BatchMessage, batch_decode_next, batch_decode_plain, entry_check,
)
from pulsarx._core.byte_reader cimport ByteReader, byte_reader_start, byte_reader_varint
from pulsarx._core.byte_writer cimport ByteWriter, byte_writer_start
from pulsarx._core.compacted_entry cimport *
from pulsarx._core.crc32c cimport crc32c, crc32c_u64
from pulsarx._core.cursor_record cimport *
from pulsarx._core.cursor_sections cimport *
from pulsarx._core.cursor_state cimport *
from pulsarx._core.entry_frame cimport *
from pulsarx._core.json_object cimport JSON_WORDS_NONE, json_object_copy
from pulsarx._core.ledger_footer cimport *
from pulsarx._core.ledger_index cimport *
from pulsarx._core.ledger_name cimport *
from pulsarx._core.ledger_read cimport *
from pulsarx._core.ledger_recover cimport *
from pulsarx._core.limits cimport *
from pulsarx._core.lz4_block cimport *
from pulsarx._core.message_metadata cimport *
from pulsarx._core.selector cimport SelectorProgram, selector_compile, selector_free
from pulsarx._core.selector_match cimport SelectorMessage, selector_match
from pulsarx._core.selector_text cimport EXPECTED_COUNT, SelectorError
from pulsarx._core.single_metadata cimport *
from pulsarx._core.snappy_block cimport *
from pulsarx._core.status cimport *
from pulsarx._core.sticky_key cimport sticky_key_of_entry
from pulsarx._pycore.dispatch.chunk_assembler cimport ChunkAssembler
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.ledger.ledger_tail cimport LedgerSpan
from pulsarx._pycore.message.chunked_message cimport ChunkedMessage
from pulsarx._pycore.message.entry_bytes cimport entry_bytes_check

cdef enum:
    PLAIN_MAX = 65536            # bytes that a block may be said to hold
    PROPERTIES_MAX = 4096
    CLAIMED_WORDS_MAX = 1 << 18

# Sanitizers see both ends of what malloc gave out, and cost less than a page that is protected.
cdef bint sanitized = "PULSARX_SANITIZE" in os.environ or "PULSARX_FUZZ" in os.environ
cdef size_t lie = 0


def lie_about_sizes(size_t more):
    """Plants a bug: from here on decoders are told of so many bytes that are not there."""
    global lie
    lie = more


cdef class Exact:
    """A copy of bytes, with nothing readable behind it."""
    cdef bytes data
    cdef uint8_t* at
    cdef uint32_t size

    def __cinit__(self, bytes data) -> None:
        self.data = data
        self.size = <uint32_t>(len(data) + lie)
        if sanitized:
            self.at = <uint8_t*>malloc(len(data))
            memcpy(self.at, <const char*>data, len(data))
        else:
            self.at = guarded_bytes(data)

    def __dealloc__(self) -> None:
        if sanitized:
            free(self.at)
        elif self.at != NULL:
            free_guarded_bytes(self.at, self.data)

    cdef bint holds(self, const uint8_t* at, size_t size) except -1:
        """Whether a part of it that a decoder found lies in it."""
        return size == 0 or (self.at <= at and at + size <= self.at + self.size)


cdef uint32_t u32_at(const uint8_t* at) noexcept:
    cdef uint32_t value = 0
    memcpy(&value, at, 4)
    return value


cdef uint64_t u64_at(const uint8_t* at) noexcept:
    cdef uint64_t value = 0
    memcpy(&value, at, 8)
    return value


cdef void put_u32(uint8_t* at, uint32_t value) noexcept:
    memcpy(at, &value, 4)


cdef uint32_t checksum_around(uint32_t seed, const uint8_t* data, size_t hole,
                              size_t size) noexcept:
    """The checksum of data without the four bytes at hole, where it is to stand."""
    return crc32c(crc32c(seed, data, hole), data + hole + 4, size - hole - 4)


cdef bytes filled(bytes data, size_t size):
    """As many bytes, zeros behind those that are given."""
    return data[:size].ljust(size, b"\0")


cdef int check_status(int status, tuple among) except -1:
    assert status in among, f"status {status}"
    return 0


# Entries ------------------------------------------------------------------------------------------


def fuzz_entry_frame(bytes data):
    cdef Exact frame = Exact(filled(data, ENTRY_FRAME_SIZE))
    cdef uint32_t seed = <uint32_t>len(data)
    cdef EntryFrame found
    cdef uint8_t again[ENTRY_FRAME_SIZE]
    cdef int status = entry_frame_decode(frame.at, seed, 4096, &found)
    check_status(status, (STATUS_OK, STATUS_END, STATUS_CORRUPT))
    put_u32(frame.at + 4, crc32c(crc32c(crc32c_u64(seed, 4096), frame.at, 4), frame.at + 8, 56))
    if entry_frame_decode(frame.at, seed, 4096, &found) != STATUS_OK:
        return
    assert found.message_count >= 1 and found.entry_size <= ENTRY_SIZE_MAX
    assert entry_frame_place_holds(&found)
    assert entry_frame_decode(frame.at, seed, 4104, &found) == STATUS_CORRUPT, "another offset"
    assert entry_frame_decode(frame.at, seed, 4096, &found) == STATUS_OK
    entry_frame_encode(&found, seed, 4096, again)
    assert again[:ENTRY_FRAME_SIZE] == frame.at[:ENTRY_FRAME_SIZE], "written anew"


cdef list properties_of(const uint8_t* data, uint32_t size, uint32_t field):
    cdef ByteReader reader
    cdef PropertyView found
    cdef list properties = []
    byte_reader_start(&reader, data, size)
    while property_next(&reader, field, &found) == STATUS_OK:
        properties.append((found.key[:found.key_size], found.value[:found.value_size]))
    return properties


cdef PropertyView* views_of(list properties) except NULL:
    """For the caller to free, while the properties are kept."""
    cdef PropertyView* views = <PropertyView*>calloc(len(properties) + 1, sizeof(PropertyView))
    cdef int at
    for at in range(len(properties)):
        key, value = properties[at]
        views[at].key = <const uint8_t*><const char*>key
        views[at].value = <const uint8_t*><const char*>value
        views[at].key_size = <uint32_t>len(key)
        views[at].value_size = <uint32_t>len(value)
    return views


cdef tuple metadata_shown(const MessageMetadata* found, const uint8_t* data, uint32_t size):
    # What encode takes as bytes is not compared, nor a flag that a broken property sets, too.
    cdef uint32_t written = ~<uint32_t>(
        METADATA_UUID | METADATA_ENCRYPTED | METADATA_REPLICATE_TO | METADATA_PROPERTIES
        | METADATA_MARKER)
    return (
        found.flags & written, found.compression, found.uncompressed_size, found.message_count,
        found.sequence_id, found.highest_sequence_id, found.publish_time_ms, found.event_time_ms,
        found.deliver_at_ms, found.producer_name[:found.producer_name_size],
        found.partition_key[:found.partition_key_size],
        found.ordering_key[:found.ordering_key_size],
        found.schema_version[:found.schema_version_size], properties_of(data, size, 4),
    )


cdef int check_metadata(Exact whole, const uint8_t* data, uint32_t size,
                        MessageMetadata* found) except -1:
    """Of what was decoded: all of it lies in the bytes, and it is read again as it is written."""
    cdef PropertyView* views = NULL
    cdef ByteWriter writer
    cdef MessageMetadata again
    cdef uint8_t* room
    cdef uint32_t written
    cdef const uint8_t* field = NULL
    cdef uint32_t field_size = 0
    cdef ByteReader reader
    assert whole.holds(found.producer_name, found.producer_name_size)
    assert whole.holds(found.partition_key, found.partition_key_size)
    assert whole.holds(found.ordering_key, found.ordering_key_size)
    assert whole.holds(found.schema_version, found.schema_version_size)
    if found.flags & METADATA_UUID:
        assert whole.holds(found.uuid, found.uuid_size)
    byte_reader_start(&reader, data, size)
    while replicate_to_next(&reader, &field, &field_size) == STATUS_OK:
        assert whole.holds(field, field_size)
    shown = metadata_shown(found, data, size)
    properties = shown[len(shown) - 1]
    if len(properties) > PROPERTIES_MAX:
        return 0
    found.flags &= ~<uint32_t>(METADATA_UUID | METADATA_ENCRYPTED | METADATA_REPLICATE_TO)
    views = views_of(properties)
    try:
        found.properties = views
        found.property_count = len(properties)
        found.encryption_size = found.replicate_to_size = 0
        written = message_metadata_size(found)
        room = <uint8_t*>malloc(written)
        try:
            byte_writer_start(&writer, room, written)
            message_metadata_encode(found, &writer)
            assert writer.at == writer.end, "another size than was said"
            assert message_metadata_decode(room, written, &again) == STATUS_OK
            other = metadata_shown(&again, room, written)
            assert other == shown, (other, shown)
        finally:
            free(room)
    finally:
        free(views)
    return 0


def fuzz_message_metadata(bytes data):
    cdef Exact encoded = Exact(data)
    cdef MessageMetadata found
    cdef int status = message_metadata_decode(encoded.at, encoded.size, &found)
    if status != STATUS_OK:
        check_status(status, (STATUS_CORRUPT, STATUS_TRUNCATED))
        return
    sticky_key_of_entry(&found)
    check_metadata(encoded, encoded.at, encoded.size, &found)


cdef tuple single_shown(const SingleMetadata* found, const uint8_t* data, uint32_t size):
    return (
        found.flags & ~<uint32_t>METADATA_PROPERTIES, found.payload_size, found.event_time_ms,
        found.sequence_id, found.partition_key[:found.partition_key_size],
        found.ordering_key[:found.ordering_key_size], properties_of(data, size, 1),
    )


def fuzz_single_metadata(bytes data):
    cdef Exact encoded = Exact(data)
    cdef SingleMetadata found, again
    cdef ByteWriter writer
    cdef PropertyView* views
    cdef uint8_t* room
    cdef uint32_t written
    cdef int status = single_metadata_decode(encoded.at, encoded.size, &found)
    if status != STATUS_OK:
        check_status(status, (STATUS_CORRUPT, STATUS_TRUNCATED))
        return
    assert encoded.holds(found.partition_key, found.partition_key_size)
    assert encoded.holds(found.ordering_key, found.ordering_key_size)
    shown = single_shown(&found, encoded.at, encoded.size)
    properties = shown[len(shown) - 1]
    # What is counted may be no property: who reads them all is told.
    assert len(properties) <= found.property_count
    found.property_count = <uint32_t>len(properties)
    views = views_of(properties)
    found.properties = views
    written = single_metadata_size(&found)
    room = <uint8_t*>malloc(written)
    try:
        byte_writer_start(&writer, room, written)
        single_metadata_encode(&found, &writer)
        assert writer.at == writer.end, "another size than was said"
        assert single_metadata_decode(room, written, &again) == STATUS_OK
        assert single_shown(&again, room, written) == shown, "written anew"
    finally:
        free(room)
        free(views)


cdef int check_batch(Exact entry, EntryParts* parts) except -1:
    """The walks of a batch that is not compressed agree, and stay in it."""
    cdef BatchMessage message, plain
    cdef SingleMetadata single
    cdef uint32_t at = 0, plain_at, count = 0
    cdef bint whole = True
    cdef int status, told
    while True:
        plain_at = at
        memset(&plain, 0, sizeof(plain))
        told = batch_decode_plain(parts.payload, parts.payload_size, &plain_at, &plain)
        status = batch_decode_next(parts.payload, parts.payload_size, &at, &message)
        if told:
            assert status == STATUS_OK and at == plain_at, "the plain way takes what the other not"
            assert message.payload == plain.payload and message.flags == plain.flags
            assert message.payload_size == plain.payload_size
        if status != STATUS_OK:
            break
        count += 1
        assert entry.holds(message.payload, message.payload_size)
        assert entry.holds(message.encoded_metadata, message.encoded_metadata_size)
        status = single_metadata_decode(message.encoded_metadata, message.encoded_metadata_size,
                                        &single)
        if status != STATUS_OK:
            whole = False
        else:
            assert single.payload_size == message.payload_size
            assert single.flags & ~<uint32_t>METADATA_PROPERTIES == (
                message.flags & ~<uint32_t>METADATA_PROPERTIES), "flags of a message"
    check_status(status, (STATUS_END, STATUS_CORRUPT, STATUS_TRUNCATED))
    told = entry_check(parts, parts.metadata.message_count)
    if told == STATUS_OK:
        assert status == STATUS_END and count == parts.metadata.message_count, "another count"
    elif whole and status == STATUS_END:
        assert count != parts.metadata.message_count, "a whole batch is refused"
    return 0


def fuzz_entry(bytes data):
    cdef bytes summed = data
    cdef Exact entry
    cdef EntryParts parts
    cdef EntryFrame frame
    cdef int status
    if data[:2] == b"\x0e\x01" and len(data) >= 6:
        rest = data[6:]
        checksum = crc32c(0, <const uint8_t*><const char*>rest, len(rest))
        summed = data[:2] + checksum.to_bytes(4, "big") + rest
    entry = Exact(data)
    status = entry_decode(entry.at, entry.size, True, &parts)
    check_status(status, (STATUS_OK, STATUS_CORRUPT, STATUS_TRUNCATED))
    entry = Exact(summed)
    status = entry_decode(entry.at, entry.size, True, &parts)
    try:
        entry_bytes_check(entry.at, entry.size, &frame, &parts)
        assert status == STATUS_OK and frame.entry_size == entry.size
    except errors.CorruptDataError:
        pass
    if status != STATUS_OK:
        check_status(status, (STATUS_CORRUPT, STATUS_TRUNCATED))
        return
    assert entry.holds(parts.payload, parts.payload_size)
    assert entry.holds(parts.encoded_metadata, parts.encoded_metadata_size)
    if parts.metadata.flags & METADATA_BATCH and not parts.metadata.compression and (
            not parts.metadata.flags & METADATA_ENCRYPTED):
        check_batch(entry, &parts)
    check_metadata(entry, parts.encoded_metadata, parts.encoded_metadata_size, &parts.metadata)


def fuzz_compacted_entry(bytes data):
    cdef Exact entry = Exact(data)
    cdef CompactedPlace place
    cdef bytes again
    cdef int status = compacted_entry_decode(entry.at, entry.size, &place)
    if status != STATUS_OK:
        check_status(status, (STATUS_CORRUPT,))
        return
    assert entry.size > COMPACTED_HEADER_SIZE and place.message_count >= 1
    again = bytes(bytearray(data))
    compacted_entry_encode(&place, <uint8_t*><char*>again, <uint32_t>len(again))
    assert again[8:36] == data[8:36] and again[40:] == data[40:], "written anew"


# Chunks -------------------------------------------------------------------------------------------


cdef class FakeReader:
    """What the assembler asks of a reader: the entry read last, and where it was."""
    cdef LedgerReader reader
    cdef LedgerSpan span

    def __cinit__(self) -> None:
        self.reader = LedgerReader.__new__(LedgerReader)
        self.span = LedgerSpan.__new__(LedgerSpan)
        self.reader.span = self.span


cdef struct SentChunk:
    uint64_t ledger_id
    uint64_t message
    uint32_t chunk_id
    uint32_t chunk_count
    uint32_t chunked_size
    uint32_t size


def fuzz_chunks(bytes data):
    """Each four bytes are a chunk that is read: what of it is new, its number, size and claims."""
    cdef ChunkAssembler assembler = ChunkAssembler(None, None, None)
    cdef FakeReader fake = FakeReader()
    cdef SentChunk[100] places
    cdef SentChunk* sent
    cdef EntryParts parts
    cdef ChunkedMessage made
    cdef bytes uuid, payload
    cdef list kept = []              # uuid and payload of each place
    cdef uint64_t ledger_id = 1, message = 0
    cdef int at
    for at in range(0, min(len(data) - 3, 400), 4):
        if data[at] & 0x40 and kept:
            number = data[at + 1] % len(kept)        # one that was read before
        else:
            number = len(kept)
            ledger_id += data[at] >> 7
            message += 1
            sent = &places[<int>number]
            sent.ledger_id, sent.message = ledger_id, message
            sent.chunk_count = (data[at + 1] >> 3 & 7) + 2
            sent.chunk_id = (data[at + 1] & 7) % sent.chunk_count
            sent.chunked_size, sent.size = data[at + 3], data[at + 2] & 0x3F
            kept.append((b"u%d" % (data[at] & 3), bytes([at & 0xFF]) * sent.size))
        sent = &places[<int>number]
        uuid, payload = kept[number]
        memset(&parts, 0, sizeof(parts))
        parts.metadata.uuid = <const uint8_t*><const char*>uuid
        parts.metadata.uuid_size = <uint32_t>len(uuid)
        parts.metadata.chunk_id, parts.metadata.chunk_count = sent.chunk_id, sent.chunk_count
        parts.metadata.chunked_size = sent.chunked_size
        parts.payload, parts.payload_size = <const uint8_t*><const char*>payload, sent.size
        memset(&fake.reader.c_frame, 0, sizeof(EntryFrame))
        fake.span.ledger_id = sent.ledger_id
        fake.reader.c_frame.first_message = sent.message
        fake.reader.c_frame.entry_id = sent.message
        fake.reader.c_frame.message_count = 1
        fake.reader.c_frame.entry_size = sent.size
        fake.reader.c_entry = parts.payload
        if data[at] & 0x20:
            assembler.clear()
        made = assembler.read(fake.reader, &parts, at)
        if made is None:
            continue
        assert made.is_whole() and made.uuid == uuid, "a message that is not whole"
        pieces = []
        for number in range(made.count):
            place = <int>(made.chunks[<int>number].message - 1)
            assert made.chunks[<int>number].ledger_id == places[<int>place].ledger_id
            assert places[<int>place].chunk_id == number and kept[place][0] == uuid
            pieces.append(kept[place][1])
        assert made.stored() == b"".join(pieces), "the chunks of another message"
        try:
            assert len(made.join()) == made.chunked_size
        except errors.CorruptDataError:
            assert len(b"".join(pieces)) != made.chunked_size


# Cursors ------------------------------------------------------------------------------------------


def fuzz_cursor_header(bytes data):
    cdef Exact block = Exact(filled(data, CURSOR_HEADER_SIZE))
    cdef CursorHeader found
    cdef uint8_t again[CURSOR_HEADER_SIZE]
    among = (STATUS_OK, STATUS_UNBORN, STATUS_FOREIGN, STATUS_UNSUPPORTED, STATUS_CORRUPT,
             STATUS_TRUNCATED)
    check_status(cursor_header_decode(block.at, len(data), &found), among)
    put_u32(block.at + 12, checksum_around(0, block.at, 12, CURSOR_HEADER_SIZE))
    if cursor_header_decode(block.at, 1 << 20, &found) != STATUS_OK:
        return
    assert CURSOR_HEADER_SIZE + found.snapshot_size <= 1 << 20
    assert found.tail_size <= CURSOR_TAIL_SIZE_MAX
    cursor_header_encode(&found, block.at + CURSOR_LABEL_OFFSET, CURSOR_LABEL_SIZE, again)
    assert again[:CURSOR_HEADER_SIZE] == block.at[:CURSOR_HEADER_SIZE], "written anew"


cdef int check_state(CursorState* state) except -1:
    """What a state is encoded as is decoded to the same bytes."""
    cdef uint64_t size = cursor_state_size(state)
    cdef CursorState again
    cdef uint8_t* room = <uint8_t*>malloc(size)
    cdef uint8_t* other = <uint8_t*>malloc(size)
    cursor_state_init(&again)
    try:
        cursor_state_encode(state, room, size)
        assert cursor_state_decode(&again, room, size) == STATUS_OK
        assert cursor_state_size(&again) == size
        cursor_state_encode(&again, other, size)
        assert room[:size] == other[:size], "written anew"
    finally:
        cursor_state_free(&again)
        free(room)
        free(other)
    return 0


cdef bint claims_little(bytes data) except -1:
    """Whether bitmaps of a snapshot take some MiB at most: few bytes may say that billions of
    messages are acknowledged, which takes a bit for each of them, and all of the fuzzer's time."""
    cdef ByteReader reader
    cdef uint64_t count = 0, token = 0, words = 0
    byte_reader_start(&reader, <const uint8_t*><const char*>data, len(data))
    if byte_reader_varint(&reader, &token) or byte_reader_varint(&reader, &count):
        return True
    while count and not byte_reader_varint(&reader, &token) and (
            not byte_reader_varint(&reader, &token)):
        while not byte_reader_varint(&reader, &token) and token:
            words += token >> 2
            if token >> 2 > CLAIMED_WORDS_MAX or words > CLAIMED_WORDS_MAX:
                return False
            if token & 3 == 3:
                if (token >> 2) * 8 > <uint64_t>(reader.end - reader.at):
                    return True
                reader.at += (token >> 2) * 8
        count -= 1
    return True


def fuzz_cursor_snapshot(bytes data):
    cdef Exact encoded = Exact(data)
    cdef CursorState state
    cdef uint64_t ledger_id = 0, message = 0
    if not claims_little(data):
        return
    cursor_state_init(&state)
    try:
        status = cursor_state_decode(&state, encoded.at, encoded.size)
        if status == STATUS_OK:
            cursor_state_mark_delete(&state, &ledger_id, &message)
            check_state(&state)
        else:
            check_status(status, (STATUS_CORRUPT, STATUS_TRUNCATED, STATUS_NO_MEMORY))
    finally:
        cursor_state_free(&state)


def fuzz_cursor_tail(bytes data):
    """Slots of 16 bytes, read as they are and with checksums that hold; what holds is applied."""
    cdef Exact slots = Exact(data[:len(data) // 16 * 16])
    cdef uint64_t count = len(data) // 16
    cdef CursorHeader header
    cdef CursorTail tail
    cdef CursorRecord record
    cdef CursorState state
    cdef RestoredMessages restored
    cdef uint64_t slot, redelivered = 0
    cdef uint32_t seed
    memset(&header, 0, sizeof(header))
    header.base_ledger_id = 7
    seed = cursor_seed(&header)
    cursor_state_init(&state)
    memset(&restored, 0, sizeof(restored))
    try:
        for repaired in range(2):
            cursor_tail_start(&tail, &header, <uint64_t*>slots.at, count)
            for slot in range(count):
                if repaired:
                    put_u32(slots.at + 16 * slot + 12, crc32c_u64(
                        crc32c_u64(seed, u64_at(slots.at + 16 * slot)),
                        u32_at(slots.at + 16 * slot + 8) | slot << 32))
                status = cursor_tail_read(&tail, slot, &record)
                if status != STATUS_OK:
                    check_status(status, (STATUS_END, STATUS_CORRUPT))
                    continue
                assert 7 <= record.ledger_id < 7 + CURSOR_LEDGER_SPAN
                assert record.first < CURSOR_MESSAGE_END
                redelivered += record.count if record.kind == CURSOR_REDELIVERED else 0
                # It takes a bit for each message below the last one.
                if record.first + record.count < 1 << 18:
                    check_status(cursor_state_apply(&state, &record), (
                        STATUS_OK, STATUS_DUPLICATE, STATUS_OUT_OF_RANGE, STATUS_NO_MEMORY))
        # Sixteen bytes may tell of 65,536 messages.
        if redelivered < 1 << 14:
            check_status(redeliveries_decode(NULL, 0, &tail, &restored), (
                STATUS_OK, STATUS_NO_MEMORY))
        check_state(&state)
    finally:
        cursor_state_free(&state)
        restored_messages_free(&restored)


def fuzz_cursor_sections(bytes data):
    cdef Exact section = Exact(data[1:])
    cdef uint32_t tag = CURSOR_SECTION_DUE if data[:1] > b"\x7f" else CURSOR_SECTION_REDELIVERY
    cdef RestoredMessages found, again
    cdef SectionWriter writer
    cdef uint64_t at
    cdef int status
    memset(&found, 0, sizeof(found))
    memset(&again, 0, sizeof(again))
    section_writer_start(&writer, tag)
    try:
        status = section_check(tag, section.at, section.size)
        check_status(status, (STATUS_OK, STATUS_CORRUPT, STATUS_TRUNCATED))
        assert section_decode(tag, section.at, section.size, &found) == status
        if status != STATUS_OK:
            return
        for at in range(found.count):
            assert section_writer_add(&writer, found.messages[at].ledger_id,
                                      found.messages[at].message,
                                      found.messages[at].value) == STATUS_OK
        assert section_writer_end(&writer) == STATUS_OK
        assert section_decode(tag, writer.data, writer.size, &again) == STATUS_OK
        assert again.count == found.count, "written anew"
        for at in range(found.count):
            assert found.messages[at].ledger_id == again.messages[at].ledger_id
            assert found.messages[at].message == again.messages[at].message
            assert found.messages[at].value == again.messages[at].value, "written anew"
    finally:
        section_writer_free(&writer)
        restored_messages_free(&found)
        restored_messages_free(&again)


# Ledgers ------------------------------------------------------------------------------------------


def fuzz_ledger_name(bytes data):
    cdef Exact record = Exact(filled(data, LEDGER_NAME_RECORD_SIZE))
    cdef LedgerName found
    cdef uint8_t again[LEDGER_NAME_RECORD_SIZE]
    among = (STATUS_OK, STATUS_UNBORN, STATUS_CORRUPT)
    check_status(ledger_name_decode(record.at, &found), among)
    put_u32(record.at + 8, checksum_around(0, record.at, 8, LEDGER_NAME_RECORD_SIZE))
    if ledger_name_decode(record.at, &found) != STATUS_OK:
        return
    assert 1 <= found.name_size <= LEDGER_NAME_SIZE_MAX
    assert record.holds(found.name, found.name_size)
    ledger_name_encode(&found, again)
    # Behind the name the checksum covers whatever is there.
    size = LEDGER_NAME_RECORD_SIZE - LEDGER_NAME_SIZE_MAX + found.name_size
    assert again[12:size] == record.at[12:size], "written anew"


def fuzz_ledger_header(bytes data):
    """The block, as it is and with checksums that hold: of both copies, seal and cut."""
    cdef Exact block = Exact(filled(data, LEDGER_HEADER_SIZE))
    cdef LedgerHeader found
    cdef uint32_t seed
    among = (STATUS_OK, STATUS_FOREIGN, STATUS_UNSUPPORTED, STATUS_UNBORN, STATUS_TRUNCATED,
             STATUS_CORRUPT)
    check_status(ledger_header_decode(block.at, len(data), &found), among)
    for at in (0, LEDGER_HEADER_COPY_OFFSET):
        put_u32(block.at + <int>at + 12, checksum_around(0, block.at + <int>at, 12,
                                                         LEDGER_SECTOR_SIZE))
    seed = crc32c(0, block.at + 16, 16)
    for at in (LEDGER_SEAL_OFFSET, LEDGER_CUT_OFFSET):
        put_u32(block.at + <int>at + 8, checksum_around(seed, block.at + <int>at, 8,
                                                        LEDGER_SECTOR_SIZE))
    status = ledger_header_decode(block.at, 1 << 20, &found)
    check_status(status, among)
    if status == STATUS_OK and found.sealed:
        assert LEDGER_HEADER_SIZE <= found.seal_end


cdef void sum_frames(uint8_t* base, uint64_t size, uint32_t seed) noexcept:
    """Give frames, and the entries behind them, checksums that hold, as far as they join up."""
    cdef uint64_t at = LEDGER_HEADER_SIZE
    cdef uint64_t entry_size
    cdef uint32_t checksum
    while at + ENTRY_FRAME_SIZE <= size:
        put_u32(base + at + 4, crc32c(
            crc32c(crc32c_u64(seed, at), base + at, 4), base + at + 8, 56))
        entry_size = u32_at(base + at)
        if entry_size > size - at - ENTRY_FRAME_SIZE or entry_size < 6:
            return
        checksum = crc32c(0, base + at + 70, entry_size - 6)
        base[at + 64] = 0x0E
        base[at + 65] = 0x01
        base[at + 66] = <uint8_t>(checksum >> 24)
        base[at + 67] = <uint8_t>(checksum >> 16)
        base[at + 68] = <uint8_t>(checksum >> 8)
        base[at + 69] = <uint8_t>checksum
        at += entry_frame_span(<uint32_t>entry_size)


cdef int read_all(const LedgerRead* read, uint64_t end, const LedgerIndex* index,
                  uint64_t* entries) except -1:
    """Every entry, and what can be found; entries: those that are whole."""
    cdef EntryFrame frame
    cdef const uint8_t* entry = NULL
    cdef uint64_t offset = LEDGER_HEADER_SIZE
    cdef uint64_t next_offset, found = 0
    cdef LedgerGap gap
    cdef int kind, status
    entries[0] = 0
    while True:
        next_offset = 0
        status = ledger_read_entry(read, offset, end, &frame, &entry, &next_offset)
        if status == STATUS_OK:
            entries[0] += 1
            assert read.base <= entry and entry + frame.entry_size <= read.base + end
        elif status == STATUS_END:
            break
        else:
            check_status(status, (STATUS_CORRUPT, STATUS_TRUNCATED))
            if ledger_read_pass(read, offset, end, &next_offset) != STATUS_OK:
                break
        assert offset < next_offset <= end, "reading goes back"
        offset = next_offset
    for kind in (FIND_ENTRY, FIND_MESSAGE, FIND_PUBLISH_TIME):
        for value in (0, 1, 2, 1000, (1 << 63) - 1):
            memset(&gap, 0, sizeof(gap))
            status = ledger_read_find(read, kind, value, end, index, &found, &gap)
            check_status(status, (STATUS_OK, STATUS_END, STATUS_CORRUPT, STATUS_TRUNCATED))
            if status == STATUS_OK:
                assert LEDGER_HEADER_SIZE <= found < end, "found outside of the ledger"
    return 0


def fuzz_ledger_file(bytes data):
    """Two bytes say whether it is sealed and where it ends; what is behind the header follows."""
    cdef bytes body = data[2:2 + (1 << 16)]
    cdef Exact file = Exact(bytes(LEDGER_HEADER_SIZE) + body)
    cdef uint64_t size = len(file.data)
    cdef LedgerHeader header, found
    cdef LedgerFooter footer
    cdef LedgerRead read
    cdef LedgerIndex index
    cdef LedgerRecover* recover
    cdef LedgerPublished published
    cdef uint64_t entries = 0, records
    cdef uint8_t* at
    if len(data) < 2:
        return
    memset(&header, 0, sizeof(header))
    memset(&published, 0, sizeof(published))
    header.flags = data[0] & LEDGER_SYNC
    ledger_header_encode(&header, file.at)
    header.seed = crc32c(0, header.uuid, 16)
    if data[0] & 2 and size >= LEDGER_HEADER_SIZE + LEDGER_FOOTER_SIZE:
        header.footer_offset = size - LEDGER_FOOTER_SIZE
        if data[0] & 4:              # anywhere, also behind the end of the file
            header.footer_offset = u64_at(file.at + LEDGER_HEADER_SIZE)
        ledger_mark_encode(header.seed, False, LEDGER_HEADER_SIZE + 8 * <uint64_t>data[1],
                           header.footer_offset, file.at + LEDGER_SEAL_OFFSET)
    sum_frames(file.at, size, header.seed)
    if header.footer_offset and not data[0] & 4:
        at = file.at + header.footer_offset
        records = u64_at(at + 64) * INDEX_RECORD_SIZE + u32_at(at + 72) * <uint64_t>(
            LEDGER_DAMAGE_SIZE)
        if u64_at(at + 64) <= size and u64_at(at + 56) <= size and (
                records <= size - u64_at(at + 56)):
            put_u32(at + 76, crc32c(header.seed, file.at + u64_at(at + 56), records))
        put_u32(at + 8, checksum_around(header.seed, at, 8, LEDGER_FOOTER_SIZE))
    if ledger_header_decode(file.at, file.size, &found) != STATUS_OK:
        return
    read.base, read.mapped_size, read.seed = file.at, file.size, found.seed
    if found.sealed and ledger_footer_decode(file.at, file.size, &found, &footer) == STATUS_OK:
        assert footer.end <= size and footer.index_offset + INDEX_RECORD_SIZE * (
            footer.index_count) <= size
        ledger_index_map(&index, file.at + footer.index_offset, footer.index_count)
        read_all(&read, footer.end, &index, &entries)
    read_all(&read, file.size, NULL, &entries)
    recover = <LedgerRecover*>calloc(1, sizeof(LedgerRecover))
    try:
        status = ledger_recover_scan(recover, &found, False, file.at, file.size, &published)
        check_status(status, (STATUS_OK, STATUS_NO_MEMORY, STATUS_CORRUPT))
        if status == STATUS_OK:
            assert LEDGER_HEADER_SIZE <= recover.end <= size
            assert recover.damage_count <= LEDGER_DAMAGE_MAX
    finally:
        ledger_recover_free(recover)
        free(recover)


# Payloads -----------------------------------------------------------------------------------------


def fuzz_lz4_block(bytes data):
    fuzz_block(data, True)


def fuzz_snappy_block(bytes data):
    fuzz_block(data, False)


cdef int fuzz_block(bytes data, bint by_lz4) except -1:
    """The first two bytes say how many a block is to hold; and all of it is compressed."""
    cdef Exact block = Exact(data[2:])
    cdef Exact plain = Exact(data)
    cdef size_t size = int.from_bytes(data[:2], "little")
    cdef uint8_t* room = <uint8_t*>malloc(size)
    cdef uint8_t* packed = NULL
    cdef uint8_t* back = <uint8_t*>malloc(len(data))
    cdef uint16_t_pointer table = <uint16_t_pointer>malloc(2 * SNAPPY_TABLE_SIZE)
    cdef size_t bound
    try:
        if by_lz4:
            status = lz4_block_decompress(block.at, block.size, room, size)
            bound = lz4_block_bound(len(data))
        else:
            status = snappy_block_decompress(block.at, block.size, room, size)
            bound = snappy_block_bound(len(data))
        check_status(status, (STATUS_OK, STATUS_CORRUPT, STATUS_TOO_LARGE))
        packed = <uint8_t*>malloc(bound)
        if by_lz4:
            size = lz4_block_compress(plain.at, len(data), packed, bound)
            status = lz4_block_decompress(packed, size, back, len(data))
        else:
            size = snappy_block_compress(plain.at, len(data), packed, table)
            status = snappy_block_decompress(packed, size, back, len(data))
        assert size <= bound and status == STATUS_OK and back[:len(data)] == data, "another payload"
    finally:
        free(room)
        free(packed)
        free(back)
        free(table)
    return 0


ctypedef unsigned short* uint16_t_pointer


def json_object_line(bytes data):
    """The copy on one line; None: it is no object, or too deep."""
    cdef Exact payload = Exact(data)
    cdef uint8_t* copy = <uint8_t*>malloc(len(data))
    cdef int words = JSON_WORDS_NONE
    try:
        status = json_object_copy(payload.at, payload.size, copy, &words)
        check_status(status, (STATUS_OK, STATUS_CORRUPT, STATUS_TOO_LARGE))
        return copy[:len(data)] if status == STATUS_OK else None
    finally:
        free(copy)

def fuzz_selector(bytes data):
    """A selector, a zero, and the metadata of a message. What is compiled runs, and answers as it
    did before."""
    cdef SelectorProgram program
    cdef SelectorError error
    cdef SelectorMessage message
    cdef bint first = False
    cdef bint second = False
    text, _, metadata = data.partition(b"\0")
    cdef Exact source = Exact(text)
    cdef Exact encoded = Exact(metadata)
    status = selector_compile(source.at, source.size, &program, &error)
    check_status(status, (STATUS_OK, STATUS_CORRUPT))
    if status != STATUS_OK:
        assert 0 < error.expected < EXPECTED_COUNT and error.at <= source.size, "no place"
        return
    try:
        message.metadata = encoded.at
        message.metadata_size = encoded.size
        message.publish_time_ms = 1000
        for in_batch in (True, False):
            message.in_batch = in_batch
            status = selector_match(&program, &message, &first)
            check_status(status, (STATUS_OK, STATUS_CORRUPT, STATUS_TRUNCATED))
            if status == STATUS_OK:
                assert selector_match(&program, &message, &second) == STATUS_OK
                assert first == second, "another answer"
    finally:
        selector_free(&program)
