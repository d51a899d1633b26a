/* CRC-32C in C, for crc32c.pyx alone: instructions that Cython cannot name, chosen at run time.

   All functions here work on the raw state: the caller inverts it before and after.
   crc32c_prepare() fills the tables and must have returned before anything else is called. */
#ifndef PULSARX_CRC32C_H
#define PULSARX_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "PulsarX supports little-endian machines only"
#endif

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#include <wmmintrin.h>
#define CRC32C_X86 1
/* To clang the crc32 instruction is a feature of its own, which GCC before 11 has no name for. */
#ifdef __clang__
#define CRC32C_SSE42 "sse4.2,crc32"
#else
#define CRC32C_SSE42 "sse4.2"
#endif
#if __GNUC__ >= 8 || __clang_major__ >= 8
#include <immintrin.h>
#define CRC32C_WIDE 1
#endif
#elif defined(__aarch64__) && (defined(__ARM_FEATURE_CRC32) || defined(__linux__))
#include <arm_acle.h>
#define CRC32C_ARM 1
#ifdef __clang__
#define CRC32C_ARM_FUNCTION __attribute__((target("crc")))
#else
#define CRC32C_ARM_FUNCTION __attribute__((target("+crc")))
#endif
#ifndef __ARM_FEATURE_CRC32
#include <sys/auxv.h>
#define CRC32C_HWCAP (1ul << 7) /* HWCAP_CRC32 of the kernel */
#endif
#endif

/* The polynomial of Castagnoli, lowest power in the highest bit as in the checksum itself. */
#define CRC32C_POLYNOMIAL 0x82f63b78u

/* crc32c_table[k][byte]: what a byte adds to the state when k more bytes follow it. */
static uint32_t crc32c_table[8][256];

static inline uint64_t crc32c_load_u64(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

static inline uint32_t crc32c_table_u64(uint32_t state, uint64_t word) {
    word ^= state;
    return crc32c_table[7][word & 0xff] ^ crc32c_table[6][(word >> 8) & 0xff] ^
           crc32c_table[5][(word >> 16) & 0xff] ^ crc32c_table[4][(word >> 24) & 0xff] ^
           crc32c_table[3][(word >> 32) & 0xff] ^ crc32c_table[2][(word >> 40) & 0xff] ^
           crc32c_table[1][(word >> 48) & 0xff] ^ crc32c_table[0][word >> 56];
}

static uint32_t crc32c_table_bytes(uint32_t state, const uint8_t *data, size_t size) {
    for (; size >= 8; data += 8, size -= 8)
        state = crc32c_table_u64(state, crc32c_load_u64(data));
    for (; size > 0; data++, size--)
        state = (state >> 8) ^ crc32c_table[0][(state ^ *data) & 0xff];
    return state;
}

#if CRC32C_X86

/* Three lanes at once hide the three cycles that one crc32 instruction takes. A lane of n words is
   followed by n (or 2n) words of the other lanes: its state is moved over them by one carry-less
   multiplication with crc32c_shift[n] = x^(64n - 33) mod the polynomial. The 33: the product of two
   reflected 32-bit values is one bit short of 64, and the crc32 instruction that reduces it brings
   32 more. 1024 words: above that the moves cost nothing any more, and the table stays at 8 KiB. */
#define CRC32C_LANE_WORDS_MAX 1024
#define CRC32C_LANES_SIZE_MIN 216

static uint32_t crc32c_shift[2 * CRC32C_LANE_WORDS_MAX + 1];

/* What the processor can do, and the system saves the registers for; crc32c_prepare() asks.
   __builtin_cpu_supports() would ask, too, but says no where the compiler's own library does not
   look: there a byte took ten times as long. */
static int crc32c_has_sse42, crc32c_has_pclmul, crc32c_has_avx512;

static void crc32c_ask_processor(void) {
    unsigned a, b, c, d, saved, high;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return;
    crc32c_has_sse42 = (c & bit_SSE4_2) != 0;
    crc32c_has_pclmul = (c & bit_PCLMUL) != 0;
    if (!(c & bit_OSXSAVE) || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    /* 0xe6: all of SSE, AVX and AVX-512. Leaf 7: avx512f, vpclmulqdq. */
    crc32c_has_avx512 = (saved & 0xe6) == 0xe6 && (b & (1u << 16)) && (c & (1u << 10));
}

static inline int crc32c_has_instruction(void) { return crc32c_has_sse42; }
static inline int crc32c_has_lanes(void) { return crc32c_has_pclmul; }

__attribute__((target(CRC32C_SSE42)))
static uint32_t crc32c_instruction_u64(uint32_t state, uint64_t word) {
    return (uint32_t)_mm_crc32_u64(state, word);
}

__attribute__((target(CRC32C_SSE42)))
static void crc32c_prepare_shift(void) {
    uint64_t power = 1; /* x^31, reflected */
    for (size_t words = 1; words <= 2 * CRC32C_LANE_WORDS_MAX; words++) {
        crc32c_shift[words] = (uint32_t)power;
        power = _mm_crc32_u64(power, 0);
    }
}

__attribute__((target(CRC32C_SSE42 ",pclmul")))
static uint32_t crc32c_lanes(uint32_t state, const uint8_t *data, size_t lane_words) {
    const uint8_t *at_b = data + lane_words * 8, *at_c = at_b + lane_words * 8;
    const uint8_t *last_b = at_c - 8;
    const size_t next = lane_words * 24;
    uint64_t a = state, b = 0, c = 0, moved;
    __m128i moved_a, moved_b;
    /* What a reader checks is seldom in the cache: while these lanes are computed the lines of the
       next three are asked for. 9 GB/s without that, 12 with it, 30 from the cache. */
    for (; at_b + 64 <= last_b; data += 64, at_b += 64, at_c += 64) {
        _mm_prefetch((const char *)data + next, _MM_HINT_T0);
        _mm_prefetch((const char *)at_b + next, _MM_HINT_T0);
        _mm_prefetch((const char *)at_c + next, _MM_HINT_T0);
        for (int word = 0; word < 64; word += 8) {
            a = _mm_crc32_u64(a, crc32c_load_u64(data + word));
            b = _mm_crc32_u64(b, crc32c_load_u64(at_b + word));
            c = _mm_crc32_u64(c, crc32c_load_u64(at_c + word));
        }
    }
    for (; at_b < last_b; data += 8, at_b += 8, at_c += 8) {
        a = _mm_crc32_u64(a, crc32c_load_u64(data));
        b = _mm_crc32_u64(b, crc32c_load_u64(at_b));
        c = _mm_crc32_u64(c, crc32c_load_u64(at_c));
    }
    a = _mm_crc32_u64(a, crc32c_load_u64(data));
    b = _mm_crc32_u64(b, crc32c_load_u64(at_b));
    moved_a = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)a),
                                   _mm_cvtsi32_si128((int)crc32c_shift[2 * lane_words]), 0);
    moved_b = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)b),
                                   _mm_cvtsi32_si128((int)crc32c_shift[lane_words]), 0);
    moved = (uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(moved_a, moved_b));
    return (uint32_t)_mm_crc32_u64(c, crc32c_load_u64(at_c) ^ moved);
}

