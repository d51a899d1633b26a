"""The messages in chunks that the two passes of a compaction come to: which chunk belongs to which,
and where those end that became whole. Beneath key_compaction, one thread at a time.

A position is the number of a message in a pass. Both passes come to the same messages.
"""

from libc.stdint cimport uint64_t

from pulsarx._core.key_positions cimport KeyPositions
from pulsarx._core.message_metadata cimport EntryParts


cdef class FollowedChunks:
    cdef KeyPositions ends               # where messages end, by where they begin
    # by uuid, of messages whose last chunk did not come yet: [position of the first chunk, chunks
    # that came, chunks that belong to it]
    cdef dict open
    cdef Py_ssize_t open_max
    cdef bint lost_sight                 # there were more: some are not in it
    cdef dict left_open                  # `open` behind the first pass; None: that goes on

    cdef list follow(self, const EntryParts* parts, uint64_t first)
    """The message of `open` that a chunk belongs to, by the rules of chunk_assembler; None: it
    belongs to none that can become whole."""

    cdef int note_end(self, list chunked, uint64_t last) noexcept
    """The last chunk of a message is there; a status."""

    cdef int begin_again(self) except -1
    """The second pass begins, or goes on."""

    cdef bint find_end(self, list chunked, uint64_t* end) noexcept
    """Find where a message ends; False: it became whole in neither pass."""

    cdef bint may_end_later(self, const EntryParts* parts, list chunked) except -1
    """Whether the message of a chunk may end behind what is compacted."""
