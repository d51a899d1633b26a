"""A delivered entry: where its bytes are and what its frame said. Made by the dispatcher, pinned
by messages.

An EntryView keeps the mapping (or the decompressed bytes) alive, so a message stays readable when
its ledger is trimmed, sealed or closed. Immutable once made.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._pycore.message.chunked_message cimport ChunkedMessage


cdef enum Decoding:
    DECODING_UNKNOWN             # nobody asked for a value yet
    DECODING_BYTES               # the payload is the value
    DECODING_PAYLOAD             # schema.decode(payload)
    DECODING_VERSION             # schema.decoder(schema of the writer)(payload)
    DECODING_MESSAGE             # schema.decode_message(message)


cdef enum EntryEncryption:
    ENTRY_PLAIN                  # it never was encrypted
    ENTRY_SEALED                 # to be decrypted for the consumer that gets it
    ENTRY_OPENED                 # its payload is decrypted
    ENTRY_UNREADABLE             # it could not be decrypted: its payload is as it is stored


cdef class EntryContext:
    """The shared part of all entries of one consumer."""
    cdef readonly str topic_name
    cdef readonly object schema
    cdef object decompress               # (kind, data, uncompressed size, limit) -> bytes
    # of the consumer: decrypt(metadata, payload) -> bytes, or CryptoError, and failure_action,
    # a ConsumerCryptoFailureAction. None: it decrypts nothing, and what is encrypted is not for it
    cdef readonly object decryption
    # the topic's LedgerTail: tells messages of one topic from another's
    cdef readonly object topic
    cdef readonly int partition          # of that topic; part of each message id
    cdef object schemas                  # version -> SchemaInfo or None; None: there are none
    cdef dict decoders                   # of payloads, by the version of their schema
    cdef Decoding decoding

    cdef Decoding decoding_of_schema(self) except *
    cdef object decoder_of(self, bytes version)
    """Return the decoder of payloads of this version of the topic's schema, b"" for none."""


cdef class EntryView:
    # what c_entry points into: a LedgerFile, or the bytes that came over a connection
    cdef object pin
    cdef bytes plain                     # decompressed payload, else None
    cdef EntryContext context
    cdef const uint8_t* c_entry          # as it is stored
    cdef const uint8_t* c_payload        # in c_entry, unless decompressed
    cdef const uint8_t* c_encoded_metadata
    cdef uint64_t ledger_id
    cdef uint64_t entry_id
    cdef uint64_t first_message          # ordinal in the ledger of the first message
    cdef int64_t publish_time_ms
    cdef uint32_t entry_size
    cdef uint32_t payload_size
    cdef uint32_t encoded_metadata_size
    cdef uint32_t message_count
    cdef uint32_t entry_flags            # EntryFlags
    cdef uint32_t metadata_flags         # MetadataFlags of the entry's own metadata
    cdef EntryEncryption encryption
    # the message whose last chunk the entry is; it has no payload before it is joined. Else None
    cdef ChunkedMessage chunked
    cdef str undecrypted_why             # of ENTRY_UNREADABLE
    cdef bint defers_keys                # a mutex is held: decrypting may raise KeyWanted
    # What value() gave, which a message has no room for. Behind what receiving touches.
    cdef dict decoded


cdef EntryView entry_view_new(object pin, EntryContext context, uint64_t ledger_id,
                              const EntryFrame* frame,
                              const uint8_t* entry, uint32_t decompressed_size_max)
"""Take a verified entry apart (and decompress it, unless it is sealed: see entry_view_decrypt);
CorruptDataError names ledger and entry when it is no entry."""


cdef EntryView entry_view_stored(object pin, EntryContext context, uint64_t ledger_id,
                                 const EntryFrame* frame, const uint8_t* entry)
"""Like entry_view_new, and not decompressed yet. See entry_view_unpack."""


cdef bint entry_view_is_packed(EntryView view) noexcept
"""Whether it is still to be decompressed, and no more than that."""


cdef EntryView entry_view_repacked(EntryView view, EntryContext context)
"""The same entry for another queue, not decompressed any more. A new one: messages of the view may
point into what was decompressed."""


cdef EntryView entry_view_chunked(ChunkedMessage chunked, EntryContext context)
"""The last entry of a whole message in chunks, as an entry of one message, which is to be joined
before it is handed out."""


cdef int entry_view_join(EntryView view, uint32_t decompressed_size_max) except -1
"""Put the payload of a chunked message together, unless that was done; its chunks are decrypted
before, and where that cannot be it is ENTRY_UNREADABLE. CorruptDataError: it is none."""


cdef bint entry_view_decrypt(EntryView view, uint32_t decompressed_size_max) except -1
"""Decrypt and decompress a sealed entry as its context says, in place; True: its messages can be
read. False: it is ENTRY_UNREADABLE. CorruptDataError: it does not decompress. Not of chunks."""


cdef EntryView entry_view_packed(object pin, EntryContext context, const EntryFrame* frame,
                                 const uint8_t* entry, bytes plain)
"""Like entry_view_new, for an entry of no ledger (its id is 0, 0), which is not decompressed yet.

plain: its payload, decompressed already, or None. See entry_view_unpack.
"""


cdef int entry_view_unpack(EntryView view, uint32_t decompressed_size_max) except -1
"""Decompress an entry if that is still to be done; CorruptDataError."""


cdef EntryView entry_view_share(EntryView view, EntryContext context)
"""The same entry for another consumer; sealed again, if it was."""


cdef object entry_view_key_wanted(EntryView view)
"""Return the function to call without a mutex before a message in chunks is joined, as of
KeyWanted; None: nothing. With the mutex held."""

cdef int64_t entry_first_index(EntryView view) except -2
"""Return the index in its topic of the first message of its ledger; -1: not known, or none."""

cdef uint64_t entry_view_offset(EntryView view) noexcept
"""Return where the frame of an entry of a ledger lies in its file."""
