# cython: language_level=3
"""Body of compacted_dispatcher.pxd."""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.cursor_state cimport LedgerAcks, cursor_state_find
from pulsarx._core.entry_frame cimport ENTRY_REWRITTEN
from pulsarx._core.pending_acks cimport (
    PENDING_DEAD, PendingAck, pending_acks_find, pending_acks_remove,
)
from pulsarx._core.single_metadata cimport METADATA_COMPACTED_OUT
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.dispatch.entry_sink cimport EntrySink
from pulsarx._pycore.dispatch.single_active_dispatcher cimport SingleActiveDispatcher
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.ledger.compacted_reader cimport CompactedReader
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader, READ_DAMAGE, READ_NOTHING
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.message.entry_view cimport EntryView, entry_view_new


cdef class CompactedDispatcher(SingleActiveDispatcher):
    """See the pxd. Any thread may call; the mutex orders them."""

    def __init__(self, SubscriptionCore core not None, LedgerTail tail not None,
                 str topic_name not None, uint32_t decompressed_size_max, bint exclusive,
                 int partition_index, source):
        """source: with compacted_ledger()."""
        super().__init__(core, tail, topic_name, decompressed_size_max, exclusive, partition_index)
        self.compacted = CompactedReader(tail, topic_name, source)
        self.reader = self.compacted
        self.has_gaps = True

    cdef bint supply(self, EntrySink receiver) except -1:
        if not SingleActiveDispatcher.supply(self, receiver):
            return False
        if receiver.view.entry_flags & ENTRY_REWRITTEN:
            # Else one would be said to be there although only what was taken out is left.
            receiver.place.end = self.survivors_end
        return True

    cdef bint takes_rewritten(self, EntryView view) except -1:
        self.pass_taken_out(view)
        return view.ledger_id != self.skip_ledger_id or (
            view.first_message + self.survivors_end > self.skip_messages)

    cdef int pass_gap(self, bint to_end) except -1:
        cdef CompactedReader reader = self.compacted
        cdef uint64_t end_ledger_id
        cdef uint64_t end_message
        cdef uint64_t first_ledger_id = reader.gap_ledger_id
        cdef uint64_t ledger_id
        cdef uint64_t first
        cdef uint64_t end
        cdef LedgerAcks* acks
        if not reader.has_gap:
            return 0
        if to_end:
            end_ledger_id, end_message = reader.at_ledger_id, reader.at_message
        else:
            end_ledger_id, end_message = reader.span.ledger_id, reader.c_frame.first_message
        reader.has_gap = False
        if self.core.tracker is None:
            return 0
        ledger_ids = (first_ledger_id,)
        if end_ledger_id != first_ledger_id:
            ledger_ids = self.core.tracker.ledger_ids
        for ledger_id in ledger_ids:
            if ledger_id < first_ledger_id or ledger_id > end_ledger_id:
                continue
            acks = cursor_state_find(&self.core.tracker.c_state, ledger_id)
            if acks == NULL:
                continue
            first = reader.gap_message if ledger_id == first_ledger_id else 0
            end = end_message if ledger_id == end_ledger_id else self.messages_in(acks)
            if first < end:
                self.core.acknowledge_lost(ledger_id, first, end)
        if end_ledger_id != first_ledger_id and self.core.losses is not None:
            self.core.losses.keep_soon()     # what it held may be trimmed
        return 0

    cdef int pass_taken_out(self, EntryView view) except -1:
        """Acknowledge the messages that were taken out of a batch, and find its last survivor."""
        cdef BatchMessage each
        cdef uint32_t at = 0
        cdef uint32_t index
        cdef uint32_t first = 0
        cdef bint keeps = self.core.tracker is not None and cursor_state_find(
            &self.core.tracker.c_state, view.ledger_id) != NULL
        self.survivors_end = view.message_count
        for index in range(view.message_count):
            if batch_decode_next(view.c_payload, view.payload_size, &at, &each) != STATUS_OK:
                self.survivors_end = view.message_count
                return 0             # whoever comes to it is told
            if each.flags & METADATA_COMPACTED_OUT:
                continue
            if keeps and first < index:
                self.core.acknowledge_lost(view.ledger_id, view.first_message + first,
                                           view.first_message + index)
            first = index + 1
            self.survivors_end = first
        if keeps and first < view.message_count:
            self.core.acknowledge_lost(view.ledger_id, view.first_message + first,
                                       view.first_message + view.message_count)
        return 0

    cdef int pass_over(self, EntrySink receiver, EntryView view, uint32_t index) except -1:
        """A message that was taken out of its batch, and that could not be acknowledged."""
        cdef uint64_t message = view.first_message + index
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, view.ledger_id, message)
        if ack != NULL and ack.state != PENDING_DEAD:
            self.core.cancel_timer(ack)
            pending_acks_remove(&self.core.pending, view.ledger_id, message)
        return 0

    cdef str count_damage(self, LedgerReader reader):
        cdef uint64_t missing = reader.lost_end - reader.lost_first
        if self.compacted.damage_key == 0:
            return SingleActiveDispatcher.count_damage(self, reader)
        if missing == 0 or self.core.was_told(self.compacted.damage_key):
            return None
        # With the gap in front of the next entry.
        self.loss_kept = self.core.tracker is not None
        return reader.damage_text(self.count_text(missing))
