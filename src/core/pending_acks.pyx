"""Pending messages of a subscription. One thread at a time; the contract is in the pxd."""

from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove, memset

from pulsarx._core.invariant cimport invariant

cdef extern from *:
    int __builtin_ctzll(unsigned long long value) noexcept nogil
    int __builtin_popcountll(unsigned long long value) noexcept nogil

cdef uint64_t ALL = <uint64_t>-1


cdef void pending_acks_init(PendingAcks* self) noexcept nogil:
    memset(self, 0, sizeof(PendingAcks))


cdef void pending_acks_free(PendingAcks* self) noexcept nogil:
    cdef PendingLedger* ledger
    cdef PendingBlock* block
    cdef uint64_t at, of, bits
    for at in range(self.ledger_count):
        ledger = &self.ledgers[at]
        for of in range(ledger.front, ledger.end):
            block = ledger.blocks[of]
            if block == NULL:
                continue
            bits = block.used
            while bits:
                free(block.pages[__builtin_ctzll(bits)])
                bits &= bits - 1
            free(block)
        free(ledger.blocks)
    free(self.ledgers)
    free(self.free_page)
    pending_acks_init(self)


cdef void pending_acks_clear(PendingAcks* self) noexcept nogil:
    pending_acks_free(self)


cdef uint64_t ledger_at(const PendingAcks* self, uint64_t ledger_id) noexcept nogil:
    """The place of the first ledger whose id is not below."""
    cdef uint64_t low = 0
    cdef uint64_t high = self.ledger_count
    cdef uint64_t middle
    while low < high:
        middle = (low + high) >> 1
        if self.ledgers[middle].ledger_id < ledger_id:
            low = middle + 1
        else:
            high = middle
    return low


cdef PendingLedger* find_ledger(PendingAcks* self, uint64_t ledger_id) noexcept nogil:
    cdef uint64_t at
    if self.last != NULL and self.last.ledger_id == ledger_id:
        return self.last
    at = ledger_at(self, ledger_id)
    if at == self.ledger_count or self.ledgers[at].ledger_id != ledger_id:
        return NULL
    self.last = &self.ledgers[at]
    return self.last


cdef PendingLedger* make_ledger(PendingAcks* self, uint64_t ledger_id) noexcept nogil:
    """The ledger, put in its place without a block if it was not here. NULL: out of memory."""
    cdef PendingLedger* ledger = find_ledger(self, ledger_id)
    cdef PendingLedger* ledgers
    cdef uint64_t capacity = self.ledger_capacity * 2
    cdef uint64_t at
    if ledger != NULL:
        return ledger
    if self.ledger_count == self.ledger_capacity:
        if capacity == 0:
            capacity = 1
        ledgers = <PendingLedger*>realloc(self.ledgers, capacity * sizeof(PendingLedger))
        if ledgers == NULL:
            return NULL
        self.ledgers = ledgers
        self.ledger_capacity = capacity
    at = ledger_at(self, ledger_id)
    ledger = &self.ledgers[at]
    memmove(ledger + 1, ledger, (self.ledger_count - at) * sizeof(PendingLedger))
    memset(ledger, 0, sizeof(PendingLedger))
    ledger.ledger_id = ledger_id
    self.ledger_count += 1
    self.last = ledger
    return ledger


cdef void drop_ledger(PendingAcks* self, PendingLedger* ledger) noexcept nogil:
    """Take out a ledger without blocks."""
    cdef uint64_t behind = self.ledger_count - <uint64_t>(ledger - self.ledgers) - 1
    free(ledger.blocks)
    memmove(ledger, ledger + 1, behind * sizeof(PendingLedger))
    self.ledger_count -= 1
    self.last = NULL


