# cython: language_level=3
"""Body of entry_view.pxd."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from pulsarx import errors
from pulsarx._core.entry_frame cimport ENTRY_COMPRESSED, EntryFrame
from pulsarx._core.limits cimport ENTRY_FRAME_SIZE
from pulsarx._core.message_metadata cimport EntryParts, entry_count_holds, entry_decode
from pulsarx._core.single_metadata cimport METADATA_ENCRYPTED
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK
from pulsarx._pycore.message.chunked_message cimport Chunk, ChunkedMessage
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.ledger.ledger_file cimport LedgerFile


class KeyWanted(Exception):
    """An entry cannot be decrypted before `fetch` was called, without a mutex, as that reads a
    file. Never leaves the consumer."""

    def __init__(self, fetch) -> None:
        self.fetch = fetch


cdef class EntryContext:
    """The shared part of all entries of one consumer."""

    def __init__(self, str topic_name, object schema, object topic, object decompress,
                 object schemas=None, object decryption=None):
        """schema: with decode, and decoding that says what else it has. schemas: gives what the
        topic knows of a version; called in the thread that asks for a value. decryption: see the
        pxd."""
        self.decryption = decryption
        self.schemas = schemas
        self.decoders = {}
        self.decompress = decompress
        self.topic_name = topic_name
        self.schema = schema
        self.topic = topic
        self.partition = topic.partition

    cdef Decoding decoding_of_schema(self) except *:
        cdef str found = getattr(self.schema, "decoding", "payload")
        if found == "payload":
            self.decoding = DECODING_PAYLOAD
        elif found == "bytes":
            self.decoding = DECODING_BYTES
        elif found == "version":
            self.decoding = DECODING_VERSION
        else:
            self.decoding = DECODING_MESSAGE
        return self.decoding

    cdef object decoder_of(self, bytes version):
        cdef object found = self.decoders.get(version)
        cdef object written = None
        if found is None:
            # Pulsar's versions are numbers of eight bytes; who knows what others wrote.
            if self.schemas is not None and len(version) == 8:
                written = self.schemas(int.from_bytes(version, "big", signed=True))
            found = self.schema.decoder(written)
            self.decoders[version] = found
        return found


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class EntryView:
    """A delivered entry. Only dispatchers make it."""

    def __init__(self):
        raise TypeError("an EntryView is made by a consumer or a reader")


cdef int refuse_entry(int status, const EntryFrame* frame, uint64_t ledger_id) except -1:
    """Raise what is wrong with an entry that cannot be taken apart, or holds another count."""
    raise_status(STATUS_CORRUPT if status == STATUS_OK else status, 0,
                 f"take apart entry {frame.entry_id} of ledger {ledger_id}")
    return 0


cdef inline EntryView view_of_parts(object pin, EntryContext context, uint64_t ledger_id,
                                    const EntryFrame* frame, const uint8_t* entry,
                                    const EntryParts* parts):
    """The view of an entry that was taken apart, without its payload."""
    cdef EntryView view = EntryView.__new__(EntryView)
    view.pin = pin
    view.context = context
    view.ledger_id = ledger_id
    view.entry_id = frame.entry_id
    view.first_message = frame.first_message
    view.publish_time_ms = <int64_t>parts.metadata.publish_time_ms
    view.message_count = frame.message_count
    view.entry_flags = frame.flags
    view.metadata_flags = parts.metadata.flags
    view.encryption = ENTRY_SEALED if parts.metadata.flags & METADATA_ENCRYPTED else ENTRY_PLAIN
    view.c_entry = entry
    view.entry_size = frame.entry_size
    view.c_encoded_metadata = parts.encoded_metadata
    view.encoded_metadata_size = parts.encoded_metadata_size
    return view


cdef EntryView entry_view_new(object pin, EntryContext context, uint64_t ledger_id,
                              const EntryFrame* frame,
                              const uint8_t* entry, uint32_t decompressed_size_max):
    cdef EntryParts parts
    cdef EntryView view = stored_view(pin, context, ledger_id, frame, entry, &parts)
    if parts.metadata.compression != 0 and view.encryption == ENTRY_PLAIN:
        entry_view_decompress(view, parts.payload[:parts.payload_size], &parts,
                              decompressed_size_max)
    return view


cdef EntryView entry_view_stored(object pin, EntryContext context, uint64_t ledger_id,
                                 const EntryFrame* frame, const uint8_t* entry):
    cdef EntryParts parts
    cdef EntryView view = stored_view(pin, context, ledger_id, frame, entry, &parts)
    if parts.metadata.compression != 0:
        view.entry_flags |= ENTRY_COMPRESSED
    return view


cdef inline EntryView stored_view(object pin, EntryContext context, uint64_t ledger_id,
                                  const EntryFrame* frame, const uint8_t* entry,
                                  EntryParts* parts):
    cdef EntryView view
    # The reader of the ledger has verified the checksum just now; it is not summed twice.
    cdef int status = entry_decode(entry, frame.entry_size, False, parts)
    if status != STATUS_OK or not entry_count_holds(parts, frame.message_count):
        refuse_entry(status, frame, ledger_id)
    view = view_of_parts(pin, context, ledger_id, frame, entry, parts)
    view.c_payload = parts.payload
    view.payload_size = parts.payload_size
    return view


cdef EntryView entry_view_packed(object pin, EntryContext context, const EntryFrame* frame,
                                 const uint8_t* entry, bytes plain):
    cdef EntryParts parts
    cdef EntryView view
    cdef int status = entry_decode(entry, frame.entry_size, False, &parts)
    if status != STATUS_OK or not entry_count_holds(&parts, frame.message_count):
        raise_status(STATUS_CORRUPT if status == STATUS_OK else status, 0,
                     f"take apart an entry of {frame.entry_size} bytes")
    view = view_of_parts(pin, context, 0, frame, entry, &parts)
    if plain is not None:
        set_plain(view, plain)
    else:
        view.c_payload = parts.payload
        view.payload_size = parts.payload_size
    return view


cdef bint entry_view_is_packed(EntryView view) noexcept:
    return view.entry_flags & ENTRY_COMPRESSED != 0 and view.plain is None and (
        view.encryption == ENTRY_PLAIN and view.chunked is None)


cdef EntryView entry_view_repacked(EntryView view, EntryContext context):
    cdef EntryParts parts
    cdef EntryView packed = entry_view_share(view, context)
    if packed.plain is None:
        return packed
    packed.plain = None
    if packed.chunked is not None:
        packed.c_payload = NULL
        packed.payload_size = 0
        return packed
    entry_decode(view.c_entry, view.entry_size, False, &parts)
    packed.c_payload = parts.payload
    packed.payload_size = parts.payload_size
    if parts.metadata.compression != 0:
        packed.entry_flags |= ENTRY_COMPRESSED
    return packed


cdef int entry_view_unpack(EntryView view, uint32_t decompressed_size_max) except -1:
    cdef EntryParts parts
    cdef int status
    if not entry_view_is_packed(view):
        return 0
    status = entry_decode(view.c_entry, view.entry_size, False, &parts)
    if status != STATUS_OK:
        raise_status(status, 0, f"take apart an entry of {view.entry_size} bytes")
    return entry_view_decompress(view, parts.payload[:parts.payload_size], &parts,
                                 decompressed_size_max)


cdef EntryView entry_view_chunked(ChunkedMessage chunked, EntryContext context):
    cdef EntryParts parts
    cdef EntryView view
    cdef uint64_t ledger_id = chunked.chunks[chunked.count - 1].ledger_id
    cdef int status = entry_decode(chunked.c_entry, chunked.frame.entry_size, False, &parts)
    if status != STATUS_OK or not entry_count_holds(&parts, chunked.frame.message_count):
        refuse_entry(status, &chunked.frame, ledger_id)
    view = view_of_parts(chunked.pin, context, ledger_id, &chunked.frame, chunked.c_entry, &parts)
    view.chunked = chunked
    if chunked.encrypted:
        view.encryption = ENTRY_SEALED
    return view


cdef int entry_view_join(EntryView view, uint32_t decompressed_size_max) except -1:
    cdef EntryParts parts
    cdef bytes joined
    if view.plain is not None:
        return 0
    if view.encryption == ENTRY_SEALED:
        joined = decrypted_chunks(view)
        if joined is None:
            return set_plain(view, view.chunked.stored())
        view.chunked.check_size(len(joined))
    else:
        joined = view.chunked.join()
    entry_decode(view.c_entry, view.entry_size, False, &parts)
    if parts.metadata.compression != 0:
        entry_view_decompress(view, joined, &parts, decompressed_size_max)
    else:
        set_plain(view, joined)
    if view.encryption == ENTRY_SEALED:
        view.encryption = ENTRY_OPENED
    return 0


cdef bint entry_view_decrypt(EntryView view, uint32_t decompressed_size_max) except -1:
    cdef EntryParts parts
    cdef bytes plain
    if view.encryption != ENTRY_SEALED:
        return view.encryption != ENTRY_UNREADABLE
    plain = decrypted(view, view.c_entry, view.entry_size, &parts)
    if plain is None:
        return False
    if parts.metadata.compression != 0:
        entry_view_decompress(view, plain, &parts, decompressed_size_max)
    else:
        set_plain(view, plain)
    view.encryption = ENTRY_OPENED
    return True


cdef bytes decrypted(EntryView view, const uint8_t* entry, uint32_t size, EntryParts* parts):
    """The payload of an entry of the view, which was taken apart before; None: it is
    ENTRY_UNREADABLE."""
    entry_decode(entry, size, False, parts)
    if parts.metadata.flags & METADATA_ENCRYPTED == 0:
        return parts.payload[:parts.payload_size]        # a chunk
    if view.context.decryption is None:
        view.undecrypted_why = "this consumer has no crypto_key_reader"
    else:
        try:
            return view.context.decryption.decrypt(
                parts.encoded_metadata[:parts.encoded_metadata_size],
                parts.payload[:parts.payload_size], view.defers_keys)
        except errors.CryptoError as error:
            view.undecrypted_why = errors.detail_of(error)
    view.encryption = ENTRY_UNREADABLE
    return None


cdef object entry_view_key_wanted(EntryView view):
    cdef EntryParts parts
    cdef Chunk* chunk
    if view.chunked is None or view.encryption != ENTRY_SEALED or view.context.decryption is None:
        return None
    chunk = &view.chunked.chunks[0]
    entry_decode(chunk.entry, chunk.entry_size, False, &parts)
    if parts.metadata.flags & METADATA_ENCRYPTED == 0:
        return None
    try:
        view.context.decryption.prepare(parts.encoded_metadata[:parts.encoded_metadata_size])
    except KeyWanted as wanted:
        return wanted.fetch
    return None


cdef bytes decrypted_chunks(EntryView view):
    """The payloads of all chunks, one after the other; None: it is ENTRY_UNREADABLE."""
    cdef EntryParts parts
    cdef Chunk* chunk
    cdef bytes plain
    cdef uint32_t number
    cdef list found = []
    for number in range(view.chunked.count):
        chunk = &view.chunked.chunks[number]
        plain = decrypted(view, chunk.entry, chunk.entry_size, &parts)
        if plain is None:
            return None
        found.append(plain)
    return b"".join(found)


cdef int entry_view_decompress(EntryView view, bytes packed, EntryParts* parts,
                               uint32_t decompressed_size_max) except -1:
    return set_plain(view, view.context.decompress(
        parts.metadata.compression, packed, parts.metadata.uncompressed_size,
        decompressed_size_max))


cdef inline int set_plain(EntryView view, bytes plain) except -1:
    view.plain = plain
    view.c_payload = <const uint8_t*>PyBytes_AS_STRING(plain)
    view.payload_size = <uint32_t>PyBytes_GET_SIZE(plain)
    return 0


cdef int64_t entry_first_index(EntryView view) except -2:
    if type(view.pin) is not LedgerFile:
        return -1
    return (<LedgerFile>view.pin).c_first_index(view.ledger_id)


cdef uint64_t entry_view_offset(EntryView view) noexcept:
    return <uint64_t>(view.c_entry - (<LedgerFile>view.pin).c_read.base) - ENTRY_FRAME_SIZE


cdef EntryView entry_view_share(EntryView view, EntryContext context):
    cdef EntryView shared = EntryView.__new__(EntryView)
    shared.pin = view.pin
    shared.plain = view.plain
    shared.context = context
    shared.c_entry = view.c_entry
    shared.entry_size = view.entry_size
    shared.c_payload = view.c_payload
    shared.c_encoded_metadata = view.c_encoded_metadata
    shared.ledger_id = view.ledger_id
    shared.entry_id = view.entry_id
    shared.first_message = view.first_message
    shared.publish_time_ms = view.publish_time_ms
    shared.payload_size = view.payload_size
    shared.encoded_metadata_size = view.encoded_metadata_size
    shared.message_count = view.message_count
    shared.entry_flags = view.entry_flags
    shared.metadata_flags = view.metadata_flags
    shared.chunked = view.chunked
    if view.encryption != ENTRY_PLAIN:
        seal(shared)
    return shared


cdef int seal(EntryView view) except -1:
    """Reset a view to its encrypted form: what one consumer decrypted is not the other's."""
    cdef EntryParts parts
    entry_decode(view.c_entry, view.entry_size, False, &parts)
    view.plain = None
    view.c_payload = parts.payload
    view.payload_size = parts.payload_size
    view.metadata_flags = parts.metadata.flags
    view.encryption = ENTRY_SEALED
    return 0
