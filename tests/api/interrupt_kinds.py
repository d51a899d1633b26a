"""The ways a call of the main thread is interrupted, for interrupted_run.py. In the main thread.

alarm          SIGALRM after some microseconds, its handler raises
ctrl_c         SIGINT, sent to the process by another thread
interrupt_main _thread.interrupt_main() called by another thread
raise_signal   signal.raise_signal in another thread: the system delivers it there
line           an exception at the n-th line of Python that a call runs in the package
opcode         the same at the n-th instruction, those of the caller included

A handler raises once for each time it is armed. What it raises is an Exception, an OSError that no
system call had, or no Exception at all; Ctrl-C is a KeyboardInterrupt.
"""

from __future__ import annotations

import _thread
import dis
import os
import queue
import random
import select
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pulsarx

PACKAGE = str(Path(pulsarx.__file__).parent)
RETURN_VALUE = dis.opmap["RETURN_VALUE"]
# Keeps what is returned, without an instruction at which CPython calls a handler behind that.
KEEPS = ("client.py", "_keep")
# What frees a call that waits for ever when no line is left to raise at.
LAST_RESORT_SECONDS = 0.02
STEPS_MAX = 12  # that are told


class RaisedError(Exception):
    """What a handler raises."""


class RaisedTimeout(RaisedError, TimeoutError):
    """One of a type that the library catches: an OSError."""


class RaisedExit(BaseException):
    """What a handler raises that is no Exception."""


def is_interrupt(error: BaseException) -> bool:
    return isinstance(error, (RaisedError, RaisedExit, KeyboardInterrupt))


def steps_to(frame: FrameType | None) -> str:
    """The innermost lines that run."""
    found: list[str] = []
    while frame is not None and len(found) < STEPS_MAX:
        code = frame.f_code
        found.append(f"{code.co_filename}:{frame.f_lineno} {code.co_qualname}")
        frame = frame.f_back
    return " > ".join(reversed(found))


class Interrupts:
    """Base of the kinds."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.armed = False
        self.fired = False
        self.left = 0  # events until it raises, where events are counted
        self.where = ""  # it was raised at

    def start(self) -> None:
        """Once, before the first `arm`."""

    def arm(self, delay_seconds: float, must_fire: bool) -> None:
        """Interrupt the call that follows. must_fire: it waits for ever otherwise."""
        raise NotImplementedError

    def disarm(self) -> None:
        raise NotImplementedError

    def error(self) -> BaseException:
        kind = self.draw.choice((RaisedError, RaisedTimeout, RaisedExit))
        return kind("on purpose")

    def fire(self, _: int, frame: FrameType | None) -> None:
        """The signal handler."""
        if self.armed:
            self.armed = False
            self.fired = True
            self.where = steps_to(frame)
            raise self.error()


class AlarmInterrupts(Interrupts):
    def start(self) -> None:
        signal.signal(signal.SIGALRM, self.fire)

    def arm(self, delay_seconds: float, must_fire: bool) -> None:
        self.fired = False
        self.armed = True
        signal.setitimer(signal.ITIMER_REAL, max(delay_seconds, 1e-6))

    def disarm(self) -> None:
        self.armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)


class ThreadInterrupts(Interrupts):
    """By another thread, which is told by a number which arming it is for."""

    number = signal.SIGUSR1

    def start(self) -> None:
        signal.signal(self.number, self.fire)
        self.turn = 0
        self.turns: queue.SimpleQueue[tuple[int, float]] = queue.SimpleQueue()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            turn, delay_seconds = self.turns.get()
            if delay_seconds > 2e-5:
                select.select([], [], [], delay_seconds)
            if turn == self.turn:
                self.strike()

    def strike(self) -> None:
        signal.raise_signal(self.number)

    def arm(self, delay_seconds: float, must_fire: bool) -> None:
        self.fired = False
        self.turn += 1
        self.armed = True
        self.turns.put((self.turn, delay_seconds))

    def disarm(self) -> None:
        self.armed = False
        self.turn += 1


class CtrlCInterrupts(ThreadInterrupts):
    number = signal.SIGINT

    def error(self) -> BaseException:
        return KeyboardInterrupt()

    def strike(self) -> None:
        os.kill(os.getpid(), self.number)


class MainInterrupts(CtrlCInterrupts):
    def strike(self) -> None:
        _thread.interrupt_main()


class LineInterrupts(Interrupts):
    """At the event that `left` counts down to."""

    opcodes = False

    def start(self) -> None:
        signal.signal(signal.SIGALRM, self.last_resort)
        self.waits = False

    def arm(self, delay_seconds: float, must_fire: bool) -> None:
        self.fired = False
        self.armed = True
        self.waits = must_fire
        if must_fire:
            signal.setitimer(signal.ITIMER_REAL, LAST_RESORT_SECONDS)
        sys.settrace(self.trace)

    def disarm(self) -> None:
        sys.settrace(None)
        self.armed = self.waits = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def last_resort(self, *_: object) -> None:
        if self.waits:
            self.waits = False
            raise self.error()

    def concerns(self, frame: FrameType) -> bool:
        code = frame.f_code
        if (os.path.basename(code.co_filename), code.co_name) == KEEPS:
            return False
        return code.co_filename.startswith(PACKAGE)

    def trace(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if not self.armed or not self.concerns(frame):
            return None
        if self.opcodes:
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
        return self.step

    def step(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if self.armed and event == ("opcode" if self.opcodes else "line"):
            if self.opcodes and frame.f_code.co_code[frame.f_lasti] == RETURN_VALUE:
                return self.step  # CPython calls no handler before the caller has the value
            self.left -= 1
            if self.left <= 0:
                self.armed = False
                self.fired = True
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno} +{frame.f_lasti}"
                raise self.error()
        return self.step


class OpcodeInterrupts(LineInterrupts):
    opcodes = True
    caller = ""  # the file whose calls are interrupted too

    def concerns(self, frame: FrameType) -> bool:
        if frame.f_code.co_filename == self.caller:
            return frame.f_code.co_name in ("<lambda>", "run")
        return super().concerns(frame)


KINDS: dict[str, type[Interrupts]] = {
    "alarm": AlarmInterrupts,
    "ctrl_c": CtrlCInterrupts,
    "interrupt_main": MainInterrupts,
    "raise_signal": ThreadInterrupts,
    "line": LineInterrupts,
    "opcode": OpcodeInterrupts,
}
