"""Records for which caller a thread acts: a control thread for the caller that waits for it. Called
by `control_plane` and `mutex`; what the caller held when it handed the call over cannot be waited
for here. What a signal handler takes in the caller's thread meanwhile can: it is given back.
"""

from libc.stdint cimport uint32_t, uint64_t

cdef uint64_t hand_overs     # how often a call was handed over, in this process; the GIL guards it

cdef uint64_t hand_over() noexcept
"""One more is: its number."""

cdef void act_for(unsigned long thread, uint64_t number, const uint32_t* state,
                  uint32_t waiting) noexcept
"""It waits as long as *state is `waiting`. number: of the call, of hand_over. 0, 0 and NULL: for
nobody any more."""

cdef unsigned long acting_for() noexcept
"""The thread that waits for this one; 0: none does."""

cdef uint64_t acting_since() noexcept
"""The number of the call that this thread performs; 0: none."""
