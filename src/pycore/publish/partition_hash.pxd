"""The hash of a key that chooses its partition."""

from libc.stdint cimport int64_t

cdef int64_t partition_hash_of(int scheme, str key) except -1
"""See partition_hash."""
