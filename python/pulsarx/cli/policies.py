"""The policies that `pulsarx namespaces` and `pulsarx topics` set, get and remove.

A topic's policy wins over its namespace's. `get-...` shows what is set at that level: in JSON the
name of the policy and its value, null where nothing is set.
"""

from __future__ import annotations

import click

from pulsarx.cli.command import DURATION, SIZE, Command, pass_folder
from pulsarx.cli.policy import Policy, switch_of, switches
from pulsarx.cli.rate_policies import RATES
from pulsarx.cli.usage_policies import NAMESPACE_USAGE, USAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.cli.folder import Folder

_MIB = 1 << 20
_QUOTA_TYPES = ("destination_storage", "message_age")
_QUOTA_POLICIES = ("producer_request_hold", "producer_exception", "consumer_backlog_eviction")


def _set_retention(group: Any, target: str, time: int, size: int) -> None:
    if time > 0 and time % 60:
        raise click.BadParameter(f"{time} seconds: retention is in whole minutes")
    if size > 0 and size % _MIB:
        raise click.BadParameter(f"{size} bytes: retention is in whole MiB, as 10M")
    group.set_retention(
        target, time if time < 0 else time // 60, size if size < 0 else size // _MIB
    )


def _get_retention(group: Any, target: str) -> Any:
    found = group.get_retention(target)
    return None if found is None else {"time_minutes": found[0], "size_mb": found[1]}


def _set_quota(
    group: Any, target: str, limit: int, limit_time: int, policy: str, type: str
) -> None:
    group.set_backlog_quota(target, limit, limit_time, policy, type)


def _quota_type() -> click.Option:
    return click.Option(
        ["-t", "--type"],
        type=click.Choice(_QUOTA_TYPES),
        default=_QUOTA_TYPES[0],
        show_default=True,
        help="Which quota.",
    )


POLICIES = [
    Policy(
        "retention",
        [
            click.Option(
                ["-t", "--time"],
                type=DURATION,
                required=True,
                help="How long: 90m, 3h, 2d, 5w; seconds without a unit. -1: for ever.",
            ),
            click.Option(
                ["-s", "--size"],
                type=SIZE,
                required=True,
                help="How much of each topic: 10M, 16G, 3T. -1: everything.",
            ),
        ],
        _set_retention,
        _get_retention,
        lambda group, target: group.remove_retention(target),
        "-t 2d -s 10G",
    ),
    Policy(
        "message-ttl",
        [
            click.Option(
                ["-ttl", "--messageTTL", "seconds"],
                type=DURATION,
                required=True,
                help="Seconds, or 100m, 3h, 2d, 5w. 0: messages do not expire.",
            )
        ],
        lambda group, target, seconds: group.set_message_ttl(target, seconds),
        lambda group, target: group.get_message_ttl(target),
        lambda group, target: group.remove_message_ttl(target),
        "-ttl 3h",
    ),
    Policy(
        "backlog-quota",
        [
            click.Option(["-l", "--limit"], type=SIZE, default=-1, help="Bytes: 10M, 16G."),
            click.Option(
                ["-lt", "--limitTime", "limit_time"],
                type=DURATION,
                default=-1,
                help="Seconds, or 100m, 3h, 2d, 5w; for message_age.",
            ),
            click.Option(
                ["-p", "--policy"],
                type=click.Choice(_QUOTA_POLICIES),
                required=True,
                help="What is done when the quota is exceeded.",
            ),
            _quota_type(),
        ],
        _set_quota,
        lambda group, target: group.get_backlog_quotas(target),
        lambda group, target, type: group.remove_backlog_quota(target, type),
        "-l 10G -p consumer_backlog_eviction",
        (_quota_type(),),
    ),
    Policy(
        "deduplication",
        switches("Store nothing twice.", "Store what comes."),
        lambda group, target, **given: group.set_deduplication(target, switch_of(given)),
        lambda group, target: group.get_deduplication(target),
        lambda group, target: group.remove_deduplication(target),
        "--enable",
    ),
    Policy(
        "compaction-threshold",
        [
            click.Option(
                ["-t", "--threshold"],
                type=SIZE,
                required=True,
                help="Compact after so many bytes: 10M, 16G. 0: only when asked to.",
            )
        ],
        lambda group, target, threshold: group.set_compaction_threshold(target, threshold),
        lambda group, target: group.get_compaction_threshold(target),
        lambda group, target: group.remove_compaction_threshold(target),
        "-t 100M",
    ),
    Policy(
        "offload-threshold",
        [
            click.Option(
                ["-s", "--size"],
                type=SIZE,
                required=True,
                help="Offload what a topic holds beyond: 10M, 16G. 0: all; -1: when asked to.",
            )
        ],
        lambda group, target, size: group.set_offload_threshold(target, size),
        lambda group, target: group.get_offload_threshold(target),
        lambda group, target: group.remove_offload_threshold(target),
        "-s 10G",
    ),
    Policy(
        "offload-deletion-lag",
        [
            click.Option(
                ["-l", "--lag"],
                type=DURATION,
                required=True,
                help="How long the file of an offloaded ledger stays: 90s, 4h, 2d.",
            )
        ],
        lambda group, target, lag: group.set_offload_deletion_lag(target, lag * 1000),
        lambda group, target: group.get_offload_deletion_lag(target),
        lambda group, target: group.remove_offload_deletion_lag(target),
        "-l 4h",
    ),
]


