"""The wheels and the sorted runs. One thread at a time; the contract is in the pxd."""

from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from pulsarx._core.invariant cimport invariant
from pulsarx._core.status cimport STATUS_NO_MEMORY, STATUS_OK

cdef extern from *:
    int __builtin_ctzll(unsigned long long value) noexcept nogil
    int __builtin_clzll(unsigned long long value) noexcept nogil

cdef enum:
    FIRST_RUN = TIMER_LEVELS * 64
    NODES_MIN = 16
    NODES_KEPT = 1024       # an emptied wheel keeps this many nodes for the next burst: 32 KiB
    DOUBLED_BELOW = 65536   # above, nodes grow by an eighth: 10 million take less than 360 MB
    SCAN_MAX = 64           # timers looked at each time the earliest of a slot is sought again

# `previous` of the first of a list is this bit and the list's index.
cdef uint32_t IS_HEAD = <uint32_t>1 << 31

cdef struct Run:            # a sorted list in the making
    uint32_t head
    uint32_t tail
    uint32_t count


cdef void timer_wheel_init(TimerWheel* self) noexcept nogil:
    invariant(sizeof(TimerNode) == 32)
    memset(self, 0, sizeof(TimerWheel))
    self.free_node = TIMER_NONE


cdef void timer_wheel_free(TimerWheel* self) noexcept nogil:
    free(self.nodes)
    free(self.slots)
    timer_wheel_init(self)


cdef uint64_t timer_wheel_memory_size(const TimerWheel* self) noexcept nogil:
    cdef uint64_t slots_size = sizeof(TimerSlots) if self.slots != NULL else 0
    return self.capacity * <uint64_t>sizeof(TimerNode) + slots_size


# Lists.

cdef inline bint precedes(const TimerNode* one, const TimerNode* other) noexcept nogil:
    if one.due_ms != other.due_ms:
        return one.due_ms < other.due_ms
    if one.first != other.first:
        return one.first < other.first
    return one.second < other.second


cdef inline void set_head(TimerWheel* self, uint32_t list_index, uint32_t timer) noexcept nogil:
    """Let timer be the first of a list; TIMER_NONE: the list is empty."""
    self.slots.heads[list_index] = timer
    if timer != TIMER_NONE:
        self.nodes[timer].previous = IS_HEAD | list_index
    elif list_index >= FIRST_RUN:
        self.runs &= ~(<uint32_t>1 << (list_index - FIRST_RUN))
    else:
        self.slots.occupied[list_index >> 6] &= ~(<uint64_t>1 << (list_index & 63))
        self.slots.scanned[list_index >> 6] &= self.slots.occupied[list_index >> 6]
        if self.slots.occupied[list_index >> 6] == 0:
            self.levels &= ~(<uint32_t>1 << (list_index >> 6))


cdef inline void unlink(TimerWheel* self, uint32_t timer) noexcept nogil:
    cdef TimerNode* node = self.nodes + timer
    if node.previous & IS_HEAD:
        set_head(self, node.previous & ~IS_HEAD, node.next)
        return
    self.nodes[node.previous].next = node.next
    if node.next != TIMER_NONE:
        self.nodes[node.next].previous = node.previous


cdef uint32_t merge(TimerWheel* self, uint32_t one, uint32_t other) noexcept nogil:
    """Make one sorted list of two; the head of the result, whose previous the caller sets."""
    cdef uint32_t head = TIMER_NONE
    cdef uint32_t tail = TIMER_NONE
    cdef uint32_t taken
    while one != TIMER_NONE and other != TIMER_NONE:
        if precedes(self.nodes + other, self.nodes + one):
            taken = other
            other = self.nodes[other].next
        else:
            taken = one
            one = self.nodes[one].next
        if tail == TIMER_NONE:
            head = taken
        else:
            self.nodes[tail].next = taken
            self.nodes[taken].previous = tail
        tail = taken
    taken = one if one != TIMER_NONE else other
    self.nodes[tail].next = taken
    self.nodes[taken].previous = tail
    return head


# Runs: what is due at or before wheel_ms.

cdef void keep_run(TimerWheel* self, Run* run) noexcept nogil:
    """Put a sorted list beside the others, as one adds to a binary number."""
    cdef uint32_t rank, head
    if run.count == 0:
        return
    head = run.head
    rank = 63 - <uint32_t>__builtin_clzll(run.count)
    while self.runs >> rank & 1:
        head = merge(self, self.slots.heads[FIRST_RUN + rank], head)
        self.runs &= ~(<uint32_t>1 << rank)
        if rank < TIMER_RUNS - 1:
            rank += 1
    self.runs |= <uint32_t>1 << rank
    set_head(self, FIRST_RUN + rank, head)
    run.count = 0


