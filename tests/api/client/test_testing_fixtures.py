"""Facts about what PulsarX gives to the tests of its users."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import pulsarx

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[3]

USING = """
import pulsarx

names = []

def test_time_passes_when_the_test_says_so(pulsar_client, pulsar_clock):
    consumer = pulsar_client.subscribe("orders", "billing")
    producer = pulsar_client.create_producer("orders", batching_enabled=True)
    producer.send_async(b"one", None)
    assert consumer.receive_many(1, timeout_millis=0) == []
    pulsar_clock.advance(seconds=0.010)
    message = consumer.receive(timeout_millis=60_000)
    assert message.data() == b"one"
    assert message.publish_timestamp() == pulsar_clock.now_ms() - 10
    names.append((pulsar_client, consumer))  # left open, and longer alive than the test

def test_the_next_test_finds_nothing_of_the_one_before(pulsar_client):
    earlier_client, earlier_consumer = names[0]
    assert not earlier_consumer.is_connected()
    assert pulsar_client.admin.topics.get_list("public/default") == []

def test_chance_is_the_same_in_each_run(pulsar_client):
    print("named", pulsar_client.subscribe("orders", "billing").consumer_name())

def test_a_client_may_be_closed_by_the_test(pulsar_client):
    pulsar_client.close()
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project of a user, whose pytest finds the plugin as an installed PulsarX offers it."""
    pytester.makeini("[pytest]\naddopts = -p pytest_pulsarx -p no:cacheprovider")
    return pytester


@pytest.mark.standard
def test_the_fixtures_give_an_empty_broker_and_a_clock_that_stands_still(
    project: pytest.Pytester,
):
    project.makepyfile(USING)
    first, second = (project.runpytest_subprocess("-s") for _ in range(2))
    first.assert_outcomes(passed=4)
    second.assert_outcomes(passed=4)
    chosen = [[line for line in run.outlines if "named" in line] for run in (first, second)]
    assert chosen[0] == chosen[1] and len(chosen[0]) == 1


@pytest.mark.standard
def test_the_fixtures_serve_several_processes_of_tests_at_once(project: pytest.Pytester):
    """Brokers in memory have names, and pytest-xdist has several processes: each has its own."""
    pytest.importorskip("xdist")
    project.makepyfile(test_first=USING, test_second=USING)
    done = project.runpytest_subprocess("-n", "2", "--dist", "loadfile", "-v")
    done.assert_outcomes(passed=8)
    assert {line[:5] for line in done.outlines if "PASSED" in line} == {"[gw0]", "[gw1]"}


AWAITING = """
import asyncio

from pulsarx import aio

def test_a_service_opens_the_broker_by_its_url(pulsar_url):
    async def service():
        async with await aio.Client.open(pulsar_url) as client:
            producer = await client.create_producer("orders")
            await asyncio.wait_for(producer.send(b"one"), timeout=120)

    asyncio.run(service())

def test_a_client_is_of_whatever_loop_runs(pulsar_aio_client, pulsar_client):
    async def send(content):
        producer = await pulsar_aio_client.create_producer("orders")
        await asyncio.wait_for(producer.send(content), timeout=120)

    consumer = pulsar_client.subscribe("orders", "billing")
    asyncio.run(send(b"one"))
    asyncio.run(send(b"two"))
    assert [consumer.receive(60_000).data() for _ in range(2)] == [b"one", b"two"]
"""


@pytest.mark.standard
def test_the_fixtures_serve_programs_of_asyncio(project: pytest.Pytester):
    project.makepyfile(AWAITING)
    project.runpytest_subprocess().assert_outcomes(passed=2)


MARKED = """
import pulsarx
import pytest

pytestmark = [
    pytest.mark.pulsar_options(max_message_size=100, default_num_partitions=2),
    pytest.mark.pulsar_partitions({"shop/eu/orders": 2}, bills=3),
]

@pytest.mark.pulsar_namespaces("shop/eu", "shop/us")
@pytest.mark.pulsar_options(max_message_size=200)
@pytest.mark.pulsar_partitions(bills=4)
def test_the_code_under_test_opens_the_broker_by_its_url(pulsar_url, pulsar_clock):
    with pulsarx.Client(pulsar_url) as client:
        assert client.admin.namespaces.get_namespaces("shop") == ["shop/eu", "shop/us"]
        assert len(client.get_topic_partitions("shop/eu/orders")) == 2
        assert len(client.get_topic_partitions("bills")) == 4
        producer = client.create_producer("shop/us/orders")
        producer.send(bytes(200))
        with pytest.raises(pulsarx.MessageTooBig):
            producer.send(bytes(201))

@pytest.mark.pulsar_namespaces("shop/eu")
def test_a_marker_of_the_module_counts_where_the_test_has_none(pulsar_client):
    assert len(pulsar_client.get_topic_partitions("bills")) == 3
    with pytest.raises(pulsarx.MessageTooBig):
        pulsar_client.create_producer("t").send(bytes(101))
"""

SURVIVING = """
import pulsarx
import pytest
from pulsarx.testing import messages, published

pytestmark = [
    pytest.mark.pulsar_partitions({"shop/eu/orders": 2}),
    pytest.mark.pulsar_namespaces("shop/eu"),
]