__attribute__((target(CRC32C_SSE42)))
static uint32_t crc32c_narrow_bytes(uint32_t state, const uint8_t *data, size_t size) {
    uint64_t wide;
    if (size >= CRC32C_LANES_SIZE_MIN && crc32c_has_lanes()) {
        do {
            size_t words = size / 24;
            if (words > CRC32C_LANE_WORDS_MAX)
                words = CRC32C_LANE_WORDS_MAX;
            state = crc32c_lanes(state, data, words);
            data += words * 24;
            size -= words * 24;
        } while (size >= CRC32C_LANES_SIZE_MIN);
    }
    for (wide = state; size >= 8; data += 8, size -= 8)
        wide = _mm_crc32_u64(wide, crc32c_load_u64(data));
    state = (uint32_t)wide;
    if (size & 4) {
        uint32_t word;
        memcpy(&word, data, 4);
        state = _mm_crc32_u32(state, word);
        data += 4;
    }
    if (size & 2) {
        uint16_t word;
        memcpy(&word, data, 2);
        state = _mm_crc32_u16(state, word);
        data += 2;
    }
    if (size & 1)
        state = _mm_crc32_u8(state, *data);
    return state;
}

#if CRC32C_WIDE

/* Four registers of 64 bytes are moved over the 256 bytes that follow, which are added: carry-less
   multiplication of each half of 16 bytes by crc32c_shift, as above. 60 GB/s from the cache; the
   lanes are limited by one crc32 instruction a cycle. */
#define CRC32C_WIDE_SIZE_MIN 256
#define CRC32C_WIDE_FUNCTION __attribute__((target(CRC32C_SSE42 ",pclmul,avx512f,vpclmulqdq")))

static inline int crc32c_has_wide(void) { return crc32c_has_avx512; }

CRC32C_WIDE_FUNCTION
static inline __m512i crc32c_moved(__m512i over, size_t words, __m512i next) {
    /* The half in front has 64 bits more to go. 0x96: the exclusive or of all three. */
    const __m512i shift = _mm512_broadcast_i32x4(
        _mm_set_epi64x((long long)crc32c_shift[words], (long long)crc32c_shift[words + 1]));
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(over, shift, 0x00),
                                     _mm512_clmulepi64_epi128(over, shift, 0x11), next, 0x96);
}

CRC32C_WIDE_FUNCTION
static inline __m128i crc32c_moved_part(__m128i over, size_t words, __m128i next) {
    const __m128i shift =
        _mm_set_epi64x((long long)crc32c_shift[words], (long long)crc32c_shift[words + 1]);
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(over, shift, 0x00),
                                       _mm_clmulepi64_si128(over, shift, 0x11)),
                         next);
}

