"""Encodes the messages of one producer, collects them into batches, and hands entries to its
publisher. Beneath producer_core.

Beside it stand what its entries have in common (`envelope`), the ids of its messages
(`message_numbers`), what goes in several entries (`chunker`), and whether a message is taken at all
(`admission`), which is asked first.

Methods want the mutex held by the caller unless they say otherwise; it is the publisher's. awaited:
the caller waits for what it sends until it is confirmed, so that nobody else need see to it.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.batch_encode cimport batch_encode_payload_size
from pulsarx._core.single_metadata cimport SingleMetadata, single_metadata_size
from pulsarx._pycore.ground.clock_core cimport ClockCore, Timer
from pulsarx._pycore.ledger.open_transactions cimport TransactionCore
from pulsarx._pycore.publish.admission cimport Admission, Wait
from pulsarx._pycore.publish.chunker cimport Chunker
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher, Receipt
from pulsarx._pycore.publish.envelope cimport Envelope
from pulsarx._pycore.publish.key_batches cimport KeyBatches
from pulsarx._pycore.publish.message_numbers cimport MessageNumbers
from pulsarx._pycore.publish.open_batch cimport OpenBatch
from pulsarx._pycore.publish.outgoing_message cimport PropertyScratch

cdef enum BatchLimits:
    HEADER_SIZE_MAX = 64       # of a message in a batch, without its keys and properties


cdef class BatchDue:
    """The callback of a clock for when the delay of a batch is over. Keeps no producer alive."""
    cdef object producer                 # weak reference


cdef class Batcher:
    cdef readonly EntryPublisher publisher
    cdef Envelope envelope
    cdef MessageNumbers numbers
    cdef Admission admission
    cdef Chunker chunker
    cdef OpenBatch open                  # by arrival; also the buffer of messages that go alone
    cdef OpenBatch second                # of send_many, while `open` is compressed; None: never yet
    cdef KeyBatches keyed                # None: batches are by arrival
    cdef readonly str topic_name
    cdef ClockCore clock
    cdef object schema
    cdef Timer timer                     # of the open batch's deadline; None: not armed
    cdef BatchDue batch_due_call
    cdef object failure                  # of a batch no send waited for; raised by the next flush
    cdef list nested                     # sends from within a call of their thread; or None
    cdef PropertyScratch scratch         # for the properties of one message
    cdef int64_t batch_delay_ms
    cdef int64_t begun_ms                # monotonic: when the oldest open batch began
    cdef uint32_t batch_messages_max
    cdef uint32_t batch_bytes_max
    cdef readonly uint64_t entry_count   # closed: a step says that a batch was closed
    cdef bint plain_sends                # bytes go into the one open batch: the everyday case
    cdef bint bytes_schema
    cdef bint batching
    cdef object __weakref__

    cdef int send_nested(self) except -1
    """Send what came from within a call that held the mutex, which is held now, and no call by
    it. What fails is told to its callback, or by the next flush."""

    cdef int admit(self, bint awaited, Wait* wait) except -1
    """Whether one more message is taken, as Answer. wait: told when it is not; NULL: the caller
    sleeps until it is. What keeps it from being sent is raised. Of the send nothing is done yet;
    the mutex may be given up meanwhile."""

    cdef int add(self, SingleMetadata* metadata, const uint8_t* payload, object callback,
                 bint awaited) except -1
    """Put a message into the open batch; close the batch before when it does not fit."""

    cdef bint is_duplicate(self, uint64_t sequence_id, bint awaited) except -1
    """Whether a message with this id is stored, or on its way; else it counts as pushed. Where
    there are sequences. What the first one failed with is raised."""

    cdef int join(self, TransactionCore transaction) except -1
    """Let what is added from now on belong to a transaction; None: to none. The open batch goes out
    first, as a batch belongs to one transaction, or to none; what that fails with its callbacks
    are told, or the next flush. Raises as EntryPublisher.join."""

    cdef int note_stored(self, int64_t last, list ids, bint more_follow,
                         int64_t now_ms) except -1
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

    cdef int close_open(self, bint awaited) except -1
    """Publish all that waits for company: one batch here, several where batches are by key."""

    cdef int publish_single(self, SingleMetadata* single, const uint8_t* payload,
                            int64_t deliver_at_ms, bytes replicate_to, object callback,
                            Receipt receipt, bint own_id, bint awaited) except -1
    """Publish one message as an entry of its own. replicate_to: fields of the metadata, or None.
    own_id: its sequence id is not its user's."""

    cdef uint32_t open_count(self) noexcept
    """Messages that wait for company."""

    cdef inline bint is_crowded(self) noexcept:
        """Whether max_pending_messages are on their way."""
        cdef uint64_t count = self.open.batch.message_count + self.publisher.pending_count
        if self.keyed is not None:
            count += self.keyed.message_count
        return self.admission.is_crowded(count)

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

    cdef int refuse_queued(self, object error) except -1
    """Tell the sends that are queued why they are not sent. No mutex held."""

    cdef int wait_for_queued(self) except -1
    """Wait until what send_async queued so far is on its way, or refused. No mutex held."""

    cdef int wait_between(self) except -1
    """Between the batches of one call: wait as a sender would. What others put into the open batch
    meanwhile goes out. What interrupts it leaves nothing open of the caller."""

    cdef int cancel_timer(self) except -1
    cdef int drain(self, bint at_last) except -1
    cdef int give_up_open(self, object error, bint awaited) except -1