@pytest.mark.pulsar_options(max_message_size=100)
def test_an_owner_has_what_the_markers_say(pulsar_owner):
    with pulsarx.Client(pulsar_owner.folder) as client:
        producer = client.create_producer("shop/eu/orders")
        with pytest.raises(pulsarx.MessageTooBig):
            producer.send(bytes(101))
        producer.send(b"one")
        pulsar_owner.kill()
        producer.send(b"two")
        published(client, "shop/eu/orders", b"one", b"two", only=True)

def test_a_folder_of_crashes_has_what_the_markers_say(pulsar_crash):
    with pulsarx.Client(pulsar_crash.folder) as client:
        assert len(client.get_topic_partitions("shop/eu/orders")) == 2
        client.create_producer("shop/eu/orders").send(b"one")
        pulsar_crash.note(b"one")
    for crash in pulsar_crash.crashes(4):
        print("crashed", crash.kind, crash.place)
        with pulsarx.Client(crash.folder) as client:
            found = [each.data() for each in messages(client, "shop/eu/orders")]
            assert found[:1] >= crash.notes

def test_faults_end_with_the_test(pulsar_client, pulsar_faults):
    pulsar_faults.fail("write", sticky=True)

def test_the_next_one_has_none(pulsar_client, pulsar_faults):
    pulsar_client.create_producer("t").send(b"one")
"""


@pytest.mark.standard
def test_the_fixtures_make_what_a_program_survives(project: pytest.Pytester):
    project.makepyfile(SURVIVING)
    done = project.runpytest_subprocess("-s")
    done.assert_outcomes(passed=4)
    assert any("in front of operation" in line for line in done.outlines)


WRONG = """
import pytest

@pytest.mark.pulsar_options(max_mesage_size=100)
def test_an_unknown_option(pulsar_url): ...

@pytest.mark.pulsar_options({"max_message_size": 100})
def test_options_that_are_no_names(pulsar_url): ...

@pytest.mark.pulsar_partitions("orders", 4)
def test_partitions_that_are_no_topics(pulsar_url): ...

@pytest.mark.pulsar_namespaces(shop="eu")
def test_namespaces_that_are_no_names(pulsar_url): ...

@pytest.mark.pulsar_namespaces("shop")
def test_a_namespace_without_a_tenant(pulsar_url): ...
"""


@pytest.mark.standard
def test_markers_say_what_the_broker_of_a_test_has(project: pytest.Pytester):
    project.makepyfile(MARKED)
    project.runpytest_subprocess("--strict-markers").assert_outcomes(passed=2)


@pytest.mark.standard
def test_a_marker_that_cannot_be_understood_is_an_error(project: pytest.Pytester):
    project.makepyfile(WRONG)
    project.runpytest_subprocess().assert_outcomes(errors=5)


@pytest.mark.standard
def test_tests_that_do_not_use_it_do_not_load_it(project: pytest.Pytester):
    project.makepyfile(
        """
        import sys

        def test_of_something_else():
            assert "pytest_pulsarx" in sys.modules
            assert [name for name in sys.modules if name.split(".")[0] == "pulsarx"] == []
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=1)


@pytest.mark.standard
def test_a_project_may_have_fixtures_of_these_names(project: pytest.Pytester):
    project.makeconftest(
        "import pytest\n\n@pytest.fixture\ndef pulsar_client():\n    return 'mine'"
    )
    project.makepyfile("def test_it(pulsar_client):\n    assert pulsar_client == 'mine'")
    project.runpytest_subprocess().assert_outcomes(passed=1)


@pytest.mark.standard
def test_what_is_wrong_is_reported_and_the_client_closed_all_the_same(project: pytest.Pytester):
    project.makepyfile(
        """
        kept = []

        def test_that_fails(pulsar_client):
            kept.append(pulsar_client.create_producer("orders"))
            raise ValueError

        def test_after_it():
            assert not kept[0].is_connected()
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=1, failed=1)


@pytest.mark.standard
def test_a_client_that_is_never_closed_is_no_error_when_pytest_ends(project: pytest.Pytester):
    """An AttributeError was printed: the finalizer of the client wanted a thread when modules were
    gone already."""
    project.makepyfile(
        """
        import pulsarx

        kept = []

        def test_it():
            kept.append(pulsarx.Client("memory:").create_producer("orders"))
        """
    )
    done = project.runpytest_subprocess()
    done.assert_outcomes(passed=1)
    assert done.errlines == []


def test_pytest_finds_the_plugin_of_an_installed_pulsarx():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    plugins = project["project"]["entry-points"]["pytest11"]
    assert plugins == {"pytest_pulsarx": "pytest_pulsarx"}
    assert set(plugins.values()) <= set(project["tool"]["setuptools"]["py-modules"])


def test_faults_are_injected_from_pulsarx_testing(tmp_path: Path):
    from pulsarx.testing import FaultPlan, fault_plan

    with pulsarx.Client(tmp_path / "data", durability="sync") as client:
        producer = client.create_producer("orders")
        producer.send(b"one")
        with fault_plan() as plan:
            assert isinstance(plan, FaultPlan)
            plan.fail("write", error=28)
            with pytest.raises(pulsarx.errors.StorageFullError):
                producer.send(b"two")
        producer.send(b"three")
