"""An EntrySink that decodes messages for a consumer or reader of this process."""

from pulsarx._pycore.dispatch.entry_sink cimport EntrySink


cdef class Receiver(EntrySink):
    pass
