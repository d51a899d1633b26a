# cython: language_level=3
"""Body of open_batch.pxd."""

from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memset

from pulsarx._core.batch_encode cimport (
    batch_encode_clear, batch_encode_compressed, batch_encode_finish, batch_encode_free,
    batch_encode_init, batch_encode_plain_payload,
)
from pulsarx._core.entry_frame cimport ENTRY_BATCH, ENTRY_COMPRESSED, ENTRY_MIXED_KEYS
from pulsarx._core.message_metadata cimport MessageMetadata
from pulsarx._core.single_metadata cimport METADATA_BATCH, METADATA_ENCRYPTED
from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.sticky_key cimport sticky_key_of_entry
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.publish.envelope cimport Envelope


cdef class OpenBatch:
    """One thread at a time."""

    def __cinit__(self, size_t headroom, size_t capacity) -> None:
        """headroom: for the metadata in front; a longer one makes the buffer grow. capacity: for
        messages, to begin with."""
        batch_encode_init(&self.batch, headroom, capacity)

    def __dealloc__(self) -> None:
        batch_encode_free(&self.batch)

    def __lt__(self, OpenBatch other not None) -> bool:
        return self.batch.last_sequence_id < other.batch.last_sequence_id

    cdef int pack(self, Envelope envelope) except -1:
        if self.packed is None:
            self.packed = self.compressed(envelope.compress, envelope.compression)
        return 0

    cdef int pack_beside(self, Envelope envelope) except -1:
        if self.packed is None and self.packing is None:
            self.packing = control_plane.begin(
                self.compressed, (envelope.compress, envelope.compression))
        return 0

    def compressed(self, object compress not None, uint32_t compression) -> bytes:
        """The payload by this codec; the batch may not change meanwhile."""
        cdef const uint8_t* plain
        cdef uint32_t size
        batch_encode_plain_payload(&self.batch, &plain, &size)
        view = PyMemoryView_FromMemory(<char*>plain, size, PyBUF_READ)
        try:
            return compress(compression, view)
        finally:
            view.release()                   # the buffer is used again

    cdef int take_packed(self) except -1:
        """Wait for the thread that packs it, if there is one."""
        packing, self.packing = self.packing, None
        if packing is not None:
            self.packed = control_plane.end(packing)
        return 0

    cdef int encode(self, MessageMetadata* metadata, Envelope envelope) except -1:
        cdef const uint8_t* plain
        cdef uint8_t* entry = NULL
        cdef uint32_t size = 0
        cdef bytes packed
        cdef bytes fields
        cdef int status
        if self.entry != NULL:
            return 0
        if envelope.compression or envelope.encrypt is not None:
            if envelope.compression:
                self.take_packed()
                self.pack(envelope)
                packed, self.packed = self.packed, None
            else:
                batch_encode_plain_payload(&self.batch, &plain, &size)
                packed = plain[:size]
            if envelope.encrypt is not None:
                fields, packed = envelope.encrypt(packed)
                metadata.flags |= METADATA_ENCRYPTED
                metadata.encryption = <const uint8_t*>PyBytes_AS_STRING(fields)
                metadata.encryption_size = <uint32_t>PyBytes_GET_SIZE(fields)
            self.packed_size = <uint32_t>PyBytes_GET_SIZE(packed)
            metadata.compression = envelope.compression
            status = batch_encode_compressed(&self.batch, metadata,
                                             <const uint8_t*>PyBytes_AS_STRING(packed),
                                             <uint32_t>PyBytes_GET_SIZE(packed), &entry, &size)
        else:
            status = batch_encode_finish(&self.batch, metadata, &entry, &size)
        if status != STATUS_OK:
            raise_status(status, 0, f"encode a batch of {self.batch.message_count} messages")
        self.fill_frame(metadata, size)
        self.entry = entry
        return 0

    cdef int fill_frame(self, const MessageMetadata* metadata, uint32_t entry_size) except -1:
        memset(&self.frame, 0, sizeof(self.frame))
        self.frame.entry_size = entry_size
        self.frame.message_count = self.batch.message_count
        self.frame.publish_time_ms = self.publish_ms
        self.frame.flags = (ENTRY_BATCH if metadata.flags & METADATA_BATCH else 0) | (
            ENTRY_COMPRESSED if metadata.compression else 0) | (
            ENTRY_MIXED_KEYS if self.batch.mixed_keys and not (
                metadata.flags & METADATA_ENCRYPTED) else 0)
        self.frame.sticky_hash = sticky_key_of_entry(metadata)
        return 0

    cdef void clear(self) noexcept:
        try:
            self.take_packed()
        except Exception:                    # nobody asks for it any more
            pass
        self.packed = None
        batch_encode_clear(&self.batch)
        self.entry = NULL
        self.packed_size = 0
        self.reserved = 0
        self.callbacks = None
        self.ids = None
        self.receipt = None

    cdef int add_callback(self, object callback) except -1:
        if self.callbacks is None:
            self.callbacks = []
        self.callbacks += (self.batch.message_count - 1, callback)
        return 0
