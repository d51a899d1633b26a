"""The enumerations of the official client, which are not `enum.Enum`. Any layer may use them.

A member equals its number and hashes as it, members have no order, and the class is not iterable:
`__members__` lists them. The class takes any number from 0 up; an unknown one is called `???`.
"""

from __future__ import annotations

from operator import index
from types import MappingProxyType

from pulsarx.errors import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import ClassVar, Self, SupportsIndex


class Enumeration:
    """Base of the enumerations: a subclass annotates its members, numbered from 0 unless told."""

    __slots__ = ("_name", "_value")

    __members__: ClassVar[Mapping[str, Self]]
    _by_value: ClassVar[dict[int, Enumeration]] = {}
    _name: str
    _value: int

    def __init_subclass__(cls, values: tuple[int, ...] | None = None) -> None:
        names = tuple(cls.__annotations__)
        members: dict[str, Self] = {}
        cls._by_value = {}
        for name, value in zip(names, values or range(len(names)), strict=True):
            member: Self = object.__new__(cls)  # type: ignore[assignment]  # mypy: no Self here
            object.__setattr__(member, "_name", name)
            object.__setattr__(member, "_value", value)
            members[name] = member
            cls._by_value[value] = member
            setattr(cls, name, member)
        cls.__members__ = MappingProxyType(members)

    def __new__(cls, value: SupportsIndex) -> Self:
        try:
            number = index(value)
        except TypeError:
            raise TypeError(
                f"{cls.__name__} takes an int, not {type(value).__name__}: {shown(value)}"
            ) from None
        known = cls._by_value.get(number)
        if known is not None:
            return known  # type: ignore[return-value]  # a subclass holds members of its own
        if number < 0:
            raise TypeError(f"{cls.__name__} takes no negative number: {number}")
        made = object.__new__(cls)
        object.__setattr__(made, "_name", "???")
        object.__setattr__(made, "_value", number)
        return made

    @property
    def name(self) -> str:
        """The name of the member; `???` of an unknown number."""
        return self._name

    @property
    def value(self) -> int:
        """The number of the member."""
        return self._value

    def __int__(self) -> int:
        return self._value

    def __index__(self) -> int:
        return self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self._value == (other._value if isinstance(other, Enumeration) else other)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{self} cannot be changed")

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self._name}"

    def __repr__(self) -> str:
        return f"<{self}: {self._value}>"

    def __reduce__(self) -> tuple[type[Self], tuple[int]]:
        return type(self), (self._value,)


class BatchingType(Enumeration):
    """The ways a producer puts messages together into batches."""

    __slots__ = ()
    Default: ClassVar[BatchingType]
    KeyBased: ClassVar[BatchingType]


class CompressionType(Enumeration):
    """The ways a producer compresses the payload of an entry."""

    __slots__ = ()
    NONE: ClassVar[CompressionType]
    LZ4: ClassVar[CompressionType]
    ZLib: ClassVar[CompressionType]
    ZSTD: ClassVar[CompressionType]
    SNAPPY: ClassVar[CompressionType]


class ConsumerCryptoFailureAction(Enumeration):
    """The ways a consumer treats a message that cannot be decrypted."""

    __slots__ = ()
    FAIL: ClassVar[ConsumerCryptoFailureAction]
    DISCARD: ClassVar[ConsumerCryptoFailureAction]
    CONSUME: ClassVar[ConsumerCryptoFailureAction]


class ConsumerType(Enumeration):
    """The types of a subscription: the ways its consumers share its messages."""

    __slots__ = ()
    Exclusive: ClassVar[ConsumerType]
    Shared: ClassVar[ConsumerType]
    Failover: ClassVar[ConsumerType]
    KeyShared: ClassVar[ConsumerType]


class InitialPosition(Enumeration):
    """The position at which a new subscription begins."""

    __slots__ = ()
    Latest: ClassVar[InitialPosition]
    Earliest: ClassVar[InitialPosition]


class KeySharedMode(Enumeration):
    """The modes of Key_Shared: the broker or the consumer decides which keys a consumer gets."""

    __slots__ = ()
    AutoSplit: ClassVar[KeySharedMode]
    Sticky: ClassVar[KeySharedMode]


