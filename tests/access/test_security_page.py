"""The figures of docs/security.md are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs" / "security.md").read_text().split())

pytest.importorskip("uvicorn")


def figures(pattern: str) -> list[int]:
    """The numbers of a text of the page that is there once."""
    [found] = re.finditer(pattern, PAGE)
    assert found.groups()
    return [int(each) for each in found.groups()]


def test_the_bounds_of_frames_and_requests() -> None:
    from pulsarx.rest import guard, http_service
    from pulsarx.sessions.session import GREETING_SIZE_MAX

    assert figures(r"frames of (\d+) KiB") == [GREETING_SIZE_MAX >> 10]
    assert figures(r"a head of (\d+) KiB") == [http_service._HEAD_SIZE_MAX >> 10]
    assert figures(r"a body, (\d+) MiB") == [guard.BODY_MAX >> 20]
    assert figures(r"There are (\d+) connections") == [http_service.CONNECTIONS_MAX]


def test_the_time_that_strangers_have() -> None:
    from pulsarx.rest import loop_server
    from pulsarx.server import network_service, served_connection

    look = network_service.KEEP_ALIVE_MS // 2 // 1000
    most = served_connection._GREETING_MAX * look
    assert figures(r"(\d+) to (\d+) seconds for that") == [most - look, most]
    look = loop_server._LOOK_SECONDS
    assert figures(r"(\d+) seconds for a head, (\d+) without a byte, (\d+) minutes") == [
        loop_server._IDLE_MAX * look,
        look,
        loop_server._BODY_MAX * look / 60,
    ]


def test_the_passwords_that_wait() -> None:
    from pulsarx.access import password_queue

    assert figures(r"(\d+) wait of each host, (\d+) of all") == [
        password_queue.WAITING_OF_HOST_MAX,
        password_queue.WAITING_MAX,
    ]


def test_what_a_connection_takes() -> None:
    """tests/server/test_hostile_connections.py and tests/rest/test_memory.py measure it."""
    [kib] = figures(r"less than (\d+) KiB of memory a connection")
    for test in ("server/test_hostile_connections.py", "rest/test_memory.py"):
        assert f"KNOWN_MAX = {kib} << 10" in (ROOT / "tests" / test).read_text()


def test_the_page_of_the_repository_leads_to_it() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    assert "](docs/security.md)" in text and "in private first" in text
