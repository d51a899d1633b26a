"""LedgerSummary: named like a tuple, in the order of its slots."""

from pulsarx._core.ledger_footer cimport LEDGER_RECOVERED, LedgerFooter


cdef class LedgerSummary:
    """Counts, size and times of a sealed ledger. A value.

    size: where the data ends; frames lie in 4096..size. first_publish_ms: the smallest,
    last_publish_ms: the greatest, not the last entry's.
    """

    def _tuple(self) -> tuple[int, int, int, int, int]:
        return (self.entry_count, self.message_count, self.size, self.first_publish_ms,
                self.last_publish_ms)

    def __iter__(self):
        return iter(self._tuple())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LedgerSummary):
            return NotImplemented
        return (self._tuple() == (<LedgerSummary>other)._tuple()
                and self.digest == (<LedgerSummary>other).digest)

    def __hash__(self) -> int:
        return hash(self._tuple())

    def __repr__(self) -> str:
        return (f"LedgerSummary(entry_count={self.entry_count}, "
                f"message_count={self.message_count}, "
                f"size={self.size}, "
                f"first_publish_ms={self.first_publish_ms}, "
                f"last_publish_ms={self.last_publish_ms})")


cdef LedgerSummary ledger_summary(const LedgerFooter* footer):
    cdef LedgerSummary made = LedgerSummary.__new__(LedgerSummary)
    made.entry_count = footer.entry_count
    made.message_count = footer.message_count
    made.size = footer.end
    made.first_publish_ms = footer.first_publish_ms
    made.last_publish_ms = footer.last_publish_ms
    made.digest = footer.digest
    made.damage_count = footer.damage_count
    made.torn_size = footer.torn_size
    made.recovered = bool(footer.flags & LEDGER_RECOVERED)
    return made
