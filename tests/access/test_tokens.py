"""Facts about tokens: whose are taken, and which forgeries are not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from signing import (
    SECRET,
    SECRET_TEXT,
    ec_key,
    part,
    private_pem,
    public_der,
    public_pem,
    rsa_key,
    token,
)

from pulsarx import errors
from pulsarx.access import AccessSettings
from pulsarx.access.tokens import TokenVerifier

NOW_MS = 1_700_000_000_000
NOW = NOW_MS // 1000


def verifier(**options: Any) -> TokenVerifier:
    options = options or {"token_secret_key": SECRET_TEXT}
    return TokenVerifier(AccessSettings(**options))


def of_secret(**options: Any) -> TokenVerifier:
    return verifier(token_secret_key=SECRET_TEXT, **options)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_token_signed_with_the_secret_gives_its_role(algorithm: str) -> None:
    found = verifier().verify(token("alice", algorithm=algorithm), NOW_MS)
    assert (found.role, found.expires_ms) == ("alice", None)


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS384"])
def test_a_key_pair_of_rsa_serves(algorithm: str, tmp_path: Path) -> None:
    key = rsa_key()
    (tmp_path / "pem").write_bytes(public_pem(key))
    (tmp_path / "der").write_bytes(public_der(key))
    signed = token("alice", key, algorithm)
    in_text = f"data:;base64,{base64.b64encode(public_der(key)).decode()}"
    for each in (str(tmp_path / "pem"), f"file://{tmp_path}/der", in_text):
        assert verifier(token_public_key=each).verify(signed, NOW_MS).role == "alice"


@pytest.mark.parametrize(
    ("curve", "algorithm"),
    [(ec.SECP256R1(), "ES256"), (ec.SECP384R1(), "ES384"), (ec.SECP521R1(), "ES512")],
)
def test_a_key_pair_of_elliptic_curves_serves(
    curve: ec.EllipticCurve, algorithm: str, tmp_path: Path
) -> None:
    key = ec_key(curve)
    (tmp_path / "pem").write_bytes(public_pem(key))
    checks = verifier(token_public_key=str(tmp_path / "pem"))
    assert checks.verify(token("alice", key, algorithm), NOW_MS).role == "alice"


def hs_with_public_key(public: bytes) -> str:
    """A token that claims HMAC, with the public key, which everybody has, for its secret."""
    said = f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': 'admin'})}"
    return f"{said}.{part(hmac.digest(public, said.encode(), hashlib.sha256))}"


def test_a_public_key_is_no_secret(tmp_path: Path) -> None:
    """Of HMAC and RSA confused: everybody could sign."""
    for key in (rsa_key(), ec_key()):
        (tmp_path / "pem").write_bytes(public_pem(key))
        checks = verifier(token_public_key=str(tmp_path / "pem"))
        for each in (public_pem(key), public_der(key), public_pem(key).strip()):
            with pytest.raises(errors.AuthenticationError):
                checks.verify(hs_with_public_key(each), NOW_MS)


def unsigned(algorithm: str, signature: str = "") -> str:
    return f"{part({'alg': algorithm, 'typ': 'JWT'})}.{part({'sub': 'admin'})}.{signature}"


def forgeries() -> dict[str, str]:
    true = token("admin")
    head, claims, signature = true.split(".")
    said = unsigned("HS256").rpartition(".")[0].encode()
    return {
        "none": unsigned("none"),
        "None": unsigned("None"),
        "nOnE with a signature": unsigned("nOnE", signature),
        "no algorithm": f"{part({'typ': 'JWT'})}.{claims}.{signature}",
        "HS256 without a signature": unsigned("HS256"),
        "another secret": token("admin", b"x" * 48),
        "an empty secret": unsigned("HS256", part(hmac.digest(b"", said, hashlib.sha256))),
        "other claims": f"{head}.{part({'sub': 'root'})}.{signature}",
        "a cut signature": f"{head}.{claims}.{signature[:-4]}",
        "a key of its own": token("admin", rsa_key(), "RS256"),
        "an embedded key": f"{part({'alg': 'HS256', 'jwk': {'kty': 'oct', 'k': 'eA'}})}."
        f"{claims}.{signature}",
        "critical": f"{part({'alg': 'HS256', 'crit': ['x'], 'x': 1})}.{claims}.{signature}",
        "empty": "",
        "dots": "..",
        "one part": "abc",
        "no JSON": f"{part(b'{')}.{part(b'{')}.{signature}",
        "deep JSON": f"{head}.{part(b'[' * 5000)}.{signature}",
        "a list": f"{head}.{part([1])}.{signature}",
    }


@pytest.mark.parametrize("name", forgeries())
def test_a_forged_token_is_refused(name: str) -> None:
    with pytest.raises(errors.AuthenticationError):
        verifier().verify(forgeries()[name], NOW_MS)


def test_signed_claims_that_are_no_object_are_refused() -> None:
    import jwt

    for claims in (b"[1]", b"1", b"null", b'"x"', b"[" * 5000, b"\xff"):
        with pytest.raises(errors.AuthenticationError):
            verifier().verify(jwt.PyJWS().encode(claims, SECRET, "HS256"), NOW_MS)


def test_a_token_holds_until_it_expires() -> None:
    signed = token(exp=NOW + 10)
    found = verifier().verify(signed, NOW_MS)
    assert found.expires_ms == NOW_MS + 10_000
    verifier().verify(signed, NOW_MS + 9_999)
    with pytest.raises(errors.AuthenticationError, match="expired"):
        verifier().verify(signed, NOW_MS + 10_000)


def test_a_token_holds_from_its_beginning_on() -> None:
    signed = token(nbf=NOW + 10)
    with pytest.raises(errors.AuthenticationError, match="not hold yet"):
        verifier().verify(signed, NOW_MS)
    verifier().verify(signed, NOW_MS + 10_000)


@pytest.mark.parametrize("value", ["soon", True, [1], 1e300, -1e300])
def test_an_expiry_that_is_no_time_is_refused(value: object) -> None:
    """A token that never expires would come of it."""
    with pytest.raises(errors.AuthenticationError, match="no time"):
        verifier().verify(token(exp=value), NOW_MS)


@pytest.mark.parametrize("role", [None, "", 5, [], {"a": 1}, [1]])
def test_a_token_without_a_role_is_refused(role: object) -> None:
    with pytest.raises(errors.AuthenticationError, match="no role"):
        verifier().verify(token(role), NOW_MS)


def test_the_claim_that_is_the_role_can_be_chosen() -> None:
    checks = of_secret(token_auth_claim="user")
    assert checks.verify(token("other", user="alice"), NOW_MS).role == "alice"
    assert checks.verify(token("other", user=["alice", "bob"]), NOW_MS).role == "alice"
    with pytest.raises(errors.AuthenticationError, match="no text as user"):
        checks.verify(token("other"), NOW_MS)


def test_a_token_for_another_audience_is_refused() -> None:
    checks = of_secret(token_audience="here")
    for said in ("here", ["there", "here"]):
        assert checks.verify(token(aud=said), NOW_MS).role == "role"
    for wrong in ("there", ["there"], [], None, {"here": 1}, "here "):
        with pytest.raises(errors.AuthenticationError, match="audience"):
            checks.verify(token(aud=wrong), NOW_MS)
    assert verifier().verify(token(aud="there"), NOW_MS).role == "role"  # nobody asks
    named = of_secret(token_audience="here", token_audience_claim="for")
    assert named.verify(token(**{"for": "here"}), NOW_MS).role == "role"


def test_keys_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    (tmp_path / "private").write_bytes(private_pem(ec_key()))
    (tmp_path / "small").write_bytes(public_pem(rsa_key(1024)))
    (tmp_path / "pem").write_bytes(public_pem(rsa_key()))
    for options, complaint in (
        ({"token_secret_key": base64.b64encode(b"short").decode()}, "at least 32"),
        ({"token_secret_key": "not base64 and no file!"}, "base64"),
        ({"token_secret_key": f"file://{tmp_path}/nothing"}, "No such file"),
        ({"token_secret_key": "data:;base64"}, "base64"),
        ({"token_secret_key": str(tmp_path / "pem")}, "token_public_key"),
        ({"token_public_key": str(tmp_path / "private")}, "no public key"),
        ({"token_public_key": str(tmp_path / "small")}, "2048"),
    ):
        with pytest.raises(errors.InvalidConfiguration, match=complaint):
            verifier(**options)


def test_no_key_is_shown() -> None:
    settings = AccessSettings(token_secret_key=SECRET_TEXT, superuser_roles=["admin"])
    assert SECRET_TEXT not in repr(settings)
    with pytest.raises(errors.InvalidConfiguration) as caught:
        verifier(token_secret_key="my secret!")
    assert "my secret" not in str(caught.value)


WITHOUT_PACKAGE = """
import sys
sys.modules["jwt"] = None  # as if it were not installed
import pulsarx
from pulsarx.access import AccessSettings
from pulsarx.server import serve
with pulsarx.Client("memory:") as client:
    try:
        serve(client, port=0, access=AccessSettings(token_secret_key="A" * 64))
    except ImportError as error:
        print(error)
"""


def test_a_package_that_is_missing_is_named() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_PACKAGE], capture_output=True, text=True, check=True
    )
    assert run.stdout == (
        "authentication by tokens needs the package jwt, which is not installed: "
        "pip install 'pulsarx[serve]'\n"
    )


def test_somebody_must_be_able_to_prove_who_he_is() -> None:
    with pytest.raises(errors.InvalidConfiguration, match="no client could authenticate"):
        AccessSettings(superuser_roles=["admin"])
    with pytest.raises(errors.InvalidConfiguration, match="either"):
        AccessSettings(token_secret_key="a", token_public_key="b")
    with pytest.raises(errors.InvalidConfiguration, match="superuser_roles"):
        AccessSettings(tls_authentication=True, superuser_roles="admin")


@pytest.mark.parametrize("role", ["\ud800", "a\nb", "\0"])
def test_a_role_that_cannot_be_shown_is_refused(role: str) -> None:
    """What refused it something later, by its name, used to fail as if by a bug."""
    with pytest.raises(errors.AuthenticationError, match="cannot be shown"):
        verifier().verify(token(role), NOW_MS)
