"""Passing over unknown protobuf fields."""

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport uint8_t, uint32_t

from pulsarx._core.byte_reader cimport ByteReader, byte_reader_start
from pulsarx._core.proto_field cimport proto_field_skip, proto_field_tag
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK, STATUS_TRUNCATED


def skipped(bytes data):
    """(status, bytes left) after one field of data behind which nothing may be read."""
    cdef ByteReader reader
    cdef uint32_t tag = 0
    cdef int status
    cdef uint8_t* copy = guarded_bytes(data)
    byte_reader_start(&reader, copy, len(data))
    status = proto_field_tag(&reader, &tag)
    if status == STATUS_OK:
        status = proto_field_skip(&reader, tag)
    free_guarded_bytes(copy, data)
    return status, reader.end - reader.at


def test_each_wire_type_is_passed_over():
    for field in [
        b"\x08\x96\x01",                            # varint
        b"\x09" + bytes(8),                         # fixed 64
        b"\x0a\x03abc",                             # block
        b"\x0d" + bytes(4),                         # fixed 32
        b"\x0b\x0c",                                # empty group
        b"\x0b\x10\x05\x13\x0a\x01x\x14\x0c",       # group with fields and a group
        b"\xf8\xff\xff\xff\x0f\x01",                # the largest field number
    ]:
        assert skipped(field + b"rest") == (STATUS_OK, 4)
        for cut in range(len(field)):
            assert skipped(field[:cut])[0] == STATUS_TRUNCATED


def test_what_is_no_field_is_corrupt():
    for field in [
        b"\x00\x01",                     # field number 0
        b"\x0c",                         # the end of a group that was never opened
        b"\x0b\x14",                     # the end of another group
        b"\x0e", b"\x0f",                # wire types that do not exist
        b"\xff\xff\xff\xff\x1f\x01",     # a tag of more than 32 bits
        b"\x08" + b"\x80" * 10 + b"\x01",
        b"\x0b" * 40 + b"\x0c" * 40,     # deeper than anybody nests
    ]:
        assert skipped(field)[0] == STATUS_CORRUPT


def test_a_claimed_size_beyond_the_end_is_truncated():
    assert skipped(b"\x0a\x05abcd")[0] == STATUS_TRUNCATED
    assert skipped(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")[0] == STATUS_TRUNCATED
