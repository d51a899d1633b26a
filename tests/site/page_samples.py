"""What pages have as samples, and how they run: the blocks of a page in the order of the text, in
one folder.

```python           a script, in a process of its own; by pytest where it has tests
```python, # x.py   the file x.py; when the page is through, pytest runs its test_*.py
```sh               by bash, stops at the first error; what it exports stays
```text             what the block before has printed
<!-- runs until: TEXT -->  in front of sh: the command is ended when it has printed TEXT, with 0
<!-- not run: REASON -->   in front of a block
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r"(?:^<!-- (not run|runs until): (.+?) -->\n)?^```(python|sh|text)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"# (\w+\.py)\n")
BASH = ["bash", "-euo", "pipefail", "-c"]
EXPORTED = ".exported"


@dataclass(frozen=True)
class Sample:
    """One block. note: not run, or runs until; about: the rest of it."""

    language: str
    code: str
    note: str = ""
    about: str = ""

    @property
    def file(self) -> str:
        """The name of the file that the block is, "" for none."""
        found = FILE.match(self.code) if self.language == "python" else None
        return found[1] if found else ""


def samples(text: str) -> list[Sample]:
    return [
        Sample(language, code, note or "", about or "")
        for note, about, language, code in FENCE.findall(text)
    ]


class Page:
    """Runs the samples of a page in a folder; the first that fails raises AssertionError."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        programs = folder / ".programs"
        programs.mkdir()
        for name, arguments in {"pulsarx": "-m pulsarx ", "python": ""}.items():
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
            program.chmod(0o755)
        self._environment = environment | {
            # Loading the plugins of other projects is most of the time of a short test.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PATH": f"{programs}{os.pathsep}{environment.get('PATH', os.defpath)}",
        }
        self._printed = ""
        self.printed = ""  # by all blocks

    def run(self, found: list[Sample]) -> None:
        for sample in found:
            if sample.note == "not run":
                continue
            if sample.language == "text":
                printed = self._printed.strip()
                assert printed == sample.code.strip(), f"printed:\n{printed}"
            elif sample.language == "sh":
                self._run_shell(sample)
            elif sample.file:
                (self._folder / sample.file).write_text(sample.code, encoding="utf-8")
            else:
                self._run_python(sample.code)
        tests = [each.file for each in found if each.file.startswith("test_")]
        if tests:
            (self._folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
            self._pytest(tests, sum(each.code.count("def test_") for each in found if each.file))

    def _run_python(self, code: str) -> None:
        if "def test_" in code:
            (self._folder / "test_block.py").write_text(code, encoding="utf-8")
            self._pytest(["test_block.py"], code.count("def test_"))
            return
        script = self._folder / "block.py"
        script.write_text(code, encoding="utf-8")
        self._done([sys.executable, str(script)], code)

    def _pytest(self, files: list[str], count: int) -> None:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_pulsarx", "--strict-markers"]
        self._done([*command, *files], " ".join(files))
        assert f"{count} passed" in self._printed, self._printed

    def _run_shell(self, sample: Sample) -> None:
        before = f"if [ -f {EXPORTED} ]; then . ./{EXPORTED}; fi\n"
        if sample.note != "runs until":
            self._done([*BASH, f"{before}{sample.code}\nexport -p >{EXPORTED}"], sample.code)
            return
        # Ports that nobody has, whatever runs beside it.
        code = re.sub(r"(pulsarx serve \S+)", r"\1 --port 0 --http-port 0", sample.code)
        if "--tls-only" in code:
            code = code.replace("--port 0 --http-port 0", "--tls-port 0 --https-port 0")
        process = subprocess.Popen(
            [*BASH, f"{before}exec {code}"],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        printed = ""
        for line in process.stdout:
            printed += line
            if sample.about in line:
                break
        else:
            process.wait()
            raise AssertionError(f"{sample.code}\n{printed}")
        process.send_signal(signal.SIGTERM)
        printed += process.communicate()[0]
        assert process.returncode == 0, f"{sample.code}\n{printed}"

    def _done(self, command: list[str], shown: str) -> None:
        run = subprocess.run(
            command, cwd=self._folder, env=self._environment, capture_output=True, text=True
        )
        assert (run.returncode, run.stderr) == (0, ""), f"{shown}\n{run.stdout}{run.stderr}"
        self._printed = run.stdout
        self.printed += run.stdout
