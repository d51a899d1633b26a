"""`client.admin.brokers`: the folder as a whole."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.admin.channel import Channel


class Brokers:
    """Any thread may call."""

    def __init__(self, channel: Channel) -> None:
        """Use `Admin.brokers`.

        Args:
            channel: By which the calls are done.
        """
        self._channel = channel

    def healthcheck(self) -> None:
        """Publish a message to `persistent://pulsar/standalone/healthcheck` and read it again.
        Raises the error of what fails.

        Raises:
            Timeout: The message was not received.
            StorageFullError: There is no room.
        """
        self._channel.perform("brokers.healthcheck", {})

    def get_storage_size(self) -> dict[str, int]:
        """Return the bytes that the folder takes on the device: "ledgers", "cursors", "catalogue",
        "staging", "orphans" (set aside, never deleted) and "total". Space that an open ledger has
        prepared counts. Zeros in memory."""
        found: dict[str, int] = self._channel.perform("brokers.get_storage_size", {})
        return found
