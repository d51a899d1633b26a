"""The access tokens that an OAuth 2.0 issuer gives for client credentials, for HTTP. The official
client fetches its own."""

from __future__ import annotations

import json
from urllib.parse import unquote, urlencode, urlsplit

from pulsarx import errors
from pulsarx._pycore.ground.file_system import hold_low_descriptors, open_descriptor
from pulsarx.clock import system_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from urllib.parse import SplitResult

_TIMEOUT_SECONDS = 30.0
_ANSWER_MAX = 1 << 20  # bytes
_DATA = "data:application/json;base64,"
_SECONDS_MAX = 1e9
_USED_SHARE_MS = 800  # of each second that a token is good for

# Those of this process, by parameters and authorities: the token, and when another one is fetched.
_kept: dict[tuple[str, str | None], tuple[str, int]] = {}


def issued_token(parameters: str, trusted: str | None) -> str:
    """The token for the parameters of AuthenticationOauth2: the one this process has, or a new one.

    trusted: authorities of the issuer's certificate, besides those of the system.
    InvalidConfiguration: the file of the key cannot be used. AuthenticationError: the issuer
    refuses. ConnectError: it cannot be reached.
    """
    key = parameters, trusted
    found = _kept.get(key)
    now = system_clock().now_ms()
    if found is None or found[1] <= now:
        token, seconds = _fetch(json.loads(parameters), trusted)
        _kept.clear()  # there is seldom another, and what has expired is a secret as well
        found = _kept[key] = token, now + round(seconds * _USED_SHARE_MS)
    return found[0]


def _fetch(given: dict[str, Any], trusted: str | None) -> tuple[str, float]:
    issuer = str(given["issuer_url"]).rstrip("/")
    secrets = _secrets_of(given)
    wanted = {
        "grant_type": "client_credentials",
        **secrets,
        **{name: str(given[name]) for name in ("audience", "scope") if given.get(name)},
    }
    found = _ask(f"{issuer}/.well-known/openid-configuration", None, issuer, trusted)
    endpoint = found.get("token_endpoint")
    if not isinstance(endpoint, str):
        raise errors.AuthenticationError(detail=f"the issuer {issuer} names no token_endpoint")
    if _parts_of(issuer).scheme == "https" and _parts_of(endpoint).scheme != "https":
        raise errors.AuthenticationError(
            detail=f"the issuer {issuer} names a token_endpoint that is not https; the secret is "
            "not sent there"
        )
    answer = _ask(endpoint, urlencode(wanted).encode(), issuer, trusted)
    token = answer.get("access_token")
    if not isinstance(token, str):
        raise errors.AuthenticationError(detail=f"the issuer {issuer} answered without a token")
    return token, _seconds_of(answer.get("expires_in"))


def _seconds_of(given: Any) -> float:
    """How long a token is good for; some issuers write it as text. 0: not said, as far as it can be
    told, so that the next request asks for another one."""
    try:
        seconds = float(given)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(seconds, _SECONDS_MAX) if seconds > 0 else 0.0  # of NaN as well


def _secrets_of(given: dict[str, Any]) -> dict[str, str]:
    """The id and secret of the client: given, or in the file of its key."""
    names = ("client_id", "client_secret")
    place = given.get("private_key")
    if not place:
        return {name: str(given[name]) for name in names}
    text = str(place)
    try:
        if text.startswith("data:"):
            shown = "private_key as data:"
            if not text.startswith(_DATA):
                raise ValueError(f"it must be {_DATA}...")
            import base64

            data = base64.b64decode(text.removeprefix(_DATA), validate=True)
        else:
            path = unquote(urlsplit(text).path) if text.startswith("file:") else text
            shown = f"private_key {path}"
            with open(path, "rb", opener=open_descriptor) as file:
                data = file.read(_ANSWER_MAX)
    except (OSError, ValueError) as error:
        import os

        raise errors.InvalidConfiguration(
            detail=f"{shown} of OAuth 2.0 cannot be read on {os.uname().nodename}: "
            f"{getattr(error, 'strerror', None) or error}"
        ) from None
    try:
        document = json.loads(data)
        return {name: str(document[name]) for name in names}
    except (ValueError, LookupError, TypeError):
        raise errors.InvalidConfiguration(
            detail=f"{shown} of OAuth 2.0 is no JSON object with client_id and client_secret"
        ) from None


def _parts_of(url: str) -> SplitResult:
    """AuthenticationError: it is no URL of HTTP; it is not shown, as there may be secrets in it."""
    try:
        parts = urlsplit(url)
        is_right = bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    except ValueError:
        is_right = False
    if not is_right or parts.scheme not in ("http", "https"):
        raise errors.AuthenticationError(
            detail="issuer_url, and the token_endpoint that the issuer names, must be http://host "
            "or https://host"
        )
    return parts


def _ask(url: str, form: bytes | None, issuer: str, trusted: str | None) -> dict[str, Any]:
    import http.client
    import ssl

    parts = _parts_of(url)
    options: dict[str, Any] = {"timeout": _TIMEOUT_SECONDS}
    kind: type[http.client.HTTPConnection] = http.client.HTTPConnection
    if parts.scheme == "https":
        kind = http.client.HTTPSConnection
        context = options["context"] = ssl.create_default_context()
        if trusted:
            try:
                context.load_verify_locations(trusted)
            except OSError as error:
                raise errors.InvalidConfiguration(
                    detail=f"the certificates {trusted}: {error}"
                ) from error
    place = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {"Accept": "application/json"}
    if form is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    hold_low_descriptors()
    connection = kind(parts.netloc, **options)
    try:
        connection.request("GET" if form is None else "POST", place, form, headers)
        answer = connection.getresponse()
        status, data = answer.status, answer.read(_ANSWER_MAX)
    except (OSError, http.client.HTTPException) as error:
        if errors.raised_by_handler(error):
            raise
        told = str(error) or type(error).__name__
        raise errors.ConnectError(detail=f"the issuer {issuer}: {told}") from None
    finally:
        connection.close()
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if status != 200 or not isinstance(found, dict):
        # Of the answer the code alone: what else it says may repeat what was sent.
        code = str(found.get("error", "")) if isinstance(found, dict) else ""
        told = f" ({code})" if code.isidentifier() and len(code) < 80 else ""
        raise errors.AuthenticationError(
            detail=f"the issuer {issuer} gave no token: status {status}{told}"
        )
    return found
