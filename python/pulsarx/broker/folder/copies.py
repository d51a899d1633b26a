"""Two copies of the same bytes in one file, in blocks of their own: what few files hold that
nothing can replace is whole though a block of the disk is not. Used for the marker and commits.

The second copy begins at the next multiple of 4096 behind the first, with zeros between. Where each
lies follows from the size of the file alone, so that no damage hides it. They hold no zeros.
"""

from __future__ import annotations

BLOCK_SIZE = 4096


def both_copies(data: bytes) -> bytes:
    """The file of these bytes."""
    return data + bytes(-len(data) % BLOCK_SIZE) + data


def copies_of(file: bytes) -> tuple[bytes, bytes]:
    """The first and the second copy."""
    at = -(-len(file) // (2 * BLOCK_SIZE)) * BLOCK_SIZE
    return file[: max(0, len(file) - at)], file[at:]
