"""The policies that `pulsarx namespaces` and `pulsarx topics` set, get and remove, in the grammar
of pulsar-admin: those of `broker/policies/table`, and backlog quotas.

A topic's policy wins over its namespace's. `get-...` shows what is set at that level: in JSON the
name of the policy and its value, null where nothing is set.
"""

from __future__ import annotations

from pulsarx.broker.policies.policy_row import DURATION, NUMBER, SIZE, TOPIC, Switch
from pulsarx.broker.policies.policy_value import REQUIRED, Choice, Choices, Record, Whole
from pulsarx.broker.policies.quota_types import QUOTA_TYPES
from pulsarx.broker.policies.table import TABLE
from pulsarx.broker_options import BACKLOG_QUOTA_POLICIES
from pulsarx.cli import command, declared
from pulsarx.cli.declared import Command, Group, Parameter, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from pulsarx.broker.policies.policy_row import Commands, Option, Policy
    from pulsarx.broker.policies.policy_value import Kind
    from pulsarx.cli.folder import Folder

_AMOUNTS: dict[str, Any] = {
    DURATION: command.DURATION,
    SIZE: command.SIZE,
    NUMBER: declared.Whole(),
}
_SUBJECTS = {"set": "Set policies", "get": "Show policies", "remove": "Remove policies"}


def add_policies(
    commands: Group, group: str, level: str, policies: Iterable[Policy] = TABLE
) -> None:
    """Add set-, get- and remove- of each policy. group: of Admin, and of the command line. level:
    what the policies are set for, namespace or topic."""
    for row in policies:
        found = row.commands(level)
        if found is not None:
            _add_policy(commands, group, level, row, found)
    _add_quotas(commands, group, level)


def _add_policy(commands: Group, group: str, level: str, row: Policy, found: Commands) -> None:
    name = found.name or row.name.replace("_", "-")

    def do(verb: str, folder: Folder, target: str, **given: Any) -> Any:
        return getattr(getattr(folder.admin(), group), f"{verb}_{row.method}")(target, **given)

    def set_policy(folder: Folder, target: str, **given: Any) -> None:
        values = {each.argument: _value(each, row, given) for each in found.options}
        do("set", folder, target, **values)

    def get_policy(folder: Folder, target: str) -> None:
        value = do("get", folder, target)
        if isinstance(value, tuple) and isinstance(row.kind, Record):
            value = dict(zip([each.name for each in row.kind.fields], value))
        folder.output.record({name.replace("-", "_"): value})

    def remove_policy(folder: Folder, target: str) -> None:
        do("remove", folder, target)

    def parameters() -> list[Parameter]:
        return [each for option in found.options for each in _parameters(option, row)]

    said = f"the {name.replace('-', ' ')} of a {level}."
    for verb, does, options, example in (
        ("set", set_policy, parameters, f" {found.example}"),
        ("get", get_policy, _no_options, ""),
        ("remove", remove_policy, _no_options, ""),
    ):
        help = f"{verb.capitalize()} {said}"
        subject = _SUBJECTS[verb]
        _add(commands, group, level, f"{verb}-{name}", does, options, help, example, subject)


def _add(
    commands: Group,
    group: str,
    level: str,
    name: str,
    does: Callable[..., None],
    options: Callable[[], Sequence[Parameter]],
    help: str,
    example: str,
    subject: str,
) -> None:
    """options: makes them. example: what follows the target in one. subject: under which it is
    listed."""
    target = "orders" if level == TOPIC else "public/default"

    def parameters() -> list[Parameter]:
        return [Parameter(("target",), metavar=level.upper(), required=True), *options()]

    made = Command(does, parameters, help, f"pulsarx {group} {name} {target}{example}")
    commands.add_command(made, name, subject)


# Options ------------------------------------------------------------------------------------------


def _no_options() -> list[Parameter]:
    return []


def _kind(argument: str, row: Policy) -> Kind:
    """Return the kind of the values of an argument."""
    if not isinstance(row.kind, Record):
        return row.kind
    return next(each.kind for each in row.kind.fields if each.argument == argument)


