"""Facts about the fixtures that several tests share, in one process and in several."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.standard


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project of a user, whose pytest finds the plugin as an installed PulsarX offers it."""
    pytester.makeini("[pytest]\naddopts = -p pytest_pulsarx -p no:cacheprovider --strict-markers")
    return pytester


SHARING = """
import pulsarx
import pytest
from pulsarx.testing import acknowledged, published

seen = set()

@pytest.fixture(scope="session")
def service(pulsar_session_url):
    with pulsarx.Client(pulsar_session_url) as client:
        producer = client.create_producer("orders")
        consumer = client.subscribe("orders", "billing", pulsarx.ConsumerType.Shared)
        yield producer, consumer

@pytest.mark.parametrize("number", [1, 2])
def test_a_session_is_emptied_between_tests(
    service, pulsar_session_client, pulsar_session_url, pulsar_clean, number
):
    producer, consumer = service
    seen.add(pulsar_session_url)
    assert len(seen) == 1
    producer.send(b"%d" % number)
    published(pulsar_session_client, "orders", b"%d" % number, only=True)
    assert consumer.receive(timeout_millis=60_000).data() == b"%d" % number  # stays open
    pulsar_session_client.create_producer("others").close()
    assert len(pulsar_session_client.admin.topics.get_list()) == 2

@pytest.mark.parametrize("number", [1, 2])
def test_a_test_has_a_namespace_of_its_own(pulsar_session_client, pulsar_namespace, number):
    producer = pulsar_session_client.create_producer(f"{pulsar_namespace}/orders")
    producer.send(b"%d" % number)
    published(pulsar_session_client, f"{pulsar_namespace}/orders", b"%d" % number, only=True)
    assert len(pulsar_session_client.admin.namespaces.get_namespaces("public")) == 2

def test_a_namespace_is_on_the_broker_that_the_test_uses(pulsar_client, pulsar_namespace):
    assert pulsar_namespace in pulsar_client.admin.namespaces.get_namespaces("public")

def test_the_clock_of_a_session_goes_on(pulsar_session_client, pulsar_session_clock):
    producer = pulsar_session_client.create_producer("late", batching_enabled=True)
    producer.send_async(b"one", None)
    pulsar_session_clock.advance(seconds=1)
    published(pulsar_session_client, "late", b"one")

def test_cleaning_needs_something_that_is_shared(pulsar_url, pulsar_clean): ...
"""

MODULE = """
import pytest
from pulsarx.testing import published

pytestmark = [
    pytest.mark.pulsar_options(max_message_size=100),
    pytest.mark.pulsar_partitions(orders=2),
]
urls = set()

@pytest.fixture(scope="module")
def catalogue(pulsar_module_client):
    producer = pulsar_module_client.create_producer("catalogue")
    producer.send(b"tea")
    producer.close()

@pytest.mark.parametrize("number", [1, 2])
def test_a_module_shares_its_broker(catalogue, pulsar_module_client, pulsar_module_url, number):
    urls.add(pulsar_module_url)
    assert len(urls) == 1
    published(pulsar_module_client, "catalogue", b"tea", only=True)
    assert len(pulsar_module_client.get_topic_partitions("orders")) == 2

def test_its_clock_stands_still(pulsar_module_clock, pulsar_module_url):
    assert pulsar_module_clock.now_ms() == 1_704_067_200_000
"""

OTHER_MODULE = """
import pulsarx
import pytest

def test_another_module_has_another_one(pulsar_module_client, pulsar_clean):
    assert pulsar_module_client.admin.topics.get_list() == []
    pulsar_module_client.create_producer("orders").close()

def test_which_may_be_emptied(pulsar_module_client):
    assert pulsar_module_client.admin.topics.get_list() == []
"""

CONFTEST = """
import pulsarx
import pytest

@pytest.fixture(scope="session")
def pulsar_session_options():
    return pulsarx.BrokerOptions(max_message_size=300)
"""

OPTIONS = """
import pulsarx
import pytest

def test_options_of_a_session_are_a_fixture(pulsar_session_client):
    with pytest.raises(pulsarx.MessageTooBig):
        pulsar_session_client.create_producer("orders").send(bytes(301))
"""


