"""Has admin operations performed over Pulsar's admin REST API: of `pulsarx serve`, or of any
Pulsar."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from urllib.parse import quote, quote_plus, urlencode, urljoin, urlsplit

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.file_system import hold_low_descriptors
from pulsarx.admin.http_forms import ANSWERS, BODIES
from pulsarx.admin.http_messages import messages_read
from pulsarx.admin.http_proof import Proof
from pulsarx.admin.http_statistics import statistics_read
from pulsarx.broker.policies.policy_row import TOPIC
from pulsarx.broker.policies.quota_types import quota_name
from pulsarx.broker.policies.table import POLICIES
from pulsarx.broker.verbs.table import VERBS
from pulsarx.message_id import MessageId
from pulsarx.schema.pair_shapes import FLAWS, pair_for_http, pair_of_http
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pulsarx.broker.policies.policy_row import Policy, Rest
    from pulsarx.broker.verbs.http import Http
    from pulsarx.options.authentication import Authentication

    Json = dict[str, Any]

SCHEMES = ("http", "https")
TIMEOUT_SECONDS = 60.0
ANSWER_MAX = 256 << 20  # bytes
_REDIRECTS_MAX = 5  # from broker to broker
_REASON_MAX = 500  # characters
_ENTRIES_MAX = 1000  # that a peek looks at
_QUOTA = quota_name("")  # in front of its type
_TRANSACTIONS = "/admin/v3/transactions/"


class Reply:
    """A value."""

    __slots__ = ("body", "headers")

    def __init__(self, body: bytes, headers: Any) -> None:
        self.body: bytes = body
        self.headers: Any = headers

    def json(self) -> Any:
        """UnknownError: it is none. None: there is nothing."""
        if not self.body.strip():
            return None
        try:
            return json.loads(self.body)
        except ValueError:
            raise errors.UnknownError(
                detail=f"the answer is no JSON: {self.body[:100]!r}"
            ) from None


class Answer:
    """An answer on a connection of its own, to be closed. One thread. ConnectError, Timeout, of all
    methods: nobody answers, or not any more."""

    def __init__(self, what: str, connection: Any, ask: Callable[[], object]) -> None:
        """what: for errors. ask: sends the request."""
        self._what = what
        self._connection = connection
        try:
            with self._told():
                ask()
                self._answer = connection.getresponse()
        except BaseException:
            connection.close()
            raise
        self.status: int = self._answer.status
        self.headers: Any = self._answer.headers

    def read(self, size: int) -> bytes:
        """So many bytes, fewer at the end."""
        with self._told():
            found: bytes = self._answer.read(size)
            return found

    def readline(self, limit: int) -> bytes:
        with self._told():
            found: bytes = self._answer.readline(limit)
            return found

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        import http.client

        try:
            yield
        except TimeoutError as error:
            if errors.raised_by_handler(error):
                raise
            raise errors.Timeout(
                detail=f"{self._what}: no answer in {TIMEOUT_SECONDS:.0f} s"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            if errors.raised_by_handler(error):
                raise
            told = str(error) or type(error).__name__
            raise errors.ConnectError(detail=f"{self._what}: {told}") from None


class HttpChannel:
    """Any thread may call. Each request has a connection of its own."""

    def __init__(
        self,
        url: str,
        authentication: Authentication | None = None,
        tls_trust_certs_file_path: str | None = None,
        **tls: Any,
    ) -> None:
        """tls: as of Proof. InvalidUrl: it is no URL of HTTP. OperationNotSupported: HTTP has no
        such authentication. The rest as Admin.at."""
        self._proof = Proof(authentication, tls_trust_certs_file_path, **tls)
        if "@" in url:
            # Not shown: it may have a password in front of the sign.
            raise errors.InvalidUrl(
                detail="the URL has a name or a password in it: write http://host:port, and give "
                "authentication apart"
            )
        try:
            parts = urlsplit(url)
            is_right = parts.scheme in SCHEMES and parts.hostname and parts.port != 0
        except ValueError as error:
            raise errors.InvalidUrl(detail=f"{url!r}: {error}") from None
        if not is_right:
            raise errors.InvalidUrl(detail=f"{url!r}: write http://host:port")
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise errors.InvalidUrl(
                detail=f"{url!r}: write http://host:port, and nothing behind it"
            )
        self.url: str = f"{parts.scheme}://{parts.netloc}"

    def perform(self, verb: str, arguments: dict[str, Any]) -> Any:
        """OperationNotSupported: Pulsar's API has no such request. ConnectError, Timeout: nobody
        answers. Else as the verb, as far as the answer tells it."""
        return control_plane.perform(self._perform, (verb, arguments))

    def _perform(self, verb: str, arguments: dict[str, Any]) -> Any:
        act = _OWN.get(verb)
        return self.perform_by_row(verb, arguments) if act is None else act(self, **arguments)

    def perform_by_row(self, verb: str, arguments: dict[str, Any]) -> Any:
        """One request, all of which the verb's row says."""
        http = VERBS[verb].http if verb in VERBS else None
        if http is None:
            raise errors.OperationNotSupported(
                detail=f"{verb} of {self.url}: the admin API has no such"
            )
        named = {each: value for each, value in arguments.items() if f"{{{each}}}" in http.path}
        placed = {*named, *http.query, http.argument}
        if unplaced := [each for each in arguments if each not in placed]:
            raise errors.OperationNotSupported(
                detail=f"{verb} of {self.url}: the admin API has no place for "
                f"{', '.join(unplaced)} in this request"
            )
        query = {name: _in_query(arguments[each]) for each, name in http.query.items()}
        body = BODIES[str(http.body)].shown(arguments[http.argument]) if http.argument else None
        reply = self.ask(http.method, _path(http.path, named), body, **query)
        return ANSWERS[http.answer].read(reply.json()) if http.answer else None

    # Requests -------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: object = None, **query: object) -> Reply:
        """path: behind /admin/v2, or all of one that begins with /admin/. query: flags and texts;
        None, False: left out."""
        given = {name: "true" if value is True else value for name, value in query.items() if value}
        place = path if path.startswith("/admin/") else f"/admin/v2{path}"
        return self._ask(method, place + (f"?{urlencode(given)}" if given else ""), body, path)

    def replay_letters(self, topic: str, subscription: str, **more: object) -> Json:
        """Have `pulsarx serve` publish dead letters of a subscription to the topic they came from
        again: {"replayed": {topic: number}, "damage": texts, "more": whether others wait}. more:
        `count`, of this request, and `dlq`.

        OperationNotSupported: another server is there, and the protocol of Pulsar knows no way to
        publish a message with the schema version that it was written with.
        """
        self.require_pulsarx(
            "replay dead letters",
            "; no client could publish them with the schema versions they have",
        )
        body = {"topic": topic, "subscription": subscription, **more}
        answer: Json = self._ask("POST", "/console/replay", body, "replay dead letters").json()
        return answer

    def require_pulsarx(self, what: str, why: str = "") -> None:
        """OperationNotSupported: another server than `pulsarx serve` is there, which cannot do
        what is wanted."""
        try:
            found = self._ask("GET", "/console/overview", None, "ask which server it is").json()
            is_ours = isinstance(found, dict) and "namespaces" in found
        except (errors.AuthenticationError, errors.ConnectError, errors.Timeout):
            raise
        except errors.PulsarException:
            is_ours = False
        if not is_ours:
            raise errors.OperationNotSupported(
                detail=f"{what} at {self.url}: `pulsarx serve` does it, and another server is "
                f"there{why}"
            )

    def _ask(self, method: str, path: str, body: object, what: str) -> Reply:
        """what: for an error without a text."""
        url = f"{self.url}{path}"
        data = None if body is None else json.dumps(body).encode()
        for _ in range(_REDIRECTS_MAX + 1):
            status, headers, found = self._exchange(method, url, data)
            if status not in (301, 302, 307, 308) or not headers.get("Location"):
                break
            url = urljoin(url, headers["Location"])
        if status >= 300:
            raise _error_of(status, found, f"{method} {what}")
        return Reply(found, headers)

    def _exchange(self, method: str, url: str, data: bytes | None) -> tuple[int, Any, bytes]:
        answer = self._send(method, url, data)
        try:
            found = answer.read(ANSWER_MAX + 1)
            if len(found) > ANSWER_MAX:
                raise errors.UnknownError(
                    detail=f"{method} {url}: more than {ANSWER_MAX} bytes came"
                )
            return answer.status, answer.headers, found
        finally:
            answer.close()

    def _send(self, method: str, url: str, data: bytes | None) -> Answer:
        """data: a JSON text."""
        import http.client

        parts = urlsplit(url)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        options: Json = {"timeout": TIMEOUT_SECONDS}
        if parts.scheme == "https":
            options["context"] = self._proof.context()
        place = f"{parts.path}?{parts.query}" if parts.query else parts.path
        headers = {} if data is None else {"Content-Type": "application/json"}
        # Another server, to which this one leads, is not told the secret.
        if f"{parts.scheme}://{parts.netloc}" == self.url:
            headers |= self._proof.headers()
        hold_low_descriptors()
        connection = kind(parts.netloc, **options)
        return Answer(
            f"{method} {self.url}",
            connection,
            lambda: connection.request(method, place, data, headers),
        )

    def stream(self, path: str, what: str) -> Answer:
        """The answer of `pulsarx serve` to a POST, to be read as it comes, and closed. what: is
        asked for. OperationNotSupported: another server is there."""
        self.require_pulsarx(what)
        answer = self._send("POST", f"{self.url}{path}", None)
        try:
            if answer.status == 404:
                raise errors.OperationNotSupported(
                    detail=f"{what} at {self.url}: `pulsarx serve` of this version does it, and an "
                    "earlier one, or `pulsarx console`, is there"
                )
            if answer.status != 200:
                raise _error_of(answer.status, answer.read(ANSWER_MAX), what)
            return answer
        except BaseException:
            answer.close()
            raise

    def json(self, path: str, **query: object) -> Any:
        """The JSON with which a GET is answered."""
        return self.ask("GET", path, **query).json()