def _parameters(option: Option | Switch, row: Policy) -> list[Parameter]:
    """Declare the parameters of an option."""
    name = option.argument
    if isinstance(option, Switch):
        return [
            Parameter((*option.on.split(), f"{name}_on"), is_flag=True, help=option.on_help),
            Parameter((*option.off.split(), f"{name}_off"), is_flag=True, help=option.off_help),
        ]
    kind = _kind(name, row)
    more: dict[str, Any] = {"required": True}
    if option.default is not REQUIRED:
        more = {"default": option.default, "show_default": option.shows}
    if option.kind:
        more["type"] = _AMOUNTS[option.kind]
    elif isinstance(kind, Whole):
        more["type"] = declared.Whole(min=kind.lowest)
    elif isinstance(kind, Choice):
        more["type"] = declared.Choice(kind.choices, case_sensitive=not option.any_case)
    elif isinstance(kind, Choices):
        more["metavar"] = name.upper()
    else:
        more = {"is_flag": True}
    return [Parameter((*option.names.split(), name), help=option.help, **more)]


def _value(option: Option | Switch, row: Policy, given: dict[str, Any]) -> Any:
    """Return the value that the method of `client.admin` gets for what was given. UsageError: it
    makes no sense."""
    if isinstance(option, Switch):
        on, off = given[f"{option.argument}_on"], given[f"{option.argument}_off"]
        if on == off:
            names = f"{option.on.split()[-1]} or {option.off.split()[-1]}"
            raise UsageError(f"give either {names}")
        return on
    value, kind = given[option.argument], _kind(option.argument, row)
    if isinstance(kind, Choices):
        return _words(value, kind.choices)
    if option.per > 1 and value > 0:
        if value % option.per:
            raise UsageError(f"{value} {option.uneven}")
        value //= option.per
    return value if option.times == 1 else value * option.times


def _words(text: str, choices: tuple[str, ...]) -> list[str]:
    by_name = {each.lower(): each for each in choices}
    named = [each.strip() for each in text.split(",")]
    for each in named:
        if each.lower() not in by_name:
            raise UsageError(f"{each!r} is not one of {', '.join(choices)}")
    return [by_name[each.lower()] for each in named]


# Backlog quotas -----------------------------------------------------------------------------------


def _add_quotas(commands: Group, group: str, level: str) -> None:
    def quotas(folder: Folder) -> Any:
        return getattr(folder.admin(), group)

    def set_quota(
        folder: Folder, target: str, limit: int, limit_time: int, policy: str, type: str
    ) -> None:
        quotas(folder).set_backlog_quota(target, limit, limit_time, policy, type)

    def get_quotas(folder: Folder, target: str) -> None:
        folder.output.record({"backlog_quota": quotas(folder).get_backlog_quotas(target)})

    def remove_quota(folder: Folder, target: str, type: str) -> None:
        quotas(folder).remove_backlog_quota(target, type)

    limits = [
        Parameter(("-l", "--limit"), type=command.SIZE, default=-1, help="Bytes: 10M, 16G."),
        Parameter(
            ("-lt", "--limitTime", "limit_time"),
            type=command.DURATION,
            default=-1,
            help="Seconds, or 100m, 3h, 2d, 5w; for message_age.",
        ),
        Parameter(
            ("-p", "--policy"),
            type=declared.Choice(BACKLOG_QUOTA_POLICIES),
            required=True,
            help="What is done when the quota is exceeded.",
        ),
    ]
    kind = Parameter(
        ("-t", "--type"),
        type=declared.Choice(QUOTA_TYPES),
        default=QUOTA_TYPES[0],
        show_default=True,
        help="Which quota.",
    )
    example = " -l 10G -p consumer_backlog_eviction"
    for name, does, options, more in (
        ("set-backlog-quota", set_quota, lambda: [*limits, kind], example),
        ("get-backlog-quotas", get_quotas, _no_options, ""),
        ("remove-backlog-quota", remove_quota, lambda: [kind], ""),
    ):
        verb = name.partition("-")[0]
        help = f"{verb.capitalize()} the backlog quota of a {level}."
        subject = _SUBJECTS[verb]
        _add(commands, group, level, name, does, options, help, more, subject)
