"""README.md as a package index shows it, where no file lies beside it. setup.py asks.

Links to files lead to the repository that pyproject.toml names as `Source` in `[project.urls]`. It
names none, as PulsarX has no public home yet: then the words stay without their links, pictures
are left out, and a sentence says where the pages are.
"""

from __future__ import annotations

import re
import tomllib

from build_mode import ROOT

WITHOUT_HOME = (
    "\nThe pages that are named here (`docs/`, the changelog, the design) are in the source "
    "distribution, which has all of the repository.\n"
)
_PICTURE = re.compile(r"!\[([^\]\[]+)\]\((?!https?://)([^)\s]+)\)\n*")
_LINK = re.compile(r"\[([^\]\[]+)\]\((?!https?://)([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def index_readme() -> str:
    """The text of this clone's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return for_index((ROOT / "README.md").read_text(), project.get("urls", {}).get("Source"))


def for_index(text: str, home: str | None) -> str:
    """home: the URL below which files lie; None: there is none."""
    parts, at = [], 0
    for fence in _FENCE.finditer(text):  # programs stay as they are
        parts += [_without_relative(text[at : fence.start()], home), fence.group()]
        at = fence.end()
    parts.append(_without_relative(text[at:], home))
    return "".join(parts) + ("" if home else WITHOUT_HOME)


def _without_relative(text: str, home: str | None) -> str:
    def replaced(link: re.Match[str]) -> str:
        words, target = link.groups()
        if target.startswith("#"):
            return words  # an index makes no such targets
        return f"[{words}]({home.rstrip('/')}/blob/main/{target})" if home else words

    def shown(picture: re.Match[str]) -> str:
        words, target = picture.groups()
        return f"![{words}]({home.rstrip('/')}/raw/main/{target})\n\n" if home else ""

    return _LINK.sub(replaced, _PICTURE.sub(shown, text))
