"""Blocks of LZ4 without a frame or a size, as Pulsar's clients write them. Any thread may call.

The reference implementation, which is compiled in (vendored/lz4); the caller gives the room.
"""

from libc.stdint cimport uint8_t

cdef size_t lz4_block_bound(size_t plain_size) noexcept nogil
"""Bytes that a block of so many may need; 0: more than LZ4 takes, about 2 GiB."""

cdef size_t lz4_block_compress(const uint8_t* plain, size_t plain_size, uint8_t* room,
                               size_t room_size) noexcept nogil
"""Write the block and answer its size. room_size: `lz4_block_bound` at least. 16 KiB of stack."""

cdef int lz4_block_decompress(const uint8_t* block, size_t block_size, uint8_t* room,
                              size_t plain_size) noexcept nogil
"""Undo it. The block is untrusted: no byte outside of either is touched.

STATUS_CORRUPT: it is no block, or not one of exactly plain_size bytes; the room holds anything.
STATUS_TOO_LARGE: one of the sizes is more than LZ4 takes.
"""
