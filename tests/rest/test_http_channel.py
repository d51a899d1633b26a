"""Facts about answers of a cluster's REST API that differ from ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsarx import errors
from pulsarx.admin import Admin, http_channel
from pulsarx.admin.http_channel import HttpChannel
from pulsarx.schema import StringSchema

FAILED = "Error during schema compatibility check with strategy FULL: org.apache.avro.Schema..."


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (
            FAILED,
            {
                "compatibility": False,
                "schema_compatibility_strategy": "FULL",
                "reason": "org.apache.avro.Schema...",
            },
        ),
        ("the metadata store has gone", None),
    ],
)
def test_a_schema_that_is_not_compatible_is_a_failure_of_pulsars_broker(
    monkeypatch: pytest.MonkeyPatch, reason: str, expected: Any
) -> None:
    def answer(*_: Any) -> tuple[int, dict[str, str], bytes]:
        return 500, {}, json.dumps({"reason": reason}).encode()

    monkeypatch.setattr(HttpChannel, "_exchange", answer)
    schemas = Admin.at("http://127.0.0.1:1").schemas
    if expected is None:
        with pytest.raises(errors.UnknownError, match="UnknownError"):
            schemas.test_compatibility("t", StringSchema().schema_info())
    else:
        assert schemas.test_compatibility("t", StringSchema().schema_info()) == expected


def test_an_argument_without_a_place_in_the_request_is_not_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[str] = []

    def answer(_: HttpChannel, method: str, url: str, data: bytes | None) -> Any:
        sent.append(f"{method} {url} {data!r}")
        return 204, {}, b""

    monkeypatch.setattr(HttpChannel, "_exchange", answer)
    channel = HttpChannel("http://127.0.0.1:1")
    for verb, arguments, unplaced in (
        ("namespaces.create_namespace", {"namespace": "a/b", "policies": {"x": 1}}, "policies"),
        ("topics.unload", {"topic": "t", "force": True, "count": 1}, "force, count"),
    ):
        with pytest.raises(errors.OperationNotSupported, match=f"no place for {unplaced} in"):
            channel.perform(verb, arguments)
    assert sent == []
    channel.perform("namespaces.create_namespace", {"namespace": "a/b"})
    channel.perform("namespaces.delete_namespace", {"namespace": "a/b", "force": True})
    assert sent == [
        "PUT http://127.0.0.1:1/admin/v2/namespaces/a/b None",
        "DELETE http://127.0.0.1:1/admin/v2/namespaces/a/b?force=true None",
    ]


def test_only_what_the_path_names_is_quoted_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An argument of the query or of the body is none of the path, whatever it is called."""
    quoted: list[str] = []

    def answer(*_: Any) -> tuple[int, dict[str, str], bytes]:
        return 204, {}, b""

    def in_path(name: str, value: object) -> str:
        quoted.append(name)
        return quote(name, value)

    quote = http_channel._in_path
    monkeypatch.setattr(HttpChannel, "_exchange", answer)
    monkeypatch.setattr(http_channel, "_in_path", in_path)
    arguments = {"namespace": "a/b", "force": False}
    HttpChannel("http://127.0.0.1:1").perform("namespaces.delete_namespace", arguments)
    assert quoted == ["namespace"]
