"""Facts about answers of a cluster's REST API that differ from ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsarx import errors
from pulsarx.admin import Admin
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
