"""The steps of a fork, in their order: the one list of them all. A module whose state a child must
not use as it is names its steps here when it is loaded, by `at_fork`.

A step takes no lock that another thread of the parent may have had: a module makes its locks anew
first. One that fails is reported as Python reports what a hook raises; the others are taken.
"""

from __future__ import annotations

from posix import register_at_fork

from pulsarx.errors.base import note_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol

    class Members(Protocol):
        """The living objects of a kind; each has abandon()."""

        def members(self) -> Iterable[Any]: ...


# In front of the fork, in this order.
BEFORE = (
    "client",  # loads what a child needs
    "spark.lease_keeper",
)
# In the child, in this order. A module that is not loaded has no step.
IN_CHILD = (
    # Which process and thread this is; what of the parent's threads is not here.
    "errors.base",
    "_pycore.ground.signals",
    "_pycore.ground.control_plane",
    "_pycore.ground.collector_paused",
    "_pycore.ground.loop_queue",
    # Locks of folders and listeners, which would keep alive what the parent had when that has
    # ended. The control socket and the connections of guests are closed with the brokers, below.
    "broker.folder.data_directory",
    "processes.guest.owner_connection",
    "processes.owner.service",
    "server.network_service",
    "rest.http_service",
    "_pycore.ledger.ledger_writer",
    # Locks and timers.
    "clock",
    "broker.offload.stored_object",
    "broker.offload.fetched_ledgers",
    "broker.scan.lease_renewal",
    "spark.lease_keeper",
    # Brokers, what stands on them, and clients.
    "broker.registry",
    "broker.read_only_broker",
    "processes.guest.folders",
    "processes.guest.attached_consumer",
    "producing.partitioned_producer",
    "client",
)

_before: dict[str, Callable[[], object]] = {}
_renew: dict[str, Callable[[], object]] = {}
_abandon: dict[str, Members] = {}


def at_fork(
    module: str,
    renew: Callable[[], object] | None = None,
    *,
    abandon: Members | None = None,
    before: Callable[[], object] | None = None,
) -> None:
    """Have the steps of a module taken with each fork. before: in front of it. In the child first
    renew, which makes locks anew and forgets what is the parent's, then abandon() of each of the
    members. LookupError: the module is not in the lists above."""
    place = module.removeprefix("pulsarx.")
    if place not in IN_CHILD or (before is not None and place not in BEFORE):
        raise LookupError(f"{place} has no place among the steps of a fork: name it in {__name__}")
    if before is not None:
        _before[place] = before
    if renew is not None:
        _renew[place] = renew
    if abandon is not None:
        _abandon[place] = abandon


def _hook_before(place: str) -> Callable[[], None]:
    def take() -> None:
        step = _before.get(place)
        if step is not None:
            step()

    return take


def _hook_in_child(place: str) -> Callable[[], None]:
    def take() -> None:
        failure = None
        step = _renew.get(place)
        if step is not None:
            try:
                step()
            except BaseException as error:
                failure = error
        alive = _abandon.get(place)
        for member in () if alive is None else alive.members():
            try:
                member.abandon()
            except BaseException as error:  # the others are the parent's as well
                failure = failure or error
        if failure is not None:
            raise failure

    return take


for _place in reversed(BEFORE):  # Python calls these from the last to the first
    register_at_fork(before=_hook_before(_place))
for _place in IN_CHILD:  # one hook each, so that a failure of one is none of the others
    register_at_fork(after_in_child=_hook_in_child(_place))

note_process()  # a child that loads the library now was not forked with anything of it
at_fork("pulsarx.errors.base", note_process)
