"""Facts about clients whose passwords are being checked: they hold up nobody but themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from served import Served
from signing import SECRET_TEXT, token
from speaker import Speaker

from pulsarx import errors
from pulsarx.access import AccessSettings
from pulsarx.access.basic_users import BasicUsers
from pulsarx.access.password_queue import WAITING_OF_HOST_MAX
from pulsarx.server.network_service import THREADS_MAX
from pulsarx.wire.server_errors import error_of

PATIENCE_SECONDS = 60


class Slow:
    """Checks of passwords that take until they may go on."""

    def __init__(self) -> None:
        self.may_go = threading.Event()
        self.began = threading.Event()
        self.count = 0


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    found = Slow()
    verify = BasicUsers.verify

    def wait(self: BasicUsers, data: bytes) -> Any:
        found.count += 1
        found.began.set()
        assert found.may_go.wait(PATIENCE_SECONDS)
        return verify(self, data)

    monkeypatch.setattr(BasicUsers, "verify", wait)
    yield found
    found.may_go.set()


@pytest.fixture
def guarded(open_served: Callable[..., Served], tmp_path: Path) -> Served:
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    (tmp_path / "users").write_text(f"admin:{hashed}\n")
    access = AccessSettings(
        token_secret_key=SECRET_TEXT,
        basic_auth_conf=str(tmp_path / "users"),
        superuser_roles=["admin"],
    )
    return open_served(None, service={"access": access})


def asking(served: Served, proof: str, method: str = "basic") -> Speaker:
    speaker = Speaker(served)
    speaker.say(
        "CONNECT",
        client_version="test",
        protocol_version=20,
        auth_method_name=method,
        auth_data=proof.encode(),
    )
    return speaker


def test_passwords_that_are_being_checked_hold_up_nobody(guarded: Served, slow: Slow) -> None:
    """Sixteen clients with a wrong password, a quarter of a second each, used to take all threads
    that do what any client asks for."""
    known = asking(guarded, token("admin"), "token")
    assert known.hear()[0] == "CONNECTED"
    strangers = [asking(guarded, f"admin:{number}") for number in range(THREADS_MAX + 4)]
    assert slow.began.wait(PATIENCE_SECONDS)
    known.produce()
    late = asking(guarded, token("admin"), "token")
    assert late.hear()[0] == "CONNECTED"
    slow.may_go.set()
    for each in strangers:
        assert each.is_hung_up_on()


def test_what_came_behind_a_password_is_done_after_it(guarded: Served, slow: Slow) -> None:
    speaker = asking(guarded, "admin:secret")
    speaker.say("PRODUCER", topic="t", producer_id=0, request_id=7)
    assert slow.began.wait(PATIENCE_SECONDS)
    speaker.say("PING")
    slow.may_go.set()
    assert [speaker.hear()[0] for _ in range(3)] == ["CONNECTED", "PRODUCER_SUCCESS", "PONG"]


def test_a_client_that_leaves_meanwhile_leaves_nothing(guarded: Served, slow: Slow) -> None:
    speaker = asking(guarded, "admin:secret")
    assert slow.began.wait(PATIENCE_SECONDS)
    speaker.socket.close()
    while guarded.network.connections:
        pass
    slow.may_go.set()
    assert asking(guarded, "admin:secret").hear()[0] == "CONNECTED"


def test_a_password_that_was_right_is_not_checked_anew(guarded: Served, slow: Slow) -> None:
    both = [asking(guarded, "admin:secret") for _ in range(2)]
    slow.may_go.set()
    assert [each.hear()[0] for each in both] == ["CONNECTED"] * 2
    count = slow.count
    slow.may_go.clear()
    assert asking(guarded, "admin:secret").hear()[0] == "CONNECTED"
    assert slow.count == count
    slow.may_go.set()
    assert asking(guarded, "admin:Secret").is_hung_up_on()
    assert slow.count == count + 1


def test_so_many_passwords_of_a_host_wait_and_no_more(guarded: Served, slow: Slow) -> None:
    waiting = [asking(guarded, f"admin:{number}") for number in range(WAITING_OF_HOST_MAX)]
    queue = guarded.network._access._passwords  # type: ignore[union-attr]
    assert queue is not None
    while len(queue._waiting) < WAITING_OF_HOST_MAX:
        pass
    name, values, _ = asking(guarded, "admin:another").hear()
    assert name == "ERROR"
    assert isinstance(error_of(values["error"], ""), errors.ServiceUnitNotReady)  # it tries again
    slow.may_go.set()
    assert all(each.is_hung_up_on() for each in waiting)
    assert asking(guarded, "admin:secret").hear()[0] == "CONNECTED"
