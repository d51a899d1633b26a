"""What a selector is, what it means, and that neither text nor metadata is read beyond its end."""

import random

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport int64_t, uint8_t, uint32_t

from pulsarx._core.selector cimport (
    SELECTOR_DEPTH_MAX, SELECTOR_NAMES_MAX, SELECTOR_SIZE_MAX, SelectorProgram, selector_compile,
    selector_free,
)
from pulsarx._core.selector_match cimport SelectorMessage, selector_match, selector_match_batch
from pulsarx._core.selector_text cimport (
    EXPECTED_AND, EXPECTED_BOOLEAN, EXPECTED_CLOSE, EXPECTED_CONDITION, EXPECTED_EQUALITY,
    EXPECTED_ESCAPE, EXPECTED_ESCAPED, EXPECTED_FEWER_NAMES, EXPECTED_FLATTER, EXPECTED_NAME,
    EXPECTED_NEXT, EXPECTED_NULL, EXPECTED_NUMBER, EXPECTED_OPEN, EXPECTED_OPERAND,
    EXPECTED_OPERATOR, EXPECTED_QUOTE, EXPECTED_SHORTER, EXPECTED_SMALLER, EXPECTED_STRING,
    EXPECTED_TEST, EXPECTED_TEXT, SELECTOR_REAL, SelectorError, SelectorValue, selector_number,
)
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK

from seeds import seed_of


cdef bytes varint(uint64):
    found = bytearray()
    value = int(uint64)
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


cdef bytes block(int tag, bytes content):
    return bytes([tag]) + varint(len(content)) + content


def metadata_of(properties=(), key=None, event_time=None, in_batch=True, null_key=False):
    found = b"" if in_batch else block(0x0A, b"p") + b"\x10\x00\x18" + varint(1000)
    for name, value in dict(properties).items():
        pair = block(0x0A, name.encode()) + block(0x12, value.encode())
        found += block(0x0A if in_batch else 0x22, pair)
    if key is not None:
        found += block(0x12 if in_batch else 0x32, key.encode())
    if in_batch:
        found += b"\x18\x00"
    if event_time is not None:
        found += (b"\x28" if in_batch else b"\x60") + varint(event_time)
    if null_key:
        found += b"\x50\x01" if in_batch else b"\xf0\x01\x01"
    return found


cdef object asked(bytes text, bytes metadata, bint in_batch, int64_t publish_time_ms=1000):
    """True or False; (expected, offset) where the text is no selector, the status where the
    metadata is none."""
    cdef SelectorProgram program
    cdef SelectorError error
    cdef SelectorMessage message
    cdef uint8_t* source = guarded_bytes(text)
    cdef uint8_t* encoded
    cdef bint matches = False
    cdef int status = selector_compile(source, len(text), &program, &error)
    free_guarded_bytes(source, text)
    if status != STATUS_OK:
        assert status == STATUS_CORRUPT
        return error.expected, error.at
    encoded = guarded_bytes(metadata)
    message.metadata = encoded
    message.metadata_size = len(metadata)
    message.in_batch = in_batch
    message.publish_time_ms = publish_time_ms
    status = selector_match(&program, &message, &matches)
    free_guarded_bytes(encoded, metadata)
    selector_free(&program)
    return bool(matches) if status == STATUS_OK else status


def matches(text, properties=(), **more):
    """What holds of a message in a batch, and of one by itself."""
    found = [asked(text.encode(), metadata_of(properties, in_batch=each, **more), each)
             for each in (True, False)]
    assert found[0] == found[1], text
    return found[0]


def refused(text):
    found = asked(text if isinstance(text, bytes) else text.encode(), metadata_of(), True)
    assert isinstance(found, tuple), text
    return found


def test_numbers_are_compared_as_numbers():
    for text, wanted in [
        ("n = 10", True), ("n = 10.0", True), ("n <> 10", False), ("n > 9", True),
        ("n > 10", False),
        ("n >= 10", True), ("n < 10.5", True), ("n <= 9", False), ("10 = n", True), ("9 < n", True),
        ("n BETWEEN 9 AND 10", True), ("n NOT BETWEEN 9 AND 10", False),
        ("n between 11 and 12", False),
        ("n = 0xA", True), ("n = 10L", True), ("n = 1E1", True), ("n = +10", True),
        ("-n = -10", True),
        ("n + 1 = 11", True), ("n - 1 * 2 = 8", True), ("(n - 1) * 2 = 18", True),
        ("n / 4 = 2", True),
        ("n / 4.0 = 2.5", True), ("n / 0 = 1", False), ("NOT n / 0 = 1", False),
        ("n / 0.0 > 1", True),
        ("n = .1E2", True), ("n = 100e-1", True), ("n * 0.1 = 1", True),
    ]:
        assert matches(text, {"n": "10"}) is wanted, text


