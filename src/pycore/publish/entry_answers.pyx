# cython: language_level=3
"""Body of entry_answers.pxd."""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._pycore.message.message_id cimport MessageId
from pulsarx._pycore.publish.completion_queue cimport SendTold


cdef class EntriesInFlight:
    """The entries of all producers of a connection that are not answered yet."""

    def __init__(self, int64_t size_max, wake not None) -> None:
        """wake: called when the connection may be read again; in any thread, and with mutexes
        held."""
        self.size_max = size_max
        self.wake = wake

    @property
    def is_full(self) -> bool:
        """Whether so much is in flight that nothing more should be read."""
        return self.size >= self.size_max


cdef class EntryAnswers:
    """The answers to the entries of one producer."""

    def __init__(self, EntriesInFlight in_flight not None, uint64_t producer_id, write not None,
                 encode not None, otherwise not None, bint at_once) -> None:
        """write: sends bytes. encode(producer id, sequence id, ledger id, entry id, partition): the
        bytes of a receipt. otherwise(sequence id, error, message id, kept): tells what is no plain
        receipt. at_once: all of them may be called by any thread, with the publisher's mutex held,
        so that the thread of callbacks need not be woken."""
        self.in_flight = in_flight
        self.producer_id = producer_id
        self.write = write
        self.encode = encode
        self.otherwise = otherwise
        self.at_once = at_once

    def begin(self, uint64_t sequence_id, int64_t size) -> EntryAnswer:
        """The answer to an entry that has come, which is in flight until it is told."""
        cdef EntryAnswer answer = EntryAnswer.__new__(EntryAnswer)
        answer.producer = self
        answer.size = size
        answer.sequence_id = sequence_id
        self.size += size
        self.in_flight.size += size
        return answer

    cdef int land(self, int64_t size) except -1:
        cdef EntriesInFlight all_of_them = self.in_flight
        cdef bint was_full = all_of_them.size >= all_of_them.size_max
        size = min(size, self.size)          # one that has left has none
        self.size -= size
        all_of_them.size -= size
        if was_full and all_of_them.size < all_of_them.size_max:
            all_of_them.has_room = True
        if all_of_them.has_room:
            try:
                all_of_them.wake()
            except MemoryError:
                all_of_them.wake()       # once more: nothing is read until it is
            all_of_them.has_room = False
        return 0

    def leave(self) -> None:
        """Give up the entries that are not answered: they may never be."""
        self.land(self.size)


cdef class EntryAnswer(SendTold):
    """The answer to one entry."""

    cdef object callback(self):
        return self if self.producer.at_once else (<object>self).tell

    cdef int told(self, object message_id, object error) except -1:
        cdef EntryAnswers producer = self.producer
        cdef MessageId place = message_id
        cdef int64_t size = self.size
        self.size = 0                    # where there is no memory for the rest it is told again
        producer.land(size)
        if error is not None or self.kept is not None or place is None:
            try:
                producer.otherwise(self.sequence_id, error, message_id, self.kept)
            except MemoryError:
                raise
            except Exception:
                import logging

                logging.getLogger("pulsarx").exception("an entry was not answered")
            return 0
        producer.write(producer.encode(producer.producer_id, self.sequence_id, place.c_ledger_id,
                                       place.c_entry_id, place.c_partition))
        return 0

    def tell(self, error, message_id) -> None:
        """error: None where it is stored."""
        try:
            self.told(message_id, error)
        except MemoryError:
            self.told(message_id, error)     # once more: nobody else tells it

    @property
    def is_told_at_once(self) -> bool:
        """See EntryAnswers."""
        return self.producer.at_once
