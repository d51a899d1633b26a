"""The files with which a TLS server proves who it is and checks its clients' certificates."""

from __future__ import annotations

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl


class TlsSettings:
    """A value. Files in PEM."""

    __slots__ = ("certificate_file", "key_file", "require_client_certificate", "trust_certs_file")

    def __init__(
        self,
        certificate_file: str,
        key_file: str,
        *,
        trust_certs_file: str | None = None,
        require_client_certificate: bool = False,
    ) -> None:
        """certificate_file: of the server, with what is between it and its authority. key_file: its
        private key, without a password. trust_certs_file: the authorities of clients, who are
        asked for a certificate then. require_client_certificate: a client without one is hung up
        on."""
        self.certificate_file: str = certificate_file
        self.key_file: str = key_file
        self.trust_certs_file: str | None = trust_certs_file
        self.require_client_certificate: bool = require_client_certificate
        if require_client_certificate and trust_certs_file is None:
            raise errors.InvalidConfiguration(
                detail="require client certificates: give the authorities that may sign them, "
                "trust_certs_file"
            )

    def context(self) -> ssl.SSLContext:
        """InvalidConfiguration: a file is missing, or is not what it should be."""
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        # A password would be asked for at the terminal.
        try:
            context.load_cert_chain(self.certificate_file, self.key_file, password=_no_password)
        except (OSError, ValueError) as error:
            raise errors.InvalidConfiguration(
                detail=f"the certificate {self.certificate_file} with the key {self.key_file}: "
                f"{error}"
            ) from error
        if self.trust_certs_file is not None:
            try:
                context.load_verify_locations(self.trust_certs_file)
            except (OSError, ValueError) as error:
                raise errors.InvalidConfiguration(
                    detail=f"the trusted certificates {self.trust_certs_file}: {error}"
                ) from error
            required = self.require_client_certificate
            context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
        return context


def _no_password() -> str:
    raise ValueError("the key has a password")
