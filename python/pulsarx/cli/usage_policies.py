"""The policies about what clients make by using it, what they may be and have, and what becomes of
what nobody uses, in pulsar-admin's grammar."""

from __future__ import annotations

import click

from pulsarx.cli.command import DURATION
from pulsarx.cli.policy import Policy, switch_of, switches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KINDS = ("non-partitioned", "partitioned")
_TYPES = ("Exclusive", "Failover", "Shared", "Key_Shared")
_MODES = ("delete_when_no_subscriptions", "delete_when_subscriptions_caught_up")
_STRATEGIES = (
    "UNDEFINED", "ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE", "BACKWARD", "FORWARD", "FULL",
    "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE",
)  # fmt: skip


def _switch(name: str, enabled: str, disabled: str, verb: str = "") -> Policy:
    """One that is on or off. verb: as the API calls it, where that is not the name."""
    verb = verb or name.replace("-", "_")
    return Policy(
        name,
        switches(enabled, disabled),
        lambda group, target, **given: getattr(group, f"set_{verb}")(target, switch_of(given)),
        lambda group, target: getattr(group, f"get_{verb}")(target),
        lambda group, target: getattr(group, f"remove_{verb}")(target),
        "--enable",
    )


def _set_delayed(group: Any, target: str, tick: int, longest: int, **given: Any) -> None:
    group.set_delayed_delivery_policies(target, switch_of(given), tick * 1000, longest * 1000)


def _set_inactive(group: Any, target: str, mode: str, seconds: int, on: bool, off: bool) -> None:
    if on == off:
        raise click.UsageError(
            "give either --enable-delete-while-inactive or --disable-delete-while-inactive"
        )
    group.set_inactive_topic_policies(target, mode, seconds, on)


def _set_types(group: Any, target: str, types: str) -> None:
    by_name = {each.lower(): each for each in _TYPES}
    named = [each.strip() for each in types.split(",")]
    for each in named:
        if each.lower() not in by_name:
            raise click.BadParameter(f"{each!r} is not one of {', '.join(_TYPES)}")
    group.set_subscription_types_enabled(target, [by_name[each.lower()] for each in named])


def _set_creation(group: Any, target: str, type: str, partitions: int, **given: Any) -> None:
    group.set_auto_topic_creation(target, switch_of(given), type, partitions)


USAGE = [
    Policy(
        "delayed-delivery",
        [
            *switches("Messages wait for their time.", "Messages come at once."),
            click.Option(
                ["-t", "--time", "tick"],
                type=DURATION,
                default="1s",
                show_default=True,
                help="How much before their time messages may come, where that is not strict.",
            ),
            click.Option(
                ["-md", "--maxDelay", "longest"],
                type=DURATION,
                default="0",
                help="How long a message may be delayed: 90s, 3h, 2d. 0: the broker's option.",
            ),
        ],
        _set_delayed,
        lambda group, target: group.get_delayed_delivery_policies(target),
        lambda group, target: group.remove_delayed_delivery_policies(target),
        "--enable -t 1s -md 2d",
    ),
    Policy(
        "inactive-topic-policies",
        [
            click.Option(
                ["-e", "--enable-delete-while-inactive", "on"],
                is_flag=True,
                help="Inactive topics are deleted.",
            ),
            click.Option(
                ["-d", "--disable-delete-while-inactive", "off"],
                is_flag=True,
                help="Inactive topics stay.",
            ),
            click.Option(
                ["-t", "--max-inactive-duration", "seconds"],
                type=DURATION,
                required=True,
                help="After how long without use: 90s, 3h, 2d.",
            ),
            click.Option(
                ["-m", "--delete-mode", "mode"],
                type=click.Choice(_MODES),
                required=True,
                help="What counts as inactive.",
            ),
        ],
        _set_inactive,
        lambda group, target: group.get_inactive_topic_policies(target),
        lambda group, target: group.remove_inactive_topic_policies(target),
        "-e -t 1h -m delete_when_no_subscriptions",
    ),
    Policy(
        "subscription-expiration-time",
        [
            click.Option(
                ["-t", "--time", "minutes"],
                type=click.IntRange(min=0),
                required=True,
                help="After how many minutes without use a subscription goes. 0: it stays.",
            )
        ],
        lambda group, target, minutes: group.set_subscription_expiration_time(target, minutes),
        lambda group, target: group.get_subscription_expiration_time(target),
        lambda group, target: group.remove_subscription_expiration_time(target),
        "-t 1440",
    ),
    Policy(
        "subscription-types-enabled",
        [
            click.Option(
                ["-t", "--types"],
                required=True,
                metavar="TYPES",
                help=f"With commas between: {', '.join(_TYPES)}.",
            )
        ],
        _set_types,
        lambda group, target: group.get_subscription_types_enabled(target),
        lambda group, target: group.remove_subscription_types_enabled(target),
        "-t Shared,Key_Shared",
    ),
    _switch(
        "auto-subscription-creation", "Consumers make what they name.", "Only administration does."
    ),
    Policy(
        "schema-compatibility-strategy",
        [
            click.Option(
                ["-c", "--compatibility", "-s", "--strategy", "strategy"],
                type=click.Choice(_STRATEGIES, case_sensitive=False),
                required=True,
                help="Which schema may follow another.",
            )
        ],
        lambda group, target, strategy: group.set_schema_compatibility_strategy(target, strategy),
        lambda group, target: group.get_schema_compatibility_strategy(target),
        lambda group, target: group.remove_schema_compatibility_strategy(target),
        "-c BACKWARD",
    ),
    _switch(
        "schema-validation-enforce",
        "Producers need the schema of the topic, where it has one.",
        "Those without a schema may.",
        "schema_validation_enforced",
    ),
    _switch(
        "is-allow-auto-update-schema",
        "Producers and consumers register their schemas.",
        "Only administration does.",
    ),
]
NAMESPACE_USAGE = [
    Policy(
        "auto-topic-creation",
        [
            *switches("Clients make the topics they name.", "Only administration does."),
            click.Option(
                ["-t", "--type"],
                type=click.Choice(_KINDS),
                default=_KINDS[0],
                show_default=True,
                help="The kind of topics that are created.",
            ),
            click.Option(
                ["-n", "--num-partitions", "partitions"],
                type=click.IntRange(min=1),
                default=1,
                help="How many partitions they have.",
            ),
        ],
        _set_creation,
        lambda group, target: group.get_auto_topic_creation(target),
        lambda group, target: group.remove_auto_topic_creation(target),
        "--enable -t partitioned -n 4",
    ),
]
