"""`python -m pulsarx run`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import pulsarx

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
        f"{begin}print(client.subscribe('t', 's').receive(60_000).data())\nclient.close()\n"
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
        (["consum"], "No such command 'consum'. Did you mean 'consume'"),
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


def test_a_cluster_in_memory_outlives_its_clients(python: Python, tmp_path: Path):
    """It was gone with its last client, and the next one found nothing of what was sent."""
    (tmp_path / "script.py").write_text(
        """
import pulsar

def sent(url):
    client = pulsar.Client(url)
    client.create_producer("t").send(b"x")
    client.close()

def received(url):
    client = pulsar.Client(url)
    consumer = client.subscribe("t", "s", initial_position=pulsar.InitialPosition.Earliest)
    print(consumer.receive(60_000).data())
    client.close()

for url in ("pulsar://one", "pulsar://two"):
    sent(url)
    received(url)
"""
    )
    route = ("--route", "pulsar://two=memory:two")
    ran = python("-m", "pulsarx", "run", "--root", "memory:", *route, "script.py")
    assert ran.stdout == "b'x'\nb'x'\n", ran.stderr


STARTING = """
import os
import subprocess
import sys
import pulsar

os.mkdir("elsewhere")
client = pulsar.Client("pulsar://localhost:6650")
consumer = client.subscribe("shop/eu/t", "s")
subprocess.run([sys.executable, "../child.py"], cwd="elsewhere", check=True)
print(consumer.receive(60_000).data())
client.close()
"""
CHILD = """
import sys
print([name for name in sys.modules if "pulsar" in name])
import pulsar
client = pulsar.Client("pulsar://localhost:6650")
client.create_producer("shop/eu/t").send(b"from the child")
client.close()
"""


def test_processes_that_the_program_starts_have_the_alias_and_the_folders(
    python: Python, tmp_path: Path
):
    """They found the official client, or none, and no folder."""
    (tmp_path / "script.py").write_text(STARTING)
    (tmp_path / "child.py").write_text(CHILD)
    ours = ("--root", "data", "--namespace", "shop/eu")
    ran = python("-m", "pulsarx", "run", *ours, "script.py")
    assert ran.stdout == "[]\nb'from the child'\n", ran.stderr


def test_processes_of_multiprocessing_have_them_however_they_are_started(
    python: Python, tmp_path: Path
):
    (tmp_path / "script.py").write_text(
        """
import multiprocessing
import pulsar

def send(kind):
    client = pulsar.Client("pulsar://localhost:6650")
    client.create_producer("t").send(kind.encode())
    client.close()

if __name__ == "__main__":
    for kind in ("spawn", "forkserver", "fork"):
        process = multiprocessing.get_context(kind).Process(target=send, args=(kind,))
        process.start()
        process.join()
    client = pulsar.Client("pulsar://localhost:6650")
    reader = client.create_reader("t", pulsar.MessageId.earliest)
    while reader.has_message_available():
        print(reader.read_next().data())
    client.close()
"""
    )
    ran = python("-m", "pulsarx", "run", "--route", "pulsar://127.0.0.1=data", "script.py")
    assert ran.stdout == "b'spawn'\nb'forkserver'\nb'fork'\n", ran.stderr


def test_a_sitecustomize_of_the_user_is_imported_all_the_same(python: Python, tmp_path: Path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys; sys.of_the_user = True")
    (tmp_path / "child.py").write_text("import sys; print(sys.of_the_user)")
    (tmp_path / "script.py").write_text(
        "import subprocess, sys; subprocess.run([sys.executable, 'child.py'])"
    )
    path = os.pathsep.join((str(folder), str(Path(pulsarx.__file__).parent.parent)))
    ran = python("-m", "pulsarx", "run", "--root", "data", "script.py", PYTHONPATH=path)
    assert ran.stdout == "True\n", ran.stderr


def test_clusters_in_memory_are_told_to_no_other_process(python: Python, tmp_path: Path):
    (tmp_path / "script.py").write_text("import os; print('PULSARX_RUN' in os.environ)")
    for places in (("--root", "memory:"), ("--route", "pulsar://one=memory:one")):
        ran = python("-m", "pulsarx", "run", *places, "script.py")
        assert ran.stdout == "False\n", ran.stderr


def test_the_folder_is_administered_over_http_while_the_program_runs(
    python: Python, tmp_path: Path
):
    """Programs that make topics and namespaces by Pulsar's REST API had nobody to ask."""
    program = tmp_path / "administering.py"
    program.write_text(
        """
import json, os, sys, urllib.request
import pulsar
with open("ports") as file:
    url = file.read().split()[-1]
at = f"{url}/admin/v2/persistent/public/default"
kind = {"Content-Type": "application/json"}
asked = urllib.request.Request(f"{at}/made/partitions", b"2", kind, method="PUT")
urllib.request.urlopen(asked).close()
client = pulsar.Client("pulsar://localhost:6650")
print(len(client.get_topic_partitions("made")))
client.create_producer("other").send(b"x")
print(json.load(urllib.request.urlopen(at)))
"""
    )
    starts = (
        "import os, sys; descriptor = os.open('ports', os.O_CREAT | os.O_WRONLY);"
        "os.dup2(descriptor, 2); from pulsarx.cli.run import main;"
        "sys.exit(main(['--root', 'data', '--http=0', 'administering.py']))"
    )
    ran = python("-c", starts)
    assert ran.returncode == 0, (tmp_path / "ports").read_text()
    names = [f"made-partition-{number}" for number in range(2)] + ["other"]
    topics = [f"persistent://public/default/{name}" for name in names]
    assert ran.stdout == f"2\n{topics}\n"
    said = (tmp_path / "ports").read_text()
    assert said.startswith("pulsar://localhost:6650 is administered at http://127.0.0.1:")


@pytest.mark.parametrize("port", ["x", "65536", "-1"])
def test_a_port_that_is_none_is_refused(python: Python, port: str):
    ran = python("-m", "pulsarx", "run", "--root", "data", f"--http={port}", "x.py")
    assert ran.returncode == 2 and f"--http={port}: give a number" in ran.stderr
