# cython: language_level=3
"""Body of loop_send.pxd."""

from libc.stdint cimport uint64_t

from pulsarx import errors
from pulsarx._pycore.ground.loop_queue cimport LoopQueue, loop_fail, loop_queue_here
from pulsarx._pycore.publish.completion_queue cimport SendTold


cdef class LoopSend(SendTold):
    """See the pxd."""

    cdef int told(self, object message_id, object error) except -1:
        if self.ended:
            return 0
        self.message_id = message_id
        self.error = error
        if not self.starting:
            self.queue.put(self)
        self.ended = True                # last: where there was no memory it is told again
        return 0

    cdef bint is_given_up(self) except -1:
        return self.future.cancelled()

    cdef int settle(self) except -1:
        if self.error is not None:
            return loop_fail(self.future, self.error)
        if not self.future.done():
            self.future.set_result(self.message_id)
        return 0

    def __call__(self, result, message_id) -> None:
        """Take a result and an id like a callback of send_async, from a producer with
        interceptors."""
        try:
            self.take(result, message_id)
        except MemoryError:
            self.take(result, message_id)    # once more: nobody else tells it

    cdef int take(self, result, message_id) except -1:
        if result.name == "Ok":
            return self.told(message_id, None)
        kind = getattr(errors, result.name, errors.UnknownError)
        return self.told(None, kind(detail="the message was not confirmed"))


cdef class LoopSender:
    """See the pxd."""

    def __init__(self, send_async not None, send_open) -> None:
        """send_open: sends the batches that are open; None: there are none."""
        self.send_async = send_async
        self.send_open = send_open

    def send(self, content, properties, partition_key, ordering_key, sequence_id,
             replication_clusters, disable_replication, event_timestamp, deliver_at,
             deliver_after, transaction=None):
        """Send one message; the future, of the loop that runs here, gets its MessageId."""
        cdef LoopSend send = LoopSend.__new__(LoopSend)
        send.queue = loop_queue_here()
        send.future = send.queue.make_future()
        send.starting = True
        if properties is None and ordering_key is None and sequence_id is None and (
                replication_clusters is None and disable_replication is False
                and event_timestamp is None and deliver_at is None and deliver_after is None
                and transaction is None):
            if partition_key is None:
                self.send_async(content, send)
            else:
                self.send_async(content, send, None, partition_key)
        else:
            self.send_async(content, send, properties, partition_key, ordering_key, sequence_id,
                            replication_clusters, disable_replication, event_timestamp, deliver_at,
                            deliver_after, transaction=transaction)
        send.starting = False
        if send.ended:
            send.settle()
        elif self.send_open is not None:
            self.begun += 1
            if self not in send.queue.sending:
                send.queue.sending.add(self)
                send.queue.call_soon(self.look, send.queue, 0)
        return send.future

    def look(self, LoopQueue queue not None, uint64_t begun) -> None:
        """The loop has had a turn since so many were begun: send what is open, unless there are
        more by now, which may have company to come."""
        if self.begun != begun:
            queue.call_soon(self.look, queue, self.begun)
            return
        queue.sending.discard(self)
        self.send_open()