def test_what_is_no_number_compares_with_none():
    for value in ("", "x", "10x", "1 0", " 10", "0x10", "1e", "--1", "1.2.3", "NaN", "Inf", "."):
        for text in ("n = 10", "n <> 10", "n > 1", "n < 1", "NOT n = 10", "n BETWEEN 1 AND 2"):
            assert matches(text, {"n": value}) is False, (text, value)


def test_numbers_beyond_64_bits_are_real():
    for text, value, wanted in [
        ("n = 9223372036854775807", "9223372036854775807", True),
        ("n = 9223372036854775806", "9223372036854775807", False),
        ("n < -9223372036854775807", "-9223372036854775808", True),
        ("-n > 9223372036854775807.0", "-9223372036854775808", False),
        ("n > 9223372036854775807", "92233720368547758070", True),
        ("n + 9223372036854775807 > 1.8E19", "9223372036854775807", True),
        ("n * n > 1E30", "9223372036854775807", True),
        ("n - 2 < -9.2E18", "-9223372036854775807", True),
        ("n / -1 > 9.2E18", "-9223372036854775808", True),
        ("n > 1E308", "1e999", True), ("n = 0", "1e-999", True), ("n < -1E308", "-1e999", True),
        ("n = 0", "0e999999999999", True), ("n = 0.3", "0.3", True),
    ]:
        assert matches(text, {"n": value}) is wanted, (text, value)


def test_a_real_number_is_read_as_python_reads_it():
    cdef SelectorValue value
    cdef bytes text
    source = random.Random(seed_of(1))
    for _ in range(2000):
        number = source.uniform(-1, 1) * 10.0 ** source.randrange(-20, 20)
        shown = f"{number:.{source.randrange(1, 15)}g}"
        text = shown.encode()
        assert selector_number(text, len(text), &value)
        found = value.real if value.kind == SELECTOR_REAL else float(value.whole)
        assert found == float(shown), shown


def test_strings_are_equal_or_not():
    for text, wanted in [
        ("s = 'it''s'", True), ("s <> 'it''s'", False), ("s = 'its'", False), ("'it''s' = s", True),
        ("s IN ('a', 'it''s')", True), ("s NOT IN ('a', 'it''s')", False), ("s IN ('a')", False),
        ("s NOT IN ('a')", True), ("s = t", False), ("s = s", True), ("\"s\" = 'it''s'", True),
        ("empty = ''", True), ("empty IN ('')", True), ("empty IS NULL", False),
        ("empty LIKE ''", True),
        ("n = m", True), ("n < o", True), ("s < o", False), ("s = o", False),
        ("\"a-b\"\"\" = 'x'", True),
        ("a.b = 'y'", True), ("gr\u00f6\u00dfe = 'z'", True),
    ]:
        assert matches(text, {"s": "it's", "t": "its", "empty": "", "n": "1", "m": "1.0", "o": "2",
                              "a-b\"": "x", "a.b": "y", "gr\u00f6\u00dfe": "z"}) is wanted, text


def test_a_pattern_matches_the_whole_text():
    for pattern, value, wanted in [
        ("%", "", True), ("%", "abc", True), ("_", "", False), ("_", "a", True), ("_", "ab", False),
        ("a%", "abc", True), ("%c", "abc", True), ("%b%", "abc", True), ("a_c", "abc", True),
        ("a%c%", "abc", True), ("%%c", "abc", True), ("b%", "abc", False), ("a_", "abc", False),
        ("%aab", "aaaab", True), ("%a_b", "aaaab", True), ("%ab%ab", "abxab", True),
        ("_", "\u00fc", True), ("__", "\u00fc", False), ("%_", "\u20ac", True),
        ("\u20ac%", "\u20ac1", True),
        ("ABC", "abc", False), ("%x", "abc", False), ("abc%", "ab", False), ("%a%a%a", "aa", False),
    ]:
        assert matches(f"s LIKE '{pattern}'", {"s": value}) is wanted, (pattern, value)
        assert matches(f"s NOT LIKE '{pattern}'", {"s": value}) is not wanted, (pattern, value)


