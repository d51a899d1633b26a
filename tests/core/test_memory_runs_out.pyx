"""Structures of the core when memory runs out: the call says so, nothing else changed, and the same
call succeeds as soon as there is memory."""

from failing_calls cimport ENOMEM, calls_fail, calls_succeed, memory_fails
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from pulsarx._core.ack_bits cimport *
from pulsarx._core.batch_encode cimport *
from pulsarx._core.byte_reader cimport ByteReader, byte_reader_start
from pulsarx._core.cursor_record cimport *
from pulsarx._core.cursor_sections cimport *
from pulsarx._core.cursor_state cimport *
from pulsarx._core.hash_ranges cimport *
from pulsarx._core.hash_ring cimport *
from pulsarx._core.key_order cimport *
from pulsarx._core.key_positions cimport *
from pulsarx._core.ledger_index cimport *
from pulsarx._core.message_metadata cimport MessageMetadata
from pulsarx._core.pending_acks cimport *
from pulsarx._core.single_metadata cimport *
from pulsarx._core.status cimport *
from pulsarx._core.timer_wheel cimport *
from pulsarx._core.waiting_list cimport *


def test_an_acknowledgement_far_ahead():
    cdef AckBits bits
    cdef uint64_t newly = 7
    ack_bits_init(&bits)
    memory_fails(b"calloc", 1)
    assert ack_bits_add(&bits, 6400, 1, 100_000, &newly) == STATUS_NO_MEMORY
    assert ack_bits_put_word(&bits, 100, 1) == STATUS_OK          # the second call has memory
    assert calls_succeed() == 2
    assert newly == 7 and ack_bits_count(&bits) == 1
    assert ack_bits_add(&bits, 6401, 1, 100_000, &newly) == STATUS_OK and newly == 1
    ack_bits_free(&bits)
    memory_fails(b"calloc", 1)
    assert ack_bits_put_word(&bits, 100, 1) == STATUS_NO_MEMORY
    calls_succeed()
    assert ack_bits_count(&bits) == 0
    ack_bits_free(&bits)


def test_acknowledgements_whose_bitmap_can_move_along_as_it_is():
    """It would be given more room, and does without."""
    cdef AckBits bits
    cdef uint64_t newly = 0
    cdef uint64_t before
    ack_bits_init(&bits)
    assert ack_bits_add(&bits, 6400, 1, 100_000, &newly) == STATUS_OK
    assert ack_bits_through(&bits, 3840, &newly) == STATUS_OK
    before = ack_bits_memory_size(&bits)
    memory_fails(b"calloc", 1)
    assert ack_bits_add(&bits, 169 * 64, 1, 100_000, &newly) == STATUS_OK
    assert calls_succeed() == 1 and ack_bits_memory_size(&bits) == before
    assert ack_bits_has(&bits, 6400) and ack_bits_has(&bits, 169 * 64)
    assert ack_bits_count(&bits) == 3842 and ack_bits_hole_count(&bits) == 2
    ack_bits_free(&bits)


cdef int add_message(BatchEncode* batch, bint with_properties, uint32_t size) except -1:
    cdef SingleMetadata metadata
    cdef PropertyView view
    cdef uint8_t* payload = <uint8_t*>malloc(size + 1)
    cdef int status
    memset(payload, 1, size)
    memset(&metadata, 0, sizeof(metadata))
    metadata.flags = METADATA_SEQUENCE_ID
    metadata.payload_size = size
    if with_properties:
        view.key = view.value = <const uint8_t*>b"name"
        view.key_size = view.value_size = 4
        metadata.properties = &view
        metadata.property_count = 1
    status = batch_encode_add(batch, &metadata, payload)
    free(payload)
    return status


