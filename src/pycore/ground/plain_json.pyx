"""Body of plain_json.pxd.

What is not plain is left at its first byte, and the json module does all of it again.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    long long PyLong_AsLongLongAndOverflow(object value, int* overflow) except? -1

cdef enum:
    DEPTH_MAX = 64            # of lists and objects; deeper ones are the json module's
    DIGITS_MAX = 18           # always fit 64 bits

cdef object NOT_PLAIN = object()


cdef bint is_plain(const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Whether text stands for itself between quotation marks."""
    cdef Py_ssize_t index
    for index in range(size):
        if text[index] < 0x20 or text[index] > 0x7e:
            return False
        if text[index] == c'"' or text[index] == c'\\':
            return False
    return True


# Writing ------------------------------------------------------------------------------------------


cdef class PlainWriter:
    """A text that grows."""

    cdef char* room
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity

    def __dealloc__(self) -> None:
        free(self.room)

    cdef int put(self, const char* text, Py_ssize_t size) except -1:
        cdef Py_ssize_t wanted = self.size + size
        cdef char* moved
        if wanted > self.capacity:
            wanted = max(2 * wanted, 256)
            moved = <char*>realloc(self.room, wanted)
            if moved == NULL:
                raise MemoryError(f"{wanted} bytes of JSON")
            self.room = moved
            self.capacity = wanted
        memcpy(self.room + self.size, text, size)
        self.size += size
        return 0

    cdef bint text(self, str text) except -1:
        cdef Py_ssize_t size = 0
        cdef const char* data
        if not PyUnicode_IS_ASCII(text):
            return False
        data = PyUnicode_AsUTF8AndSize(text, &size)
        if not is_plain(<const unsigned char*>data, size):
            return False
        self.put(b'"', 1)
        self.put(data, size)
        self.put(b'"', 1)
        return True

    cdef int integer(self, object value) except -1:
        cdef char digits[20]
        cdef int at = sizeof(digits)
        cdef int overflow = 0
        cdef int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow)
        cdef uint64_t left = <uint64_t>number
        cdef bytes written
        if overflow:
            written = b"%d" % value
            return self.put(PyBytes_AS_STRING(written), PyBytes_GET_SIZE(written))
        if number < 0:
            left = 0 - left
        while True:
            at -= 1
            digits[at] = <char>(c'0' + left % 10)
            left //= 10
            if left == 0:
                break
        if number < 0:
            at -= 1
            digits[at] = c'-'
        return self.put(digits + at, <Py_ssize_t>sizeof(digits) - at)

    cdef bint members(self, dict value, int depth) except -1:
        cdef bint first = True
        self.put(b"{", 1)
        for name, each in value.items():
            if not first:
                self.put(b",", 1)
            first = False
            if type(name) is not str or not self.text(<str>name):
                return False
            self.put(b":", 1)
            if not self.value(each, depth):
                return False
        self.put(b"}", 1)
        return True

    cdef bint elements(self, object value, int depth) except -1:
        """value: a list or a tuple."""
        cdef bint first = True
        self.put(b"[", 1)
        for each in value:
            if not first:
                self.put(b",", 1)
            first = False
            if not self.value(each, depth):
                return False
        self.put(b"]", 1)
        return True

    cdef bint value(self, object value, int depth) except -1:
        """False: it is not plain, and what was written is of no use. Subclasses may be written
        otherwise."""
        kind = type(value)
        if kind is str:
            return self.text(<str>value)
        if kind is int:
            self.integer(value)
            return True
        if value is None:
            self.put(b"null", 4)
            return True
        if kind is bool:
            if value:
                self.put(b"true", 4)
            else:
                self.put(b"false", 5)
            return True
        if depth >= DEPTH_MAX:
            return False
        if kind is dict:
            return self.members(<dict>value, depth + 1)
        if kind is list or kind is tuple:
            return self.elements(value, depth + 1)
        return False


cpdef bytes json_bytes(object value):
    cdef PlainWriter out = PlainWriter.__new__(PlainWriter)
    if out.value(value, 0):
        return PyBytes_FromStringAndSize(out.room, out.size)
    import json

    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


# Reading ------------------------------------------------------------------------------------------


cdef class PlainText:
    """A text and the place up to which it was read. Nothing behind its end is looked at."""

    cdef bytes data
    cdef const unsigned char* text
    cdef Py_ssize_t size
    cdef Py_ssize_t place

    def __cinit__(self, bytes data) -> None:
        self.data = data
        self.text = <const unsigned char*>PyBytes_AS_STRING(data)
        self.size = PyBytes_GET_SIZE(data)
        self.place = 0

    cdef unsigned char next_byte(self) noexcept:
        """0 at the end, and it stands nowhere in what is plain."""
        return self.text[self.place] if self.place < self.size else 0

    cdef bint skip(self, unsigned char wanted) noexcept:
        if self.next_byte() != wanted:
            return False
        self.place += 1
        return True

    cdef object word(self, bytes spelled, object value):
        cdef Py_ssize_t end = self.place + len(spelled)
        if self.data[self.place:end] != spelled:
            return NOT_PLAIN
        self.place = end
        return value

    cdef object number(self):
        cdef bint negative = self.skip(c'-')
        cdef Py_ssize_t first = self.place
        cdef int64_t value = 0
        while c'0' <= self.next_byte() <= c'9':
            if self.place - first == DIGITS_MAX:
                return NOT_PLAIN
            value = value * 10 + (self.text[self.place] - c'0')
            self.place += 1
        # Zeros in front are no JSON; what follows a number is seen by its list or object.
        if self.place == first or (self.text[first] == c'0' and self.place > first + 1):
            return NOT_PLAIN
        return -value if negative else value

    cdef object string(self):
        """The quotation mark in front of it is the next byte."""
        cdef Py_ssize_t first = self.place + 1
        cdef Py_ssize_t end = first
        while end < self.size and self.text[end] != c'"':
            end += 1
        if end == self.size or not is_plain(self.text + first, end - first):
            return NOT_PLAIN
        self.place = end + 1
        return self.data[first:end].decode("ascii")

    cdef object members(self, int depth):
        cdef dict found = {}
        if self.skip(c'}'):
            return found
        while self.next_byte() == c'"':
            name = self.string()
            if name is NOT_PLAIN or not self.skip(c':'):
                return NOT_PLAIN
            value = self.value(depth)
            if value is NOT_PLAIN:
                return NOT_PLAIN
            found[name] = value
            if self.skip(c'}'):
                return found
            if not self.skip(c','):
                return NOT_PLAIN
        return NOT_PLAIN

    cdef object elements(self, int depth):
        cdef list found = []
        if self.skip(c']'):
            return found
        while True:
            value = self.value(depth)
            if value is NOT_PLAIN:
                return NOT_PLAIN
            found.append(value)
            if self.skip(c']'):
                return found
            if not self.skip(c','):
                return NOT_PLAIN

    cdef object value(self, int depth):
        cdef unsigned char first = self.next_byte()
        if first == c'"':
            return self.string()
        if first == c'{' or first == c'[':
            if depth >= DEPTH_MAX:
                return NOT_PLAIN
            self.place += 1
            return self.members(depth + 1) if first == c'{' else self.elements(depth + 1)
        if first == c'n':
            return self.word(b"null", None)
        if first == c't':
            return self.word(b"true", True)
        if first == c'f':
            return self.word(b"false", False)
        return self.number()


cpdef object json_value(bytes text):
    cdef PlainText plain = PlainText(text)
    value = plain.value(0)
    if value is not NOT_PLAIN and plain.place == plain.size:
        return value
    import json

    return json.loads(text)
