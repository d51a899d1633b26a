"""LZ4: the way in; the bodies are in vendored/lz4/lz4.c, of which only what is called is kept."""

from libc.limits cimport INT_MAX
from libc.stdint cimport uint8_t

from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK, STATUS_TOO_LARGE

cdef extern from "lz4_block.h" nogil:
    int LZ4_compressBound(int inputSize) noexcept
    int LZ4_compress_default(const char* src, char* dst, int srcSize, int dstCapacity) noexcept
    int LZ4_decompress_safe(const char* src, char* dst, int compressedSize,
                            int dstCapacity) noexcept


cdef size_t lz4_block_bound(size_t plain_size) noexcept nogil:
    return <size_t>LZ4_compressBound(<int>plain_size) if plain_size <= <size_t>INT_MAX else 0


cdef size_t lz4_block_compress(const uint8_t* plain, size_t plain_size, uint8_t* room,
                               size_t room_size) noexcept nogil:
    if room_size > <size_t>INT_MAX:
        room_size = <size_t>INT_MAX
    return <size_t>LZ4_compress_default(<const char*>plain, <char*>room, <int>plain_size,
                                        <int>room_size)


cdef int lz4_block_decompress(const uint8_t* block, size_t block_size, uint8_t* room,
                              size_t plain_size) noexcept nogil:
    cdef int found
    if block_size > <size_t>INT_MAX or plain_size > <size_t>INT_MAX:
        return STATUS_TOO_LARGE
    found = LZ4_decompress_safe(<const char*>block, <char*>room, <int>block_size,
                                <int>plain_size)
    if found < 0 or <size_t>found != plain_size:
        return STATUS_CORRUPT
    return STATUS_OK
