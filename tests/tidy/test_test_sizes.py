"""Each test is of one size; who says two, or one there is not, is told when tests are collected."""

from __future__ import annotations

import shutil
import tomllib

import pytest
from source_files import ROOT

pytest_plugins = ["pytester"]

PROJECT = {
    "test_here.py": """
import pytest
def test_plain(): pass
@pytest.mark.standard
def test_marked(): pass
@pytest.mark.parametrize("point", [1, pytest.param(2, marks=pytest.mark.long)])
def test_points(point): pass
""",
    "spark/test_there.py": """
import pytest
def test_of_the_folder(): pass
@pytest.mark.quick
def test_light(): pass
""",
}


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder of tests under the rules of this one."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer than all else
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    markers = "\n    ".join(settings["markers"])
    chosen = settings["addopts"][settings["addopts"].index("-m") + 1]
    pytester.makeini(
        f"[pytest]\nmarkers =\n    {markers}\n"
        f'addopts = --strict-markers --import-mode=importlib -p no:cacheprovider -m "{chosen}"\n'
    )
    for name in ("conftest.py", "part_events.py"):
        shutil.copy(ROOT / "tests" / name, pytester.path)
    for name, text in PROJECT.items():
        path = pytester.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return pytester


def collected(project: pytest.Pytester, *arguments: str) -> set[str]:
    lines = project.runpytest("--collect-only", "-q", *arguments).outlines
    return {line.rpartition("::")[2] for line in lines if "::" in line}


def test_a_test_is_of_the_size_of_its_folder_or_of_its_marker(project: pytest.Pytester):
    quick = {"test_plain", "test_points[1]", "test_light"}
    standard = {"test_marked", "test_of_the_folder"}
    assert collected(project, "-m", "quick") == quick
    assert collected(project, "-m", "standard") == standard
    assert collected(project, "-m", "long") == {"test_points[2]"}
    assert collected(project) == quick | standard
    assert collected(project, "-m", "") == quick | standard | {"test_points[2]"}


@pytest.mark.parametrize(
    ("marks", "text"),
    [
        (
            "@pytest.mark.quick\n@pytest.mark.long",
            "test_wrong.py::test_it is both long and quick",
        ),
        ("@pytest.mark.slow", "'slow' not found in `markers`"),
    ],
)
def test_two_sizes_and_unknown_ones_fail_the_collection(
    project: pytest.Pytester, marks: str, text: str
):
    path = project.path / "test_wrong.py"
    path.write_text(f"import pytest\n{marks}\ndef test_it(): pass\n")
    ran = project.runpytest()
    assert ran.ret != 0
    assert text in "\n".join([*ran.outlines, *ran.errlines])
    assert not ran.parseoutcomes().get("passed")


def test_a_random_order_is_that_of_its_seed(project: pytest.Pytester):
    orders = [
        tuple(line for line in project.runpytest("-v", *more).outlines if "PASSED" in line)
        for more in ([], ["--random-order=1"], ["--random-order=1"], ["--random-order=5"])
    ]
    assert len({frozenset(line.split(" ")[0] for line in order) for order in orders}) == 1
    in_order, one, again, other = [[line.split(" ")[0] for line in order] for order in orders]
    assert one == again != in_order and other != one
