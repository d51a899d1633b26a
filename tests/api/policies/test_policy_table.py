"""Facts about the table of policies: one row is a policy at every end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from administered import Administered
from click.testing import CliRunner
from write_policies import methods_text, overview_list, values_table

import pulsarx
from pulsarx import BrokerOptions, errors
from pulsarx.admin import Admin, Namespaces, Topics
from pulsarx.broker.policies.policy_row import (
    NAMESPACE,
    SIZE,
    TOPIC,
    Commands,
    Methods,
    Option,
    Policy,
    Rest,
)
from pulsarx.broker.policies.policy_value import Record, Whole
from pulsarx.broker.policies.table import POLICIES, TABLE
from pulsarx.cli.clicked import clicked
from pulsarx.cli.declared import Group
from pulsarx.cli.policies import add_policies
from pulsarx.rest import application
from pulsarx.rest.policies import routes_of

NEW = Policy(
    "test_budget",
    Whole(0, 1000, unit="bytes"),
    option="max_message_size",
    rest=Rest("testBudget", "topicBudget", field="test_budget_in_bytes"),
    methods=Methods("Set a budget.", argument="size", args={"size": "Bytes."}, get="the bytes"),
    commands=Commands(Option("-s --size", "size", SIZE, "How much: 1k."), example="-s 500"),
)
GROUPS: dict[str, Any] = {NAMESPACE: Namespaces, TOPIC: Topics}


@pytest.fixture
def with_new_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the table had the row, and the tool had written its methods."""
    monkeypatch.setitem(POLICIES, NEW.name, NEW)
    monkeypatch.setattr(application, "ROUTES", [*application.ROUTES, *routes_of([NEW])])
    written: dict[str, Any] = {}
    exec(methods_text([NEW]), written)
    for kind in GROUPS.values():
        for name in ("set_test_budget", "get_test_budget", "remove_test_budget"):
            method = getattr(written["PolicyMethods"], name)
            monkeypatch.setattr(kind, name, method, raising=False)


@pytest.fixture
def administered() -> Iterator[Administered]:
    found = Administered(broker_options=BrokerOptions(max_message_size=900))
    found.do("PUT", "/persistent/public/default/t")
    yield found
    found.close()


@pytest.mark.parametrize("level", [NAMESPACE, TOPIC])
def test_one_row_is_a_policy_at_every_end(
    with_new_row: None, administered: Administered, level: str
) -> None:
    target = "t" if level == TOPIC else "public/default"
    path = f"/persistent/public/default/{target}/topicBudget"
    if level == NAMESPACE:
        path = f"/namespaces/{target}/testBudget"
    commands = Group(f"Administer {level}s.")
    add_policies(commands, f"{level}s", level, [NEW])

    def run(*words: str) -> Any:
        line = ["--url", administered.url, *words]
        return CliRunner().invoke(clicked(f"{level}s", commands), line)

    groups: list[Any] = [
        getattr(admin, f"{level}s")
        for admin in (administered.client.admin, Admin.at(administered.url))
    ]
    for size, group in enumerate(groups, 5):
        group.set_test_budget(target, size)
        assert [each.get_test_budget(target) for each in groups] == [size, size]
        assert administered.get(path) == size
        assert run("get-test-budget", target).stdout == f'{{"test_budget": {size}}}\n'
    administered.do("POST", path, 500)
    assert groups[0].get_test_budget(target) == 500
    assert run("set-test-budget", target, "--size", "600").exit_code == 0
    assert groups[0].get_test_budget(target) == 600
    if level == NAMESPACE:
        assert administered.client.admin.namespaces.get_policies(target) == {"test_budget": 600}
        assert administered.get(f"/namespaces/{target}")["test_budget_in_bytes"] == 600
    assert run("remove-test-budget", target).exit_code == 0
    assert groups[0].get_test_budget(target) is None
    assert administered.get(path) == ""
    assert administered.get(f"{path}?applied=true") == 900

    # What is no such value is refused alike.
    told = "test_budget must be an int from 0 to 1000, not 1001"
    with pytest.raises(ValueError, match=told):
        groups[0].set_test_budget(target, 1001)
    assert administered.ask("POST", path, 1001)[:2] == (412, {"reason": told})
    refused: Any = run("set-test-budget", target, "-s", "1001").exception
    assert errors.detail_of(refused) == told
    with pytest.raises(ValueError, match="size must be an int, not str"):
        groups[0].set_test_budget(target, "5")

    # It is described.
    described = administered.get("//openapi.json")["paths"]
    assert any(each.endswith(path.rpartition("/")[2]) for each in described)
    assert "How much: 1k." in run("set-test-budget", "--help").stdout
    assert "        size: Bytes.\n" in groups[0].set_test_budget.__doc__
    assert groups[0].get_test_budget.__doc__.startswith("Return the bytes as set here; None: ")


def test_one_row_is_in_the_tables_of_the_documents() -> None:
    assert values_table([NEW])[-1] == "| `test_budget` | bytes |"
    assert overview_list([NEW]) == [
        "- `set_test_budget(target, size)`\\",
        "  command `set-test-budget`; else the option `max_message_size`",
    ]


@pytest.mark.parametrize("level", [NAMESPACE, TOPIC])
@pytest.mark.parametrize("row", [each for each in TABLE if each.methods], ids=lambda row: row.name)
def test_none_is_no_value_of_a_policy(
    memory_client: pulsarx.Client, row: Policy, level: str
) -> None:
    """Of limits and automatic creation it took away what was set."""
    if level not in row.levels:
        assert not hasattr(GROUPS[level], f"set_{row.method}")
        return
    memory_client.create_producer("t").close()
    group: Any = getattr(memory_client.admin, f"{level}s")
    target = "t" if level == TOPIC else "public/default"
    count = len(row.kind.fields) if isinstance(row.kind, Record) else 1
    with pytest.raises((ValueError, TypeError)):
        getattr(group, f"set_{row.method}")(target, *[None] * count)
