"""Clients of a cluster, as far as they need no broker: there is none behind their URL."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import errors
from pulsarx.cluster import official
from pulsarx.cluster.cluster_client import ClusterClient
from pulsarx.cluster.cluster_consumer import ClusterConsumer
from pulsarx.cluster.cluster_message import ClusterMessage, ValueReader
from pulsarx.cluster.cluster_producer import ClusterProducer
from pulsarx.cluster.cluster_reader import ClusterReader
from pulsarx.cluster.cluster_table_view import ClusterTableView
from pulsarx.options import routes
from pulsarx.options.base import ClientOptions
from pulsarx.options.members import ConsumerOptions, ProducerOptions, ReaderOptions
from pulsarx.producing.partitioned_producer import PartitionedProducer
from pulsarx.schema import KeyValueSchema, StringSchema

_pulsar = pytest.importorskip("_pulsar")

URL = "pulsar://127.0.0.1:1"  # where nobody listens

# Calls of the bases that work by what the classes of a cluster give them.
WORKING = {
    "attach",  # a client of folders alone calls it
    "is_let_go",  # as well
    "keep",  # as well
    "close",
    "close_with_client",
    "consumer_name",
    "events",
    "for_each",
    "let_go",
    "letters",
    "owner",
    "subscription_name",
    "to_arrow",
    "topic",
    "unsubscribe",
}


class Events:
    def became_active(self, consumer: Any, partition: int) -> None: ...

    def became_inactive(self, consumer: Any, partition: int) -> None: ...


@pytest.fixture
def client() -> Any:
    quiet = pulsarx.FileLogger(pulsarx.LoggerLevel.Error, "/dev/null")
    with pulsarx.Client(URL, operation_timeout_seconds=1, logger=quiet) as made:
        yield made


# Opening ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", [URL, "PULSAR://h:1", "pulsar+ssl://h:1", "http://h:1", "https://h"]
)
def test_the_url_of_a_cluster_makes_a_client_of_it(url: str) -> None:
    with pulsarx.Client(url) as client:
        assert isinstance(client, pulsarx.Client)
        assert isinstance(client, ClusterClient)
        assert url.lower() in repr(client).lower()


@pytest.mark.standard
def test_nobody_behind_the_port_is_an_error_of_ours(client: Any) -> None:
    for call in (
        lambda: client.create_producer("topic"),
        lambda: client.subscribe("topic", "subscription"),
        lambda: client.create_reader("topic", pulsarx.MessageId.earliest),
        lambda: client.create_table_view("topic"),
        lambda: client.get_topic_partitions("topic"),
    ):
        with pytest.raises((pulsarx.ConnectError, pulsarx.Timeout, pulsarx.NotConnected)) as caught:
            call()
        assert isinstance(caught.value.__cause__, _pulsar.PulsarException)
        assert str(caught.value) == str(caught.value.__cause__)
        assert "topic" in caught.value.detail or URL in caught.value.detail


def test_a_closed_client_says_so() -> None:
    client = pulsarx.Client(URL)
    client.close()
    with pytest.raises(pulsarx.AlreadyClosed):
        client.create_producer("topic")
    with pytest.raises(pulsarx.AlreadyClosed):
        client.close()


def test_without_the_package_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(official, "_loaded", None)
    monkeypatch.setitem(sys.modules, "_pulsar", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'pulsarx[pulsar]'")):
        pulsarx.Client(URL)


def test_a_route_goes_before_the_cluster(tmp_path: Path) -> None:
    routes.add({URL: (str(tmp_path / "folder"), None)}, None)
    try:
        with pulsarx.Client(URL) as client:
            assert not isinstance(client, ClusterClient)
            assert (tmp_path / "folder").is_dir()
    finally:
        routes.clear()


def test_where_pulsarx_stands_in_no_cluster_is_connected_to() -> None:
    program = (
        "import pulsarx\npulsarx.install_as_pulsar({})\nimport pulsar\n"
        "try:\n    pulsar.Client('pulsar://127.0.0.1:1')\n"
        "except pulsar.OperationNotSupported as error:\n    print(error.detail)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "no route leads from it" in ran.stdout, ran.stderr


def test_opening_a_folder_loads_nothing_of_it() -> None:
    program = (
        "import sys, pulsarx\nclient = pulsarx.Client('memory:')\n"
        "client.create_producer('t').send(b'')\nclient.close()\n"
        "print([name for name in sys.modules if 'cluster' in name or name == '_pulsar'])\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.strip() == "[]", ran.stderr


@pytest.mark.parametrize(
    "option",
    [
        {"clock": pulsarx.ManualClock()},
        {"durability": "os"},
        {"flush_interval_ms": 5},
        {"broker_options": pulsarx.BrokerOptions()},
        {"read_only": True},
        {"memory_limit_bytes": 1},
    ],
)
def test_options_of_folders_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(pulsarx.OperationNotSupported) as caught:
        pulsarx.Client(URL, **option)
    assert next(iter(option)) in caught.value.detail


@pytest.mark.parametrize(
    "option",
    [
        {"retry_enable": True},
        {"nack_backoff": pulsarx.MultiplierRedeliveryBackoff()},
        {"ack_timeout_tick_ms": 100},
        {"priority_level": 1},
        {"topic_priorities": {"topic": 0}},
        {"subscription_mode": pulsarx.SubscriptionMode.NonDurable},
        {"consumer_event_listener": Events()},
        {"expire_time_of_incomplete_chunked_message_ms": 1},
    ],
)
def test_options_that_the_official_client_lacks_are_refused(
    client: Any, option: dict[str, Any]
) -> None:
    with pytest.raises(pulsarx.OperationNotSupported) as caught:
        client.subscribe("topic", "subscription", **option)
    assert next(iter(option)) in caught.value.detail


def test_what_cannot_be_asked_of_a_cluster_is_refused(client: Any) -> None:
    for call in (
        lambda: client.admin,
        lambda: client.create_producer(
            "topic", hashing_scheme=pulsarx.HashingScheme.Murmur3_32Hash
        ),
        lambda: client.create_producer(
            "topic", schema=KeyValueSchema(StringSchema(), StringSchema())
        ),
        lambda: client.subscribe(re.compile("t.*", re.IGNORECASE), "subscription"),
    ):
        with pytest.raises(pulsarx.OperationNotSupported, match="OperationNotSupported"):
            call()


def test_arguments_are_checked_as_for_folders(client: Any) -> None:
    with pytest.raises(ValueError, match="batching_max_messages"):
        client.create_producer("topic", batching_max_messages=1)
    with pytest.raises(ValueError, match="io_threads"):
        pulsarx.Client(URL, io_threads="1")  # type: ignore[arg-type]
    for topics in (["a", "b"], re.compile("persistent://public/default/.*")):
        with pytest.raises(errors.InvalidConfiguration, match="InvalidConfiguration"):
            client.subscribe(topics, "s", receiver_queue_size=0)  # nobody is asked


def test_coroutines_and_functions_are_for_folders() -> None:
    from pulsarx import aio

    with pytest.raises(pulsarx.OperationNotSupported) as caught:
        aio.Client(URL)
    assert "only pulsarx.Client works" in caught.value.detail


# Mapping ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        "BatchingType",
        "CompressionType",
        "ConsumerCryptoFailureAction",
        "ConsumerType",
        "InitialPosition",
        "KeySharedMode",
        "LoggerLevel",
        "PartitionsRoutingMode",
        "ProducerAccessMode",
        "RegexSubscriptionMode",
        "SchemaType",
    ],
)
def test_members_of_enumerations_map_to_the_same_names(kind: str) -> None:
    from pulsarx import enumerations

    ours = dict(getattr(enumerations, kind).__members__)
    if kind == "SchemaType":  # those of other clients come last, by number alone
        for name in list(ours)[list(ours).index("PROTOBUF_NATIVE") + 1 :]:
            each = ours.pop(name)
            assert int(official.enumeration(each)) == int(each)
    assert {official.enumeration(each).name for each in ours.values()} == set(ours)
    assert set(getattr(_pulsar, kind).__members__) == set(ours)


def test_every_error_maps_to_the_one_of_its_name() -> None:
    official.native()
    kinds = [
        each
        for each in vars(_pulsar).values()
        if isinstance(each, type) and issubclass(each, _pulsar.PulsarException)
    ]
    assert len(kinds) > 40
    for kind in kinds:

        def fail(kind: type[Exception] = kind) -> None:
            raise kind("native")

        with pytest.raises(getattr(errors, kind.__name__)) as caught:
            official.call("where", fail)
        assert type(caught.value.__cause__) is kind


def test_every_result_maps_to_the_one_of_its_name() -> None:
    for name, result in _pulsar.Result.__members__.items():
        assert official.result_of(result) is pulsarx.Result.__members__[name]


@pytest.mark.parametrize(
    "message_id",
    [
        pulsarx.MessageId.earliest,
        pulsarx.MessageId.latest,
        pulsarx.MessageId(-1, 1, 2),
        pulsarx.MessageId(3, 1, 2, 4),
    ],
)
def test_ids_go_both_ways(message_id: pulsarx.MessageId) -> None:
    there = official.native_id_of(message_id)
    assert (there.ledger_id(), there.entry_id()) == (message_id.ledger_id(), message_id.entry_id())
    assert (there.partition(), there.batch_index()) == (
        message_id.partition(),
        message_id.batch_index(),
    )
    assert official.id_of(there) == message_id


class Recorder:
    """A configuration of the official client that notes what was set; there is nothing else."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.told: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        getattr(self.kind, name)  # AttributeError, as there
        self.told.add(name)
        return lambda *_: self


