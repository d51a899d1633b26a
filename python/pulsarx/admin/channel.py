"""The ways by which `Admin` has an operation performed: in process, or by the process that owns the
folder."""

from __future__ import annotations

from pulsarx._pycore.ground.control_plane import control_plane

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx.broker.faces import OpenFolder

    class Channel(Protocol):
        """Somewhere the verbs of `broker.verbs.table` can be asked for."""

        def perform(self, verb: str, arguments: dict[str, Any]) -> Any: ...


class ClientChannel:
    """The folder that a client has open. Any thread may call."""

    def __init__(
        self,
        require_open: Callable[[], None],
        folder: OpenFolder,
        read_only: bool,
        perform: Callable[[Callable[..., Any], tuple[Any, ...]], Any],
    ) -> None:
        """require_open: of the client, which is kept by it. read_only: the client may change
        nothing, also where another client of this process owns the folder. perform: makes a call of
        the control plane for the client."""
        self._require_open = require_open
        self._folder = folder
        self._read_only = read_only
        self._call = perform

    def perform(self, verb: str, arguments: dict[str, Any]) -> Any:
        self._require_open()
        return self._call(self._perform, (verb, arguments))

    def _perform(self, verb: str, arguments: dict[str, Any]) -> Any:
        from pulsarx.broker.verbs.table import perform

        if self._folder.is_guest:
            owner: Any = self._folder
            return owner.perform(verb, arguments)
        return perform(self._folder, verb, arguments, self._read_only)


class OwnerChannel:
    """The owner of a folder, be it in this process or another; without one, what only reads is
    read from the files, and this process owns the folder for each other request. Any thread may
    call."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = folder

    def perform(self, verb: str, arguments: dict[str, Any]) -> Any:
        """FolderOwnedError: the owner cannot be reached. Timeout: it did not answer."""
        return control_plane.perform(self._perform, (verb, arguments))

    def _perform(self, verb: str, arguments: dict[str, Any]) -> Any:
        from pulsarx.broker.requests.owner_request import ask_owner

        return ask_owner(self._folder, verb, arguments)
