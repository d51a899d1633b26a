"""For whom a thread acts: a control thread for the caller that waits for it. Called by
`control_plane` and `mutex`; what the caller holds cannot be waited for here.
"""

from libc.stdint cimport uint32_t

cdef void act_for(unsigned long thread, const uint32_t* state, uint32_t waiting) noexcept
"""It waits as long as *state is `waiting`. 0 and NULL: for nobody any more."""

cdef unsigned long acting_for() noexcept
"""The thread that waits for this one; 0: none does."""
