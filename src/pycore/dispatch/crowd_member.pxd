"""One of the consumers at the end of connections that consumer_crowd chooses from. For
consumer_crowd; entry_sink notes there what the consumer was given. With the subscription's mutex
held.
"""


cdef class CrowdMember:
    cdef object notify                   # has its connection look; None: it left the crowd
    cdef object connection               # its CrowdConnection
    cdef bint is_looker                  # it was told that something may have come, or looks
    cdef bint is_stalled                 # its connection takes no more
    cdef bint was_given                  # others queued something for it, and it was not told yet
