"""The folders that this process uses through their owners: one guest broker each, for all its
clients. A forked child has none of them."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.locks import Event, RLock
from pulsarx.broker import registry
from pulsarx.broker.folder.data_directory import LOCK_NAME
from pulsarx.broker.folder.owner_lock import owner_lock_query
from pulsarx.clock import Deadline
from pulsarx.ground.attempt import attempt
from pulsarx.ground.fork import at_fork
from pulsarx.ground.process_end import at_end, await_end
from pulsarx.processes.guest.broker import GuestBroker
from pulsarx.processes.guest.owner_connection import NoOwner, how_to_go_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.runtime import BrokerSettings

_guests: dict[str, GuestBroker] = {}
# Those whose folder was removed, moved or replaced while it was open. Clients have them.
_left_behind: list[GuestBroker] = []
_lock = RLock()
_PATIENCE_MS = 10_000  # with owners that come and go
_WAIT_FIRST_SECONDS = 0.005
_WAIT_MAX_SECONDS = 0.1


def join(
    key: str, folder: str, settings: BrokerSettings, timeout_seconds: int, may_own: bool
) -> Broker | GuestBroker:
    """Use a folder that another process owns, or own it, where that has left meanwhile. A call of
    the control plane.

    FolderOwnedError: its owner cannot be reached, or shares it with nobody. Timeout: the owner does
    not answer. InvalidConfiguration: it has other settings.
    """
    patience = Deadline(min(_PATIENCE_MS, timeout_seconds * 1000))
    wait_seconds = _WAIT_FIRST_SECONDS
    while True:
        if not _lock.acquire(timeout=timeout_seconds):  # while another client waits for the owner
            owner = owner_lock_query(f"{folder}/{LOCK_NAME}")
            raise errors.Timeout(
                detail=f"open {folder}: its owner does not answer another client of this process, "
                f"which was waited for for {timeout_seconds} s. "
                + ("" if owner is None else how_to_go_on(owner.pid))
            )
        try:
            found = _guests.get(key)
            if found is not None and found.state.is_open and not found.directory.is_there():
                _left_behind.append(_guests.pop(key))
                found = None
            if found is not None and found.state.is_open:
                registry.check_agrees(key, settings, found, is_durable=True)
                found.settings = found.settings.also_asked(settings)
                found.may_own = found.may_own or may_own
                found.wait_as_long_as(timeout_seconds)
                found.reference_count += 1
                return found
            await_end()
            try:
                made = _guests[key] = GuestBroker(folder, key, settings, timeout_seconds, may_own)
                made.reference_count = 1
                return made
            except NoOwner as error:
                reason = str(error)
        finally:
            _lock.release()
        try:
            return registry.acquire(key, folder, settings)
        except errors.FolderOwnedError as error:
            if patience.expired():
                raise errors.FolderOwnedError(
                    detail=f"{errors.detail_of(error)} It cannot be shared: {reason}",
                    folder=error.folder,
                    pid=error.pid,
                ) from error
        Event().wait(wait_seconds)
        wait_seconds = min(2 * wait_seconds, _WAIT_MAX_SECONDS)


def find(key: str) -> GuestBroker | None:
    """The guest of this process for a folder, if there is one."""
    return _guests.get(key)


def release(broker: GuestBroker) -> None:
    """Give a reference back; the last one closes the guest. A call of the control plane."""
    with _lock:
        broker.reference_count -= 1
        if broker.reference_count > 0 or not broker.state.is_open:
            return
        if _guests.get(broker.key) is broker:
            del _guests[broker.key]
        elif broker in _left_behind:
            _left_behind.remove(broker)
    broker.close()


def _close_all() -> None:
    for broker in (*_guests.values(), *_left_behind):
        failure = attempt(broker.close)
        if failure is not None:
            import logging

            logging.getLogger("pulsarx").error(
                "closing %s failed: %s", broker.key, errors.detail_of(failure)
            )
    _guests.clear()
    _left_behind.clear()


def _close_all_at_exit() -> None:
    if _guests or _left_behind:
        control_plane.perform(_close_all)


def _forget_all() -> None:
    global _lock
    _lock = RLock()
    _guests.clear()
    _left_behind.clear()


at_end(_close_all_at_exit)
at_fork(__name__, _forget_all)
