"""Facts about requests over HTTP where clients are asked who they are."""

from __future__ import annotations

import base64
import http.client
import http.server
import json
import re
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import bcrypt
import pytest
from administered import Administered
from certificates import Authority
from signing import SECRET_TEXT, token

import pulsarx
from pulsarx import errors
from pulsarx.access import AccessSettings, TlsSettings
from pulsarx.access.basic_users import BasicUsers
from pulsarx.access.password_queue import PasswordQueue
from pulsarx.admin import Admin
from pulsarx.broker.verbs import verb as needs
from pulsarx.broker.verbs.http import Http
from pulsarx.broker.verbs.table import VERBS
from pulsarx.broker.verbs.verb import Verb
from pulsarx.rest import application
from pulsarx.rest.application import ROUTES
from pulsarx.rest.http_service import THREADS_MAX
from pulsarx.rest.verb_routes import routes_of
from pulsarx.topic_name import TopicName

TOPICS = "/persistent/public/default"
Open = Callable[..., Administered]


def bearer(role: str, **more: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(role, **more)}"}


@pytest.fixture
def guarded(open_administered: Open) -> Administered:
    """Asks for tokens: the superuser is admin, alice may produce, bob consume, and carol
    administers the tenant."""
    access = AccessSettings(token_secret_key=SECRET_TEXT, superuser_roles=["admin"])
    found = open_administered(access=access, broker_port=6650)
    admin = found.client.admin
    admin.topics.create_non_partitioned_topic("t")
    admin.namespaces.grant_permission_on_namespace("public/default", "alice", ["produce"])
    admin.namespaces.grant_permission_on_namespace("public/default", "bob", ["consume"])
    admin.tenants.update_tenant("public", ["carol"])
    return found


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {token('admin', b'x' * 64)}"},
        bearer("admin", exp=1),
        {"Authorization": token("admin")},
        {"Authorization": f"Token {token('admin')}"},
        {"Authorization": "Basic !"},
        {"Authorization": f"Basic {base64.b64encode(b'admin:admin').decode()}"},
        {"Authorization": "Bearer \xff"},
    ],
)
def test_who_does_not_prove_who_he_is_gets_nothing(
    guarded: Administered, headers: dict[str, str]
) -> None:
    for method, path in (
        ("GET", "/tenants"),
        ("PUT", f"{TOPICS}/new"),
        ("GET", "//metrics"),
        ("GET", "//openapi.json"),
        ("GET", "//lookup/v2/topic/persistent/public/default/t"),
        ("GET", "//nothing"),
        ("DELETE", f"{TOPICS}/t"),
    ):
        reply = guarded.ask(method, path, headers=headers)
        assert (reply.status, reply.body) == (401, {"reason": "Authentication required"})
        assert reply.headers["www-authenticate"] == "Bearer"
    assert guarded.client.admin.topics.get_list() == ["persistent://public/default/t"]


def test_every_route_is_closed_to_strangers(guarded: Administered) -> None:
    """A role that was granted nothing. What is left says nothing of the folder."""
    open_to_all = []
    for route in ROUTES:
        path = route.path
        for name, value in {
            "domain": "persistent",
            "tenant": "public",
            "namespace": "default",
            "topic": "t",
            "cluster": "standalone",
        }.items():
            path = path.replace(f"{{{name}}}", value)
        while "{" in path:
            path = path[: path.index("{")] + "1" + path[path.index("}") + 1 :]
        reply = guarded.ask(route.method, f"/{path}", headers=bearer("nobody"), raw=b"1")
        if reply.status not in (400, 403, 405, 406, 412):
            open_to_all.append(f"{route.method} {route.path}")
    assert open_to_all == [
        "GET /admin/v2/brokers",
        "GET /admin/v2/brokers/ready",
        "GET /admin/v2/brokers/version",
        "GET /admin/v2/brokers/leaderBroker",
        "GET /admin/v2/brokers/{cluster}",
        "GET /status.html",
        "GET /admin/v2/clusters",
        "GET /admin/v2/clusters/{cluster}",
    ]
    assert guarded.client.admin.topics.get_list() == ["persistent://public/default/t"]


