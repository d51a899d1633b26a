"""What was confirmed survives power cuts of ext4 and XFS at any moment: messages
in order, none skipped, what was acknowledged before a close, and the folder opens without damage.
Needs root, loop devices and mkfs; the method is in power_cuts.py."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from counts import counted
from planted_code import CAN_PLANT, REASON
from power_cuts import BUGS, DURABILITIES
from seeds import new_seed, scaled

HERE = Path(__file__).resolve().parent
UNSHARED = ("unshare", "-m", "--propagation", "private")
PACKAGES = {"ext4": "e2fsprogs", "xfs": "xfsprogs"}
CUTS = 100
CONTROL_CUTS_MAX = 400  # until something is lost

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount: run this test as root"),
    pytest.mark.skipif(shutil.which("unshare") is None, reason="install util-linux for `unshare`"),
]
each_kind = pytest.mark.parametrize("kind", PACKAGES)


def cut(kind: str, durability: str, count: int, bug: str = "") -> dict[str, Any]:
    """What power_cuts.py says, in a namespace of its own for mounts."""
    if shutil.which(f"mkfs.{kind}") is None:
        pytest.skip(f"mkfs.{kind} is missing: install {PACKAGES[kind]}")
    if subprocess.run([*UNSHARED, "true"], capture_output=True).returncode:
        pytest.skip("no namespace for mounts here: give the container CAP_SYS_ADMIN")
    arguments = [kind, durability, str(count), str(new_seed()), *([bug] if bug else [])]
    done = subprocess.run(
        [*UNSHARED, sys.executable, str(HERE / "power_cuts.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=60 + 30 * count,
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-4000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if "skip" in found:
        pytest.skip(f"no file system on a loop device can be mounted here: {found['skip']}")
    if not bug:
        counted(count, "power cuts")
    print(f"{kind}, {durability}: {count} power cuts, {found['cuts_a_second']:.1f} a second")
    return found


@each_kind
@pytest.mark.parametrize("durability", DURABILITIES)
def test_what_was_confirmed_survives_power_cuts(kind: str, durability: str) -> None:
    found = cut(kind, durability, scaled(CUTS))
    assert found["wrong"] == []


@each_kind
@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.skipif(not CAN_PLANT, reason=REASON)
def test_a_library_that_flushes_nothing_loses(kind: str, bug: str) -> None:
    """The control: such cuts take what is not on the device."""
    found = cut(kind, "sync", CONTROL_CUTS_MAX, bug)
    print(f"{bug}: {found['wrong'][:1]}")
    assert any("ended by itself" not in each for each in found["wrong"]), found
