# cython: language_level=3
"""The broker's side of a consumer at the other end of a connection: takes entries to be sent to it,
and acknowledges and redelivers as it says."""

from libc.stdint cimport uint32_t

from pulsarx._pycore.consume.consumer_core cimport CONSUMER_OPEN, ConsumerCore
from pulsarx._pycore.consume.consumer_host cimport ConsumerHost
from pulsarx._pycore.dispatch.connection_sink cimport ConnectionSink
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock


cdef class EntryConsumer(ConsumerCore):
    """A ConsumerCore that takes entries instead of messages. Any thread may call."""

    cdef ConnectionSink sink

    def __init__(self, ConnectionSink sink not None, ConsumerHost host not None):
        super().__init__(sink, host)
        self.sink = sink

    def flow(self, uint32_t permits) -> None:
        """The other end has room for so many messages more."""
        self.check_open()
        mutex_lock(&self.core.mutex)
        self.sink.permits += permits
        mutex_unlock(&self.core.mutex)

    def take_entry(self):
        """See ConnectionSink.take_entry. CorruptDataError: a damaged entry was passed over."""
        cdef list found
        if self.state != CONSUMER_OPEN:
            self.check_open()
        mutex_lock(&self.core.mutex)
        try:
            found = self.sink.take_entry()
        finally:
            mutex_unlock(&self.core.mutex)
        self.after()
        return found
