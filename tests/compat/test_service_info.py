"""Service discovery, and authentication that no broker would take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import pulsarx
from pulsarx import AutoClusterFailover, ServiceInfo, ServiceInfoProvider, errors

A, B = ServiceInfo("memory:a"), ServiceInfo("memory:b")


class Provider(ServiceInfoProvider):
    """Says the first place, and keeps what it is given."""

    def __init__(self, first: object) -> None:
        self.first = first
        self.closed = 0

    def initial_service_info(self) -> ServiceInfo:
        return self.first  # type: ignore[return-value]

    def initialize(self, on_service_info_update: Callable[[ServiceInfo], None]) -> None:
        self.update = on_service_info_update

    def close(self) -> None:
        self.closed += 1


def test_a_service_info_says_what_it_was_given():
    plain = ServiceInfo("pulsar://a:6650", None, "/certificates")
    assert (plain.use_tls, plain.tls_trust_certs_file_path) == (False, "/certificates")
    assert ServiceInfo("pulsar+ssl://a").use_tls and ServiceInfo("HTTPS://a").use_tls
    assert ServiceInfo.wrap(plain) is plain
    assert repr(A) == (
        "ServiceInfo(service_url='memory:a', use_tls=False, tls_trust_certs_file_path=None)"
    )


@pytest.mark.parametrize(
    "arguments", [(1,), ("junk",), ("",), ("memory:", "x"), ("memory:", None, 1)]
)
def test_a_wrong_service_info_is_a_value_error(arguments: tuple[object, ...]):
    with pytest.raises(ValueError):
        ServiceInfo(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [(A, []), (A, None), (A, [1]), ("x", [B]), (A, [B], 0), (A, [B], 1, 0), (A, [B], 1, 1, -1),
     (A, [B], "x")],
)  # fmt: skip
def test_a_wrong_failover_is_a_value_error(arguments: tuple[object, ...]):
    with pytest.raises(ValueError):
        AutoClusterFailover(*arguments)  # type: ignore[arg-type]


def test_a_failover_opens_its_primary():
    failover = AutoClusterFailover(A, [B])
    with pulsarx.Client(failover) as client, pulsarx.Client("memory:a") as beside:
        assert client.get_service_info() is A
        consumer = beside.subscribe("t", "s")
        client.create_producer("t").send(b"x")
        assert consumer.receive(60_000).data() == b"x"


@pytest.mark.parametrize(
    "options",
    [{"authentication": pulsarx.AuthenticationToken("t")}, {"tls_trust_certs_file_path": "c"}],
)
def test_what_belongs_on_each_service_info_is_not_given_beside(options: dict[str, object]):
    for given in (AutoClusterFailover(A, [B]), Provider(A)):
        with pytest.raises(ValueError, match=next(iter(options))):
            pulsarx.Client(given, **options)  # type: ignore[arg-type]


def test_a_provider_is_asked_told_and_closed_once():
    provider = Provider(A)
    client = pulsarx.Client(provider)
    again = ServiceInfo("memory:a", None, "c")
    provider.update(again)
    assert client.get_service_info() is again
    client.shutdown()
    client.shutdown()
    assert provider.closed == 1


def test_a_provider_cannot_move_an_open_client():
    provider = Provider(A)
    with pulsarx.Client(provider) as client:
        with pytest.raises(errors.OperationNotSupported):
            provider.update(B)
        with pytest.raises(ValueError):
            provider.update("memory:a")  # type: ignore[arg-type]
        assert client.get_service_info() is A


@pytest.mark.parametrize("first", [None, "memory:a"])
def test_a_provider_that_names_no_place_is_refused(first: object):
    with pytest.raises(ValueError):
        pulsarx.Client(Provider(first))


def test_what_a_provider_raises_comes_out_and_leaves_nothing_open(tmp_path: Path):
    class Failing(Provider):
        def initialize(self, on_service_info_update: object) -> None:
            raise RuntimeError("no network")

    provider = Failing(ServiceInfo(f"file:{tmp_path}"))
    with pytest.raises(RuntimeError, match="no network"):
        pulsarx.Client(provider)
    with pulsarx.Client(tmp_path, flush_interval_ms=7):  # it would be refused beside another
        pass


@pytest.mark.parametrize("given", [A, 5, None, object()])
def test_anything_else_is_no_service_url(given: object):
    with pytest.raises(ValueError):
        pulsarx.Client(given)  # type: ignore[arg-type]


def test_get_service_info_says_what_the_client_was_opened_with(tmp_path: Path):
    with pulsarx.Client(tmp_path) as client:
        assert client.get_service_info().service_url == str(tmp_path)
    with pytest.raises(errors.AlreadyClosed):
        client.get_service_info()


JUNK = [
    pulsarx.Authentication("someoldjunk.so", "blah"),
    pulsarx.Authentication("athenz", "blah"),
    pulsarx.AuthenticationOauth2("blah"),
    pulsarx.AuthenticationOauth2("{}"),
    pulsarx.AuthenticationOauth2('{"issuer_url": "http://a", "client_id": "c"}'),
    pulsarx.AuthenticationAthenz("[]"),
    pulsarx.AuthenticationAthenz('{"tenantDomain": "t"}'),
]
SOUND = [
    pulsarx.Authentication("tls", "tlsCertFile:/c,tlsKeyFile:/k"),
    pulsarx.Authentication(__file__, "a library that is there"),
    pulsarx.AuthenticationToken("t"),
    pulsarx.AuthenticationOauth2('{"issuer_url": "http://a", "private_key": "/k"}'),
    pulsarx.AuthenticationOauth2(
        '{"issuer_url": "http://a", "client_id": "c", "client_secret": "s"}'
    ),
    pulsarx.AuthenticationAthenz(
        '{"tenantDomain": "t", "tenantService": "s", "providerDomain": "p", "privateKey": "k", '
        '"ztsUrl": "z"}'
    ),
]


@pytest.mark.parametrize("junk", JUNK)
def test_junk_authentication_is_refused_when_the_client_is_used(junk: pulsarx.Authentication):
    with pulsarx.Client("memory:", authentication=junk) as client:
        calls: list[Callable[[], object]] = [
            lambda: client.create_producer("t"),
            lambda: client.subscribe("t", "s"),
            lambda: client.create_reader("t", pulsarx.MessageId.earliest),
            lambda: client.create_table_view("t"),
            lambda: client.get_topic_partitions("t"),
        ]
        for call in calls:
            with pytest.raises(errors.AuthenticationError):
                call()
        assert client.admin.topics.get_list("public/default") == []


@pytest.mark.parametrize("sound", SOUND)
def test_sound_authentication_is_taken(sound: pulsarx.Authentication):
    with pulsarx.Client("memory:", authentication=sound) as client:
        client.create_producer("t").send(b"x")


def test_junk_on_a_service_info_is_refused_too():
    primary = ServiceInfo("memory:", JUNK[0])
    failover = AutoClusterFailover(primary, [B])
    with pulsarx.Client(failover) as client, pytest.raises(errors.AuthenticationError):
        client.create_producer("t")


def test_basic_parameters_that_are_no_json_raise_at_once():
    with pytest.raises(RuntimeError):
        pulsarx.Authentication("basic", "junk")


def test_an_error_about_authentication_names_no_secret():
    junk = pulsarx.AuthenticationOauth2('{"client_secret": "hunter2"}')
    assert "hunter2" not in f"{junk!r} {junk.problem}"
