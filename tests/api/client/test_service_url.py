"""Facts about what a client's URL means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pulsarx.errors import InvalidUrl, OperationNotSupported
from pulsarx.options.service_url import parse_service_url


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    return tmp_path


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("x", "{here}/x"),
        ("./x", "{here}/x"),
        (".", "{here}"),
        ("a/../b//c/", "{here}/b/c"),
        ("/x/y", "/x/y"),
        ("~/x", "/home/somebody/x"),
        ("with blank", "{here}/with blank"),
        ("100%", "{here}/100%"),
        ("./localhost:6650", "{here}/localhost:6650"),
        ("file:x/y", "{here}/x/y"),
        ("file:/x/y", "/x/y"),
        ("file:///x/y", "/x/y"),
        ("file://localhost/x", "/x"),
        ("FILE:/x", "/x"),
        ("file:/x%20y%2Fz%25", "/x y/z%"),
        ("file:/%C3%BC", "/ü"),
        ("file:/ü", "/ü"),
        ("file:/%ff", os.fsdecode(b"/\xff")),
    ],
)
def test_folders(url: str, folder: str, in_a_folder: Path) -> None:
    parsed = parse_service_url(url)
    assert parsed.folder == folder.format(here=in_a_folder)
    assert parsed.memory_name is None
    assert parsed.text == url


def test_paths_are_folders_whatever_they_look_like(in_a_folder: Path) -> None:
    assert parse_service_url(Path("x")).folder == str(in_a_folder / "x")
    assert parse_service_url(Path("memory:")).folder == str(in_a_folder / "memory:")


def test_a_folder_stays_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = parse_service_url("x")
    monkeypatch.chdir("/")
    assert parsed.folder == str(tmp_path / "x")


@pytest.mark.parametrize(("url", "name"), [("memory:", ""), ("memory:x-1", "x-1"), ("Memory:", "")])
def test_brokers_in_memory(url: str, name: str) -> None:
    parsed = parse_service_url(url)
    assert (parsed.memory_name, parsed.folder) == (name, None)


def test_the_same_place_is_equal_however_it_is_written(in_a_folder: Path) -> None:
    assert parse_service_url("x") == parse_service_url(f"file://{in_a_folder}/x")
    assert hash(parse_service_url("x")) == hash(parse_service_url("./x"))
    assert parse_service_url("memory:") != parse_service_url("memory:x")
    assert parse_service_url("memory:") != "memory:"


@pytest.mark.parametrize(
    "url",
    ["", "  ", "file:", "file://", "file:///%00", "a\0b", "file://host/x", "file://x", "file:/%2",
     "file:/%zz", "file:/%+1", "file:/a?b", "file:/a#b", "memory://x", "memory:a/b", "memory:a b",
     "localhost:6650", "foo://x", "s3://bucket", "mem:"],
)  # fmt: skip
def test_what_cannot_be_understood_is_an_invalid_url(url: str) -> None:
    with pytest.raises(InvalidUrl) as caught:
        parse_service_url(url)
    assert repr(url) in caught.value.detail


@pytest.mark.parametrize("url", ["pulsar://h:6650", "pulsar+ssl://h", "http://h", "HTTPS://h"])
def test_a_cluster_is_refused_with_what_to_use(url: str) -> None:
    with pytest.raises(OperationNotSupported, match="pulsar-client"):
        parse_service_url(url)


@pytest.mark.parametrize("wrong", [None, 5, b"x", ["x"]])
def test_other_types_are_value_errors(wrong: object) -> None:
    with pytest.raises(ValueError, match="Argument service_url is expected"):
        parse_service_url(wrong)  # type: ignore[arg-type]
