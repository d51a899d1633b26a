"""README.md as package indexes show it: no link that leads nowhere, nothing else changed."""

from __future__ import annotations

import re

import pytest
from build_mode import ROOT
from index_readme import WITHOUT_HOME, for_index, index_readme

HOME = "https://example.org/pulsarx/"


def test_links_to_files_lead_to_the_home() -> None:
    text = (
        "See [topics](docs/topics.md#partitions), [LICENSE](LICENSE) and [Pulsar](https://a.b/c)."
    )
    assert for_index(text, HOME) == (
        "See [topics](https://example.org/pulsarx/blob/main/docs/topics.md#partitions), "
        "[LICENSE](https://example.org/pulsarx/blob/main/LICENSE) and [Pulsar](https://a.b/c)."
    )


def test_without_a_home_the_words_stay() -> None:
    text = "See [topics](docs/topics.md) and [Pulsar](https://a.b/c); [below](#more)."
    assert for_index(text, None) == (
        f"See topics and [Pulsar](https://a.b/c); below.{WITHOUT_HOME}"
    )
    assert for_index("[below](#more)", HOME) == "below"


def test_pictures_lead_to_the_home_or_are_left_out() -> None:
    text = "One.\n\n![A plot](docs/pictures/a.svg)\n\nTwo [pages](docs/a.md)."
    assert for_index(text, None) == f"One.\n\nTwo pages.{WITHOUT_HOME}"
    assert "\n\n![A plot](https://example.org/pulsarx/raw/main/docs/pictures/a.svg)\n\nTwo" in (
        for_index(text, HOME)
    )


def test_programs_stay_as_they_are() -> None:
    text = "[a](b)\n```python\nprint(x[0](y))\n```\n[c](d)\n"
    assert for_index(text, HOME).splitlines()[1:4] == ["```python", "print(x[0](y))", "```"]


def test_that_of_pulsarx_has_no_relative_link_and_all_its_programs() -> None:
    shown, own = index_readme(), (ROOT / "README.md").read_text()
    fences = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    assert fences.findall(shown) == fences.findall(own)
    links = re.findall(r"\]\(([^)]*)\)", fences.sub("", shown))
    assert [each for each in links if not each.startswith("https://")] == []


def test_an_index_renders_it() -> None:
    markdown = pytest.importorskip("readme_renderer.markdown")
    html = markdown.render(index_readme())
    assert html is not None
    assert "PulsarX" in html and "<pre" in html
    targets = re.findall(r'(?:href|src)="([^"]*)"', html)
    of_headings = "#user-content-"  # which it makes itself
    assert [each for each in targets if not each.startswith(("https://", of_headings))] == []
