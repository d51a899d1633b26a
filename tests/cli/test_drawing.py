"""Tables, screens and bars as a terminal gets them."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import pytest

from pulsarx.cli.drawing import Bar, Screen, table_lines, terminal_size, text_width

ROWS = [["orders", "12"], ["a-topic-with-a-long-name", "3"]]


@pytest.fixture(autouse=True)
def no_columns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("COLUMNS", raising=False)
    yield


def drawn(rows: Sequence[Sequence[str]], heads: Sequence[str] = ("TOPIC", "BACKLOG")) -> list[str]:
    return list(table_lines(heads, rows, right=[False, True, *[False] * 9][: len(rows[0])]))


def test_columns_are_as_wide_as_their_widest_cell():
    assert drawn(ROWS) == [
        "TOPIC                     BACKLOG",
        "orders                         12",
        "a-topic-with-a-long-name        3",
    ]


def test_a_table_without_heads_is_its_rows():
    assert drawn(ROWS, heads=[]) == [
        "orders                    12",
        "a-topic-with-a-long-name   3",
    ]
    assert list(table_lines([], [], right=[])) == []


def test_bold_heads_take_no_more_columns():
    head, _, _ = table_lines(["TOPIC", "BACKLOG"], ROWS, right=[False, True], bold=True)
    assert head == "\x1b[1mTOPIC                     BACKLOG\x1b[0m"
    assert text_width(head) == len("a-topic-with-a-long-name  BACKLOG")


def test_wide_and_combining_characters_count_as_a_terminal_shows_them():
    assert text_width("日本") == 4
    assert text_width("é") == 1
    assert drawn([["日本", "1"], ["abcd", "2"]], heads=[]) == ["日本  1", "abcd  2"]


def test_columns_say_how_wide_a_pipe_is_taken_for(monkeypatch: pytest.MonkeyPatch):
    assert terminal_size(io.StringIO()) is None
    monkeypatch.setenv("COLUMNS", "33")
    size = terminal_size(io.StringIO())
    assert size is not None and size[0] == 33


def test_a_screen_comes_and_goes_and_is_drawn_in_place():
    stream = io.StringIO()
    with Screen(stream) as screen:
        screen.show(["one", "two"])
        screen.show(["three"])
    assert stream.getvalue() == (
        "\x1b[?1049h\x1b[?25l"
        "\x1b[Hone\x1b[K\ntwo\x1b[K\n\x1b[J"
        "\x1b[Hthree\x1b[K\n\x1b[J"
        "\x1b[?25h\x1b[?1049l"
    )


def test_a_bar_is_written_a_hundred_times_and_leaves_nothing():
    stream = io.StringIO()
    with Bar(stream, "Reading", 100_000) as bar:
        for _ in range(100_000):
            bar.advance(1)
    shown = stream.getvalue().split("\r\x1b[K")
    assert shown[1] == "Reading 0 of 100,000 ....................   0%"
    assert shown[-2] == "Reading 100,000 of 100,000 #################### 100%"
    assert shown[-1] == ""
    assert len(shown) < 110


def test_a_bar_without_a_total_counts():
    stream = io.StringIO()
    with Bar(stream, "Checking") as bar:
        for count in range(1, 5001):
            bar.update(count, None)
        bar.update(5000, 10_000)
    shown = stream.getvalue().split("\r\x1b[K")
    assert "Checking 100" in shown
    assert shown[-2] == "Checking 5,000 of 10,000 ##########..........  50%"
    assert len(shown) < 700
