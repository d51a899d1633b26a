# cython: language_level=3
"""Body of loop_send.pxd."""

from pulsarx import errors
from pulsarx._pycore.ground.loop_queue cimport loop_fail, loop_queue_here
from pulsarx._pycore.publish.completion_queue cimport SendTold


cdef class LoopSend(SendTold):
    """See the pxd."""

    cdef int told(self, object message_id, object error) except -1:
        if self.ended:
            return 0
        self.ended = True
        self.message_id = message_id
        self.error = error
        if not self.starting:
            self.queue.put(self)
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
        """As a callback that an interceptor's producer tells."""
        if result.name == "Ok":
            self.told(message_id, None)
            return
        kind = getattr(errors, result.name, errors.UnknownError)
        self.told(None, kind("the message was not confirmed"))


def begin_send(send_async, content, properties, partition_key, ordering_key, sequence_id,
               replication_clusters, disable_replication, event_timestamp, deliver_at,
               deliver_after):
    """Send one message; the future, of the loop that runs here, gets its MessageId."""
    cdef LoopSend send = LoopSend.__new__(LoopSend)
    send.queue = loop_queue_here()
    send.future = send.queue.make_future()
    send.starting = True
    if properties is None and ordering_key is None and sequence_id is None and (
            replication_clusters is None and disable_replication is False
            and event_timestamp is None and deliver_at is None and deliver_after is None):
        if partition_key is None:
            send_async(content, send)
        else:
            send_async(content, send, None, partition_key)
    else:
        send_async(content, send, properties, partition_key, ordering_key, sequence_id,
                   replication_clusters, disable_replication, event_timestamp, deliver_at,
                   deliver_after)
    send.starting = False
    if send.ended:
        send.settle()
    return send.future
