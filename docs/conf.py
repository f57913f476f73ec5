"""How `make docs` makes the pages: warnings are errors, notebooks are run."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpydoc.xref  # noqa: E402
from making.pages import aliases  # noqa: E402 - found by the line above

from curvote import __version__  # noqa: E402

project = "curvote"
author = "the curvote authors"
version = release = __version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "making.pages",
]
exclude_patterns = ["making"]
smartquotes = False  # an option is `--this`, in prose as well

# Headings of each page are targets of links: as GitHub names them.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# A notebook is run anew by each build, and one that fails fails the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300  # of a cell; they take seconds, but machines are shared

# A docstring says each type in words; `names` in it are names of Python, and one that
# there is not fails the build (docs/making/pages.py).
default_role = "py:obj"
autosummary_generate = False
autodoc_typehints = "none"
autodoc_inherit_docstrings = False
add_module_names = False
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 80
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_aliases = aliases()
numpydoc_xref_ignore = "all"
# By itself numpydoc links `int` and `array` to the pages of Python and NumPy, which a
# build without a network does not know.
numpydoc.xref.DEFAULT_LINKS.clear()

html_theme = "pydata_sphinx_theme"
html_title = "curvote"
html_static_path = ["_static"]
html_css_files = ["curvote.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "header_links_before_dropdown": 7,
}
project_copyright = "the curvote authors, Apache-2.0"
