"""Walking a batch: what our encoder writes, what others write, and what nobody wrote."""

import random

from seeds import new_seed, scaled, seed_of

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from pulsarx._core.batch_decode cimport (
    BatchMessage, BatchShape, batch_decode_alike, batch_decode_next, batch_decode_plain,
    batch_decode_shape, entry_check,
)
from pulsarx._core.message_metadata cimport EntryParts
from pulsarx._core.single_metadata cimport *
from pulsarx._core.status cimport (
    STATUS_CORRUPT, STATUS_END, STATUS_OK, STATUS_OUT_OF_RANGE, STATUS_TRUNCATED,
)

TWO = bytes.fromhex("00000004" "18014000" "61" "00000004" "18024001" "6262")


def walked(bytes data, uint32_t at=0):
    """(status at the end, where it stopped, messages) of data behind which nothing may be read."""
    cdef BatchMessage message
    cdef uint8_t* copy = guarded_bytes(data)
    cdef int status
    found = []
    while True:
        status = batch_decode_next(copy, len(data), &at, &message)
        if status != STATUS_OK:
            break
        found.append((message.flags, message.encoded_metadata[:message.encoded_metadata_size],
                      message.payload[:message.payload_size]))
    free_guarded_bytes(copy, data)
    return status, at, found


def one(str header, bytes payload):
    encoded = bytes.fromhex(header)
    return len(encoded).to_bytes(4, "big") + encoded + payload


def test_pulsars_vector():
    status, at, found = walked(TWO)
    assert (status, at) == (STATUS_END, len(TWO))
    assert found == [(METADATA_SEQUENCE_ID, bytes.fromhex("18014000"), b"a"),
                     (METADATA_SEQUENCE_ID, bytes.fromhex("18024001"), b"bb")]


def test_an_empty_batch_is_at_its_end():
    assert walked(b"") == (STATUS_END, 0, [])


def test_a_start_past_the_end_is_out_of_range():
    assert walked(TWO, len(TWO) + 1)[0] == STATUS_OUT_OF_RANGE


def test_headers_of_many_forms():
    for header, size, flags in [
        ("1800", 0, 0),
        ("187f", 127, 0),
        ("188001", 128, 0),
        ("18ff7f", 16383, 0),
        ("18808001", 16384, 0),
        ("18ffff7f", 2097151, 0),
        ("1880808001", 2097152, 0),
        ("188100", 1, 0),                                          # longer than need be
        ("1801" "40ffffffffffffffffff01", 1, METADATA_SEQUENCE_ID),
        ("12026b31" "1801", 1, METADATA_PARTITION_KEY),
        ("1200" "1801" "4005", 1, METADATA_PARTITION_KEY | METADATA_SEQUENCE_ID),
        ("12c801" + "6b" * 200 + "1801" "4005", 1, METADATA_PARTITION_KEY | METADATA_SEQUENCE_ID),
        ("1801" "4005" "4801", 1, METADATA_SEQUENCE_ID | METADATA_NULL_VALUE),
        ("1801" "2001", 1, METADATA_COMPACTED_OUT),
        ("4005" "1801", 1, METADATA_SEQUENCE_ID),                  # another order
        ("1801" "3a016f" "4005", 1, METADATA_ORDERING_KEY | METADATA_SEQUENCE_ID),
        ("0a060a0161120131" "1801" "28d209", 1, METADATA_PROPERTIES | METADATA_EVENT_TIME),
        ("1802" "1801" "4005", 1, METADATA_SEQUENCE_ID),  # the last one counts
    ]:
        payload = b"x" * size
        status, _, found = walked(one(header, payload) + TWO)
        assert status == STATUS_END
        assert found[0] == (flags, bytes.fromhex(header), payload), header
        assert len(found) == 3


def test_headers_that_are_none():
    for header in ["", "4005", "18", "1880", "1801" "40", "1801" "4080", "1201", "12056b31" "1801",
                   "1801" "40" + "80" * 11, "18" + "ff" * 9 + "01", "0f", "00"]:
        status, at, found = walked(TWO + one(header, b"x" * 9))
        assert status in (STATUS_CORRUPT, STATUS_TRUNCATED), header
        assert at == len(TWO) and len(found) == 2, "at is unmoved on failure"


def test_every_truncation_is_noticed():
    whole = TWO + one("12026b31" "1803" "4002", b"abc") + one("0a060a0161120131" "1801", b"z")
    ends = []
    for cut in range(len(whole)):
        status, at, found = walked(whole[:cut])
        if status == STATUS_END:
            ends.append((cut, len(found)))
        else:
            assert status in (STATUS_TRUNCATED, STATUS_CORRUPT)
    assert ends == [(0, 0), (9, 1), (19, 2), (34, 3)]


