"""The checked options of a function: those of `pulsar-admin functions localrun`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Any

from pulsarx import errors
from pulsarx.enumerations import ConsumerType, InitialPosition
from pulsarx.functions.guarantees import (
    ATLEAST_ONCE,
    ATMOST_ONCE,
    EFFECTIVELY_ONCE,
    GUARANTEES,
    MANUAL,
)
from pulsarx.topic_name import TopicName, check_entity_name


@dataclass
class FunctionConfig:
    """A value; raises ValueError, or InvalidTopicName, for what cannot be run so, and
    OperationNotSupported for what PulsarX cannot do.

    processing_guarantees
      ATLEAST_ONCE      an input is acknowledged when its output, its state and what it published
                        are durable; an exception of the function gives it back
      ATMOST_ONCE       acknowledged before the function is called
      EFFECTIVELY_ONCE  in order; the acknowledgement of an input, its output, its state and what it
                        published are one transaction, so they are there once, or none of them; an
                        exception of the function ends the runner
      MANUAL            the function acknowledges by Context.ack
    """

    inputs: list[str] = field(default_factory=list)
    topics_pattern: str | None = None
    output: str | None = None
    tenant: str = "public"
    namespace: str = "default"
    name: str = ""
    user_config: dict[str, Any] = field(default_factory=dict)
    secrets: dict[str, Any] = field(default_factory=dict)
    processing_guarantees: str = ATLEAST_ONCE
    subs_name: str | None = None
    subs_position: str = "Latest"
    retain_ordering: bool = False
    retain_key_ordering: bool = False
    max_message_retries: int | None = None
    dead_letter_topic: str | None = None
    auto_ack: bool = True
    custom_serde_inputs: dict[str, Any] = field(default_factory=dict)
    output_serde: Any = None
    log_topic: str | None = None
    parallelism: int = 1
    timeout_ms: int | None = None
    negative_ack_redelivery_delay_ms: int = 60_000

    def __post_init__(self) -> None:
        for each in fields(self):
            kind = _KINDS.get(each.name)
            value = getattr(self, each.name)
            if kind is not None and type(value) not in kind:
                raise ValueError(f"{each.name}={value!r} of a function must be {_shown(kind)}")
        check_entity_name("tenant", self.tenant)
        check_entity_name("namespace", self.namespace)
        if not self.name or "/" in self.name:
            raise ValueError(f"name={self.name!r}: a function has a name, without a slash")
        self._check_topics()
        self._check_guarantees()
        if self.parallelism < 1:
            raise ValueError(f"parallelism={self.parallelism}: from 1 up")
        if self.subs_position.capitalize() not in ("Latest", "Earliest"):
            raise ValueError(f"subs_position={self.subs_position!r}: Latest or Earliest")

    def _check_topics(self) -> None:
        topics = self.topics
        if bool(topics) == bool(self.topics_pattern):
            if topics:
                raise errors.OperationNotSupported(
                    detail="a function takes its inputs from topics or from topics_pattern, not "
                    "from both"
                )
            raise ValueError("a function needs inputs, custom_serde_inputs or topics_pattern")
        names = [str(TopicName.of(topic)) for topic in topics]
        outputs = [str(TopicName.of(each)) for each in (self.output, self.log_topic) if each]
        for each in outputs:
            if each in names or (self.pattern is not None and self.pattern.fullmatch(each)):
                raise ValueError(f"{each} would be an input and an output of the function")

    def _check_guarantees(self) -> None:
        guarantees, retries = self.processing_guarantees, self.max_message_retries
        if guarantees not in GUARANTEES:
            raise ValueError(f"processing_guarantees={guarantees!r}: {', '.join(GUARANTEES)}")
        if guarantees == MANUAL:
            self.auto_ack = False
        if self.retain_ordering and self.retain_key_ordering:
            raise ValueError("retain_ordering and retain_key_ordering exclude each other")
        if self.effectively_once:
            if self.retain_key_ordering:
                raise ValueError("EFFECTIVELY_ONCE keeps the order: not with retain_key_ordering")
            if not self.auto_ack:
                raise ValueError("EFFECTIVELY_ONCE acknowledges itself: not with auto_ack off")
            if retries is not None:
                raise ValueError(
                    "EFFECTIVELY_ONCE stops at a failure: not with max_message_retries"
                )
        if retries is not None and retries < 1:
            raise ValueError(f"max_message_retries={retries}: from 1 up, or None: without limit")
        if retries is not None and self.retain_ordering:
            raise ValueError("max_message_retries is not possible with retain_ordering")
        if self.dead_letter_topic is not None and retries is None:
            raise ValueError("dead_letter_topic needs max_message_retries")
        if self.timeout_ms is not None and guarantees != ATLEAST_ONCE:
            raise ValueError(f"timeout_ms is for ATLEAST_ONCE, not for {guarantees}")

    @property
    def topics(self) -> list[str]:
        """The topics that the options name, each once."""
        return list(dict.fromkeys([*self.inputs, *self.custom_serde_inputs]))

    @property
    def pattern(self) -> re.Pattern[str] | None:
        return re.compile(self.topics_pattern) if self.topics_pattern else None

    @property
    def full_name(self) -> str:
        return f"{self.tenant}/{self.namespace}/{self.name}"

    @property
    def subscription(self) -> str:
        return self.subs_name or self.full_name

    @property
    def effectively_once(self) -> bool:
        return self.processing_guarantees == EFFECTIVELY_ONCE

    @property
    def at_most_once(self) -> bool:
        return self.processing_guarantees == ATMOST_ONCE

    @property
    def consumer_type(self) -> ConsumerType:
        if self.effectively_once or self.retain_ordering:
            return ConsumerType.Failover
        return ConsumerType.KeyShared if self.retain_key_ordering else ConsumerType.Shared

    @property
    def initial_position(self) -> InitialPosition:
        latest = self.subs_position.capitalize() == "Latest"
        return InitialPosition.Latest if latest else InitialPosition.Earliest

    @property
    def dead_letters(self) -> str:
        """The topic of messages that failed too often."""
        local = f"persistent://{self.tenant}/{self.namespace}/{self.name}-DLQ"
        return self.dead_letter_topic or local

    @property
    def state_topic(self) -> str:
        return f"persistent://{self.tenant}/{self.namespace}/function-state-{self.name}"


_TEXT, _MAYBE_TEXT = (str,), (str, type(None))
_KINDS: dict[str, Any] = {
    "inputs": (list, tuple),
    "topics_pattern": _MAYBE_TEXT,
    "output": _MAYBE_TEXT,
    "tenant": _TEXT,
    "namespace": _TEXT,
    "name": _TEXT,
    "user_config": (dict,),
    "secrets": (dict,),
    "processing_guarantees": _TEXT,
    "subs_name": _MAYBE_TEXT,
    "subs_position": _TEXT,
    "retain_ordering": (bool,),
    "retain_key_ordering": (bool,),
    "max_message_retries": (int, type(None)),
    "dead_letter_topic": _MAYBE_TEXT,
    "auto_ack": (bool,),
    "custom_serde_inputs": (dict,),
    "log_topic": _MAYBE_TEXT,
    "parallelism": (int,),
    "timeout_ms": (int, type(None)),
    "negative_ack_redelivery_delay_ms": (int,),
}


def _shown(kind: tuple[type, ...]) -> str:
    return " or ".join("None" if each is type(None) else each.__name__ for each in kind)
