"""Facts about tests of packages that are not installed: each is skipped with a sentence, and no
other failure is."""

from __future__ import annotations

import pytest
from source_files import ROOT

pytest_plugins = ["pytester"]

CONFTEST = """
import sys
from support import missing_packages

THERE = missing_packages.is_installed
missing_packages.is_installed = lambda name: name not in {"jwt", "_pulsar"} and THERE(name)
for each in ("jwt", "_pulsar", "pulsar", "none_of_ours"):
    sys.modules.pop(each, None)

class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"jwt", "_pulsar", "pulsar"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hiding())

def pytest_configure(config):
    config.addinivalue_line("markers", "needs(package...)")
    plugin = missing_packages.MissingPackages(("test", "spark"))
    config.pluginmanager.register(plugin, "missing packages")
"""
FILES = {
    "test_importing": "import jwt\ndef test(): pass\n",
    "test_importing_a_part": "import pulsar.schema\ndef test(): pass\n",
    "test_in_the_test": "def test():\n    import jwt\n",
    "test_in_a_fixture": """
import pytest
@pytest.fixture
def made(): import jwt
def test(made): pass
""",
    "test_said_by_a_call": """
from pulsarx.ground.extras import optional_module
def test(): optional_module("jwt", "serve", "serve()")
""",
    "test_marked": """
import pytest
@pytest.mark.needs("pytest", "jwt")
def test(): raise AssertionError
""",
}
OTHERS = {
    "test_of_another": "def test():\n    import none_of_ours\n",
    "test_whose_name_is_not_there": "def test():\n    from pytest import no_such_name\n",
    "test_that_fails": """
def test():
    try: import jwt
    except ImportError: pass
    assert 0
""",
}


@pytest.fixture
def there(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST)
    pytester.makeini(
        f"[pytest]\npythonpath = {ROOT / 'tests'} {ROOT / 'tools'}\naddopts = --strict-markers -ra"
    )
    return pytester


@pytest.mark.standard
def test_what_needs_a_missing_package_is_skipped_with_a_sentence(there: pytest.Pytester) -> None:
    there.makepyfile(**FILES)
    ran = there.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    ran.assert_outcomes(skipped=len(FILES))
    said = ran.stdout.str()
    assert said.count("jwt is not installed: `tools/bootstrap test spark`") >= 1
    assert "pulsar is not installed: " in said


@pytest.mark.standard
def test_no_other_failure_is_skipped(there: pytest.Pytester) -> None:
    there.makepyfile(**OTHERS)
    there.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(failed=len(OTHERS))


@pytest.mark.standard
def test_a_module_that_imports_another_missing_one_is_an_error(there: pytest.Pytester) -> None:
    there.makepyfile(test_importing="import none_of_ours\ndef test(): pass\n")
    there.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(errors=1)