_OF_TOPICS = ("Topic ", "Partitioned Topic ")
_KINDS: dict[int, type[errors.PulsarException]] = {
    400: errors.InvalidConfiguration,
    401: errors.AuthenticationError,
    403: errors.AuthorizationError,
    404: errors.TopicNotFound,
    405: errors.OperationNotSupported,
    503: errors.ServiceUnitNotReady,
    504: errors.Timeout,
}


def _error_of(status: int, body: bytes, what: str) -> Exception:
    try:
        reason = json.loads(body)["reason"]
    except (ValueError, LookupError, TypeError):
        reason = ""
    # Of a failure inside, Pulsar sends the stack after the message.
    told = str(reason).replace("\r", "").partition("\n\nStacktrace")[0].strip()
    _, mark, message = told.partition("Message: ")
    told = (message if mark else told).strip()[:_REASON_MAX] or f"{what}: status {status}"
    # A topic may be called so.
    if status == 404 and "ubscription " in told and not told.startswith(_OF_TOPICS):
        return errors.SubscriptionNotFound(detail=told)
    kind = _KINDS.get(status)
    if kind is None:
        kind = errors.NotAllowedError if status < 500 else errors.UnknownError
    return kind(detail=told)


# Names --------------------------------------------------------------------------------------------


def _path(path: str, arguments: Json) -> str:
    """The path of a verb's row."""
    parts = {each: _in_path(each, value) for each, value in arguments.items()}
    if path.startswith("/schemas/"):
        # Partitions have those of their topic; no domain stands in front.
        parts["topic"] = _without_domain(TopicName.of(arguments["topic"]).partitioned_name)
    elif path.startswith(_TRANSACTIONS) and "topic" in parts:
        parts["topic"] = _without_domain(arguments["topic"])
    return path.format_map(parts)


