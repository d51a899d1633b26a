"""The texts of errors, what else they carry, and how they travel."""

from __future__ import annotations

import concurrent.futures
import copy
import errno
import inspect
import logging
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess, run_program

import pulsarx
from pulsarx import errors
from pulsarx.testing import fault_plan

OFFICIAL = {  # class: what its text is in the official client, behind "Pulsar error: "
    "AlreadyClosed": "AlreadyClosed",
    "AuthenticationError": "AuthenticationError",
    "AuthorizationError": "AuthorizationError",
    "BrokerMetadataError": "BrokerMetadataError",
    "BrokerPersistenceError": "BrokerPersistenceError",
    "ChecksumError": "ChecksumError",
    "ConnectError": "ConnectError",
    "ConsumerAssignError": "ResultConsumerAssignError",
    "ConsumerBusy": "ConsumerBusy",
    "ConsumerNotFound": "ConsumerNotFound",
    "ConsumerNotInitialized": "ConsumerNotInitialized",
    "CryptoError": "CryptoError",
    "CumulativeAcknowledgementNotAllowedError": "ResultCumulativeAcknowledgementNotAllowedError",
    "ErrorGettingAuthenticationData": "ErrorGettingAuthenticationData",
    "IncompatibleSchema": "IncompatibleSchema",
    "Interrupted": "ResultInterrupted",
    "InvalidConfiguration": "InvalidConfiguration",
    "InvalidMessage": "InvalidMessage",
    "InvalidTopicName": "InvalidTopicName",
    "InvalidTxnStatusError": "ResultInvalidTxnStatusError",
    "InvalidUrl": "InvalidUrl",
    "LookupError": "LookupError",
    "MemoryBufferIsFull": "ResultMemoryBufferIsFull",
    "MessageTooBig": "MessageTooBig",
    "NotAllowedError": "ResultNotAllowedError",
    "NotConnected": "NotConnected",
    "OperationNotSupported": "OperationNotSupported",
    "ProducerBlockedQuotaExceededError": "ProducerBlockedQuotaExceededError",
    "ProducerBlockedQuotaExceededException": "ProducerBlockedQuotaExceededException",
    "ProducerBusy": "ProducerBusy",
    "ProducerFenced": "ResultProducerFenced",
    "ProducerNotInitialized": "ProducerNotInitialized",
    "ProducerQueueIsFull": "ProducerQueueIsFull",
    "ReadError": "ReadError",
    "ServiceUnitNotReady": "ServiceUnitNotReady",
    "SubscriptionNotFound": "SubscriptionNotFound",
    "Timeout": "TimeOut",
    "TooManyLookupRequestException": "TooManyLookupRequestException",
    "TopicNotFound": "TopicNotFound",
    "TopicTerminated": "TopicTerminated",
    "TransactionConflict": "ResultTransactionConflict",
    "TransactionCoordinatorNotFoundError": "ResultTransactionCoordinatorNotFoundError",
    "TransactionNotFound": "ResultTransactionNotFound",
    "UnknownError": "UnknownError",
    "UnsupportedVersionError": "UnsupportedVersionError",
}
OWN = {  # class: what its text begins with, before the sentence
    "StorageError": "BrokerPersistenceError",
    "StorageFullError": "BrokerPersistenceError",
    "LedgerPoisonedError": "BrokerPersistenceError",
    "CorruptDataError": "BrokerPersistenceError",
    "UnreadableEntryError": "BrokerPersistenceError",
    "DataLossError": "BrokerPersistenceError",
    "CatalogueError": "BrokerMetadataError",
    "FolderOwnedError": "ConnectError",
    "FolderError": "ConnectError",
    "NewerFormatError": "UnsupportedVersionError",
    "ForkedError": "AlreadyClosed",
    "TransactionHasOperationFailed": "TransactionHasOperationFailed",
    "InternalError": "UnknownError",
}
SENTENCE = "read entry 3 of ledger 17: it is not there"


def the_class(name: str) -> type[pulsarx.PulsarException]:
    found: type[pulsarx.PulsarException] = getattr(pulsarx, name)
    return found


def raised_by(call: Callable[[], object]) -> pulsarx.PulsarException:
    with pytest.raises(pulsarx.PulsarException) as caught:
        call()
    return caught.value


def test_the_tables_of_this_file_name_every_class() -> None:
    rest = {"PulsarException", "InterruptedByKeyboard"}
    assert {*OFFICIAL, *OWN, *rest} == set(errors.__all__)
    assert len(OFFICIAL) == 45


