"""Tokens, and keys that sign them, made for a test."""

from __future__ import annotations

import base64
import json
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

SECRET = bytes(range(64))
SECRET_TEXT = base64.b64encode(SECRET).decode()


def token(role: object = "role", key: Any = SECRET, algorithm: str = "HS256", **more: Any) -> str:
    """more: other claims."""
    claims = {} if role is None else {"sub": role}
    # PyJWT checks what it signs; a forger does not.
    text = jwt.PyJWS().encode(json.dumps({**claims, **more}).encode(), key, algorithm)
    return text


def part(value: object) -> str:
    """A part of a token."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


def ec_key(curve: ec.EllipticCurve | None = None) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(curve or ec.SECP256R1())


def public_pem(key: Any) -> bytes:
    found: bytes = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return found


def public_der(key: Any) -> bytes:
    found: bytes = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return found


def private_pem(key: Any) -> bytes:
    found: bytes = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return found
