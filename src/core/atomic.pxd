"""Atomic loads and stores that other threads and processes see, and the mutex of the library. Any
module may use it."""

from libc.stdint cimport uint32_t, uint64_t

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    int pthread_mutex_init(pthread_mutex_t* mutex, const void* attributes)
    int pthread_mutex_destroy(pthread_mutex_t* mutex)
    int pthread_mutex_lock(pthread_mutex_t* mutex)
    int pthread_mutex_trylock(pthread_mutex_t* mutex)
    int pthread_mutex_unlock(pthread_mutex_t* mutex)

cdef extern from *:
    """
    #ifndef PULSARX_ATOMIC
    #define PULSARX_ATOMIC
    #include <stdint.h>
    static inline uint32_t atomic_load_u32(const uint32_t *at) {
        return __atomic_load_n(at, __ATOMIC_ACQUIRE);
    }
    static inline uint64_t atomic_load_u64(const uint64_t *at) {
        return __atomic_load_n(at, __ATOMIC_ACQUIRE);
    }
    static inline void atomic_store_u32(uint32_t *at, uint32_t v) {
        __atomic_store_n(at, v, __ATOMIC_RELEASE);
    }
    static inline void atomic_store_u64(uint64_t *at, uint64_t v) {
        __atomic_store_n(at, v, __ATOMIC_RELEASE);
    }
    static inline uint32_t atomic_add_u32(uint32_t *at, uint32_t v) {
        return __atomic_fetch_add(at, v, __ATOMIC_SEQ_CST);
    }
    static inline uint32_t atomic_sub_u32(uint32_t *at, uint32_t v) {
        return __atomic_fetch_sub(at, v, __ATOMIC_SEQ_CST);
    }
    static inline int atomic_swap_if_u32(uint32_t *at, uint32_t expected, uint32_t v) {
        return __atomic_compare_exchange_n(at, &expected, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    static inline void atomic_fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
    #endif
    """
    uint32_t atomic_load_u32(const uint32_t* at) noexcept nogil
    uint64_t atomic_load_u64(const uint64_t* at) noexcept nogil
    void atomic_store_u32(uint32_t* at, uint32_t value) noexcept nogil
    void atomic_store_u64(uint64_t* at, uint64_t value) noexcept nogil
    uint32_t atomic_add_u32(uint32_t* at, uint32_t value) noexcept nogil
    uint32_t atomic_sub_u32(uint32_t* at, uint32_t value) noexcept nogil
    bint atomic_swap_if_u32(uint32_t* at, uint32_t expected, uint32_t value) noexcept nogil
    void atomic_fence() noexcept nogil
