# cython: language_level=3
"""Body of entry_answers.pxd."""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._pycore.message.message_id cimport MessageId
from pulsarx._pycore.publish.completion_queue cimport SendTold
from pulsarx._pycore.wire.command_output cimport CommandOutput
from pulsarx._pycore.wire.command_takers cimport SendTaker
from pulsarx._pycore.wire.hot_commands cimport COMMAND_SIZE_MAX, receipt_put


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


cdef class EntryAnswers(SendTaker):
    """The base of a producer at the other end of a connection: the answers to its entries. A
    subclass in Python has `otherwise(sequence id, error, message id, kept)`, which tells what is no
    plain receipt, in any thread and with the publisher's mutex held."""

    def answer_over(self, EntriesInFlight in_flight not None, uint64_t producer_id,
                    CommandOutput output not None) -> None:
        """Answer over this connection, as this producer."""
        self.in_flight = in_flight
        self.producer_id = producer_id
        self.output = output

    def begin_answer(self, uint64_t sequence_id, int64_t size) -> EntryAnswer:
        """The answer to an entry that has come, which is in flight until it is told."""
        return self.expected(sequence_id, size)

    cdef EntryAnswer expected(self, uint64_t sequence_id, int64_t size):
        cdef EntryAnswer answer = EntryAnswer.__new__(EntryAnswer)
        answer.producer = self
        answer.size = size
        answer.sequence_id = sequence_id
        self.unanswered += size
        self.in_flight.size += size
        return answer

    cdef int write_receipt(self, uint64_t sequence_id, int64_t ledger_id, int64_t entry_id,
                           int partition) except -1:
        return self.output.filled(receipt_put(
            self.output.room(COMMAND_SIZE_MAX), self.producer_id, sequence_id, ledger_id, entry_id,
            partition))

    cdef int land(self, int64_t size) except -1:
        cdef EntriesInFlight all_of_them = self.in_flight
        cdef bint was_full = all_of_them.size >= all_of_them.size_max
        size = min(size, self.unanswered)    # one that has left has none
        self.unanswered -= size
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

    def give_up_answers(self) -> None:
        """Give up the entries that are not answered: they may never be."""
        self.land(self.unanswered)


cdef class EntryAnswer(SendTold):
    """The answer to one entry."""

    cdef int told(self, object message_id, object error) except -1:
        cdef EntryAnswers producer = self.producer
        cdef MessageId place = message_id
        cdef int64_t size = self.size
        self.size = 0                    # where there is no memory for the rest it is told again
        producer.land(size)
        if error is not None or self.kept is not None or place is None:
            try:
                (<object>producer).otherwise(self.sequence_id, error, message_id,
                                             self.kept)
            except MemoryError:
                raise
            except Exception:
                import logging

                logging.getLogger("pulsarx").exception("an entry was not answered")
            return 0
        return producer.write_receipt(self.sequence_id, place.c_ledger_id, place.c_entry_id,
                                      place.c_partition)

    def tell(self, error, message_id) -> None:
        """error: None where it is stored."""
        try:
            self.told(message_id, error)
        except MemoryError:
            self.told(message_id, error)     # once more: nobody else tells it
