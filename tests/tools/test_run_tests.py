"""Facts about tools/run_tests.py: what it runs, what it says of it and what it ends with."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import run_tests
from parts import PARTS
from run_tests import chosen

ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = pytest.mark.standard

PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, {tools!r})
import run_tests
Part = run_tests.Part
names = sorted(each.name for each in Path("tests").iterdir() if each.is_dir())
run_tests.PARTS = [Part(name, ("tests/" + name,), 1) for name in names]
run_tests.ROOT = Path.cwd()
run_tests.MEMORY = Path.cwd()
run_tests.KEPT = Path.cwd() / "build" / "tests"
run_tests.TIMES = run_tests.KEPT / "seconds.json"
sys.exit(run_tests.main(sys.argv[1:]))
"""
TOOK = r" +\d+ s +\d+ s of processor   "
GOOD = "def test_good(): pass\n"
CONFTEST = """
import part_events
def pytest_configure(config): part_events.register(config)
"""


class Project:
    """A folder with two parts of tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            "PYTHONPATH": str(ROOT / "tests"), "PYTEST_ADDOPTS": "", "TMPDIR": str(folder),
        }  # fmt: skip
        self.write("conftest.py", CONFTEST)
        self.write("one/test_one.py", GOOD)
        self.write("two/test_two.py", GOOD * 2)

    def write(self, name: str, text: str) -> None:
        path = self.folder / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        program = PROGRAM.format(tools=str(ROOT / "tools"))
        return subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            cwd=self.folder,
            env=os.environ | self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """What it ends with, and all that it says."""
        with self.start(*arguments) as run:
            said = run.communicate()[0]
        return run.returncode, said


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_all_parts_are_run_and_counted(project: Project) -> None:
    project.write("two/test_more.py", "import pytest\ndef test_later(): pytest.skip('no moon')\n")
    code, said = project.run()
    assert code == 0, said
    assert re.search(rf"\none{TOOK}1 passed\ntwo{TOOK}1 passed, 1 skipped\n", said)
    assert "skipped, 1 tests:\n     1  no moon\n" in said
    assert re.search(r"\n2 passed, 0 failed, 1 skipped in \d+ s\n$", said)


def test_a_test_that_fails_is_shown_with_what_it_saw(project: Project) -> None:
    project.write("one/test_bad.py", "def test_bad():\n    print('a hint')\n    assert 1 == 2\n")
    code, said = project.run()
    assert code == 1
    assert "FAILED tests/one/test_bad.py::test_bad\n" in said
    assert "assert 1 == 2" in said and "a hint" in said
    assert said.rstrip().endswith(" s") and "2 passed, 1 failed, 0 skipped" in said


def test_a_module_that_cannot_be_imported_fails(project: Project) -> None:
    project.write("one/test_bad.py", "import no_such_module\n")
    code, said = project.run()
    assert code == 1
    assert "FAILED tests/one/test_bad.py\n" in said and "no_such_module" in said


def test_a_part_that_dies_fails_and_names_the_test(project: Project) -> None:
    text = "import os, signal\ndef test_dies(): os.kill(os.getpid(), signal.SIGKILL)\n"
    project.write("two/test_dying.py", text)
    code, said = project.run()
    assert code == 1
    assert "two ended with signal 9, Killed in tests/two/test_dying.py::test_dies" in said
    assert re.search(rf"\none{TOOK}1 passed\n", said)


@pytest.mark.parametrize(
    "end", ["os._exit(0)", "os._exit(1)", "pytest.exit('early', returncode=0)"]
)
def test_a_part_that_ends_before_its_last_test_fails(project: Project, end: str) -> None:
    text = f"import os, pytest\ndef test_ends(): {end}\ndef test_fails(): assert False\n"
    project.write("two/test_ending.py", text)
    code, said = project.run()
    assert code == 1 and re.search(r"FAILED two ended with \d of 3 tests", said)


def test_a_part_more_is_run_at_a_time_than_there_are_processors(project: Project) -> None:
    for name, other in (("one", "two"), ("two", "three"), ("three", "one")):
        os.mkfifo(project.folder / name)
        text = f"""
import threading
def test_meets():
    thread = threading.Thread(target=lambda: open({name!r}, "w").close())
    thread.start()
    open({other!r}).read()
    thread.join()
