"""Facts about policies and kills: what a call set is there when it has returned."""

from __future__ import annotations

from typing import Any

import pytest
from child_process import ChildProcess
from topic_reading import OpenClient

NAMESPACE = "public/default"
PROGRAM = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1])
client.create_producer("t").close()
for group, target in ((client.admin.topics, "t"), (client.admin.namespaces, "public/default")):
    group.set_message_ttl(target, 10)
    group.set_retention(target, 20, -1)
    group.set_backlog_quota(target, limit_size=30)
    group.set_backlog_quota(target, limit_time=40, type="message_age")
    group.set_delayed_delivery_policies(target, True, 50)
    group.set_inactive_topic_policies(target, "delete_when_no_subscriptions", 60, False)
    group.set_subscription_expiration_time(target, 70)
    group.set_dispatch_rate(target, 90)
    group.set_subscription_dispatch_rate(target, 91, 92, 93, True)
    group.set_publish_rate(target, 94)
    group.set_subscribe_rate(target, 95)
    group.set_message_ttl(target, 80)
    group.remove_retention(target)
print("set", flush=True)
sys.stdin.readline()
"""


@pytest.mark.standard
def test_what_was_set_outlives_a_kill(open_client: OpenClient, folder: Any) -> None:
    with ChildProcess(PROGRAM, folder) as child:
        assert child.line() == "set"
        child.kill()
    client = open_client()
    for group, target in ((client.admin.topics, "t"), (client.admin.namespaces, NAMESPACE)):
        assert group.get_message_ttl(target) == 80
        assert group.get_retention(target) is None
        quotas = group.get_backlog_quotas(target)
        assert quotas["destination_storage"]["limit_size"] == 30
        assert quotas["message_age"]["limit_time"] == 40
        delayed = group.get_delayed_delivery_policies(target)
        assert delayed is not None
        assert delayed["tick_time_millis"] == 50
        inactive = group.get_inactive_topic_policies(target)
        assert inactive is not None
        assert (inactive["seconds"], inactive["enabled"]) == (60, False)
        assert group.get_subscription_expiration_time(target) == 70
        rates = [
            group.get_dispatch_rate(target),
            group.get_subscription_dispatch_rate(target),
            group.get_publish_rate(target),
            group.get_subscribe_rate(target),
        ]
        assert [each and list(each.values()) for each in rates] == [
            [90, -1, 1, False],
            [91, 92, 93, True],
            [94, -1],
            [95, 30],
        ]
