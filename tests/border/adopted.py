"""Tests of the API's modules under names of their own, to be run once more another way."""

from __future__ import annotations

import importlib
from typing import Any


def adopt(module_name: str, into: dict[str, Any]) -> None:
    """Tests of a module under names of their own, and its fixtures under theirs."""
    module = importlib.import_module(module_name)
    short = module_name.rpartition(".")[2].removeprefix("test_")
    for name, value in vars(module).items():
        if name.startswith("test_"):
            into[f"test_{short}__{name.removeprefix('test_')}"] = value
        elif type(value).__name__ == "FixtureFunctionDefinition":
            assert name not in into or into[name] is value, f"two fixtures {name}"
            into[name] = value
