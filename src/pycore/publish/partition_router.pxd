"""The hot calls of a producer on a partitioned topic: they choose a partition's producer and hand
the message to it. Beneath pulsarx.PartitionedProducer, which decides whatever is not everyday.

Everything is one step to a signal handler, except making a producer and asking a message_router.
"""

from libc.stdint cimport uint64_t

from pulsarx._pycore.publish.producer_core cimport ProducerCore


cdef class PartitionRouter:
    cdef object topic                    # its partition_count grows
    cdef readonly list producers         # by partition; None: not made yet
    cdef ProducerCore current            # whose turn it is for messages without a key
    cdef uint64_t current_entries        # how many entries that had tried to store when chosen
    cdef int hashing_scheme
    cdef Py_ssize_t turn                 # of the partitions: whose it is next
    cdef bint batching
    cdef bint stays                      # one partition takes all messages without a key
    cdef object router                   # message_router; None: there is none
    cdef public bint is_open

    cdef ProducerCore route(self, object content, object properties, object key,
                            object ordering_key, object event_timestamp)
    cdef Py_ssize_t partition_of(self, object key, Py_ssize_t count) except -1
    """The index of the partition of a key, which is no empty text, among so many partitions."""

    cdef int tell_closed(self, object callback) except -1
    cdef ProducerCore take_turn(self)
    cdef ProducerCore at(self, Py_ssize_t index)
