"""What the tests of the border share: the fixtures of the API tests, and the list of what is left
out of those."""

from __future__ import annotations

import importlib.util
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from border_list import LEFT_OUT

HERE = Path(__file__).resolve().parent
FIXTURES = ("folder", "manual_clock", "open_client", "memory_client", "clocked_client")


def _load_fixtures() -> None:
    """Those of the API tests open `pulsarx.Client`, whatever that is."""
    spec = importlib.util.spec_from_file_location("api_conftest", HERE.parent / "api/conftest.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in FIXTURES:
        globals()[name] = getattr(module, name)


_load_fixtures()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that is left out is not run. A row that leaves nothing out is an error."""
    mine = [each for each in items if each.path.name == "test_api_over_the_border.py"]
    asked = [HERE / "test_api_over_the_border.py", *HERE.parents, HERE]
    whole = bool(mine) and all(Path(each).resolve() in asked for each in config.args)
    for reason, patterns in LEFT_OUT.items():
        for pattern in patterns:
            found = [each for each in mine if is_meant(each.name, pattern)]
            for item in found:
                item.add_marker(pytest.mark.skip(reason=reason))
            if whole and not found:
                raise pytest.UsageError(f"the border leaves out {pattern}, which there is not")


def is_meant(name: str, pattern: str) -> bool:
    """A pattern with brackets means a test with these parameters, else all of them."""
    plain = pattern.replace("[", "[[]")  # a bracket stands for itself
    return fnmatchcase(name, plain) or fnmatchcase(name, f"{plain}[[]*")
