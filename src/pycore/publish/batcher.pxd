"""Encodes the messages of one producer, lets them wait for company, and hands entries to its
publisher. Beneath producer_core.

Methods want the mutex held by the caller unless they say otherwise; it is the publisher's.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.batch_encode cimport batch_encode_payload_size
from pulsarx._core.message_metadata cimport MessageMetadata
from pulsarx._core.single_metadata cimport SingleMetadata, single_metadata_size
from pulsarx._pycore.ground.clock_core cimport ClockCore, Timer
from pulsarx._pycore.ground.rate_limit cimport RateLimit
from pulsarx._pycore.publish.chunked_rate cimport ChunkedRate
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher, Receipt
from pulsarx._pycore.publish.key_batches cimport KeyBatches
from pulsarx._pycore.publish.open_batch cimport OpenBatch
from pulsarx._pycore.publish.outgoing_message cimport PropertyScratch
from pulsarx._pycore.publish.producer_sequences cimport ProducerSequences

cdef enum BatchLimits:
    HEADER_SIZE_MAX = 64       # of a message in a batch, without its keys and properties

cdef enum ProducerState:
    PRODUCER_OPEN = 1
    PRODUCER_CLOSED = 2
    PRODUCER_FORKED = 3
    PRODUCER_FENCED = 4
    PRODUCER_HELD = 5          # open, but senders look first whether they wait


cdef class BatchDue:
    """What a clock calls when the delay of a batch is over. Keeps no producer alive."""
    cdef object producer                 # weak reference


cdef class Batcher:
    cdef readonly EntryPublisher publisher
    cdef OpenBatch open                  # by arrival; also the buffer of messages that go alone
    cdef OpenBatch second                # of send_many, while `open` is compressed; None: never yet
    cdef KeyBatches keyed                # None: batches are by arrival
    cdef readonly str topic_name
    cdef ClockCore clock
    cdef object schema
    cdef bytes schema_version            # its version on the topic, in every entry; None: none
    cdef object compress                 # (kind, bytes) -> bytes
    cdef object encrypt                  # bytes -> (metadata fields, bytes); None: all is plain
    cdef Timer timer                     # of the open batch's deadline; None: not armed
    cdef BatchDue batch_due_call
    cdef object failure                  # of a batch no send waited for; raised by the next flush
    cdef ProducerSequences sequences     # None: no duplicate is told from a new message
    cdef str fenced_by                   # of PRODUCER_FENCED: who has the topic, and why
    cdef object fenced_as                # the exception that says it
    cdef str held_by                     # of PRODUCER_HELD: why senders wait; None: they do not
    cdef RateLimit rate                  # of PRODUCER_HELD: of the topic; None: there is none
    cdef bint never_waits                # for the rate: of letters, which others wait for
    cdef bint queues_sends               # a send that must wait is queued, its caller goes on
    cdef list nested                     # sends from within a call of their thread; or None
    cdef object resume_call              # has the queued sends look again; any thread, any mutex
    cdef list held                       # latches of those that wait; None: nobody ever did
    cdef int64_t send_timeout_ms         # how long they wait; 0 and less: without limit
    cdef int64_t deliver_delay_max_ms    # of a message that is delayed; 0: no limit
    cdef bytes name_utf8
    cdef PropertyScratch scratch         # for the properties of one message
    cdef uint64_t next_sequence_id
    cdef int64_t batch_delay_ms
    cdef int64_t begun_ms                # monotonic: when the oldest open batch began
    cdef uint32_t batch_messages_max
    cdef uint32_t batch_bytes_max
    cdef uint32_t message_size_max
    cdef uint32_t pending_max            # 0: no limit
    cdef uint32_t compression
    cdef uint32_t state                  # ProducerState
    cdef int owner_pid                   # FORKED: the process that opened it
    cdef readonly uint64_t entry_count   # closed: a step says that a batch was closed
    cdef bint plain_sends                # bytes go into the one open batch: the everyday case
    cdef bint bytes_schema
    cdef bint batching
    cdef object before_chunks            # called before the first chunk is stored; None: it was
    cdef ChunkedRate chunked             # its messages in chunks
    cdef bint chunking                   # what does not fit into an entry goes into several
    cdef bint block_if_queue_full
    cdef bint own_ids_are_new            # the next one is above all that were pushed
    cdef bint lifts_own_ids              # that, also without sequences; see resume_after
    cdef bint caller_waits               # a send is running that will flush by itself
    cdef uint32_t many_count             # send_many that are running: neither held, nor too many
    cdef object __weakref__

    cdef int send_nested(self) except -1
    """Send what came from within a call that held the mutex, which is held now, and no call by
    it. What fails is told to its callback, or by the next flush."""

    cdef int add(self, SingleMetadata* metadata, const uint8_t* payload, object callback) except -1
    """Put a message into the open batch; close the batch before when it does not fit."""

    cdef int lift_own_ids(self) except -1
    """Have the next id of the producer's own be a new one, unless its user chose where they begin.
    """

    cdef bint lift_above(self, int64_t sequence_id) noexcept
    """Have the producer's own ids go on above this one. False: they do. Mutex held."""

    cdef void note_used(self, uint64_t sequence_id) noexcept
    """A message with this id goes out now: own ids go on above it."""

    cdef bint number_anew(self, MessageMetadata* metadata, bint own_id) noexcept
    """Give a message of an id of the producer's own the next one, where others were sent since it
    was numbered: a broker in another process would take it for a duplicate. False: it is that of
    the newest."""

    cdef bint is_duplicate(self, uint64_t sequence_id) except -1
    """Whether a message with this id is stored, or on its way; else it counts as pushed. Where
    there are sequences. What the first one failed with is raised."""

    cdef bint was_pushed(self, int64_t sequence_id) except -1
    cdef int close_for_ids(self) except -1
    cdef OpenBatch new_batch(self)
    cdef bint sends_plain(self) noexcept
    cdef int begin(self, OpenBatch batch) except -1
    """A batch gets its first message: its publish time, and the deadline by which it goes out."""

    cdef int close(self, OpenBatch batch, bint awaited) except -1
    """Publish a batch as one entry.

    What interrupts it, or fails while it is compressed, leaves the batch as it is, to be closed
    again. What the publisher refuses is given up: its callbacks are told, and it is gone.
    """

    cdef int close_open(self) except -1
    """Publish all that waits for company: one batch here, several where batches are by key."""

    cdef int publish_single(self, SingleMetadata* single, const uint8_t* payload,
                            int64_t deliver_at_ms, bytes replicate_to, object callback,
                            Receipt receipt, bint own_id) except -1
    """Publish one message as an entry of its own. replicate_to: fields of the metadata, or None.
    own_id: its sequence id is not its user's."""

    cdef bint fits_entry(self, const MessageMetadata* metadata, uint32_t size) noexcept
    """Whether a payload of so many bytes goes into one entry."""

    cdef int publish_chunks(self, MessageMetadata* metadata, const uint8_t* payload, uint32_t size,
                            list callbacks, Receipt receipt, bint own_id) except -1
    """Publish one message as several entries, which hold its payload one after the other. The
    mutex may be given up before the first."""

    cdef int make_room_for(self, uint32_t message_count) except -1
    """As make_room, of a message that takes so many of max_pending_messages."""

    cdef uint32_t open_count(self) noexcept
    """Messages that wait for company."""

    cdef bint is_crowded(self) noexcept
    cdef int wait_for_memory(self) except -1
    """Return when the memory limit takes one more message. The mutex may be given up meanwhile.
    """

    cdef int make_room(self) except -1
    """Return when there is room for one more message. The mutex may be given up meanwhile."""

    cdef void fill_envelope(self, MessageMetadata* envelope, int64_t publish_ms) noexcept
    cdef int give_up(self, list callbacks, uint32_t message_count, bint awaited,
                     object error) except -1
    cdef inline bint fits(self, OpenBatch batch, const SingleMetadata* metadata) noexcept:
        """Whether the message may join the batch."""
        cdef size_t before = batch_encode_payload_size(&batch.batch)
        cdef size_t size = HEADER_SIZE_MAX + <size_t>metadata.payload_size
        size += <size_t>metadata.partition_key_size + metadata.ordering_key_size
        # How long it is exactly counts near the limit alone.
        if metadata.property_count == 0 and before + size <= self.batch_bytes_max:
            return True
        size = 4 + <size_t>metadata.payload_size + single_metadata_size(metadata)
        return before + size <= self.batch_bytes_max

    cdef int check_size(self, Py_ssize_t size) except -1
    """MessageTooBig: no compression makes a content of so many bytes a message."""

    cdef int refuse_size(self, Py_ssize_t size) except -1
    cdef int check_open(self) except -1
    """Raise why nothing is sent. Of a producer that is held, waits, and gives the mutex up
    meanwhile."""

    cdef int wait_while_held(self, int64_t look_ms, int64_t timeout_ms) except -1
    """Wait until it may be otherwise, or one of these times has come; 0: of no time. The mutex is
    given up meanwhile. Timeout: it is the second."""

    cdef object held_too_long(self)
    """The Timeout of a send that was held until now; None: it is not held any more."""

    cdef int change_hold(self) except -1
    """What holds senders is another."""

    cdef int refuse_queued(self, object error) except -1
    cdef int wait_for_queued(self) except -1
    """What send_async queued until now is on its way on return, or refused. No mutex held."""

    """Tell the sends that are queued why they are not sent. No mutex held."""

    cdef int room_for_chunks(self, uint32_t size) except -1
    cdef int wait_between(self) except -1
    """Between the batches of one call: wait as a sender would. What others put into the open batch
    meanwhile goes out. What interrupts it leaves nothing open of the caller."""

    cdef bint may_wait(self) except -1
    """Whether the calling thread is one that may wait for room."""

    cdef inline int64_t may_be_delayed(self, int64_t deliver_at_ms) except? -1:
        """The time a message is delivered at. NotAllowedError: it is too late."""
        if self.deliver_delay_max_ms:
            self.check_delay(deliver_at_ms)
        return deliver_at_ms

    cdef int check_delay(self, int64_t deliver_at_ms) except -1
    cdef int cancel_timer(self) except -1
    cdef int drain(self, bint at_last) except -1
    cdef int give_up_open(self, object error, bint awaited) except -1
