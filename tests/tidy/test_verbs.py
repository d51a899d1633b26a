"""The groups of `client.admin` are written by hand, for their docstrings are the manual. They have
the arguments of the verbs, and each verb that users need has its method."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from pulsarx.admin import Brokers, Namespaces, Schemas, Tenants, Topics, Transactions
from pulsarx.broker.verbs.table import VERBS

GROUPS: dict[str, type] = {
    "brokers": Brokers,
    "namespaces": Namespaces,
    "schemas": Schemas,
    "tenants": Tenants,
    "topics": Topics,
    "transactions": Transactions,
}
# Methods of policies are those of `policies/table`, which has tests of its own.
OF_POLICIES = ("pulsarx.admin.policy_methods", "pulsarx.admin.backlog_quotas")
# As the official admin client calls them.
METHODS = {
    "namespaces.grant_permission": "grant_permission_on_namespace",
    "namespaces.revoke_permissions": "revoke_permissions_on_namespace",
}
ARGUMENTS = {
    "subscription_name": "name",
    "info": "schema",
    "initial_position": "from_end",
    "message_position": "number",
}
# What other parts of the library ask for: Spark, copies, the page, the command line, services.
WITHOUT_A_METHOD = {
    "leases.finish_part", "leases.get_leases", "leases.release", "leases.renew", "leases.set",
    "leases.set_present", "ledgers.attach", "ledgers.attach_list", "namespaces.get_policy",
    "namespaces.set_policy", "subscriptions.create", "subscriptions.move",
    "topics.browse_messages", "topics.ensure", "topics.find_message_id", "topics.get_figures",
    "topics.get_policy", "topics.get_producer_sequences",
    "topics.offload_before", "topics.set_policy", "topics.trim",
}  # fmt: skip
# Given by the library itself: when a namespace is created over REST; by pulsarx.testing.
NOT_GIVEN = {("namespaces.create_namespace", "policies"), ("topics.peek_messages", "skip")}


def methods() -> dict[str, Any]:
    """By the names of their verbs."""
    verbs = {f"{name.partition('.')[0]}.{method}": name for name, method in METHODS.items()}
    return {
        verbs.get(f"{group}.{name}", f"{group}.{name}"): method
        for group, kind in GROUPS.items()
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and method.__module__ not in OF_POLICIES
    }


def test_each_verb_has_its_method() -> None:
    assert set(VERBS) - set(methods()) == WITHOUT_A_METHOD
    assert set(methods()) <= set(VERBS)


@pytest.mark.parametrize("name", methods())
def test_a_method_has_the_arguments_of_its_verb(name: str) -> None:
    given = list(inspect.signature(methods()[name]).parameters)[1:]
    wanted = [each for each in VERBS[name].kinds if (name, each) not in NOT_GIVEN]
    assert sorted(ARGUMENTS.get(each, each) for each in given) == sorted(wanted)


@pytest.mark.parametrize("name", methods())
def test_what_verbs_read_as_a_flag_or_a_number_a_method_calls_so(name: str) -> None:
    for each, parameter in inspect.signature(methods()[name]).parameters.items():
        kind = VERBS[name].kinds.get(each)
        if kind in (bool, int):
            assert str(parameter.annotation).startswith(kind.__name__), each
