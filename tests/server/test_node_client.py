"""The official Node client over TCP. Skipped where there is no Node.js or npm, or where npm cannot
install the client: it takes a compiled part from the Apache archive, or builds it from the C++
client's headers. PULSARX_NODE_CLIENT: a folder with one that is installed already."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from served import Served

PROGRAM = Path(__file__).parent / "node_client" / "official.js"
PACKAGE = "pulsar-client@1"
FETCH_SECONDS = 600
RUN_SECONDS = 600

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("there is no Node.js, or no npm, here")
    installed = os.environ.get("PULSARX_NODE_CLIENT")
    if installed:
        return installed
    folder = tmp_path_factory.mktemp("node")
    command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS)
    if done.returncode:
        pytest.skip(f"the Node client cannot be had: {done.stderr[-500:]}")
    return str(folder / "node_modules" / "pulsar-client")


def test_what_the_node_client_does(module: str, open_served: Callable[..., Served]) -> None:
    served = open_served()
    served.client.admin.topics.create_partitioned_topic("partitions", 3)
    url = served.service.service_url
    assert url is not None
    command = ["node", str(PROGRAM), url, module]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
