"""The sticky key of a message: which field it is, and three doors to the same rule."""

import base64
import random

from seeds import scaled, seed_of

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.batch_encode cimport (
    BatchEncode, batch_encode_add, batch_encode_free, batch_encode_init,
    batch_encode_plain_payload,
)
from pulsarx._core.message_metadata cimport MessageMetadata
from pulsarx._core.murmur3 cimport murmur3_32
from pulsarx._core.single_metadata cimport *
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK, STATUS_TRUNCATED
from pulsarx._core.sticky_key cimport *


STATUSES = {STATUS_CORRUPT: "corrupt", STATUS_TRUNCATED: "truncated"}


def murmur(data):
    return murmur3_32(0, <const uint8_t*><const char*>data, len(data))


def varint(number):
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(encoded) + bytes([number])


def block(tag, data):
    return bytes([tag]) + varint(len(data)) + data


def header(key=None, ordering_key=None, is_base64=False, before=b"", behind=b""):
    """A SingleMessageMetadata as protobuf writes it."""
    return (before + (b"" if key is None else block(0x12, key)) + b"\x18\x05"
            + (b"\x30\x01" if is_base64 else b"")
            + (b"" if ordering_key is None else block(0x3A, ordering_key)) + b"\x40\x07" + behind)


def sticky(data):
    """By all doors, which must agree; from data behind which nothing may be read."""
    cdef SingleMetadata single
    cdef MessageMetadata envelope
    cdef uint32_t hash = 0
    cdef int status
    cdef uint8_t* copy = guarded_bytes(data)
    status = sticky_key_of_encoded(copy, len(data), &hash)
    if single_metadata_decode(copy, len(data), &single) == STATUS_OK:
        memset(&envelope, 0, sizeof(envelope))
        envelope.flags = single.flags
        envelope.partition_key = single.partition_key
        envelope.partition_key_size = single.partition_key_size
        envelope.ordering_key = single.ordering_key
        envelope.ordering_key_size = single.ordering_key_size
        assert status == STATUS_OK
        assert sticky_key_hash(&single) == sticky_key_of_entry(&envelope) == hash
    free_guarded_bytes(copy, data)
    if status != STATUS_OK:
        return STATUSES[status]
    return hash


def test_the_order_of_the_seeds():
    """'its hash would be murmur32("Order-3459134") = 3112179635, and its index in the range would
    be 3112179635 mod 65536 = 6067'"""
    assert sticky(header(b"Order-3459134")) == 3112179635
    assert 3112179635 % 65536 == 6067


def test_a_message_without_a_key():
    """'When the broker dispatches messages from this batch, it uses `NON_KEY` as the key.'"""
    assert sticky(header()) == STICKY_NON_KEY == murmur(b"NON_KEY") == 1110787044
    assert sticky(header(b"NON_KEY")) == STICKY_NON_KEY


def test_the_ordering_key_wins_over_the_key():
    """'messages with the same key or same ordering key are delivered to only one consumer'"""
    assert sticky(header(b"a", b"b")) == sticky(header(None, b"b")) == murmur(b"b")


def test_a_key_that_is_there_counts_even_when_it_is_empty():
    assert sticky(header(b"")) == 0
    assert sticky(header(b"a", b"")) == 0


def test_base64_keys_are_decoded():
    source = random.Random(seed_of(47))
    for size in [*range(100), 191, 192, 193, 1000]:
        key = source.randbytes(size)
        encoded = base64.b64encode(key)
        assert sticky(header(encoded, is_base64=True)) == murmur(key), size
        assert sticky(header(encoded.rstrip(b"="), is_base64=True)) == murmur(key), size
        assert sticky(header(encoded)) == murmur(encoded)
    assert sticky(header(base64.b64encode(b"Order-3459134"), is_base64=True)) == 3112179635


def test_an_ordering_key_is_never_base64():
    assert sticky(header(b"YQ==", b"Yg==", is_base64=True)) == murmur(b"Yg==")


def test_what_is_not_base64_counts_as_it_is():
    long = base64.b64encode(bytes(range(198)))
    for key in [
        b"A", b"AAAAA", b"=", b"==", b"A===", b"====", b"AA=A", b"AA-_", b"a b=", b"\xff\xff",
        long[:10] + b"!" + long[11:], long[:260] + b"*" + long[261:], b"Order-3459134",
    ]:
        assert sticky(header(key, is_base64=True)) == murmur(key), key


def test_leftover_bits_of_base64_are_passed_over():
    assert sticky(header(b"YQ==", is_base64=True)) == murmur(b"a")
    assert sticky(header(b"YR==", is_base64=True)) == murmur(b"a")


def test_fields_in_any_order_and_repeated():
    properties = block(0x0A, block(0x0A, b"name") + block(0x12, b"value"))
    unknown = bytes.fromhex("5a0178" "6005" "69" + "00" * 8 + "75" + "00" * 4 + "7b0801" "7c")
    assert sticky(header(b"k", before=properties * 3 + unknown, behind=unknown)) == murmur(b"k")
    assert sticky(header(b"old", behind=block(0x12, b"new"))) == murmur(b"new")
    assert sticky(header(b"YQ==", behind=b"\x30\x01")) == murmur(b"a")
    assert sticky(header(b"YQ==", is_base64=True, behind=b"\x30\x00")) == murmur(b"YQ==")
    assert sticky(header(b"k", behind=block(0x3A, b"late"))) == murmur(b"late")
    # A known number with another wire type is an unknown field.
    assert sticky(header(b"k", behind=b"\x32\x01x" + b"\x38\x05" + b"\x10\x01")) == murmur(b"k")


