"""Body of plain_json.pxd.

What is not plain is left at its first byte, and the json module does all of it again.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t

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


cdef bint write_text(str text, bytearray out) except -1:
    cdef bytes data
    if not text.isascii():
        return False
    data = text.encode("ascii")
    if not is_plain(<const unsigned char*>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)):
        return False
    out += b'"'
    out += data
    out += b'"'
    return True


cdef bint write_object(dict value, bytearray out, int depth) except -1:
    cdef bint first = True
    out += b"{"
    for name, each in value.items():
        if not first:
            out += b","
        first = False
        if type(name) is not str or not write_text(<str>name, out):
            return False
        out += b":"
        if not write_value(each, out, depth):
            return False
    out += b"}"
    return True


cdef bint write_list(list value, bytearray out, int depth) except -1:
    cdef bint first = True
    out += b"["
    for each in value:
        if not first:
            out += b","
        first = False
        if not write_value(each, out, depth):
            return False
    out += b"]"
    return True


cdef bint write_value(object value, bytearray out, int depth) except -1:
    """False: it is not plain, and out is of no use. Subclasses may be written otherwise."""
    kind = type(value)
    if kind is str:
        return write_text(<str>value, out)
    if kind is int:
        out += b"%d" % value
        return True
    if value is None:
        out += b"null"
        return True
    if kind is bool:
        out += b"true" if value else b"false"
        return True
    if depth >= DEPTH_MAX:
        return False
    if kind is dict:
        return write_object(<dict>value, out, depth + 1)
    if kind is list:
        return write_list(<list>value, out, depth + 1)
    if kind is tuple:
        return write_list(list(value), out, depth + 1)
    return False


cpdef bytes json_bytes(object value):
    cdef bytearray out = bytearray()
    if write_value(value, out, 0):
        return bytes(out)
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
