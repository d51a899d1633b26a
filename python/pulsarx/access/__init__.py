"""Who the clients of a served folder are, and what they may do there."""

from __future__ import annotations

from pulsarx.access.access_settings import AccessSettings
from pulsarx.access.tls_settings import TlsSettings

__all__ = ["AccessSettings", "TlsSettings"]
