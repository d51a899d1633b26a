"""What docs/security.md says never reaches a log does not: whatever is told at any level."""

from __future__ import annotations

import base64
import logging
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from served import Served
from signing import SECRET_TEXT, token

import pulsarx
from pulsarx.access import AccessSettings
from pulsarx.rest import serve_http

pulsar: Any = pytest.importorskip("pulsar")
PASSWORD, WRONG_PASSWORD = "right-horse-battery", "wrong-horse-battery"
VALUE = b"the balance of ada is 17"


def asked(url: str, header: str) -> int:
    """The status of a request with that Authorization."""
    request = urllib.request.Request(url, headers={"Authorization": header})
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_no_log_has_a_token_a_password_a_key_or_a_value(
    open_served: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "pulsarx")
    users = tmp_path / "users"
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    users.write_text(f"ada:{hashed}\n")
    access = AccessSettings(
        token_secret_key=SECRET_TEXT, basic_auth_conf=str(users), superuser_roles=["admin"]
    )
    served: Served = open_served(None, service={"access": access})
    right, forged = token("admin"), token("admin", key=b"another key of thirty-two bytes..")
    plain = {
        each: base64.b64encode(f"ada:{each}".encode()).decode()
        for each in (PASSWORD, WRONG_PASSWORD)
    }
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    with serve_http(served.client, port=0, access=access) as http:
        url = f"{http.url}/admin/v2/clusters"
        assert asked(url, f"Bearer {right}") == 200
        assert asked(url, f"Bearer {forged}") == asked(url, f"Bearer {right[:-3]}") == 401
        assert asked(f"{http.url}/metrics", f"Basic {plain[PASSWORD]}") == 200
        assert asked(f"{http.url}/metrics", f"Basic {plain[WRONG_PASSWORD]}") == 401
        url = served.service.service_url
        client = pulsar.Client(url, pulsar.AuthenticationToken(right), logger=quiet)
        consumer = client.subscribe("t", "s")
        client.create_producer("t").send(VALUE)
        assert consumer.receive(60_000).data() == VALUE
        client.close()
        stranger = pulsar.Client(
            url,
            pulsar.AuthenticationToken(forged),
            operation_timeout_seconds=2,
            logger=quiet,
        )
        with pytest.raises(pulsar.PulsarException):
            stranger.subscribe("t", "s")
        stranger.close()
    told = caplog.text
    assert "authenticated" in told  # why the strangers were refused
    secrets = [right, forged, SECRET_TEXT, PASSWORD, WRONG_PASSWORD, hashed, VALUE.decode()]
    secrets += [
        *plain.values(),
        *(part for each in (right, forged) for part in each.split(".")[1:]),
    ]
    assert not [each for each in secrets if each in told]


def test_an_error_that_names_a_url_does_not_name_its_password() -> None:
    with pytest.raises(pulsarx.InvalidUrl) as caught:
        pulsarx.admin.Admin.at(f"http://ada:{PASSWORD}@localhost:8080")
    assert PASSWORD not in caught.value.detail + str(caught.value)