cdef inline void add_to_run(TimerWheel* self, Run* run, uint32_t timer) noexcept nogil:
    """Lists mostly lie in order or in reverse, so that a whole slot becomes one run."""
    cdef TimerNode* node = self.nodes + timer
    if run.count and precedes(node, self.nodes + run.head):
        node.next = run.head
        self.nodes[run.head].previous = timer
        run.head = timer
    elif run.count and precedes(self.nodes + run.tail, node):
        node.next = TIMER_NONE
        node.previous = run.tail
        self.nodes[run.tail].next = timer
        run.tail = timer
    else:
        keep_run(self, run)
        node.next = TIMER_NONE
        run.head = timer
        run.tail = timer
    run.count += 1


cdef inline uint32_t first_of_runs(const TimerWheel* self) noexcept nogil:
    cdef uint32_t left = self.runs
    cdef uint32_t best = TIMER_NONE
    cdef uint32_t head
    while left:
        head = self.slots.heads[FIRST_RUN + __builtin_ctzll(left)]
        left &= left - 1
        if best == TIMER_NONE or precedes(self.nodes + head, self.nodes + best):
            best = head
    return best


# Wheels: what is due after wheel_ms.

cdef inline void put_into_slot(TimerWheel* self, uint32_t timer) noexcept nogil:
    cdef TimerNode* node = self.nodes + timer
    cdef uint32_t level = <uint32_t>(63 - __builtin_clzll(node.due_ms ^ self.wheel_ms)) / 6
    cdef uint32_t digit = (node.due_ms >> (level * 6)) & 63
    cdef uint32_t slot = level << 6 | digit
    cdef uint64_t bit = <uint64_t>1 << digit
    if self.slots.occupied[level] & bit:
        node.next = self.slots.heads[slot]
        self.nodes[node.next].previous = timer
    else:
        node.next = TIMER_NONE
        self.slots.occupied[level] |= bit
        self.levels |= <uint32_t>1 << level
    node.previous = IS_HEAD | slot
    self.slots.heads[slot] = timer


cdef inline uint32_t next_slot(const TimerWheel* self) noexcept nogil:
    """The slot that comes up first. There is one."""
    cdef uint32_t level = <uint32_t>__builtin_ctzll(self.levels)
    return level << 6 | <uint32_t>__builtin_ctzll(self.slots.occupied[level])


cdef inline uint64_t start_of(const TimerWheel* self, uint32_t slot) noexcept nogil:
    cdef uint32_t shift = (slot >> 6) * 6
    cdef uint64_t above = 0
    if shift + 6 < 64:
        above = self.wheel_ms >> (shift + 6) << (shift + 6)
    return above | <uint64_t>(slot & 63) << shift


cdef bint scan(const TimerWheel* self, uint32_t slot, uint32_t count_max,
               uint64_t* earliest_ms) noexcept nogil:
    """Find when the earliest timer of a slot is due; False: it holds more than count_max."""
    cdef uint32_t at = self.slots.heads[slot]
    cdef uint64_t earliest = UINT64_MAX
    while at != TIMER_NONE:
        if count_max == 0:
            return False
        count_max -= 1
        if self.nodes[at].due_ms < earliest:
            earliest = self.nodes[at].due_ms
        at = self.nodes[at].next
    earliest_ms[0] = earliest
    return True


cdef void open_slot(TimerWheel* self, uint32_t slot, uint64_t until_ms) noexcept nogil:
    """Let time pass to the first timer of the next slot, but not beyond until_ms; spread the slot's
    timers over the levels below, and what is due over the runs.

    until_ms: at or after the slot's start.
    """
    cdef uint64_t earliest = start_of(self, slot)
    cdef uint32_t at = self.slots.heads[slot]
    cdef uint32_t following
    cdef Run run
    run.count = 0
    if self.earliest_known:
        earliest = self.earliest_ms
    elif slot >= 64:
        scan(self, slot, TIMER_NONE, &earliest)
    self.wheel_ms = earliest if earliest < until_ms else until_ms
    set_head(self, slot, TIMER_NONE)
    while at != TIMER_NONE:
        following = self.nodes[at].next
        if self.nodes[at].due_ms <= self.wheel_ms:
            add_to_run(self, &run, at)
        else:
            put_into_slot(self, at)
        at = following
    keep_run(self, &run)


