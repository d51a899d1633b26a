"""A Unix socket that listens, without the module _socket, whose import takes as long as ten of
ours. Any thread may call; needs the GIL.

The caller closes it once no thread is in accept, which shutdown ends.
"""

cdef class UnixListener:
    cdef int descriptor                  # owned; -1: closed