def test_an_escape_character_takes_signs_of_a_pattern_as_they_are():
    for pattern, value, wanted in [
        ("s LIKE '10!%' ESCAPE '!'", "10%", True), ("s LIKE '10!%' ESCAPE '!'", "100", False),
        ("s LIKE '!_%' ESCAPE '!'", "_x", True), ("s LIKE '!_%' ESCAPE '!'", "x", False),
        ("s LIKE '!!%' ESCAPE '!'", "!x", True),
        ("s LIKE '\u20ac%\u20ac\u20ac' ESCAPE '\u20ac'", "%\u20ac", True),
        ("s LIKE '%%' ESCAPE '%'", "%", True),
        ("s NOT LIKE '10!%' ESCAPE '!'", "100", True),
    ]:
        assert matches(pattern, {"s": value}) is wanted, (pattern, value)


def test_a_random_pattern_matches_what_a_regular_expression_does():
    import re

    source = random.Random(seed_of(2))
    for _ in range(3000):
        pattern = "".join(source.choice("ab%_") for _ in range(source.randrange(8)))
        value = "".join(source.choice("ab") for _ in range(source.randrange(10)))
        wanted = re.fullmatch(pattern.replace("%", ".*").replace("_", "."), value) is not None
        assert asked(f"s LIKE '{pattern}'".encode(), metadata_of({"s": value}), True) is wanted, (
            pattern, value)


def test_conditions_join_with_three_values():
    names = {"TRUE": True, "FALSE": False, "missing = 1": None}
    for left, first in names.items():
        assert matches(f"NOT {left}") is (first is False)
        assert matches(f"NOT NOT {left}") is (first is True)
        for right, second in names.items():
            both = first and second if first is not None else (False if second is False else None)
            if first and second is None:
                both = None
            assert matches(f"{left} AND {right}") is (both is True), (left, right)
            assert matches(f"NOT ({left} AND {right})") is (both is False), (left, right)
            either = True if first or second else (None if None in (first, second) else False)
            assert matches(f"({left}) OR {right}") is (either is True), (left, right)
            assert matches(f"NOT ({left} OR {right})") is (either is False), (left, right)


def test_and_binds_closer_than_or():
    for text, wanted in [
        ("TRUE OR FALSE AND FALSE", True), ("(TRUE OR FALSE) AND FALSE", False),
        ("NOT FALSE AND FALSE", False), ("NOT (FALSE AND FALSE)", True),
        ("a = 1 AND b = 2 OR c = 3", True), ("a = 2 OR b = 2 AND c = 3", False),
        ("NOT a = 2 AND NOT c = 3", True),
    ]:
        assert matches(text, {"a": "1", "b": "2", "c": "4"}) is wanted, text


def test_a_property_stands_for_a_condition():
    for value, wanted in [("true", True), ("TRUE", True), ("false", False), ("1", False),
    ("", False)]:
        assert matches("urgent", {"urgent": value}) is wanted
        assert matches("urgent = TRUE", {"urgent": value}) is wanted
        assert matches("urgent AND TRUE", {"urgent": value}) is wanted
    assert matches("NOT urgent", {"urgent": "false"}) is True
    assert matches("urgent <> TRUE", {"urgent": "false"}) is True
    assert matches("NOT urgent", {"urgent": "no"}) is False


def test_what_is_missing_is_null():
    for text, wanted in [
        ("x IS NULL", True), ("x IS NOT NULL", False), ("y IS NULL", False),
        ("y IS NOT NULL", True),
        ("x = x", False), ("x <> 'a'", False), ("x NOT IN ('a')", False), ("x NOT LIKE 'a'", False),
        ("x + 1 = 1", False), ("x + 1 IS NULL", True), ("NOT x", False), ("x OR y = 'v'", True),
        ("__key IS NULL", True), ("JMSXGroupID IS NULL", True), ("__eventTime IS NULL", True),
        ("__eventTime > 0", False), ("__publishTime IS NULL", False),
    ]:
        assert matches(text, {"y": "v"}) is wanted, text


def test_key_and_times_have_names_of_their_own():
    for text, wanted in [
        ("__key = 'k1'", True), ("JMSXGroupID LIKE 'k_'", True), ("__key IN ('k2')", False),
        ("__eventTime = 77", True), ("JMSTimestamp = 77", True), ("__publishTime = 1000", True),
        ("__key__ = 'k1'", True), ("__event_time__ = 77", True), ("__publish_time__ = 1000", True),
        ("__publishTime - __eventTime > 900", True), ("\"__key\" = 'property'", True),
        ("JMSXGroupid IS NULL", True),
    ]:
        assert matches(text, {"__key": "property"}, key="k1", event_time=77) is wanted, text
    assert matches("JMSTimestamp = 1000") is True
    assert matches("JMSTimestamp = 1000", event_time=0) is True
    assert matches("__key IS NULL", key="", null_key=True) is True
    assert matches("__key = ''", key="") is True


