"""The authentication classes of the official client. No process boundary is crossed, so they check
and keep their arguments. What is plainly no authentication makes the calls of a client raise
AuthenticationError, as there; nothing else has an effect, and no file that is named is read.
"""

from __future__ import annotations

from pulsarx.errors import OperationNotSupported
from pulsarx.options.argument_check import check_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_JAVA = "org.apache.pulsar.client.impl.auth."
# The plugins that the official client has within itself.
PLUGINS = {
    "tls": "tls",
    f"{_JAVA}AuthenticationTls": "tls",
    "token": "token",
    f"{_JAVA}AuthenticationToken": "token",
    "basic": "basic",
    f"{_JAVA}AuthenticationBasic": "basic",
    "athenz": "athenz",
    f"{_JAVA}AuthenticationAthenz": "athenz",
    "oauth2token": "oauth2",
    f"{_JAVA}oauth2.AuthenticationOAuth2": "oauth2",
}
ATHENZ_NEEDS = ("tenantDomain", "tenantService", "providerDomain", "privateKey", "ztsUrl")


class Authentication:
    """Named library and parameters. Base of the others."""

    problem: str | None = None
    """Why no broker would take it; None: nothing is wrong with it. Names no secret."""

    def __init__(self, dynamicLibPath: str, authParamsString: str) -> None:
        """Keep the name of a plugin and its parameters. What no broker would take makes the calls
        of a client raise AuthenticationError.

        Args:
            dynamicLibPath: One of PLUGINS, or the file of a library, which is not loaded.
            authParamsString: What the plugin wants, mostly as JSON.

        Raises:
            ValueError: An argument is no str.
            RuntimeError: The parameters of `basic` are not JSON, or lack a field.
        """
        check_type(str, dynamicLibPath, "dynamicLibPath")
        check_type(str, authParamsString, "authParamsString")
        plugin = PLUGINS.get(dynamicLibPath)
        if plugin == "basic":
            AuthenticationBasic(auth_params_string=authParamsString)
        elif plugin in ("athenz", "oauth2"):
            self.problem: str | None = _problem_of(plugin, authParamsString)
        elif plugin is None and not _is_file(dynamicLibPath):
            self.problem = f"there is no authentication plugin {dynamicLibPath!r:.200}"
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
        """Keep the paths of a certificate and its key; they are not read here.

        Args:
            certificate_path: The path of the certificate (PEM).
            private_key_path: The path of its key (PEM).

        Raises:
            ValueError: An argument is no str.
        """
        check_type(str, certificate_path, "certificate_path")
        check_type(str, private_key_path, "private_key_path")
        self._keep("tls", certificate_path=certificate_path, private_key_path=private_key_path)


class AuthenticationToken(Authentication):
    """A token, or a function that returns one."""

    def __init__(self, token: str | Callable[[], str]) -> None:
        """Keep a token.

        Args:
            token: The token, or a function that returns it.

        Raises:
            ValueError: It is neither.
        """
        if not isinstance(token, str) and not callable(token):
            raise ValueError(
                "Argument token is expected to be of type 'str' or a function returning 'str'"
            )
        self._keep("token", token=token)


class AuthenticationAthenz(Authentication):
    """JSON parameters of Athenz."""

    def __init__(self, auth_params_string: str) -> None:
        """Keep the parameters of Athenz. Where a field is missing the calls of a client raise
        AuthenticationError.

        Args:
            auth_params_string: A JSON object with tenantDomain, tenantService, providerDomain,
                privateKey and ztsUrl.

        Raises:
            ValueError: It is no str.
        """
        check_type(str, auth_params_string, "auth_params_string")
        self.problem: str | None = _problem_of("athenz", auth_params_string)
        self._keep("athenz", parameters=auth_params_string)


class AuthenticationOauth2(Authentication):
    """JSON parameters of OAuth 2.0."""

    def __init__(self, auth_params_string: str) -> None:
        """Keep the parameters of OAuth 2.0. Where a field is missing the calls of a client raise
        AuthenticationError.

        Args:
            auth_params_string: A JSON object with issuer_url, and private_key or client_id and
                client_secret.

        Raises:
            ValueError: It is no str.
        """
        check_type(str, auth_params_string, "auth_params_string")
        self.problem: str | None = _problem_of("oauth2", auth_params_string)
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
        """Keep a name and a password.

        Args:
            username: The name.
            password: The password.
            method: The name of the method at the broker.
            auth_params_string: A JSON object with username and password, and method if it is not
                `basic`, in place of the others.

        Raises:
            ValueError: An argument is no str.
            RuntimeError: auth_params_string is not JSON, or lacks a field.
        """
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


def _is_file(path: str) -> bool:
    import os

    return "\0" not in path and os.path.isfile(path)


def _problem_of(method: str, parameters: str) -> str | None:
    """Say what is missing in the JSON text of a method's parameters."""
    import json

    try:
        given = json.loads(parameters)
    except ValueError:
        return f"the parameters of {method} are not JSON"
    if not isinstance(given, dict):
        return f"the parameters of {method} are no JSON object"
    if method == "athenz":
        missing = [name for name in ATHENZ_NEEDS if not given.get(name)]
    else:
        missing = [] if given.get("issuer_url") else ["issuer_url"]
        if not given.get("private_key") and not (
            given.get("client_id") and given.get("client_secret")
        ):
            missing.append("private_key, or client_id and client_secret")
    return f"the parameters of {method} lack {', '.join(missing)}" if missing else None


class AbstractCryptoKeyReader:
    """Base of the key readers. As in the official client nobody else can derive one."""

    def getPublicKey(self, name: str, metadata: dict[str, str], info: object) -> NoReturn:
        """Refuse: it fills a C++ object, of which there is none.

        Args:
            name: The name of the key.
            metadata: What is told of the key.
            info: What would be filled.

        Raises:
            OperationNotSupported: Always; public_key_path says where the key is.
        """
        raise self._refused("getPublicKey")

    def getPrivateKey(self, name: str, metadata: dict[str, str], info: object) -> NoReturn:
        """Refuse: it fills a C++ object, of which there is none.

        Args:
            name: The name of the key.
            metadata: What is told of the key.
            info: What would be filled.

        Raises:
            OperationNotSupported: Always; private_key_path says where the key is.
        """
        raise self._refused("getPrivateKey")

    def _refused(self, name: str) -> OperationNotSupported:
        return OperationNotSupported(
            detail=f"{name} fills a C++ object, of which there is none; the paths of the keys are "
            "in public_key_path and private_key_path"
        )


class CryptoKeyReader(AbstractCryptoKeyReader):
    """Paths of a public and a private RSA key (PEM), for encrypting payloads from end to end. They
    are read when they are needed: the public one to encrypt, the private one to decrypt."""

    def __init__(self, public_key_path: str, private_key_path: str) -> None:
        """Keep the paths of two keys, which are read when they are needed.

        Args:
            public_key_path: The key that encrypts (PEM); of no importance where nothing does.
            private_key_path: The key that decrypts (PEM); of no importance where nothing does.

        Raises:
            ValueError: An argument is no str.
        """
        check_type(str, public_key_path, "public_key_path")
        check_type(str, private_key_path, "private_key_path")
        self.public_key_path = public_key_path
        self.private_key_path = private_key_path
