"""What a policy of the command line is, and the options that several have."""

from __future__ import annotations

from typing import NamedTuple

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Policy(NamedTuple):
    """One policy, as the API names it."""

    name: str  # what follows set-, get- and remove-
    options: list[click.Parameter]  # of set-
    set: Callable[..., None]  # (group of Admin, target, **options)
    get: Callable[..., Any]
    remove: Callable[..., None]
    example: str
    options_of_removing: tuple[click.Parameter, ...] = ()


def switches(enabled: str, disabled: str) -> list[click.Parameter]:
    """`--enable` and `--disable`, of which one is given. enabled, disabled: their help."""
    return [
        click.Option(["-e", "--enable"], is_flag=True, help=enabled),
        click.Option(["-d", "--disable"], is_flag=True, help=disabled),
    ]


def switch_of(given: dict[str, Any]) -> bool:
    """Takes the two out of what was given. UsageError: neither or both were."""
    enable, disable = given.pop("enable"), given.pop("disable")
    if enable == disable:
        raise click.UsageError("give either --enable or --disable")
    return bool(enable)
