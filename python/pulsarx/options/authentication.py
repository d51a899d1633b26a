"""The authentication classes of the official client. No process boundary is crossed, so they check
and keep their arguments and have no effect.
"""

from __future__ import annotations

from pulsarx.options.argument_check import check_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Authentication:
    """Named library and parameters. Base of the others."""

    def __init__(self, dynamicLibPath: str, authParamsString: str) -> None:
        check_type(str, dynamicLibPath, "dynamicLibPath")
        check_type(str, authParamsString, "authParamsString")
        self._keep("custom", library=dynamicLibPath, parameters=authParamsString)

    def _keep(self, method: str, **parameters: object) -> None:
        self._method = method
        self._parameters = parameters

    def __repr__(self) -> str:
        # Never the parameters: they are secrets, and this ends up in logs.
        return f"<{type(self).__name__} {self._method}>"


class AuthenticationTLS(Authentication):
    """A certificate and its key."""

    def __init__(self, certificate_path: str, private_key_path: str) -> None:
        check_type(str, certificate_path, "certificate_path")
        check_type(str, private_key_path, "private_key_path")
        self._keep("tls", certificate_path=certificate_path, private_key_path=private_key_path)


class AuthenticationToken(Authentication):
    """A token, or a function that returns one."""

    def __init__(self, token: str | Callable[[], str]) -> None:
        if not isinstance(token, str) and not callable(token):
            raise ValueError(
                f"token must be str or a function that returns one, not {type(token).__name__}"
            )
        self._keep("token", token=token)


class AuthenticationAthenz(Authentication):
    """JSON parameters of Athenz."""

    def __init__(self, auth_params_string: str) -> None:
        check_type(str, auth_params_string, "auth_params_string")
        self._keep("athenz", parameters=auth_params_string)


class AuthenticationOauth2(Authentication):
    """JSON parameters of OAuth 2.0."""

    def __init__(self, auth_params_string: str) -> None:
        check_type(str, auth_params_string, "auth_params_string")
        self._keep("oauth2", parameters=auth_params_string)


class AuthenticationBasic(Authentication):
    """Name and password, or a JSON text that holds both."""

    def __init__(
        self,
        username: str | None = None,
        password: str | None = None,
        method: str = "basic",
        auth_params_string: str | None = None,
    ) -> None:
        if auth_params_string is not None:
            check_type(str, auth_params_string, "auth_params_string")
            username, password, method = self._parse(auth_params_string)
        check_type(str, username, "username")
        check_type(str, password, "password")
        check_type(str, method, "method")
        self._keep(method, username=username, password=password)

    @staticmethod
    def _parse(auth_params_string: str) -> tuple[str, str, str]:
        import json

        # The official client raises RuntimeError for both; the text itself is secret.
        try:
            given = json.loads(auth_params_string)
        except ValueError:
            raise RuntimeError("auth_params_string is not JSON") from None
        if not isinstance(given, dict) or "username" not in given or "password" not in given:
            raise RuntimeError("auth_params_string needs the fields username and password")
        return given["username"], given["password"], given.get("method", "basic")


class CryptoKeyReader:
    """Paths of a public and a private RSA key (PEM), for encrypting payloads from end to end. They
    are read when they are needed: the public one to encrypt, the private one to decrypt."""

    def __init__(self, public_key_path: str, private_key_path: str) -> None:
        check_type(str, public_key_path, "public_key_path")
        check_type(str, private_key_path, "private_key_path")
        self.public_key_path = public_key_path
        self.private_key_path = private_key_path
