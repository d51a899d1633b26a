# cython: language_level=3
"""Presents columns in buffers of Python objects, such as NumPy arrays, as an Arrow struct array.
For `send_columns`, whose caller keeps the buffers until all is sent."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer, Py_buffer
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int64_t
from libc.string cimport memset

from pulsarx._pycore.arrow.arrow_schema cimport ARROW_NULLABLE, ArrowArray, ArrowSchema

cdef enum:
    COLUMNS_MAX = 4
    NODES_MAX = 7                        # those, and of a map its entries, keys and values
    BUFFERS_MAX = 3


cdef void schema_end(ArrowSchema* self) noexcept nogil:
    self.release = NULL


cdef void array_end(ArrowArray* self) noexcept nogil:
    self.release = NULL


cdef class BorrowedTable:
    """One record batch. Valid while this object lives; what it hands out owns nothing."""
    cdef ArrowSchema schema
    cdef ArrowArray array
    cdef ArrowSchema[NODES_MAX] schemas
    cdef ArrowArray[NODES_MAX] arrays
    cdef ArrowSchema* schema_children[NODES_MAX]
    cdef ArrowArray* array_children[NODES_MAX]
    cdef const void* top_buffers[1]
    cdef const void* buffers[NODES_MAX][BUFFERS_MAX]
    cdef Py_buffer[NODES_MAX * BUFFERS_MAX] held
    cdef int held_count
    cdef int node_count
    cdef list kept                       # names and formats, as bytes

    def __init__(self, int64_t length, list columns not None) -> None:
        """columns: (name, format, null count, buffers), each buffer contiguous or None; of a nested
        one its length and its columns besides."""
        if len(columns) > COLUMNS_MAX or self.kept is not None:
            raise ValueError(f"{len(columns)} columns; at most {COLUMNS_MAX}, and once")
        self.kept = []
        self.schema.format = b"+s"
        self.schema.name = b""
        self.schema.release = schema_end
        self.array.length = length
        self.array.n_buffers = 1
        self.array.buffers = &self.top_buffers[0]
        self.array.release = array_end
        self.add_children(&self.schema, &self.array, length, columns)

    cdef int add_children(self, ArrowSchema* schema, ArrowArray* array, int64_t length,
                          list columns) except -1:
        cdef int first = self.node_count
        cdef int at
        self.node_count += <int>len(columns)
        if self.node_count > NODES_MAX:
            raise ValueError(f"{self.node_count} columns, nested ones included; at most "
                             f"{NODES_MAX}")
        schema.n_children = array.n_children = len(columns)
        schema.children = &self.schema_children[first]
        array.children = &self.array_children[first]
        for at in range(len(columns)):
            self.schema_children[first + at] = &self.schemas[first + at]
            self.array_children[first + at] = &self.arrays[first + at]
            self.fill(first + at, length, columns[at])
        return 0

    cdef int fill(self, int at, int64_t length, tuple column) except -1:
        title, type_name, null_count, buffers, *nested = column
        cdef bytes name = title.encode()
        cdef bytes format = type_name.encode()
        cdef int number
        self.kept += (name, format)
        for number, each in enumerate(buffers):
            self.buffers[at][number] = self.hold(each)
        memset(&self.schemas[at], 0, sizeof(ArrowSchema))
        self.schemas[at].format = format
        self.schemas[at].name = name
        self.schemas[at].flags = ARROW_NULLABLE
        self.schemas[at].release = schema_end
        memset(&self.arrays[at], 0, sizeof(ArrowArray))
        self.arrays[at].length = length
        self.arrays[at].null_count = null_count
        self.arrays[at].n_buffers = len(buffers)
        self.arrays[at].buffers = &self.buffers[at][0]
        self.arrays[at].release = array_end
        if nested:
            self.add_children(&self.schemas[at], &self.arrays[at], nested[0][0], nested[0][1])
        return 0

    cdef const void* hold(self, object buffer) except? NULL:
        cdef Py_buffer* view = &self.held[self.held_count]
        if buffer is None:
            return NULL
        PyObject_GetBuffer(buffer, view, PyBUF_SIMPLE)
        self.held_count += 1
        return view.buf

    def __dealloc__(self) -> None:
        cdef int at
        for at in range(self.held_count):
            PyBuffer_Release(&self.held[at])

    def __arrow_c_array__(self, requested_schema=None) -> tuple:
        """(schema, struct array) as capsules, to be used while this object lives; once."""
        return (PyCapsule_New(&self.schema, "arrow_schema", NULL),
                PyCapsule_New(&self.array, "arrow_array", NULL))
