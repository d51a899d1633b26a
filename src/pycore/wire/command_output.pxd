"""Collects the commands for the other end of a connection, as bytes. Any thread that holds the GIL
may write; commands leave in the order in which they were written.

CommandOutput passes each on at once. SocketOutput collects them: the thread that does what has come
over the connection (`hold`) sends what it wrote when it is through (`release`), with one call of
the system and past the loop, and for all others the loop is asked to take what there is. Two
buffers: `fresh` is written to with the GIL, `leaving` belongs to who has `sending`. What the socket
does not take goes to the transport of the loop, and so does all behind it until that has nothing.
"""

from libc.stdint cimport uint8_t

from pulsarx._pycore.ground.mutex cimport OwnedMutex


cdef struct OutputBytes:
    uint8_t* data                        # owned
    size_t at                            # of the first that has not left
    size_t end
    size_t capacity


cdef class CommandOutput:
    cdef object write                    # called with the bytes of a command; None: see a subclass
    cdef object has_more_room            # whether more is to be delivered
    cdef OutputBytes fresh

    cdef uint8_t* room(self, size_t size) except NULL
    """Return room for a command of so many bytes, which `filled` says is written. Until then no
    Python runs. MemoryError: nothing has changed."""

    cdef int filled(self, size_t size) except -1
    """A command was written into the room. What this raises leaves it in its place: it goes out
    with the next one."""

    cpdef int put(self, bytes command) except -1
    """Write the bytes of one command, or several."""

    cpdef bint has_room(self) except -1
    """Whether the other end takes more of what may wait. False: there is a wake when it does."""

    cdef int push(self) except -1
    """Let go of what was written, if it is much. With no mutex held."""


cdef class SocketOutput(CommandOutput):
    cdef object ask                      # has the loop call `take` soon
    cdef object room_came                # called when there is room that was wanted
    cdef OutputBytes leaving
    cdef OwnedMutex sending              # of `leaving`, and of the order in which bytes leave
    cdef int descriptor                  # of the socket; -1: nothing is sent past the loop
    cdef bint is_direct                  # the transport has nothing
    cdef bint is_asked                   # the loop was, and has not come
    cdef unsigned long holder            # the thread that sends what it writes; 0: none
    cdef size_t unsent_max
    cdef bint blocked                    # the transport has too much
    cdef bint lost
    cdef bint wants_room                 # somebody waits for it

    cdef size_t unsent(self) noexcept
    cdef bint is_roomy(self) noexcept
    cdef int ask_loop(self) except -1
    cdef int send(self) except -1
    """Send what the socket takes. `sending` held."""
