"""Reads from options what proves to a cluster who we are, by the names of Pulsar's Java client, and
whom we trust. Secrets are shown nowhere; files are read where they are used, in driver and tasks.
"""

from __future__ import annotations

import json
from urllib.parse import unquote, urlsplit

from pulsarx import errors
from pulsarx.options.authentication import (
    PLUGINS,
    Authentication,
    AuthenticationBasic,
    AuthenticationOauth2,
    AuthenticationTLS,
    AuthenticationToken,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TOKEN, TOKEN_FILE, BASIC, OAUTH2, TLS = "token", "token file", "basic", "oauth2", "tls"
_JAVA_NAMES = {  # of Java's client: the official client for Python
    "issuerUrl": "issuer_url",
    "privateKey": "private_key",
    "clientId": "client_id",
    "clientSecret": "client_secret",
}
_OAUTH2_NAMES = frozenset(
    ("type", "issuer_url", "private_key", "client_id", "client_secret", "audience", "scope")
)


class ClusterCredentials:
    """A value that pickles: it travels to the tasks, with its secrets; files by their paths."""

    __slots__ = ("method", "parameters", "trusted", "certificate", "is_insecure", "checks_host")

    def __init__(
        self,
        method: str | None,
        parameters: dict[str, str],
        trusted: str | None,
        certificate: tuple[str, str] | None,
        is_insecure: bool,
        checks_host: bool,
    ) -> None:
        self.method: str | None = method  # None: nothing proves it
        self.parameters: dict[str, str] = parameters
        self.trusted: str | None = trusted  # path of the authorities to trust, on every host
        self.certificate: tuple[str, str] | None = certificate  # paths of it and its key
        self.is_insecure: bool = is_insecure  # any certificate of the cluster is taken
        self.checks_host: bool = checks_host

    def __reduce__(self) -> tuple[Any, ...]:
        return ClusterCredentials, tuple(getattr(self, name) for name in self.__slots__)

    def __repr__(self) -> str:
        return f"<ClusterCredentials {self.method}>"  # no parameters

    def authentication(self) -> Authentication | None:
        """InvalidConfiguration: a file cannot be read on this host."""
        given = self.parameters
        if self.method == TOKEN:
            return AuthenticationToken(given["token"])
        if self.method == TOKEN_FILE:
            return AuthenticationToken(_read_again(given["path"]))
        if self.method == BASIC:
            return AuthenticationBasic(given["username"], given["password"])
        if self.method == OAUTH2:
            if "private_key" in given and not given["private_key"].startswith("data:"):
                read_file(_path_of(given["private_key"]), "the key file of OAuth 2.0")
            return AuthenticationOauth2(json.dumps(given))
        if self.method == TLS:
            assert self.certificate is not None
            return AuthenticationTLS(*self.certificate)
        return None

    def for_http(self) -> dict[str, Any]:
        """How HttpChannel is to speak TLS."""
        return {
            "tls_certificate": self.certificate,
            "tls_allow_insecure_connection": self.is_insecure,
            "tls_validate_hostname": self.checks_host and not self.is_insecure,
        }

    def for_client(self) -> dict[str, Any]:
        """The arguments of Client. InvalidConfiguration: a file cannot be read on this host."""
        for path in (self.trusted, *(self.certificate or ())):
            if path is not None:
                read_file(path, "the certificates")  # the official client only says it failed
        found: dict[str, Any] = {
            "authentication": self.authentication(),
            "tls_trust_certs_file_path": self.trusted,
            "tls_allow_insecure_connection": self.is_insecure,
            "tls_validate_hostname": self.checks_host and not self.is_insecure,
        }
        if self.certificate is not None:
            certificate, key = self.certificate
            found |= {"tls_certificate_file_path": certificate, "tls_private_key_file_path": key}
        return found


def credentials_of(values: dict[str, Any]) -> ClusterCredentials:
    """Read and check what options say; no file is read. ValueError: they are wrong; the text shows
    no parameter."""
    file, key = values["tlsCertificateFilePath"], values["tlsKeyFilePath"]
    if (file is None) != (key is None):
        raise ValueError("tlsCertificateFilePath and tlsKeyFilePath go together")
    certificate: tuple[str, str] | None = None if file is None else (file, key)
    name, text, token = values["authPluginClassName"], values["authParams"], values["token"]
    method: str | None = None
    parameters: dict[str, str] = {}
    if token is not None:
        if name is not None or text is not None:
            raise ValueError("give token, or authPluginClassName and authParams, not both")
        method, parameters = TOKEN, {"token": token}
    elif name is not None:
        plugin = PLUGINS.get(name)
        if plugin not in _READ:
            raise ValueError(
                f"authPluginClassName {name!r:.200} is not supported; there are "
                f"{', '.join(sorted(each for each, kind in PLUGINS.items() if kind in _READ))}"
            )
        if plugin == TLS:
            certificate = _certificate_of(text, certificate)
            method = TLS
        elif text is None:
            raise ValueError(f"authPluginClassName {name} needs authParams")
        else:
            method, parameters = _READ[plugin](text)
    elif text is not None:
        raise ValueError("authParams needs authPluginClassName, which says what they are of")
    elif certificate is not None:
        method = TLS
    if certificate is not None and not values["root"].lower().startswith("pulsar+ssl://"):
        raise ValueError("a client's certificate is shown by TLS alone; root must be pulsar+ssl://")
    insecure, host = values["tlsAllowInsecureConnection"], values["tlsHostnameVerificationEnable"]
    trusted = values["tlsTrustCertsFilePath"]
    return ClusterCredentials(method, parameters, trusted, certificate, insecure, host)


# Parameters ---------------------------------------------------------------------------------------


def _token(text: str) -> tuple[str, dict[str, str]]:
    plain = text.strip()
    if plain.startswith("{"):
        plain = _document(plain, TOKEN, ("token",))["token"]
    if plain.startswith("file:"):
        path = _path_of(plain)
        if not path.startswith("/"):
            raise ValueError("authParams of token name a file by file:///path, which is absolute")
        return TOKEN_FILE, {"path": path}
    if plain.startswith("env:"):
        raise ValueError(
            "authParams of token: env: is not supported, for tasks have another environment; write "
            "file:///path of a file on every host, or token:..."
        )
    found = plain.removeprefix("token:").strip()
    if not found:
        raise ValueError("authParams of token are empty; write token:... or file:///path")
    return TOKEN, {"token": found}


def _basic(text: str) -> tuple[str, dict[str, str]]:
    given = _document(text, BASIC, ())
    user, password = given.get("userId") or given.get("username"), given.get("password")
    if not user or not password:
        raise ValueError("authParams of basic need the fields userId and password")
    return BASIC, {"username": user, "password": password}


def _oauth2(text: str) -> tuple[str, dict[str, str]]:
    given = {_JAVA_NAMES.get(k, k): each for k, each in _document(text, OAUTH2, ()).items()}
    unknown = sorted(given.keys() - _OAUTH2_NAMES)
    if unknown:
        raise ValueError(
            f"authParams of oauth2 have the field {unknown[0]!r:.80}; there are type, issuerUrl, "
            "privateKey, clientId, clientSecret, audience, scope"
        )
    if given.get("type", "client_credentials") != "client_credentials":
        raise ValueError("authParams of oauth2: type is client_credentials alone")
    problem = AuthenticationOauth2(json.dumps(given)).problem
    if problem is not None:
        raise ValueError(f"authParams: {problem}")
    try:
        issuer = urlsplit(given["issuer_url"])
        is_right = bool(issuer.hostname) and "@" not in issuer.netloc and issuer.port != 0
    except ValueError:  # whose text may show a password in it
        is_right = False
    if not is_right or issuer.scheme not in ("http", "https"):
        raise ValueError("authParams of oauth2: issuerUrl must be http://host or https://host")
    key = given.get("private_key")
    if key and not key.startswith("data:"):
        path = _path_of(key)
        if not path.startswith("/"):
            raise ValueError("authParams of oauth2: privateKey must be file:///path, or data:")
        given["private_key"] = f"file://{path}"
    return OAUTH2, given


_READ: dict[str, Callable[[str], tuple[str, dict[str, str]]]] = {
    "token": _token,
    "basic": _basic,
    "oauth2": _oauth2,
    "tls": lambda text: (TLS, {}),
}


def _certificate_of(text: str | None, beside: tuple[str, str] | None) -> tuple[str, str]:
    """The files that authParams name, as JSON or as tlsCertFile:path,tlsKeyFile:path."""
    if text is None:
        if beside is None:
            raise ValueError(
                "authPluginClassName tls needs tlsCertificateFilePath and tlsKeyFilePath, or "
                "authParams"
            )
        return beside
    if beside is not None:
        raise ValueError("give tlsCertificateFilePath and tlsKeyFilePath, or authParams, not both")
    names = ("tlsCertFile", "tlsKeyFile")
    if text.strip().startswith("{"):
        found = _document(text, TLS, names)
    else:
        pairs = (each.strip().partition(":") for each in text.split(","))
        found = {name: value for name, _, value in pairs}
    if not all(found.get(name) for name in names):
        raise ValueError("authParams of tls are tlsCertFile:/path,tlsKeyFile:/path")
    certificate, key = (_path_of(found[name]) for name in names)
    if not certificate.startswith("/") or not key.startswith("/"):
        raise ValueError("authParams of tls must name absolute paths, for the tasks read them, too")
    return certificate, key


def _document(text: str, method: str, names: tuple[str, ...]) -> dict[str, str]:
    """ValueError: it is no JSON object of texts, or lacks one of the names."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise ValueError(f"authParams of {method} are no JSON object of texts")
    missing = [name for name in names if not found.get(name)]
    if missing:
        raise ValueError(f"authParams of {method} lack {', '.join(missing)}")
    return found


# Files --------------------------------------------------------------------------------------------


def _path_of(text: str) -> str:
    """The path of file:/path, file:///path, or of what is one."""
    return unquote(urlsplit(text).path) if text.startswith("file:") else text


def read_file(path: str, what: str) -> bytes:
    """InvalidConfiguration: it cannot be read; the text names host and path."""
    import os

    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError as error:
        raise errors.InvalidConfiguration(
            detail=f"{what} {path} cannot be read on {os.uname().nodename}: {error.strerror}. It "
            "is read in the driver and in every task, so each host needs it at this path"
        ) from None


def _read_again(path: str) -> Callable[[], str]:
    """A function that reads the token each time, as it is renewed. The official client calls it in
    a thread of its own, where nothing may be raised: then it is the last one."""
    last = read_file(path, "the token file").decode("ascii", "replace").strip()

    def read() -> str:
        nonlocal last
        try:
            last = read_file(path, "the token file").decode("ascii", "replace").strip() or last
        except errors.InvalidConfiguration:
            pass
        return last

    return read