def test_the_last_of_two_properties_with_one_name_counts():
    twice = (block(0x0A, block(0x0A, b"n") + block(0x12, b"1"))
             + block(0x0A, block(0x0A, b"n") + block(0x12, b"2")) + b"\x18\x00")
    assert asked(b"n = 2", twice, True) is True
    assert asked(b"n = 1", twice, True) is False


def test_long_properties_and_many_names_are_found():
    many = {f"name{at:03}": str(at) for at in range(100)}
    many["x" * 300] = "y" * 300
    assert matches(f"{'x' * 300} = '{'y' * 300}' AND name099 = 99", many) is True
    names = " AND ".join(f"name{at:03} = {at}" for at in range(SELECTOR_NAMES_MAX))
    assert matches(names, many) is True
    assert refused(f"{names} AND name064 = 64")[0] == EXPECTED_FEWER_NAMES


def test_what_is_wrong_is_told_with_its_place():
    for text, expected, at in [
        ("", EXPECTED_OPERAND, 0), ("  ", EXPECTED_OPERAND, 2), ("price >", EXPECTED_OPERAND, 7),
        ("price > > 1", EXPECTED_OPERAND, 8), ("a = 1 b = 2", EXPECTED_OPERATOR, 6),
        ("a = 1 AND", EXPECTED_OPERAND, 9), ("(a = 1", EXPECTED_CLOSE, 6),
        ("a = 1)", EXPECTED_OPERATOR, 5),
        ("a == 1", EXPECTED_OPERAND, 3), ("a != 1", EXPECTED_OPERATOR, 2),
        ("a = 'x", EXPECTED_QUOTE, 6),
        ("a = \"x", EXPECTED_QUOTE, 6), ("a = \"\"", EXPECTED_NAME, 4),
        ("a IN 'x'", EXPECTED_OPEN, 5),
        ("a IN ()", EXPECTED_STRING, 6), ("a IN (1)", EXPECTED_STRING, 6),
        ("a IN ('x' 'y')", EXPECTED_NEXT, 10),
        ("a IN ('x',)", EXPECTED_STRING, 10), ("1 IN ('x')", EXPECTED_NAME, 0),
        ("a LIKE 1", EXPECTED_STRING, 7),
        ("a LIKE b", EXPECTED_STRING, 7), ("1 LIKE 'a'", EXPECTED_NAME, 0),
        ("a LIKE 'x' ESCAPE 'ab'", EXPECTED_ESCAPE, 18),
        ("a LIKE 'x' ESCAPE ''", EXPECTED_ESCAPE, 18), ("a LIKE 'x' ESCAPE 1", EXPECTED_ESCAPE, 18),
        ("a LIKE '!x' ESCAPE '!'", EXPECTED_ESCAPED, 7),
        ("a LIKE 'x!' ESCAPE '!'", EXPECTED_ESCAPED, 7),
        ("a BETWEEN 1 OR 2", EXPECTED_AND, 12), ("a BETWEEN 'x' AND 'y'", EXPECTED_NUMBER, 10),
        ("a BETWEEN 1 AND 'y'", EXPECTED_NUMBER, 16), ("'a' BETWEEN 1 AND 2", EXPECTED_NUMBER, 0),
        ("a IS 1", EXPECTED_NULL, 5), ("a IS NOT 1", EXPECTED_NULL, 9),
        ("a NOT = 1", EXPECTED_TEST, 6),
        ("a > 'x'", EXPECTED_EQUALITY, 2), ("'x' < a", EXPECTED_EQUALITY, 4),
        ("TRUE > FALSE", EXPECTED_EQUALITY, 5),
        ("1 = 'x'", EXPECTED_NUMBER, 4), ("'x' = 1", EXPECTED_STRING, 6),
        ("TRUE = 1", EXPECTED_BOOLEAN, 7),
        ("a + 'x' = 1", EXPECTED_NUMBER, 4), ("'x' + 1 = 1", EXPECTED_NUMBER, 0),
        ("a * TRUE = 1", EXPECTED_NUMBER, 4),
        ("-'x' = 1", EXPECTED_NUMBER, 1), ("1", EXPECTED_CONDITION, 0),
        ("'x'", EXPECTED_CONDITION, 0),
        ("a + 1", EXPECTED_CONDITION, 0), ("NOT 1", EXPECTED_CONDITION, 4),
        ("a = 1 AND 2", EXPECTED_CONDITION, 10),
        ("1 OR a = 1", EXPECTED_CONDITION, 0), ("a = 007", EXPECTED_NUMBER, 4),
        ("a = 0x", EXPECTED_NUMBER, 4),
        ("a = 1.2.3", EXPECTED_NUMBER, 4), ("a = 1e", EXPECTED_NUMBER, 4),
        ("a = 12ab", EXPECTED_OPERATOR, 6),
        ("a = 9223372036854775808", EXPECTED_SMALLER, 4),
        ("a = 0x8000000000000000", EXPECTED_SMALLER, 4),
        ("a = 1;", EXPECTED_OPERATOR, 5), ("#", EXPECTED_OPERAND, 0),
        ("__key > 1", EXPECTED_EQUALITY, 6),
        ("__key = 1", EXPECTED_STRING, 8), ("__eventTime = 'x'", EXPECTED_NUMBER, 14),
        ("a AND", EXPECTED_OPERAND, 5), ("NULL = a", EXPECTED_OPERAND, 0),
        ("a = NULL", EXPECTED_OPERAND, 4),
        (b"a = '\xff'", EXPECTED_TEXT, 5),
    ]:
        assert refused(text) == (expected, at), text


