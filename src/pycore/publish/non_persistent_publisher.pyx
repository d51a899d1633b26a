# cython: language_level=3
"""Body of non_persistent_publisher.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pulsarx import errors
from pulsarx._core.entry_frame cimport ENTRY_COMPRESSED, EntryFrame
from pulsarx._core.message_metadata cimport EntryParts, entry_decode
from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.wait_event cimport wait_event_wake
from pulsarx._pycore.ground.rate_counter cimport RateCounter
from pulsarx._pycore.message.entry_target cimport EntryFanOut, EntryTarget
from pulsarx._pycore.publish.completion_queue cimport CompletionQueue
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher, Receipt

cdef enum:
    GIL_KEPT_UP_TO = 65536         # bytes: a smaller copy is over before another could take it


cdef class NonPersistentPublisher(EntryPublisher):
    """Hands entries to the subscriptions of a topic. Any thread may call; the mutex orders them.
    An entry has the id (0, 0, partition, -1), as in Pulsar."""

    def __init__(self, EntryFanOut fan_out not None, CompletionQueue completions not None,
                 decompress, uint32_t decompressed_size_max) -> None:
        self.fan_out = fan_out
        self.completions = completions
        self.decompress = decompress
        self.decompressed_size_max = decompressed_size_max
        self.partition = fan_out.tail.partition
        self.drops = RateCounter()

    cdef int publish(self, EntryFrame* frame, uint8_t* entry, Receipt receipt, list callbacks,
                     bint awaited) except -1:
        cdef list targets = self.fan_out.targets
        if self.checks:
            self.check(frame)
        self.fan_out.message_count += frame.message_count
        self.fan_out.size += frame.entry_size
        if targets:
            self.hand_out(targets, frame, entry)
        if receipt.reserved:
            self.release(receipt)
        receipt.message_count = frame.message_count
        if callbacks:
            self.completions.post(callbacks, 0, 0, 1, None, self.partition)
        return 0

    cdef int hand_out(self, list targets, EntryFrame* frame, const uint8_t* entry) except -1:
        cdef bytes kept = PyBytes_FromStringAndSize(NULL, frame.entry_size)
        cdef char* room = PyBytes_AS_STRING(kept)
        cdef bytes plain = None
        cdef EntryTarget target
        cdef bint taken = False
        cdef uint64_t dropped = 0
        if frame.entry_size > GIL_KEPT_UP_TO:
            with nogil:
                memcpy(room, entry, frame.entry_size)
        else:
            memcpy(room, entry, frame.entry_size)
        if frame.flags & ENTRY_COMPRESSED:
            for target in targets:
                if target.needs_plain(frame):
                    # Before anything is handed out: an interrupted codec publishes nothing.
                    plain = self.plain_of(entry, frame.entry_size)
                    break
        for target in targets:
            dropped += target.offer(kept, plain, frame, &taken)
        if dropped:
            self.drops.add(dropped, frame.publish_time_ms)
        if taken:
            wait_event_wake(self.fan_out.tail.c_event)
            if self.fan_out.tail.watchers:
                self.fan_out.tail.notify()
        return 0

    cdef bytes plain_of(self, const uint8_t* entry, uint32_t size):
        """The decompressed payload; None: it cannot be taken apart, which its consumer is told."""
        cdef EntryParts parts
        if entry_decode(entry, size, False, &parts) != STATUS_OK:
            return None
        try:
            return self.decompress(parts.metadata.compression, parts.payload[:parts.payload_size],
                                   parts.metadata.uncompressed_size, self.decompressed_size_max)
        except errors.CorruptDataError:
            return None

    cdef int wait(self, Receipt receipt) except -1:
        return 0

    cdef int wait_for_oldest(self) except -1:
        return 0

    cdef int settle(self) except -1:
        return 0

    cdef object flush(self):
        return None

    def flush_expected(self) -> None:
        """Nothing is to be flushed."""
