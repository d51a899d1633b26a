"""The bill of materials of a wheel: true, complete as far as a test can tell, always the same."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from bill_of_materials import VENDORED, bill_of_materials, components
from build_mode import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def made() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        bill_of_materials("pulsarx", PROJECT["version"], PROJECT["license"])
    )
    return found


def test_it_is_cyclonedx() -> None:
    bill = made()
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["serialNumber"])
    about = bill["metadata"]["component"]
    assert (about["name"], about["version"]) == ("pulsarx", PROJECT["version"])
    known = {each["bom-ref"] for each in bill["components"]}
    assert set(bill["dependencies"][0]["dependsOn"]) == known


def test_everything_vendored_is_in_it_with_its_digest_and_its_licence() -> None:
    """A folder of vendored/ is a component; the wheel has its licence, and states it."""
    named = {each.name: each for each in components()}
    for folder in [each for each in VENDORED.iterdir() if each.is_dir()]:
        component = named[folder.name]
        assert component.licence in PROJECT["license"].split(" AND ")
        assert str((folder / "LICENSE").relative_to(ROOT)) in PROJECT["license-files"]
        assert component.source is not None and component.source.parent == folder
        (entry,) = [each for each in made()["components"] if each["name"] == folder.name]
        digest = hashlib.sha256(component.source.read_bytes()).hexdigest()
        assert entry["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert named["lz4"].version == "1.10.0"


def test_it_is_the_same_whenever_it_is_made() -> None:
    assert made() == made()


def test_the_metadata_of_a_wheel_has_it(tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "-q", "dist_info", "-o", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (file,) = tmp_path.glob("*.dist-info/sboms/pulsarx.cdx.json")
    assert json.loads(file.read_text()) == made()
