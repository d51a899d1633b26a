"""pulsarx.spark.session, and the Java it finds. What it is told elsewhere: test_other_drivers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import pulsarx.spark
from pulsarx.spark.java_runtime import JAVA_PACKAGE, JavaNotFoundError, find_java, java_version
from pulsarx.spark.small_java import home_for_spark


def write_java(home: Path, version: str, modules: str = "java.base@17") -> Path:
    """A home whose Java says this version, these modules, and else its arguments."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -version ] && echo \'openjdk version "{version}"\' >&2 && exit 0\n'
        f'[ "$1" = --list-modules ] && echo "{modules}" && exit 0\n'
        'for each; do echo "[$each]"; done\n'
    )
    java.chmod(0o755)
    return home


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/nonexistent:/bin" if not Path("/bin/java").exists() else "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)


@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("1.8.0_402", 8), ("25", 25)])
def test_the_version_of_a_java_is_told(tmp_path: Path, text: str, version: int):
    home = write_java(tmp_path / "java", text)
    assert java_version(str(home / "bin" / "java")) == version


def test_without_java_the_error_says_what_to_install(no_java: None):
    with pytest.raises(JavaNotFoundError) as caught:
        find_java()
    text = str(caught.value)
    assert "Java 17 or later" in text
    assert f"pip install '{JAVA_PACKAGE}'" in text
    assert "apt-get install openjdk-17-jre-headless" in text


def test_an_old_java_is_named_and_passed_over(
    no_java: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home = write_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(JavaNotFoundError, match=rf"JAVA_HOME \({home}\) is Java 11"):
        find_java()
    newer = write_java(tmp_path / "newer", "21.0.8")
    monkeypatch.setattr("shutil.which", lambda name: str(newer / "bin" / "java"))
    assert find_java() == str(newer)


def test_a_small_java_is_started_without_the_module_it_lacks(tmp_path: Path):
    small = write_java(tmp_path / "with blank", "21")
    command = [f"{home_for_spark(str(small))}/bin/java", "--add-modules=jdk.incubator.vector"]
    run = subprocess.run([*command, "-cp", "a b", "Main"], capture_output=True, text=True)
    assert run.stdout == "[-cp]\n[a b]\n[Main]\n"
    whole = write_java(tmp_path / "whole", "21", "jdk.incubator.vector@21")
    assert home_for_spark(str(whole)) == str(whole)


def test_nothing_of_pulsarx_imports_spark_or_arrow():
    script = (
        "import sys, pulsarx, pulsarx.spark; "
        "sys.exit(bool({'pyspark', 'pyarrow', 'pandas', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.startswith("pulsarx.spark.row_batches")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(pulsarx.spark, "row_batches", raising=False)  # another test imported it
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(pulsarx.spark._PLACES, "row_batches", "row_batches")
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'pulsarx\[spark\]'"):
        pulsarx.spark.row_batches


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="has no attribute 'map_topics'"):
        pulsarx.spark.map_topics


def test_the_session_is_configured(spark):
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.python.unix.domain.socket.enabled") == "true"
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"  # given by the caller
    assert pulsarx.spark.session() is spark


def test_a_running_session_keeps_its_master(spark):
    assert pulsarx.spark.session(master=spark.sparkContext.master) is spark
    with pytest.raises(ValueError, match=r"master local\[2,3\] is running.*begin one with local"):
        pulsarx.spark.session(master="local[7]")
    with pytest.raises(ValueError, match="name no master"):
        pulsarx.spark.session(conf={"spark.master": "local[7]"})


def test_a_running_session_is_changed_by_conf_alone(spark):
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(name, "1000")
    try:
        pulsarx.spark.session(conf={"spark.sql.ansi.enabled": "true"})
        assert spark.conf.get(name) == "1000"
        assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    finally:
        spark.conf.set(name, "65536")


def test_plans_of_a_session_that_ran_before_show_no_secrets(spark):
    name = "spark.sql.redaction.options.regex"
    ours = spark.conf.get(name)
    try:
        spark.conf.set(name, "(?i)url")  # as of a session that another began
        pulsarx.spark.session()
        assert spark.conf.get(name) == ours and "authparams" in ours
        spark.conf.set(name, "mine")
        pulsarx.spark.session()
        assert spark.conf.get(name) == "mine"
        spark.conf.set(name, "(?i)url")
        pulsarx.spark.session(conf={name: "(?i)url"})
        assert spark.conf.get(name) == "(?i)url"
    finally:
        spark.conf.set(name, ours)


def test_the_format_may_be_registered(spark, tmp_path: Path):
    with pulsarx.Client(tmp_path / "data") as client:
        client.create_producer("t").send_many([b"one", b"two"])
    other = spark.newSession()
    pulsarx.spark.register(other)
    frame = other.read.format("pulsarx").options(root=str(tmp_path / "data"), topic="t").load()
    assert sorted(bytes(row["value"]) for row in frame.collect()) == [b"one", b"two"]


def test_a_session_whose_look_for_formats_was_killed_finds_ours_again(
    spark, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """It knew none for as long as it lived. What Spark keeps of a look that failed is put there."""
    with pulsarx.Client(folder) as client:
        client.create_producer("t").send_many([b"one", b"two"])
    jvm, other = spark._jvm, spark.newSession()
    name = "org.apache.spark.sql.execution.datasources.DataSourceManager$"
    looks = jvm.java.lang.Class.forName(name).getField("MODULE$").get(None)
    put, known = getattr(looks, "dataSourceBuilders_$eq"), looks.dataSourceBuilders()
    put(jvm.scala.Some(jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({})))

    def load() -> int:
        options = {"root": str(folder), "topic": "t"}
        return other.read.format("pulsarx").options(**options).load().count()

    try:
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
            load()
        monkeypatch.setattr(type(spark), "_instantiatedSession", other)
        assert pulsarx.spark.session() is other
        assert load() == 2
    finally:
        put(known)
        monkeypatch.undo()
        assert pulsarx.spark.session() is spark


def test_a_thread_that_asks_for_the_session_can_write(spark, tmp_path: Path):
    """It could not: Java's side of it had no active session, and did not find the format."""
    folder = tmp_path / "data"
    with pulsarx.Client(folder) as client:
        client.admin.topics.create_non_partitioned_topic("t")
    failures: list[BaseException] = []

    def work() -> None:
        try:
            frame = pulsarx.spark.session().range(3).selectExpr("string(id) AS value")
            writer = frame.write.format("pulsarx").options(root=str(folder), topic="t")
            writer.mode("append").save()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failures, str(failures[0])
    assert pulsarx.spark.read_topic(spark, "t", root=folder).count() == 3


@pytest.mark.parametrize("package", ["pyspark", "pyarrow", "pandas"])
def test_a_session_names_the_package_it_misses(package: str, monkeypatch: pytest.MonkeyPatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == package else found(name)
    )
    with pytest.raises(ImportError, match=rf"needs {package}: pip install 'pulsarx\[spark\]'"):
        pulsarx.spark.session()
