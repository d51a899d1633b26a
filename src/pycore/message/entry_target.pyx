# cython: language_level=3
"""Body of entry_target.pxd."""

from libc.stdint cimport uint32_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail


cdef class EntryTarget:
    """Base of what publishers hand entries to. Any thread may call."""

    cdef uint32_t offer(self, bytes entry, bytes plain, const EntryFrame* frame,
                        bint* taken) except? 4294967295:
        raise NotImplementedError

    cdef bint needs_plain(self, const EntryFrame* frame) noexcept:
        return False


cdef class EntryFanOut:
    """See the pxd."""

    def __init__(self, LedgerTail tail not None) -> None:
        self.tail = tail
        self.targets = []

    def add(self, EntryTarget target not None) -> None:
        """Hand it what is published from now on."""
        self.targets = [*self.targets, target]

    def remove(self, EntryTarget target not None) -> None:
        """Hand it nothing any more; what a publisher is handing out just now may still reach it.
        Nothing when it is not there."""
        self.targets = [each for each in self.targets if each is not target]