def test_who_balances_load_is_not_asked(guarded: Administered) -> None:
    assert guarded.ask("GET", "//status.html").body == "OK"


LOOKUP = "//lookup/v2/topic/persistent/public/default/t"
REQUESTS: dict[tuple[str, str], tuple[object, set[str]]] = {
    ("GET", LOOKUP): (None, {"alice", "bob", "carol"}),
    ("GET", TOPICS): (None, {"alice", "bob", "carol"}),
    ("GET", f"{TOPICS}/t/partitions"): (None, {"alice", "bob", "carol"}),
    ("GET", f"{TOPICS}/t/stats"): (None, {"alice", "bob", "carol"}),
    ("GET", f"{TOPICS}/t/subscriptions"): (None, {"bob", "carol"}),
    ("PUT", f"{TOPICS}/t/subscription/s"): (None, {"bob", "carol"}),
    ("POST", "/schemas/public/default/t/schema"): (
        {"type": "STRING", "schema": "", "properties": {}},
        {"alice", "carol"},
    ),
    ("GET", "/namespaces/public/default/permissions"): (None, {"carol"}),
    ("POST", "/namespaces/public/default/permissions/dave"): (["consume"], {"carol"}),
    ("POST", f"{TOPICS}/t/permissions/dave"): (["produce"], {"carol"}),
    ("POST", "/namespaces/public/default/messageTTL"): (60, {"carol"}),
    ("GET", "/namespaces/public"): (None, {"carol"}),
    ("GET", "/tenants/public"): (None, {"carol"}),
    ("GET", "/tenants"): (None, set()),
    ("PUT", "/tenants/acme"): ({"adminRoles": ["alice"], "allowedClusters": []}, set()),
    ("POST", "/tenants/public"): ({"adminRoles": ["alice"], "allowedClusters": []}, set()),
    ("GET", "/brokers/health"): (None, set()),
    ("DELETE", f"{TOPICS}/t"): (None, {"carol"}),
}


@pytest.mark.parametrize("role", ["alice", "bob", "carol", "admin"])
def test_a_role_does_what_it_may(guarded: Administered, role: str) -> None:
    if role == "admin":
        guarded.client.admin.tenants.update_tenant("public", [])
    for (method, path), (body, allowed) in REQUESTS.items():
        reply = guarded.ask(method, path, body, headers=bearer(role))
        expected = role == "admin" or role in allowed
        assert (reply.status < 300) == expected, (method, path, reply)
        if not expected:
            assert reply.status == 403, (method, path, reply)


def look_at_topic(folder: Any, topic: TopicName) -> str:
    return topic.local_name


def look_at_subscription(folder: Any, topic: TopicName, name: str) -> str:
    return name


def look_at_namespace(folder: Any, namespace: str) -> str:
    return namespace


NEEDS: list[tuple[str, Any, str, set[str]]] = [
    (needs.LOOKUP, look_at_topic, "{topic}/look", {"alice", "bob", "carol"}),
    (needs.PRODUCE, look_at_topic, "{topic}/look", {"alice", "carol"}),
    (needs.CONSUME, look_at_topic, "{topic}/look", {"bob", "carol"}),
    (needs.CONSUME, look_at_subscription, "{topic}/look/{name}", {"carol"}),
    (needs.IN_NAMESPACE, look_at_namespace, "/look/{namespace}", {"alice", "bob", "carol"}),
    (needs.TENANT_ADMIN, look_at_topic, "{topic}/look", {"carol"}),
    (needs.TENANT_ADMIN, look_at_namespace, "/look/{namespace}", {"carol"}),
    (needs.SUPERUSER, look_at_topic, "{topic}/look", set()),
]


