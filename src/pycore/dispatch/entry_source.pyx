# cython: language_level=3
"""Body of entry_source.pxd."""

from libc.stdint cimport INT32_MAX, int64_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._pycore.ledger.ledger_tail import LedgerWanted
from pulsarx._core.ack_bits cimport ack_bits_count_below
from pulsarx._core.cursor_record cimport CURSOR_RUN_MAX
from pulsarx._core.cursor_state cimport LedgerAcks, cursor_state_find
from pulsarx._core.message_metadata cimport EntryParts, entry_decode
from pulsarx._core.single_metadata cimport METADATA_BATCH
from pulsarx._core.status cimport (
    STATUS_CORRUPT, STATUS_DUPLICATE, STATUS_END, STATUS_FOLD, STATUS_OK, STATUS_OUT_OF_RANGE,
)
from pulsarx._pycore.cursor.ack_tracker cimport AckTracker
from pulsarx._pycore.dispatch.chunk_assembler cimport ChunkAssembler
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.ground.raise_status cimport status_reason
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.message.chunked_message cimport ChunkedMessage
from pulsarx._pycore.message.entry_view cimport EntryView, entry_view_offset
from pulsarx._pycore.message.message_filter cimport MessageFilter

cdef enum:
    PASSED_MAX = 65536           # messages passed over at a time: some milliseconds


def look_again() -> None:
    """Fetches nothing; see EntrySource.rests."""