cdef inline bint pass_time(TimerWheel* self, uint64_t now_ms) noexcept nogil:
    """The runs are empty; False: they still are."""
    cdef uint32_t slot
    if self.levels:
        slot = next_slot(self)
        if start_of(self, slot) <= now_ms:
            open_slot(self, slot, now_ms)
            return self.runs != 0
    if now_ms > self.wheel_ms:
        self.wheel_ms = now_ms
    return False


# Nodes.

cdef int grow(TimerWheel* self) noexcept nogil:
    cdef uint64_t capacity = self.capacity * <uint64_t>2
    cdef TimerNode* nodes
    if self.slots == NULL:
        self.slots = <TimerSlots*>calloc(1, sizeof(TimerSlots))
        if self.slots == NULL:
            return STATUS_NO_MEMORY
    if self.capacity == 0:
        capacity = NODES_MIN
    elif self.capacity >= DOUBLED_BELOW:
        capacity = self.capacity + (self.capacity >> 3)
    if capacity >= IS_HEAD:
        return STATUS_NO_MEMORY
    nodes = <TimerNode*>realloc(self.nodes, capacity * sizeof(TimerNode))
    if nodes == NULL:
        return STATUS_NO_MEMORY
    self.nodes = nodes
    self.capacity = <uint32_t>capacity
    return STATUS_OK


cdef inline void give_back(TimerWheel* self, uint32_t timer) noexcept nogil:
    self.nodes[timer].next = self.free_node
    self.nodes[timer].previous = TIMER_NONE
    self.free_node = timer
    self.count -= 1
    if self.count == 0:
        self.free_node = TIMER_NONE
        self.used_nodes = 0
        self.wheel_ms = self.now_ms
        if self.capacity > NODES_KEPT:
            free(self.nodes)
            self.nodes = NULL
            self.capacity = 0


cdef int timer_wheel_insert(TimerWheel* self, uint64_t due_ms, uint64_t first, uint64_t second,
                            uint32_t* timer) noexcept nogil:
    cdef uint32_t at = self.free_node
    cdef TimerNode* node
    cdef Run run
    if at == TIMER_NONE:
        if self.used_nodes == self.capacity and grow(self) != STATUS_OK:
            return STATUS_NO_MEMORY
        at = self.used_nodes
        self.used_nodes += 1
    else:
        self.free_node = self.nodes[at].next
    node = self.nodes + at
    node.due_ms = due_ms
    node.first = first
    node.second = second
    if due_ms > self.wheel_ms:
        put_into_slot(self, at)
    else:
        run.count = 0
        add_to_run(self, &run, at)
        keep_run(self, &run)
    if self.count == 0 or (self.earliest_known and due_ms < self.earliest_ms):
        self.earliest_ms = due_ms
        self.earliest_known = True
    self.count += 1
    timer[0] = at
    return STATUS_OK


cdef void timer_wheel_cancel(TimerWheel* self, uint32_t timer) noexcept nogil:
    invariant(timer_wheel_is_pending(self, timer))
    if self.nodes[timer].due_ms == self.earliest_ms:
        self.earliest_known = False
    unlink(self, timer)
    give_back(self, timer)


cdef bint timer_wheel_pop(TimerWheel* self, uint64_t now_ms, TimerNode* popped) noexcept nogil:
    cdef uint32_t timer
    if now_ms > self.now_ms:
        self.now_ms = now_ms
    if self.runs == 0 and not pass_time(self, now_ms):
        return False
    timer = first_of_runs(self)
    if self.nodes[timer].due_ms > now_ms:
        return False
    popped[0] = self.nodes[timer]
    self.earliest_known = False
    unlink(self, timer)
    give_back(self, timer)
    return True


cdef uint64_t timer_wheel_next_due(TimerWheel* self) noexcept nogil:
    cdef uint32_t slot, count_max
    cdef uint64_t bit
    if self.count == 0:
        return UINT64_MAX
    if self.earliest_known:
        return self.earliest_ms
    if self.runs == 0:
        slot = next_slot(self)
        bit = <uint64_t>1 << (slot & 63)
        # A slot is scanned as a whole once. When its earliest timer was cancelled since, and many
        # are left, time is let pass ahead of the clock: otherwise each cancel could cost a scan.
        count_max = SCAN_MAX if self.slots.scanned[slot >> 6] & bit else TIMER_NONE
        if slot < 64:
            self.earliest_ms = start_of(self, slot)
        elif scan(self, slot, count_max, &self.earliest_ms):
            self.slots.scanned[slot >> 6] |= bit
        else:
            open_slot(self, slot, UINT64_MAX)
    if self.runs:
        self.earliest_ms = self.nodes[first_of_runs(self)].due_ms
    self.earliest_known = True
    return self.earliest_ms
