"""The interfaces that functions are written against."""

from __future__ import annotations

import pytest

from pulsarx.functions.context import Context
from pulsarx.functions.serde import IdentitySerDe, PickleSerDe


@pytest.mark.parametrize(
    ("value", "payload", "back"),
    [
        (b"\xff", b"\xff", b"\xff"),
        (b"12", b"12", 12),
        ("text", b"text", "text"),
        (1.5, b"1.5", 1.5),
        (2, b"2", 2),
        (1j, b"1j", 1j),
        (b"", b"", ""),
    ],
)
def test_identity_serde_gives_back_what_the_text_reads_as(
    value: object, payload: bytes, back: object
):
    serde = IdentitySerDe()
    assert serde.serialize(value) == payload
    found = serde.deserialize(payload)
    assert (found, type(found)) == (back, type(back))


@pytest.mark.parametrize("value", [[1], None, True, {}])
def test_identity_serde_refuses_other_types(value: object):
    with pytest.raises(TypeError, match="cannot serialize"):
        IdentitySerDe().serialize(value)


def test_pickle_serde_takes_any_object():
    serde = PickleSerDe()
    assert serde.deserialize(serde.serialize({"a": [1, None]})) == {"a": [1, None]}


def test_what_a_context_leaves_out_answers_none():
    class Small(Context):
        def get_message_id(self) -> str:
            return "id"

    assert (Small().get_message_id(), Small().get_user_config_value("k")) == ("id", None)