def test_a_batch():
    cdef BatchEncode batch
    cdef MessageMetadata envelope
    cdef uint8_t* entry = NULL
    cdef uint32_t size = 0
    cdef uint8_t other[5000]
    cdef const uint8_t* name = <const uint8_t*>other
    memset(other, 3, sizeof(other))
    memset(&envelope, 0, sizeof(envelope))
    envelope.producer_name = name
    envelope.producer_name_size = 5
    for with_properties in (False, True):
        batch_encode_init(&batch, 0, 100)
        memory_fails(b"realloc", 1)
        assert add_message(&batch, with_properties, 50) == STATUS_NO_MEMORY
        calls_succeed()
        assert batch.message_count == 0 and batch.buffer == NULL
        assert add_message(&batch, with_properties, 50) == STATUS_OK
        # A name that is longer than the room in front.
        envelope.producer_name_size = 4000
        memory_fails(b"realloc", 1)
        assert batch_encode_finish(&batch, &envelope, &entry, &size) == STATUS_NO_MEMORY
        calls_succeed()
        if with_properties:                  # what a single message has of its own is copied
            memory_fails(b"malloc", 1)
            assert batch_encode_finish(&batch, &envelope, &entry, &size) == STATUS_NO_MEMORY
            calls_succeed()
        # Encrypted, it may be larger than it was.
        memory_fails(b"realloc", 1)
        assert batch_encode_compressed(&batch, &envelope, other, 5000, &entry,
                                       &size) == STATUS_NO_MEMORY
        calls_succeed()
        assert batch.message_count == 1 and entry == NULL
        assert batch_encode_compressed(&batch, &envelope, other, 5000, &entry, &size) == STATUS_OK
        assert size > 9000 and entry[size - 1] == 3
        envelope.producer_name_size = 5
        batch_encode_free(&batch)
        entry = NULL
    memset(&envelope, 0, sizeof(envelope))
    envelope.producer_name = name
    batch_encode_init(&batch, 0, 100)
    for name_size in (4000, 5):              # no room in front, and none for the payload
        envelope.producer_name_size = name_size
        memory_fails(b"realloc", 1)
        assert batch_encode_single(&batch, &envelope, other, 5000, &entry,
                                   &size) == STATUS_NO_MEMORY
        calls_succeed()
    assert batch_encode_single(&batch, &envelope, other, 5000, &entry, &size) == STATUS_OK
    batch_encode_free(&batch)


def test_a_cursor():
    cdef CursorState state, read
    cdef CursorRecord record
    cdef uint8_t room[256]
    cdef uint64_t size
    cdef const char* name
    memset(&record, 0, sizeof(record))
    cursor_state_init(&state)
    record.kind = CURSOR_RUN
    record.ledger_id, record.first, record.count = 5, 10, 100
    memory_fails(b"realloc", 1)
    assert cursor_state_apply(&state, &record) == STATUS_NO_MEMORY
    calls_succeed()
    assert state.ledger_count == 0
    for kind in (CURSOR_RUN, CURSOR_MASK):
        record.kind = kind
        record.ledger_id += 1
        record.first, record.count = 64, 5
        memory_fails(b"calloc", 1)
        assert cursor_state_apply(&state, &record) == STATUS_NO_MEMORY
        calls_succeed()
        assert cursor_state_apply(&state, &record) == STATUS_OK
    assert state.ledger_count == 2
    size = cursor_state_size(&state)
    assert size < 256
    cursor_state_encode(&state, room, size)
    for name in (b"realloc", b"calloc"):
        cursor_state_init(&read)
        memory_fails(name, 1)
        assert cursor_state_decode(&read, room, size) == STATUS_NO_MEMORY
        calls_succeed()
        cursor_state_free(&read)
    assert cursor_state_decode(&read, room, size) == STATUS_OK and read.ledger_count == 2
    cursor_state_free(&read)
    cursor_state_free(&state)


def test_redelivery_counts():
    cdef SectionWriter writer
    cdef RestoredMessages found
    cdef CursorHeader header
    cdef CursorRecord record
    cdef CursorTail tail
    cdef uint64_t slots[32]
    cdef uint64_t at
    cdef const char* name
    memset(&header, 0, sizeof(header))
    memset(slots, 0, sizeof(slots))
    memset(&found, 0, sizeof(found))
    section_writer_start(&writer, CURSOR_SECTION_REDELIVERY)
    memory_fails(b"realloc", 1)
    assert section_writer_add(&writer, 1, 2, 3) == STATUS_NO_MEMORY and writer.size == 0
    calls_succeed()
    at = 0
    while writer.capacity - writer.size >= 42 or at == 0:
        assert section_writer_add(&writer, 1, at, 3) == STATUS_OK
        at += 1
    memory_fails(b"realloc", 1)
    assert section_writer_end(&writer) == STATUS_NO_MEMORY
    calls_succeed()
    assert section_writer_end(&writer) == STATUS_OK
    memory_fails(b"realloc", 1)
    assert section_decode(CURSOR_SECTION_REDELIVERY, writer.data, writer.size,
                          &found) == STATUS_NO_MEMORY
    calls_succeed()
    cursor_tail_start(&tail, &header, slots, 16)
    assert cursor_tail_redelivered(&tail, 1, 500, 7) == STATUS_OK
    assert cursor_tail_read(&tail, 0, &record) == STATUS_OK
    for call in (1, 2):
        memory_fails(b"malloc", call)
        assert redeliveries_decode(writer.data, writer.size, &tail, &found) == STATUS_NO_MEMORY
        calls_succeed()
    memory_fails(b"realloc", 1)
    assert redeliveries_decode(writer.data, writer.size, &tail, &found) == STATUS_NO_MEMORY
    calls_succeed()
    assert found.count == 0
    assert redeliveries_decode(writer.data, writer.size, &tail, &found) == STATUS_OK
    assert found.count == at + 1 and found.messages[at].value == 7
    restored_messages_free(&found)
    section_writer_free(&writer)


