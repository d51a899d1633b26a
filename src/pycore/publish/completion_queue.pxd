"""Tells asynchronous sends how they ended: flushes what they stored, then runs their callbacks, in
a thread of its own. A broker has one; any thread may call, at any moment.

Callbacks never run in the thread that sends, so a callback may take the locks its sender holds.
Those that only take note (`loop_send`) are told at once.
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.ground.watchers cimport LoopItem
from pulsarx._pycore.publish.memory_limit cimport MemoryLimit


cdef enum:
    # Of messages of a batch that was stored without its duplicates: one that was left out, and the
    # only one that was not.
    DUPLICATE_INDEX = -2
    LONE_INDEX = -3


cdef class SendTold(LoopItem):
    """A callback that only notes how its send ended, so it is told at once, wherever that is."""

    cdef int told(self, object message_id, object error) except -1
    """The send ended; error: None for success."""

    cdef bint is_given_up(self) except -1
    """Whether nobody waits for it any more."""


cdef class CompletionQueue:
    cdef readonly JobQueue jobs
    cdef readonly JobQueue timeouts      # what `jobs` cannot tell while its thread waits for a disk
    cdef set expected                    # publishers whose flush is queued
    cdef MemoryLimit blocked             # what a callback waits for; None: nothing
    cdef object ok                       # what a callback is told of a success
    cdef object result_of                # the same of an exception

    cdef int post(self, list callbacks, uint64_t ledger_id, uint64_t entry_id,
                  uint64_t message_count, object error, int partition) except -1
    """Run the callbacks of one entry: a batch index, its callback, the next index and so on.
    Tuples would be as many objects for the garbage collector as messages are pending. error: why it
    failed, None for success. message_count 0 without an error: they are of duplicates. After a
    MemoryError it may be called again with the same list, which holds those that were not told."""

    cdef int post_timeout(self, list callbacks, object error, int partition) except -1
    """Run the callbacks of one entry whose send has timed out, in a thread of their own."""

    cdef int drain(self, bint timeouts_alone) except -1
    """Return when every callback posted before has run. Called by a callback: at once. No mutex
    held."""

    cdef int refuse(self, object callback, object error, int partition) except -1
    cdef int refuse_once(self, object callback, object error, int partition) except -1
    """Tell the callback of a message that was not taken; in the calling thread when there is no
    other any more. No mutex held."""

    cdef int expect(self, object publisher) except -1
    """Flush what the publisher stored, because no caller waits for it."""

    cdef int wait_for_memory(self, MemoryLimit memory) except -1
    """Return when the limit is not reached. Called by a callback it flushes what is expected, for
    which else nobody would. No mutex held."""


cdef inline uint32_t callback_count(list callbacks):
    """How many callbacks are in a list of callbacks and their arguments; None: there are none."""
    return 0 if callbacks is None else <uint32_t>(len(callbacks) // 2)
