"""pending_acks beside a dictionary, its bitmaps recounted, and the edges of what it spans."""

import bisect
import random

from seeds import seeds

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.pending_acks cimport (
    PENDING_COUNTED, PENDING_DUE, PENDING_HELD, PENDING_NACKED, PENDING_NOBODY, PENDING_NONE,
    PENDING_QUEUED, PendingAck, PendingAcks, PendingBlock, PendingLedger, PendingPage,
    pending_acks_add, pending_acks_add_run, pending_acks_clear, pending_acks_find,
    pending_acks_free, pending_acks_init, pending_acks_memory_size, pending_acks_next,
    pending_acks_next_absent, pending_acks_next_due, pending_acks_remove, pending_acks_remove_run,
    pending_acks_set_state,
)

STATES = (PENDING_QUEUED, PENDING_HELD, PENDING_NACKED, PENDING_DUE, PENDING_COUNTED)
ORDINAL_END = 1 << 37


cdef int check_page(PendingAcks* acks, PendingPage* page, dict model) except -1:
    cdef PendingAck* ack
    assert page.used or page == acks.page, "an empty page that was not used last"
    assert page.due & ~page.used == 0 and page.counted & ~page.used == 0
    for at in range(64):
        held = model.get((page.ledger_id, page.number * 64 + at))
        ack = &page.acks[at]
        assert (page.used >> at) & 1 == (held is not None)
        assert (page.due >> at) & 1 == (held is not None and held[0] == PENDING_DUE)
        assert (page.counted >> at) & 1 == (held is not None and held[0] == PENDING_COUNTED)
        if held is not None:
            assert (ack.state, ack.tag) == held
    return 0


cdef int check(PendingAcks* acks, dict model) except -1:
    """The structure holds what the model holds, and its books are right."""
    cdef PendingLedger* ledger
    cdef PendingBlock* block
    cdef uint64_t at, of
    seen = blocks = 0
    ledger_ids = []
    for at in range(acks.ledger_count):
        ledger = &acks.ledgers[at]
        ledger_ids.append(ledger.ledger_id)
        blocks = 0
        for of in range(ledger.block_capacity):
            block = ledger.blocks[of]
            if block == NULL:
                assert of != ledger.front
                continue
            blocks += 1
            assert ledger.front <= of < ledger.end and block.used
            for number in range(64):
                assert (block.used >> number) & 1 == (block.pages[number] != NULL)
                if block.pages[number] == NULL:
                    assert not (block.due >> number) & 1
                    continue
                assert block.pages[number].number == (ledger.first_block + of) * 64 + number
                assert block.pages[number].ledger_id == ledger.ledger_id
                assert (block.due >> number) & 1 == (block.pages[number].due != 0)
                check_page(acks, block.pages[number], model)
                seen += bin(block.pages[number].used).count("1")
        assert blocks and blocks == ledger.block_count
    assert ledger_ids == sorted(set(ledger_ids))
    assert seen == len(model) == acks.count
    assert acks.due_count == sum(state == PENDING_DUE for state, _ in model.values())
    return 0


cdef int check_next(PendingAcks* acks, dict model, uint64_t ledger_id, uint64_t message,
                    bint due) except -1:
    cdef uint64_t found_ledger = ledger_id
    cdef uint64_t found = message
    cdef PendingAck* ack
    keys = sorted(key for key, held in model.items() if not due or held[0] == PENDING_DUE)
    at = bisect.bisect_left(keys, (ledger_id, message))
    if due:
        ack = pending_acks_next_due(acks, &found_ledger, &found)
    else:
        ack = pending_acks_next(acks, &found_ledger, &found)
    if at == len(keys):
        assert ack == NULL and (found_ledger, found) == (ledger_id, message)
    else:
        assert ack != NULL and (found_ledger, found) == keys[at]
        assert (ack.state, ack.tag) == model[keys[at]]
    return 0


cdef int check_next_absent(PendingAcks* acks, dict model, uint64_t ledger_id,
                           uint64_t message) except -1:
    end = min(message + 300, ORDINAL_END)
    wanted = next(
        (at for at in range(message, end)
         if model.get((ledger_id, at), (PENDING_COUNTED, 0))[0] == PENDING_COUNTED), end,
    )
    assert pending_acks_next_absent(acks, ledger_id, message, end) == wanted
    return 0


