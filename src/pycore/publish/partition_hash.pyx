"""The hash of a key that chooses its partition. Anybody may call it, from any thread."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t

from pulsarx._core.java_hash cimport java_string_hash
from pulsarx._core.murmur3 cimport murmur3_32

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef enum:
    JAVA_STRING_HASH = 0        # enumerations.HashingScheme
    MURMUR3_32_HASH = 1
    SIGNLESS = 0x7FFFFFFF


cdef int64_t partition_hash_of(int scheme, str key) except -1:
    cdef Py_ssize_t size = 0
    cdef const uint8_t* utf8 = <const uint8_t*>PyUnicode_AsUTF8AndSize(key, &size)
    return hash_of(scheme, utf8, <size_t>size)


cdef int64_t hash_of(int scheme, const uint8_t* utf8, size_t size) except -1:
    if scheme == JAVA_STRING_HASH:
        return java_string_hash(utf8, <uint32_t>size)
    if scheme == MURMUR3_32_HASH:
        return murmur3_32(0, utf8, size) & <uint32_t>SIGNLESS
    raise ValueError(f"hashing scheme {scheme} is not known: 0 is JavaStringHash, "
                     "1 is Murmur3_32Hash")


def partition_hash(int scheme, key not None) -> int:
    """Answer 0 .. 2^31-1, to be taken modulo the number of partitions.

    scheme: HashingScheme, 0 JavaStringHash, 1 Murmur3_32Hash. key: str, or bytes, which are text in
    UTF-8 to JavaStringHash, and U+FFFD where they are none, as Java reads them.
    ValueError: another scheme, or a str that cannot be stored as UTF-8.
    """
    if isinstance(key, bytes):
        return hash_of(scheme, <const uint8_t*>PyBytes_AS_STRING(key),
                       <size_t>PyBytes_GET_SIZE(key))
    return partition_hash_of(scheme, key)
