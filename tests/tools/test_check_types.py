"""Facts about tools/check_types.py; `make lint` runs it on all of the package."""

from __future__ import annotations

from typing import Any

from build_mode import ROOT
from check_types import ALLOWED, UNTYPED_BASES, _gaps, stubbed_modules


def symbol(name: str, *, exported: bool = True, severity: str = "error") -> dict[str, Any]:
    said = [{"severity": severity, "message": "Type is missing\n  Inferred type is int"}]
    return {"name": name, "isExported": exported, "diagnostics": said}


def test_every_stub_is_checked() -> None:
    found = stubbed_modules()
    assert len(found) == len(list((ROOT / "src").rglob("*.pyi")))
    assert "pulsarx._pycore.message.message_id" in found


def test_gaps_are_errors_of_what_is_public() -> None:
    symbols = [
        symbol("pulsarx.a"),
        symbol("pulsarx._b", exported=False),
        symbol("pulsarx.c", severity="warning"),
        symbol(f"{UNTYPED_BASES[0]}.schema"),
    ]
    assert list(_gaps({"symbols": symbols})) == ["pulsarx.a: Type is missing Inferred type is int"]


def test_what_is_allowed_has_a_reason() -> None:
    """Each paragraph of the list begins with one."""
    paragraphs = ALLOWED.read_text().strip().split("\n\n")
    assert len(paragraphs) > 1
    assert all(each.startswith("# ") for each in paragraphs)
