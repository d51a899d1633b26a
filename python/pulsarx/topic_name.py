"""Topic and subscription names as Pulsar reads them. Any layer may use it; any thread.

  written                          means
  x                                persistent://public/default/x
  tenant/namespace/x               persistent://tenant/namespace/x
  domain://tenant/namespace/x      itself; domain is persistent or non-persistent
  ...-partition-3                  partition 3 of the topic before the suffix

Source: Pulsar TopicName, NamespaceName, NamedEntity.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.errors import NotAllowedError

PARTITION_SUFFIX = "-partition-"
_PARTITION_INDEX_MAX = 2**31 - 1
# Far above any name in use; bounds what one name costs the catalogue.
_NAME_SIZE_MAX = 32767
_ENTITY_CHARACTERS = frozenset(
    "-=:._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)
_RESERVED_SUBSCRIPTIONS = frozenset(("pulsar.dedup", "__compaction"))
_SYSTEM_TOPICS = frozenset(
    (
        "__change_events",
        "__transaction_buffer_snapshot",
        "__transaction_buffer_snapshot_segments",
        "__transaction_buffer_snapshot_indexes",
    )
)
SYSTEM_TENANT = "pulsar"
SYSTEM_NAMESPACE = "pulsar/system"
HEARTBEAT_NAMESPACE = "pulsar/standalone"
_PENDING_ACK_SUFFIX = "__transaction_pending_ack"
_TOPICS_OF_THE_SYSTEM = frozenset(("transaction_coordinator_assign", "resource-usage"))
_CACHED_MAX = 32_768  # of 10,000 topics both ways to write them, with room to spare


class TopicName:
    """A checked name, in parts. Immutable, so any thread may hold one; made by `TopicName.of`."""

    __slots__ = (
        "domain", "persistent", "tenant", "namespace", "namespace_name", "local_name",
        "partition_index", "full", "partitioned_name", "is_system",
    )  # fmt: skip

    domain: str
    persistent: bool
    tenant: str
    namespace: str
    namespace_name: str  # tenant and namespace, as `public/default`
    local_name: str
    partition_index: int  # -1: not a partition
    full: str  # as the catalogue and other processes know it
    partitioned_name: str  # full name of the topic this one is a partition of, or of itself
    is_system: bool  # it, or the topic it is a partition of, is Pulsar's own

    def __init__(self, domain: str, tenant: str, namespace: str, local_name: str) -> None:
        """Take parts that were checked; `of` is what checks."""
        put, shared = object.__setattr__, _texts.setdefault
        # Shared by all topics of a namespace, or partitions of a topic; not interned, for Python
        # 3.12 keeps what is for ever.
        put(self, "domain", shared(domain, domain))
        put(self, "persistent", domain == "persistent")
        put(self, "tenant", shared(tenant, tenant))
        put(self, "namespace", shared(namespace, namespace))
        name = f"{tenant}/{namespace}"
        put(self, "namespace_name", shared(name, name))
        put(self, "local_name", local_name)
        index = _partition_index_of(local_name) if PARTITION_SUFFIX in local_name else -1
        full = f"{domain}://{tenant}/{namespace}/{local_name}"
        put(self, "partition_index", index)
        put(self, "full", full)
        whole = full if index < 0 else full.rpartition(PARTITION_SUFFIX)[0]
        put(self, "partitioned_name", whole if index < 0 else shared(whole, whole))
        # Nearly none is.
        may_be = "__" in local_name or tenant == SYSTEM_TENANT
        put(self, "is_system", may_be and _is_system(self))

    @staticmethod
    def of(name: str) -> TopicName:
        """The parsed name, from a cache if it was met before.

        InvalidTopicName: not a topic name; the text says what is wrong with it.
        """
        known = _cached.get(name) if name.__class__ is str else None
        if known is not None:
            return known
        made = _parse(name)
        if len(_cached) >= _CACHED_MAX:
            _cached.clear()
            _texts.clear()
        # One object for both ways to write it.
        made = _cached[name] = _cached.setdefault(made.full, made)
        return made

    def partition(self, index: int) -> TopicName:
        """Name of one partition of this topic; of a partition: that of its sibling."""
        if index < 0 or index > _PARTITION_INDEX_MAX:
            raise errors.InvalidTopicName(detail=f"partition {index} of {self.full}: from 0 up")
        return TopicName.of(f"{self.partitioned_name}{PARTITION_SUFFIX}{index}")

    @property
    def whole(self) -> TopicName:
        """Name of the topic this one is a partition of, or itself."""
        return self if self.partition_index < 0 else TopicName.of(self.partitioned_name)

    def __str__(self) -> str:
        return self.full

    def __repr__(self) -> str:
        return f"TopicName({self.full!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicName):
            return NotImplemented
        return self.full == other.full

    def __hash__(self) -> int:
        return hash(self.full)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a TopicName does not change: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a TopicName does not change: {name}")

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return TopicName.of, (self.full,)


_cached: dict[str, TopicName] = {}
_texts: dict[str, str] = {}  # that several of them have


def check_entity_name(what: str, name: str) -> str:
    """The name of a tenant or namespace, if Pulsar allows it; else InvalidTopicName."""
    if not name:
        raise errors.InvalidTopicName(detail=f"the {what} is empty")
    if not _ENTITY_CHARACTERS.issuperset(name) or name in (".", ".."):
        raise errors.InvalidTopicName(
            detail=f"{what} {name!r}: only letters, digits and - = : . _ are allowed"
        )
    return name


def check_namespace_name(name: str) -> str:
    """`tenant/namespace`, if it is one; else InvalidTopicName."""
    tenant, slash, local = name.partition("/")
    if not slash:
        raise errors.InvalidTopicName(detail=f"namespace {_shown(name)}: write tenant/namespace")
    check_entity_name("tenant", tenant)
    check_entity_name("namespace", local)
    return name


def _is_system(name: TopicName) -> bool:
    """Source: SystemTopicNames, HeartbeatNamespaces."""
    local = name.partitioned_name.rpartition("/")[2]
    if local in _SYSTEM_TOPICS or local.endswith(_PENDING_ACK_SUFFIX):
        return True
    if name.namespace_name == SYSTEM_NAMESPACE:
        return local in _TOPICS_OF_THE_SYSTEM or local.startswith("__transaction_log_")
    return local == "healthcheck" and name.tenant == SYSTEM_TENANT


def check_is_for_users(name: TopicName) -> TopicName:
    """NotAllowedError: the topic is the system's, and users neither create it, publish to it nor
    subscribe to it."""
    if name.is_system:
        raise NotAllowedError(
            detail=f"{name} is a system topic, whose name is reserved; choose another"
        )
    return name


def check_may_be_made(name: TopicName) -> None:
    """NotAllowedError: the topic is the system's, or would be in a namespace that only the health
    check uses."""
    if name.namespace_name == HEARTBEAT_NAMESPACE:
        raise NotAllowedError(
            detail=f"create {name}: namespace {HEARTBEAT_NAMESPACE} is reserved for the health "
            "check; choose another"
        )
    if name.is_system:
        check_is_for_users(name)


def check_is_not_of_the_system(name: TopicName, action: str) -> TopicName:
    """NotAllowedError: the topic is the system's, which users read and nothing else. action: what
    was asked for."""
    if name.is_system:
        raise NotAllowedError(
            detail=f"{action} {name}: it is a system topic, which the broker writes itself"
        )
    return name


def check_keeps_messages(name: TopicName) -> TopicName:
    """OperationNotSupported: it is non-persistent, so there is nothing to be read or attached."""
    if not name.persistent:
        raise errors.OperationNotSupported(
            detail=f"{name}: a non-persistent topic keeps no messages, and this needs some; use a "
            "persistent one"
        )
    return name


def is_system_subscription(name: str) -> bool:
    """Whether a subscription is one that the broker keeps for itself, and users do not see."""
    return name in _RESERVED_SUBSCRIPTIONS or name.startswith("pulsar.repl")


def check_subscription_name(name: str) -> str:
    """The name of a subscription, if a user may have one of that name.

    InvalidConfiguration: empty, not text, or one that Pulsar keeps for itself.
    """
    if not isinstance(name, str):
        raise ValueError(f"a subscription name is text (str) and not {type(name).__name__}")
    if not name.strip():
        raise errors.InvalidConfiguration(detail="the subscription name is empty")
    if is_system_subscription(name):
        raise errors.InvalidConfiguration(
            detail=f"subscription name {name!r} is reserved; choose another"
        )
    flaw = _flaw_of_text(name)
    if flaw:
        raise errors.InvalidConfiguration(detail=f"subscription name {_shown(name)}: {flaw}")
    return name


def check_member_name(
    kind: str, name: str, error: type[errors.PulsarException] = errors.NotAllowedError
) -> str:
    """The name of a producer, a consumer or a reader (kind), which is kept, stored and shown.
    error: too long, or of characters that cannot be; as a rule of one that came over a
    connection."""
    flaw = _flaw_of_text(name)
    if flaw:
        raise error(detail=f"{kind} name {_shown(name)}: {flaw}")
    return name


def _parse(name: str) -> TopicName:
    if not isinstance(name, str):
        raise ValueError(f"a topic name is text (str) and not {type(name).__name__}")
    domain, mark, path = name.partition("://")
    if not mark:
        domain, path = "persistent", name
    elif domain not in ("persistent", "non-persistent"):
        raise errors.InvalidTopicName(
            detail=f"{_shown(name)}: domain {_shown(domain)} is neither persistent nor "
            "non-persistent"
        )
    parts = path.split("/")
    if not mark and len(parts) == 1:
        parts = ["public", "default", path]
    if len(parts) != 3:
        wanted = "domain://tenant/namespace/topic" if mark else "topic or tenant/namespace/topic"
        flaw = f"{_shown(name)} has {len(parts)} parts; write {wanted}"
        if len(parts) == 4:
            flaw += (
                "; tenant/cluster/namespace/topic is a name of Pulsar 1, which Pulsar 4.2 refuses "
                "too: leave out the cluster"
            )
        raise errors.InvalidTopicName(detail=flaw)
    tenant, namespace, local_name = parts
    check_entity_name("tenant", tenant)
    check_entity_name("namespace", namespace)
    if not local_name.strip():
        raise errors.InvalidTopicName(detail=f"{_shown(name)}: the topic's own name is empty")
    if local_name != local_name.strip():
        raise errors.InvalidTopicName(detail=f"{_shown(name)} starts or ends with a blank")
    flaw = _flaw_of_text(name)
    if flaw:
        raise errors.InvalidTopicName(detail=f"{_shown(name)}: {flaw}")
    return TopicName(domain, tenant, namespace, local_name)


def _flaw_of_text(name: str) -> str:
    """Say why a name cannot be stored and shown; empty: it can."""
    if not name.isprintable() and any(c < " " or "\x7f" <= c <= "\x9f" for c in name):
        return "it holds a control character"
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "it cannot be written as UTF-8"
    return "" if size <= _NAME_SIZE_MAX else f"{size} bytes; at most {_NAME_SIZE_MAX} are allowed"


def _partition_index_of(local_name: str) -> int:
    base, mark, digits = local_name.rpartition(PARTITION_SUFFIX)
    # `x-partition-03` and `x-partition-٣` are names of their own, not partition 3 of x.
    if not mark or not base or not (digits.isascii() and digits.isdigit()) or len(digits) > 10:
        return -1
    index = int(digits)
    return index if index <= _PARTITION_INDEX_MAX and str(index) == digits else -1


def _shown(name: str) -> str:
    return repr(name if len(name) <= 200 else f"{name[:200]}...")