@pytest.mark.parametrize("name", errors.__all__)
def test_each_is_one_class_wherever_it_is_named(name: str) -> None:
    kind = the_class(name)
    assert getattr(errors, name) is kind and name in dir(errors) and name in dir(pulsarx)
    assert (kind.__module__, kind.__qualname__) == ("pulsarx.errors", name)


AT_THE_END = """
import sys
import pulsarx

class Late:
    def __init__(self):
        self.itself = self
        self.client = pulsarx.Client("memory:")
        self.producer = self.client.create_producer("t")

    def __del__(self):
        names = "AlreadyClosed", "Timeout", "CorruptDataError", "ForkedError", "MessageTooBig"
        print(sys.meta_path is None, *(getattr(pulsarx, each).__name__ for each in names))
        print(pulsarx.errors.ForkedError.__mro__[1] is pulsarx.AlreadyClosed)
        print(pulsarx.errors.forked_error(1).owner_pid, pulsarx.InitialPosition.Latest)
        try:
            self.producer.send(b"late")
        except (pulsarx.Timeout, pulsarx.AlreadyClosed) as error:
            print(error)

late = Late()
"""


@pytest.mark.parametrize("loaded", ["", "pulsarx.Timeout\n"])
def test_finalizers_raise_and_catch_when_the_interpreter_ends(loaded: str) -> None:
    """Each name that the program had not used before was an ImportError then: sys.meta_path is
    None, Python is likely shutting down."""
    assert run_program(AT_THE_END + loaded) == [
        "True AlreadyClosed Timeout CorruptDataError ForkedError MessageTooBig",
        "True",
        "1 InitialPosition.Latest",
        "Pulsar error: AlreadyClosed",
    ]


CALLS_AT_THE_END = """
import sys
import pulsarx

class Late:
    def __init__(self, where):
        self.itself = self
        self.client = pulsarx.Client(where)
        self.producer = self.client.create_producer("t")
        self.consumer = self.client.subscribe("t", "s")
        self.reader = self.client.create_reader("t", pulsarx.MessageId.earliest)
        self.id = self.producer.send(b"1")

    def __del__(self):
        calls = [
            (self.producer.send, b"late"), (self.producer.flush,),
            (self.consumer.receive, 0), (self.consumer.acknowledge, self.id),
            (self.consumer.batch_receive,), (self.consumer.seek, 0), (self.consumer.unsubscribe,),
            (self.reader.read_next, 0), (self.reader.has_message_available,),
            (self.client.create_producer, "u"), (self.client.subscribe, "u", "s"),
            (self.producer.close,), (self.consumer.close,), (self.reader.close,),
            (self.client.close,),
        ]
        for call, *arguments in calls:
            try:
                call(*arguments)
            except pulsarx.PulsarException as error:
                print(type(error).__name__)
        print("over")

late = Late(sys.argv[1])
if sys.argv[2] == "closed":
    late.client.close()
"""


@pytest.mark.parametrize("kind", ["memory", "folder", "guest"])
@pytest.mark.parametrize("closed", ["closed", "open"])
def test_calls_of_finalizers_end_when_the_interpreter_ends(
    kind: str, closed: str, folder: Path
) -> None:
    """A reader of a client that the program had not closed waited for ever, for a thread that was
    gone; beside the owner of the folder what closing imports was an ImportError."""
    where = "memory:" if kind == "memory" else folder
    with ExitStack() as owner:
        if kind == "guest":
            owner.enter_context(pulsarx.Client(folder))
        *told, last = run_program(CALLS_AT_THE_END, where, closed)
    assert last == "over"
    if closed == "closed":  # closing a producer, consumer or reader again is none
        assert told == ["AlreadyClosed"] * 12


CLOSE_AT_THE_END = """
import sys
import pulsarx

class Late:
    def __init__(self, where):
        self.itself = self
        self.client = pulsarx.Client(where)
        self.producer = self.client.create_producer("t")

    def __del__(self):
        self.producer.close()
        self.client.close()
        print("over")

late = Late(sys.argv[1])
"""


def test_a_finalizer_closes_a_producer_where_nobody_subscribed(folder: Path) -> None:
    """Closing it asked whether processes of the last owner are awaited, and imported that."""
    assert run_program(CLOSE_AT_THE_END, folder) == ["over"]


def test_a_class_that_there_is_not_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Timeoot'"):
        _ = errors.Timeoot  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", OFFICIAL)
def test_the_text_is_that_of_the_official_client(name: str) -> None:
    error, text = the_class(name)(detail=SENTENCE), f"Pulsar error: {OFFICIAL[name]}"
    assert str(error) == str(the_class(name)(detail="")) == text
    assert error.args == (text,)
    assert repr(error) == f"{name}({text!r})"
    assert error.detail == SENTENCE
    assert traceback.format_exception_only(error)[-1] == f"{SENTENCE}\n"


