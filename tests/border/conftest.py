"""What the tests of the border share: the list of what is left out of the API tests."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import border_list
import guest_list
import pytest

HERE = Path(__file__).resolve().parent
LISTS = {
    "test_api_over_the_border.py": border_list.LEFT_OUT,
    "test_consumers_beside_the_owner.py": guest_list.LEFT_OUT,
}


@pytest.fixture
def many() -> int:
    """As of the API tests; here each message is a frame."""
    return 2000


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that is left out is not run. A row that leaves nothing out is an error."""
    for file, left_out in LISTS.items():
        mine = [each for each in items if each.path.name == file]
        asked = [HERE / file, *HERE.parents, HERE]
        whole = bool(mine) and all(Path(each).resolve() in asked for each in config.args)
        for reason, patterns in left_out.items():
            for pattern in patterns:
                found = [each for each in mine if is_meant(each.name, pattern)]
                for item in found:
                    item.add_marker(pytest.mark.skip(reason=reason))
                if whole and not found:
                    raise pytest.UsageError(f"{file} leaves out {pattern}, which there is not")


def is_meant(name: str, pattern: str) -> bool:
    """A pattern with brackets means a test with these parameters, else all of them."""
    plain = pattern.replace("[", "[[]")  # a bracket stands for itself
    return fnmatchcase(name, plain) or fnmatchcase(name, f"{plain}[[]*")
