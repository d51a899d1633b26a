"""Tells data directories, Pulsar clusters and object stores apart, as the root of a job."""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx.broker.offload.store_url import store_of

SCHEMES = ("pulsar://", "pulsar+ssl://")
READ_ALONE = (
    "of an object store the history of topics is read alone, in batches. Write to the folder, from "
    "where ledgers are offloaded, and let streams read the folder or a cluster"
)


def is_cluster(root: str) -> bool:
    return root.lower().startswith(SCHEMES)


def is_store(root: str) -> bool:
    """Whether a root, as `store_of` gives it, is an object store."""
    return "://" in root and not is_cluster(root)


def read_root(root: str | os.PathLike[str]) -> str:
    """The absolute path of a data directory, or the URL of an object store; raises as
    folder_path."""
    found = store_of(os.fspath(root)) if isinstance(root, (str, os.PathLike)) else ""
    return found or folder_path(root)


def folder_path(root: str | os.PathLike[str]) -> str:
    """The absolute path of a data directory; a link may lead elsewhere on another host.

    TypeError, ValueError: root is none, as of a setting that is missing. OperationNotSupported:
    root is of a cluster, and what was called works on files.
    """
    if not isinstance(root, (str, os.PathLike)):
        raise TypeError(f"root is {root!r:.80}; give the path of the data directory")
    if not os.fspath(root):
        raise ValueError("root is empty; give the path of the data directory")
    if isinstance(root, str) and is_cluster(root.strip()):
        raise errors.OperationNotSupported(
            detail=f"root {root!r}: this works on the files of a folder. Read and write a cluster "
            "with "
            'format("pulsarx") and its options root and adminUrl'
        )
    if isinstance(root, str) and store_of(root):
        raise errors.OperationNotSupported(detail=f"root {root!r}: {READ_ALONE}")
    return os.path.abspath(os.fspath(root))