cdef int put(PendingAcks* acks, dict model, uint64_t ledger_id, uint64_t message, int state,
             uint32_t tag) except -1:
    cdef PendingAck* ack = pending_acks_add(acks, ledger_id, message)
    assert ack != NULL and pending_acks_find(acks, ledger_id, message) == ack
    if (ledger_id, message) not in model:
        assert (ack.state, ack.consumer) == (PENDING_NONE, PENDING_NOBODY)
        assert (ack.tag, ack.redelivery_count, ack.flags, ack.key_hash) == (0, 0, 0, 0)
    pending_acks_set_state(acks, ledger_id, message, ack, <uint8_t>state)
    ack.tag = tag
    model[ledger_id, message] = (state, tag)
    return 0


cdef int put_run(PendingAcks* acks, dict model, uint64_t ledger_id, uint64_t first,
                 uint64_t count) except -1:
    cdef uint64_t added = 0
    cdef uint64_t at
    cdef PendingAck* ack
    while count:
        ack = pending_acks_add_run(acks, ledger_id, first, count, &added)
        assert ack != NULL and added == min(count, 64 - first % 64)
        for at in range(added):
            if (ledger_id, first + at) not in model:
                assert (ack[at].state, ack[at].consumer) == (PENDING_NONE, PENDING_NOBODY)
                ack[at].state = PENDING_QUEUED
                model[ledger_id, first + at] = (PENDING_QUEUED, 0)
        first += added
        count -= added
    return 0


cdef int step(PendingAcks* acks, dict model, object chance, int span) except -1:
    cdef uint64_t ledger_id = chance.choice((1, 2, 5, 9))
    cdef uint64_t message = chance.choice((0, 4096 * 3 - 100, 4096 * 70))
    cdef uint64_t count = chance.choice((1, 2, 63, 64, 65, 200))
    cdef PendingAck* ack
    message += chance.randrange(span)
    what = chance.random()
    if what < 0.3:
        put(acks, model, ledger_id, message, chance.choice(STATES), chance.randrange(1 << 32))
    elif what < 0.4:
        put_run(acks, model, ledger_id, message, count)
    elif what < 0.65 and model:
        ledger_id, message = chance.choice(list(model))
        pending_acks_remove(acks, ledger_id, message)
        del model[ledger_id, message]
    elif what < 0.75 and model:
        ledger_id, message = chance.choice(list(model))
        ack = pending_acks_find(acks, ledger_id, message)
        state = chance.choice(STATES)
        pending_acks_set_state(acks, ledger_id, message, ack, <uint8_t>state)
        model[ledger_id, message] = (state, model[ledger_id, message][1])
    elif what < 0.85:
        gone = [key for key in model if key[0] == ledger_id and 0 <= key[1] - message < count]
        assert pending_acks_remove_run(acks, ledger_id, message, count) == <uint64_t>len(gone)
        for key in gone:
            del model[key]
    elif what < 0.851:
        pending_acks_clear(acks)
        model.clear()
    else:
        assert (pending_acks_find(acks, ledger_id, message) != NULL) == (
            (ledger_id, message) in model)
        check_next_absent(acks, model, ledger_id, message)
    check_next(acks, model, ledger_id, message, chance.random() < 0.5)
    return 0


def test_it_is_a_dictionary():
    cdef PendingAcks acks
    for seed in seeds(12):
        print("seed", seed)
        chance = random.Random(seed)
        model = {}
        span = chance.choice((3, 64, 300, 4900))
        pending_acks_init(&acks)
        for at in range(700):
            step(&acks, model, chance, span)
            if at % 5 == 0:
                check(&acks, model)
        for ledger_id, message in chance.sample(list(model), len(model)):
            pending_acks_remove(&acks, ledger_id, message)
            del model[ledger_id, message]
        check(&acks, model)
        assert acks.ledger_count <= 1, "all but the page used last are gone"
        pending_acks_free(&acks)


def test_what_is_not_here_stays_absent():
    cdef PendingAcks acks
    cdef uint64_t ledger_id = 0
    cdef uint64_t message = 0
    pending_acks_init(&acks)
    assert pending_acks_find(&acks, 0, 0) == NULL
    assert pending_acks_next(&acks, &ledger_id, &message) == NULL
    assert pending_acks_next_due(&acks, &ledger_id, &message) == NULL
    assert pending_acks_next_absent(&acks, 3, 7, 9) == 7
    assert pending_acks_next_absent(&acks, 3, 9, 9) == 9
    assert pending_acks_remove_run(&acks, 3, 0, 1000) == 0
    pending_acks_remove(&acks, 3, 7)
    assert acks.count == 0 and pending_acks_memory_size(&acks) == 0
    pending_acks_free(&acks)