@pytest.mark.parametrize(("needed", "function", "path", "allowed"), NEEDS)
def test_the_row_of_a_verb_says_who_may(
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    needed: str,
    function: Any,
    path: str,
    allowed: set[str],
) -> None:
    row = Verb(function, needs=needed, reads=True, http=Http("GET", path, "", answer="names"))
    monkeypatch.setitem(VERBS, "tests.look", row)
    routes = routes_of({"tests.look": row})
    monkeypatch.setattr(application, "ROUTES", [*routes, *ROUTES])
    guarded: Administered = request.getfixturevalue("guarded")
    namespaces = guarded.client.admin.namespaces
    namespaces.grant_permission_on_subscription("public/default", "s", ["nobody"])
    place = f"{TOPICS}/t" if path.startswith("{topic}") else ""
    asked = path.replace("{topic}", place).replace("{namespace}", "public/default")
    for role in ("alice", "bob", "carol", "nobody", "admin"):
        reply = guarded.ask("GET", asked.replace("{name}", "s"), headers=bearer(role))
        expected = role == "admin" or role in allowed
        assert reply.status == (200 if expected else 403), (role, reply)


def test_permissions_are_granted_over_http(guarded: Administered) -> None:
    def ask(method: str, path: str, body: object = None) -> Any:
        reply = guarded.ask(method, path, body, headers=bearer("admin"))
        return reply.status, reply.body

    namespace = "/namespaces/public/default"
    assert ask("GET", f"{namespace}/permissions") == (
        200,
        {"alice": ["produce"], "bob": ["consume"]},
    )
    assert ask("POST", f"{namespace}/permissions/dave", ["consume", "produce"])[0] == 204
    assert ask("POST", f"{TOPICS}/t/permissions/eve%2Bx", ["consume"])[0] == 204
    assert ask("DELETE", f"{namespace}/permissions/bob")[0] == 204
    assert ask("GET", f"{TOPICS}/t/permissions") == (
        200,
        {"alice": ["produce"], "dave": ["consume", "produce"], "eve+x": ["consume"]},
    )
    found = ask("GET", namespace)[1]["auth_policies"]
    assert found["namespace_auth"] == {"alice": ["produce"], "dave": ["consume", "produce"]}
    assert found["destination_auth"] == {"persistent://public/default/t": {"eve+x": ["consume"]}}
    assert ask("DELETE", f"{TOPICS}/t/permissions/eve%2Bx")[0] == 204
    assert ask("DELETE", f"{TOPICS}/t/permissions/eve%2Bx")[0] == 412
    assert ask("POST", f"{namespace}/permissions/x", {"produce": 1})[0] == 400
    assert ask("POST", f"{namespace}/permissions/x", ["fly"])[0] == 412
    assert ask("POST", f"{namespace}/permissions/x", ["functions"])[0] == 405
    assert ask("POST", "/namespaces/public/none/permissions/x", ["produce"])[0] == 404


