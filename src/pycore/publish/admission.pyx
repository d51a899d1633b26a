# cython: language_level=3
"""Body of admission.pxd."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._pycore.ground.clock_core cimport ClockCore, Timer
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.ground.latch cimport Latch
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.ground.rate_limit cimport RateLimit
from pulsarx._pycore.publish.completion_queue cimport CompletionQueue
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher
from pulsarx._pycore.publish.memory_limit cimport MemoryLimit


cdef class Admission:
    """See the pxd."""

    def __init__(self, EntryPublisher publisher not None, object options, str producer_name,
                 str topic_name, ClockCore clock not None, JobQueue background not None) -> None:
        """options: a ProducerOptions. background: where a forgotten producer is closed."""
        self.publisher = publisher
        self.clock = clock
        self.background = background
        self.producer_name = producer_name
        self.topic_name = topic_name
        self.never_waits = options.for_letters
        self.queues_sends = options.queues_sends
        self.block_if_queue_full = options.block_if_queue_full
        self.pending_max = options.max_pending_messages
        self.send_timeout_ms = options.send_timeout_millis
        self.state = PRODUCER_OPEN

    cdef int check_open(self, Wait* wait) except -1:
        cdef bint queues = wait != NULL and (self.queues_sends or not self.never_waits)
        cdef int64_t timeout_ms = 0
        cdef int64_t look_ms = 0
        while self.state == PRODUCER_HELD and self.many_count == 0 and (
                self.publisher.fenced is None):
            look_ms = 0
            if self.held_by is None:
                look_ms = self.rate.waits_until()
                if look_ms == 0:
                    break
            if queues:
                wait.held = True
                wait.look_ms = look_ms
                return MUST_WAIT
            if look_ms == 0:
                if not self.may_wait():
                    raise errors.ProducerBlockedQuotaExceededError(detail=self.held_by)
            elif self.never_waits or not self.may_wait():
                break                        # it is counted all the same
            else:
                self.rate.limited_times += 1
            if timeout_ms == 0 and self.send_timeout_ms > 0:
                timeout_ms = self.clock.monotonic() + self.send_timeout_ms
            self.wait_while_held(look_ms, timeout_ms)
        self.require_open()
        return ADMITTED

    cdef int require_open(self) except -1:
        if self.is_live():
            return self.publisher.check_fenced()
        if self.state == PRODUCER_FORKED:
            raise errors.forked_error(self.owner_pid)
        if self.state == PRODUCER_FENCED:
            raise self.fenced_as(detail=self.fenced_by)
        raise errors.AlreadyClosed(detail=f"producer {self.producer_name} on {self.topic_name}")

    # Room -----------------------------------------------------------------------------------------

    cdef int wait_for_room(self, Wait* wait) except -1:
        self.publisher.settle()
        if self.publisher.pending_count < self.pending_max:
            return ADMITTED
        if not self.block_if_queue_full:
            raise errors.ProducerQueueIsFull(
                detail=f"{self.publisher.pending_count} messages of {self.producer_name} are not "
                f"durable yet and max_pending_messages is {self.pending_max}; wait, or set "
                f"block_if_queue_full")
        if wait != NULL and self.queues_sends:
            self.publisher.room_wanted = self.resume_call
            wait.held = False
            wait.look_ms = 0
            return MUST_WAIT
        self.publisher.wait_for_oldest()
        return self.check_open(wait)

    cdef int wait_for_memory(self, Wait* wait) except -1:
        cdef MemoryLimit memory = self.publisher.memory
        self.publisher.settle()
        if not memory.is_full():
            return ADMITTED
        if not self.block_if_queue_full:
            raise errors.MemoryBufferIsFull(
                detail=f"{memory.used} bytes of messages of this client are not confirmed yet "
                f"and memory_limit_bytes is {memory.limit}; wait, or set block_if_queue_full")
        if wait != NULL and self.queues_sends:
            memory.want(self.resume_call)
            wait.held = False
            wait.look_ms = 0
            return MUST_WAIT
        if self.publisher.pending_count:
            self.publisher.wait_for_oldest()
        else:
            mutex_unlock(&self.publisher.mutex)
            try:
                self.publisher.completions.wait_for_memory(memory)
            finally:
                mutex_lock(&self.publisher.mutex)
        return self.check_open(wait)

    cdef int wait_for_chunks(self, uint32_t chunk_count) except -1:
        if self.pending_max == 0:
            return 0
        if chunk_count <= self.pending_max:
            self.publisher.settle()
            while self.publisher.pending_count + chunk_count > self.pending_max:
                if not self.block_if_queue_full:
                    break
                if self.queues_sends:
                    return 0                 # room_for_chunks was asked, before it was begun
                self.publisher.wait_for_oldest()
                self.check_open(NULL)
            else:
                return 0
        raise errors.ProducerQueueIsFull(
            detail=f"a message of {chunk_count} chunks takes as many of max_pending_messages, "
            f"which is {self.pending_max}, and {self.publisher.pending_count} messages of "
            f"{self.producer_name} are not durable yet; wait, set block_if_queue_full, or "
            f"raise max_pending_messages above the number of chunks")

    cdef int room_for_chunks(self, uint64_t chunk_count) except -1:
        if self.pending_max == 0 or not self.block_if_queue_full:
            return ADMITTED
        self.publisher.settle()
        if self.publisher.pending_count and (
                self.publisher.pending_count + chunk_count > self.pending_max):
            self.publisher.room_wanted = self.resume_call
            return MUST_WAIT
        return ADMITTED

    # Held senders ---------------------------------------------------------------------------------

    cdef bint may_wait(self) except -1:
        # Letters are published there, and nothing would make room meanwhile.
        cdef CompletionQueue completions = self.publisher.completions
        return not self.background.runs_here() and not (
            completions.jobs.runs_here() or completions.timeouts.runs_here())

    cdef int wait_while_held(self, int64_t look_ms, int64_t timeout_ms) except -1:
        cdef Latch room = Latch()
        cdef Timer look = None
        cdef Timer timeout = None
        if self.held is None:
            self.held = []
        self.held.append(room)
        mutex_unlock(&self.publisher.mutex)
        try:
            if look_ms:
                look = self.clock.arm_monotonic(look_ms, room.set)
            if timeout_ms:
                timeout = self.clock.arm_monotonic(timeout_ms, room.set)
            room.wait()
        finally:
            if look is not None:
                look.cancel()
            if timeout is not None:
                timeout.cancel()
            mutex_lock(&self.publisher.mutex)
            if room in self.held:
                self.held.remove(room)
        if self.state != PRODUCER_HELD or not timeout_ms or self.clock.monotonic() < timeout_ms:
            return 0
        error = self.held_too_long()
        if error is not None:
            raise error
        return 0

    cdef object held_too_long(self):
        if self.held_by is not None:
            return errors.Timeout(
                detail=f"{self.held_by}; no room for {self.send_timeout_ms} ms, which "
                                  f"is send_timeout_millis; nothing was stored")
        if self.rate is not None and self.rate.waits_until():
            return errors.Timeout(
                detail=f"send to {self.topic_name}: the publish rate of the topic was used up for "
                f"{self.send_timeout_ms} ms, which is send_timeout_millis; nothing was stored")
        return None

    cdef int hold(self, str reason) except -1:
        self.held_by = reason
        return self.change_hold()

    cdef int limit_rate(self, RateLimit rate) except -1:
        self.rate = rate
        return self.change_hold()

    cdef int change_hold(self) except -1:
        if self.is_live():
            self.state = PRODUCER_HELD
            if self.held_by is None and self.rate is None:
                self.state = PRODUCER_OPEN
        return 0

    cdef int wake_held(self) except -1:
        for room in list(self.held or ()):
            room.set()
        if self.resume_call is not None:
            self.resume_call()
        return 0

    # Delays ---------------------------------------------------------------------------------------

    cdef int check_delay(self, int64_t deliver_at_ms) except -1:
        cdef int64_t now_ms = self.clock.now()
        if deliver_at_ms > now_ms and deliver_at_ms - now_ms > self.deliver_delay_max_ms:
            raise errors.NotAllowedError(
                detail=f"send to {self.topic_name} for {deliver_at_ms - now_ms} ms from now: the "
                f"longest delay of a message is {self.deliver_delay_max_ms} ms there")
        return 0
