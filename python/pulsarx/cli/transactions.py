"""`pulsarx transactions`: which are open, what they hold back, and aborting one."""

from __future__ import annotations

from pulsarx.cli.command import command
from pulsarx.cli.declared import Group, UsageError, argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.cli.folder import Folder

_txn_id = argument("txn_id")


transactions: Group = Group("See open transactions, and abort one.")


def _id_of(text: str) -> tuple[int, int]:
    """An id as it is shown, (0,3), or its number alone."""
    parts = text.strip("() ").split(",")
    numbers = [each.strip() for each in parts]
    if len(numbers) > 2 or not all(each.isascii() and each.isdigit() for each in numbers):
        raise UsageError(f"{text!r} is no id of a transaction: write (0,3), or 3")
    most, least = ["0", *numbers][-2:]
    return int(most), int(least)


@command("pulsarx transactions ls", watched=True)
def ls(folder: Folder) -> None:
    """List the open transactions: their age, and how many messages of which topics wait for
    them."""
    found = folder.admin().transactions.get_transactions()
    columns = ("txn_id", "status", "age", "timeout", "owner", "topics", "subscriptions", "held")
    folder.output.rows(columns, [_line(each) for each in found])


def _line(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "txn_id": found["txn_id"],
        "status": found["status"],
        "age": found["age_ms"] // 1000,
        "timeout": found["timeout_at"] // 1000,
        "owner": found.get("owner"),
        "topics": len(found["produced_partitions"]),
        "subscriptions": sum(map(len, found["acked_partitions"].values())),
        "held": sum(found["held_messages"].values()),
    }


@command("pulsarx transactions show 3")
@_txn_id
def show(folder: Folder, txn_id: str) -> None:
    """Show an open transaction: its topics and subscriptions, and what it holds back."""
    wanted = _id_of(txn_id)
    group = folder.admin().transactions
    found = group.get_transaction_metadata(*wanted)
    known = {each["txn_id"]: each for each in group.get_transactions()}
    folder.output.record(known.get(found["txn_id"], found))


@command("pulsarx transactions abort 3")
@_txn_id
def abort(folder: Folder, txn_id: str) -> None:
    """Abort an open transaction: nobody sees what was sent in it."""
    folder.admin().transactions.abort_transaction(*_id_of(txn_id))


for _name, _command in {"ls": ls, "show": show, "abort": abort}.items():
    transactions.add_command(_command, _name)
