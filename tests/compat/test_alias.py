"""`install_as_pulsar`: what `import pulsar` finds, and where URLs lead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import pulsarx
from pulsarx import errors
from pulsarx.options import routes
from pulsarx.options.service_url import parse_service_url

Program = Callable[[str], list[str]]

INSTALL = "import pulsarx; pulsarx.install_as_pulsar(root='memory:')\n"


@pytest.fixture
def no_routes() -> Iterator[None]:
    """The routes of this process alone, without the alias."""
    yield
    routes.clear()


def lead(**arguments: object) -> None:
    places = arguments.get("places", {})
    assert isinstance(places, dict)
    root = arguments.get("root")
    assert root is None or isinstance(root, tuple)
    routes.add(places, root)


@pytest.mark.standard
def test_a_program_for_the_official_client_runs(program: Program):
    told = program(
        INSTALL
        + """
import pulsar
from pulsar import Client, ConsumerType, InitialPosition
client = Client("pulsar://localhost:6650")
consumer = client.subscribe("t", "s", consumer_type=ConsumerType.Shared)
client.create_producer("t").send(b"hello")
print(consumer.receive().data(), pulsar.Client is pulsarx.Client, pulsar.__version__)
client.close()
"""
    )
    assert told == ["b'hello' True 3.13.0"]


@pytest.mark.standard
def test_the_star_import_of_schemas_gives_submodules_too(program: Program):
    told = program(
        INSTALL
        + """
from pulsar.schema import *
class Order(Record):
    amount = Integer()
print(AvroSchema(Order).decode(AvroSchema(Order).encode(Order(amount=3))).amount)
print(definition.Record is Record, schema.JsonSchema is JsonSchema, schema_avro.__name__)
"""
    )
    assert told == ["3", "True True pulsar.schema.schema_avro"]


@pytest.mark.standard
def test_the_native_module_has_three_names(program: Program):
    told = program(
        INSTALL
        + """
import _pulsar, pulsar
import pulsar._pulsar as third
print(_pulsar is pulsar._pulsar is third)
print(isinstance(pulsar.MessageId(1, 2, 3, 4), _pulsar.MessageId))
print(pulsar.Timeout is _pulsar.Timeout is pulsar.exceptions.Timeout)
"""
    )
    assert told == ["True", "True", "True"]


@pytest.mark.standard
def test_importing_pulsarx_loads_nothing_of_the_alias(program: Program):
    told = program(
        "import sys, pulsarx; pulsarx.Client\n"
        "print([each for each in sys.modules if 'compat' in each or 'routes' in each])"
    )
    assert told == ["[]"]


@pytest.mark.standard
def test_installing_loads_no_module_of_the_alias_before_it_is_imported(program: Program):
    told = program(INSTALL + "import sys; print('pulsar' in sys.modules, '_pulsar' in sys.modules)")
    assert told == ["False False"]


@pytest.mark.standard
def test_installing_twice_adds_routes(program: Program):
    told = program(
        """
import pulsarx, sys
pulsarx.install_as_pulsar(routes={"pulsar://one:6650": "memory:one"})
import pulsar
pulsarx.install_as_pulsar(routes={"pulsar://two:6650": "memory:two"})
pulsarx.install_as_pulsar(routes={"pulsar://two:6650": "memory:two"})
import pulsar as again
for name in ("one", "two"):
    pulsar.Client(f"pulsar://{name}:6650").close()
print(again is pulsar, len([each for each in sys.meta_path if "compat" in type(each).__module__]))
"""
    )
    assert told == ["True 1"]


@pytest.mark.standard
def test_uninstalling_leaves_nothing_behind(program: Program):
    told = program(
        INSTALL
        + """
import sys, pulsar.schema, pulsar.functions
open_client = pulsar.Client("pulsar://a")
pulsarx.uninstall_as_pulsar()
pulsarx.uninstall_as_pulsar()
print([each for each in sys.modules if each.partition(".")[0] in ("pulsar", "_pulsar")])
open_client.create_producer("t").send(b"still open")
from pulsarx.options import routes
print("no route" if routes.place_of("pulsar://a") is None else "a route")
pulsarx.install_as_pulsar()
import pulsar as again
print(again is pulsar, again.Client is pulsar.Client)
"""
    )
    assert told == ["[]", "no route", "False True"]


@pytest.mark.standard
@pytest.mark.skipif(find_spec("_pulsar") is None, reason="pulsar-client is not installed")
def test_the_official_client_is_not_replaced_where_it_is_loaded(program: Program):
    told = program(
        """
import sys, pulsar, pulsarx
before = pulsar.Client
try:
    pulsarx.install_as_pulsar(root="memory:")
except pulsarx.NotAllowedError as error:
    print("before the first import" in str(error) or "before the first import" in error.detail)
import pulsar
print(pulsar.Client is before, sys.meta_path[0].__class__.__module__.startswith("pulsarx"))
from pulsarx.options import routes
print("no route" if routes.place_of("pulsar://a") is None else "a route")
"""
    )
    assert told == ["True", "True False", "no route"]


@pytest.mark.standard
@pytest.mark.skipif(find_spec("_pulsar") is None, reason="pulsar-client is not installed")
def test_the_official_client_comes_back(program: Program):
    told = program(
        INSTALL
        + """
