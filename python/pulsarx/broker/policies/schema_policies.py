"""The policies about schemas: which may follow which, and whether producers must have one."""

from __future__ import annotations

from pulsarx.broker_options import SCHEMA_STRATEGIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker_options import BrokerOptions

STRATEGY = "schema_compatibility_strategy"
ENFORCED = "schema_validation_enforced"
AUTO_UPDATE = "is_allow_auto_update_schema"
_BROKER_STRATEGY = "FULL"  # where nobody says one


class SchemaPolicies:
    """The policies that hold on one topic. A value."""

    __slots__ = ("auto_update", "enforced", "strategy")

    def __init__(self, strategy: str, enforced: bool, auto_update: bool) -> None:
        """enforced: a producer without a schema is refused where the topic has one. auto_update: a
        producer registers a schema that is new."""
        self.strategy: str = strategy
        self.enforced: bool = enforced
        self.auto_update: bool = auto_update

    @staticmethod
    def of(
        namespace: dict[str, Any], topic: dict[str, Any], options: BrokerOptions
    ) -> SchemaPolicies:
        """topic, namespace: what is set there. A strategy of UNDEFINED is as none."""
        levels = (topic, namespace)
        strategies = [each.get(STRATEGY) for each in levels]
        strategies.append(options.schema_compatibility_strategy)
        said = [each for each in strategies if each not in (None, SCHEMA_STRATEGIES[0])]
        return SchemaPolicies(
            said[0] if said else _BROKER_STRATEGY,
            _first(ENFORCED, levels, options.is_schema_validation_enforced),
            _first(AUTO_UPDATE, levels, options.is_allow_auto_update_schema_enabled),
        )


def _first(name: str, levels: tuple[dict[str, Any], ...], default: bool) -> bool:
    for each in levels:
        if name in each:
            return bool(each[name])
    return default
