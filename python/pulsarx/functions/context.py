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
        """Return the id of the message that is processed."""

    def get_message_key(self) -> Any:
        """Return the key of the message."""

    def get_message_eventtime(self) -> Any:
        """Return the event time of the message, in milliseconds since 1970."""

    def get_message_properties(self) -> Any:
        """Return the properties of the message."""

    def get_current_message_topic_name(self) -> Any:
        """Return the topic that the message came from."""

    def get_partition_key(self) -> Any:
        """Return the key of the message, like get_message_key."""

    def get_ordering_key(self) -> Any:
        """Return the ordering key of the message."""

    # The function ---------------------------------------------------------------------------------

    def get_function_tenant(self) -> Any:
        """Return the tenant of the function."""

    def get_function_namespace(self) -> Any:
        """Return the namespace of the function."""

    def get_function_name(self) -> Any:
        """Return the name of the function."""

    def get_function_id(self) -> Any:
        """Return the id of the function."""

    def get_instance_id(self) -> Any:
        """Return the id of this instance of the function."""

    def get_function_version(self) -> Any:
        """Return the version of the function."""

    def get_logger(self) -> Any:
        """Return a `logging.Logger` for the function."""

    def get_user_config_value(self, key: str) -> Any:
        """Return a value of the user's configuration; None where it has none.

        Args:
            key: Its name.
        """

    def get_user_config_map(self) -> Any:
        """Return all of the user's configuration."""

    def get_secret(self, secret_name: str) -> Any:
        """Return a secret.

        Args:
            secret_name: Its name.
        """

    def get_input_topics(self) -> Any:
        """Return the topics that the function consumes."""

    def get_output_topic(self) -> Any:
        """Return the topic that what it returns goes to."""

    def get_output_serde_class_name(self) -> Any:
        """Return the SerDe of what it returns."""

    # Effects --------------------------------------------------------------------------------------

    def record_metric(self, metric_name: str, metric_value: float) -> Any:
        """Count a value of a metric.

        Args:
            metric_name: Its name.
            metric_value: Added to its sum.

        Returns:
            None.
        """

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
        """Send a message to any topic, without waiting. With EFFECTIVELY_ONCE it is sent when the
        function has returned, in the transaction of the input.

        Args:
            topic_name: A name.
            message: The value, as the SerDe takes it.
            serde_class_name: The SerDe of the value.
            properties: The properties of the message.
            compression_type: How the producer of the topic compresses.
            callback: As of `Producer.send_async`. With EFFECTIVELY_ONCE it is called when the
                transaction was committed, so the function must not wait for it.
            message_conf: More arguments of `Producer.send_async`, by name.

        Returns:
            None.

        Durability:
            With ATLEAST_ONCE it is as durable as after send before the input is acknowledged, with
            EFFECTIVELY_ONCE together with that.
        """

    def ack(self, msgid: Any, topic: str) -> Any:
        """Acknowledge a message. With MANUAL guarantees nothing else does; with EFFECTIVELY_ONCE it
        does nothing, as each input is acknowledged with what the function did.

        Args:
            msgid: The id of the message.
            topic: The one it came from.

        Returns:
            None.

        Durability:
            As of `Consumer.acknowledge`.
        """

    # State ----------------------------------------------------------------------------------------

    def incr_counter(self, key: str, amount: int) -> Any:
        """Add to a counter of the function's state.

        Args:
            key: Its name.
            amount: To add; may be negative.

        Returns:
            None.

        Durability:
            As of publish.
        """

    def get_counter(self, key: str) -> Any:
        """Return the value of a counter.

        Args:
            key: Its name.
        """

    def del_counter(self, key: str) -> Any:
        """Delete a counter.

        Args:
            key: Its name.

        Returns:
            None.

        Durability:
            As of publish.
        """

    def put_state(self, key: str, value: Any) -> Any:
        """Keep a value in the function's state.

        Args:
            key: Its name.
            value: bytes, or str, which is kept as UTF-8.

        Returns:
            None.

        Raises:
            TypeError: The value is neither.
            ValueError: The key is empty or no str.

        Durability:
            As of publish.
        """

    def get_state(self, key: str) -> Any:
        """Return a value that was kept.

        Args:
            key: Its name.
        """
