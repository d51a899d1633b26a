"""Makes the topics of a namespace tables of a session. Spark's API for Python knows data sources
but no catalogs, so what there is are temporary views: SHOW TABLES lists them, SELECT reads them."""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx.broker.scan.offsets import EARLIEST, format_offsets
from pulsarx.broker.scan.plan import Planner
from pulsarx.spark.cluster_url import read_root
from pulsarx.spark.given_offsets import boundary_of
from pulsarx.spark.options import BATCH, read_options
from pulsarx.spark.root_view import open_root
from pulsarx.spark.value_choice import SCHEMA
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from typing import Any

    from pyspark.sql import SparkSession

NAMESPACE = "public/default"
_VALUE_FORMAT, _MODE = "valueformat", "mode"  # as Spark compares names of options


def tables(
    spark: SparkSession,
    root: str | os.PathLike[str],
    *,
    namespace: str = NAMESPACE,
    prefix: str = "",
    as_of: datetime | int | str | Mapping[str, Any] | None = None,
    **options: Any,
) -> list[str]:
    """Make a temporary view of each topic of a namespace, and replace those of their names, all or
    none.

    A view is of what is published now: call it again for what came since. Topics with partitions
    are one view. With valueFormat schema the view of a topic that has no schema has its payloads,
    as of raw.

    Args:
        spark: The session.
        root: The data directory.
        namespace: `tenant/namespace`.
        prefix: The begin of the names of the views; the topic's local name follows.
        as_of: What was published before a time (a datetime with its zone, or milliseconds since
            1970), or up to what `tables_version` said; topics that it does not name are left out.
            None: now.
        **options: Those of format("pulsarx"), such as columns.

    Returns:
        The names of the views.

    Raises:
        ValueError: Two topics differ in upper and lower case alone, which Spark's names do not;
            as_of names a topic that is not there any more; or an option is wrong.
        FolderError: There is no such folder.
    """
    own = sorted({"root", "topic", "topics", "topicspattern"} & {name.lower() for name in options})
    if own:
        raise ValueError(f"tables: {', '.join(own)} is no option here; each view has its own")
    path = read_root(root)
    texts = {name: str(value) for name, value in options.items()}
    read_options({"root": path, "topic": "any", **texts}, BATCH)
    found = _topics(path, namespace)
    ends: dict[str, dict[str, str]] = {name: {} for name in found}
    if as_of is not None:
        ends = _ends(path, found, as_of)
    views = {name: prefix + TopicName.of(name).local_name for name in ends}
    seen: dict[str, str] = {}
    for name, view in views.items():
        if view.lower() in seen:
            raise ValueError(
                f"{name} and {seen[view.lower()]} would be one view, for Spark does not tell upper "
                "and lower case apart. Read them with read_topic"
            )
        seen[view.lower()] = name
    bare = _without_schema(path, views) if _is_by_schema(options) else set()
    frames = []
    for name in views:
        chosen = _as_payloads(options) if name in bare else options
        given = {**chosen, **ends[name], "root": path, "topic": name}
        try:
            frames.append(spark.read.format("pulsarx").options(**given).load())
        except Exception as error:
            _tell(name, given)
            error.add_note(f"tables: this is of {name}; no view was made or replaced")
            raise
    # Behind all that can be refused: a session is left with the views of one call.
    for view, frame in zip(views.values(), frames):
        frame.createOrReplaceTempView("`" + view.replace("`", "``") + "`")
    return list(views.values())


def tables_version(root: str | os.PathLike[str], *, namespace: str = NAMESPACE) -> str:
    """Return how far the topics of a namespace are now, as text: `tables(as_of=...)` reads up to
    there, for as long as retention keeps it, and so does option endingOffsets.

    Args:
        root: The data directory, or the URL of an object store.
        namespace: `tenant/namespace`.

    Raises:
        FolderError: There is no such folder.
    """
    path = read_root(root)
    names = _topics(path, namespace)
    broker = open_root(path)
    try:
        return format_offsets(Planner(broker, names).latest()) if names else "{}"
    finally:
        broker.close()


def _tell(name: str, options: Mapping[str, Any]) -> None:
    """Raise what is wrong with a view, by the topic: Spark's error has it in a worker's traceback,
    and does not say which of the topics it is of."""
    from pulsarx.spark.data_source import PulsarxDataSource

    try:
        PulsarxDataSource({key: str(value) for key, value in options.items()}).schema()
    except (errors.PulsarException, ValueError) as error:
        text = f"tables: {name}: {errors.detail_of(error)}. No view was made or replaced"
        if isinstance(error, errors.PulsarException):
            raise errors.remade(type(error), text, errors.attributes_of(error)) from None
        raise ValueError(text) from None


def _is_by_schema(options: Mapping[str, Any]) -> bool:
    found = {name.lower(): value for name, value in options.items()}
    return str(found.get(_VALUE_FORMAT)).strip().lower() == SCHEMA


def _as_payloads(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options without those that decode the value."""
    return {
        name: value for name, value in options.items() if name.lower() not in (_VALUE_FORMAT, _MODE)
    }


def _without_schema(root: str, names: Iterable[str]) -> set[str]:
    broker = open_root(root)
    try:
        return {name for name in names if not broker.schemas.versions(TopicName.of(name))}
    finally:
        broker.close()


def _topics(root: str, namespace: str) -> list[str]:
    """Whole topics, by their full names. TopicNotFound: there is no such namespace."""
    broker = open_root(root)
    try:
        state = broker.catalogue.state
        if namespace not in state.namespaces:
            raise errors.TopicNotFound(
                detail=f"{root} has no namespace {namespace!r:.200}; it has "
                f"{', '.join(sorted(state.namespaces)[:5])}"
            )
        found = []
        for text in state.topics:
            name = TopicName.of(text)
            is_partition = name.partition_index >= 0 and name.partitioned_name in state.topics
            if name.namespace_name != namespace or not name.persistent or is_partition:
                continue
            if not name.is_system:
                found.append(text)
        return sorted(found)
    finally:
        broker.close()


def _is_version(text: str) -> bool:
    import json

    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _ends(root: str, names: list[str], as_of: Any) -> dict[str, dict[str, str]]:
    """The options that end each topic's view there."""
    import json

    if isinstance(as_of, str) and not _is_version(as_of):
        raise ValueError(
            f"as_of is {as_of!r:.200}; give a datetime, milliseconds since 1970, or what "
            "tables_version said"
        )
    broker = open_root(root)
    try:
        parts = {name: Planner(broker, name).topics for name in names}
    finally:
        broker.close()
    if isinstance(as_of, str) and not json.loads(as_of):
        return {}
    known = [part for each in parts.values() for part in each]
    place = boundary_of(as_of, known)
    if isinstance(place, int):
        return {name: {"endingTimestamp": str(place)} for name in names}
    gone = sorted(set(place).difference(known))
    if gone:
        raise ValueError(
            f"as_of names {', '.join(gone[:5])}, which is not in {root} (any more). Leave it out"
        )
    found = {}
    for name, mine in parts.items():
        # A partition that came later has had no message then.
        ends = {part: place.get(part, EARLIEST) for part in mine}
        if any(part in place for part in mine):
            found[name] = {"endingOffsets": json.dumps(ends)}
    return found
