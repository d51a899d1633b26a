"""Finds a single message in its entry by its place, for redelivery."""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._pycore.message.chunked_message cimport ChunkedMessage
from pulsarx._pycore.message.entry_view cimport EntryContext, EntryView
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.message.message cimport Message

cdef Message message_at(LedgerReader reader, EntryContext context, uint64_t ledger_id,
                        uint64_t message, uint32_t redelivery_count,
                        uint32_t decompressed_size_max)
"""None: it is gone, or cannot be read or decrypted. The reader is moved."""

cdef Message message_in(EntryView view, uint32_t index, uint32_t redelivery_count)
"""One message of an entry that is not sealed. None: it cannot be read."""

cdef Message chunked_message_at(ChunkedMessage chunked, EntryContext context,
                                uint32_t redelivery_count, uint32_t decompressed_size_max)
"""Like message_at, for a whole message in chunks."""

cdef int message_place(EntryView view, uint32_t index, uint32_t* at, uint32_t* walked) noexcept
"""Walk from batch index walked, which lies at offset at, to index; both move to it, or where the
batch cannot be read any more: its status."""
