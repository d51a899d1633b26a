from pulsarx._pycore.ledger.ledger_tail import LedgerTail

class EntryTarget:
    """A subscription or reader of a non-persistent topic, as publishers see it."""

class EntryFanOut:
    """The targets of one topic. The broker changes them, one thread at a time."""

    def __init__(self, tail: LedgerTail) -> None: ...
    tail: LedgerTail
    message_count: int
    size: int
    def add(self, target: EntryTarget) -> None: ...
    def remove(self, target: EntryTarget) -> None: ...
