"""Facts about the authentication classes: checked, kept, never shown, without effect."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarx.options.authentication import (
    Authentication,
    AuthenticationAthenz,
    AuthenticationBasic,
    AuthenticationOauth2,
    AuthenticationTLS,
    AuthenticationToken,
    CryptoKeyReader,
)


@pytest.mark.parametrize(
    "made",
    [
        Authentication("lib.so", "secret"),
        AuthenticationTLS("cert.pem", "secret.pem"),
        AuthenticationToken("secret"),
        AuthenticationToken(lambda: "secret"),
        AuthenticationAthenz("secret"),
        AuthenticationOauth2("secret"),
        AuthenticationBasic("user", "secret"),
        AuthenticationBasic("user", "secret", method="oms3.0"),
        AuthenticationBasic(auth_params_string='{"username": "u", "password": "secret"}'),
    ],
)
def test_all_are_authentications_that_show_no_secret(made: Authentication) -> None:
    assert isinstance(made, Authentication)
    assert "secret" not in f"{made!r}{made}"


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (Authentication, (1, "x")),
        (Authentication, ("x", None)),
        (AuthenticationTLS, ("x", 5)),
        (AuthenticationToken, (5,)),
        (AuthenticationAthenz, (b"x",)),
        (AuthenticationOauth2, (None,)),
        (AuthenticationBasic, ()),
        (AuthenticationBasic, ("user",)),
        (AuthenticationBasic, ("user", "password", 5)),
        (AuthenticationBasic, (None, None, "basic", 5)),
        (CryptoKeyReader, ("x", None)),
    ],
)
def test_wrong_types_are_value_errors(kind: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError):
        kind(*arguments)


@pytest.mark.parametrize("text", ["secret", "{}", '{"username": "secret"}', "[]"])
def test_unusable_parameters_are_runtime_errors_without_the_secret(text: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        AuthenticationBasic(auth_params_string=text)
    assert "secret" not in str(caught.value)
