"""Another process on the folder of a test, which evaluates what it is told."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from child_process import ChildProcess

_PROGRAM = """
import os, sys, threading
import pulsarx
from pulsarx import MessageId, ProducerAccessMode, Result, errors

def contents(topic):
    with client.create_reader(topic, MessageId.earliest) as reader:
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(60000).data())
        return found

client = pulsarx.Client(sys.argv[1], **eval(sys.argv[2]))
print(os.getpid(), flush=True)
for line in sys.stdin:
    source = eval(line)
    try:
        try:
            answer = eval(source)
        except SyntaxError:
            answer = exec(source)
    except Exception as error:
        print(ascii((type(error).__name__, getattr(error, "detail", str(error)))), flush=True)
    else:
        print(ascii(("", answer)), flush=True)
"""


class Refused(Exception):
    """What was evaluated there raised; its class and what it says."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail


class SharingProcess(ChildProcess):
    """Has a client; killed when the block ends. What is evaluated is Python with `client`."""

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(_PROGRAM, folder, repr(options))
        assert int(self.line()) == self.pid

    def ask(self, source: str) -> None:
        """Begin to evaluate; `answer` tells what came of it."""
        self.tell(repr(source))

    def answer(self) -> Any:
        kind, value = ast.literal_eval(self.line())
        if kind:
            raise Refused(kind, value)
        return value

    def run(self, source: str) -> Any:
        """The value of an expression there, or None of statements. Refused: it raised."""
        self.ask(source)
        return self.answer()