class LoggerLevel(Enumeration):
    """The level from which on something is logged."""

    __slots__ = ()
    Debug: ClassVar[LoggerLevel]
    Info: ClassVar[LoggerLevel]
    Warn: ClassVar[LoggerLevel]
    Error: ClassVar[LoggerLevel]


class PartitionsRoutingMode(Enumeration):
    """The ways to choose the partition of a message without key."""

    __slots__ = ()
    UseSinglePartition: ClassVar[PartitionsRoutingMode]
    RoundRobinDistribution: ClassVar[PartitionsRoutingMode]
    CustomPartition: ClassVar[PartitionsRoutingMode]


class ProducerAccessMode(Enumeration):
    """The access of a producer: others may publish on its topic at the same time, or not."""

    __slots__ = ()
    Shared: ClassVar[ProducerAccessMode]
    Exclusive: ClassVar[ProducerAccessMode]
    WaitForExclusive: ClassVar[ProducerAccessMode]
    ExclusiveWithFencing: ClassVar[ProducerAccessMode]


class RegexSubscriptionMode(Enumeration):
    """The kinds of topics that a pattern may match."""

    __slots__ = ()
    PersistentOnly: ClassVar[RegexSubscriptionMode]
    NonPersistentOnly: ClassVar[RegexSubscriptionMode]
    AllTopics: ClassVar[RegexSubscriptionMode]


_SCHEMA_TYPE_VALUES = (
    *(-4, -3, -1, 0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 15, 20),
    *(5, 12, 13, 14, 16, 17, 18, 19, 22),
)


class SchemaType(Enumeration, values=_SCHEMA_TYPE_VALUES):
    """The types of a schema. The numbers are Pulsar's and have gaps. Those behind PROTOBUF_NATIVE
    are of other clients than the official Python client: topics have them, and values of them are
    not read here."""

    __slots__ = ()
    AUTO_PUBLISH: ClassVar[SchemaType]
    AUTO_CONSUME: ClassVar[SchemaType]
    BYTES: ClassVar[SchemaType]
    NONE: ClassVar[SchemaType]
    STRING: ClassVar[SchemaType]
    JSON: ClassVar[SchemaType]
    PROTOBUF: ClassVar[SchemaType]
    AVRO: ClassVar[SchemaType]
    INT8: ClassVar[SchemaType]
    INT16: ClassVar[SchemaType]
    INT32: ClassVar[SchemaType]
    INT64: ClassVar[SchemaType]
    FLOAT: ClassVar[SchemaType]
    DOUBLE: ClassVar[SchemaType]
    KEY_VALUE: ClassVar[SchemaType]
    PROTOBUF_NATIVE: ClassVar[SchemaType]
    BOOLEAN: ClassVar[SchemaType]
    DATE: ClassVar[SchemaType]
    TIME: ClassVar[SchemaType]
    TIMESTAMP: ClassVar[SchemaType]
    INSTANT: ClassVar[SchemaType]
    LOCAL_DATE: ClassVar[SchemaType]
    LOCAL_TIME: ClassVar[SchemaType]
    LOCAL_DATE_TIME: ClassVar[SchemaType]
    EXTERNAL: ClassVar[SchemaType]


class HashingScheme(Enumeration):
    """The hashes by which a key chooses its partition. Not in the official Python client, whose
    producers use BoostHash."""

    __slots__ = ()
    JavaStringHash: ClassVar[HashingScheme]
    Murmur3_32Hash: ClassVar[HashingScheme]
    BoostHash: ClassVar[HashingScheme]


class SubscriptionMode(Enumeration):
    """The modes of a subscription: it outlives its consumers, or not. Not in the official Python
    client."""

    __slots__ = ()
    Durable: ClassVar[SubscriptionMode]
    NonDurable: ClassVar[SubscriptionMode]


class TransactionState(Enumeration):
    """The states of a transaction, as its client sees it."""

    __slots__ = ()
    OPEN: ClassVar[TransactionState]
    COMMITTING: ClassVar[TransactionState]
    ABORTING: ClassVar[TransactionState]
    COMMITTED: ClassVar[TransactionState]
    ABORTED: ClassVar[TransactionState]
    ERROR: ClassVar[TransactionState]
    TIME_OUT: ClassVar[TransactionState]
