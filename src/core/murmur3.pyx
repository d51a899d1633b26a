"""MurmurHash3 x86 32 bit: four bytes a step, little endian, then the tail and the final mix."""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy

cdef enum:
    BLOCK_FACTOR_1 = 0xCC9E2D51
    BLOCK_FACTOR_2 = 0x1B873593
    STEP_ADDEND = 0xE6546B64
    FINAL_FACTOR_1 = 0x85EBCA6B
    FINAL_FACTOR_2 = 0xC2B2AE35


cdef inline uint32_t mix_block(uint32_t block) noexcept nogil:
    block *= <uint32_t>BLOCK_FACTOR_1
    block = (block << 15) | (block >> 17)
    return block * <uint32_t>BLOCK_FACTOR_2


cdef uint32_t murmur3_blocks(uint32_t hashed, const uint8_t* data, size_t size) noexcept nogil:
    cdef uint32_t block
    cdef const uint8_t* end = data + size
    while data < end:
        memcpy(&block, data, 4)
        data += 4
        hashed ^= mix_block(block)
        hashed = (hashed << 13) | (hashed >> 19)
        hashed = hashed * 5 + <uint32_t>STEP_ADDEND
    return hashed


cdef uint32_t murmur3_end(uint32_t hashed, const uint8_t* tail, size_t size) noexcept nogil:
    cdef uint32_t block = 0
    if size & 2:
        block = tail[0] | (<uint32_t>tail[1] << 8)
        if size & 1:
            block |= <uint32_t>tail[2] << 16
    elif size & 1:
        block = tail[0]
    hashed ^= mix_block(block)
    hashed ^= <uint32_t>size
    hashed = (hashed ^ (hashed >> 16)) * <uint32_t>FINAL_FACTOR_1
    hashed = (hashed ^ (hashed >> 13)) * <uint32_t>FINAL_FACTOR_2
    return hashed ^ (hashed >> 16)


cdef uint32_t murmur3_32(uint32_t seed, const uint8_t* data, size_t size) noexcept nogil:
    cdef size_t whole = size & ~(<size_t>3)
    return murmur3_end(murmur3_blocks(seed, data, whole), data + whole, size)