cdef bint move_window(PendingLedger* ledger, uint64_t number) noexcept nogil:
    """Let the array span the blocks in use and block number. False: out of memory."""
    cdef uint64_t first = number
    cdef uint64_t end = number + 1
    cdef uint64_t used_first = ledger.first_block + ledger.front
    cdef uint64_t capacity
    cdef PendingBlock** blocks
    if ledger.block_count:
        while ledger.blocks[ledger.end - 1] == NULL:
            ledger.end -= 1
        if used_first < first:
            first = used_first
        if ledger.first_block + ledger.end > end:
            end = ledger.first_block + ledger.end
    # Untouched zeros cost no memory where the system gives them on demand.
    capacity = end - first + ((end - first) >> 2) + 3
    blocks = <PendingBlock**>calloc(capacity, sizeof(PendingBlock*))
    if blocks == NULL:
        return False
    if ledger.block_count:
        memcpy(blocks + (used_first - first), ledger.blocks + ledger.front,
               (ledger.end - ledger.front) * sizeof(PendingBlock*))
    free(ledger.blocks)
    ledger.blocks = blocks
    ledger.front = used_first - first if ledger.block_count else 0
    ledger.end = end - first
    ledger.first_block = first
    ledger.block_capacity = capacity
    return True


cdef PendingBlock* make_block(PendingLedger* ledger, uint64_t number) noexcept nogil:
    """Block number, empty if it was not here. NULL: out of memory."""
    cdef uint64_t at = number - ledger.first_block
    cdef PendingBlock* block
    if at >= ledger.block_capacity:
        if not move_window(ledger, number):
            return NULL
        at = number - ledger.first_block
    block = ledger.blocks[at]
    if block != NULL:
        return block
    block = <PendingBlock*>calloc(1, sizeof(PendingBlock))
    if block == NULL:
        return NULL
    ledger.blocks[at] = block
    if ledger.block_count == 0 or at < ledger.front:
        ledger.front = at
    if ledger.block_count == 0 or at >= ledger.end:
        ledger.end = at + 1
    ledger.block_count += 1
    return block


cdef void drop_block(PendingLedger* ledger, uint64_t at) noexcept nogil:
    free(ledger.blocks[at])
    ledger.blocks[at] = NULL
    ledger.block_count -= 1
    if ledger.block_count:
        while ledger.blocks[ledger.front] == NULL:
            ledger.front += 1


cdef void drop_empty_page(PendingAcks* self) noexcept nogil:
    """Give back the page used last if nothing is in it, and what held only it."""
    cdef PendingPage* page = self.page
    cdef PendingLedger* ledger
    cdef PendingBlock* block
    cdef uint64_t at
    if page == NULL or page.used:
        return
    ledger = find_ledger(self, page.ledger_id)
    at = (page.number >> 6) - ledger.first_block
    block = ledger.blocks[at]
    invariant(block.pages[page.number & 63] == page)
    block.pages[page.number & 63] = NULL
    block.used &= ~(<uint64_t>1 << (page.number & 63))
    self.page = NULL
    if self.free_page == NULL:
        self.free_page = page
    else:
        free(page)
    if block.used == 0:
        drop_block(ledger, at)
        if ledger.block_count == 0:
            drop_ledger(self, ledger)


cdef PendingPage* look_up(PendingAcks* self, uint64_t ledger_id, uint64_t message) noexcept nogil:
    cdef PendingLedger* ledger = find_ledger(self, ledger_id)
    cdef uint64_t at
    if ledger == NULL:
        return NULL
    at = (message >> 12) - ledger.first_block
    if at >= ledger.block_capacity or ledger.blocks[at] == NULL:
        return NULL
    return ledger.blocks[at].pages[(message >> 6) & 63]


cdef PendingPage* pending_acks_seek_page(PendingAcks* self, uint64_t ledger_id,
                                         uint64_t message) noexcept nogil:
    cdef PendingPage* page = look_up(self, ledger_id, message)
    if page != NULL and page != self.page:
        drop_empty_page(self)
        self.page = page
    return page


