"""Takes a mutex of the core from code that holds the GIL. Everybody in pycore may call.

One rule keeps GIL and mutexes free of deadlock: nobody sleeps on a mutex with the GIL in hand. So
whoever holds a
mutex can always get the GIL back.
"""

from pulsarx._core.atomic cimport pthread_mutex_lock, pthread_mutex_t, pthread_mutex_trylock


cdef inline void mutex_lock(pthread_mutex_t* mutex) noexcept:
    if pthread_mutex_trylock(mutex) != 0:
        with nogil:
            pthread_mutex_lock(mutex)