def _path_of(verb: str, **arguments: object) -> str:
    """The path of a verb that Pulsar has."""
    return _path(_row(verb).path, arguments)


def _row(verb: str) -> Http:
    found = VERBS[verb].http
    assert found is not None
    return found


def _in_path(name: str, value: object) -> str:
    text = str(value)
    if name == "topic":
        return _topic_path(text)
    if name == "namespace":
        return _namespace(text)
    # The name of a subscription twice, as Pulsar's own client: a broker decodes it twice.
    return quote(quote_plus(text) if name == "name" else text, safe="")


def _in_query(value: object) -> object:
    """0 is a value."""
    return value if isinstance(value, bool) else str(value)


def _without_domain(topic: str) -> str:
    name = TopicName.of(topic)
    return f"{name.namespace_name}/{quote_plus(name.local_name)}"


def _topic_path(topic: str) -> str:
    name = TopicName.of(topic)
    return f"/{name.domain}/{name.namespace_name}/{quote_plus(name.local_name)}"


def _target_path(level: str, target: str) -> str:
    return _topic_path(target) if level == "topic" else f"/namespaces/{_namespace(target)}"


def _namespace(namespace: str) -> str:
    return "/".join(quote_plus(part) for part in namespace.split("/"))


# Tenants and namespaces ---------------------------------------------------------------------------


