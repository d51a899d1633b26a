"""Facts about another process that a test has open a folder, and kills."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from child_process import run_program
from support.waiting import wait_until

import pulsarx
from pulsarx import aio
from pulsarx.testing import aio as aio_testing
from pulsarx.testing import messages, other_process, published

pytestmark = pytest.mark.standard


def publish(client: pulsarx.Client, count: int = 5) -> int:
    producer = client.create_producer("orders")
    for number in range(count):
        producer.send(b"%d" % number)
    return count


def take_one(client: pulsarx.Client) -> None:
    client.subscribe("orders", "billing", pulsarx.ConsumerType.Shared).receive(60_000)
    client.create_producer("taken").send(b"one")
    Event().wait()


def much(client: pulsarx.Client) -> bytes:
    return bytes(1 << 20)


def fail(client: pulsarx.Client) -> None:
    raise pulsarx.Timeout(detail="it took too long")


class OddError(Exception):
    """It cannot be made again of its text alone."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")


def fail_oddly(client: pulsarx.Client) -> None:
    raise OddError("orders", "none came")


def leave(client: pulsarx.Client) -> None:
    raise SystemExit("no more orders")


def end_at_once(client: pulsarx.Client) -> None:
    os._exit(5)


def test_a_guest_takes_over_where_the_owner_is_killed(tmp_path: Path):
    with other_process(tmp_path) as owner, pulsarx.Client(tmp_path) as guest:
        producer = guest.create_producer("orders")
        producer.send(b"one")
        assert owner.is_running and owner.pid != os.getpid()
        owner.kill()
        assert not owner.is_running
        producer.send(b"two")
        published(guest, "orders", b"one", b"two", only=True)


def test_the_owner_dies_in_front_of_an_operation(tmp_path: Path):
    with other_process(tmp_path) as owner, pulsarx.Client(tmp_path) as guest:
        producer = guest.create_producer("orders")
        producer.send(b"one")
        owner.kill("flush", 2)
        producer.send(b"two")
        producer.send(b"three")
        assert owner.wait() is None and not owner.is_running
        producer.send(b"four")
        published(guest, "orders", b"one", b"two", b"three", b"four", only=True)


def test_a_guest_is_killed_beside_the_program(tmp_path: Path):
    with pulsarx.Client(tmp_path) as client:
        client.create_producer("orders").send(b"one")
        consumer = client.subscribe("taken", "test")
        earliest = pulsarx.MessageId.earliest
        client.admin.topics.create_subscription("orders", "billing", earliest)
        with other_process(tmp_path, take_one) as guest:
            assert consumer.receive(60_000).data() == b"one"
            guest.kill()
        billing = client.subscribe("orders", "billing", pulsarx.ConsumerType.Shared)
        assert billing.receive(60_000).data() == b"one"


@pytest.mark.parametrize("call", [1, 4])
def test_work_is_killed_in_front_of_an_operation(tmp_path: Path, call: int):
    with other_process(tmp_path, publish, kill_at=("write", call)) as other:
        assert other.wait() is None
    with pulsarx.Client(tmp_path) as client:
        topics = client.admin.topics.get_list("public/default")
        left = [each.data() for topic in topics for each in messages(client, topic)]
    assert left == [b"%d" % number for number in range(len(left))] and len(left) < 5


def test_work_says_what_came_of_it(tmp_path: Path):
    with other_process(tmp_path, functools.partial(publish, count=3)) as other:
        assert other.close(60) == 3
        assert other.wait() == 3
    with other_process(tmp_path, fail) as other:
        with pytest.raises(pulsarx.Timeout, match="TimeOut") as caught:
            other.wait(60)
        assert caught.value.detail == "it took too long"
    with other_process(tmp_path, much) as other:
        assert other.wait(60) == bytes(1 << 20)
    with pulsarx.Client(tmp_path) as client:
        assert len(messages(client, "orders")) == 3


@pytest.mark.parametrize(
    ("work", "kind", "text"),
    [
        (fail_oddly, RuntimeError, "orders: none came"),
        (leave, SystemExit, "no more orders"),
        (end_at_once, RuntimeError, "ended with 5 before its work was done"),
    ],
)
def test_an_end_that_nobody_wanted_is_told(
    tmp_path: Path, work: Callable[[pulsarx.Client], None], kind: type[BaseException], text: str
):
    """It was taken for the end of its work, or for a kill."""
    with other_process(tmp_path, work) as process, pytest.raises(kind, match=text):
        process.wait(60)


def test_what_has_ended_cannot_be_killed_in_front_of_an_operation(tmp_path: Path):
    with other_process(tmp_path) as process:
        process.kill()
        with pytest.raises(RuntimeError, match="it has ended"):
            process.kill("flush")


def test_an_owner_leaves_when_it_is_told_to(tmp_path: Path):
    with other_process(tmp_path, durability="os") as owner:
        with pytest.raises(pulsarx.Timeout):
            owner.wait(0)
        with pytest.raises(ValueError, match="op: one of"):
            owner.kill("swim")
        assert owner.close(60) is None
        assert owner.close() is None
        owner.kill()


def test_what_is_wrong_is_told_here(tmp_path: Path):
    with pytest.raises(ValueError, match="op: one of"), other_process(tmp_path, kill_at=("x", 1)):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(pulsarx.PulsarException), other_process(tmp_path / "file"):
        pass
    publish.__module__ = "__main__"
    try:
        with (
            pytest.raises(ValueError, match="not of the program"),
            other_process(tmp_path, publish),
        ):
            pass
    finally:
        publish.__module__ = __name__


def test_it_ends_with_the_process_that_made_it(tmp_path: Path):
    [pid] = run_program(
        "import os, sys\n"
        "from pulsarx.testing import other_process\n"
        "other = other_process(sys.argv[1]).__enter__()\n"
        "print(other.pid, flush=True)\n"
        "os._exit(0)\n",
        tmp_path,
    )
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_coroutines_have_it_too(tmp_path: Path):
    async def main() -> None:
        async with (
            aio_testing.other_process(tmp_path) as owner,
            await aio.Client.open(str(tmp_path)) as guest,
        ):
            producer = await guest.create_producer("orders")
            await owner.kill("flush", 2)
            for content in (b"one", b"two", b"three"):
                await producer.send(content)
            assert await owner.wait() is None
            assert not owner.is_running and owner.pid and owner.folder == tmp_path
            await aio_testing.published(guest, "orders", b"one", b"two", b"three", only=True)
        async with aio_testing.other_process(tmp_path, publish) as other:
            assert await other.close(60) == 5

    asyncio.run(main())
