# cython: language_level=3
"""Body of ready_list.pxd."""

from libc.stdint cimport uint64_t


cdef class ReadyLane:
    """See the pxd."""


cdef class ReadyList(ReadyLane):
    """See the pxd."""

    def __cinit__(self):
        self.event.event = 0
        self.event.waiters = 0
        self.watchers = []

    cdef ReadyLane lane_of(self, object priority):
        cdef ReadyLane lane
        cdef ReadyLane made
        cdef Py_ssize_t at = 0
        cdef list lanes
        if priority is None:
            return self
        lanes = [self] if self.lanes is None else list(self.lanes)
        while at < len(lanes) - 1:
            lane = <ReadyLane>lanes[at]
            if lane.priority == priority:
                return lane
            if lane.priority > priority:
                break
            at += 1
        made = ReadyLane.__new__(ReadyLane)
        made.priority = priority
        lanes.insert(at, made)
        self.lanes = lanes               # another list: one may be gone through meanwhile
        return made

    cdef ReadyLane next_lane(self):
        cdef list lanes = self.lanes
        cdef ReadyLane lane
        cdef ReadyLane first = None
        cdef ReadyLane waiting = None
        for each in lanes:
            lane = <ReadyLane>each
            if lane.first is None:
                continue
            if first is None:
                first = lane
                if self.in_a_row < LOWER_TURN - 1:
                    return first
            elif waiting is None or lane.turn < waiting.turn:
                waiting = lane
        if waiting is not None:
            return waiting
        self.in_a_row = 0                # nobody waits, or what waited is looked at
        return self if first is None else first

    cdef int took(self, ReadyLane lane, uint64_t count) except -1:
        cdef list lanes = self.lanes
        cdef ReadyLane other
        cdef bint is_above = True
        self.turns += 1
        lane.turn = self.turns
        for each in lanes:
            other = <ReadyLane>each
            if other is lane:
                is_above = False
            elif other.first is not None:
                # One above waits: so this was the turn of a lower one.
                self.in_a_row = 0 if is_above else self.in_a_row + count
                return 0
        self.in_a_row = 0
        return 0

    cdef int unchain(self) except -1:
        cdef ReadyLane lane
        cdef ReadyFlag flag
        cdef ReadyFlag following
        cdef list lanes = [self] if self.lanes is None else self.lanes
        self.lanes = None
        for each in lanes:
            lane = <ReadyLane>each
            flag = lane.first
            lane.first = None
            lane.last = None
            while flag is not None:
                following = flag.next
                flag.next = None
                flag.is_set = False
                flag = following
        return 0


cdef class ReadyFlag:
    def __init__(self, ReadyList ready not None, object priority):
        """priority: of its topic; see ReadyList.lane_of."""
        self.ready = ready
        self.lane = ready.lane_of(priority)

    def __call__(self):
        """In whatever thread and with whatever mutex held."""
        self.signal()
