"""Tells object stores from folders, where the history of topics is read."""

from __future__ import annotations

import os
import re
from urllib.parse import quote

from pulsarx.broker.folder.folder_marker import MARKER_NAME
from pulsarx.broker_options import check_offload_url
from pulsarx.options.service_url import leads_to_store, parse_service_url

_OF_HADOOP = {"s3a": "s3", "s3n": "s3"}
FOLDER_ID = re.compile(r"[0-9a-f]{32}")


def store_of(root: str) -> str:
    """The URL of the object store that a root names; "": it is a folder, or a cluster. A path, or a
    file: URL, is one where no data directory is, and histories of topics are.

    ValueError: the URL has credentials.
    """
    plain = root.strip()
    scheme, _, rest = plain.partition("://")
    scheme = _OF_HADOOP.get(scheme.lower(), scheme.lower())
    if leads_to_store(plain) or plain.lower().startswith("memory://"):
        return check_offload_url("root", f"{scheme}://{rest}")
    if ":" in plain and not plain.lower().startswith("file:"):
        return ""
    path = parse_service_url(plain).folder if plain else None
    if path is None or os.path.exists(f"{path}/{MARKER_NAME}") or not _has_histories(path):
        return ""
    return f"file://{quote(os.path.abspath(path))}"


def _has_histories(path: str) -> bool:
    # A place may have the name of a folder's id itself.
    if FOLDER_ID.fullmatch(os.path.basename(path)) and os.path.isdir(f"{path}/history"):
        return True
    try:
        names = os.listdir(path)
    except OSError:
        return False
    return any(
        FOLDER_ID.fullmatch(name) and os.path.isdir(f"{path}/{name}/history") for name in names
    )
