"""NameRecord, and its bytes in the header block of a ledger. Once a ledger."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset

from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.ledger_name cimport *
from pulsarx._core.limits cimport LEDGER_HEADER_SIZE
from pulsarx._core.status cimport STATUS_OK

cdef enum:
    MARK_SIZE = 13                       # "-cut-" and the checksum


cdef class NameRecord:
    """Whose ledger a file is: topic, id, and what a compaction knew. A value."""

    def __repr__(self) -> str:
        return f"NameRecord({self.topic!r}, ledger_id={self.ledger_id})"


cpdef tuple kept_name(str name, size_t room):
    cdef bytes data = name.encode()
    if <size_t>PyBytes_GET_SIZE(data) <= room:
        return data, False
    checksum = crc32c(0, <const uint8_t*>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    head = data[:room - MARK_SIZE].decode("utf-8", "ignore").encode()
    return head + b"-cut-%08x" % checksum, True


def name_record_bytes(*, topic: str, uuid: bytes, folder_id: bytes, ledger_id: int = 0,
                      partition_count: int = 0, compacted: bool = False,
                      horizon: tuple[int, int, int] = (0, 0, 0)) -> bytes:
    """The record of a ledger of a topic. A name that does not fit is cut, and the record says so.

    ledger_id: 0 while it is not known. partition_count: of the topic this one is a partition of.
    horizon: of a compacted ledger, as of CompactionRecord: ledger, entry, message.
    """
    cdef LedgerName name
    cdef uint8_t record[LEDGER_NAME_RECORD_SIZE]
    cdef bytes text
    if len(uuid) != 16 or len(folder_id) != 16:
        raise ValueError(f"uuid, folder_id: 16 bytes, not {len(uuid)}, {len(folder_id)}")
    if not topic:
        raise ValueError("the topic has no name")
    memset(&name, 0, sizeof(name))
    text, cut = kept_name(topic, LEDGER_NAME_SIZE_MAX)
    memcpy(name.uuid, PyBytes_AS_STRING(uuid), 16)
    memcpy(name.folder_id, PyBytes_AS_STRING(folder_id), 16)
    name.ledger_id = ledger_id
    name.partition_count = partition_count
    name.horizon_ledger_id, name.horizon_entry, name.horizon_message = horizon
    if compacted:
        name.flags |= LEDGER_NAME_COMPACTED
    if cut:
        name.flags |= LEDGER_NAME_CUT
    name.name = <const uint8_t*>PyBytes_AS_STRING(text)
    name.name_size = <unsigned int>PyBytes_GET_SIZE(text)
    ledger_name_encode(&name, record)
    return PyBytes_FromStringAndSize(<const char*>record, LEDGER_NAME_RECORD_SIZE)


def name_record_of(block: bytes) -> NameRecord | None:
    """The record in the header block of a ledger, its first 4096 bytes; None: there is none that
    holds."""
    cdef LedgerName name
    cdef NameRecord self
    if len(block) < LEDGER_HEADER_SIZE:
        return None
    if ledger_name_decode(<const uint8_t*>PyBytes_AS_STRING(block) + LEDGER_NAME_OFFSET,
                          &name) != STATUS_OK:
        return None
    self = NameRecord.__new__(NameRecord)
    try:
        self.topic = name.name[:name.name_size].decode()
    except UnicodeDecodeError:
        return None                      # not what name_record_bytes writes
    self.uuid = name.uuid[:16]
    self.folder_id = name.folder_id[:16]
    self.ledger_id = name.ledger_id
    self.partition_count = name.partition_count
    self.horizon = name.horizon_ledger_id, name.horizon_entry, name.horizon_message
    self.compacted = bool(name.flags & LEDGER_NAME_COMPACTED)
    self.cut = bool(name.flags & LEDGER_NAME_CUT)
    return self


def with_name_record(data: bytes, record: bytes) -> bytes:
    """The bytes of a ledger file, from its header on, with another name record."""
    if len(data) < LEDGER_HEADER_SIZE or len(record) != LEDGER_NAME_RECORD_SIZE:
        raise ValueError(f"a ledger of {len(data)} bytes, a record of {len(record)}")
    return (data[:LEDGER_NAME_OFFSET] + record
            + data[LEDGER_NAME_OFFSET + LEDGER_NAME_RECORD_SIZE:])
