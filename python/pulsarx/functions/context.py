"""The interface by which a function reads its configuration and current message, and publishes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Context:
    """Base of the contexts. A method that a subclass leaves out answers None, as in the official
    client, whose names and arguments these are."""

    # The message ----------------------------------------------------------------------------------

    def get_message_id(self) -> Any:
        """The id of the message that is processed."""

    def get_message_key(self) -> Any:
        """The key of the message."""

    def get_message_eventtime(self) -> Any:
        """The event time of the message."""

    def get_message_properties(self) -> Any:
        """The properties of the message."""

    def get_current_message_topic_name(self) -> Any:
        """The topic that the message came from."""

    def get_partition_key(self) -> Any:
        """The key of the message, like get_message_key."""

    def get_ordering_key(self) -> Any:
        """The ordering key of the message."""

    # The function ---------------------------------------------------------------------------------

    def get_function_tenant(self) -> Any:
        """The tenant of the function."""

    def get_function_namespace(self) -> Any:
        """The namespace of the function."""

    def get_function_name(self) -> Any:
        """The name of the function."""

    def get_function_id(self) -> Any:
        """The id of the function."""

    def get_instance_id(self) -> Any:
        """The id of this instance of the function."""

    def get_function_version(self) -> Any:
        """The version of the function."""

    def get_logger(self) -> Any:
        """A `logging.Logger` for the function."""

    def get_user_config_value(self, key: str) -> Any:
        """A value of the user's configuration; None where it has none."""

    def get_user_config_map(self) -> Any:
        """All of the user's configuration."""

    def get_secret(self, secret_name: str) -> Any:
        """A secret."""

    def get_input_topics(self) -> Any:
        """The topics that the function consumes."""

    def get_output_topic(self) -> Any:
        """The topic that what it returns goes to."""

    def get_output_serde_class_name(self) -> Any:
        """The SerDe of what it returns."""

    # Effects --------------------------------------------------------------------------------------

    def record_metric(self, metric_name: str, metric_value: float) -> Any:
        """Count a value of a metric."""

    def publish(
        self,
        topic_name: str,
        message: Any,
        serde_class_name: str = "serde.IdentitySerDe",
        properties: dict[str, str] | None = None,
        compression_type: Any = None,
        callback: Callable[..., object] | None = None,
        message_conf: dict[str, Any] | None = None,
    ) -> Any:
        """Send a message to any topic."""

    def ack(self, msgid: Any, topic: str) -> Any:
        """Acknowledge a message."""

    # State ----------------------------------------------------------------------------------------

    def incr_counter(self, key: str, amount: int) -> Any:
        """Add to a counter."""

    def get_counter(self, key: str) -> Any:
        """The value of a counter."""

    def del_counter(self, key: str) -> Any:
        """Delete a counter."""

    def put_state(self, key: str, value: Any) -> Any:
        """Keep a value."""

    def get_state(self, key: str) -> Any:
        """A value that was kept."""
