"""Facts about reading a connection in the place of its reading thread."""

import socket

from libc.stdint cimport uint8_t, uint32_t

from pulsarx._core.wait_event cimport WaitEvent, wait_event_enter, wait_event_leave, wait_event_wake
from pulsarx._pycore.ground.owner_link cimport LinkTaker, OwnerLink


cdef class Taker(LinkTaker):
    """Takes single bytes, up to one that it leaves."""
    cdef object taken
    cdef bint leaves
    cdef WaitEvent* wakes                # with each; NULL: nothing

    cdef bint take(self, const uint8_t* data, size_t size) except -1:
        self.taken += data[:size]
        if self.wakes != NULL:
            wait_event_wake(self.wakes)
        return not self.leaves


cdef class Connection:
    cdef OwnerLink link
    cdef Taker taker
    cdef object ours
    cdef object theirs
    cdef WaitEvent event

    def __init__(self):
        self.ours, self.theirs = socket.socketpair()
        self.link = OwnerLink(self.ours.fileno())
        self.taker = Taker()
        self.taker.taken = b""
        self.event.event = self.event.waiters = 0
        self.link.let_callers_read(self.taker)
        assert self.wait() == b""

    def wait(self):
        """What the reading thread gets now; None: the end."""
        buffer = bytearray(100)
        size = self.link.wait(buffer, True, 0)
        return None if size < 0 else bytes(buffer[:size])

    def lead(self, ms=0):
        """Whether a caller could read, for so long."""
        cdef uint32_t seen = wait_event_enter(&self.event)
        try:
            return self.link.lead(&self.event, seen, ms * 1000000, [], None)
        finally:
            wait_event_leave(&self.event)


def test_a_caller_reads_and_the_reading_thread_does_afterwards():
    connection = Connection()
    connection.theirs.send(b"1")
    assert connection.lead()
    assert connection.taker.taken == b"1"
    connection.theirs.send(b"2")
    assert connection.wait() == b"2"


def test_a_caller_reads_until_its_event_moves():
    connection = Connection()
    connection.taker.wakes = &connection.event
    connection.theirs.send(b"1")
    assert connection.lead(60000)
    assert connection.taker.taken == b"1"


def test_nobody_else_reads_what_the_reading_thread_is_doing():
    connection = Connection()
    connection.theirs.send(b"1")
    assert connection.wait() == b"1"
    connection.theirs.send(b"2")
    assert not connection.lead()
    assert connection.wait() == b"2"


def test_what_a_caller_leaves_is_the_reading_threads():
    connection = Connection()
    connection.taker.leaves = True
    connection.theirs.send(b"1")
    assert connection.lead()
    assert not connection.lead()
    assert connection.wait() == b""
    assert connection.link.was_left
    assert not connection.lead()
    assert connection.wait() == b""
    assert not connection.link.was_left
    assert connection.lead()


def test_what_a_caller_left_is_done_before_the_end_is_told():
    """An answer that came right before the owner hung up."""
    connection = Connection()
    connection.taker.leaves = True
    connection.theirs.send(b"1")
    assert connection.lead()
    connection.theirs.close()
    assert connection.wait() == b""
    assert connection.link.was_left
    assert connection.wait() is None


def test_the_end_is_for_the_reading_thread():
    connection = Connection()
    connection.theirs.close()
    assert connection.lead()
    assert not connection.lead()
    assert connection.wait() is None