def test_claimed_sizes_are_not_believed():
    for start in ["ffffffff", "7fffffff", "00000005", "fffffffc"]:
        assert walked(bytes.fromhex(start + "1801"))[0] == STATUS_TRUNCATED
    for header in ["1802", "18ffffffff07", "187f"]:
        assert walked(one(header, b"x"))[0] == STATUS_TRUNCATED


def test_random_bytes_never_read_past_the_end():
    source = random.Random(seed_of(13))
    whole = TWO + one("12026b31" "1803" "4002", b"abc") + one("0a060a0161120131" "1801", b"z")
    for _ in range(scaled(20000)):
        damaged = bytearray(whole)
        for _ in range(source.randrange(1, 4)):
            byte = source.choice([source.randrange(256), 0x80, 0xFF, 0])
            damaged[source.randrange(len(whole))] = byte
        walked(bytes(damaged))
        walked(bytes(3) + source.randbytes(source.randrange(40)))


def plain_agrees(bytes data):
    """How many messages the plain walk took; each must be what batch_decode_next takes there."""
    cdef BatchMessage plain
    cdef BatchMessage other
    cdef uint8_t* copy = guarded_bytes(data)
    cdef uint32_t at = 0
    cdef uint32_t plain_at = 0
    cdef uint32_t taken = 0
    while True:
        plain_at = at
        is_plain = batch_decode_plain(copy, len(data), &plain_at, &plain)
        if batch_decode_next(copy, len(data), &at, &other) != STATUS_OK:
            assert not is_plain
            break
        if is_plain:
            assert plain_at == at
            assert (plain.payload == other.payload and plain.flags == other.flags
                    and plain.payload_size == other.payload_size)
            taken += 1
    free_guarded_bytes(copy, data)
    return taken


