"""The transactions of clients of a network: opened, found by the ids of their commands, and ended.

A folder has one coordinator, number 0. The id of a transaction is 128 bits: the coordinator, and a
number. Each command is answered by its own response, with the coordinator in it, whatever is
wrong: the client of Java finds by that what it asked, and hangs up where it finds nothing.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.transactions.broker_transaction import COORDINATOR
from pulsarx.broker.transactions.served_transaction import ServedTransaction
from pulsarx.wire import commands
from pulsarx.wire.server_errors import NO_COORDINATOR, NOT_ALLOWED, code_of, message_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.transactions.participants import TransactingRuntime
    from pulsarx.sessions.client_proof import ClientProof
    from pulsarx.sessions.context import SessionContext

    Values = dict[str, Any]

# The topic whose partitions are the coordinators, which clients look up.
COORDINATORS = "persistent://pulsar/system/transaction_coordinator_assign"
COORDINATOR_TOPIC = f"{COORDINATORS}-partition-{COORDINATOR}"


class SessionTransactions:
    """Calls of one session alone."""

    def __init__(self, context: SessionContext, proof: ClientProof) -> None:
        self._runtime = context.broker.runtime
        self._tell = context.tell
        self._proof = proof
        self.handlers: dict[str, Callable[[Values], None]] = {
            "TC_CLIENT_CONNECT_REQUEST": self.connect,
            "NEW_TXN": self.open,
            "ADD_PARTITION_TO_TXN": self._adding("ADD_PARTITION_TO_TXN"),
            "ADD_SUBSCRIPTION_TO_TXN": self._adding("ADD_SUBSCRIPTION_TO_TXN"),
            "END_TXN": self.end,
            "END_TXN_ON_PARTITION": self._refusing("END_TXN_ON_PARTITION"),
            "END_TXN_ON_SUBSCRIPTION": self._refusing("END_TXN_ON_SUBSCRIPTION"),
        }

    # Commands -------------------------------------------------------------------------------------

    def connect(self, values: Values) -> None:
        failure = self._failure(lambda: self._require_coordinator(values["coordinator"]))
        self._tell("TC_CLIENT_CONNECT_RESPONSE", request_id=values["request_id"], **failure)

    def open(self, values: Values) -> None:
        answer = {"most": values["coordinator"]}

        def open_one() -> None:
            self._require_coordinator(values["coordinator"])
            # Pulsar has no least timeout: one of 0 is over at once.
            opened = self._runtime.transactions.open(self._make, max(values["timeout_ms"], 1))
            answer["least"] = opened.number

        failure = self._failure(open_one)
        self._tell("NEW_TXN_RESPONSE", request_id=values["request_id"], **answer, **failure)

    def _make(self, runtime: TransactingRuntime, number: int, timeout_ms: int) -> ServedTransaction:
        return ServedTransaction(runtime, number, timeout_ms, self._proof.role)

    def _adding(self, name: str) -> Callable[[Values], None]:
        """A topic or a subscription is about to be used in a transaction. It joins by the first
        SEND or ACK, so nothing is noted."""

        def add(values: Values) -> None:
            self._answer(name, values, lambda: self._find_open(values["most"], values["least"]))

        return add

    def end(self, values: Values) -> None:
        self._answer("END_TXN", values, lambda: self._end(values))

    def _end(self, values: Values) -> None:
        action = values["action"]
        if action not in (commands.COMMIT, commands.ABORT):
            raise errors.NotAllowedError(detail=f"END_TXN: action {action}; 0 commits, 1 aborts")
        committed = action == commands.COMMIT
        found = self._find(values["most"], values["least"])
        if found is None:
            self._answer_again(values, committed)
            return
        if found.asked not in (None, committed):
            raise errors.InvalidTxnStatusError(
                detail=f"{_verb(committed)} transaction {found}: to {_verb(not committed)} it has "
                "failed, and may be done all the same; ask for that again"
            )
        end = self._runtime.transactions.commit if committed else self._runtime.transactions.abort
        end(found)

    def _answer_again(self, values: Values, committed: bool) -> None:
        """It is not open. A client asks once more where it has lost the answer, and gets the first
        one."""
        number = values["least"]
        coordinator, role = self._runtime.transactions, self._proof.role
        known = coordinator.was_committed(number)
        if role is not None and not self._proof.is_superuser and (
            not coordinator.was_opened_by(number, role)
        ):  # fmt: skip
            known = None  # as one that is open is not there for others
        if known is None:
            raise _not_found(values["most"], number)
        if known != committed:
            raise errors.InvalidTxnStatusError(
                detail=f"{_verb(committed)} transaction ({COORDINATOR},{number}): it has ended"
                f"{self._runtime.transactions.how_it_ended(number)}"
            )

    def _refusing(self, name: str) -> Callable[[Values], None]:
        def refuse() -> None:
            raise errors.NotAllowedError(detail=f"{name}: it is for brokers of a cluster")

        return lambda values: self._answer(name, values, refuse)

    # Whose a command is ---------------------------------------------------------------------------

    def of(self, values: Values) -> ServedTransaction | None:
        """The transaction of a SEND or ACK, None: it is of none. NotAllowedError,
        TransactionNotFound, InvalidTxnStatusError: nothing may join that one."""
        most, least = values["transaction_most"], values["transaction_least"]
        return None if most is None or least is None else self._find_open(most, least)

    def _find_open(self, most: int | None, least: int | None) -> ServedTransaction:
        self._require_on()
        found = self._find(most, least)
        if found is None:
            raise _not_found(most, least)
        if not found.is_open:
            raise errors.InvalidTxnStatusError(detail=f"transaction {found} is about to end")
        return found

    def _find(self, most: int | None, least: int | None) -> ServedTransaction | None:
        """One that has not ended. Those of others are not there, as are those that were not opened
        over a network."""
        if most != COORDINATOR or least is None:
            raise _not_found(most, least)
        found = self._runtime.transactions.find(least)
        if not isinstance(found, ServedTransaction):
            return None
        if found.role != self._proof.role and not self._proof.is_superuser:
            raise _not_found(most, least)
        return found

    def _require_on(self) -> None:
        if not self._runtime.options.transaction_coordinator_enabled:
            raise errors.NotAllowedError(
                detail="transactions are switched off by the broker option "
                "transaction_coordinator_enabled"
            )

    def _require_coordinator(self, number: int) -> None:
        self._require_on()
        if number != COORDINATOR:
            raise errors.TransactionCoordinatorNotFoundError(
                detail=f"coordinator {number} of transactions; there is {COORDINATOR} alone"
            )

    # Answers --------------------------------------------------------------------------------------

    def _answer(self, name: str, values: Values, act: Callable[[], object]) -> None:
        def do() -> None:
            self._require_on()
            act()

        ids = {each: values[each] for each in ("least", "most")}
        failure = self._failure(do)
        self._tell(f"{name}_RESPONSE", request_id=values["request_id"], **ids, **failure)

    def _failure(self, act: Callable[[], object]) -> Values:
        """Return what an answer says of a failure. Without a text the client of Go takes it for a
        success; each of ours has one."""
        try:
            act()
        except ValueError as error:
            return {"error": NOT_ALLOWED, "message": str(error)}
        except errors.AlreadyClosed as error:
            # The broker is about to go: that of Java looks for the coordinator, and asks again.
            return {"error": NO_COORDINATOR, "message": message_of(error)}
        except Exception as error:
            return {"error": code_of(error), "message": message_of(error) or type(error).__name__}
        return {}


def _verb(committed: bool) -> str:
    return "commit" if committed else "abort"


def _not_found(most: int | None, least: int | None) -> errors.TransactionNotFound:
    return errors.TransactionNotFound(
        detail=f"transaction ({most},{least}): it was never opened, ended long ago or with its "
        "broker, or is another role's"
    )
