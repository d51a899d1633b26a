"""Any bit of any file may flip: nothing wrong is delivered, nothing is missing in silence, `check`
tells the flip, and a salvage has the rest. A sample here, slices in the campaign "every-bit"."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from counts import counted
from every_bit import SLICES, EveryBit, meaningless, new_sweep
from planted_code import CAN_PLANT, REASON
from seeds import GIVEN, new_seed, scaled, seeds

from pulsarx.backups import proof

HERE = Path(__file__).resolve().parent
SAMPLE = 200  # bits, times PULSARX_TEST_SCALE


@pytest.fixture(scope="module")
def sweep() -> Iterator[EveryBit]:
    with new_sweep() as made:
        yield made


def first_fault(sweep: EveryBit, count: int) -> tuple[int, list[str]]:
    """After how many bits of the sample something is wrong, and what; (count, []): nothing."""
    for number, each in enumerate(sweep.sample(new_seed(), count), 1):
        if found := sweep.faults(*each):
            return number, found
    counted(count, "flipped bits")
    return count, []


def test_a_bit_of_each_file_flips(sweep: EveryBit) -> None:
    assert first_fault(sweep, scaled(SAMPLE)) == (scaled(SAMPLE), [])


@pytest.mark.long
def test_a_slice_of_all_bits_flips(sweep: EveryBit) -> None:
    """PULSARX_TEST_SEED modulo SLICES says which."""
    number = int(GIVEN or new_seed()) % SLICES
    bits = list(sweep.slice(number, SLICES))
    print(f"slice {number} of {SLICES}, {len(bits)} bits")
    wrong = [fault for each in bits for fault in sweep.faults(*each)]
    counted(len(bits), "flipped bits")
    assert wrong == []


def test_what_has_no_meaning_is_as_the_formats_say(sweep: EveryBit) -> None:
    kept = {name: sweep.path_of(name).read_bytes() for name in sweep.targets}
    listed = {name: meaningless(name, data) for name, data in kept.items()}
    whole = {"LOCK", "reserve", "ends", "staging/job/one"}
    for name, data in kept.items():
        ranges = [each[:2] for each in listed[name]]
        if name in whole or "prepared ledger" in str(listed[name]):
            assert ranges == [(0, len(data))], name
        elif name.startswith(("ledgers/", "store/")):
            # Header, entries, index and footer mean something.
            assert all(begin > 4096 + 64 for begin, _ in ranges), name
        elif name.startswith("cursors/"):
            assert all(begin >= 4096 for begin, _ in ranges), name
        else:
            assert ranges == [], name


@pytest.mark.parametrize("seed", seeds(10))
def test_what_has_no_meaning_may_be_anything_at_once(seed: int, sweep: EveryBit) -> None:
    assert sweep.anything(seed) == []


# Planted bugs -------------------------------------------------------------------------------------


def check_without_cursors(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(proof.Proof, "_prove_cursor", lambda *_: None)


def check_without_second_copies(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(proof, "commit_fault", lambda *_: "")


def check_without_headers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(proof.Proof, "_tell_header", lambda *_, **__: None)


def check_without_sequences(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(proof.Proof, "_prove_sequences", lambda *_: None)


PLANTED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    each.__name__: each
    for each in (
        check_without_cursors,
        check_without_second_copies,
        check_without_headers,
        check_without_sequences,
    )
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_check_that_looks_away_is_found(
    bug: str, monkeypatch: pytest.MonkeyPatch, sweep: EveryBit
) -> None:
    PLANTED[bug](monkeypatch)
    number, found = first_fault(sweep, 2 * SAMPLE)
    print(f"{bug} is found by bit {number}: {found}")
    assert found


NO_CHECKSUMS = """
import sys
from planted_code import let_return_0
let_return_0("pulsarx._core.crc32c", "crc32c", "crc32c_u64")
from every_bit import new_sweep
with new_sweep() as sweep:
    for number, each in enumerate(sweep.sample(int(sys.argv[1]), int(sys.argv[2])), 1):
        try:
            found = sweep.faults(*each)
        except Exception as error:  # what is not what was written, and is believed
            found = [repr(error)]
        print(number, each, found, flush=True)
        if any("never published" in fault for fault in found):
            break
"""


@pytest.mark.skipif(not CAN_PLANT, reason=REASON)
def test_a_library_that_compares_no_checksums_is_found() -> None:
    """Every checksum is 0 there, when it is written and when it is compared."""
    done = subprocess.run(
        [sys.executable, "-c", NO_CHECKSUMS, str(new_seed()), str(4 * SAMPLE)],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=600,
    )
    is_found = "never published" in done.stdout or done.returncode < 0  # it believed what it read
    assert is_found, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    print(done.stdout.splitlines()[-1][:500])
