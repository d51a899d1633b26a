"""TLS contexts that follow certificates which are renewed while the server runs."""

from __future__ import annotations

import logging
import os

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

    from pulsarx.access.tls_settings import TlsSettings

    Stamp = tuple[tuple[int, int, int] | None, ...]

_log = logging.getLogger("pulsarx")


class TlsContexts:
    """Gives each new connection the certificates that are in the files then. Called by the loop."""

    def __init__(self, settings: TlsSettings) -> None:
        """InvalidConfiguration: a file is missing, or is not what it should be."""
        self._settings = settings
        self._seen = self._stamp()
        self._context = settings.context()

    def current(self) -> ssl.SSLContext:
        """Files that changed and cannot be used, because only one of a pair is there yet, are said
        in the log: what was read before stays until they can."""
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen = stamp
            try:
                self._context = self._settings.context()
            except errors.InvalidConfiguration as error:
                _log.warning("changed certificates are not used: %s", errors.detail_of(error))
            else:
                _log.info("the certificates were read again: %s", self._settings.certificate_file)
        return self._context

    def _stamp(self) -> Stamp:
        """A stamp that changes when one of the files does."""
        given = self._settings
        files = (given.certificate_file, given.key_file, given.trust_certs_file)
        return tuple(_stamp_of(each) for each in files if each is not None)


def _stamp_of(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
