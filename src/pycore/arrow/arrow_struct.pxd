"""Makes the structs of the Arrow C data interface, and capsules of them. For arrow_export and
range_batch.

Each array and each schema owns itself and holds a reference to the columns it shows, so that a
child may be moved out of its parent. They are released in any thread, with or without the GIL.
"""

from libc.stdint cimport int64_t

from pulsarx._pycore.arrow.arrow_block cimport TextColumn
from pulsarx._pycore.arrow.arrow_schema cimport ArrowArray, ArrowSchema

cdef struct ArrowColumns:
    void* it                             # columns that do not change any more
    void (*hold)(void* it) noexcept nogil
    void (*release)(void* it) noexcept nogil
    int (*make_schema)(void* it, ArrowSchema* schema) noexcept nogil
    int (*make_array)(void* it, ArrowArray* array) noexcept nogil
    const void* zeros                    # stands for what is not stored; 64 bytes at least

cdef int arrow_make_schema(ArrowSchema* self, const char* format, const char* name, int64_t flags,
                           int64_t children) noexcept nogil
"""format, name: constants. Children are for the caller to make. ENOMEM: self.release is NULL."""

cdef int arrow_make_array(ArrowArray* self, const ArrowColumns* columns, int64_t length,
                          int64_t buffers, int64_t children) noexcept nogil
"""Buffers and children are for the caller to fill in. ENOMEM: self.release is NULL."""

cdef int arrow_make_fixed(ArrowArray* self, const ArrowColumns* columns, int64_t length,
                          const void* values) noexcept nogil
"""A column of numbers."""

cdef int arrow_make_text(ArrowArray* self, const ArrowColumns* columns, int64_t length,
                         const void* offsets, const void* data) noexcept nogil
"""A column of strings or bytes. offsets or data NULL: there is no row, or every row is empty; then
columns.zeros has to be as long as the offsets would be."""

cdef int arrow_make_properties(ArrowArray* self, const ArrowColumns* columns, int64_t length,
                               const void* offsets, const TextColumn* key,
                               const TextColumn* value) noexcept nogil
"""A column of maps. offsets NULL: as arrow_make_text."""

cdef void arrow_set_nulls(ArrowArray* self, const ArrowColumns* columns, const void* validity,
                          int64_t count) noexcept nogil
"""validity NULL: every row is null; then columns.zeros has to be as long."""

cdef int arrow_make_properties_schema(ArrowSchema* self, const char* name, int64_t flags,
                                      int64_t value_flags) noexcept nogil
"""map<string, string>; the flags are ARROW_NULLABLE or 0, value_flags those of the values."""

cdef object arrow_export_schema(const ArrowColumns* columns)
"""The capsule of __arrow_c_schema__."""

cdef object arrow_export_array(const ArrowColumns* columns)
"""The pair of capsules that __arrow_c_array__ answers."""

cdef object arrow_export_stream(const ArrowColumns* columns)
"""The capsule of __arrow_c_stream__: a stream of one record batch."""
