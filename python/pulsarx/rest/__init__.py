"""Pulsar's admin REST API over HTTP, in the process that owns the folder."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.rest.http_service import HttpService, serve_http

__all__ = ["HttpService", "serve_http"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pulsarx.rest import http_service

    return getattr(http_service, name)
