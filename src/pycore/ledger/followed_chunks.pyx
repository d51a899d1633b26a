# cython: language_level=3
"""Body of followed_chunks.pxd."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.key_positions cimport (
    key_positions_find, key_positions_free, key_positions_hash, key_positions_init,
    key_positions_put,
)
from pulsarx._core.message_metadata cimport EntryParts

cdef enum:
    UUID_SIZE_MAX = 64                   # bytes of a uuid that are kept as they are


cdef class FollowedChunks:
    """See the pxd."""

    def __cinit__(self, uint64_t seed, Py_ssize_t open_max):
        """open_max: messages that are followed at once."""
        key_positions_init(&self.ends, 0)
        self.ends.seed = seed
        self.open = {}
        self.open_max = open_max

    def __dealloc__(self):
        key_positions_free(&self.ends)

    cdef list follow(self, const EntryParts* parts, uint64_t first):
        cdef bytes uuid = uuid_of(parts)
        cdef uint32_t chunk_id = parts.metadata.chunk_id
        cdef list found
        if chunk_id == 0:
            found = [first, 1, parts.metadata.chunk_count]
            self.open.pop(uuid, None)    # the same uuid may come again
            if len(self.open) >= self.open_max:
                del self.open[next(iter(self.open))]
                self.lost_sight = True
            self.open[uuid] = found
            return found
        found = self.open.get(uuid)
        if found is None or chunk_id < found[1]:
            return None
        if chunk_id > found[1] or parts.metadata.chunk_count != found[2]:
            del self.open[uuid]
            return None
        found[1] += 1
        if found[1] == found[2]:
            del self.open[uuid]
        return found

    cdef int note_end(self, list chunked, uint64_t last) noexcept:
        cdef uint64_t begin = chunked[0]
        return key_positions_put(
            &self.ends, key_positions_hash(&self.ends, <uint8_t*>&begin, sizeof(begin)),
            <uint8_t*>&begin, sizeof(begin), last)

    cdef int begin_again(self) except -1:
        if self.left_open is None:
            self.left_open, self.open = self.open, {}
        return 0

    cdef bint find_end(self, list chunked, uint64_t* end) noexcept:
        cdef uint64_t begin = chunked[0]
        return key_positions_find(
            &self.ends, key_positions_hash(&self.ends, <uint8_t*>&begin, sizeof(begin)),
            <uint8_t*>&begin, sizeof(begin), end)

    cdef bint may_end_later(self, const EntryParts* parts, list chunked) except -1:
        cdef list left = self.left_open.get(uuid_of(parts))
        return self.lost_sight or (left is not None and left[0] == chunked[0])


cdef bytes uuid_of(const EntryParts* parts):
    """The bytes that tell a message in chunks from others; a longer uuid counts by its digest."""
    cdef bytes uuid = parts.metadata.uuid[:parts.metadata.uuid_size]
    if parts.metadata.uuid_size <= UUID_SIZE_MAX:
        return uuid
    from hashlib import blake2b

    return b"long " + blake2b(uuid).digest()
