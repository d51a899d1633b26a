"""Routes of admin operations, made of what their declarations say of HTTP. Those that have to do
more than to perform the verb have functions of their own, beside their neighbours."""

from __future__ import annotations

from functools import partial

from pulsarx.admin.http_forms import ANSWERS
from pulsarx.broker.verbs.table import VERBS
from pulsarx.rest.call import read_form, whole
from pulsarx.rest.lookup import OWN as LOOKUP
from pulsarx.rest.namespaces import OWN as NAMESPACES
from pulsarx.rest.policies import TOPIC
from pulsarx.rest.route import Route
from pulsarx.rest.schemas import OWN as SCHEMAS
from pulsarx.rest.subscriptions import OWN as SUBSCRIPTIONS
from pulsarx.rest.tenants import OWN as TENANTS
from pulsarx.rest.topics import OWN as TOPICS
from pulsarx.rest.transactions import OWN as TRANSACTIONS
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pulsarx.broker.verbs.http import Http
    from pulsarx.broker.verbs.verb import Verb
    from pulsarx.rest.call import Call

_NAMESPACE = "{tenant}/{namespace}"
# What paths call arguments, where that is not their name.
_PARTS = {"name": "subscription", "publish_time_ms": "timestamp"}
_OWN: dict[str, Callable[[Call], Any]] = {
    **LOOKUP,
    **TENANTS,
    **NAMESPACES,
    **SCHEMAS,
    **SUBSCRIPTIONS,
    **TOPICS,
    **TRANSACTIONS,
}


def routes_of(verbs: Mapping[str, Verb]) -> list[Route]:
    """The routes of these verbs, as far as Pulsar has them."""
    return [
        Route(
            http.method,
            _path(http),
            _OWN.get(name) or partial(_perform, name, verb, http),
            http.summary,
            query=(*http.query.values(), *http.more),
            body=http.body,
            refused=http.refused,
            missing=http.missing,
            invalid=http.invalid,
        )
        for name, verb in verbs.items()
        if (http := verb.http) is not None
    ]


def _path(http: Http) -> str:
    path = http.path.replace("{namespace}", _NAMESPACE).replace(
        "/schemas/", f"/schemas/{_NAMESPACE}/"
    )
    for name, part in _PARTS.items():
        path = path.replace(f"{{{name}}}", f"{{{part}}}")
    if path.startswith("/admin/"):
        return path.replace("{topic}", f"{_NAMESPACE}/{{topic}}")
    return path.replace("{topic}", TOPIC) if path.startswith("{topic}") else f"/admin/v2{path}"


def _perform(name: str, verb: Verb, http: Http, call: Call) -> Any:
    given = {
        each: _argument(http, each, kind, call)
        for each, kind in verb.kinds.items()
        if each not in verb.optional
    }
    found = call.perform(name, **given)
    return ANSWERS[http.answer].shown(found) if http.answer else None


def _argument(http: Http, name: str, kind: type, call: Call) -> Any:
    if name == http.argument:
        return read_form(str(http.body), call.json())
    query = http.query.get(name)
    if query is not None:
        text = call.query.get(query, "")
        return call.flag(query) if kind is bool else whole(query, text) if kind is int else text
    if kind is TopicName:
        return call.topic
    if name == "namespace":
        return call.namespace
    if name == "name":
        return call.subscription
    part = _PARTS.get(name, name)
    return call.number(part) if kind is int else call.part(part)


ROUTES = routes_of(VERBS)
