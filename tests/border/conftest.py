"""What the tests of the border share: what is left out of the API tests."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from left_out import REASONS

HERE = Path(__file__).resolve().parent
MARKERS = {"test_api_over_the_border.py": "border", "test_consumers_beside_the_owner.py": "guest"}


@pytest.fixture
def many() -> int:
    """As of the API tests; here each message is a frame."""
    return 2000


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that is left out is not run. A marker that leaves nothing out is an error."""
    for file, marker in MARKERS.items():
        idle: dict[tuple[str, str], bool] = {}  # of a test and a pattern
        for item in [each for each in items if each.path.name == file]:
            for mark in item.iter_markers(marker):
                test = (item.name.partition("[")[0], mark.kwargs.get("of", ""))
                is_left_out = is_meant(item, test[1])
                idle[test] = idle.get(test, True) and not is_left_out
                if is_left_out:
                    item.add_marker(pytest.mark.skip(reason=REASONS[mark.kwargs["left_out"]]))
        whole = {HERE / file, *HERE.parents, HERE}
        if all(Path(each).resolve() in whole for each in config.args):
            if wrong := [f"{name}, of={of!r}" for (name, of), is_idle in idle.items() if is_idle]:
                raise pytest.UsageError(f"{file}: markers that leave nothing out: {wrong}")


def is_meant(item: pytest.Item, of: str) -> bool:
    """Of a pattern of parameters; "": all of them."""
    parameters = item.name.partition("[")[2].removesuffix("]")
    return not of or fnmatchcase(parameters, of.replace("[", "[[]"))  # it stands for itself
