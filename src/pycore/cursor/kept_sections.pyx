"""The sections of a cursor's snapshot besides its ledgers; the contract is in the pxd."""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.ack_bits cimport ack_bits_has
from pulsarx._core.cursor_record cimport (
    CURSOR_SECTION_DUE, CURSOR_SECTION_LEDGERS, CURSOR_SECTION_REDELIVERY,
)
from pulsarx._core.cursor_sections cimport (
    RestoredMessage, RestoredMessages, SectionWriter, redeliveries_decode, restored_messages_free,
    section_check, section_decode, section_writer_add, section_writer_free, section_writer_start,
)
from pulsarx._core.cursor_state cimport LedgerAcks, cursor_state_find
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.cursor.sections_source cimport SectionsSource, take_section

cdef tuple OF_MESSAGES = (CURSOR_SECTION_REDELIVERY, CURSOR_SECTION_DUE)


cdef class KeptSections:
    """Part of one AckTracker."""

    def __cinit__(self) -> None:
        self.sections = {}

    cdef bytes load(self, bytes snapshot, str path):
        sections = split_sections(snapshot)
        if sections is None:
            raise_status(STATUS_CORRUPT, 0, f"read the snapshot of cursor file {path}")
        ledgers = sections.pop(CURSOR_SECTION_LEDGERS, None)
        self.sections = sections
        for tag in sections:
            if tag not in OF_MESSAGES:
                raise errors.NewerFormatError(
                    detail=f"cursor file {path} holds a section {tag} of a newer version;"
                    " upgrade PulsarX to open it")
            self.check(tag, path)
        return ledgers

    cdef int check(self, uint32_t tag, str path) except -1:
        cdef bytes section = self.sections[tag]
        cdef int status = section_check(tag, <const uint8_t*>PyBytes_AS_STRING(section),
                                        len(section))
        return raise_status(status, 0, f"read section {tag} of the snapshot of cursor file {path}")

    cdef dict current(self, SectionsSource source):
        cdef RestoredMessages found = RestoredMessages(NULL, 0, 0)
        sections = dict(self.sections)
        if source is not None:
            sections[CURSOR_SECTION_REDELIVERY] = source.redelivery_section()
            sections[CURSOR_SECTION_DUE] = source.due_section()
            return sections
        try:
            self.restore(CURSOR_SECTION_REDELIVERY, False, &found)
            sections[CURSOR_SECTION_REDELIVERY] = section_of(CURSOR_SECTION_REDELIVERY, &found)
        finally:
            restored_messages_free(&found)
        return sections

    cdef int adopt(self, dict sections, SectionsSource source) except -1:
        self.sections = {tag: section for tag, section in sections.items()
                         if source is None or tag not in OF_MESSAGES}
        return 0

    cdef int take(self, SectionsSource source, RestoredMessage** counts, size_t* counted,
                  RestoredMessage** due, size_t* due_count) except -1:
        cdef RestoredMessages count_found = RestoredMessages(NULL, 0, 0)
        cdef RestoredMessages due_found = RestoredMessages(NULL, 0, 0)
        try:
            self.restore(CURSOR_SECTION_REDELIVERY, True, &count_found)
            self.restore(CURSOR_SECTION_DUE, True, &due_found)
            self.adopt(self.sections, source)
        except BaseException:
            restored_messages_free(&count_found)
            restored_messages_free(&due_found)
            raise
        counts[0], counted[0] = count_found.messages, count_found.count
        due[0], due_count[0] = due_found.messages, due_found.count
        return 0

    cdef list counts(self):
        return self.listed(CURSOR_SECTION_REDELIVERY)

    cdef list due_times(self):
        return self.listed(CURSOR_SECTION_DUE)

    cdef list listed(self, uint32_t tag):
        cdef RestoredMessages found = RestoredMessages(NULL, 0, 0)
        cdef uint64_t at
        try:
            self.restore(tag, True, &found)
            return [(found.messages[at].ledger_id, found.messages[at].message,
                     found.messages[at].value) for at in range(found.count)]
        finally:
            restored_messages_free(&found)

    cdef int restore(self, uint32_t tag, bint unknown_too, RestoredMessages* found) except -1:
        """Decode what was loaded, and over it what the tail says."""
        cdef bytes section = self.sections.get(tag, b"")
        cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(section)
        cdef uint64_t size = len(section)
        cdef int status
        with nogil:
            if tag == CURSOR_SECTION_DUE:
                status = section_decode(tag, data, size, found)
            else:
                status = redeliveries_decode(data, size, self.c_tail, found)
            if status == STATUS_OK:
                self.drop_acknowledged(unknown_too, found)
        return raise_status(status, 0, f"read section {tag} of a cursor")

    cdef void drop_acknowledged(self, bint unknown_too, RestoredMessages* found) noexcept nogil:
        """unknown_too: also what the topic does not hold."""
        cdef LedgerAcks* ledger
        cdef RestoredMessage* message
        cdef uint64_t kept = 0
        cdef uint64_t at
        for at in range(found.count):
            message = &found.messages[at]
            if message.ledger_id < self.c_state.acknowledged_below:
                continue
            ledger = cursor_state_find(self.c_state, message.ledger_id)
            if ledger == NULL:
                if unknown_too:
                    continue
            elif message.message >= ledger.message_count or (
                    ack_bits_has(&ledger.bits, message.message)):
                continue
            found.messages[kept] = message[0]
            kept += 1
        found.count = kept


cdef bytes section_of(uint32_t tag, const RestoredMessages* messages):
    cdef SectionWriter writer
    cdef uint64_t at
    cdef int status = STATUS_OK
    section_writer_start(&writer, tag)
    with nogil:
        for at in range(messages.count):
            if status == STATUS_OK:
                status = section_writer_add(&writer, messages.messages[at].ledger_id,
                                            messages.messages[at].message,
                                            messages.messages[at].value)
    if status:
        section_writer_free(&writer)
        raise_status(status, 0, "write a section of a cursor's snapshot")
    return take_section(&writer)


cdef bytes join_sections(dict sections):
    parts = []
    for tag, section in sorted(sections.items()):
        if section:
            parts += (int(tag).to_bytes(8, "little"), len(section).to_bytes(8, "little"), section)
    return b"".join(parts)


cdef dict split_sections(bytes snapshot):
    sections = {}
    at = 0
    while at < len(snapshot):
        tag = int.from_bytes(snapshot[at:at + 8], "little")
        size = int.from_bytes(snapshot[at + 8:at + 16], "little")
        if at + 16 + size > len(snapshot):
            return None
        sections[tag] = snapshot[at + 16:at + 16 + size]
        at += 16 + size
    return sections
