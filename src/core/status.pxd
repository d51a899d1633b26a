"""The statuses that core functions return. Any module may use it;
`pulsarx._pycore.ground.raise_status` turns it into an exception.

Zero is success, so `if status: return status` reads as it runs.
"""

cdef enum Status:
    STATUS_OK = 0
    # an argument no bytes can satisfy: index past the end, unknown entry
    STATUS_OUT_OF_RANGE = 1
    STATUS_TRUNCATED = 2        # the bytes end before the value does
    # the bytes are not what we wrote: a checksum or a bound does not hold
    STATUS_CORRUPT = 3
    STATUS_FOREIGN = 4          # the file is not one of ours
    STATUS_UNSUPPORTED = 5      # the file is ours, of a newer format
    STATUS_UNBORN = 6           # the file was created and never written: all zeros
    STATUS_NO_MEMORY = 7
    STATUS_NO_SPACE = 8         # no room on the device; nothing was written
    STATUS_IO = 9               # the operating system refused; errno says why
    STATUS_LEDGER_FULL = 10     # roll over and append to the next ledger
    STATUS_POISONED = 11        # a flush failed earlier: what is on disk is unknown
    STATUS_CLOSED = 12          # closed or sealed
    STATUS_END = 13             # nothing more is published yet
    STATUS_TIMEOUT = 14
    STATUS_INTERRUPTED = 15     # a signal arrived while waiting
    STATUS_TOO_LARGE = 16       # larger than a limit or than the room given
    STATUS_TORN = 17            # an unfinished write at the tail: what is before it is whole
    STATUS_DUPLICATE = 18       # already so; nothing was changed
    STATUS_FOLD = 19            # the tail of a cursor is full: fold it, then do it again
