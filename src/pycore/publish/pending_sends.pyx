# cython: language_level=3
"""Body of pending_sends.pxd."""

from collections import deque

from libc.stdint cimport uint64_t

from pulsarx._core.atomic cimport atomic_load_u64
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter


cdef class PendingSends:
    """Belongs to one producer core, which calls it with its mutex held."""

    def __init__(self, object completions, int partition):
        self.entries = deque()
        self.partition = partition
        self.completions = completions

    cdef int add(self, LedgerWriter writer, uint64_t entry_id, uint64_t messages,
                 list callbacks) except -1:
        self.entries.append((writer, entry_id + 1, messages, callbacks, entry_id))
        self.message_count += messages
        return 0

    cdef int settle(self) except -1:
        """Take off everything that is durable by now and hand its callbacks over to be run."""
        cdef LedgerWriter writer
        while self.entries:
            writer, entry_count, messages, callbacks, entry_id = self.entries[0]
            if atomic_load_u64(&writer.c_ledger.durable_count) < <uint64_t>entry_count:
                return 0
            self.entries.popleft()
            self.message_count -= <uint64_t>messages
            if callbacks:
                self.completions.post(
                    callbacks, writer.ledger_id, entry_id, messages, None, self.partition)
        return 0

    cdef tuple oldest(self):
        return self.entries[0] if self.entries else None

    cdef tuple newest(self):
        return self.entries[len(self.entries) - 1] if self.entries else None

    cdef bint fail(self, object error) except -1:
        """The flush failed: who gave a callback is told, nothing stays pending. True: there were
        messages without a callback, which somebody else must be told about."""
        cdef bint untold = False
        while self.entries:
            writer, _, messages, callbacks, entry_id = self.entries.popleft()
            untold = untold or <uint64_t>messages > <uint64_t>len(callbacks or ())
            if callbacks:
                self.completions.post(
                    callbacks, writer.ledger_id, entry_id, messages, error, self.partition)
        self.message_count = 0
        return untold
