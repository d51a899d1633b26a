"""Says for `make lint` whether packages that users install with PulsarX have a known vulnerability:
those that pyproject.toml names and what they need, in the versions that are installed here.

Asks PyPI for its advisories. Where it cannot be reached, or knows a version no more, that is said,
and is no failure. One that does not concern users stands in ACCEPTED, with the reason.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from build_mode import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# Of an advisory, by its id or an alias: why it does not concern those who use PulsarX.
ACCEPTED: dict[str, str] = {}

USERS = ("all", "java")  # extras; the others are of those who work on PulsarX
TIMEOUT_SECONDS = 10.0
AT_ONCE = 8

Fetch = Callable[[str], Any]  # the JSON of name/version or name; None: none. OSError: no answer


@dataclass(frozen=True)
class Package:
    name: str
    version: str


@dataclass(frozen=True)
class Advisory:
    package: Package
    names: tuple[str, ...]  # its id, and its aliases
    summary: str
    fixed_in: tuple[str, ...]

    @property
    def is_accepted(self) -> bool:
        return any(name in ACCEPTED for name in self.names)

    def __str__(self) -> str:
        fixed = f"fixed in {', '.join(self.fixed_in)}" if self.fixed_in else "not fixed yet"
        named = ", ".join(self.names)
        return f"{self.package.name} {self.package.version}: {named}, {fixed}: {self.summary}"


def asked_for(project: dict[str, Any]) -> list[Requirement]:
    """What users are asked to install."""
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(f"{project['name']}[{extra}]" for extra in USERS)]
    found: list[Requirement] = []
    seen: set[str] = set()
    while wanted:
        requirement = Requirement(wanted.pop())
        if requirement.name != project["name"]:
            found.append(requirement)
            continue
        for extra in requirement.extras - seen:
            seen.add(extra)
            wanted += extras[extra]
    return found


def installed(asked: list[Requirement]) -> list[Package]:
    """What of it is here, and what that needs."""
    found: dict[str, Package] = {}
    wanted = list(asked)
    while wanted:
        requirement = wanted.pop()
        name = canonicalize_name(requirement.name)
        if name in found or not _is_needed(requirement):
            continue
        try:
            there = distribution(name)
        except PackageNotFoundError:
            continue
        found[name] = Package(name, there.version)
        wanted += map(Requirement, there.requires or ())
    return [found[name] for name in sorted(found)]


def _is_needed(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def advisories(package: Package, fetch: Fetch) -> list[Advisory] | None:
    """The advisories of this version; None: PyPI does not tell. Some mirrors tell of the newest
    version alone."""
    answer = fetch(f"{package.name}/{package.version}")
    if answer is None:
        answer = fetch(package.name)
        if answer is None or answer["info"]["version"] != package.version:
            return None
    return [
        Advisory(
            package,
            (each["id"], *each.get("aliases", ())),
            each.get("summary") or (each.get("details") or "").partition("\n")[0][:100],
            tuple(each.get("fixed_in", ())),
        )
        for each in answer.get("vulnerabilities") or ()
        if not each.get("withdrawn")
    ]


def fetched(what: str) -> Any:
    try:
        # PyPI's address, as pip has it.
        index = import_module("pip._internal.models.index").PyPI
    except (ImportError, AttributeError) as error:
        raise OSError(f"no pip here knows where: {error}") from None
    try:
        with urlopen(f"{index.pypi_url}/{what}/json", timeout=TIMEOUT_SECONDS) as answer:
            return json.load(answer)
    except HTTPError as error:
        if error.code == 404:
            return None
        raise


def audit(packages: list[Package], fetch: Fetch = fetched) -> Iterator[tuple[bool, str]]:
    """The lines to be said, each with whether it is a failure."""
    silent: list[BaseException] = []  # why nothing was told of some

    def told_of(package: Package) -> list[Advisory] | None:
        try:
            return advisories(package, fetch)
        except (OSError, HTTPException, ValueError, KeyError, TypeError, AttributeError) as error:
            silent.append(error)
            return None

    first = [told_of(each) for each in packages[:1]]  # alone: it may take all its time
    if silent:
        yield False, f"advisories: none could be had, so nothing was audited ({silent[0]})"
        return
    with ThreadPoolExecutor(AT_ONCE) as pool:
        rest = list(pool.map(told_of, packages[1:]))
    told = [*first, *rest]
    unknown = [each.name for each, found in zip(packages, told, strict=True) if found is None]
    known = [each for found in told if found is not None for each in found]
    for each in known:
        if not each.is_accepted:
            yield True, str(each)
    said = f"advisories: asked for {len(packages) - len(unknown)} packages that users install"
    accepted = sum(each.is_accepted for each in known)
    if accepted:
        said += f"; {accepted} accepted"
    if unknown:
        said += f"; not told of the versions here of {', '.join(unknown)}"
    if silent:
        said += f" ({silent[0]})"
    yield False, said


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    failures = 0
    for is_failure, line in audit(installed(asked_for(project))):
        print(line, file=sys.stderr if is_failure else sys.stdout)
        failures += is_failure
    if failures:
        print(
            "raise the least version in pyproject.toml, or put it into ACCEPTED of "
            "tools/audit_dependencies.py with the reason",
            file=sys.stderr,
        )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