KEYS = pulsarx.CryptoKeyReader("public", "private")
GIVEN: dict[str, tuple[Any, Any]] = {  # with each option that none stands for
    "Client": (
        official.client_configuration,
        lambda: ClientOptions(
            service_url="memory:",
            authentication=pulsarx.AuthenticationToken("secret"),
            logger=pulsarx.ConsoleLogger(),
            listener_name="l",
            tls_private_key_file_path="key",
            tls_certificate_file_path="certificate",
        ),
    ),
    "Producer": (
        official.producer_configuration,
        lambda: ProducerOptions(
            topic="t",
            producer_name="p",
            initial_sequence_id=0,
            properties={"a": "b"},
            encryption_key="k",
            crypto_key_reader=KEYS,
        ),
    ),
    "Consumer": (
        official.consumer_configuration,
        lambda: ConsumerOptions(
            topic="t",
            subscription_name="s",
            consumer_name="c",
            unacked_messages_timeout_ms=10_000,
            properties={"a": "b"},
            crypto_key_reader=KEYS,
            batch_receive_policy=pulsarx.ConsumerBatchReceivePolicy(1, 2, 3),
            key_shared_policy=pulsarx.ConsumerKeySharedPolicy(),
            dead_letter_policy=pulsarx.ConsumerDeadLetterPolicy(4),
        ),
    ),
    "Reader": (
        official.reader_configuration,
        lambda: ReaderOptions(
            topic="t",
            start_message_id=pulsarx.MessageId.earliest,
            reader_name="r",
            subscription_role_prefix="p",
            crypto_key_reader=KEYS,
        ),
    ),
}
# What our calls set themselves, or set one of.
LEFT = {"message_listener", "message_router", "reader_listener", "set_file_logger", "set_logger"}


