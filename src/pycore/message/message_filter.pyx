# cython: language_level=3
"""Body of message_filter.pxd."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memset

from pulsarx import errors
from pulsarx._core.selector cimport (
    SELECTOR_DEPTH_MAX, SELECTOR_NAMES_MAX, SELECTOR_SIZE_MAX, selector_compile, selector_free,
)
from pulsarx._core.selector_match cimport (
    SelectorMessage, selector_match, selector_match_batch,
)
from pulsarx._core.selector_text cimport EXPECTED_COUNT, SelectorError
from pulsarx._core.single_metadata cimport METADATA_BATCH
from pulsarx._core.status cimport STATUS_NO_MEMORY, STATUS_OK
from pulsarx._pycore.message.entry_view cimport ENTRY_PLAIN, EntryView

SELECTOR_PROPERTY = "jms.selector"       # of a subscription: where its selector is kept

cdef enum:
    WITHOUT_GIL_LEAST = 64               # messages; for fewer, letting go of it costs more
    SHOWN_MAX = 60                       # characters of what was found in its place

# By SelectorExpected.
cdef tuple EXPECTED = (
    "nothing",
    "a name, a literal or (",
    "a condition, such as a comparison",
    "a number, or the name of a property",
    "a string in single quotes",
    "TRUE, FALSE or a condition",
    "the name of a property",
    "(",
    ")",
    ", or )",
    "AND",
    "NULL",
    "BETWEEN, IN or LIKE",
    "the closing quote",
    "one character in single quotes",
    "%, _ or the escape character behind the escape character",
    "= or <>: what has an order are numbers",
    "an operator, or the end",
    "a number of 64 bits",
    f"the end: a selector has at most {<int>SELECTOR_SIZE_MAX} bytes",
    f"fewer operators within each other, at most {<int>SELECTOR_DEPTH_MAX} deep",
    f"at most {<int>SELECTOR_NAMES_MAX} different properties",
    "text in UTF-8",
)


@cython.final
cdef class MessageFilter:
    """See the pxd."""

    def __init__(self, str selector not None, str what not None="selector") -> None:
        """InvalidConfiguration: it is no selector; says where. what: what the text is called
        there."""
        cdef bytes text = selector.encode("utf-8", "surrogatepass")
        cdef SelectorError error
        cdef int status
        if self.selector is not None:
            raise TypeError("a MessageFilter is made once")
        status = selector_compile(<const uint8_t*>PyBytes_AS_STRING(text),
                                  <uint32_t>min(PyBytes_GET_SIZE(text), <Py_ssize_t>1 << 30),
                                  &self.c_program, &error)
        if status == STATUS_NO_MEMORY:
            raise MemoryError("compile a selector: out of memory")
        if status != STATUS_OK:
            raise errors.InvalidConfiguration(detail=error_text(text, &error, what))
        self.selector = selector

    def __dealloc__(self):
        selector_free(&self.c_program)
        PyMem_Free(self.c_matches)

    def __repr__(self) -> str:
        return f"MessageFilter({self.selector!r})"

    cdef uint8_t* reserve(self, uint32_t count) except NULL:
        cdef uint8_t* grown
        if count > self.capacity or self.c_matches == NULL:
            grown = <uint8_t*>PyMem_Realloc(self.c_matches, max(count, <uint32_t>64))
            if grown == NULL:
                raise MemoryError(f"select among {count} messages: out of memory")
            self.c_matches = grown
            self.capacity = max(count, <uint32_t>64)
        return self.c_matches

    cdef int look(self, EntryView view) except -1:
        cdef uint32_t count = view.message_count
        cdef uint8_t* matches
        cdef uint32_t at = 0
        cdef uint32_t index
        cdef const uint8_t* payload = view.c_payload
        cdef uint32_t size = view.payload_size
        cdef int64_t publish_time_ms = view.publish_time_ms
        self.message_count = 0           # of no entry, where something raises
        matches = self.reserve(count)
        if view.metadata_flags & METADATA_BATCH == 0:
            matches[0] = self.wants_entry(view)
        elif view.encryption != ENTRY_PLAIN:
            memset(matches, 1, count)
        elif count < WITHOUT_GIL_LEAST:
            selector_match_batch(&self.c_program, payload, size, &at, 0, count, publish_time_ms,
                                 matches)
        else:
            with nogil:
                selector_match_batch(&self.c_program, payload, size, &at, 0, count,
                                     publish_time_ms, matches)
        self.rejected_count = 0
        for index in range(count):
            self.rejected_count += matches[index] == 0
        self.ledger_id = view.ledger_id
        self.first_message = view.first_message
        self.message_count = count
        return 0

    cdef bint wants(self, EntryView view, uint32_t at) except -1:
        cdef uint8_t matches = 1
        if view.metadata_flags & METADATA_BATCH == 0:
            return self.wants_entry(view)
        if view.encryption == ENTRY_PLAIN:
            selector_match_batch(&self.c_program, view.c_payload, view.payload_size, &at, 0, 1,
                                 view.publish_time_ms, &matches)
        return matches != 0

    cdef bint wants_entry(self, EntryView view) noexcept:
        """About an entry that is no batch, by its own metadata."""
        cdef SelectorMessage message
        cdef bint wanted = True
        message.metadata = view.c_encoded_metadata
        message.metadata_size = view.encoded_metadata_size
        message.in_batch = False
        message.publish_time_ms = view.publish_time_ms
        # Where it cannot be read, whoever takes it is told.
        return selector_match(&self.c_program, &message, &wanted) != STATUS_OK or wanted

    cdef uint32_t run_end(self, uint32_t index) noexcept:
        cdef uint8_t found = self.c_matches[index]
        while index < self.message_count and self.c_matches[index] == found:
            index += 1
        return index


cdef str error_text(bytes text, const SelectorError* error, str what):
    """Say what is wrong with a selector, and in which column."""
    before = text[:error.at].decode("utf-8", "replace")
    found = text[error.at:].decode("utf-8", "replace")
    shown = "the end"
    if found:
        shown = repr(found if len(found) <= SHOWN_MAX else f"{found[:SHOWN_MAX]}...")
    whole = text.decode("utf-8", "replace")
    if len(whole) > 4 * SHOWN_MAX:
        whole = f"{whole[:4 * SHOWN_MAX]}..."
    expected = EXPECTED[error.expected] if error.expected < EXPECTED_COUNT else EXPECTED[0]
    return (f"{what} {whole!r}, column {len(before) + 1}: expected {expected}, found {shown}")
