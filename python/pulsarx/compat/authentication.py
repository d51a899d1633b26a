"""The authentication classes of `_pulsar`, which are made by `create`."""

from __future__ import annotations

from pulsarx.errors import OperationNotSupported
from pulsarx.options import authentication as ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


class Authentication(ours.Authentication):
    """A plugin by its name. Base of the others."""

    @staticmethod
    def create(name: str, parameters: str) -> Authentication:
        return Authentication(name, parameters)

    def getAuthMethodName(self) -> str:
        return self._method

    def getAuthData(self, data: Any) -> NoReturn:
        raise OperationNotSupported(
            detail="getAuthData fills a C++ object, of which there is none; nothing is sent to a "
            "broker"
        )


class AuthenticationTLS(ours.AuthenticationTLS, Authentication):
    """A certificate and its key."""

    @staticmethod
    def create(certificate_path: str, private_key_path: str) -> AuthenticationTLS:
        return AuthenticationTLS(certificate_path, private_key_path)


class AuthenticationToken(ours.AuthenticationToken, Authentication):
    """A token, or a function that returns one."""

    @staticmethod
    def create(token: str | Callable[[], str]) -> AuthenticationToken:  # type: ignore[override]
        return AuthenticationToken(token)


class AuthenticationAthenz(ours.AuthenticationAthenz, Authentication):
    """JSON parameters of Athenz."""

    @staticmethod
    def create(parameters: str) -> AuthenticationAthenz:  # type: ignore[override]
        return AuthenticationAthenz(parameters)


class AuthenticationOauth2(ours.AuthenticationOauth2, Authentication):
    """JSON parameters of OAuth 2.0."""

    @staticmethod
    def create(parameters: str) -> AuthenticationOauth2:  # type: ignore[override]
        return AuthenticationOauth2(parameters)


class AuthenticationBasic(ours.AuthenticationBasic, Authentication):
    """Name, password and method, or one JSON text."""

    @staticmethod
    def create(username: str, *others: str) -> AuthenticationBasic:
        if not others:
            return AuthenticationBasic(auth_params_string=username)
        password, method = others
        return AuthenticationBasic(username, password, method)