def test_who_gets_a_key():
    cdef HashRanges ranges
    cdef HashRing ring
    hash_ranges_init(&ranges)
    memory_fails(b"realloc", 1)
    assert hash_ranges_split(&ranges, 3) == STATUS_NO_MEMORY
    calls_succeed()
    assert hash_ranges_split(&ranges, 3) == STATUS_OK and hash_ranges_find(&ranges, 17) == 3
    hash_ranges_free(&ranges)
    hash_ring_init(&ring)
    memory_fails(b"realloc", 1)
    assert hash_ring_add(&ring, 3, <const uint8_t*>b"c", 1, 1) == STATUS_NO_MEMORY
    calls_succeed()
    assert hash_ring_add(&ring, 3, <const uint8_t*>b"c", 1, 1) == STATUS_OK
    assert hash_ring_find(&ring, 17) == 3
    hash_ring_free(&ring)


cdef int put_all(KeyPositions* positions, uint64_t count, uint32_t size, uint8_t* key) noexcept:
    cdef uint64_t at
    cdef int status = STATUS_OK
    for at in range(count):
        (<uint64_t*>key)[0] = at
        status = key_positions_put(positions, key_positions_hash(positions, key, size), key, size,
                                   at)
        if status != STATUS_OK:
            return status
    return status


def test_positions_of_keys():
    """The table, the list of chunks and the chunks themselves, small ones and mapped ones."""
    cdef KeyPositions positions
    cdef uint8_t* key = <uint8_t*>malloc(5 << 20)
    cdef uint64_t position = 0
    cdef const char* name
    memset(key, 0, 5 << 20)
    for name, call in ((b"calloc", 1), (b"calloc", 2), (b"realloc", 1)):
        key_positions_init(&positions, 5)
        memory_fails(name, call)
        assert put_all(&positions, 1, 8, key) == STATUS_NO_MEMORY
        calls_succeed()
        assert positions.key_count == 0
        assert put_all(&positions, 1, 8, key) == STATUS_OK
        key_positions_free(&positions)
    key_positions_init(&positions, 5)
    assert calls_fail(b"mmap", 1, 1, -1, ENOMEM)
    assert put_all(&positions, 1, 5 << 20, key) == STATUS_NO_MEMORY
    calls_succeed()
    # A key that takes the numbers of two chunks, and one for which the list of them must grow.
    assert put_all(&positions, 10, 5 << 20, key) == STATUS_OK
    assert positions.chunk_count == 20
    (<uint64_t*>key)[0] = 7
    assert key_positions_find(&positions, key_positions_hash(&positions, key, 5 << 20), key,
                              5 << 20, &position) and position == 7
    key_positions_free(&positions)
    free(key)


