"""Kills processes of a real Spark while it works: a round draws a job, what is killed, and when."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

from driver_process import HERE, Program, program
from dying_batch import leave
from killed_driver import JOBS, KEYS
from spark_processes import SparkProcesses
from spark_steps import make_topics, messages

import pulsarx

DRIVER = "driver"  # with its Java and all below
COPIES = ("copy", "each")  # of all that was published
ALL_OR_NONE = ("save", "write_topic")  # a call that has failed is not made again
PARTITIONS = 2
TRIES = 8  # what a kill has left unusable is met once each by those that come behind
SECONDS_MAX = 280.0  # of a job
SECONDS = 3.0  # of one that has not been done yet
# How often each is killed; of a stream, its source as well.
ALWAYS = {"worker": 4, "daemon": 2, "planner": 1, "planning": 3, "source": 2, DRIVER: 1}
ROLES = {
    "local": ALWAYS,
    "local-cluster": ALWAYS | {"executor": 2},
    "hosts": ALWAYS | {"executor": 2},
}


class SparkKills:
    """One folder, one driver at a time."""

    def __init__(self, cluster: str, scratch: Path, seed: int) -> None:
        self._cluster = cluster
        self._folder = scratch / "data"
        self._scratch = scratch / "scratch"
        self._scratch.mkdir()
        self._draw = random.Random(f"{seed} {cluster}")
        self._driver: Program | None = None
        self._processes = SparkProcesses(0)
        self._found: dict[str, list[int]] = {}  # of them
        self._stack = ExitStack()
        self._number = self._published = self._version = 0
        self._rows = Counter[str]()
        self._calls: list[tuple[str, range, bool]] = []  # of ALL_OR_NONE: whether it succeeded
        self._seconds: dict[str, float] = {}
        self.killed: list[str] = []
        self.told = Counter[str]()  # what became of the job in which, or behind which, one died
        make_topics(self._folder, "in")
        make_topics(self._folder, *COPIES, "named", *ALL_OR_NONE, partitions=PARTITIONS)
        with self._client() as client:
            client.admin.namespaces.set_retention("public/default", -1, -1)

    def _client(self) -> Any:
        return pulsarx.Client(self._folder, durability="os")

    def run(self, kills: int) -> None:
        with self._stack:
            for _ in range(4 * kills):
                if len(self.killed) >= kills:
                    break
                self._round()
            assert len(self.killed) >= kills, f"{len(self.killed)} kills alone"
            for job in COPIES:
                self._until_done({"job": job, "slow": {}}, "the last run")
        self._check()

    # A round --------------------------------------------------------------------------------------

    def _round(self) -> None:
        asked = self._asked(self._draw.choice(JOBS))
        roles = ROLES[self._cluster]
        role = self._draw.choices([*roles], [*roles.values()])[0]
        if role == "source" and asked["job"] not in COPIES:
            role = "worker"
        owner = self._client() if self._draw.random() < 0.5 else nullcontext()
        with owner:
            failure = self._once(asked, role)
            if asked["job"] in ALL_OR_NONE:
                self._calls.append((asked["job"], range(*asked["rows"]), failure is None))
            elif failure is not None:
                self._until_done(asked, failure)

    def _asked(self, job: str) -> dict[str, Any]:
        begin, self._published = self._published, self._published + self._draw.randrange(10, 60)
        with self._client() as client:
            producer = client.create_producer("in", batching_enabled=True, batching_max_messages=7)
            for number in range(begin, self._published):
                producer.send_async(b"%d" % number, None, partition_key=str(number % KEYS))
            producer.close()
        first, size = self._rows[job], self._draw.randrange(20, 200)
        self._rows[job] += size
        self._version += 1
        slow = {str(self._draw.randrange(4)): self._draw.random() for _ in range(2)}
        return {
            "job": job, "published": self._published, "rows": [first, first + size],
            "version": self._version, "slow": slow if self._draw.random() < 0.5 else {},
        }  # fmt: skip

    def _once(self, asked: dict[str, Any], role: str | None) -> str | None:
        """Why it was not done."""
        driver = self._living_driver()
        self._number += 1
        leave(self._scratch / "ask", json.dumps(asked | {"number": self._number}))
        began, job, dead = time.monotonic(), asked["job"], False
        answer = self._scratch / f"answer-{self._number}"
        at = self._draw.random() * self._seconds.get(job, SECONDS)
        patience = threading.Event()
        while not answer.exists():
            seconds = time.monotonic() - began
            if driver.poll() is not None:
                break
            assert seconds < SECONDS_MAX, f"{job} does not end\n{driver.last_words()}"
            self._found = self._processes.look()
            if role is not None and not dead and seconds >= at:
                dead = self._kill(driver, role)
                if dead:
                    self.killed.append(f"{role} in {job} at {seconds:.2f} s")
            patience.wait(0.01)
        told = json.loads(answer.read_text()) if answer.exists() else {"failed": "driver died"}
        assert "wrong" not in told, f"{self.killed[-1:]}: {told}"
        if not dead and not told:
            self._seconds[job] = time.monotonic() - began
        what = f"{role} killed" if dead else "nothing killed"
        took = f"{time.monotonic() - began:.2f} s"
        print(f"{len(self.killed):4} {what} in {job}: {told or 'done'!s:.90} {took}", flush=True)
        self.told[f"{job:12} {what:15} {'failed' if told else 'done'}"] += 1
        if told and not dead:
            self.told["    " + reason(told["failed"])] += 1
        return told.get("failed")

    def _until_done(self, asked: dict[str, Any], failure: str) -> None:
        for _ in range(TRIES):
            again = self._once(asked, None)
            if again is None:
                return
            failure = again
        raise AssertionError(f"{asked} is not done, {self.killed[-3:]}: {failure[:3000]}")

    def _kill(self, driver: Program, role: str) -> bool:
        """Whether there was one."""
        if role == DRIVER:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
            return True
        found = self._found.get(role)
        if not found:
            return False
        try:
            os.kill(self._draw.choice(sorted(found)), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def _living_driver(self) -> Program:
        if self._driver is None or self._driver.poll() is not None:
            (self._scratch / "lives").unlink(missing_ok=True)
            leave(self._scratch / "ask", json.dumps({"number": -1}))
            places = (self._cluster, self._folder, self._scratch)
            self._driver = self._stack.enter_context(program(HERE / "killed_driver.py", *places))
            self._driver.wait_for(self._scratch / "lives")
            self._processes = SparkProcesses(self._driver.pid)
        return self._driver

    # What is there --------------------------------------------------------------------------------

    def _check(self) -> None:
        for topic in COPIES:
            self._check_once(topic, range(self._published), is_ordered=topic == "copy")
        self._check_once("named", range(self._rows["named"]), is_ordered=False)
        for topic in ALL_OR_NONE:
            found = Counter(int(value) for _, value in messages(self._folder, topic, PARTITIONS))
            for name, rows, is_done in self._calls:
                if name == topic:
                    times = {found.pop(number, 0) for number in rows}
                    is_right = times == {1} or (times == {0} and not is_done)
                    assert is_right, f"{topic} {rows}: {times}"
            assert not found, f"{topic} has {found}"
        damage = pulsarx.backups.check(self._folder).damage
        assert not damage, damage

    def _check_once(self, topic: str, wanted: range, *, is_ordered: bool) -> None:
        found = messages(self._folder, topic, PARTITIONS)
        numbers = Counter(int(value) for _, value in found)
        missing = sorted(set(wanted) - set(numbers))
        others = {each: times for each, times in numbers.items() if times > 1 or each not in wanted}
        assert not missing and not others, f"{topic}: missing {missing}, more than once {others}"
        for key in map(str, range(KEYS)) if is_ordered else ():
            mine = [int(value) for each, value in found if each == key]
            assert mine == sorted(mine), f"{topic}: key {key} is out of order"

    def report(self) -> str:
        kinds = Counter(each.partition(" ")[0] for each in self.killed)
        lines = [f"{times:5} {what}" for what, times in sorted(self.told.items())]
        return "\n".join([f"{self._cluster}: {len(self.killed)} kills, {dict(kinds)}", *lines])


def reason(text: str) -> str:
    """The line of an error of Spark that says why."""
    for line in text.splitlines():
        for mark in ("Stream closed", "exited unexpectedly", "Broken pipe", "EOFException", "died"):
            if mark in line:
                return line.strip()[:110]
    return text.strip().splitlines()[0][:110] if text.strip() else "no text"
