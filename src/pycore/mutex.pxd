"""Takes a mutex of the core from code that holds the GIL. Everybody in pycore may call.

One rule keeps GIL and mutexes free of deadlock: nobody sleeps on a mutex with the GIL in hand. So
whoever holds a mutex can always get the GIL back.

The mutexes of the core itself (a ledger's append and flush mutex) are another kind: they are taken
and given back inside one nogil block and never by this function. Their holder needs no GIL, so core
functions may wait for them with the GIL in hand.
"""

from pulsarx._core.atomic cimport pthread_mutex_lock, pthread_mutex_t, pthread_mutex_trylock


cdef inline void mutex_lock(pthread_mutex_t* mutex) noexcept:
    if pthread_mutex_trylock(mutex) != 0:
        with nogil:
            pthread_mutex_lock(mutex)
