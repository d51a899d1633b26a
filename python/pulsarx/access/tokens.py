"""Tokens: JSON Web Tokens signed by a holder of the key."""

from __future__ import annotations

import base64
import binascii
import os
from urllib.parse import unquote_to_bytes

from pulsarx import errors
from pulsarx._pycore.ground.file_system import open_descriptor
from pulsarx.access.identity import Identity
from pulsarx.ground.extras import optional_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.access.access_settings import AccessSettings

_SECRET_SIZE_MIN = 32  # bytes: as Pulsar, what HS256 asks for
_RSA_BITS_MIN = 2048
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_CALLER = "authentication by tokens"


class TokenVerifier:
    """Any thread may call."""

    def __init__(self, settings: AccessSettings) -> None:
        """InvalidConfiguration: the key cannot be used. ImportError: a package is missing."""
        self._jwt = optional_module("jwt", "serve", _CALLER)
        self._claim = settings.token_auth_claim
        self._audience = settings.token_audience
        self._audience_claim = settings.token_audience_claim
        if settings.token_secret_key is not None:
            self._key: Any = _read("token_secret_key", settings.token_secret_key)
            self._algorithms = ["HS256", "HS384", "HS512"]
            if len(self._key) < _SECRET_SIZE_MIN:
                raise errors.InvalidConfiguration(
                    detail=f"token_secret_key has {len(self._key)} bytes; at least "
                    f"{_SECRET_SIZE_MIN}"
                )
            # The library refuses such too, but at the first token.
            if self._key.lstrip().startswith((b"-----BEGIN", b"ssh-")):
                raise errors.InvalidConfiguration(
                    detail="token_secret_key is a key of a pair; give it as token_public_key"
                )
        else:
            assert settings.token_public_key is not None
            data = _read("token_public_key", settings.token_public_key)
            self._key, self._algorithms = _public_key(data)

    def verify(self, token: str, now_ms: int) -> Identity:
        """AuthenticationError: it is none of ours, or does not hold now."""
        # Times are those of the broker's clock. What a token says of its algorithm only chooses
        # among those that the key is for.
        unchecked = ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
        options = {f"verify_{name}": False for name in unchecked}
        try:
            found = self._jwt.decode(token, self._key, algorithms=self._algorithms, options=options)
        except self._jwt.exceptions.PyJWTError as error:
            raise errors.AuthenticationError(detail=f"the token: {error}") from error
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise errors.AuthenticationError(detail=f"the token cannot be read: {error}") from error
        expires_ms = _milliseconds(found, "exp")
        if expires_ms is not None and now_ms >= expires_ms:
            raise errors.AuthenticationError(detail="the token has expired")
        begins_ms = _milliseconds(found, "nbf")
        if begins_ms is not None and now_ms < begins_ms:
            raise errors.AuthenticationError(detail="the token does not hold yet")
        if self._audience is not None:
            said = found.get(self._audience_claim)
            if self._audience not in (said if isinstance(said, list) else [said]):
                raise errors.AuthenticationError(detail="the token is not for this audience")
        role = found.get(self._claim)
        if isinstance(role, list):
            role = role[0] if role else None
        if not isinstance(role, str) or not role:
            raise errors.AuthenticationError(
                detail=f"the token has no role: no text as {self._claim}"
            )
        if not role.isprintable():
            raise errors.AuthenticationError(
                detail="the token's role has characters that cannot be shown"
            )
        return Identity(role, expires_ms)


def _milliseconds(claims: dict[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1 << 40:
        raise errors.AuthenticationError(detail=f"the token's {name} is no time")
    return int(value * 1000)


def _read(name: str, given: str) -> bytes:
    """A key, given as Pulsar's broker takes it."""
    try:
        if given.startswith("data:"):
            head, comma, data = given[5:].partition(",")
            if not comma:
                raise ValueError("data: without a comma")
            raw = unquote_to_bytes(data)
            is_base64 = head.endswith(";base64")
            return base64.b64decode(raw, validate=True) if is_base64 else raw
        path = os.fsdecode(unquote_to_bytes(given[7:])) if given.startswith("file://") else given
        if given.startswith("file://") or os.path.isfile(path):
            with open(path, "rb", opener=open_descriptor) as file:
                return file.read()
        return base64.b64decode(given, validate=True)
    except (OSError, ValueError, binascii.Error) as error:
        if isinstance(error, OSError) and given.startswith("file://"):
            raise errors.InvalidConfiguration(
                detail=f"{name}: read {path}: {error.strerror}; put the key there, readable for "
                "this user"
            ) from None
        # The value itself may be the secret.
        raise errors.InvalidConfiguration(
            detail=f"{name} is neither a file that can be read, nor base64: {type(error).__name__}"
        ) from None


def _public_key(data: bytes) -> tuple[Any, list[str]]:
    """The key, and the algorithms that it is for."""
    optional_module("cryptography", "serve", _CALLER)
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    is_text = data.lstrip().startswith(b"-----BEGIN")
    load = serialization.load_pem_public_key if is_text else serialization.load_der_public_key
    try:
        key = load(data)
    except Exception as error:
        raise errors.InvalidConfiguration(
            detail=f"token_public_key is no public key: {error}"
        ) from error
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= _RSA_BITS_MIN:
        return key, [f"{kind}{bits}" for kind in ("RS", "PS") for bits in (256, 384, 512)]
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return key, [_CURVES[key.curve.name]]
    raise errors.InvalidConfiguration(
        detail=f"token_public_key must be RSA of {_RSA_BITS_MIN} bits or more, or EC on "
        f"{', '.join(_CURVES)}"
    )
