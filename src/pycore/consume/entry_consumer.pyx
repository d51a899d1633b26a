# cython: language_level=3
"""Serves, in the broker, a consumer at the other end of a connection: takes entries to be sent to
it, and acknowledges and redelivers as it says."""

from libc.stdint cimport uint32_t

from pulsarx._pycore.consume.consumer_core cimport CONSUMER_OPEN, ConsumerCore
from pulsarx._pycore.consume.consumer_host cimport ConsumerHost
from pulsarx._pycore.dispatch.connection_sink cimport ConnectionSink
from pulsarx._pycore.dispatch.consumer_crowd cimport ConsumerCrowd
from pulsarx._pycore.dispatch.shared_dispatcher cimport SharedDispatcher
from pulsarx._pycore.dispatch.single_active_dispatcher cimport SingleActiveDispatcher
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.ground.watchers cimport watchers_remove


cdef class EntryConsumer(ConsumerCore):
    """A ConsumerCore that takes entries instead of messages. Any thread may call."""

    cdef ConnectionSink sink
    cdef ConsumerCrowd crowd             # that it is in; None: the tail tells it
    cdef public object connection        # the same of all of one connection, before `watch`

    def __init__(self, ConnectionSink sink not None, ConsumerHost host not None):
        super().__init__(sink, host)
        self.sink = sink

    def flow(self, uint32_t permits) -> None:
        """The other end has room for so many messages more."""
        self.check_open()
        mutex_lock(&self.core.mutex)
        self.sink.permits += permits
        mutex_unlock(&self.core.mutex)

    def watch(self, object notify not None) -> None:
        """Like ConsumerCore.watch; on Shared and Key_Shared subscriptions notify() is called when
        there may be a message for this consumer, or for others as well."""
        if not isinstance(self.dispatcher, SharedDispatcher):
            ConsumerCore.watch(self, notify)
            return
        cdef ConsumerCrowd crowd = (<SharedDispatcher>self.dispatcher).crowd
        if self.watchers is None:
            self.watchers = []
        self.watchers.append(notify)
        crowd.add(self.sink, notify, self.connection)
        self.crowd = crowd               # behind it: what fails leaves it in none
        self.dispatcher.tail.watch_for(crowd)

    def unwatch(self, object notify not None) -> None:
        if self.crowd is None:
            ConsumerCore.unwatch(self, notify)
            return
        watchers_remove(self.watchers, notify)
        if self.crowd.remove(self.sink):
            self.dispatcher.tail.unwatch_for(self.crowd)
            self.crowd.stalls(self.sink)     # last: one that is told may raise

    def take_entry(self):
        """See ConnectionSink.take_entry. CorruptDataError: a damaged entry was passed over."""
        cdef list found
        if self.state != CONSUMER_OPEN:
            self.check_open()
        mutex_lock(&self.core.mutex)
        try:
            if self.crowd is not None:
                self.crowd.looks(self.sink)
            found = self.sink.take_entry()
            if found is None and self.crowd is not None:
                self.crowd.looked(self.sink)
        finally:
            mutex_unlock(&self.core.mutex)
            self.after()
        return found

    def awaits_more(self) -> bool:
        """Whether it would be sent what there is for it: it has permits and, of Exclusive and
        Failover, is the active one."""
        cdef bint found
        mutex_lock(&self.core.mutex)
        found = self.sink.permits > 0
        if isinstance(self.dispatcher, SingleActiveDispatcher):
            found = found and (<SingleActiveDispatcher>self.dispatcher).active is self.sink
        mutex_unlock(&self.core.mutex)
        return found

    def stall(self) -> None:
        """Its connection takes no more for now; then take_entry is called again."""
        if self.crowd is not None:
            self.crowd.stalls(self.sink)
