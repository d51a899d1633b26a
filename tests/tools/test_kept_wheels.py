"""Facts about tools/kept_wheels.py: which wheels are used in the place of compiling."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from threading import Event

import build_mode
import kept_wheels
import prepare
import pytest
from kept_wheels import MADE_OF, MadeOf, fault_of, keep, library_name, made_of, search
from packages import has_pip

pytestmark = pytest.mark.standard

ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARY = build_mode.BuildMode(build_mode.RELEASE, []).library
OWN = f"cp{sys.version_info[0]}{sys.version_info[1]}"
NAME = f"pulsarx-0.1.0-{OWN}-{OWN}-linux_{os.uname().machine}.whl"
INFO = "pulsarx-0.1.0.dist-info"


def write_wheel(path: Path, of: MadeOf, library: bytes | None = None) -> Path:
    """A wheel of a library and no more."""
    files = {
        library_name(): LIBRARY.read_bytes() if library is None else library,
        f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: pulsarx\nVersion: 0.1.0\n",
        f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\n",
        f"{INFO}/{MADE_OF}": json.dumps(asdict(of)).encode(),
    }
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr(f"{INFO}/RECORD", f"{record}{INFO}/RECORD,,\n")
    return path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where wheels are kept."""
    folder = tmp_path / "place"
    monkeypatch.setenv(kept_wheels.VARIABLE, str(folder))
    for name in (*kept_wheels.FLAGS, *kept_wheels.MODES):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture(autouse=True)
def files_of_this_user_alone() -> Iterator[None]:
    """What a group may write is not used."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The sources of something small, and what the digests of a clone read besides."""
    root = tmp_path / "clone"
    for name in ("src/core/a.pyx", "src/core/a.pxd", "python/pulsarx/__init__.py", "README.md",
                 "vendored/lz4/lz4.c", "vendored/lz4/lz4.h"):  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    for name in ("pyproject.toml", *kept_wheels.BUILDING):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    return root


def test_what_one_clone_keeps_another_one_finds(place: Path, clone: Path, tmp_path: Path) -> None:
    assert search(clone).wheel is None and search(clone).said == ()
    kept = keep(write_wheel(tmp_path / NAME, made_of(clone)))
    assert kept is not None and kept.is_relative_to(place)
    other = tmp_path / "other"
    shutil.copytree(clone, other)
    for path in other.rglob("*"):
        os.utime(path, (0, 0))  # another time is no other content
    found = search(other, whole=True)
    assert found.wheel == kept and found.said == ()
    assert kept_wheels.library_of(kept) == LIBRARY.read_bytes()


def test_a_wheel_beside_others_in_a_mounted_folder_is_found(place: Path, clone: Path) -> None:
    write_wheel(place / f"pulsarx-0.0.9-{OWN}-{OWN}-linux_{os.uname().machine}.whl", MadeOf("", ""))
    fits = write_wheel(place / NAME, made_of(clone))
    found = search(clone)
    assert found.wheel == fits
    assert [each for each in found.said if "was made of other native sources: it is not" in each]


@pytest.mark.parametrize(
    "changed, library, content",
    [
        ("src/core/a.pyx", False, False),
        ("src/core/a.pxd", False, False),
        ("vendored/lz4/lz4.c", False, False),
        ("vendored/lz4/lz4.h", False, False),
        ("setup.py", False, False),
        ("tools/build_mode.py", False, False),
        ("python/pulsarx/__init__.py", True, False),
        ("README.md", True, False),
        ("src/core/a.c", True, True),
        ("python/pulsarx/__pycache__/a.py", True, True),
        ("python/pulsarx.egg-info/PKG-INFO", True, True),
        ("CHANGELOG.md", True, True),
    ],
)
def test_a_change_of_what_is_in_a_wheel_is_another_wheel(
    place: Path, clone: Path, tmp_path: Path, changed: str, library: bool, content: bool
) -> None:
    """library: the compiled part of the wheel still fits. content: all of it does."""
    keep(write_wheel(tmp_path / NAME, made_of(clone)))
    (clone / changed).parent.mkdir(exist_ok=True)
    with (clone / changed).open("a") as file:
        file.write("\n# more\n")
    assert (search(clone).wheel is not None) == library
    assert (search(clone, whole=True).wheel is not None) == content


