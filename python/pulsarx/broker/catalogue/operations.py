"""The operations a commit is made of, one function each, in two tables: here that of the folder's,
in `topic_operations` that of topics'. Used by Catalogue alone.

They change a CatalogueDraft, never the state: a commit is published whole or not at all. Each
checks what it is given, so that neither a caller nor a file can bring the state out of order. Kinds
of fields: id from 1 up, count from 0 up, integer, text (not empty), string (which may be empty),
flag, object (text to anything), ids, texts, rows (text to a list), list, value.
"""

from __future__ import annotations

from pulsarx.broker.catalogue.draft import (
    POLICY,
    CatalogueDraft,
    is_ids,
    is_integer,
    namespace_if_any,
    namespace_of,
    policies_with,
)
from pulsarx.errors import CatalogueError, NewerFormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.catalogue.draft import Operation


def apply_operations(draft: CatalogueDraft, operations: list[Operation]) -> None:
    """Apply all of them.

    NewerFormatError: one this version does not know. CatalogueError: one that does not fit.
    """
    for operation in operations:
        if not isinstance(operation, dict):
            raise CatalogueError(detail=f"an operation is an object and not {operation!r}")
        name = operation.get("op")
        known = _operation(name) if isinstance(name, str) else None
        if known is None:
            raise NewerFormatError(
                detail=f"operation {name!r} is not known to this version of PulsarX"
            )
        function, required, optional = known
        function(draft, _fields(operation, required, optional))


def _fields(
    operation: Operation, required: dict[str, str], optional: dict[str, tuple[str, Any]]
) -> Operation:
    """The fields of an operation with the defaults filled in, each of its kind."""
    found = {}
    for name, kind in required.items():
        if name not in operation:
            raise CatalogueError(detail=f"operation {operation['op']}: {name} is missing")
        found[name] = _checked(operation, name, kind)
    given = len(found)
    for name, (kind, default) in optional.items():
        if name in operation:
            found[name] = _checked(operation, name, kind)
            given += 1
        else:
            found[name] = default
    if given + 1 == len(operation):
        return found  # these, and `op`
    for name in operation:
        if name not in found and name != "op":
            # A newer version gave the operation a meaning that this one would silently lose.
            raise NewerFormatError(
                detail=f"operation {operation['op']}: field {name!r} is not known to this version "
                "of PulsarX"
            )
    return found


def _checked(operation: Operation, name: str, kind: str) -> Any:
    value = operation[name]
    if not _KINDS[kind](value):
        raise CatalogueError(detail=f"operation {operation['op']}: {name} {value!r} is no {kind}")
    return value


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one for one in value)


def _is_object(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "id": lambda value: is_integer(value) and value > 0,
    "count": lambda value: is_integer(value) and value >= 0,
    "integer": is_integer,
    "text": lambda value: isinstance(value, str) and value != "",
    "string": lambda value: isinstance(value, str),
    "flag": lambda value: isinstance(value, bool),
    "object": _is_object,
    "ids": is_ids,
    "texts": _is_texts,
    "list": lambda value: isinstance(value, list),
    "rows": lambda value: (
        _is_object(value) and all(isinstance(one, list) for one in value.values())
    ),
    "value": lambda value: True,
}


def _open_epoch(draft: CatalogueDraft, fields: Operation) -> None:
    if fields["epoch"] <= draft.epoch:
        raise CatalogueError(
            detail=f"epoch {fields['epoch']} does not come after epoch {draft.epoch}"
        )
    draft.epoch = fields["epoch"]


def _create_tenant(draft: CatalogueDraft, fields: Operation) -> None:
    tenant = fields["tenant"]
    if _tenant(draft, tenant) is not None:
        raise CatalogueError(detail=f"tenant {tenant} exists already")
    draft.tenants[tenant] = fields["properties"]


def _tenant(draft: CatalogueDraft, name: str) -> dict[str, Any] | None:
    return draft.tenants[name] if name in draft.tenants else draft.state.tenants.get(name)


def _update_tenant(draft: CatalogueDraft, fields: Operation) -> None:
    if _tenant(draft, fields["tenant"]) is None:
        raise CatalogueError(detail=f"there is no tenant {fields['tenant']}")
    draft.tenants[fields["tenant"]] = fields["properties"]


