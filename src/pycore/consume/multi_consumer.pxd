"""The hot calls of a consumer of several topics: takes from the consumers of single topics in turn,
or by their priority.

No mutex is held here. A source is looked at only when its flag was set since it was last found
empty; the flag is cleared before the look, so that what comes meanwhile sets it again. Flags that
are set wait in a list, so topics without messages cost nothing. Topics that another process
publishes to are all looked at, and slept on together.
"""

from libc.stdint cimport int64_t, uint32_t

from pulsarx._pycore.arrow.arrow_export cimport ArrowMessages
from pulsarx._pycore.consume.ready_list cimport ReadyFlag, ReadyList
from pulsarx._pycore.ground.deadline cimport Deadline
from pulsarx._pycore.message.message cimport Message


cdef class Source:
    """A topic of the consumer. Immutable."""
    cdef readonly object consumer        # a ConsumerCore
    cdef readonly ReadyFlag flag
    cdef readonly object tail            # LedgerTail of its topic


cdef class MultiConsumerCore:
    cdef list sources                    # of Source; grows at its end, else is replaced
    cdef dict by_tail                    # LedgerTail: Source
    cdef dict by_ledger                  # ledger id: Source, as far as asked for
    cdef Source last                     # whose message was asked about last
    cdef ReadyList ready
    cdef uint32_t state                  # MultiConsumerState
    # OpenState of the broker, of a consumer of a pattern: while no topic has it, this says whether
    # it is open. None: it ends with the last of its topics.
    cdef public object waits_for_topics
    # For topics that another process publishes to, which set no flag: called when nothing was
    # found, and adds the topics that came meanwhile. All are looked at then. None: they set it.
    cdef public object find_more
    cdef object __weakref__

    cdef ArrowMessages no_columns(self)
    cdef Source next_ready(self)
    cdef int mark_all(self) except -1
    cdef bint any_has_message(self) except -1
    cdef int sleep_beside(self, int64_t left_ns) except -1
    cdef Message take(self)
    cdef bint wait(self, Deadline deadline) except -1
    cdef object of_transaction(self, object transaction, object consumer, object message)
    cdef object consumer_of(self, message, bint any_id=*)
    cdef Source source_of_ledger(self, object ledger_id)
    cdef int check_open(self) except -1
    cdef int check_members(self) except -1
    cdef int wake_all(self) except -1
