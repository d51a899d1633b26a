"""What a root is: a data directory, or a Pulsar cluster."""

from __future__ import annotations

import os

from pulsarx import errors

SCHEMES = ("pulsar://", "pulsar+ssl://")


def is_cluster(root: str) -> bool:
    return root.lower().startswith(SCHEMES)


def folder_path(root: str | os.PathLike[str]) -> str:
    """The absolute path of a data directory; a link may lead elsewhere on another host.

    OperationNotSupported: root is of a cluster, and what was called works on files.
    """
    if isinstance(root, str) and is_cluster(root.strip()):
        raise errors.OperationNotSupported(
            f"root {root!r}: this works on the files of a folder. Read and write a cluster with "
            'format("pulsarx") and its options root and adminUrl'
        )
    return os.path.abspath(os.fspath(root))
