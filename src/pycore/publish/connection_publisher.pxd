"""An EntryPublisher that sends the entries of a producer over a connection, unchanged, and confirms
them as the broker at the other end does."""

from libc.stdint cimport uint64_t

from pulsarx._pycore.ground.condition cimport Condition
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher


cdef class ConnectionPublisher(EntryPublisher):
    cdef object send                     # (sequence id, messages, entry): only enqueues
    # deque of (sequence id, receipt, messages, callbacks, awaited): sent, not answered, oldest
    # first
    cdef object pending
    cdef dict refused                    # receipt: why it failed, until its `wait` is told
    cdef object failure                  # of an entry that nobody waited for
    cdef Condition answered              # answered_count grew
    cdef uint64_t sent_count             # entries
    cdef uint64_t answered_count

    cdef int wait_until(self, uint64_t count) except -1
    cdef int tell(self) except -1
    cdef tuple take_oldest(self, uint64_t sequence_id)
