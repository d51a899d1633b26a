"""What the command line says beside what went wrong: names that are meant, options, making folders;
and CSV."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke, process, rows

import pulsarx
from pulsarx import errors, rest
from pulsarx.cli import output
from pulsarx.cli.advice import advised
from pulsarx.cli.commands import loaded
from pulsarx.cli.folder import Folder

# Names that are meant -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("stats ordrs", "'orders'"),
        ("topics stats persistent://public/default/ordrs", "'persistent://public/default/orders'"),
        ("peek orders -s biling", "'billing'"),
        ("subscriptions delete orders -s bilings", "'billing'"),
        ("topics list public/defalt", "'public/default'"),
        ("namespaces get-retention public/defalt", "'public/default'"),
        ("produce public/defalt/x -m a", "'public/default'"),
        ("ls public/defalt", "'public/default'"),
        ("tenants get publik", "'public'"),
        ("stat", "'stats'"),
        ("topics creat orders", "'create'"),
    ],
)
def test_the_name_that_is_meant_is_asked_for(folder: Path, line: str, meant: str):
    result = invoke(folder, *line.split())
    assert result.exit_code in (1, 2)
    assert f". Did you mean {meant}" in result.stderr


@pytest.mark.parametrize("line", ["stats nothing-alike", "peek orders -s q", "ls acme/none"])
def test_nothing_is_asked_where_nothing_is_near(folder: Path, line: str):
    result = invoke(folder, *line.split())
    assert result.exit_code == 1
    assert "Did you mean" not in result.stderr


# Options ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "told", "said"),
    [
        ("consuming:consume", "give initial_position=InitialPosition.Earliest",
         "give --initial-position Earliest"),
        ("consuming:consume", "initial_position is for", "--initial-position is for"),
        ("topics:delete", "delete it with force=True, which closes them",
         "delete it with --force, which closes them"),
        ("producing:produce", "or set chunking_enabled=True", "or set --chunking"),
        ("topics:create", "create it: client.admin.namespaces.create_namespace, "
         "`pulsarx namespaces create`", "create it: `pulsarx namespaces create`"),
    ],
)  # fmt: skip
def test_arguments_of_python_are_told_as_options(command: str, told: str, said: str):
    error = errors.NotAllowedError(detail=told)
    assert advised(error, loaded(f"pulsarx.cli.{command}"), {}, Folder()) == said


def test_a_topic_with_producers_is_deleted_with_the_option_that_is_named(folder: Path):
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("orders")
        result = invoke(folder, "topics", "delete", "orders")
        assert result.exit_code == 1
        assert "--force" in result.stderr and "force=" not in result.stderr
        rows(invoke(folder, "topics", "delete", "orders", "--force"))
        producer.close()


# Making a folder ----------------------------------------------------------------------------------


def test_a_folder_is_made_once(tmp_path: Path):
    """No command made one, so that a shell alone could not begin."""
    place = tmp_path / "events"
    assert rows(process(tmp_path, "init", str(place))) == [{"folder": str(place), "made": True}]
    rows(invoke(place, "produce", "orders", "-m", "one,two"))
    assert rows(invoke(place, "init")) == [{"folder": str(place), "made": False}]
    assert len(rows(invoke(place, "tail", "orders"))) == 2


def test_an_empty_folder_becomes_one_and_another_stays_as_it_is(tmp_path: Path):
    empty, other = tmp_path / "empty", tmp_path / "other"
    empty.mkdir()
    assert rows(invoke(empty, "init"))[0]["made"] is True
    other.mkdir()
    (other / "file").write_text("mine")
    result = invoke(other, "init")
    assert result.exit_code == 1 and "not a PulsarX data directory" in result.stderr
    assert [each.name for each in other.iterdir()] == ["file"]
    assert invoke("http://localhost:1", "init").exit_code == 2


def test_a_missing_folder_is_named_with_the_command_that_makes_it(tmp_path: Path):
    missing = tmp_path / "missing"
    result = invoke(missing, "produce", "orders", "-m", "one")
    assert f"pulsarx init {missing}" in result.stderr


def test_producing_makes_a_folder_when_it_is_told(tmp_path: Path):
    place = tmp_path / "events"
    for text in ("one", "two"):
        rows(invoke(place, "produce", "orders", "-m", text, "--create-folder"))
    assert [each["data"] for each in rows(invoke(place, "tail", "orders"))] == ["one", "two"]


# CSV ----------------------------------------------------------------------------------------------


def table(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    result = invoke(folder, *arguments, "--format", "csv")
    assert result.exit_code == 0, result.stderr
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_rows_are_csv_with_a_line_of_heads(folder: Path):
    found = table(folder, "ls")
    assert found[0] == {"topic": "persistent://public/default/orders", "partitions": "0"}
    assert found == table(folder, "ls", "--output", "csv")
    [orders, _] = table(folder, "stats")
    assert (orders["messages"], orders["subscriptions"]) == ("5", "1")


def test_messages_are_csv_whatever_they_hold(folder: Path):
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("odd")
        producer.send(b'a, "b"\nc', {"x": "1"}, "k")
        producer.send(b"\xff", {"y": "2"})
        producer.send(None)
    texts, binary, nothing = table(folder, "read", "odd", "-m", "earliest", "--to-end")
    assert (texts["data"], texts["key"], texts["encoding"]) == ('a, "b"\nc', "k", "utf-8")
    assert (binary["data"], binary["encoding"]) == ("/w==", "base64")
    assert (nothing["data"], nothing["encoding"]) == ("", "")
    assert [texts["properties"], binary["properties"]] == ['{"x": "1"}', '{"y": "2"}']


def test_a_text_that_a_spreadsheet_would_run_begins_with_an_apostrophe(folder: Path):
    """As in the CSV that the page saves."""
    page = Path(rest.__file__ or "").parent / "page" / "download.js"
    found = re.search(r"BEGINS_FORMULA = /\^\[(.*)\]/;", page.read_text())
    assert found is not None
    begins = found[1].replace("\\-", "-").encode().decode("unicode_escape")
    assert sorted(begins) == sorted(output._BEGIN_FORMULAS)
    texts = [f"{each}1+1" for each in begins]
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("odd")
        for text in texts:
            producer.send(text.encode(), partition_key=text, event_timestamp=5)
        producer.send(b"1=1", {"=x": "=y"})
    *odd, plain = table(folder, "read", "odd", "-m", "earliest", "--to-end")
    assert [each["data"] for each in odd] == [each["key"] for each in odd]
    assert [each["data"] for each in odd] == [f"'{text}" for text in texts]
    assert odd[0]["event_time_ms"] == "5"
    assert (plain["data"], plain["properties"]) == ("1=1", '{"=x": "=y"}')
    result = invoke(folder, "stats", "odd", "--format", "csv")  # figures are no texts
    assert ",-1" in result.stdout and "'-1" not in result.stdout


def test_one_thing_is_a_line_of_csv_with_its_parts(folder: Path):
    [found] = table(folder, "stats", "orders")
    assert found["subscriptions.billing.msg_backlog"] == "5"
    assert found["terminated"] == "false"
