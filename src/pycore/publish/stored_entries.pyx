# cython: language_level=3
"""Finds the entries that a producer has stored, in the ledgers of its topic."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t
from libc.string cimport memcmp

from pulsarx._core.message_metadata cimport EntryParts, entry_decode
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.ledger.ledger_reader cimport READ_DAMAGE, READ_NOTHING, LedgerReader
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail


def stored_entries(LedgerTail tail not None, str topic_name not None, uint64_t ledger_id,
                   uint64_t message, bytes producer_name not None) -> tuple:
    """([(entry, ledger id, entry id)], damage): the entries of a producer from a position on, in
    order; whether some could not be read. A call of the control plane."""
    cdef LedgerReader reader = LedgerReader(tail, topic_name)
    cdef EntryParts parts
    cdef Py_ssize_t size = PyBytes_GET_SIZE(producer_name)
    cdef bint damaged = False
    cdef int step
    found = []
    reader.find(ledger_id, message)
    while True:
        step = reader.next_entry()
        if step == READ_NOTHING:
            return found, damaged
        if step == READ_DAMAGE or entry_decode(
                reader.c_entry, reader.c_frame.entry_size, False, &parts) != STATUS_OK:
            damaged = True
            continue
        if <Py_ssize_t>parts.metadata.producer_name_size == size and memcmp(
                parts.metadata.producer_name, PyBytes_AS_STRING(producer_name), size) == 0:
            found.append((
                PyBytes_FromStringAndSize(<const char*>reader.c_entry, reader.c_frame.entry_size),
                reader.span.ledger_id, reader.c_frame.entry_id))
