"""Body of acting_for.pxd."""

from libc.stdint cimport uint32_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    static __thread struct {
        unsigned long thread; uint64_t number; const uint32_t *state; uint32_t waiting;
    } pulsarx_caller;
    static void pulsarx_act_for(unsigned long thread, uint64_t number, const uint32_t *state,
                                uint32_t waiting) {
        pulsarx_caller.thread = thread;
        pulsarx_caller.number = number;
        pulsarx_caller.state = state;
        pulsarx_caller.waiting = waiting;
    }
    static unsigned long pulsarx_acting_for(void) {
        const uint32_t *state = pulsarx_caller.state;
        return state && *state == pulsarx_caller.waiting ? pulsarx_caller.thread : 0;
    }
    static uint64_t pulsarx_acting_since(void) { return pulsarx_caller.number; }
    """
    void pulsarx_act_for(unsigned long thread, uint64_t number, const uint32_t* state,
                         uint32_t waiting) noexcept
    unsigned long pulsarx_acting_for() noexcept
    uint64_t pulsarx_acting_since() noexcept


cdef uint64_t hand_over() noexcept:
    global hand_overs
    hand_overs += 1
    return hand_overs


cdef void act_for(unsigned long thread, uint64_t number, const uint32_t* state,
                  uint32_t waiting) noexcept:
    pulsarx_act_for(thread, number, state, waiting)


cdef unsigned long acting_for() noexcept:
    return pulsarx_acting_for()


cdef uint64_t acting_since() noexcept:
    return pulsarx_acting_since()
