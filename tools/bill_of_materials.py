"""The software bill of materials of a wheel: what of others is compiled into it.

setup.py writes it into `.dist-info/sboms` (PEP 770) as CycloneDX, in the same bytes whenever the
same is built. What is installed beside it is in the wheel's metadata, as its dependencies.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from build_mode import ROOT

FILE_NAME = "pulsarx.cdx.json"
VENDORED = ROOT / "vendored"


@dataclass(frozen=True)
class Component:
    """Software of others of which there is compiled code in the library."""

    name: str
    version: str
    licence: str  # SPDX
    url: str  # of the package, as purl
    what: str
    source: Path | None = None  # what is compiled


def components() -> list[Component]:
    """Everything that is compiled in, and is not ours."""
    return [
        Component(
            "lz4",
            lz4_version(),
            "BSD-2-Clause",
            f"pkg:github/lz4/lz4@v{lz4_version()}",
            "blocks of LZ4: vendored/lz4/lz4.c, as it is released",
            VENDORED / "lz4" / "lz4.c",
        ),
        Component(
            "Cython",
            version("Cython"),
            "Apache-2.0",
            f"pkg:pypi/cython@{version('Cython')}",
            "the C that it generates, and the helpers that it puts into each module",
        ),
    ]


def lz4_version() -> str:
    text = (VENDORED / "lz4" / "lz4.h").read_text()
    parts = re.findall(r"#define LZ4_VERSION_(?:MAJOR|MINOR|RELEASE) +(\d+)", text)
    return ".".join(parts)


def bill_of_materials(name: str, package_version: str, licence: str) -> str:
    """The text of the file."""
    product = f"pkg:pypi/{name}@{package_version}"
    found = [_entry(each) for each in components()]
    bill: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": product,
                "name": name,
                "version": package_version,
                "licenses": [{"expression": licence}],
                "purl": product,
            }
        },
        "components": found,
        "dependencies": [
            {"ref": product, "dependsOn": [each["bom-ref"] for each in found]},
            *({"ref": each["bom-ref"]} for each in found),
        ],
    }
    # Of the contents: no clock and no chance is in it.
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill, sort_keys=True))
    return json.dumps({"serialNumber": number.urn, **bill}, indent=2, sort_keys=True) + "\n"


def _entry(component: Component) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": "library",
        "bom-ref": component.url,
        "name": component.name,
        "version": component.version,
        "description": component.what,
        "licenses": [{"license": {"id": component.licence}}],
        "purl": component.url,
    }
    if component.source is not None:
        digest = hashlib.sha256(component.source.read_bytes()).hexdigest()
        entry["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return entry
