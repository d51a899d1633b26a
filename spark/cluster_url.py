"""Tells data directories from Pulsar clusters, as the root of a reader or writer."""

from __future__ import annotations

import os

from pulsarx import errors

SCHEMES = ("pulsar://", "pulsar+ssl://")
_STORES = ("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "az", "wasbs", "hdfs", "oss", "memory")


def is_cluster(root: str) -> bool:
    return root.lower().startswith(SCHEMES)


def flaw_of_store(root: str) -> str:
    """Say what is wrong with a root that is the URL of an object store; "": it is none."""
    scheme, mark, _ = root.strip().partition("://")
    if not mark or scheme.lower() not in _STORES:
        return ""
    return (
        "object stores are not supported, for they append to no file and map none. Use a folder, "
        "or pulsar://host:port of a cluster"
    )


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
    flaw = flaw_of_store(root) if isinstance(root, str) else ""
    if flaw:
        raise errors.OperationNotSupported(detail=f"root {root!r}: {flaw}")
    return os.path.abspath(os.fspath(root))
