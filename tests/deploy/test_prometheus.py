"""Alerts and dashboard, on a real Prometheus that scrapes a real `pulsarx serve`."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus import (
    DASHBOARD,
    RULES,
    SETTINGS,
    Prometheus,
    Served,
    expression_of,
    missing,
    panels,
)

import pulsarx
from pulsarx.rest.metric_table import LEVELS

yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.standard
ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "deploy/prometheus/pulsarx.rules.test.yml"
NAMES = {each.name for level in LEVELS for each in level.metrics}
OF_PROMETHEUS = {"up"}
METRIC = re.compile(r"\b(?:pulsarx?_\w+|process_\w+|up)\b")


def rules() -> list[Any]:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    found: list[Any] = group["rules"]
    return found


def metrics_of(expression: str) -> set[str]:
    """The names in a query, strings and labels left out."""
    plain = re.sub(r'"[^"]*"|\{[^}]*\}|by \([^)]*\)', "", expression)
    return set(METRIC.findall(plain))


def queries() -> list[tuple[str, str]]:
    """The title of a panel, and a query of it."""
    return [(panel["title"], each["expr"]) for panel in panels() for each in panel["targets"]]


class Scraped:
    """A folder with a subscription that is behind, as Prometheus saw it a few times."""

    def __init__(self, folder: Path) -> None:
        self.served = Served(folder)
        self.client = pulsarx.Client(self.served.url)
        try:
            self.client.subscribe("orders", "behind")
            consumer = self.client.subscribe("orders", "shared", pulsarx.ConsumerType.Shared)
            producer = self.client.create_producer("orders")
            with pulsarx.Client(folder) as beside, beside.new_transaction():
                pass  # the metrics of transactions come with the first
            self.prometheus = Prometheus(self.served.http_url.removeprefix("http://"))
        except BaseException:
            self.served.close()
            raise
        try:
            for count in range(1, 5):
                for _ in range(10):
                    producer.send(b"x" * 100)
                consumer.acknowledge(consumer.receive(60_000))
                self.prometheus.wait_until_scraped(count)
        except BaseException:
            self.close()
            raise
        self.text = urllib.request.urlopen(f"{self.served.http_url}/metrics").read().decode()

    def close(self) -> None:
        self.client.close()
        self.prometheus.close()
        self.served.close()


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    found = Scraped(tmp_path_factory.mktemp("served"))
    yield found
    found.close()


def promtool(*arguments: str | Path) -> tuple[int, str]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    run = subprocess.run(["promtool", *arguments], capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


def test_each_metric_of_an_alert_or_panel_is_declared():
    for each in rules():
        assert metrics_of(each["expr"]) <= NAMES | OF_PROMETHEUS, each["alert"]
    for title, expression in queries():
        assert metrics_of(expression) <= NAMES, title


def test_the_declarations_name_the_alerts_that_look_at_them():
    looked_at = {each["alert"]: metrics_of(each["expr"]) for each in rules()}
    for level in LEVELS:
        for each in level.metrics:
            if each.alert:
                assert each.name in looked_at[each.alert], each.name


def test_each_alert_is_in_the_guide():
    page = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    for each in rules():
        assert f"`{each['alert']}`" in page
        assert each["labels"]["severity"] in ("critical", "warning", "info")
        assert each["annotations"]["summary"] and each["annotations"]["description"]


def test_promtool_takes_rules_and_settings():
    assert promtool("check", "rules", RULES)[0] == 0
    status, said = promtool("check", "config", SETTINGS)
    assert status == 0, said


def test_each_alert_fires_when_it_should_and_not_before():
    """By promtool, on the series of CASES."""
    status, said = promtool("test", "rules", CASES)
    assert status == 0, said
    cases = yaml.safe_load(CASES.read_text(encoding="utf-8"))["tests"]
    fired = {
        each["alertname"]
        for case in cases
        for each in case["alert_rule_test"]
        if each.get("exp_alerts")
    }
    quiet = {
        each["alertname"]
        for case in cases
        for each in case["alert_rule_test"]
        if not each.get("exp_alerts")
    }
    assert fired == quiet == {each["alert"] for each in rules()}


def test_the_series_of_the_alerts_are_those_of_a_real_scrape(scraped: Scraped):
    real = {
        (name, frozenset(re.findall(r'(\w+)="', labels)))
        for name, labels in re.findall(r"^(\w+)\{(.*)\} \S+$", scraped.text, re.MULTILINE)
    }
    for case in yaml.safe_load(CASES.read_text(encoding="utf-8"))["tests"]:
        for each in case["input_series"]:
            name, _, labels = each["series"].partition("{")
            given = frozenset(re.findall(r'(\w+)="', labels))
            if name not in OF_PROMETHEUS:
                assert (name, given - {"job", "instance"}) in real, each["series"]
            assert {"job", "instance"} <= given, each["series"]


def test_the_scrape_is_what_prometheus_calls_well_formed(scraped: Scraped):
    run = subprocess.run(
        ["promtool", "check", "metrics"], input=scraped.text, capture_output=True, text=True
    )
    said = run.stdout + run.stderr
    # Names are Pulsar's, whatever a linter thinks of them.
    wrong = [
        line for line in said.splitlines() if "pulsarx_" in line.split(" ")[0] or "error" in line
    ]
    assert not wrong, said


def test_prometheus_finds_the_server_up_and_no_alert_fires(scraped: Scraped):
    assert [each["value"][1] for each in scraped.prometheus.query("up")] == ["1"]
    # Others may be filling the device of this machine just now, which is pending for long.
    alerts = scraped.prometheus.ask("alerts")["alerts"]
    assert [each for each in alerts if each["state"] == "firing"] == []
    (group,) = scraped.prometheus.ask("rules")["groups"]
    assert {each["health"] for each in group["rules"]} <= {"ok", "unknown"}
    assert len(group["rules"]) == len(rules())


def test_each_alert_would_find_its_series(scraped: Scraped):
    """Asked for with the comparison left out, it answers something."""
    for each in rules():
        for name in metrics_of(each["expr"]):
            assert scraped.prometheus.query(name), f"{each['alert']}: {name}"


@pytest.mark.parametrize(("title", "expression"), queries())
def test_each_query_of_the_dashboard_answers(scraped: Scraped, title: str, expression: str):
    found = scraped.prometheus.query(expression_of(expression, "1m"))
    assert found, title
    assert all(each["value"][1] != "NaN" for each in found)


def test_what_is_shown_is_what_was_done(scraped: Scraped):
    def value(expression: str) -> float:
        (found,) = scraped.prometheus.query(expression)
        return float(found["value"][1])

    scraped.prometheus.wait_until_scraped(8)
    assert value("sum(pulsar_in_messages_total)") == 40
    assert value('pulsar_subscription_back_log{subscription="behind"}') == 40
    assert value('pulsar_subscription_back_log{subscription="shared"}') == 36
    assert value("pulsar_broker_consumers_count") == 2


def test_the_dashboard_is_one_that_grafana_reads():
    found = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert found["uid"] == "pulsarx" and found["schemaVersion"] >= 36
    ids = [each["id"] for each in found["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for each in found["panels"]:
        place = each["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, each["title"]
        taken |= cells
        assert each["type"] in ("stat", "timeseries") and each["title"]
        assert each["fieldConfig"]["defaults"]["unit"]
        assert all(one["datasource"]["uid"] == "${datasource}" for one in each["targets"])
