"""Body of raise_status.pxd: the table from status to exception class."""

from libc.errno cimport ENODEV, ENOSYS, EOPNOTSUPP

import os

from pulsarx import errors
from pulsarx._core.status cimport *

cdef dict TABLE = {
    STATUS_OUT_OF_RANGE: ("NotAllowedError", "out of range"),
    STATUS_TRUNCATED: ("CorruptDataError", "the bytes end too early"),
    STATUS_CORRUPT: ("CorruptDataError", "the bytes are not what was written"),
    STATUS_FOREIGN: ("CorruptDataError", "not a file of PulsarX"),
    STATUS_UNSUPPORTED: ("NewerFormatError",
                         "written by a newer version; upgrade PulsarX to open it"),
    STATUS_UNBORN: ("CorruptDataError", "the file was never written"),
    STATUS_NO_SPACE: ("StorageFullError", "no space left on the device; nothing was written"),
    STATUS_IO: ("StorageError", "the operating system refused"),
    STATUS_LEDGER_FULL: ("InternalError", "the ledger is full and was not rolled over"),
    STATUS_POISONED: ("LedgerPoisonedError",
                      "an earlier flush failed, so what is on disk is unknown; "
                      "close the client and open it again"),
    STATUS_CLOSED: ("AlreadyClosed", "it is closed"),
    STATUS_END: ("InternalError", "nothing is there"),
    STATUS_TIMEOUT: ("Timeout", "no result in time"),
    STATUS_TOO_LARGE: ("MessageTooBig", "too large"),
    STATUS_TORN: ("CorruptDataError", "the tail is torn"),
    STATUS_DUPLICATE: ("NotAllowedError", "already so"),
    STATUS_FOLD: ("InternalError", "the cursor's tail is full and was not folded"),
}


cdef int raise_status(int status, int error, object what) except -1:
    if status == STATUS_OK:
        return 0
    if status == STATUS_NO_MEMORY:
        raise MemoryError(f"{what}: out of memory; nothing was changed")
    name, reason = TABLE.get(status, ("InternalError", f"status {status}"))
    kind = getattr(errors, name)
    if error == ENODEV or error == EOPNOTSUPP or error == ENOSYS:
        reason = "its file system does not allow this; use a folder on another one"
    if error:
        text = f"{what}: {reason} ({os.strerror(error)})"
        if issubclass(kind, errors.StorageError):
            raise kind(detail=text, errno=error)
        raise kind(detail=text)
    raise kind(detail=f"{what}: {reason}")


cdef str status_reason(int status):
    return TABLE[status][1] if status in TABLE else f"status {status}"
