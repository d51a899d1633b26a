"""What a function can ask and do while it has a message in hand."""

from __future__ import annotations

from abc import abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Context:
    """The interface. A test of a function may implement what the function calls."""

    @abstractmethod
    def get_message_id(self) -> Any:
        """Id of the message in hand."""

    @abstractmethod
    def get_message_key(self) -> str:
        """Partition key of the message in hand, '' without one."""

    @abstractmethod
    def get_message_eventtime(self) -> int:
        """Event time of the message in hand, 0 without one."""

    @abstractmethod
    def get_message_properties(self) -> dict[str, str]:
        """Properties of the message in hand."""

    @abstractmethod
    def get_current_message_topic_name(self) -> str:
        """Full name of the topic of the message in hand."""

    @abstractmethod
    def get_function_tenant(self) -> str:
        """Tenant of the function."""

    @abstractmethod
    def get_function_namespace(self) -> str:
        """Namespace of the function, without its tenant."""

    @abstractmethod
    def get_function_name(self) -> str:
        """Name of the function."""

    @abstractmethod
    def get_function_id(self) -> str:
        """Id of the function."""

    @abstractmethod
    def get_instance_id(self) -> Any:
        """Which of the function's parallel instances this is, from 0."""

    @abstractmethod
    def get_function_version(self) -> str:
        """Version of the function."""

    @abstractmethod
    def get_logger(self) -> Any:
        """A logger, whose records go to the log topic where there is one."""

    @abstractmethod
    def get_user_config_value(self, key: str) -> Any:
        """A value of the user configuration; None: it has none of that key."""

    @abstractmethod
    def get_user_config_map(self) -> dict[str, Any]:
        """The whole user configuration."""

    @abstractmethod
    def get_secret(self, secret_name: str) -> Any:
        """A secret by its name; None: there is none."""

    @abstractmethod
    def get_partition_key(self) -> str:
        """Partition key of the message in hand, '' without one."""

    @abstractmethod
    def get_ordering_key(self) -> str:
        """Ordering key of the message in hand, '' without one."""

    @abstractmethod
    def record_metric(self, metric_name: str, metric_value: float) -> None:
        """Add one observation to a metric of the user."""

    @abstractmethod
    def publish(
        self,
        topic_name: str,
        message: Any,
        serde_class_name: str = "serde.IdentitySerDe",
        properties: dict[str, str] | None = None,
        compression_type: Any = None,
        callback: Callable[..., object] | None = None,
        message_conf: dict[str, Any] | None = None,
    ) -> None:
        """Serialize a message and publish it. message_conf: arguments of `send_async`, such as
        partition_key; properties wins over those in it. callback: called with result and id."""

    @abstractmethod
    def get_input_topics(self) -> list[str]:
        """The input topics, as they were given."""

    @abstractmethod
    def get_output_topic(self) -> Any:
        """The output topic, as it was given."""

    @abstractmethod
    def get_output_serde_class_name(self) -> Any:
        """Class name of the serializer of outputs."""

    @abstractmethod
    def ack(self, msgid: Any, topic: str) -> None:
        """Acknowledge a message of an input topic, for functions without auto_ack."""

    @abstractmethod
    def incr_counter(self, key: str, amount: int) -> None:
        """Add to a counter of the function's state."""

    @abstractmethod
    def get_counter(self, key: str) -> Any:
        """A counter of the function's state; None: there is none."""

    @abstractmethod
    def del_counter(self, key: str) -> None:
        """Remove a counter of the function's state."""

    @abstractmethod
    def put_state(self, key: str, value: Any) -> None:
        """Set a value of the function's state."""

    @abstractmethod
    def get_state(self, key: str) -> Any:
        """A value of the function's state, as bytes; None: there is none."""
