"""`python -m pulsarx run`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.standard

Ran = subprocess.CompletedProcess[str]
Python = Callable[..., Ran]

PROGRAM = """
import sys
import pulsar
import beside

def main():
    client = pulsar.Client("pulsar://localhost:6650")
    client.create_producer("t").send(b"x")
    client.close()
    print(__name__, sys.argv[1:], beside.NAME, sys.modules["__main__"].main is main)

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "beside.py").write_text("NAME = 'beside'")
    (folder / "script.py").write_text(PROGRAM)
    return str(folder / "script.py")


def test_a_program_runs_with_its_arguments_and_what_lies_beside_it(
    python: Python, script: str, tmp_path: Path
):
    ran = python("-m", "pulsarx", "run", script, "--root", "data", "a", "--root", "b")
    assert ran.stdout == "__main__ ['a', '--root', 'b'] beside True\n", ran.stderr
    assert (tmp_path / "data" / "localhost").is_dir()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--root=data", "SCRIPT", "a"],
        ["--route", "pulsar://127.0.0.1=data/localhost", "SCRIPT", "a"],
        ["SCRIPT", "--root", "data", "--", "a"],
    ],
)
def test_options_stand_before_the_program_or_right_behind_it(
    python: Python, script: str, tmp_path: Path, arguments: list[str]
):
    ran = python("-m", "pulsarx", "run", *(script if a == "SCRIPT" else a for a in arguments))
    assert "['a']" in ran.stdout, ran.stderr
    assert (tmp_path / "data" / "localhost").is_dir()


def test_what_follows_two_dashes_is_the_programs(python: Python, script: str):
    ran = python("-m", "pulsarx", "run", "--root", "data", script, "--", "--root", "mine")
    assert "['--root', 'mine']" in ran.stdout, ran.stderr


def test_a_module_runs(python: Python, script: str, tmp_path: Path):
    Path(script).rename(tmp_path / "told.py")
    (tmp_path / "beside.py").write_text("NAME = 'here'")
    ran = python("-m", "pulsarx", "run", "-m", "told", "--root", "data", "a")
    assert "__main__ ['a'] here" in ran.stdout, ran.stderr


def test_two_programs_one_after_the_other_share_a_folder(python: Python, tmp_path: Path):
    begin = "import pulsar\nclient = pulsar.Client('pulsar://localhost:6650')\n"
    (tmp_path / "first.py").write_text(
        f"{begin}client.subscribe('t', 's')\nclient.create_producer('t').send(b'kept')\n"
    )
    (tmp_path / "second.py").write_text(
        f"{begin}print(client.subscribe('t', 's').receive(5000).data())\nclient.close()\n"
    )
    assert python("-m", "pulsarx", "run", "first.py", "--root", "data").returncode == 0
    ran = python("-m", "pulsarx", "run", "second.py", "--root", "data")
    assert ran.stdout == "b'kept'\n", ran.stderr


def test_namespaces_are_made_in_each_cluster_that_is_opened(python: Python, tmp_path: Path):
    (tmp_path / "program.py").write_text(
        "import pulsar\n"
        "for host in ('a', 'b', 'a'):\n"
        "    client = pulsar.Client(f'pulsar://{host}')\n"
        "    for name in ('climate/sandbox', 'public/other', 'public/default'):\n"
        "        client.create_producer(f'persistent://{name}/t').send(b'x')\n"
        "    client.close()\n"
        "print('done')\n"
    )
    options = ["--root", "data", "--namespace", "climate/sandbox", "--namespace=public/other"]
    for _ in range(2):  # made, and there already
        ran = python("-m", "pulsarx", "run", *options, "program.py")
        assert ran.stdout == "done\n", ran.stderr
    ran = python("-m", "pulsarx", "run", "--root", "other", "program.py")
    assert "TopicNotFound" in ran.stderr


def test_what_a_program_raises_is_told_as_python_does(python: Python, tmp_path: Path):
    (tmp_path / "fails.py").write_text("import sys\nsys.exit(7)\n")
    assert python("-m", "pulsarx", "run", "--root", "data", "fails.py").returncode == 7
    (tmp_path / "raises.py").write_text("1 / 0\n")
    ran = python("-m", "pulsarx", "run", "--root", "data", "raises.py")
    assert ran.returncode == 1
    assert ran.stderr.strip().endswith("ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "which program?"),
        (["run", "x.py"], "where do the program's URLs lead?"),
        (["run", "--root"], "--root needs a value"),
        (["run", "--root", "a", "x.py", "--root", "b"], "--root is given twice"),
        (["run", "--root", "a", "missing.py"], "there is no file 'missing.py'"),
        (["run", "--route", "pulsar://a", "x.py"], "write URL=FOLDER"),
        (["run", "--route", "a=b", "x.py"], "a cluster is written"),
        (["run", "--route", "pulsar://a=b", "--route", "pulsar://a=c", "x.py"], "is given twice"),
        (["run", "--root", "a", "--namespace", "one", "x.py"], "write tenant/namespace"),
        (["walk"], "No such command 'walk'"),
        ([], "Usage: pulsarx"),
    ],
)
def test_a_wrong_command_line_is_said(python: Python, arguments: list[str], said: str):
    ran = python("-m", "pulsarx", *arguments)
    assert ran.returncode == 2
    assert said in ran.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"]])
def test_help_is_given(python: Python, arguments: list[str]):
    ran = python("-m", "pulsarx", *arguments)
    assert (ran.returncode, ran.stdout[:6].lower()) == (0, "usage:")
