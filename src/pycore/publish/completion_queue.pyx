# cython: language_level=3
"""Body of completion_queue.pxd."""

from libc.stdint cimport int32_t, int64_t, uint64_t

from pulsarx._pycore.ground.failure_log cimport log_failure
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.message.message_id cimport message_id_new
from pulsarx._pycore.ground.watchers cimport LoopItem
from pulsarx._pycore.publish.memory_limit cimport MemoryLimit


cdef class SendTold(LoopItem):
    """See the pxd."""

    cdef int told(self, object message_id, object error) except -1:
        raise NotImplementedError

    cdef bint is_given_up(self) except -1:
        return False


cdef class CallbackJob:
    """The callbacks of one entry, as a job."""
    cdef CompletionQueue queue
    cdef list callbacks
    cdef uint64_t ledger_id
    cdef uint64_t entry_id
    cdef uint64_t message_count
    cdef object error
    cdef int partition

    cdef object id_of(self, int32_t index):
        if self.error is not None:
            return None
        if index == DUPLICATE_INDEX:
            return message_id_new(-1, -1, -1, -1, 0)
        if index == LONE_INDEX:
            return message_id_new(<int64_t>self.ledger_id, <int64_t>self.entry_id,
                                  self.partition, 0, 1)
        if self.message_count == 1:
            return message_id_new(<int64_t>self.ledger_id, <int64_t>self.entry_id,
                                  self.partition, -1, 0)
        if self.message_count == 0:
            return message_id_new(-1, -1, -1, -1, 0)
        return message_id_new(<int64_t>self.ledger_id, <int64_t>self.entry_id,
                              self.partition, index, <int32_t>self.message_count)

    cdef bint tell_at_once(self) except -1:
        """Tell those that only take note of it; whether others are left. Each is forgotten when it
        was told: where there was no memory for the next, this or the job goes on behind it."""
        cdef bint are_left = False
        cdef Py_ssize_t at
        for at in range(0, len(self.callbacks), 2):
            if isinstance(self.callbacks[at + 1], SendTold):
                self.note(at)
            elif self.callbacks[at + 1] is not None:
                are_left = True
        return are_left

    cdef int note(self, Py_ssize_t at) except -1:
        cdef SendTold told = self.callbacks[at + 1]
        try:
            try:
                told.told(self.id_of(self.callbacks[at]), self.error)
            except MemoryError:          # once more: the job is done twice for all of them at most
                told.told(self.id_of(self.callbacks[at]), self.error)
        except MemoryError:
            raise
        except Exception as error:
            log_failure("pulsarx", error, "the end of a send was not noted%s", "")
        self.callbacks[at + 1] = None
        return 0

    def __call__(self) -> None:
        result = self.queue.ok if self.error is None else self.queue.result_of(self.error)
        cdef Py_ssize_t at
        for at in range(0, len(self.callbacks), 2):
            if isinstance(self.callbacks[at + 1], SendTold):
                self.note(at)
                continue
            try:
                message_id = self.id_of(self.callbacks[at])
            except MemoryError:          # see note
                message_id = self.id_of(self.callbacks[at])
            callback, self.callbacks[at + 1] = self.callbacks[at + 1], None
            if callback is None:
                continue                 # it was called before there was no memory for the next
            try:
                callback(result, message_id)
            except BaseException as error:   # SystemExit too: the thread is needed
                log_failure("pulsarx", error, "a send_async callback raised%s", "")


cdef CallbackJob new_job():
    try:
        return CallbackJob.__new__(CallbackJob)
    except MemoryError:
        return CallbackJob.__new__(CallbackJob)  # once more: the callbacks are kept nowhere else


cdef int tell(CallbackJob job, JobQueue jobs) except -1:
    """Tell at once whom that may, and have the others told by a queue."""
    cdef bint again
    for again in (False, True):          # once more: what is told at once keeps its order
        try:
            if (job.callbacks[1] is None or isinstance(job.callbacks[1], SendTold)) and (
                    not job.tell_at_once()):
                return 0
            break
        except MemoryError:
            pass                         # those that are left are told when what this held is free
    return jobs.put(job)


cdef class FlushJob:
    """A flush that no caller waits for, as a job."""
    cdef CompletionQueue queue
    cdef object publisher

    def __call__(self) -> None:
        self.queue.expected.discard(self.publisher)
        self.publisher.flush_expected()


cdef class CompletionQueue:
    """See the pxd."""

    def __init__(self, ok, result_of) -> None:
        """ok, result_of: what callbacks are told of a success, and of an error."""
        self.jobs = JobQueue("pulsarx-callbacks")
        self.timeouts = JobQueue("pulsarx-timeouts")
        self.expected = set()
        self.ok = ok
        self.result_of = result_of

    cdef int post(self, list callbacks, uint64_t ledger_id, uint64_t entry_id,
                  uint64_t message_count, object error, int partition) except -1:
        cdef CallbackJob job = new_job()
        job.queue = self
        job.callbacks = callbacks
        job.ledger_id = ledger_id
        job.entry_id = entry_id
        job.message_count = message_count
        job.error = error
        job.partition = partition
        return tell(job, self.jobs)

    cdef int post_timeout(self, list callbacks, object error, int partition) except -1:
        cdef CallbackJob job = new_job()
        job.queue = self
        job.callbacks = callbacks
        job.error = error
        job.partition = partition
        return tell(job, self.timeouts)

    cdef int drain(self, bint timeouts_alone) except -1:
        if not self.jobs.runs_here() and not self.timeouts.runs_here():
            self.timeouts.wait()
            if not timeouts_alone:
                self.jobs.wait()
        return 0

    cdef int refuse(self, object callback, object error, int partition) except -1:
        try:
            return self.refuse_once(callback, error, partition)
        except MemoryError:
            return self.refuse_once(callback, error, partition)  # nobody else keeps the callback

    cdef int refuse_once(self, object callback, object error, int partition) except -1:
        cdef CallbackJob job
        if isinstance(callback, SendTold):
            return (<SendTold>callback).told(None, error)
        job = new_job()
        job.queue = self
        job.callbacks = [-1, callback]
        job.error = error
        job.partition = partition
        if self.jobs.closed:
            job()        # the client is closed, and its threads have ended
            return 0
        return self.jobs.put(job)

    cdef int expect(self, object publisher) except -1:
        cdef FlushJob job
        if publisher in self.expected:
            return 0
        job = FlushJob.__new__(FlushJob)
        job.queue = self
        job.publisher = publisher
        self.expected.add(publisher)
        try:
            self.jobs.put(job)
        except BaseException:
            self.expected.discard(publisher)
            raise
        if self.blocked is not None:
            self.blocked.look_again()
        return 0

    cdef int wait_for_memory(self, MemoryLimit memory) except -1:
        if not self.jobs.runs_here():
            return memory.wait(None)
        self.blocked = memory
        try:
            while memory.is_full():
                while self.expected:
                    self.expected.pop().flush_expected()
                memory.wait(self.expected)
        finally:
            self.blocked = None
        return 0

    def wait(self) -> None:
        """Return when every callback posted before has run."""
        self.drain(False)

    def close(self) -> None:
        self.jobs.close()
        self.timeouts.close()
