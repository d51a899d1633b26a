"""What is refused before anything looks at it: paths, sizes, pages of other sites."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from administered import Administered

import pulsarx

TOPICS = "/persistent/public/default"


RESET = 0  # the server hung up while it was still being sent to, and its answer was lost


def exchange(administered: Administered, request: bytes) -> tuple[int, bytes]:
    """Status and all that comes, of bytes as they are."""
    address = (administered.service.host, administered.service.port)
    found = b""
    with socket.create_connection(address, timeout=60) as connection:
        try:
            connection.sendall(request)
            while b"\r\n\r\n" not in found or not _is_whole(found):
                part = connection.recv(65536)
                if not part:
                    break
                found += part
        except ConnectionError:
            return RESET, b""
    return int(found.split(b" ", 2)[1]), found


def _is_whole(found: bytes) -> bool:
    head, _, body = found.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.partition(b":")[2])
    return False


def get(path: bytes, *headers: bytes, host: bytes = b"localhost") -> bytes:
    lines = [b"GET " + path + b" HTTP/1.1", b"Host: " + host, *headers, b"", b""]
    return b"\r\n".join(lines)


@pytest.mark.parametrize(
    "path",
    [
        b"/admin/v2/../../etc/passwd",
        b"/admin/v2/%2e%2e/tenants",
        b"/admin/v2/persistent/public/default/%2E%2E/stats",
        b"/admin/v2/persistent/public/default/t%00x/stats",
        b"/admin/v2/persistent/public/default/t%0d%0aX-A:%20b/stats",
        b"/admin/v2/persistent/public/default/t%7f",
        b"http://elsewhere/admin/v2/tenants",
    ],
)
def test_paths_that_lead_elsewhere_are_refused(administered: Administered, path: bytes):
    status, found = exchange(administered, get(path))
    assert status == 400
    assert list(json.loads(found.partition(b"\r\n\r\n")[2])) == ["reason"]


@pytest.mark.parametrize("size", [9 << 10, 33 << 10])
def test_long_paths_are_refused(administered: Administered, size: int):
    status, _ = exchange(administered, get(b"/admin/v2/" + b"x" * size))
    assert status in (400, 414, RESET)


@pytest.mark.parametrize(
    "name",
    ["a%2Fb", "%20", "%ff%fe", "x" * 7000 + "%0a"[:0] + "%2F", "a%20", "%C2%85"],
)
def test_names_that_are_none_of_a_topic_are_refused(administered: Administered, name: str):
    reply = administered.ask("PUT", f"{TOPICS}/{name}")
    assert reply.status == 412
    assert reply.body["reason"]
    assert administered.get(TOPICS) == []


@pytest.mark.parametrize("path", ["a%20b/n", "public/a%2Fb", "%3Cscript%3E/x", "public/n%22"])
def test_names_that_are_none_of_a_namespace_are_refused(administered: Administered, path: str):
    assert administered.ask("PUT", f"/namespaces/{path}").status == 412


def test_no_topic_is_made_by_asking_for_one(administered: Administered):
    for last in ("stats", "internalStats", "partitions", "subscriptions", "retention"):
        assert administered.ask("GET", f"{TOPICS}/t/{last}").status == 404
    assert administered.ask("GET", f"{TOPICS}/t/schema").status == 405
    assert administered.get(TOPICS) == []


def test_a_body_that_is_announced_too_large_is_not_read(administered: Administered):
    head = b"POST /admin/v2/namespaces/public/default/messageTTL HTTP/1.1\r\nHost: localhost\r\n"
    status, _ = exchange(administered, head + b"Content-Length: 99999999999\r\n\r\n")
    assert status == 413


@pytest.mark.parametrize(
    "ends",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
    ],
)
def test_a_request_that_says_its_end_twice_is_refused(administered: Administered, ends: bytes):
    """What a proxy takes for a body would be the next request here, or the reverse."""
    head = b"POST /admin/v2/namespaces/public/default/messageTTL HTTP/1.1\r\nHost: localhost\r\n"
    status, _ = exchange(administered, head + ends + b"\r\n1\r\n7\r\n0\r\n\r\n")
    assert status == 400
    assert administered.get("/namespaces/public/default/messageTTL") == ""


def test_asking_for_a_web_socket_fills_no_log(
    administered: Administered, caplog: pytest.LogCaptureFixture
):
    """It is answered as if it had not asked."""
    asks = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13")
    assert exchange(administered, get(b"/admin/v2/tenants", *asks))[0] == 200
    assert not caplog.records


def test_a_body_that_grows_too_large_is_refused(administered: Administered):
    head = b"POST /admin/v2/namespaces/public/default/messageTTL HTTP/1.1\r\nHost: localhost\r\n"
    chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    request = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 5 + b"1\r\n7\r\n0\r\n\r\n"
    status, _ = exchange(administered, request)
    assert status in (413, RESET)
    assert administered.get("/namespaces/public/default/messageTTL") == ""


def test_a_body_that_is_nested_too_deeply_is_refused(administered: Administered):
    body = b"[" * 100_000 + b"]" * 100_000
    path = "/namespaces/public/default/subscriptionTypesEnabled"
    assert administered.ask("POST", path, raw=body).status == 400
    assert administered.get("/tenants") == ["public", "pulsar"]


@pytest.mark.parametrize("body", [b"{nope", b"\xff", b"[1,", b'{"a":NaN'])
def test_a_body_that_is_no_json_is_refused(administered: Administered, body: bytes):
    reply = administered.ask("PUT", "/tenants/t", raw=body)
    assert reply.status == 400
    assert reply.body["reason"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/tenants/t", []),
        ("PUT", "/tenants/t", {"adminRoles": "x"}),
        ("PUT", f"{TOPICS}/p/partitions", 1.5),
        ("PUT", f"{TOPICS}/p/partitions", True),
        ("PUT", f"{TOPICS}/p/partitions", 2**70),
        ("PUT", f"{TOPICS}/p/partitions", {"partitions": "x"}),
        ("POST", "/namespaces/public/default/retention", 7),
        ("POST", "/namespaces/public/default/retention", {"retentionSizeInMB": "x"}),
        ("POST", "/namespaces/public/default/messageTTL", "x"),
        ("POST", "/namespaces/public/default/backlogQuota", {"limitSize": [], "policy": None}),
        ("PUT", "/namespaces/public/n", {"retention_policies": {"retentionSizeInMB": 5}}),
        ("PUT", "/namespaces/public/n", {"replication_clusters": ["elsewhere"]}),
    ],
)
def test_values_of_the_wrong_kind_are_refused(
    administered: Administered, method: str, path: str, body: Any
):
    reply = administered.ask(method, path, body)
    assert 400 <= reply.status < 500
    assert reply.body["reason"]
    assert administered.get("/tenants") == ["public", "pulsar"]
    assert administered.get("/namespaces/public") == ["public/default"]


def test_what_is_not_supported_is_not_ignored(administered: Administered):
    for name in ("persistence", "resourcegroup", "replication", "offloadPolicies"):
        path = f"/namespaces/public/default/{name}"
        assert administered.ask("GET", path).status == 200
        assert administered.ask("POST", path, {}).status == 405
    assert administered.ask("PUT", f"{TOPICS}/t", {"owner": "me"}).status == 405
    assert administered.get(TOPICS) == []


@pytest.mark.parametrize(
    "headers",
    [
        [b"Origin: http://evil.example"],
        [b"Origin: null"],
        [b"Sec-Fetch-Site: cross-site"],
    ],
)
def test_pages_of_other_sites_are_refused(administered: Administered, headers: list[bytes]):
    status, _ = exchange(administered, get(b"/admin/v2/tenants", *headers))
    assert status == 403


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (b"/", [b"Sec-Fetch-Mode: navigate", b"Sec-Fetch-Dest: document"], 200),
        (b"/", [b"Sec-Fetch-Mode: navigate", b"Sec-Fetch-Dest: iframe"], 403),
        (b"/", [b"Sec-Fetch-Mode: no-cors", b"Sec-Fetch-Dest: image"], 403),
        (b"/metrics", [b"Sec-Fetch-Mode: navigate", b"Sec-Fetch-Dest: document"], 403),
        (b"/page/page.js", [b"Sec-Fetch-Mode: no-cors", b"Sec-Fetch-Dest: script"], 403),
    ],
)
def test_links_of_other_sites_lead_to_the_page_alone(
    administered: Administered, path: bytes, headers: list[bytes], status: int
):
    found, _ = exchange(administered, get(path, b"Sec-Fetch-Site: cross-site", *headers))
    assert found == status


def test_a_name_of_others_that_leads_here_is_refused(administered: Administered):
    """A page of that name could read and write all of it (DNS rebinding)."""
    status, _ = exchange(administered, get(b"/admin/v2/tenants", host=b"evil.example:8080"))
    assert status == 403


@pytest.mark.parametrize("host", [b"localhost:8080", b"127.0.0.1", b"[::1]:8080", b"127.9.9.9:1"])
def test_pages_of_this_server_are_heard(administered: Administered, host: bytes):
    own = b"Origin: http://" + host
    status, _ = exchange(administered, get(b"/admin/v2/tenants", own, host=host))
    assert status == 200


def test_a_message_cannot_forge_headers(administered: Administered):
    client = administered.client
    client.create_producer("t").send(
        b"x", {"a\r\nX-Evil: 1": "b\r\n\r\nHTTP/1.1 200 OK"}, "key\r\nX-Evil: 1"
    )
    client.admin.topics.create_subscription("t", "s", pulsarx.MessageId.earliest)
    reply = administered.ask("GET", f"{TOPICS}/t/subscription/s/position/1")
    assert reply.status == 200
    assert "x-evil" not in reply.headers
    assert reply.body == "x"
    assert reply.headers["x-pulsarx-left-out"] == "1"  # the key
    assert json.loads(reply.headers["x-pulsar-property"]) == {
        "a\r\nX-Evil: 1": "b\r\n\r\nHTTP/1.1 200 OK"
    }
