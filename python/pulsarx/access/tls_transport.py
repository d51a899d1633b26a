"""A transport that speaks TLS, between a socket's transport and a protocol.

asyncio's own holds 256 KiB for a connection from its first byte on, and its clock is not the
broker's. This one reads into a buffer that connections share, no more than the protocol asks for,
and leaves it to the protocol how long a client may take.
"""

from __future__ import annotations

import asyncio
import logging
import ssl

from pulsarx.access.listening import free_from_itself

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HANDSHAKE_READ_SIZE = 8 << 10  # bytes that are read at a time until it is done
HANDSHAKE_SIZE_MAX = 24 << 10  # bytes that a client's part of it may have
_log = logging.getLogger("pulsarx")


class TlsTransport(asyncio.BufferedProtocol):
    """Called by the loop."""

    def __init__(
        self, protocol: asyncio.BufferedProtocol, context: ssl.SSLContext, read_buffer: memoryview
    ) -> None:
        """read_buffer: of all connections of the loop: it is filled, and emptied at once."""
        self._protocol: Any = protocol
        self._read_buffer = read_buffer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: Any = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._extra: dict[str, Any] = {"sslcontext": context}
        self._transport: Any = None
        self._is_shaken = False  # the handshake is done
        self._handshake_size = 0
        self._reads = True
        self._is_over = False  # nothing more is read

    # As the protocol of the socket ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._protocol.connection_made(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        if not self._is_shaken:
            return self._read_buffer[:HANDSHAKE_READ_SIZE]
        return self._read_buffer[: len(self._protocol.get_buffer(sizehint))]

    def buffer_updated(self, size: int) -> None:
        if self._is_over:
            return
        self._incoming.write(self._read_buffer[:size])
        if not self._is_shaken:
            self._handshake_size += size
        self._go_on()

    def eof_received(self) -> None:
        """The transport closes."""

    def connection_lost(self, error: Exception | None) -> None:
        self._is_over = True
        self._protocol.connection_lost(error)
        free_from_itself(self._transport)
        self._protocol = None  # which refers to this

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    # What comes -----------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Do what came, as long as the protocol reads."""
        try:
            if self._is_shaken or self._shake():
                self._decrypt()
        except ssl.SSLError as error:
            self._fail(f"TLS: {error.reason or error}")
        self._flush()

    def _shake(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            if self._handshake_size >= HANDSHAKE_SIZE_MAX:
                self._fail(f"TLS: a handshake of more than {HANDSHAKE_SIZE_MAX} bytes")
            return False
        self._is_shaken = True
        self._extra["certificate_name"] = _name_of(self._tls.getpeercert())
        return True

    def _decrypt(self) -> None:
        while self._reads and not self._is_over:
            buffer = self._protocol.get_buffer(-1)
            size, ended = 0, False
            while size < len(buffer):
                try:
                    found: int = self._tls.read(len(buffer) - size, buffer[size:])
                except ssl.SSLWantReadError:
                    break
                except ssl.SSLZeroReturnError:
                    found = 0
                if not found:
                    ended = True
                    break
                size += found
            if size:
                self._protocol.buffer_updated(size)
            if ended:
                self._is_over = True
                self.close()
            if size < len(buffer):
                return

    def _fail(self, reason: str) -> None:
        _log.warning(
            "the connection from %s was closed: %s", self.get_extra_info("peername"), reason
        )
        self._is_over = True
        self._flush()  # the alert
        self._transport.close()

    def _flush(self) -> None:
        if self._outgoing.pending and not self._transport.is_closing():
            self._transport.write(self._outgoing.read())

    # As the transport of the protocol -------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """The extra information of a transport; `certificate_name`: the common name in the client's
        certificate, which was verified; None: it has none, or the handshake is not done."""
        if name in self._extra:
            return self._extra[name]
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._reads = False
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._reads = True
        self._transport.resume_reading()
        if self._incoming.pending or self._tls.pending():
            asyncio.get_running_loop().call_soon(self._go_on_later)

    def _go_on_later(self) -> None:
        if not self._is_over:
            self._go_on()

    def write(self, data: bytes) -> None:
        if data and self._is_shaken and not self.is_closing():
            self._tls.write(data)
            self._flush()

    def writelines(self, parts: list[bytes]) -> None:
        self.write(b"".join(parts))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        found: int = self._transport.get_write_buffer_size()
        return found

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    def is_closing(self) -> bool:
        found: bool = self._transport.is_closing()
        return found

    def close(self) -> None:
        """Hang up when what was written is taken."""
        if self._is_shaken and not self.is_closing():
            try:
                self._tls.unwrap()
            except ssl.SSLError:
                pass  # the peer's part of the farewell is not waited for
            self._flush()
        self._is_over = True
        self._transport.close()

    def abort(self) -> None:
        self._is_over = True
        self._transport.abort()


def _name_of(certificate: Any) -> str | None:
    """The one common name of a certificate's subject."""
    found = [
        value
        for part in (certificate or {}).get("subject", ())
        for name, value in part
        if name == "commonName"
    ]
    return found[0] if len(found) == 1 else None
