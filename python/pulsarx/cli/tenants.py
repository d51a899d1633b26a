"""`pulsarx tenants`: the commands of `pulsar-admin tenants`."""

from __future__ import annotations

from pulsarx.cli.command import command
from pulsarx.cli.declared import Group, argument, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.cli.folder import Folder

_tenant = argument("tenant")
_roles = option("-r", "--admin-roles", "roles", help="Names, with commas between them.")
_clusters = option("-c", "--allowed-clusters", "clusters", help="Names, with commas between them.")


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


tenants: Group = Group("Administer tenants.")


@command("pulsarx tenants list", watched=True)
def list_tenants(folder: Folder) -> None:
    """List the tenants."""
    names = folder.admin().tenants.get_tenants()
    folder.output.rows(("tenant",), [{"tenant": name} for name in names])


@command("pulsarx tenants get public")
@_tenant
def get(folder: Folder, tenant: str) -> None:
    """Show the roles and clusters of a tenant."""
    folder.output.record(folder.admin().tenants.get_tenant_info(tenant))


@command("pulsarx tenants create acme")
@_tenant
@_roles
@_clusters
def create(folder: Folder, tenant: str, roles: str | None, clusters: str | None) -> None:
    """Create a tenant. The roles administer it where a service authenticates its clients."""
    folder.admin().tenants.create_tenant(tenant, _names(roles or ""), _names(clusters or ""))


@command("pulsarx tenants update acme -r alice,bob")
@_tenant
@_roles
@_clusters
def update(folder: Folder, tenant: str, roles: str | None, clusters: str | None) -> None:
    """Change the roles or clusters of a tenant; what is not given stays."""
    known = folder.admin().tenants.get_tenant_info(tenant)
    folder.admin().tenants.update_tenant(
        tenant,
        known["admin_roles"] if roles is None else _names(roles),
        known["allowed_clusters"] if clusters is None else _names(clusters),
    )


@command("pulsarx tenants delete acme")
@_tenant
@option("-f", "--force", is_flag=True, help="With its namespaces and their topics.")
def delete(folder: Folder, tenant: str, force: bool) -> None:
    """Delete a tenant without namespaces."""
    folder.admin().tenants.delete_tenant(tenant, force)


for _name, _command in {
    "list": list_tenants,
    "get": get,
    "create": create,
    "update": update,
    "delete": delete,
}.items():
    tenants.add_command(_command, _name)
