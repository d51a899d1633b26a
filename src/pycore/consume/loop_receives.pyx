# cython: language_level=3
"""Body of loop_receives.pxd."""

from collections import deque
from asyncio import get_running_loop

from pulsarx._pycore.ground.loop_queue cimport loop_queue_here
from pulsarx._pycore.ground.watchers cimport LoopItem

cdef enum:
    AT_ONCE_MAX = 256      # messages that are taken without waiting, before others may run


cdef class LoopReceives(LoopItem):
    """See the pxd."""

    def __init__(self, consumer) -> None:
        """consumer: with take_now, give_back, watch and unwatch. In the thread of the loop."""
        self.queue = loop_queue_here()
        self.consumer = consumer
        self.take_now = consumer.take_now
        self.turns = deque()
        self.ready = deque()
        self.given = set()

    def is_here(self) -> bool:
        """Whether it is of the loop that runs in this thread."""
        return self.queue.is_of(get_running_loop())

    def is_over(self) -> bool:
        """Whether its loop is closed; then nothing is kept for it any more."""
        loop = self.queue.loop()
        if loop is not None and not loop.is_closed():
            return False
        self.turns.clear()
        self.given.clear()
        self.hand_on()
        return True

    def take(self):
        """The next message; None: `wait` for it."""
        if self.turns or self.given or self.at_once >= AT_ONCE_MAX:
            return None
        self.at_once += 1
        return self.take_now()

    def wait(self):
        """A future that is completed when `taken` has a message for its coroutine."""
        turn = self.queue.make_future()
        self.turns.append(turn)
        try:
            self.watch()
            if len(self.turns) == 1:         # for what came before the watch began
                if self.given or self.at_once >= AT_ONCE_MAX:
                    self()       # when the loop has run those whose turn has come, and others
                else:
                    self.serve()
        except BaseException:                # of a signal handler: no coroutine has this turn
            self.leave(turn)
            raise
        self.at_once = 0
        return turn

    def taken(self, turn):
        """The message of a turn that has come; to be called at once when its coroutine runs."""
        self.given.discard(turn)
        return self.ready.popleft()

    def leave(self, turn) -> None:
        """The coroutine does not take its turn."""
        if turn in self.given:
            self.given.discard(turn)
            self.hand_on()
            return
        try:
            self.turns.remove(turn)
        except ValueError:
            return
        self.watch()

    cdef int watch(self) except -1:
        """Be told of messages as long as a turn waits."""
        wanted = len(self.turns) > 0
        if wanted and not self.watching:
            self.consumer.watch(self)
            self.watching = True
        elif self.watching and not wanted:
            self.watching = False
            self.consumer.unwatch(self)
        return 0

    def __call__(self) -> None:
        """Messages may have come."""
        if not self.queued:
            self.queued = True
            self.queue.put(self)

    cdef int settle(self) except -1:
        self.queued = False
        try:
            return self.serve()
        except BaseException:                # of a signal handler: when the loop goes on
            self()
            raise

    cdef int serve(self) except -1:
        """Give turns to those that wait, as long as there are messages."""
        try:
            while self.turns:
                turn = self.turns[0]
                if turn.done():              # cancelled; its coroutine is about to leave
                    self.turns.popleft()
                    continue
                try:
                    message = self.take_now()
                except Exception as error:
                    self.turns.popleft()
                    turn.set_exception(error)
                    continue
                if message is None:
                    break
                self.ready.append(message)
                self.turns.popleft()
                self.given.add(turn)
                turn.set_result(None)
        finally:
            self.watch()
        return 0

    def hand_on(self) -> None:
        """A turn was left: the message of the last one goes to who waits, or back."""
        while self.turns and len(self.ready) > len(self.given):
            turn = self.turns.popleft()
            if not turn.done():
                self.given.add(turn)
                turn.set_result(None)
        back = []
        while len(self.ready) > len(self.given):
            back.append(self.ready.pop())
        back.reverse()
        self.watch()
        if back:
            self.consumer.give_back(back)
