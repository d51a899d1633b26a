"""MurmurHash3: Pulsar's vectors, and mmh3 as an oracle."""

import random

import pytest

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport uint8_t, uint32_t

from pulsarx._core.murmur3 cimport murmur3_32


cdef uint32_t hash_of(bytes data, uint32_t seed=0):
    cdef uint8_t* copy = guarded_bytes(data)
    cdef uint32_t found = murmur3_32(seed, copy, len(data))
    free_guarded_bytes(copy, data)
    return found


def test_vectors_of_pulsar():
    for key, hashed in [
        ("", 0), ("a", 1009084850), ("ab", 2613040991), ("abc", 3017643002), ("abcd", 1139631978),
        ("hello", 613153351), ("hello world", 1586663183), ("key1", 2610364709),
        ("key2", 1936800180),
        ("NON_KEY", 1110787044), ("NONE_KEY", 2652225187), ("Order-3459134", 3112179635),
        ("orders-aggregator-pod-2345-consumer1", 1003084738),
        ("orders-aggregator-pod-2345-consumer2", 373317202),
        ("orders-aggregator-pod-2345-consumer100", 320276078),
        ("persistent://public/default/my-topic", 2972628512),
        ("é", 269551495), ("你好", 337357348), ("😀", 3199479546),
        ("The quick brown fox jumps over the lazy dog", 776992547),
    ]:
        assert hash_of(key.encode()) == hashed, key


def test_vectors_of_raw_bytes():
    assert hash_of(b"\0") == 1364076727
    assert hash_of(b"\xff") == 4251775245
    assert hash_of(bytes(range(256))) == 3825864278
    assert hash_of(bytes(4)) == 593689054
    assert hash_of(b"\xff" * 4) == 1982413648


def test_every_length_as_mmh3():
    mmh3 = pytest.importorskip("mmh3")
    source = random.Random(3)
    for size in range(300):
        data = source.randbytes(size)
        seed = source.getrandbits(32)
        assert hash_of(data, seed) == mmh3.hash(data, seed, signed=False), size
