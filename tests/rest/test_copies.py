"""Facts about checks and backups of a folder over HTTP: what comes, who gets it, and what is left
of those that end too early."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from administered import Administered
from collected import nothing_collected
from signing import SECRET_TEXT, token
from support.copied_topics import numbers, publish, read, subscribed

import pulsarx
from pulsarx import BrokerOptions, InitialPosition, ManualClock, errors
from pulsarx.access import AccessSettings
from pulsarx.backups import backup, check, restore, streams
from pulsarx.backups import served as served_backups
from pulsarx.backups.copying import LEASE_MS, Copying
from pulsarx.backups.records import BLOCK, record
from pulsarx.rest import loop_server, pieces
from pulsarx.testing import inspect

LIMIT_SECONDS = 60
SMALL = BrokerOptions(managed_ledger_max_entries_per_ledger=5)
Open = Callable[..., Administered]


@pytest.fixture
def served(open_administered: Open, tmp_path: Path) -> Administered:
    """A folder with 23 messages on `t`, of which its subscription `s` has acknowledged three."""
    found: Administered = open_administered(folder=tmp_path / "f", broker_options=SMALL)
    fill(found.client)
    inspect(found.client).settle()  # what damages a ledger would undo its seal
    return found


def fill(client: pulsarx.Client) -> None:
    publish(client, 0, 23)
    consumer = subscribed(client)
    for _ in range(3):
        consumer.acknowledge(consumer.receive())


def contents(folder: Path, topic: str = "t") -> list[bytes]:
    with pulsarx.Client(folder, durability="os", broker_options=SMALL) as client:
        return read(client, topic)


def leases(served: Administered) -> dict[str, Any]:
    found: dict[str, Any] = inspect(served.client).catalogue.state.leases
    return found


class Asked:
    """A request whose answer is read as the test likes."""

    def __init__(self, served: Administered, path: str, buffer_size: int = 4096) -> None:
        address = (served.service.host, served.service.port)
        self._socket = socket.create_connection(address, timeout=LIMIT_SECONDS)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_size)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
        self._socket.sendall(head.encode())

    def status(self) -> int:
        return int(self._socket.recv(12).split(b" ")[1])

    def read_until(self, text: bytes) -> bool:
        """Whether it comes."""
        found = b""
        while text not in found:
            part = self._socket.recv(4096)
            if not part:
                return False
            found += part
        return True

    def read_what_came(self) -> None:
        with suppress(BlockingIOError):
            assert self._socket.recv(65536, socket.MSG_DONTWAIT), "the server hung up"

    def hang_up(self) -> None:
        self._socket.close()


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Set when an answer is over for the server, however it ended."""
    over = threading.Event()
    end = streams.Stream.end

    def told(self: streams.Stream) -> None:
        end(self)
        over.set()

    with monkeypatch.context() as patched:
        patched.setattr(streams.Stream, "end", told)
        yield over


# Backups ------------------------------------------------------------------------------------------


def test_a_copy_holds_what_was_confirmed_and_is_restored(
    served: Administered, tmp_path: Path
) -> None:
    found = backup(served.url, tmp_path / "b")
    publish(served.client, 23, 30)  # the owner goes on
    assert (found.topics, found.subscriptions, found.messages) == (1, 1, 23)
    assert found.damage == []
    files = [each for each in (tmp_path / "b").rglob("*") if each.is_file()]
    assert found.bytes == sum(each.stat().st_size for each in files)
    assert leases(served) == {}
    restored = restore(tmp_path / "b", tmp_path / "r")
    assert (restored.messages, restored.damage) == (23, [])
    with pulsarx.Client(tmp_path / "r", broker_options=SMALL) as client:
        assert read(client) == numbers(0, 23)
        messages = subscribed(client).receive_many(50, 0)
        assert [each.data() for each in messages] == numbers(3, 23)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b", "f", "r"]


