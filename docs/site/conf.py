"""The settings of the site. The sources are the repository itself, so that a link to a file is the
same here and where the repository is looked at; `sphinx-build -c docs/site . build/site`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "PulsarX"
project_copyright = "the PulsarX authors, Apache-2.0"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "made_pages",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "RELIABILITY.md",
    "benchmarks/README.md",
    "benchmarks/RESULTS.md",
    "python/pulsarx/broker/README.md",
    "spark/README.md",
    "src/core/FORMAT.md",
    "src/core/README.md",
    "src/pycore/README.md",
    "tests/oracle/differences.md",
    "tests/transactions.md",
    "wheels/README.md",
]
exclude_patterns = [".*", "build", "dist", "docs/site", "examples"]

# A heading has the anchor that the repository's pages give it too.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "colon_fence"]
# Links with a scheme of the library, such as pulsar://, are addresses and no pages.
myst_url_schemes = {"http": None, "https": None, "mailto": None}

# Types stand beside the arguments that a docstring describes; a default is shown as it is written.
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
autoclass_content = "both"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Durability"]
# A type has the names of the module that defines it, and that of the public one.
suppress_warnings = ["ref.python"]
# The navigation is written into each page: names of the API there would be most of the site.
toc_object_entries = False
default_role = "code"  # what stands in single backquotes in docstrings
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 60

smartquotes = False  # two dashes of an option stay two

html_theme = "furo"
html_title = "PulsarX"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "native"