def test_subscriptions_are_granted_over_http(guarded: Administered) -> None:
    def ask(method: str, path: str, body: object = None, role: str = "carol") -> Any:
        reply = guarded.ask(method, path, body, headers=bearer(role))
        return reply.status, reply.body

    namespace = "/namespaces/public/default"
    granted = f"{namespace}/permissions/subscription"
    ask("POST", f"{namespace}/permissions/dave", ["consume"])
    for name in ("s", "u"):
        assert ask("PUT", f"{TOPICS}/t/subscription/{name}")[0] == 204
    assert ask("GET", granted) == (200, {})
    assert ask("POST", f"{granted}/s", ["bob", "erin"])[0] == 204
    assert ask("POST", f"{granted}/a%2Fb%20c", ["bob"])[0] == 204
    assert ask("GET", granted) == (200, {"a/b c": ["bob"], "s": ["bob", "erin"]})
    found = ask("GET", namespace)[1]["auth_policies"]
    assert found["subscription_auth_roles"] == {"a/b c": ["bob"], "s": ["bob", "erin"]}
    assert found["namespace_auth"]["bob"] == ["consume"]
    for method, of_subscription in (
        ("POST", "skip_all"),
        ("POST", "skip/1"),
        ("POST", "resetcursor/1"),
        ("POST", "expireMessages/1"),
        ("GET", "position/1"),
        ("DELETE", ""),
    ):
        path = f"{TOPICS}/t/subscription/s/{of_subscription}".rstrip("/")
        assert ask(method, path, role="dave")[0] == 403, path
        allowed = ask(method, path.replace("/s/", "/u/"), role="dave")[0]
        assert of_subscription == "" or allowed != 403, path
    assert ask("PUT", f"{TOPICS}/t/subscription/a%252Fb%2520c", role="dave")[0] == 403
    assert ask("POST", f"{TOPICS}/t/subscription/s/skip_all", role="bob")[0] == 204
    assert ask("DELETE", f"{namespace}/permissions/s/erin")[0] == 204
    assert ask("DELETE", f"{namespace}/permissions/s/erin")[0] == 404
    assert ask("DELETE", f"{namespace}/permissions/a%2Fb%20c/bob")[0] == 204
    assert ask("GET", granted) == (200, {"s": ["bob"]})
    assert ask("POST", f"{granted}/s", {"bob": 1})[0] == 400
    assert ask("POST", f"{granted}/s", [])[0] == 412
    assert ask("POST", f"{granted}/s", [1])[0] == 412
    assert ask("POST", "/namespaces/public/none/permissions/subscription/s", ["x"], "admin")[0] == (
        404
    )
    mode = f"{namespace}/subscriptionAuthMode"
    assert ask("GET", mode) == (200, "None")
    assert ask("POST", mode, "Prefix")[0] == 204
    assert ask("GET", mode) == (200, "Prefix")
    assert ask("GET", namespace)[1]["subscription_auth_mode"] == "Prefix"
    assert ask("POST", f"{TOPICS}/t/subscription/u/skip_all", role="bob")[0] == 403
    assert ask("POST", mode, "Suffix")[0] == 412
    assert ask("POST", mode, ["Prefix"])[0] == 400
    assert ask("POST", mode, "None")[0] == 204
    assert ask("GET", granted, role="bob")[0] == 403
    assert ask("POST", mode, "None", role="bob")[0] == 403
    assert ask("POST", f"{granted}/s", ["bob"], role="bob")[0] == 403


def test_who_proves_nothing_is_the_anonymous_role(open_administered: Open) -> None:
    access = AccessSettings(
        token_secret_key=SECRET_TEXT, superuser_roles=["admin"], anonymous_user_role="guest"
    )
    found = open_administered(access=access)
    admin = found.client.admin
    admin.topics.create_non_partitioned_topic("t")
    admin.topics.create_non_partitioned_topic("u")
    admin.topics.grant_permission("t", "guest", ["consume"])
    assert found.ask("GET", f"{TOPICS}/t/stats").status == 200
    assert found.ask("GET", f"{TOPICS}/u/stats").status == 403
    assert found.ask("DELETE", f"{TOPICS}/t").status == 403
    for wrong in (bearer("admin", exp=1), {"Authorization": "Bearer x"}):
        assert found.ask("GET", f"{TOPICS}/t/stats", headers=wrong).status == 401
    assert found.ask("GET", f"{TOPICS}/u/stats", headers=bearer("admin")).status == 200


def test_names_and_passwords_serve(open_administered: Open, tmp_path: Path) -> None:
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    (tmp_path / "users").write_text(f"admin:{hashed}\n")
    access = AccessSettings(basic_auth_conf=str(tmp_path / "users"), superuser_roles=["admin"])
    found = open_administered(access=access)
    for proof, status in ((b"admin:secret", 200), (b"admin:Secret", 401)):
        headers = {"Authorization": f"Basic {base64.b64encode(proof).decode()}"}
        reply = found.ask("GET", "/tenants", headers=headers)
        assert reply.status == status
    assert reply.headers["www-authenticate"] == 'Basic realm="pulsarx"'


def test_who_is_asked_may_come_from_anywhere(open_administered: Open) -> None:
    access = AccessSettings(token_secret_key=SECRET_TEXT)
    assert open_administered(access=access, host="0.0.0.0").service.port


