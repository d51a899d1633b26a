"""Routes of transactions that have to do more than to perform a verb.

Paths of topics have no domain: they are persistent. There are no logs and no snapshots, so what
Pulsar tells of those is not supported.
"""

from __future__ import annotations

from pulsarx.admin.http_forms import ANSWERS
from pulsarx.rest.call import Refusal, whole
from pulsarx.rest.route import Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.rest.call import Call

    Json = dict[str, Any]


def _coordinators(call: Call) -> list[Json]:
    found = call.perform("transactions.list_transaction_coordinators")
    plain, secure = call.broker_urls()
    answer: list[Json] = ANSWERS["Coordinators"].shown(
        [{**each, "broker_service_url": plain or secure} for each in found]
    )
    return answer


def _coordinator_stats(call: Call) -> Json:
    """Answer the statistics of one, or of all by their numbers."""
    found = call.perform("transactions.get_coordinator_stats")
    shown: Json = ANSWERS["CoordinatorStats"].shown(found)
    wanted = call.query.get("coordinatorId")
    if wanted is None:
        return shown
    if str(whole("coordinatorId", wanted)) not in shown:
        raise Refusal(404, f"Transaction coordinator not found! coordinator id : {wanted}")
    one: Json = shown[str(whole("coordinatorId", wanted))]
    return one


def _topic(call: Call) -> str:
    return f"persistent://{call.namespace}/{call.part('topic')}"


def _buffer_stats(call: Call) -> Json:
    found = call.perform("transactions.get_transaction_buffer_stats", topic=_topic(call))
    shown: Json = ANSWERS["TransactionBufferStats"].shown(found)
    return shown


def _pending_ack_stats(call: Call) -> Json:
    found = call.perform(
        "transactions.get_pending_ack_stats", topic=_topic(call), name=call.subscription
    )
    shown: Json = ANSWERS["PendingAckStats"].shown(found)
    return shown


def _in_buffer_stats(call: Call) -> Json:
    found = call.perform(
        "transactions.get_transaction_in_buffer_stats",
        topic=_topic(call),
        most=call.number("most"),
        least=call.number("least"),
    )
    shown: Json = ANSWERS["TransactionInBufferStats"].shown(found)
    return shown


def _scale(call: Call) -> None:
    wanted = call.json_integer()
    raise Refusal(406, f"Number of transaction coordinators: there is 1, and not {wanted}")


OWN: dict[str, Any] = {
    "transactions.list_transaction_coordinators": _coordinators,
    "transactions.get_coordinator_stats": _coordinator_stats,
    "transactions.get_transaction_buffer_stats": _buffer_stats,
    "transactions.get_pending_ack_stats": _pending_ack_stats,
    "transactions.get_transaction_in_buffer_stats": _in_buffer_stats,
}
ROUTES = [
    Route(
        "POST",
        "/admin/v3/transactions/transactionCoordinator/replicas",
        _scale,
        "Change the number of coordinators: refused, there is one.",
        body="integer",
    )
]