cdef PendingPage* pending_acks_make_page(PendingAcks* self, uint64_t ledger_id,
                                         uint64_t message) noexcept nogil:
    """An empty page where there is none; a message must be added to it at once."""
    cdef PendingPage* page
    cdef PendingLedger* ledger
    cdef PendingBlock* block
    drop_empty_page(self)
    page = self.free_page
    if page == NULL:
        page = <PendingPage*>malloc(sizeof(PendingPage))
        if page == NULL:
            return NULL
        self.free_page = page
    ledger = make_ledger(self, ledger_id)
    if ledger == NULL:
        return NULL
    block = make_block(ledger, message >> 12)
    if block == NULL:
        if ledger.block_count == 0:
            drop_ledger(self, ledger)
        return NULL
    self.free_page = NULL
    page.ledger_id = ledger_id
    page.number = message >> 6
    page.used = page.due = page.counted = 0
    block.pages[page.number & 63] = page
    block.used |= <uint64_t>1 << (page.number & 63)
    self.page = page
    return page


cdef void pending_acks_mark(PendingAcks* self, PendingPage* page, uint64_t message,
                            uint8_t state) noexcept nogil:
    """Note in the bitmaps that the message, which is here, comes into the state."""
    cdef PendingLedger* ledger
    cdef PendingBlock* block
    cdef uint64_t bit = <uint64_t>1 << (message & 63)
    invariant(page != NULL and page.used & bit)
    page.counted &= ~bit
    if state == PENDING_COUNTED:
        page.counted |= bit
    if (state == PENDING_DUE) == (page.due & bit != 0):
        return
    page.due ^= bit
    if state == PENDING_DUE:
        self.due_count += 1
    else:
        self.due_count -= 1
    ledger = find_ledger(self, page.ledger_id)
    block = ledger.blocks[(message >> 12) - ledger.first_block]
    bit = <uint64_t>1 << (page.number & 63)
    block.due &= ~bit
    if page.due:
        block.due |= bit


cdef PendingAck* pending_acks_add_run(PendingAcks* self, uint64_t ledger_id, uint64_t first,
                                      uint64_t count, uint64_t* added) noexcept nogil:
    cdef PendingPage* page = pending_acks_page(self, ledger_id, first)
    cdef uint64_t at = first & 63
    cdef uint64_t mask, fresh, message
    cdef PendingAck blank
    if count > 64 - at:
        count = 64 - at
    invariant(count > 0)
    if page == NULL:
        page = pending_acks_make_page(self, ledger_id, first)
        if page == NULL:
            return NULL
    memset(&blank, 0, sizeof(PendingAck))
    blank.consumer = PENDING_NOBODY
    mask = ALL >> (64 - count) << at
    fresh = mask & ~page.used
    self.count += <uint64_t>__builtin_popcountll(fresh)
    page.used |= mask
    if fresh == mask:
        for message in range(at, at + count):
            page.acks[message] = blank
    else:
        while fresh:
            page.acks[__builtin_ctzll(fresh)] = blank
            fresh &= fresh - 1
    added[0] = count
    return &page.acks[at]


cdef uint64_t pending_acks_remove_run(PendingAcks* self, uint64_t ledger_id, uint64_t first,
                                      uint64_t count) noexcept nogil:
    cdef uint64_t end = first + count
    cdef uint64_t before = self.count
    cdef uint64_t found_in = ledger_id
    cdef uint64_t mask, marked
    cdef PendingPage* page
    while first < end:
        page = pending_acks_page(self, ledger_id, first)
        if page == NULL or page.used >> (first & 63) == 0:
            if pending_acks_next(self, &found_in, &first) == NULL or found_in != ledger_id:
                break
            continue
        mask = ALL << (first & 63)
        if end >> 6 == page.number:
            mask &= ~(ALL << (end & 63))
        mask &= page.used
        marked = mask & (page.due | page.counted)
        while marked:
            pending_acks_mark(self, page, __builtin_ctzll(marked) + (page.number << 6),
                              PENDING_NONE)
            marked &= marked - 1
        page.used &= ~mask
        self.count -= <uint64_t>__builtin_popcountll(mask)
        first = (page.number + 1) << 6
    return before - self.count