cdef class EntrySource:
    """See the pxd."""

    def __init__(self, SubscriptionCore core not None, LedgerTail tail not None,
                 str topic_name not None, uint32_t decompressed_size_max):
        self.core = core
        self.tail = tail
        self.topic_name = topic_name
        self.decompressed_size_max = decompressed_size_max

    cdef int acknowledged(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1:
        raise NotImplementedError

    cdef int acknowledged_through(self, uint64_t ledger_id, uint64_t end) except -1:
        raise NotImplementedError

    # Messages in chunks ---------------------------------------------------------------------------

    cdef int read_chunk(self, LedgerReader reader) except -1:
        cdef ChunkAssembler chunks
        cdef EntryParts parts
        cdef int64_t now_ms = self.core.later_ms(0) if self.core.clock is not None else 0
        cdef int64_t due_ms
        cdef int status = entry_decode(reader.c_entry, reader.c_frame.entry_size, False, &parts)
        if status != STATUS_OK or parts.metadata.chunk_count <= 1 or (
                parts.metadata.flags & METADATA_BATCH):
            return CHUNK_ORDINARY        # and if it is none, whoever looks at it is told
        if parts.metadata.uuid == NULL or parts.metadata.chunk_id >= parts.metadata.chunk_count or (
                parts.metadata.chunk_count > <uint32_t>INT32_MAX
                or parts.metadata.chunked_size > <uint32_t>INT32_MAX
                or reader.c_frame.message_count != 1):
            self.lose_entry(reader, errors.CorruptDataError(
                detail=f"it is chunk {parts.metadata.chunk_id} of {parts.metadata.chunk_count} of "
                f"a message of {parts.metadata.chunked_size} bytes, which cannot be"))
            return CHUNK_WAITS
        chunks = self.core.assembler()
        self.whole = chunks.read(reader, &parts, now_ms)
        while chunks.ready:
            self.whole_later(<ChunkedMessage>chunks.ready[0])
            del chunks.ready[0]
        if chunks.armed_ms == 0 and self.core.clock is not None:
            due_ms = chunks.next_due_ms()
            if due_ms:
                chunks.armed_ms = due_ms
                self.core.arm_wait(due_ms, 0, 0)
        return CHUNK_WAITS if self.whole is None else CHUNK_WHOLE

    cdef int whole_later(self, ChunkedMessage chunked) except -1:
        raise NotImplementedError

    cdef int chunks_acknowledged(self, uint64_t ledger_id, uint64_t first,
                                 uint64_t count) except -1:
        self.core.chunks.acknowledged(ledger_id, first, count)
        return 0

    cdef int look_for_chunks(self, uint64_t ledger_id, uint64_t end) except -1:
        return 0

    cdef int acknowledge_sparing(self, uint64_t ledger_id, uint64_t end, list spared) except -1:
        cdef AckTracker tracker = self.core.tracker
        cdef LedgerAcks* acks
        cdef uint64_t of_ledger
        cdef uint64_t at
        cdef uint64_t stop
        first_ledger, first = spared[0]
        tracker.acknowledge_messages_through(first_ledger, first)
        self.acknowledged_through(first_ledger, first)
        for of_ledger in tracker.ledger_ids:
            if of_ledger < first_ledger or of_ledger > ledger_id:
                continue
            at = first if of_ledger == first_ledger else 0
            stop = end
            if of_ledger < ledger_id:
                acks = cursor_state_find(&tracker.c_state, of_ledger)
                stop = acks.message_count if acks.sealed else self.tail.messages_in(of_ledger)
            for _, kept in [each for each in spared if each[0] == of_ledger]:
                self.acknowledge_between(of_ledger, at, kept)
                at = kept + 1
            self.acknowledge_between(of_ledger, at, stop)
        self.core.chunks.acknowledged_through(ledger_id, end)
        return 0

    def acknowledge_between(self, uint64_t ledger_id, uint64_t first, uint64_t end) -> None:
        cdef uint64_t part
        while first < end:
            part = min(end - first, <uint64_t>CURSOR_RUN_MAX)
            self.core.tracker.acknowledge_messages(ledger_id, first, part)
            self.acknowledged(ledger_id, first, part)
            first += part

    # What cannot be decrypted ---------------------------------------------------------------------

    cdef int discard(self, EntryView view, uint32_t index) except -1:
        cdef uint64_t message = view.first_message + index
        # Where the cursor cannot keep it, it is passed over, and discarded once more.
        if self.lose_messages(view.ledger_id, message, message + 1) and self.loss_kept and (
                self.core.losses is not None):
            self.core.losses.keep_soon()
        return 0

    cdef int tell_undecrypted(self, EntryView view, int action) except -1:
        if action == CRYPTO_CONSUME:
            done = "it is delivered as it is stored"
        elif action == CRYPTO_DISCARD:
            done = "crypto_failure_action is DISCARD: its messages count as acknowledged"
        elif self.core.tracker is not None:
            done = "it is not delivered, and its messages stay unacknowledged"
        else:
            done = "it is not delivered"
        if self.undecrypted is None:
            self.undecrypted = []
        self.undecrypted.append((action == CRYPTO_FAIL, (
            f"entry {view.entry_id} of ledger {view.ledger_id} with {view.message_count} messages "
            f"cannot be decrypted: {view.undecrypted_why}; {done}")))
        self.wakes = True            # so that it is said when the mutex is released
        return 0

    cdef int log_undecrypted(self, list undecrypted) except -1:
        import logging

        logger = logging.getLogger("pulsarx")
        for is_error, text in undecrypted:
            logger.log(logging.ERROR if is_error else logging.WARNING, "%s: %s", self.topic_name,
                       text)
        return 0

    # Damage ---------------------------------------------------------------------------------------

    cdef int lose_rest(self, EntryView view, uint32_t index, int status) except -1:
        text = self.count_rest(view, index, view.message_count, status)
        return self.raise_loss(text) if text is not None else 0

    cdef int lose_one(self, EntryView view, uint32_t index, int status) except -1:
        text = self.count_rest(view, index, index + 1, status)
        return self.raise_loss(text) if text is not None else 0

    cdef str count_rest(self, EntryView view, uint32_t index, uint32_t end, int status):
        cdef uint64_t missing = self.lose_messages(
            view.ledger_id, view.first_message + index, view.first_message + end)
        if missing == 0:
            return None
        # The end of the payload, where the entry claims another message, is damage too.
        why = status_reason(status if status != STATUS_END else <int>STATUS_CORRUPT)
        return (f"read message {index} of entry {view.entry_id} at offset "
                f"{entry_view_offset(view)} of ledger {view.ledger_id} of {self.topic_name}: {why};"
                f" {self.count_text(missing)}; reading goes on behind")

    cdef str count_text(self, uint64_t missing):
        kept = "s are missing" if missing != 1 else " is missing"
        if self.loss_kept:
            kept += " and count as acknowledged" if missing != 1 else " and counts as acknowledged"
        return f"{missing} message{kept}"

    cdef int lose_entry(self, LedgerReader reader, object error) except -1:
        reader.lose_entry(errors.detail_of(error))
        if not isinstance(error, errors.UnreadableEntryError):
            return self.tell_damage(reader)
        text = (f"{reader.lost_what}: {reader.lost_why}; its "
                f"{reader.lost_end - reader.lost_first} messages stay unacknowledged; reading goes "
                f"on {reader.lost_next}")
        self.report_loss(text)
        raise self.loss(errors.UnreadableEntryError, text)

    cdef int tell_damage(self, LedgerReader reader) except -1:
        text = self.count_damage(reader)
        return self.raise_loss(text) if text is not None else 0

    cdef str count_damage(self, LedgerReader reader):
        cdef uint64_t missing = self.lose_messages(reader.lost_ledger_id, reader.lost_first,
                                                   reader.lost_end)
        if reader.lost_end == reader.lost_first:
            # How much it is cannot be acknowledged, so it is remembered that it was told.
            if self.core.was_told(reader.lost_ledger_id):
                return None
        elif missing == 0:
            return None
        return reader.damage_text(self.count_text(missing))

    cdef int raise_loss(self, str text) except -1:
        self.report_loss(text)
        raise self.loss(errors.CorruptDataError, text)

    cdef object loss(self, kind, str text):
        made = kind(detail=text)
        # So that the library, where it takes the exception, does not say it once more.
        made.logged = self.core.tracker is not None
        return made

    cdef int report_loss(self, str text) except -1:
        return self.core.losses.tell(text) if self.core.losses is not None else 0

    cdef uint64_t lose_messages(self, uint64_t ledger_id, uint64_t first,
                                uint64_t end) except? 18446744073709551615:
        cdef AckTracker tracker = self.core.tracker
        cdef LedgerAcks* acks
        cdef uint64_t missing
        self.loss_kept = False
        if end <= first or tracker is None:
            return end - first if end > first else 0
        if ledger_id < tracker.c_state.acknowledged_below:
            return 0
        acks = cursor_state_find(&tracker.c_state, ledger_id)
        if acks == NULL:
            return end - first
        end = min(end, acks.message_count)
        if end <= first:
            return 0
        missing = end - first - (ack_bits_count_below(&acks.bits, end)
                                 - ack_bits_count_below(&acks.bits, first))
        if missing:
            self.loss_kept = self.core.acknowledge_lost(ledger_id, first, end)
            self.acknowledged(ledger_id, first, end - first)
            if self.core.chunks is not None:
                self.chunks_acknowledged(ledger_id, first, end - first)
        return missing

    # Selectors ------------------------------------------------------------------------------------

    cdef bint select(self, EntryView view) except -1:
        cdef SubscriptionCore core = self.core
        cdef MessageFilter filter = core.filter
        cdef uint64_t accepted = 0
        cdef uint64_t rejected = 0
        cdef uint32_t index = 0
        cdef uint32_t end
        filter.look(view)
        while index < view.message_count:
            end = filter.run_end(index)
            if filter.c_matches[index] == 0:
                rejected += self.reject(view.ledger_id, view.first_message + index,
                                        view.first_message + end)
            elif core.tracker is None:
                accepted += end - index
            else:
                for index in range(index, end):
                    accepted += not core.tracker.is_acknowledged(view.ledger_id,
                                                                 view.first_message + index)
            index = end
        core.counts.accepted += accepted
        core.counts.rejected += rejected
        if rejected and core.losses is not None:
            core.losses.keep_soon()
        if accepted:
            self.passed_count = 0
        else:
            self.passed_count += view.message_count
        return accepted != 0

    cdef uint64_t reject(self, uint64_t ledger_id, uint64_t first,
                         uint64_t end) except? 18446744073709551615:
        """Acknowledge messages of one entry that are not to be delivered: how many were not."""
        cdef AckTracker tracker = self.core.tracker
        cdef uint64_t rejected = 0
        cdef uint64_t newly = 0
        cdef uint64_t count
        cdef int status
        if tracker is None:
            return end - first
        while first < end:
            count = min(end - first, <uint64_t>CURSOR_RUN_MAX)
            status = tracker.acknowledge(ledger_id, first, count, &newly)
            if status == STATUS_FOLD and self.core.fold_now():
                continue
            if status == STATUS_OK:
                rejected += newly
                self.acknowledged(ledger_id, first, count)
                if self.core.chunks is not None:
                    self.chunks_acknowledged(ledger_id, first, count)
            elif status == STATUS_OUT_OF_RANGE:
                rejected += count        # of a ledger that is about to go
            elif status != STATUS_DUPLICATE:
                raise errors.StorageError(
                    detail=f"acknowledge {count} messages of ledger {ledger_id} of "
                    f"{self.topic_name}, which the selector does not match: "
                    f"{status_reason(status)}. Nothing is delivered before that can be done; the "
                    "log says what keeps the cursor from being written")
            first += count
        return rejected

    cdef bint rests(self, LedgerReader reader) except -1:
        if self.passed_count < PASSED_MAX:
            return False
        self.passed_count = 0
        if reader.defers:
            raise LedgerWanted(look_again)
        self.wakes = True
        return True

    # Expiry ---------------------------------------------------------------------------------------

    cdef int expire(self, uint64_t ledger_id, uint64_t first, uint64_t end) except -1:
        cdef uint64_t missing = self.lose_messages(ledger_id, first, end)
        # Where the cursor cannot keep it, they are passed over, and expire once more.
        if missing and self.loss_kept:
            self.core.count_expired(missing, 1)
            if self.core.losses is not None:
                self.core.losses.keep_soon()
        return 0

    cdef int expire_view(self, EntryView view) except -1:
        return self.expire(view.ledger_id, view.first_message,
                           view.first_message + view.message_count)
