"""The hash of a key that chooses its partition. Anybody may call it, from any thread."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.java_hash cimport java_string_hash
from pulsarx._core.murmur3 cimport murmur3_32

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef enum:
    JAVA_STRING_HASH = 0        # enumerations.HashingScheme
    MURMUR3_32_HASH = 1
    BOOST_HASH = 2
    SIGNLESS = 0x7FFFFFFF


cdef extern from *:
    """
    static uint64_t pulsarx_boost_mix(uint64_t x, uint64_t y) {
        unsigned __int128 product = (unsigned __int128)x * y;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    """
    uint64_t boost_mix "pulsarx_boost_mix"(uint64_t x, uint64_t y) noexcept nogil

cdef uint64_t BOOST_Q = 0x9e3779b97f4a7c15u
cdef uint64_t BOOST_K = 0xdf442d22ce4859b9u


cdef uint64_t little_endian(const uint8_t* at, size_t size) noexcept nogil:
    cdef uint64_t found = 0
    cdef size_t index
    for index in range(size):
        found |= <uint64_t>at[index] << (8 * index)
    return found


cdef uint64_t boost_hash(const uint8_t* at, size_t size) noexcept nogil:
    """boost::hash of a string in 64 bits, since Boost 1.81: what the official clients in C++,
    Python and Node route by unless they are told otherwise."""
    cdef uint64_t weight = boost_mix(BOOST_Q, BOOST_K)
    cdef uint64_t hash = weight ^ size
    cdef uint64_t last = 0
    while size >= 8:
        weight += BOOST_Q
        hash ^= boost_mix(little_endian(at, 8) + weight, BOOST_K)
        at += 8
        size -= 8
    if size >= 4:
        last = little_endian(at + size - 4, 4) << ((size - 4) * 8) | little_endian(at, 4)
    elif size:
        last = (<uint64_t>at[(size - 1) & 2] << ((size - 1) & 2) * 8
                | <uint64_t>at[size >> 1] << (size >> 1) * 8 | at[0])
    weight += BOOST_Q
    hash ^= boost_mix(last + weight, BOOST_K)
    return boost_mix(hash + weight, BOOST_K)


cdef int64_t partition_hash_of(int scheme, str key) except -1:
    cdef Py_ssize_t size = 0
    cdef const uint8_t* utf8 = <const uint8_t*>PyUnicode_AsUTF8AndSize(key, &size)
    return hash_of(scheme, utf8, <size_t>size)


cdef int64_t hash_of(int scheme, const uint8_t* utf8, size_t size) except -1:
    if scheme == JAVA_STRING_HASH:
        return java_string_hash(utf8, <uint32_t>size)
    if scheme == MURMUR3_32_HASH:
        return murmur3_32(0, utf8, size) & <uint32_t>SIGNLESS
    if scheme == BOOST_HASH:
        return <int64_t>(boost_hash(utf8, size) & <uint64_t>SIGNLESS)
    raise ValueError(f"hashing scheme {scheme} is not known: 0 is JavaStringHash, "
                     "1 is Murmur3_32Hash, 2 is BoostHash")


def partition_hash(int scheme, key not None) -> int:
    """Answer 0 .. 2^31-1, to be taken modulo the number of partitions.

    scheme: HashingScheme, 0 JavaStringHash, 1 Murmur3_32Hash, 2 BoostHash. key: str, or bytes,
    which are text in UTF-8 to JavaStringHash, and U+FFFD where they are none, as Java reads them.
    ValueError: another scheme, or a str that cannot be stored as UTF-8.
    """
    if isinstance(key, bytes):
        return hash_of(scheme, <const uint8_t*>PyBytes_AS_STRING(key),
                       <size_t>PyBytes_GET_SIZE(key))
    return partition_hash_of(scheme, key)
