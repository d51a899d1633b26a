"""What an owner refuses because it closes the folder is for the next owner."""

from __future__ import annotations

import socket
import threading

import pytest

from pulsarx import errors
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx._pycore.publish.completion_queue import CompletionQueue
from pulsarx.enumerations import Result, result_of
from pulsarx.remote import connection as connection_module
from pulsarx.remote.guest_connection import GuestConnection
from pulsarx.wire.frames import FrameReader, frame_encode


def _refuse(owner: socket.socket, then_leave: bool) -> None:
    reader = FrameReader(5 << 20)
    for _, values, _ in reader.feed(owner.recv(1 << 16)):
        refused = {"request_id": values["request_id"], "error": 6, "message": "it is closed"}
        owner.sendall(frame_encode("ERROR", refused))
    if then_leave:
        owner.close()


@pytest.mark.parametrize(
    "then_leaves, raised", [(True, errors.ConnectError), (False, errors.ServiceUnitNotReady)]
)
def test_a_refusal_of_an_owner_that_closes_is_for_the_next_one(
    then_leaves: bool, raised: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It used to end the readers, and refuse the producers, of processes that would have gone on
    with the next owner a moment later."""
    if then_leaves:
        monkeypatch.setattr(connection_module, "_LEAVING_MS", 60_000)
    owner, guest = socket.socketpair()
    background = JobQueue("test-background")
    completions = CompletionQueue(Result.Ok, result_of)
    connection = GuestConnection(guest, 1, 30, completions, background)
    reading = threading.Thread(target=lambda: (connection.read(), connection.lost(_GONE)))
    answering = threading.Thread(target=_refuse, args=(owner, then_leaves))
    reading.start()
    answering.start()
    try:
        with pytest.raises(raised) as found:
            connection.request("PARTITIONED_METADATA", topic="orders")
        assert type(found.value) is raised
        assert connection.is_lost == then_leaves
    finally:
        owner.close()
        answering.join()
        reading.join()
        connection.let_go()
        completions.close()
        background.close()


_GONE = errors.ConnectError("it has left")
