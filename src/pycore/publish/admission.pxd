"""Decides whether one producer may take a message now. Beneath batcher, which asks before anything
of a send is done.

  state     sends are                                           left for
  OPEN      taken                                               HELD, FENCED, CLOSED, FORKED
  HELD      taken as far as quota and publish rate let them     OPEN, FENCED, CLOSED, FORKED
  FENCED    refused: another producer has the topic to itself   FORKED
  CLOSED    refused with AlreadyClosed                          FORKED
  FORKED    refused with ForkedError, in the child              -

Methods want the publisher's mutex held. Those that wait give it up meanwhile.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._pycore.ground.clock_core cimport ClockCore
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.ground.rate_limit cimport RateLimit
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher

cdef enum ProducerState:
    PRODUCER_OPEN = 1
    PRODUCER_CLOSED = 2
    PRODUCER_FORKED = 3
    PRODUCER_FENCED = 4
    PRODUCER_HELD = 5

cdef enum Answer:
    ADMITTED = 0
    MUST_WAIT = 1              # the send is to be queued; its caller goes on


cdef struct Wait:
    # What a caller that does not sleep is told by MUST_WAIT. NULL in the place of one: it sleeps.
    int64_t look_ms            # monotonic: when the answer may be another; 0: `resume_call` says so
    bint held                  # by quota or publish rate, which send_timeout_millis bounds


cdef class Admission:
    cdef EntryPublisher publisher
    cdef ClockCore clock
    cdef JobQueue background             # nothing waits in its thread: letters are published there
    cdef str topic_name
    cdef str producer_name
    cdef str fenced_by                   # of PRODUCER_FENCED: who has the topic, and why
    cdef object fenced_as                # the exception that says it
    cdef str held_by                     # of PRODUCER_HELD: the quota; None: no quota holds it
    cdef RateLimit rate                  # of PRODUCER_HELD: of the topic; None: there is none
    cdef bint never_waits                # for the rate: of letters, which others wait for
    cdef bint queues_sends               # no caller sleeps for room either
    cdef bint block_if_queue_full
    cdef object resume_call              # has the queued sends look again; any thread, any mutex
    cdef list held                       # latches of those that wait; None: nobody ever did
    cdef int64_t send_timeout_ms         # how long they wait; 0 and less: without limit
    cdef int64_t deliver_delay_max_ms    # of a message that is delayed; 0: no limit
    cdef uint32_t pending_max            # 0: no limit
    cdef uint32_t many_count             # send_many that are running: neither held, nor too many
    cdef uint32_t state                  # ProducerState
    cdef int owner_pid                   # of PRODUCER_FORKED: the process that opened it

    cdef inline bint is_live(self) noexcept:
        """Whether it is open, be it held."""
        return self.state == PRODUCER_OPEN or self.state == PRODUCER_HELD

    cdef inline bint is_crowded(self, uint64_t message_count) noexcept:
        """Whether so many messages on their way are max_pending_messages."""
        return self.pending_max != 0 and message_count >= self.pending_max and (
            self.many_count == 0)

    cdef int check_open(self, Wait* wait) except -1
    """Raise why nothing is sent; else ADMITTED, or MUST_WAIT while the producer is held."""

    cdef int require_open(self) except -1
    """Raise why nothing is sent, also of a producer that is held, without waiting."""

    cdef int wait_for_room(self, Wait* wait) except -1
    """max_pending_messages are on their way: ADMITTED when some of them are confirmed.
    ProducerQueueIsFull."""

    cdef int wait_for_memory(self, Wait* wait) except -1
    """The memory limit is used up: ADMITTED when it is not. MemoryBufferIsFull."""

    cdef int wait_for_chunks(self, uint32_t chunk_count) except -1
    """Return when so many more fit into max_pending_messages."""

    cdef int room_for_chunks(self, uint64_t chunk_count) except -1
    """MUST_WAIT: so many do not fit now, where no caller sleeps for them."""

    cdef bint may_wait(self) except -1
    """Whether the calling thread is one that may wait."""

    cdef int wait_while_held(self, int64_t look_ms, int64_t timeout_ms) except -1
    """Wait until it may be otherwise, or one of these times has come; 0: of no time. Timeout: it is
    the second."""

    cdef object held_too_long(self)
    """The Timeout of a send that was held until now; None: it is not held any more."""

    cdef int hold(self, str reason) except -1
    """Let senders wait from now on; None: not for this reason."""

    cdef int limit_rate(self, RateLimit rate) except -1
    """Let senders wait while this limit is used up; None: never."""

    cdef int change_hold(self) except -1
    cdef int wake_held(self) except -1
    """Have the senders that wait look again. Any thread, the mutex need not be held."""

    cdef inline int64_t may_be_delayed(self, int64_t deliver_at_ms) except? -1:
        """The time a message is delivered at. NotAllowedError: it is too late."""
        if self.deliver_delay_max_ms:
            self.check_delay(deliver_at_ms)
        return deliver_at_ms

    cdef int check_delay(self, int64_t deliver_at_ms) except -1
