"""Body of acting_for.pxd."""

from libc.stdint cimport uint32_t

cdef extern from *:
    """
    #include <stdint.h>
    static __thread struct {
        unsigned long thread; const uint32_t *state; uint32_t waiting;
    } pulsarx_caller;
    static void pulsarx_act_for(unsigned long thread, const uint32_t *state, uint32_t waiting) {
        pulsarx_caller.thread = thread;
        pulsarx_caller.state = state;
        pulsarx_caller.waiting = waiting;
    }
    static unsigned long pulsarx_acting_for(void) {
        const uint32_t *state = pulsarx_caller.state;
        return state && *state == pulsarx_caller.waiting ? pulsarx_caller.thread : 0;
    }
    """
    void pulsarx_act_for(unsigned long thread, const uint32_t* state, uint32_t waiting) noexcept
    unsigned long pulsarx_acting_for() noexcept


cdef void act_for(unsigned long thread, const uint32_t* state, uint32_t waiting) noexcept:
    pulsarx_act_for(thread, state, waiting)


cdef unsigned long acting_for() noexcept:
    return pulsarx_acting_for()
