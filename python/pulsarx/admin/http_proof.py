"""The credentials by which a client of the admin REST API proves who it is, and the servers it
trusts."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.options.authentication import (
    AuthenticationBasic,
    AuthenticationOauth2,
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
        self,
        authentication: Authentication | None,
        tls_trust_certs_file_path: str | None,
        tls_certificate: tuple[str, str] | None = None,
        tls_allow_insecure_connection: bool = False,
        tls_validate_hostname: bool = True,
    ) -> None:
        """tls_certificate: the files of the client's certificate and its key, besides whatever
        proves who it is. OperationNotSupported: HTTP has no such authentication."""
        known = (AuthenticationToken, AuthenticationBasic, AuthenticationTLS, AuthenticationOauth2)
        if authentication is not None and not isinstance(authentication, known):
            raise errors.OperationNotSupported(
                detail=f"{authentication!r} over HTTP; give AuthenticationToken, "
                "AuthenticationBasic, AuthenticationTLS or AuthenticationOauth2"
            )
        if isinstance(authentication, AuthenticationTLS):
            named = authentication._parameters
            tls_certificate = str(named["certificate_path"]), str(named["private_key_path"])
        self._authentication = authentication
        self._trusted = tls_trust_certs_file_path
        self._certificate = tls_certificate
        self._is_insecure = tls_allow_insecure_connection
        self._validates_hostname = tls_validate_hostname

    def headers(self) -> dict[str, str]:
        """AuthenticationError: the token, or the name and password, cannot stand in a header; the
        issuer gives none. ConnectError: it cannot be reached."""
        given = self._authentication
        if isinstance(given, AuthenticationOauth2):
            if given.problem is not None:
                raise errors.AuthenticationError(detail=given.problem)
            from pulsarx.admin.issued_token import issued_token

            parameters = str(given._parameters["parameters"])
            given = AuthenticationToken(issued_token(parameters, self._trusted))
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

        try:
            context = ssl.create_default_context(cafile=self._trusted)
            if self._is_insecure or not self._validates_hostname:
                context.check_hostname = False
            if self._is_insecure:
                context.verify_mode = ssl.CERT_NONE
            if self._certificate is not None:
                context.load_cert_chain(*self._certificate)
        except OSError as error:
            raise errors.InvalidConfiguration(
                detail=f"the certificates {', '.join(self._files())}: {error}"
            ) from error
        return context

    def _files(self) -> list[str]:
        return [each for each in (self._trusted, *(self._certificate or ())) if each]
