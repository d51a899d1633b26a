"""Facts about several processes on one folder: who owns it, what the others may do, and what
happens when the owner leaves, dies or is stopped."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sharing_process import Refused, SharingProcess
from support.waiting import wait_until

import pulsarx
from pulsarx import MessageId, errors
from pulsarx.clock import ManualClock
from pulsarx.schema import JsonSchema, Record, String, StringSchema

PATIENCE = 60.0


class Order(Record):
    item = String()


def contents(client: pulsarx.Client, topic: str, schema: Any = None) -> list[Any]:
    options = {} if schema is None else {"schema": schema}
    with client.create_reader(topic, pulsarx.MessageId.earliest, **options) as reader:
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(60_000).value())
        return found


# Beside an owner ----------------------------------------------------------------------------------


def test_a_second_process_publishes_and_reads(folder: Path, owner: SharingProcess) -> None:
    owner.run("p = client.create_producer('t')")
    owner.run("p.send(b'of the owner') and None")
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        first = producer.send(b"of a guest")
        told: list[Any] = []
        for number in range(10):
            producer.send_async(b"%d" % number, lambda result, _: told.append(result))
        producer.flush()
        assert told == [pulsarx.Result.Ok] * 10
        owner.run("p.send(b'of the owner again') and None")
        expected = [
            b"of the owner", b"of a guest", *(b"%d" % number for number in range(10)),
            b"of the owner again",
        ]  # fmt: skip
        assert contents(client, "t") == expected
        assert owner.run("contents('t')") == expected
        with client.create_reader("t", first, start_message_id_inclusive=True) as reader:
            assert reader.read_next(60_000).data() == b"of a guest"


def test_a_topic_is_made_by_the_first_that_names_it(folder: Path, owner: SharingProcess) -> None:
    with pulsarx.Client(folder) as client:
        client.create_producer("made by a guest").send(b"1")
    assert owner.run("contents('made by a guest')") == [b"1"]


def test_partitions_schemas_and_chunks_work_beside_an_owner(
    folder: Path, owner: SharingProcess
) -> None:
    with pulsarx.Client(folder) as client:
        client.admin.topics.create_partitioned_topic("spread", 3)
        spread = client.create_producer("spread", schema=JsonSchema(Order))
        partitions = {spread.send(Order(item=str(number))).partition() for number in range(6)}
        assert partitions == {0, 1, 2}
        items = [each.item for each in contents(client, "spread", JsonSchema(Order))]
        assert sorted(items) == [str(number) for number in range(6)]
        with pytest.raises(errors.IncompatibleSchema):
            client.create_producer("spread", schema=pulsarx.schema.StringSchema())
        chunked = client.create_producer("large", chunking_enabled=True)
        chunked.send(bytes(12 << 20))
        assert contents(client, "large") == [bytes(12 << 20)]
    assert owner.run("[len(each) for each in contents('large')]") == [12 << 20]


def test_an_encrypted_message_passes_through_the_owner(
    folder: Path, owner: SharingProcess, tmp_path: Path
) -> None:
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    public, private = tmp_path / "public", tmp_path / "private"
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    reader_of_keys = pulsarx.CryptoKeyReader(str(public), str(private))
    with pulsarx.Client(folder) as client:
        producer = client.create_producer(
            "t", encryption_key="key", crypto_key_reader=reader_of_keys
        )
        producer.send(b"secret")
        with client.create_reader(
            "t", pulsarx.MessageId.earliest, crypto_key_reader=reader_of_keys
        ) as reader:
            assert reader.read_next(60_000).data() == b"secret"
    found = b"".join(path.read_bytes() for path in folder.rglob("*.ledger"))
    assert b"secret" not in found


def test_administration_goes_to_the_owner(folder: Path, owner: SharingProcess) -> None:
    owner.run("client.admin.topics.create_non_partitioned_topic('t')")
    with pulsarx.Client(folder) as client:
        topic = "persistent://public/default/t"
        assert topic in client.admin.topics.get_list("public/default")
        producer = client.create_producer("t", producer_name="mine")
        producer.send(b"1")
        found = client.admin.topics.stats("t")
        assert [each["producer_name"] for each in found["publishers"]] == ["mine"]
        with pytest.raises(errors.NotAllowedError):
            client.admin.topics.delete("t")
        client.admin.topics.delete("t", force=True)
        with pytest.raises(errors.PulsarException):
            producer.send(b"2")
        assert topic not in owner.run("client.admin.topics.get_list('public/default')")


def test_a_reader_that_sleeps_is_woken_by_another_process(
    folder: Path, owner: SharingProcess
) -> None:
    owner.run("p = client.create_producer('t')")
    with pulsarx.Client(folder) as client:
        reader = client.create_reader("t", pulsarx.MessageId.earliest)
        owner.run("import threading")
        for number in range(20):
            owner.ask(f"p.send(b'{number}') and None")
            assert reader.read_next(60_000).data() == b"%d" % number
            owner.answer()


def test_listeners_and_table_views_hear_of_messages_of_others(
    folder: Path, owner: SharingProcess
) -> None:
    import threading

    owner.run("p = client.create_producer('t')")
    with pulsarx.Client(folder) as client:
        came, heard = threading.Semaphore(0), []

        def listen(_: Any, message: Any) -> None:
            heard.append(message.data())
            came.release()

        client.create_reader("t", pulsarx.MessageId.earliest, reader_listener=listen)
        view = client.create_table_view("t")
        view.for_each_and_listen(lambda *_: came.release())
        for number in range(5):
            owner.run(f"p.send(b'{number}', partition_key='k{number}') and None")
            for _ in range(2):
                assert came.acquire(timeout=PATIENCE)
        assert heard == [b"%d" % number for number in range(5)]
        assert view.keys() == [f"k{number}" for number in range(5)]
        owner.kill()  # the next owner tells it too
        client.create_producer("t").send(b"late", partition_key="late")
        for _ in range(2):
            assert came.acquire(timeout=PATIENCE)
        assert heard[-1] == b"late"
        assert view["late"] == b"late"


def test_what_is_not_there_for_guests_says_so(folder: Path, owner: SharingProcess) -> None:
    from pulsarx.server import serve

    with (
        pulsarx.Client(folder) as client,
        pytest.raises(errors.FolderOwnedError, match=str(owner.pid)),
    ):
        serve(client, port=0)


def test_neither_process_of_a_folder_loads_the_server_of_a_network(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess]
) -> None:
    guest = SharingProcess(folder)
    processes.append(guest)
    guest.run("client.create_producer('t').send(b'1') and None")
    guest.run("consumer = client.subscribe('t', 's')")
    for each in (owner, guest):
        loaded = each.run("[name for name in sys.modules if name.startswith('pulsarx.')]")
        assert any(name.startswith("pulsarx.processes.") for name in loaded)
        assert not [name for name in loaded if name.startswith("pulsarx.server")]


# Who may publish ----------------------------------------------------------------------------------


def test_access_modes_hold_across_processes(folder: Path, owner: SharingProcess) -> None:
    owner.run("p = client.create_producer('t', access_mode=ProducerAccessMode.Exclusive)")
    mode = pulsarx.ProducerAccessMode
    with pulsarx.Client(folder) as client:
        with pytest.raises(errors.ProducerBusy):
            client.create_producer("t")
        with pytest.raises(errors.ProducerFenced):
            client.create_producer("t", access_mode=mode.Exclusive)
        fencing = client.create_producer("t", access_mode=mode.ExclusiveWithFencing)
        fencing.send(b"1")
        with pytest.raises(Refused) as refused:
            owner.run("p.send(b'2')")
        assert refused.value.kind == "ProducerFenced"
        owner.run(
            "q = client.create_producer('t', access_mode=ProducerAccessMode.ExclusiveWithFencing)"
        )
        with pytest.raises(errors.ProducerFenced):
            fencing.send(b"3")
        assert contents(client, "t") == [b"1"]


def test_a_guest_waits_for_its_turn_and_gets_it_when_the_owner_dies(
    folder: Path, owner: SharingProcess
) -> None:
    import threading

    owner.run("p = client.create_producer('t', access_mode=ProducerAccessMode.Exclusive)")
    with pulsarx.Client(folder) as client:
        made: list[Any] = []

        def make() -> None:
            mode = pulsarx.ProducerAccessMode.WaitForExclusive
            made.append(client.create_producer("t", access_mode=mode))
            made[0].send(b"its turn")

        waiting = threading.Thread(target=make)
        waiting.start()
        client.create_producer("other").send(b"x")
        assert not made
        owner.kill()
        waiting.join(PATIENCE)
        assert contents(client, "t") == [b"its turn"]


def test_a_name_is_taken_for_all_processes(folder: Path, owner: SharingProcess) -> None:
    owner.run("p = client.create_producer('t', producer_name='n')")
    with pulsarx.Client(folder) as client:
        with pytest.raises(errors.ProducerBusy):
            client.create_producer("t", producer_name="n")
        owner.run("p.close()")
        client.create_producer("t", producer_name="n").send(b"1")
        names = {client.create_producer("t").producer_name() for _ in range(3)}
        names |= {owner.run("client.create_producer('t').producer_name()") for _ in range(3)}
        assert len(names) == 6


def test_deduplication_counts_for_all_processes(folder: Path, owner: SharingProcess) -> None:
    owner.run("client.admin.topics.create_non_partitioned_topic('t')")
    owner.run("client.admin.topics.set_deduplication('t', True)")
    owner.run("p = client.create_producer('t', producer_name='n')")
    owner.run("[p.send(b'%d' % n, sequence_id=n) and None for n in range(3)] and None")
    owner.run("p.close()")
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t", producer_name="n")
        assert producer.last_sequence_id() == 2
        producer.send(b"again", sequence_id=1)
        producer.send(b"3", sequence_id=3)
        assert contents(client, "t") == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("way", ["send", "batch", "many"])
def test_a_message_without_an_id_of_its_own_is_never_a_duplicate_beside_the_owner(
    folder: Path, owner: SharingProcess, way: str
) -> None:
    """They were numbered from 0 on, below what was sent before, and silently not stored."""
    owner.run("client.admin.topics.create_non_partitioned_topic('t')")
    owner.run("client.admin.topics.set_deduplication('t', True)")
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t", batching_enabled=way == "batch")
        producer.send(b"0", sequence_id=5)
        if way == "send":
            assert producer.send(b"1").ledger_id() >= 0
            producer.send(b"2")
        elif way == "batch":
            for payload in (b"1", b"2"):
                producer.send_async(payload, None)
            producer.flush()
        else:
            producer.send_many([b"1", b"2"])
        assert producer.last_sequence_id() == 7
        producer.send(b"again", sequence_id=7)
        assert contents(client, "t") == [b"0", b"1", b"2"]


def test_deduplication_that_is_turned_on_drops_nothing_of_other_processes(
    folder: Path, owner: SharingProcess
) -> None:
    """The name had come further than its producer of now, which heard of that never."""
    with pulsarx.Client(folder) as client:
        with client.create_producer("t", producer_name="n") as before:
            before.send(b"0", sequence_id=99)
        producer = client.create_producer("t", producer_name="n", batching_enabled=True)
        waiting = client.create_producer(
            "t", "w", batching_enabled=True, batching_max_publish_delay_ms=10**6
        )
        producer.send(b"1")
        waiting.send_async(b"2", None, sequence_id=40)
        owner.run("client.admin.topics.set_deduplication('t', True)")
        for payload in (b"3", b"4"):
            producer.send(payload)
        waiting.send_async(b"5", None)
        waiting.flush()
        # Until the owner has heard that it is known here, what is sent again is stored again.
        wait_until(lambda: producer.send(b"again", sequence_id=99).ledger_id() < 0)
        producer.send(b"6")
        found = [each for each in contents(client, "t") if each != b"again"]
        assert sorted(found) == [b"0", b"1", b"2", b"3", b"4", b"5", b"6"]
        owner.run("client.admin.topics.set_deduplication('t', False)")
        assert producer.send(b"again", sequence_id=99).ledger_id() >= 0


# Settings -----------------------------------------------------------------------------------------


def test_settings_that_are_not_given_are_those_of_the_owner(
    folder: Path, processes: list[SharingProcess]
) -> None:
    processes.append(SharingProcess(folder, durability="os", flush_interval_ms=7))
    with pulsarx.Client(folder, durability="os") as client:
        with pytest.raises(errors.InvalidConfiguration) as caught:
            pulsarx.Client(folder, durability="sync", flush_interval_ms=8)
        assert caught.value.conflicts == {
            "durability": ("sync", "os"),
            "flush_interval_ms": (8, 7),
        }
        client.create_producer("t").send(b"1")
    with pytest.raises(errors.InvalidConfiguration) as caught:
        pulsarx.Client(folder, broker_options=pulsarx.BrokerOptions(max_message_size=7000))
    assert caught.value.conflicts == {"max_message_size": (7000, 5_242_880)}
    with pulsarx.Client(folder) as client:
        client.create_producer("t").send(b"2")
        assert contents(client, "t") == [b"1", b"2"]


def test_a_clock_of_ones_own_is_for_one_process(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess]
) -> None:
    with pytest.raises(errors.InvalidConfiguration) as caught:
        pulsarx.Client(folder, clock=ManualClock())
    assert isinstance(caught.value.conflicts["clock"][0], ManualClock)
    owner.kill()
    alone = pulsarx.Client(folder, clock=ManualClock())
    with alone, pytest.raises(AssertionError, match="ManualClock"):
        processes.append(SharingProcess(folder))


def test_settings_outlive_the_owner(folder: Path, processes: list[SharingProcess]) -> None:
    """A guest that takes a folder over opens it as the owner had it."""
    owner = SharingProcess(folder, durability="os")
    processes.append(owner)
    with pulsarx.Client(folder) as client:
        owner.kill()
        client.create_producer("t").send(b"1")
        guest = SharingProcess(folder)
        processes.append(guest)
        with pytest.raises(Refused, match="durability='os', not 'sync'"):
            guest.run("pulsarx.Client(sys.argv[1], durability='sync')")


def test_a_client_that_gave_nothing_goes_on_with_an_owner_that_has_others(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess]
) -> None:
    """It was refused with InvalidConfiguration for ever, because it asked for what the owner had
    when it came."""
    guest = SharingProcess(folder)
    processes.append(guest)
    guest.run("p = client.create_producer('t')")
    guest.run("p.send(b'1') and None")
    guest.signal(signal.SIGSTOP)
    owner.kill()
    # What it does not give is as the last owner had it.
    options = pulsarx.BrokerOptions(max_message_size=7000)
    newcomer = pulsarx.Client(folder, flush_interval_ms=7, broker_options=options)
    with newcomer:
        guest.signal(signal.SIGCONT)
        guest.run("p.send(b'2') and None")
        with pytest.raises(Refused, match="MessageTooBig"):
            guest.run("client.create_producer('t').send(bytes(7001))")
        assert contents(newcomer, "t") == [b"1", b"2"]
    guest.run("p.send(b'3') and None")  # it owns the folder now, which stays as it was
    with pytest.raises(errors.InvalidConfiguration) as caught:
        pulsarx.Client(folder, durability="sync", flush_interval_ms=8)
    assert caught.value.conflicts == {"flush_interval_ms": (8, 7)}


def test_what_nobody_gives_stays_while_a_process_lives_that_shared_it(
    folder: Path, processes: list[SharingProcess]
) -> None:
    """A newcomer without options that was faster than the processes that had them opened the folder
    with the usual ones, and the others were refused for ever."""
    owner = SharingProcess(folder, durability="os", flush_interval_ms=7)
    guest = SharingProcess(folder, durability="os")
    processes.extend((owner, guest))
    guest.run("p = client.create_producer('t')")
    guest.signal(signal.SIGSTOP)
    owner.kill()
    with pulsarx.Client(folder) as newcomer:
        with pytest.raises(errors.InvalidConfiguration) as caught:
            pulsarx.Client(folder, durability="sync", flush_interval_ms=8)
        assert caught.value.conflicts == {"durability": ("sync", "os"), "flush_interval_ms": (8, 7)}
        guest.signal(signal.SIGCONT)
        guest.run("p.send(b'1') and None")
        assert contents(newcomer, "t") == [b"1"]
        guest.run("client.close()")
        wait_until(lambda: "guests" not in (folder / "LOCK").read_text())  # the owner knows it
    with pulsarx.Client(folder):  # nobody has it any more
        pulsarx.Client(folder, durability="sync").close()


def test_settings_are_forgotten_with_the_last_process_that_had_them(
    folder: Path, processes: list[SharingProcess]
) -> None:
    owner = SharingProcess(folder, durability="os")
    guest = SharingProcess(folder)
    processes.extend((owner, guest))
    guest.signal(signal.SIGSTOP)
    owner.kill()
    guest.kill()
    with pulsarx.Client(folder):
        pulsarx.Client(folder, durability="sync").close()


def test_a_client_that_is_exclusive_shares_with_nobody(
    folder: Path, processes: list[SharingProcess]
) -> None:
    with pulsarx.Client(folder, exclusive=True) as client:
        client.create_producer("t").send(b"1")
        with pytest.raises(AssertionError, match="exclusive=True"):
            SharingProcess(folder)
        reader = SharingProcess(folder, read_only=True)
        processes.append(reader)
        assert reader.run("contents('t')") == [b"1"]
    with pulsarx.Client(folder):
        processes.append(SharingProcess(folder))
        with pytest.raises(errors.FolderOwnedError, match="other processes use it"):
            pulsarx.Client(folder, exclusive=True)
    with pytest.raises(errors.InvalidConfiguration):
        pulsarx.Client(folder, exclusive=True, read_only=True)


# When the owner leaves ----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["killed", "closed"])
def test_a_guest_takes_the_folder_over(folder: Path, owner: SharingProcess, how: str) -> None:
    owner.run("p = client.create_producer('t')")
    owner.run("p.send(b'1') and None")
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t", producer_name="mine")
        producer.send(b"2")
        reader = client.create_reader("t", pulsarx.MessageId.earliest)
        assert [reader.read_next(60_000).data() for _ in range(2)] == [b"1", b"2"]
        if how == "killed":
            owner.kill()
        else:
            owner.run("client.close()")
        producer.send(b"3")
        assert reader.read_next(60_000).data() == b"3"
        assert client.admin.topics.get_list("public/default")
        assert contents(client, "t") == [b"1", b"2", b"3"]


def test_a_read_only_client_never_takes_it_over(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess]
) -> None:
    owner.run("client.create_producer('t').send(b'1') and None")
    reader = SharingProcess(folder, read_only=True)
    processes.append(reader)
    assert reader.run("contents('t')") == [b"1"]
    owner.kill()
    with pulsarx.Client(folder, exclusive=True) as client:
        assert contents(client, "t") == [b"1"]


def test_the_last_guest_seals_what_the_first_owner_began(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess]
) -> None:
    others = [SharingProcess(folder) for _ in range(3)]
    processes.extend(others)
    everybody = [owner, *others]
    for number, each in enumerate(everybody):
        each.run(f"p = client.create_producer('t', producer_name='{number}')")
    expected = []
    while everybody:
        for number, each in enumerate(everybody):
            expected.append(b"%d of %d" % (number, len(everybody)))
            each.run(f"p.send({expected[-1]!r}) and None")
        leaving = everybody.pop(0)
        if len(everybody) % 2:
            leaving.kill()
        else:
            leaving.run("client.close()")
    with pulsarx.Client(folder, exclusive=True) as client:
        assert contents(client, "t") == expected


def test_a_stopped_owner_keeps_the_folder(folder: Path, owner: SharingProcess) -> None:
    with (
        pulsarx.Client(folder) as client,
        pulsarx.Client(folder, operation_timeout_seconds=2) as impatient,
    ):
        producer = client.create_producer("t")
        hasty = client.create_producer("t", send_timeout_millis=2000)
        producer.send(b"1")
        os.kill(owner.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
        with pytest.raises(errors.Timeout) as caught:
            hasty.send(b"2")
        assert "may be stored all the same" in caught.value.detail
        assert "within send_timeout_millis 2000. It lives" in caught.value.detail
        assert f"kill -9 {owner.pid}" in caught.value.detail
        told: list[Any] = []
        hasty.send_async(b"3", lambda result, _: told.append(result))
        hasty.flush()
        assert told == [pulsarx.Result.Timeout]
        with pytest.raises(errors.Timeout) as caught:
            impatient.create_producer("t")
        assert f"process {owner.pid}" in caught.value.detail
        assert "stopped or busy" in caught.value.detail
        with pytest.raises(errors.Timeout):
            impatient.admin.topics.create_non_partitioned_topic("u")
        os.kill(owner.pid, signal.SIGCONT)
        producer.send(b"4")
        assert contents(client, "t") == [b"1", b"2", b"3", b"4"]
        # The late one is given back when the owner's answer arrives.
        wait_until(lambda: len(client.admin.topics.stats("t")["publishers"]) == 2)


@pytest.mark.parametrize("hasty_first", [True, False])
def test_each_client_waits_for_a_stopped_owner_as_long_as_it_asked_for(
    folder: Path, owner: SharingProcess, hasty_first: bool
) -> None:
    """Clients of a process share their connection to the owner, and waited as long as the first of
    them asked for, be that too short or too long for the others."""
    # The hasty one is served by the owner first, on a busy machine, too.
    seconds = (5, 600) if hasty_first else (600, 5)
    with (
        pulsarx.Client(folder, operation_timeout_seconds=seconds[0]) as first,
        pulsarx.Client(folder, operation_timeout_seconds=seconds[1]) as second,
    ):
        hasty, patient = (first, second) if hasty_first else (second, first)
        both = (hasty, patient)

        def attached(name: str) -> dict[pulsarx.Client, pulsarx.Consumer]:
            return {each: each.subscribe("t", f"{name}{both.index(each)}") for each in both}

        sought, left, closed = attached("sought"), attached("left"), attached("closed")
        producers = {each: each.create_producer(f"u{both.index(each)}") for each in both}
        makers: dict[str, Callable[[pulsarx.Client], object]] = {
            "producer": lambda client: client.create_producer("t"),
            "consumer": lambda client: client.subscribe("t", f"new{both.index(client)}"),
            "reader": lambda client: client.create_reader(
                "non-persistent://public/default/n", MessageId.latest
            ),
            "table view": lambda client: client.create_table_view("fresh"),
            "verb": lambda client: client.admin.topics.get_list("public/default"),
            "seek": lambda client: sought[client].seek(MessageId.earliest),
            "unsubscribe": lambda client: left[client].unsubscribe(),
            "schema": lambda client: producers[client].use_schema(StringSchema()),
            "close": lambda client: closed[client].close(),
        }
        os.kill(owner.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
        with ThreadPoolExecutor(2 * len(makers)) as pool:
            kept = {what: pool.submit(make, patient) for what, make in makers.items()}
            tried = {what: pool.submit(make, hasty) for what, make in makers.items()}
            try:
                told = {what: type(each.exception(60)) for what, each in tried.items()}
                early = [what for what, each in kept.items() if each.done()]
            finally:
                os.kill(owner.pid, signal.SIGCONT)
            assert told == dict.fromkeys(makers, errors.Timeout)
            assert not early
            for each in kept.values():
                each.result(60)


def test_the_name_of_a_producer_that_was_dropped_is_free(
    folder: Path, owner: SharingProcess
) -> None:
    """It was busy until the background had closed it."""
    owner.run("client.admin.topics.create_non_partitioned_topic('t')")
    with pulsarx.Client(folder) as client:
        for _ in range(5):
            dropped = [client.create_producer("t") for _ in range(20)]
            dropped.append(client.create_producer("t", producer_name="n"))
            del dropped
        client.create_producer("t", producer_name="n").send(b"1")


def test_a_client_beside_a_stopped_owner_closes_after_one_timeout(
    folder: Path, owner: SharingProcess
) -> None:
    """It waited for each producer, and for each consumer twice."""
    goes_on = threading.Event()

    def go_on() -> None:
        os.kill(owner.pid, signal.SIGCONT)
        goes_on.set()

    client = pulsarx.Client(folder, operation_timeout_seconds=10)
    producers = [client.create_producer("t") for _ in range(20)]
    consumers = [client.subscribe("t", f"s{number}") for number in range(10)]
    for producer in producers:
        producer.send(b"1")
    for consumer in consumers:
        consumer.receive(60_000)
    os.kill(owner.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
    timer = threading.Timer(60, go_on)
    timer.start()
    for consumer in consumers:
        consumer.acknowledge(consumer.receive(60_000))
    with pytest.raises(errors.Timeout) as caught:
        client.close()
    assert not goes_on.is_set()
    timer.cancel()
    assert f"process {owner.pid}" in caught.value.detail
    go_on()
    # What it had told the owner is done all the same.
    with pulsarx.Client(folder) as other:

        def all_have_left() -> bool:
            stats = other.admin.topics.stats("t")
            left = [each["consumers"] for each in stats["subscriptions"].values()]
            backlogs = [each["msg_backlog"] for each in stats["subscriptions"].values()]
            return not stats["publishers"] and left == 10 * [[]] and backlogs == 10 * [19]

        wait_until(all_have_left)


def test_a_new_process_beside_a_stopped_owner_is_told_so(
    folder: Path, owner: SharingProcess
) -> None:
    os.kill(owner.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
    with pytest.raises(errors.Timeout, match="stopped or busy") as caught:
        pulsarx.Client(folder, operation_timeout_seconds=1)
    assert str(owner.pid) in caught.value.detail
    os.kill(owner.pid, signal.SIGCONT)


def test_an_owner_that_serves_nobody_is_named_with_the_way_out(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess]
) -> None:
    """Guests were told that no other process had become the owner."""
    hanging = SharingProcess(folder)
    guest = SharingProcess(folder)
    processes.extend((hanging, guest))
    guest.run("p = client.create_producer('t')")
    guest.run("hasty = client.create_producer('t', send_timeout_millis=5000)")
    # On the connection of the first: it has nothing to wait for as long as the owner is there.
    guest.run("impatient = pulsarx.Client(sys.argv[1], operation_timeout_seconds=1)")
    hanging.run("from pulsarx.broker.control.control_socket import ControlSocket")
    hanging.run("ControlSocket._talk = lambda socket, connection: threading.Event().wait()")
    guest.signal(signal.SIGSTOP)
    owner.kill()
    wait_until(lambda: f"pid {hanging.pid}\n" in (folder / "LOCK").read_text())
    wait_until(lambda: "control_socket control.sock" in (folder / "LOCK").read_text())
    guest.signal(signal.SIGCONT)
    way_out = f"kill -9 {hanging.pid}"
    # As the guest has noticed by then that its owner is gone, or wrote to it.
    told = "nothing was stored|may be stored all the same"
    with pytest.raises(Refused, match=f"{way_out}.*({told})"):
        guest.run("hasty.send(b'0')")
    with pytest.raises(Refused, match=way_out):
        guest.run("impatient.create_producer('u')")
    with pytest.raises(Refused, match=way_out):
        guest.run("impatient.subscribe('t', 's')")
    with pytest.raises(errors.Timeout, match=way_out):
        pulsarx.Client(folder, operation_timeout_seconds=1)
    hanging.kill()
    guest.run("p.send(b'1') and None")
    with pulsarx.Client(folder) as client:
        assert contents(client, "t") == [b"1"]


def test_a_guest_that_is_killed_leaves_its_names(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess]
) -> None:
    guest = SharingProcess(folder)
    processes.append(guest)
    guest.run("p = client.create_producer('t', producer_name='n')")
    guest.kill()
    owner.run(
        "while True:\n try:\n  p = client.create_producer('t', producer_name='n')\n  break\n"
        " except errors.ProducerBusy:\n  pass"
    )
    owner.run("p.send(b'1') and None")
    assert owner.run("contents('t')") == [b"1"]


def test_a_producer_waits_while_its_topic_has_no_room(
    folder: Path, processes: list[SharingProcess]
) -> None:
    """Its producer at the owner used to stay fenced for good."""
    owner = SharingProcess(folder, durability="os")
    processes.append(owner)
    owner.run("client.close()")
    owner.run("options = pulsarx.BrokerOptions(backlog_quota_check_interval_in_seconds=1)")
    owner.run("client = pulsarx.Client(sys.argv[1], durability='os', broker_options=options)")
    owner.run("topics = client.admin.topics")
    owner.run("topics.create_non_partitioned_topic('t')")
    owner.run("topics.create_subscription('t', 's', MessageId.earliest)")
    owner.run("topics.set_backlog_quota('t', limit_size=1000)")
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        sent = []
        told: list[Any] = []
        with pytest.raises(errors.ProducerBlockedQuotaExceededError):
            while True:
                sent.append(b"%1000d" % len(sent))
                producer.send_async(sent[-1], lambda result, _: told.append(result))
                client.create_producer("t").close()
        for _ in range(5):
            sent.append(b"%1000d" % len(sent))
            producer.send_async(sent[-1], lambda result, _: told.append(result))
        owner.run("topics.set_backlog_quota('t', limit_size=1 << 30)")
        producer.flush()
        assert told == [pulsarx.Result.Ok] * len(sent)
        assert contents(client, "t") == sent


def test_a_topic_that_is_unloaded_is_published_to_as_ever(
    folder: Path, owner: SharingProcess
) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        for number in range(3):
            producer.send(b"%d" % number)
            owner.run("client.admin.topics.unload('t')")
        assert contents(client, "t") == [b"0", b"1", b"2"]


def test_nothing_is_trimmed_before_the_others_have_looked(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess]
) -> None:
    """A producer could not be told what was stored of it, once all of it was acknowledged."""
    owner.run("client.admin.topics.create_non_partitioned_topic('t')")
    owner.run("client.admin.topics.create_subscription('t', 's', MessageId.earliest)")
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        producer.send(b"1")
        owner.run("client.admin.topics.skip_all_messages('t', 's')")
        os.kill(owner.pid, signal.SIGSTOP)
        told: list[Any] = []
        producer.send_async(b"2", lambda result, _: told.append(result))
        owner.kill()
        producer.flush()
        assert told == [pulsarx.Result.Ok]
        assert contents(client, "t") == [b"1", b"2"]
        assert "shared 1" in (folder / "LOCK").read_text()
        # Nor does one that was no guest, and comes first, trim what it finds.
        guest = SharingProcess(folder)
        processes.append(guest)
        guest.run("client.close()")
    with pulsarx.Client(folder) as client:
        client.create_producer("t").send(b"3")
        assert contents(client, "t") == [b"1", b"2", b"3"]


def test_columns_are_stored_when_they_are_said_to_be(folder: Path, owner: SharingProcess) -> None:
    """send_arrow returned None, before the owner had anything."""
    pyarrow = pytest.importorskip("pyarrow")
    with pulsarx.Client(folder) as client:
        client.admin.topics.create_partitioned_topic("spread", 2)
        rows = pyarrow.table({"value": [b"%d" % number for number in range(2500)]})
        for topic in ("t", "spread"):
            producer = client.create_producer(topic)
            last = producer.send_arrow(rows)
            assert last is not None
            with client.create_reader(topic, pulsarx.MessageId.earliest) as reader:
                found = []
                while reader.has_message_available():
                    message = reader.read_next(60_000)
                    found.append(int(message.data()))
                    if found[-1] == 2499:
                        assert message.message_id() == last
            assert sorted(found) == list(range(2500))
            assert producer.send_arrow(rows.slice(0, 0)) is None