def test_a_steady_flow_keeps_its_memory():
    cdef PendingAcks acks
    cdef uint64_t message, removed
    cdef uint64_t largest = 0
    cdef PendingAck* ack
    pending_acks_init(&acks)
    for message in range(300_000):
        ack = pending_acks_add(&acks, 4, message)
        ack.state = PENDING_QUEUED
        if message >= 1000:
            removed = message - 1000
            pending_acks_remove(&acks, 4, removed)
        largest = max(largest, pending_acks_memory_size(&acks))
    assert acks.count == 1000
    assert largest < 25_000, "1000 messages of 16 bytes"
    pending_acks_free(&acks)


def test_one_message_at_a_time_stays_in_its_page():
    cdef PendingAcks acks
    cdef uint64_t message
    cdef PendingPage* page = NULL
    cdef PendingAck* ack
    pending_acks_init(&acks)
    for message in range(640):
        ack = pending_acks_add(&acks, 4, message)
        ack.state = PENDING_HELD
        assert page == NULL or acks.page == page
        page = acks.page
        pending_acks_remove(&acks, 4, message)
        assert acks.count == 0 and acks.ledger_count == 1
    pending_acks_clear(&acks)
    assert pending_acks_memory_size(&acks) == 0


def test_a_span_of_all_ordinals_is_not_touched_in_between():
    cdef PendingAcks acks
    cdef uint64_t ledger_id = 1
    cdef uint64_t message = 1
    pending_acks_init(&acks)
    model = {}
    put(&acks, model, 1, 0, PENDING_HELD, 1)
    put(&acks, model, 1, ORDINAL_END - 1, PENDING_DUE, 2)
    assert pending_acks_next(&acks, &ledger_id, &message) != NULL
    assert (ledger_id, message) == (1, ORDINAL_END - 1)
    assert pending_acks_remove_run(&acks, 1, 0, 1 << 36) == 1
    pending_acks_remove(&acks, 1, ORDINAL_END - 1)
    put(&acks, model, 1, 0, PENDING_HELD, 1)
    put(&acks, model, 1, 100, PENDING_HELD, 1)
    assert pending_acks_memory_size(&acks) < 10_000
    pending_acks_free(&acks)


def test_many_messages_leave_in_random_order():
    cdef PendingAcks acks
    cdef uint64_t message
    cdef PendingAck* ack
    pending_acks_init(&acks)
    model = {}
    put_run(&acks, model, 7, 5, 200_000)
    assert pending_acks_memory_size(&acks) < 17 * 200_000
    order = list(range(5, 200_005))
    random.Random(1).shuffle(order)
    for message in order:
        ack = pending_acks_find(&acks, 7, message)
        assert ack != NULL and ack.state == PENDING_QUEUED
        pending_acks_remove(&acks, 7, message)
    assert acks.count == 0 and acks.ledger_count == 1
    assert pending_acks_memory_size(&acks) < 5_000
    pending_acks_free(&acks)


def test_what_is_not_here_is_not_removed():
    cdef PendingAcks acks
    cdef uint64_t ledger_id, message
    pending_acks_init(&acks)
    pending_acks_remove(&acks, 1, 5)
    assert pending_acks_add(&acks, 1, 5) != NULL
    pending_acks_remove(&acks, 1, 6)
    pending_acks_remove(&acks, 1, 5 + 64)
    assert acks.count == 1
    # The page used last has the number that is asked for, and is of another ledger.
    for due in (False, True):
        if due:
            pending_acks_set_state(&acks, 1, 5, pending_acks_find(&acks, 1, 5), PENDING_DUE)
        for first in (0, 2):
            ledger_id, message = first, 3
            if due:
                found = pending_acks_next_due(&acks, &ledger_id, &message) != NULL
            else:
                found = pending_acks_next(&acks, &ledger_id, &message) != NULL
            assert found == (first == 0) and (first or (ledger_id, message) == (1, 5))
    pending_acks_remove(&acks, 1, 5)
    assert acks.count == acks.due_count == 0
    pending_acks_free(&acks)


def test_blocks_at_the_end_that_hold_nothing_leave_the_window():
    cdef PendingAcks acks
    pending_acks_init(&acks)
    for block in (0, 1, 2):
        assert pending_acks_add(&acks, 1, 4096 * block) != NULL
    for block in (2, 1):
        pending_acks_remove(&acks, 1, 4096 * block)
    assert pending_acks_find(&acks, 1, 0) != NULL
    assert pending_acks_add(&acks, 1, 4096 * 9) != NULL
    assert acks.count == 2 and pending_acks_find(&acks, 1, 0) != NULL
    pending_acks_free(&acks)
