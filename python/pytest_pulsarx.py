"""pytest fixtures for code that uses PulsarX; pytest finds them when PulsarX is installed.

A module beside the package: pytest imports it in every project, and PulsarX must not be loaded by
tests that do not use it.

fixture             what it is
pulsar_clock        a ManualClock at a fixed date: time passes when the test says so
pulsar_url          the URL of an empty broker in memory with that clock, for code that opens a
                    client
pulsar_client       a Client on that broker; closed after the test
pulsar_aio_client   an aio.Client on that broker, for whatever loop; closed after the test
pulsar_folder       the folder (pathlib.Path) of an empty broker of the test's own, for processes
                    that it starts; time is that of the system
pulsar_faults       a pulsarx.testing.FaultPlan: operations on files fail, or take long
pulsar_crash        a pulsarx.testing.CrashPlan of a folder that nobody has open yet: power cuts and
                    kills at any moment
pulsar_owner        a pulsarx.testing.OtherProcess that owns a folder, to be killed

pulsar_session_url, pulsar_session_client, pulsar_session_clock
                    a broker for all tests of a process; pulsar_session_options, to be overridden,
                    are its BrokerOptions
pulsar_module_url, pulsar_module_client, pulsar_module_clock
                    a broker for the tests of a module
pulsar_namespace    a namespace of the test's own on the broker it uses, deleted after the test
pulsar_clean        empties the broker of session or module that the test uses, after the test

marker                                      the broker of the test, or of the module, has
pulsar_options(max_message_size=1000)       these BrokerOptions
pulsar_partitions(orders=4)                 partitioned topics; also ({"tenant/space/orders": 4})
pulsar_namespaces("shop/eu", "shop/us")     namespaces, with their tenants
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pulsarx import BrokerOptions, Client, ManualClock
    from pulsarx.aio import Client as AioClient
    from pulsarx.testing import CrashPlan, FaultPlan, OtherProcess


def pytest_configure(config: pytest.Config) -> None:
    for each in (
        "pulsar_options(**options): the broker of the test has these BrokerOptions",
        "pulsar_partitions(topics, **topics): the broker of the test has these partitioned topics, "
        "names with their number of partitions",
        "pulsar_namespaces(*names): the broker of the test has these namespaces",
    ):
        config.addinivalue_line("markers", each)


# A broker of each test ----------------------------------------------------------------------------


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
    yield from _broker(request.node, pulsar_clock)


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
    yield from _client(pulsar_url)


@pytest.fixture
def pulsar_aio_client(pulsar_url: str) -> Iterator[AioClient]:
    """A client of asyncio on the broker of `pulsar_url`, in whatever loop the test runs."""
    from pulsarx import aio

    client = aio.Client(pulsar_url)
    yield client
    client.shutdown()


@pytest.fixture
def pulsar_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The folder of an empty broker of the test's own, with what the markers say: processes that
    the test starts can open it. As processes share no clock that a test could advance, time is that
    of the system."""
    from pulsarx import Client
    from pulsarx.randomness import Randomness

    folder = tmp_path / "pulsar"
    with Client(
        folder,
        randomness=Randomness(request.node.nodeid),
        broker_options=_options(request.node),
        durability="os",  # a test cuts no power
    ) as client:
        _make_namespaces(client, request.node)
        _make_partitions(client, request.node)
        yield folder


# Faults and crashes -------------------------------------------------------------------------------


@pytest.fixture
def pulsar_faults() -> Iterator[FaultPlan]:
    """A plan of faults, in force until the test ends: `pulsar_faults.fail("write", error=ENOSPC)`,
    `pulsar_faults.delay("flush", seconds=5)`. See `pulsarx.testing.fault_plan`."""
    from pulsarx.testing import fault_plan

    with fault_plan() as plan:
        yield plan


@pytest.fixture
def pulsar_crash(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CrashPlan]:
    """A plan of crashes of a folder of the test's own, `pulsar_crash.folder`, which holds what the
    markers of namespaces and partitions say. The test's name is the seed: every run has the same
    crashes. See `pulsarx.testing.crash_plan`."""
    from pulsarx import Client
    from pulsarx.testing import crash_plan

    folder = tmp_path / "pulsar"
    if _is_marked(request.node):
        with Client(folder) as client:
            _make_namespaces(client, request.node)
            _make_partitions(client, request.node)
    with crash_plan(folder, seed=request.node.nodeid) as plan:
        yield plan


