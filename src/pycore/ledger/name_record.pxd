"""NameRecord: what a ledger file says of whose it is. A value; anybody may read it."""

from libc.stdint cimport uint64_t

cdef class NameRecord:
    cdef readonly str topic              # in full; cut: what was kept of it
    cdef readonly bytes uuid             # of the file
    cdef readonly bytes folder_id
    cdef readonly uint64_t ledger_id     # 0: not known when it was made
    cdef readonly uint64_t partition_count
    cdef readonly tuple horizon          # of a compacted ledger: ledger id, entry, message
    cdef readonly bint compacted
    cdef readonly bint cut               # topic is the beginning of the name, and its checksum

cpdef tuple kept_name(str name, size_t room)
"""A name in room bytes of UTF-8, and whether it was cut: then its beginning, `-cut-` and the crc32c
of all of it, 8 hex digits."""