def test_keys_that_wait():
    """A key, its message and its place in the heap of its owner."""
    cdef KeyOrder order
    cdef uint64_t ledger_id = 0
    cdef uint64_t message = 0
    cdef uint32_t key
    key_order_init(&order, True)
    memory_fails(b"malloc", 1, 2)              # it is tried twice
    assert key_order_key(&order, 9) == KEY_NONE
    calls_succeed()
    memory_fails(b"realloc", 1, 2)
    assert key_order_key(&order, 9) == KEY_NONE and order.places == NULL
    calls_succeed()
    key = key_order_key(&order, 9)
    assert key != KEY_NONE and key_order_is(&order, key, 9) and not key_order_is(&order, key, 8)
    assert not key_order_is(&order, KEY_NONE, 9)
    # No heap for the owner; then none for the messages of a key.
    memory_fails(b"realloc", 1)
    assert key_order_own(&order, key, 3, 0) == STATUS_NO_MEMORY
    calls_succeed()
    assert order.lacks_owners and key_order_is_new(&order, key)
    assert key_order_wait(&order, key, 1, 5, True, 0) == STATUS_OK
    memory_fails(b"realloc", 2)
    assert key_order_own(&order, key, 3, 0) == STATUS_NO_MEMORY
    calls_succeed()
    assert key_order_is_new(&order, key) and not key_order_peek(&order, 3, &ledger_id, &message)
    assert key_order_own(&order, key, 3, 0) == STATUS_OK
    assert key_order_peek(&order, 3, &ledger_id, &message) and message == 5
    key_order_clear(&order)
    # A message that finds no room in the pool leaves its owner's heap as it was.
    key = key_order_key(&order, 9)
    assert key_order_own(&order, key, 3, 0) == STATUS_OK
    memory_fails(b"realloc", 2)
    assert key_order_wait(&order, key, 1, 5, True, 0) == STATUS_NO_MEMORY
    calls_succeed()
    assert order.heaps[3].entitled == 0 and order.waiting == 0
    # The heap finds none: the key loses its owner, and its message waits.
    key_order_free(&order)
    key_order_init(&order, True)
    key = key_order_key(&order, 9)
    assert key_order_own(&order, key, 3, 0) == STATUS_OK
    memory_fails(b"realloc", 1)
    assert key_order_wait(&order, key, 1, 5, True, 0) == STATUS_OK
    calls_succeed()
    assert order.waiting == 1 and key_order_is_new(&order, key)
    assert key_order_own(&order, key, 3, 0) == STATUS_OK
    assert key_order_take(&order, 3) == key
    # Nobody's key whose message finds no room.
    key_order_free(&order)
    key_order_init(&order, True)
    key = key_order_key(&order, 9)
    memory_fails(b"realloc", 1)
    assert key_order_wait(&order, key, 1, 5, True, 0) == STATUS_NO_MEMORY
    calls_succeed()
    assert order.waiting == 0
    # One more of a key that has some already.
    assert key_order_own(&order, key, 3, 0) == STATUS_OK
    for position in range(16):
        assert key_order_wait(&order, key, 1, position, True, 0) == STATUS_OK
    memory_fails(b"realloc", 1)
    assert key_order_wait(&order, key, 1, 16, True, 0) == STATUS_NO_MEMORY
    calls_succeed()
    assert order.waiting == 16 and order.heaps[3].entitled == 1
    key_order_free(&order)
    # Out of order a redelivery makes the key.
    key_order_init(&order, False)
    memory_fails(b"malloc", 1, 2)
    assert key_order_make_ready(&order, 9, 1, 5, 0) == STATUS_NO_MEMORY
    calls_succeed()
    assert key_order_make_ready(&order, 9, 1, 5, 0) == STATUS_OK and order.waiting == 1
    key_order_free(&order)


def test_keys_that_are_idle_make_room_where_there_is_no_memory():
    cdef KeyOrder order
    cdef uint32_t hash = 0
    cdef uint32_t key
    key_order_init(&order, True)
    while order.key_capacity == 0 or order.key_count < order.key_capacity:
        assert key_order_key(&order, hash) != KEY_NONE
        hash += 1
    order.kept_keys = order.key_capacity + 1
    memory_fails(b"malloc", 1, 5)
    key = key_order_key(&order, hash)
    assert calls_succeed() >= 1
    assert key != KEY_NONE and order.keys[key].hash == hash
    # All but a third of them are in use: what is free is taken, though the table cannot grow.
    key_order_clear(&order)
    key_order_free(&order)
    key_order_init(&order, True)
    hash = 0
    while order.key_capacity == 0 or order.key_count < order.key_capacity:
        key = key_order_key(&order, hash)
        if hash % 3:
            assert key_order_wait(&order, key, 1, hash, True, 0) == STATUS_OK
        hash += 1
    memory_fails(b"malloc", 1, 5)
    key = key_order_key(&order, hash)
    calls_succeed()
    assert key != KEY_NONE and order.keys[key].hash == hash
    key_order_free(&order)


def test_an_index_is_sparser():
    cdef LedgerIndex index
    cdef IndexRecord record
    ledger_index_init(&index)
    memory_fails(b"malloc", 1)
    ledger_index_add(&index, 4096, 0, 0, True)
    calls_succeed()
    assert index.count == 0
    ledger_index_add(&index, 8192, 1, 1, True)
    assert ledger_index_before(&index, FIND_ENTRY, 1, 9000, &record) and record.offset == 8192
    ledger_index_free(&index)


