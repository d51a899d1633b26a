"""Facts about the socket that the owner of a folder listens at."""

from __future__ import annotations

import errno
import os
import socket
import threading
from pathlib import Path

import pytest

from pulsarx._pycore.ground.unix_listener import UnixListener


@pytest.fixture
def short_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Named from within it: a whole path may be longer than an address."""
    monkeypatch.chdir(tmp_path)
    return Path()


@pytest.mark.parametrize("address", ["at.sock", "\0pulsarx-test-{pid}"])
def test_a_connection_is_accepted_with_what_it_sends(short_folder: Path, address: str) -> None:
    address = address.format(pid=os.getpid())
    listener = UnixListener()
    listener.bind(address)
    listener.listen(1)
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(address)
        caller.sendall(b"hello")
        with socket.socket(fileno=listener.accept()) as accepted:
            assert accepted.recv(5) == b"hello"
            assert not os.get_inheritable(accepted.fileno())
    listener.close()


def test_shutdown_ends_the_waiting_for_a_connection(short_folder: Path) -> None:
    listener = UnixListener()
    listener.bind("at.sock")
    listener.listen(1)
    refused: list[OSError] = []

    def accept() -> None:
        try:
            listener.accept()
        except OSError as error:
            refused.append(error)

    thread = threading.Thread(target=accept)
    thread.start()
    listener.shutdown()
    thread.join(60)
    assert [error.errno for error in refused] == [errno.EINVAL]
    listener.close()
    listener.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        listener.accept()


def test_what_cannot_be_listened_at_is_refused(short_folder: Path) -> None:
    listener = UnixListener()
    with pytest.raises(OSError, match="too long") as caught:
        listener.bind("x" * 108)
    assert caught.value.errno == errno.ENAMETOOLONG
    with pytest.raises(FileNotFoundError):
        listener.bind("no-such-folder/at.sock")
    listener.bind("x" * 107)
    with pytest.raises(OSError, match="Address already in use"):
        UnixListener().bind("x" * 107)
    listener.close()
