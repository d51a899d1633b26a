"""Keeps the file descriptors 0, 1 and 2 from being given to files that the library opens. Called by
whatever opens anything.

A process that closed them (a careless daemon, `2>&-` of a shell) would get them for its next file,
and what some library writes to standard error would then be written over messages.
"""

cdef int low_descriptors_hold() noexcept nogil
"""Occupy those of 0, 1 and 2 that are closed, so that nothing opened from now on gets one of them,
be it by Python or another library.

What occupies them can be neither read nor written (EBADF, as if closed), and is closed in programs
that are started. Called before each opening, as the program may close them at any time.
0, or errno: no descriptor is left.
"""

cdef int low_descriptors_leave(int opened) noexcept nogil
"""The descriptor itself, where it is 3 or more, or -1 with errno set. Else another one of what it
stands for, and it is closed: another thread closed one since they were held. -1 with errno set:
there is none."""
