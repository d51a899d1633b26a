"""Exceptions of the library for what the operating system refused. Anybody may call."""

from __future__ import annotations

from pulsarx.errors import FolderError, StorageError, StorageFullError, raised_by_handler

# errno is built into Python, but making its names is worth two modules of a start.


def is_full(error: OSError) -> bool:
    """Whether there is no room on the device."""
    import errno

    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def storage_error(what: str, error: OSError) -> StorageError:
    """what: what was done, with which file. StorageFullError: there is no room on the device. What
    a signal handler raised is raised as it is."""
    if raised_by_handler(error):
        raise error
    if is_full(error):
        return StorageFullError(
            detail=f"{what}: {error.strerror}. Nothing was written; it works again once there is "
            "room",
            errno=error.errno,
        )
    return StorageError(detail=f"{what}: {error.strerror or error}", errno=error.errno)


def folder_error(what: str, error: OSError, advice: str) -> FolderError | StorageError:
    """Like storage_error, but a FolderError with an advice if another path, or other permissions,
    are what helps."""
    import errno

    # The path or its permissions are at fault, not the device or the limits of the process.
    of_the_path = (
        errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR,
        errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG,
    )  # fmt: skip
    # Or the file system has no such operation, whoever asks for it; with EPERM it may be either.
    of_the_file_system = (
        errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.ENODEV,
    )  # fmt: skip
    if error.errno in of_the_file_system:
        return FolderError(
            detail=f"{what}: {error.strerror}. Its file system does not allow this, whatever the "
            "rights of the user: choose a folder on another one, such as ext4, XFS, btrfs or tmpfs"
        )
    if error.errno == errno.EPERM:
        advice += ". Where the user has that right, it is the file system that does not allow this"
    if error.errno in of_the_path:
        return FolderError(detail=f"{what}: {error.strerror}. {advice}")
    return storage_error(what, error)