# HTTPS


class Over:
    """A request after the other, over one connection."""

    def __init__(self, administered: Administered, context: ssl.SSLContext) -> None:
        port = administered.service.port
        self._connection = http.client.HTTPSConnection(
            "localhost", port, timeout=60, context=context
        )

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        self._connection.request(method, path, body)
        answer = self._connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None


def test_https_is_spoken_and_a_certificate_is_who_the_client_is(
    open_administered: Open, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    tls = TlsSettings(*authority.sign("server", "localhost"), trust_certs_file=authority.file)
    access = AccessSettings(tls_authentication=True, superuser_roles=["admin"])
    found = open_administered(access=access, tls=tls, broker_port=6650, broker_tls_port=6651)
    assert found.service.url == f"https://127.0.0.1:{found.service.port}"
    anybody = ssl.create_default_context(cafile=authority.file)
    assert Over(found, anybody).ask("GET", "/admin/v2/tenants")[0] == 401
    known = ssl.create_default_context(cafile=authority.file)
    known.load_cert_chain(*authority.sign("admin"))
    client = Over(found, known)
    assert client.ask("GET", "/admin/v2/tenants")[0] == 200
    for _ in range(2):  # over the same connection
        status, answer = client.ask("GET", "/lookup/v2/topic/persistent/public/default/t")
        assert status == 200
        assert answer["brokerUrl"] == "pulsar://localhost:6650"
        assert answer["brokerUrlTls"] == "pulsar+ssl://localhost:6651"
        assert answer["httpUrlTls"] == f"https://localhost:{found.service.port}"
        assert answer["httpUrl"] == ""
    big = b'"' + b"x" * 3_000_000 + b'"'
    assert client.ask("POST", "/admin/v2/namespaces/public/default/messageTTL", big)[0] == 400


def test_the_official_client_looks_up_over_https(open_administered: Open, tmp_path: Path) -> None:
    pulsar: Any = pytest.importorskip("pulsar")
    from pulsarx.server import serve

    authority = Authority(tmp_path)
    shared: dict[str, Any] = {
        "tls": TlsSettings(*authority.sign("server", "localhost")),
        "access": AccessSettings(token_secret_key=SECRET_TEXT, superuser_roles=["admin"]),
        "advertised_address": "localhost",
    }
    found = open_administered(**shared)
    with serve(found.client, port=None, tls_port=0, **shared) as service:
        found.server.broker_tls_port = service.tls_port
        client = pulsar.Client(
            f"https://localhost:{found.service.port}",
            pulsar.AuthenticationToken(token("admin")),
            tls_trust_certs_file_path=authority.file,
            tls_validate_hostname=True,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )
        consumer = client.subscribe("t", "s")
        client.create_producer("t").send(b"x")
        assert consumer.receive(60_000).data() == b"x"
        client.close()


# Our own client


def test_our_own_client_proves_who_it_is(open_administered: Open, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    (tmp_path / "users").write_text(f"admin:{hashed}\n")
    access = AccessSettings(
        token_secret_key=SECRET_TEXT,
        basic_auth_conf=str(tmp_path / "users"),
        tls_authentication=True,
        superuser_roles=["admin"],
    )
    certificate = authority.sign("server", "127.0.0.1")
    tls = TlsSettings(*certificate, trust_certs_file=authority.file)
    url = open_administered(access=access, tls=tls).url
    known: dict[str, Any] = {"tls_trust_certs_file_path": authority.file}
    for proof in (
        pulsarx.AuthenticationToken(token("admin")),
        pulsarx.AuthenticationToken(lambda: token("admin")),
        pulsarx.AuthenticationBasic("admin", "secret"),
        pulsarx.AuthenticationTLS(*authority.sign("admin")),
    ):
        admin = Admin.at(url, authentication=proof, **known)
        admin.namespaces.grant_permission_on_namespace("public/default", "bob", ["consume"])
        admin.topics.grant_permission("t", "a/b c", ["produce", "consume"])
        expected = {"a/b c": ["consume", "produce"], "bob": ["consume"]}
        assert admin.topics.get_permissions("t") == expected
        admin.topics.revoke_permissions("t", "a/b c")
        subscription = ("public/default", "a/b +%c")
        admin.namespaces.grant_permission_on_subscription(*subscription, ["bob/+ %", "dave"])
        admin.namespaces.revoke_permission_on_subscription(*subscription, "dave")
        granted = admin.namespaces.get_permission_on_subscription("public/default")
        assert granted == {"a/b +%c": ["bob/+ %"]}
        admin.namespaces.revoke_permission_on_subscription(*subscription, "bob/+ %")
        for mode in ("Prefix", "None"):
            admin.namespaces.set_subscription_auth_mode("public/default", mode)
            assert admin.namespaces.get_subscription_auth_mode("public/default") == mode
        admin.namespaces.revoke_permissions_on_namespace("public/default", "bob")
        assert admin.namespaces.get_permissions("public/default") == {}
    wrong = Admin.at(url, authentication=pulsarx.AuthenticationBasic("admin", "x"), **known)
    with pytest.raises(errors.AuthenticationError):
        wrong.tenants.get_tenants()
    bob = Admin.at(url, authentication=pulsarx.AuthenticationToken(token("bob")), **known)
    with pytest.raises(errors.AuthorizationError):
        bob.tenants.get_tenants()
    with pytest.raises(errors.ConnectError, match="certificate"):
        Admin.at(url).tenants.get_tenants()


def test_what_a_url_or_a_folder_has_no_use_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidConfiguration, match="has no authentication"):
        Admin.at(str(tmp_path), authentication=pulsarx.AuthenticationToken("x"))
    athenz = pulsarx.AuthenticationAthenz("{}")
    with pytest.raises(errors.OperationNotSupported, match="Athenz"):
        Admin.at("http://localhost:1", authentication=athenz)
    split = Admin.at("http://localhost:1", authentication=pulsarx.AuthenticationToken("a\r\nb"))
    with pytest.raises(errors.AuthenticationError, match="token"):
        split.tenants.get_tenants()


class Leads(http.server.BaseHTTPRequestHandler):
    """Leads elsewhere, and notes what it was told."""

    target = ""
    told: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.told.append(self.headers["Authorization"])
        self.send_response(307 if self.target else 200)
        self.send_header("Location", f"{self.target}{self.path}")
        self.send_header("Content-Length", "0" if self.target else "2")
        self.end_headers()
        self.wfile.write(b"" if self.target else b"[]")

    def log_message(self, *_: object) -> None:
        pass


def test_another_server_is_not_told_the_secret() -> None:
    other = type("Other", (Leads,), {"told": []})
    with (
        http.server.HTTPServer(("127.0.0.1", 0), other) as last,
        http.server.HTTPServer(("127.0.0.1", 0), Leads) as first,
    ):
        Leads.target = f"http://127.0.0.1:{last.server_port}"
        other.target = ""  # type: ignore[attr-defined]
        threads = [threading.Thread(target=each.handle_request) for each in (first, last)]
        for each in threads:
            each.start()
        url = f"http://127.0.0.1:{first.server_port}"
        admin = Admin.at(url, authentication=pulsarx.AuthenticationToken("secret"))
        assert admin.tenants.get_tenants() == []
        for each in threads:
            each.join()
    assert (Leads.told, other.told) == (["Bearer secret"], [None])  # type: ignore[attr-defined]


def test_passwords_that_are_being_checked_hold_up_nobody(
    open_administered: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight requests with a wrong password used to take all threads that answer requests."""
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    (tmp_path / "users").write_text(f"admin:{hashed}\n")
    access = AccessSettings(
        basic_auth_conf=str(tmp_path / "users"),
        token_secret_key=SECRET_TEXT,
        superuser_roles=["admin"],
    )
    found = open_administered(access=access)
    may_go, came = threading.Event(), threading.Semaphore(0)
    identify, verify = PasswordQueue.identify, BasicUsers.verify

    def count(*arguments: Any) -> Any:
        try:
            return identify(*arguments)
        finally:
            came.release()

    def wait(*arguments: Any) -> Any:
        assert may_go.wait(60)
        return verify(*arguments)

    monkeypatch.setattr(PasswordQueue, "identify", count)
    monkeypatch.setattr(BasicUsers, "verify", wait)
    monkeypatch.setattr("pulsarx.access.password_queue.WAITING_OF_HOST_MAX", THREADS_MAX + 1)

    def ask(password: str) -> int:
        proof = base64.b64encode(f"admin:{password}".encode()).decode()
        headers = {"Authorization": f"Basic {proof}"}
        return found.ask("GET", "/tenants", headers=headers).status

    statuses: list[int] = []
    waiting = [
        threading.Thread(target=lambda word=word: statuses.append(ask(str(word))))
        for word in range(THREADS_MAX + 1)
    ]
    for each in waiting:
        each.start()
        assert came.acquire(timeout=60)
    assert found.ask("GET", "/tenants", headers=bearer("admin")).status == 200
    assert ask("one more") == 503
    may_go.set()
    for each in waiting:
        each.join()
    assert statuses == [401] * len(waiting)
    assert ask("secret") == 200


@pytest.mark.parametrize("path", ["/admin/v2/tenants/t", "/admin/v2/%2e%2e/t"])
def test_who_is_refused_while_he_sends_reads_why(guarded: Administered, path: str) -> None:
    """He used to be hung up on, so that many a client told of a broken connection instead."""
    service = guarded.service
    status = 400 if "%" in path else 401
    with socket.create_connection((service.host, service.port), 60) as found:
        for _ in range(2):
            head = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
            found.sendall(head.encode())
            answer = http.client.HTTPResponse(found)
            answer.begin()
            assert answer.status == status
            assert b"reason" in answer.read()
            found.sendall(b"x" * 100_000)


@pytest.mark.parametrize("url", ["http://user:hunter2@localhost:1", "http://:hunter2@localhost:1"])
def test_a_password_in_a_url_is_refused_and_not_shown(url: str) -> None:
    """The error used to repeat it, and where it had no name, it was taken and ignored."""
    with pytest.raises(errors.InvalidUrl) as caught:
        Admin.at(url)
    assert "hunter2" not in errors.detail_of(caught.value)


@pytest.mark.parametrize("restricted", [False, True])
def test_metrics_tell_a_role_of_what_it_may_use_alone(
    open_administered: Open, restricted: bool
) -> None:
    """Where that is asked for; of namespaces with nothing for the role nothing is told, either."""
    access = AccessSettings(
        token_secret_key=SECRET_TEXT, superuser_roles=["admin"], restrict_metrics=restricted
    )
    found = open_administered(access=access)
    admin = found.client.admin
    admin.namespaces.create_namespace("public/secret")
    producers = [
        found.client.create_producer(topic)
        for topic in ("mine", "other", "persistent://public/secret/t")
    ]
    full = "persistent://public/default/mine"
    admin.topics.grant_permission(full, "alice", ["consume"])

    def told(role: str) -> tuple[set[str], set[str], str]:
        text = found.ask("GET", "//metrics", headers=bearer(role)).body
        (count,) = re.findall(r"pulsar_broker_topics_count{[^}]*} ([0-9]+)", text)
        topics = set(re.findall(r'topic="([^"]*)"', text))
        return topics, set(re.findall(r'namespace="([^"]*)"', text)), count

    everything = told("admin")
    assert len(everything[0]) == len(producers) == int(everything[2])
    if restricted:
        assert told("alice") == ({full}, {"public/default"}, "1")
        assert told("nobody") == (set(), set(), "0")
        of_server = found.ask("GET", "//metrics", headers=bearer("alice")).body
        assert "process_open_fds{" not in of_server and "pulsarx_damage_found" in of_server
    else:
        assert told("alice") == told("nobody") == everything
