"""waiting_list: several lists in one pool beside sorted dictionaries."""

import random

from seeds import seeds

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.status cimport STATUS_DUPLICATE, STATUS_OK
from pulsarx._core.waiting_list cimport (
    WAITING_NONE, WaitingList, WaitingMessage, WaitingPool, waiting_list_find, waiting_list_init,
    waiting_list_next, waiting_list_put, waiting_list_remove, waiting_pool_free, waiting_pool_init,
)


cdef int depth(WaitingPool* pool, uint32_t place, uint32_t parent) except -1:
    """How deep the tree is; its links go both ways."""
    cdef WaitingMessage* node
    if place == WAITING_NONE:
        return 0
    node = &pool.messages[place]
    assert node.parent == parent
    return 1 + max(depth(pool, node.left, place), depth(pool, node.right, place))


cdef int check(WaitingPool* pool, WaitingList* waiting, dict model) except -1:
    cdef uint32_t at = waiting.first
    cdef uint32_t last = WAITING_NONE
    listed = []
    while at != WAITING_NONE:
        listed.append(((pool.messages[at].ledger_id, pool.messages[at].message), at))
        last = at
        at = waiting_list_next(pool, at)
    assert listed == sorted(model.items())
    assert waiting.last == last
    assert depth(pool, waiting.root, WAITING_NONE) <= len(model)
    return 0


def test_lists_are_sorted_dictionaries():
    cdef WaitingPool pool
    cdef WaitingList[3] lists
    cdef uint32_t place = 0
    cdef uint64_t ledger_id, message
    cdef int which, status
    for seed in seeds(20):
        print("seed", seed)
        chance = random.Random(seed)
        waiting_pool_init(&pool)
        models = [{}, {}, {}]
        for which in range(3):
            waiting_list_init(&lists[which])
        for at in range(400):
            which = chance.randrange(3)
            model = models[which]
            ledger_id, message = chance.randrange(3), chance.choice((at, chance.randrange(60)))
            key = (ledger_id, message)
            if chance.random() < 0.55:
                status = waiting_list_put(&pool, &lists[which], ledger_id, message, &place)
                assert status == (<int>STATUS_DUPLICATE if key in model else <int>STATUS_OK)
                assert model.setdefault(key, place) == place
            else:
                key = chance.choice((key, min(model, default=key), max(model, default=key)))
                ledger_id, message = key
                place = waiting_list_find(&pool, &lists[which], ledger_id, message)
                assert place == model.pop(key, WAITING_NONE)
                if place != WAITING_NONE:
                    waiting_list_remove(&pool, &lists[which], place)
            for which in range(3):
                check(&pool, &lists[which], models[which])
            assert pool.count == sum(map(len, models))
        waiting_pool_free(&pool)


def test_a_long_list_is_not_deep_whatever_the_order():
    cdef WaitingPool pool
    cdef WaitingList waiting
    cdef uint32_t place = 0
    cdef uint64_t message
    ascending = list(range(20_000))
    shuffled = random.Random(4).sample(ascending, 20_000)
    for order in (ascending, ascending[::-1], shuffled):
        waiting_pool_init(&pool)
        waiting_list_init(&waiting)
        for message in order:
            assert waiting_list_put(&pool, &waiting, 1, message, &place) == STATUS_OK
        assert depth(&pool, waiting.root, WAITING_NONE) < 60
        for message in order[:19_000]:
            place = waiting_list_find(&pool, &waiting, 1, message)
            waiting_list_remove(&pool, &waiting, place)
        assert depth(&pool, waiting.root, WAITING_NONE) < 50
        waiting_pool_free(&pool)
