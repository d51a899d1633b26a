"""The state of an open ledger file, which appending, flushing and preparing space share. Appends
are made by ledger_append alone.

  state      holds                                      left by
  OPEN       appends accepted                           a failed write, flush_failed, seal, close
  FENCED     a write failed, or it is full: no more     seal, close
             appends, what is published stays good
             and flushable
  POISONED   a flush failed: end on disk unknown        close
  SEALING    index and footer are being written         done; failed: OPEN, FENCED, POISONED
  SEALED     index and footer written; read only        close
  CLOSED     no file                                    -
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._core.atomic cimport atomic_load_u32, atomic_store_u32, pthread_mutex_t
from pulsarx._core.published_end cimport PublishedEnd
from pulsarx._core.wait_event cimport WaitEvent

cdef enum LedgerState:
    LEDGER_OPEN = 1
    LEDGER_FENCED = 2
    LEDGER_POISONED = 3
    LEDGER_SEALED = 4
    LEDGER_CLOSED = 5
    LEDGER_SEALING = 6

cdef enum LedgerSizes:
    # A map of size_max and this holds any ledger: a single entry may overshoot size_max by no more.
    LEDGER_OVERSHOOT_MAX = 67108864
    LEDGER_STEP_MIN = 65536           # space is prepared in steps from here, doubling
    LEDGER_STEP_MAX = 67108864
    LEDGER_STEP_MAX_CACHED = 8388608  # zeros that are not flushed, but may reach the device
    LEDGER_STEP_MAX_MEMORY = 4194304  # memory prepared is memory used

cdef struct LedgerAppend:
    pthread_mutex_t append_mutex      # guards everything up to the flush part
    int fd
    uint32_t error                    # errno of the last failure; atomic
    uint32_t state                    # LedgerState; atomic
    uint32_t seed                     # of the frame checksums: from the file's uuid
    uint64_t end                      # written bytes; atomic
    uint64_t entry_count              # written; atomic
    uint64_t message_count
    uint64_t first_index              # in its topic of the first message
    # Readers see nothing from here on: the first entry of an open transaction; UINT64_MAX: all.
    # Changed with both mutexes, or set by an append.
    uint64_t held_end                 # atomic
    uint64_t held_entries             # in front of it, as the next
    uint64_t held_messages
    uint64_t prepared_end             # atomic; allocated, with zeros where the thread prepared
    uint64_t entry_count_max          # roll-over limits
    uint64_t size_max
    int64_t first_publish_ms
    int64_t last_publish_ms
    uint32_t publish_on_flush         # durability sync: readers see only what is flushed
    uint32_t zero_space               # prepared space is written with zeros and flushed
    PublishedEnd* published           # borrowed slot; never NULL while open
    WaitEvent* topic_event            # atomic; borrowed; woken with every publish; may be NULL
    pthread_mutex_t flush_mutex       # guards the flush part; leader and followers
    uint32_t flushing
    uint64_t durable_end              # atomic
    uint64_t durable_count            # entries; atomic
    uint64_t durable_messages
    # what readers may see; with publish_on_flush of what is durable, and in front of held_end
    uint64_t visible_end              # atomic
    uint64_t visible_entries
    uint64_t visible_messages
    uint32_t followed                 # fenced, and another ledger takes the entries
    # borrowed: the one in front of it, while that may not be durable; for the holder of the turn to
    # flush; else NULL
    LedgerAppend* before
    WaitEvent flush_event
    void* index                       # private: LedgerIndex of what was appended
    void* preparer                    # private: LedgerPreparer
    uint32_t digest                   # of the footer, so far
    uint32_t entry_flags              # EntryFlags that any entry has
    bint memory                       # no path: a file in memory

cdef inline int ledger_error(const LedgerAppend* self) noexcept nogil:
    """Return the errno of the last failure, of whatever thread."""
    return <int>atomic_load_u32(&self.error)

cdef inline void ledger_note_error(LedgerAppend* self, int error) noexcept nogil:
    atomic_store_u32(&self.error, <uint32_t>error)
