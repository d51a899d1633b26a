"""Fuzzes a parser, guided by the branches that it takes, under the address and the
undefined-behaviour sanitizer.

    python tests/reliability/fuzzing.py TARGET [--seconds N] [libFuzzer's options]
    python tests/reliability/fuzzing.py TARGET FILE...    does some inputs again, such as a finding
    python tests/reliability/fuzzing.py TARGET --merge    the least of what was found, into the tree

What a fuzzer learns lies in build/long/corpora, where the next run goes on, and findings in
build/long/failures. Neither is in the tree, where tests/reliability/corpora has a few KB for each
target, which all runs of the tests give to it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent / "core"), str(HERE.parent), str(ROOT / "tools")]

from build_mode import build_mode, clang  # noqa: E402
from fuzz_targets import DECODERS, TARGETS, corpus_of, corpus_path  # noqa: E402

FOUND = ROOT / "build" / "long" / "corpora"
FAILURES = ROOT / "build" / "long" / "failures"
PROCESS = HERE / "fuzz_process.py"
SLOWEST_SECONDS = 20  # of one input, on a busy machine
MEMORY_MB = 3000
MERGED_BYTES_MAX = 4096  # of a corpus in the tree
MERGED_INPUT_MAX = 1024


def missing() -> str:
    """What there has to be, in a sentence; empty: all is there."""
    wanted = "fuzzing needs clang 14 or later with its runtime, and atheris: "
    if not clang():
        return wanted + "apt-get install clang-14 libclang-rt-14-dev (or set CC), and run again"
    if importlib.util.find_spec("atheris") is None:
        return wanted + "tools/bootstrap fuzz installs the latter, where there is a wheel of it"
    return ""


def build() -> None:
    """The library and the decoders of the tests. Quick when nothing changed."""
    given = os.environ | {"PULSARX_FUZZ": "1"}
    subprocess.run([ROOT / "tools" / "bootstrap"], env=given, check=True)
    compiler = HERE.parent / "core" / "compile_modules.py"
    subprocess.run([sys.executable, compiler, DECODERS], env=given, check=True)


def environment() -> dict[str, str]:
    os.environ["PULSARX_FUZZ"] = "1"
    tree = build_mode().tree
    del os.environ["PULSARX_FUZZ"]
    found = importlib.util.find_spec("atheris")
    assert found is not None and found.origin is not None
    runtime = Path(found.origin).parent.parent / "asan_with_fuzzer.so"
    return os.environ | {
        "PULSARX_FUZZ": "1",
        "LD_PRELOAD": str(runtime),
        "PYTHONPATH": str(tree),
        # Python's own allocator gives out parts of arenas: reading past one is seen by nobody.
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:handle_abort=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def command(name: str, *arguments: str, bug: str = "") -> list[str]:
    """bug: of fuzz_plants.py."""
    target = TARGETS[name]
    found = [sys.executable, str(PROCESS), name, ",".join(target.modules), bug]
    options = [f"-timeout={SLOWEST_SECONDS}", f"-rss_limit_mb={MEMORY_MB}"]
    return [*found, *options, f"-max_len={target.size_max}", *arguments]


def corpus(name: str) -> Path:
    """The folder that grows, with all in it that is known so far."""
    from fuzz_seeds import seeds_of

    folder = FOUND / name
    folder.mkdir(parents=True, exist_ok=True)
    for each in [*corpus_of(name), *seeds_of(name)]:
        keep(folder, each)
    return folder


def keep(folder: Path, data: bytes) -> None:
    path = folder / hashlib.sha1(data).hexdigest()[:12]
    if not path.exists():
        path.write_bytes(data)


def fuzz(
    name: str, seconds: int, seed: int, *options: str, bug: str = "", folder: Path | None = None
) -> tuple[int, str]:
    """Status and output of a process that did it for so long; 0: nothing was found. folder: for
    what is learnt and found, from nothing; None: where all of it is kept."""
    if folder is None:
        FAILURES.mkdir(parents=True, exist_ok=True)
    prefix = f"{folder or FAILURES}/fuzz-{name}-"
    given = [f"-max_total_time={seconds}", f"-seed={seed or 1}", f"-artifact_prefix={prefix}"]
    given += ["-print_final_stats=1", *options]
    line = command(name, *given, str(folder or corpus(name)), bug=bug)
    done = subprocess.run(
        line,
        env=environment(),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=seconds + 300,
    )
    said = done.stdout
    if done.returncode:
        found = re.search(r"Test unit written to (\S+)", said)
        file = found[1] if found else f"{prefix}..."
        said += (
            f"\nIt is repeated by: .venv/bin/python tests/reliability/fuzzing.py {name} {file}\n"
        )
    return done.returncode, said


def again(name: str, files: list[str]) -> int:
    return subprocess.call(command(name, *files), env=environment(), cwd=ROOT)


def merge(name: str) -> None:
    """Of what reaches different branches, the smallest, up to some KB."""
    with tempfile.TemporaryDirectory() as merged:
        line = command(name, "-merge=1", merged, str(corpus(name)))
        subprocess.run(line, env=environment(), cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
        found = sorted(
            (path.read_bytes() for path in Path(merged).iterdir()),
            key=lambda each: (len(each), each),
        )
    taken: list[bytes] = []
    for each in found:
        if len(each) + sum(map(len, taken)) > MERGED_BYTES_MAX or len(each) > MERGED_INPUT_MAX:
            break
        taken.append(each)
    corpus_path(name).write_text("".join(f"{each.hex()}\n" for each in taken))
    print(f"{name}: {len(taken)} of {len(found)} inputs")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("target", choices=list(TARGETS))
    parser.add_argument("files", nargs="*")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--merge", action="store_true")
    options, others = parser.parse_known_args()
    if why := missing():
        print(why, file=sys.stderr)
        return 1
    build()
    if options.merge:
        merge(options.target)
        return 0
    if options.files:
        return again(options.target, options.files)
    status, said = fuzz(options.target, options.seconds, options.seed, *others)
    print(said)
    return status


if __name__ == "__main__":
    sys.exit(main())
