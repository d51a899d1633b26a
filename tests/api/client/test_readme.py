"""The README and the pages of docs/ are true: their lists name what the code has, their links lead
somewhere. Their samples run in tests/site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pulsarx
from pulsarx.broker_options import option_table
from pulsarx.options.base import ClientOptions, Options
from pulsarx.options.members import ConsumerOptions, ProducerOptions, ReaderOptions

ROOT = Path(__file__).resolve().parents[3]
LIMITS = (ROOT / "docs/reference/limits.md").read_text(encoding="utf-8")
WITH_EFFECT = {
    "Client": (
        "service_url clock randomness durability flush_interval_ms broker_options read_only "
        "message_listener_threads memory_limit_bytes exclusive enable_busy_wait "
        "operation_timeout_seconds"
    ),
    "create_producer": (
        "topic producer_name schema initial_sequence_id compression_type max_pending_messages "
        "block_if_queue_full batching_enabled batching_max_messages "
        "batching_max_allowed_size_in_bytes batching_max_publish_delay_ms batching_type "
        "max_pending_messages_across_partitions message_routing_mode message_router "
        "lazy_start_partitioned_producers hashing_scheme access_mode send_timeout_millis "
        "interceptors chunking_enabled encryption_key crypto_key_reader"
    ),
    "subscribe": (
        "topic pattern_auto_discovery_period regex_subscription_mode subscription_name schema "
        "consumer_name initial_position start_message_id_inclusive "
        "batch_receive_policy dead_letter_policy retry_enable consumer_type message_listener "
        "receiver_queue_size max_total_receiver_queue_size_across_partitions properties "
        "unacked_messages_timeout_ms negative_ack_redelivery_delay_ms key_shared_policy "
        "nack_backoff ack_timeout_backoff ack_timeout_tick_ms priority_level subscription_mode "
        "topic_priorities consumer_event_listener interceptors max_pending_chunked_message "
        "auto_ack_oldest_chunked_message_on_queue_full "
        "expire_time_of_incomplete_chunked_message_ms is_read_compacted crypto_key_reader "
        "crypto_failure_action subscription_properties selector"
    ),
    "create_reader": (
        "topic start_message_id schema start_message_id_inclusive reader_listener "
        "is_read_compacted crypto_key_reader crypto_failure_action selector"
    ),
}


def names_of(section: str, name: str) -> set[str]:
    """The names in backquotes in the item of a list below a sentence."""
    items = LIMITS[LIMITS.index(section) :]
    found = re.search(rf"^- `{name}`:((?:.|\n  )*)$", items, re.MULTILINE)
    assert found is not None, f"no item {name} below {section!r}"
    return set(re.findall(r"`(\w+)`", found.group(1)))


def test_every_link_leads_somewhere():
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "design"]
    for path in [ROOT / "README.md", ROOT / "spark/README.md", *pages]:
        text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text):
            file = (path.parent / target) if target else path
            assert file.exists(), f"{path.name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
                anchors = [re.sub(r"[^\w -]", "", each.lower()) for each in headings]
                assert anchor in {each.replace(" ", "-") for each in anchors}, f"{target}#{anchor}"


def test_the_list_of_broker_options_is_complete():
    section = (ROOT / "docs/options.md").read_text(encoding="utf-8")
    rows = re.findall(r"^- `(\w+)` \(default ([^)]*)\):", section, re.MULTILINE)
    assert rows == [(name, _shown(row.default)) for name, row in option_table().items()]


def _shown(default: object) -> str:
    if default == "":
        return '""'
    return ", ".join(default) if isinstance(default, tuple) else str(default)


@pytest.mark.parametrize(
    "options", [ClientOptions, ProducerOptions, ConsumerOptions, ReaderOptions]
)
def test_every_argument_is_used_or_named_in_the_limits(options: type[Options]):
    ignored = names_of("without effect:", options.CALL)
    used = set(WITH_EFFECT[options.CALL].split())
    assert sorted([*ignored, *used]) == sorted(row[0] for row in options.ROWS)


def test_the_page_about_administration_names_every_call():
    text = (ROOT / "docs/administration.md").read_text(encoding="utf-8")
    calls = set(re.findall(r"`(\w+)`", text[text.index("- `topics`:") : text.index("## Policies")]))
    policies = set(re.findall(r"`(\w+)`", text[text.index("- **What is kept**") :]))
    with pulsarx.Client("memory:") as client:
        admin = client.admin
        groups = [admin.topics, admin.namespaces, admin.tenants, admin.schemas, admin.brokers]
        groups.append(admin.transactions)
        there = {name for group in groups for name in dir(group) if not name.startswith("_")}
    of_policies = {f"{verb}_{name}" for verb in ("set", "get", "remove") for name in policies}
    assert there - calls - of_policies == {"get_backlog_quotas"}
    assert of_policies - there == set()
    names = {"topics", "namespaces", "tenants", "schemas", "brokers", "transactions"}
    assert calls - there == {*names, "force"}
