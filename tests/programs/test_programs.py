"""Programs written for the official client run unchanged, and print what they do on Pulsar."""

from __future__ import annotations

from pathlib import Path

import program_runs
import pytest

import pulsarx


def test_there_are_many_programs() -> None:
    assert len(program_runs.NAMES) >= 25


def test_each_program_has_its_expected_output() -> None:
    kept = {each.stem for each in program_runs.SCRIPTS.glob("*.txt")}
    assert kept == set(program_runs.NAMES)


def test_programs_import_pulsar_and_not_pulsarx() -> None:
    for name in program_runs.NAMES:
        text = (program_runs.SCRIPTS / f"{name}.py").read_text()
        assert "pulsarx" not in text, name
        assert "pulsar" in text, name


@pytest.mark.standard
@pytest.mark.parametrize("name", program_runs.NAMES)
def test_the_program_prints_what_pulsar_made_it_print(name: str, tmp_path: Path) -> None:
    root = tmp_path / "folder"
    with pulsarx.Client(root) as client:
        for topic, partitions in program_runs.partitioned_topics(name).items():
            client.admin.topics.create_partitioned_topic(topic, partitions)
    url = "pulsar://localhost:6650"
    before = ["-m", "pulsarx", "run", "--route", f"{url}={root}"]
    printed = program_runs.output_of(name, before, url)
    assert printed == program_runs.expected(name)
