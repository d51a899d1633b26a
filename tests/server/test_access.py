"""Facts about a service that asks clients who they are: who comes in, and who may do what."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from served import Served
from signing import SECRET_TEXT, token
from speaker import Speaker, looks
from support.waiting import wait_until

import pulsarx
from pulsarx import errors
from pulsarx.access import AccessSettings
from pulsarx.clock import ManualClock
from pulsarx.server import serve
from pulsarx.wire.server_errors import error_of

pulsar: Any = pytest.importorskip("pulsar")

PATIENCE_MS = 60_000
REFUSED_SECONDS = 2  # how long a client tries that is not let in
Open = Callable[..., Served]


@pytest.fixture
def guarded(open_served: Open) -> Served:
    """Asks for tokens; the superuser is admin, and alice may produce, bob consume."""
    return open_guarded(open_served)


def open_guarded(open_served: Open, clock: ManualClock | None = None, **options: Any) -> Served:
    access = AccessSettings(
        **{"token_secret_key": SECRET_TEXT, "superuser_roles": ["admin"], **options}
    )
    served = open_served(clock, service={"access": access})
    namespaces = served.client.admin.namespaces
    namespaces.grant_permission_on_namespace("public/default", "alice", ["produce"])
    namespaces.grant_permission_on_namespace("public/default", "bob", ["consume"])
    return served


@pytest.fixture
def enter(guarded: Served) -> Iterator[Callable[..., Any]]:
    """Open an official client by a token, of a role unless it is given."""
    made: list[Any] = []

    def make(role: str, **options: Any) -> Any:
        made.append(opened(guarded, pulsar.AuthenticationToken(token(role)), **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def opened(served: Served, authentication: Any, **options: Any) -> Any:
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    return pulsar.Client(served.service.service_url, authentication, logger=quiet, **options)


def let_in(served: Served, authentication: Any) -> None:
    """Fails where it is not."""
    client = opened(served, authentication)
    client.create_producer("t").close()
    client.close()


def is_refused(served: Served, authentication: Any) -> bool:
    client = opened(served, authentication, operation_timeout_seconds=REFUSED_SECONDS)
    try:
        client.create_producer("t").close()
    except (pulsar.Timeout, pulsar.AuthenticationError, pulsar.ConnectError):
        return True
    finally:
        client.close()
    return False


# Who comes in


def test_a_client_with_a_token_publishes_and_receives(enter: Callable[..., Any]) -> None:
    admin = enter("admin")
    consumer = admin.subscribe("t", "s")
    admin.create_producer("t").send(b"x")
    assert consumer.receive(PATIENCE_MS).data() == b"x"


def test_a_token_may_come_from_a_function(guarded: Served) -> None:
    let_in(guarded, pulsar.AuthenticationToken(lambda: token("admin")))


@pytest.mark.standard
@pytest.mark.parametrize(
    "wrong",
    [
        lambda: None,
        lambda: pulsar.AuthenticationToken(token("admin", b"x" * 64)),
        lambda: pulsar.AuthenticationToken(token("admin", exp=1)),
        lambda: pulsar.AuthenticationBasic("admin", "x"),
    ],
)
def test_a_client_that_does_not_prove_who_it_is_stays_outside(
    guarded: Served, wrong: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert is_refused(guarded, wrong())
    wait_until(lambda: "it was not authenticated" in caplog.text)
    assert not guarded.client.admin.topics.get_list("public/default")


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"auth_method_name": "none"},
        {"auth_method_name": "token"},
        {"auth_method_name": "token", "auth_data": b"\xff"},
        {"auth_method_name": "tls"},
        {"auth_method_name": "x" * 5000},
        {"auth_method_name": "token", "auth_data": token("admin", b"x" * 64).encode()},
        {
            "auth_method_name": "token",
            "auth_data": token("admin").encode(),
            "original_principal": "bob",
        },
    ],
)
def test_who_is_refused_is_told_by_pulsars_code_and_hung_up_on(
    guarded: Served, said: dict[str, Any]
) -> None:
    speaker = Speaker(guarded)
    speaker.say("CONNECT", client_version="test", protocol_version=20, **said)
    speaker.say("PRODUCER", topic="t", producer_id=0, request_id=0)
    name, values, _ = speaker.hear()
    assert (name, values["request_id"]) == ("ERROR", (1 << 64) - 1)
    assert isinstance(error_of(values["error"], ""), errors.AuthenticationError)
    assert values["message"] == "Failed to authenticate"
    assert speaker.is_hung_up_on()
    assert not guarded.client.admin.topics.get_list("public/default")


@pytest.mark.standard
def test_names_and_passwords_serve(open_served: Open, tmp_path: Path) -> None:
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    (tmp_path / "users").write_text(f"admin:{hashed}\n")
    served = open_guarded(
        open_served, token_secret_key=None, basic_auth_conf=str(tmp_path / "users")
    )
    let_in(served, pulsar.AuthenticationBasic("admin", "secret"))
    assert is_refused(served, pulsar.AuthenticationBasic("admin", "Secret"))
    assert is_refused(served, pulsar.AuthenticationToken(token("admin")))


def test_a_connection_that_does_not_greet_is_dropped(open_served: Open) -> None:
    clock = ManualClock()
    served = open_guarded(open_served, clock)
    silent, said_half = Speaker(served), Speaker(served)
    said_half.socket.sendall(b"\0\0\1\0\0")
    while len(served.network.connections) < 2:
        pass
    looks(served, 3)
    assert silent.is_hung_up_on()
    assert said_half.is_hung_up_on()


def test_who_proves_himself_may_listen_anywhere() -> None:
    with pulsarx.Client("memory:") as client:
        access = AccessSettings(token_secret_key=SECRET_TEXT)
        with serve(client, host="0.0.0.0", port=0, access=access) as service:
            assert service.port
        with pytest.raises(errors.InvalidConfiguration, match="either"):
            serve(client, port=0, access=access, allow_anonymous=True)


# Proofs that expire


def connected(served: Served, text: str, refreshes: bool = True) -> Speaker:
    speaker = Speaker(served)
    speaker.say(
        "CONNECT",
        client_version="test",
        protocol_version=20,
        auth_method_name="token",
        auth_data=text.encode(),
        feature_flags={"supports_auth_refresh": refreshes},
    )
    assert speaker.hear()[0] == "CONNECTED"
    return speaker


@pytest.fixture
def clocked(open_served: Open) -> Served:
    return open_guarded(open_served, ManualClock())


def expiring(served: Served, seconds: float, role: str = "alice") -> str:
    assert served.clock is not None
    return token(role, exp=served.clock.now_ms() / 1000 + seconds)


def test_who_has_a_new_token_goes_on(clocked: Served) -> None:
    speaker = connected(clocked, expiring(clocked, 20))
    speaker.produce()
    looks(clocked, 1)  # after 15 s
    speaker.say("PING")
    assert speaker.hear()[0] == "PONG"
    looks(clocked, 1)
    name, values, _ = speaker.hear()
    assert (name, values["challenge"]) == (
        "AUTH_CHALLENGE",
        {"method": "token", "data": b"PulsarAuthRefresh"},
    )
    proof = {"method": "token", "data": expiring(clocked, 25).encode()}
    speaker.say("AUTH_RESPONSE", client_version="test", protocol_version=20, response=proof)
    speaker.say("PING")
    assert speaker.hear()[0] == "PONG"
    looks(clocked, 1)
    speaker.say("PING")
    assert speaker.hear()[0] == "PONG"
    looks(clocked, 1)
    assert speaker.hear()[0] == "AUTH_CHALLENGE"


def test_who_has_no_new_token_is_hung_up_on(clocked: Served) -> None:
    speaker = connected(clocked, expiring(clocked, 10))
    looks(clocked, 1)
    assert speaker.hear()[0] == "AUTH_CHALLENGE"
    looks(clocked, 1)
    assert speaker.is_hung_up_on()


def test_who_cannot_be_asked_is_hung_up_on(clocked: Served) -> None:
    speaker = connected(clocked, expiring(clocked, 10), refreshes=False)
    looks(clocked, 1)
    assert speaker.is_hung_up_on()


@pytest.mark.parametrize("answer", ["expired", "another role", "nothing", "another key"])
def test_an_answer_that_proves_nothing_ends_the_connection(clocked: Served, answer: str) -> None:
    speaker = connected(clocked, expiring(clocked, 10))
    looks(clocked, 1)
    assert speaker.hear()[0] == "AUTH_CHALLENGE"
    data = {
        "expired": expiring(clocked, 0),
        "another role": expiring(clocked, 100, "admin"),
        "nothing": "",
        "another key": token("alice", b"x" * 64),
    }[answer]
    response = {"method": "token", "data": data.encode()}
    speaker.say("AUTH_RESPONSE", response=response)
    name, values, _ = speaker.hear()
    assert isinstance(error_of(values["error"], ""), errors.AuthenticationError), name
    assert speaker.is_hung_up_on()


def test_an_answer_that_nobody_asked_for_ends_the_connection(clocked: Served) -> None:
    speaker = connected(clocked, token("alice"))
    response = {"method": "token", "data": token("admin").encode()}
    speaker.say("AUTH_RESPONSE", response=response)
    assert speaker.is_hung_up_on()


def test_the_official_client_refreshes_its_token(open_served: Open) -> None:
    served = open_guarded(open_served, ManualClock())
    texts = [expiring(served, 10, "admin"), expiring(served, 1000, "admin")]
    given = threading.Event()

    def next_text() -> str:
        if len(texts) == 1:
            given.set()
            return texts[0]
        return texts.pop(0)

    client = opened(served, pulsar.AuthenticationToken(next_text))
    producer = client.create_producer("t")
    producer.send(b"before")
    (connection,) = served.network.connections
    while not given.is_set() or connection.session.proof.is_challenged:
        if not connection.session.proof.is_challenged:
            looks(served, 1)
    producer.send(b"after")
    assert list(served.network.connections) == [connection]
    client.close()


# Who may do what


def test_a_role_does_what_it_was_granted_and_nothing_else(enter: Callable[..., Any]) -> None:
    alice, bob = enter("alice"), enter("bob")
    consumer = bob.subscribe("t", "s")
    alice.create_producer("t").send(b"x")
    assert consumer.receive(PATIENCE_MS).data() == b"x"
    with pytest.raises(pulsar.AuthorizationError):
        bob.create_producer("t")
    with pytest.raises(pulsar.AuthorizationError):
        alice.subscribe("t", "s")
    with pytest.raises(pulsar.AuthorizationError):
        alice.create_reader("t", pulsar.MessageId.earliest)
    nobody = enter("nobody")
    for refused in (
        lambda: nobody.create_producer("t"),
        lambda: nobody.subscribe("t", "s"),
        lambda: nobody.get_topic_partitions("t"),
    ):
        with pytest.raises(pulsar.AuthorizationError):
            refused()


def test_a_topic_can_be_granted_alone(guarded: Served, enter: Callable[..., Any]) -> None:
    topics = guarded.client.admin.topics
    topics.create_partitioned_topic("parts", 2)
    topics.create_partitioned_topic("one", 2)
    for each in ("t", "parts", "one-partition-1"):
        topics.grant_permission(each, "carol", ["produce", "consume"])
    carol = enter("carol")
    for each in ("t", "parts", "parts-partition-1", "one-partition-1"):
        carol.create_producer(each).send(b"x")
    for each in ("u", "one-partition-0", "one"):
        with pytest.raises(pulsar.AuthorizationError):
            carol.create_producer(each)


def test_who_administers_the_tenant_uses_all_of_it(
    guarded: Served, enter: Callable[..., Any]
) -> None:
    admin = guarded.client.admin
    admin.tenants.create_tenant("acme", ["carol"])
    admin.namespaces.create_namespace("acme/a")
    carol = enter("carol")
    carol.create_producer("acme/a/t").send(b"x")
    with pytest.raises(pulsar.AuthorizationError):
        carol.create_producer("t")
    admin.tenants.update_tenant("acme", [])
    with pytest.raises(pulsar.AuthorizationError):
        carol.subscribe("acme/a/t", "s")


def requests() -> dict[str, dict[str, Any]]:
    schema = {"name": "x", "data": b"", "type": 1, "properties": []}
    topic = {"topic": "persistent://public/default/t", "request_id": 1}
    return {
        "PRODUCER": {**topic, "producer_id": 0},
        "SUBSCRIBE": {**topic, "subscription": "s", "type": 1, "consumer_id": 0},
        "LOOKUP": topic,
        "PARTITIONED_METADATA": topic,
        "GET_SCHEMA": topic,
        "GET_OR_CREATE_SCHEMA": {**topic, "schema": schema},
        "GET_TOPICS_OF_NAMESPACE": {"namespace": "public/default", "request_id": 1, "mode": 0},
        "WATCH_TOPIC_LIST": {
            "namespace": "public/default",
            "request_id": 1,
            "watcher_id": 1,
            "topics_pattern": ".*",
        },
    }


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("nobody", set()),
        ("admin", set(requests())),
        ("alice", set(requests()) - {"SUBSCRIBE"}),
        ("bob", set(requests()) - {"PRODUCER", "GET_OR_CREATE_SCHEMA"}),
    ],
)
def test_every_request_is_checked(guarded: Served, role: str, allowed: set[str]) -> None:
    guarded.client.admin.topics.create_non_partitioned_topic("t")
    speaker = connected(guarded, token(role))
    for name, said in requests().items():
        speaker.say(name, **said)
        told, values, _ = speaker.hear()
        assert values["request_id"] == 1
        refused = isinstance(error_of(values.get("error") or 0, ""), errors.AuthorizationError)
        assert refused == (name not in allowed), (name, told, values)


def test_a_first_subscription_needs_the_right_to_consume(guarded: Served) -> None:
    speaker = connected(guarded, token("alice"))
    topic = {"topic": "t", "producer_id": 0, "request_id": 1}
    speaker.say("PRODUCER", **topic, initial_subscription="s")
    assert isinstance(error_of(speaker.hear()[1]["error"], ""), errors.AuthorizationError)
    speaker.say("PRODUCER", **topic)
    assert speaker.hear()[0] == "PRODUCER_SUCCESS"


def test_roles_of_a_subscription_alone_use_it(guarded: Served, enter: Callable[..., Any]) -> None:
    namespaces = guarded.client.admin.namespaces
    namespaces.grant_permission_on_namespace("public/default", "dave", ["consume"])
    guarded.client.admin.tenants.update_tenant("public", ["carol"])
    namespaces.grant_permission_on_subscription("public/default", "billing", ["bob", "alice"])
    assert namespaces.get_permission_on_subscription("public/default") == {
        "billing": ["alice", "bob"]
    }
    dave = enter("dave")
    with pytest.raises(pulsar.AuthorizationError):
        dave.subscribe("t", "billing", pulsar.ConsumerType.Shared)
    dave.subscribe("t", "billing too")
    # It gives nobody the right to consume.
    with pytest.raises(pulsar.AuthorizationError):
        enter("alice").subscribe("t", "billing", pulsar.ConsumerType.Shared)
    for role in ("bob", "carol", "admin"):
        enter(role).subscribe("t", "billing", pulsar.ConsumerType.Shared).close()
    namespaces.revoke_permission_on_subscription("public/default", "billing", "bob")
    with pytest.raises(pulsar.AuthorizationError):
        enter("bob").subscribe("t", "billing", pulsar.ConsumerType.Shared)
    namespaces.revoke_permission_on_subscription("public/default", "billing", "alice")
    dave.subscribe("t", "billing", pulsar.ConsumerType.Shared)
    with pytest.raises(errors.SubscriptionNotFound):
        namespaces.revoke_permission_on_subscription("public/default", "billing", "alice")


def test_a_mode_has_roles_use_subscriptions_of_their_prefix(
    guarded: Served, enter: Callable[..., Any]
) -> None:
    namespaces = guarded.client.admin.namespaces
    assert namespaces.get_subscription_auth_mode("public/default") == "None"
    namespaces.set_subscription_auth_mode("public/default", "Prefix")
    assert namespaces.get_subscription_auth_mode("public/default") == "Prefix"
    bob = enter("bob")
    bob.subscribe("t", "bob-s")
    with pytest.raises(pulsar.AuthorizationError):
        bob.subscribe("t", "s")
    with pytest.raises(pulsar.AuthorizationError):
        bob.create_reader("t", pulsar.MessageId.earliest)
    prefixed = {"subscription_role_prefix": "bob"}
    bob.create_reader("t", pulsar.MessageId.earliest, **prefixed).close()
    enter("admin").subscribe("t", "s").close()
    namespaces.set_subscription_auth_mode("public/default", "None")
    bob.subscribe("t", "s")


def test_a_consumer_is_closed_when_its_subscription_becomes_that_of_others(
    guarded: Served,
) -> None:
    namespaces = guarded.client.admin.namespaces
    bob = connected(guarded, token("bob"))
    bob.subscribe()
    namespaces.grant_permission_on_subscription("public/default", "other", ["dave"])
    bob.say("PING")
    assert bob.hear()[0] == "PONG"
    namespaces.grant_permission_on_subscription("public/default", "s", ["dave"])
    assert bob.hear()[0] == "CLOSE_CONSUMER"
    bob.say("SUBSCRIBE", topic="t", subscription="s", type=1, consumer_id=0, request_id=6)
    assert isinstance(error_of(bob.hear()[1]["error"], ""), errors.AuthorizationError)


def test_a_first_subscription_may_be_that_of_others(guarded: Served) -> None:
    namespaces = guarded.client.admin.namespaces
    namespaces.grant_permission_on_namespace("public/default", "dave", ["produce", "consume"])
    namespaces.grant_permission_on_subscription("public/default", "s", ["bob"])
    speaker = connected(guarded, token("dave"))
    topic = {"topic": "t", "producer_id": 0, "request_id": 1}
    speaker.say("PRODUCER", **topic, initial_subscription="s")
    assert isinstance(error_of(speaker.hear()[1]["error"], ""), errors.AuthorizationError)
    speaker.say("PRODUCER", **topic, initial_subscription="u")
    assert speaker.hear()[0] == "PRODUCER_SUCCESS"


def test_permissions_that_make_no_sense_are_refused(guarded: Served) -> None:
    namespaces = guarded.client.admin.namespaces
    for roles in ([], [""], [" "], ["x" * 2000]):
        with pytest.raises(ValueError):
            namespaces.grant_permission_on_subscription("public/default", "s", roles)
    with pytest.raises(ValueError):
        namespaces.grant_permission_on_subscription("public/default", "", ["bob"])
    with pytest.raises(ValueError):
        namespaces.set_subscription_auth_mode("public/default", "Suffix")
    with pytest.raises(errors.TopicNotFound):
        namespaces.get_permission_on_subscription("public/none")
    assert namespaces.get_permission_on_subscription("public/default") == {}


# Who proves nothing


def test_who_proves_nothing_has_the_role_of_anonymous_clients(open_served: Open) -> None:
    served = open_guarded(open_served, anonymous_user_role="guest")
    served.client.admin.topics.grant_permission("open", "guest", ["produce", "consume"])
    anybody = opened(served, None)
    consumer = anybody.subscribe("open", "s")
    anybody.create_producer("open").send(b"x")
    assert consumer.receive(PATIENCE_MS).data() == b"x"
    with pytest.raises(pulsar.AuthorizationError):
        anybody.create_producer("closed")
    anybody.close()
    # Who tries a way that is asked for has to succeed in it; as in Pulsar others prove nothing.
    assert is_refused(served, pulsar.AuthenticationToken(token("guest", b"x" * 64)))
    assert is_refused(served, pulsar.AuthenticationToken(token("guest", exp=1)))
    speaker = Speaker(served)
    said = {"auth_method_name": "basic", "auth_data": b"admin:admin"}
    speaker.say("CONNECT", client_version="test", protocol_version=20, **said)
    assert speaker.hear()[0] == "CONNECTED"
    speaker.say("PRODUCER", topic="closed", producer_id=0, request_id=1)
    assert isinstance(error_of(speaker.hear()[1]["error"], ""), errors.AuthorizationError)
    let_in(served, pulsar.AuthenticationToken(token("admin")))


@pytest.mark.parametrize("role", ["admin", "", " ", "x" * 2000])
def test_a_role_that_anonymous_clients_cannot_have_is_refused(role: str) -> None:
    with pytest.raises(errors.InvalidConfiguration, match="anonymous_user_role"):
        AccessSettings(
            token_secret_key=SECRET_TEXT, superuser_roles=["admin"], anonymous_user_role=role
        )


def test_who_may_not_any_more_is_closed_and_does_not_come_again(
    guarded: Served, enter: Callable[..., Any]
) -> None:
    namespaces = guarded.client.admin.namespaces
    alice = connected(guarded, token("alice"))
    bob = connected(guarded, token("bob"))
    alice.produce()
    bob.subscribe()
    namespaces.revoke_permissions_on_namespace("public/default", "alice")
    assert alice.hear()[0] == "CLOSE_PRODUCER"
    alice.say("PRODUCER", topic="t", producer_id=0, request_id=5, epoch=1)
    assert isinstance(error_of(alice.hear()[1]["error"], ""), errors.AuthorizationError)
    bob.say("PING")
    assert bob.hear()[0] == "PONG"  # he still may
    namespaces.revoke_permissions_on_namespace("public/default", "bob")
    assert bob.hear()[0] == "CLOSE_CONSUMER"
    bob.say("SUBSCRIBE", topic="t", subscription="s", type=1, consumer_id=0, request_id=6)
    assert isinstance(error_of(bob.hear()[1]["error"], ""), errors.AuthorizationError)


def test_who_may_not_look_any_more_hears_of_no_more_topics(guarded: Served) -> None:
    bob = connected(guarded, token("bob"))
    ids = {"namespace": "public/default", "request_id": 1, "watcher_id": 1}
    bob.say("WATCH_TOPIC_LIST", topics_pattern=".*", **ids)
    assert bob.hear()[0] == "WATCH_TOPIC_LIST_SUCCESS"
    guarded.client.admin.topics.create_non_partitioned_topic("first")
    assert bob.hear()[0] == "WATCH_TOPIC_UPDATE"
    guarded.client.admin.namespaces.revoke_permissions_on_namespace("public/default", "bob")
    guarded.client.admin.topics.create_non_partitioned_topic("second")
    bob.say("PING")
    assert bob.hear()[0] == "PONG"


def test_who_may_again_comes_again(guarded: Served, enter: Callable[..., Any]) -> None:
    namespaces = guarded.client.admin.namespaces
    alice, bob = connected(guarded, token("alice")), connected(guarded, token("bob"))
    alice.produce()
    bob.subscribe()
    namespaces.revoke_permissions_on_namespace("public/default", "alice")
    assert alice.hear()[0] == "CLOSE_PRODUCER"
    namespaces.grant_permission_on_namespace("public/default", "alice", ["produce"])
    alice.say("PRODUCER", topic="t", producer_id=0, request_id=5, epoch=1)
    assert alice.hear()[0] == "PRODUCER_SUCCESS"
    namespaces.revoke_permissions_on_namespace("public/default", "bob")
    assert bob.hear()[0] == "CLOSE_CONSUMER"
    namespaces.grant_permission_on_namespace("public/default", "bob", ["consume"])
    bob.say("SUBSCRIBE", topic="t", subscription="s", type=1, consumer_id=0, request_id=6)
    assert bob.hear()[0] == "SUCCESS"


def test_a_producer_that_waits_for_its_turn_loses_it(guarded: Served) -> None:
    first, second = connected(guarded, token("admin")), connected(guarded, token("alice"))
    ids = {"topic": "t", "producer_id": 0, "request_id": 1}
    first.say("PRODUCER", **ids, access_mode=2)
    assert first.hear()[1]["producer_ready"]
    second.say("PRODUCER", **ids, access_mode=2)
    assert not second.hear()[1]["producer_ready"]
    guarded.client.admin.namespaces.revoke_permissions_on_namespace("public/default", "alice")
    assert isinstance(error_of(second.hear()[1]["error"], ""), errors.AuthorizationError)


def test_the_owner_of_the_folder_asks_nobody(guarded: Served) -> None:
    with guarded.client.create_producer("t") as producer:
        producer.send(b"x")


def test_junk_before_connect_is_limited_in_size(guarded: Served) -> None:
    """What a connection may make the service keep before it has proved who it is."""
    with socket.create_connection((guarded.service.host, guarded.service.port), 60) as junk:
        junk.sendall((20_000).to_bytes(4, "big"))
        assert junk.recv(1) == b""
