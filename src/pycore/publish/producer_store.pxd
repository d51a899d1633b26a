"""Batches messages and stores them as entries: the lower half of a producer, beneath producer_core.

Methods want the mutex held by the caller unless they say otherwise.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.batch_encode cimport BatchEncode
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.message_metadata cimport MessageMetadata
from pulsarx._core.single_metadata cimport SingleMetadata
from pulsarx._pycore.ground.mutex cimport OwnedMutex
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter
from pulsarx._pycore.publish.outgoing_message cimport PropertyScratch
from pulsarx._pycore.publish.pending_sends cimport PendingSends

cdef enum ProducerState:
    PRODUCER_OPEN = 1
    PRODUCER_CLOSED = 2
    PRODUCER_FORKED = 3

cdef enum Durability:
    DURABILITY_SYNC = 1
    DURABILITY_INTERVAL = 2
    DURABILITY_OS = 3


cdef class ProducerStore:
    cdef OwnedMutex mutex                # guards everything below; taken with mutex_lock
    cdef BatchEncode batch               # the open batch
    cdef LedgerTail tail
    cdef PendingSends pending
    cdef object topic                    # of the broker
    cdef object clock
    cdef object schema
    cdef object compress                 # (kind, data) -> bytes
    cdef object timer                    # of the open batch's deadline; None: not armed
    cdef object failure                  # of a batch nobody waited for; raised by the next flush
    cdef list callbacks                  # of the open batch: (batch index, callback)
    cdef bytes name_utf8
    cdef PropertyScratch scratch         # for the properties of one message
    cdef uint64_t next_sequence_id
    cdef int64_t stored_sequence_id      # of what is stored, -1 before the first
    cdef int64_t batch_publish_ms
    cdef int64_t batch_delay_ms
    cdef uint32_t batch_messages_max
    cdef uint32_t batch_bytes_max
    cdef uint32_t message_size_max
    cdef uint32_t pending_max            # 0: no limit
    cdef uint32_t compression
    cdef uint32_t durability
    cdef uint32_t state
    cdef uint64_t stored_ledger_id       # where the last entry went
    cdef uint64_t stored_entry_id
    cdef LedgerWriter stored_writer
    cdef readonly uint64_t entry_count   # tried to store: a step says that a batch was closed
    cdef uint32_t keyed_count            # messages in batches of one key each
    cdef bint by_key                     # batches are of one key each
    cdef bint plain_sends                # bytes go into the one open batch: the everyday case
    cdef bint bytes_schema
    cdef bint batching
    cdef bint block_if_queue_full

    cdef bint caller_waits               # a send is running that will flush by itself

    cdef int add(self, SingleMetadata* metadata, const uint8_t* payload, object callback) except -1
    cdef int begin_batch(self) except -1
    cdef int close_batch(self) except -1
    cdef int close_open(self) except -1
    cdef int store_single(self, SingleMetadata* single, const uint8_t* payload,
                          int64_t deliver_at_ms) except -1
    cdef LedgerWriter store(self, EntryFrame* frame, uint8_t* entry)
    cdef int compress_batch(self, MessageMetadata* envelope, uint8_t** entry,
                            uint32_t* entry_size) except -1
    cdef void fill_envelope(self, MessageMetadata* envelope, int64_t publish_time_ms) noexcept
    cdef int give_up(self, object error) except -1
    cdef bint is_crowded(self) noexcept
    cdef int make_room(self) except -1
    cdef int refuse_size(self, Py_ssize_t size) except -1
    cdef int check_open(self) except -1
    cdef int wait_durable(self, LedgerWriter writer, uint64_t entry_id) except -1
