"""The port that clients over a network connect to: each connection has a session."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.server.broker_service import BrokerService, serve

__all__ = ["BrokerService", "serve"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pulsarx.server import broker_service

    return getattr(broker_service, name)
