# cython: language_level=3
"""Receives a batch: takes messages until one of three bounds is reached. For all kinds of
consumers."""

from libc.stdint cimport uint64_t

from pulsarx import errors
from pulsarx._pycore.ground.deadline cimport Deadline
from pulsarx._pycore.ground.signals cimport signals_raised
from pulsarx._pycore.message.message cimport Message


def receive_batch(consumer, Py_ssize_t messages_max, Py_ssize_t bytes_max, timeout_ms) -> list:
    """Messages until one more would exceed a bound; a message too large for it comes alone.

    consumer: with take_now, give_back and wait_for_message. timeout_ms: real; None: for ever.
    StorageError, CorruptDataError: only when nothing was taken before; damage is in the log else.
    Ctrl-C, or what another signal's handler raised: what was taken was given back.
    """
    cdef Deadline deadline = Deadline(timeout_ms)
    cdef Message message
    cdef list found = []
    cdef Py_ssize_t size = 0
    cdef uint64_t raised = signals_raised()
    try:
        while len(found) < messages_max and size < bytes_max:
            message = consumer.take_now()
            if message is None:
                if not consumer.wait_for_message(deadline):
                    break
            elif found and size + <Py_ssize_t>message.payload_size > bytes_max:
                consumer.give_back([message])
                break
            else:
                found.append(message)
                size += message.payload_size
    except BaseException as error:
        if found and isinstance(error, errors.StorageError) and signals_raised() == raised:
            # Must not be lost; the log tells of damage, and the next call meets again what an
            # object store refuses.
            return found
        if found:
            consumer.give_back(found)
        raise
    return found