def test_the_plain_walk_takes_what_the_general_one_takes():
    batch = (one("18004000", b"") + one("187f40ffff03", b"x" * 127)
             + one("18800140808080808001", b"x" * 128) + one("18024001", b"xx"))
    assert plain_agrees(batch) == 4
    assert plain_agrees(one("1201611801", b"x") + one("1801400148", b"x")) == 0
    chance = random.Random(new_seed())
    for _ in range(scaled(20000)):
        damaged = bytearray(batch)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.choice(
                [0, 1, 4, 0x18, 0x40, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        plain_agrees(bytes(damaged[:chance.randrange(len(damaged) + 1)]))


def alike_agrees(bytes data):
    """How many messages were found to be like the one before them; each must be what
    batch_decode_plain takes there."""
    cdef BatchMessage first
    cdef BatchMessage other
    cdef BatchShape shape
    cdef uint8_t* copy = guarded_bytes(data)
    cdef uint32_t at = 0
    cdef uint32_t behind = 0
    cdef uint32_t taken = 0
    while batch_decode_plain(copy, len(data), &behind, &first):
        batch_decode_shape(copy, &first, at, behind, &shape)
        at = behind
        while batch_decode_alike(copy, len(data), at, &shape):
            assert batch_decode_plain(copy, len(data), &behind, &other)
            assert behind == at + shape.size and other.payload_size == shape.payload_size
            assert other.payload == copy + at + shape.header_size
            at = behind
            taken += 1
    free_guarded_bytes(copy, data)
    return taken


def test_messages_that_are_alike_are_what_the_plain_walk_takes():
    for size, payload_size in [("05", 5), ("7f", 127), ("8001", 128), ("ff7f", 16383)]:
        for numbers in [("00", "7f", "01"), ("8001", "ff7f", "8001"), ("ff" * 7 + "01",) * 3]:
            batch = b"".join(one("18" + size + "40" + number, b"x" * payload_size)
                             for number in numbers)
            # Behind the last one there must be as much as is looked at, however short it is.
            assert alike_agrees(batch + bytes(8)) == 2
    # A sequence id of more than eight bytes is looked at in full.
    assert alike_agrees(one("180140" + "80" * 8 + "01", b"x") * 3 + bytes(8)) == 0
    # Others than the first: larger, a longer id, a key, a property, an id that is none.
    first = one("18054001", b"12345")
    for other in [one("18064001", b"123456"), one("1805408001", b"12345"),
                  one("12016b18054001", b"12345"), one("18054080", b"12345"),
                  one("18054801", b"12345"), b"\0\0\1" + first[3:], first[:len(first) - 1]]:
        assert alike_agrees(first + other) == 0


def test_messages_that_are_alike_in_damaged_batches():
    chance = random.Random(new_seed())
    batch = b"".join(one("180540" + number, b"12345") for number in ["07"] * 4)
    batch += b"".join(one("18800140" + number, b"x" * 128) for number in ["8001"] * 4)
    for _ in range(scaled(20000)):
        damaged = bytearray(batch)
        for _ in range(chance.randrange(3)):
            damaged[chance.randrange(len(damaged))] = chance.choice(
                [0, 1, 4, 5, 0x18, 0x40, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        alike_agrees(bytes(damaged[:chance.randrange(len(damaged) + 1)]))


cdef int checked(bytes payload, uint32_t count, uint32_t claimed, uint32_t flags=METADATA_BATCH,
                 uint32_t compression=0, uint32_t uncompressed_size=0) except -1:
    """What is said of an entry that claims so many messages, asked whether it holds count."""
    cdef EntryParts parts
    cdef uint8_t* copy = guarded_bytes(payload)
    memset(&parts, 0, sizeof(parts))
    parts.metadata.flags = flags
    parts.metadata.message_count = claimed
    parts.metadata.compression = compression
    parts.metadata.uncompressed_size = uncompressed_size
    parts.payload, parts.payload_size = copy, <uint32_t>len(payload)
    status = entry_check(&parts, count)
    free_guarded_bytes(copy, payload)
    return status


def test_an_entry_holds_as_many_messages_as_it_claims():
    three = TWO + one("1800", b"")
    assert checked(TWO, 2, 2) == checked(three, 3, 3) == STATUS_OK
    assert checked(TWO, 3, 2) == checked(TWO, 2, 3) == STATUS_CORRUPT
    assert checked(b"", 100, 100) == STATUS_CORRUPT       # no room for so many
    assert checked(three, 2, 2) == STATUS_CORRUPT         # one is left
    assert checked(TWO, 3, 3) == STATUS_CORRUPT           # one is missing
    assert checked(TWO[: len(TWO) - 1], 2, 2) == STATUS_TRUNCATED
    # A single message is not looked at, one that is compressed neither.
    assert checked(b"any", 1, 1, 0) == STATUS_OK
    assert checked(b"any", 2, 2, 0) == STATUS_CORRUPT
    assert checked(b"any", 3, 3, METADATA_BATCH, 2, 18) == STATUS_OK
    assert checked(b"any", 3, 3, METADATA_BATCH, 2, 17) == STATUS_CORRUPT


cdef object plain(bytes data, uint32_t at=0):
    """The payload, where the fast way takes the message, and the general way says the same."""
    cdef BatchMessage message, other
    cdef uint32_t moved = at
    cdef uint8_t* copy = guarded_bytes(data)
    taken = None
    if batch_decode_plain(copy, len(data), &moved, &message):
        taken = message.payload[:message.payload_size]
        assert batch_decode_next(copy, len(data), &at, &other) == STATUS_OK and at == moved
        assert other.payload == message.payload and other.payload_size == message.payload_size
        assert other.flags == message.flags
    free_guarded_bytes(copy, data)
    return taken


def test_the_fast_way_takes_what_is_plain_and_nothing_else():
    assert plain(TWO) == b"a" and plain(TWO, 9) == b"bb"
    assert plain(TWO, len(TWO)) is None and plain(TWO, len(TWO) + 5) is None
    assert plain(TWO[:7]) is None                                  # less than any message
    assert plain(one("1801" "40" + "ff" * 9 + "01", b"a")) == b"a"
    assert plain(one("18c801" "4005", b"a" * 200)) == b"a" * 200   # two bytes of size
    for header, payload in (
        ("180040", b"aaaa"),                     # a header of three bytes
        ("120161" "1801" "4000", b"a"),          # a key
        ("18ff" "ff", b"aaaaaa"), ("18ff" "ffff01" "4000", b"a"),
        ("1805" "4000", b"a"),                   # the payload ends too early
        ("1801" "4800", b"a"), ("1801" "40" + "ff" * 10 + "01", b"a"),
        ("1801" "40ff", b"a"), ("1801" "40000100", b"a"), ("18c801" "40", b"a" * 200),
    ):
        assert plain(one(header, payload)) is None, header
    assert plain(bytes.fromhex("01000004" "18014000" "61")) is None
    assert plain(bytes.fromhex("00000014" "18014000" "61")) is None
    # Eight bytes, of which the header would be longer.
    assert plain(bytes.fromhex("00000005" "18c80140")) is None


def test_a_shape_of_long_sequence_ids_is_like_no_other():
    cdef BatchMessage message
    cdef BatchShape shape
    cdef uint32_t behind = 0
    data = one("1801" "40" + "ff" * 8 + "01", b"a") * 3
    assert batch_decode_plain(data, len(data), &behind, &message)
    batch_decode_shape(data, &message, 0, behind, &shape)
    assert not batch_decode_alike(data, len(data), behind, &shape)
    short = one("1801" "4005", b"a") + one("1801" "4085", b"a") + one("1801" "4006", b"a") * 2
    behind = 0
    assert batch_decode_plain(short, len(short), &behind, &message)
    batch_decode_shape(short, &message, 0, behind, &shape)
    assert not batch_decode_alike(short, len(short), behind, &shape)
    assert batch_decode_alike(short, len(short), 18, &shape)
    assert not batch_decode_alike(short, len(short), 27, &shape)   # too near to the end
