# cython: language_level=3
"""Body of receiver.pxd."""

from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._pycore.ledger.ledger_tail import LedgerWanted
from pulsarx._pycore.message.entry_view import KeyWanted
from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next, batch_decode_plain
from pulsarx._core.single_metadata cimport METADATA_BATCH, METADATA_COMPACTED_OUT
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.dispatch.entry_sink cimport CLAIM_STALE, Dispatcher, EntrySink
from pulsarx._pycore.dispatch.entry_source cimport CRYPTO_CONSUME, CRYPTO_DISCARD
from pulsarx._pycore.message.entry_view cimport (
    ENTRY_SEALED, ENTRY_UNREADABLE, EntryContext, EntryView, entry_view_decrypt,
    entry_view_is_packed, entry_view_key_wanted, entry_view_unpack,
)
from pulsarx._pycore.message.message cimport REDELIVERY_SHIFT, Message, message_new
from pulsarx._pycore.message.message_at cimport message_place

# A generation that no dispatcher has.
cdef uint64_t NO_GENERATION = UINT64_MAX


cdef class Receiver(EntrySink):
    """Hands out the messages it was given one by one. With the subscription's mutex held."""

    def __init__(self, Dispatcher dispatcher not None, EntryContext context not None,
                 str consumer_name not None, object settings):
        super().__init__(dispatcher, context, consumer_name, settings)
        self.sealed_generation = NO_GENERATION

    cdef Message take(self):
        cdef BatchMessage found
        cdef EntryView view
        cdef uint32_t at
        cdef uint32_t index
        cdef uint32_t flags
        cdef int count
        cdef int status
        while True:
            if self.view is None or self.place.generation != self.dispatcher.generation:
                if not self.fill():
                    return None
            view = self.view
            count = 0
            if view.chunked is not None:
                self.key_wanted = entry_view_key_wanted(view)
                if self.key_wanted is not None:
                    return None
            # It is claimed before it is passed: a claim that raises leaves it the next.
            if view.metadata_flags & METADATA_BATCH == 0:
                if view.encryption == ENTRY_UNREADABLE and view.chunked is None:
                    count = self.claim_stored(view)
                elif self.place.filtered:
                    count = self.dispatcher.claim(self, view, 0)
                if view.chunked is not None and count >= 0:
                    self.dispatcher.join_chunks(self, view)
                    if self.key_wanted is not None:
                        return None
                    if self.view is None:
                        continue         # it was lost, and that was told before
                self.drop_view()
                if count < 0:
                    continue
                return message_new(view, view.c_payload, view.payload_size, -1, 0,
                                   view.metadata_flags | (<uint32_t>count << REDELIVERY_SHIFT))
            self.locate_next(&at, &index)
            if not self.was_read(view, &found) and not self.read_plain(view, &at, &found):
                status = batch_decode_next(view.c_payload, view.payload_size, &at, &found)
                if status != STATUS_OK:
                    self.drop_view()
                    self.dispatcher.lose_rest(view, index, status)
                    continue
            if self.place.filtered:
                count = self.dispatcher.claim(self, view, index)
            self.step(at, index)
            if count < 0:
                continue
            if found.flags & METADATA_COMPACTED_OUT:
                if self.place.filtered:
                    self.dispatcher.pass_over(self, view, index)
                continue
            flags = found.flags | (<uint32_t>count << REDELIVERY_SHIFT)
            return message_new(view, found.payload, found.payload_size, <int>index,
                               found.encoded_metadata_size, flags)

    cdef inline bint read_plain(self, EntryView view, uint32_t* at, BatchMessage* found) noexcept:
        """Read a message with nothing but a payload and a sequence id; False: it is none."""
        cdef const uint8_t* start = view.c_payload + at[0]
        if not batch_decode_plain(view.c_payload, view.payload_size, at, found):
            return False
        found.encoded_metadata_size = <uint32_t>(found.payload - start) - 4
        return True

    # Encrypted entries ----------------------------------------------------------------------------

    cdef bint fill(self) except -1:
        while True:
            if self.view is None or self.sealed_generation != self.dispatcher.generation:
                self.sealed_generation = NO_GENERATION
                if not self.supplied():
                    return False
                if (self.view.encryption != ENTRY_SEALED or self.view.chunked is not None) and (
                        not entry_view_is_packed(self.view)):
                    return True          # chunks are decrypted when they are joined
                self.sealed_generation = self.place.generation
                self.place.generation = NO_GENERATION
            if self.open_view():
                self.place.generation = self.sealed_generation
                self.sealed_generation = NO_GENERATION
                return True
            if self.key_wanted is not None:
                return False             # the next take goes on with this view

    cdef bint supplied(self) except -1:
        self.dispatcher.defer(True)
        try:
            return self.dispatcher.supply(self)
        except LedgerWanted as wanted:
            self.key_wanted = wanted.fetch
            return False
        finally:
            self.dispatcher.defer(False)

    cdef bint open_view(self) except -1:
        cdef EntryView view = self.view
        cdef uint64_t missing
        cdef bint was_packed = entry_view_is_packed(view)
        cdef str state = "" if was_packed else "is decrypted and "
        view.defers_keys = True
        try:
            if was_packed:
                entry_view_unpack(view, self.dispatcher.decompressed_size_max)
                return True              # where its messages are was found before
            if not entry_view_decrypt(view, self.dispatcher.decompressed_size_max):
                return self.undecrypted(view)
        except KeyWanted as wanted:
            self.key_wanted = wanted.fetch
            return False
        except errors.UnreadableEntryError as error:
            self.claim_rest(view)
            self.drop_view()
            text = (f"{place_of(view)} {state}cannot be read: {errors.detail_of(error)}; "
                    f"its messages stay unacknowledged; reading goes on behind")
            self.dispatcher.report_loss(text)
            raise self.dispatcher.loss(errors.UnreadableEntryError, text)
        except errors.CorruptDataError as error:
            self.drop_view()
            missing = self.dispatcher.lose_messages(
                view.ledger_id, view.first_message, view.first_message + view.message_count)
            if missing:
                self.dispatcher.raise_loss(
                    f"{place_of(view)} {state}cannot be read: {errors.detail_of(error)}; "
                    f"{self.dispatcher.count_text(missing)}; reading goes on behind")
            return False
        if view.metadata_flags & METADATA_BATCH:
            self.find_places(view)
        return self.view is not None

    cdef int find_places(self, EntryView view) except -1:
        cdef uint32_t at = 0
        cdef uint32_t walked = 0
        cdef uint32_t index
        cdef uint32_t number
        cdef int status = STATUS_OK
        if self.place.items == NULL:
            status = message_place(view, self.place.index, &at, &walked)
            self.place.at = at
        else:
            for number in range(self.place.item_at, self.place.end):
                index = self.place.items[number].index
                if index < walked:
                    at = walked = 0
                status = message_place(view, index, &at, &walked)
                if status != STATUS_OK:
                    break
                self.place.items[number].at = at
        if status != STATUS_OK:
            self.drop_view()
            self.dispatcher.lose_rest(view, walked, status)
        return 0

    cdef list claim_rest(self, EntryView view):
        cdef uint32_t number
        cdef uint32_t index
        cdef int count = 0
        cdef list claimed = []
        try:
            for number in range(
                    self.place.item_at if self.place.items != NULL else self.place.index,
                    self.place.end):
                index = self.place.items[number].index if self.place.items != NULL else number
                if self.place.filtered:
                    count = self.dispatcher.claim(self, view, index)
                if count >= 0:
                    claimed.append((index, count))
        except BaseException:
            for index, count in claimed:
                self.dispatcher.unclaim(self, view, index)
            raise
        return claimed

    cdef int claim_stored(self, EntryView view) except -2:
        cdef list claimed = self.claim_rest(view)
        return max([count for _, count in claimed]) if claimed else <int>CLAIM_STALE

    cdef bint undecrypted(self, EntryView view) except -1:
        cdef int action = self.dispatcher.failure_action(self)
        cdef list claimed
        if action == CRYPTO_CONSUME:
            # One message, however many it holds.
            view.metadata_flags &= ~<uint32_t>METADATA_BATCH
            self.dispatcher.tell_undecrypted(view, action)
            return True
        claimed = self.claim_rest(view)
        self.drop_view()
        if claimed:                      # else it was acknowledged meanwhile
            self.dispatcher.tell_undecrypted(view, action)
        if action == CRYPTO_DISCARD:
            for index, _ in claimed:
                self.dispatcher.discard(view, index)
        return False


cdef str place_of(EntryView view):
    return f"entry {view.entry_id} of ledger {view.ledger_id}"
