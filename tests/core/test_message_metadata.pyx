"""MessageMetadata and the entry around it: Pulsar's vectors, lenient and bounded decoding."""

import random

from seeds import scaled, seed_of

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from pulsarx._core.byte_reader cimport ByteReader, byte_reader_start
from pulsarx._core.byte_writer cimport ByteWriter, byte_writer_start
from pulsarx._core.message_metadata cimport *
from pulsarx._core.single_metadata cimport *
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_END, STATUS_OK, STATUS_TRUNCATED

SMALLEST = bytes.fromhex("0a0170" "1000" "1880d095ffbc31")
FULL = bytes.fromhex(
    "0a0170" "1007" "1808" "22060a016112" "0131" "32026b31" "4003" "48ac02" "5803"
    "60d209" "82010101" "880101" "92010101" "9801" + "ff" * 9 + "01" "c00109" "c80101" "f00101"
)
ENTRY = bytes.fromhex("0e01cf85822f0000000c") + SMALLEST + b"hello"
BROKER_METADATA = bytes.fromhex("0e02000000090881d095ffbc311029")


cdef bytes encoded(const MessageMetadata* metadata):
    cdef ByteWriter writer
    cdef uint8_t[512] room
    cdef uint32_t size = message_metadata_size(metadata)
    assert size <= 512
    byte_writer_start(&writer, room, size)
    message_metadata_encode(metadata, &writer)
    assert writer.at == writer.end
    return room[:size]


cdef dict shown(const MessageMetadata* metadata):
    return {
        "flags": metadata.flags, "compression": metadata.compression,
        "uncompressed_size": metadata.uncompressed_size, "message_count": metadata.message_count,
        "sequence_id": metadata.sequence_id, "highest": metadata.highest_sequence_id,
        "publish_time_ms": metadata.publish_time_ms, "event_time_ms": metadata.event_time_ms,
        "deliver_at_ms": metadata.deliver_at_ms, "property_count": metadata.property_count,
        "producer_name": metadata.producer_name[:metadata.producer_name_size],
        "key": metadata.partition_key[:metadata.partition_key_size],
        "ordering_key": metadata.ordering_key[:metadata.ordering_key_size],
        "schema_version": metadata.schema_version[:metadata.schema_version_size],
    }


def decoded(bytes data):
    cdef MessageMetadata metadata
    cdef uint8_t* copy = guarded_bytes(data)
    cdef int status
    status = message_metadata_decode(copy, len(data), &metadata)
    found = shown(&metadata) if status == STATUS_OK else None
    free_guarded_bytes(copy, data)
    return status, found


def taken_apart(bytes entry, bint verify=True):
    """(status, payload, checksum) of an entry behind which nothing may be read."""
    cdef EntryParts parts
    cdef uint8_t* copy = guarded_bytes(entry)
    cdef int status
    status = entry_decode(copy, len(entry), verify, &parts)
    found = (status, None, None)
    if status == STATUS_OK:
        checksum = parts.checksum if parts.has_checksum else None
        found = (status, parts.payload[:parts.payload_size], checksum)
    free_guarded_bytes(copy, entry)
    return found


def test_the_smallest_metadata_is_pulsars_vector():
    cdef MessageMetadata metadata
    memset(&metadata, 0, sizeof(metadata))
    metadata.producer_name = b"p"
    metadata.producer_name_size = 1
    metadata.publish_time_ms = 1700000000000
    metadata.message_count = 1
    assert encoded(&metadata) == SMALLEST


def test_what_says_how_a_payload_is_encrypted_stands_in_its_place():
    cdef MessageMetadata metadata
    cdef bytes fields = bytes.fromhex("6a060a016b12017b" "7a020102")
    memset(&metadata, 0, sizeof(metadata))
    metadata.producer_name = b"p"
    metadata.producer_name_size = 1
    metadata.message_count = 1
    metadata.encryption = fields
    metadata.encryption_size = len(fields)
    plain = encoded(&metadata)
    assert fields not in plain
    metadata.flags = METADATA_ENCRYPTED | METADATA_EVENT_TIME | METADATA_NULL_VALUE
    metadata.event_time_ms = 5
    written = encoded(&metadata)
    assert written == plain + bytes.fromhex("6005") + fields + bytes.fromhex("c80101")
    status, found = decoded(written)
    assert (status, found["flags"]) == (STATUS_OK, metadata.flags)
    assert decoded(written[:len(written) - 5])[0] == STATUS_TRUNCATED
    # A number is none of these fields.
    assert decoded(plain + bytes.fromhex("6801"))[1]["flags"] == 0