def damaged(wheel: Path) -> None:
    data = bytearray(wheel.read_bytes())
    data[len(data) // 2] ^= 1
    wheel.write_bytes(data)


def cut(wheel: Path) -> None:
    os.truncate(wheel, wheel.stat().st_size // 2)


def emptied(wheel: Path) -> None:
    wheel.write_bytes(b"")


def changed_with_its_checksum(wheel: Path) -> None:
    """What the archive's own checksum does not show."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files[library_name()] = files[library_name()][:-1] + b"x"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def with_more(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("pulsarx/more.py", "more")


@pytest.mark.parametrize("harm", [damaged, cut, emptied, changed_with_its_checksum, with_more])
def test_a_damaged_wheel_is_not_used_and_that_is_said(
    place: Path, clone: Path, tmp_path: Path, harm: object
) -> None:
    kept = keep(write_wheel(tmp_path / NAME, made_of(clone)))
    assert kept is not None and callable(harm)
    harm(kept)
    found = search(clone)
    assert found.wheel is None
    (said,) = found.said
    assert said.startswith(f"{kept} is damaged (") and said.endswith(": it is not used")


@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_a_place_that_others_may_write_is_not_used_and_that_is_said(
    place: Path, clone: Path, tmp_path: Path, mode: int
) -> None:
    kept = keep(write_wheel(tmp_path / NAME, made_of(clone)))
    assert kept is not None
    for path in (place, kept.parent.parent, kept.parent, kept):
        before = path.stat().st_mode
        path.chmod(mode)
        found = search(clone)
        (said,) = found.said
        assert found.wheel is None and str(path) in said
        assert f"may be written by others (mode {mode:o}; chmod go-w" in said
        path.chmod(before)
    assert search(clone).wheel == kept


def test_a_wheel_of_another_user_is_not_used_and_that_is_said(
    place: Path, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep(write_wheel(tmp_path / NAME, made_of(clone)))
    assert kept is not None
    if os.geteuid():
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        path = place
    else:
        os.chown(kept, 12345, -1)
        path = kept
    found = search(clone)
    (said,) = found.said
    assert found.wheel is None and str(path) in said
    assert "neither to you nor to root" in said


def test_what_is_kept_is_found_whatever_the_umask(place: Path, clone: Path, tmp_path: Path) -> None:
    """Many systems let the group write by default."""
    os.umask(0o002)
    assert search(clone).wheel is None
    kept = keep(write_wheel(tmp_path / NAME, made_of(clone)))
    assert search(clone).wheel == kept and search(clone).said == ()


def test_a_library_that_the_loader_refuses_is_not_used(
    place: Path, clone: Path, tmp_path: Path
) -> None:
    keep(write_wheel(tmp_path / NAME, made_of(clone), b"no library"))
    found = search(clone)
    assert found.wheel is None and "cannot be loaded" in found.said[0]


@pytest.mark.parametrize(
    "tags",
    [
        "cp310-cp310-linux_{machine}",
        f"{OWN}-{OWN}t-linux_{{machine}}",
        f"{OWN}-{OWN}-manylinux_9_99_{{machine}}",
        f"{OWN}-{OWN}-linux_riscv64",
        f"{OWN}-{OWN}-macosx_11_0_{{machine}}",
    ],
)
def test_a_wheel_for_another_python_or_platform_is_not_used(
    place: Path, clone: Path, tmp_path: Path, tags: str
) -> None:
    tags = tags.format(machine=os.uname().machine)
    keep(write_wheel(tmp_path / f"pulsarx-0.1.0-{tags}.whl", made_of(clone)))
    found = search(clone)
    assert found.wheel is None and f"other Pythons or platforms ({tags})" in found.said[0]


@pytest.mark.skipif(kept_wheels.glibc() is None, reason="this machine has no glibc")
def test_one_of_an_older_glibc_is_used(place: Path, clone: Path, tmp_path: Path) -> None:
    machine = os.uname().machine
    tags = f"manylinux2014_{machine}.manylinux_2_17_{machine}"
    keep(write_wheel(tmp_path / f"pulsarx-0.1.0-{OWN}-{OWN}-{tags}.whl", made_of(clone)))
    assert search(clone).wheel is not None


def test_whoever_reads_while_others_keep_finds_a_whole_wheel(
    place: Path, clone: Path, tmp_path: Path
) -> None:
    wheel, over = write_wheel(tmp_path / NAME, made_of(clone)), Event()
    keep(wheel)

    def go_on() -> None:
        while not over.is_set():
            keep(wheel)

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(go_on) for _ in range(3)]
        try:
            for _ in range(5):
                found = search(clone)
                assert found.wheel is not None and found.said == ()
        finally:
            over.set()
        for each in writers:
            each.result()
    assert [path.name for path in place.rglob("*") if path.is_file()] == [NAME]


def test_what_was_used_last_stays(place: Path, clone: Path, tmp_path: Path) -> None:
    first = made_of(clone)
    keep(write_wheel(tmp_path / NAME, first, b""))
    used = place / first.library / first.content
    for number in range(kept_wheels.CONTENTS_KEPT + 2):
        os.utime(used, ns=(2**62, 2**62))  # it is used again each time
        other = MadeOf(f"{number:032x}", f"{number:032x}")
        keep(write_wheel(tmp_path / NAME, other, b""))
    left = {path.parent.name for path in place.glob("*/*")}
    assert len(left) == kept_wheels.CONTENTS_KEPT and first.library in left


def test_what_else_lies_in_the_place_stays(place: Path, tmp_path: Path) -> None:
    """All folders of folders were taken for wheels, and those over eight deleted."""
    for number in range(kept_wheels.CONTENTS_KEPT + 2):
        (place / "documents" / str(number)).mkdir(parents=True)
        os.utime(place / "documents" / str(number), (0, 0))
        of = MadeOf(f"{number:032x}", f"{number:032x}")
        keep(write_wheel(tmp_path / NAME, of, b""))
    assert len(list((place / "documents").iterdir())) == kept_wheels.CONTENTS_KEPT + 2


def test_the_place_is_the_users_cache_or_what_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(kept_wheels.VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert kept_wheels.place() == tmp_path / "cache" / "pulsarx" / "wheels"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert kept_wheels.place() == tmp_path / ".cache" / "pulsarx" / "wheels"
    monkeypatch.setenv(kept_wheels.VARIABLE, str(tmp_path / "mounted"))
    assert kept_wheels.place() == tmp_path / "mounted"
    monkeypatch.setenv(kept_wheels.VARIABLE, "")
    assert kept_wheels.place() is None
    assert keep(tmp_path / "none.whl") is None
    assert search().wheel is None


def test_who_measures_or_changes_the_library_compiles_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kept_wheels.may_be_used(["quickstart"])
    assert kept_wheels.may_be_used(["spark", "spark-demo"])
    assert kept_wheels.may_be_used(["test", "spark"])  # a place is named
    for asked in ([], ["bench"], ["test", "bench"], ["tests/core"], ["wheel"], ["lint"]):
        assert not kept_wheels.may_be_used(asked)
    monkeypatch.delenv(kept_wheels.VARIABLE)
    assert kept_wheels.may_be_used(["quickstart"])
    assert not kept_wheels.may_be_used(["test", "spark"])
    monkeypatch.setenv("PULSARX_DEBUG", "0")
    assert kept_wheels.may_be_used(["quickstart"])
    for name in ("CFLAGS", "PULSARX_DEBUG"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            assert not kept_wheels.may_be_used(["quickstart"])


@pytest.fixture
def prepared(clone: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The library's place in a clone that tools/prepare.py prepares."""
    monkeypatch.setattr(build_mode, "ROOT", clone)
    monkeypatch.setattr(prepare, "ROOT", clone)
    monkeypatch.setattr(prepare, "BUILT_OF", clone / "build" / "inputs")
    monkeypatch.setattr(prepare.MODE, "name", build_mode.RELEASE)
    of = made_of(clone)
    monkeypatch.setattr(kept_wheels.made_of, "__defaults__", (clone,))
    monkeypatch.setattr(kept_wheels.search, "__defaults__", (clone,))
    assert made_of() == of
    return prepare.MODE.library


def test_the_library_of_a_wheel_takes_the_place_of_a_build(
    place: Path, clone: Path, prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not prepare.take_library(["quickstart"])
    kept = keep(write_wheel(tmp_path / NAME, made_of(clone)))
    assert not prepare.take_library(["bench"]) and not prepared.exists()
    assert prepare.take_library(["quickstart"])
    assert prepared.read_bytes() == LIBRARY.read_bytes()
    assert f"nothing is compiled: the library is that of {kept}" in capsys.readouterr().err
    before = prepared.stat().st_mtime_ns
    assert prepare.take_library(["quickstart"])
    assert prepared.stat().st_mtime_ns == before and not capsys.readouterr().err
    with (clone / "src" / "core" / "a.pyx").open("a") as file:
        file.write("# more\n")
    assert not prepare.take_library(["quickstart"])


def test_what_was_built_is_not_replaced_by_a_wheel(
    place: Path, clone: Path, prepared: Path, tmp_path: Path
) -> None:
    keep(write_wheel(tmp_path / NAME, made_of(clone)))
    prepared.write_bytes(b"built")
    prepare.BUILT_OF.parent.mkdir()
    prepare.BUILT_OF.write_text(f"{prepare.inputs_digest()} {prepare._library_now()}")
    assert not prepare.take_library(["quickstart"])
    prepare.build()  # nothing to do
    assert prepared.read_bytes() == b"built"


@pytest.mark.parametrize("changed", ["vendored/lz4/lz4.c", "vendored/lz4/lz4.h", "src/core/a.pyx"])
def test_a_change_of_what_is_compiled_is_built_again(
    clone: Path, prepared: Path, changed: str
) -> None:
    """A change of the vendored LZ4 alone left the library as it was."""
    assert not prepare.is_built()
    prepared.write_bytes(b"built")
    prepare.BUILT_OF.parent.mkdir()
    prepare.BUILT_OF.write_text(f"{prepare.inputs_digest()} {prepare._library_now()}")
    assert prepare.is_built()
    with (clone / changed).open("a") as file:
        file.write("/* more */\n")
    assert not prepare.is_built()


def test_a_damaged_wheel_is_told_before_compiling(
    place: Path, clone: Path, prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = keep(write_wheel(tmp_path / NAME, made_of(clone)))
    assert kept is not None
    cut(kept)
    assert not prepare.take_library(["quickstart"]) and not prepared.exists()
    assert f"bootstrap: {kept} is damaged" in capsys.readouterr().err


def asked_program(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "tools" / "kept_wheels.py"), *arguments]
    return subprocess.run(program, capture_output=True, text=True, check=False)


def test_pip_installs_what_the_program_finds(place: Path, tmp_path: Path) -> None:
    nothing = asked_program()
    assert nothing.returncode == 1 and "make wheels makes one" in nothing.stderr
    kept = keep(write_wheel(tmp_path / NAME, made_of()))
    assert kept is not None
    found = asked_program()
    assert (found.stdout, found.returncode) == (f"{kept.parent}\n", 0)
    if not has_pip():
        pytest.skip("this environment has no pip")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    target = tmp_path / "installed"
    pip += ["--find-links", found.stdout.strip(), "--target", str(target), "pulsarx"]
    subprocess.run(pip, check=True)
    assert (target / library_name()).read_bytes() == LIBRARY.read_bytes()


def test_bootstrap_asks_whether_a_compiler_is_needed(place: Path, tmp_path: Path) -> None:
    assert asked_program("--for", "quickstart").returncode == 1
    keep(write_wheel(tmp_path / NAME, made_of()))
    assert asked_program("--for", "quickstart").returncode == 0
    assert asked_program("--for", "test", "spark").returncode == 1  # some tests are compiled
    assert asked_program("--for").returncode == 1


def test_a_wheel_that_does_not_say_what_it_is_made_of_is_not_kept(
    place: Path, tmp_path: Path
) -> None:
    wheel = tmp_path / NAME
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(ValueError, match=f"it has no {MADE_OF}"):
        keep(wheel)
    assert "it has no RECORD" in fault_of(wheel, MadeOf("", ""))
    assert not list(place.rglob("*.whl"))
    with contextlib.suppress(FileNotFoundError):
        assert not list(place.iterdir())