"""
        project.write(f"{name}/test_meeting.py", text)
    assert project.run()[0] == 0


def test_processes_are_known_by_the_whole_name_of_their_part(tmp_path: Path) -> None:
    name = str(tmp_path / "one")
    program = "import signal; print(flush=True); signal.pause()"
    environment = os.environ | {run_tests.PART: f"{name}-more"}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        run_tests.kill_all(f"{name}\0")
        assert process.poll() is None
        run_tests.kill_all(f"{name}-more\0")
        assert process.wait(60) == -signal.SIGKILL


def test_a_part_ends_whoever_still_has_its_pipe(project: Project) -> None:
    text = """
import os, signal
def test_forks():
    if not os.fork():
        signal.pause()
"""
    project.write("one/test_forking.py", text)
    assert project.run()[0] == 0


def test_who_ends_a_run_ends_what_it_has_started(project: Project) -> None:
    text = """
import subprocess, sys
def test_waits():
    program = "import signal; print(flush=True); signal.pause()"
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True
    )
    child.stdout.readline()
    open("begun", "w").write(str(child.pid))
    child.wait()
"""
    project.write("one/test_waiting.py", text)
    os.mkfifo(project.folder / "begun")
    run = project.start()
    child = os.pidfd_open(int((project.folder / "begun").read_text()))
    run.terminate()
    assert run.communicate()[0].endswith("tests: interrupted\n") and run.returncode == 130
    assert select.select([child], [], [], 60)[0]
    os.close(child)


def test_what_a_run_keeps_is_removed_by_the_next_one(project: Project) -> None:
    project.write("one/test_bad.py", "def test_bad(tmp_path): assert not tmp_path\n")
    for _ in range(2):
        assert "until the next run" in project.run()[1]
        assert len(list(project.folder.glob("pulsarx-pytest-*"))) == 1


def test_what_a_run_keeps_is_left_alone_by_one_beside_it(project: Project) -> None:
    text = """
def test_keeps(tmp_path):
    (tmp_path / "kept").touch()
    open("begun", "w").close()
    open("go").close()
    assert (tmp_path / "kept").exists()
"""
    project.write("one/test_keeping.py", text)
    for name in ("begun", "go"):
        os.mkfifo(project.folder / name)
    run = project.start("tests", "-k", "keeps")
    (project.folder / "begun").open().close()
    assert project.run("tests", "-k", "good")[0] == 0
    (project.folder / "go").open("w").close()
    assert "1 passed" in run.communicate()[0] and run.returncode == 0


def test_what_a_part_leaves_running_ends_with_it(project: Project) -> None:
    note = project.folder / "pid"
    text = f"""
import subprocess, sys
def test_leaves():
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    open({str(note)!r}, "w").write(str(child.pid))
"""
    project.write("one/test_leaving.py", text)
    assert project.run()[0] == 0
    try:
        child = os.pidfd_open(int(note.read_text()))
    except ProcessLookupError:
        return
    assert select.select([child], [], [], 60)[0]
    os.close(child)


def test_paths_and_arguments_choose_what_is_run(project: Project) -> None:
    code, said = project.run("tests", "-k", "nothing_has_this_name")
    assert code == 1 and "0 passed, 0 failed, 0 skipped" in said
    code, said = project.run("tests/two", "-v")  # one part: by pytest itself
    assert code == 0 and "tests/two/test_two.py::test_good PASSED" in said
    code, said = project.run("tests", "--deselect", "tests/two/test_two.py::test_good")
    assert code == 0 and "1 passed" in said
    for missing in ("tests/three", "elsewhere"):
        code, said = project.run(missing)
        assert code == 2 and f"there is no {missing} below" in said


def test_all_parts_are_chosen_with_all_that_is_said_of_them() -> None:
    assert chosen(["tests"]) == list(PARTS)


def test_every_file_of_tests_is_in_one_part() -> None:
    patterns = ("test_*.py", "test_*.pyx")
    for path in (each for pattern in patterns for each in (ROOT / "tests").rglob(pattern)):
        shown = str(path.relative_to(ROOT))
        mine = [part.name for part in chosen([shown])]
        assert len(mine) == 1, f"{shown} is in the parts {mine}"
    for part in PARTS:
        for each in part.paths:
            assert (ROOT / each).exists(), f"the part {part.name} names {each}, which is not there"
