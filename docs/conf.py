"""How `make docs` makes the pages: warnings are errors, notebooks are run."""

from __future__ import annotations

from curvote import __version__

project = "curvote"
author = "the curvote authors"
version = release = __version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["build"]
html_theme = "pydata_sphinx_theme"
html_title = "curvote"

# Headings of each page are targets of links: as GitHub names them.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]

# A notebook is run anew by each build, and one that fails fails the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 60
