"""pytest fixtures for code that uses PulsarX; pytest finds them when PulsarX is installed.

A module beside the package: pytest imports it in every project, and PulsarX must not be loaded by
tests that do not use it.

fixture             what it is
pulsar_clock        a ManualClock at a fixed date: time passes when the test says so
pulsar_url          the URL of an empty broker in memory with that clock, for code that opens a
                    client
pulsar_client       a Client on that broker; closed after the test
pulsar_aio_client   an aio.Client on that broker, for whatever loop; closed after the test

marker                                      the broker of the test has
pulsar_options(max_message_size=1000)       these BrokerOptions
pulsar_partitions(orders=4)                 partitioned topics; also ({"tenant/space/orders": 4})
pulsar_namespaces("shop/eu", "shop/us")     namespaces, with their tenants
"""

from __future__ import annotations

from itertools import count

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsarx import BrokerOptions, Client, ManualClock
    from pulsarx.aio import Client as AioClient

_numbers = count(1)


def pytest_configure(config: pytest.Config) -> None:
    for each in (
        "pulsar_options(**options): the broker of the test has these BrokerOptions",
        "pulsar_partitions(topics, **topics): the broker of the test has these partitioned topics, "
        "names with their number of partitions",
        "pulsar_namespaces(*names): the broker of the test has these namespaces",
    ):
        config.addinivalue_line("markers", each)


@pytest.fixture
def pulsar_clock() -> ManualClock:
    """A clock that stands still until `pulsar_clock.advance(seconds)`, which fires all that is due
    before it returns."""
    from pulsarx import ManualClock

    return ManualClock()


@pytest.fixture
def pulsar_url(pulsar_clock: ManualClock, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a broker in memory, empty and this test's own: clients that the code under test
    opens by it have `pulsar_clock`, the options of the markers, and randomness seeded with the
    test's name, so every run of a test makes the same choices. It lives until the test ends and
    the last of them is closed."""
    from pulsarx import Client
    from pulsarx.randomness import Randomness

    # Numbered, so that whatever a test before this one left open is another broker.
    url = f"memory:pytest-{next(_numbers)}"
    client = Client(
        url,
        clock=pulsar_clock,
        randomness=Randomness(request.node.nodeid),
        broker_options=_options(request.node),
    )
    try:
        _make_namespaces(client, request.node)
        _make_partitions(client, request.node)
        yield url
    finally:
        client.shutdown()


@pytest.fixture
def pulsar_client(pulsar_url: str) -> Iterator[Client]:
    """A client of the broker of `pulsar_url`.

    Example:
        def test_an_order_arrives(pulsar_client, pulsar_clock):
            consumer = pulsar_client.subscribe("orders", "billing")
            producer = pulsar_client.create_producer("orders", batching_enabled=True)
            producer.send_async(b"one", None)
            pulsar_clock.advance(seconds=0.010)
            assert consumer.receive(timeout_millis=5000).data() == b"one"
    """
    from pulsarx import Client

    client = Client(pulsar_url)
    yield client
    client.shutdown()


@pytest.fixture
def pulsar_aio_client(pulsar_url: str) -> Iterator[AioClient]:
    """A client of asyncio on the broker of `pulsar_url`, in whatever loop the test runs."""
    from pulsarx import aio

    client = aio.Client(pulsar_url)
    yield client
    client.shutdown()


def _options(test: pytest.Item) -> BrokerOptions:
    """Collect the options of all markers; where two name the same one, the marker nearer to the
    test counts."""
    from pulsarx import BrokerOptions

    options: dict[str, object] = {}
    for marker in test.iter_markers("pulsar_options"):
        if marker.args:
            raise pytest.UsageError("pulsar_options has names only: max_message_size=1000")
        options = {**marker.kwargs, **options}
    return BrokerOptions(**options)


def _make_namespaces(client: Client, test: pytest.Item) -> None:
    admin = client.admin
    for marker in test.iter_markers("pulsar_namespaces"):
        if marker.kwargs or not all(isinstance(name, str) for name in marker.args):
            raise pytest.UsageError('pulsar_namespaces has names: "tenant/namespace"')
        for name in marker.args:
            tenant = name.partition("/")[0]
            if tenant not in admin.tenants.get_tenants():
                admin.tenants.create_tenant(tenant)
            if name not in admin.namespaces.get_namespaces(tenant):
                admin.namespaces.create_namespace(name)


def _make_partitions(client: Client, test: pytest.Item) -> None:
    topics: dict[str, int] = {}
    for marker in test.iter_markers("pulsar_partitions"):
        given = [*marker.args, marker.kwargs]
        if not all(isinstance(each, dict) for each in given):
            raise pytest.UsageError("pulsar_partitions has topics with their partitions: orders=4")
        for each in given:
            topics = {**each, **topics}
    for topic, partition_count in topics.items():
        client.admin.topics.create_partitioned_topic(topic, partition_count)
