"""Facts about the enumerations; each was probed on the official client."""

from __future__ import annotations

import pickle

import pytest

from pulsarx import enumerations, errors
from pulsarx.enumerations import (
    ConsumerType,
    Enumeration,
    InitialPosition,
    SchemaType,
)
from pulsarx.results import Result, result_of

OFFICIAL = {
    "BatchingType": "Default=0, KeyBased=1",
    "CompressionType": "NONE=0, LZ4=1, ZLib=2, ZSTD=3, SNAPPY=4",
    "ConsumerCryptoFailureAction": "FAIL=0, DISCARD=1, CONSUME=2",
    "ConsumerType": "Exclusive=0, Shared=1, Failover=2, KeyShared=3",
    "InitialPosition": "Latest=0, Earliest=1",
    "KeySharedMode": "AutoSplit=0, Sticky=1",
    "LoggerLevel": "Debug=0, Info=1, Warn=2, Error=3",
    "PartitionsRoutingMode": "UseSinglePartition=0, RoundRobinDistribution=1, CustomPartition=2",
    "ProducerAccessMode": "Shared=0, Exclusive=1, WaitForExclusive=2, ExclusiveWithFencing=3",
    "RegexSubscriptionMode": "PersistentOnly=0, NonPersistentOnly=1, AllTopics=2",
    "Result": "Ok=0, UnknownError=1, InvalidConfiguration=2, Timeout=3, LookupError=4, "
    "ConnectError=5, ReadError=6, AuthenticationError=7, AuthorizationError=8, "
    "ErrorGettingAuthenticationData=9, BrokerMetadataError=10, BrokerPersistenceError=11, "
    "ChecksumError=12, ConsumerBusy=13, NotConnected=14, AlreadyClosed=15, InvalidMessage=16, "
    "ConsumerNotInitialized=17, ProducerNotInitialized=18, ProducerBusy=19, "
    "TooManyLookupRequestException=20, InvalidTopicName=21, InvalidUrl=22, "
    "ServiceUnitNotReady=23, OperationNotSupported=24, ProducerBlockedQuotaExceededError=25, "
    "ProducerBlockedQuotaExceededException=26, ProducerQueueIsFull=27, MessageTooBig=28, "
    "TopicNotFound=29, SubscriptionNotFound=30, ConsumerNotFound=31, UnsupportedVersionError=32, "
    "TopicTerminated=33, CryptoError=34, IncompatibleSchema=35, ConsumerAssignError=36, "
    "CumulativeAcknowledgementNotAllowedError=37, TransactionCoordinatorNotFoundError=38, "
    "InvalidTxnStatusError=39, NotAllowedError=40, TransactionConflict=41, "
    "TransactionNotFound=42, ProducerFenced=43, MemoryBufferIsFull=44, Interrupted=45",
    "SchemaType": "AUTO_PUBLISH=-4, AUTO_CONSUME=-3, BYTES=-1, NONE=0, STRING=1, JSON=2, "
    "PROTOBUF=3, AVRO=4, INT8=6, INT16=7, INT32=8, INT64=9, FLOAT=10, DOUBLE=11, KEY_VALUE=15, "
    "PROTOBUF_NATIVE=20, "
    # Of other official clients
    "BOOLEAN=5, DATE=12, TIME=13, TIMESTAMP=14, INSTANT=16, LOCAL_DATE=17, LOCAL_TIME=18, "
    "LOCAL_DATE_TIME=19, EXTERNAL=22",
}


@pytest.mark.parametrize("name", OFFICIAL)
def test_names_and_numbers_are_the_official_ones(name: str) -> None:
    kind = Result if name == "Result" else getattr(enumerations, name)
    assert ", ".join(f"{m}={v.value}" for m, v in kind.__members__.items()) == OFFICIAL[name]
    for member_name, member in kind.__members__.items():
        assert getattr(kind, member_name) is member
        assert kind(member.value) is member
        assert isinstance(member, kind)


def test_texts() -> None:
    assert str(ConsumerType.Shared) == f"{ConsumerType.Shared}" == "ConsumerType.Shared"
    assert repr(ConsumerType.Shared) == "<ConsumerType.Shared: 1>"
    assert ConsumerType.Shared.name == "Shared"
    assert ConsumerType.Shared.value == 1


def test_a_member_is_its_number() -> None:
    assert ConsumerType.Shared == 1
    assert ConsumerType.Shared == InitialPosition.Earliest
    assert ConsumerType.Shared != 2
    assert ConsumerType.Shared != "Shared"
    assert ConsumerType.Shared != None
    assert int(ConsumerType.KeyShared) == 3
    assert [10, 20, 30][ConsumerType.Failover] == 30
    assert hash(SchemaType.BYTES) == hash(-1)
    assert {ConsumerType.Shared: "x"}[1] == "x"  # type: ignore[index]
    assert bool(ConsumerType.Exclusive)


def test_unknown_numbers_are_accepted() -> None:
    unknown = ConsumerType(99)
    assert unknown.name == "???"
    assert unknown.value == 99
    assert repr(unknown) == "<ConsumerType.???: 99>"
    assert pickle.loads(pickle.dumps(unknown)) == unknown
    assert "???" not in ConsumerType.__members__


def test_members_make_members() -> None:
    assert ConsumerType(ConsumerType.Shared) is ConsumerType.Shared
    assert ConsumerType(True) is ConsumerType.Shared
    assert ConsumerType(value=1) is ConsumerType.Shared


@pytest.mark.parametrize("wrong", ["Shared", None, 1.0, -1])
def test_what_is_no_number_is_a_type_error(wrong: object) -> None:
    with pytest.raises(TypeError):
        ConsumerType(wrong)  # type: ignore[arg-type]


def test_members_have_no_order_and_the_class_is_not_iterable() -> None:
    with pytest.raises(TypeError):
        ConsumerType.Shared < ConsumerType.Failover  # type: ignore[operator]
    with pytest.raises(TypeError):
        ConsumerType.Shared < 2  # type: ignore[operator]
    with pytest.raises(TypeError):
        list(ConsumerType)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        ConsumerType["Shared"]  # type: ignore[misc]


def test_members_cannot_be_changed() -> None:
    for name in ("value", "name", "foo", "_value"):
        with pytest.raises(AttributeError):
            setattr(ConsumerType.Shared, name, 3)
    with pytest.raises(AttributeError):
        del ConsumerType.Shared._value


def test_members_survive_pickling_as_themselves() -> None:
    for kind in Enumeration.__subclasses__():
        for member in kind.__members__.values():
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                assert pickle.loads(pickle.dumps(member, protocol)) is member


def test_every_exception_has_its_result() -> None:
    for name, result in Result.__members__.items():
        if name != "Ok":
            assert result_of(getattr(errors, name)()) is result
    assert result_of(errors.StorageFullError()) is Result.BrokerPersistenceError
    assert result_of(errors.ForkedError()) is Result.AlreadyClosed
    assert result_of(LookupError()) is Result.UnknownError