@pytest.mark.parametrize("name", OWN)
def test_what_only_pulsarx_raises_keeps_its_sentence(name: str) -> None:
    error = the_class(name)(detail=SENTENCE)
    assert str(error) == f"Pulsar error: {OWN[name]}: {SENTENCE}"
    assert error.detail == SENTENCE
    assert "".join(traceback.format_exception_only(error)).count(SENTENCE) == 1


def test_an_interrupt_by_the_keyboard_has_the_text_of_an_interrupt() -> None:
    error = errors.InterruptedByKeyboard(detail=SENTENCE)
    assert str(error) == "Pulsar error: ResultInterrupted"
    assert error.detail == SENTENCE


def test_an_error_without_a_detail_has_no_note() -> None:
    error = pulsarx.Timeout(detail="")
    assert error.detail == ""
    assert not hasattr(error, "__notes__")


def test_the_text_given_as_the_detail_is_no_detail() -> None:
    """As that of an error that another process had from a program."""
    error = pulsarx.Timeout(detail="Pulsar error: TimeOut")
    assert (str(error), error.detail) == ("Pulsar error: TimeOut", "")


@pytest.mark.parametrize("args", [(), ("x",), ("x", 3), (None,), (3,), ("Pulsar error: TimeOut",)])
@pytest.mark.parametrize("name", errors.__all__)
def test_an_error_that_a_program_makes_is_as_any_exception(
    name: str, args: tuple[object, ...]
) -> None:
    """As in the official client: fakes and wrappers of programs raise them with texts of their
    own, which they look for afterwards."""
    made, plain = the_class(name)(*args), Exception(*args)
    for error in (made, pickle.loads(pickle.dumps(made)), copy.copy(made)):
        assert type(error) is the_class(name)
        assert (str(error), error.args) == (str(plain), args)
        assert repr(error) == repr(plain).replace("Exception", name, 1)
        assert (error.detail, hasattr(error, "__notes__")) == ("", False)


def test_the_text_of_a_program_is_what_others_are_told() -> None:
    assert errors.detail_of(pulsarx.Timeout("x")) == "x"
    assert errors.detail_of(pulsarx.Timeout(detail="y")) == "y"


def test_a_program_derives_an_error_with_a_text_of_its_own() -> None:
    class Refused(pulsarx.PulsarException):
        def __init__(self, code: int, text: str) -> None:
            super().__init__(text)
            self.code = code

    error = copy.copy(Refused(3, "no"))
    assert (str(error), error.code) == ("no", 3)
    assert str(pulsarx.PulsarException("no")) == "no"


# Errors of calls ----------------------------------------------------------------------------------


