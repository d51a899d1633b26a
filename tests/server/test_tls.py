"""Facts about TLS: with whom it is spoken, what it costs before, and what junk does to it."""

from __future__ import annotations

import random
import socket
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from seeds import scaled, seed_of
from served import Served
from signing import SECRET_TEXT, token
from speaker import Speaker, looks
from support.ports import port_to_come_back_to

import pulsarx
from pulsarx import errors
from pulsarx._pycore.ranges.entry_codec import encode_entry
from pulsarx.access import AccessSettings, TlsSettings
from pulsarx.access.tls_transport import HANDSHAKE_SIZE_MAX
from pulsarx.clock import ManualClock
from pulsarx.server import serve
from pulsarx.server.served_connection import CAME_MAX

PATIENCE_MS = 60_000
REFUSED_SECONDS = 2  # how long a client tries that is not let in
Open = Callable[..., Served]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def settings_of(authority: Authority, **options: Any) -> TlsSettings:
    return TlsSettings(*authority.sign("server", "localhost", "127.0.0.1"), **options)


def open_secured(
    open_served: Open, authority: Authority, clock: ManualClock | None = None, **options: Any
) -> Served:
    """It is reached as localhost."""
    tls = options.pop("tls", None) or settings_of(authority)
    service = {"tls": tls, "tls_port": 0, "advertised_address": "localhost", **options}
    return open_served(clock, service=service)


@pytest.fixture
def secured(open_served: Open, authority: Authority) -> Served:
    return open_secured(open_served, authority)


def trusting(authority: Authority, *certificate: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.file)
    if certificate:
        context.load_cert_chain(*certificate)
    return context


def opened(served: Served, authority: Authority, authentication: Any = None, **options: Any) -> Any:
    pulsar: Any = pytest.importorskip("pulsar")
    return pulsar.Client(
        options.pop("url", served.service.service_url_tls),
        authentication,
        tls_trust_certs_file_path=options.pop("trusted", authority.file),
        tls_validate_hostname=True,
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        **options,
    )


def let_in(*arguments: Any) -> None:
    """Fails where it is not."""
    client = opened(*arguments)
    client.create_producer("t").close()
    client.close()


def is_refused(*arguments: Any, **options: Any) -> bool:
    import pulsar

    client = opened(*arguments, operation_timeout_seconds=REFUSED_SECONDS, **options)
    try:
        client.create_producer("t").close()
    except (pulsar.Timeout, pulsar.AuthenticationError, pulsar.ConnectError):
        return True
    finally:
        client.close()
    return False


# The official client


def test_the_official_client_publishes_and_receives(secured: Served, authority: Authority) -> None:
    client = opened(secured, authority)
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    for size in (10, 1_000_000, 4_000_000):
        producer.send(b"x" * size)
        assert len(consumer.receive(PATIENCE_MS).data()) == size
    consumer.seek(consumer.get_last_message_id())  # which tells it where to come again
    consumer.close()
    client.close()


def test_plain_clients_are_served_beside(secured: Served, authority: Authority) -> None:
    pulsar: Any = pytest.importorskip("pulsar")
    plain = pulsar.Client(secured.service.service_url)
    consumer = plain.subscribe("t", "s")
    client = opened(secured, authority)
    client.create_producer("t").send(b"x")
    assert consumer.receive(PATIENCE_MS).data() == b"x"
    plain.close()
    client.close()


@pytest.mark.standard
def test_a_client_that_does_not_trust_the_server_stays_away(
    open_served: Open, authority: Authority, tmp_path: Path
) -> None:
    pytest.importorskip("pulsar")
    served = open_secured(open_served, authority)
    other = Authority(tmp_path, "other")
    let_in(served, authority)
    assert is_refused(served, authority, trusted=other.file)
    elsewhere = open_secured(
        open_served, authority, tls=TlsSettings(*authority.sign("x", "elsewhere.example"))
    )
    assert is_refused(elsewhere, authority)  # the name of the host is verified


