"""The folders and memory brokers open in this process: one broker each, for all its clients.

The first client opens the broker and the last one closes it. A forked child has none of them.
"""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.locks import RLock
from pulsarx.broker.broker import Broker
from pulsarx.ground.attempt import attempt
from pulsarx.ground.fork import at_fork
from pulsarx.ground.process_end import at_end, await_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.control.control_socket import ControlSocket
    from pulsarx.broker.runtime import BrokerSettings

_registry: dict[str, Broker] = {}
# Those whose folder was removed, moved or replaced while it was open. Clients have them.
_left_behind: list[tuple[str, Broker]] = []
_sockets: dict[Broker, ControlSocket] = {}
_lock = RLock()
_EXIT_WAIT_SECONDS = 30.0
_CHAIN_MAX = 10  # jobs that follow one another; a broker that is used may never be idle


def acquire(key: str, location: str | None, settings: BrokerSettings) -> Broker:
    """The broker of a folder (key: its real path) or of a memory name; opened by the first client.
    Those that follow have its settings, and agree where they ask for one. A call of the control
    plane."""
    closing = _registry.get(key)
    if closing is not None:
        # For what was forgotten and is being closed there: a job may bring another, as the last
        # producer brings its client.
        for _ in range(_CHAIN_MAX):
            closing.runtime.background.wait()
            if closing.runtime.background.idle or closing.runtime.background.runs_here():
                break
    with _lock:
        found = _there(key)
        if found is None:
            found = _registry[key] = _opened(location, settings)
        else:
            check_agrees(key, settings, found, is_durable=location is not None)
        found.reference_count += 1
        return found


def _there(key: str) -> Broker | None:
    """The broker of what the path leads to now, under the lock. One of a folder that is not there
    any more is known to the clients it has, and to nobody else from now on."""
    found = _registry.get(key)
    if found is None or not found.state.is_open or found.directory.is_there():
        return found
    _left_behind.append((key, _registry.pop(key)))
    return None


def check_agrees(key: str, settings: BrokerSettings, found: Any, is_durable: bool) -> None:
    """InvalidConfiguration: the settings ask for others than a broker has. is_durable: how durable
    it is, is asked for, too."""
    conflicts = settings.differences(found.settings, in_memory=not is_durable)
    if conflicts:
        values = ", ".join(
            f"{name}={errors.shown(used)}, not {errors.shown(asked)}"
            for name, (asked, used) in conflicts.items()
        )
        raise errors.InvalidConfiguration(
            detail=f"{key} is open in this process with {values}; clients of one folder share one "
            "broker and must agree",
            conflicts=conflicts,
        )


def _opened(location: str | None, settings: BrokerSettings) -> Broker:
    await_end()
    control_plane.hold()
    try:
        broker = Broker(location, settings)
        if location is not None:
            try:
                _listen(broker)
            except BaseException:
                attempt(broker.close)
                _sockets.pop(broker, None)
                raise
        return broker
    except BaseException:
        control_plane.let_go()
        raise


def _listen(broker: Broker) -> None:
    """Let other processes ask for things; everything else works where they cannot."""
    from pulsarx.broker.control.control_socket import ControlSocket

    made = ControlSocket.open(broker)
    if made is not None:
        _sockets[broker] = made
        broker.on_close.append(made.close)
        broker.directory.announce(broker.catalogue.epoch, made.address)


def release(key: str, broker: Broker) -> None:
    """Give a reference back; the last one closes the broker. A call of the control plane."""
    with _lock:
        broker.reference_count -= 1
        if broker.reference_count > 0 or not broker.state.is_open:
            return
        # Closed under the lock, so that a client opening the folder now waits for the seal instead
        # of failing.
        _close(key, broker)


def _close(key: str, broker: Broker) -> None:
    try:
        broker.close()
    finally:
        _sockets.pop(broker, None)
        if _registry.get(key) is broker:
            del _registry[key]
            control_plane.let_go()
        elif (key, broker) in _left_behind:
            _left_behind.remove((key, broker))
            control_plane.let_go()


def lend(key: str, settings: BrokerSettings | None = None) -> Broker | None:
    """The broker of this process for a key, if it is open, to be given back with `release`.
    settings: what its user asks for, who writes nothing; as of acquire."""
    if key not in _registry:
        return None
    with _lock:
        found = _there(key)
        if found is None or not found.state.is_open:
            return None
        if settings is not None:
            check_agrees(key, settings, found, is_durable=False)
        found.reference_count += 1
        return found


def keep(broker: Broker) -> None:
    """Keep one that a client has open until the process ends. A call of the control plane."""
    with _lock:
        if not broker.is_kept:
            broker.is_kept = True
            broker.reference_count += 1


def own_briefly(
    key: str, location: str, settings: BrokerSettings, work: Callable[[Broker], None]
) -> bool:
    """Own a folder for one piece of work; False: this process owns it by now. Clients of it that
    open meanwhile in this process wait. A call of the control plane."""
    from pulsarx.broker.catalogue.kept_log import keep_log, take_log

    with _lock:
        if _there(key) is not None:
            return False
        control_plane.hold()
        try:
            broker = _registry[key] = Broker(location, settings, brief=True, take_log=take_log)
        except BaseException:
            control_plane.let_go()
            raise
        broker.reference_count = 1
        try:
            work(broker)
        finally:
            failure = attempt(lambda: release(key, broker))
            if failure is not None:  # it does not undo what was done
                _report_closing(key, failure)
            log = broker.catalogue.part_with_log()
            if log is not None:
                keep_log(broker.directory, log)
        return True


def has_folders() -> bool:
    """Whether a folder is open in this process that other processes may use."""
    return bool(_sockets)


def find(key: str) -> Broker | None:
    """The broker of this process for a key, if it is open."""
    return _registry.get(key)


def _close_all() -> None:
    _let_others_finish()
    # Not under the lock: closing waits for jobs, and one that gives a reference back wants it.
    for key, broker in [*_registry.items(), *_left_behind]:
        error = attempt(partial(_close, key, broker))
        if error is not None:
            _report_closing(key, error)
    _let_others_finish()  # such a job may have been the one that closed


def _let_others_finish() -> None:
    """Wait for a thread that opens or closes a broker; one that hangs does not hold up the end."""
    if _lock.acquire(timeout=_EXIT_WAIT_SECONDS):
        _lock.release()


def _close_all_at_exit() -> None:
    if _registry or _left_behind:
        control_plane.perform(_close_all)


def _report_closing(key: str, failure: Exception) -> None:
    import logging

    logging.getLogger("pulsarx").error("closing %s failed: %s", key, errors.detail_of(failure))


def _abandon_all() -> None:
    global _lock
    _lock = RLock()
    for socket in _sockets.values():
        socket.abandon()
    for _, broker in [*_registry.items(), *_left_behind]:
        broker.abandon()
    _sockets.clear()
    _registry.clear()
    _left_behind.clear()


at_end(_close_all_at_exit)
at_fork(__name__, _abandon_all)