def test_it_holds_the_files_that_a_copy_of_the_folder_holds(
    served: Administered, tmp_path: Path
) -> None:
    client = served.client
    client.admin.namespaces.set_deduplication("public/default", True)
    client.admin.topics.create_partitioned_topic("p", 2)
    publish(client, 0, 7, "p")
    with client.create_producer("keys", batching_enabled=False) as producer:
        for number in range(30):
            producer.send(b"%d" % number, partition_key=f"k{number % 3}")
    client.admin.topics.trigger_compaction("keys")
    inspect(client).settle()
    backup(tmp_path / "f", tmp_path / "here")
    backup(served.url, tmp_path / "there")
    here, there = (files_of(tmp_path / name) for name in ("here", "there"))
    assert here == there
    assert len(here) > 10


def files_of(folder: Path) -> dict[str, bytes]:
    """Without the catalogue, which counts the leases of copies."""
    paths = [each for each in folder.rglob("*") if each.is_file()]
    found = {str(each.relative_to(folder)): each.read_bytes() for each in paths}
    return {name: data for name, data in found.items() if not name.startswith("catalogue/")}


def test_progress_is_told_in_bytes(served: Administered, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    backup(served.url, tmp_path / "b", progress=lambda *each: told.append(each))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1] > 0
    assert all(done < total for done, total in told[:-1])