def _put_tenant(verb: str) -> Callable[..., None]:
    def put(
        channel: HttpChannel, tenant: str, admin_roles: list[str], allowed_clusters: list[str]
    ) -> None:
        # Pulsar wants some: without a choice, all there are.
        clusters = allowed_clusters or channel.json("/clusters")
        info = {"adminRoles": admin_roles, "allowedClusters": clusters}
        channel.ask(_row(verb).method, _path_of(verb, tenant=tenant), info)

    return put


def _topics_of_namespace(channel: HttpChannel, namespace: str) -> list[str]:
    return sorted(channel.json(f"/namespaces/{_namespace(namespace)}/topics", mode="ALL"))


# Policies -----------------------------------------------------------------------------------------


def _set_policy(level: str) -> Callable[..., None]:
    def put(channel: HttpChannel, policy: Json, **target: str) -> None:
        [(name, value)] = policy.items()
        path, row = _target_path(level, target[level]), POLICIES[name]
        if name.startswith(_QUOTA):
            shown = None if value is None else row.shown(value)
            method, kind = "DELETE" if value is None else "POST", name.removeprefix(_QUOTA)
            channel.ask(method, f"{path}/backlogQuota", shown, backlogQuotaType=kind)
            return
        rest, last = _rest_of(row, level)
        method, place = rest.methods[level], f"{path}/{last}"
        if value is None:
            channel.ask("DELETE", place)
        elif level == TOPIC and rest.query is not None:
            # As text: 0 is a value.
            channel.ask(method, place, **{rest.query: str(value)})
        else:
            channel.ask(method, place, row.shown(value))

    return put


def _get_policy(level: str) -> Callable[..., Any]:
    def get(channel: HttpChannel, name: str, **target: str) -> Any:
        path, row = _target_path(level, target[level]), POLICIES[name]
        if name.startswith(_QUOTA):
            found = channel.json(f"{path}/backlogQuotaMap") or {}
            value = found.get(name.removeprefix(_QUOTA))
        else:
            value = channel.json(f"{path}/{_rest_of(row, level)[1]}")
        return None if value is None or value == [] else row.read(value)

    return get


def _rest_of(row: Policy, level: str) -> tuple[Rest, str]:
    """How a level has a policy, and the last part of its path."""
    last = None if row.rest is None else row.rest.paths[level]
    if row.rest is None or last is None:
        raise errors.OperationNotSupported(
            detail=f"{row.name} of a {level}: the admin API has none"
        )
    return row.rest, last


# Topics -------------------------------------------------------------------------------------------


def _get_list(
    channel: HttpChannel, namespace: str, include_system_topic: bool, domain: str
) -> list[str]:
    found: list[str] = []
    for each in ("persistent", "non-persistent"):
        if domain in ("any", each):
            path = _path_of("topics.get_list", domain=each, namespace=namespace)
            found += channel.json(path, includeSystemTopic=include_system_topic)
    return sorted(set(found))


def _get_partitioned(channel: HttpChannel, namespace: str) -> list[str]:
    found: list[str] = []
    for each in ("persistent", "non-persistent"):
        path = _path_of("topics.get_partitioned_topic_list", domain=each, namespace=namespace)
        found += channel.json(path)
    return sorted(set(found))


def _offload(channel: HttpChannel, topic: str, size_threshold: int) -> None:
    """Offload as pulsar-admin does: the newest ledgers stay that together have no more than
    size_threshold bytes."""
    found = channel.json(f"{_topic_path(topic)}/internalStats")
    ledgers = found["ledgers"]
    if ledgers:  # what is open has no size there
        ledgers[-1]["size"] = found["currentLedgerSize"]
    kept, size = None, 0
    for each in reversed(ledgers):
        size += each["size"]
        if size > size_threshold:
            break
        kept = each["ledgerId"]
    else:
        return  # all of it stays
    last = ledgers[-1]["ledgerId"] if kept is None else kept
    behind = MessageId(-1, last, 0, -1).to_text()
    channel.perform_by_row("topics.offload_before", {"topic": topic, "message_id": behind})


def _stats(channel: HttpChannel, topic: str) -> Json:
    found = channel.json(_path_of("topics.stats", topic=topic), subscriptionBacklogSize=True)
    return statistics_read(str(TopicName.of(topic)), found)


