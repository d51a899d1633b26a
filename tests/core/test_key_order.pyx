"""key_order beside a simple model of keys, driven as a dispatcher drives it."""

import random

from seeds import seeds

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from pulsarx._core.key_order cimport (
    KEY_NOBODY, KEY_NONE, KeyHeap, KeyOrder, KeyState, key_order_clear, key_order_delivered,
    key_order_expect, key_order_find, key_order_forget, key_order_free, key_order_init,
    key_order_is_new, key_order_key, key_order_make_ready, key_order_may_pass,
    key_order_memory_size, key_order_own, key_order_peek, key_order_refresh, key_order_returned,
    key_order_take, key_order_wait,
)
from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.waiting_list cimport WAITING_NONE, waiting_list_next


class ModelKey:
    """What a key should be: who has which of its messages, and what waits."""

    def __init__(self, owner):
        self.owner = owner
        self.delivered = {}     # position -> consumer
        self.waiting = {}       # position -> ready
        self.blocked_since = 0

    def eligible(self, in_order):
        """The position that may go to the owner, or None."""
        if self.owner == KEY_NOBODY or not self.waiting:
            return None
        first = min(self.waiting)
        if in_order and (not self.waiting[first] or set(self.delivered.values()) - {self.owner}):
            return None
        return first