cdef PendingPage* scan(PendingLedger* ledger, uint64_t* message, bint due) noexcept nogil:
    """The page of the first message at or behind, which moves to it; NULL: none."""
    cdef uint64_t at = 0
    cdef uint64_t pages, bits
    cdef uint64_t number = message[0] >> 6
    cdef PendingBlock* block
    cdef PendingPage* page
    if message[0] >> 12 > ledger.first_block:
        at = (message[0] >> 12) - ledger.first_block
    if at < ledger.front:
        at = ledger.front
    while at < ledger.end:
        block = ledger.blocks[at]
        pages = 0
        if block != NULL:
            pages = block.due if due else block.used
        if ledger.first_block + at == message[0] >> 12:
            pages &= ALL << (number & 63)
        while pages:
            page = block.pages[__builtin_ctzll(pages)]
            bits = page.due if due else page.used
            if page.number == number:
                bits &= ALL << (message[0] & 63)
            if bits:
                message[0] = (page.number << 6) + __builtin_ctzll(bits)
                return page
            pages &= pages - 1
        at += 1
    return NULL


cdef PendingAck* next_of(PendingAcks* self, uint64_t* ledger_id, uint64_t* message,
                         bint due) noexcept nogil:
    cdef uint64_t found = message[0]
    cdef uint64_t at
    cdef PendingPage* page
    for at in range(ledger_at(self, ledger_id[0]), self.ledger_count):
        if self.ledgers[at].ledger_id != ledger_id[0]:
            found = 0
        page = scan(&self.ledgers[at], &found, due)
        if page == NULL:
            continue
        ledger_id[0] = page.ledger_id
        message[0] = found
        if page != self.page:
            drop_empty_page(self)
            self.page = page
        return &page.acks[found & 63]
    return NULL


cdef PendingAck* pending_acks_next(PendingAcks* self, uint64_t* ledger_id,
                                   uint64_t* message) noexcept nogil:
    cdef PendingPage* page = self.page
    cdef uint64_t bits
    if self.count == 0:
        return NULL
    if page != NULL and page.number == message[0] >> 6 and page.ledger_id == ledger_id[0]:
        bits = page.used >> (message[0] & 63)
        if bits:
            message[0] += __builtin_ctzll(bits)
            return &page.acks[message[0] & 63]
    return next_of(self, ledger_id, message, False)


cdef PendingAck* pending_acks_next_due(PendingAcks* self, uint64_t* ledger_id,
                                       uint64_t* message) noexcept nogil:
    cdef PendingPage* page = self.page
    cdef uint64_t bits
    if self.due_count == 0:
        return NULL
    if page != NULL and page.number == message[0] >> 6 and page.ledger_id == ledger_id[0]:
        bits = page.due >> (message[0] & 63)
        if bits:
            message[0] += __builtin_ctzll(bits)
            return &page.acks[message[0] & 63]
    return next_of(self, ledger_id, message, True)


cdef uint64_t pending_acks_next_absent(PendingAcks* self, uint64_t ledger_id, uint64_t message,
                                       uint64_t end) noexcept nogil:
    cdef PendingPage* page
    cdef uint64_t absent
    while message < end:
        page = pending_acks_page(self, ledger_id, message)
        if page == NULL:
            return message
        absent = (~page.used | page.counted) >> (message & 63)
        if absent:
            message += __builtin_ctzll(absent)
            break
        message = (page.number + 1) << 6
    return message if message < end else end


cdef uint64_t pending_acks_memory_size(const PendingAcks* self) noexcept nogil:
    cdef uint64_t size = self.ledger_capacity * sizeof(PendingLedger)
    cdef uint64_t at, of
    cdef const PendingLedger* ledger
    if self.free_page != NULL:
        size += sizeof(PendingPage)
    for at in range(self.ledger_count):
        ledger = &self.ledgers[at]
        size += ledger.block_capacity * sizeof(PendingBlock*)
        size += ledger.block_count * sizeof(PendingBlock)
        for of in range(ledger.front, ledger.end):
            if ledger.blocks[of] != NULL:
                size += __builtin_popcountll(ledger.blocks[of].used) * sizeof(PendingPage)
    return size
