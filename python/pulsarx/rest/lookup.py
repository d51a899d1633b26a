"""Routes by which clients find the broker of a topic, and tools the state of this one."""

from __future__ import annotations

from pulsarx.access.advertised_listeners import no_such_listener
from pulsarx.admin.http_forms import CLUSTER
from pulsarx.rest.call import Answer, Refusal
from pulsarx.rest.namespaces import FIRST_HASH, LAST_HASH
from pulsarx.rest.pulsar_paths import unsupported
from pulsarx.rest.route import Route
from pulsarx.rest.server_figures import pulsarx_version
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.rest.call import Call

_TOPIC = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"
_BROKERS = "/admin/v2/brokers"


def _lookup(call: Call) -> dict[str, Any]:
    TopicName.of(call.topic)
    call.require_lookup()
    # 404: it is not there.
    call.host.perform("namespaces.get_policies", {"namespace": call.namespace})
    plain, secure = _broker_urls(call)
    if plain is None and secure is None:
        raise Refusal(503, "this process does not serve Pulsar's binary protocol")
    has_tls = call.own_url.startswith("https:")
    # All of them: some clients fail where one is missing.
    return {
        "brokerUrl": plain or "",
        "brokerUrlTls": secure or "",
        "brokerUrlSsl": secure or "",
        "httpUrl": "" if has_tls else call.own_url,
        "httpUrlTls": call.own_url if has_tls else "",
        "nativeUrl": plain or "",
    }


def _broker_urls(call: Call) -> tuple[str | None, str | None]:
    wanted = call.query.get("listenerName") or call.listener
    if not wanted:
        return call.broker_urls()
    listener = call.host.advertised_listeners.get(wanted)
    if listener is None:
        raise Refusal(500, no_such_listener(wanted))
    return listener.urls()


def _bundle(call: Call) -> Answer:
    TopicName.of(call.topic)
    call.require_lookup()
    return Answer(f"{FIRST_HASH}_{LAST_HASH}".encode(), "text/plain")


def _brokers(call: Call) -> list[str]:
    return [call.own_url.partition("://")[2]]


def _of_cluster(call: Call) -> list[str]:
    if call.part("cluster") != CLUSTER:
        raise Refusal(404, "Cluster does not exist")
    return _brokers(call)


def _configuration(call: Call) -> dict[str, str]:
    """The configuration that Pulsar's tools look for: the cluster's name, and the settings that are
    Pulsar's too."""
    _require_superuser(call)
    options = call.host.broker.runtime.options
    return {
        "clusterName": CLUSTER,
        "maxMessageSize": str(options.max_message_size),
        "allowAutoTopicCreation": _flag(options.allow_auto_topic_creation),
        "allowAutoTopicCreationType": str(options.allow_auto_topic_creation_type),
        "brokerDeduplicationEnabled": _flag(options.broker_deduplication_enabled),
        "ttlDurationDefaultInSeconds": str(options.ttl_duration_default_in_seconds),
        "authenticationEnabled": _flag(call.host.access is not None),
        "authorizationEnabled": _flag(call.host.access is not None),
        "transactionCoordinatorEnabled": "false",
    }


def _flag(value: object) -> str:
    return "true" if value else "false"


def _dynamic_names(call: Call) -> list[str]:
    _require_superuser(call)
    return []


def _dynamic_values(call: Call) -> dict[str, str]:
    _require_superuser(call)
    return {}


def _require_superuser(call: Call) -> None:
    """Require a superuser, as Pulsar does for all that is about its configuration."""
    if call.host.access is not None:
        call.host.access.require_superuser(call.role or "", "read the configuration of the broker")


def _leader(call: Call) -> dict[str, str]:
    return {"brokerId": _brokers(call)[0], "serviceUrl": call.own_url}


def _health(call: Call) -> Answer:
    call.perform("brokers.healthcheck")
    return Answer(b"ok", "text/plain")


def _ready(_: Call) -> Answer:
    return Answer(b"ok", "text/plain")


def _version(_: Call) -> Answer:
    return Answer(f"PulsarX {pulsarx_version()}".encode(), "text/plain")


def _status(call: Call) -> Answer:
    """OK while the folder is open."""
    call.host.broker.state.require_open()
    return Answer(b"OK", "text/plain")


OWN = {"brokers.healthcheck": _health}
ROUTES = [
    Route(
        "GET", _TOPIC, _lookup, "Get the URLs of the broker of a topic.", query=("listenerName",)
    ),
    Route("GET", f"{_TOPIC}/bundle", _bundle, "Get the bundle of a topic."),
    Route("GET", _BROKERS, _brokers, "Get the active brokers: this one."),
    Route("GET", f"{_BROKERS}/healthcheck", _health, "Publish a message and read it again."),
    Route("GET", f"{_BROKERS}/ready", _ready, "Tell whether the broker can be asked."),
    Route("GET", f"{_BROKERS}/version", _version, "Get the version of the broker."),
    Route("GET", f"{_BROKERS}/leaderBroker", _leader, "Get the leader: this broker."),
    Route(
        "GET",
        f"{_BROKERS}/configuration/runtime",
        _configuration,
        "Get the configuration: the name of the cluster, and what is Pulsar's of it.",
    ),
    Route(
        "GET",
        f"{_BROKERS}/configuration",
        _dynamic_names,
        "Get the names of settings that can be changed: none.",
    ),
    Route(
        "GET",
        f"{_BROKERS}/configuration/values",
        _dynamic_values,
        "Get the settings that were changed: none.",
    ),
    *(
        Route("GET", f"{_BROKERS}/{name}", unsupported, "Not supported.")
        for name in ("internal-configuration", "backlog-quota-check", "shutdown", "log-level")
    ),
    Route("GET", f"{_BROKERS}/{{cluster}}", _of_cluster, "Get the active brokers of a cluster."),
    Route("GET", "/status.html", _status, "OK while the folder is open."),
]
