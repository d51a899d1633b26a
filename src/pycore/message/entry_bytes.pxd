"""Entries that came over a connection: untrusted bytes, with nothing in front of them that says
what they hold."""

from libc.stdint cimport uint8_t, uint32_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.message_metadata cimport EntryParts

cdef int entry_bytes_check(const uint8_t* entry, uint32_t size, EntryFrame* frame,
                           EntryParts* parts) except -1
"""Verify the checksum of an entry and take it apart; the frame says what its metadata says.

frame: all but entry_id, first_message and durable_count; a batch is not walked, so the number of
its messages is not borne out and ENTRY_MIXED_KEYS not set. CorruptDataError: it is no entry, or has
no checksum.
"""
