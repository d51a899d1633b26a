"""A bare install: what it brings, that it is enough, and what says that an extra is missing.

Programs run without site-packages, with the library and the light packages on their path.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from build_mode import ROOT
from extras_of_tests import all_extras, packages_of

import pulsarx

pytestmark = pytest.mark.standard
LIGHT = ["click>=8.1", "backports.zstd>=1.0; python_version < '3.14'"]
TIMEOUT = 120
NOT_ASKED_BY_US = {  # extras that no call of ours looks for
    "all": "all of them",
    "java": "Spark starts it",
    "sql": "DuckDB reads what read_table returns",
}


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def users_extras() -> set[str]:
    """Those that are listed before `all`, with it."""
    names = list(all_extras())
    return set(names[: names.index("all") + 1])


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which only the light packages are there."""
    folder = tmp_path_factory.mktemp("bare")
    names = ["click", *([] if sys.version_info >= (3, 14) else ["backports.zstd"])]
    for name in names:
        spec = find_spec(name)
        assert spec is not None and spec.origin is not None
        link = folder / name.replace(".", "/")
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(Path(spec.origin).parent)
    library = Path(str(pulsarx.__file__)).parent.parent
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "PYTHONPATH": f"{library}:{folder}", "COLUMNS": "200"}


def run(bare: dict[str, str], folder: Path, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-S", "-s", "-B", *arguments],
        env=bare,
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_bare_install_brings_the_light_packages_alone() -> None:
    assert project()["dependencies"] == LIGHT


def test_all_is_every_extra_for_users() -> None:
    told = set(packages_of(["all"]))
    for name in users_extras() - {"all", "java"}:
        assert told >= set(packages_of([name])), name


PUBLISHING = """
import sys
import pulsarx
from pulsarx import CompressionType, hashing

for name in ("numpy", "rich", "lz4", "mmh3", "pyarrow", "cramjam", "pip"):
    try:
        __import__(name)
    except ImportError:
        continue
    raise SystemExit(f"{name} is there")
kinds = [CompressionType.NONE, CompressionType.LZ4, CompressionType.ZLib, CompressionType.ZSTD,
         CompressionType.SNAPPY]
for session in range(2):  # the second reads what the first left
    with pulsarx.Client("events") as client:
        consumer = client.subscribe("t", "s", pulsarx.ConsumerType.KeyShared)
        for kind in kinds * (1 - session):
            producer = client.create_producer("t", compression_type=kind, batching_enabled=True)
            producer.send(b"one" * 1000, partition_key="k")
            producer.send_many([b"many" * 100] * 20)
            producer.close()
        for _ in range(21 * len(kinds) // 3 if session == 0 else 0):
            consumer.acknowledge(consumer.receive(60_000))
        while session and (messages := consumer.receive_many(1000, timeout_millis=0)):
            consumer.acknowledge_many(messages)
        reader = client.create_reader("t", pulsarx.MessageId.earliest)
        sizes = [len(message.data()) for message in reader.read_many(1000, timeout_millis=0)]
        assert sizes == ([3000] + [400] * 20) * len(kinds), sizes
        left = client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"]
        assert (left == 0) == bool(session), left
assert hashing.murmur3_32("NON_KEY") == 1110787044
print("done")
"""


def test_publishing_and_consuming_need_nothing_more(bare: dict[str, str], tmp_path: Path) -> None:
    assert run(bare, tmp_path, "-c", PUBLISHING) == "done\n"


def test_drop_in_programs_need_nothing_more(bare: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import pulsar\n"
        "client = pulsar.Client('pulsar://localhost:6650')\n"
        "consumer = client.subscribe('t', 's')\n"
        "zstd = pulsar.CompressionType.ZSTD\n"
        "client.create_producer('t', compression_type=zstd).send(b'x' * 1000)\n"
        "print(len(consumer.receive().data()))\n"
        "client.close()\n"
    )
    assert run(bare, tmp_path, "-m", "pulsarx", "run", "--root", ".", "program.py") == "1000\n"


def test_the_command_line_needs_nothing_more(bare: dict[str, str], tmp_path: Path) -> None:
    def command(*arguments: str, stdin: str = "") -> str:
        return run(bare, tmp_path, "-m", "pulsarx", "--url", "events", *arguments, stdin=stdin)

    run(bare, tmp_path, "-c", "import pulsarx; pulsarx.Client('events').close()")
    command("produce", "orders", "-m", "one", "-m", "two")
    command("subscriptions", "create", "orders", "-s", "billing")
    assert "orders" in command("topics", "list", "--format", "table")
    assert "one" in command("read", "orders", "-m", "earliest", "-n", "2", "--format", "table")
    table = command("ls", "--format", "table")
    assert table.splitlines()[0].split() == ["TOPIC", "PARTITIONS"]
    assert "public/default/orders" in table
    assert "BACKLOG" in command("top", "--once", "--format", "table")
    assert "damage" in command("check", "--format", "table")


# What runs where an extra is missing; `client` is open and has the messages `t` for a consumer.
CALLS = {
    "numpy": [
        "messages.to_numpy()",
        "client.create_producer('t').send_columns([b'x'])",
        "client.create_producer('parts').send_columns([b'x'])",
    ],
    "arrow": [
        "client.read_table('t')",
        "messages.to_arrow()",
        "client.send_rows('t', [{'a': 1}], schema=schema.JsonSchema(Row))",
    ],
    "pandas": ["messages.to_pandas()"],
    "polars": ["messages.to_polars()"],
    "avro": ["schema.AvroSchema(Row).encode(Row(a=1))"],
    "protobuf": ["schema.ProtobufNativeSchema(Row)"],
    "encryption": [
        "client.subscribe('t', 'e', crypto_key_reader=pulsarx.CryptoKeyReader('a.pem', 'b.pem'))"
    ],
    "pulsar": ["pulsarx.Client('pulsar://127.0.0.1:1').create_producer('t')"],
    "serve": [
        "from pulsarx.rest import serve_http; serve_http(client)",
        "from pulsarx.access.tokens import TokenVerifier; TokenVerifier(settings)",
        "from pulsarx.access.basic_users import BasicUsers; BasicUsers('users')",
    ],
    "spark": [
        "import pulsarx.spark; pulsarx.spark.session()",
        "import pulsarx.spark; pulsarx.spark.register",
    ],
    "functions": [
        "from pulsarx.functions.localrun import read_config_file; read_config_file('f.yaml')"
    ],
    "offload": [
        "from pulsarx.broker.offload.stored_object import StoredObject\n"
        "StoredObject('s3://bucket/folder/1.ledger').size()"
    ],
}

ASKING = """
import json, sys
import pulsarx
from pulsarx import schema
from pulsarx.access import AccessSettings

class Row(schema.Record):
    a = schema.Integer()

open("f.yaml", "w").close()
settings = AccessSettings(token_secret_key="x" * 32)
with pulsarx.Client("memory:") as client:
    consumer = client.subscribe("t", "s")
    client.create_producer("t").send(b"x")
    client.admin.topics.create_partitioned_topic("parts", 2)
    messages = consumer.receive_arrow(1)
    for call in json.load(sys.stdin):
        try:
            exec(call)
        except ImportError as error:
            print(str(error).replace(chr(10), " "))
        else:
            print("nothing is missing")
"""


def test_every_extra_that_calls_need_is_named_by_one() -> None:
    assert CALLS.keys() | NOT_ASKED_BY_US.keys() == users_extras()


def test_every_extra_that_a_text_names_is_one() -> None:
    """In errors, docstrings and pages."""
    known = set(all_extras())
    calls = re.compile(r'optional_module\(\s*"[\w.]+",\s*"(\w+)"|needed\("\w+", "(\w+)"')
    named: set[str] = set()
    for path in [
        each
        for folder in ("python", "spark", "src", "docs")
        for each in (ROOT / folder).rglob("*")
        if each.suffix in {".py", ".pyx", ".md"}
    ] + [ROOT / "README.md"]:
        text = path.read_text()
        for found in re.findall(r"\b(?:pulsarx|\.)\[([\w,-]+)\]'", text):
            named.update(found.split(","))
        named.update(name for pair in calls.findall(text) for name in pair if name)
    assert named > {"numpy", "arrow", "serve", "spark"}
    assert named <= known


@pytest.mark.parametrize("extra", CALLS)
def test_what_is_missing_says_how_to_install_it(
    bare: dict[str, str], tmp_path: Path, extra: str
) -> None:
    said = run(bare, tmp_path, "-c", ASKING, stdin=json.dumps(CALLS[extra])).splitlines()
    assert len(said) == len(CALLS[extra])
    for call, sentence in zip(CALLS[extra], said, strict=True):
        assert f"pip install 'pulsarx[{extra}]'" in sentence, call
