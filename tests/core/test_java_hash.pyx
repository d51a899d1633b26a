"""Java's String.hashCode over UTF-8: a direct model, and what is not UTF-8."""

import random

from seeds import seed_of

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport uint8_t

from pulsarx._core.java_hash cimport java_string_hash


def hash_of(data):
    """Of data behind which nothing may be read."""
    encoded = data.encode() if isinstance(data, str) else data
    cdef uint8_t* copy = guarded_bytes(encoded)
    hashed = java_string_hash(copy, len(encoded))
    free_guarded_bytes(copy, encoded)
    return hashed


def hash_of_units(text):
    """As the documentation of java.lang.String says it."""
    units = text.encode("utf-16-be", "surrogatepass")
    hashed = 0
    for at in range(0, len(units), 2):
        hashed = (31 * hashed + int.from_bytes(units[at:at + 2], "big")) % 2**32
    return hashed & 0x7FFFFFFF


def replaced(data):
    """Each byte that does not belong to well-formed UTF-8 is one U+FFFD."""
    text = ""
    while data:
        for size in (1, 2, 3, 4):
            try:
                text += data[:size].decode()
            except UnicodeDecodeError:
                continue
            break
        else:
            text += "\N{REPLACEMENT CHARACTER}"
            size = 1
        data = data[size:]
    return text


def test_texts_of_every_kind():
    source = random.Random(seed_of(41))
    ranges = [(0, 0x80), (0x80, 0x800), (0x800, 0xD800), (0xE000, 0x10000), (0x10000, 0x110000)]
    for _ in range(3000):
        text = "".join(chr(source.randrange(*source.choice(ranges))) for _ in range(6))
        assert hash_of(text) == hash_of_units(text), text


def test_the_ends_of_each_length():
    for code in (0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFD, 0xFFFF, 0x10000, 0x10FFFF):
        assert hash_of(chr(code)) == hash_of_units(chr(code)), hex(code)


def test_a_character_above_16_bits_is_two_units():
    assert hash_of("😀") == 0xD83D * 31 + 0xDE00 == 1772899


def test_the_sign_bit_is_cleared():
    assert hash_of("polygenelubricants") == 0
    assert hash_of_units("Order-3459134") == hash_of("Order-3459134") == 1082638286


def test_what_is_not_utf8_is_replaced_byte_by_byte():
    for data in [
        b"\x80", b"\xbf\xbf", b"\xc3", b"\xc3(", b"\xe4\xbd", b"\xf0\x9f\x98", b"a\xffb",
        b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xf0\x80\x80\x80",
        b"\xf0\x8f\xbf\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80",
        b"\xf8\x88\x80\x80\x80", b"\xe4\xbd\xa0\xe5\xa5", b"\xf0\x9f\x98\xc3\xa9",
    ]:
        assert hash_of(data) == hash_of_units(replaced(data)), data
    assert hash_of(b"\xe4\xbd") == 0xFFFD * 31 + 0xFFFD


def test_random_bytes():
    source = random.Random(seed_of(43))
    for _ in range(20000):
        data = bytes(source.choice([source.randrange(256), source.randrange(0x80, 0x100), 0xE4])
                     for _ in range(source.randrange(8)))
        assert hash_of(data) == hash_of_units(replaced(data)), data
