"""Building entries in the buffer: growth, headroom, keys, and what each finish leaves."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx._core.batch_encode cimport *
from pulsarx._core.limits cimport ENTRY_SIZE_MAX, METADATA_SIZE_MAX
from pulsarx._core.message_metadata cimport *
from pulsarx._core.single_metadata cimport *
from pulsarx._core.status cimport STATUS_OK, STATUS_TOO_LARGE

BATCH = bytes.fromhex(
    "0e01dcd1fbce00000011" "0a017010001880d095ffbc315802c00101"
    "000000041801400061" "00000004180240016262"
)
HELLO = bytes.fromhex("0e01cf85822f0000000c" "0a017010001880d095ffbc31" "68656c6c6f")


cdef MessageMetadata envelope_of(bytes producer_name):
    cdef MessageMetadata envelope
    memset(&envelope, 0, sizeof(envelope))
    envelope.producer_name = producer_name
    envelope.producer_name_size = len(producer_name)
    envelope.publish_time_ms = 1700000000000
    return envelope


cdef int add(BatchEncode* batch, bytes payload, uint64_t sequence_id, bytes key=None,
             bytes ordering_key=None, uint32_t more_flags=0):
    cdef SingleMetadata metadata
    memset(&metadata, 0, sizeof(metadata))
    metadata.flags = METADATA_SEQUENCE_ID | more_flags
    metadata.sequence_id = sequence_id
    metadata.payload_size = len(payload)
    if key is not None:
        metadata.flags |= METADATA_PARTITION_KEY
        metadata.partition_key = key
        metadata.partition_key_size = len(key)
    if ordering_key is not None:
        metadata.flags |= METADATA_ORDERING_KEY
        metadata.ordering_key = ordering_key
        metadata.ordering_key_size = len(ordering_key)
    return batch_encode_add(batch, &metadata, payload)


cdef bytes finished(BatchEncode* batch, MessageMetadata* envelope):
    """The entry, after its surroundings were overwritten as a ledger does."""
    cdef uint8_t* entry = NULL
    cdef uint32_t size = 0
    assert batch_encode_finish(batch, envelope, &entry, &size) == STATUS_OK
    memset(entry - 64, 0xAA, 64)
    memset(entry + size, 0xBB, 8)
    assert entry - 64 >= batch.buffer and entry + size + 8 <= batch.buffer + batch.capacity
    return entry[:size]


def mixed(*keys):
    """mixed_keys of a batch of messages with these (key, ordering key, flags)."""
    cdef BatchEncode batch
    batch_encode_init(&batch, 0, 0)
    for key, ordering_key, flags in keys:
        add(&batch, b"x", 0, key, ordering_key, flags)
    found = bool(batch.mixed_keys)
    batch_encode_free(&batch)
    return found


def test_pulsars_vector():
    cdef BatchEncode batch
    cdef MessageMetadata envelope = envelope_of(b"p")
    batch_encode_init(&batch, 320, 100)
    for _ in range(2):
        assert add(&batch, b"a", 0) == STATUS_OK
        assert add(&batch, b"bb", 1) == STATUS_OK
        assert batch_encode_payload_size(&batch) == 19
        assert finished(&batch, &envelope) == BATCH
        assert (batch.message_count, batch.first_sequence_id, batch.last_sequence_id) == (2, 0, 1)
        batch_encode_clear(&batch)
        assert batch_encode_payload_size(&batch) == 0
    batch_encode_free(&batch)


def test_a_batch_of_one_is_a_plain_message():
    cdef BatchEncode batch
    cdef MessageMetadata envelope = envelope_of(b"p")
    batch_encode_init(&batch, 320, 100)
    add(&batch, b"hello", 0)
    assert finished(&batch, &envelope) == HELLO
    batch_encode_free(&batch)


def test_a_batch_that_nothing_was_added_to_takes_no_memory():
    cdef BatchEncode batch
    cdef MessageMetadata envelope = envelope_of(b"p")
    cdef uint8_t* entry = NULL
    cdef uint32_t size = 0
    batch_encode_init(&batch, 320, 1000)
    assert batch.buffer == NULL
    assert batch_encode_payload_size(&batch) == 0
    assert not batch_encode_add_plain(&batch, b"a", 1, 0)
    assert batch_encode_single(&batch, &envelope, b"a", 1, &entry, &size) == STATUS_OK
    assert batch.buffer != NULL and batch.capacity == 1328
    batch_encode_free(&batch)


def test_the_buffer_grows_from_nothing():
    cdef BatchEncode batch
    cdef EntryParts parts
    cdef MessageMetadata envelope = envelope_of(b"p")
    batch_encode_init(&batch, 0, 0)
    for index in range(500):
        assert add(&batch, bytes([index % 256]) * (index * 3), index, b"key") == STATUS_OK
    entry = finished(&batch, &envelope)
    assert entry_decode(entry, len(entry), True, &parts) == STATUS_OK
    assert (parts.metadata.message_count, parts.metadata.highest_sequence_id) == (500, 499)
    batch_encode_free(&batch)


def test_the_headroom_grows_when_the_envelope_needs_more():
    cdef BatchEncode batch
    cdef EntryParts parts
    cdef uint32_t count
    for key_size in [10, 200, 5000]:
        for count in [1, 2]:
            name = b"n" * 3000
            key = b"k" * key_size
            envelope = envelope_of(name)
            batch_encode_init(&batch, 0, 0)
            for index in range(count):
                add(&batch, b"payload", index, key)
            entry = finished(&batch, &envelope)
            assert entry_decode(entry, len(entry), True, &parts) == STATUS_OK
            assert parts.metadata.producer_name[:3000] == name
            assert parts.metadata.partition_key[:parts.metadata.partition_key_size] == key
            assert parts.payload[parts.payload_size - 7:parts.payload_size] == b"payload"
            batch_encode_free(&batch)


def test_keys_of_the_envelope_point_into_the_entry():
    """The envelope overwrites the first header; the dispatcher still hashes the key afterwards."""
    cdef BatchEncode batch
    cdef uint8_t* entry = NULL
    cdef uint32_t size = 0
    cdef uint32_t count
    cdef bint compressed
    for count in [1, 2]:
        for compressed in [False, True]:
            envelope = envelope_of(b"p")
            batch_encode_init(&batch, 0, 0)
            for index in range(count):
                add(&batch, b"payload", index, b"key", b"order", METADATA_EVENT_TIME)
            if compressed:
                envelope.compression = 3
                status = batch_encode_compressed(&batch, &envelope, b"z" * 200, 200, &entry, &size)
            else:
                status = batch_encode_finish(&batch, &envelope, &entry, &size)
            assert status == STATUS_OK
            for pointer in [<size_t>envelope.partition_key, <size_t>envelope.ordering_key]:
                assert <size_t>entry < pointer < <size_t>entry + size
            assert envelope.partition_key[:envelope.partition_key_size] == b"key"
            assert envelope.ordering_key[:envelope.ordering_key_size] == b"order"
            assert bool(envelope.flags & METADATA_EVENT_TIME) == (count == 1)
            assert entry[size - 1:size] == (b"z" if compressed else b"d")
            batch_encode_free(&batch)


def test_a_compressed_batch_says_its_plain_size():
    cdef BatchEncode batch
    cdef EntryParts parts
    cdef uint8_t* entry = NULL
    cdef const uint8_t* plain = NULL
    cdef uint32_t size = 0
    cdef MessageMetadata envelope = envelope_of(b"p")
    batch_encode_init(&batch, 0, 0)
    add(&batch, b"a", 0)
    batch_encode_plain_payload(&batch, &plain, &size)
    assert plain[:size] == b"a", "of a batch of one the bare payload"
    add(&batch, b"bb", 1)
    batch_encode_plain_payload(&batch, &plain, &size)
    assert plain[:size] == BATCH[27:]
    envelope.compression = 1
    assert batch_encode_compressed(&batch, &envelope, b"small", 5, &entry, &size) == STATUS_OK
    assert entry_decode(entry, size, True, &parts) == STATUS_OK
    assert (parts.metadata.compression, parts.metadata.uncompressed_size) == (1, 19)
    assert parts.payload[:parts.payload_size] == b"small"
    batch_encode_free(&batch)


def test_mixed_keys_are_noticed():
    keyless = (None, None, 0)
    assert not mixed(keyless, keyless)
    assert not mixed((b"k", None, 0), (b"k", None, 0))
    assert mixed((b"k", None, 0), (b"l", None, 0))
    assert mixed((b"k", None, 0), (b"kk", None, 0))
    assert mixed((b"k", None, 0), keyless)
    assert mixed(keyless, (b"k", None, 0))
    assert mixed(keyless, keyless, (b"", None, 0))
    assert not mixed((b"k", b"o", 0), (b"l", b"o", 0)), "the ordering key wins"
    assert mixed((b"k", b"o", 0), (b"k", b"q", 0))
    assert mixed((b"k", None, METADATA_KEY_BASE64), (b"k", None, 0))
    assert not mixed((b"k", None, METADATA_EVENT_TIME), (b"k", None, 0))


def test_keys_are_compared_after_the_buffer_moved():
    cdef BatchEncode batch
    batch_encode_init(&batch, 0, 0)
    add(&batch, b"x", 0, b"key")
    add(&batch, b"y" * 100000, 1, b"key")
    add(&batch, b"z", 2, b"key")
    assert batch.mixed_keys == 0
    batch_encode_clear(&batch)
    add(&batch, b"x", 0)
    add(&batch, b"x", 0)
    assert batch.mixed_keys == 0, "a cleared batch forgot the key"
    batch_encode_free(&batch)


def test_single_drops_what_was_there_and_carries_all_its_fields():
    cdef BatchEncode batch
    cdef EntryParts parts
    cdef uint8_t* entry = NULL
    cdef uint32_t size = 0
    cdef MessageMetadata metadata = envelope_of(b"p")
    metadata.flags = METADATA_DELIVER_AT
    metadata.deliver_at_ms = -1
    batch_encode_init(&batch, 0, 0)
    add(&batch, b"dropped", 5)
    assert batch_encode_single(&batch, &metadata, b"x" * 9000, 9000, &entry, &size) == STATUS_OK
    assert entry_decode(entry, size, True, &parts) == STATUS_OK
    assert (parts.payload_size, parts.metadata.deliver_at_ms) == (9000, -1)
    assert batch.message_count == 0
    batch_encode_free(&batch)


def test_a_message_that_no_entry_holds_is_refused_before_it_is_read():
    cdef BatchEncode batch
    cdef SingleMetadata metadata
    cdef MessageMetadata envelope = envelope_of(b"p")
    memset(&metadata, 0, sizeof(metadata))
    batch_encode_init(&batch, 0, 100)
    add(&batch, b"a", 0)
    metadata.payload_size = 0x7FFFFFFF
    assert batch_encode_add(&batch, &metadata, NULL) == STATUS_TOO_LARGE
    add(&batch, b"bb", 1)
    assert finished(&batch, &envelope) == BATCH, "nothing was added"
    batch_encode_free(&batch)


def test_plain_messages_are_the_same_bytes_whichever_way_they_are_added():
    cdef BatchEncode general
    cdef BatchEncode plain
    cdef MessageMetadata envelope = envelope_of(b"p")
    cdef bytes payload
    cdef int taken = 0
    cdef int number
    batch_encode_init(&general, 320, 100)
    batch_encode_init(&plain, 320, 100)
    for number, size in enumerate([3, 0, 127, 128, 16383, 16384, 5] * 3):
        payload = b"x" * size
        add(&general, payload, number * 1000003)
        if batch_encode_add_plain(&plain, payload, <uint32_t>size, number * 1000003):
            taken += 1
        else:
            add(&plain, payload, number * 1000003)
    assert taken > 10
    assert plain.message_count == general.message_count
    assert plain.last_sequence_id == general.last_sequence_id
    assert finished(&plain, &envelope) == finished(&general, &envelope)
    batch_encode_clear(&plain)
    assert not batch_encode_add_plain(&plain, b"first", 5, 0)
    add(&plain, b"x", 0, b"key")
    assert not batch_encode_add_plain(&plain, b"after a key", 11, 1)
    batch_encode_free(&general)
    batch_encode_free(&plain)


def test_what_says_more_than_a_header_can_is_refused_before_it_is_read():
    cdef BatchEncode batch
    cdef SingleMetadata metadata
    cdef PropertyView views[2]
    cdef MessageMetadata envelope = envelope_of(b"p")
    cdef uint8_t* entry = NULL
    cdef uint32_t size = 0
    memset(&metadata, 0, sizeof(metadata))
    memset(views, 0, sizeof(views))
    batch_encode_init(&batch, 0, 0)
    metadata.properties, metadata.property_count = views, 2
    for length in (METADATA_SIZE_MAX, <uint32_t>-1):         # the sum of the others is above 2^32
        views[0].key_size = views[1].value_size = length
        assert batch_encode_add(&batch, &metadata, b"") == STATUS_TOO_LARGE
        envelope.properties, envelope.property_count = views, 2
        assert batch_encode_single(&batch, &envelope, b"", 0, &entry, &size) == STATUS_TOO_LARGE
    envelope = envelope_of(b"p")
    assert batch_encode_single(&batch, &envelope, b"", ENTRY_SIZE_MAX, &entry,
                               &size) == STATUS_TOO_LARGE
    assert add(&batch, b"plain", 1) == STATUS_OK
    assert batch_encode_compressed(&batch, &envelope, b"", ENTRY_SIZE_MAX, &entry,
                                   &size) == STATUS_TOO_LARGE
    envelope.producer_name_size = METADATA_SIZE_MAX
    assert batch_encode_finish(&batch, &envelope, &entry, &size) == STATUS_TOO_LARGE
    assert entry == NULL and batch.message_count == 1
    batch_encode_free(&batch)


def test_an_encrypted_payload_may_be_empty():
    cdef BatchEncode batch
    cdef MessageMetadata envelope = envelope_of(b"p")
    cdef EntryParts parts
    cdef uint8_t* entry = NULL
    cdef uint32_t size = 0
    batch_encode_init(&batch, 0, 0)
    assert add(&batch, b"plain", 1) == STATUS_OK
    envelope.flags = METADATA_ENCRYPTED
    envelope.encryption = <const uint8_t*>b"\x6a\x01a"       # field 13
    envelope.encryption_size = 3
    assert batch_encode_compressed(&batch, &envelope, b"", 0, &entry, &size) == STATUS_OK
    assert entry_decode(entry, size, True, &parts) == STATUS_OK and parts.payload_size == 0
    batch_encode_free(&batch)


def test_messages_without_a_sequence_id_and_without_a_payload():
    cdef BatchEncode batch
    cdef SingleMetadata metadata
    memset(&metadata, 0, sizeof(metadata))
    batch_encode_init(&batch, 0, 1000)
    assert batch_encode_add(&batch, &metadata, b"") == STATUS_OK
    assert batch.buffer[batch.payload_start:batch.payload_end] == b"\0\0\0\2\x18\0"
    assert batch_encode_add_plain(&batch, b"", 0, 5)
    assert batch.message_count == 2 and batch.last_sequence_id == 5
    batch_encode_free(&batch)
    assert mixed((b"", None, 0), (b"", None, 0)) == 0


