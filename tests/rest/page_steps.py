"""Steps of tests of the page in a browser: where things are on it, and pressing them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from administered import Administered
from chromium import CHROMIUM, DRIVER, Chromium

ORDERS = "persistent://public/default/orders"


def needs_chromium(test: Any) -> Any:
    reason = "chromium and chromedriver are not installed"
    skipped = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=reason)
    return pytest.mark.standard(skipped(test))


def publish(administered: Administered, *payloads: bytes, subscription: str = "billing") -> None:
    administered.client.subscribe("orders", subscription).close()
    producer = administered.client.create_producer("orders")
    for payload in payloads:
        producer.send(payload)
    producer.close()


def backlog_of(administered: Administered) -> int:
    found = administered.get("/persistent/public/default/orders/stats")
    backlog: int = found["subscriptions"]["billing"]["msgBacklog"]
    return backlog


def place_of(administered: Administered, topic: str = ORDERS, query: str = "") -> str:
    return f"{administered.url}/#{quote(topic, safe='')}{query}"


def has(text: str) -> str:
    return f"document.getElementById('main').innerText.includes({json.dumps(text)})"


def said(text: str) -> str:
    return f"document.getElementById('state').innerText.includes({json.dumps(text)})"


def button(label: str) -> str:
    """The first one whose text begins with it."""
    return (
        "[...document.querySelectorAll('button, a')].find(each => "
        f"each.textContent.startsWith({json.dumps(label)}))"
    )


def press(chromium: Chromium, label: str) -> None:
    chromium.until(button(label))
    chromium.run(f"{button(label)}.click()")


def fill(chromium: Chromium, at: int, value: str) -> None:
    """A field of the dialog."""
    chromium.run(
        "const field = document.getElementById('dialog-fields')"
        f".querySelectorAll('input, select')[{at}];"
        f"field.value = {json.dumps(value)}; field.dispatchEvent(new Event('input'));"
        "field.dispatchEvent(new Event('change'));"
    )


def confirm(chromium: Chromium) -> None:
    chromium.run("document.getElementById('dialog-yes').click()")


def table_rows(chromium: Chromium) -> list[list[str]]:
    found: list[list[str]] = chromium.run(
        "return [...document.querySelectorAll('tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    return found