cdef class Bed:
    """The structure, its model, and the bit of a dispatcher that stands between them."""

    cdef KeyOrder order
    cdef object chance
    cdef dict keys              # hash -> ModelKey
    cdef dict mapping           # hash -> owner
    cdef dict permits           # consumer -> messages
    cdef dict nacked            # position -> hash, of those that wait for their time
    cdef int64_t now_ms
    cdef object next_position

    def __cinit__(self, object chance, bint in_order, int consumers):
        key_order_init(&self.order, in_order)
        self.order.kept_keys = 0        # so that they are forgotten as soon as may be
        self.chance = chance
        self.keys = {}
        self.mapping = {}
        self.nacked = {}
        self.permits = {consumer: 5 for consumer in range(consumers)}
        self.now_ms = 1000
        self.next_position = (1, 0)

    def __dealloc__(self):
        key_order_free(&self.order)

    # ---- what a dispatcher does ----

    cdef uint32_t key_of(self, uint32_t hash) except? 4294967295:
        cdef uint32_t key = key_order_key(&self.order, hash)
        if hash not in self.mapping:
            self.mapping[hash] = self.chance.choice([*self.permits, KEY_NOBODY])
        if key_order_is_new(&self.order, key):
            key_order_own(&self.order, key, self.mapping[hash], self.now_ms)
        self.keys.setdefault(hash, ModelKey(self.mapping[hash]))
        return key

    cdef int deliver(self, uint32_t key, uint32_t hash, object position) except -1:
        model = self.keys[hash]
        consumer = model.owner
        if self.order.in_order:
            assert not set(model.delivered.values()) - {consumer}, "two consumers hold the key"
            assert not [at for at in model.waiting if at < position], "an earlier one waits"
        key_order_delivered(&self.order, key)
        model.delivered[position] = consumer
        self.permits[consumer] -= 1
        return 0

    cdef int publish(self, uint32_t hash) except -1:
        cdef uint32_t key = self.key_of(hash)
        model = self.keys[hash]
        position = self.next_position
        ledger_id, message = position
        self.next_position = (ledger_id, message + 1) if message < 40 else (ledger_id + 1, 0)
        passes = model.owner != KEY_NOBODY and not model.waiting and not (
            self.order.in_order and set(model.delivered.values()) - {model.owner})
        assert key_order_may_pass(&self.order, key) == passes
        if passes and self.permits[model.owner] > 0:
            return self.deliver(key, hash, position)
        return self.put(key, hash, position, True)

    cdef int put(self, uint32_t key, uint32_t hash, tuple position, bint ready) except -1:
        assert key_order_wait(&self.order, key, position[0], position[1], ready,
                              self.now_ms) == STATUS_OK
        if ready or self.order.in_order:
            self.keys[hash].waiting[position] = ready
        return 0

    cdef int pump(self, uint16_t consumer) except -1:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef uint32_t key, hash
        while self.permits[consumer] > 0 and key_order_peek(&self.order, consumer, &ledger_id,
                                                            &message):
            key = key_order_take(&self.order, consumer)
            hash = self.order.keys[key].hash
            self.keys[hash].waiting.pop((ledger_id, message))
            self.deliver(key, hash, (ledger_id, message))
        return 0

    cdef int acknowledge(self, uint32_t hash, object position) except -1:
        consumer = self.keys[hash].delivered.pop(position)
        key_order_returned(&self.order, hash, self.chance.randrange(99), self.now_ms)
        self.permits[consumer] += 1
        return 0

    cdef int redeliver(self, uint32_t hash, tuple position, bint ready) except -1:
        consumer = self.keys[hash].delivered.pop(position)
        self.put(self.key_of(hash), hash, position, ready)
        key_order_returned(&self.order, hash, self.chance.randrange(99), self.now_ms)
        self.permits[consumer] += 1
        if not ready:
            self.nacked[position] = hash
        return 0

    cdef int due(self, tuple position) except -1:
        cdef uint32_t hash = self.nacked.pop(position)
        assert key_order_make_ready(&self.order, hash, position[0], position[1],
                                    self.now_ms) == STATUS_OK
        self.key_of(hash)
        self.keys[hash].waiting[position] = True
        return 0

    cdef int forget(self, uint32_t hash, tuple position) except -1:
        key_order_forget(&self.order, hash, position[0], position[1], self.now_ms)
        self.keys[hash].waiting.pop(position, None)
        self.nacked.pop(position, None)
        return 0

    cdef int map_again(self, object share) except -1:
        cdef uint32_t key
        cdef uint32_t hash
        for hash in self.mapping:
            if self.chance.random() < share:
                self.mapping[hash] = self.chance.choice([*self.permits, KEY_NOBODY])
        for key in range(self.order.key_count):
            hash = self.order.keys[key].hash
            assert key_order_own(&self.order, key, self.mapping[hash], self.now_ms) == STATUS_OK
        for hash, model in self.keys.items():
            model.owner = self.mapping[hash]
        return 0

    cdef int leave(self, int consumer) except -1:
        del self.permits[consumer]
        for hash, owner in self.mapping.items():
            if owner == consumer:
                self.mapping[hash] = self.chance.choice([*self.permits, KEY_NOBODY])
        self.map_again(0)
        self.permits[consumer] = 0      # counted while its messages go back
        for hash, model in self.keys.items():
            for position in sorted(at for at, who in model.delivered.items() if who == consumer):
                self.redeliver(hash, position, True)
        del self.permits[consumer]
        return 0

    # ---- whether both are the same ----

    cdef int check(self) except -1:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef uint16_t consumer
        cdef uint32_t hash
        best = {}
        entitled = {}
        for hash, model in self.keys.items():
            self.check_key(hash, model)
            if model.waiting:
                entitled[model.owner] = entitled.get(model.owner, 0) + 1
            first = model.eligible(self.order.in_order)
            if first is not None:
                best.setdefault(model.owner, []).append(first)
        for consumer in range(self.order.heap_count):
            self.check_heap(&self.order.heaps[consumer], consumer)
            assert self.order.heaps[consumer].entitled == entitled.get(consumer, 0)
            assert self.order.heaps[consumer].count == len(best.get(consumer, ()))
            found = key_order_peek(&self.order, consumer, &ledger_id, &message)
            assert found == (consumer in best)
            assert not found or (ledger_id, message) == min(best[consumer])
        waiting = sum(len(model.waiting) for model in self.keys.values())
        assert self.order.waiting == waiting == self.order.pool.count
        return 0

    cdef int check_heap(self, KeyHeap* heap, uint16_t consumer) except -1:
        cdef uint32_t at
        assert heap.count <= heap.entitled <= heap.capacity
        for at in range(heap.count):
            place = heap.places[at]
            state = self.order.keys[place.key]
            assert state.heap_at == at and state.owner == consumer and state.in_use
            above = heap.places[(at - 1) >> 1] if at else place
            assert (above.ledger_id, above.message) <= (place.ledger_id, place.message)
        return 0

    cdef int check_key(self, uint32_t hash, object model) except -1:
        cdef uint32_t key = key_order_find(&self.order, hash)
        cdef uint32_t at
        cdef KeyState* state
        if key == KEY_NONE:
            assert not model.delivered and not model.waiting, "forgot a key in use"
            model.blocked_since = 0
            return 0
        state = &self.order.keys[key]
        assert state.hash == hash and state.in_use
        assert not state.owned or state.owner == model.owner
        assert state.unacknowledged == len(model.delivered) and state.waiting == len(model.waiting)
        assert (state.holder == KEY_NOBODY) == (not model.delivered)
        others = set(model.delivered.values()) - {model.owner}
        if self.order.in_order:
            assert len(set(model.delivered.values())) <= 1
            assert not model.delivered or state.holder in model.delivered.values()
        if self.order.in_order and model.waiting and others and model.owner != KEY_NOBODY:
            model.blocked_since = model.blocked_since or self.now_ms
        else:
            model.blocked_since = 0
        assert state.blocked_since_ms == model.blocked_since
        if not model.waiting:
            assert state.messages.first == WAITING_NONE and state.heap_at == KEY_NONE
            return 0
        listed = []
        at = state.messages.first
        while at != WAITING_NONE:
            entry = self.order.pool.messages[at]
            listed.append(((entry.ledger_id, entry.message), bool(entry.ready)))
            at = waiting_list_next(&self.order.pool, at)
        assert listed == sorted(model.waiting.items())
        return 0


