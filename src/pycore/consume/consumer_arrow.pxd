"""Receiving columns, on top of consumer_core. Beneath pulsarx.Consumer and pulsarx.Reader."""

from libc.stdint cimport int64_t, uint32_t

from pulsarx._pycore.arrow.arrow_block cimport ArrowBlock, BlockEntry
from pulsarx._pycore.consume.consumer_core cimport ConsumerCore
from pulsarx._pycore.message.entry_view cimport EntryView


cdef class ConsumerArrow(ConsumerCore):
    cdef int collect(self, ArrowBlock* block, int64_t wanted) except -1
    cdef int collect_entry(self, ArrowBlock* block, EntryView view, int64_t wanted) except -1
    cdef int pass_message(self, EntryView view, uint32_t at, uint32_t index, int status) except -1
    cdef int collect_claimed(self, ArrowBlock* block, const BlockEntry* entry,
                             int64_t wanted) except -1
    cdef int reserve(self, ArrowBlock* block, EntryView view, int64_t wanted) except -1
