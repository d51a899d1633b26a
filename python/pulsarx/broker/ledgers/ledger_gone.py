"""LedgerTrimmed and LedgerAway: a reader cannot open a ledger. Neither leaves the broker."""


class LedgerTrimmed(Exception):
    """It left the topic while a reader was about to open it."""


class LedgerAway(Exception):
    """Its file is in an object store alone, and nobody reads it."""
