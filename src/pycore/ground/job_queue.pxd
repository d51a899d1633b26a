"""A thread that runs jobs one after another, in the order they were put. Any thread may call.

`put` may be called at any moment: in a finalizer, with mutexes held, and again in the middle of
itself. It is one step to a signal handler.

  state     holds                                        left by
  IDLE      no thread; where jobs are, it was refused    the first job; the next look of the clock
  RUNNING   a thread, which sleeps while nothing is due  close
            or, where it was refused, one that waits     the last job
  CLOSING   jobs that come still run before close ends   close, when none is left
  CLOSED    no thread; jobs run in a control thread      -
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.wait_event cimport WaitEvent
from pulsarx._pycore.ground.deadline cimport Deadline

cdef enum JobQueueState:
    JOBS_IDLE = 1
    JOBS_RUNNING = 2
    JOBS_CLOSING = 3
    JOBS_CLOSED = 4


cdef class JobQueue:
    cdef object __weakref__
    cdef object jobs                     # deque: appending is one step
    cdef readonly str name               # of the thread
    cdef WaitEvent came                  # a job was put
    cdef WaitEvent progress              # a job has run
    cdef uint64_t put_count
    cdef uint64_t done_count
    cdef uint32_t state                  # JobQueueState
    cdef bint thread_ended               # no thread runs jobs any more
    cdef bint is_retried                 # the clock is going to start it
    cdef unsigned long thread            # that runs the jobs; 0: none yet

    cdef int put(self, object job) except -1
    """Have job() run soon. What it raises is logged under `pulsarx`."""

    cdef int put_job(self, object job) except -1
    cdef object take(self)
    cdef bint is_idle(self) noexcept
    """Whether every job that was put has run."""

    cdef int start(self) except -1
    cdef int start_later(self) except -1
    cdef int begin(self) except -1
    cdef int end(self) except -1
    cdef int run_without_thread(self) except -1
    cdef int run_alone(self) except -1
    cdef bint has_ended(self, uint64_t job_count) noexcept
    cdef bint wait_for(self, uint64_t job_count, Deadline deadline) except -1
    cdef bint run_next(self) except -1
    cdef int perform(self, object job) except -1
