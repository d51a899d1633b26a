"""Facts about `pulsarx transactions`."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import invoke, rows

import pulsarx
from pulsarx.rest import serve_http


def test_they_are_listed_shown_and_aborted(folder: Path) -> None:
    """Beside the owner, and over HTTP."""
    client = pulsarx.Client(folder, durability="os")
    service = serve_http(client, port=0)
    for place in (str(folder), service.url):
        made = client.new_transaction()
        client.create_producer("t").send(b"a", transaction=made)
        (listed,) = rows(invoke(place, "transactions", "ls"))
        assert (listed["txn_id"], listed["status"]) == (str(made), "OPEN")
        assert (listed["topics"], listed["held"], listed["timeout"]) == (1, 1, 60)
        (shown,) = rows(invoke(place, "transactions", "show", str(made.txn_id()[1])))
        assert shown["held_messages"] == {"persistent://public/default/t": 1}
        assert invoke(place, "transactions", "abort", str(made)).exit_code == 0
        assert rows(invoke(place, "transactions", "ls")) == []
        failed = invoke(place, "transactions", "show", str(made))
        assert failed.exit_code == 1
        assert "never opened, or has ended" in failed.stderr
    service.close()
    client.close()


def test_a_folder_without_an_owner_has_none(folder: Path) -> None:
    pulsarx.Client(folder).close()
    assert rows(invoke(folder, "transactions", "ls")) == []


@pytest.mark.parametrize("text", ["x", "(0,1,2)", "", "-1"])
def test_what_is_no_id_is_refused(folder: Path, text: str) -> None:
    pulsarx.Client(folder).close()
    assert invoke(folder, "transactions", "show", "--", text).exit_code == 2
