# cython: language_level=3
"""Body of connection_publisher.pxd."""

from collections import deque

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.message_metadata cimport EntryParts, entry_decode
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.ground.condition cimport Condition
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.publish.completion_queue cimport CompletionQueue, callback_count
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher, Receipt


cdef class ConnectionPublisher(EntryPublisher):
    """Sends the entries of one producer over a connection. Any thread may call; the mutex orders
    them. The thread that reads the connection calls confirmed, failed and lost."""

    def __init__(self, send, CompletionQueue completions not None, int partition) -> None:
        """send: called with the mutex held, so it may only enqueue; an error says that the entry
        will never be published."""
        self.send = send
        self.completions = completions
        self.partition = partition
        self.confirms_later = True
        self.places_later = True
        self.pending = deque()
        self.refused = {}
        self.answered = Condition()

    cdef int publish(self, EntryFrame* frame, uint8_t* entry, Receipt receipt, list callbacks,
                     bint awaited) except -1:
        cdef EntryParts parts
        cdef int status = entry_decode(entry, frame.entry_size, False, &parts)
        cdef uint64_t sequence_id
        if self.checks:
            self.check(frame)
        if status != STATUS_OK:
            raise_status(status, 0, f"send an entry of {frame.entry_size} bytes")
        sequence_id = parts.metadata.sequence_id
        self.pending.append((sequence_id, receipt, frame.message_count, callbacks, awaited))
        try:
            self.send(sequence_id, frame.message_count,
                      PyBytes_FromStringAndSize(<const char*>entry, frame.entry_size))
        except BaseException:
            self.pending.pop()
            raise
        self.sent_count += 1
        self.pending_count += frame.message_count
        return 0

    cdef tuple take_oldest(self, uint64_t sequence_id):
        """What was sent first and not answered; mutex held. ConnectError: another was answered."""
        if not self.pending or self.pending[0][0] != sequence_id:
            raise errors.ConnectError(
                f"the broker answered entry {sequence_id}, which is not the oldest that was sent")
        self.answered_count += 1
        found = self.pending.popleft()
        self.pending_count -= <uint64_t>found[2]
        self.made_room()
        self.release(<Receipt>found[1])
        return found

    cdef int tell(self) except -1:
        """Wake those who wait for an answer. Mutex not held."""
        self.answered.take()
        try:
            self.answered.notify_all()
        finally:
            self.answered.give()
        return 0

    def confirmed(self, uint64_t sequence_id, uint64_t ledger_id, uint64_t entry_id) -> None:
        """The broker stored the oldest entry that was sent."""
        cdef Receipt receipt
        cdef uint32_t message_count
        mutex_lock(&self.mutex)
        try:
            _, receipt, message_count, callbacks, _ = self.take_oldest(sequence_id)
            receipt.ledger_id = ledger_id
            receipt.entry_id = entry_id
            receipt.message_count = message_count
            if ledger_id == UINT64_MAX:
                receipt.is_duplicate = True
                message_count = 0
            if callbacks:
                self.completions.post(callbacks, ledger_id, entry_id, message_count, None,
                                      self.partition)
        finally:
            mutex_unlock(&self.mutex)
        self.tell()

    def failed(self, uint64_t sequence_id, error) -> None:
        """The broker refused the oldest entry that was sent."""
        mutex_lock(&self.mutex)
        try:
            self.refuse(self.take_oldest(sequence_id), error)
        finally:
            mutex_unlock(&self.mutex)
        self.tell()

    def lost(self, error) -> None:
        """The connection ended: nothing that is not answered ever will be."""
        mutex_lock(&self.mutex)
        try:
            while self.pending:
                self.refuse(self.take_oldest(self.pending[0][0]), error)
        finally:
            mutex_unlock(&self.mutex)
        self.tell()

    def refuse(self, tuple sent, error) -> None:
        """Tell those who wait for an entry that it is not published. Mutex held."""
        _, receipt, message_count, callbacks, awaited = sent
        if callbacks:
            self.completions.post(callbacks, 0, 0, 0, error, self.partition)
        if awaited:
            self.refused[receipt] = error
        if message_count > callback_count(callbacks) + (1 if awaited else 0):
            self.failure = error

    cdef int wait_until(self, uint64_t count) except -1:
        """Return when so many entries are answered. Mutex not held."""
        self.answered.take()
        try:
            while self.answered_count < count:
                self.answered.wait()
        finally:
            self.answered.give()
        return 0

    cdef int wait(self, Receipt receipt) except -1:
        self.answered.take()
        try:
            while receipt.message_count == 0 and receipt not in self.refused:
                self.answered.wait()
        finally:
            self.answered.give()
        if receipt.message_count == 0:
            raise self.refused.pop(receipt)
        return 0

    cdef int place(self, list receipts) except -1:
        cdef Receipt receipt
        self.wait_until(self.sent_count)
        failure = None
        for receipt in receipts:
            failure = failure or self.refused.pop(receipt, None)
        if failure is not None:
            raise failure
        return 0

    cdef int wait_for_oldest(self) except -1:
        cdef uint64_t count = self.answered_count + 1
        if not self.pending:
            return 0
        # The answer takes the mutex.
        mutex_unlock(&self.mutex)
        try:
            self.wait_until(count)
        finally:
            mutex_lock(&self.mutex)
        return 0

    cdef int settle(self) except -1:
        return 0                         # the answers come by themselves

    cdef object flush(self):
        self.wait_until(self.sent_count)
        mutex_lock(&self.mutex)
        failure, self.failure = self.failure, None
        mutex_unlock(&self.mutex)
        return failure