@pytest.mark.standard
def test_a_certificate_is_who_the_client_is(
    open_served: Open, authority: Authority, tmp_path: Path
) -> None:
    pulsar: Any = pytest.importorskip("pulsar")
    tls = settings_of(authority, trust_certs_file=authority.file)
    access = AccessSettings(tls_authentication=True, superuser_roles=["admin"])
    served = open_secured(open_served, authority, tls=tls, access=access)
    admin = pulsar.AuthenticationTLS(*authority.sign("admin"))
    bob = pulsar.AuthenticationTLS(*authority.sign("bob"))
    let_in(served, authority, admin)
    client = opened(served, authority, bob)
    with pytest.raises(pulsar.AuthorizationError):
        client.create_producer("t")
    client.close()
    (tmp_path / "o").mkdir()
    forged = pulsar.AuthenticationTLS(*Authority(tmp_path / "o").sign("admin"))
    assert is_refused(served, authority, forged)
    assert is_refused(served, authority)
    assert is_refused(served, authority, admin, url=served.service.service_url)


def test_a_token_over_tls_serves(open_served: Open, authority: Authority) -> None:
    pulsar: Any = pytest.importorskip("pulsar")
    access = AccessSettings(token_secret_key=SECRET_TEXT, superuser_roles=["admin"])
    served = open_secured(open_served, authority, access=access, port=None)
    assert served.service.service_url == f"pulsar+ssl://localhost:{served.service.port}"
    let_in(served, authority, pulsar.AuthenticationToken(token("admin")))


# Certificates of clients


def test_a_client_without_a_certificate_is_hung_up_on_where_one_is_required(
    open_served: Open, authority: Authority, tmp_path: Path
) -> None:
    tls = settings_of(authority, trust_certs_file=authority.file, require_client_certificate=True)
    served = open_secured(open_served, authority, tls=tls)
    Speaker(served, trusting(authority, *authority.sign("bob"))).greet()
    (tmp_path / "o").mkdir()
    stranger = Authority(tmp_path / "o").sign("bob")
    for context in (trusting(authority), trusting(authority, *stranger)):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            Speaker(served, context).greet()


def test_a_certificate_proves_nothing_where_nobody_asks_for_it(
    open_served: Open, authority: Authority
) -> None:
    access = AccessSettings(token_secret_key=SECRET_TEXT)
    tls = settings_of(authority, trust_certs_file=authority.file)
    served = open_secured(open_served, authority, tls=tls, access=access)
    speaker = Speaker(served, trusting(authority, *authority.sign("bob")))
    speaker.say("CONNECT", client_version="test", auth_method_name="tls", auth_data=b"")
    assert speaker.hear()[0] == "ERROR"
    assert speaker.is_hung_up_on()


# What comes and goes


