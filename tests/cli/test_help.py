"""What `--help` and completion tell, and what they cost."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import click
import pytest
from command_line import PROGRAM, TIMEOUT, invoke, on_terminal

import pulsarx
from pulsarx.cli.commands import COMMANDS, SUBJECTS, loaded
from pulsarx.cli.declared import Command, Group, sentence

pytestmark = pytest.mark.standard
STARTED = """
import sys
before = set(sys.modules)
from pulsarx.cli import main
try:
    main(sys.argv[1:])
finally:
    print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", STARTED, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=True,
    )


def completed(line: str, shell: str = "bash") -> list[str]:
    """What may stand at the end of a line."""
    words = shlex.split(line) + ([""] if line.endswith(" ") else [])
    place = words[-1] if shell == "fish" else str(len(words) - 1)
    found = run(_PULSARX_COMPLETE=f"{shell}_complete", COMP_WORDS=line, COMP_CWORD=place)
    return found.stdout.splitlines()


# Help ---------------------------------------------------------------------------------------------


def test_commands_are_listed_by_subject_with_a_sentence_each():
    shown = run("--help", COLUMNS="200").stdout
    for subject, commands in SUBJECTS.items():
        _, _, below = shown.partition(f"\n{subject}:\n")
        lines = below.partition("\n\n")[0].splitlines()
        assert [line.split()[0] for line in lines] == list(commands)
        for line in lines:
            purpose = line.split(maxsplit=1)[1]
            assert re.fullmatch(r"[A-Z].{10,}\.", purpose), purpose


@pytest.mark.parametrize("name", [each for each, (place, _) in COMMANDS.items() if ":" in place])
def test_the_sentence_of_a_command_is_that_of_its_own_help(name: str):
    place, purpose = COMMANDS[name]
    found = loaded(place)
    assert purpose == sentence(found.help)
    assert isinstance(found, Command | Group)


@pytest.mark.parametrize("group", ["topics", "subscriptions", "namespaces", "tenants", "schemas"])
def test_the_commands_of_a_group_are_listed_by_subject_with_a_sentence_each(group: str):
    found = loaded(COMMANDS[group][0])
    listed = [name for names in found.subjects.values() for name in names]
    assert sorted(listed) == sorted(found.commands)
    for each in found.commands.values():
        assert re.match(r"[A-Z].{7,}\.", sentence(each.help)), each.help


@pytest.mark.parametrize("columns", [50, 80, 140])
def test_help_is_as_wide_as_the_terminal(columns: int):
    """It ended at 80 columns, and before a hundred."""
    for arguments in (["--help"], ["topics", "--help"], ["perf", "produce", "--help"]):
        status, shown = on_terminal("nowhere", *arguments, columns=columns)
        # Names are not broken, nor is an example.
        lines = [
            each for each in shown.splitlines() if " " in each.strip() and "pulsarx " not in each
        ]
        assert status == 0
        assert columns - 20 < max(map(len, lines)) <= columns
    # Where there is room, it is used.
    wide = on_terminal("nowhere", "--help", columns=140)[1]
    assert max(map(len, wide.splitlines())) > 90


def test_help_is_found_wherever_it_is_asked_for():
    for line in (
        "topics create --help",
        "--url somewhere topics create -h",
        "topics --format json create orders --help",
        "topics --output=csv create --help",
    ):
        assert run(*line.split()).stdout.startswith("Usage: pulsarx topics create [OPTIONS] TOPIC")


def test_what_looks_like_a_call_for_help_may_be_a_value(tmp_path):
    invoke(tmp_path / "events", "init")
    done = invoke(tmp_path / "events", "produce", "orders", "-m", "--help")
    assert done.exit_code == 0, done.stderr
    assert '"data": "--help"' in invoke(tmp_path / "events", "tail", "orders").stdout


def test_click_shows_the_same_help():
    """Help of a command line that click reads, as one with an unknown option in front."""
    for line in ("ls", "topics", "topics create"):
        of_click = invoke("nowhere", *line.split(), "--help").stdout
        assert of_click == run(*line.split(), "--help").stdout


def test_the_version_is_that_of_the_library():
    """It was looked up among installed packages, where a clone is not."""
    assert pulsarx.__version__ in invoke("nowhere", "--version").stdout


def test_a_group_without_a_command_shows_its_help():
    done = subprocess.run(
        [*PROGRAM, "tenants"], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 2 and "Usage: pulsarx tenants" in done.stderr


# Completion ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pulsarx st", ["plain,stats"]),
        ("pulsarx topics create", ["plain,create", "plain,create-partitioned-topic",
                                   "plain,create-subscription"]),
        ("pulsarx --url somewhere tenants cr", ["plain,create"]),
        ("pulsarx top --so", ["plain,--sort"]),
        ("pulsarx top --sort ", ["plain,backlog", "plain,in", "plain,out", "plain,size",
                                 "plain,name"]),
        ("pulsarx top --sort=s", ["plain,size"]),
        ("pulsarx ls --format c", ["plain,csv"]),
        ("pulsarx backup ", ["file,"]),
        ("pulsarx check eve", ["file,eve"]),
        ("pulsarx produce orders --lines li", ["file,li"]),
        ("pulsarx nothing st", []),
        ("pulsarx ls --nothing ", []),
        ("pulsarx serve eve", ["file,eve"]),
        ("pulsarx produce orders -- --m", []),
    ],
)  # fmt: skip
def test_a_word_is_completed(line: str, found: list[str]):
    assert completed(line) == found


def test_each_shell_gets_its_form():
    purpose = COMMANDS["stats"][1]
    assert completed("pulsarx st", "zsh") == ["plain", "stats", purpose]
    assert completed("pulsarx st", "fish") == [f"plain,stats\t{purpose}"]
    assert completed("pulsarx ls 'a b' --fo", "zsh")[:2] == ["plain", "--format"]


# Cost ---------------------------------------------------------------------------------------------

# Python starts with some 30 modules of its own; click alone loads 60 more.
MODULES_MAX = 30


@pytest.mark.parametrize(
    "line", ["--help", "ls --help", "topics --help", "namespaces set-retention --help"]
)
def test_help_loads_little(line: str):
    """Wall time is that of loading: with click help took eight times the start of Python."""
    modules = run(*line.split()).stderr.split()
    assert not {"click", "rich", "json", "re", "argparse", "inspect"} & set(modules)
    assert len(modules) <= MODULES_MAX


@pytest.mark.parametrize("line", ["pulsarx st", "pulsarx topics cr", "pulsarx top --"])
def test_completion_loads_little(line: str):
    words = line.split(" ")
    done = run(_PULSARX_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1))
    assert done.stdout
    modules = done.stderr.split()
    assert not {"click", "rich", "json", "re", "argparse", "inspect"} & set(modules)
    assert len(modules) <= MODULES_MAX


@pytest.mark.parametrize("name", ["serve", "run", "functions"])
def test_help_of_commands_that_read_their_own_arguments_loads_little(name: str):
    modules = run(name, "--help").stderr.split()
    assert not {"click", "rich", "json", "asyncio"} & set(modules)


def test_a_group_is_one_of_click_where_it_is_run():
    from pulsarx.cli.clicked import clicked

    assert isinstance(clicked("topics", loaded(COMMANDS["topics"][0])), click.Group)