def test_messages_that_are_pending():
    """Each of the four allocations of a first message, and the three of one in a second ledger."""
    cdef PendingAcks acks
    cdef uint64_t added = 0
    cdef uint64_t size
    cdef const char* name
    for before in (0, 1):
        for name, call in ((b"malloc", 1), (b"realloc", 1), (b"calloc", 1), (b"calloc", 2)):
            pending_acks_init(&acks)
            if before:
                assert pending_acks_add(&acks, 1, 5) != NULL
            memory_fails(name, call)
            assert pending_acks_add(&acks, 2, 5) == NULL, (name, call)
            calls_succeed()
            assert acks.count == before and acks.ledger_count == before
            memory_fails(name, call)
            if acks.free_page == NULL or name != b"malloc":
                assert pending_acks_add_run(&acks, 2, 5, 3, &added) == NULL, (name, call)
            calls_succeed()
            assert acks.count == before
            assert pending_acks_add_run(&acks, 2, 5, 3, &added) != NULL and added == 3
            pending_acks_free(&acks)
    # A block more of a ledger that has one.
    pending_acks_init(&acks)
    assert pending_acks_add(&acks, 1, 0) != NULL
    for name, call in ((b"calloc", 1), (b"calloc", 2)):
        memory_fails(name, call)
        assert pending_acks_add(&acks, 1, 4096 * 50) == NULL
        calls_succeed()
        assert acks.ledger_count == 1 and pending_acks_find(&acks, 1, 0) != NULL
    assert pending_acks_add(&acks, 1, 4096 * 50) != NULL
    size = pending_acks_memory_size(&acks)
    assert size > sizeof(PendingPage) * 2
    pending_acks_free(&acks)


def test_timers():
    cdef TimerWheel wheel
    cdef uint32_t timer = 0
    cdef uint64_t count
    timer_wheel_init(&wheel)
    memory_fails(b"calloc", 1)
    assert timer_wheel_insert(&wheel, 5, 0, 0, &timer) == STATUS_NO_MEMORY
    calls_succeed()
    memory_fails(b"realloc", 1)
    assert timer_wheel_insert(&wheel, 5, 0, 0, &timer) == STATUS_NO_MEMORY
    calls_succeed()
    count = 0
    while wheel.capacity == 0 or wheel.used_nodes < wheel.capacity:
        assert timer_wheel_insert(&wheel, 5 + count, 0, 0, &timer) == STATUS_OK
        count += 1
    memory_fails(b"realloc", 1)
    assert timer_wheel_insert(&wheel, 5, 0, 0, &timer) == STATUS_NO_MEMORY
    calls_succeed()
    assert wheel.count == count and timer_wheel_next_due(&wheel) == 5
    timer_wheel_free(&wheel)


def test_a_list_of_waiting_messages():
    cdef WaitingPool pool
    cdef WaitingList waiting
    cdef uint32_t place = 0
    waiting_pool_init(&pool)
    waiting_list_init(&waiting)
    memory_fails(b"realloc", 1)
    assert waiting_list_put(&pool, &waiting, 1, 2, &place) == STATUS_NO_MEMORY
    calls_succeed()
    assert pool.count == 0 and waiting.first == WAITING_NONE
    assert waiting_list_put(&pool, &waiting, 1, 2, &place) == STATUS_OK
    waiting_pool_free(&pool)


def test_structures_as_large_as_their_indexes_can_say_do_not_grow():
    cdef WaitingPool pool
    cdef WaitingList waiting
    cdef KeyPositions positions
    cdef TimerWheel wheel
    cdef uint32_t place = 0
    cdef uint32_t timer = 0
    waiting_pool_init(&pool)
    waiting_list_init(&waiting)
    pool.capacity = pool.used = WAITING_NONE // 2 + 1
    assert waiting_list_put(&pool, &waiting, 1, 2, &place) == STATUS_NO_MEMORY
    key_positions_init(&positions, 5)
    positions.slot_count = positions.key_count = <uint64_t>1 << 32
    assert key_positions_put(&positions, 7, <const uint8_t*>b"key", 3, 1) == STATUS_NO_MEMORY
    timer_wheel_init(&wheel)
    assert timer_wheel_insert(&wheel, 5, 0, 0, &timer) == STATUS_OK
    assert timer_wheel_is_pending(&wheel, timer) and not timer_wheel_is_pending(&wheel, 9)
    capacity, used = wheel.capacity, wheel.used_nodes
    wheel.capacity = wheel.used_nodes = <uint32_t>1 << 31
    assert timer_wheel_insert(&wheel, 5, 0, 0, &timer) == STATUS_NO_MEMORY
    wheel.capacity, wheel.used_nodes = capacity, used
    timer_wheel_free(&wheel)
