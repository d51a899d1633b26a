"""`pulsarx schemas`: the commands of `pulsar-admin schemas`."""

from __future__ import annotations

from pulsarx.cli.command import command, topic_argument
from pulsarx.cli.declared import File, Group, UsageError, Whole, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.cli.folder import Folder
    from pulsarx.schema.schema import SchemaInfo

_file = option(
    "-f",
    "--filename",
    "file",
    type=File(),
    required=True,
    help='JSON: {"type": "AVRO", "schema": "...", "properties": {}}; - is standard input.',
)


schemas: Group = Group("Administer the schemas of topics, all their versions.")


def _fields(info: SchemaInfo) -> dict[str, Any]:
    return {
        "version": info.version(),
        "type": info.schema_type().name,
        "name": info.name(),
        "schema": info.schema(),
        "properties": info.properties(),
    }


@command("pulsarx schemas get orders --all-version")
@topic_argument
@option("-v", "--version", type=Whole(min=0), help="This one; else the last one.")
@option("-a", "--all-version", "everything", is_flag=True, help="All versions.")
def get(folder: Folder, topic: str, version: int | None, everything: bool) -> None:
    """Show the schema of a topic."""
    if version is not None and everything:
        raise UsageError("give either --version or --all-version")
    if everything:
        found = [_fields(each) for each in folder.admin().schemas.get_all_schemas(topic)]
        folder.output.rows(("version", "type", "name", "schema"), found)
        return
    folder.output.record(_fields(folder.admin().schemas.get_schema_info(topic, version)))


@command("pulsarx schemas upload orders -f order.json")
@topic_argument
@_file
def upload(folder: Folder, topic: str, file: Any) -> None:
    """Register a schema; prints its version."""
    version = folder.admin().schemas.create_schema(topic, _read(topic, file))
    folder.output.record({"version": version})


@command("pulsarx schemas compatibility orders -f order.json")
@topic_argument
@_file
def compatibility(folder: Folder, topic: str, file: Any) -> None:
    """Tell whether a schema may be the next one of a topic."""
    folder.output.record(folder.admin().schemas.test_compatibility(topic, _read(topic, file)))


@command("pulsarx schemas delete orders")
@topic_argument
def delete(folder: Folder, topic: str) -> None:
    """Delete all versions of the schema; messages stay readable."""
    folder.admin().schemas.delete_schema(topic)


def _read(topic: str, file: Any) -> SchemaInfo:
    import json

    from pulsarx.schema.schema import SchemaInfo

    try:
        document = json.loads(file.read())
        return SchemaInfo.of_document({"name": topic, **document})
    except (ValueError, KeyError, TypeError) as error:
        name = getattr(file, "name", "standard input")
        raise UsageError(f"{name} describes no schema: {error}") from None


for _name, _command in {
    "get": get,
    "upload": upload,
    "compatibility": compatibility,
    "delete": delete,
}.items():
    schemas.add_command(_command, _name)
