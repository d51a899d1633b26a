"""Clients that cost next to nothing: they send what a server takes one by one, with a bound on what
is not answered, and only count the answers; or they take messages and acknowledge them.

Built at bench time by floor_build.py; not part of the library.
"""

import time

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.errno cimport EINTR, errno
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

cdef extern from "<sys/socket.h>" nogil:
    ssize_t send(int fd, const void* data, size_t size, int flags)
    ssize_t recv(int fd, void* data, size_t size, int flags)

cdef enum:
    ROOM = 1 << 20
    RECEIPT = 7
    MESSAGE = 9
    NEW_LINE = 10


cdef uint8_t* varint(uint8_t* at, uint64_t value) noexcept nogil:
    while value >= 0x80:
        at[0] = <uint8_t>(value | 0x80)
        at += 1
        value >>= 7
    at[0] = <uint8_t>value
    return at + 1


cdef void big(uint8_t* at, uint32_t value) noexcept nogil:
    at[0] = <uint8_t>(value >> 24)
    at[1] = <uint8_t>(value >> 16)
    at[2] = <uint8_t>(value >> 8)
    at[3] = <uint8_t>value


cdef uint32_t big_at(const uint8_t* at) noexcept nogil:
    return <uint32_t>at[0] << 24 | <uint32_t>at[1] << 16 | <uint32_t>at[2] << 8 | at[3]


cdef bint send_all(int fd, const uint8_t* data, size_t size) noexcept nogil:
    cdef ssize_t done
    while size:
        done = send(fd, data, size, 0)
        if done < 0:
            if errno == EINTR:
                continue
            return False
        data += done
        size -= <size_t>done
    return True


cdef size_t receipts_in(const uint8_t* data, size_t size, uint64_t* found) noexcept nogil:
    """Count the receipts among whole commands; the size of those."""
    cdef size_t at = 0
    while size - at >= 4 and size - at - 4 >= big_at(data + at):
        if data[at + 9] == RECEIPT:
            found[0] += 1
        at += 4 + big_at(data + at)
    return at


cdef size_t lines_in(const uint8_t* data, size_t size, uint64_t* found) noexcept nogil:
    cdef size_t at
    for at in range(size):
        if data[at] == NEW_LINE:
            found[0] += 1
    return size


def fly(int fd, list frames not None, uint64_t depth, bint lines, list arrivals=None) -> None:
    """Send each of these, with at most `depth` of them unconfirmed. lines: a confirmation is two
    lines, as of Redis; else a receipt of Pulsar's. arrivals: when something was confirmed, in
    nanoseconds, is added."""
    cdef uint64_t count = <uint64_t>len(frames)
    cdef uint8_t* data = <uint8_t*>malloc(ROOM)
    cdef uint8_t* out = <uint8_t*>malloc(ROOM)
    cdef bytes frame
    cdef size_t end = 0
    cdef size_t filled
    cdef size_t done
    cdef ssize_t got = 1
    cdef uint64_t sent = 0
    cdef uint64_t confirmed = 0
    cdef uint64_t found = 0
    try:
        while confirmed < count:
            filled = 0
            while sent < count and sent - confirmed < depth:
                frame = frames[sent]
                if filled + <size_t>PyBytes_GET_SIZE(frame) > ROOM:
                    break
                memcpy(out + filled, PyBytes_AS_STRING(frame), PyBytes_GET_SIZE(frame))
                filled += <size_t>PyBytes_GET_SIZE(frame)
                sent += 1
            with nogil:
                got = recv(fd, data + end, ROOM - end, 0) if send_all(fd, out, filled) else 0
                if got > 0:
                    end += <size_t>got
                    if lines:
                        done = lines_in(data, end, &found)
                    else:
                        done = receipts_in(data, end, &found)
                    memmove(data, data + done, end - done)
                    end -= done
            if got <= 0:
                raise ConnectionError(f"hung up after {confirmed} of {count}")
            confirmed = found // 2 if lines else found
            if arrivals is not None:
                arrivals.append(time.perf_counter_ns())
    finally:
        free(out)
        free(data)


def consume(int fd, uint64_t count, bint together) -> None:
    """Take so many messages of consumer 0, acknowledge each, and give a permit for it. together:
    those that came at once are acknowledged by one command."""
    cdef uint8_t* data = <uint8_t*>malloc(ROOM)
    cdef uint8_t* out = <uint8_t*>malloc(2 * ROOM)
    cdef uint8_t* to
    cdef uint8_t* ids
    cdef uint8_t* frame
    cdef uint8_t inside[16]
    cdef size_t end = 0
    cdef size_t at
    cdef size_t command
    cdef size_t id_size
    cdef ssize_t got
    cdef uint64_t came = 0
    cdef uint64_t new
    while came < count:
        with nogil:
            got = recv(fd, data + end, ROOM - end, 0)
            if got > 0:
                end += <size_t>got
                at = 0
                new = 0
                to = out
                # Of one ACK: its head is written when its size is known.
                ids = out + 32
                while end - at >= 4 and end - at - 4 >= big_at(data + at):
                    frame = data + at
                    at += 4 + big_at(frame)
                    if frame[9] != MESSAGE:
                        continue
                    new += 1
                    # 08 09 4a SIZE 08 00 12 ID_SIZE ID
                    id_size = frame[15]
                    if together:
                        ids[0] = 0x1A
                        ids[1] = <uint8_t>id_size
                        memcpy(ids + 2, frame + 16, id_size)
                        ids += 2 + id_size
                    else:
                        to = acknowledged(to, frame + 16, id_size)
                if together and new:
                    command = <size_t>(ids - out - 32)
                    to = varint(inside, 4 + command)
                    id_size = <size_t>(to - inside)
                    big(out, <uint32_t>(4 + 3 + id_size + 4 + command))
                    big(out + 4, <uint32_t>(3 + id_size + 4 + command))
                    out[8] = 8
                    out[9] = 10
                    out[10] = 10 << 3 | 2
                    memcpy(out + 11, inside, id_size)
                    to = out + 11 + id_size
                    to[0] = 8
                    to[1] = 0
                    to[2] = 16
                    to[3] = 0
                    memmove(to + 4, out + 32, command)
                    to += 4 + command
                if new:
                    # FLOW: 08 0b 5a SIZE 08 00 10 PERMITS
                    frame = varint(to + 15, new)
                    big(to, <uint32_t>(frame - to - 4))
                    big(to + 4, <uint32_t>(frame - to - 8))
                    to[8] = 8
                    to[9] = 11
                    to[10] = 11 << 3 | 2
                    to[11] = <uint8_t>(frame - to - 12)
                    to[12] = 8
                    to[13] = 0
                    to[14] = 16
                    send_all(fd, out, <size_t>(frame - out))
                came += new
                memmove(data, data + at, end - at)
                end -= at
        if got <= 0:
            raise ConnectionError(f"hung up after {came} of {count}")
    free(data)
    free(out)


cdef uint8_t* acknowledged(uint8_t* at, const uint8_t* identity, size_t size) noexcept nogil:
    """An ACK of consumer 0 with one id."""
    cdef uint8_t* to = at + 8
    to[0] = 8
    to[1] = 10
    to[2] = 10 << 3 | 2
    to[3] = <uint8_t>(6 + size)
    to[4] = 8
    to[5] = 0
    to[6] = 16
    to[7] = 0
    to[8] = 0x1A
    to[9] = <uint8_t>size
    memcpy(to + 10, identity, size)
    to += 10 + size
    big(at + 4, <uint32_t>(to - at - 8))
    big(at, <uint32_t>(to - at - 4))
    return to
