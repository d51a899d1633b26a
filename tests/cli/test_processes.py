"""The command line as a process: pipes, terminals, signals, and what it loads."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from command_line import (
    PROGRAM,
    TIMEOUT,
    Owner,
    invoke,
    on_terminal,
    process,
    rows,
    start,
)

import pulsarx

pytestmark = pytest.mark.standard
ROOT = Path(__file__).resolve().parents[2]


def line_of(running: subprocess.Popen[str]) -> dict[str, Any]:
    assert running.stdout is not None
    found: dict[str, Any] = json.loads(running.stdout.readline())
    return found


# Beside an owner ----------------------------------------------------------------------------------


def test_tail_follows_what_the_owner_publishes(folder: Path, owner: Owner):
    running = start(folder, "tail", "-f", "-n", "1", "orders")
    assert line_of(running)["data"] == "order 4"
    owner.send("new")
    assert line_of(running)["data"] == "new"
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=TIMEOUT)
    assert running.returncode == 130
    assert not told


def test_tail_follows_several_partitions(folder: Path):
    invoke(folder, "topics", "create-partitioned-topic", "parts", "-p", "3")
    invoke(folder, "produce", "parts", "-m", "a", "-db")
    running = start(folder, "tail", "-f", "parts")
    assert line_of(running)["data"] == "a"
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("parts")
        for number in range(6):
            producer.send(b"%d" % number)
    assert sorted(line_of(running)["data"] for _ in range(6)) == list("012345")
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=TIMEOUT)
    assert running.returncode == 130


def test_the_owner_tells_of_its_consumers(folder: Path, owner: Owner):
    [found] = rows(invoke(folder, "stats", "orders"))
    assert len(found["subscriptions"]["billing"]["consumers"]) == 1


def test_consume_gives_the_folder_back_while_it_waits(folder: Path):
    running = start(folder, "consume", "orders", "-s", "billing", "-n", "6")
    for number in range(5):
        assert line_of(running)["data"] == f"order {number}"
    while True:  # until it waits
        try:
            client = pulsarx.Client(folder)
            break
        except pulsarx.FolderOwnedError:
            pass
    with client:
        client.create_producer("orders").send(b"order 5")
    assert line_of(running)["data"] == "order 5"
    running.communicate(timeout=TIMEOUT)
    assert running.returncode == 0
    assert not rows(invoke(folder, "peek", "orders", "-s", "billing"))


# Pipes and terminals ------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["read", "many", "-m", "earliest", "--to-end"], ["ls"]])
def test_a_reader_that_leaves_ends_it_quietly(folder: Path, arguments: list[str]):
    invoke(folder, "produce", "many", "-m", "x" * 1000, "-n", "2000")
    running = start(folder, *arguments)
    assert running.stdout is not None
    if arguments != ["ls"]:
        line_of(running)
    running.stdout.close()
    assert running.stderr is not None
    assert running.stderr.read() == ""
    assert running.wait(TIMEOUT) == 0


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["stats", "absent"], 1), (["stats"] * 9, 2), (["seek", "orders", "-s", "billing"], 2)],
)
def test_a_failure_that_nobody_reads_keeps_its_exit_status(
    folder: Path, arguments: list[str], status: int
):
    """There was a traceback, or the status of one."""
    there, here = os.pipe()
    os.close(there)
    environment = {**os.environ, "PULSARX_URL": str(folder)}
    for standard_error in (here, os.open("/dev/full", os.O_WRONLY)):
        found = subprocess.run(
            [*PROGRAM, *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=standard_error,
            timeout=TIMEOUT,
        )
        os.close(standard_error)
        assert (found.returncode, found.stdout) == (status, b"")


def test_what_a_message_holds_moves_no_cursor(folder: Path):
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("orders")
        producer.send(b"\x1b[2J\x9b31m\r\x08\xff", {"\x1b]0;p\x07": "\u202e"}, "\x1b[1A")
        producer.send("schön ☃".encode())
    status, shown = on_terminal(folder, "tail", "orders", "-n", "2")
    assert status == 0
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "\u202e" not in shown
    assert r"\x1b[2J\x9b31m\r\x08\xff" in shown
    assert "schön ☃" in shown
    _, shown = on_terminal(folder, "tail", "orders", "-n", "2", "--format", "csv")
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "\u202e" not in shown
    assert "schön ☃" in shown
    [escaped, plain] = process(folder, "tail", "orders", "-n", "2").stdout.splitlines()
    assert escaped.isascii()
    assert escaped.isprintable()
    assert json.loads(escaped)["encoding"] == "base64"
    assert json.loads(plain)["data"] == "schön ☃"


def test_a_terminal_gets_tables_and_a_pipe_json_unless_it_is_said(folder: Path):
    status, shown = on_terminal(folder, "ls")
    assert status == 0
    assert "TOPIC" in shown
    assert "public/default/orders" in shown
    assert "{" not in shown
    _, shown = on_terminal(folder, "--format", "json", "ls")
    assert json.loads(shown.splitlines()[0])["topic"] == "persistent://public/default/orders"
    table = process(folder, "ls", "--format", "table").stdout
    assert "TOPIC" in table
    assert "\x1b" not in table


def test_statistics_on_a_terminal_name_what_the_topic_has(folder: Path, owner: Owner):
    status, shown = on_terminal(folder, "stats", "orders")
    assert status == 0
    for each in ("messages", "Producers", "Subscriptions", "billing", "Exclusive", "Ledgers"):
        assert each in shown
    status, shown = on_terminal(folder, "stats")
    assert "public/default/orders" in shown


@pytest.mark.parametrize("command", ["ls", "stats", "top --once -i 0.1"])
def test_a_narrow_terminal_breaks_no_name(folder: Path, command: str):
    """Names were folded, so that nobody could copy one."""
    name = "a-topic-with-a-rather-long-name"
    invoke(folder, "topics", "create", name)
    for columns in (24, 45, 70, 200):
        _, shown = on_terminal(folder, *command.split(), columns=columns)
        assert f"public/default/{name}" in shown
        assert "public/default/orders" in shown


def test_figures_on_a_terminal_have_units(folder: Path):
    """Sizes were numbers of bytes, which the column did not say."""
    invoke(folder, "produce", "large", "-m", "x" * 100_000)
    _, shown = on_terminal(folder, "stats")
    assert re.search(r"public/default/large +0 +1 +\d+\.\d KiB", shown)
    _, shown = on_terminal(folder, "stats", "large")
    assert re.search(r"storage_size +\d+\.\d KiB", shown)
    assert re.search(r"msg_throughput_out +0 B/s", shown)
    [found] = [each for each in rows(invoke(folder, "stats")) if each["topic"].endswith("large")]
    assert found["storage_size"] > 100_000


def test_a_figure_is_drawn_below_the_end_of_its_head(folder: Path):
    _, shown = on_terminal(folder, "ls")
    head, first, *_ = re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()
    assert head.rstrip().endswith("PARTITIONS")
    assert len(first.rstrip()) == len(head.rstrip())


def test_long_work_shows_a_bar_while_the_output_goes_to_a_file(folder: Path, tmp_path: Path):
    with open(tmp_path / "lines", "w") as file:
        file.write("line\n" * 3000)
    status, shown = on_terminal(
        folder, "produce", "many", "-l", str(tmp_path / "lines"), "--format", "json"
    )
    assert status == 0
    with open(tmp_path / "read", "w") as output:
        status, shown = on_terminal(
            folder, "read", "many", "-m", "earliest", "-n", "3000", stdout=output
        )
    assert status == 0
    assert "Reading" in shown
    assert (tmp_path / "read").read_text().count("\n") == 3000


# Arguments and help -------------------------------------------------------------------------------


def test_names_that_look_like_options_stand_behind_two_dashes(folder: Path):
    assert process(folder, "topics", "create", "-x").returncode == 2
    assert process(folder, "topics", "create", "--", "-x").returncode == 0
    assert process(folder, "produce", "-m", "a", "--", "-x").returncode == 0
    [found] = rows(process(folder, "tail", "--", "-x"))
    assert found["data"] == "a"


@pytest.mark.parametrize("arguments", [["nothing"], ["topics", "nothing"], ["ls", "--nothing"], []])
def test_what_is_not_understood_is_a_usage_error(folder: Path, arguments: list[str]):
    result = process(folder, *arguments)
    assert result.returncode == 2
    assert "Usage: pulsarx" in result.stderr
    assert not result.stdout


def test_a_command_that_reads_its_own_arguments_has_no_other_options(folder: Path):
    result = process(folder, "--format", "json", "run", "--root", "data", "program.py", "--x")
    assert result.returncode == 2
    assert "begin with pulsarx run" in result.stderr


def test_a_shell_can_complete(folder: Path):
    environment = {
        "_PULSARX_COMPLETE": "bash_complete",
        "COMP_WORDS": "pulsarx st",
        "COMP_CWORD": "1",
    }
    result = subprocess.run(
        PROGRAM, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=True
    )
    assert result.stdout.splitlines() == ["plain,stats"]
    environment |= {"_PULSARX_COMPLETE": "zsh_source"}
    result = subprocess.run(
        PROGRAM, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=True
    )
    assert "#compdef pulsarx" in result.stdout


# Again and again ---------------------------------------------------------------------------------


def test_what_is_watched_is_drawn_in_place_of_what_was_there(folder: Path):
    status, shown = on_terminal(
        folder, "ls", "-w", "--watch-interval", "0.1", until="\x1b[H", times=3
    )
    assert status == 130
    assert shown.count("public/default/orders") >= 3
    assert shown.count("\x1b[?1049h") == shown.count("\x1b[?1049l") == 1


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", ["ls -w --watch-interval 0.1", "top -i 0.1"])
def test_a_signal_that_ends_what_is_watched_leaves_the_screen(
    folder: Path, command: str, by: signal.Signals
):
    """It left the terminal on the other screen, without a cursor."""
    status, shown = on_terminal(folder, *command.split(), until="\x1b[H", times=3, by=by)
    assert status == -by
    assert shown.endswith("\x1b[?25h\x1b[?1049l")
    assert shown.count("\x1b[?1049h") == shown.count("\x1b[?1049l") == 1


def test_what_is_watched_follows_in_a_pipe(folder: Path, owner: Owner):
    running = start(folder, "stats", "orders", "--watch", "--watch-interval", "0.1")
    assert line_of(running)["messages"] == 5
    owner.send("new")
    while line_of(running)["messages"] != 6:
        pass
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=TIMEOUT)
    assert running.returncode == 130


# Loading ------------------------------------------------------------------------------------------

DRAWING = "pulsarx.cli.drawing"
LOADED = """
import sys
{body}
for name in ("click", "pulsarx.cli.drawing", "json", "pulsarx.cli.topics", "pulsarx.broker.broker"):
    if name in sys.modules:
        print(name, file=sys.stderr)
"""


def loaded_by(body: str, folder: Path) -> set[str]:
    result = subprocess.run(
        [sys.executable, "-c", LOADED.format(body=body), str(folder)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=True,
    )
    return set(result.stderr.split())


def test_a_program_loads_no_command_line(folder: Path):
    body = "import pulsarx; client = pulsarx.Client(sys.argv[1]); client.admin.topics.get_list()"
    assert not loaded_by(body, folder) & {"click", DRAWING}


def test_a_command_loads_what_it_needs(folder: Path):
    command = "from pulsarx.cli import main; main([{}, '--url', sys.argv[1]])"
    assert not loaded_by(command.format("'ls'"), folder) & {DRAWING, "pulsarx.cli.topics"}
    assert DRAWING in loaded_by(command.format("'ls', '--format', 'table'"), folder)
    shown = loaded_by("from pulsarx.cli import main; main(['--help'])", folder)
    assert shown <= {"click", "json"}
    assert not loaded_by("from pulsarx.cli import main; main(['run', '--help'])", folder)


def test_the_installed_program_is_the_same(folder: Path):
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = scripts["pulsarx"].partition(":")
    assert getattr(import_module(module), name)(["--url", str(folder), "ls"]) == 0
