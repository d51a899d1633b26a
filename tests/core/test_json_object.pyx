"""What passes as one JSON object, and its copy on one line."""

import json
import random

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport uint8_t

from pulsarx._core.json_object cimport (
    JSON_DEPTH_MAX,
    JSON_WORDS_KNOWN,
    JSON_WORDS_NONE,
    JSON_WORDS_ODD,
    json_object_copy,
)
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK, STATUS_TOO_LARGE


cdef object copy_of(bytes data):
    """The copy, or the status."""
    return copy_and_words(data)[0]


cdef tuple copy_and_words(bytes data):
    cdef int words = JSON_WORDS_NONE
    cdef uint8_t* source = guarded_bytes(data)
    cdef uint8_t* copy = guarded_bytes(bytes(len(data)))
    cdef int status = json_object_copy(source, len(data), copy, &words)
    found = copy[:len(data)] if status == STATUS_OK else status
    free_guarded_bytes(source, data)
    free_guarded_bytes(copy, data)
    return found, words


def test_an_object_is_copied_with_spaces_for_line_breaks():
    for data, copy in [
        (b"{}", b"{}"),
        (b' \t{"a": [1, {"b": "}{]["}]}\n', b'  {"a": [1, {"b": "}{]["}]} '),
        (b'{\r\n"a":\n1\r}', b'{  "a": 1 }'),
        (rb'{"a\"}": "\\"}', rb'{"a\"}": "\\"}'),
    ]:
        assert copy_of(data) == copy, data


def test_what_is_no_single_object_is_refused():
    for data in [
        b"", b" ", b"null", b"1", b"[]", b'"{}"', b"{", b"}", b'{"a', b'{"a\\', b'{"a\\"}',
        b"{}{}", b"{} x", b"{}\n{}", b'{"a": 1}, ', b"{\0}", b'{"a\nb": 1}', b'{"a\\\nb": 1}',
        b'{"a": "\x1f"}', b"\xef\xbb\xbf{}",
    ]:
        assert copy_of(data) == STATUS_CORRUPT, data


def test_words_for_numbers_are_told_that_stand_outside_of_strings():
    for value, words in [
        (b"null", JSON_WORDS_NONE),
        (b'"NaN, -NaN, Inf", "\\"Inf"', JSON_WORDS_NONE),
        (b"1E5", JSON_WORDS_NONE),
        (b"NaN", JSON_WORDS_KNOWN),
        (b"Infinity", JSON_WORDS_KNOWN),
        (b"-Infinity", JSON_WORDS_KNOWN),
        (b"-NaN", JSON_WORDS_ODD),
        (b"Inf", JSON_WORDS_ODD),
        (b"-Inf", JSON_WORDS_ODD),
        (b"NaN, Inf, NaN", JSON_WORDS_ODD),
        (b'{"Inf": [1, {"q": -Inf}]}', JSON_WORDS_ODD),
    ]:
        for space in range(10):        # at any place of a machine word
            data = b'{"a":' + b" " * space + b"[" + value + b"]}"
            assert copy_and_words(data) == (data, words), data
    assert copy_and_words(b"{Inf")[1] == JSON_WORDS_ODD
    assert copy_and_words(b"{N}")[1] == JSON_WORDS_KNOWN


def test_what_is_nested_too_deeply_is_refused():
    def nested(depth):
        return b'{"a":' * (depth - 1) + b"{}" + b"}" * (depth - 1)

    assert copy_of(nested(JSON_DEPTH_MAX)) == nested(JSON_DEPTH_MAX)
    assert copy_of(nested(JSON_DEPTH_MAX + 1)) == STATUS_TOO_LARGE
    assert copy_of(b'{"a":' + b"[" * 100_000) == STATUS_TOO_LARGE


def test_any_object_passes_and_none_that_is_cut():
    source = random.Random(11)

    def value(depth):
        kind = source.randrange(6 if depth < 4 else 4)
        if kind == 4:
            return [value(depth + 1) for _ in range(source.randrange(4))]
        if kind == 5:
            return {text(): value(depth + 1) for _ in range(source.randrange(4))}
        return [None, source.random(), text(), True][kind]

    def text():
        return "".join(source.choice('ab"\\{}[]\n\té') for _ in range(source.randrange(8)))

    for _ in range(200):
        whole = {text(): value(0) for _ in range(source.randrange(4))}
        data = json.dumps(whole, indent=source.choice([None, 1])).encode()
        copy = copy_of(data)
        assert b"\n" not in copy and json.loads(copy) == whole
        for end in range(len(data)):
            assert copy_of(data[:end]) == STATUS_CORRUPT