def _partitioned_stats(channel: HttpChannel, topic: str) -> Json:
    path = _path_of("topics.partitioned_stats", topic=topic)
    found = channel.json(path, perPartition=True, subscriptionBacklogSize=True)
    partitions = found.pop("partitions", None) or {}
    return statistics_read(str(TopicName.of(topic)), found) | {
        "partitions": {name: statistics_read(name, each) for name, each in partitions.items()}
    }


# Subscriptions ------------------------------------------------------------------------------------


def _create_subscription(
    channel: HttpChannel, topic: str, name: str, position: Json, properties: Json | None = None
) -> None:
    if "message_id" not in position:
        raise errors.OperationNotSupported(detail="a subscription that begins at a time, over HTTP")
    path = _path_of("topics.create_subscription", topic=topic, name=name)
    body = BODIES["ResetCursorData"].shown(position)
    channel.ask("PUT", path, {**body, "properties": properties} if properties else body)


def _reset_cursor(channel: HttpChannel, topic: str, name: str, position: Json) -> None:
    verb, arguments = "topics.reset_cursor", {"topic": topic, "name": name}
    if "publish_time_ms" in position:
        channel.ask("POST", f"{_path_of(verb, **arguments)}/{position['publish_time_ms']}")
    else:
        channel.perform_by_row(verb, {**arguments, "position": position})


def _peek(channel: HttpChannel, topic: str, name: str, count: int) -> list[Json]:
    found: list[Json] = []
    for number in range(1, min(count, _ENTRIES_MAX) + 1):
        path = _path_of("topics.peek_messages", topic=topic, name=name, position=number)
        try:
            reply = channel.ask("GET", path)
        except errors.TopicNotFound:
            if number == 1:
                # There is no message; or no topic, which this says.
                channel.perform_by_row("topics.get_subscriptions", {"topic": topic})
            break
        found += messages_read(topic, reply.headers, reply.body)
        if len(found) >= count:
            break
    return found[:count]


def _examine(channel: HttpChannel, topic: str, number: int, from_end: bool) -> Json:
    """The number-th message from one end of a topic; of a batch the first message."""
    channel.perform_by_row("topics.get_subscriptions", {"topic": topic})  # the topic is there
    try:
        reply = channel.ask(
            "GET",
            _path_of("topics.examine_message", topic=topic),
            initialPosition="latest" if from_end else "earliest",
            messagePosition=number,
        )
        return messages_read(topic, reply.headers, reply.body)[0]
    except (errors.TopicNotFound, errors.InvalidConfiguration, IndexError):
        raise errors.NotAllowedError(
            detail=f"message {number} of {topic}: there are not so many"
        ) from None


def _message_by_id(channel: HttpChannel, topic: str, message_id: str) -> Json | None:
    """The message; of a batch the one that the id names, or the first."""
    wanted = MessageId.from_text(message_id)
    index = wanted.batch_index()
    topic_path = _path_of("topics.get_subscriptions", topic=topic).rpartition("/")[0]
    path = f"{topic_path}/ledger/{wanted.ledger_id()}/entry/{wanted.entry_id()}"
    channel.perform_by_row("topics.get_subscriptions", {"topic": topic})  # the topic is there
    try:
        # A broker of Pulsar answers the whole batch.
        reply = channel.ask("GET", path, **({"batchIndex": index} if index >= 0 else {}))
    except errors.TopicNotFound:
        return None
    for each in messages_read(topic, reply.headers, reply.body):
        if index in (-1, MessageId.from_text(each["message_id"]).batch_index()):
            return each
    return None


def _delayed(
    channel: HttpChannel, topic: str, name: str, count: int, behind: str = ""
) -> list[Json]:
    path = _path_of("topics.get_delayed_messages", topic=topic, name=name)
    more = {"behind": behind} if behind else {}
    found: list[Json] = channel.ask("GET", path, count=count, **more).json()
    return found


def _cancel(channel: HttpChannel, topic: str, message_id: str, name: str = "") -> list[str]:
    path = _path_of("topics.cancel_message", topic=topic, message_id=message_id)
    if name:
        listed = _path_of("topics.get_delayed_messages", topic=topic, name=name)
        path = f"{listed}/{path.rpartition('/')[2]}"
    found: list[str] = channel.ask("DELETE", path).json()
    return found


# Schemas ------------------------------------------------------------------------------------------


