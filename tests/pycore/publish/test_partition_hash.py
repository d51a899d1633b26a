"""The hashes that choose a partition: Pulsar's vectors, and properties of any text."""

from __future__ import annotations

import mmh3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarx._pycore.publish.partition_hash import partition_hash
from pulsarx._pycore.ranges.entry_codec import murmur3_32
from pulsarx.enumerations import HashingScheme

JAVA = HashingScheme.JavaStringHash.value
MURMUR = HashingScheme.Murmur3_32Hash.value

# key, JavaStringHash, mod 4, murmur3 x86 32 of it, Murmur3_32Hash, mod 4
VECTORS = [
    ("", 0, 0, 0, 0, 0),
    ("a", 97, 1, 1009084850, 1009084850, 2),
    ("ab", 3105, 1, 2613040991, 465557343, 3),
    ("abc", 96354, 2, 3017643002, 870159354, 2),
    ("abcd", 2987074, 2, 1139631978, 1139631978, 2),
    ("hello", 99162322, 2, 613153351, 613153351, 3),
    ("hello world", 1794106052, 0, 1586663183, 1586663183, 3),
    ("key1", 3288498, 2, 2610364709, 462881061, 1),
    ("key2", 3288499, 3, 1936800180, 1936800180, 0),
    ("key-0", 101943362, 2, 3812096191, 1664612543, 3),
    ("key-1", 101943363, 3, 2561742240, 414258592, 0),
    ("key-2", 101943364, 0, 4093138188, 1945654540, 0),
    ("my-key", 1086286526, 2, 1844492593, 1844492593, 1),
    ("Order-3459134", 1082638286, 2, 3112179635, 964695987, 3),
    ("NONE_KEY", 45784248, 0, 2652225187, 504741539, 3),
    ("NON_KEY", 694968749, 1, 1110787044, 1110787044, 0),
    ("orders-aggregator-pod-2345-consumer1", 1874640788, 0, 1003084738, 1003084738, 2),
    ("orders-aggregator-pod-2345-consumer2", 1874640789, 1, 373317202, 373317202, 2),
    ("orders-aggregator-pod-2345-consumer100", 1938501780, 0, 320276078, 320276078, 2),
    ("polygenelubricants", 0, 0, 3249086048, 1101602400, 0),
    ("Aa", 2112, 0, 2861156801, 713673153, 1),
    ("BB", 2112, 0, 1707312886, 1707312886, 2),
    ("persistent://public/default/my-topic", 1469264831, 3, 2972628512, 825144864, 0),
    ("é", 233, 1, 269551495, 269551495, 3),
    ("你好", 652829, 1, 337357348, 337357348, 0),
    ("😀", 1772899, 3, 3199479546, 1051995898, 2),
    ("0123456789abcdef", 285443752, 0, 919068895, 919068895, 3),
    ("The quick brown fox jumps over the lazy dog", 1538055507, 3, 776992547, 776992547, 3),
]
# The constants of the tests of Pulsar's C++ client.
UPSTREAM = [
    (MURMUR, "k1", 2110152746),
    (MURMUR, "k2", 1479966664),
    (MURMUR, "key1", 462881061),
    (MURMUR, "key2", 1936800180),
    (MURMUR, "key01", 39696932),
    (MURMUR, "key02", 751761803),
    (JAVA, "keykeykeykeykey1", 434058482),
    (JAVA, "keykeykey2", 42978643),
]


@pytest.mark.parametrize(("key", "java", "java_mod_4", "raw", "murmur", "murmur_mod_4"), VECTORS)
def test_vectors(
    key: str, java: int, java_mod_4: int, raw: int, murmur: int, murmur_mod_4: int
) -> None:
    assert partition_hash(JAVA, key) == java
    assert partition_hash(JAVA, key) % 4 == java_mod_4
    assert murmur3_32(key.encode()) == raw
    assert partition_hash(MURMUR, key) == murmur
    assert partition_hash(MURMUR, key) % 4 == murmur_mod_4


@pytest.mark.parametrize(
    ("data", "raw", "masked"),
    [
        (b"\0", 1364076727, 1364076727),
        (b"\xff", 4251775245, 2104291597),
        (bytes(range(256)), 3825864278, 1678380630),
        (bytes(4), 593689054, 593689054),
        (b"\xff" * 4, 1982413648, 1982413648),
    ],
)
def test_vectors_of_raw_bytes(data: bytes, raw: int, masked: int) -> None:
    assert murmur3_32(data) == raw
    assert raw & 0x7FFFFFFF == masked


@pytest.mark.parametrize(("scheme", "key", "hashed"), UPSTREAM)
def test_vectors_of_upstream(scheme: int, key: str, hashed: int) -> None:
    assert partition_hash(scheme, key) == hashed


def test_the_schemes_have_the_numbers_of_the_enumeration() -> None:
    """'There are 2 types of standard hashing functions available: `JavaStringHash` and
    `Murmur3_32Hash`. The default hashing function for producers is `JavaStringHash`.' The third is
    that of the client in C++."""
    assert {name: int(member.value) for name, member in HashingScheme.__members__.items()} == {
        "JavaStringHash": 0,
        "Murmur3_32Hash": 1,
        "BoostHash": 2,
    }


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text(key: str) -> None:
    units = key.encode("utf-16-be")
    hashed = 0
    for at in range(0, len(units), 2):
        hashed = (31 * hashed + int.from_bytes(units[at : at + 2], "big")) % 2**32
    assert partition_hash(JAVA, key) == hashed % 2**31
    assert partition_hash(MURMUR, key) == mmh3.hash(key, 0, signed=False) % 2**31


def test_bytes_are_text_to_one_scheme_and_bytes_to_the_other() -> None:
    assert partition_hash(JAVA, "aé水🐟".encode()) == partition_hash(JAVA, "aé水🐟")
    assert partition_hash(JAVA, b"a\xffb") == partition_hash(JAVA, "a\ufffdb")
    assert partition_hash(MURMUR, b"a\xffb") == mmh3.hash(b"a\xffb", 0, signed=False) % 2**31


def test_bad_arguments() -> None:
    for scheme in (-1, 3, 100):
        with pytest.raises(ValueError, match=f"hashing scheme {scheme} is not known"):
            partition_hash(scheme, "key")
    for key in (None, bytearray(b"key"), 1):
        with pytest.raises(TypeError):
            partition_hash(JAVA, key)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="surrogates not allowed"):
        partition_hash(JAVA, "\ud83d")
