"""Which topics a consumer of several topics looks at next: in turn, or by their priority first.

No mutex is held here: all of it changes under the GIL. A flag that is set waits in its lane. With
priorities there is a lane for each of them, and the most urgent lane with a flag comes first;
behind LOWER_TURN - 1 messages of it that others waited for, one of these has a turn.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t

from pulsarx._core.wait_event cimport WaitEvent, wait_event_wake
from pulsarx._pycore.ground.watchers cimport watchers_call


cdef enum:
    LOWER_TURN = 100       # of so many messages one is of a lower priority, if one waits


cdef class ReadyFlag


cdef class ReadyLane:
    """The flags of one priority that are set, each once, in the order they were."""
    cdef ReadyFlag first                 # None: none is
    cdef ReadyFlag last
    cdef int64_t priority                # of its topics; lower is more urgent
    cdef uint64_t turn                   # number of the message that was taken from them last


cdef class ReadyList(ReadyLane):
    """The flags of a consumer that are set. Wakes its receivers, calls its watchers. It is the lane
    of the topics that have no priority."""
    cdef WaitEvent event
    cdef list watchers
    cdef list lanes                      # by urgency, this one last; None: no topic has a priority
    cdef uint64_t turns                  # messages taken, counted where there are lanes
    cdef uint64_t in_a_row               # of them, since a lower lane that waited had a turn

    cdef ReadyLane lane_of(self, object priority)
    """The lane of a priority; None: of the topics without one. It is made when it is missing."""

    cdef ReadyLane next_lane(self)
    """The lane to look at next, of several; without a flag: none has one."""

    cdef int took(self, ReadyLane lane, uint64_t count) except -1
    """So many messages were taken from a topic of one of several lanes, whose flag is not set
    again yet."""

    cdef int unchain(self) except -1
    """Take the lanes apart: their flags refer to each other, and they to them."""


@cython.final
cdef class ReadyFlag:
    """Told by a topic that messages may have come. Refers to no consumer, so that a topic keeps
    none alive."""
    cdef ReadyList ready
    cdef ReadyLane lane
    cdef ReadyFlag next                  # that was set after this one
    cdef Py_ssize_t at                   # of its source among those of the consumer
    cdef bint is_set                     # it is in its lane

    cdef inline int mark(self) except -1:
        """Like signal, for a caller that looks itself: no receiver is woken, no watcher called."""
        cdef ReadyLane lane = self.lane
        if not self.is_set:
            self.is_set = True
            if lane.last is None:
                lane.first = self
            else:
                lane.last.next = self
            lane.last = self
        return 0

    cdef inline int signal(self) except -1:
        self.mark()
        wait_event_wake(&self.ready.event)
        return watchers_call(self.ready.watchers)


cdef inline ReadyFlag lane_next(ReadyLane self):
    cdef ReadyFlag flag = self.first
    if flag is not None:
        self.first = flag.next
        if self.first is None:
            self.last = None
        flag.next = None
        flag.is_set = False
    return flag


cdef inline ReadyFlag ready_next(ReadyList self):
    """The flag to look at next, which is cleared; None: none is set."""
    if self.lanes is None:
        return lane_next(self)
    return lane_next(self.next_lane())


cdef inline bint ready_any(ReadyList self) except -1:
    """Whether a flag is set."""
    return self.first is not None or (
        self.lanes is not None and self.next_lane().first is not None)
