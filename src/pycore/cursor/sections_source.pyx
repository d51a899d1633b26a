"""Body of sections_source.pxd."""

from cpython.bytes cimport PyBytes_FromStringAndSize

from pulsarx._core.cursor_sections cimport (
    SectionWriter, section_writer_add, section_writer_end, section_writer_free,
    section_writer_start,
)
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.ground.raise_status cimport raise_status


cdef class SectionsSource:
    """See the pxd."""

    cdef bytes redelivery_section(self):
        return b""

    cdef bytes due_section(self):
        return b""


cdef bytes take_section(SectionWriter* writer):
    cdef int status
    try:
        status = section_writer_end(writer)
        raise_status(status, 0, "write a section of a cursor's snapshot")
        return PyBytes_FromStringAndSize(<char*>writer.data, writer.size)
    finally:
        section_writer_free(writer)


def encode_section(tag: int, messages: list[tuple[int, int, int]]) -> bytes:
    """A section of (ledger id, ordinal, count or due_ms), ascending: for tests and tools."""
    cdef SectionWriter writer
    cdef int status = STATUS_OK
    if messages != sorted({each[:2]: each for each in messages}.values()):
        raise ValueError("messages must ascend, each once")
    section_writer_start(&writer, tag)
    try:
        for ledger_id, message, value in messages:
            status = section_writer_add(&writer, ledger_id, message, value)
            raise_status(status, 0, "write a section of a cursor's snapshot")
        return take_section(&writer)
    finally:
        section_writer_free(&writer)
