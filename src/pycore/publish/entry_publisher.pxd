"""Publishes entries on one topic for one producer: what stands between a batcher, or a network
connection, and where the entries are kept.

LedgerPublisher appends to the ledgers of this process: it rolls over, keeps account of what is not
confirmed yet, and confirms by the durability the broker was opened with. Methods want the mutex
held by the caller unless they say otherwise.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._pycore.ground.clock_core cimport ClockCore, Timer
from pulsarx._pycore.ground.mutex cimport OwnedMutex
from pulsarx._pycore.ground.owner_link cimport OwnerLink
from pulsarx._pycore.ground.rate_limit cimport PublishMeter, RateLimit
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter
from pulsarx._pycore.ledger.open_transactions cimport TransactionCore
from pulsarx._pycore.publish.completion_queue cimport CompletionQueue
from pulsarx._pycore.publish.entry_group cimport EntryGroup
from pulsarx._pycore.publish.memory_limit cimport MemoryLimit

cdef enum Durability:
    DURABILITY_SYNC = 1
    DURABILITY_INTERVAL = 2
    DURABILITY_OS = 3


cdef class Receipt:
    """The place where one entry was published. message_count 0: it is not published."""
    cdef LedgerWriter writer             # of a LedgerPublisher
    cdef uint64_t ledger_id
    cdef uint64_t entry_id
    cdef int64_t reserved                # of the memory limit, until it is confirmed or fails
    cdef int64_t expires_ms              # monotonic: its send has timed out then; 0: never
    cdef uint32_t message_count
    cdef bint is_duplicate               # of something that was stored before it
    cdef dict kept                       # see place_in_stored; None: all of the entry is stored
    cdef uint32_t left_out               # messages of the entry that were stored before it
    cdef bint awaited                    # a send waits for it
    cdef Receipt first_chunk             # of the first entry of a message in chunks; else None
    cdef TransactionCore transaction     # that it is of; None: of none, or it is durable at once

    cdef int place_in_stored(self, int place) except -2
    """The place of a message of the entry among those that were stored; -1: it was left out, as a
    duplicate."""


cdef class EntryPublisher:
    cdef OwnedMutex mutex                # of the producer: everything of it, and the batcher's
    cdef readonly int partition          # of the topic among those of its kind; -1: it is none
    cdef CompletionQueue completions     # where callbacks run
    cdef MemoryLimit memory              # None: there is none
    cdef readonly uint64_t pending_count # messages that are published and not confirmed
    cdef object room_wanted              # called once when fewer are pending; None: nothing
    # of what is published, -1 before the first; of the batcher but where places_later
    cdef int64_t published_sequence_id
    cdef bint confirms_later             # `wait` has something to wait for
    cdef bint places_later               # `publish` does not fill in the receipt; see `place`
    cdef public OwnerLink came_over      # what is published here comes over it; None: it does not
    cdef readonly str fenced             # why nothing is published any more; None: it is
    cdef object fenced_as                # the exception that says it
    cdef RateLimit limit                 # of the topic, told what is published; None: there is none
    cdef PublishMeter meter              # told too; None: nobody wants to know
    cdef bint checks                     # `check` is to be called for each entry: one of these is
    cdef TransactionCore transaction     # what is published belongs to it; None: to none
    cdef bint expects_later              # who publishes calls `flush_soon` afterwards

    cdef int flush_soon(self, bint here) except -1
    """Flush what is not durable yet, for which no caller waits; here: in this thread. Mutex not
    held."""

    cdef bint publish_group(self, EntryGroup group, list pending) except -1
    """Publish entries in order, which frames of the group then say where. False: nothing was
    published, they are to be published one by one. pending: of those that are confirmed later a
    (receipt, callbacks) each, as `publish` has them; else None."""

    cdef int check(self, const EntryFrame* frame) except -1
    """An entry is about to be published. ProducerFenced: it is not."""

    cdef int publish(self, EntryFrame* frame, uint8_t* entry, Receipt receipt, list callbacks,
                     bint awaited) except -1
    """Publish one entry of frame.entry_size bytes.

    entry: with ENTRY_FRAME_SIZE bytes before it and 8 behind that may be overwritten. receipt:
    told where it went; it is confirmed after `wait`. callbacks: see CompletionQueue.post, or
    None. awaited: a caller will wait for the receipt, so it need not be confirmed besides.
    Interrupted, and what is no Exception: nothing was published, the entry may be published again.
    Any other error: it never will be.
    """

    cdef int join(self, TransactionCore transaction) except -1
    """Let what is published from now on belong to a transaction; None: to none. Nothing waits to be
    published. InvalidTxnStatusError, OperationNotSupported, NotAllowedError: nothing changes."""

    cdef bint is_confirmed_with(self, TransactionCore transaction, int64_t pending_max) noexcept
    """Whether a caller of send need not wait, as the end of the transaction does."""

    cdef object confirm_within(self, TransactionCore transaction)
    """Return when what was published in a transaction is confirmed, or that has ended: what failed,
    or None. What failed of others is told by their flush. Mutex not held."""

    cdef int look_again(self) except -1
    """A transaction has ended: whoever is in confirm_within looks again."""

    cdef int release(self, Receipt receipt) except -1
    """Free what the receipt has reserved of the memory limit."""

    cdef int made_room(self) except -1
    """Fewer messages are pending."""

    cdef int check_fenced(self) except -1
    """ProducerFenced: another producer has the topic to itself."""

    cdef int wait(self, Receipt receipt) except -1
    """Return when the entry is as durable as its publisher promises. Mutex not held."""

    cdef bint is_confirmed(self, Receipt receipt) noexcept
    """Whether an entry that was published, or is a duplicate, is as durable as its publisher
    promises."""

    cdef int nobody_waits(self) except -1
    """A caller for which entries were published as awaited does not wait: it failed, or was
    interrupted. They become durable all the same, and their callbacks run."""

    cdef int confirm_duplicate(self, Receipt receipt, object callback) except -1
    """A message is a duplicate of what was published before: it is confirmed when that is."""

    cdef int require_sound(self) except -1
    """LedgerPoisonedError: a flush has failed, so nothing more is confirmed, nor is it known
    whether the first one of a duplicate is stored."""

    cdef int compare_from_here(self) except -1
    """The broker, which is in another process, is to compare what is published from here on with
    what is stored. Mutex held."""

    cdef int place(self, list receipts) except -1
    """Return when everything published is stored, and the receipts say where. Mutex not held.

    Raises what the first of these failed with. To be called where places_later alone.
    """

    cdef int wait_for_oldest(self) except -1
    """Return when the entry that is pending longest is confirmed, has timed out, or fewer are. The
    mutex is given up meanwhile."""

    cdef int settle(self) except -1
    """Hand over the callbacks of everything that is confirmed by now."""

    cdef object flush(self)
    """Return when everything published is confirmed: what failed, or None. Mutex not held."""

    cdef int drain(self, object failed) except -1
    """Return when the callbacks of everything that was confirmed or failed have run; where failed
    is a timeout, of all that has timed out. Mutex not held."""


cdef class TimeoutDue:
    """The callback of a clock for when a send may have timed out. Keeps no publisher alive."""
    cdef object publisher                # weak reference


cdef class LedgerPublisher(EntryPublisher):
    cdef LedgerTail tail
    cdef ClockCore clock                 # of the send timeout
    cdef ClockCore stamp_clock           # entries are stored with its time; None: without one
    cdef Timer timer                     # of the oldest entry that was pending; None: not armed
    cdef TimeoutDue timeout_due_call
    cdef Receipt timed_out               # the newest of what was given up; it may be stored yet
    cdef readonly int64_t send_timeout_ms    # 0: never
    cdef readonly str topic_name
    # deque of (receipt, callbacks): stored, not yet known durable, oldest first
    cdef object pending
    cdef object failure                  # of a flush no caller waited for; told by the next one
    cdef uint32_t durability
    cdef bint forked                     # in a child: nothing is touched
    cdef object __weakref__

    cdef int append_joined(self, EntryFrame* frame, uint8_t* entry, Receipt receipt) except -1
    cdef int wake(self, LedgerWriter writer) except -1
    """Wake those who wait for what was appended quietly."""

    cdef int append(self, EntryFrame* frame, uint8_t* entry, Receipt receipt) except -1
    """Append to the topic's open ledger, rolling it over when it is full."""

    cdef LedgerWriter append_group(self, EntryGroup group)
    """Append it to the topic's open ledger, which is returned; None: it cannot be as a whole."""

    cdef bint can_stamp(self, LedgerWriter writer) except -1
    cdef int64_t stamp(self, EntryFrame* frame) except? -1
    """Note in it when it is stored. Return that, or when it was published, if that is later."""

    cdef int refuse(self, int status, LedgerWriter writer, EntryFrame* frame) except -1
    cdef int fail(self, object error) except -1
    cdef int settle_soon(self) except -1
    cdef object flush_pending(self)
    """Return when everything published is confirmed: what failed meanwhile, or None. Mutex not
    held."""

    cdef bint make_durable(self, LedgerWriter writer, uint64_t entry_count,
                           int64_t expires_ms) except -1
    cdef int expire(self) except -1
    """Give up what has timed out: it is not pending any more, and its callbacks are told."""

    cdef int arm_timeout(self) except -1
    cdef object timeout(self)