def _limit(name: str, options: str, said: str, verb: str = "") -> Policy:
    """name, options: as Pulsar's command line calls it. verb: as the API does, where that is not
    the name."""
    verb = verb or name.replace("-", "_")
    return Policy(
        name,
        [
            click.Option(
                [*options.split(), "count"],
                type=click.IntRange(min=0),
                required=True,
                help=f"How many {said}. 0: without limit.",
            )
        ],
        lambda group, target, count: getattr(group, f"set_{verb}")(target, count),
        lambda group, target: getattr(group, f"get_{verb}")(target),
        lambda group, target: getattr(group, f"remove_{verb}")(target),
        f"{options.split()[0]} 10",
    )


_PRODUCERS, _CONSUMERS = "producers a topic has", "consumers a topic has"
_ATTACHED, _SUBSCRIPTIONS = "consumers a subscription has", "subscriptions a topic has"
_HELD = "messages a consumer holds unacknowledged"
_HELD_BY_ALL = "messages the consumers of a subscription hold unacknowledged"
# Pulsar's command line calls them otherwise on the other level.
LIMITS = {
    "namespace": [
        _limit("max-producers-per-topic", "-p --max-producers-per-topic", _PRODUCERS),
        _limit("max-consumers-per-topic", "-c --max-consumers-per-topic", _CONSUMERS),
        _limit("max-consumers-per-subscription", "-c --max-consumers-per-subscription", _ATTACHED),
        _limit("max-subscriptions-per-topic", "-m --max-subscriptions-per-topic", _SUBSCRIPTIONS),
        _limit("max-unacked-messages-per-consumer", "-c --max-unacked-messages-per-topic", _HELD),
        _limit(
            "max-unacked-messages-per-subscription",
            "-c --max-unacked-messages-per-subscription",
            _HELD_BY_ALL,
        ),
        _limit("max-topics-per-namespace", "-t --max-topics-per-namespace", "topics there are"),
    ],
    "topic": [
        _limit("max-producers", "-p --max-producers", _PRODUCERS, "max_producers_per_topic"),
        _limit("max-consumers", "-c --max-consumers", _CONSUMERS, "max_consumers_per_topic"),
        _limit("max-consumers-per-subscription", "-c --max-consumers-per-subscription", _ATTACHED),
        _limit("max-subscriptions-per-topic", "-m --max-subscriptions-per-topic", _SUBSCRIPTIONS),
        _limit("max-unacked-messages-per-consumer", "-m --maxNum", _HELD),
        _limit("max-unacked-messages-per-subscription", "-m --maxNum", _HELD_BY_ALL),
    ],
}


def add_policies(commands: click.Group, group: str, level: str) -> None:
    """Add set-, get- and remove- of each policy. group: of Admin, and of the command line. level:
    what the policies are set for, namespace or topic."""
    usage = (*NAMESPACE_USAGE, *USAGE) if level == "namespace" else USAGE
    for policy in (*POLICIES, *RATES, *usage, *LIMITS[level]):
        said = policy.name.replace("-", " ")
        example = "orders" if level == "topic" else "public/default"
        get = "get-backlog-quotas" if policy.name == "backlog-quota" else f"get-{policy.name}"
        for name, does, options, more in (
            (f"set-{policy.name}", _setting(policy, group), policy.options, f" {policy.example}"),
            (get, _getting(policy, group), [], ""),
            (f"remove-{policy.name}", _removing(policy, group), policy.options_of_removing, ""),
        ):
            verb = name.partition("-")[0].capitalize()
            commands.add_command(
                Command(
                    name,
                    callback=pass_folder(does),
                    params=[click.Argument(["target"], metavar=level.upper()), *options],
                    help=f"{verb} the {said} of a {level}.",
                    example=f"pulsarx {group} {name} {example}{more}",
                )
            )


def _setting(policy: Policy, group: str) -> Callable[..., None]:
    def does(folder: Folder, target: str, **options: Any) -> None:
        policy.set(getattr(folder.admin(), group), target, **options)

    return does


def _getting(policy: Policy, group: str) -> Callable[..., None]:
    def does(folder: Folder, target: str) -> None:
        found = policy.get(getattr(folder.admin(), group), target)
        folder.output.record({policy.name.replace("-", "_"): found})

    return does


def _removing(policy: Policy, group: str) -> Callable[..., None]:
    def does(folder: Folder, target: str, **options: Any) -> None:
        policy.remove(getattr(folder.admin(), group), target, **options)

    return does
