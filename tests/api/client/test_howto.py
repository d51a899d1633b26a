"""The pages in docs/ are true: each block of Python is a file, and its tests pass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.standard
@pytest.mark.parametrize("page", ["testing.md", "coming-from/testcontainers-pulsar.md"])
def test_the_programs_of_the_pages_about_testing_pass_their_tests(page: str, tmp_path: Path):
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for name, code in blocks:
        (tmp_path / name).write_text(code, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_pulsarx", "--strict-markers"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    tests = text.count("def test_") + text.count('parametrize("number", [b"1", b"2"])')
    assert f"{tests} passed" in run.stdout and len(blocks) == text.count("```python")


def test_the_text_of_a_failed_assertion_is_that_of_the_page():
    from pulsarx import testing

    page = (DOCS / "testing.md").read_text(encoding="utf-8")
    shown = re.search(r"^```\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    with testing.broker() as shop:
        producer = shop.client.create_producer("orders")
        producer.send(b"one", partition_key="ada")
        producer.send(b"one", partition_key="bob")
        waiting = shop.client.create_producer("others", batching_enabled=True)
        waiting.send_async(b"two", None)
        with pytest.raises(AssertionError) as caught:
            testing.published(shop.client, "orders", b"one", b"two", key="ada")
        [first] = testing.published(shop.client, "orders", key="ada")
    told = str(caught.value).replace(str(first.message_id()), "(3,0,-1,-1)")
    assert shown is not None and shown[1] == told + "\n"
