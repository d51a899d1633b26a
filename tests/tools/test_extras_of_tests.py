"""Facts about tools/extras_of_tests.py: what is installed before the first test runs."""

from __future__ import annotations

import pytest
from extras_of_tests import all_extras, extras_of, packages_of
from prepare import needs_core_tests
from source_files import ROOT

TESTS = ROOT / "tests"
CORE = {"pytest", "pytest-xdist", "hypothesis", "pyarrow", "numpy", "cramjam", "mmh3"}


def names_of(path: str) -> set[str]:
    return {each.partition(">")[0].partition("=")[0] for each in packages_of(extras_of(path))}


@pytest.mark.parametrize("folder", ["core", "pycore", "broker", "api", "core/test_crc32c.pyx"])
def test_the_tests_of_the_library_itself_ask_for_few_packages(folder: str) -> None:
    assert names_of(f"tests/{folder}") == CORE


def test_a_folder_asks_for_what_its_name_says_and_those_around_it() -> None:
    assert extras_of("tests/api/looking/test_read_table.py::test_x") == [
        "test-core",
        "test-looking",
    ]
    assert names_of(str(TESTS / "sharing")) > CORE | {"gunicorn", "celery"}
    assert "cryptography" in names_of("tests/sharing")  # of an extra that this one names
    assert names_of("tests/server") > CORE | {"starlette", "pulsar-client"}


@pytest.mark.parametrize("path", ["tests", "tests/", "./tests", str(TESTS)], ids=range(4))
def test_all_tests_ask_for_all_but_spark(path: str) -> None:
    asked = names_of(path)
    assert asked > names_of("tests/core") | names_of("tests/server") | names_of("tests/programs")
    assert "pyspark" not in asked


def test_each_extra_of_tests_is_of_a_folder_and_among_those_of_all() -> None:
    extras = {name for name in all_extras() if name.startswith("test-")}
    folders = {f"test-{each.name}" for each in TESTS.rglob("*") if each.is_dir()}
    assert extras and extras <= folders
    [everything] = all_extras()["test"]
    assert set(everything.removeprefix("pulsarx[").rstrip("]").split(",")) == extras


def test_the_tests_of_the_core_are_compiled_for_those_that_run_them() -> None:
    compiled = ["test", "tests", "tests/core", str(TESTS / "core")]
    assert [each for each in (*compiled, "tests/api", "lint") if needs_core_tests(each)] == compiled
