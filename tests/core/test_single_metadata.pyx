"""SingleMessageMetadata: bytes as protobuf writes them, and decoding of what others wrote."""

import random

from seeds import scaled, seed_of

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx._core.byte_reader cimport ByteReader, byte_reader_start
from pulsarx._core.byte_writer cimport ByteWriter, byte_writer_start
from pulsarx._core.single_metadata cimport *
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_END, STATUS_OK, STATUS_TRUNCATED

FULL = bytes.fromhex(
    "0a060a01611201310a060a001202c3a9"  # properties a=1 and ""=é
    "12026b31" "1803" "2001" "28d209" "3001" "3a036f7264" "4007" "4801" "5001"
)


cdef bytes encoded(const SingleMetadata* metadata):
    cdef ByteWriter writer
    cdef uint8_t[512] room
    cdef uint32_t size = single_metadata_size(metadata)
    assert size <= 512
    byte_writer_start(&writer, room, size)
    single_metadata_encode(metadata, &writer)
    assert writer.at == writer.end
    return room[:size]


def decoded(bytes data):
    """(status, dict) of data behind which nothing may be read."""
    cdef SingleMetadata metadata
    cdef PropertyView view
    cdef ByteReader reader
    cdef uint8_t* copy = guarded_bytes(data)
    cdef int status
    status = single_metadata_decode(copy, len(data), &metadata)
    if status != STATUS_OK:
        free_guarded_bytes(copy, data)
        return status, None
    found = {
        "flags": metadata.flags, "payload_size": metadata.payload_size,
        "sequence_id": metadata.sequence_id, "event_time_ms": metadata.event_time_ms,
        "property_count": metadata.property_count,
        "key": metadata.partition_key[:metadata.partition_key_size],
        "ordering_key": metadata.ordering_key[:metadata.ordering_key_size],
        "properties": [],
    }
    byte_reader_start(&reader, copy, len(data))
    while True:
        status = property_next(&reader, 1, &view)
        if status != STATUS_OK:
            break
        found["properties"].append((view.key[:view.key_size], view.value[:view.value_size]))
    free_guarded_bytes(copy, data)
    return (STATUS_OK if status == STATUS_END else status), found


def test_the_smallest_header():
    cdef SingleMetadata metadata
    memset(&metadata, 0, sizeof(metadata))
    metadata.payload_size = 1
    metadata.flags = METADATA_SEQUENCE_ID
    assert encoded(&metadata) == bytes.fromhex("18014000")
    metadata.flags = 0
    assert encoded(&metadata) == bytes.fromhex("1801")


def test_all_fields_stand_in_ascending_order():
    cdef SingleMetadata metadata
    cdef PropertyView[2] properties
    memset(&metadata, 0, sizeof(metadata))
    properties[0] = PropertyView(b"a", b"1", 1, 1)
    properties[1] = PropertyView(b"", b"\xc3\xa9", 0, 2)
    metadata.properties = properties
    metadata.property_count = 2
    metadata.flags = 0xFF
    metadata.partition_key = b"k1"
    metadata.partition_key_size = 2
    metadata.payload_size = 3
    metadata.event_time_ms = 1234
    metadata.ordering_key = b"ord"
    metadata.ordering_key_size = 3
    metadata.sequence_id = 7
    assert encoded(&metadata) == FULL


def test_all_fields_come_back():
    status, found = decoded(FULL)
    assert status == STATUS_OK
    assert found == {
        "flags": 0xFF | METADATA_PROPERTIES, "payload_size": 3, "sequence_id": 7,
        "event_time_ms": 1234, "property_count": 2, "key": b"k1", "ordering_key": b"ord",
        "properties": [(b"a", b"1"), (b"", b"\xc3\xa9")],
    }


def test_every_truncation_is_an_error_or_a_shorter_message():
    for cut in range(len(FULL)):
        status, found = decoded(FULL[:cut])
        # Cut between two fields, what is left is a message if it still has its payload size.
        assert status in (STATUS_CORRUPT, STATUS_TRUNCATED) or found["payload_size"] == 3


def test_a_missing_payload_size_is_corrupt():
    assert decoded(b"")[0] == STATUS_CORRUPT
    assert decoded(bytes.fromhex("4007"))[0] == STATUS_CORRUPT


def test_a_negative_or_absurd_payload_size_is_corrupt():
    assert decoded(b"\x18" + b"\xff" * 9 + b"\x01")[0] == STATUS_CORRUPT
    assert decoded(bytes.fromhex("188080808008"))[0] == STATUS_CORRUPT


def test_unknown_fields_are_passed_over():
    unknown = bytes.fromhex(
        "5a0178" "6005" "69" + "00" * 8 + "75" + "00" * 4 + "7b0801" "7c" "fa0100")
    status, found = decoded(unknown + bytes.fromhex("1802") + unknown + bytes.fromhex("4009"))
    assert (status, found["payload_size"], found["sequence_id"]) == (STATUS_OK, 2, 9)


def test_a_known_number_with_another_wire_type_is_unknown():
    status, found = decoded(bytes.fromhex("1802" "1005" "1a0178" "4201ff"))
    assert (status, found["payload_size"], found["flags"]) == (STATUS_OK, 2, 0)


def test_the_last_of_a_repeated_field_counts():
    status, found = decoded(bytes.fromhex("1802" "1803" "48014800"))
    assert (status, found["payload_size"], found["flags"]) == (STATUS_OK, 3, 0)


def test_a_property_without_value_is_corrupt():
    assert decoded(bytes.fromhex("0a030a0161" "1800"))[0] == STATUS_CORRUPT


def test_random_bytes_never_read_past_the_end():
    source = random.Random(seed_of(11))
    for _ in range(scaled(20000)):
        decoded(source.randbytes(source.randrange(40)))
        damaged = bytearray(FULL)
        damaged[source.randrange(len(FULL))] = source.randrange(256)
        decoded(bytes(damaged))


def test_a_walk_over_properties_ends_where_the_bytes_do():
    cdef ByteReader reader
    cdef PropertyView view
    for data, status in (
        (b"", STATUS_END), (b"\x80", STATUS_TRUNCATED), (b"\x0a", STATUS_TRUNCATED),
        (b"\x0a\x05ab", STATUS_TRUNCATED), (b"\x12\x05ab", STATUS_TRUNCATED),
        (b"\x18", STATUS_TRUNCATED), (b"\x18\x01", STATUS_END),
        (b"\x18\x01\x0a\x06\x0a\x01a\x12\x01b", STATUS_OK),
    ):
        byte_reader_start(&reader, data, len(data))
        assert property_next(&reader, 1, &view) == status, data
