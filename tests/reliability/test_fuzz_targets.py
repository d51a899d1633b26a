"""Parsers of bytes that nobody vouches for: all that fuzzers have found of interest is tried again.

The inputs are those of corpora/ and fuzz_seeds.py. Where the decoders of the core read behind the
bytes they are given, this process dies; `make sanitize` says where.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("fastavro", reason="no fastavro: pip install 'pulsarx[avro]'")
pytest.importorskip("pyarrow", reason="no PyArrow: pip install 'pulsarx[arrow]'")
pytest.importorskip("starlette", reason="no starlette: pip install 'pulsarx[serve]'")

from fuzz_plants import PLANTS
from fuzz_seeds import seeds_of
from fuzz_targets import CORPORA, TARGETS, corpus_of

SECONDS_MAX = 5.0  # of one input; each takes some ms
CORPUS_BYTES_MAX = 8 << 10
HERE = Path(__file__).resolve().parent


def inputs_of(name: str) -> list[bytes]:
    return corpus_of(name) + seeds_of(name)


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_of_fuzzers_are_taken_or_refused(name: str) -> None:
    for data in [b"", *inputs_of(name)]:
        print(f"{name}: {data.hex()}")
        began = time.thread_time()
        TARGETS[name](data)
        assert time.thread_time() - began < SECONDS_MAX


def test_each_target_has_a_small_corpus() -> None:
    assert {path.stem for path in CORPORA.iterdir()} == set(TARGETS)
    for name in TARGETS:
        sizes = [len(each) for each in corpus_of(name)]
        assert sizes and sum(sizes) <= CORPUS_BYTES_MAX, name


# Each in a fork: what reads too far ends its process.
PLANTED = """
import os, sys
sys.path[:0] = {paths!r}
from test_fuzz_targets import PLANTS, TARGETS, inputs_of
import fuzz_targets
fuzz_targets.decoders()
for name, each in PLANTS.items():
    inputs = inputs_of(each.target)
    for data in inputs:
        TARGETS[each.target](data)
    if (child := os.fork()) == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        each.plant()
        for number, data in enumerate(inputs, 1):
            os.ftruncate(3, 0)
            os.pwrite(3, str(number).encode(), 0)
            TARGETS[each.target](data)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    print(name, "found" if status else "MISSED", os.pread(3, 20, 0).decode(), sep=": ", flush=True)
"""


def test_planted_bugs_are_found_by_what_is_in_the_tree(tmp_path: Path) -> None:
    """A decoder without its bounds check, and wrong values."""
    tests = HERE.parent
    paths = [str(HERE), str(tests / "core"), str(tests), str(tests.parent / "tools")]
    program = f"import os; os.dup2(os.open({str(tmp_path / 'n')!r}, os.O_RDWR | os.O_CREAT), 3)\n"
    program += PLANTED.format(paths=paths)
    # What is found here is no report of `make sanitize`.
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": ""}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(PLANTS) and "MISSED" not in done.stdout
