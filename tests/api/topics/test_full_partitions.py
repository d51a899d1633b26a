"""A partition that PulsarX filled is emptied by PulsarX: acknowledging, deleting and opening need
no room. On a tmpfs of 4 MiB that only the program sees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.standard

# Without room: a topic, of which everything is received, and a file that takes what is left.
FILLED = """
import os, sys
import pulsarx
from pulsarx.testing import inspect

folder = sys.argv[1] + "/folder"


def fill(producer, size=5000):
    sent = 0
    try:
        while True:
            producer.send(os.urandom(size))
            sent += 1
    except pulsarx.StorageFullError:
        return sent


def fill_rest():
    with open(sys.argv[1] + "/rest", "ab", buffering=0) as file:
        size = 1 << 20
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                size //= 2


def acknowledge_all(consumer, count):
    for _ in range(count):
        consumer.acknowledge(consumer.receive(timeout_millis=60_000))


def send_when_there_is_room(client, producer):
    for _ in range(3):
        try:
            return producer.send(os.urandom(5000))
        except pulsarx.StorageFullError:
            inspect(client).settle()  # ends the ledger, seals it, trims it
    raise SystemExit("there is no room")


client = pulsarx.Client(folder)
consumer = client.subscribe("t", "s", pulsarx.ConsumerType.Exclusive)
producer = client.create_producer("t")
count = fill(producer)
fill_rest()
assert count > 100
"""


def run_on_small_device(place: Path, *programs: str) -> None:
    """Run the programs one behind the other, each in its own process, on one device."""
    lines = [f"mount -t tmpfs -o size=4m none {place}"]
    lines += [f'"{sys.executable}" -c "$PROGRAM_{each}" {place}' for each in range(len(programs))]
    environment = {f"PROGRAM_{each}": program for each, program in enumerate(programs)}
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    tried = subprocess.run([*command, lines[0]], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"no file system can be mounted here: {tried.stderr}")
    done = subprocess.run(
        [*command, " && ".join(lines)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("type_name", ["Exclusive", "Shared", "KeyShared"])
def test_what_was_acknowledged_makes_room_in_the_living_process(
    tmp_path: Path, type_name: str
) -> None:
    program = """
acknowledge_all(consumer, count)
send_when_there_is_room(client, producer)
inspect(client).settle()  # all that was acknowledged is trimmed
assert fill(producer) >= count - 20  # what is sent again has the room of before
client.close()
"""
    filled = FILLED.replace("ConsumerType.Exclusive", f"ConsumerType.{type_name}")
    run_on_small_device(tmp_path, filled + program)


def test_what_was_acknowledged_makes_room_for_another_topic(tmp_path: Path) -> None:
    program = """
acknowledge_all(consumer, count)
producer.close()
for _ in range(4):  # for the topic, for its first ledger, for the message
    try:
        client.create_producer("other").send(os.urandom(5000))
        break
    except pulsarx.StorageFullError:
        inspect(client).settle()
else:
    raise SystemExit("there is no room")
client.close()
"""
    run_on_small_device(tmp_path, FILLED + program)


@pytest.mark.parametrize("end", ["client.close()", "os._exit(0)"])
def test_what_was_acknowledged_makes_room_after_opening(tmp_path: Path, end: str) -> None:
    filling = f"""
acknowledge_all(consumer, count)
{end}
os._exit(0)
"""
    opening = (
        FILLED[: FILLED.index("client =")]
        + """
with pulsarx.Client(folder) as client:
    send_when_there_is_room(client, client.create_producer("t"))
"""
    )
    run_on_small_device(tmp_path, FILLED + filling, opening)


def test_a_partition_of_a_topic_is_deleted_on_a_full_device(tmp_path: Path) -> None:
    """It is made again in the commit that deletes it, which so was one that grows."""
    filled = FILLED.replace(
        'consumer = client.subscribe("t"',
        'client.admin.topics.create_partitioned_topic("p", 2)\nconsumer = client.subscribe("t"',
    )
    program = """
client.admin.topics.delete("p-partition-0", force=True)
client.close()
"""
    run_on_small_device(tmp_path, filled + program)


def test_a_full_partition_is_opened_again_and_again(tmp_path: Path) -> None:
    opening = (
        FILLED[: FILLED.index("client =")]
        + """
for _ in range(40):
    client = pulsarx.Client(folder)
    client.close()
    fill_rest()
with pulsarx.Client(folder) as client:
    consumer = client.subscribe("t", "s")
    while True:
        try:
            consumer.acknowledge(consumer.receive(timeout_millis=1000))
        except pulsarx.Timeout:
            break
    send_when_there_is_room(client, client.create_producer("t"))
"""
    )
    run_on_small_device(tmp_path, FILLED + "os._exit(0)", opening)


@pytest.mark.parametrize(
    "verb", ["topics.truncate('t')", "topics.delete('t', force=True)",
             "topics.delete_subscription('t', 's', force=True)"],
)  # fmt: skip
def test_what_takes_away_needs_no_room(tmp_path: Path, verb: str) -> None:
    opening = (
        FILLED[: FILLED.index("client =")]
        + f"""
with pulsarx.Client(folder) as client:
    client.admin.{verb}
"""
    )
    run_on_small_device(tmp_path, FILLED + "os._exit(0)", opening)


def test_acknowledging_one_by_one_needs_no_room(tmp_path: Path) -> None:
    # Every other message: more records than the first cursor file has room for.
    program = """
producer.close()
messages = [consumer.receive(timeout_millis=60_000) for _ in range(count)]
for each in messages[::2]:
    consumer.acknowledge(each)
for each in messages[1::2]:
    consumer.acknowledge(each)
assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 0
os._exit(0)
"""
    run_on_small_device(tmp_path, FILLED + program)


@pytest.mark.parametrize("operation", ["unlink", "flush_directory", "allocate", "open", "write"])
def test_killed_while_the_reserve_is_given_up_the_folder_is_whole(
    tmp_path: Path, operation: str
) -> None:
    killed = (
        FILLED[: FILLED.index("client =")]
        + f"""
from pulsarx.testing.faults import fault_plan

for call in range(1, 9):
    pid = os.fork()
    if pid == 0:
        with fault_plan() as plan:
            plan.fail("{operation}", call, kind="kill")
            pulsarx.Client(folder).close()
        os._exit(0)
    os.waitpid(pid, 0)
    fill_rest()
with pulsarx.Client(folder) as client:
    client.admin.topics.truncate("t")
    send_when_there_is_room(client, client.create_producer("t"))
"""
    )
    run_on_small_device(tmp_path, FILLED + "os._exit(0)", killed)
