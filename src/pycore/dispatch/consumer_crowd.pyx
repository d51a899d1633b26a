# cython: language_level=3
"""Body of consumer_crowd.pxd."""

from libc.stdint cimport uint32_t

from pulsarx._pycore.dispatch.entry_sink cimport EntrySink

cdef enum:
    # as one of them may be busy for long; so few are always all told, each of another connection,
    # which looks for one at a time
    TOLD_AT_ONCE = 4


cdef class CrowdConnection:
    """See the pxd."""

    def __init__(self, key) -> None:
        self.key = key
        self.sinks = []

    cdef EntrySink able(self):
        cdef EntrySink each
        cdef size_t step
        for step in range(<size_t>len(self.sinks)):
            if self.turn >= <uint32_t>len(self.sinks):
                self.turn = 0
            each = <EntrySink>self.sinks[self.turn]
            self.turn += 1
            if each.permits > 0 and not each.member.is_stalled and (
                    each.member.notify is not None):
                return each
        return None


cdef class ConsumerCrowd:
    """See the pxd."""

    def __init__(self) -> None:
        self.sinks = []
        self.connections = []
        self.by_key = {}

    def __call__(self) -> None:
        """Messages may have come. As a watcher of LedgerTail."""
        self.tell_some()

    def add(self, EntrySink sink not None, notify not None, connection) -> None:
        """notify: as LedgerTail.watch takes it. connection: the same object for all that are at the
        end of one; None: it has its own. Its owner looks afterwards, for what came before."""
        cdef CrowdConnection found = None
        if connection is not None:
            found = self.by_key.get(connection)
        if found is None:
            found = CrowdConnection(connection)
            self.connections.append(found)
            if connection is not None:
                self.by_key[connection] = found
        sink.member.notify = notify
        sink.member.connection = found
        found.sinks.append(sink)
        self.sinks.append(sink)

    def remove(self, EntrySink sink not None) -> bool:
        """It does not look any more; whether it was there. Call `stalls` afterwards."""
        cdef CrowdConnection found
        if sink not in self.sinks:
            return False
        self.sinks.remove(sink)
        found = <CrowdConnection>sink.member.connection
        found.sinks.remove(sink)
        if not found.sinks:
            self.connections.remove(found)
            self.by_key.pop(found.key, None)
        sink.member.notify = sink.member.connection = None
        return True

    def tell_all(self) -> None:
        """Tell all, of something that is no message."""
        cdef EntrySink each
        for each in list(self.sinks):
            notify = each.member.notify
            if notify is not None:
                notify()

    cdef int tell_some(self) except -1:
        cdef EntrySink each
        cdef uint32_t told = 0
        cdef size_t step
        if self.is_owed:
            return 0             # who begins to look sees this, too
        for step in range(<size_t>len(self.connections)):
            if self.turn >= <uint32_t>len(self.connections):
                if not self.connections:
                    return 0
                self.turn = 0
            each = (<CrowdConnection>self.connections[self.turn]).able()
            self.turn += 1
            if each is None:
                continue         # they look when that is another
            notify = each.member.notify
            self.is_owed = True
            each.member.is_looker = True
            try:
                notify()
            except BaseException:
                self.is_owed = False     # the next one tells
                raise
            told += 1
            if told == TOLD_AT_ONCE:
                break
        return 0

    cdef int looks(self, EntrySink sink) except -1:
        sink.member.is_stalled = False
        # For those that were told, too: it has others told if it stalls.
        sink.member.is_looker = True
        self.is_owed = False
        return 0

    cdef int looked(self, EntrySink sink) except -1:
        # It may have been told anew while it looked.
        if not self.is_owed:
            sink.member.is_looker = False
        return 0

    cdef int stalls(self, EntrySink sink) except -1:
        sink.member.is_stalled = True
        if sink.member.is_looker:
            sink.member.is_looker = False
            self.is_owed = False
            self.tell_some()
        return 0

    cdef int tell_given(self) except -1:
        cdef EntrySink each
        for each in list(self.sinks):
            notify = each.member.notify
            if each.member.was_given and notify is not None:
                notify()             # first: where it raises, it is told later
                each.forget_given()
        return 0