import pulsar, _pulsar
pulsarx.uninstall_as_pulsar()
import pulsar, _pulsar
print("pulsarx" in pulsar.__file__, _pulsar.__file__.endswith(".so"))
"""
    )
    assert told == ["False True"]


# Routes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service_url", "cluster"),
    [
        ("pulsar://localhost:6650", "localhost"),
        ("pulsar://localhost", "localhost"),
        ("pulsar://127.0.0.1:6650/", "localhost"),
        ("pulsar://[::1]:6650", "localhost"),
        ("pulsar://[::1]", "localhost"),
        ("pulsar://[FE80::2]:7000", "[fe80::2]:7000"),
        ("http://LOCALHOST:8080", "localhost"),
        ("pulsar+ssl://localhost:6651", "localhost"),
        ("pulsar://localhost:6660", "localhost:6660"),
        ("pulsar://a:6650,b:6650", "a,b"),
        ("pulsar://a,b:7000", "a,b:7000"),
    ],
)
def test_urls_of_one_cluster_are_one(service_url: str, cluster: str):
    assert routes.cluster_of(service_url) == cluster


@pytest.mark.parametrize(
    "service_url",
    ["pulsar://", "pulsar://:6650", "pulsar://a:b", "pulsar://a/t/n", "pulsar://u@a", "pulsar:a",
     "pulsar://a,", "pulsar://a?b=c"],
)  # fmt: skip
def test_what_names_no_cluster_is_refused(service_url: str):
    with pytest.raises(errors.InvalidUrl):
        routes.cluster_of(service_url)


@pytest.mark.usefixtures("no_routes")
def test_a_route_leads_to_its_folder_and_keeps_what_is_sent(tmp_path: Path):
    lead(places={"pulsar://localhost:6650": (str(tmp_path / "events"), None)})
    with pulsarx.Client("pulsar://127.0.0.1") as client:
        client.subscribe("t", "s").close()
        client.create_producer("t").send(b"kept")
        assert client.get_service_info().service_url == "pulsar://127.0.0.1"
    with pulsarx.Client(tmp_path / "events") as client:
        assert client.subscribe("t", "s").receive(60_000).data() == b"kept"


@pytest.mark.usefixtures("no_routes")
def test_clusters_below_a_root_have_a_folder_each(tmp_path: Path):
    lead(root=(str(tmp_path), None))
    for url in ("pulsar://localhost:6650", "http://127.0.0.1:8080", "pulsar://b:7000,c"):
        pulsarx.Client(url).close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b_7000_c", "localhost"]


@pytest.mark.usefixtures("no_routes")
def test_a_route_goes_before_the_root(tmp_path: Path):
    lead(places={"pulsar://a": (None, "a")}, root=(str(tmp_path), None))
    pulsarx.Client("pulsar://a").close()
    assert not list(tmp_path.iterdir())


def test_a_url_without_a_route_says_what_to_do():
    with pytest.raises(errors.OperationNotSupported) as raised:
        parse_service_url("pulsar://elsewhere:6650")
    told = f"{raised.value} {getattr(raised.value, 'detail', '')}"
    assert "install_as_pulsar(routes={'pulsar://elsewhere:6650': 'folder'})" in told
    assert "python -m pulsarx run" in told


@pytest.mark.usefixtures("no_routes")
def test_a_route_that_leads_elsewhere_already_is_refused_as_a_whole(tmp_path: Path):
    lead(places={"pulsar://a": (None, "a")}, root=(None, "r"))
    with pytest.raises(errors.InvalidConfiguration):
        lead(places={"pulsar://b": (None, "b"), "http://a:8080": (str(tmp_path), None)})
    with pytest.raises(errors.InvalidConfiguration):
        lead(places={"pulsar://c": (None, "c")}, root=(None, "other"))
    assert routes.place_of("pulsar://a") == (None, "a")
    assert routes.place_of("pulsar://b") == (None, "r-b")
    assert routes.place_of("pulsar://c") == (None, "r-c")


@pytest.mark.standard
def test_a_relative_folder_is_meant_from_where_the_alias_was_installed(
    program: Program, tmp_path: Path
):
    (tmp_path / "elsewhere").mkdir()
    program(
        """
import os, pulsarx
pulsarx.install_as_pulsar(routes={"pulsar://a": "events"})
os.chdir("elsewhere")
pulsarx.Client("pulsar://a").close()
"""
    )
    assert (tmp_path / "events").is_dir()
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.standard
def test_a_route_to_a_cluster_is_refused(program: Program):
    told = program(
        """
import pulsarx
for routes in ({"pulsar://a": "pulsar://b"}, {"a": "folder"}, {"pulsar://a": "other:b"}):
    try:
        pulsarx.install_as_pulsar(routes=routes)
    except (pulsarx.OperationNotSupported, pulsarx.InvalidUrl) as error:
        print(type(error).__name__)
import sys
print([each for each in sys.meta_path if "compat" in type(each).__module__])
"""
    )
    assert told == ["OperationNotSupported", "InvalidUrl", "InvalidUrl", "[]"]


@pytest.mark.standard
def test_tests_look_behind_clients_under_the_alias(program: Program):
    """AttributeError: the client had a `_client`, as that of coroutines has, which is another."""
    told = program(
        INSTALL
        + """
import pulsar
from pulsarx.testing import drain, inspect
client = pulsar.Client("pulsar://localhost:6650")
client.create_producer("t").send(b"hello")
drain(client)
print(inspect(client).client is client)
client.close()
"""
    )
    assert told == ["True"]
