"""A client of the history in an object store: what `Client` makes for its URL."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.offload.store_url import store_of
from pulsarx.client import Client
from pulsarx.options.service_url import ServiceUrl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.options.base import ClientOptions


class StoredClient(Client):
    """A read-only Client whose topics are what was offloaded there. Any thread may use it."""

    def __init__(self, service_url: str, *arguments: Any, **options: Any) -> None:
        """Arguments are Client's. OperationNotSupported: it is not read_only. InvalidUrl: the URL
        has credentials. FolderError: there is no history."""
        try:
            self._store = store_of(service_url)
        except ValueError as error:
            raise errors.InvalidUrl(detail=str(error)) from None
        super().__init__("memory:", *arguments, **options)

    def _open(self, options: ClientOptions) -> None:
        if not options.read_only:
            raise errors.OperationNotSupported(
                detail=f"open {self._store}: of an object store the history of topics is read "
                "alone; give read_only=True, or open the folder"
            )
        self._url = ServiceUrl(self._store, self._store, None)
        super()._open(options)