@pytest.mark.parametrize("kind", GIVEN)
def test_whatever_the_official_client_can_set_is_set(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    native = getattr(_pulsar, f"{kind}Configuration")
    made = Recorder(native)
    monkeypatch.setattr(_pulsar, f"{kind}Configuration", lambda: made)
    configure, options = GIVEN[kind]
    configure(options())
    known = {name for name in vars(native) if not name.startswith("_")}
    assert made.told == known - LEFT


def test_options_of_a_producer_arrive() -> None:
    options = ProducerOptions(
        topic="t",
        producer_name="p",
        schema=StringSchema(),
        initial_sequence_id=0,
        send_timeout_millis=7,
        compression_type=pulsarx.CompressionType.ZSTD,
        max_pending_messages=8,
        block_if_queue_full=True,
        batching_enabled=True,
        batching_max_messages=9,
        batching_max_publish_delay_ms=10,
        batching_type=pulsarx.BatchingType.KeyBased,
        access_mode=pulsarx.ProducerAccessMode.Exclusive,
        message_routing_mode=pulsarx.PartitionsRoutingMode.UseSinglePartition,
    )
    conf = official.producer_configuration(options)
    assert conf.producer_name() == "p"
    assert conf.initial_sequence_id() == 0
    assert conf.send_timeout_millis() == 7
    assert conf.compression_type() == _pulsar.CompressionType.ZSTD
    assert conf.max_pending_messages() == 8
    assert conf.block_if_queue_full() and conf.batching_enabled()
    assert conf.batching_max_messages() == 9
    assert conf.batching_max_publish_delay_ms() == 10
    assert conf.batching_type() == _pulsar.BatchingType.KeyBased
    assert conf.access_mode() == _pulsar.ProducerAccessMode.Exclusive
    assert conf.partitions_routing_mode() == _pulsar.PartitionsRoutingMode.UseSinglePartition
    assert conf.schema().schema_type() == _pulsar.SchemaType.STRING


def test_options_of_a_consumer_arrive() -> None:
    options = ConsumerOptions(
        topic="t",
        subscription_name="s",
        consumer_type=pulsarx.ConsumerType.Failover,
        receiver_queue_size=5,
        unacked_messages_timeout_ms=10_000,
        negative_ack_redelivery_delay_ms=6,
        is_read_compacted=True,
        initial_position=pulsarx.InitialPosition.Earliest,
        start_message_id_inclusive=True,
        batch_index_ack_enabled=True,
        batch_receive_policy=pulsarx.ConsumerBatchReceivePolicy(1, 2, 3),
        key_shared_policy=pulsarx.ConsumerKeySharedPolicy(
            pulsarx.KeySharedMode.Sticky, True, [(0, 9)]
        ),
        dead_letter_policy=pulsarx.ConsumerDeadLetterPolicy(4, "letters", "first"),
    )
    conf = official.consumer_configuration(options)
    assert conf.consumer_type() == _pulsar.ConsumerType.Failover
    assert conf.receiver_queue_size() == 5
    assert conf.unacked_messages_timeout_ms() == 10_000
    assert conf.negative_ack_redelivery_delay_ms() == 6
    assert conf.read_compacted() and conf.start_message_id_inclusive()
    assert conf.batch_index_ack_enabled()
    assert conf.subscription_initial_position() == _pulsar.InitialPosition.Earliest
    batch = conf.batch_receive_policy()
    assert (batch.getMaxNumMessages(), batch.getMaxNumBytes(), batch.getTimeoutMs()) == (1, 2, 3)
    shared = conf.key_shared_policy()
    assert shared.get_key_shared_mode() == _pulsar.KeySharedMode.Sticky
    assert shared.get_sticky_ranges() == [(0, 9)] and shared.is_allow_out_of_order_delivery()
    letters = conf.dead_letter_policy()
    assert letters.getMaxRedeliverCount() == 4
    assert (letters.getDeadLetterTopic(), letters.getInitialSubscriptionName()) == (
        "letters",
        "first",
    )


def test_options_of_a_reader_arrive() -> None:
    options = ReaderOptions(
        topic="t",
        start_message_id=pulsarx.MessageId.earliest,
        receiver_queue_size=5,
        reader_name="r",
        subscription_role_prefix="prefix",
        is_read_compacted=True,
        start_message_id_inclusive=True,
        crypto_failure_action=pulsarx.ConsumerCryptoFailureAction.DISCARD,
    )
    conf = official.reader_configuration(options)
    assert (conf.reader_name(), conf.subscription_role_prefix()) == ("r", "prefix")
    assert conf.receiver_queue_size() == 5
    assert conf.read_compacted() and conf.start_message_id_inclusive()
    assert conf.crypto_failure_action() == _pulsar.ConsumerCryptoFailureAction.DISCARD


@pytest.mark.parametrize(
    ("given", "method"),
    [
        (pulsarx.AuthenticationToken("secret"), "token"),
        (pulsarx.AuthenticationToken(lambda: "secret"), "token"),
        (pulsarx.AuthenticationTLS("certificate", "key"), "tls"),
        (pulsarx.AuthenticationBasic("user", "secret"), "basic"),
        (pulsarx.AuthenticationBasic("user", "secret", "mine"), "mine"),
        (pulsarx.Authentication("token", "token:secret"), "token"),
    ],
)
def test_authentication_arrives(given: Any, method: str) -> None:
    assert official.authentication(given).getAuthMethodName() == method


# Messages -----------------------------------------------------------------------------------------


def _message(content: bytes | None, **fields: Any) -> ClusterMessage:
    builder = official.native().MessageBuilder()
    builder.set_null_value() if content is None else builder.content(content)
    for name, value in fields.items():
        getattr(builder, name)(value)
    return ClusterMessage(builder.build(), ValueReader(None, StringSchema()))


def test_a_message_has_the_calls_of_ours() -> None:
    calls = [name for name in dir(pulsarx.Message) if not name.startswith("_")]
    assert [name for name in calls if not hasattr(ClusterMessage, name)] == []


def test_lists_of_messages_are_looked_at_at_once() -> None:
    messages = [_message(b"a", partition_key="k"), _message(b"b")]
    assert ClusterMessage.payloads(messages) == pulsarx.Message.payloads(messages) == [b"a", b"b"]
    assert ClusterMessage.keys(messages) == ["k", ""]
    assert ClusterMessage.ids(messages) == [each.message_id() for each in messages]


def test_a_message_tells_what_it_holds() -> None:
    message = _message(
        b"text", properties={"a": "b"}, partition_key="k", ordering_key="o", event_timestamp=5
    )
    assert (message.data(), message.value(), message.size()) == (b"text", "text", 4)
    assert message.properties() == {"a": "b"}
    assert (message.partition_key(), message.ordering_key()) == ("k", "o")
    assert message.has_key() and message.event_timestamp() == 5
    assert message.encryption_context() is None
    assert _message(None).has_null_value() and _message(None).value() == ""
    for call in (message.key_bytes, message.has_base64_encoded_key, message.sequence_id):
        with pytest.raises(pulsarx.OperationNotSupported):
            call()


def test_a_producer_has_the_calls_of_ours() -> None:
    both = set(dir(pulsarx.Producer)) & set(dir(PartitionedProducer))
    own = {"encode_by", "send_async_described"}  # which the library itself calls
    calls = {name for name in both if not name.startswith("_")} - own
    assert {name for name in calls if not hasattr(ClusterProducer, name)} == set()


def test_no_call_of_a_base_is_left_that_reaches_for_a_broker() -> None:
    for kind, base in (
        (ClusterConsumer, pulsarx.Consumer),
        (ClusterReader, pulsarx.Reader),
        (ClusterTableView, pulsarx.TableView),
    ):
        calls = {name for name in vars(base) if not name.startswith("_")}
        calls -= {"declared_calls", "declaring_class", "calls_of_core"}  # which are none
        inherited = {name for name in calls if getattr(kind, name) is getattr(base, name)}
        assert inherited <= WORKING, kind