@pytest.fixture
def pulsar_owner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OtherProcess]:
    """Another process, which owns a folder of the test's own, `pulsar_owner.folder`, with what the
    markers say: clients that the code under test opens there are guests, until
    `pulsar_owner.kill()`. See `pulsarx.testing.other_process`."""
    from pulsarx import Client
    from pulsarx.testing import other_process

    folder = tmp_path / "pulsar"
    with other_process(folder, broker_options=_options(request.node)) as owner:
        if _is_marked(request.node):
            with Client(folder) as client:
                _make_namespaces(client, request.node)
                _make_partitions(client, request.node)
        yield owner


def _is_marked(test: pytest.Item) -> bool:
    return any(test.get_closest_marker(name) for name in ("pulsar_namespaces", "pulsar_partitions"))


# A broker for several tests -----------------------------------------------------------------------


@pytest.fixture(scope="session")
def pulsar_session_options() -> BrokerOptions:
    """The options of the broker of `pulsar_session_url`. Override it in conftest.py."""
    from pulsarx import BrokerOptions

    return BrokerOptions()


@pytest.fixture(scope="session")
def pulsar_session_clock() -> ManualClock:
    """The clock of the broker of `pulsar_session_url`: it goes on from test to test."""
    from pulsarx import ManualClock

    return ManualClock()


@pytest.fixture(scope="session")
def pulsar_session_url(
    pulsar_session_clock: ManualClock, pulsar_session_options: BrokerOptions
) -> Iterator[str]:
    """The URL of a broker in memory for all tests of this process; of pytest-xdist each worker has
    its own. `pulsar_namespace` or `pulsar_clean` keep tests apart."""
    from pulsarx.testing import broker

    with broker(clock=pulsar_session_clock, options=pulsar_session_options) as made:
        yield made.url


@pytest.fixture(scope="session")
def pulsar_session_client(pulsar_session_url: str) -> Iterator[Client]:
    """A client of the broker of `pulsar_session_url`."""
    yield from _client(pulsar_session_url)


@pytest.fixture(scope="module")
def pulsar_module_clock() -> ManualClock:
    """The clock of the broker of `pulsar_module_url`: it goes on from test to test."""
    from pulsarx import ManualClock

    return ManualClock()


@pytest.fixture(scope="module")
def pulsar_module_url(
    pulsar_module_clock: ManualClock, request: pytest.FixtureRequest
) -> Iterator[str]:
    """The URL of a broker in memory for the tests of a module, with what the markers of the module
    (`pytestmark`) say."""
    yield from _broker(request.node, pulsar_module_clock)


@pytest.fixture(scope="module")
def pulsar_module_client(pulsar_module_url: str) -> Iterator[Client]:
    """A client of the broker of `pulsar_module_url`."""
    yield from _client(pulsar_module_url)


@pytest.fixture
def pulsar_namespace(request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, `public/testing-7`, on the broker of the session or of the
    module, if the test uses that, else on its own. It is deleted with its topics after the test."""
    from pulsarx.testing import namespace

    shared = _shared(request)
    client = shared[0] if shared else request.getfixturevalue("pulsar_client")
    with namespace(client) as name:
        yield name


@pytest.fixture
def pulsar_clean(request: pytest.FixtureRequest) -> Iterator[None]:
    """Empties the brokers of session and module that the test uses, when it has ended: see
    `pulsarx.testing.clean`. UsageError: it uses none."""
    from pulsarx.testing import clean

    shared = _shared(request)
    if not shared:
        raise pytest.UsageError(
            "pulsar_clean is for tests that use a broker of the session or of the module; "
            "that of pulsar_url is empty for each test"
        )
    yield
    for client in shared:
        clean(client)


def _shared(request: pytest.FixtureRequest) -> list[Client]:
    """Clients of the brokers that a test shares with others."""
    return [
        request.getfixturevalue(f"pulsar_{scope}_client")
        for scope in ("session", "module")
        if f"pulsar_{scope}_url" in request.fixturenames
    ]


# Making them --------------------------------------------------------------------------------------


def _broker(node: pytest.Item, clock: ManualClock) -> Iterator[str]:
    """The URL of a broker with what the markers say."""
    from pulsarx.testing import broker

    with broker(clock=clock, seed=node.nodeid, options=_options(node)) as made:
        _make_namespaces(made.client, node)
        _make_partitions(made.client, node)
        yield made.url


def _client(url: str) -> Iterator[Client]:
    from pulsarx import Client

    client = Client(url)
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
