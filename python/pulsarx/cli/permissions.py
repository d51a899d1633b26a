"""The commands about permissions of roles: `grant-permission`, `revoke-permission` and
`permissions`, of `pulsarx namespaces` and `pulsarx topics`; the same of subscriptions, of `pulsarx
namespaces`."""

from __future__ import annotations

from pulsarx.cli.command import command
from pulsarx.cli.declared import Choice, Group, argument, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.cli.folder import Folder

SUBJECT = "Permissions"
_role = option("-r", "--role", "--client-role", required=True, help="The role.")
_actions = option(
    "-a", "--actions", required=True, help="Actions: produce, consume, or produce,consume."
)


def _add_to_namespaces(group: Group) -> None:
    target = argument("namespace")

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
    _add_subscriptions(group)


def _add_subscriptions(group: Group) -> None:
    target = argument("namespace")
    subscription = option("-s", "--subscription", required=True, help="The subscription.")

    @command(
        "pulsarx namespaces grant-subscription-permission public/default -s billing -rs alice,bob"
    )
    @target
    @subscription
    @option("-rs", "--roles", required=True, help="Roles, separated by commas.")
    def grant(folder: Folder, namespace: str, subscription: str, roles: str) -> None:
        """Let roles alone use subscriptions of a name; replaces those granted before."""
        namespaces = folder.admin().namespaces
        namespaces.grant_permission_on_subscription(namespace, subscription, _split(roles))

    @command("pulsarx namespaces revoke-subscription-permission public/default -s billing -r bob")
    @target
    @subscription
    @_role
    def revoke(folder: Folder, namespace: str, subscription: str, role: str) -> None:
        """Revoke what a role was granted on subscriptions of a name."""
        namespaces = folder.admin().namespaces
        namespaces.revoke_permission_on_subscription(namespace, subscription, role)

    @command("pulsarx namespaces subscription-permission public/default")
    @target
    def permissions(folder: Folder, namespace: str) -> None:
        """Show which roles alone may use subscriptions."""
        found = folder.admin().namespaces.get_permission_on_subscription(namespace)
        folder.output.rows(
            ("subscription", "roles"),
            [{"subscription": name, "roles": roles} for name, roles in found.items()],
        )

    @command("pulsarx namespaces set-subscription-auth-mode public/default -m Prefix")
    @target
    @option(
        "-m",
        "--subscription-auth-mode",
        "mode",
        required=True,
        type=Choice(["None", "Prefix"]),
        help="Prefix: a role uses subscriptions whose names begin with its own.",
    )
    def set_mode(folder: Folder, namespace: str, mode: str) -> None:
        """Set which subscriptions roles use."""
        folder.admin().namespaces.set_subscription_auth_mode(namespace, mode)

    @command("pulsarx namespaces get-subscription-auth-mode public/default")
    @target
    def get_mode(folder: Folder, namespace: str) -> None:
        """Show which subscriptions roles use."""
        mode = folder.admin().namespaces.get_subscription_auth_mode(namespace)
        folder.output.rows(("subscription_auth_mode",), [{"subscription_auth_mode": mode}])

    group.add_command(grant, "grant-subscription-permission", SUBJECT)
    group.add_command(revoke, "revoke-subscription-permission", SUBJECT)
    group.add_command(permissions, "subscription-permission", SUBJECT)
    group.add_command(set_mode, "set-subscription-auth-mode", SUBJECT)
    group.add_command(get_mode, "get-subscription-auth-mode", SUBJECT)


def _add_to_topics(group: Group) -> None:
    target = argument("topic")

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


def _add(group: Group, grant: Any, revoke: Any, permissions: Any) -> None:
    group.add_command(grant, "grant-permission", SUBJECT)
    group.add_command(revoke, "revoke-permission", SUBJECT)
    group.add_command(permissions, "permissions", SUBJECT)


def add_permissions(group: Group, level: str) -> None:
    """level: what roles are granted, namespace or topic."""
    (_add_to_namespaces if level == "namespace" else _add_to_topics)(group)