def _payload(schema: Json) -> Json:
    text, properties = schema["schema"], schema.get("properties", {})
    if schema["type"] == "KEY_VALUE":
        with suppress(*FLAWS):  # the server says what is wrong
            text, properties = pair_for_http(text, properties)
    return {"type": schema["type"], "schema": text, "properties": properties}


def _schema_document(topic: str, found: Json) -> Json:
    text, properties = found.get("data") or "", found.get("properties") or {}
    if found["type"] == "KEY_VALUE":
        text = pair_of_http(text, properties)
    return {
        "version": found["version"],
        "type": found["type"],
        "name": TopicName.of(TopicName.of(topic).partitioned_name).local_name,
        "schema": text,
        "properties": properties,
    }


def _create_schema(channel: HttpChannel, topic: str, schema: Json) -> Json:
    found = channel.ask(
        "POST", _path_of("schemas.create_schema", topic=topic), _payload(schema)
    ).json()
    version = (found or {}).get("version", -1)
    return {"version": version.get("version", -1) if isinstance(version, dict) else version}


def _get_schema(channel: HttpChannel, topic: str, version: int) -> Json:
    path = _path_of("schemas.get_schema_info", topic=topic)
    return _schema_document(topic, channel.json(path if version < 0 else f"{path}/{version}"))


def _get_all_schemas(channel: HttpChannel, topic: str) -> list[Json]:
    found = channel.json(_path_of("schemas.get_all_schemas", topic=topic))["getSchemaResponses"]
    return [_schema_document(topic, each) for each in found]


def _test_compatibility(channel: HttpChannel, topic: str, schema: Json) -> Json:
    path = _path_of("schemas.test_compatibility", topic=topic)
    try:
        found = channel.ask("POST", path, _payload(schema)).json()
    except errors.UnknownError as error:
        # Pulsar's broker fails over a schema that is not compatible, and says so in the failure.
        _, mark, told = error.detail.partition(" compatibility check with strategy ")
        if not mark:
            raise
        strategy, _, reason = told.partition(":")
        return {
            "compatibility": False,
            "schema_compatibility_strategy": strategy,
            "reason": reason.strip(),
        }
    return {
        "compatibility": found["compatibility"],
        "schema_compatibility_strategy": found["schemaCompatibilityStrategy"],
        "reason": "",
    }


def _version_of_schema(channel: HttpChannel, topic: str, schema: Json) -> Json:
    path = _path_of("schemas.get_version_by_schema", topic=topic)
    found = channel.ask("POST", path, _payload(schema)).json()
    return {"version": found["version"]}


# What is more than one request by the row of the verb. By the names of the verbs, with their
# arguments.
# Transactions -------------------------------------------------------------------------------------


def _of_transaction(verb: str) -> Callable[..., Any]:
    def ask(channel: HttpChannel, **arguments: object) -> Any:
        try:
            return channel.perform_by_row(verb, arguments)
        except errors.TopicNotFound as error:  # what a status of 404 is else
            raise errors.TransactionNotFound(detail=errors.detail_of(error)) from None

    return ask


_OWN: dict[str, Callable[..., Any]] = {
    **{
        verb: _of_transaction(verb)
        for verb in ("transactions.get_transaction_metadata", "transactions.abort_transaction")
    },
    "tenants.create_tenant": _put_tenant("tenants.create_tenant"),
    "tenants.update_tenant": _put_tenant("tenants.update_tenant"),
    "namespaces.get_topics": _topics_of_namespace,
    "namespaces.set_policy": _set_policy("namespace"),
    "namespaces.get_policy": _get_policy("namespace"),
    "topics.set_policy": _set_policy("topic"),
    "topics.get_policy": _get_policy("topic"),
    "topics.get_list": _get_list,
    "topics.get_partitioned_topic_list": _get_partitioned,
    "topics.offload": _offload,
    "topics.stats": _stats,
    "topics.partitioned_stats": _partitioned_stats,
    "topics.create_subscription": _create_subscription,
    "topics.reset_cursor": _reset_cursor,
    "topics.peek_messages": _peek,
    "topics.examine_message": _examine,
    "topics.get_message_by_id": _message_by_id,
    "topics.get_delayed_messages": _delayed,
    "topics.cancel_message": _cancel,
    "schemas.create_schema": _create_schema,
    "schemas.get_schema_info": _get_schema,
    "schemas.get_all_schemas": _get_all_schemas,
    "schemas.test_compatibility": _test_compatibility,
    "schemas.get_version_by_schema": _version_of_schema,
}
