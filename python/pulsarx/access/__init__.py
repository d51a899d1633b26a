"""Authentication and authorisation of the clients of a served folder."""

from __future__ import annotations

from pulsarx.access.access_settings import AccessSettings
from pulsarx.access.tls_settings import TlsSettings

__all__ = ["AccessSettings", "TlsSettings"]
