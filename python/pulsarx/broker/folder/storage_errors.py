"""storage_error: what the operating system refused, as an exception of ours. Anybody may call."""

from __future__ import annotations

import errno

from pulsarx.errors import StorageError, StorageFullError

_FULL = (errno.ENOSPC, errno.EDQUOT)


def storage_error(what: str, error: OSError) -> StorageError:
    """what: what was done, with which file. StorageFullError: there is no room on the device."""
    if error.errno in _FULL:
        return StorageFullError(
            f"{what}: {error.strerror}. Nothing was written; it works again once there is room",
            errno=error.errno,
        )
    return StorageError(f"{what}: {error.strerror or error}", errno=error.errno)
