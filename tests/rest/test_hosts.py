"""Under which names a server may be asked."""

from __future__ import annotations

import os

import pytest

from pulsarx.rest.hosts import Hosts

ANYWHERE = ("10.0.0.7:8080", "[2001:db8::1]:8080", "pulsar:8080", "pulsar", "")
OF_NETWORK = ("box.local", "pulsar.ns.svc.cluster.local:80", "a.internal", os.uname().nodename)
STRANGE = ("evil.example:8080", "evil.example.", "evil.local.example", "10.0.0.7.evil.example")


def allowed(hosts: Hosts, *names: str) -> list[str]:
    return [each for each in names if hosts.flaw_of(each) is None]


@pytest.mark.parametrize("advertised", [(), ("broker.example.org", "other.example")])
def test_where_nobody_is_asked_strange_names_are_refused(advertised: tuple[str, ...]) -> None:
    """A page of such a name could do everything that a client in the network can."""
    hosts = Hosts(local_only=False, is_guarded=False, advertised=advertised)
    assert allowed(hosts, *ANYWHERE, *OF_NETWORK, *STRANGE) == [*ANYWHERE, *OF_NETWORK]
    own = ["Broker.Example.org:8080"] if advertised else []
    assert allowed(hosts, "Broker.Example.org:8080") == own
    assert "advertised address" in (hosts.flaw_of("evil.example") or "")


def test_where_clients_prove_who_they_are_all_names_serve() -> None:
    hosts = Hosts(local_only=False, is_guarded=True, advertised=())
    assert allowed(hosts, *ANYWHERE, *OF_NETWORK, *STRANGE) == [*ANYWHERE, *OF_NETWORK, *STRANGE]


@pytest.mark.parametrize("is_guarded", [False, True])
def test_a_local_server_has_local_names(is_guarded: bool) -> None:
    hosts = Hosts(local_only=True, is_guarded=is_guarded, advertised=["broker.example.org"])
    local = ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:80"]
    strange = ("pulsar", "10.0.0.7", "broker.example.org", "", "127.0.0.1.evil.example")
    assert allowed(hosts, *local, *strange) == local