cdef int step(Bed bed, list hashes) except -1:
    chance = bed.chance
    bed.now_ms += chance.randrange(3)
    what = chance.random()
    delivered = [(hash, at) for hash, model in bed.keys.items() for at in model.delivered]
    waiting = [(hash, at) for hash, model in bed.keys.items() for at in model.waiting]
    if what < 0.35:
        bed.publish(chance.choice(hashes))
    elif what < 0.5:
        bed.pump(chance.choice([*bed.permits]))
    elif what < 0.65 and delivered:
        hash, position = chance.choice(delivered)
        bed.acknowledge(hash, position)
    elif what < 0.78 and delivered:
        hash, position = chance.choice(delivered)
        bed.redeliver(hash, position, chance.random() < 0.3)
    elif what < 0.88 and bed.nacked:
        bed.due(chance.choice([*bed.nacked]))
    elif what < 0.93 and waiting:
        hash, position = chance.choice(waiting)
        bed.forget(hash, position)
    elif what < 0.95:
        bed.map_again(chance.choice((0.1, 1)))
    elif what < 0.96 and len(bed.permits) > 1:
        bed.leave(chance.choice([*bed.permits]))
    elif what < 0.97 and len(bed.permits) < 9:
        bed.permits[chance.choice([c for c in range(12) if c not in bed.permits])] = 5
        bed.map_again(0.3)
    return 0


cdef int drain(Bed bed) except -1:
    """Whatever happened, everything goes out once keys have owners and consumers acknowledge."""
    bed.mapping = {hash: min(bed.permits) for hash in bed.mapping}
    bed.map_again(0)
    for position in list(bed.nacked):
        bed.due(position)
    while any(model.waiting or model.delivered for model in bed.keys.values()):
        before = sum(len(model.delivered) for model in bed.keys.values()) + bed.order.waiting
        for consumer in list(bed.permits):
            bed.pump(consumer)
        for hash, model in bed.keys.items():
            for position in list(model.delivered):
                bed.acknowledge(hash, position)
        bed.check()
        assert bed.order.waiting < before, "stuck"
    return 0


cdef int run(int seed, bint in_order) except -1:
    print("seed", seed)
    chance = random.Random(seed)
    bed = Bed(chance, in_order, chance.choice((1, 2, 4)))
    hashes = [chance.randrange(1 << 32) for _ in range(chance.choice((1, 3, 12, 60, 200)))]
    for _ in range(1200):
        step(bed, hashes)
        bed.check()
    drain(bed)
    return 0


def test_keys_are_in_order_whoever_comes_and_goes():
    for seed in seeds(30):
        run(seed, True)


def test_out_of_order_only_permits_make_a_message_wait():
    for seed in seeds(15):
        run(seed, False)


cdef tuple peeked(KeyOrder* order, uint16_t consumer):
    cdef uint64_t ledger_id = 0
    cdef uint64_t message = 0
    if not key_order_peek(order, consumer, &ledger_id, &message):
        return ()
    return (ledger_id, message)


def test_a_key_waits_until_its_old_holder_has_acknowledged():
    cdef KeyOrder order
    cdef uint32_t key
    key_order_init(&order, True)
    key = key_order_key(&order, 77)
    key_order_own(&order, key, 0, 10)
    key_order_delivered(&order, key)
    key_order_delivered(&order, key)
    key_order_own(&order, key, 1, 11)
    assert not key_order_may_pass(&order, key)
    assert order.keys[key].blocked_since_ms == 0, "nothing waits yet"
    key_order_wait(&order, key, 1, 2, True, 12)
    assert order.keys[key].blocked_since_ms == 12 and peeked(&order, 1) == ()
    key_order_returned(&order, 77, 0, 13)
    assert order.keys[key].blocked_since_ms == 12 and peeked(&order, 1) == ()
    key_order_returned(&order, 77, 0, 14)
    assert order.keys[key].blocked_since_ms == 0 and peeked(&order, 1) == (1, 2)
    assert not key_order_may_pass(&order, key), "an earlier one waits"
    assert key_order_take(&order, 1) == key and key_order_take(&order, 1) == KEY_NONE
    key_order_delivered(&order, key)
    assert key_order_may_pass(&order, key)
    key_order_free(&order)


