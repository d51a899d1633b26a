"""What is missing from the list of packages is silently missing from the wheel."""

from __future__ import annotations

import tomllib
from pathlib import Path

from source_files import PACKAGES, ROOT


def packages_of(root: Path) -> set[str]:
    """Every folder with Python or Cython files in it, by import name."""
    found = set()
    for folder, package in PACKAGES.items():
        for path in (root / folder).rglob("*"):
            if path.suffix in {".py", ".pyx"} and "__pycache__" not in path.parts:
                parts = path.parent.relative_to(root / folder).parts
                found.add(".".join([package, *parts]))
    return found


def folder_of(package: str) -> Path:
    for folder, name in PACKAGES.items():
        if package == name or package.startswith(f"{name}."):
            return ROOT / folder / package.removeprefix(name).lstrip(".").replace(".", "/")
    return ROOT / "python" / package.replace(".", "/")


def listed(kind: str = "packages") -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    names: list[str] = project["tool"]["setuptools"][kind]
    return names


def test_every_package_is_listed_and_exists():
    assert sorted(listed()) == sorted(packages_of(ROOT))


def test_every_module_beside_the_package_is_listed_and_exists():
    assert sorted(listed("py-modules")) == sorted(p.stem for p in (ROOT / "python").glob("*.py"))


def test_every_package_has_an_init():
    missing = [name for name in listed() if not (folder_of(name) / "__init__.py").exists()]
    assert not missing


def test_a_package_that_is_not_listed_is_found(tmp_path: Path):
    for name in ("python/pulsarx/aio/reader.py", "src/core/crc32c.pyx", "spark/options.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert packages_of(tmp_path) == {"pulsarx.aio", "pulsarx._core", "pulsarx.spark"}
