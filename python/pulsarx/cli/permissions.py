"""What roles may do: `grant-permission`, `revoke-permission` and `permissions`, of `pulsarx
namespaces` and `pulsarx topics`."""

from __future__ import annotations

import click

from pulsarx.cli.command import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.cli.folder import Folder

_role = click.option("-r", "--role", "--client-role", required=True, help="The role.")
_actions = click.option(
    "-a", "--actions", required=True, help="Actions: produce, consume, or produce,consume."
)


def _add_to_namespaces(group: click.Group) -> None:
    target = click.argument("namespace")

    @command("pulsarx namespaces grant-permission public/default --role alice --actions produce")
    @target
    @_role
    @_actions
    def grant(folder: Folder, namespace: str, role: str, actions: str) -> None:
        """Let a role use all topics of a namespace; replaces what it had there."""
        namespaces = folder.admin().namespaces
        namespaces.grant_permission_on_namespace(namespace, role, _split(actions))

    @command("pulsarx namespaces revoke-permission public/default --role alice")
    @target
    @_role
    def revoke(folder: Folder, namespace: str, role: str) -> None:
        """Revoke what a role was granted on a namespace."""
        folder.admin().namespaces.revoke_permissions_on_namespace(namespace, role)

    @command("pulsarx namespaces permissions public/default")
    @target
    def permissions(folder: Folder, namespace: str) -> None:
        """Show what roles were granted on a namespace."""
        _show(folder, folder.admin().namespaces.get_permissions(namespace))

    _add(group, grant, revoke, permissions)


def _add_to_topics(group: click.Group) -> None:
    target = click.argument("topic")

    @command("pulsarx topics grant-permission orders --role alice --actions produce,consume")
    @target
    @_role
    @_actions
    def grant(folder: Folder, topic: str, role: str, actions: str) -> None:
        """Let a role use a topic; replaces what it had there."""
        folder.admin().topics.grant_permission(topic, role, _split(actions))

    @command("pulsarx topics revoke-permission orders --role alice")
    @target
    @_role
    def revoke(folder: Folder, topic: str, role: str) -> None:
        """Revoke what a role was granted on the topic itself."""
        folder.admin().topics.revoke_permissions(topic, role)

    @command("pulsarx topics permissions orders")
    @target
    def permissions(folder: Folder, topic: str) -> None:
        """Show what roles were granted on a topic, or on its namespace."""
        _show(folder, folder.admin().topics.get_permissions(topic))

    _add(group, grant, revoke, permissions)


def _split(actions: str) -> list[str]:
    return [each.strip() for each in actions.split(",") if each.strip()]


def _show(folder: Folder, found: dict[str, list[str]]) -> None:
    columns = ("role", "actions")
    folder.output.rows(
        columns, [{"role": role, "actions": actions} for role, actions in found.items()]
    )


def _add(group: click.Group, grant: Any, revoke: Any, permissions: Any) -> None:
    group.add_command(grant, "grant-permission")
    group.add_command(revoke, "revoke-permission")
    group.add_command(permissions, "permissions")


def add_permissions(group: click.Group) -> None:
    """group: `namespaces` or `topics`."""
    (_add_to_namespaces if group.name == "namespaces" else _add_to_topics)(group)
