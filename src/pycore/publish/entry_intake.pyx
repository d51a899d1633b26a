# cython: language_level=3
"""Publishes the entries of a producer at the other end of a connection: checked, and unchanged."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy, memset

from pulsarx import errors
from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.entry_frame cimport ENTRY_BATCH, ENTRY_MIXED_KEYS, EntryFrame
from pulsarx._core.limits cimport ENTRY_FRAME_SIZE
from pulsarx._core.message_metadata cimport EntryParts
from pulsarx._core.single_metadata cimport METADATA_ORDERING_KEY, METADATA_PARTITION_KEY
from pulsarx._core.status cimport STATUS_END, STATUS_OK
from pulsarx._core.sticky_key cimport STICKY_NON_KEY, sticky_key_of_encoded
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.message.entry_bytes cimport entry_bytes_check
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher, Receipt

cdef enum:
    ROOM_BEHIND = 8              # bytes a publisher may overwrite behind an entry


cdef class EntryIntake:
    """Publishes entries of one producer. Any thread may call; the publisher's mutex orders them."""

    cdef EntryPublisher publisher
    cdef object decompress
    cdef uint32_t entry_size_max
    cdef uint32_t decompressed_size_max

    def __init__(self, EntryPublisher publisher not None, decompress, uint32_t entry_size_max,
                 uint32_t decompressed_size_max) -> None:
        """decompress: (kind, data, uncompressed size, limit) -> bytes."""
        self.publisher = publisher
        self.decompress = decompress
        self.entry_size_max = entry_size_max
        self.decompressed_size_max = decompressed_size_max

    def publish(self, bytes entry not None, callback) -> None:
        """Publish one entry as it is; callback(result, message id) once it is confirmed or failed.

        MessageTooBig; CorruptDataError (its checksum, its metadata, or its batch does not hold):
        nothing was published, the callback is not called. Else as send.
        """
        cdef EntryFrame frame
        cdef EntryParts parts
        cdef uint8_t* room
        cdef Py_ssize_t size = PyBytes_GET_SIZE(entry)
        if size > <Py_ssize_t>self.entry_size_max:
            raise errors.MessageTooBig(
                f"an entry of {size} bytes came over a connection; at most {self.entry_size_max} "
                f"are taken")
        entry_bytes_check(<const uint8_t*>PyBytes_AS_STRING(entry), <uint32_t>size, &frame, &parts)
        if frame.flags & ENTRY_BATCH:
            self.check_batch(&frame, &parts)
        room = <uint8_t*>PyMem_Malloc(ENTRY_FRAME_SIZE + size + ROOM_BEHIND)
        if room == NULL:
            raise MemoryError(f"publish an entry of {size} bytes")
        try:
            memcpy(room + ENTRY_FRAME_SIZE, PyBytes_AS_STRING(entry), size)
            memset(room + ENTRY_FRAME_SIZE + size, 0, ROOM_BEHIND)
            mutex_lock(&self.publisher.mutex)
            try:
                self.publisher.publish(&frame, room + ENTRY_FRAME_SIZE, Receipt.__new__(Receipt),
                                       [(0, callback)], False)
            finally:
                mutex_unlock(&self.publisher.mutex)
        finally:
            PyMem_Free(room)

    cdef int check_batch(self, EntryFrame* frame, EntryParts* parts) except -1:
        """Walk a batch: it holds as many messages as its metadata says. Sets what dispatch by key
        needs."""
        cdef BatchMessage each
        cdef bytes plain = None
        cdef const uint8_t* payload = parts.payload
        cdef uint32_t size = parts.payload_size
        cdef uint32_t at = 0
        cdef uint32_t walked = 0
        cdef uint32_t hash
        cdef int status
        if parts.metadata.compression:
            plain = self.decompress(parts.metadata.compression, payload[:size],
                                    parts.metadata.uncompressed_size, self.decompressed_size_max)
            payload = <const uint8_t*>PyBytes_AS_STRING(plain)
            size = <uint32_t>PyBytes_GET_SIZE(plain)
        while True:
            status = batch_decode_next(payload, size, &at, &each)
            if status == STATUS_END:
                break
            if status != STATUS_OK:
                raise_status(status, 0, f"read message {walked} of a batch that came over a "
                                        f"connection")
            hash = STICKY_NON_KEY
            if each.flags & (METADATA_PARTITION_KEY | METADATA_ORDERING_KEY):
                status = sticky_key_of_encoded(each.encoded_metadata, each.encoded_metadata_size,
                                               &hash)
                raise_status(status, 0, f"read the key of message {walked} of a batch that came "
                                        f"over a connection")
            if walked == 0:
                frame.sticky_hash = hash
            elif hash != frame.sticky_hash:
                frame.flags |= ENTRY_MIXED_KEYS
            walked += 1
        if walked != frame.message_count:
            raise errors.CorruptDataError(
                f"a batch that came over a connection holds {walked} messages; its metadata says "
                f"{frame.message_count}")
        return 0

    def settle(self) -> None:
        """Return when everything published is confirmed or failed, and its callbacks are queued.
        What failed is told by the next flush too."""
        self.publisher.flush_expected()

    def flush(self) -> None:
        """Return when everything published is confirmed and its callbacks have run."""
        failure = self.publisher.flush()
        self.publisher.drain()
        if failure is not None:
            raise failure

    def fence(self, str reason not None) -> None:
        """Publish nothing from now on."""
        self.publisher.fence(reason)

    def abandon(self) -> None:
        """In a forked child: touch nothing."""
        self.publisher.abandon()