def test_size_and_depth_are_bounded():
    assert matches("(" * SELECTOR_DEPTH_MAX + "TRUE" + ")" * SELECTOR_DEPTH_MAX) is True
    assert refused("(" * (SELECTOR_DEPTH_MAX + 1) + "TRUE")[0] == EXPECTED_FLATTER
    for opening in ("(", "NOT ", "-", "1+(", "a BETWEEN 1 AND (", "TRUE AND ("):
        assert refused(opening * 500)[0] in (EXPECTED_FLATTER, EXPECTED_OPERAND), opening
    assert matches("TRUE" + " OR TRUE" * 2000) is True
    assert matches("TRUE".ljust(SELECTOR_SIZE_MAX)) is True
    assert refused("TRUE".ljust(SELECTOR_SIZE_MAX + 1)) == (EXPECTED_SHORTER, SELECTOR_SIZE_MAX)
    assert matches("++" * 30 + "1 = 1") is True


def test_no_text_and_no_metadata_is_read_beyond_its_end():
    source = random.Random(seed_of(3))
    words = ["a", "b", "__key", "1", "2.5", "'x'", "'%x_'", "(", ")", ",", "+", "-", "*", "/", "=",
             "<>", "<", ">=", "AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL",
             "TRUE", "0x1", "JMSTimestamp", "\"q\""]
    whole = metadata_of({"a": "1", "b": "x" * 200, "q": "2"}, key="k", event_time=5)
    for _ in range(5000):
        text = " ".join(source.choice(words) for _ in range(source.randrange(1, 12))).encode()
        if source.random() < 0.3:
            text = text[:source.randrange(len(text) + 1)]
        data = bytearray(whole[:source.randrange(len(whole) + 1)])
        for _ in range(source.randrange(3)):
            if data:
                data[source.randrange(len(data))] = source.randrange(256)
        asked(text, bytes(data), source.random() < 0.5)


def test_a_batch_is_asked_message_by_message():
    cdef SelectorProgram program
    cdef SelectorError error
    cdef uint8_t[8] found
    cdef uint32_t at = 0
    cdef bytes text = b"n > 1"
    cdef bytes payload = b""
    cdef uint8_t* encoded
    for n in range(4):
        metadata = metadata_of({"n": str(n)})
        if n == 3:
            metadata += b"\x20\x01"          # taken out by compaction
        payload += len(metadata).to_bytes(4, "big") + metadata
    payload += b"\xff"                       # and the rest cannot be read
    assert selector_compile(text, len(text), &program, &error) == STATUS_OK
    encoded = guarded_bytes(payload)
    assert selector_match_batch(&program, encoded, len(payload), &at, 0, 6, 0, found) != STATUS_OK
    free_guarded_bytes(encoded, payload)
    selector_free(&program)
    assert [found[at] for at in range(6)] == [0, 0, 1, 0, 1, 1]
