"""`python -m pulsarx serve`, as a process of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from signing import SECRET_TEXT, token
from support.ports import port_to_come_back_to

import pulsarx
from pulsarx import errors
from pulsarx.admin import Admin

pytestmark = pytest.mark.standard
PATIENCE_SECONDS = 60.0


class Command:
    """The command, as it runs."""

    def __init__(self, *arguments: str, before: Sequence[str] = (), **variables: str) -> None:
        """before: the program that runs it. variables: of its environment, besides the usual."""
        package = str(Path(pulsarx.__file__).parent.parent)
        environment = {**os.environ, "PYTHONPATH": package, **variables}
        self.process = subprocess.Popen(
            [*before, sys.executable, "-m", "pulsarx", "serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def url(self) -> str:
        """What it says when it listens."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.fullmatch(r".+ is served at (pulsar(?:\+ssl)?://[a-z0-9.]+:\d+)\n", line)
        assert found, line + self.ended()[1]
        return found[1]

    def http_url(self) -> str:
        """What it says next, if it serves HTTP."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.fullmatch(r".+ is administered at (https?://127\.0\.0\.1:\d+)\n", line)
        assert found, line
        return found[1]

    def ended(self) -> tuple[int, str]:
        """Its exit status and what it complained about, when it has ended."""
        _, said = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, said


@pytest.fixture
def run() -> Iterator[Any]:
    made: list[Command] = []

    def start(*arguments: str, **options: Any) -> Command:
        made.append(Command(*arguments, **options))
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_folder_is_served_until_a_signal_comes(tmp_path: Path, run: Any, number: int) -> None:
    pulsar: Any = pytest.importorskip("pulsar")
    command = run(str(tmp_path), "--port=0")
    client = pulsar.Client(command.url(), logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    for text in (b"a", b"b", b"c"):
        producer.send(text)
    first = consumer.receive(60_000)
    consumer.acknowledge(first)
    consumer.close()
    command.process.send_signal(number)
    assert command.ended() == (0, "")
    client.close()
    with pulsarx.Client(str(tmp_path)) as after:
        again = after.subscribe("t", "s")
        assert [again.receive(60_000).data() for _ in range(2)] == [b"b", b"c"]


def test_a_signal_that_comes_again_changes_nothing(tmp_path: Path, run: Any) -> None:
    """The second one used to be delivered when all was closed, and the command ended as one that
    was interrupted."""
    command = run(str(tmp_path), "--port=0", "--no-http")
    command.url()
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
        command.process.send_signal(number)
    assert command.ended() == (0, "")


def test_it_ends_although_clients_neither_speak_nor_read(tmp_path: Path, run: Any) -> None:
    """It says nothing then, either: an answer that was not taken used to be told of as a failure of
    the server, with a traceback."""
    command = run(str(tmp_path), "--port=0")
    url, http_url = command.url(), command.http_url()
    with pulsarx.Client(url) as client:
        client.create_producer("t", batching_enabled=False).send_many([b"x" * 1000] * 5000)
        for number in range(500):
            client.subscribe(f"{number % 50}-{'long' * 40}", f"{number}-{'s' * 400}").close()
    with ExitStack() as stack:
        silent = stack.enter_context(socket.socket())
        silent.connect(address_of(url))
        for _ in range(3):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect(address_of(http_url))
            # Some 8 MB, which is more than the buffers of a connection hold.
            one.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert one.recv(1) == b"H"
        command.process.send_signal(signal.SIGTERM)
        assert command.ended() == (0, "")
    with pulsarx.Client(str(tmp_path)) as after:
        assert after.admin.topics.stats("t")["messages"] == 5000


def address_of(url: str) -> tuple[str, int]:
    host, _, port = url.rpartition("/")[2].partition(":")
    return host, int(port)


@pytest.mark.parametrize("abstract", [False, True])
def test_the_service_manager_is_told(run: Any, abstract: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix="pulsarx-notify-"))  # short enough for a socket's name
    path = str(folder / "notify")
    name = f"\0{path}" if abstract else path
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(name)
            manager.settimeout(PATIENCE_SECONDS)
            command = run("memory:", "--port=0", NOTIFY_SOCKET=name.replace("\0", "@"))
            assert manager.recv(100) == b"READY=1"
            command.url()  # it was said before
            command.process.send_signal(signal.SIGTERM)
            assert manager.recv(100) == b"STOPPING=1"
            assert command.ended() == (0, "")
    finally:
        shutil.rmtree(folder)


def test_a_service_manager_that_is_not_there_is_told_of_and_it_is_served(run: Any) -> None:
    command = run("memory:", "--port=0", NOTIFY_SOCKET="/nowhere/notify")
    command.url()
    command.process.send_signal(signal.SIGTERM)
    status, said = command.ended()
    assert status == 0
    assert "tell the service manager at /nowhere/notify READY=1: " in said


def test_as_the_first_process_of_a_container_it_ends_when_it_is_told_to(
    tmp_path: Path, run: Any
) -> None:
    """The kernel keeps signals from a first process that has no handler for them."""
    apart = ["unshare", "--pid", "--fork", "--mount-proc"]
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"]).returncode:
        pytest.skip("this user cannot make a namespace of processes (unshare --pid)")
    command = run(str(tmp_path), "--port=0", before=apart)
    client = pulsarx.Client(command.url())
    client.create_producer("t").send(b"x")
    outside = command.process.pid
    (first,) = Path(f"/proc/{outside}/task/{outside}/children").read_text().split()
    status = Path(f"/proc/{first}/status").read_text()
    assert re.search(r"^NSpid:.*\s1$", status, re.MULTILINE)
    os.kill(int(first), signal.SIGTERM)
    assert command.ended() == (0, "")
    client.close()
    with pulsarx.Client(str(tmp_path)) as after:
        assert after.admin.topics.stats("t")["messages"] == 1


def test_what_was_confirmed_outlives_a_kill(tmp_path: Path, run: Any) -> None:
    """Clients come back to the next owner by themselves, and send again what was not confirmed."""
    pulsar: Any = pytest.importorskip("pulsar")
    port = f"--port={port_to_come_back_to()}"
    command = run(str(tmp_path), port)
    url = command.url()
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    confirmed = 0
    received = set()
    for _ in range(3):
        for _ in range(20):
            producer.send(b"%d" % confirmed)
            confirmed += 1
        producer.send_async(b"on its way", None)
        command.process.kill()
        command.ended()
        command = run(str(tmp_path), port, "--no-http")
        command.url()
    producer.send(b"last")
    while b"last" not in received:
        message = consumer.receive(60_000)
        received.add(message.data())
        consumer.acknowledge(message)
    assert received == {*(b"%d" % number for number in range(confirmed)), b"on its way", b"last"}
    client.close()


def test_the_folder_is_administered_over_http(tmp_path: Path, run: Any) -> None:
    pulsar: Any = pytest.importorskip("pulsar")
    command = run(str(tmp_path), "--port=0")
    command.url()
    url = command.http_url()
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    client.create_producer("t").send(b"x")
    client.close()
    assert Admin.at(url).topics.get_list() == ["persistent://public/default/t"]
    command.process.send_signal(signal.SIGTERM)
    assert command.ended() == (0, "")


def test_listeners_are_given_by_name(tmp_path: Path, run: Any) -> None:
    given = ("outside=pulsar://there:1", "outside=pulsar+ssl://there:2", "else=pulsar://else:1")
    named = [part for each in given for part in ("--advertised-listener", each)]
    command = run(str(tmp_path), "--port=0", *named)
    command.url()
    place = f"{command.http_url()}/lookup/v2/topic/persistent/public/default/t?listenerName="
    for name, urls in (
        ("outside", ("pulsar://there:1", "pulsar+ssl://there:2")),
        ("else", ("pulsar://else:1", "")),
    ):
        with urllib.request.urlopen(place + name, timeout=PATIENCE_SECONDS) as answer:
            found = json.load(answer)
        assert (found["brokerUrl"], found["brokerUrlTls"]) == urls


def test_http_can_be_switched_off(tmp_path: Path, run: Any) -> None:
    command = run(str(tmp_path), "--port=0", "--no-http")
    command.url()
    command.process.send_signal(signal.SIGTERM)
    told, said = command.process.communicate(timeout=PATIENCE_SECONDS)
    assert (told, said) == ("", "")


def test_clients_are_asked_who_they_are(tmp_path: Path, run: Any) -> None:
    """With TLS, a token and a certificate; on both protocols."""
    pulsar: Any = pytest.importorskip("pulsar")
    authority = Authority(tmp_path)
    certificate, key = authority.sign("server", "localhost", "127.0.0.1")
    own_certificate, own_key = authority.sign("admin")
    command = run(
        str(tmp_path / "folder"),
        "--port=0",
        "--advertised-address=localhost",
        f"--tls-certificate={certificate}",
        f"--tls-key={key}",
        f"--tls-trust-certs={authority.file}",
        "--tls-authentication",
        f"--token-secret-key={SECRET_TEXT}",
        "--token-auth-claim=name",
        "--token-audience=here",
        "--superuser=admin",
        "--superuser",
        "root",
    )
    assert command.url().startswith("pulsar://localhost:")
    url = command.url()
    assert url.startswith("pulsar+ssl://localhost:")
    plain_url, http_url = command.http_url(), command.http_url()
    assert plain_url.startswith("http://")
    assert http_url.startswith("https://")
    for proof in (
        pulsar.AuthenticationToken(token(None, name="root", aud="here")),
        pulsar.AuthenticationTLS(own_certificate, own_key),
    ):
        client = pulsar.Client(
            url,
            proof,
            tls_trust_certs_file_path=authority.file,
            tls_validate_hostname=True,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )
        client.create_producer("t").send(b"x")
        client.close()
    request = urllib.request.Request(f"{http_url}/admin/v2/tenants")
    context = ssl.create_default_context(cafile=authority.file)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request, timeout=PATIENCE_SECONDS, context=context)
    request.add_header("Authorization", f"Bearer {token(None, name='root', aud='here')}")
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS, context=context) as answer:
        assert answer.status == 200
    plain = urllib.request.Request(f"{plain_url}/admin/v2/tenants")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(plain, timeout=PATIENCE_SECONDS)
    plain.add_header("Authorization", f"Bearer {token(None, name='root', aud='here')}")
    with urllib.request.urlopen(plain, timeout=PATIENCE_SECONDS) as answer:
        assert answer.status == 200
    command.process.send_signal(signal.SIGTERM)
    status, said = command.ended()
    assert status == 0, said


def test_who_does_not_say_who_he_is_has_the_role_of_anonymous_clients(
    tmp_path: Path, run: Any
) -> None:
    command = run(
        str(tmp_path / "folder"),
        "--port=0",
        f"--token-secret-key={SECRET_TEXT}",
        "--superuser=admin",
        "--anonymous-user-role=guest",
    )
    command.url()
    url = command.http_url()
    admin = Admin.at(url, authentication=pulsarx.AuthenticationToken(token("admin")))
    anybody = Admin.at(url)
    with pytest.raises(errors.AuthorizationError):
        anybody.namespaces.get_topics("public/default")
    admin.namespaces.grant_permission_on_namespace("public/default", "guest", ["consume"])
    assert anybody.namespaces.get_topics("public/default") == []
    command.process.send_signal(signal.SIGTERM)
    assert command.ended()[0] == 0


@pytest.mark.parametrize("alone", [True, False])
def test_nothing_is_administered_without_tls_where_nobody_could_say_who_he_is(
    tmp_path: Path, run: Any, alone: bool
) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.sign("server", "localhost", "127.0.0.1")
    command = run(
        str(tmp_path / "folder"),
        *(["--tls-only", "--tls-port=0", "--https-port=0"] if alone else ["--port=0"]),
        f"--tls-certificate={certificate}",
        f"--tls-key={key}",
        f"--tls-trust-certs={authority.file}",
        "--tls-authentication",
    )
    if not alone:
        command.url()
    assert command.url().startswith("pulsar+ssl://")
    assert command.http_url().startswith("https://")
    command.process.send_signal(signal.SIGTERM)
    assert command.ended() == (0, "")


def test_it_owns_the_folder(tmp_path: Path, run: Any) -> None:
    command = run(str(tmp_path), "--port", "0")
    command.url()
    status, said = run(str(tmp_path), "--port=0").ended()
    assert status == 1
    assert str(command.process.pid) in said


def test_options_of_the_broker_are_given(run: Any, tmp_path: Path) -> None:
    given = ("max_topics_per_namespace=1", "subscription_types_enabled=Shared, Failover")
    command = run(str(tmp_path), "--port=0", *(f"--broker-option={each}" for each in given))
    with pulsarx.Client(command.url()) as client:
        client.create_producer("one")
        with pytest.raises(pulsarx.PulsarException):
            client.create_producer("two")
        with pytest.raises(pulsarx.PulsarException):
            client.subscribe("one", "s", pulsarx.ConsumerType.Exclusive)
        client.subscribe("one", "s", pulsarx.ConsumerType.Shared)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "which folder"),
        (("a", "b"), "which folder"),
        (("a", "--port"), "needs a value"),
        (("a", "--port=x"), "0 to 65535"),
        (("a", "--broker-option"), "needs a value"),
        (("a", "--broker-option=x"), "NAME=VALUE"),
        (("a", "--broker-option=max_mesage_size=1"), "did you mean max_message_size"),
        (("a", "--broker-option=max_message_size=much"), "max_message_size must be int"),
        (("a", "--broker-option=system_topic_enabled=1"), "must be bool"),
        (("a", "--port=70000"), "0 to 65535"),
        (("a", "--http-port=x"), "0 to 65535"),
        (("a", "--http-port=1", "--no-http"), "either --http-port or --no-http"),
        (("a", "--https-port=1", "--no-http"), "either --https-port or --no-http"),
        (("a", "--http-port=1", "--tls-only"), "either --http-port or --tls-only"),
        (("a", "--https-port=1"), "--https-port needs --tls-certificate"),
        (("a", "--tls"), "no option --tls"),
        (("http://localhost:8080",), "is served already; give a folder"),
        (("pulsar+ssl://localhost",), "is served already; give a folder"),
        (("a", "--tls-port=1"), "needs --tls-certificate"),
        (("a", "--tls-authentication"), "needs --tls-certificate"),
        (("a", "--tls-only"), "needs --tls-certificate"),
        (("a", "--tls-certificate=c"), "needs --tls-key"),
        (("a", "--tls-certificate=c", "--tls-key=k", "--tls-only", "--port=1"), "either --port"),
        (("memory:", "--port=0", "--tls-certificate=c", "--tls-key=k"), "the certificate c"),
        (("memory:", "--port=0", "--superuser=admin"), "no client could authenticate"),
        (("memory:", "--port=0", "--anonymous-user-role=x"), "no client could authenticate"),
        (
            ("memory:", "--superuser=x", "--anonymous-user-role=x", "--basic-auth-conf=c"),
            "anonymous_user_role x is a superuser",
        ),
        (("memory:", "--port=0", "--token-secret-key=AAAA"), "at least 32"),
        (
            ("memory:", "--port=0", "--token-secret-key=file:///nowhere/token.key"),
            "token_secret_key: read /nowhere/token.key: No such file or directory; put the key",
        ),
        (("a", "--token-audience-claim=x"), "needs --token-audience"),
        (("memory:", "--port=0", "--advertised-address=a:1"), "without a port"),
        (("memory:", "--port=0", "--advertised-listener=a"), "NAME=URL"),
        (("memory:", "--port=0", "--advertised-listener=a=http://b:1"), "pulsar://host:port"),
        (("memory:", "--host=0.0.0.0", "--port=0"), "anonymous"),
    ],
)
def test_what_cannot_be_understood_or_is_refused(
    run: Any, arguments: tuple[str, ...], complaint: str
) -> None:
    status, said = run(*arguments).ended()
    assert status == 2
    assert complaint in said
