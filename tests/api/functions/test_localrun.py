"""Facts about `python -m pulsarx functions localrun`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from child_process import PACKAGE_PARENT
from topic_reading import whole_topic

import pulsarx
from pulsarx import cli
from pulsarx.functions import localrun

WORDS = """
from pulsarx.functions import Function, SerDe


class Shout(Function):
    def process(self, input, context):
        print("met", input, flush=True)
        context.incr_counter("count", 1)
        if input == context.get_user_config_value("fails"):
            raise LookupError("fails as told")
        return f"{input}{context.get_user_config_value('mark')}{context.get_secret('tail')}"


class Backwards(SerDe):
    def serialize(self, input):
        return input[::-1].encode()

    def deserialize(self, input_bytes):
        return input_bytes.decode()[::-1]
"""
NATIVE = """
def process(input):
    print("met", input, flush=True)
    return f"{input}?"
"""
OFFICIAL = """
from pulsar import Function, SerDe
import pulsar


class Count(Function):
    def process(self, input, context):
        print("met", input, flush=True)
        return str(len(input))
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    for name, text in (("words", WORDS), ("native", NATIVE), ("official", OFFICIAL)):
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def prepare(folder: Path, *texts: bytes) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("in")
        for text in texts:
            producer.send(text)


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pulsarx", "functions", "localrun", "--root", str(folder)]
    command += ["-i", "in", "-o", "out", "--subs-position", "Earliest", *arguments]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": PACKAGE_PARENT},
    )


def heard(process: subprocess.Popen[str], count: int) -> list[str]:
    """So many lines that the function printed."""
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(count)]
    assert all(lines), process.stderr and process.stderr.read()
    return [each.rstrip() for each in lines]


def outputs(folder: Path) -> list[bytes]:
    with pulsarx.Client(folder) as client:
        return whole_topic(client, "out")


@pytest.mark.standard
@pytest.mark.parametrize(
    ("number", "guarantees", "kind"),
    [
        (signal.SIGTERM, "ATLEAST_ONCE", pulsarx.ConsumerType.Shared),
        (signal.SIGINT, "ATLEAST_ONCE", pulsarx.ConsumerType.Shared),
        (signal.SIGHUP, "ATLEAST_ONCE", pulsarx.ConsumerType.Shared),
        (signal.SIGTERM, "EFFECTIVELY_ONCE", pulsarx.ConsumerType.Failover),
    ],
)
def test_a_signal_ends_it_without_a_loss(
    code: Path, folder: Path, number: int, guarantees: str, kind: pulsarx.ConsumerType
) -> None:
    prepare(folder, b"a", b"b", b"c")
    config = ["--user-config", '{"mark": "!"}', "--secrets", '{"tail": "?"}']
    config += ["--processing-guarantees", guarantees]
    process = start(folder, "--py", str(code / "words.py"), "--classname", "words.Shout", *config)
    assert heard(process, 3) == ["met a", "met b", "met c"]
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 0, told
    assert f"Interrupted by {int(number)}, shutting down" in told
    assert outputs(folder) == [b"a!?", b"b!?", b"c!?"]
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("in", "public/default/Shout", consumer_type=kind)
        assert consumer.receive_many(10, 0) == []


@pytest.mark.standard
def test_a_module_without_a_class_is_a_function(code: Path, folder: Path) -> None:
    prepare(folder, b"a", b"b")
    process = start(folder, "--py", str(code / "native.py"), "--classname", "native")
    assert heard(process, 2) == ["met a", "met b"]
    process.terminate()
    assert process.communicate(timeout=60) and process.returncode == 0
    assert outputs(folder) == [b"a?", b"b?"]


@pytest.mark.standard
def test_a_function_that_imports_pulsar_runs(code: Path, folder: Path) -> None:
    prepare(folder, b"abc")
    process = start(folder, "--py", str(code / "official.py"), "--classname", "official.Count")
    assert heard(process, 1) == ["met abc"]
    process.terminate()
    assert process.communicate(timeout=60) and process.returncode == 0
    assert outputs(folder) == [b"3"]


@pytest.mark.standard
def test_a_function_that_cannot_go_on_ends_it_with_an_error(code: Path, folder: Path) -> None:
    prepare(folder, b"a", b"b", b"c")
    config = ["--user-config", '{"mark": "!", "fails": "b"}', "--parallelism", "2"]
    config += ["--processing-guarantees", "EFFECTIVELY_ONCE", "--output-serde-classname"]
    process = start(
        folder, "--py", str(code / "words.py"), "--classname", "words.Shout", *config,
        "words.Backwards",
    )  # fmt: skip
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "LookupError: fails as told" in told
    assert "Traceback" in told
    assert outputs(folder) == [b"enoN!a"]


