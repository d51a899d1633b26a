# cython: language_level=3
"""Body of pending_receives.pxd."""

from collections import deque

from pulsarx._pycore.ground.locks cimport Condition
from pulsarx._pycore.ground.work_pool cimport SerialWork


cdef class ReceiveQueue:
    """See the pxd."""

    def __init__(self, consumer, SerialWork work not None) -> None:
        """consumer: with take_now, watch and unwatch. work: lets a thread call claim_next."""
        self.consumer = consumer
        self.work = work
        self.due = (<object>work).due        # the method, not the C function
        self.futures = deque()
        self.lock = Condition()

    cdef int watch(self) except -1:
        """Be told of messages as long as a future waits. Lock held."""
        wanted = len(self.futures) > 0
        if wanted and not self.watching:
            self.watching = True
            self.consumer.watch(self.due)
        elif self.watching and not wanted:
            self.watching = False
            self.consumer.unwatch(self.due)
        return 0

    def add(self, future) -> None:
        """The future gets the next message; at once if one is there."""
        self.lock.take()
        try:
            if not self.futures:
                message = self.consumer.take_now()
                if message is not None:
                    # As set_result, of a future that its caller has not got yet.
                    future.claimed = True
                    future._result = message
                    future._state = "FINISHED"
                    return
            self.futures.append(future)
            self.watch()
        finally:
            self.lock.give()
        self.work.due()          # for what came before the watch began

    def claim_next(self) -> tuple:
        """(future, message, error) of the future that waited longest, when there is a message for
        it or taking one failed; None: nothing is to be done. In a thread of the pool."""
        message = error = None
        self.lock.take()
        try:
            if not self.futures:
                return None
            try:
                message = self.consumer.take_now()
            except Exception as raised:
                error = raised
            if message is None and error is None:
                return None
            future = self.futures.popleft()
            future.claimed = True
            self.watch()
            return future, message, error
        finally:
            self.lock.give()

    def give_up(self, future) -> bool:
        """Forget a future that was cancelled; False: it has been claimed, or was given up."""
        self.lock.take()
        try:
            self.futures.remove(future)
            self.watch()
        except ValueError:
            return False
        finally:
            self.lock.give()
        return True