def test_a_topic_that_is_deleted_meanwhile_is_left_out(
    served: Administered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(served.client, 0, 40, "gone")
    copy_ledger = Copying._copy_ledger
    seen: list[Any] = []

    def then_it_is_deleted(self: Copying, ledger: Any) -> Any:
        found = yield from copy_ledger(self, ledger)
        if not seen and ledger.topic.endswith("/gone"):
            seen.append(ledger)
            served.client.admin.topics.delete("gone", force=True)
        return found

    monkeypatch.setattr(Copying, "_copy_ledger", then_it_is_deleted)
    assert backup(served.url, tmp_path / "b").topics == 1
    assert seen
    assert len(list((tmp_path / "b" / "ledgers").rglob("*.ledger"))) == 5
    assert restore(tmp_path / "b", tmp_path / "r").messages == 23


def test_what_is_damaged_there_is_told_and_copied(served: Administered, tmp_path: Path) -> None:
    path = min((tmp_path / "f").rglob("*.ledger"), key=lambda each: int(each.stem))
    data = bytearray(path.read_bytes())
    data[4096 + 40] ^= 0xFF
    path.write_bytes(data)
    found = backup(served.url, tmp_path / "b")
    assert [each.what for each in found.damage] == ["entries"]
    assert found.missing_messages == 1
    with pytest.raises(errors.CorruptDataError):
        restore(tmp_path / "b", tmp_path / "r")
    assert restore(tmp_path / "b", tmp_path / "r", allow_damage=True).missing_messages == 1


def test_a_copy_holds_what_is_in_an_object_store(open_administered: Open, tmp_path: Path) -> None:
    clock = ManualClock()
    options = BrokerOptions(
        managed_ledger_max_entries_per_ledger=5,
        managed_ledger_offload_deletion_lag_ms=0,
        offload_url=(tmp_path / "store").as_uri(),
    )
    served = open_administered(clock, folder=tmp_path / "f", broker_options=options)
    publish(served.client, 0, 23)
    served.client.admin.topics.offload("t", 0)
    inspect(served.client).settle()
    clock.advance(60)
    before = sorted((tmp_path / "f").rglob("*.ledger"))
    assert len(before) < 4
    assert check(served.url).messages == 23
    found = backup(served.url, tmp_path / "b")
    assert (found.ledgers, found.messages, found.damage) == (5, 23, [])
    assert sorted((tmp_path / "f").rglob("*.ledger")) == before
    for each in (tmp_path / "store").rglob("*.ledger"):
        each.unlink()
    restore(tmp_path / "b", tmp_path / "r")
    assert contents(tmp_path / "r") == numbers(0, 23)


def fill_largely(client: pulsarx.Client, mebibytes: int = 16) -> None:
    with client.create_producer("large", batching_enabled=False) as producer:
        for _ in range(mebibytes):
            producer.send(os.urandom(1 << 20))


@pytest.mark.standard
def test_a_client_that_takes_it_slowly_has_what_it_copies_kept(
    open_administered: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease is renewed though no byte goes out for longer than that lasts."""
    clock = ManualClock()
    served = open_administered(clock, folder=tmp_path / "f", broker_options=SMALL)
    fill_largely(served.client)
    client = served.client
    consumer = client.subscribe("large", "s", initial_position=InitialPosition.Earliest)
    seen: list[int] = []

    def stop(done: int, total: int) -> None:
        if not seen:
            consumer.acknowledge_many(consumer.receive_many(16, 0))
            clock.advance(20 * LEASE_MS // 1000)
            inspect(client).settle()
            assert len(leases(served)) == 1
        seen.append(done)

    backup(served.url, tmp_path / "b", progress=stop)
    inspect(client).settle()
    assert len(read(client, "large")) == 1  # the lease has ended with the copy
    assert restore(tmp_path / "b", tmp_path / "r").messages == 16
    assert len(contents(tmp_path / "r", "large")) == 16


@pytest.mark.standard
def test_no_more_is_read_than_its_client_takes(
    served: Administered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_largely(served.client, 32)
    made: list[int] = []
    next_piece = streams.Stream.next

    def counted(self: streams.Stream) -> bytes | None:
        piece = next_piece(self)
        made.append(len(piece or b""))
        return piece

    monkeypatch.setattr(streams.Stream, "next", counted)
    with watched(monkeypatch) as over:
        asked = Asked(served, "/pulsarx/backup")
        assert asked.status() == 200
        while not any(is_paused(each) for each in connections(served)):
            pass
        assert 0 < sum(made) < 16 << 20
        assert max(made) < 2 * BLOCK
        assert len(leases(served)) == 1
        assert served.get("/tenants") == ["public", "pulsar"]
        asked.hang_up()
        assert over.wait(LIMIT_SECONDS)
    assert leases(served) == {}  # who goes holds nothing


@pytest.mark.standard
def test_a_client_that_takes_it_slowly_is_not_dropped(
    served: Administered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was, where as much waited for it at one look as at the one before; nor is one kept that
    takes nothing."""
    monkeypatch.setattr(loop_server, "_LOOK_SECONDS", 3600)  # the test looks
    fill_largely(served.client, 32)
    asked = Asked(served, "/pulsarx/backup", 1 << 20)
    assert asked.status() == 200
    for _ in range(3):
        look_when_paused(served, asked)
        assert connections(served)
    while connections(served):
        look_when_paused(served)


def test_a_piece_that_nobody_waits_for_leaves_no_loop_to_the_collector(
    served: Administered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The future of a piece, and that of the thread that made it, were a cycle that has the loop,
    whose finalizer is in Python."""
    entered, may_go = threading.Event(), threading.Event()
    make = streams.Stream.next

    def slow(self: streams.Stream) -> bytes | None:
        entered.set()
        assert may_go.wait(LIMIT_SECONDS)
        return make(self)

    monkeypatch.setattr(streams.Stream, "next", slow)
    with nothing_collected() as collect:
        asked = Asked(served, "/pulsarx/backup")
        assert entered.wait(LIMIT_SECONDS)
        asked.hang_up()
        while connections(served):
            pass
        closing = threading.Thread(target=served.service.close)
        closing.start()
        assert served.server._ended.wait(LIMIT_SECONDS)
        may_go.set()
        closing.join()
        assert not collect()


def look_when_paused(served: Administered, taker: Asked | None = None) -> None:
    """taker: takes what has come until the server has heard that it took something."""

    def look() -> None:
        for each in connections(served):
            each._unsent = 0  # no less waits than the last time
            each.look()

    # As much as the buffers of both sockets hold may go before the server can write on.
    while taker is not None and not all(each._was_heard for each in connections(served)):
        taker.read_what_came()
    while connections(served) and not all(is_paused(each) for each in connections(served)):
        pass
    asyncio.run_coroutine_threadsafe(on_loop(look), served.server.loop).result(LIMIT_SECONDS)


async def on_loop(act: Callable[[], object]) -> None:
    act()


def connections(served: Administered) -> list[Any]:
    return list(served.server._server.server_state.connections)


def is_paused(connection: Any) -> bool:
    return bool(connection.flow is not None and connection.flow.write_paused)


def test_an_interrupted_copy_leaves_nothing(
    served: Administered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stop(BaseException):
        pass

    def stop(done: int, total: int) -> None:
        raise Stop

    with watched(monkeypatch) as over:
        with pytest.raises(Stop):
            backup(served.url, tmp_path / "b", progress=stop)
        assert over.wait(LIMIT_SECONDS)
    assert os.listdir(tmp_path) == ["f"]
    assert leases(served) == {}


def test_an_error_of_the_callers_progress_is_its_own(served: Administered, tmp_path: Path) -> None:
    def tell(done: int, total: int) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        backup(served.url, tmp_path / "b", progress=tell)
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.standard
def test_a_server_that_ends_meanwhile_leaves_nothing(served: Administered, tmp_path: Path) -> None:
    fill_largely(served.client)
    closing = threading.Thread(target=served.client.close)

    def end(done: int, total: int) -> None:
        if not closing.ident:
            closing.start()
            assert served.server._ended.wait(LIMIT_SECONDS)

    with pytest.raises((errors.ConnectError, errors.ServiceUnitNotReady)):
        backup(served.url, tmp_path / "b", progress=end)
    closing.join()
    assert os.listdir(tmp_path) == ["f"]
    with pulsarx.Client(tmp_path / "f", broker_options=SMALL) as client:
        assert inspect(client).catalogue.state.leases == {}


def test_a_server_that_fails_meanwhile_says_why(
    served: Administered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise errors.StorageError(detail="read ledger 1: Input/output error")

    monkeypatch.setattr(Copying, "_copy_ledger", fail)
    with pytest.raises(errors.StorageError, match="read ledger 1: Input/output error"):
        backup(served.url, tmp_path / "b")
    assert os.listdir(tmp_path) == ["f"]
    assert leases(served) == {}


def test_a_target_that_is_in_use_is_refused(served: Administered, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "file").touch()
    with pytest.raises(errors.FolderError, match="Nothing was changed"):
        backup(served.url, tmp_path / "b")
    with pytest.raises(errors.InvalidUrl):
        backup(tmp_path / "f", served.url)


def block(sent: bytes = b"x", **more: Any) -> bytes:
    fields = {"data": len(sent), "crc32": zlib.crc32(sent), **more}
    return json.dumps(fields).encode() + b"\n" + sent


FILE = record({"file": "PULSARX"})


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", errors.ConnectError),
        (FILE + block(), errors.ConnectError),
        (FILE + block()[:-1], errors.ConnectError),
        (FILE + b'{"da', errors.ConnectError),
        (FILE + block(crc32=1) + record({"end": 1}), errors.CorruptDataError),
        (FILE + block() + record({"end": 2}), errors.CorruptDataError),
        (block() + record({"end": 1}), errors.UnknownError),
        (FILE + block(data=-1), errors.UnknownError),
        (FILE + block(data="x"), errors.UnknownError),
        (FILE + block(data=1 << 40), errors.UnknownError),
        (record({"file": "../PULSARX"}), errors.UnknownError),
        (record({"file": "/tmp/PULSARX"}), errors.UnknownError),
        (record({"file": "ledgers/../../PULSARX"}), errors.UnknownError),
        (record({"file": "ledgers//1"}), errors.UnknownError),
        (record({"file": ".hidden"}), errors.UnknownError),
        (record({"file": 7}), errors.UnknownError),
        (record({"remove": ["../PULSARX"]}), errors.UnknownError),
        (record({"error": "StorageError", "text": "no"}), errors.StorageError),
        (record({"error": "KeyboardInterrupt", "text": "no"}), errors.UnknownError),
        (record({"error": "InterruptedByKeyboard", "text": "no"}), errors.UnknownError),
        (b"[]\n", errors.UnknownError),
        (b"no\n", errors.UnknownError),
        (b"x" * (2 << 20), errors.UnknownError),
        (FILE + block(b"no marker") + record({"end": 9}), errors.CorruptDataError),
        (record({"end": 0}), errors.FolderError),
    ],
    ids=range(25),
)
def test_what_a_server_sends_is_not_trusted(
    tmp_path: Path, answer: bytes, error: type[Exception]
) -> None:
    with lying(answer) as url, pytest.raises(error):
        backup(url, tmp_path / "inner" / ".." / "b")
    assert os.listdir(tmp_path) == []


def test_a_copy_that_names_objects_elsewhere_is_refused(tmp_path: Path) -> None:
    """Whoever takes it was to read them, by whatever URL a server says, and remove them later."""
    clock = ManualClock()
    options = BrokerOptions(
        managed_ledger_max_entries_per_ledger=5,
        managed_ledger_offload_deletion_lag_ms=0,
        offload_url=(tmp_path / "store").as_uri(),
    )
    folder = tmp_path / "f"
    with pulsarx.Client(folder, clock=clock, broker_options=options) as client:
        publish(client, 0, 23)
        client.admin.topics.offload("t", 0)
        inspect(client).settle()
        clock.advance(60)
    paths = [folder / "PULSARX", *sorted((folder / "catalogue").iterdir())]
    parts = [
        part
        for path in paths
        for part in (
            record({"file": path.relative_to(folder).as_posix()}),
            record({}, path.read_bytes()),
        )
    ]
    end = record({"end": sum(each.stat().st_size for each in paths)})
    with lying(b"".join([*parts, end])) as url, pytest.raises(errors.UnknownError, match="objects"):
        backup(url, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_a_check_that_finds_no_end_of_damage_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_backups, "_DAMAGE_MAX", 2)
    place = record({"damage": {"what": "ledger", "file": "1", "text": "none"}})
    with lying(place * 3) as url, pytest.raises(errors.UnknownError, match="over 2 damaged"):
        check(url)


@contextmanager
def lying(answer: bytes, status: int = 200) -> Iterator[str]:
    """A server that says it is ours."""

    class Lying(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, b'{"namespaces": []}')

        def do_POST(self) -> None:
            self._answer(status, answer)

        def _answer(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Lying) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()


def test_an_earlier_server_is_named_as_that(tmp_path: Path) -> None:
    with lying(b"", 404) as url:
        for act in (lambda: backup(url, tmp_path / "b"), lambda: check(url)):
            with pytest.raises(errors.OperationNotSupported, match="earlier"):
                act()


# Checks -------------------------------------------------------------------------------------------


def test_a_check_counts_what_a_check_of_the_folder_counts(
    served: Administered, tmp_path: Path
) -> None:
    told: list[tuple[int, int]] = []
    found = check(served.url, progress=lambda *each: told.append(each))
    here = check(tmp_path / "f")
    assert (found.topics, found.subscriptions, found.ledgers) == (1, 1, here.ledgers)
    assert (found.messages, found.damage) == (23, [])
    assert told[-1][0] == told[-1][1] > 0


def test_damage_comes_as_it_is_found(served: Administered, tmp_path: Path) -> None:
    first, second, *_ = sorted((tmp_path / "f").rglob("*.ledger"), key=lambda each: int(each.stem))
    for path in (first, second):
        data = bytearray(path.read_bytes())
        data[4096 + 40] ^= 0xFF
        path.write_bytes(data)
    reply = served.ask("POST", "//pulsarx/check")
    assert reply.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in reply.body.splitlines()]
    (early, late) = [at for at, each in enumerate(lines) if "damage" in each]
    assert "progress" in lines[early + 1] and late > early + 1
    assert lines[early]["damage"]["ledger_id"] == int(first.stem)
    assert lines[-2]["contents"]["missing_messages"] == 2
    assert lines[-1] == {"end": 0}
    assert check(served.url).damage == check(tmp_path / "f").damage


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (record({"progress": [1, 2]}), errors.ConnectError),
        (record({"damage": [1]}) + record({"end": 0}), errors.UnknownError),
        (record({"damage": {"what": "entries"}}) + record({"end": 0}), errors.UnknownError),
        (record({"contents": 7}) + record({"end": 0}), errors.UnknownError),
        (record({"error": "FolderError", "text": "no"}), errors.FolderError),
    ],
    ids=range(5),
)
def test_what_a_server_says_of_its_folder_is_not_trusted(
    answer: bytes, error: type[Exception]
) -> None:
    with lying(answer) as url, pytest.raises(error):
        check(url)


def test_a_newer_server_may_say_more() -> None:
    more = {"what": "entries", "file": "f", "text": "t", "colour": 7}
    said = [{"progress": 7}, {"new": 1}, {"damage": more}, {"contents": {"topics": 2, "size": 3}}]
    with lying(b"".join(map(record, [*said, {"end": 0}]))) as url:
        found = check(url)
    assert (found.topics, [str(each) for each in found.damage]) == (2, ["t"])


def test_others_are_served_while_a_step_takes_its_time(
    served: Administered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its client is told that it goes on."""
    goes_on = threading.Event()
    next_piece = streams.Stream.next

    def slow(self: streams.Stream) -> bytes | None:
        assert goes_on.wait(LIMIT_SECONDS)
        return next_piece(self)

    monkeypatch.setattr(streams.Stream, "next", slow)
    monkeypatch.setattr(pieces, "PULSE_SECONDS", 0.01)
    asked = Asked(served, "/pulsarx/check")
    assert asked.read_until(b"\n{}\n")
    assert served.get("/tenants") == ["public", "pulsar"]
    goes_on.set()
    assert asked.read_until(b'\n{"end":0}\n')


def test_a_bug_in_it_is_told_and_logged(
    served: Administered, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from pulsarx.backups.proof import Proof

    def broken(self: Proof) -> Any:
        raise ZeroDivisionError("divided")
        yield 0

    monkeypatch.setattr(Proof, "steps", broken)
    with pytest.raises(errors.UnknownError, match="divided"):
        check(served.url)
    assert "because of a bug" in caplog.text


# Who gets it --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["//pulsarx/backup", "//pulsarx/check"])
def test_superusers_alone_get_it(open_administered: Open, tmp_path: Path, path: str) -> None:
    access = AccessSettings(token_secret_key=SECRET_TEXT, superuser_roles=["admin"])
    served = open_administered(folder=tmp_path / "f", access=access)
    served.client.admin.tenants.update_tenant("public", ["carol"])
    statuses = {
        role: served.ask(
            "POST", path, headers={"Authorization": f"Bearer {token(role)}"} if role else {}
        ).status
        for role in ("", "alice", "carol", "admin")
    }
    assert statuses == {"": 401, "alice": 403, "carol": 403, "admin": 200}
    proof = pulsarx.AuthenticationToken(token("admin"))
    assert check(served.url, authentication=proof).damage == []
    assert backup(served.url, tmp_path / "b", authentication=proof).damage == []
    with pytest.raises(errors.AuthorizationError):
        check(served.url, authentication=pulsarx.AuthenticationToken(token("carol")))
    with pytest.raises(errors.AuthenticationError):
        check(served.url)
    with pytest.raises(errors.InvalidConfiguration):
        check(tmp_path / "f", authentication=proof)


@pytest.mark.standard
def test_there_are_not_many_at_a_time(
    served: Administered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_largely(served.client)
    with watched(monkeypatch) as over:
        asked = [Asked(served, "/pulsarx/backup") for _ in range(pieces.STREAMS_MAX)]
        assert [each.status() for each in asked] == [200] * pieces.STREAMS_MAX
        with pytest.raises(errors.ServiceUnitNotReady, match="under way"):
            backup(served.url, tmp_path / "b")
        asked[0].hang_up()
        assert over.wait(LIMIT_SECONDS)
        check(served.url)
        for each in asked[1:]:
            each.hang_up()


def test_a_folder_in_memory_has_no_files(administered: Administered, tmp_path: Path) -> None:
    for act in (
        lambda: backup(administered.url, tmp_path / "b"),
        lambda: check(administered.url),
    ):
        with pytest.raises(errors.OperationNotSupported, match="memory"):
            act()


def test_it_is_described(administered: Administered) -> None:
    paths = administered.get("//openapi.json")["paths"]
    assert list(paths["/pulsarx/check"]["post"]["responses"]["200"]["content"]) == [
        "application/x-ndjson"
    ]
    assert "/pulsarx/backup" in paths
