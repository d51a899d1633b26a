"""Blocks of Snappy without framing, as Pulsar's clients write them. Any thread may call.

  a block    varint of the plain size, then elements
  element    low bits of its tag   meaning
  literal    00                    length - 1 in the upper six bits; 60..63: in 1..4 bytes behind
  copy       01                    length - 4 in three bits; offset in three bits and one byte
  copy       10                    length - 1 in six bits; offset in two bytes
  copy       11                    length - 1 in six bits; offset in four bytes

Source: Snappy's format_description.txt. The caller gives the room, and the table for compressing.
"""

from libc.stdint cimport uint8_t, uint16_t

cdef enum:
    SNAPPY_TABLE_SIZE = 16384    # elements of the table that compressing takes

cdef size_t snappy_block_bound(size_t plain_size) noexcept nogil
"""Bytes that a block of so many may need; 0: more than a block may hold, 4 GiB."""

cdef size_t snappy_block_compress(const uint8_t* plain, size_t plain_size, uint8_t* room,
                                  uint16_t* table) noexcept nogil
"""Write the block and answer its size. room: of `snappy_block_bound` bytes at least."""

cdef int snappy_block_decompress(const uint8_t* block, size_t block_size, uint8_t* room,
                                 size_t plain_size) noexcept nogil
"""Undo it. The block is untrusted: no byte outside of either is touched.

STATUS_CORRUPT: it is no block, or not one of exactly plain_size bytes; the room holds anything.
"""
