"""The hot calls of a producer: send, send_async, send_many. Beneath pulsarx.Producer."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._pycore.ground.clock_core cimport Timer
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.ground.latch cimport Latch
from pulsarx._pycore.publish.admission cimport Wait
from pulsarx._pycore.publish.batcher cimport Batcher
from pulsarx._pycore.publish.entry_publisher cimport Receipt
from pulsarx._pycore.publish.open_batch cimport OpenBatch


cdef enum Accepted:
    IN_BATCH = 0
    ALONE = 2                            # beside MUST_WAIT, 1: published, or a duplicate


cdef class QueuedSend:
    """A send that waits for room without its caller."""
    cdef object content
    cdef object callback
    cdef tuple rest                      # the other arguments of send_async_described
    cdef int64_t expires_ms              # monotonic: it has waited for too long; 0: never
    cdef bint held                       # by a quota or a rate, when it was last tried
    cdef bint ended                      # sent, or refused
    cdef Latch end                       # set then; None: nobody waits for it


cdef class ResumeCall:
    """The callback that has the queued sends of a producer look again. Keeps no producer alive."""
    cdef object producer                 # weak reference


cdef class ProducerCore(Batcher):
    cdef JobQueue background             # where one that was forgotten is closed
    cdef object queued                   # deque of QueuedSend, in order; None: none ever was
    cdef QueuedSend last_queued          # of those; None: none ever was
    cdef list places                     # latches of those that wait for a place there; or None
    cdef bint has_queued                 # or one of them is being tried
    cdef bint resuming                   # a thread goes through them
    cdef bint look_again                 # it is to do it once more
    cdef Timer wait_timer                # of the first of them; None: not armed
    cdef readonly bint is_forgotten      # its user dropped it; it will be closed there

    cdef int accept(self, object content, object callback, object properties, object partition_key,
                    object ordering_key, object sequence_id, object replication_clusters,
                    object disable_replication, object event_timestamp, object deliver_at,
                    object deliver_after, object transaction, Receipt receipt, bint awaited,
                    Wait* wait, bint* taken) except -1
    """Check one message and put it into the open batch, or publish it when it goes alone; answers
    as Accepted, or MUST_WAIT. Mutex held. awaited, wait: see Batcher. taken: set when the callback
    will be told, whatever is raised."""

    cdef int accept_described(self, object content, object callback, tuple rest, Wait* wait,
                              bint* taken) except -1
    """accept, as send_async: the batch goes out when it is full."""

    cdef bint must_wait_for_chunks(self, uint32_t size, Wait* wait) except -1
    cdef int send_plain(self, object content, object callback, object key,
                        bint* taken) except -1
    cdef int send_told(self, object content, object callback, object key) except -1
    cdef int send_untold(self, object content, object key) except -1
    """send_told without a callback."""

    cdef bint is_full(self) noexcept
    cdef int wait_for_place(self) except -1
    cdef int give_places(self) except -1
    cdef int end_queued(self, QueuedSend send, object error) except -1
    """The queued message was sent, or refused with an error. No mutex held."""

    cdef int tell(self, object callback, object error) except -1
    """Tell a callback that its message was refused; no mutex held."""

    cdef int keep_nested(self, object content, object callback, tuple rest) except -1
    """Send it as soon as the call of this thread that holds the mutex has gone on."""

    cdef int queue_send(self, object content, object callback, tuple rest) except -1
    """Send it when there is room, behind those that are queued; no mutex held. Where
    max_pending_messages wait it waits for a place, or is refused."""

    cdef int append_queued(self, object content, object callback, tuple rest) except -1
    """Like queue_send, without waiting for a place; the mutex may be held."""

    cdef int send_described(self, object content, object callback, tuple rest,
                            Wait* wait) except -1
    """send_async_described, now; MUST_WAIT: not now."""

    cdef bint sends_plain(self) noexcept
    cdef int arm_queued(self, int64_t look_ms, bint held) except -1
    cdef object id_of(self, Receipt receipt, uint32_t index)
    cdef list send_in_batches(self, list contents, object keys, object properties,
                              object event_timestamps, object transaction)
    cdef list send_by_arrival(self, list contents, object keys, object properties,
                              object event_timestamps, object transaction, list receipts)
    cdef list send_by_key(self, list contents, object keys, object properties,
                          object event_timestamps, object transaction, list places)
    cdef Py_ssize_t fill_batch(self, OpenBatch batch, list contents, Py_ssize_t at, object keys,
                               object properties, object event_timestamps, bint plain) except -1
    cdef bint packs_beside(self) except -1
    cdef int close_filled(self, OpenBatch batch, list receipts) except -1


cdef int refuse_callback(object callback) except -1
"""TypeError: it cannot be called."""