def test_where_a_message_is_to_be_replicated_to_stands_in_its_place():
    cdef MessageMetadata metadata
    cdef bytes fields = bytes.fromhex("3a0161" "3a026262")
    memset(&metadata, 0, sizeof(metadata))
    metadata.producer_name = b"p"
    metadata.producer_name_size = 1
    metadata.message_count = 1
    metadata.replicate_to = fields
    metadata.replicate_to_size = len(fields)
    plain = encoded(&metadata)
    assert fields not in plain
    metadata.flags = METADATA_REPLICATE_TO | METADATA_PARTITION_KEY | METADATA_EVENT_TIME
    metadata.partition_key = b"k"
    metadata.partition_key_size = 1
    metadata.event_time_ms = 5
    written = encoded(&metadata)
    assert written == plain + bytes.fromhex("32016b") + fields + bytes.fromhex("6005")
    assert replicate_to_fields(written) == (STATUS_END, [fields[:3], fields[3:]])
    assert replicate_to_fields(plain) == (STATUS_END, [])
    assert replicate_to_fields(written[:len(written) - 4]) == (STATUS_TRUNCATED, [fields[:3]])
    # A number is none of these fields.
    assert replicate_to_fields(plain + bytes.fromhex("3801")) == (STATUS_END, [])


def replicate_to_fields(bytes data):
    cdef ByteReader reader
    cdef const uint8_t* field = NULL
    cdef uint32_t size = 0
    cdef uint8_t* copy = guarded_bytes(data)
    cdef int status = STATUS_OK
    found = []
    byte_reader_start(&reader, copy, len(data))
    while True:
        status = replicate_to_next(&reader, &field, &size)
        if status != STATUS_OK:
            break
        found.append(field[:size])
    free_guarded_bytes(copy, data)
    return status, found


def test_all_fields_stand_in_ascending_order():
    cdef MessageMetadata metadata
    cdef PropertyView property = PropertyView(b"a", b"1", 1, 1)
    memset(&metadata, 0, sizeof(metadata))
    metadata.flags = (METADATA_PARTITION_KEY | METADATA_ORDERING_KEY | METADATA_EVENT_TIME
                      | METADATA_KEY_BASE64 | METADATA_NULL_VALUE | METADATA_NULL_KEY
                      | METADATA_BATCH | METADATA_DELIVER_AT | METADATA_HIGHEST_SEQUENCE
                      | METADATA_SCHEMA_VERSION)
    metadata.producer_name = b"p"
    metadata.producer_name_size = 1
    metadata.sequence_id = 7
    metadata.publish_time_ms = 8
    metadata.properties = &property
    metadata.property_count = 1
    metadata.partition_key = b"k1"
    metadata.partition_key_size = 2
    metadata.compression = 3
    metadata.uncompressed_size = 300
    metadata.message_count = 3
    metadata.event_time_ms = 1234
    metadata.schema_version = b"\x01"
    metadata.schema_version_size = 1
    metadata.ordering_key = b"\x01"
    metadata.ordering_key_size = 1
    metadata.deliver_at_ms = -1
    metadata.highest_sequence_id = 9
    assert encoded(&metadata) == FULL


def test_all_fields_come_back():
    status, found = decoded(FULL)
    assert status == STATUS_OK
    flags = found.pop("flags")
    assert flags & METADATA_BATCH and flags & METADATA_PROPERTIES and flags & METADATA_NULL_KEY
    assert not flags & (METADATA_UUID | METADATA_MARKER)
    assert found == {
        "compression": 3, "uncompressed_size": 300, "message_count": 3, "sequence_id": 7,
        "highest": 9, "publish_time_ms": 8, "event_time_ms": 1234, "deliver_at_ms": -1,
        "property_count": 1, "producer_name": b"p", "key": b"k1", "ordering_key": b"\x01",
        "schema_version": b"\x01",
    }


def test_a_plain_message_counts_as_one():
    status, found = decoded(SMALLEST)
    assert (status, found["message_count"], found["flags"]) == (STATUS_OK, 1, 0)


def test_presence_of_the_count_makes_a_batch_even_of_one():
    status, found = decoded(SMALLEST + bytes.fromhex("5801"))
    assert (status, found["message_count"], found["flags"]) == (STATUS_OK, 1, METADATA_BATCH)


def test_a_count_of_none_or_negative_is_corrupt():
    assert decoded(SMALLEST + bytes.fromhex("5800"))[0] == STATUS_CORRUPT
    assert decoded(SMALLEST + b"\x58" + b"\xff" * 9 + b"\x01")[0] == STATUS_CORRUPT


def test_chunks_and_markers_are_noticed():
    chunk = ["d2010175", "d80102", "e00102", "e80100"]
    for field, flag in [*((one, METADATA_UUID) for one in chunk), ("a00114", METADATA_MARKER)]:
        status, found = decoded(SMALLEST + bytes.fromhex(field))
        assert (status, found["flags"]) == (STATUS_OK, flag)