def test_a_receive_that_times_out_is_compared_by_its_text(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe("t", "s")
    error = raised_by(lambda: consumer.receive(0))
    assert str(error) == "Pulsar error: TimeOut"
    assert error.detail == "no message on persistent://public/default/t within 0 ms"


def test_an_error_of_the_core_has_the_detail_beside_its_text(
    memory_client: pulsarx.Client,
) -> None:
    memory_client.close()
    error = raised_by(lambda: memory_client.create_producer("t"))
    assert str(error) == "Pulsar error: AlreadyClosed"
    assert error.detail


def test_an_error_in_an_error_is_told_once(memory_client: pulsarx.Client) -> None:
    """Its text used to stand in the middle of that of the other."""
    policy = pulsarx.ConsumerDeadLetterPolicy(3)
    error = raised_by(
        lambda: memory_client.subscribe(
            "t", "a/b", pulsarx.ConsumerType.Shared, dead_letter_policy=policy
        )
    )
    assert str(error) == "Pulsar error: InvalidTopicName"
    assert "Pulsar error" not in error.detail
    assert "has 4 parts" in error.detail


def test_a_name_of_pulsar_1_says_what_to_leave_out(memory_client: pulsarx.Client) -> None:
    name = "persistent://public/standalone/default/t"
    error = raised_by(lambda: memory_client.create_producer(name))
    assert type(error) is errors.InvalidTopicName
    assert "leave out the cluster" in error.detail


def test_a_bad_url_is_a_value_error_too() -> None:
    with pytest.raises(ValueError) as caught:
        pulsarx.Client("http://")
    assert isinstance(caught.value, errors.InvalidUrl)
    assert str(caught.value) == "Pulsar error: InvalidUrl" and caught.value.detail


# Attributes ---------------------------------------------------------------------------------------


def test_an_owned_folder_says_who_owns_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    program = (
        "import sys, pulsarx; c = pulsarx.Client(sys.argv[1]); print('up', flush=True); input()"
    )
    with ChildProcess(program, folder) as owner:
        assert owner.line() == "up"
        error = raised_by(lambda: pulsarx.Client(folder, exclusive=True))
        assert isinstance(error, pulsarx.FolderOwnedError)
        assert (error.pid, error.folder) == (owner.pid, os.path.realpath(folder))
        assert str(owner.pid) in str(error)


def test_options_that_disagree_are_told_with_both_values(tmp_path: Path) -> None:
    """The error used to name the options alone, and of broker options not even the name."""
    mine = pulsarx.BrokerOptions(max_message_size=7000)
    with pulsarx.Client(tmp_path / "data", durability="os"):
        error = raised_by(
            lambda: pulsarx.Client(tmp_path / "data", durability="sync", broker_options=mine)
        )
    assert isinstance(error, pulsarx.InvalidConfiguration)
    assert error.conflicts == {
        "durability": ("sync", "os"),
        "max_message_size": (7000, 5_242_880),
    }
    assert "durability='os', not 'sync'" in error.detail
    assert "max_message_size=5242880, not 7000" in error.detail


def test_a_message_that_is_too_big_says_by_how_much() -> None:
    options = pulsarx.BrokerOptions(max_message_size=100)
    with pulsarx.Client("memory:", broker_options=options) as client:
        producer = client.create_producer("t")
        error = raised_by(lambda: producer.send(bytes(101)))
    assert isinstance(error, pulsarx.MessageTooBig)
    assert (error.size, error.max_size) == (101, 100)


def test_what_the_system_refused_has_its_number(tmp_path: Path) -> None:
    with pulsarx.Client(tmp_path / "data") as client, fault_plan() as plan:
        producer = client.create_producer("t")
        plan.fail("write", error=errno.ENOSPC)
        error = raised_by(lambda: producer.send(b"1"))
    assert isinstance(error, pulsarx.StorageFullError)
    assert error.errno == errno.ENOSPC


def test_a_forked_child_learns_who_opened_the_client(tmp_path: Path) -> None:
    program = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
consumer = client.subscribe("t", "s")
child = os.fork()
if child == 0:
    try:
        consumer.receive()
    except pulsarx.ForkedError as error:
        os._exit(error.owner_pid == os.getppid() and str(error.owner_pid) in str(error))
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_program(program, tmp_path / "data") == ["1"]


# On the way ---------------------------------------------------------------------------------------

COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda error: pickle.loads(pickle.dumps(error)),
    "pickle 0": lambda error: pickle.loads(pickle.dumps(error, protocol=0)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "again": errors.again,
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", errors.__all__)
def test_a_copy_is_the_same_error(name: str, way: str) -> None:
    kind = the_class(name)
    error = kind(detail=SENTENCE, **dict.fromkeys(kind._attributes, 5))
    error.add_note("while counting")
    other = COPIES[way](error)
    assert type(other) is kind
    assert other is not error
    assert (str(other), other.args, other.detail) == (str(error), error.args, SENTENCE)
    assert other.__notes__ == error.__notes__
    assert (
        errors.attributes_of(other)
        == errors.attributes_of(error)
        == dict.fromkeys(kind._attributes, 5)
    )
    other.add_note("and more")
    assert len(error.__notes__) == len(other.__notes__) - 1


def test_an_error_comes_back_from_a_process_pool() -> None:
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        error = pool.submit(time_out).exception()
    assert isinstance(error, pulsarx.Timeout)
    assert str(error) == "Pulsar error: TimeOut"
    assert error.detail == "no message on persistent://public/default/t within 0 ms"
    assert error.detail in error.__notes__


def time_out() -> None:
    with pulsarx.Client("memory:") as client:
        client.subscribe("t", "s").receive(0)


def test_a_future_has_the_detail(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe("t", "s")
    future = consumer.receive_async()
    consumer.close()
    error = future.exception()
    assert isinstance(error, pulsarx.AlreadyClosed)
    assert str(error) == "Pulsar error: AlreadyClosed"
    assert error.detail


def test_an_error_of_the_owner_comes_whole_over_its_socket(tmp_path: Path) -> None:
    with pulsarx.Client(tmp_path / "data"):
        program = """
import sys, pulsarx
from pulsarx.broker.requests.owner_request import ask_owner
try:
    ask_owner(sys.argv[1], "topics.stats", {"topic": "nowhere"})
except pulsarx.TopicNotFound as error:
    print(error)
    print(error.detail)
    print(error.__notes__ == [error.detail])
"""
        told = run_program(program, tmp_path / "data")
    assert told[0] == "Pulsar error: TopicNotFound"
    assert "nowhere" in told[1]
    assert "Pulsar error" not in told[1]
    assert told[2] == "True"


def test_attributes_are_rebuilt_from_those_the_class_has() -> None:
    owned = errors.FolderOwnedError(detail="owned", folder="/f", pid=7)
    told = errors.attributes_of(owned)
    assert told == {"folder": "/f", "pid": 7}
    other = errors.remade(type(owned), owned.detail, {**told, "detail": "forged", "newer": 1})
    assert isinstance(other, pulsarx.FolderOwnedError)
    assert (str(other), other.pid, other.folder) == (str(owned), 7, "/f")
    assert not hasattr(other, "newer")
    assert errors.remade(pulsarx.Timeout, "late", "no attributes").detail == "late"


def test_a_traceback_shows_the_detail() -> None:
    program = """
import pulsarx
pulsarx.Client("memory:").subscribe("t", "s").receive(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-2:] == [
        "pulsarx.errors.Timeout: Pulsar error: TimeOut",
        "no message on persistent://public/default/t within 0 ms",
    ]


def test_logs_tell_the_detail(caplog: pytest.LogCaptureFixture) -> None:
    """The text of the official client alone says nothing of what happened where."""
    from pulsarx.broker.topics.policy_checks import tell

    class Topic:
        name, is_gone = "t", False

    with caplog.at_level(logging.ERROR, "pulsarx"):
        topic: Any = Topic()
        tell(pulsarx.NotAllowedError(detail=SENTENCE), topic)
    assert caplog.messages == [f"t: its policies: {SENTENCE}"]


# Long arguments -----------------------------------------------------------------------------------


class Huge:
    def __repr__(self) -> str:
        return "huge" * 1_000_000


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x" * 1_000_000, f"'{'x' * 200}'... (1000000 characters)"),
        (b"x" * 1_000_000, f"b'{'x' * 200}'... (1000000 bytes)"),
        (Huge(), f"{'huge' * 50}... (4000000 characters)"),
        (Unprintable(), "a Unprintable"),
        (1 << 100_000, "an integer of 100001 bits"),
        (-5, "-5"),
        ("short", "'short'"),
    ],
    ids=["str", "bytes", "object", "unprintable", "int", "negative", "short"],
)
def test_an_argument_is_shown_shortened(value: object, shown: str) -> None:
    assert errors.shown(value) == shown


def test_a_long_detail_is_cut_in_its_middle() -> None:
    error = pulsarx.NotAllowedError(detail=f"begins {'x' * 1_000_000} ends")
    assert error.detail.startswith("begins xx")
    assert error.detail.endswith("xx ends")
    assert "(996012 characters left out)" in error.detail
    assert len(error.detail) < 5000


LONG: dict[str, Any] = {
    "str": "x" * 1_000_000,
    "topic": f"persistent://public/default/{'x' * 1_000_000}",
    "bytes": b"x" * 1_000_000,
    "list": ["x" * 1_000_000],
    "dict": {"x" * 1_000_000: "x" * 1_000_000},
    "bad dict": {"x" * 1_000_000: 1},
    "int": 1 << 100_000,
    "negative": -(1 << 100_000),
    "object": Huge(),
    "unprintable": Unprintable(),
}
CALLS = ["Client", "create_producer", "subscribe", "create_reader", "create_table_view", "send"]


@pytest.mark.parametrize("value", LONG)
@pytest.mark.parametrize("call", CALLS)
def test_no_argument_makes_a_long_error(
    memory_client: pulsarx.Client, call: str, value: str
) -> None:
    """A topic name or a value of a megabyte used to be in the error as a whole."""
    producer = memory_client.create_producer("t")
    calls: dict[str, Callable[..., Any]] = {
        "Client": pulsarx.Client,
        "send": producer.send,
        **{name: getattr(memory_client, name) for name in CALLS[1:-1]},
    }
    needed = {
        "Client": {"service_url": "memory:long"},
        "create_producer": {"topic": "t"},
        "subscribe": {"topic": "t", "subscription_name": "s"},
        "create_reader": {"topic": "t", "start_message_id": pulsarx.MessageId.earliest},
        "create_table_view": {"topic": "t"},
        "send": {"content": b""},
    }
    for name in inspect.signature(calls[call]).parameters:
        try:
            made = calls[call](**{**needed[call], name: LONG[value]})
        except Exception as error:
            told = "".join(traceback.format_exception_only(error))
            assert len(told) < 10_000, (name, told[:300])
        else:
            if hasattr(made, "close"):
                made.close()
