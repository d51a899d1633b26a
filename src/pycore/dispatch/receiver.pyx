# cython: language_level=3
"""Body of receiver.pxd."""

from libc.stdint cimport uint32_t

from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.single_metadata cimport METADATA_BATCH, METADATA_COMPACTED_OUT
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.dispatch.entry_sink cimport EntrySink
from pulsarx._pycore.message.entry_view cimport EntryView
from pulsarx._pycore.message.message cimport REDELIVERY_SHIFT, Message, message_new


cdef class Receiver(EntrySink):
    """Hands out the messages it was given one by one. With the subscription's mutex held."""

    cdef Message take(self):
        cdef BatchMessage found
        cdef EntryView view
        cdef uint32_t at
        cdef uint32_t index
        cdef uint32_t flags
        cdef int count
        cdef int status
        while True:
            if self.view is None or self.view_generation != self.dispatcher.generation:
                if not self.fill():
                    return None
            view = self.view
            count = 0
            # It is claimed before it is passed: a claim that raises leaves it the next.
            if view.metadata_flags & METADATA_BATCH == 0:
                if self.view_filtered:
                    count = self.dispatcher.claim(self, view, 0)
                if view.chunked is not None and count >= 0:
                    self.dispatcher.join_chunks(self, view)
                    if self.view is None:
                        continue         # it was lost, and that was told before
                self.drop_view()
                if count < 0:
                    continue
                return message_new(view, view.c_payload, view.payload_size, -1, 0,
                                   view.metadata_flags | (<uint32_t>count << REDELIVERY_SHIFT))
            self.locate_next(&at, &index)
            status = batch_decode_next(view.c_payload, view.payload_size, &at, &found)
            if status != STATUS_OK:
                self.drop_view()
                self.dispatcher.lose_rest(view, index, status)
                continue
            if self.view_filtered:
                count = self.dispatcher.claim(self, view, index)
            self.step(at, index)
            if count < 0:
                continue
            if found.flags & METADATA_COMPACTED_OUT:
                if self.view_filtered:
                    self.dispatcher.pass_over(self, view, index)
                continue
            flags = found.flags | (<uint32_t>count << REDELIVERY_SHIFT)
            return message_new(view, found.payload, found.payload_size, <int>index,
                               found.encoded_metadata_size, flags)
