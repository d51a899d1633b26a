"""The tests of the API once more, with a client whose calls go to the broker as bytes.

Which modules, and which of their tests are left out and why, is in conftest.py.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from border_client import BorderClient
from border_list import MODULES

import pulsarx


@pytest.fixture(autouse=True)
def _over_the_border(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulsarx, "Client", BorderClient)


def _adopt(module_name: str, into: dict[str, Any]) -> None:
    """Tests of a module under names of their own, and its fixtures under theirs."""
    module = importlib.import_module(module_name)
    short = module_name.rpartition(".")[2].removeprefix("test_")
    for name, value in vars(module).items():
        if name.startswith("test_"):
            into[f"test_{short}__{name.removeprefix('test_')}"] = value
        elif type(value).__name__ == "FixtureFunctionDefinition":
            assert name not in into, f"two fixtures {name}"
            into[name] = value


pytest.register_assert_rewrite(*MODULES)
for each in MODULES:
    _adopt(each, globals())