@pytest.mark.parametrize("without_uvloop", [False, True])
def test_much_goes_both_ways(
    open_served: Open, authority: Authority, without_uvloop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if without_uvloop:
        monkeypatch.setitem(sys.modules, "uvloop", None)
    served = open_secured(open_served, authority)
    speaker = Speaker(served, trusting(authority))
    speaker.greet()
    speaker.produce()
    sizes = [4_000_000, 1, 70_000, CAME_MAX, 3_000_000]
    for number, size in enumerate(sizes):
        data = encode_entry(
            bytes([number]) * size, producer_name="p", sequence_id=1, publish_time_ms=1000
        )
        speaker.say("SEND", data, producer_id=0, sequence_id=number)
        assert speaker.hear()[1]["sequence_id"] == number
    speaker.subscribe()
    for number, size in enumerate(sizes):
        assert speaker.hear()[2].endswith(bytes([number]) * size)
    served.service.close()
    assert speaker.is_hung_up_on()


def test_every_byte_may_come_alone(secured: Served, authority: Authority) -> None:
    speaker = Speaker(secured, trusting(authority))
    from pulsarx.wire.frames import frame_encode

    for each in frame_encode("CONNECT", {"client_version": "test", "protocol_version": 20}):
        speaker.socket.sendall(bytes([each]))
    assert speaker.hear()[0] == "CONNECTED"


def test_a_client_may_say_farewell(secured: Served, authority: Authority) -> None:
    """close_notify: what came before it is done, and the service answers it."""
    speaker = Speaker(secured, trusting(authority))
    speaker.greet()
    speaker.produce()
    assert isinstance(speaker.socket, ssl.SSLSocket)
    speaker.socket.unwrap()
    while secured.network.connections:
        pass
    again = Speaker(secured, trusting(authority))
    again.greet()
    again.produce()


def test_both_addresses_are_told(secured: Served, authority: Authority) -> None:
    for context in (None, trusting(authority)):
        speaker = Speaker(secured, context)
        speaker.greet()
        speaker.say("LOOKUP", topic="t", request_id=1)
        told = speaker.hear()[1]
        ports = secured.service.port, secured.service.tls_port
        assert told["service_url"] == f"pulsar://localhost:{ports[0]}"
        assert told["service_url_tls"] == f"pulsar+ssl://localhost:{ports[1]}"


# Before it is known who the client is


def in_handshake(served: Served, count: int) -> list[socket.socket]:
    """Clients that begin TLS, and say no more."""
    address = (served.service.host, served.service.tls_port)
    found = [socket.create_connection(address, 60) for _ in range(count)]
    for each in found:
        each.sendall(b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03")
    while len(served.network.connections) < count:
        pass
    return found


def test_a_handshake_that_does_not_end_is_dropped(open_served: Open, authority: Authority) -> None:
    served = open_secured(open_served, authority, ManualClock())
    (silent,) = in_handshake(served, 1)
    greeted = Speaker(served, trusting(authority))
    greeted.greet()
    looks(served, 3)
    assert silent.recv(100) == b""
    assert greeted.hear()[0] == "PING"  # it is asked whether it is there
    silent.close()


def test_an_endless_handshake_is_ended(secured: Served, caplog: pytest.LogCaptureFixture) -> None:
    """A ClientHello may be as long as its sender likes, in records of 16 KiB."""
    hello = b"\x01\x01\x00\x00" + b"\x03\x03" + b"x" * 65_530
    with socket.create_connection((secured.service.host, secured.service.tls_port), 60) as sock:
        try:
            for at in range(0, len(hello), 1000):
                piece = hello[at : at + 1000]
                sock.sendall(b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece)
            assert b"" in (sock.recv(100), sock.recv(100))
        except ConnectionError:
            pass
    assert "TLS" in caplog.text
    assert HANDSHAKE_SIZE_MAX < 32 << 10


def resident() -> int:
    """Bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


@pytest.mark.standard
def test_a_connection_that_is_not_known_costs_little(
    open_served: Open, authority: Authority
) -> None:
    served = open_secured(open_served, authority)
    before = in_handshake(served, 20)  # what is made once
    start, count = resident(), 200
    context = trusting(authority)
    peers = in_handshake(served, count)
    half = resident()
    assert half - start < count * (64 << 10)
    shaken = []
    for _ in range(count):
        sock = socket.create_connection((served.service.host, served.service.tls_port), 60)
        shaken.append(context.wrap_socket(sock, server_hostname="localhost"))
        shaken[-1].sendall((16_000).to_bytes(4, "big") + b"x" * 15_000)
    # The ends of the clients are in this process too.
    assert resident() - half < 2 * count * (64 << 10)
    for each in (*before, *peers, *shaken):
        each.close()


def test_junk_ends_its_connection_and_nothing_else(
    secured: Served, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(seed_of(6651))
    honest = Speaker(secured, trusting(authority))
    honest.greet()
    junk = [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100, b"\x15\x03\x03\x00\x02\x02\x00"]
    junk += [chance.randbytes(chance.randint(1, 3000)) for _ in range(scaled(30))]
    address = (secured.service.host, secured.service.tls_port)
    for each in junk:
        with socket.create_connection(address, 60) as sock:
            sock.sendall(each)
            sock.shutdown(socket.SHUT_WR)
            try:
                while sock.recv(1000):
                    pass
            except ConnectionResetError:
                pass
    for _ in range(scaled(10)):  # in the middle of what was well begun
        speaker = Speaker(secured, trusting(authority))
        speaker.greet()
        bare = socket.socket(fileno=speaker.socket.detach())
        bare.settimeout(60)
        bare.sendall(chance.choice([b"\x17\x03\x03\x00\x20", b"", b"\x16"]) + b"x" * 40)
        try:
            while bare.recv(1000):
                pass
        except ConnectionResetError:
            pass
        bare.close()
    honest.say("PING")
    assert honest.hear()[0] == "PONG"
    assert "because of a bug" not in caplog.text
    assert "network loop" not in caplog.text, caplog.text


def test_tls_on_the_plain_port_is_hung_up_on(secured: Served, authority: Authority) -> None:
    sock = socket.create_connection((secured.service.host, secured.service.port), 60)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        trusting(authority).wrap_socket(sock, server_hostname="localhost")
    sock.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_versions_are_not_spoken(
    secured: Served, authority: Authority, version: ssl.TLSVersion
) -> None:
    context = trusting(authority)
    context.minimum_version = context.maximum_version = version
    with pytest.raises((ssl.SSLError, ConnectionError)):
        Speaker(secured, context)


# Settings


def test_settings_that_do_not_fit_are_refused(authority: Authority, tmp_path: Path) -> None:
    tls = settings_of(authority)
    other = Authority(tmp_path, "other").sign("other")
    by_certificate = AccessSettings(tls_authentication=True)
    (tmp_path / "empty").write_text("")
    with pulsarx.Client("memory:") as client:
        for options, complaint in (
            ({"tls_port": 0}, "give tls"),
            ({"port": None}, "give a port"),
            ({"access": by_certificate}, "trust_certs_file"),
            ({"access": by_certificate, "tls": tls}, "trust_certs_file"),
            ({"advertised_address": "host:6650"}, "without a port"),
            ({"advertised_address": ""}, "host name"),
            ({"advertised_address": "pulsar://host"}, "host name"),
            ({"tls": TlsSettings("nothing", "nothing"), "tls_port": 0}, "nothing"),
            ({"tls": TlsSettings(tls.certificate_file, other[1]), "tls_port": 0}, "key"),
            (
                {
                    "tls": settings_of(authority, trust_certs_file=str(tmp_path / "empty")),
                    "tls_port": 0,
                },
                "trusted",
            ),
        ):
            with pytest.raises(errors.InvalidConfiguration, match=complaint):
                serve(client, **{"port": 0, **options})
    with pytest.raises(errors.InvalidConfiguration, match="authorities"):
        settings_of(authority, require_client_certificate=True)


def test_a_port_that_is_taken_leaves_the_other_free(authority: Authority) -> None:
    with (
        pulsarx.Client("memory:") as client,
        serve(client, port=0) as first,
    ):
        free = port_to_come_back_to()
        with pytest.raises(errors.ConnectError, match=str(first.port)):
            serve(client, port=free, tls=settings_of(authority), tls_port=first.port)
        serve(client, port=free).close()


def test_a_key_with_a_password_is_refused_and_asks_nobody(
    authority: Authority, tmp_path: Path
) -> None:
    from cryptography.hazmat.primitives import serialization

    certificate, key = authority.sign("server")
    loaded = serialization.load_pem_private_key(Path(key).read_bytes(), None)
    Path(key).write_bytes(
        loaded.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(errors.InvalidConfiguration, match="password"):
        TlsSettings(certificate, key).context()


# Certificates that change


def certificate_of(served: Served, trusted: str) -> str:
    context = ssl.create_default_context(cafile=trusted)
    address = served.service.host, served.service.tls_port
    with (
        socket.create_connection(address, 60) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as found,
    ):
        certificate: Any = found.getpeercert()
    return str(dict(part[0] for part in certificate["subject"])["commonName"])


def test_a_renewed_certificate_is_shown_to_who_comes_next(
    open_served: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It used to need a restart, and clients were refused from the day on the old one expired."""
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    certificate, key = (Path(each) for each in authority.sign("server", "localhost"))
    served = open_secured(open_served, authority, tls=TlsSettings(str(certificate), str(key)))
    before = Speaker(served, tls=trusting(authority))
    before.greet()
    assert certificate_of(served, authority.file) == "server"
    renewed, renewed_key = (Path(each) for each in other.sign("renewed", "localhost"))
    renewed.replace(certificate)  # it does not fit to the key yet
    assert certificate_of(served, authority.file) == "server"
    assert caplog.text.count("changed certificates are not used") == 1
    renewed_key.replace(key)
    assert certificate_of(served, other.file) == "renewed"
    key.unlink()
    assert certificate_of(served, other.file) == "renewed"
    before.produce()  # who is there already stays


def test_an_authority_that_is_trusted_no_more_lets_nobody_in(
    open_served: Open, tmp_path: Path
) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(Path(authority.file).read_bytes())
    tls = settings_of(authority, trust_certs_file=str(trusted), require_client_certificate=True)
    served = open_secured(open_served, authority, tls=tls)
    client = trusting(authority, *authority.sign("client"))
    Speaker(served, tls=client).greet()
    trusted.write_bytes(Path(other.file).read_bytes())
    with pytest.raises((ssl.SSLError, ConnectionError)):
        Speaker(served, tls=client).greet()
    Speaker(served, tls=trusting(authority, *other.sign("client"))).greet()