def test_a_header_without_payload_size_is_corrupt():
    assert sticky(block(0x12, b"k")) == "corrupt"
    assert sticky(b"") == "corrupt"


def test_keys_sizes_and_sequence_ids_of_every_length():
    """The short way for what our encoder writes must say the same as the long one."""
    for key_size in (0, 1, 127, 128, 300):
        key = bytes(range(65, 91)) * 12
        for bits in range(0, 64, 7):
            end = b"\x18" + varint(1 << min(bits, 30)) + b"\x40" + varint(1 << bits)
            assert sticky(block(0x12, key[:key_size]) + end) == murmur(key[:key_size])
            assert sticky(end) == STICKY_NON_KEY
            assert sticky(end + b"\x48\x01") == STICKY_NON_KEY
            assert sticky(end[:2 + min(bits, 30) // 7]) == STICKY_NON_KEY


def test_truncated_and_damaged_headers_are_not_read_past_their_end():
    source = random.Random(seed_of(53))
    full = header(base64.b64encode(b"some key"), b"ordering", True, b"\x28\x85\x01")
    for cut in range(len(full)):
        sticky(full[:cut])
    for _ in range(scaled(30000)):
        damaged = bytearray(full)
        damaged[source.randrange(len(full))] = source.randrange(256)
        sticky(bytes(damaged))
        sticky(source.randbytes(source.randrange(40)))


def test_a_batch_of_our_own():
    cdef BatchEncode batch
    cdef SingleMetadata metadata
    cdef BatchMessage message
    cdef const uint8_t* payload = NULL
    cdef uint32_t size = 0
    cdef uint32_t at = 0
    cdef uint32_t hash = 0
    keys = [b"a", None, b"k" * 200, b"\xc3\xa9", b"", b"key-7"]
    batch_encode_init(&batch, 256, 64)
    for sequence_id, key in enumerate(keys):
        memset(&metadata, 0, sizeof(metadata))
        metadata.flags = METADATA_SEQUENCE_ID
        metadata.sequence_id = 1 << 7 * sequence_id
        metadata.payload_size = 3
        if key is not None:
            metadata.flags |= METADATA_PARTITION_KEY
            metadata.partition_key = key
            metadata.partition_key_size = len(key)
        assert batch_encode_add(&batch, &metadata, b"abc") == STATUS_OK
    batch_encode_plain_payload(&batch, &payload, &size)
    found = []
    while batch_decode_next(payload, size, &at, &message) == STATUS_OK:
        assert sticky_key_of_encoded(message.encoded_metadata, message.encoded_metadata_size,
                                     &hash) == STATUS_OK
        found.append(hash)
    batch_encode_free(&batch)
    assert found == [STICKY_NON_KEY if key is None else murmur(key) for key in keys]


def test_a_base64_key_is_decoded():
    """As the consumer is given it; what is not base64 stays as it is."""
    cdef uint8_t bytes_of[300]
    cdef uint32_t count
    for plain in (b"", b"a", b"ab", b"abc", b"abcd", bytes(range(200))):
        encoded = base64.b64encode(plain)
        for key in (encoded, encoded.rstrip(b"=")):
            count = sticky_key_decode(key, len(key), bytes_of)
            assert bytes_of[:count] == plain, key
    for key in (b"a", b"abcde", b"ab*d", b"====", b"a===", b"abc\xff"):
        count = sticky_key_decode(key, len(key), bytes_of)
        assert bytes_of[:count] == key


def test_messages_without_a_key_are_spread_by_producer_and_sequence_id():
    cdef MessageMetadata metadata
    memset(&metadata, 0, sizeof(metadata))
    for name in (b"", b"p", b"pro", b"prod", b"standalone-1-23"):
        for sequence_id in (0, 9, 10, 2**63, 2**64 - 1):
            metadata.producer_name = name
            metadata.producer_name_size = len(name)
            metadata.sequence_id = sequence_id
            assert sticky_key_spread(&metadata) == murmur(name + b"-%d" % sequence_id)


def test_headers_that_are_nearly_the_usual_ones():
    """They are read in full: what ends too early, and what comes behind."""
    cdef uint32_t hash = 0
    for header, status in (
        (b"\x18\x01", STATUS_OK), (b"\x18\x01\x40\x05", STATUS_OK), (b"\x18", STATUS_TRUNCATED),
        (b"\x18\xff", STATUS_TRUNCATED), (b"\x18\x01\x40\xff", STATUS_TRUNCATED),
        (b"\x18\x01\x40\x05\x40\x06", STATUS_OK), (b"\x18\x01\x48\x01", STATUS_OK),
        (b"\x18\x01\x40", STATUS_TRUNCATED),
    ):
        assert sticky_key_of_encoded(header, len(header), &hash) == status, header
        assert status or hash == STICKY_NON_KEY
