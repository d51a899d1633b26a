"""The README and the pages of docs/ are true: their Python runs as it stands, and their tables name
what the code has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from flight_source import install_flights

import pulsarx
from pulsarx.broker_options import option_table
from pulsarx.options.base import ClientOptions, Options
from pulsarx.options.members import ConsumerOptions, ProducerOptions, ReaderOptions

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Those of sql, testing and spark have tests of their own: test_sql_guide, test_howto,
# spark/test_spark_examples.
PAGES = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in [
            "administration",
            "asyncio",
            "backups",
            "columns",
            "consumers",
            "functions",
            "offload",
            "options",
            "processes",
            "producers",
            "pulsar-client",
            "schemas",
            "topics",
        ]
    ),
]
WITH_EFFECT = {
    "Client": (
        "service_url clock randomness durability flush_interval_ms broker_options read_only "
        "message_listener_threads memory_limit_bytes exclusive operation_timeout_seconds"
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
        "consumer_event_listener interceptors max_pending_chunked_message "
        "auto_ack_oldest_chunked_message_on_queue_full "
        "expire_time_of_incomplete_chunked_message_ms is_read_compacted crypto_key_reader "
        "crypto_failure_action"
    ),
    "create_reader": (
        "topic start_message_id schema start_message_id_inclusive reader_listener "
        "is_read_compacted crypto_key_reader crypto_failure_action"
    ),
}


def code_blocks(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def row_of(section: str, name: str) -> set[str]:
    """The names in backquotes in the row of a table below a sentence."""
    table = README[README.index(section) :]
    found = re.search(rf"^\| `{name}` \|(.*)\|$", table, re.MULTILINE)
    assert found is not None, f"no row {name} below {section!r}"
    return set(re.findall(r"`(\w+)`", found.group(1)))


def test_every_page_with_python_is_run():
    pages = {str(each.relative_to(ROOT)) for each in (ROOT / "docs").glob("*.md")}
    elsewhere = {"docs/sql.md", "docs/testing.md", "docs/spark.md"}
    assert {page for page in pages - elsewhere if code_blocks(page)} == set(PAGES[1:])


def test_every_link_leads_somewhere():
    for path in [ROOT / "README.md", ROOT / "spark/README.md", *(ROOT / "docs").glob("*.md")]:
        text = path.read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text):
            file = (path.parent / target) if target else path
            assert file.exists(), f"{path.name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
                anchors = [re.sub(r"[^\w -]", "", each.lower()) for each in headings]
                assert anchor in {each.replace(" ", "-") for each in anchors}, f"{target}#{anchor}"


@pytest.fixture(scope="module")
def with_flights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that finds some of the flights."""
    return install_flights(tmp_path_factory.mktemp("site"), flight_count=2500)


@pytest.mark.standard
@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_python_runs(page: str, with_flights: dict[str, str], tmp_path: Path):
    """In the order of the text and in one folder, each in a process of its own."""
    for number, block in enumerate(code_blocks(page), 1):
        script = tmp_path / f"block{number}.py"
        script.write_text(block, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_pulsarx", script]
        if "def test_" not in block:
            command = [sys.executable, script]
        run = subprocess.run(
            command, cwd=tmp_path, env=with_flights, capture_output=True, text=True
        )
        assert (run.returncode, run.stderr) == (0, ""), f"{block}\n{run.stdout}{run.stderr}"
        if "arrived.most_common" in block:
            assert "('AA', 1250)" in run.stdout


def test_the_table_of_broker_options_is_complete():
    section = (ROOT / "docs/options.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.MULTILINE)
    assert rows == [(name, _shown(row.default)) for name, row in option_table().items()]


def _shown(default: object) -> str:
    if default == "":
        return '""'
    return ", ".join(default) if isinstance(default, tuple) else str(default)


@pytest.mark.parametrize(
    "options", [ClientOptions, ProducerOptions, ConsumerOptions, ReaderOptions]
)
def test_every_argument_is_used_or_named_in_the_limits(options: type[Options]):
    ignored = row_of("without effect:", options.CALL)
    used = set(WITH_EFFECT[options.CALL].split())
    assert sorted([*ignored, *used]) == sorted(row[0] for row in options.ROWS)


def test_the_page_about_administration_names_every_call():
    text = (ROOT / "docs/administration.md").read_text(encoding="utf-8")
    calls = set(re.findall(r"`(\w+)`", text[text.index("| group") : text.index("## Policies")]))
    policies = set(re.findall(r"`(\w+)`", text[text.index("| about") :]))
    with pulsarx.Client("memory:") as client:
        admin = client.admin
        groups = [admin.topics, admin.namespaces, admin.tenants, admin.schemas, admin.brokers]
        there = {name for group in groups for name in dir(group) if not name.startswith("_")}
    of_policies = {f"{verb}_{name}" for verb in ("set", "get", "remove") for name in policies}
    assert there - calls - of_policies == {"get_backlog_quotas"}
    assert of_policies - there == set()
    assert calls - there == {"topics", "namespaces", "tenants", "schemas", "brokers", "force"}