/* Takes size & ~63 bytes, which are CRC32C_WIDE_SIZE_MIN at least. */
CRC32C_WIDE_FUNCTION
static uint32_t crc32c_wide(uint32_t state, const uint8_t *data, size_t size) {
    const uint8_t *end = data + (size & ~(size_t)63);
    __m512i a = _mm512_loadu_si512(data), b = _mm512_loadu_si512(data + 64);
    __m512i c = _mm512_loadu_si512(data + 128), d = _mm512_loadu_si512(data + 192);
    __m128i rest;
    a = _mm512_xor_si512(a, _mm512_maskz_set1_epi32(1, (int)state));
    for (data += 256; end - data >= 256; data += 256) {
        a = crc32c_moved(a, 32, _mm512_loadu_si512(data));
        b = crc32c_moved(b, 32, _mm512_loadu_si512(data + 64));
        c = crc32c_moved(c, 32, _mm512_loadu_si512(data + 128));
        d = crc32c_moved(d, 32, _mm512_loadu_si512(data + 192));
    }
    d = crc32c_moved(a, 24, crc32c_moved(b, 16, crc32c_moved(c, 8, d)));
    for (; data < end; data += 64)
        d = crc32c_moved(d, 8, _mm512_loadu_si512(data));
    rest = _mm512_extracti32x4_epi32(d, 3);
    rest = crc32c_moved_part(_mm512_extracti32x4_epi32(d, 2), 2, rest);
    rest = crc32c_moved_part(_mm512_extracti32x4_epi32(d, 1), 4, rest);
    rest = crc32c_moved_part(_mm512_castsi512_si128(d), 6, rest);
    return (uint32_t)_mm_crc32_u64(_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(rest)),
                                   (uint64_t)_mm_extract_epi64(rest, 1));
}

static uint32_t crc32c_instruction_bytes(uint32_t state, const uint8_t *data, size_t size) {
    if (size >= CRC32C_WIDE_SIZE_MIN && crc32c_has_wide()) {
        state = crc32c_wide(state, data, size);
        data += size & ~(size_t)63;
        size &= 63;
    }
    return crc32c_narrow_bytes(state, data, size);
}

#else

#define crc32c_instruction_bytes crc32c_narrow_bytes

#endif

#elif CRC32C_ARM

#ifdef __ARM_FEATURE_CRC32
static inline int crc32c_has_instruction(void) { return 1; }
static void crc32c_ask_processor(void) {}
#else
static int crc32c_has_crc;
static inline int crc32c_has_instruction(void) { return crc32c_has_crc; }
static void crc32c_ask_processor(void) {
    crc32c_has_crc = (getauxval(AT_HWCAP) & CRC32C_HWCAP) != 0;
}
#endif
static void crc32c_prepare_shift(void) {}

CRC32C_ARM_FUNCTION
static uint32_t crc32c_instruction_u64(uint32_t state, uint64_t word) {
    return __crc32cd(state, word);
}

CRC32C_ARM_FUNCTION
static uint32_t crc32c_instruction_bytes(uint32_t state, const uint8_t *data, size_t size) {
    for (; size >= 8; data += 8, size -= 8)
        state = __crc32cd(state, crc32c_load_u64(data));
    for (; size > 0; data++, size--)
        state = __crc32cb(state, *data);
    return state;
}

#define crc32c_narrow_bytes crc32c_instruction_bytes

#else

static inline int crc32c_has_instruction(void) { return 0; }
static void crc32c_ask_processor(void) {}
static void crc32c_prepare_shift(void) {}
#define crc32c_instruction_u64 crc32c_table_u64
#define crc32c_instruction_bytes crc32c_table_bytes
#define crc32c_narrow_bytes crc32c_table_bytes

#endif

static inline uint32_t crc32c_state_u64(uint32_t state, uint64_t word) {
    if (__builtin_expect(crc32c_has_instruction() != 0, 1))
        return crc32c_instruction_u64(state, word);
    return crc32c_table_u64(state, word);
}

static inline uint32_t crc32c_state_bytes(uint32_t state, const uint8_t *data, size_t size) {
    if (__builtin_expect(crc32c_has_instruction() != 0, 1))
        return crc32c_instruction_bytes(state, data, size);
    return crc32c_table_bytes(state, data, size);
}

/* As a processor without the widest registers does it: for tests. */
static inline uint32_t crc32c_older_bytes(uint32_t state, const uint8_t *data, size_t size) {
    if (crc32c_has_instruction())
        return crc32c_narrow_bytes(state, data, size);
    return crc32c_table_bytes(state, data, size);
}

static void crc32c_prepare(void) {
    crc32c_ask_processor();
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t state = byte;
        for (int bit = 0; bit < 8; bit++)
            state = (state >> 1) ^ ((state & 1) ? CRC32C_POLYNOMIAL : 0);
        crc32c_table[0][byte] = state;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int k = 1; k < 8; k++)
            crc32c_table[k][byte] = (crc32c_table[k - 1][byte] >> 8) ^
                                    crc32c_table[0][crc32c_table[k - 1][byte] & 0xff];
    if (crc32c_has_instruction())
        crc32c_prepare_shift();
}

#endif
