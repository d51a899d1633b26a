# cython: language_level=3
"""Loops over the messages of a consumer without a frame of Python a message. Any thread."""

from pulsarx import errors


cdef class MessageIterator:
    """The messages as `receive` returns them, until the consumer is closed."""

    cdef object receive

    def __cinit__(self, receive) -> None:
        """receive: of the consumer."""
        self.receive = receive

    def __iter__(self) -> MessageIterator:
        return self

    def __next__(self) -> object:
        try:
            return self.receive()
        except errors.AlreadyClosed as error:
            if isinstance(error, errors.ForkedError):
                raise
        raise StopIteration
