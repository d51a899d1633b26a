"""The official Go client over TCP: one program, whose checks say what went wrong.

Built once. Skipped where there is no Go, or where neither the module proxy nor a cache has the
modules.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from certificates import Authority
from served import Served
from signing import SECRET_TEXT, token

from pulsarx.access import AccessSettings, TlsSettings
from pulsarx.broker_options import BrokerOptions

SOURCES = Path(__file__).parent / "go_client"
CHECKS = re.findall(r'^\t"([a-z-]+)": ', (SOURCES / "main.go").read_text(), re.MULTILINE)
BUILD_SECONDS = 900
CHECK_SECONDS = 120

pytestmark = pytest.mark.long


@pytest.fixture(scope="session")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("go") is None:
        pytest.skip("there is no Go here")
    command = ["go", "mod", "download"]
    if subprocess.run(command, cwd=SOURCES, capture_output=True, timeout=BUILD_SECONDS).returncode:
        pytest.skip("the modules of the client cannot be had: is there a module proxy (GOPROXY)?")
    program = tmp_path_factory.mktemp("go") / "official"
    subprocess.run(
        ["go", "build", "-o", program, "."], cwd=SOURCES, check=True, timeout=BUILD_SECONDS
    )
    return program


def check(program: Path, *arguments: str) -> None:
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=CHECK_SECONDS
    )
    assert done.returncode == 0, done.stderr[:4000]


@pytest.fixture
def served(open_served: Callable[..., Served]) -> Served:
    made = open_served()
    topics = made.client.admin.topics
    topics.create_partitioned_topic("partitions", 3)
    topics.create_partitioned_topic("partitioned-schema", 2)
    made.client.create_producer("terminated").send(b"last")
    topics.terminate("terminated")
    return made


@pytest.mark.parametrize("name", CHECKS)
def test_what_the_client_can_do(official: Path, served: Served, name: str) -> None:
    check(official, served.service.service_url, name)


def test_without_a_coordinator_no_client_with_transactions_is_opened(
    official: Path, open_served: Callable[..., Served]
) -> None:
    options = BrokerOptions(transaction_coordinator_enabled=False)
    check(official, open_served(broker_options=options).service.service_url, "transactions-off")


def test_a_token_over_tls(
    official: Path, open_served: Callable[..., Served], tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    service = {
        "tls": TlsSettings(*authority.sign("server", "localhost", "127.0.0.1")),
        "tls_port": 0,
        "advertised_address": "localhost",
        "access": AccessSettings(token_secret_key=SECRET_TEXT, superuser_roles=["admin"]),
    }
    url = open_served(service=service).service.service_url_tls
    assert url is not None
    check(official, url, "produce-and-consume", token("admin"), authority.file)
    check(official, url, "forbidden", token("nobody"), authority.file)
