"""Requests that were sent to Apache Pulsar 4.2.4, with the statuses and shapes of its answers: ours
are the same, but for what stands here with its reason.

`pulsar_answers.json` has a line for each, in their order; "publish" and "close" stand for what a
client did between them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from administered import Administered

import pulsarx

GOLDEN = json.loads((Path(__file__).parent / "pulsar_answers.json").read_text())
P = "/admin/v2/persistent/public/default"
SCHEMAS = "/admin/v2/schemas/public/default"
NOT_MADE = "Pulsar makes the topic or subscription that a request names; here it is not found"
NOT_A_NUMBER = "Pulsar fails inside, or finds no path, where a number is malformed"
# (method, path): our status, and why it is another.
OTHER = {
    ("PUT", "/admin/v2/tenants/bad1"): (204, "a tenant without clusters has the one there is"),
    ("GET", "/admin/v2/namespaces/acme/n1/topics?mode=XX"): (412, "a wrong mode is told as such"),
    ("GET", f"{P}/t1/internal-info"): (405, "there is no metadata of a managed ledger"),
    ("PUT", f"{P}/none/subscription/s2"): (404, NOT_MADE),
    ("GET", f"{P}/t1/subscription/s2/position/0"): (412, NOT_A_NUMBER),
    ("GET", f"{P}/t1/subscription/none/position/1"): (404, NOT_MADE),
    ("POST", f"{P}/t1/subscription/none/skip/1"): (404, NOT_MADE),
    ("POST", f"{P}/t1/subscription/s1/skip/x"): (412, NOT_A_NUMBER),
    ("POST", f"{P}/t1/subscription/none/skip_all"): (404, NOT_MADE),
    ("POST", f"{P}/t1/all_subscription/expireMessages/1000"): (204, "nothing to expire is done"),
    ("POST", f"{P}/t1/subscription/none/expireMessages/1000"): (404, NOT_MADE),
    ("POST", f"{P}/t1/subscription/none/resetcursor/0"): (404, NOT_MADE),
    ("POST", f"{P}/t1/subscription/s2/resetcursor"): (400, "Pulsar fails inside without a body"),
    ("GET", f"{P}/t1/subscription/none/properties"): (404, NOT_MADE),
    ("DELETE", f"{P}/t1/subscription/none"): (404, NOT_MADE),
    ("PUT", f"{P}/none/compaction"): (404, NOT_MADE),
    ("GET", f"{SCHEMAS}/none/schemas"): (404, "there is no such topic"),
    ("POST", f"{SCHEMAS}/sc1/schema"): (422, "Pulsar fails inside where there is no such type"),
    ("GET", f"{SCHEMAS}/sc1/schema/x"): (412, NOT_A_NUMBER),
    ("POST", f"{SCHEMAS}/sc1/compatibility"): (202, "Pulsar fails inside; here it says: false"),
    ("GET", f"{SCHEMAS}/sc1/metadata"): (405, "a schema is in no ledger"),
    ("DELETE", f"{SCHEMAS}/none/schema"): (404, "there is no such topic"),
    ("GET", f"{P}/t1/publishRate"): (200, "as every other policy that is not set"),
    ("PUT", "/admin/v2/namespaces/public/default/schemaCompatibilityStrategy"): (
        412,
        "Pulsar ignores a strategy that it does not know",
    ),
    ("POST", f"{P}/none/messageTTL"): (404, NOT_MADE),
    ("GET", f"{P}/none/messageTTL"): (404, NOT_MADE),
    ("GET", "/admin/v2/namespaces/public/default/schemaAutoUpdateCompatibilityStrategy"): (
        405,
        "it is Pulsar's name of before 2.5",
    ),
    ("GET", "/status.html"): (200, "Pulsar standalone has none, its brokers have"),
    ("PUT", f"{P}/none/unload"): (404, NOT_MADE),
    ("POST", f"{P}/none/terminate"): (404, NOT_MADE),
    ("DELETE", f"{P}/none/truncate"): (404, NOT_MADE),
    ("DELETE", f"{P}/none/partitions"): (404, NOT_MADE),
    ("POST", "/admin/v2/namespaces/public/default/clearBacklog/s4"): (
        204,
        "topics without the subscription have no backlog of it",
    ),
    ("POST", f"{P}/t1/subscription/s2/expireMessages/0"): (
        409,
        "Pulsar takes it where nobody consumes, and expires nothing",
    ),
    ("GET", f"{P}/t1/nothing"): (405, "it may be a path of another version of Pulsar"),
}
# Set by a parameter of the query in Pulsar, and by a body here too.
SET_BY_BODY = {f"{P}/t1/messageTTL", f"{P}/t1/subscriptionExpirationTime"}
MORE = {
    ".brokerUrlTls",  # some clients fail without them
    ".httpUrlTls",
    ".subscriptions.*.backlogMessages",  # beside entries, which Pulsar counts
    ".heldByLeasesLedgers",  # Pulsar has no leases
    ".heldByLeasesSize",
    ".partitions.*.heldByLeasesLedgers",
    ".partitions.*.heldByLeasesSize",
    ".topicEpoch",  # Pulsar leaves out what is null
    ".partitions.*.topicEpoch",
    ".deduplicationStatus",  # of a partitioned topic
    ".subscriptions.*.activeConsumerName",
    ".publishers[].msgDropRate",
    ".subscriptions.*.msgDropRate",
}


# Fields of statistics that PulsarX does not know, or that are in lists that are empty here.
UNKNOWN = set(GOLDEN["unknown"])


def of_shape(found: Any) -> list[str]:
    if found == "":
        return ["nothing"]
    kinds = {dict: "object", list: "array", bool: "boolean", int: "number", str: "text"}
    return [kinds[type(found)], *sorted(paths(found))]


def paths(found: Any, above: str = "") -> set[str]:
    """The names in a document; those that are names of topics or subscriptions as *."""
    names: set[str] = set()
    if isinstance(found, list):
        return names.union(*(paths(each, f"{above}[]") for each in found))
    for name, value in found.items() if isinstance(found, dict) else ():
        is_free = "://" in name or above.endswith(("subscriptions", "cursors"))
        place = f"{above}.{'*' if is_free else name}"
        names |= {place} | paths(value, place)
    return names


class Between:
    """What a client does between the requests."""

    def __init__(self, client: pulsarx.Client) -> None:
        self.client = client
        self.made: list[Any] = []

    def publish(self) -> None:
        producer = self.client.create_producer("t1", batching_enabled=False)
        for number in range(5):
            producer.send(b"m%d" % number, {"k": "v"}, "key", event_timestamp=1_700_000_000_123)
        shared = pulsarx.ConsumerType.Shared
        consumer = self.client.subscribe(
            "t1", "s4", shared, initial_position=pulsarx.InitialPosition.Earliest
        )
        first, *_ = [consumer.receive(60_000) for _ in range(3)]
        consumer.acknowledge(first)
        volatile = "non-persistent://public/default/np1"
        self.made += [producer, consumer, self.client.subscribe(volatile, "ns")]
        self.made += [self.client.subscribe("b1", "sb"), self.client.create_producer(volatile)]
        batches = self.client.create_producer("b1", batching_enabled=True)
        for number in range(3):
            batches.send_async(b"b%d" % number, None)
        batches.flush()
        self.made.append(batches)
        self.made[-2].send(b"x")

    def close(self) -> None:
        for each in self.made:
            each.close()


def test_answers_are_those_of_pulsar(open_administered: Any):
    administered: Administered = open_administered(broker_port=6650)
    between = Between(administered.client)
    wrong: list[str] = []
    missing: set[str] = set()
    for row in GOLDEN["answers"]:
        if len(row) == 1:
            getattr(between, row[0])()
            continue
        method, path, body, status, shape = row
        reply = administered.ask(method, f"/{path}", body)
        what = f"{method} {path} {'' if body is None else json.dumps(body)}: {reply.status}"
        other = OTHER.get((method, path))
        if reply.status != status and (other is None or reply.status != other[0]):
            wrong.append(f"{what}, and not {status}: {reply.body}")
        elif reply.status >= 400:
            if list(reply.body) != ["reason"] or not reply.body["reason"]:
                wrong.append(f"{what}: {reply.body} has no reason")
        elif reply.status == status == 200 and path not in SET_BY_BODY:
            theirs, ours = GOLDEN["shapes"][shape], of_shape(reply.body)
            if ours[0] != theirs[0] and other is None:
                wrong.append(f"{what}: {ours[0]} and not {theirs[0]}")
            less = {each.rpartition(".")[2] for each in set(theirs[1:]) - set(ours[1:])}
            missing.update(less - UNKNOWN)
            if more := set(ours[1:]) - set(theirs[1:]) - MORE:
                wrong.append(f"{what}: Pulsar does not tell {sorted(more)}")
    assert not wrong, "\n".join(wrong)
    assert not missing, " ".join(sorted(missing))


def test_each_difference_is_one_of_a_request():
    asked = {(row[0], row[1]) for row in GOLDEN["answers"] if len(row) > 1}
    assert not OTHER.keys() - asked