def test_a_negatively_acknowledged_message_blocks_what_is_behind_it_wherever_its_key_goes():
    cdef KeyOrder order
    cdef uint32_t key
    key_order_init(&order, True)
    key = key_order_key(&order, 77)
    key_order_own(&order, key, 0, 10)
    key_order_delivered(&order, key)
    key_order_wait(&order, key, 1, 5, False, 11)
    key_order_returned(&order, 77, 0, 11)
    key_order_wait(&order, key, 1, 6, True, 12)
    assert peeked(&order, 0) == () and not key_order_may_pass(&order, key)
    key_order_own(&order, key, 1, 13)
    assert peeked(&order, 1) == ()
    key_order_own(&order, key, 0, 14)
    assert key_order_make_ready(&order, 77, 1, 5, 15) == STATUS_OK
    assert peeked(&order, 0) == (1, 5)
    key_order_forget(&order, 77, 1, 5, 16)
    assert peeked(&order, 0) == (1, 6)
    key_order_own(&order, key, KEY_NOBODY, 17)
    assert peeked(&order, 0) == () and order.keys[key].blocked_since_ms == 0
    key_order_own(&order, key, 1, 18)
    assert peeked(&order, 1) == (1, 6)
    key_order_free(&order)


def test_idle_keys_are_forgotten_and_keys_in_use_are_not():
    cdef KeyOrder order
    cdef uint32_t key, hash
    key_order_init(&order, True)
    for hash in range(100_000):
        key = key_order_key(&order, hash * 7919)
        assert key != KEY_NONE and key_order_is_new(&order, key)
        key_order_own(&order, key, hash % 16, 0)
        key_order_delivered(&order, key)
        assert key_order_key(&order, hash * 7919) == key
        if hash >= 100:
            key_order_returned(&order, (hash - 100) * 7919, 0, 0)
    assert order.key_capacity == order.kept_keys
    assert key_order_memory_size(&order) < 1_000_000
    key_order_clear(&order)
    assert key_order_memory_size(&order) == 0 and key_order_find(&order, 0) == KEY_NONE
    key_order_free(&order)


def test_one_key_takes_back_many_messages_in_any_order():
    cdef KeyOrder order
    cdef uint32_t key
    cdef uint64_t message
    key_order_init(&order, True)
    key = key_order_key(&order, 5)
    key_order_own(&order, key, 3, 0)
    messages = list(range(100_000))
    random.Random(2).shuffle(messages)
    for message in messages:
        assert key_order_wait(&order, key, 8, message, False, 0) == STATUS_OK
    random.Random(3).shuffle(messages)
    for message in messages:
        assert key_order_make_ready(&order, 5, 8, message, 0) == STATUS_OK
    for message in range(100_000):
        assert peeked(&order, 3) == (8, message)
        assert key_order_take(&order, 3) == key
    assert order.waiting == 0 and order.pool.capacity == 0, "memory is given back"
    key_order_free(&order)


def test_messages_and_keys_that_are_not_known():
    cdef KeyOrder order
    cdef uint64_t ledger_id = 0
    cdef uint64_t message = 0
    cdef uint32_t key
    key_order_init(&order, True)
    key_order_expect(&order, 9)
    assert key_order_find(&order, 9) == KEY_NONE and key_order_take(&order, 3) == KEY_NONE
    assert key_order_make_ready(&order, 9, 1, 5, 0) == STATUS_OK
    key_order_forget(&order, 9, 1, 5, 0)
    key = key_order_key(&order, 9)
    key_order_expect(&order, 9)
    key_order_expect(&order, 10)
    assert key_order_own(&order, key, 3, 0) == STATUS_OK
    assert key_order_take(&order, 3) == KEY_NONE
    assert key_order_wait(&order, key, 1, 5, False, 0) == STATUS_OK
    assert key_order_make_ready(&order, 9, 1, 6, 0) == STATUS_OK
    key_order_forget(&order, 9, 1, 6, 0)
    assert order.waiting == 1 and not key_order_peek(&order, 3, &ledger_id, &message)
    assert key_order_make_ready(&order, 9, 1, 5, 0) == STATUS_OK
    assert key_order_peek(&order, 3, &ledger_id, &message) and message == 5
    key_order_free(&order)


def test_a_key_that_is_blocked_at_the_beginning_of_time_is_blocked():
    """0 means that it is not."""
    cdef KeyOrder order
    cdef uint32_t key
    for now_ms, since in ((0, 1), (50, 50)):
        key_order_init(&order, True)
        key = key_order_key(&order, 9)
        assert key_order_own(&order, key, 3, now_ms) == STATUS_OK
        key_order_delivered(&order, key)
        assert key_order_own(&order, key, 4, now_ms) == STATUS_OK
        assert key_order_wait(&order, key, 1, 5, True, now_ms) == STATUS_OK
        assert order.keys[key].blocked_since_ms == since
        key_order_refresh(&order, key, now_ms + 7)
        assert order.keys[key].blocked_since_ms == since
        key_order_returned(&order, 9, 0, now_ms)
        assert order.keys[key].blocked_since_ms == 0 and key_order_take(&order, 4) == key
        key_order_free(&order)
