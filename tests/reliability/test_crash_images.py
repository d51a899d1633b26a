"""A crash at any call of a workload, and then at any call of the recovery, leaves a folder in which
everything holds that was promised; and bugs that would break a promise are found so."""

from __future__ import annotations

import json
import logging
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from counts import counted
from crash_bugs import BUGS, TRANSACTION_BUGS, appended_behind_a_hole, snapshot_of_sequences_ahead
from crash_history import Found, History
from crash_images import CrashFault, CrashImages, scratch, workload_calls
from crash_session import recover
from crash_workloads import WORKLOADS
from seeds import SCALE, new_seed, scaled

from pulsarx.testing.device import Device, Image

DURABILITIES = ("sync", "interval", "os")
IMAGES = 30  # of a workload, in a round of a campaign of scale 1


@pytest.fixture
def above() -> Iterator[Path]:
    """What is lost is told by the log, for each image."""
    logger = logging.getLogger("pulsarx")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with scratch() as made:
            yield made
    finally:
        logger.setLevel(level)


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_image_of_a_crash_keeps_what_was_promised(
    above: Path, workload: str, durability: str
) -> None:
    folder = above / "work"
    calls = workload_calls(workload, durability, folder)
    most = 3 if SCALE < 1 else 12
    images = CrashImages(above, new_seed(), images=scaled(IMAGES), most=most, second=6)
    images.check(workload, calls, folder, durability)
    print(f"{workload}, {durability}: {images.counts}")
    counted(images.counts.images + images.counts.second, "images of crashes")
    counted(
        images.counts.opened + images.counts.seconds_opened, "different images that were opened"
    )
    assert images.counts.opened


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(above: Path, bug: str) -> None:
    change, workload, durability = BUGS[bug]
    folder = above / "work"
    calls = change(workload_calls(workload, durability, folder))
    images = CrashImages(above, new_seed(), images=10_000, most=6, second=0)
    with pytest.raises(CrashFault) as found:
        images.check(workload, calls, folder, durability)
    print(f"{bug}: found with {images.counts}: {str(found.value)[:2000]}")


def test_a_snapshot_of_sequences_ahead_of_its_messages_is_found(above: Path) -> None:
    folder = above / "work"
    with snapshot_of_sequences_ahead():
        calls = workload_calls("deduplicate", "os", folder)
    images = CrashImages(above, new_seed(), images=10_000, most=6, second=0)
    with pytest.raises(CrashFault) as found:
        images.check("deduplicate", calls, folder, "os")
    print(f"found with {images.counts}: {str(found.value)[:2000]}")


@pytest.mark.parametrize("bug", TRANSACTION_BUGS)
def test_a_planted_bug_of_transactions_is_found(above: Path, bug: str) -> None:
    plant, workload, durability = TRANSACTION_BUGS[bug]
    folder = above / "work"
    images = CrashImages(above, new_seed(), images=10_000, most=6, second=0)
    with plant():
        calls = workload_calls(workload, durability, folder)
        with pytest.raises(CrashFault) as found:
            images.check(workload, calls, folder, durability)
    print(f"{bug}: found with {images.counts}: {str(found.value)[:2000]}")


def has_a_hole(image: Image) -> bool:
    """Whether of three messages the first and the third one are there, and the second is not."""
    for content in image.files.values():
        data = b"".join(each for _, each in sorted(content[1].items())) if content else b""
        if b"m0 m0" in data and b"m2 m2" in data and data.count(b"m1 ") < 700:
            return True
    return False


def holds_first(found: Found) -> bool:
    return "t" in found and found["t"].messages == ["m0"]


def test_appending_to_the_ledger_of_a_dead_owner_is_found(above: Path) -> None:
    """Entries behind a hole come back when the hole is filled."""
    folder, image_folder, copy = above / "work", above / "image", above / "copy"
    calls = workload_calls("publish_together", "sync", folder)
    device, history = Device(folder), History("sync")
    chance, count = random.Random(new_seed()), 0
    faults: list[str] = []
    for call in calls:
        for image in device.images(chance, 2000) if call.op == "flush" and not faults else ():
            if not has_a_hole(image):
                continue
            image.write(image_folder)
            shutil.copytree(image_folder, copy)
            found = recover(copy, "sync", set()).found
            text = appended_behind_a_hole(image_folder, calls) if holds_first(found) else ""
            if text:
                count += 1
                then = history.seen(found)
                then.apply(json.dumps(["send", "t", [text]]).encode())
                then.apply(json.dumps(["sent", "t", [text]]).encode())
                faults += then.faults(recover(image_folder, "sync", set()).found, killed=True)
            shutil.rmtree(image_folder)
            shutil.rmtree(copy)
            if faults:
                break
        device.apply(call)
        if call.op == "mark":
            history.apply(call.data)
    print(f"found with {count} images: {faults}")
    assert any("never sent" in each and "m2" in each for each in faults)