@pytest.mark.standard
def test_what_cannot_be_imported_is_told(code: Path, folder: Path) -> None:
    process = start(folder, "--py", str(code / "words.py"), "--classname", "words.Nothing")
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "has no attribute 'Nothing'" in told


@pytest.mark.standard
def test_a_module_that_is_missing_makes_no_folder(tmp_path: Path) -> None:
    """The folder was made, and its topics, before it was told."""
    process = start(tmp_path / "new", "--classname", "nowhere.Thing")
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "No module named 'nowhere'" in told
    assert not (tmp_path / "new").exists()


ROOT = ["--root", "never-made"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--root"),
        (ROOT, "--classname is needed"),
        ([*ROOT, "--classname", "a.B"], "needs inputs"),
        ([*ROOT, "--classname", "a.B", "-i", "a", "-o", "a"], "an input and an output"),
        ([*ROOT, "--classname", "a.B", "-i", "a", "--jar", "x"], "only functions in Python"),
        ([*ROOT, "--classname", "a.B", "-i", "a", "--window-length-count", "3"], "no windows"),
        ([*ROOT, "--classname", "a.B", "-i", "a", "--frobnicate"], "unrecognized arguments"),
        ([*ROOT, "--classname", "a.B", "-i", "a", "--user-config", "{"], "no JSON"),
        ([*ROOT, "--classname", "a.B", "-i", "a", "--user-config", "[]"], "a JSON object"),
        ([*ROOT, "--classname", "a.B", "-i", "a", "--auto-ack", "maybe"], "true or false"),
        ([*ROOT, "--classname", "a.B", "-i", "a", "--py", "a.whl"], "from a .py file"),
        ([*ROOT, "--classname", "a.B", "-i", "a", "--py", "none.py"], "no such file"),
        ([*ROOT, "--classname", "a.B", "--function-config-file", "none.json"], "none.json"),
    ],
)
def test_what_cannot_be_run_is_refused_at_once(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        localrun.main(arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
    assert not Path("never-made").exists()
    assert not any(type(each).__module__ == "pulsarx.compat.alias" for each in sys.meta_path)


def test_help_lists_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["functions", "localrun", "--help"])
    assert ended.value.code == 0
    found = capsys.readouterr().out
    assert "--processing-guarantees" in found
    assert "--jar" not in found
    assert cli.main(["functions", "--help"]) == 0
    assert cli.main(["functions"]) == 2
    assert cli.main(["functions", "elsewhere"]) == 2


CONFIG = {
    "tenant": "t",
    "className": "words.Shout",
    "inputs": ["a", "b"],
    "userConfig": {"mark": "!"},
    "autoAck": True,
    "subscriptionPosition": "Earliest",
    "timeoutMs": None,
}


@pytest.fixture
def yaml(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In place of PyYAML, which need not be installed; JSON is YAML."""
    module = ModuleType("yaml")
    module.safe_load = json.load  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "yaml", module)
    yield


@pytest.mark.parametrize("name", ["f.json", "f.yaml"])
def test_a_configuration_file_has_the_names_of_pulsar(
    tmp_path: Path, name: str, yaml: None
) -> None:
    (tmp_path / name).write_text(json.dumps(CONFIG))
    assert localrun.read_config_file(str(tmp_path / name)) == {
        "tenant": "t",
        "classname": "words.Shout",
        "inputs": ["a", "b"],
        "user_config": {"mark": "!"},
        "auto_ack": True,
        "subs_position": "Earliest",
    }


def test_unknown_names_in_a_configuration_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(json.dumps({**CONFIG, "windowConfig": {}, "jar": "x"}))
    with pytest.raises(ValueError, match="not supported: jar, windowConfig"):
        localrun.read_config_file(str(tmp_path / "f.json"))


def test_yaml_needs_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    (tmp_path / "f.yaml").write_text("tenant: t")
    with pytest.raises(ImportError, match="PyYAML"):
        localrun.read_config_file(str(tmp_path / "f.yaml"))


@pytest.mark.standard
def test_options_win_over_the_configuration_file(code: Path, folder: Path) -> None:
    prepare(folder, b"a")
    file = code / "f.json"
    file.write_text(
        json.dumps({"className": "words.Shout", "userConfig": {"mark": "!"}, "output": "lost"})
    )
    arguments = ["--py", str(code / "words.py"), "--function-config-file", str(file)]
    process = start(folder, *arguments, "--secrets", '{"tail": "."}')
    assert heard(process, 1) == ["met a"]
    process.terminate()
    assert process.communicate(timeout=60) and process.returncode == 0
    assert outputs(folder) == [b"a!."]
