"""ask_owner where nobody owns the folder: this process does, for just the request."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx.broker import owner_request
from pulsarx.broker.owner_request import ask_owner


def test_ctrl_c_waits_until_the_owner_for_a_moment_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of it, it would leave the folder locked for as long as this process lives."""
    folder = tmp_path / "data"
    right = owner_request.perform
    answers = []

    def interrupted(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(200_000))  # bytecode, where the main thread would notice
        answers.append(right(*arguments))
        return answers[0]

    pulsarx.Client(folder).close()
    monkeypatch.setattr(owner_request, "perform", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ask_owner(folder, "create_topic", {"topic": "t", "partitions": 0})
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(answers) == 1
    monkeypatch.undo()
    with pulsarx.Client(folder) as client:
        assert client.admin.topics.get_list("public/default") == ["persistent://public/default/t"]