cdef tuple chunk_of(const MessageMetadata* metadata):
    return (metadata.uuid[:metadata.uuid_size], metadata.chunk_count, metadata.chunked_size,
            metadata.chunk_id)


def test_what_a_chunk_says_is_pulsars_vector():
    cdef MessageMetadata metadata
    cdef bytes uuid = b"p-7"
    cdef bytes data = SMALLEST + bytes.fromhex("d20103702d37" "d80103" "e001e807" "e80102")
    assert message_metadata_decode(data, len(data), &metadata) == STATUS_OK
    assert chunk_of(&metadata) == (uuid, 3, 1000, 2)
    assert encoded(&metadata) == data


def test_numbers_of_chunks_beyond_int32_are_no_number_of_one():
    cdef MessageMetadata metadata
    cdef bytes data
    for field in ("d801", "e001", "e801"):
        for value in (b"\xff" * 9 + b"\x01", b"\x80\x80\x80\x80\x08"):
            data = SMALLEST + bytes.fromhex(field) + value
            assert message_metadata_decode(data, len(data), &metadata) == STATUS_OK
            assert max(chunk_of(&metadata)[1:]) == 0x80000000


def test_each_required_field_is_required():
    for name in ["0a0170" "1000", "0a0170" "1800", "1000" "1800", ""]:
        assert decoded(bytes.fromhex(name))[0] == STATUS_CORRUPT


def test_unknown_fields_are_passed_over():
    unknown = bytes.fromhex(
        "2a0178" "3a0178" "b00105" "a9020000000000000000" "ad0200000000" "ab020801ac02")
    status, found = decoded(unknown + SMALLEST + unknown)
    assert (status, found["producer_name"], found["flags"]) == (STATUS_OK, b"p", 0)


def test_an_entry_is_pulsars_vector():
    assert taken_apart(ENTRY) == (STATUS_OK, b"hello", 0xCF85822F)


def test_an_entry_without_checksum():
    assert taken_apart(ENTRY[6:]) == (STATUS_OK, b"hello", None)


def test_what_a_broker_puts_in_front_is_passed_over():
    assert taken_apart(BROKER_METADATA + ENTRY) == (STATUS_OK, b"hello", 0xCF85822F)


def test_any_changed_bit_behind_the_checksum_is_noticed():
    for index in range(2, len(ENTRY)):
        for bit in range(8):
            damaged = bytearray(ENTRY)
            damaged[index] ^= 1 << bit
            assert taken_apart(bytes(damaged))[0] == STATUS_CORRUPT


def test_a_wrong_checksum_passes_when_it_is_not_asked_for():
    assert taken_apart(ENTRY[:2] + bytes(4) + ENTRY[6:], False) == (STATUS_OK, b"hello", 0)


def test_every_truncation_is_noticed():
    for entry in [ENTRY, BROKER_METADATA + ENTRY]:
        for cut in range(len(entry)):
            assert taken_apart(entry[:cut])[0] in (STATUS_CORRUPT, STATUS_TRUNCATED)
            taken_apart(entry[:cut], False)


def test_claimed_sizes_are_not_believed():
    for size in [0x0D, 0x11, 0x100, 0x04000001, 0x7FFFFFFF, 0xFFFFFFFF]:
        entry = ENTRY[:6] + size.to_bytes(4, "big") + ENTRY[10:]
        status, payload, _ = taken_apart(entry, False)
        assert status in (STATUS_CORRUPT, STATUS_TRUNCATED), (size, payload)


def test_random_bytes_never_read_past_the_end():
    source = random.Random(seed_of(12))
    for _ in range(scaled(20000)):
        decoded(source.randbytes(source.randrange(60)))
        damaged = bytearray(FULL)
        damaged[source.randrange(len(FULL))] = source.randrange(256)
        decoded(bytes(damaged))
        taken_apart(bytes.fromhex("0e01") + source.randbytes(source.randrange(60)), False)


def test_a_walk_over_fields_ends_where_the_bytes_do():
    cdef ByteReader reader
    cdef const uint8_t* field = NULL
    cdef uint32_t size = 0
    for data, status in (
        (b"", STATUS_END), (b"\x80", STATUS_TRUNCATED), (b"\x12\x05ab", STATUS_TRUNCATED),
        (b"\x12\x01a", STATUS_END), (b"\x12\x01a\x3a\x01b", STATUS_OK),
    ):
        byte_reader_start(&reader, data, len(data))
        assert replicate_to_next(&reader, &field, &size) == status, data
    assert field[:size] == b"\x3a\x01b"