def _delete_tenant(draft: CatalogueDraft, fields: Operation) -> None:
    tenant = fields["tenant"]
    if _tenant(draft, tenant) is None:
        raise CatalogueError(detail=f"there is no tenant {tenant}")
    for name in [*draft.state.namespaces, *draft.namespaces]:
        if name.startswith(f"{tenant}/") and namespace_if_any(draft, name) is not None:
            raise CatalogueError(detail=f"tenant {tenant} has namespace {name}")
    draft.tenants[tenant] = None


def _create_namespace(draft: CatalogueDraft, fields: Operation) -> None:
    name = fields["namespace"]
    tenant, _, local = name.partition("/")
    if not local or "/" in local:
        raise CatalogueError(detail=f"{name!r} is no namespace; it is tenant/namespace")
    if _tenant(draft, tenant) is None:
        raise CatalogueError(detail=f"namespace {name}: there is no tenant {tenant}")
    if namespace_if_any(draft, name) is not None:
        raise CatalogueError(detail=f"namespace {name} exists already")
    draft.namespaces[name] = fields["policies"]


def _delete_namespace(draft: CatalogueDraft, fields: Operation) -> None:
    name = fields["namespace"]
    namespace_of(draft, name)
    for topic in [*draft.state.topics, *draft.topics]:
        if topic.partition("://")[2].startswith(f"{name}/") and draft.topic_if_any(topic):
            raise CatalogueError(detail=f"namespace {name} has topic {topic}")
    draft.namespaces[name] = None
    draft.changes_policies = True


def _set_namespace_policy(draft: CatalogueDraft, fields: Operation) -> None:
    name = fields["namespace"]
    draft.namespaces[name] = policies_with(namespace_of(draft, name), fields)
    draft.changes_policies = True


# Name of the operation: its function, the fields it must have, those it may have with their
# defaults. A default object is shared, which is safe because records do not change.
OPERATIONS: dict[
    str,
    tuple[Callable[[CatalogueDraft, Operation], None], dict[str, str], dict[str, tuple[str, Any]]],
] = {
    "open_epoch": (_open_epoch, {"epoch": "id"}, {}),
    "create_tenant": (_create_tenant, {"tenant": "text"}, {"properties": ("object", {})}),
    "update_tenant": (_update_tenant, {"tenant": "text", "properties": "object"}, {}),
    "delete_tenant": (_delete_tenant, {"tenant": "text"}, {}),
    "create_namespace": (_create_namespace, {"namespace": "text"}, {"policies": ("object", {})}),
    "delete_namespace": (_delete_namespace, {"namespace": "text"}, {}),
    "set_namespace_policy": (_set_namespace_policy, {"namespace": "text", **POLICY}, {}),
}


def _operation(name: str) -> Any:
    """Its row of the tables; None: it is not known."""
    found = OPERATIONS.get(name)
    if found is None:  # a new folder needs none of those of topics
        from pulsarx.broker.catalogue.topic_operations import TOPIC_OPERATIONS

        found = TOPIC_OPERATIONS.get(name)
    return found


# They take away, or lead to it: a commit of these alone, or one that begins an epoch or deletes a
# topic (a partition that is deleted is made again in it), may use the room that the folder keeps in
# reserve.
_FREEING = frozenset((
    "delete_tenant", "delete_namespace", "set_namespace_policy", "set_topic_policy",
    "expect_change_event", "forget_change_events", "delete_topic", "forget_deletions",
    "terminate_topic", "use_ledger", "seal_ledger", "remove_ledgers", "remove_subscription",
    "remove_leases", "remove_compaction", "begin_offload", "finish_offload", "forget_offloads",
))  # fmt: skip


def frees_room(operations: list[dict[str, Any]]) -> bool:
    """Whether this commit must be possible where there is no room."""
    names = [each["op"] for each in operations if each["op"] != "end_transaction"]
    if not names:
        return False
    return not {"open_epoch", "delete_topic"}.isdisjoint(names) or _FREEING.issuperset(names)
