"""`pulsarx namespaces`: the commands of `pulsar-admin namespaces`, and policies of namespaces."""

from __future__ import annotations

from pulsarx.cli.command import command
from pulsarx.cli.declared import Group, argument, option
from pulsarx.cli.permissions import add_permissions
from pulsarx.cli.policies import add_policies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.cli.folder import Folder

_namespace = argument("namespace")


namespaces: Group = Group(
    "Administer namespaces, and the policies that hold for all topics of one."
)


@command("pulsarx namespaces list public", watched=True)
@argument("tenant", default="public")
def list_namespaces(folder: Folder, tenant: str) -> None:
    """List the namespaces of a tenant."""
    names = folder.admin().namespaces.get_namespaces(tenant)
    folder.output.rows(("namespace",), [{"namespace": name} for name in names])


@command("pulsarx namespaces topics public/default", watched=True)
@_namespace
def topics(folder: Folder, namespace: str) -> None:
    """List the topics of a namespace; for a partitioned topic its partitions."""
    names = folder.admin().namespaces.get_topics(namespace)
    folder.output.rows(("topic",), [{"topic": name} for name in names])


@command("pulsarx namespaces policies public/default")
@_namespace
def policies(folder: Folder, namespace: str) -> None:
    """Show the policies that are set for a namespace."""
    folder.output.record(folder.admin().namespaces.get_policies(namespace))


@command("pulsarx namespaces create public/orders")
@_namespace
def create(folder: Folder, namespace: str) -> None:
    """Create a namespace."""
    folder.admin().namespaces.create_namespace(namespace)


@command("pulsarx namespaces delete public/orders")
@_namespace
@option("-f", "--force", is_flag=True, help="With its topics.")
def delete(folder: Folder, namespace: str, force: bool) -> None:
    """Delete a namespace without topics."""
    folder.admin().namespaces.delete_namespace(namespace, force)


for _name, _command in {
    "list": list_namespaces,
    "topics": topics,
    "policies": policies,
    "create": create,
    "delete": delete,
}.items():
    namespaces.add_command(_command, _name, "Namespaces")
add_permissions(namespaces, "namespace")
add_policies(namespaces, "namespaces", "namespace")
