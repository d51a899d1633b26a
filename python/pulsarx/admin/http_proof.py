"""The credentials by which a client of the admin REST API proves who it is, and the servers it
trusts."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.options.authentication import (
    AuthenticationBasic,
    AuthenticationTLS,
    AuthenticationToken,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

    from pulsarx.options.authentication import Authentication


class Proof:
    """Any thread may call."""

    def __init__(
        self, authentication: Authentication | None, tls_trust_certs_file_path: str | None
    ) -> None:
        """OperationNotSupported: HTTP has no such authentication."""
        known = (AuthenticationToken, AuthenticationBasic, AuthenticationTLS)
        if authentication is not None and not isinstance(authentication, known):
            raise errors.OperationNotSupported(
                detail=f"{authentication!r} over HTTP; give AuthenticationToken, "
                "AuthenticationBasic or AuthenticationTLS"
            )
        self._authentication = authentication
        self._trusted = tls_trust_certs_file_path

    def headers(self) -> dict[str, str]:
        """AuthenticationError: the token, or the name and password, cannot stand in a header."""
        given = self._authentication
        if isinstance(given, AuthenticationToken):
            token = given._parameters["token"]
            text = str(token() if callable(token) else token).strip()
            if not text.isascii() or not text.isprintable():
                raise errors.AuthenticationError(detail="the token is no text of ASCII")
            return {"Authorization": f"Bearer {text}"}
        if isinstance(given, AuthenticationBasic):
            import base64

            user, password = given._parameters["username"], given._parameters["password"]
            proof = base64.b64encode(f"{user}:{password}".encode()).decode()
            return {"Authorization": f"Basic {proof}"}
        return {}

    def context(self) -> ssl.SSLContext:
        """InvalidConfiguration: a file cannot be used."""
        import ssl

        given = self._authentication
        try:
            context = ssl.create_default_context(cafile=self._trusted)
            if isinstance(given, AuthenticationTLS):
                names = ("certificate_path", "private_key_path")
                context.load_cert_chain(*(str(given._parameters[name]) for name in names))
        except OSError as error:
            raise errors.InvalidConfiguration(detail=f"the certificates: {error}") from error
        return context