def test_brokers_are_shared_by_a_session_or_a_module(project: pytest.Pytester):
    project.makeconftest(CONFTEST)
    project.makepyfile(
        test_session=SHARING, test_module=MODULE, test_other=OTHER_MODULE, test_options=OPTIONS
    )
    done = project.runpytest_subprocess()
    done.assert_outcomes(passed=12, errors=1)
    done.stdout.fnmatch_lines(["*pulsar_clean is for tests that use a broker of the session*"])


WORKERS = """
import os
import subprocess
import sys

import pulsarx
import pytest
from pulsarx.testing import published

SENDS = '''
import sys, pulsarx
with pulsarx.Client(sys.argv[1]) as client:
    client.create_producer("orders").send(b"from another process")
'''

@pytest.mark.parametrize("number", range(4))
def test_each_worker_has_its_own(pulsar_folder, pulsar_session_client, pulsar_clean, number):
    worker = os.environ["PYTEST_XDIST_WORKER"]
    pulsar_session_client.create_producer("orders").send(worker.encode())
    published(pulsar_session_client, "orders", worker.encode(), only=True)
    with pulsarx.Client(pulsar_folder) as client:
        assert client.admin.topics.get_list() == []
        subprocess.run([sys.executable, "-c", SENDS, pulsar_folder], check=True)
        published(client, "orders", b"from another process", only=True)
    print("place", worker, pulsar_folder)
"""


def test_workers_of_xdist_have_brokers_and_folders_of_their_own(project: pytest.Pytester):
    pytest.importorskip("xdist")
    project.makepyfile(test_first=WORKERS, test_second=WORKERS)
    done = project.runpytest_subprocess("-n", "2", "--dist", "loadfile", "-rP")
    done.assert_outcomes(passed=8)
    places = [line.split()[1:] for line in done.outlines if line.startswith("place ")]
    assert {worker for worker, _ in places} == {"gw0", "gw1"}
    assert len({folder for _, folder in places}) == 8
    assert all(f"popen-{worker}" in folder for worker, folder in places)


EXAMPLES = """
import pulsarx
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from pulsarx.testing import broker, namespace, published

@given(st.lists(st.binary(max_size=50), max_size=20))
def test_what_is_sent_is_there(contents):
    with broker() as made:
        producer = made.client.create_producer("orders")
        for content in contents:
            producer.send(content)
        if contents:
            published(made.client, "orders", *contents, only=True)

@given(st.lists(st.binary(max_size=50), min_size=1, max_size=20))
def test_examples_may_share_a_broker(pulsar_session_client, contents):
    with namespace(pulsar_session_client) as name:
        pulsar_session_client.create_producer(f"{name}/orders").send_many(contents)
        published(pulsar_session_client, f"{name}/orders", *contents, only=True)

class Queue(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self._opened = broker()
        made = self._opened.__enter__()
        self.consumer = made.client.subscribe("orders", "billing")
        self.producer = made.client.create_producer("orders")
        self.waiting = []

    @rule(content=st.binary(max_size=50))
    def send(self, content):
        self.producer.send(content)
        self.waiting.append(content)

    @rule()
    def receive(self):
        for message in self.consumer.receive_many(1, timeout_millis=0):
            assert message.data() == self.waiting.pop(0)
            self.consumer.acknowledge(message)

    def teardown(self):
        self._opened.__exit__(None, None, None)

TestQueue = Queue.TestCase
"""


def test_hypothesis_has_a_broker_for_each_example(project: pytest.Pytester):
    """With all its health checks, that of fixtures which each example would share among them."""
    pytest.importorskip("hypothesis")
    project.makepyfile(EXAMPLES)
    # Examples take as long as the machine needs: time limits of hypothesis are no matter of ours.
    project.makeconftest(
        "from hypothesis import settings\n"
        "settings.register_profile('slow', deadline=None, max_examples=30)\n"
        "settings.load_profile('slow')\n"
    )
    project.runpytest_subprocess("-p", "no:randomly").assert_outcomes(passed=3)
