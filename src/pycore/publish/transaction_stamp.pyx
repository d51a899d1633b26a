# cython: language_level=3
"""Has the metadata of an entry name its transaction, as clients in Java do and that of Go does not:
the next owner of the folder knows by that whose the entry is.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.byte_writer cimport (
    ByteWriter, byte_writer_bytes, byte_writer_start, byte_writer_u32_be,
)
from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.message_metadata cimport (
    TRANSACTION_ID_SIZE_MAX, EntryParts, entry_decode, message_metadata_transaction,
    transaction_id_encode,
)
from pulsarx._core.status cimport STATUS_OK

cdef enum:
    HEAD_SIZE = 10                     # 0x0e01, checksum, size of the metadata


def stamped(bytes entry not None, uint64_t number) -> bytes:
    """An entry that names the transaction of this number: itself, if it does already, and where it
    is damaged, for whoever stores it to refuse."""
    cdef const uint8_t* given = <const uint8_t*>PyBytes_AS_STRING(entry)
    cdef uint32_t size = <uint32_t>PyBytes_GET_SIZE(entry)
    cdef uint8_t field[TRANSACTION_ID_SIZE_MAX]
    cdef uint32_t added
    cdef EntryParts parts
    cdef ByteWriter writer
    cdef bytes made
    cdef uint8_t* room
    cdef uint64_t most = 0
    cdef uint64_t least = 0
    if entry_decode(given, size, True, &parts) != STATUS_OK or not parts.has_checksum or (
            parts.encoded_metadata != given + HEAD_SIZE):
        return entry
    if message_metadata_transaction(parts.encoded_metadata, parts.encoded_metadata_size, &most,
                                    &least) and most == 0 and least == number:
        return entry
    added = transaction_id_encode(0, number, field)
    made = PyBytes_FromStringAndSize(NULL, size + added)
    room = <uint8_t*>PyBytes_AS_STRING(made)
    # Of a field that is there twice, readers take the last one.
    byte_writer_start(&writer, room, size + added)
    byte_writer_bytes(&writer, given, 6)
    byte_writer_u32_be(&writer, parts.encoded_metadata_size + added)
    byte_writer_bytes(&writer, parts.encoded_metadata, parts.encoded_metadata_size)
    byte_writer_bytes(&writer, field, added)
    byte_writer_bytes(&writer, parts.payload, parts.payload_size)
    byte_writer_start(&writer, room + 2, 4)
    byte_writer_u32_be(&writer, crc32c(0, room + 6, size + added - 6))
    return made
